"""Output of a workflow's functions, kept off stdout, which is for the command's result."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Generator
from typing import Any, TextIO, cast

from typing_extensions import override

from runtime.display.stream import Talk


@contextlib.contextmanager
def on_stderr() -> Generator[None]:
    """Redirect prints of other threads to stderr while a function is called, secrets masked."""
    stdout = sys.stdout
    sys.stdout = cast("TextIO", _ByThread(stdout))
    try:
        yield
    finally:
        sys.stdout = stdout


class _ByThread:
    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout
        self._masked = _Masked()

    def __getattr__(self, name: str) -> Any:
        # Most commands call no function, and need not load the module.
        pythons = sys.modules.get("runtime.services.functions")
        own = threading.current_thread() is threading.main_thread() or pythons is None or not pythons.is_calling()
        return getattr(self._stdout if own else self._masked, name)


class _Masked(io.TextIOBase):
    @override
    def write(self, text: str) -> int:
        from runtime.services import functions  # most commands call no function

        Talk(sys.stderr).write(functions.masked(text))
        return len(text)
