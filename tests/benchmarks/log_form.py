"""The form of 50 steps with its log in memory, against the same with its log in files: the cost of a durable log."""

from __future__ import annotations

import json
from pathlib import Path

from runtime import testing
from runtime.browser import open as open_browser
from runtime.language import reader
from runtime.log.store import file_store
from runtime.settings import settings
from tests.benchmarks import engine_form, forms, pairs
from tests.shop_process import Shop


async def measure(folder: Path, count: int, warm: int) -> pairs.Comparison:
    """Compare the two stores in one browser; fails where either run leaves a wrong record in the shop."""
    chosen = settings.load(home=folder / "home", linger=0.0)
    on_disk, in_memory = file_store.FileStore(chosen.home), testing.MemoryStore(folder / "memory")
    with Shop.start(folder) as shop:
        inputs = {"base_url": shop.url, "n": "1"}
        loaded = reader.parse(json.dumps(forms.workflow()), "form.yaml")
        (folder / "own").mkdir()
        browser = await open_browser.open_browser(
            loaded.workflow.browser, origins=[shop.url], private=folder / "own", settings=chosen
        )
        try:
            found = await pairs.compare(
                lambda: engine_form.fill(in_memory, loaded, inputs, browser),
                lambda: engine_form.fill(on_disk, loaded, inputs, browser),
                pairs=count,
                warm=warm,
            )
        finally:
            await browser.close()
        engine_form.check(shop, 2 * count)
    assert len(in_memory.reader.ids()) == len(on_disk.reader.ids()) == count + warm
    return found
