"""SQL of ``transform`` nodes: one SELECT, over tables that may be in scope.

DuckDB's parser is slow to load: only ``runops validate`` runs this check, a run does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nodes.base import Leaf, Node
from nodes.errors import did_you_mean
from nodes.iterate import Iterate
from nodes.transform import Transform
from runtime.language.diagnostics import Diagnostic
from runtime.language.workflow import Loaded
from runtime.sql import lockdown, statement

if TYPE_CHECKING:
    import duckdb

MEGABYTES = 64  # memory of the parser


def check(loaded: Loaded) -> list[Diagnostic]:
    statements = [
        (file, node, around)
        for file in loaded.files()
        for node, around in file.index.values()
        if isinstance(node, Transform) and node.sql is not None
    ]
    if not statements:
        return []
    with lockdown.connect(MEGABYTES) as database:
        return [problem for each in statements for problem in _of(database, *each)]


def _of(
    database: duckdb.DuckDBPyConnection, file: Loaded, node: Transform, around: Sequence[Node]
) -> Iterator[Diagnostic]:
    assert node.sql is not None
    sql, path = node.sql, (*file.places[node.id], "sql")

    def wrong(code: str, message: str, *help: str | None, place: tuple[int, int] = (0, 0)) -> Diagnostic:
        return file.document.source.diagnostic(code, message, file.document.within(path, sql, *place), help=help)

    kinds = {f"inputs.{name}": given.type for name, given in file.workflow.inputs.items()}
    known = [*_names(file, node, around), *(name for name, kind in kinds.items() if kind == "list")]
    try:
        read = statement.read(database, sql)
    except statement.Refused as refused:
        listed = f"names that may be tables here: {', '.join(known)}" if known else "no table is in scope here"
        yield wrong(refused.code, refused.message, refused.fix, listed, place=refused.place or (0, 0))
        return
    for table in read.tables:
        first, name = table.name[0].casefold(), ".".join(table.name)
        if len(table.name) == 1 and first in read.own:
            continue
        wanted = name.casefold() if first == "inputs" else first
        if first != "vars" and wanted not in {each.casefold() for each in known}:
            if kind := next((kind for each, kind in kinds.items() if each.casefold() == wanted), None):
                fix = "make maps of it in a `transform` before, or give it as one of `params`"
                yield wrong("sql-not-a-table", f"`{name}` has the type `{kind}`, and a table is a list of maps", fix)
                continue
            meant = next((each for each in known if each.rpartition(".")[2].casefold() == first), name)
            fix = did_you_mean(meant, known, "name a list of maps as references do: `orders`, `inputs.prices`")
            yield wrong("sql-unknown-table", f"there is no table `{name}` here", fix)
    if missing := sorted(read.params - (node.params or {}).keys()):
        names = ", ".join(f"`{name}`" for name in missing)
        yield wrong("sql-failed", f"`params` has no {names}", "give each `$name` of the statement a value")


def _names(file: Loaded, node: Node, around: Sequence[Node]) -> Iterator[str]:
    """Yield the names that may be tables: items of loops around ``node``, and earlier nodes outside finished loops and ``confirm``."""
    for each in around:
        if isinstance(each, Iterate) and each.as_ is not None:
            yield from (each.as_, f"{each.as_}_loop")
    for other, others in file.index.values():
        if other is node:
            return
        inside = [each for each in others if isinstance(each, Iterate | Leaf) and each not in around]
        if not inside and other not in around:
            yield other.id
