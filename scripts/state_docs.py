"""Writes the table of docs/crash-recovery.md from `runtime.log.step_states.TABLE`, or with --check refuses a page that differs."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "crash-recovery.md"
BLOCK = re.compile(r"<!-- states -->\n.*?<!-- end -->", re.DOTALL)


def table() -> str:
    """Return the table as Markdown: a row for each state, effect class and policy of the author."""
    from runtime.log import step_states

    lines = [
        "| the step is | effect class | configured | what happens, in order |",
        "|---|---|---|---|",
    ]
    for (state, effect, word), then in step_states.TABLE.items():
        shown = (
            ""
            if word is step_states.Configured.NOTHING
            else f"`{word}`"
            if "," not in word
            else f"`{word}`".replace(", ", "`, `")
        )
        lines.append(f"| {state} | {effect} | {shown} | {', '.join(then)} |")
    lines += ["", "| | |", "|---|---|"]
    lines += [
        f"| {name} | {doc} |" for name, doc in (*described(step_states, "State"), *described(step_states, "Then"))
    ]
    return "\n".join(lines)


def described(module: object, name: str) -> list[tuple[str, str]]:
    """Return the members of an enum with the docstrings under them."""
    source = pathlib.Path(str(module.__file__)).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    body = source.partition(f"class {name}(")[2].partition("\n\n\n")[0]
    return re.findall(r'^    [A-Z_]+ = "([^"]+)"\n    """(.+?)"""$', body, re.MULTILINE)


def written(page: str) -> str:
    """Return the page with the current table."""
    return BLOCK.sub(lambda _found: f"<!-- states -->\n{table()}\n<!-- end -->", page)


def main() -> int:
    """Write the page, or check it."""
    sys.path.insert(0, str(ROOT))
    page = PAGE.read_text(encoding="utf-8")
    if not BLOCK.search(page):
        print("docs/crash-recovery.md: it has no place for the table of states", file=sys.stderr)
        return 1
    if "--check" not in sys.argv:
        PAGE.write_text(written(page), encoding="utf-8")
        return 0
    if written(page) == page:
        return 0
    print(
        "docs/crash-recovery.md: its table is not that of the code; fix:  .venv/bin/python scripts/state_docs.py",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
