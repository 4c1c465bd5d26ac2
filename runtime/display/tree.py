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
    """A console that neither hides the cursor nor ends the process: whoever kills a run keeps a usable terminal."""

    def show_cursor(self, show: bool = True) -> bool:
        """Leave the cursor as it is."""
        return False

    def on_broken_pipe(self) -> None:
        """Stop drawing; the run goes on."""
        self.quiet = True


class _Drawing:
    """The stream as the console sees it, which asks for `IO[str]` and uses these: what the console sends moves the cursor, so it is sent as it is."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.write = talk.draw
        self.flush = talk.flush
        self.isatty = talk.isatty
        self.fileno = talk.fileno

    @property
    def encoding(self) -> str:
        """The stream's encoding."""
        return self._talk.encoding


class Tree(Display):
    """Redraws the tree four times a second, in place; what stays at the end is its outermost level."""

    interval = 0.25

    def __init__(self, talk: Talk, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` tells seconds; only differences count."""
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
        """Fold the event in; drawing is for the clock, so that a thousand quick steps cost a thousand foldings."""
        self.progress(event)
        if isinstance(event, events.Said):
            self.console.print(Text(one_line(event.text)), soft_wrap=False)

    def begin(self) -> None:
        """Draw at once: a run that starts a browser already shows that it starts."""
        self._live.start(refresh=True)

    def tick(self) -> None:
        """Draw again."""
        self._live.refresh()

    def end(self) -> None:
        """Take the tree away and leave its outermost level."""
        if not self._live.is_started:
            return
        self._live.stop()
        lines = picture.final(self.progress, self.size()[0])
        if lines:
            self.console.print(self._text(lines))

    def size(self) -> tuple[int, int]:
        """Columns and rows that may be drawn on. Three columns stay free for the ``^C`` that a terminal echoes, which must not break a line."""
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
