"""A form of 50 steps and 50 clicks, ready to keep the last pages if a step fails, and not; both in a run with and without secrets.

Each variant has a browser of its own, both warm.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runtime.browser import open as open_browser
from runtime.engine import tracing
from runtime.language import reader
from runtime.log.store import file_store
from runtime.settings import settings
from tests import site
from tests.benchmarks import engine_form, forms, pairs
from tests.shop_process import Shop

CLICKS = 50

PAGE = """<!doctype html><title>Clicks</title><h1>0</h1><button>Count</button>
<script>document.querySelector('button').onclick = () => document.querySelector('h1').textContent++</script>"""


def clicks() -> dict[str, Any]:
    """The workflow of the clicks, as the data of a file."""
    target = {"role": "button", "name": "Count"}
    steps = [
        {"id": f"s{number}", "type": "browser_action", "action": "click", "target": target} for number in range(CLICKS)
    ]
    load = {"id": "open", "type": "browser_action", "action": "goto", "url": "{{ inputs.base_url }}/clicks"}
    counted = {"id": "counted", "type": "browser_query", "query": "text", "target": {"role": "heading"}}
    return {
        "version": 1,
        "name": "Click 50 times",
        "inputs": {"base_url": {"type": "string"}, "n": {"type": "string"}},
        "nodes": [load, *steps, counted],
    }


SECRETS = {"": {}, "_secrets": {"TOKEN": "no page shows this"}}


async def measure(folder: Path, count: int, warm: int) -> dict[str, pairs.Comparison]:
    """Compare the two variants on the form and on the clicks, each without secrets and with one."""
    found: dict[str, pairs.Comparison] = {}
    with Shop.start(folder) as shop, site.serve() as clicked:
        clicked.page("/clicks", PAGE)
        for having, secrets in SECRETS.items():
            form, click = folder / f"form{having}", folder / f"clicks{having}"
            found[f"form{having}"] = await _compare(form, forms.workflow(), shop.url, secrets, count, warm)
            found[f"clicks{having}"] = await _compare(click, clicks(), clicked.origin, secrets, count, warm)
        engine_form.check(shop, 4 * count)
    return found


async def _compare(
    folder: Path, workflow: dict[str, Any], origin: str, secrets: Mapping[str, str], count: int, warm: int
) -> pairs.Comparison:
    chosen = settings.load(home=folder / "home", linger=0.0)
    store = file_store.FileStore(chosen.home)
    loaded, inputs = reader.parse(json.dumps(workflow), "bench.yaml"), {"base_url": origin, "n": "1"}
    async with contextlib.AsyncExitStack() as opened:
        browsers = {}
        for mode in ("on-failure", "off"):
            (folder / mode).mkdir(parents=True)
            browsers[mode] = await open_browser.open_browser(
                None, origins=[origin], private=folder / mode, settings=chosen
            )
            opened.push_async_callback(browsers[mode].close)

        async def ready() -> None:
            await engine_form.fill(
                store, loaded, inputs, browsers["on-failure"], tracing.Tracing("on-failure"), secrets
            )

        async def without() -> None:
            await engine_form.fill(store, loaded, inputs, browsers["off"], secrets=secrets)

        return await pairs.compare(ready, without, pairs=count, warm=warm)
