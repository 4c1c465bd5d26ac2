"""Parses and executes the slash commands of a chat."""

from __future__ import annotations

import dataclasses
import difflib
import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import get_args

from director.builds import subject as build_subject
from director.cli import input as typed_input
from director.cli import session_options
from director.cli.builds import options as build_options
from director.cli.foreground import Conversation
from director.cli.session import followed_runs
from director.session import open as open_session
from director.session import person as persons
from director.session import plan as session_plans
from director.session import state_lists, variables
from nodes import errors
from nodes.errors import UsageError
from runtime import events
from runtime.cli import foreground
from runtime.cli import values as given_values
from runtime.context import briefs, report_text
from runtime.display import plans
from runtime.display.text import count, one_line
from runtime.language import prepare, reader
from runtime.log import entries, ledger
from runtime.models import budgets
from runtime.report import markdown, of_session
from runtime.runs import answers, start
from runtime.runs.runtime import Run, Runtime
from runtime.secrets import published
from runtime.settings import settings
from runtime.system import regular_files
from runtime.workspace import run_index

MODES: tuple[entries.Mode, ...] = get_args(entries.Mode)
VERDICTS: tuple[run_index.Verdict, ...] = get_args(run_index.Verdict)

Words = tuple[str, ...]  # the arguments of a command, split as in a shell

GROUPS = {
    "Talk": {
        "/mode [chat|agent|run]": "tell the mode, or change it",
        "/stop": "while something works: end it after the call in hand",
        "/compress [WHAT]": "sum up what was said until now; WHAT is to be kept",
        "/window [NAME VALUE]": "what the model would be sent now; or change how that is chosen",
        "/cost": "what was spent",
    },
    "Runs": {
        "/run [FILE] [NAME=VALUE]": "run the workflow; variables of the session are inputs, too",
        "/answer TEXT": "answer the question that waits, and continue; of several: NAME=VALUE",
        "/decide done|not-done|skip": "say whether the action of the paused run happened, and continue",
        "/resume [RUN]": "continue with the run that this is about, or with another one",
    },
    "Work": {
        "/goal [TEXT] [--url URL] [-i NAME=VALUE] [--secret NAME] [--save FILE]": "tell what is built, or change it",
        "/plan [done|todo|drop TASK]": "the plan, as a list of tasks; or change it. `/plan add TEXT` adds a task",
        "/vars": "the variables",
    },
    "Session": {
        "/save [FILE.md]": "write the conversation as Markdown",
        "/fork": "continue in a fork; this session stays as it is",
        "/help": "this list",
        "/quit": "end; `runops chat --resume` continues. `exit` and `quit` do the same",
    },
}
HELP = {shape: told for group in GROUPS.values() for shape, told in group.items()}
SHAPES = {shape.partition(" ")[0].removeprefix("/"): shape for shape in HELP}  # the syntax of each command, by its name

MOST = {"mode": 1, "compress": 1, "answer": 1, "decide": 1, "resume": 1, "save": 1, "window": 2}
"""Limits of the number of arguments; other commands take none, and those of ``CHECKED`` check their own."""

CHECKED = ("run", "goal", "plan")
WHOLE = ("compress", "answer")
"""Commands whose argument is one text, as it was typed."""

_PAIR = re.compile(r"[A-Za-z_]\w*=")
"""The beginning of ``NAME=VALUE``."""

_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
"""Characters that no text may contain: undecodable bytes come as lone surrogates, and file names contain no NUL."""


def parse(line: str) -> str | tuple[str, Words]:
    """Return a message for the model, or a command and its arguments. ``//…`` is a message with one slash. Invalid characters become ``�``.

    ``exit`` or ``quit`` alone is ``/quit``.

    Raises UsageError ``unknown-word`` with the closest command, ``usage`` for an unclosed quotation mark.
    """
    text = _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", line.strip())
    if text in typed_input.ENDS:
        return "quit", ()
    if not text.startswith("/"):
        return text
    if text.startswith("//"):
        return text[1:]
    name, _, rest = text[1:].partition(" ")
    if name not in SHAPES:
        near = difflib.get_close_matches(name, SHAPES, 1)
        fix = (
            f"did you mean `/{near[0]}`?"
            if near
            else "`/help` lists them; what begins with `//` is said with one slash"
        )
        raise UsageError("unknown-word", f"there is no word `/{name}`", fix=fix)
    if name in WHOLE:
        return name, tuple(filter(None, (rest.strip(),)))
    try:
        return name, tuple(shlex.split(rest))
    except ValueError:
        raise UsageError(
            "usage", f"a quotation mark of `/{name}` has no end", fix="close it, or put a `\\` before it"
        ) from None


