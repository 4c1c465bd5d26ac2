"""A sample of `make bench`, so that the benchmarks keep working; tests do not judge the results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


FEWEST = dict.fromkeys(("pairs", "rounds", "restarts", "orders", "looks", "lists", "batches", "besides"), "1") | {
    "entries": "3000",
    "words": "4",
    "warm": "0",
    "files": "2",
    "megabytes": "4",
}


def measured(*only: str) -> dict[str, float]:
    """The last line that the command prints, for one pair and one round of each of these."""
    given = [part for name, count in FEWEST.items() for part in (f"--{name}", count)]
    given += [part for name in only for part in ("--only", name)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *given],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.drawn(0)
def test_the_last_line_is_one_json_object_with_the_promised_numbers() -> None:
    """With one pair and one round both variants leave the right record in the shop, and all numbers are present."""
    numbers = measured()
    assert numbers["form_engine_over_raw_same_flags"] > 0
    assert numbers["node_overhead_ms"] > 0
    assert numbers["log_off_over_on"] > 0
    assert numbers["batch_20_over_singles"] > 0
    assert numbers["steps_beside_over_alone"] > 0
    assert numbers["resume_attach_over_restart"] > 0
    assert 200 < numbers["observation_chars"] <= 5000
    assert numbers["observation_over_aria_snapshot"] > 0
    assert numbers["context_300k_over_1k"] > 0
    assert 0 < numbers["tool_schema_tokens"] <= 4000
    assert 0 < numbers["context_clean_over_injected"] <= numbers["context_hybrid_over_injected"] < 1
    assert 0 < numbers["sent_clean_over_injected"] < numbers["context_clean_over_injected"]


def test_one_is_measured_alone() -> None:
    """`--only` omits the other numbers, and the tools of a build stay within their token limit."""
    numbers = measured("nodes", "schemas")
    assert numbers["node_overhead_ms"] > 0
    assert 0 < numbers["tool_schema_tokens"] <= 4000
    assert "form_engine_over_raw_same_flags" not in numbers


def test_the_raw_script_is_short() -> None:
    """The script that the engine is measured against has fewer than 60 lines."""
    assert len((ROOT / "tests" / "benchmarks" / "raw_form.py").read_text().splitlines()) < 60
