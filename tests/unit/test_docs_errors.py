"""docs/errors.md has each error of the source and no other, in the section of who must act."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

from nodes import errors
from tests.pages import ROOT

PAGE = ROOT / "docs" / "errors.md"
CODE = re.compile(r"[a-z]+(-[a-z]+)+")
WORD = re.compile(r"[a-z]+(-[a-z]+)*")

CLASSES = {
    name: each.who
    for name, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, errors.RunOpsError) and each is not errors.RunOpsError
}
"""The party that must act, by the class of an error."""

OWN = {"page_error": "site", "Unusable": "file", "Refused": "author", "_refused": "model", "not_written": "operator"}
"""The same for internal exceptions and helpers that become such an error."""

NO_CODES = {"apt-get", "data-testid", "install-deps", "skipped", "not-done", "system-out", "no-end"}
"""Texts in the place of a code that are none."""

SECTIONS = {
    "Mistakes in the file": "file",
    "The workflow, while it runs": "author",
    "What the workflow found": "finding",
    "The page": "site",
    "The command and its settings": "usage",
    "This machine": "setup",
    "The model": "model",
    "The budget": "budget",
    "The log": "operator",
    "A person": "paused",
    "Interrupted": "cancelled",
    "Another owner": "replaced",
    "RunOps itself": "internal",
}
"""The party that must act, by heading of the page; ``file`` is the author, before anything runs."""


def calls(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Each named call with its text arguments; a constant of the module counts as its text."""
    named = {
        each.targets[0].id: each.value
        for each in tree.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            given = [named.get(each.id, each) if isinstance(each, ast.Name) else each for each in node.args]
            yield name, [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def handed_on(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Pairs of who must act and the code, where a function receives an error class and its code."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(args=[ast.Name(id=name), ast.Constant(value=str(code)), *_]) if name in CLASSES:
                yield CLASSES[name], code
            case _:
                pass


def returned(tree: ast.AST) -> Iterator[str]:
    """Texts at the head of returned tuples of code and sentence."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and node.value.elts:
            yield from (
                each.value
                for each in ast.walk(node.value.elts[0])
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def raised() -> set[tuple[str, str]]:
    """Pairs of who must act and the code, of each error in the source."""
    found: set[tuple[str, str]] = set()
    for file in [each for folder in ("nodes", "runtime", "director") for each in ROOT.glob(f"{folder}/**/*.py")]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found |= {each for each in handed_on(tree) if CODE.fullmatch(each[1])}
        for name, texts in calls(tree):
            who = {**CLASSES, **OWN}.get(name)
            if who is not None:
                found |= {(who, text) for text in texts[:1] if WORD.fullmatch(text)}
            elif name in ("diagnostic", "Diagnostic") or file.is_relative_to(ROOT / "runtime" / "language"):
                found |= {("file", text) for text in texts if CODE.fullmatch(text)}
        if file.is_relative_to(ROOT / "runtime" / "language"):
            found |= {("file", text) for text in returned(tree) if CODE.fullmatch(text)}
    return {each for each in found if each[1] not in NO_CODES}


def entries_of_page() -> set[tuple[str, str]]:
    """The same from the page: the first cell of each table row names a code."""
    found: set[tuple[str, str]] = set()
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        who = SECTIONS.get(section.partition("\n")[0])
        if who is not None:
            found |= {(who, code) for code in re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)}
    return found


def test_every_error_has_its_entry() -> None:
    """The page has each code that the source can raise, in the section of who must act, and no other."""
    documented, wanted = entries_of_page(), raised()
    assert (sorted(wanted - documented), sorted(documented - wanted)) == ([], [])


def test_an_entry_helps() -> None:
    """Each entry has two cells with sentences: the meaning and what to do."""
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [code for code, rest in rows if rest.count(" | ") != 1 or min(map(len, rest.split(" | "))) < 12] == []
