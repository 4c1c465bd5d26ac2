"""`make bench`: the cost of RunOps. The last line is one JSON object; docs/benchmarks.md explains its numbers.

python -m tests.benchmarks [--only NAME]… [--pairs N] [--rounds N] …     `--help` lists all
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
    pairs,
    schemas,
    strategies,
    traced,
    windows,
)

Numbers = Mapping[str, float]

COUNTS: Mapping[str, tuple[int, str]] = {
    "pairs": (15, "pairs of form fillings"),
    "rounds": (7, "rounds of 1,000 nodes"),
    "restarts": (7, "pairs of runs that are resumed"),
    "orders": (attach.ORDERS, "orders, of eight steps each, before such a run dies"),
    "looks": (11, "pairs of looks at a page"),
    "entries": (windows.LONG, "entries of the long session"),
    "words": (building.WORDS, "words of the session of each strategy"),
    "lists": (5, "pairs of long loops, long logs and long lists"),
    "batches": (5, "pairs of a batch and single runs"),
    "files": (batches.FILES, "files of a batch"),
    "besides": (3, "pairs of runs beside what takes long, and alone"),
    "megabytes": (beside.BYTES >> 20, "size of the file that such a run has kept"),
    "warm": (2, "pairs before them that do not count"),
}
"""Options, with their defaults and meanings."""

PRINTED = ("pairs", "rounds", "restarts", "looks", "entries", "lists", "batches", "besides")
"""The counts printed beside the numbers."""


def of_nodes(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """The engine's overhead for a node."""
    overhead = asyncio.run(node_overhead.measure(folder, chosen.rounds))
    say(f"  {statistics.median(overhead):.3f} ms a node (from {min(overhead):.3f} to {max(overhead):.3f})")
    return {"node_overhead_ms": statistics.median(overhead)}


