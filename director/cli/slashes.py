"""What the words with a slash do."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from director import opening, saving, variables
from director.cli import beginning, interrupts, words
from nodes import registry
from nodes.errors import UsageError
from runtime import events, log, preparing, running, runs, settings
from runtime.cli import execution, given
from runtime.display import base, costs, plain, plans, windows
from runtime.display.stream import Talk
from runtime.language import workflow

if TYPE_CHECKING:
    from director.cli import conversation

Begin = Callable[[events.Listener], Coroutine[Any, Any, events.RunEnded]]

MODES: tuple[log.Mode, ...] = get_args(log.Mode)


class Slashes:
    """Each of them is a method, by its name."""

    def __init__(self, held: conversation.Conversation, signalled: interrupts.Interrupts) -> None:
        """``held`` is what is talked in."""
        self._held, self._signalled = held, signalled
        self._known: dict[str, Callable[[words.Slash], None]] = {
            "mode": self._mode,
            "run": self._run,
            "resume": self._resume,
            "save": self._save,
            "fork": self._fork,
            "cost": self._cost,
            "window": self._window,
            "plan": self._plan,
            "vars": self._variables,
            "help": lambda word: self._show(word, words.listed()),
        }

    def take(self, word: words.Slash) -> bool:
        """Do what it says; False where it ends the session. Raises RunOpsError."""
        if word.name == "quit":
            words.at_most(word, 0)
            return False
        self._known[word.name](word)
        return True

    def _show(self, word: words.Slash, lines: list[str]) -> None:
        words.at_most(word, 0)
        self._held.screen.result(lines)

    # What is kept.

    def _mode(self, word: words.Slash) -> None:
        words.at_most(word, 1)
        talk = self._held.talk
        if not word.rest:
            self._held.screen.result([talk.mode])
            return
        wanted: log.Mode | None = next((each for each in MODES if each == word.rest[0]), None)
        if wanted is None:
            near = registry.near(word.rest[0], MODES)
            raise UsageError(
                "usage",
                f"there is no mode `{word.rest[0]}`",
                mend=f"did you mean `/mode {near}`?" if near else f"type: {words.shape('mode')}",
            )
        talk.mode = wanted
        self._held.screen.say(f"--  mode {wanted}")

    def _window(self, word: words.Slash) -> None:
        if not word.rest:
            self._show(word, windows.lines(self._held.talk.window()))
            return
        words.at_most(word, 2)
        if len(word.rest) == 1:
            raise UsageError("usage", f"what is `{word.rest[0]}` to be?", mend=f"type: {words.shape('window')}")
        name, value = word.rest[0].replace("-", "_"), word.rest[1]
        held = self._held
        beginning.set_limit(held.desk, held.pen, held.chosen, name, value, f"/window {name} {value}")
        held.screen.say(f"--  {name} {getattr(held.limits(), name)}")

    def _plan(self, word: words.Slash) -> None:
        plan = self._held.desk.value("plan")
        self._show(word, (plans.as_todo(plan) if plan is not None else []) or ["(no plan)"])

    def _variables(self, word: words.Slash) -> None:
        values = self._held.desk.variables.all()
        self._show(word, list(variables.told(values)) or ["(no variables)"])

    def _cost(self, word: words.Slash) -> None:
        spent = self._held.session.ledger
        total = spent.totals()
        if total is None:
            self._show(word, ["nothing was asked yet"])
            return
        by = spent.totals_by_step()
        parts = [(path or "session", costs.told(each)) for path, each in by.items()]
        rows = [("all", costs.told(total)), *(parts if len(parts) > 1 else ())]
        wide = max(len(name) for name, _told in rows)
        self._show(word, [f"{name:<{wide}}  {told}" for name, told in rows])

    # Files and forks.

    def _save(self, word: words.Slash) -> None:
        words.at_most(word, 1)
        held = self._held
        path = Path(word.rest[0] if word.rest else f"session-{held.id}.md")
        text = saving.markdown(held.session, held.pen, held.id)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(
                "file-not-written",
                f"{path} could not be written: {error.strerror}",
                mend="name another file: /save FILE.md",
            ) from None
        held.screen.say(f"--  saved in {path}")

    def _fork(self, word: words.Slash) -> None:
        words.at_most(word, 0)
        held = self._held
        parent = held.id
        pen = opening.fork(held.kept, parent, held.pen.masker)
        self._signalled.run(held.move(pen))
        held.screen.say(f"--  session {held.id}, forked from {parent}")

    # Runs.

    def _run(self, word: words.Slash) -> None:
        named, pairs = words.file_and_inputs(word)
        held = self._held
        path = Path(named) if named is not None else held.about.workflow_file(held.chosen)
        if path is None:
            raise UsageError("usage", "this session is about no workflow", mend=f"name one: {words.shape('run')}")
        values = given.inputs(pairs)
        loaded = workflow.load(path)
        values.refuse_unknown([loaded])
        prepared = preparing.prepare(loaded, values.of(loaded))
        own = settings.load()
        self._follow(
            lambda listener: running.begin(prepared, own, listener, parent=held.id),
            f"/run {path}",
        )

    def _resume(self, word: words.Slash) -> None:
        words.at_most(word, 1)
        held = self._held
        run = runs.find(held.chosen, word.rest[0]) if word.rest else held.about.run
        if run is None:
            raise UsageError("usage", "this session is about no run", mend=f"name one: {words.shape('resume')}")
        own = settings.load()
        self._follow(lambda listener: running.resume_run(run, own, listener), f"/resume {run}")

    def _follow(self, begin: Begin, what: str) -> None:
        """Follow a run to its end, and tell the model of it."""
        followed = Followed(self._held.screen.talk, quiet=self._held.screen.quiet)
        interrupted: BaseException | None = None
        try:
            self._signalled.run(followed.run(begin))
        except BaseException as error:
            if followed.id is None:
                raise
            interrupted = error
        ended = followed.ended
        assert followed.id is not None
        status = ended.status if ended is not None else "interrupted"
        self._held.happened(told(what, followed.id, status, ended), followed.id)
        if interrupted is not None:
            raise interrupted
        if ended is not None:
            for line in execution.closing(ended).split("\n"):
                self._held.screen.say(line)


class Followed:
    """A run that goes on in a session, told by plain lines."""

    def __init__(self, talk: Talk, *, quiet: bool) -> None:
        """``talk`` is where the lines go."""
        self._display: base.Display = base.Quiet() if quiet else plain.Plain(talk)
        self.id: str | None = None
        """Known once the run's log is open."""
        self.ended: events.RunEnded | None = None

    async def run(self, begin: Begin) -> None:
        """Carry it out. Raises RunOpsError for what could not start."""
        with self._display:
            self.ended = await begin(self._listen)
            # One that was over before tells its end, and not its beginning.
            self.id = self.ended.run

    def _listen(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self.id = event.run
        elif isinstance(event, events.RunEnded):
            self.ended = event
        self._display(event)


def told(what: str, run: str, status: str, ended: events.RunEnded | None) -> str:
    """How a run ended, as the model is told it. What an error says may be a page's words: the model finds it where these are marked as data."""
    error = (ended.question or ended.error or {}) if ended is not None else {}
    code = error.get("code") or error.get("reason")
    where = f" at {ended.path}" if ended is not None and ended.path else ""
    return f"{what}: run {run} {status}{where}{f' ({code})' if code else ''}"
