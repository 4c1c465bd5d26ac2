"""Refuses invented words for which the field has one, in names and in texts.

The list is that of docs/glossary.md the other way round: the replaced word, and the one to use.
"""

import io
import pathlib
import re
import subprocess
import sys
import tokenize

EVERYWHERE = {
    "asker": "requester",
    "deed": "action, or side effect",
    "deeds": "actions, or side effects",
    "journal": "log, or log writer",
    "mend": "fix, or patch",
    "mended": "fixed, or patched",
    "mending": "fixing, or patching",
    "mends": "fixes, or repairs",
    "misfit": "mismatch",
    "purse": "allowance",
    "workshop": "build context",
}
"""Words allowed neither in names nor in texts, each with the word to use."""

NAMES = {
    "circumstances": "page state",
    "complaints": "page errors",
    "desk": "session state, or download manager",
    "fitness": "environment checks",
    "holes": "placeholders",
    "inquiry": "diagnosis",
    "judgement": "verdict",
    "kit": "toolset",
    "kits": "toolsets",
    "manner": "options",
    "outfit": "config",
    "patience": "deadline",
    "pen": "writer",
    "seat": "turn options",
    "surroundings": "leaf context",
    "voided": "invalidated",
    "ward": "guarded target",
    "wish": "goal",
}
"""Words allowed in texts, but not in names, each with the word to use."""

EXCEPTIONS = {
    ("scripts/check_words.py", ""): "the list itself",
    ("docs/glossary.md", ""): "may name what a term replaces",
    ("tests/acceptance/test_secrets.py", "misfit"): "the id of a node in a test's workflow",
    ("workflows/shop/store.py", "journal"): "SQLite's own word",
    ("docs/builds/radicale-calendar/workflow.build.md", "journal"): "the words of the site",
    ("tests/unit/test_shop.py", "desk"): "the desk of the demo shop",
}
"""Allowed files and words, each with the reason; an empty word means all words."""

DESK_SITE = re.compile(r"^tests/(?:traps|integration/traps|drift|builds)/|_desk\b|\bdesk_")
"""Places of the word *desk* for the support desk, a site of the tests."""

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def allowed(name: str, word: str) -> bool:
    """Return whether the word is allowed in the file."""
    return (name, "") in EXCEPTIONS or (name, word) in EXCEPTIONS


def names_of(text: str) -> list[tuple[int, str]]:
    """Return the names of a Python file, each with its line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.NAME]


def check(name: str, text: str) -> list[str]:
    """Return the replaced words in a file, with their lines."""
    found = [
        f"{name}:{number}: `{word}`: say {EVERYWHERE[word]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for word in re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])|\\n", " ", line).lower())
        if word in EVERYWHERE and not allowed(name, word)
    ]
    named = names_of(text) if name.endswith(".py") else []
    found += [
        f"{name}:{number}: the name `{identifier}`: say {NAMES[word]}"
        for number, identifier in named
        for word in map(str.lower, PARTS.findall(identifier))
        if word in NAMES
        and not allowed(name, word)
        and not (word == "desk" and DESK_SITE.search(f"{name} {identifier}"))
    ]
    return found


def main() -> int:
    """Check every tracked file with names or texts."""
    root = pathlib.Path(__file__).parents[1]
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    files = [
        each for each in listed.splitlines() if each.endswith((".py", ".md", ".toml", ".sh")) or each == "Makefile"
    ]
    problems = [problem for each in files for problem in check(each, (root / each).read_text(encoding="utf-8"))]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
