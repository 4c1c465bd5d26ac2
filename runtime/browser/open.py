"""Opens the browser of a run, or reattaches to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from nodes.errors import UsageError
from runtime.browser import own, remote, shared
from runtime.browser.chromium import find
from runtime.browser.engines import worker
from runtime.browser.options import BrowserOptions, Engine, Mode
from runtime.browser.session import Session


class BrowserSettings(Protocol):
    @property
    def browser(self) -> Path | None: ...

    @property
    def browser_mode(self) -> Mode | None: ...

    @property
    def browser_engine(self) -> Engine | None: ...

    @property
    def browser_url(self) -> str | None: ...

    @property
    def headed(self) -> bool: ...

    @property
    def keep_browser(self) -> bool: ...

    @property
    def linger(self) -> float:
        """Seconds for which a browser waits for its next engine."""
        ...


async def open_browser(
    options: BrowserOptions | None,
    *,
    origins: Sequence[str],
    private: Path,
    settings: BrowserSettings,
    usual: Mode = "own",
    secrets: bool = True,
) -> Session:
    """Open a fresh browser for a run.

    Documents may load only from ``origins``. ``private`` is the run's private folder; ``usual`` is the mode when none is set;
    ``secrets``: a page may show a secret of the run. Raises SetupError if no browser is found or none can be started.
    """
    wanted, mode = _mode(options, settings, usual)
    if wanted.engine != "chromium":
        named = settings.browser
        return await worker.open_shared(named, wanted, origins=origins, headed=settings.headed, pictures=not secrets)
    if settings.browser_url is not None:
        return await remote.open_remote(settings.browser_url, wanted, allowed=origins)
    executable = find.find(settings.browser)
    if mode == "shared":
        return await shared.open_shared(executable, wanted, origins=origins, headed=settings.headed)
    return await own.open_own(
        executable, wanted, origins=origins, private=private, linger=settings.linger, headed=settings.headed
    )


async def reattach(
    options: BrowserOptions | None,
    *,
    origins: Sequence[str],
    private: Path,
    settings: BrowserSettings,
    usual: Mode = "own",
) -> Session | None:
    """Reattach to the run's own browser with its pages as they were; None if it is gone."""
    wanted, mode = _mode(options, settings, usual)
    if mode == "shared":
        return None
    return await own.reattach(wanted, origins=origins, private=private, linger=settings.linger)


def _mode(options: BrowserOptions | None, settings: BrowserSettings, usual: Mode) -> tuple[BrowserOptions, Mode]:
    """Return the options and the mode: that of the settings, else the workflow's, else *own* to keep the browser, else ``usual``."""
    wanted = options or BrowserOptions()
    if settings.browser_engine is not None:
        wanted = wanted.model_copy(update={"engine": settings.browser_engine})
    if wanted.engine != "chromium":
        _demand_usable(wanted, settings)
        return wanted.resolved(), "shared"
    wanted = wanted.resolved()
    if settings.browser_url is not None:
        _demand_shared(wanted, settings)
        return wanted, "shared"
    mode = settings.browser_mode or wanted.mode or ("own" if settings.keep_browser else usual)
    return wanted, mode


def _demand_usable(wanted: BrowserOptions, settings: BrowserSettings) -> None:
    """Refuse what only Chromium has. Raises UsageError ``engine-lacks``."""
    asked = (
        ("`--browser-url`", None) if settings.browser_url is not None else None,
        ("mode `own`", None) if settings.browser_mode == "own" else None,
        ("`--keep-browser`", None) if settings.keep_browser else None,
        wanted.only_in_chromium(),
    )
    lacking = next((each for each in asked if each is not None), None)
    if lacking is not None:
        what, fix = lacking
        raise UsageError(
            "engine-lacks",
            f"{wanted.engine} has no {what}: only Chromium has it",
            fix=f"{fix or 'leave one of the two out'}, or take the engine `chromium`",
        )


def _demand_shared(wanted: BrowserOptions, settings: BrowserSettings) -> None:
    """Refuse what only a browser of our own can do. Raises UsageError ``browser-url-lacks``."""
    lacking = "the mode `own`" if settings.browser_mode == "own" else "`switches`" if wanted.switches else None
    if lacking is not None:
        raise UsageError(
            "browser-url-lacks",
            f"the browser of `--browser-url` was started by somebody else, so it cannot have {lacking}",
            fix="leave one of the two out",
        )
