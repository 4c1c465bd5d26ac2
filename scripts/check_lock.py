"""Refuses a lock (requirements.lock, tests/miniwob.lock) that is not a plain list of pinned, hashed requirements.

A lock that names an index, a host or a path works on one machine only, and reveals something about it. So every line
that is not `name==version --hash=sha256:...` is refused, whatever it contains. A lock that does not fit the project
file is refused, too.
"""

import pathlib
import re
import sys
import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REQUIREMENT = re.compile(
    r"""
    (?P<name> [A-Za-z0-9][A-Za-z0-9._-]* )
    == (?P<version> [0-9][0-9A-Za-z.!]* )            # no wildcard, and no local version: those come from no public index
    (?: \s* ; \s* [\w\s.'"=<>!()]+? )?               # a marker
    (?: \s+ --hash=sha256:[0-9a-f]{64} )+
    """,
    re.VERBOSE,
)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line, joined with its continuation lines, and the number of the first one."""
    parts: list[str] = []
    first = 1
    for number, line in enumerate(text.splitlines(), start=1):
        if not parts:
            first = number
        parts.append(line.removesuffix("\\").strip())
        if not line.endswith("\\"):
            yield first, " ".join(parts).strip()
            parts = []
    if parts:
        yield first, " ".join(parts).strip()


def check(lock: str, project: str | None = None) -> list[str]:
    """Return the problems of the text of a lock, compared with the text of its pyproject.toml if it has one."""
    problems: list[str] = []
    pinned: dict[str, list[str]] = {}
    for number, line in logical_lines(lock):
        found = REQUIREMENT.fullmatch(line)
        if found:
            pinned.setdefault(canonicalize_name(found["name"]), []).append(found["version"])
        elif line:
            shown = line if len(line) <= 60 else line[:60] + " …"
            problems.append(f"{number}: not `name==version` with sha256 hashes: {shown}")

    if project is None:
        return problems
    table = tomllib.loads(project)["project"]
    for text in [*table["dependencies"], *table["optional-dependencies"]["dev"]]:
        wanted = Requirement(text)
        versions = pinned.get(canonicalize_name(wanted.name), [])
        if not versions:
            problems.append(f"{wanted.name} is in pyproject.toml but not here")
        problems += [
            f"{wanted.name}=={version} does not fit `{wanted}` of pyproject.toml"
            for version in versions
            if not wanted.specifier.contains(version, prereleases=True)
        ]
    return problems


def main() -> int:
    """Check the lock of this checkout."""
    root = pathlib.Path(__file__).parent.parent
    problems = check((root / "requirements.lock").read_text(), (root / "pyproject.toml").read_text())
    for problem in problems:
        print(f"requirements.lock: {problem}", file=sys.stderr)
    if problems:
        print("  make it again:  make lock", file=sys.stderr)
    pages = check((root / "tests" / "miniwob.lock").read_text())
    for problem in pages:
        print(f"tests/miniwob.lock: {problem}", file=sys.stderr)
    return 1 if problems or pages else 0


if __name__ == "__main__":
    sys.exit(main())
