"""Runs a chat in the foreground: processes its messages, and reports its end."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal

import typer

from director.builds import loop
from director.cli import foreground, session_options
from director.cli import input as typed_input
from director.cli import screen as cli_screen
from director.cli.builds import options as build_options
from director.cli.builds import outcome, reset_question
from director.cli.session import followed_runs, json_lines, meanwhile, slash_commands
from director.conversation import knowledge, reply
from director.draft.goal import Goal
from director.session import person as persons
from director.session import settings as session_settings
from director.session import state_lists
from director.session.open import SessionWriter
from director.session.state import SessionState
from nodes.errors import BudgetReached, ModelError, Paused, RunOpsError, SetupError, UsageError
from nodes.values import Json
from runtime import logger
from runtime.cli import console, signals
from runtime.cli.foreground import Foreground
from runtime.context import items
from runtime.display.stream import Talk
from runtime.display.text import cut, one_line
from runtime.log import entries, ledger, threads
from runtime.log.threads import Exchange
from runtime.models.turns import turn
from runtime.report import chat_events, endings, of_session
from runtime.report.parts import Costs
from runtime.workspace import host

Form = Literal["text", "json", "json-lines"]
"""What a chat writes to stdout: answers, one object at its end, or an object for each event."""

YES = frozenset({"yes", "y"})
"""Messages that do what the model has proposed."""

STOPPED = "--  stopped; the session continues"

FINAL = frozenset({3, 5, 70, 75})  # exit codes of errors that a further message would only repeat


@dataclasses.dataclass(frozen=True, slots=True)
class ChatOptions:
    about: str | None = None
    message: str | None = None
    resume: str | None = None
    fork: str | None = None
    mode: entries.Mode | None = None
    window: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    settings: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Other given settings of the session, by name."""
    take_over: bool = False
    order: build_options.BuildOrder = build_options.NOTHING
    """What is said about building: the site, inputs, secrets, effects."""

    def check(self) -> None:
        """Raise UsageError ``usage`` for contradictions."""
        if self.message is not None and not self.message.strip():
            raise UsageError("usage", "`--message` says nothing", fix="give it a text, or leave it out and type")
        if self.resume is not None and self.fork is not None:
            raise UsageError("usage", "`--resume` and `--fork` contradict each other", fix="leave one of them out")
        if self.about is not None and (self.resume is not None or self.fork is not None):
            raise UsageError(
                "usage",
                f"a session that continues is about what it was about, and not about {self.about!r}",
                fix="leave it out, or begin a session: `runops chat` without `--resume` and `--fork`",
            )


def converse(options: ChatOptions, here: host.Host, *, form: Form, quiet: bool) -> None:
    """Begin or resume a session, and process its messages. Always raises ``typer.Exit``, or RunOpsError if it could not begin."""
    options.check()
    logger.silence()
    lines = form == "json-lines"
    person = options.message is None and not lines and typed_input.interactive()
    found: session_options.Found | None = None
    if options.resume is not None:
        found = session_options.find(here, options.resume, options.settings)
    elif options.fork is not None:
        found = session_options.find(here, options.fork, options.settings)
    here = found.here if found is not None else here
    models = session_options.Models.of(here)
    screen: cli_screen.Screen
    read: json_lines.Input | None = None
    who: persons.Person = persons.Nobody()
    if lines:
        screen = events = json_lines.Lines()
        if options.message is None:
            read = json_lines.Input(sys.stdin.fileno())
            who = json_lines.Asking(events, read)
    else:
        screen = cli_screen.Screen(
            as_it_comes=person, quiet=quiet, answers=Talk(sys.stderr) if form == "json" else None
        )
        if person and typed_input.can_ask():
            who = typed_input.person_at(screen.asks)
    with foreground.followed(
        _open(options, here, models, found), lambda writer: foreground.Conversation(writer, here, models, screen, who)
    ) as (front, conversation):
        code = Chat(conversation, front, person=person, read=read).carry_out(options)
        screen.end(_ending(conversation, code))
    if not quiet or code:
        interrupted = "interrupted\n  " if foreground.STATES.get(code) == "interrupted" else ""
        console.say(f"{interrupted}again  {conversation.again}")
    foreground.result(
        _ending(conversation, code).as_json() if form == "json" else None, f"runops show {conversation.id}"
    )
    raise typer.Exit(code)


