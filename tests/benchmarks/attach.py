"""A resume against a restart: a run of 50 steps that died after its 45th with its Chromium alive, against the same steps in a fresh browser.

python -m tests.benchmarks.attach FILE HOME URL     run the workflow, and die by SIGKILL at its `hover`
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil

from nodes.pointer import PLAIN, Stroke
from nodes.targets import Target
from runtime.browser.page import tab
from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host
from tests.benchmarks import pairs
from tests.shop_process import Shop

ROOT = Path(__file__).parents[2]
LINGER = 60.0

ORDERS = 5
"""Orders before the last one."""


class Reached(BaseException):
    """The step makes its first call of the browser: nothing after it counts."""


def workflow(orders: int = ORDERS) -> dict[str, Any]:
    """Sign in (4 steps), five ``orders`` in a loop (8 steps each), and one more (6 steps). Its second is the only ``hover``: there it dies."""
    return {
        "version": 1,
        "name": "Buy",
        "inputs": {"base_url": {"type": "string"}, "buyer": {"type": "string"}},
        "secrets": ["SHOP_PASSWORD"],
        "nodes": [
            {
                "id": "sign_in",
                "type": "group",
                "nodes": [
                    _goto("login", "/login"),
                    _fill("user", "Username", "admin"),
                    _fill("pass", "Password", "{{ secrets.SHOP_PASSWORD }}"),
                    {**_click("submit", "Sign in"), "effect": "idempotent", "verify": [{"url": "**/orders"}]},
                ],
            },
            {
                "id": "each",
                "type": "iterate",
                "over": f"{{{{ {[*range(1, orders + 1)]} }}}}",
                "as": "order",
                "nodes": [
                    _goto("articles", "/articles?for={{ inputs.buyer }}-{{ order }}"),
                    _add("tea", "TEA-1", "1"),
                    _add("soap", "SOAP-4", "2"),
                    _goto("cart", "/cart/{{ inputs.buyer }}-{{ order }}"),
                    _fill("name", "Name", "Ada"),
                    _fill("note", "Delivery note", "At the door"),
                    {**_click("pay", "Pay"), "verify": [{"url": "**/receipts/*"}]},
                    {"id": "total", "type": "browser_query", "query": "text", "target": {"test_id": "total"}},
                ],
            },
            _goto("more", "/articles?for={{ inputs.buyer }}-last"),
            {"id": "look", "type": "browser_action", "action": "hover", "target": _row("TEA-1")},
            _add("more_tea", "TEA-1", "1"),
            _goto("last_cart", "/cart/{{ inputs.buyer }}-last"),
            _fill("last_name", "Name", "Ada"),
            {**_click("last_pay", "Pay"), "verify": [{"url": "**/receipts/*"}]},
        ],
    }


def _goto(name: str, path: str) -> dict[str, Any]:
    return {"id": name, "type": "browser_action", "action": "goto", "url": f"{{{{ inputs.base_url }}}}{path}"}


def _fill(name: str, label: str, value: str) -> dict[str, Any]:
    return {"id": name, "type": "browser_action", "action": "fill", "target": {"label": label}, "value": value}


def _click(name: str, button: str) -> dict[str, Any]:
    return {"id": name, "type": "browser_action", "action": "click", "target": {"role": "button", "name": button}}


def _row(article: str) -> dict[str, Any]:
    return {"css": f"tr[data-article={article}]"}


def _add(name: str, article: str, count: str) -> dict[str, Any]:
    target = {"role": "button", "name": "Add to cart", "within": _row(article)}
    return {
        **_click(name, ""),
        "target": target,
        "verify": [{"text": count, "target": {"test_id": "in-cart"}}],
    }


async def measure(folder: Path, count: int, warm: int, orders: int = ORDERS) -> pairs.Comparison:
    """Compare the two variants; fails where a resumed run is not in the surviving browser."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "flow.yaml").write_text(json.dumps(workflow(orders)))
    reached: list[float] = []

    async def hover(self: tab.Tab, target: Target, how: Stroke = PLAIN) -> None:
        reached.append(time.perf_counter())
        raise Reached

    original, tab.Tab.hover = tab.Tab.hover, hover
    try:
        with Shop.start(folder) as shop:
            os.environ["SHOP_PASSWORD"] = shop.password

            async def timed(work: Callable[[], Awaitable[object]]) -> float:
                begun = time.perf_counter()
                try:
                    await work()
                except Reached:
                    return reached[-1] - begun
                raise AssertionError("the last order was not reached")

            async def going_on(home: Path) -> float:
                await asyncio.to_thread(_die, folder, home, shop.url)
                (conversation,) = home.glob("conversations/*.jsonl")
                chosen = settings.load(home=home, linger=LINGER)
                taken = await timed(lambda: start.resume_run(conversation.stem, host.of_command(chosen)))
                assert '"mode":"attached"' in conversation.read_text(), "the browser that was left was not found"
                return taken

            async def anew(home: Path) -> float:
                chosen = settings.load(home=home, linger=LINGER)
                return await timed(
                    lambda: start.start(
                        folder / "flow.yaml", {"base_url": shop.url, "buyer": home.name}, host.of_command(chosen)
                    )
                )

            return await _compare(folder, going_on, anew, count, warm)
    finally:
        tab.Tab.hover = original


async def _compare(
    folder: Path,
    first: Callable[[Path], Awaitable[float]],
    second: Callable[[Path], Awaitable[float]],
    count: int,
    warm: int,
) -> pairs.Comparison:
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(warm + count):
        ways = list(enumerate((first, second)))
        for which, way in ways if number % 2 else reversed(ways):
            home = folder / f"home-{number}-{which}"
            try:
                times[which].append(await way(home))
            finally:
                _end_browser(home)
    firsts, seconds = (each[warm:] for each in times)
    ratios = [a / b for a, b in zip(firsts, seconds, strict=True)]
    return pairs.Comparison(statistics.median(ratios), ratios, statistics.median(firsts), statistics.median(seconds))


def _die(folder: Path, home: Path, url: str) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.attach", str(folder / "flow.yaml"), str(home), url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr


def _end_browser(home: Path) -> None:
    """Kill the surviving Chromium, and wait until it is gone: it must not slow the next measurement."""
    for file in home.glob("private/*/browser.json"):
        chromium, watcher = (psutil.Process(json.loads(file.read_text())[name]) for name in ("chromium", "watcher"))
        chromium.kill()
        psutil.wait_procs([chromium, watcher], timeout=20)


async def _run_and_die(file: str, home: str, url: str) -> None:
    async def hover(self: tab.Tab, target: Target, how: Stroke = PLAIN) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    tab.Tab.hover = hover
    ended = await start.start(
        Path(file),
        {"base_url": url, "buyer": Path(home).name},
        host.of_command(settings.load(home=Path(home), linger=LINGER)),
    )
    sys.exit(f"the last order was not reached: {ended}")


if __name__ == "__main__":
    asyncio.run(_run_and_die(*sys.argv[1:]))