def refuse_more(name: str, words: Words, count: int) -> None:
    """Raise UsageError ``usage`` if the command has too many arguments."""
    if len(words) > count:
        raise _wrong(name, f"`/{name}` does not take {' '.join(words[count:])!r}")


def file_and_inputs(words: Words) -> tuple[str | None, list[str]]:
    """Return the file of ``/run`` and its inputs (``NAME=VALUE``, also behind ``-i``). Raises UsageError ``usage``."""
    named: list[str] = []
    inputs: list[str] = []
    rest = iter(words)
    for each in rest:
        if each in ("-i", "--input"):
            value = next(rest, None)
            if value is None:
                raise _wrong("run", f"after `{each}` an input is missing")
            inputs.append(value)
        elif _PAIR.match(each):
            inputs.append(each)
        else:
            named.append(each)
    refuse_more("run", tuple(named), 1)
    return (named[0] if named else None), inputs


def _told(words: Words, named: str | None) -> Iterator[str]:
    """Yield the arguments of ``/run`` as typed, for a model: only a file outside of the folder is told by its name."""
    for each in words:
        path, here = Path(each), Path.cwd()
        if each != named or not path.is_absolute():
            yield each
        else:
            yield str(path.relative_to(here) if path.is_relative_to(here) else path.name)


def completed(typed: str) -> list[str]:
    return [f"/{each}" for each in SHAPES if f"/{each}".startswith(typed)] if typed.startswith("/") else []


def listed() -> list[str]:
    wide = max(map(len, HELP))
    lines: list[str] = []
    for name, group in GROUPS.items():
        lines += [name, *(f"  {shape:<{wide}}  {told}" for shape, told in group.items())]
    return lines


def _wrong(name: str, what: str) -> UsageError:
    return UsageError("usage", what, fix=f"type: {SHAPES[name]}")


def _from_variables(names: Collection[str]) -> str:
    return (
        f"{state_lists.ASIDE}({', '.join(names)}: the session's {'variables' if len(names) > 1 else 'variable'})"
        if names
        else ""
    )


