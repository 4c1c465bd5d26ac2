"""`runops` on a recorded build, in a folder of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from nodes.values import Json

RUN_SECONDS = 300
PAUSED = 4
"""Exit code of a run that waits for a person."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended."""

    output: Json = None
    question: str = ""
    """What it asks a person, with the step's path, if it paused."""
    problem: str = ""
    """Its error, if it did not pass."""


class Command:
    def __init__(self, folder: Path, secrets: Mapping[str, str]) -> None:
        """``folder`` gets the runs; ``secrets`` are given by their variables."""
        self.folder, self.home = folder, folder / ".runops"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RUNOPS_")},
            "RUNOPS_HOME": str(self.home),
            **secrets,
        }

    def run(self, workflow: Path, inputs: Mapping[str, Json]) -> Ran:
        return self._ended(self.words(workflow, inputs))

    def resume(self, run: str) -> Ran:
        return self._ended([_runops(), "resume", run, "--json"])

    def decide(self, run: str, verdict: Literal["done", "not-done"]) -> Ran:
        return self._ended([_runops(), "decide", run, verdict, "--json"])

    def words(self, workflow: Path, inputs: Mapping[str, Json]) -> list[str]:
        """The command of a frozen run."""
        pairs = [part for name, value in inputs.items() for part in ("-i", f"{name}={value}")]
        return [_runops(), "run", str(workflow), "--frozen", "--json", *pairs]

    def _ended(self, words: Sequence[str]) -> Ran:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        said = done.stderr.strip()[-1500:]
        if done.returncode == PAUSED:
            return Ran(question=said)
        if done.returncode:
            return Ran(problem=f"exit {done.returncode}: {said}")
        result = json.loads(done.stdout)
        return Ran(output=result.get("runs", [result])[0]["output"])


def _runops() -> str:
    return str(Path(sys.executable).parent / "runops")