def of_loops(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """A long loop with a `when` in it, and one without."""
    looped, in_loop = asyncio.run(loops.measure(folder, chosen.lists, min(chosen.warm, 1)))
    say(f"  {statistics.median(in_loop):.3f} ms a node")
    ratio = compared("loop_when_over_loop", "with", "without", looped)
    return {"node_overhead_in_loop_ms": statistics.median(in_loop), **ratio}


def of_logs(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """A long log that is read for a resume, and parsed as JSON."""
    read = asyncio.run(logs.resume(folder, chosen.lists, min(chosen.warm, 1)))
    return compared("resume_read_over_json", "resume", "JSON", read)


def of_lists(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """Lists of many runs and of few."""
    listed = asyncio.run(logs.lists(folder, chosen.lists, min(chosen.warm, 1)))
    return compared("runs_10k_over_500", "many", "few", listed)


def of_batches(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """Files in one command, and in as many commands."""
    batched = asyncio.run(batches.measure(folder, chosen.batches, min(chosen.warm, 1), chosen.files))
    return compared("batch_20_over_singles", "one command", "many", batched)


def of_beside(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """Runs beside slow work, and alone."""
    size = chosen.megabytes << 20
    shared = asyncio.run(beside.measure(folder, chosen.besides, min(chosen.warm, 1), size=size))
    return compared("steps_beside_over_alone", "a step beside", "a step alone", shared)


def of_form(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """A form of 50 steps by the engine, and by a raw script."""
    form = asyncio.run(engine_form.measure(folder, chosen.pairs, chosen.warm))
    return compared("form_engine_over_raw_same_flags", "engine", "raw", form)


def of_log(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """The same form, its log in memory and in files."""
    kept = asyncio.run(log_form.measure(folder, chosen.pairs, chosen.warm))
    return compared("log_off_over_on", "in memory", "in files", kept)


def of_traces(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """The form, and 50 clicks, ready for the evidence of a failure, and not."""
    found = asyncio.run(traced.measure(folder, chosen.pairs, chosen.warm))
    numbers: dict[str, float] = {}
    for name, each in found.items():
        numbers |= compared(f"trace_on_failure_overhead_{name}", "ready", "off", each)
    return {**numbers, "trace_on_failure_overhead": max(each.ratio for each in found.values())}


def of_restarts(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """A run that died in the middle, resumed and restarted."""
    restarts = asyncio.run(attach.measure(folder, chosen.restarts, min(chosen.warm, 1), chosen.orders))
    return compared("resume_attach_over_restart", "resumed", "anew", restarts)


def of_looks(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """A table of 200 rows, as an observation and as Playwright's snapshot."""
    looked, characters = asyncio.run(looks.measure(folder, chosen.looks, chosen.warm))
    ratio = compared("observation_over_aria_snapshot", "observation", "snapshot", looked)
    return {"observation_chars": characters, **ratio}


def of_windows(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """The window of a long session, and of one of 1,000 entries."""
    context = asyncio.run(windows.measure(folder, chosen.looks, chosen.warm, chosen.entries))
    return compared("context_300k_over_1k", "long", "short", context)


def of_strategies(folder: Path, chosen: argparse.Namespace) -> Numbers:
    """One session on the shop by each strategy."""
    read = asyncio.run(strategies.measure(folder, chosen.words))
    for strategy, cost in read.items():
        say(
            f"  {strategy}: {cost.tokens:,} tokens in {cost.requests} requests, {cost.summaries} of them for a summary; "
            f"sent {cost.sent:,}; "
            f"needed and told {cost.in_request}, needed and fetched {cost.fetched}"
        )
    injected = read["injected"]
    return {
        **{f"context_{name}_over_injected": read[name].tokens / injected.tokens for name in ("clean", "hybrid")},
        "sent_clean_over_injected": read[strategies.CHAINED].sent / injected.sent,
    }


def of_schemas(folder: Path, _chosen: argparse.Namespace) -> Numbers:
    """Tokens of the tools of a build."""
    offered = schemas.measure(folder)
    say(f"  {len(offered)} tools: {sum(offered.values()):,} tokens")
    return {"tool_schema_tokens": sum(offered.values())}


PROMISED: Mapping[str, float] = {
    "context_300k_over_1k": 1.5,
    "context_clean_over_injected": 0.3,
    "context_hybrid_over_injected": 0.4,
    "sent_clean_over_injected": 0.25,
    "trace_on_failure_overhead": 1.1,
}
"""Limits that hold on any machine, for the default counts."""

BENCHMARKS: Mapping[str, Callable[[Path, argparse.Namespace], Numbers]] = {
    "nodes": of_nodes,
    "loops": of_loops,
    "logs": of_logs,
    "lists": of_lists,
    "batches": of_batches,
    "beside": of_beside,
    "form": of_form,
    "log": of_log,
    "traces": of_traces,
    "restarts": of_restarts,
    "looks": of_looks,
    "windows": of_windows,
    "strategies": of_strategies,
    "schemas": of_schemas,
}


def compared(name: str, first: str, second: str, found: pairs.Comparison) -> Numbers:
    """The ratio of two variants, which is also printed as progress."""
    say(
        f"  {first} {found.first * 1000:.1f} ms, {second} {found.second * 1000:.1f} ms, "
        f"ratios {min(found.ratios):.3f} to {max(found.ratios):.3f}"
    )
    return {name: found.ratio}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, report progress on stderr, and print the numbers."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=BENCHMARKS, help="measure only this (may be repeated)")
    for name, (default, what) in COUNTS.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} (default {default:,})")
    chosen = parser.parse_args(arguments)
    numbers: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="runops-bench-") as folder:
        for name in chosen.only or BENCHMARKS:
            say(f"{name}: {(BENCHMARKS[name].__doc__ or '').lower()}")
            numbers |= BENCHMARKS[name](Path(folder) / name, chosen)
    default = all(getattr(chosen, name) == COUNTS[name][0] for name in ("words", "entries"))
    missed = [f"{name} is above {most}" for name, most in PROMISED.items() if default and numbers.get(name, 0) > most]
    for each in missed:
        say(f"missed: {each}")
    rounded = {name: round(number, 3) for name, number in numbers.items()}
    sys.stdout.write(json.dumps(rounded | {name: getattr(chosen, name) for name in PRINTED}) + "\n")
    return 1 if missed else 0


def say(text: str) -> None:
    """Print progress."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
