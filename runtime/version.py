"""Which RunOps this is."""

from __future__ import annotations

import importlib.metadata
import platform

VERSION = importlib.metadata.version("runops")


def versions() -> dict[str, str]:
    """Versions that decide how a run behaves, for its first entry."""
    return {
        "runops": VERSION,
        "python": platform.python_version(),
        "playwright": importlib.metadata.version("playwright"),
    }
