"""Shows the next request of a conversation: an entry point for ``runops show --window``."""

from __future__ import annotations

from director.builds import loop
from director.builds import open as open_build
from director.cli import session_options
from director.cli.builds import options
from director.conversation import reply
from director.session import events, person, settings
from director.session import open as open_session
from director.session.state import SessionState
from runtime.context import limits
from runtime.context import report as context_report
from runtime.log import entries, session
from runtime.secrets import masking
from runtime.workspace import host, session_index


def report(here: host.Host, conversation: str) -> context_report.Report:
    """Return the next request's contents of a session; for a run, of a chat about it. Nothing is claimed, written or sent; it may be active.

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
    writer = open_session.look(kept, reading, past, masking.Masker(session_options.secrets_of(past, here)))
    kept_things = SessionState(writer)
    here = here.having(settings.of_session(past, writer, here.settings))
    if past.header is not None and past.header.build is not None:
        return _of_build(writer, kept_things, here).window()
    talk = reply.Talk(
        writer,
        session_options.About.of(past).subject(here, kept_things),
        kept_things,
        None,
        here.settings,
        events.Listener(),
        lambda: limits.of_session(past, writer, here.settings),
    )
    return talk.window()


def _of_build(writer: open_session.SessionWriter, own: SessionState, here: host.Host) -> reply.Talk:
    here = here.having(options.chosen_for(here.settings))
    quiet, nobody = events.Listener(), person.Nobody()
    build = open_build.of_session(writer, own, here, quiet, nobody, lambda _usage, _model: None)
    return reply.Talk(
        writer,
        open_build.subject_of(build),
        own,
        None,
        here.settings,
        quiet,
        lambda: limits.of_session(writer.history, writer, here.settings),
        open_build.toolsets(build),
        loop.OPTIONS,
    )
