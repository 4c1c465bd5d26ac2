"""Loop over the messages of a chat."""

from __future__ import annotations

from collections.abc import Callable

from director.cli.session import conversation, parsing, slash_commands
from nodes.errors import BudgetReached, ModelError, RunOpsError, SetupError, UsageError
from runtime.cli import console, foreground, signals
from runtime.display import costs
from runtime.log import entries, ledger


class Loop:
    """Processes messages until there are no more, or one must be the last."""

    def __init__(self, conversation: conversation.Conversation, front: foreground.Foreground, *, person: bool) -> None:
        """``person``: somebody types, and sees the output; then errors do not end the loop."""
        self.conversation, self._front, self._person = conversation, front, person
        self.code = 0
        self.over = False
        """True if a further message would only repeat the last error."""
        self._slashes = slash_commands.SlashCommands(conversation, front)

    def take_up(self) -> None:
        """Answer a message that a crash left unanswered."""
        rows = len(self.conversation.session.ledger.rows)
        one = conversation.Exchange("")
        try:
            one.answer = self._front.run(self.conversation.talk.go_on())
        except RunOpsError as error:
            self._failed(error, one)
        if one.answer is not None or one.error is not None:
            self.conversation.words.append(one)
        if one.answer is not None:
            self._answered(one.answer, rows)

    def follow(self, word: Callable[[], str]) -> None:
        """Process messages from ``word`` until it raises EOFError. Raises ``signals.Interrupted``."""
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
                self.conversation.screen.say("--  interrupted; the session continues")

    def take(self, line: str) -> bool:
        """Process a message; return whether another one may follow."""
        goes_on = self._take(line)
        screen, name = self.conversation.screen, self.conversation.id
        if screen.unwritten is not None and not self.over:
            self._failed(
                SetupError(
                    "output-not-written",
                    f"the answer could not be written: {screen.unwritten.strerror}",
                    fix=f"make room; `runops show {name}` has it",
                )
            )
        # Without a reader nothing is sent, and nothing is paid.
        return goes_on and not screen.unheard

    def _take(self, line: str) -> bool:
        try:
            word = parsing.parse(line)
        except UsageError as error:
            self._failed(error)
            return True
        if isinstance(word, parsing.SlashLine):
            return self._do(word, line.strip())
        if word:
            self.say(word)
        return True

    def _do(self, word: parsing.SlashLine, typed: str) -> bool:
        """Execute a slash command; a run that did not pass sets its own exit code."""
        self.code = 0
        try:
            goes_on = self._slashes.take(word)
        except RunOpsError as error:
            self._failed(error)
            return True
        ran = self._slashes.ran
        if ran is not None:
            self.code = ran.exit
            self.conversation.words.append(conversation.Exchange(typed, run=ran))
        return goes_on

    def say(self, text: str) -> None:
        """Send a message to the model, and show its answer."""
        rows = len(self.conversation.session.ledger.rows)
        one = conversation.Exchange(text)
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

    def _failed(self, error: RunOpsError, one: conversation.Exchange | None = None) -> None:
        self.code, self.over = error.exit, error.exit in conversation.FINAL
        if one is not None:
            one.error = error
        self.conversation.screen.broken()
        # The command for a budget names the larger one itself.
        shown = error.replaced(fix=None) if isinstance(error, BudgetReached) else error
        console.say(console.failure(shown, self._next(error)))

    def _next(self, error: RunOpsError) -> str | None:
        name = self.conversation.id
        if isinstance(error, BudgetReached):
            larger = costs.resume_command(name, error.as_json()).rpartition(" --budget ")[2]
            return f"runops chat --resume {name} --budget {larger}"
        said = self.conversation.session.thread(entries.SESSION_THREAD).said
        if isinstance(error, ModelError) and said and isinstance(said[-1], entries.ModelError):
            return "continue" if self._person else f"runops chat --resume {name} -m continue"
        return None
