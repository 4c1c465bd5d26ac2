"""`make bench`: what RunOps costs. The last line is one JSON object; docs/benchmarks.md says what its numbers mean.

python -m tests.benchmarks [--pairs N] [--rounds N] [--restarts N] [--orders N] [--looks N] [--entries N] [--words N] [--warm N] [--lists N] [--batches N] [--files N]
    [--besides N] [--megabytes N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import (
    attach,
    batches,
    beside,
    building,
    engine_form,
    log_form,
    logs,
    looks,
    loops,
    node_overhead,
    schemas,
    strategies,
    windows,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, say so on stderr while it continues, and print the numbers."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--pairs", type=int, default=15, help="pairs of form fillings (default 15)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of 1,000 nodes (default 7)")
    parser.add_argument("--restarts", type=int, default=7, help="pairs of runs that are resumed (default 7)")
    parser.add_argument(
        "--orders",
        type=int,
        default=attach.ORDERS,
        help="orders, of eight steps each, before such a run dies (default 5)",
    )
    parser.add_argument("--looks", type=int, default=11, help="pairs of looks at a page (default 11)")
    parser.add_argument(
        "--entries", type=int, default=windows.LONG, help="entries of the long session (default 300,000)"
    )
    parser.add_argument(
        "--words", type=int, default=building.WORDS, help="words of the session of each strategy (default 40)"
    )
    parser.add_argument(
        "--lists", type=int, default=5, help="pairs of long loops, long logs and long lists (default 5)"
    )
    parser.add_argument("--batches", type=int, default=5, help="pairs of a batch and single runs (default 5)")
    parser.add_argument("--files", type=int, default=batches.FILES, help="files of a batch (default 20)")
    parser.add_argument(
        "--besides", type=int, default=3, help="pairs of runs beside what takes long, and alone (default 3)"
    )
    parser.add_argument(
        "--megabytes", type=int, default=beside.BYTES >> 20, help="of the file that such a run has kept (default 500)"
    )
    parser.add_argument("--warm", type=int, default=2, help="pairs before them that do not count (default 2)")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="runops-bench-") as folder:
        say(f"{chosen.rounds} rounds of 1,000 nodes on a page that answers at once …")
        overhead = asyncio.run(node_overhead.measure(Path(folder) / "nodes", chosen.rounds))
        say(f"  {statistics.median(overhead):.3f} ms a node (from {min(overhead):.3f} to {max(overhead):.3f})")
        say(f"{chosen.lists} pairs of a loop of {loops.ITEMS:,} items, with a `when` and without in turn …")
        looped, in_loop = asyncio.run(loops.measure(Path(folder) / "loops", chosen.lists, min(chosen.warm, 1)))
        say(
            f"  with {looped.first * 1000:.0f} ms, without {looped.second * 1000:.0f} ms, ratios {min(looped.ratios):.3f} to {max(looped.ratios):.3f}; "
            f"{statistics.median(in_loop):.3f} ms a node"
        )
        say(f"{chosen.lists} pairs of reading a log of {logs.ENTRIES:,} entries, for a resume and as JSON in turn …")
        read_again = asyncio.run(logs.resume(Path(folder) / "resume", chosen.lists, min(chosen.warm, 1)))
        say(
            f"  resume {read_again.first * 1000:.0f} ms, JSON {read_again.second * 1000:.0f} ms, ratios {min(read_again.ratios):.3f} to {max(read_again.ratios):.3f}"
        )
        say(f"{chosen.lists} pairs of lists, of {logs.MANY:,} runs and of {logs.FEW} in turn …")
        listed = asyncio.run(logs.lists(Path(folder) / "lists", chosen.lists, min(chosen.warm, 1)))
        say(
            f"  many {listed.first * 1000:.0f} ms, few {listed.second * 1000:.0f} ms, ratios {min(listed.ratios):.3f} to {max(listed.ratios):.3f}"
        )
        say(f"{chosen.batches} pairs of {chosen.files} files, in one command and in as many in turn …")
        batched = asyncio.run(
            batches.measure(Path(folder) / "batches", chosen.batches, min(chosen.warm, 1), chosen.files)
        )
        say(
            f"  one command {batched.first * 1000:.0f} ms, many {batched.second * 1000:.0f} ms, ratios {min(batched.ratios):.3f} to {max(batched.ratios):.3f}"
        )
        say(f"{chosen.besides} pairs of {beside.RUNS} runs, beside what takes long and alone in turn …")
        shared = asyncio.run(
            beside.measure(Path(folder) / "beside", chosen.besides, min(chosen.warm, 1), size=chosen.megabytes << 20)
        )
        say(
            f"  beside {shared.first * 1000:.1f} ms a step, alone {shared.second * 1000:.1f} ms, ratios {min(shared.ratios):.3f} to {max(shared.ratios):.3f}"
        )
        say(f"{chosen.pairs} pairs of the form of 50 steps, engine and raw script in turn …")
        form = asyncio.run(engine_form.measure(Path(folder) / "form", chosen.pairs, chosen.warm))
        say(
            f"  engine {form.first * 1000:.0f} ms, raw {form.second * 1000:.0f} ms, ratios {min(form.ratios):.3f} to {max(form.ratios):.3f}"
        )
        say(f"{chosen.pairs} pairs of the same form, its log in memory and in files in turn …")
        kept = asyncio.run(log_form.measure(Path(folder) / "logs", chosen.pairs, chosen.warm))
        say(
            f"  in memory {kept.first * 1000:.0f} ms, in files {kept.second * 1000:.0f} ms, ratios {min(kept.ratios):.3f} to {max(kept.ratios):.3f}"
        )
        died = 5 + 8 * chosen.orders
        say(
            f"{chosen.restarts} pairs of a run that died behind step {died} of {died + 5}, resumed and begun anew in turn …"
        )
        restarts = asyncio.run(
            attach.measure(Path(folder) / "attach", chosen.restarts, min(chosen.warm, 1), chosen.orders)
        )
        say(
            f"  gone on {restarts.first * 1000:.0f} ms, anew {restarts.second * 1000:.0f} ms, ratios {min(restarts.ratios):.3f} to {max(restarts.ratios):.3f}"
        )
        say(
            f"{chosen.looks} pairs of looks at a table of 200 rows, as an observation and as Playwright's snapshot in turn …"
        )
        looked, characters = asyncio.run(looks.measure(Path(folder) / "looks", chosen.looks, chosen.warm))
        say(
            f"  observation {looked.first * 1000:.0f} ms, snapshot {looked.second * 1000:.0f} ms, ratios {min(looked.ratios):.3f} to {max(looked.ratios):.3f}"
        )
        say(
            f"{chosen.looks} pairs of windows, of a session of {chosen.entries:,} entries and of one of 1,000 in turn …"
        )
        context = asyncio.run(windows.measure(Path(folder) / "windows", chosen.looks, chosen.warm, chosen.entries))
        say(
            f"  long {context.first * 1000:.0f} ms, short {context.second * 1000:.0f} ms, ratios {min(context.ratios):.3f} to {max(context.ratios):.3f}"
        )
        say(f"a session of {chosen.words} words on the shop, by each strategy …")
        read = asyncio.run(strategies.measure(Path(folder) / "strategies", chosen.words))
        for strategy, cost in read.items():
            say(
                f"  {strategy}: {cost.tokens:,} tokens in {cost.requests} requests, {cost.summaries} of them for a summary; "
                f"needed and told {cost.told}, needed and fetched {cost.fetched}"
            )
        offered = schemas.measure(Path(folder) / "schemas")
        say(f"{len(offered)} tools of a build: {sum(offered.values()):,} tokens")
    numbers = {
        "form_engine_over_raw_same_flags": round(form.ratio, 3),
        "node_overhead_ms": round(statistics.median(overhead), 3),
        "node_overhead_in_loop_ms": round(statistics.median(in_loop), 3),
        "loop_when_over_loop": round(looped.ratio, 3),
        "resume_read_over_json": round(read_again.ratio, 3),
        "runs_10k_over_500": round(listed.ratio, 3),
        "batch_20_over_singles": round(batched.ratio, 3),
        "steps_beside_over_alone": round(shared.ratio, 3),
        "log_off_over_on": round(kept.ratio, 3),
        "resume_attach_over_restart": round(restarts.ratio, 3),
        "observation_chars": characters,
        "observation_over_aria_snapshot": round(looked.ratio, 3),
        "context_300k_over_1k": round(context.ratio, 3),
        "context_clean_over_injected": round(read["clean"].tokens / read["injected"].tokens, 3),
        "context_hybrid_over_injected": round(read["hybrid"].tokens / read["injected"].tokens, 3),
        "tool_schema_tokens": sum(offered.values()),
        "pairs": chosen.pairs,
        "rounds": chosen.rounds,
        "restarts": chosen.restarts,
        "looks": chosen.looks,
        "entries": chosen.entries,
        "lists": chosen.lists,
        "batches": chosen.batches,
        "besides": chosen.besides,
    }
    sys.stdout.write(json.dumps(numbers) + "\n")
    return 0


def say(text: str) -> None:
    """Progress, for the person who waits."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
