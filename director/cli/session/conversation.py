"""A session in the foreground: its words, one after another, what comes of each, and how it ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from decimal import Decimal

from director.cli import screen as cli_screen
from director.cli import session_options
from director.cli.session import parsing, slash_commands
from director.conversation import reply
from director.session import state, subject
from director.tools import toolbox
from nodes.errors import BudgetReached, ModelError, RunOpsError, SetupError, UsageError
from runtime import events
from runtime.cli import console, foreground, signals
from runtime.context import limits, window
from runtime.display import costs
from runtime.log import entries, ledger, writer
from runtime.log import session as log_session
from runtime.messages.messages import Usage
from runtime.models import run_models
from runtime.report import endings
from runtime.secrets import masking
from runtime.settings import prices
from runtime.system import tasks
from runtime.workspace import host

FINAL = frozenset({3, 5, 70, 75})
"""Exit codes of errors that a further word would only meet again."""


@dataclasses.dataclass(slots=True)
class Said:
    """A word of a person, and what came of it."""

    said: str
    answer: str | None = None
    error: RunOpsError | None = None
    run: events.RunEnded | None = None
    """How the run ended that it began, or went on with."""

    def report(self) -> endings.WordReport:
        """For programs."""
        return endings.of_word(self.said, self.answer, self.error, self.run)


class Conversation:
    """What is held while it goes on. ``close`` it."""

    def __init__(
        self,
        pen: writer.Journal[log_session.Session],
        here: host.Host,
        models: session_options.Models,
        screen: cli_screen.Screen,
    ) -> None:
        """``pen`` is the session's, and is closed with it. Raises UsageError ``price-unknown``."""
        self.here, self.screen = here, screen
        self._models = models
        self.pen = pen
        self._supply: run_models.Supply | None = None
        self._talk: reply.Talk | None = None
        self._desk: state.Desk | None = None
        self._subject: subject.Subject | None = None
        self.words: list[Said] = []
        """Those of this process."""

    @property
    def id(self) -> str:
        """The session's."""
        return self.pen.conversation.id

    @property
    def session(self) -> log_session.Session:
        """Its fold."""
        return self.pen.history

    @property
    def about(self) -> session_options.About:
        """What it is about by now."""
        return session_options.About.of(self.session)

    @property
    def talk(self) -> reply.Talk:
        """The talk, about what it is about by now."""
        if self._talk is None:
            if self._supply is None:
                self._supply = self._models.supply(self.pen, self.here.kept)
            self._talk = reply.Talk(
                self.pen,
                self.subject,
                self.desk,
                self._supply,
                self.here.settings,
                self.screen,
                self.limits,
                self.kits,
                self.manner,
            )
        return self._talk

    @property
    def kits(self) -> Sequence[toolbox.Kit]:
        """Tools beside those of every session."""
        return ()

    @property
    def manner(self) -> reply.Manner:
        """How much the model may take for one word."""
        return reply.CHAT

    @property
    def desk(self) -> state.Desk:
        """What it keeps beside what is said."""
        if self._desk is None:
            self._desk = state.Desk(self.pen)
        return self._desk

    @property
    def subject(self) -> subject.Subject:
        """What it is about, to be read."""
        if self._subject is None:
            self._subject = self.about.subject(self.here, self.desk)
        return self._subject

    def limits(self) -> window.Limits:
        """Those of its windows."""
        return limits.of_session(self.session, self.pen, self.here.settings)

    def price(self, usage: Usage, model: str) -> Decimal | None:
        """Dollars that a usage of a model costs; None where nobody knows."""
        return prices.dollars(usage, model, self.here.settings.prices, self._models.server.profile.name)

    async def happened(self, text: str, run: str | None = None, spent: entries.Ran | None = None) -> None:
        """Write down what a person did beside talking; with ``run`` the session is about that one from here on, and has paid what it ``spent``."""
        self.pen.said(entries.Event(thread=entries.SESSION_THREAD, run=run, spent=spent), text, "")
        await self.pen.barrier()
        if run is not None:
            self._talk, self._subject = None, None
            known = session_options.secrets_of(self.session, self.here)
            self.pen.masker = masking.Masker({**known, **self._models.masked()})

    async def move(self, pen: writer.Journal[log_session.Session]) -> None:
        """Go on in another session."""
        await self.close()
        self.pen, self._talk, self._desk, self._subject = pen, None, None, None

    async def close(self) -> None:
        """Let the session go: everything is on the disk."""
        if self._supply is not None:
            await self._supply.close()
            self._supply = None
        await tasks.to_the_end(self.pen.conversation.aclose())


