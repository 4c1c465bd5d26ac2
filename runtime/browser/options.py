"""How a workflow wants its browser. Imported by whoever reads files, so nothing here needs a browser."""

from __future__ import annotations

from typing import Literal

from nodes.part import Part

Mode = Literal["own", "shared"]


class BrowserOptions(Part):
    """How the browser of a run is made."""

    mode: Mode | None = None
    """``own``: a Chromium of the run's own, which survives the engine. ``shared``: an isolated part of a worker's browser. Default: ``own`` for one run."""
