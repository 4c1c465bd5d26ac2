"""DuckDB without files, network and extensions: where every statement that is not ours is carried out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "lock_configuration": "true",
}
"""No files, no network, nothing to load, no variable of ours as a table, no files for what memory does not hold; and all that for good."""

THREADS = 2


def connect(megabytes: int) -> duckdb.DuckDBPyConnection:
    """An empty database in memory, which takes about ``megabytes`` at most and reaches nothing outside itself."""
    import duckdb  # costs 150 ms, and most commands need none

    return duckdb.connect(":memory:", config={**LOCKED, "memory_limit": f"{megabytes}MiB", "threads": str(THREADS)})


def words(error: Exception) -> tuple[str, str | None, int | None]:
    """What DuckDB says: the sentence, the near miss that it knows, and the line of the statement; each in one line."""
    text = str(error)
    place = re.search(r"^LINE (\d+):", text, re.MULTILINE)
    sentence, *hints = text.partition("\n\nLINE ")[0].split("\n")
    sentence = re.sub(r"^(?:INTERNAL|[A-Z][A-Za-z ]{2,30}) Error: ", "", sentence).rstrip("!.; ")
    hint = next((found for each in hints if (found := _near(each))), None)
    return sentence[:1].lower() + sentence[1:], hint, int(place[1]) if place else None


def _near(hint: str) -> str | None:
    found = re.match(r"(?:Did you mean|Candidate bindings:)\s*(.+)", hint)
    names = re.findall(r'"([^"]+)"', found[1]) if found else []
    return f"did you mean {', '.join(f'`{name}`' for name in names[:3])}?" if names else None


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
