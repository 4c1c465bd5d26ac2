"""A conversation as Markdown, for people: what was said, what was done, what broke off, and the plan as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nodes.errors import UsageError
from runtime import durable, journal, log, regular, sessions
from runtime.display.text import harmless
from runtime.models import threads

LONGEST = 2_000
"""Characters of what a tool said that stand in it; the file of the session has the whole."""

HEAD = "# Session "
"""What the file begins with."""

_TICKS = re.compile(r"`{3,}")
_OURS = re.compile(
    r"^( {0,3})(#+[ \t]+(?:You|Note|Model|Session)\b|(?:You|Note|Model|Session)\b.*\n {0,3}(?:=+|-+)[ \t]*$)",
    re.MULTILINE,
)
"""A heading like one of ours, in either way in which Markdown has headings."""


def markdown(session: sessions.Session, texts: journal.Texts, name: str) -> str:
    """The session called ``name``, as Markdown. Secrets are masked as they are in the log; nothing that was said looks like a heading of ours, or moves the cursor of who prints it."""
    return "\n\n".join(_parts(session, texts, name)) + "\n"


def save(path: Path, text: str) -> None:
    """Put the text into the file: all of it, or nothing. Raises UsageError ``file-not-written``, also where something stands there that is no saved session."""
    try:
        if path.exists() and not _is_ours(path):
            raise UsageError(
                "file-not-written",
                f"{path} is there already, and is no saved session",
                mend="name another file: /save FILE.md",
            )
        durable.write(path, text.encode())
    except OSError as error:
        raise UsageError(
            "file-not-written",
            f"{path} could not be written: {error.strerror}",
            mend="name another file: /save FILE.md",
        ) from None


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with regular.opened(path) as file:
        return file.read(len(HEAD)) == HEAD.encode()


def _parts(session: sessions.Session, texts: journal.Texts, name: str) -> Iterator[str]:
    header = session.header
    yield f"{HEAD}{name}"
    about = [f"begun {session.started}"]
    if header is not None:
        about += [f"about run {session.about}"] if session.about else []
        about += [f"about {header.file}"] if header.file else []
        about += [f"forked from {header.forked.conversation}"] if header.forked is not None else []
    yield "\n".join(f"- {harmless(each)}" for each in about)
    for saying in session.thread(log.SESSION_THREAD).said:
        yield from _said(saying, texts)


def _said(saying: threads.Saying, texts: journal.Texts) -> Iterator[str]:
    match saying:
        case log.User():
            yield f"## {'You' if saying.mode is not None else 'Note'}"
            yield said(texts.text_of(saying))
        case threads.Happened(events=events):
            yield from (f"*{said(texts.text_of(each))}*" for each in events)
        case log.ModelError():
            yield "## Model"
            if text := texts.text_of(saying):
                yield said(text)
            yield said(f"*The answer broke off: {saying.error.get('code')}: {saying.error.get('message')}*")
        case threads.Exchange(answer=answer, done=done):
            yield f"## Model ({answer.model})"
            if text := texts.text_of(answer):
                yield said(text)
            for call in texts.calls_of(answer):
                yield f"**{call.name}**"
                yield fenced(call.arguments, "json")
                told = done[call.id].told
                yield fenced(_shortened(texts.text_of(told))) if told is not None else "*Open: no outcome is recorded.*"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… ({len(text):,} characters in all)"


def said(text: str) -> str:
    """``text`` as somebody said it, without a heading by which it would be somebody else's."""
    return _OURS.sub(r"\1\\\2", harmless(text))


def fenced(text: str, language: str = "") -> str:
    """``text`` as a block of code, whatever ticks stand in it."""
    text = harmless(text)
    longest = max((len(each) for each in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
