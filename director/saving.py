"""A conversation as Markdown, for people: what was said, what was done, what broke off, and the plan as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runtime import journal, log, sessions
from runtime.models import threads

LONGEST = 2_000
"""Characters of what a tool said that stand in it; the file of the session has the whole."""

_TICKS = re.compile(r"`{3,}")


def markdown(session: sessions.Session, texts: journal.Texts, name: str) -> str:
    """The session called ``name``, as Markdown. Secrets are masked as they are in the log."""
    return "\n\n".join(_parts(session, texts, name)) + "\n"


def _parts(session: sessions.Session, texts: journal.Texts, name: str) -> Iterator[str]:
    header = session.header
    yield f"# Session {name}"
    about = [f"begun {session.started}"]
    if header is not None:
        about += [f"about run {session.about}"] if session.about else []
        about += [f"about {header.file}"] if header.file else []
        about += [f"forked from {header.forked.conversation}"] if header.forked is not None else []
    yield "\n".join(f"- {each}" for each in about)
    for saying in session.thread(log.SESSION_THREAD).said:
        yield from _said(saying, texts)


def _said(saying: threads.Saying, texts: journal.Texts) -> Iterator[str]:
    match saying:
        case log.User():
            yield f"## {'You' if saying.mode is not None else 'Note'}"
            yield texts.text_of(saying)
        case threads.Happened(events=events):
            yield from (f"*{texts.text_of(each)}*" for each in events)
        case log.ModelError():
            yield "## Model"
            if text := texts.text_of(saying):
                yield text
            yield f"*The answer broke off: {saying.error.get('code')}: {saying.error.get('message')}*"
        case threads.Exchange(answer=answer, done=done):
            yield f"## Model ({answer.model})"
            if text := texts.text_of(answer):
                yield text
            for call in texts.calls_of(answer):
                yield f"**{call.name}**"
                yield fenced(call.arguments, "json")
                told = done[call.id].told
                yield fenced(_shortened(texts.text_of(told))) if told is not None else "*Open: no outcome is recorded.*"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… ({len(text):,} characters in all)"


def fenced(text: str, language: str = "") -> str:
    """``text`` as a block of code, whatever ticks stand in it."""
    longest = max((len(each) for each in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
