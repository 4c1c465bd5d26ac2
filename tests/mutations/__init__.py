"""Faults put into a copy of the code, to check that its tests find each: in the window builder, and in permissions and proofs of builds."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = tuple(Path(__file__).parent / name for name in ("window", "building"))
"""The folders of the faults."""

PROPERTIES = (
    "tests/unit/test_window_properties.py",
    "tests/unit/test_summary_properties.py",
    "tests/unit/test_build_loop.py",
    "tests/unit/test_effects.py",
    "tests/unit/test_grants.py",
    "tests/unit/test_finish.py",
    "tests/unit/test_proved_runs.py",
    "tests/unit/test_output_files.py",
    "tests/unit/test_proofs.py",
)
"""The files with properties of every window (no examples: they are found for any window), and of builds."""

COPIED = (
    "nodes",
    "runtime",
    "director",
    "pyproject.toml",
    "tests/windows.py",
    "tests/window_draws.py",
    "tests/talks.py",
    "tests/build_contexts.py",
    "tests/benches.py",
    "tests/finishes.py",
    "tests/holding.py",
    "tests/build_lives.py",
    "tests/fakes.py",
    "tests/rig.py",
    *PROPERTIES,
)
"""The files that these tests need."""

PROFILE = """\
import hypothesis
import pytest

phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
hypothesis.settings.register_profile("search", max_examples=1_000, deadline=None, database=None, phases=phases)


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"
"""
"""The search for a fault: more examples than in an ordinary run, up to the first failure, without shrinking."""

SEED = 1
"""The seed of the search: finding a fault does not depend on luck."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """A plausible mistake, as a patch."""

    patch: Path
    mistake: str
    """In words."""
    finders: tuple[str, ...]
    """The tests that find it, each alone."""

    @property
    def name(self) -> str:
        """That of its file."""
        return self.patch.stem

    @property
    def file(self) -> str:
        """The file to which it is applied."""
        found = re.search(r"^\+\+\+ b/(.+)$", self.patch.read_text(encoding="utf-8"), re.MULTILINE)
        assert found is not None
        return found[1]


def read(patch: Path) -> Fault:
    """A fault from its file: mistake and finders are named before the patch. Raises ValueError where they are not."""
    head = patch.read_text(encoding="utf-8").partition("--- ")[0]
    said = dict(re.findall(r"^(mistake|found by): (.+)$", head, re.MULTILINE))
    try:
        return Fault(patch, said["mistake"], tuple(said["found by"].split(", ")))
    except KeyError as missing:
        raise ValueError(f"{patch.name} does not say its {missing.args[0]!r}") from None


def faults() -> list[Fault]:
    """All of them."""
    return [read(each) for folder in FOLDERS for each in sorted(folder.glob("*.patch"))]


def copy(folder: Path) -> Path:
    """A copy of the files that the tests need."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in COPIED:
        there = folder / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, there, ignore=ignored)
        else:
            shutil.copy(ROOT / name, there)
    (folder / "conftest.py").write_text(PROFILE, encoding="utf-8")
    return folder


def apply(fault: Fault, folder: Path) -> None:
    """Apply the fault to the copy. Raises CalledProcessError where the code has changed."""
    subprocess.run(["git", "apply", "--whitespace=nowarn", fault.patch], cwd=folder, check=True, capture_output=True)


def failing(folder: Path, names: Sequence[str] = (), *, search: bool = True, seed: int = SEED) -> set[str]:
    """The failing tests of the copy, among ``names`` or all. Raises RuntimeError where anything else is wrong with it."""
    profile = ["--hypothesis-profile=search"] if search else []
    chosen = [f"{file}::{name}" for file in PROPERTIES for name in names if f"def {name}(" in (ROOT / file).read_text()]
    if len(chosen) < len(names):
        raise RuntimeError(f"there is no test of one of these names: {', '.join(names)}")
    tests = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=line", "-p", "no:randomly", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*tests, *profile, f"--hypothesis-seed={seed}", *(chosen or PROPERTIES)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=1_200,
        # Names of failures are not truncated.
        env={**os.environ, "COLUMNS": "200"},
    )
    found = set(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE))
    # Any other end than failed tests proves nothing about the fault.
    if done.returncode not in (0, 1) or (done.returncode == 1) != bool(found):
        raise RuntimeError(done.stdout + done.stderr)
    return found
