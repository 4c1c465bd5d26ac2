"""What a model would be sent of a conversation now: an entry point, by which ``runops show --window`` finds it."""

from __future__ import annotations

from director import desk, kits, listening, loop, opening, person, session_settings, shops, talking
from director.cli import beginning, ordering
from runtime.context import limits
from runtime.context import report as context_report
from runtime.log import entries, session
from runtime.secrets import masking
from runtime.workspace import host, session_index


def report(here: host.Host, conversation: str) -> context_report.Report:
    """What the next request of a session would hold; of a run, that of a chat about it. Nothing is claimed, written or sent, and it may be going on.

    Raises UsageError ``not-a-session``, ``unknown-run``; ModelError ``window-too-large``; LogError.
    """
    kept = here.kept
    reading = kept.read(conversation)
    if session_index.kind(kept, conversation) == "session":
        past = session_index.fold(reading)
    else:
        header = entries.SessionHeader(purpose="chat", run=conversation, versions={})
        opened = entries.Scope(thread=entries.SESSION_THREAD, path="", event="opened", node="session", session=header)
        past = session.Session([opened])
    pen = opening.look(kept, reading, past, masking.Masker(beginning.secrets_of(past, here)))
    kept_things = desk.Desk(pen)
    here = here.having(session_settings.of_session(past, pen, here.settings))
    if past.header is not None and past.header.build is not None:
        return _of_build(pen, kept_things, here).window()
    talk = talking.Talk(
        pen,
        beginning.About.of(past).subject(here, kept_things),
        kept_things,
        None,
        here.settings,
        listening.Listener(),
        lambda: limits.of_session(past, pen, here.settings),
    )
    return talk.window()


def _of_build(pen: opening.Pen, own: desk.Desk, here: host.Host) -> talking.Talk:
    """The talk of a build, with all its tools; none of them is used."""
    here = here.having(ordering.chosen_for(here.settings))
    quiet, nobody = listening.Listener(), person.Nobody()
    shop = shops.of_session(pen, own, here, quiet, nobody, lambda _usage, _model: None)
    return talking.Talk(
        pen,
        shops.subject_of(shop),
        own,
        None,
        here.settings,
        quiet,
        lambda: limits.of_session(pen.history, pen, here.settings),
        kits.kits(shop),
        loop.MANNER,
    )
