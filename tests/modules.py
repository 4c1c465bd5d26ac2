"""Facts about the modules of the packages, found in their source."""

import ast
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent


def places(find: Callable[[ast.AST], Iterable[tuple[int, str]]]) -> dict[str, list[tuple[int, str]]]:
    """The files in which `find` finds something, with line and finding."""
    files = [file for package in ("nodes", "runtime", "director") for file in (ROOT / package).rglob("*.py")]
    found = {str(file.relative_to(ROOT)): [*find(ast.parse(file.read_text()))] for file in files}
    return {file: seen for file, seen in found.items() if seen}
