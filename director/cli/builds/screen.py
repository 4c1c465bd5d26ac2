"""Screen of a build: the plan as a to-do list, each tool in a line with its result, the steps of its runs, the cost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TextIO

from typing_extensions import override

from director.cli import progress, screen
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events
from runtime.context import window
from runtime.display import costs, plain, plans
from runtime.display.stream import Talk
from runtime.display.text import cut, harmless, one_line
from runtime.log import session as log_session

INDENT = "    "

TOLD = 160
"""Columns of a tool's result."""


TELLING = ("reason", "question", "goal", "summary", "url", "id", "nodes", "text", "query", "name", "task_id", "path")
"""Arguments that describe a call, the most descriptive first."""


class _Below(Talk):
    """Lines below the line of a tool."""

    def __init__(self, talk: Talk) -> None:
        super().__init__(talk.stream)
        self._talk = talk

    @override
    def line(self, text: str = "") -> None:
        self._talk.line(f"{INDENT}{text}")


class BuildScreen(screen.Screen):
    """Shows a build on stderr; stdout is for its result."""

    more_room = "more room: RUNOPS_WINDOW_COMPRESS_AT=N; a later warning: RUNOPS_WINDOW_WARN_AT=N"

    def __init__(self, stream: TextIO, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """``stream`` is stderr; ``clock`` returns seconds."""
        talk = Talk(stream)
        super().__init__(as_it_comes=False, quiet=quiet, talk=talk, answers=talk)
        self._session: Callable[[], log_session.Session] | None = None
        self._plan: Callable[[], Json] | None = None
        self._shown: list[str] = []
        self._steps: plain.Plain | None = None
        self._turn = 0
        self._clock = clock
        self._model: tuple[str, float] | None = None
        """The pending request of a model, and its start."""
        self._tool: tuple[str, float] | None = None
        self.waits = progress.Waits(talk, self._under_way, clock)

    def follow(self, session: Callable[[], log_session.Session], plan: Callable[[], Json]) -> None:
        """Show this session: its costs, and its current plan."""
        self._session, self._plan = session, plan

    @override
    def asked(self, model: str, report: window.Report) -> None:
        super().asked(model, report)
        self._turn += 1
        spent = self._session().ledger.totals() if self._session is not None else None
        parts = [f"turn {self._turn}", f"window {screen.filled(report)}"]
        parts += [f"so far {costs.told(spent)}"] if spent is not None and spent["requests"] else []
        self.say(f"--  {'  '.join(parts)}", screen.DIM)

    @override
    def text(self, part: str) -> None:
        pass

    @override
    def waiting(self, what: str) -> None:
        super().waiting(what)
        since = self._model[1] if self._model is not None else self._clock()
        self._model = (f"waiting: {what}", since)
        if not self.quiet:
            self.waits.begins()

    @override
    def failed(self, error: RunOpsError) -> None:
        self._model = self._tool = None
        super().failed(error)

    @override
    def called(self, path: str, name: str, arguments: str) -> None:
        super().called(path, name, arguments)
        self._model, self._tool = None, (name, self._clock())
        told = "  ".join(filter(None, (name, about(arguments))))
        self.say(f">   {cut(one_line(told), screen.WIDE)}", screen.DIM)

    @override
    def done(self, path: str, told: str, *, failed: bool) -> None:
        self._asked.pop(path, None)
        self._model = self._tool = None
        depth = "  " * path.count("/")
        shown = told if failed else came(told)
        self.say(f"{'error' if failed else 'ok'}  {depth}{cut(one_line(shown), TOLD)}", screen.RED if failed else None)

    @override
    def ran(self, event: events.Event) -> None:
        if self.quiet:
            return
        self.waits.gives_way()
        if isinstance(event, events.RunStarted):
            self._steps = plain.Plain(_Below(self.talk), self._clock)
        if self._steps is not None:
            self._steps(event)

    @override
    def changed(self, of: str, name: str) -> None:
        if of != "plan" or self._plan is None:
            super().changed(of, name)
            return
        lines = [cut(line, screen.WIDE) for line in plans.as_todo(self._plan())]
        for line in lines if not self._shown else [each for each in lines if each not in self._shown]:
            self.say(f"{INDENT}{line}")
        self._shown = lines

    def asks(self, text: str) -> None:
        """Show that a person is asked, even if nothing else is shown."""
        self._model = self._tool = None
        self.waits.gives_way()
        self.talk.line(harmless(text))

    @override
    def say(self, text: str, colour: int | None = None) -> None:
        self.waits.gives_way()
        super().say(text, colour)

    @override
    def broken(self) -> None:
        self._model = self._tool = None
        self.waits.ends()
        super().broken()

    @override
    def answered(self, text: str) -> None:
        self.waits.ends()
        if text.strip():
            self.say(text)

    def _under_way(self) -> tuple[str, float] | None:
        """Return what a person waits for; None if the person is waited for."""
        if self._model is not None or self._tool is None or self._steps is None:
            return self._model or self._tool
        step = self._steps.progress.current
        if step is self._steps.progress.root:
            return self._tool
        waits_for = step.waiting and f"waiting: {step.waiting}"
        return "  ".join(filter(None, (step.path, step.summary, waits_for))), step.since


def about(arguments: str) -> str:
    """Describe a call: the model's reason, else the most descriptive argument."""
    try:
        read: Json = json.loads(arguments) if arguments else {}
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        return one_line(arguments)
    given: dict[str, Json] = read
    telling = (given.get(name) for name in TELLING)
    rest = (f"{name}: {each}" for name, each in given.items() if isinstance(each, str | int | float))
    return next((one_line(each) for each in telling if isinstance(each, str) and each.strip()), next(rest, ""))


def came(told: str) -> str:
    """Return the first line of a result, with the next one if the first only announces it."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
