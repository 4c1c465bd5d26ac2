"""RunOps' runtime: the engine, its log, its browser and its command.

``from runtime import ExecutionEngine, run_workflow`` is what a program needs; both are loaded when they are asked for, so that a command
that needs neither stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.engine import ExecutionEngine
    from runtime.running import run_workflow

__all__ = ["ExecutionEngine", "run_workflow"]

_HOMES = {"ExecutionEngine": "runtime.engine", "run_workflow": "runtime.running"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
