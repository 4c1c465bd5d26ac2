"""A form of 50 steps: the engine with its durable log, against a raw Playwright script. Same Chromium, same switches, both warm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright

from nodes.values import Json
from runtime.browser import open as open_browser
from runtime.browser import options, own, port
from runtime.browser.chromium import find, launch
from runtime.engine import tracing
from runtime.language import reader, workflow
from runtime.log import history
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.runs import run
from runtime.secrets import masking
from runtime.settings import settings
from tests.benchmarks import forms, pairs, raw_form
from tests.shop_process import Shop


class Kept:
    """A browser that outlives the run, so that starting and closing one is not measured."""

    def __init__(self, browser: port.Browser) -> None:
        """``browser`` is closed by the caller that opened it."""
        self._browser = browser

    def __getattr__(self, name: str) -> Any:
        return getattr(self._browser, name)

    async def close(self, *, keep: bool = False) -> None:
        """Leave it open."""


class One(run.Browsers):
    """The one browser, for every run."""

    def __init__(self, browser: port.Browser) -> None:
        """``browser`` is already open."""
        self._kept: Any = Kept(browser)

    async def open(self) -> port.Browser:
        return self._kept

    async def reattach(self) -> port.Browser | None:
        return None


async def fill(
    store: log_store.Store,
    loaded: workflow.Loaded,
    inputs: Mapping[str, Json],
    browser: port.Browser,
    traced: tracing.Tracing | None = None,
    secrets: Mapping[str, str] | None = None,
) -> None:
    """Run the workflow once in the browser, its log in ``store``; fails where it does not pass."""
    writer = LogWriter(
        await store.create(log_store.new_id()), history.History(), masking.Masker(secrets or {}), store.reader
    )
    run.write_header(writer, loaded, inputs)
    private = store.reader.private(writer.conversation.id)
    one = run.Run(
        loaded,
        writer,
        inputs=inputs,
        known={},
        private=private,
        browsers=One(browser),
        tracing=traced or tracing.Tracing(),
    )
    ended = await one.begin()
    assert ended.status == "passed", ended


def check(shop: Shop, least: int) -> None:
    """Fail where the shop has fewer records than ``least``, or a wrong one."""
    records = [row["detail"] for row in shop.ledger("form")]
    assert len(records) >= least, len(records)
    assert all(record == forms.record() for record in records), records[0]


async def measure(folder: Path, count: int, warm: int) -> pairs.Comparison:
    """Compare the two variants; fails where either leaves a wrong record in the shop."""
    chosen = settings.load(home=folder / "home", linger=0.0)
    store = file_store.FileStore(chosen.home)
    with Shop.start(folder) as shop:
        inputs = {"base_url": shop.url, "n": "1"}
        loaded = reader.parse(json.dumps(forms.workflow()), "form.yaml")
        (folder / "own").mkdir()
        (folder / "raw").mkdir()
        browser = await open_browser.open_browser(
            loaded.workflow.browser, origins=[shop.url], private=folder / "own", settings=chosen
        )
        raw = await launch.start(
            find.find(chosen.browser),
            folder / "raw",
            linger=0.0,
            headed=False,
            further=own._switches(options.BrowserOptions()),
            environment={},
        )
        async with async_playwright() as playwright:
            connected = await playwright.chromium.connect_over_cdp(raw.alive.address, no_defaults=True, is_local=True)
            page = connected.contexts[0].pages[0]

            async def by_engine() -> None:
                await fill(store, loaded, inputs, browser)

            async def by_hand() -> None:
                await raw_form.fill_form(page, shop.url)

            try:
                found = await pairs.compare(by_engine, by_hand, pairs=count, warm=warm)
            finally:
                await raw.end()
                await browser.close()
        check(shop, 2 * count)
    return found
