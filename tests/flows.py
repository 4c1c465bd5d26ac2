"""Small workflows on one page, run in this process."""

from __future__ import annotations

import json
from pathlib import Path

from runtime import Runtime, Settings, events


async def ran(folder: Path, address: str, nodes: str, output: str = "none") -> events.RunEnded:
    """The end of a run that opens the address and does the nodes, each a YAML map of one line."""
    file = folder / "flow.yaml"
    lines = "".join(f"  - {each}\n" for each in nodes.strip().splitlines())
    file.write_text(
        f"version: 1\nnodes:\n  - {{id: open, type: browser_action, action: goto, url: {json.dumps(address)}}}\n"
        f"{lines}output: '{{{{ {output} }}}}'\n"
    )
    async with Runtime(settings=Settings(home=folder / "home", browser_mode="shared")) as runs:
        run = await runs.start(file)
        return await run.wait()