async def _open(
    options: ChatOptions, here: host.Host, models: session_options.Models, found: session_options.Found | None
) -> SessionWriter:
    if here.settings.chat_knowledge is not None:
        # Unreadable files are reported before anything is begun.
        knowledge.Knowledge.read([here.settings.chat_knowledge])
    order = options.order
    goal: Goal | None = None
    if found is not None:
        goal, secrets = build_options.resumed(order, here, models, found)
        source = found
    else:
        about = session_options.About.named(options.about, here)
        file = str(about.file) if about.file is not None else None
        secrets = dict(about.secrets(here))
        if order != build_options.NOTHING:
            goal, own_secrets = build_options.begun(order, here, models, about.workflow_file(here.reader))
            secrets |= own_secrets
        source = entries.SessionHeader(
            purpose="chat", run=about.run, file=file, versions={}, build=goal.as_logged() if goal is not None else None
        )

    async def keep(own: SessionState) -> None:
        mode = options.mode or (here.settings.chat_mode if found is None else None)
        if mode is not None and mode != own.history.mode:
            own.keep(entries.Version(of="mode", number=0, reason=f"--mode {mode}", by="person"), mode)
        session_settings.keep(own, options.settings)
        if found is not None and goal is not None:
            build_options.keep_changes(own, order, goal)
        for name, value in options.window.items():
            session_options.set_limit(own, here.settings, name, value, f"--{name.replace('_', '-')}")

    return await session_options.open_session(
        here, models, source, secrets, keep, fork=options.fork is not None, take_over=options.take_over
    )


def _ending(conversation: foreground.Conversation, code: int) -> endings.ChatEnding:
    about = conversation.about
    report = conversation.screen.report
    return endings.ChatEnding(
        session=conversation.id,
        status="ended" if code == 0 else foreground.STATES.get(code, "failed"),
        exit=code,
        mode=conversation.session.mode,
        about=endings.AboutReport(run=about.run, file=str(about.file) if about.file is not None else None),
        built=outcome.built(conversation.build) if conversation.build is not None else None,
        words=conversation.words,
        costs=Costs.maybe(conversation.session.ledger.totals()),
        runs=of_session.costs_of_runs(conversation.session),
        delegates=of_session.delegates_of(conversation.session),
        window=report.as_json() if report is not None else None,
        warnings=conversation.screen.warnings,
    )


def _left(ended: turn.Done) -> dict[str, Json]:
    value: Any = ended.value
    return value if isinstance(value, dict) else {}


SHOWN = 100  # columns of a message that is shown again


def _is_said(saying: threads.Saying) -> bool:
    """True for a message of the person, and for an answer of the model in words."""
    if isinstance(saying, Exchange):
        return bool(saying.answer.text or saying.answer.blob)
    return isinstance(saying, entries.User) and saying.mode is not None


