"""Reports the next request of a conversation: an entry point for ``runops show --window``."""

from __future__ import annotations

from director.cli import foreground, session_options
from director.cli import screen as cli_screen
from director.session import open as open_session
from director.session import settings
from runtime.context import report as context_report
from runtime.log import entries, session
from runtime.secrets import hidden_names, masking
from runtime.workspace import host, session_index


def report(here: host.Host, conversation: str) -> context_report.Report:
    """Return the contents of a session's next request; for a run, of a chat about it. Nothing is claimed, written or sent; it may be active.

    Raises UsageError ``not-a-session``, ``unknown-run``; ModelError ``window-too-large``; LogError.
    """
    reading = here.reader.read(conversation)
    if session_index.kind(here.reader, conversation) == "session":
        past = session_index.fold(reading)
    else:
        header = entries.SessionHeader(purpose="chat", run=conversation, versions={})
        opened = entries.Scope(thread=entries.SESSION_THREAD, path="", event="opened", node="session", session=header)
        past = session.Session([opened])
    names = hidden_names.of(here.settings.hidden_names)
    masker = masking.Masker(session_options.secrets_of(past, here), names)
    writer = open_session.look(here.reader, reading, past, masker)
    here = here.having(settings.of_session(past, writer, here.settings))
    screen = cli_screen.Screen(as_it_comes=False, quiet=True)
    return foreground.Conversation(writer, here, None, screen).talk.window()
