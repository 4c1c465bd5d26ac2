"""A sample of `make bench`, so that the benchmarks keep working; what they measure is no matter of tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_last_line_is_one_json_object_with_the_promised_numbers() -> None:
    """One pair and one round: both ways leave the right record with the shop, and the numbers are there."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.benchmarks",
            "--pairs",
            "1",
            "--rounds",
            "1",
            "--restarts",
            "1",
            "--orders",
            "1",
            "--looks",
            "1",
            "--entries",
            "3000",
            "--words",
            "4",
            "--warm",
            "0",
            "--lists",
            "1",
            "--batches",
            "1",
            "--files",
            "2",
            "--besides",
            "1",
            "--megabytes",
            "4",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    numbers = json.loads(done.stdout.splitlines()[-1])
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


def test_the_raw_script_is_short() -> None:
    """What the engine is measured against stays below 60 lines."""
    assert len((ROOT / "tests" / "benchmarks" / "raw_form.py").read_text().splitlines()) < 60
