"""DuckDB without files, network and extensions, for statements that we did not write."""

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
"""No files, network, extensions or spill files, and no Python variables as tables; the configuration is locked."""

THREADS = 2
NARROW = "narrow it: WHERE, GROUP BY or LIMIT"  # fix for a statement over a limit


def connect(megabytes: int) -> duckdb.DuckDBPyConnection:
    """Open an empty database in memory with a limit of about ``megabytes`` and no access to anything outside."""
    import duckdb  # costs 150 ms, and most commands need none

    return duckdb.connect(":memory:", config={**LOCKED, "memory_limit": f"{megabytes}MiB", "threads": str(THREADS)})


def error_text(error: Exception) -> tuple[str, str | None, int | None]:
    """Return DuckDB's message, its suggestion of a similar name, and the line in the statement; each text on one line."""
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
    """Return a name quoted for SQL, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'
