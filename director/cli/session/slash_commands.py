"""Implements the slash commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from director.cli import session_options
from director.cli.session import followed_runs, parsing
from director.session import markdown as session_markdown
from director.session import open as open_session
from director.session import variables
from nodes import errors
from nodes.errors import UsageError
from runtime import events
from runtime.cli import foreground
from runtime.cli import values as given_values
from runtime.context import report_text
from runtime.display import costs, plans
from runtime.language import prepare, reader
from runtime.log import entries, ledger
from runtime.report import markdown, of_session
from runtime.settings import settings
from runtime.workspace import host, run_index

if TYPE_CHECKING:
    from director.cli.session import conversation

MODES: tuple[entries.Mode, ...] = get_args(entries.Mode)


class SlashCommands:
    """Each command is a method of the same name."""

    def __init__(self, held: conversation.Conversation, front: foreground.Foreground) -> None:
        self._held, self._front = held, front
        self._known: dict[str, Callable[[parsing.SlashLine], None]] = {
            "mode": self._mode,
            "run": self._run,
            "resume": self._resume,
            "save": self._save,
            "fork": self._fork,
            "cost": self._cost,
            "window": self._window,
            "plan": self._plan,
            "vars": self._variables,
            "help": lambda word: self._show(word, parsing.listed()),
        }
        self.ran: events.RunEnded | None = None
        """The end of the run that the last command began or resumed."""

    def take(self, word: parsing.SlashLine) -> bool:
        """Execute a command; return False if it ends the session. Raises RunOpsError."""
        self.ran = None
        if word.name == "quit":
            parsing.at_most(word, 0)
            return False
        self._known[word.name](word)
        return True

    def _show(self, word: parsing.SlashLine, lines: list[str]) -> None:
        parsing.at_most(word, 0)
        self._held.screen.result(lines)

    # State.

    def _mode(self, word: parsing.SlashLine) -> None:
        parsing.at_most(word, 1)
        talk = self._held.talk
        if not word.rest:
            self._held.screen.result([talk.mode])
            return
        wanted: entries.Mode | None = next((each for each in MODES if each == word.rest[0]), None)
        if wanted is None:
            near = errors.near(word.rest[0], MODES)
            raise UsageError(
                "usage",
                f"there is no mode `{word.rest[0]}`",
                fix=f"did you mean `/mode {near}`?" if near else f"type: {parsing.shape('mode')}",
            )
        talk.mode = wanted
        self._held.screen.say(f"--  mode {wanted}")

    def _window(self, word: parsing.SlashLine) -> None:
        if not word.rest:
            self._show(word, report_text.lines(self._held.talk.window()))
            return
        parsing.at_most(word, 2)
        if len(word.rest) == 1:
            raise UsageError("usage", f"what is `{word.rest[0]}` to be?", fix=f"type: {parsing.shape('window')}")
        name, value = word.rest[0].replace("-", "_"), word.rest[1]
        held = self._held
        session_options.set_limit(held.state, held.writer, held.here.settings, name, value, f"/window {name} {value}")
        held.screen.say(f"--  {name} {getattr(held.limits(), name)}")

    def _plan(self, word: parsing.SlashLine) -> None:
        plan = self._held.state.value("plan")
        self._show(word, (plans.as_todo(plan) if plan is not None else []) or ["(no plan)"])

    def _variables(self, word: parsing.SlashLine) -> None:
        values = self._held.state.variables.all()
        self._show(word, list(variables.told(values)) or ["(no variables)"])

    def _cost(self, word: parsing.SlashLine) -> None:
        spent = self._held.session.ledger
        parts = {
            **{path or "session": each for path, each in spent.totals_by_step().items()},
            **{f"run {run}": each for run, each in spent.totals_by_run().items()},
        }
        if not parts:
            self._show(word, ["nothing was asked yet"])
            return
        every = {"all": ledger.together(list(parts.values())), **(parts if len(parts) > 1 else {})}
        rows = [(name, costs.told(each)) for name, each in every.items()]
        wide = max(len(name) for name, _told in rows)
        self._show(word, [f"{name:<{wide}}  {told}" for name, told in rows])

    # Files and forks.

    def _save(self, word: parsing.SlashLine) -> None:
        parsing.at_most(word, 1)
        held = self._held
        path = Path(word.rest[0] if word.rest else f"session-{held.id}.md")
        self._front.complete(held.writer.barrier())
        report = of_session.session_report(held.session, held.here.kept.read(held.id), held.writer, brief=True)
        session_markdown.save(path, markdown.of_session(report))
        held.screen.say(f"--  saved in {path}")

    def _fork(self, word: parsing.SlashLine) -> None:
        parsing.at_most(word, 0)
        held = self._held
        parent = held.id
        writer = self._front.complete(open_session.fork(held.here.store, parent, held.writer.masker))
        self._front.run(held.move(writer))
        held.screen.say(f"--  session {held.id}, forked from {parent}")

    # Runs.

    def _run(self, word: parsing.SlashLine) -> None:
        named, pairs = parsing.file_and_inputs(word)
        held = self._held
        path = Path(named) if named is not None else held.about.workflow_file(held.here.kept)
        if path is None:
            raise UsageError("usage", "this session is about no workflow", fix=f"name one: {parsing.shape('run')}")
        values = given_values.inputs(pairs)
        loaded = reader.load(path)
        values.refuse_unknown([loaded])
        own = held.here.having(settings.load())
        prepared = prepare.prepare(loaded, values.of(loaded), own.secrets)
        self._follow(
            followed_runs.FollowedRun(held, f"/run {path}"),
            own,
            lambda carrier, listener, options: carrier.begin(prepared, options=options, listener=listener),
        )

    def _resume(self, word: parsing.SlashLine) -> None:
        parsing.at_most(word, 1)
        held = self._held
        run = run_index.find(held.here.kept, word.rest[0]) if word.rest else held.about.run
        if run is None:
            raise UsageError("usage", "this session is about no run", fix=f"name one: {parsing.shape('resume')}")
        own = held.here.having(settings.load())
        self._follow(
            followed_runs.FollowedRun(held, f"/resume {run}", followed_runs.spent_by(held, run)),
            own,
            lambda carrier, listener, options: carrier.resume(run, options=options, listener=listener),
        )

    def _follow(self, one: followed_runs.FollowedRun, own: host.Host, begin: followed_runs.Begin) -> None:
        self.ran = one.to_its_end(begin, self._front, own)
