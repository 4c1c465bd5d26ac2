"""Writes the help texts of the command into docs/command.md, or with --check refuses a page that differs.

In the page, the help of a command is between `<!-- help: NAME -->` and `<!-- end -->` (`runops` for the general help).
"""

import contextlib
import io
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "command.md"
BLOCK = re.compile(r"<!-- help: (?P<name>[\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def help_of(name: str) -> str:
    """Return the output of `runops NAME --help` on a terminal of 80 columns."""
    from runtime.cli import app

    os.environ["COLUMNS"] = "80"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = app.run(["--help"] if name == "runops" else [name, "--help"])
    if code:
        raise SystemExit(f"the help of `{name}` ended with {code}")
    return printed.getvalue().strip()


def written(page: str) -> str:
    """Return the page with the current help texts."""
    return BLOCK.sub(
        lambda found: f"<!-- help: {found['name']} -->\n```text\n{help_of(found['name'])}\n```\n<!-- end -->", page
    )


def problems(page: str) -> list[str]:
    """Return the problems of the page."""
    from runtime.cli import command_table

    shown = {found["name"] for found in BLOCK.finditer(page)}
    missing = [command.name for command in command_table.every() if command.name not in shown]
    found = [f"`runops {name}` is not in it" for name in missing]
    if written(page) != page:
        found.append("its help texts are not those of the command; fix:  .venv/bin/python scripts/command_docs.py")
    return found


def main() -> int:
    """Write the page, or check it."""
    sys.path.insert(0, str(ROOT))
    page = PAGE.read_text(encoding="utf-8")
    if "--check" not in sys.argv:
        PAGE.write_text(written(page), encoding="utf-8")
        return 0
    wrong = problems(page)
    for each in wrong:
        print(f"docs/command.md: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
