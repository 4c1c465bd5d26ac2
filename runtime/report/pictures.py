"""Reads the pictures that reports of runs name."""

from __future__ import annotations

import contextlib

from nodes.errors import RunOpsError
from runtime.log.store.store import StoreReader
from runtime.report import said
from runtime.report.models import RunReport


def of_run(report: RunReport, store: StoreReader) -> dict[str, bytes]:
    """Return by SHA-256 the pictures of pages that evidence has, and those that models were shown; not those that cannot be read."""
    found: dict[str, bytes] = {}
    for each in report.evidence:
        for shot in (each.screenshot, *(frame.screenshot for frame in each.frames or ())):
            if shot is not None:
                with contextlib.suppress(RunOpsError, OSError):
                    found[shot.sha256] = store.get_file(report.run, shot.name)
    threads = (attempt.thread for step in report.steps for attempt in step.attempts)
    for line in (line for thread in threads for line in thread):
        if isinstance(line, said.ToolResultLine) and line.picture is not None:
            with contextlib.suppress(RunOpsError, OSError):
                found[line.picture.blob.sha256] = store.blob(line.picture.blob.sha256)
    return found