class Loop:
    """Takes words until there are no more, or one must be the last."""

    def __init__(self, conversation: Conversation, front: foreground.Foreground, *, person: bool) -> None:
        """``person``: somebody types, and sees what is printed; an error is no reason to end then."""
        self.conversation, self._front, self._person = conversation, front, person
        self.code = 0
        """The exit code, so far: that of the last word."""
        self.over = False
        """Whether a further word would only meet the last error again."""
        self._slashes = slash_commands.Slashes(conversation, front)

    def take_up(self) -> None:
        """Answer what was said before a crash and has no answer."""
        rows = len(self.conversation.session.ledger.rows)
        one = Said("")
        try:
            one.answer = self._front.run(self.conversation.talk.go_on())
        except RunOpsError as error:
            self._failed(error, one)
        if one.answer is not None or one.error is not None:
            self.conversation.words.append(one)
        if one.answer is not None:
            self._answered(one.answer, rows)

    def follow(self, word: Callable[[], str]) -> None:
        """Take words from ``word`` until it raises EOFError. Raises ``signals.Interrupted``."""
        ending = False
        while not self.over or self._person:
            try:
                with self._front.reading():
                    line = word()
            except EOFError:
                if self._person:
                    self.conversation.screen.say("")
                return
            except signals.Interrupted as interrupted:
                if not self._person or ending or interrupted.exit != 130:
                    raise
                ending = True
                self.conversation.screen.say("\n--  Ctrl-C again, Ctrl-D or /quit ends the session")
                continue
            ending = False
            try:
                if not self.take(line):
                    return
            except signals.Interrupted as interrupted:
                self.conversation.screen.broken()
                if not self._person or interrupted.exit != 130:
                    raise
                self.conversation.screen.say("--  interrupted; the session goes on")

    def take(self, line: str) -> bool:
        """Do what a word asks for; whether there may be another one."""
        goes_on = self._take(line)
        screen, name = self.conversation.screen, self.conversation.id
        if screen.unwritten is not None and not self.over:
            self._failed(
                SetupError(
                    "output-not-written",
                    f"the answer could not be written: {screen.unwritten.strerror}",
                    mend=f"make room; `runops show {name}` has it",
                )
            )
        # Who has gone away is not talked to, and nothing is paid for it.
        return goes_on and not screen.unheard

    def _take(self, line: str) -> bool:
        try:
            word = parsing.parse(line)
        except UsageError as error:
            self._failed(error)
            return True
        if isinstance(word, parsing.Slash):
            return self._do(word, line.strip())
        if word:
            self.say(word)
        return True

    def _do(self, word: parsing.Slash, typed: str) -> bool:
        """Do what a word with a slash asks for; a run that did not pass gives its own exit code."""
        self.code = 0
        try:
            goes_on = self._slashes.take(word)
        except RunOpsError as error:
            self._failed(error)
            return True
        ran = self._slashes.ran
        if ran is not None:
            self.code = ran.exit
            self.conversation.words.append(Said(typed, run=ran))
        return goes_on

    def say(self, text: str) -> None:
        """Say something to the model, and show its answer."""
        rows = len(self.conversation.session.ledger.rows)
        one = Said(text)
        self.conversation.words.append(one)
        try:
            one.answer = self._front.run(self.conversation.talk.say(text))
        except RunOpsError as error:
            self._failed(error, one)
            return
        self.code = 0
        self._answered(one.answer, rows)

    def _answered(self, text: str, rows: int) -> None:
        screen, session = self.conversation.screen, self.conversation.session
        screen.answered(text)
        spent = session.ledger.rows[rows:]
        screen.meter(ledger.totals(spent) if spent else None, screen.report)

    def _failed(self, error: RunOpsError, one: Said | None = None) -> None:
        self.code, self.over = error.exit, error.exit in FINAL
        if one is not None:
            one.error = error
        self.conversation.screen.broken()
        # The command that goes with a budget names the larger one itself.
        shown = error.replaced(mend=None) if isinstance(error, BudgetReached) else error
        console.say(console.failure(shown, self._next(error)))

    def _next(self, error: RunOpsError) -> str | None:
        """The command to type after an error."""
        name = self.conversation.id
        if isinstance(error, BudgetReached):
            larger = costs.resume_command(name, error.as_json()).rpartition(" --budget ")[2]
            return f"runops chat --resume {name} --budget {larger}"
        said = self.conversation.session.thread(entries.SESSION_THREAD).said
        if isinstance(error, ModelError) and said and isinstance(said[-1], entries.ModelError):
            return "continue" if self._person else f"runops chat --resume {name} -m continue"
        return None
