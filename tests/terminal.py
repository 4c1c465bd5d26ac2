r"""A terminal for tests: a program on a pseudo-terminal, and the screen that a person would see.

with Terminal(["runops", "run", "flow.yaml"], columns=60) as terminal:
    terminal.wait_for(lambda: "3/9" in terminal.text)
    terminal.press("\x03")
    assert terminal.wait() == 130
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil
from rich.cells import cell_len

from tests import warm

DEADLINE = 30.0
"""Timeout of a wait in seconds."""

_CONTROL = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[@-Z\\-_]")
_BEGUN = re.compile(r"\x1b(\[[?0-9;]*)?")
"""The beginning of a control sequence. At Ctrl-C the kernel discards unread output, so that its end may never come."""


class Screen:
    """The display of a terminal of that size. Implements what a line-oriented program needs: colours, lines, erasing."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.lines: list[list[str]] = [[]]
        """From the first line on the screen to the last that was written; a wide character fills two cells, the second empty."""
        self.above: list[str] = []
        """Lines scrolled off the top."""
        self.wrapped: list[str] = []
        """Lines wider than the terminal."""
        self._row = 0
        self._column = 0
        self._left = ""

    def feed(self, text: str) -> None:
        """Process the output of a program."""
        text, self._left = self._left + text, ""
        place = 0
        while place < len(text):
            if text[place] == "\x1b":
                found = _CONTROL.match(text, place)
                if found is None:
                    begun = _BEGUN.match(text, place)
                    assert begun is not None
                    if begun.end() == len(text):
                        self._left = text[place:]
                        return
                    place = begun.end()
                    continue
                self._obey(found[1] or "", found[2] or "")
                place = found.end()
            else:
                self._put(text[place])
                place += 1

    def _put(self, char: str) -> None:
        if char == "\n":
            self._row += 1
        elif char == "\r":
            self._column = 0
        elif char == "\b":
            self._column = max(0, self._column - 1)
        elif char >= " ":
            self._write(char)
        while self._row >= len(self.lines):
            self.lines.append([])
        while len(self.lines) > self.rows:
            self.above.append("".join(self.lines.pop(0)))
            self._row = max(0, self._row - 1)

    def _write(self, char: str) -> None:
        wide = cell_len(char)
        if wide == 0:
            return
        line = self.lines[self._row]
        if self._column + wide > self.columns:
            self.wrapped.append("".join(line))
            self._row, self._column = self._row + 1, 0
            self._put("")
            line = self.lines[self._row]
        line.extend(" " * (self._column + wide - len(line)))
        line[self._column] = char
        for place in range(self._column + 1, self._column + wide):
            line[place] = ""
        self._column += wide

    def _obey(self, arguments: str, command: str) -> None:
        number = int(arguments) if arguments.isdigit() else 0
        if command == "A":
            self._row = max(0, self._row - max(number, 1))
        elif command == "B":
            self._row = min(len(self.lines) - 1, self._row + max(number, 1))
        elif command == "G":
            self._column = max(number, 1) - 1
        elif command == "K":
            line = self.lines[self._row]
            del line[0 if number == 2 else self._column :]
        elif command not in ("m", "h", "l", ""):
            raise NotImplementedError(f"CSI {arguments}{command}")

    @property
    def shown(self) -> list[str]:
        """The lines on the screen, without blanks at their ends."""
        return ["".join(line).rstrip() for line in self.lines]


