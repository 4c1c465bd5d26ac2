"""Writes the help texts of the command into docs/command.md, and what a shell completes into runtime/cli/completions.json.

With --check it refuses files that differ.

In the page, the help of a command is between `<!-- help: NAME -->` and `<!-- end -->` (`runops` for the general help).
"""

import contextlib
import io
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "command.md"
TABLE = ROOT / "runtime" / "cli" / "completions.json"
FIX = "fix:  .venv/bin/python scripts/command_docs.py"
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


def table() -> str:
    """Return what a shell completes, as JSON."""
    from runtime.cli import completion_table

    return f"{json.dumps(completion_table.whole(), indent=1, ensure_ascii=False)}\n"


def problems(page: str) -> list[str]:
    """Return the problems of the page."""
    from runtime.cli import command_table

    shown = {found["name"] for found in BLOCK.finditer(page)}
    missing = [command.name for command in command_table.every() if command.name not in shown]
    found = [f"`runops {name}` is not in it" for name in missing]
    if written(page) != page:
        found.append(f"its help texts are not those of the command; {FIX}")
    return [f"docs/command.md: {each}" for each in found]


def main() -> int:
    """Write the page, or check it."""
    sys.path.insert(0, str(ROOT))
    page = PAGE.read_text(encoding="utf-8")
    if "--check" not in sys.argv:
        PAGE.write_text(written(page), encoding="utf-8")
        TABLE.write_text(table(), encoding="utf-8")
        return 0
    wrong = problems(page)
    if not TABLE.exists() or TABLE.read_text(encoding="utf-8") != table():
        wrong.append(f"runtime/cli/completions.json: it is not what the commands take; {FIX}")
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
