"""``python -m tests.drift``: every change of the site, its diagnosis, and whether it was fixed. Exit code 1 where a threshold is missed."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.drift import changes, trying

CLASSIFIED = 0.9
PATCHED = 8


async def main(names: list[str]) -> int:
    """Try all, or those whose names contain one of these."""
    wanted = [each for each in changes.CASES if not names or any(name in each.name for name in names)]
    tried: list[trying.Tried] = []
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        async with trying.one_browser():
            for number, case in enumerate(wanted):
                own = folder / f"{number}"
                own.mkdir()
                with trying.site(own) as (shop, proxy):
                    one = await trying.attempt(case, own / "project", shop, proxy)
                tried.append(one)
                sys.stdout.write(f"{one.line()}\n")
                if names:
                    details = [one.outcome.found.why, *one.outcome.tried, one.patch]
                    sys.stdout.write("".join(f"    {each}\n" for each in details))
                sys.stdout.flush()
    right = sum(each.classified for each in tried)
    patched = sum(each.patched for each in tried)
    wrong = sum(each.wrong for each in tried)
    sys.stdout.write(f"\n{len(tried)} changes: {right} classified, {patched} fixed, {wrong} wrong fixes that passed\n")
    met = right >= CLASSIFIED * len(tried) and (bool(names) or patched >= PATCHED) and wrong == 0
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(sys.argv[1:])))
