"""The time saved by giving many files to one command: 20 files of 3 nodes in one ``runops run``, and in 20, one after another."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests import site
from tests.benchmarks import pairs

FILES = 20

TEXT = """\
version: 1
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{origin}/"}}
  - {{id: title, type: browser_query, query: title}}
  - {{id: said, type: transform, expr: "{{{{ title }}}}"}}
output: "{{{{ said }}}}"
"""


async def measure(folder: Path, count: int, warm: int, files: int = FILES) -> pairs.Comparison:
    """One command with so many files, and as many commands, in turn."""
    folder.mkdir()
    names = [f"{number}.yaml" for number in range(files)]
    with site.serve() as served:
        served.answer("/", lambda _request: site.Answer("<title>There</title>"))
        for name in names:
            (folder / name).write_text(TEXT.format(origin=served.origin))

        async def run(*given: str) -> None:
            command = [str(Path(sys.executable).with_name("runops")), "run", "--quiet", *given]
            done = await asyncio.to_thread(
                subprocess.run, command, cwd=folder, capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stdout.count("There")) == (0, len(given)), done.stderr

        async def together() -> None:
            await run(*names)

        async def singly() -> None:
            for name in names:
                await run(name)

        return await pairs.compare(together, singly, pairs=count, warm=warm)
