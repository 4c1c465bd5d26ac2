"""The cost of reading logs: a resume of a run with 100,000 entries against plain JSON, and a list of 10,000 runs against one of 500."""

from __future__ import annotations

import json
from pathlib import Path

from runtime.log import entries as log_entries
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.secrets import masking
from runtime.settings import settings
from runtime.workspace import run_index
from tests.benchmarks import loops, pairs
from tests.now import let_go, now
from tests.rig import Rig

ENTRIES = 100_000

OF_AN_ITEM = 6
"""Entries of each item of the loop."""

MANY, FEW = 10_000, 500


async def run_of(folder: Path, items: int) -> Rig:
    """A run of the loop that has passed."""
    rig = Rig(folder, loops.workflow(), inputs={"rows": [{"id": f"row {each}"} for each in range(items)]})
    assert (await rig.start()).status == "passed"
    return rig


async def resume(folder: Path, count: int, warm: int, entries: int = ENTRIES) -> pairs.Comparison:
    """Read, fold and claim a run that died, as a resume does, and parse its lines as JSON in turn."""
    rig = await run_of(folder, entries // OF_AN_ITEM)
    file, chosen = rig.store.conversation_file(rig.id), settings.load(home=folder)
    # It died before its last two lines: the end of its nodes, and its own.
    lines = file.read_bytes().splitlines(keepends=True)[:-2]
    assert len(lines) >= entries
    file.write_bytes(b"".join(lines))
    bare = [line[: -log_entries.SUM_LENGTH - 1] + b"}" for line in lines]

    async def read() -> None:
        store = file_store.Files(chosen.home)
        store.make()
        past, reading = run_index.load_history(store, rig.id)
        assert len(reading.entries) >= len(lines)
        writer = now(run_index.claim(file_store.FileStore(store), rig.id, masking.Masker({}), known=(past, reading)))
        let_go(writer.conversation)
        assert len(writer.history.all_attempts()) == loops.NODES * (entries // OF_AN_ITEM)

    async def parse() -> None:
        for line in bare:
            json.loads(line)

    return await pairs.compare(read, parse, pairs=count, warm=warm)


async def lists(folder: Path, count: int, warm: int, many: int = MANY, few: int = FEW) -> pairs.Comparison:
    """List so many runs, and so few, in turn."""
    rig = await run_of(folder / "one", 2)
    data = rig.store.conversation_file(rig.id).read_bytes()
    homes: list[settings.Settings] = []
    for number in (many, few):
        chosen = settings.load(home=folder / str(number))
        store = file_store.Files(chosen.home)
        store.make()
        for _ in range(number):
            store.conversation_file(log_store.new_id()).write_bytes(data)
        homes.append(chosen)

    async def listed(chosen: settings.Settings, number: int) -> None:
        found = run_index.list_runs(file_store.Files(chosen.home))
        assert [each.state for each in found] == ["passed"] * number

    return await pairs.compare(lambda: listed(homes[0], many), lambda: listed(homes[1], few), pairs=count, warm=warm)
