"""What a model would be sent of a conversation now: an entry point, by which ``runops show --window`` finds it."""

from __future__ import annotations

from director import desk, listening, opening, subjects, talking
from director.cli import beginning
from runtime import conversations, limits, log, reports, secrets, sessions, settings, store


def report(chosen: settings.Settings, conversation: str) -> reports.Report:
    """What the next request of a session would hold; of a run, that of a chat about it. Nothing is claimed, written or sent, and it may be going on.

    Raises UsageError ``not-a-session``, ``unknown-run``; ModelError ``window-too-large``; LogError.
    """
    kept = store.FileStore(chosen.home)
    reading = kept.read(conversation)
    if conversations.kind(kept, conversation) == "session":
        past = conversations.fold(reading)
    else:
        header = log.SessionHeader(purpose="chat", run=conversation, versions={})
        opened = log.Scope(thread=log.SESSION_THREAD, path="", event="opened", node="session", session=header)
        past = sessions.Session([opened])
    about = beginning.About.of(past)
    pen = opening.look(kept, reading, past, secrets.Masker(about.secrets(chosen)))
    kept_things = desk.Desk(pen)
    if about.run is not None:
        subject = subjects.of_run(kept, about.run)
    elif about.file is not None:
        subject = subjects.of_file(about.file, chosen)
    else:
        subject = subjects.of_draft(kept_things)
    talk = talking.Talk(
        pen,
        subject,
        kept_things,
        None,
        chosen,
        listening.Listener(),
        lambda: limits.of_session(past, pen, chosen),
    )
    return talk.window()
