"""Screen of a working session: the answer as it is streamed, each tool in a line, the cost."""

from __future__ import annotations

import sys

from typing_extensions import override

from director.session.events import Listener
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.context import window
from runtime.display import costs, escapes
from runtime.display.stream import Talk, coloured
from runtime.display.text import cut, harmless, one_line

DIM, RED, YELLOW = 2, 31, 33

MORE_ROOM = "more room: `--compress-at N`, or `/window compress_at N`; a later warning: `warn_at`"
"""Hint for a window that is nearly full."""

WIDE = 100
"""Columns of a line about a tool."""


class Screen(Listener):
    """Shows a session on two streams: answers on one, everything else on the other.

    A terminal shows answers as they are streamed; for a program each is written once it is complete.
    """

    more_room = MORE_ROOM

    def __init__(
        self, *, as_it_comes: bool, quiet: bool, talk: Talk | None = None, answers: Talk | None = None
    ) -> None:
        """``talk`` is stderr, ``answers`` stdout."""
        self.talk = talk if talk is not None else Talk(sys.stderr)
        self._answers = answers if answers is not None else Talk(sys.stdout)
        self._as_it_comes = as_it_comes
        self.quiet = quiet
        self._begun = ""
        """The shown part of an incomplete answer."""
        self._asked: dict[str, str] = {}
        """The request of each call, by its path."""
        self.report: window.Report | None = None
        """Window of the last request."""
        self.warnings: list[str] = []
        """Warnings for the person, also if nothing is shown."""

    @override
    def asked(self, model: str, report: window.Report) -> None:
        self._line_ends()
        self.report = report

    @override
    def fills(self, report: window.Report, overflow: window.Overflow) -> None:
        if self.report is not None and self.report.warns:
            # The first request about another run continues from one that was already reported.
            return
        self._line_ends()
        told = warning(report, overflow)
        self.warnings.append(told)
        self.say(f"--  {told}\n    {self.more_room}", YELLOW)

    @override
    def text(self, part: str) -> None:
        if self._as_it_comes and part:
            shown = harmless(part)
            self._begun = shown
            self._answers.write(shown)
            self._answers.flush()

    @override
    def waiting(self, what: str) -> None:
        # The streamed answer itself shows that it is awaited.
        if "try" in what or " s before " in what:
            self._line_ends()
            self.say(f"..  {one_line(what)}")

    @override
    def called(self, path: str, name: str, arguments: str) -> None:
        self._line_ends()
        self._asked[path] = name if arguments in ("", "{}") else f"{name} {arguments}"

    @override
    def done(self, path: str, told: str, *, failed: bool) -> None:
        word, why = ("error", told) if failed else ("ok", "")
        # Before a delegate's calls comes the call of the delegate.
        depth = "  " * path.count("/")
        line = cut("  ".join(filter(None, map(one_line, (self._asked.pop(path, path), why)))), WIDE)
        self.say(f"{word}  {depth}{line}", RED if failed else DIM)

    @override
    def failed(self, error: RunOpsError) -> None:
        self._line_ends()

    @override
    def changed(self, of: str, name: str) -> None:
        self.say(f"--  {one_line(f'{of} {name}'.strip())} changed", DIM)

    def answered(self, text: str) -> None:
        """The answer is complete."""
        if self._as_it_comes and self._begun:
            self._line_ends()
        else:
            self._answers.line(harmless(text))

    def broken(self) -> None:
        """The answer was interrupted."""
        self._line_ends()

    def result(self, lines: list[str]) -> None:
        """Show lines that a person has requested."""
        for each in lines:
            self._answers.line(harmless(each))

    @property
    def unheard(self) -> bool:
        """True if nobody reads the answers any more."""
        return self._answers.broken and self._answers.stream is sys.stdout

    @property
    def unwritten(self) -> OSError | None:
        """The error that lost an answer: the disk of stdout is full."""
        return self._answers.full if self.unheard else None

    def say(self, text: str, colour: int | None = None) -> None:
        """Show a message that is no answer."""
        if not self.quiet:
            self.talk.line(self._painted(text, colour) if colour is not None else text)

    def meter(self, spent: dict[str, Json] | None, report: window.Report | None) -> None:
        """Show the cost of the last message, and the fill of the window."""
        parts = [costs.told(spent)] if spent is not None else []
        if report is not None:
            parts.append(f"window {filled(report)}")
        if parts:
            self.say(f"--  {'  '.join(parts)}", DIM)

    def _line_ends(self) -> None:
        if self._begun and not self._begun.endswith("\n"):
            self._answers.line()
        self._begun = ""

    def _painted(self, text: str, code: int) -> str:
        return escapes.styled(text, code) if coloured(self.talk) else text


def filled(report: window.Report) -> str:
    """Return the fill of a window: ``1,204 of 180,000 tokens (1 %)``."""
    return _of(report.tokens, report.limit)


def warning(report: window.Report, overflow: window.Overflow) -> str:
    """Return the warning of a nearly full window, and its consequence. Parts already omitted count, too: the whole conversation has outgrown it."""
    then = "is summed up" if overflow == "summarize" else "is left out"
    return f"the window is nearly full: {_of(report.wanted, report.limit)}; where there are more, the oldest {then}"


def _of(tokens: int, limit: int) -> str:
    share = 100 * tokens / limit if limit else 0
    return f"{tokens:,} of {limit:,} tokens ({share:.0f} %)"
