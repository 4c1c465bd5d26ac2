"""The cost of a `when` in a loop of 5,000 items, against the same loop without; log on disk, page that answers at once."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.benchmarks import pairs
from tests.rig import Rig

ITEMS = 5000

NODES = 2
"""Nodes of each item."""


def workflow(when: str = "") -> str:
    """A `fill` and a `text` for each item; `when` is a further field of the first one."""
    return f"""\
version: 1
name: loop
inputs: {{rows: {{type: list}}}}
nodes:
  - id: each
    type: iterate
    over: "{{{{ inputs.rows }}}}"
    as: row
    key: "{{{{ row.id }}}}"
    nodes:
      - {{id: name, type: browser_action, action: fill, target: {{label: Name}}, value: "{{{{ row.id }}}}"{when}}}
      - {{id: shown, type: browser_query, query: text, target: {{css: output}}}}
"""


WHEN = ', when: "{{ row.wanted }}"'


def runs(folder: Path, when: str, items: int = ITEMS) -> Callable[[], Awaitable[float]]:
    """Runs the loop from start to end, and returns the milliseconds per node."""
    text, number = workflow(when), itertools.count()
    rows = [{"id": f"row {each}", "wanted": True} for each in range(items)]

    async def run() -> float:
        rig = Rig(folder / str(next(number)), text, inputs={"rows": rows})
        begun = time.perf_counter()
        ended = await rig.start()
        took = time.perf_counter() - begun
        assert ended.status == "passed", ended
        assert rig.browser is not None
        assert len(rig.browser.reads) == items
        assert {f"row {items - 1}"} == set(rig.browser.page.filled.values())
        return took * 1000 / (NODES * items)

    return run


async def measure(folder: Path, count: int, warm: int) -> tuple[pairs.Comparison, list[float]]:
    """Compare the loop with and without a `when`; and the milliseconds a node with it, of each pair."""
    found: list[float] = []
    with_when, without = runs(folder / "when", WHEN), runs(folder / "plain", "")

    async def noted() -> None:
        found.append(await with_when())

    compared = await pairs.compare(noted, without, pairs=count, warm=warm)
    return compared, found[warm:]
