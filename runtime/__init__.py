"""RunOps' runtime: the engine, its log, its browser and its command.

A program with an event loop imports ``Runtime`` (``from runtime import Runtime``), a script ``run_workflow``. Each is loaded on first
use, so that a command that needs none stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.engine.engine import ExecutionEngine
    from runtime.runs.runtime import Runtime
    from runtime.runs.start import run_workflow
    from runtime.settings.settings import Settings

__all__ = ["ExecutionEngine", "Runtime", "Settings", "run_workflow"]

_HOMES = {
    "ExecutionEngine": "runtime.engine.engine",
    "Runtime": "runtime.runs.runtime",
    "Settings": "runtime.settings.settings",
    "run_workflow": "runtime.runs.start",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
