"""The live tree on a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from runtime import events
from runtime.display import escapes, picture
from runtime.display.display import Display
from runtime.display.progress import Progress
from runtime.display.stream import Talk, coloured
from runtime.display.text import one_line

STYLES: dict[picture.Tone, str] = {
    "head": "bold",
    "running": "cyan",
    "waiting": "yellow",
    "good": "green",
    "bad": "red",
    "odd": "yellow",
    "quiet": "bright_black",
}


class _Console(Console):
    """Console that neither hides the cursor nor ends the process: after a kill the terminal stays usable."""

    def show_cursor(self, show: bool = True) -> bool:
        return False

    def on_broken_pipe(self) -> None:
        self.quiet = True


class _Drawing:
    """Stream for the console, with the part of `IO[str]` that it uses. Sends cursor movements unchanged."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.write = talk.draw
        self.flush = talk.flush
        self.isatty = talk.isatty
        self.fileno = talk.fileno

    @property
    def encoding(self) -> str:
        return self._talk.encoding


class Tree(Display):
    interval = 0.25

    def __init__(self, talk: Talk, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.talk = talk
        self.progress = Progress(clock)
        self.colours = coloured(talk)
        self.console = _Console(
            file=_Drawing(talk),  # type: ignore[arg-type]
            force_terminal=True,
            highlight=False,
            markup=False,
            emoji=False,
        )
        self._live = Live(
            console=self.console,
            get_renderable=self._draw,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    def __call__(self, event: events.Event) -> None:
        """Record the event; the timer draws, so many quick steps cost little."""
        self.progress(event)
        if isinstance(event, events.Said):
            self.console.print(Text(one_line(event.text)), soft_wrap=False)

    def begin(self) -> None:
        """Draw at once, so that the start of a browser is visible."""
        self._live.start(refresh=True)

    def tick(self) -> None:
        self._live.refresh()

    def end(self) -> None:
        if not self._live.is_started:
            return
        self._live.stop()
        lines = picture.final(self.progress, self.size()[0])
        if lines:
            self.console.print(self._text(lines))

    def size(self) -> tuple[int, int]:
        """Return the columns and rows to draw on. Three columns stay free for the ``^C`` that a terminal echoes."""
        try:
            columns, rows = os.get_terminal_size(self.talk.fileno())
        except OSError:
            columns, rows = 0, 0
        return max((columns or 80) - 3, 10), max((rows or 24) - 1, 2)

    def _draw(self) -> RenderableType:
        width, height = self.size()
        return self._text(picture.live(self.progress, width, height))

    def _text(self, lines: list[picture.Line]) -> Text:
        out = Text(no_wrap=True, overflow="crop")
        for number, line in enumerate(lines):
            out.append(escapes.line(line.text), style=STYLES[line.tone] if self.colours else "")
            out.append("\n" if number < len(lines) - 1 else "")
        return out
