"""The way in: a run's browser, opened anew or found again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runtime.browser import find, own
from runtime.browser.options import BrowserOptions
from runtime.browser.session import Session


async def open_browser(
    options: BrowserOptions,
    *,
    origins: Sequence[str],
    private: Path,
    executable: str | Path | None = None,
    headed: bool = False,
) -> Session:
    """A fresh browser for a run.

    ``origins`` are those whose documents may load; ``private`` is the run's private folder. Raises SetupError where no browser is found or
    none can be started.
    """
    return await own.open_own(find.find(executable), private, headed=headed)
