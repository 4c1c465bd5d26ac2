"""`make mutations`: every fault is put into a copy of the code, and the tests must find each.

python -m tests.mutations [NAME …]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests import mutations


def main(names: list[str]) -> int:
    """Try those whose names hold one of ``names``, or all; 1 where one was not found."""
    missed = 0
    with tempfile.TemporaryDirectory(prefix="runops-mutations-") as folder:
        if not mutations.try_out(mutations.copy(Path(folder) / "whole")).passed:
            sys.stderr.write("without a fault the tests fail too\n")
            return 1
        for patch in mutations.patches():
            if names and not any(each in patch.stem for each in names):
                continue
            there = mutations.copy(Path(folder) / patch.stem)
            mutations.apply(patch, there)
            found = not mutations.try_out(there).passed
            missed += not found
            sys.stdout.write(f"{'found ' if found else 'MISSED'}  {patch.stem}\n")
            sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