class Terminal:
    """A program on its own pseudo-terminal."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 80,
        rows: int = 24,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        server: warm.Warm | None = None,
    ) -> None:
        """Start the command; a ``server`` forks for its arguments, and then it is `runops`."""
        self.screen = Screen(columns, rows)
        self._folder = folder
        self.raw = ""
        """All output, controls included."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process: subprocess.Popen[bytes] | warm.Forked
        if server is None:
            self.process = subprocess.Popen(
                list(command),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=folder,
                env=dict(environment) if environment is not None else None,
                start_new_session=True,
                preexec_fn=_own_the_terminal,  # noqa: PLW1509 — a controlling terminal can only be taken from inside, and no thread runs
            )
        else:
            where = folder or Path.cwd()
            streams = (slave, slave, slave)
            self.process = server.start_on(streams, command[1:], where, environment or os.environ, terminal=True)
        os.close(slave)
        self.started: list[psutil.Process] = []
        """Every descendant of the program that was ever seen."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.note_children()
        for process in [*self.started, self.process]:
            try:
                process.kill()
            except (psutil.NoSuchProcess, ProcessLookupError):
                continue
        with self.process:
            os.close(self._master)

    @property
    def text(self) -> str:
        """The text on the screen."""
        return "\n".join(self.screen.shown)

    @property
    def everything(self) -> str:
        """The text on the screen and the lines scrolled off it."""
        return "\n".join([*self.screen.above, *self.screen.shown])

    def press(self, keys: str | bytes) -> None:
        r"""Type; ``\x03`` is Ctrl-C. Bytes are those of a keyboard of another encoding."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def read(self, seconds: float = 0.02) -> bool:
        """Read available output, waiting that long for a first byte; False when the program has closed the terminal."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other end is closed
            data = b""
        text = self._decoder.decode(data)
        self.raw += text
        self.screen.feed(text)
        return bool(data)

    def wait_for(self, condition: Callable[[], bool], deadline: float = DEADLINE) -> None:
        """Read until the condition holds. Raises AssertionError with the screen when the program ends or at the deadline."""
        until = time.monotonic() + deadline
        while not condition():
            if not self.read() and not condition():
                raise AssertionError(f"the program ended first; its screen:\n{self.everything}")
            if time.monotonic() > until:
                raise AssertionError(f"waited {deadline} s; the screen:\n{self.everything}")

    def wait(self, deadline: float = DEADLINE) -> int:
        """Read to the end; the exit code."""
        until = time.monotonic() + deadline
        while self.read():
            # The kernel delivers the last output with a delay, and another process may keep the terminal open for ever.
            if self.process.poll() is not None and not select.select([self._master], [], [], LAST_WORDS)[0]:
                break
            if time.monotonic() > until:
                raise AssertionError(f"still running after {deadline} s; the screen:\n{self.everything}")
        return self.process.wait(max(until - time.monotonic(), 1))

    def note_children(self) -> list[psutil.Process]:
        """The running processes that the program started; they are remembered."""
        below = processes_of(self.process.pid, self._folder)
        self.started += [each for each in below if each not in self.started]
        return below

    def survivors(self, deadline: float = 10.0) -> list[psutil.Process]:
        """The remembered processes that still run at the deadline; empty as soon as none does."""
        return still_running(self.started, deadline)


def still_running(processes: Sequence[psutil.Process], deadline: float = 10.0) -> list[psutil.Process]:
    """Those that still run at the deadline; empty as soon as none does. A zombie does not run."""
    until = time.monotonic() + deadline
    while left := [process for process in processes if _runs(process)]:
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    return left


def processes_of(pid: int, folder: Path | None) -> list[psutil.Process]:
    """The processes that a process has started: its children, and those in its folder with another parent (a browser and its watcher)."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.pid == pid or not _runs(process):
                continue
            if pid in [parent.pid for parent in process.parents()]:
                found.append(process)
            elif folder is not None and any(f"{folder}/" in word for word in process.cmdline()):
                found.append(process)
                parent = process.parent()
                if parent is not None and any(word.endswith("watcher.py") for word in parent.cmdline()):
                    found.append(parent)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return list(dict.fromkeys(found))


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _own_the_terminal() -> None:
    # Tests started in the background ignore Ctrl-C; the program here is in the foreground of its terminal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


LAST_WORDS = 1.0
"""Seconds of silence after which a program that has ended has no more output."""
