"""A session in the foreground: its messages in sequence, the outcome of each, and its end."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import Decimal

from director.cli import screen as cli_screen
from director.cli import session_options
from director.conversation import reply
from director.session import subject
from director.session.state import SessionState
from director.tools.toolbox import Toolset
from nodes.errors import RunOpsError
from runtime import events
from runtime.context import limits, window
from runtime.log import entries
from runtime.log import session as log_session
from runtime.log.writer import LogWriter
from runtime.messages.messages import Usage
from runtime.models import run_models
from runtime.report import endings
from runtime.secrets import masking
from runtime.settings import prices
from runtime.system import tasks
from runtime.workspace import host

FINAL = frozenset({3, 5, 70, 75})
"""Exit codes of errors that a further message would only repeat."""


@dataclasses.dataclass(slots=True)
class Exchange:
    """A message of a person, and its outcome."""

    said: str
    answer: str | None = None
    error: RunOpsError | None = None
    run: events.RunEnded | None = None
    """The end of the run that it began or resumed."""

    def report(self) -> endings.WordReport:
        """Return the message for programs."""
        return endings.of_word(self.said, self.answer, self.error, self.run)


class Conversation:
    """Resources of a session in progress. Call ``close`` on it."""

    def __init__(
        self,
        writer: LogWriter[log_session.Session],
        here: host.Host,
        models: session_options.Models,
        screen: cli_screen.Screen,
    ) -> None:
        """``writer`` is the session's, and is closed with it. Raises UsageError ``price-unknown``."""
        self.here, self.screen = here, screen
        self._models = models
        self.writer = writer
        self._supply: run_models.RunModels | None = None
        self._talk: reply.Talk | None = None
        self._state: SessionState | None = None
        self._subject: subject.Subject | None = None
        self.words: list[Exchange] = []

    @property
    def id(self) -> str:
        """The session's id."""
        return self.writer.conversation.id

    @property
    def session(self) -> log_session.Session:
        """The folded log of the session."""
        return self.writer.history

    @property
    def about(self) -> session_options.About:
        """Its current subject."""
        return session_options.About.of(self.session)

    @property
    def talk(self) -> reply.Talk:
        """The conversation about its current subject."""
        if self._talk is None:
            if self._supply is None:
                self._supply = self._models.supply(self.writer, self.here.kept)
            self._talk = reply.Talk(
                self.writer,
                self.subject,
                self.state,
                self._supply,
                self.here.settings,
                self.screen,
                self.limits,
                self.toolsets,
                self.options,
            )
        return self._talk

    @property
    def toolsets(self) -> Sequence[Toolset]:
        """The tools besides those of every session."""
        return ()

    @property
    def options(self) -> reply.ReplyOptions:
        """The limits of the model for one message."""
        return reply.CHAT

    @property
    def state(self) -> SessionState:
        """Its state besides the messages."""
        if self._state is None:
            self._state = SessionState(self.writer)
        return self._state

    @property
    def subject(self) -> subject.Subject:
        """Its subject, to be read."""
        if self._subject is None:
            self._subject = self.about.subject(self.here, self.state)
        return self._subject

    def limits(self) -> window.Limits:
        """The limits of its windows."""
        return limits.of_session(self.session, self.writer, self.here.settings)

    def price(self, usage: Usage, model: str) -> Decimal | None:
        """Return the dollars that a usage of a model costs; None if unknown."""
        return prices.dollars(usage, model, self.here.settings.prices, self._models.server.profile.name)

    async def happened(self, text: str, run: str | None = None, spent: entries.Ran | None = None) -> None:
        """Log what a person did besides messages; with ``run`` the session is about that run from now on, and has paid what it ``spent``."""
        self.writer.said(entries.Event(thread=entries.SESSION_THREAD, run=run, spent=spent), text, "")
        await self.writer.barrier()
        if run is not None:
            self._talk, self._subject = None, None
            known = session_options.secrets_of(self.session, self.here)
            self.writer.masker = masking.Masker({**known, **self._models.masked()})

    async def move(self, writer: LogWriter[log_session.Session]) -> None:
        """Continue in another session."""
        await self.close()
        self.writer, self._talk, self._state, self._subject = writer, None, None, None

    async def close(self) -> None:
        """Release the session: everything is synced."""
        if self._supply is not None:
            await self._supply.close()
            self._supply = None
        await tasks.to_the_end(self.writer.conversation.aclose())
