"""The live tree on a terminal: never wider or higher than it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from runtime import events
from runtime.display.display import Display
from runtime.display.progress import Progress, Step, turn_text
from runtime.display.stream import Talk, coloured
from runtime.display.text import count, cut, duration, fit, one_line, value_text

MARKS: dict[events.StepStatus, tuple[str, str, str]] = {
    "ok": ("ok", "green", ""),
    "error": ("!!", "red", "failed"),
    "paused": ("??", "yellow", "paused"),
    "out-of-budget": ("$$", "yellow", "out of budget"),
    "replaced": ("->", "yellow", "continues elsewhere"),
    "tolerated": ("!?", "yellow", "failed, tolerated"),
    "skipped": ("--", "bright_black", "skipped"),
    "recorded": ("==", "bright_black", "done before"),
    "recovered": ("ok", "green", "done before, says the site"),
}
"""Mark, style and remark of a finished step."""

MOST_LEFT = 30  # maximum lines that stay on the screen after the run


def live(progress: Progress, width: int, height: int) -> list[Text]:
    """Draw the running steps, and the finished ones below them in the rows that are left, the innermost first."""
    now = progress.clock()
    body = _foot(progress, width)
    room = height - len(progress.open) - len(body)
    for depth, step in reversed([*enumerate(progress.open)]):
        finished = _finished(step, depth, room, width)
        room -= len(finished)
        running = [_running(step, depth - 1, width, now)] if depth else []
        body = [*running, *finished, *body]
    clock = f"{one_line(progress.run)}  {duration(now - progress.since)}".strip()
    head = Text(fit(one_line(progress.workflow), clock, width), "bold")
    return [head, *body[max(0, len(body) - (height - 1)) :]]


def final(progress: Progress, width: int) -> list[Text]:
    """Draw what stays on the screen after the run: the newest outermost steps, and the interrupted ones."""
    now = progress.clock()
    left = [_running(step, depth, width, now, over=True) for depth, step in enumerate(progress.open[1:])]
    return [*_finished(progress.root, 0, MOST_LEFT - len(left), width), *left][-MOST_LEFT:]


def _finished(step: Step, depth: int, room: int, width: int) -> list[Text]:
    """Draw the finished steps below ``step`` in at most ``room`` lines: the newest by name, the others as a count."""
    done = [child for child in step.children if child.status is not None]
    # A loop's position, ``37/200``, already counts its earlier iterations.
    hidden = Counter(step.forgotten) if step.turn is None else Counter[events.StepStatus]()
    if room <= 0 or not (done or hidden):
        return []
    named = room if len(done) <= room and not hidden else room - 1
    older = max(0, len(done) - named)
    for child in done[:older]:
        hidden.update(child.tally())
    counted = [Text(cut(f"{'  ' * depth}..  {_counts(hidden)}", width), "bright_black")] if hidden else []
    return counted + [_ended(child, depth, width) for child in done[older:]]


def _ended(step: Step, depth: int, width: int) -> Text:
    assert step.status is not None
    mark, style, remark = MARKS[step.status]
    parts = [f"{'  ' * depth}{mark}  {step.label}"]
    if step.container:
        tally = step.tally()
        parts += [_counts(tally) if tally else "", remark]
    else:
        parts += [step.summary, remark, value_text(step.error.get("message", "")) if step.error else ""]
    return Text(fit(_join(parts), "" if style == "bright_black" else duration(step.seconds), width), style)


def _running(step: Step, depth: int, width: int, now: float, *, over: bool = False) -> Text:
    parts = [f"{'  ' * depth}{'..' if over else '>>'}  {step.label}"]
    if step.turn is not None:
        parts.append(turn_text(step.turn))
        parts.append(f"#{value_text(step.turn.key)}" if step.turn.key is not None else "")
    elif not step.container:
        parts.append(step.summary)
    parts.append(f"attempt {step.attempt}" if step.attempt > 1 else "")
    if step.container:
        parts += [f"{number} {status}" for status, number in step.tally().items() if status in ("error", "tolerated")]
    parts.append("not finished" if over else "")
    return Text(fit(_join(parts), duration(now - step.since), width), "yellow" if over else "cyan")


def _foot(progress: Progress, width: int) -> list[Text]:
    step = progress.current
    text = f"waiting: {one_line(step.waiting)}" if step.waiting else ""
    if step is progress.root and not progress.ended and not step.children:
        text = "starting"
    return [Text(cut(f"{'  ' * len(progress.open)}{text}", width), "yellow")] if text else []


def _join(parts: list[str]) -> str:
    return "  ".join([parts[0], *(one_line(part) for part in parts[1:] if part)])


def _counts(counter: Counter[events.StepStatus]) -> str:
    others = [f"{number} {status}" for status, number in sorted(counter.items()) if status != "ok" and number]
    return ", ".join([count(counter.total(), "step"), *others])


class _Console(Console):
    """Console that never hides the cursor: after a kill the terminal stays usable."""

    def show_cursor(self, show: bool = True) -> bool:
        return False


class _Stream:
    """Stream for the console, with the part of `IO[str]` that it uses. Sends cursor movements unchanged."""

    def __init__(self, talk: Talk) -> None:
        self.write, self.flush, self.isatty, self.fileno = talk.draw, talk.flush, talk.isatty, talk.fileno
        self.encoding = talk.encoding


class Drawing:
    """Lines at the end of a terminal that are drawn again and again, and disappear at the end."""

    def __init__(self, talk: Talk, lines: Callable[[int, int], list[Text]]) -> None:
        """``lines`` returns what to draw on so many columns and rows."""
        self._talk = talk
        self.console = _Console(
            file=_Stream(talk),  # type: ignore[arg-type]
            force_terminal=True,
            color_system="auto" if coloured(talk) else None,
            highlight=False,
            markup=False,
            emoji=False,
        )
        self._lines = lines
        self._live = self._new()

    def _new(self) -> Live:
        return Live(
            console=self.console,
            get_renderable=lambda: _joined(self._lines(*self.size())),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    @property
    def shown(self) -> bool:
        return self._live.is_started

    def start(self) -> None:
        # One that was stopped would move the cursor up, over what was printed since.
        self._live = self._new()
        self._live.start(refresh=True)

    def refresh(self) -> None:
        self._live.refresh()

    def stop(self) -> None:
        self._live.stop()

    def size(self) -> tuple[int, int]:
        """Return the columns and rows to draw on. Three columns stay free for the ``^C`` that a terminal echoes."""
        try:
            columns, rows = os.get_terminal_size(self._talk.fileno())
        except OSError:
            columns, rows = 0, 0
        return max((columns or 80) - 3, 10), max((rows or 24) - 1, 2)


class Tree(Display):
    interval = 0.25

    def __init__(self, talk: Talk, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.progress = Progress(clock)
        self._drawing = Drawing(talk, lambda width, height: live(self.progress, width, height))

    def __call__(self, event: events.Event) -> None:
        """Record the event; the timer draws, so many quick steps cost little."""
        self.progress(event)
        if isinstance(event, events.Said):
            self._drawing.console.print(Text(one_line(event.text)), soft_wrap=False)

    def begin(self) -> None:
        """Draw at once, so that the start of a browser is visible."""
        self._drawing.start()

    def tick(self) -> None:
        self._drawing.refresh()

    def end(self) -> None:
        if not self._drawing.shown:
            return
        self._drawing.stop()
        if lines := final(self.progress, self._drawing.size()[0]):
            self._drawing.console.print(_joined(lines))


def _joined(lines: list[Text]) -> Text:
    return Text("\n", no_wrap=True, overflow="crop").join(lines)
