"""`make mutations`: every fault is put into a copy of the code, and the tests that it names must find it.

python -m tests.mutations [--all] [NAME …]

With ``--all`` every test is tried on every fault, and those that find it are told.
"""

from __future__ import annotations

import concurrent.futures
import os
import sys
import tempfile
from pathlib import Path

from tests import mutations


def main(words: list[str]) -> int:
    """Try those whose names hold one of the words, or all; 1 where a test does not find what it should."""
    every, names = "--all" in words, [each for each in words if each != "--all"]
    chosen = [each for each in mutations.faults() if not names or any(name in each.name for name in names)]
    with tempfile.TemporaryDirectory(prefix="runops-mutations-") as folder:
        known = () if every else sorted({name for fault in chosen for name in fault.finders})
        if failed := mutations.failing(mutations.copy(Path(folder) / "whole"), known, search=False):
            sys.stderr.write(f"without a fault these fail too: {', '.join(sorted(failed))}\n")
            return 1

        def find(fault: mutations.Fault) -> set[str]:
            there = mutations.copy(Path(folder) / fault.name)
            mutations.apply(fault, there)
            return mutations.failing(there, () if every else fault.finders)

        missed = 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for fault, found in zip(chosen, pool.map(find, chosen), strict=True):
                lost = [each for each in fault.finders if each not in found]
                missed += bool(lost)
                sys.stdout.write(f"{'MISSED' if lost else 'found '}  {fault.name}: {fault.mistake}\n")
                sys.stdout.writelines(f"        {each}\n" for each in sorted(found))
                sys.stdout.writelines(f"        not by {each}\n" for each in lost)
                sys.stdout.flush()
        sys.stdout.write(f"{len(chosen) - missed} of {len(chosen)} faults were found\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