def given_answers(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return the answers of ``/answer`` by question: each ``NAME=VALUE``, or the text as the answer of the only question."""
    try:
        pairs = [each.partition("=") for each in shlex.split(text)]
    except ValueError:
        pairs = []
    if pairs and all(sign and name in names for name, sign, _ in pairs):
        return {name: value for name, _, value in pairs}
    if len(names) != 1:
        raise UsageError(
            "bad-answer",
            f"{text[:80]!r} does not say which question it answers",
            fix=f"type: /answer {' '.join(f'{each}=…' for each in names)}",
        )
    return {names[0]: text}


def goal_order(words: Words) -> build_options.BuildOrder:
    """Return what the arguments of ``/goal`` say. Raises UsageError ``usage``."""
    text: list[str] = []
    given: dict[str, list[str]] = {}
    rest = iter(words)
    for each in rest:
        name = {"--url": "url", "--save": "save", "-i": "inputs", "--input": "inputs", "--secret": "secrets"}.get(each)
        if name is None:
            text.append(each)
        elif (value := next(rest, None)) is not None:
            given.setdefault(name, []).append(value)
        else:
            raise _wrong("goal", f"after `{each}` a value is missing")
    return build_options.BuildOrder(
        goal=" ".join(text) or None,
        url=given.get("url", [None])[-1],
        save=Path(given["save"][-1]) if "save" in given else None,
        inputs=tuple(given.get("inputs", ())),
        secrets=tuple(given.get("secrets", ())),
    )


def write(path: Path, text: str) -> None:
    """Write a saved session atomically. Raises UsageError ``file-not-written``, also if another kind of file is there."""
    head = markdown.HEAD.encode()
    problem: str | None = None
    try:
        if path.exists() and not (path.is_file() and regular_files.read(path, len(head)) == head):
            problem = "is there already, and is no saved session"
        else:
            published.write(path, text.encode())
    except OSError as error:
        problem = f"could not be written: {error.strerror}"
    if problem is not None:
        raise UsageError("file-not-written", f"{path} {problem}", fix="name another file: /save FILE.md")


class SlashCommands:
    def __init__(self, conversation: Conversation, front: foreground.Foreground) -> None:
        self._conversation, self._front = conversation, front
        self.ran: events.RunEnded | None = None  # the end of the run that the last command began or resumed
        self.answered = False  # true if the last command answered the session's own question: the model continues
        self._known: dict[str, Callable[[Words], list[str] | None]] = {
            "mode": self._mode,
            "goal": self._goal,
            "run": self._run,
            "answer": self._answer,
            "decide": self._decide,
            "resume": self._resume,
            "save": self._save,
            "fork": self._fork,
            "cost": self._cost,
            "window": self._window,
            "compress": self.compress,
            "plan": self._plan,
            "vars": lambda _: list(variables.render(conversation.state.variables.all())) or ["(no variables)"],
            "stop": lambda _: ["(nothing is at work)"],
            "help": lambda _: listed(),
        }

    def take(self, name: str, words: Words, *, typed: str) -> bool:
        """Execute a command, ``typed`` by the person; return False if it ends the session. Raises RunOpsError."""
        self._typed = typed
        self.ran = None
        self.answered = False
        if name not in CHECKED:
            refuse_more(name, words, MOST.get(name, 0))
        if name == "quit":
            return False
        self._conversation.screen.result(self._known[name](words) or [])
        return True

    # State.

    def _mode(self, words: Words) -> list[str] | None:
        talk = self._conversation.talk
        if not words:
            return [talk.mode]
        mode: entries.Mode | None = next((each for each in MODES if each == words[0]), None)
        if mode is None:
            wrong = _wrong("mode", f"there is no mode `{words[0]}`")
            near = errors.near(words[0], MODES)
            raise wrong.replaced(fix=f"did you mean `/mode {near}`?") if near else wrong
        talk.mode = mode
        # From the first moment in mode agent on, the tools of a build are offered.
        self._front.complete(self._conversation.renew())
        self._conversation.screen.say(f"--  mode {mode}")
        return None

    def _goal(self, words: Words) -> list[str] | None:
        conversation = self._conversation
        own = conversation.state
        if not words:
            declared = own.draft.loaded.workflow.inputs if own.draft is not None else ()
            return build_subject.goal_text(own.goal, own.masker.names, declared).splitlines()
        order = goal_order(words)
        goal, secrets = build_options.spoken(order, conversation.here, conversation.writer.masker, own.goal)
        conversation.writer.masker = conversation.writer.masker.knowing(secrets)
        build_options.keep_changes(own, order, goal, reason=self._typed)
        self._front.complete(conversation.happened(self._typed, self._typed))
        self._front.complete(conversation.renew())
        conversation.screen.say(f"--  goal: {one_line(own.goal.goal) or '(your next message)'}")
        return None

    def _plan(self, words: Words) -> list[str]:
        own = self._conversation.state
        if words:
            what, task = words[0], " ".join(words[1:])
            if what not in ("done", "todo", "add", "drop") or not task.strip():
                raise _wrong("plan", f"`/plan {' '.join(words)}` says no change of the plan")
            plan, told = session_plans.by_person(own.plan, what, task)
            reason = f"/plan {what} {task}"
            version = own.set_plan(plan, reason=reason, by="person")
            self._front.complete(
                self._conversation.happened(
                    f"{reason}: the person changed the plan (version {version.number}): {one_line(told)}", self._typed
                )
            )
        return plans.as_todo(own.value("plan") or {}) or ["(no plan)"]

    def _window(self, words: Words) -> list[str] | None:
        conversation = self._conversation
        if not words:
            return report_text.lines(conversation.talk.window())
        if len(words) == 1:
            raise _wrong("window", f"what is `{words[0]}` to be?")
        name, value = words[0].replace("-", "_"), words[1]
        session_options.set_limit(
            conversation.state, conversation.here.settings, name, value, f"/window {name} {value}"
        )
        conversation.screen.say(f"--  {name} {getattr(conversation.limits(), name)}")
        return None

    def compress(self, words: Words) -> list[str]:
        """Sum up what was said; also complete what a crash interrupted."""
        conversation = self._conversation
        talk, rows = conversation.talk, len(conversation.session.ledger.rows)
        keep = words[0] if words else ""
        done = self._front.run(talk.compress(keep))
        spent = conversation.session.ledger.rows[rows:]
        conversation.screen.meter(ledger.totals(spent) if spent else None, None)
        if not done.replaced.messages:
            return ["nothing to sum up: nothing, or next to nothing, was said since the last summary"]
        messages = count(done.replaced.messages, "message")
        told = f"summed up: {messages}, {done.replaced.tokens:,} tokens, in {done.summary.tokens:,} tokens"
        return [
            told,
            *([done.cut] if done.cut else []),
            f"window {done.report.tokens:,} of {done.report.limit:,} tokens",
        ]

    def _cost(self, _words: Words) -> list[str]:
        return [*state_lists.cost(self._conversation.state)]

    # Files and forks.

    def _save(self, words: Words) -> None:
        conversation = self._conversation
        path = Path(words[0] if words else f"session-{conversation.id}.md")
        self._front.complete(conversation.writer.barrier())
        report = of_session.session_report(
            conversation.session, conversation.here.reader.read(conversation.id), conversation.writer, brief=True
        )
        write(path, markdown.of_session(report))
        conversation.screen.say(f"--  saved in {path}")

    def _fork(self, _words: Words) -> None:
        conversation = self._conversation
        parent = conversation.id
        writer = self._front.complete(open_session.fork(conversation.here.store, parent, conversation.writer.masker))
        self._front.run(conversation.move(writer))
        conversation.screen.say(f"--  session {conversation.id}, forked from {parent}")

    # Runs.

    def _run(self, words: Words) -> None:
        named, pairs = file_and_inputs(words)
        conversation = self._conversation
        path = Path(named) if named is not None else conversation.workflow_to_run()
        if path is None:
            raise UsageError("usage", "this session is about no workflow", fix=f"name one: {SHAPES['run']}")
        values = given_values.inputs(pairs)
        loaded = reader.load(path)
        values.refuse_unknown([loaded])
        variables = conversation.state.variables.all()
        inputs = loaded.workflow.inputs
        kept = {name: each for name, each in variables.items() if name in inputs and name not in values.values}
        if kept or values.values:
            given = [f"{name} = {briefs.shown(each)}" for name, each in values.values.items()]
            given += [f"{name} = {briefs.shown(each)} (variable of the session)" for name, each in kept.items()]
            conversation.screen.say(f"--  inputs: {', '.join(given)}")
        values = dataclasses.replace(values, values={**kept, **values.values})
        own = conversation.here.having(settings.load())
        prepared = prepare.prepare(loaded, values.of(loaded), own.secrets)
        self.ran = followed_runs.to_its_end(
            conversation,
            self._front,
            own,
            " ".join(["/run", *map(shlex.quote, _told(words, named))]) + _from_variables(kept),
            lambda carrier, listener, options: carrier.begin(prepared, options=options, listener=listener),
        )

    def _answer(self, words: Words) -> None:
        conversation = self._conversation
        if not words:
            raise _wrong("answer", "`/answer` has no answer")
        if conversation.session.waits_for is not None:
            self._front.complete(persons.answer(conversation.writer, words[0]))
            self.answered = True
            return
        run = self._of_session("answer")
        past, _reading = run_index.load_history(conversation.here.reader, run)
        questions = answers.asked(past, run)
        answers.masker_of(
            past, conversation.here.secrets
        )  # reads the secrets, so that an error that quotes an answer is masked
        known, missing = answers.read_all(questions, given_answers(words[0], list(questions)))
        if missing:
            raise answers.missing(run, missing, questions)
        self._continue(run, lambda carrier: carrier.write_answers(run, known))

    def _decide(self, words: Words) -> None:
        verdict: run_index.Verdict | None = next((each for each in VERDICTS if words and each == words[0]), None)
        if verdict is None:
            raise _wrong("decide", f"`{' '.join(['/decide', *words])}` does not say whether the action happened")
        run = self._of_session("decide")
        decided = verdict
        self._continue(run, lambda carrier: carrier.write_decision(run, decided))

    def _resume(self, words: Words) -> None:
        run = run_index.find(self._conversation.here.reader, words[0]) if words else self._of_session("resume")
        self._continue(run)

    def _of_session(self, name: str) -> str:
        run = self._conversation.about.run
        if run is None:
            fix = f"name one: {SHAPES['resume']}" if name == "resume" else "resume it first: `/resume RUN`"
            raise UsageError("usage", "this session is about no run", fix=fix)
        return run

    def _continue(self, run: str, first: Callable[[Runtime], Awaitable[object]] | None = None) -> None:
        """Resume a run, after what ``first`` writes into it."""
        conversation = self._conversation
        before = budgets.ran(run_index.load_history(conversation.here.reader, run)[0].ledger, conversation.price)

        async def begin(carrier: Runtime, listener: events.Listener, options: start.Options) -> Run:
            if first is not None:
                await first(carrier)
            return await carrier.resume(run, options=options, listener=listener)

        self.ran = followed_runs.to_its_end(
            conversation, self._front, conversation.here.having(settings.load()), self._typed, begin, before
        )
