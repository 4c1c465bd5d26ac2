"""Screens of a session: answers, a line for each tool, costs; for a build also its plan and the steps of its runs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from typing_extensions import override

from director.session.events import Listener
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import events
from runtime.context import window
from runtime.display import costs, display, escapes, plans, stream
from runtime.display.stream import Talk, coloured
from runtime.display.text import cut, duration, harmless, one_line
from runtime.log import session as log_session
from runtime.report import chat_events, endings

DIM, RED, YELLOW = 2, 31, 33

WIDE = 100  # columns of a line about a tool
RESULT_WIDE = 160  # columns of a tool's result in a build
UNKNOWN = 78  # columns of an overwritten line, if the width of the terminal is unknown

INDENT = "    "
WAITING = "waiting: "

TELLING = ("reason", "question", "goal", "summary", "url", "id", "nodes", "text", "query", "name", "task_id", "path")
"""Arguments that describe a call, the most descriptive first."""


class Screen(Listener):
    """Shows a session on two streams: answers on one, everything else on the other.

    A terminal shows answers as they are streamed; elsewhere each is written once it is complete.
    """

    more_room = "more room: `--compress-at N`, or `/window compress_at N`; a later warning: `warn_at`"
    seldomer = (
        "nothing is lost; by hand: `/compress`; a later checkpoint: `--checkpoint-at N`, or `/window checkpoint_at N`"
    )

    def __init__(
        self, *, as_it_comes: bool, quiet: bool, talk: Talk | None = None, answers: Talk | None = None
    ) -> None:
        """``talk`` is stderr, ``answers`` stdout."""
        self.talk = talk if talk is not None else Talk(sys.stderr)
        self._answers = answers if answers is not None else Talk(sys.stdout)
        self._as_it_comes = as_it_comes
        self.quiet = quiet
        self._steps: display.Plain | None = None  # the steps of a tool's run
        self._clock: Callable[[], float] = time.monotonic
        self._begun = ""  # the shown part of an incomplete answer
        self._asked: dict[str, str] = {}  # the request of each call, by its path
        self.report: window.Report | None = None  # window of the last request
        self.warnings: list[str] = []  # warnings for the person, kept even if not shown

    @override
    def asked(self, model: str, report: window.Report) -> None:
        self.broken()
        self.report = report

    @override
    def fills(self, report: window.Report, overflow: window.Overflow) -> None:
        if self.report is not None and self.report.warns:
            # The window was nearly full at the last request, which was reported.
            return
        then = "is left out" if overflow == "prune" else "is summed up"
        if report.wanted <= report.limit:
            # Parts already left out count: the warning is about the whole conversation.
            told = f"nearly full: {_share(report.wanted, report.limit)}; where there are more, the oldest {then}"
        else:
            told = f"full: {report.wanted:,} tokens were wanted, {_share(report.tokens, report.limit)} are sent"
            told += _lost(report) or "; long outputs of tools are pointers"
        self._warns(f"the window is {told}", self.more_room)

    @override
    def summed(self, rung: window.Reduction, report: window.Report) -> None:
        if rung.outcome == "saved":
            self.say(
                f"--  the oldest was summed up: {rung.saved:,} tokens fewer" + (f"; {rung.why}" if rung.why else ""),
                DIM,
            )
            return
        warning = f"the oldest could not be summed up: {one_line(rung.why)}{_lost(report)}"
        if warning not in self.warnings[-1:]:
            self._warns(warning, self.more_room if report.lost else self.seldomer)

    def _warns(self, warning: str, advice: str) -> None:
        self.broken()
        self.warnings.append(warning)
        self.say(f"--  {warning}\n    {advice}", YELLOW)

    @override
    def text(self, part: str) -> None:
        if self._as_it_comes and part:
            shown = harmless(part)
            self._begun = shown
            self._answers.write(shown)
            self._answers.flush()

    @override
    def waiting(self, what: str) -> None:
        # Only retries and pauses are shown: a streamed answer shows progress by itself.
        if "try" in what or " s before " in what:
            self.broken()
            self.say(f"..  {one_line(what)}")

    @override
    def called(self, path: str, name: str, arguments: str) -> None:
        self.broken()
        self._asked[path] = name if arguments in ("", "{}") else f"{name} {arguments}"

    @override
    def done(self, path: str, text: str, *, failed: bool) -> None:
        # A subagent's calls are indented below the call that sent it.
        asked = f"{_depth(path)}{one_line(self._asked.pop(path, path))}"
        if failed:
            self.say(f"error  {cut(f'{asked}  {one_line(text)}', WIDE)}", RED)
        else:
            self.say(f"ok  {cut(asked, WIDE)}", DIM)

    @override
    def spent(self, path: str, text: str) -> None:
        self.say(f"--  {_depth(path)}{one_line(text)}", DIM)

    @override
    def failed(self, error: RunOpsError) -> None:
        self.broken()

    @override
    def changed(self, of: str, name: str) -> None:
        self.say(f"--  {one_line(f'{of} {name}'.strip())} changed", DIM)

    def opened(self, session: chat_events.SessionEvent) -> None:
        """Tell which session this is; called again after a word that changed it."""

    def ready(self) -> None:
        """Messages are read from now on."""

    def steps(self) -> display.Display:
        """Return what shows a run that the person began."""
        return display.Display() if self.quiet else display.Plain(self.talk)

    def word(self, word: endings.WordReport) -> None:
        """A message of the person is done."""

    def end(self, ending: endings.ChatEnding) -> None:
        """The session has ended."""

    def answered(self, text: str) -> None:
        if self._as_it_comes and self._begun:
            self.broken()
        else:
            self._answers.line(harmless(text))

    def kept(self) -> None:
        """A message that came while something works is in the log."""
        if self._begun and not self._begun.endswith("\n"):
            self._answers.line()
            self._begun = "\n"
        self.say("--  kept: the model has it with its next request", DIM)

    @override
    def replied(self, text: str) -> None:
        self.answered(text)

    def proposed(self, command: str) -> bool:
        """Show a command that the model proposes; False if nobody sees it."""
        self.say(f"here  {harmless(command)}   (proposed: `yes` does it)")
        return not self.quiet

    def broken(self) -> None:
        if self._begun and not self._begun.endswith("\n"):
            self._answers.line()
        self._begun = ""

    def result(self, lines: list[str]) -> None:
        for each in lines:
            self._answers.line(harmless(each))

    def follows(self, session: log_session.Session, plan: Callable[[], Json]) -> None:
        """Show this session from now on; ``plan`` returns its plan."""

    @override
    def ran(self, event: events.Event) -> None:
        if self.quiet:
            return
        if isinstance(event, events.RunStarted):
            self._steps = display.Plain(_Below(self.talk), self._clock)
        if self._steps is not None:
            self._steps(event)

    @override
    def reset(self, text: str) -> None:
        self.broken()
        self.say(text)

    def asks(self, text: str) -> None:
        """Show a question to the person, even with ``quiet``."""
        self.broken()
        self.talk.line(harmless(text))

    @property
    def unheard(self) -> bool:
        """True if the reader of the answers has gone."""
        return self._answers.broken and self._answers.stream is sys.stdout

    @property
    def unwritten(self) -> OSError | None:
        """The error that lost an answer: the disk of stdout is full."""
        return self._answers.full if self.unheard else None

    def say(self, text: str, colour: int | None = None) -> None:
        if not self.quiet:
            self.talk.line(escapes.styled(text, colour) if colour is not None and coloured(self.talk) else text)

    def meter(self, spent: dict[str, Json] | None, report: window.Report | None) -> None:
        parts = [costs.render(spent)] if spent is not None else []
        parts += [f"window {_share(report.tokens, report.limit)}"] if report is not None else []
        if parts:
            self.say(f"--  {'  '.join(parts)}", DIM)


class BuildScreen(Screen):
    """Shows a build on stderr; stdout is for its result.

    During a wait it shows what is awaited and for how long: on a terminal in a line that is erased before other output, elsewhere in a
    line every ten seconds.
    """

    more_room = "more room: RUNOPS_WINDOW_COMPRESS_AT=N; a later warning: RUNOPS_WINDOW_WARN_AT=N"
    seldomer = "nothing is lost; a later checkpoint: RUNOPS_WINDOW_CHECKPOINT_AT=N"

    def __init__(self, stream: TextIO, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        talk = Talk(stream)
        super().__init__(as_it_comes=False, quiet=quiet, talk=talk, answers=talk)
        self._session: log_session.Session | None = None  # the session whose costs are shown
        self._plan: Callable[[], Json] = lambda: None
        self._shown: list[str] = []
        self._turn = 0
        self._clock = clock
        self._pending: tuple[str, float] | None = None  # the tool or the request that is awaited, and its start
        self._before: tuple[str, float] | None = None  # what was awaited before a wait of its own
        self._waited_at = clock()  # time of the last line about a wait
        self._overwrites = False  # True if the last line on the terminal is one about a wait
        self._timer: asyncio.TimerHandle | None = None

    @override
    def follows(self, session: log_session.Session, plan: Callable[[], Json]) -> None:
        self._session, self._plan = session, plan

    @override
    def asked(self, model: str, report: window.Report) -> None:
        super().asked(model, report)
        self._turn += 1
        spent = self._session.ledger.totals() if self._session is not None else None
        parts = [f"turn {self._turn}", f"window {_share(report.tokens, report.limit)}"]
        parts += [f"so far {costs.render(spent)}"] if spent is not None and spent["requests"] else []
        self.say(f"--  {'  '.join(parts)}", DIM)

    @override
    def text(self, part: str) -> None:
        pass

    @override
    def waiting(self, what: str) -> None:
        super().waiting(what)
        since = self._pending[1] if self._pending is not None else self._clock()
        if self._pending is None or not self._pending[0].startswith(WAITING):
            self._before = self._pending
        self._pending = (f"{WAITING}{what}", since)
        if not self.quiet and self._timer is None:
            try:
                self._schedule(asyncio.get_running_loop())
            except RuntimeError:  # no event loop is running, so nothing can tick
                return

    @override
    def reset(self, text: str) -> None:
        self._pending = self._before
        super().reset(text)

    @override
    def failed(self, error: RunOpsError) -> None:
        self._pending = None

    @override
    def called(self, path: str, name: str, arguments: str) -> None:
        self._pending = name, self._clock()
        called = "  ".join(filter(None, (name, _about(arguments))))
        self.say(f">   {cut(one_line(called), WIDE)}", DIM)

    @override
    def done(self, path: str, text: str, *, failed: bool) -> None:
        self._pending = None
        if failed:
            self.say(f"error  {_depth(path)}{cut(one_line(text), RESULT_WIDE)}", RED)
        else:
            lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
            # A first line may only announce the next one.
            shown = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
            self.say(f"ok  {_depth(path)}{cut(one_line(shown), RESULT_WIDE)}")

    @override
    def ran(self, event: events.Event) -> None:
        self._erase()
        super().ran(event)

    @override
    def changed(self, of: str, name: str) -> None:
        if of != "plan":
            super().changed(of, name)
            return
        lines = [cut(line, WIDE) for line in plans.as_todo(self._plan())]
        for line in lines:
            if line not in self._shown:
                self.say(f"{INDENT}{line}")
        self._shown = lines

    @override
    def answered(self, text: str) -> None:
        if text.strip():
            self.say(text)

    @override
    def asks(self, text: str) -> None:
        self._pending = None
        self._erase()
        super().asks(text)

    @override
    def say(self, text: str, colour: int | None = None) -> None:
        self._erase()
        super().say(text, colour)

    def ends(self) -> None:
        self._pending = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._erase()

    def tick(self) -> None:
        found = self._under_way()
        if found is None:
            self._erase()
            return
        text = f"..  {one_line(found[0])}  {duration(self._clock() - found[1])}"
        if stream.kind_for(self.talk) == "tree":
            self._overwrites = True
            self.talk.write(f"{escapes.ERASED}{cut(text, self._columns())}")
            self.talk.flush()
        elif self._clock() - max(self._waited_at, found[1]) >= display.DEADLINE:
            self._waited_at = self._clock()
            self.talk.line(text)

    def _under_way(self) -> tuple[str, float] | None:
        if self._pending is None or self._steps is None or self._pending[0].startswith(WAITING):
            return self._pending
        step = self._steps.progress.current
        if step is self._steps.progress.root:
            return self._pending
        waits_for = step.waiting and f"{WAITING}{step.waiting}"
        return "  ".join(filter(None, (step.path, step.summary, waits_for))), step.since

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        def fire() -> None:
            self.tick()
            self._schedule(loop)

        self._timer = loop.call_later(1.0, fire)

    def _erase(self) -> None:
        if self._overwrites:
            self._overwrites = False
            self.talk.write(escapes.ERASED)

    def _columns(self) -> int:
        try:
            return max(os.get_terminal_size(self.talk.fileno()).columns - 1, 1)
        except (OSError, ValueError):
            return UNKNOWN


class _Below(Talk):
    def __init__(self, talk: Talk) -> None:
        super().__init__(talk.stream)
        self._talk = talk

    @override
    def line(self, text: str = "") -> None:
        self._talk.line(f"{INDENT}{text}")


def _share(tokens: int, limit: int) -> str:
    share = 100 * tokens / limit if limit else 0
    return f"{tokens:,} of {limit:,} tokens ({share:.0f} %)"


def _lost(report: window.Report) -> str:
    """Tell what is in the request in no form, and the limits that suffice."""
    lost = report.lost
    if not lost:
        return ""
    parts = ", ".join(f"{each.what} ({each.tokens:,} tokens)" for each in lost)
    return f"; not in the request: {parts}" + (f"; enough is `{report.flags}`" if report.enough else "")


def _depth(path: str) -> str:
    return "  " * path.count("/")


def _about(arguments: str) -> str:
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