class Chat:
    def __init__(
        self,
        conversation: foreground.Conversation,
        front: Foreground,
        *,
        person: bool,
        read: json_lines.Input | None = None,
    ) -> None:
        """With ``person``, somebody types and sees the output: errors do not end the chat. ``read`` has the lines of a front end."""
        self._conversation, self._front, self._person, self._read = conversation, front, person, read
        self._code = 0
        self._over = False  # True if a further message would only repeat the last error
        self._proposed: foreground.Proposal | None = (
            None  # the proposal that the person saw last, until they say something
        )
        self._slashes = slash_commands.SlashCommands(conversation, front)
        self._meanwhile: meanwhile.Meanwhile | None = None
        if read is not None:
            self._meanwhile = meanwhile.Meanwhile(conversation, front, read, json_lines.at_once)
        elif person:
            self._meanwhile = meanwhile.Meanwhile(conversation, front, typed_input.Arrivals(), meanwhile.typed)

    def carry_out(self, options: ChatOptions) -> int:
        conversation = self._conversation
        self._told_session()
        try:
            if options.resume is not None:
                self._front.complete(conversation.settle())
                self._front.complete(followed_runs.settle(conversation))
                self._told_where()
                if conversation.session.thread(entries.SESSION_THREAD).stopped:
                    conversation.screen.say(STOPPED)
                # A crash may have left a message unanswered.
                self._answer("", lambda talk: talk.go_on())
                if conversation.models is not None and conversation.talk.is_compressing:
                    self._take("/compress")
                self._answer_heard()
            else:
                self._front.complete(conversation.catch_up())
            if options.message is None:
                said = conversation.session.thread(entries.SESSION_THREAD).said
                earlier = [
                    conversation.writer.text_of(each) for each in said if isinstance(each, entries.User) and each.mode
                ]
                conversation.screen.ready()
                if self._read is not None:
                    self._follow(self._read.message)
                else:
                    read = typed_input.lines(earlier, slash_commands.completed, person=self._person)
                    read = self._meanwhile.before(read) if self._meanwhile is not None else read
                    self._follow(typed_input.messages(read))
            elif not self._over:
                self._take(options.message)
        except signals.Interrupted as interrupted:
            conversation.screen.broken()
            if self._person:
                conversation.screen.say("")
            return interrupted.exit
        return 0 if self._person else self._code

    def _told_where(self) -> None:
        """Show a person where the resumed talk stands: its last words, the question and the run that wait."""
        conversation = self._conversation
        screen, session = conversation.screen, conversation.session
        thread = session.thread(entries.SESSION_THREAD)
        for each in [*filter(_is_said, thread.said), *thread.heard.values()][-2:]:
            who, entry = ("model", each.answer) if isinstance(each, Exchange) else ("you", each)
            assert isinstance(entry, entries.Said)
            screen.say(f"{who:<5}  {cut(one_line(conversation.writer.text_of(entry)), SHOWN)}")
        if (question := session.waits_for) is not None:
            screen.say(f"asks   {cut(one_line(question.question), SHOWN)}\nhere  /answer TEXT")
        elif (told := self._front.complete(followed_runs.standing(conversation))) is not None:
            screen.say(told)
        self._propose()

    def _propose(self) -> None:
        """Show what the model proposes. Only what was shown can be agreed to."""
        proposal = self._conversation.proposal
        if proposal is not None and self._conversation.screen.proposed(proposal.command):
            self._proposed = proposal

    def _follow(self, message: Callable[[], str]) -> None:
        """Process messages until ``message`` raises EOFError. Raises ``signals.Interrupted``."""
        screen, ending = self._conversation.screen, False
        while not self._over or self._person:
            try:
                with self._front.reading():
                    line = message()
            except EOFError:
                if self._person:
                    screen.say("")
                return
            except UsageError as error:
                self._failed(error)
                self._done(endings.of_word("", None, error, None), keep=False)
                continue
            except signals.Interrupted as interrupted:
                if not self._person or ending or interrupted.exit != 130:
                    raise
                ending = True
                screen.say("\n--  Ctrl-C again, Ctrl-D or /quit ends the session")
                continue
            ending = False
            try:
                if not self._take(line):
                    return
            except signals.Stopped:
                self._code = 1
                screen.broken()
                screen.say(STOPPED)
            except signals.Interrupted as interrupted:
                screen.broken()
                if not self._person or interrupted.exit != 130:
                    raise
                screen.say("--  interrupted; the session continues")

    def _take(self, line: str) -> bool:
        more = True
        try:
            shown, self._proposed = self._proposed, None
            typed, agreed = line.strip(), ""
            if shown is not None and typed.casefold() in YES and shown == self._conversation.proposal:
                line, agreed = (
                    shown.command,
                    f"{state_lists.ASIDE}(typed: {typed}; proposed by the model: {shown.reason})",
                )
            word = slash_commands.parse(line)
            if isinstance(word, tuple):
                self._code = 0
                more = self._slashes.take(*word, typed=line.strip() + agreed)
                if (ran := self._slashes.ran) is not None:
                    self._code = ran.exit
                self._done(endings.of_word(line.strip(), None, None, ran), keep=ran is not None)
                self._told_session()
                if self._slashes.answered:
                    self._answer("", lambda talk: talk.go_on())
                if more:
                    self._answer_heard()
            elif word:
                self._ask_for_reset()
                self._answer(word, lambda talk: talk.say(word))
                self._answer_heard()
        except RunOpsError as error:
            self._failed(error)
            self._done(endings.of_word(line.strip(), None, error, None), keep=False)
        unwritten = self._conversation.screen.unwritten
        if unwritten is not None and not self._over:
            self._failed(
                SetupError(
                    "output-not-written",
                    f"the answer could not be written: {unwritten.strerror}",
                    fix=f"make room; `runops show {self._conversation.id}` has it",
                )
            )
        # If nobody reads the answers, nothing more is sent or paid.
        return more and not self._conversation.screen.unheard

    def _ask_for_reset(self) -> None:
        """In mode agent, ask for the reset before the first message is sent, as a build does."""
        conversation = self._conversation
        if (build := conversation.build) is not None:
            read = typed_input.prompted if self._person and typed_input.can_ask() else None
            self._front.run(reset_question.settle(conversation, build, conversation.screen, read))

    def _answer(self, said: str, answering: Callable[[reply.Talk], Coroutine[Any, Any, str | None]]) -> None:
        """Show the model's answer, if there is something to answer."""
        conversation, rows = self._conversation, len(self._conversation.session.ledger.rows)
        before = conversation.session.last_seq
        answer: str | None = None
        failed: RunOpsError | None = None
        try:
            answer = self._front.run(answering(conversation.talk))
            if conversation.session.last_seq == before:
                answer = None  # nothing was left to answer
            elif conversation.talk.ended is not None and not (answer or "").strip():
                answer = outcome.in_a_word(_left(conversation.talk.ended))
            if answer is not None:
                self._code = 0
                self._ended(conversation.talk.ended, answer)
                spent = conversation.session.ledger.rows[rows:]
                conversation.screen.meter(ledger.totals(spent) if spent else None, conversation.screen.report)
                self._propose()
        except RunOpsError as error:
            failed = error
            self._failed(error)
        finally:
            if said or answer is not None or failed is not None:
                self._done(endings.of_word(said, answer, failed, None))

    def _answer_heard(self) -> None:
        """Have messages answered that came while something else worked."""
        thread = self._conversation.session.thread
        while thread(entries.SESSION_THREAD).heard and self._code in (0, None):
            self._answer("", lambda talk: talk.go_on())

    def _done(self, word: endings.WordReport, *, keep: bool = True) -> None:
        """Report that a message is done; ``keep`` it for the ending of the chat. A secret that was typed is in neither."""
        mask = self._conversation.writer.masker.text
        answer = mask(word.answer) if word.answer is not None else None
        word = word.model_copy(update={"said": mask(word.said), "answer": answer})
        if keep:
            self._conversation.words.append(word)
        self._conversation.screen.word(word)

    def _told_session(self) -> None:
        conversation = self._conversation
        about = conversation.about
        conversation.screen.opened(
            chat_events.SessionEvent(
                session=conversation.id,
                mode=conversation.session.mode,
                about=endings.AboutReport(run=about.run, file=str(about.file) if about.file is not None else None),
                title=conversation.subject.title,
            )
        )

    def _ended(self, ended: turn.Done | None, answer: str) -> None:
        """Show the answer, and with the call that ended a build what is proved and saved."""
        screen, conversation = self._conversation.screen, self._conversation
        screen.answered(answer)
        if ended is None:
            return
        left = _left(ended)
        as_ended = loop.Ended(bool(left.get("done", True)), left, answer)
        found = outcome.of_build(
            conversation.id, conversation.session, as_ended, None, 0, conversation.again, conversation.state.goal
        )
        screen.say(found.text)

    def _failed(self, error: RunOpsError) -> None:
        self._code, self._over = error.exit, error.exit in FINAL
        self._conversation.screen.broken()
        if error.code == items.STOPPED:
            self._conversation.screen.say(STOPPED)
            return
        if isinstance(error, Paused):
            console.say(outcome.broken_off(f"runops build --resume {self._conversation.id}", error))
            return
        # The next command names the larger budget, so the fix would repeat it.
        shown = error.replaced(fix=None) if isinstance(error, BudgetReached) else error
        console.say(console.failure(shown, self._next(error)))

    def _next(self, error: RunOpsError) -> str | None:
        again = self._conversation.again
        if isinstance(error, BudgetReached):
            return foreground.with_larger_budget(again, error)
        said = self._conversation.session.thread(entries.SESSION_THREAD).said
        if not (isinstance(error, ModelError) and said and isinstance(said[-1], entries.ModelError)):
            return None
        if error.code not in ("window-too-large", "window-unsummed"):
            return "continue" if self._person else f"{again} -m continue"
        # With one of these limits the message is sent, which it was not.
        for name, most in error.evidence.get("enough", {}).items():
            changed = f"/window {name} {most}" if self._person else f"{again} --{name.replace('_', '-')} {most}"
            return f"{changed}, then continue" if self._person else f"{changed} -m continue"
        return None
