"""Refuses tracked files that name a place on one machine, and top-level packages that are not planned.

A path of one machine or the address of a private registry works nowhere else. The import names are generic, and a new
one may hide another's module: so they are few, and listed here.
"""

import pathlib
import re
import subprocess
import sys
import tomllib

PACKAGES = {"director", "nodes", "runtime", "tests", "workflows"}

# Each pattern is written so that it does not match its own text.
FORBIDDEN = {
    # The lookbehind excludes relative paths, addresses and patterns of addresses.
    "a path of one machine": re.compile(r"(?<![\w.~*}-])/(?:(?:work|root)|(?:home|Users)/[\w.-]+)/"),
    "a mark of a merge": re.compile(r"^[ \t]*(?:<{7}|>{7}) \w", re.MULTILINE),
    "the address of a package registry": re.compile(
        r"""
        \bpypi\.org (?! /project/ )              # the page of a project is a fine link
        | \bpythonhosted\.org
        | \b(?: artifactory | devpi | nexus | pypi | registry ) [\w-]* \. (?!org\b) [\w-]+ \. [a-z]
        | https?://[^\s"']+/simple \b            # how the address of an index ends
        | --(?:extra-)?index[-]url \b
        """,
        re.VERBOSE | re.IGNORECASE,
    ),
}


def tracked(root: pathlib.Path) -> list[str]:
    """Return the files that git tracks, as paths from the root with forward slashes."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def check_text(name: str, text: str) -> list[str]:
    """Return the forbidden texts of a file, each with its line."""
    problems: list[str] = []
    for what, pattern in FORBIDDEN.items():
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            problems.append(f"{name}:{line}: {what}: {found[0].strip()}")
    return problems


def check_packages(names: list[str], project: str) -> list[str]:
    """Return the top-level packages that are not planned, and those whose imports are not checked."""
    watched = set(tomllib.loads(project)["tool"]["importlinter"]["root_packages"])
    found = {name.partition("/")[0] for name in names if name.endswith(".py") and "/" in name} - {"scripts", "docs"}
    return [
        *(f"{package}/: not one of the packages {', '.join(sorted(PACKAGES))}" for package in sorted(found - PACKAGES)),
        *(
            f"pyproject.toml: tool.importlinter.root_packages lacks {package}"
            for package in sorted((found & PACKAGES) - watched)
        ),
    ]


def main() -> int:
    """Check the files of this checkout."""
    root = pathlib.Path(__file__).parent.parent
    names = tracked(root)
    problems = check_packages(names, (root / "pyproject.toml").read_text())
    for name in names:
        content = (root / name).read_bytes()
        if b"\0" not in content:
            problems += check_text(name, content.decode(errors="replace"))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
