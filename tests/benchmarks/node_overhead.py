"""The cost of a node besides its page: 1,000 browser nodes through the whole engine, log on disk, on a page that answers at once."""

from __future__ import annotations

import time
from pathlib import Path

from tests.rig import Rig

NODES = 1000


def workflow() -> str:
    """500 ``fill`` and 500 ``text``, each with its own reference or target."""
    pairs = "".join(
        f"  - {{id: f{n}, type: browser_action, action: fill, target: {{label: 'F{n}'}}, value: '{n} {{{{ inputs.text }}}}'}}\n"
        f"  - {{id: t{n}, type: browser_query, query: text, target: {{css: '#o{n}'}}}}\n"
        for n in range(NODES // 2)
    )
    return f"version: 1\nname: nodes\ninputs: {{text: {{type: string}}}}\nnodes:\n{pairs}"


async def measure(folder: Path, rounds: int) -> list[float]:
    """Milliseconds a node, for each round."""
    text = workflow()
    found: list[float] = []
    for number in range(rounds + 1):
        rig = Rig(folder / str(number), text, inputs={"text": "typed"})
        begun = time.perf_counter()
        ended = await rig.start()
        found.append((time.perf_counter() - begun) * 1000 / NODES)
        assert ended.status == "passed", ended
        assert rig.browser is not None
        assert len(rig.browser.page.filled) == len(rig.browser.reads) == NODES // 2
    return found[1:]
