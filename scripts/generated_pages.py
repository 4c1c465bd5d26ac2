"""Writing and checking pages of docs/ that have generated parts."""

import pathlib
import sys
from collections.abc import Callable

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"


def main(written: Callable[[pathlib.Path, str], str], problems: Callable[[], list[str]]) -> int:
    """Write every page as ``written`` returns it, or with ``--check`` print the ``problems``; return the exit code."""
    if "--check" in sys.argv:
        wrong = problems()
        for each in wrong:
            print(each, file=sys.stderr)
        return 1 if wrong else 0
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (new := written(page, text)) != text:
            page.write_text(new, encoding="utf-8")
    return 0
