"""The helper functions of exported files; a file has only those that it calls."""

from __future__ import annotations

import dataclasses
import functools
import re


@dataclasses.dataclass(frozen=True, slots=True)
class Helper:
    text: str
    modules: tuple[str, ...] = ()
    """What it needs besides what its text names: other helpers, or modules."""


IMPORTS = {
    "csv": "import csv",
    "datetime": "import datetime",
    "hashlib": "import hashlib",
    "json": "import json",
    "os": "import os",
    "re": "import re",
    "time": "import time",
    "uuid": "import uuid",
    "Callable": "from collections.abc import Callable",
    "Iterator": "from collections.abc import Iterator",
    "contextmanager": "from contextlib import contextmanager",
    "Path": "from pathlib import Path",
    "Any": "from typing import Any",
    "quote": "from urllib.parse import quote",
    "urljoin": "from urllib.parse import urljoin",
    "pytest": "import pytest",
}
"""The imports of modules by the name that is used, the standard library first."""

PLAYWRIGHT = ("Dialog", "Download", "Error", "Locator", "Page", "expect")
"""Names of Playwright's sync API, in the order of an import."""

HELPERS: dict[str, str] = {
    "FAILURES": "FAILURES = (AssertionError, Error, ArithmeticError, LookupError, TypeError, ValueError)",
    "setting": '''
def setting(name: str, default: Any) -> Any:
    """Return an input. `INPUT_NAME` in the environment overrides it."""
    given = os.environ.get(f"INPUT_{name.upper()}")
    if given is None:
        return default
    return given if isinstance(default, str) else json.loads(given)
''',
    "required": '''
def required(name: str, kind: str) -> Any:
    """Return an input without a default: `INPUT_NAME` in the environment."""
    given = os.environ.get(f"INPUT_{name.upper()}")
    if given is None:
        pytest.skip(f"set INPUT_{name.upper()}")
    return given if kind == "string" else json.loads(given)
''',
    "secret": '''
def secret(name: str) -> str:
    """Return a secret: the variable with its name in the environment."""
    value = os.environ.get(name)
    if not value:
        pytest.fail(f"set {name} in the environment", pytrace=False)
    return value
''',
    "words": '''
def words(text: str) -> re.Pattern[str]:
    """Match a text as whole words: "paid" is not in "unpaid"."""
    words = r"\\s+".join(re.escape(word) for word in str(text).split())
    return re.compile(rf"(?<!\\w){words}(?!\\w)")
''',
    "containing": '''
def containing(found: Locator, text: str) -> Locator:
    """Keep the elements with a text as whole words, in a part or in all of it."""
    part = found.page.get_by_text(words(text))
    return found.filter(has=part).or_(found.filter(has_text=words(text)))
''',
    "text_of": '''
def text_of(found: Locator) -> str:
    """Return what a person reads, on one line."""
    return " ".join(found.inner_text().split())
''',
    "text_if_any": '''
def text_if_any(found: Locator) -> str | None:
    """Return what a person reads, or None if the element is missing."""
    return text_of(found) if found.count() else None
''',
    "attribute_if_any": '''
def attribute_if_any(found: Locator, name: str) -> str | None:
    """Return an attribute, or None if the element is missing."""
    return found.get_attribute(name) if found.count() else None
''',
    "number": '''
def number(text: Any) -> int | float:
    """Return the one number in a text: "1,234.50 €" is 1234.5."""
    if isinstance(text, int | float):
        return text
    found = re.findall(r"[-−+]?\\s*\\d[\\d.,\\s'’]*", text)
    assert len(found) == 1, f"not one number: {text!r}"
    value = float(re.sub(r"[,\\s'’]", "", found[0].replace("−", "-")).rstrip("."))
    return int(value) if value.is_integer() else value
''',
    "integer": '''
def integer(text: str) -> int:
    """Return the one whole number in a text."""
    value = number(text)
    assert isinstance(value, int), f"no whole number: {text!r}"
    return value
''',
    "rank": '''
def rank(item: Any, key: str | None = None) -> Any:
    """Return what an item is sorted and compared by: texts without regard to case."""
    value = item if key is None else item[key]
    return value.lower() if isinstance(value, str) else value
''',
    "ordered": '''
def ordered(
    items: list[Any], key: str | None = None, reverse: bool = False
) -> list[Any]:
    """Return the items in the order of one key, or of their own."""
    return sorted(items, key=lambda item: rank(item, key), reverse=reverse)
''',
    "first": '''
def first(items: list[Any]) -> Any:
    """Return the first item."""
    return items[0]
''',
    "unique": '''
def unique(items: list[Any], key: str | None = None) -> list[Any]:
    """Return the items without those that repeat an earlier one."""
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(rank(item, key), item)
    return list(found.values())
''',
    "groups": '''
def groups(items: list[Any], key: str) -> list[dict[str, Any]]:
    """Return the items in groups by one key, in its order."""
    found: dict[Any, list[Any]] = {}
    for item in sorted(items, key=lambda item: rank(item, key)):
        found.setdefault(rank(item, key), []).append(item)
    return [{"grouper": those[0][key], "list": those} for those in found.values()]
''',
    "first_match": '''
def first_match(pattern: str, text: str, group: int | str = 0) -> str | None:
    """Return the first match of a pattern, or None."""
    found = re.search(pattern, text)
    return found[group] if found else None
''',
    "closing": '''
@contextmanager
def closing(tab: Page) -> Iterator[None]:
    """Allow an action to close its tab before Playwright has heard that it is done."""
    try:
        yield
    except Error as error:
        if not tab.is_closed() and "closed" not in str(error):
            raise
''',
    "left": '''
def left(tab: Page, opener: Page) -> Page:
    """Return a tab, or the page that opened it if the tab closes within a second."""
    try:
        tab.wait_for_event("close", timeout=1_000)
    except Error:
        return opener if tab.is_closed() else tab
    return opener
''',
    "kept": '''
def kept(path: Path) -> dict[str, Any]:
    """Describe a file."""
    content = path.read_bytes()
    return {
        "name": path.name,
        "path": str(path),
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
''',
    "save": '''
def save(path: Path, value: Any) -> dict[str, Any]:
    """Write a value to a file: .csv (of a list of dicts), .json or .txt."""
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            names = list(dict.fromkeys(name for row in value for name in row))
            rows = csv.DictWriter(file, names)
            rows.writeheader()
            rows.writerows(value)
    elif path.suffix == ".json":
        path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\\n")
    else:
        path.write_text(value)
    return kept(path)
''',
    "download": '''
def download(
    received: Download, folder: Path, name: str | None = None
) -> dict[str, Any]:
    """Save a download, and describe its file."""
    path = folder / (name or received.suggested_filename)
    received.save_as(path)
    return kept(path)
''',
    "answer_dialog": '''
def answer_dialog(
    page: Page, accept: bool, contains: str = "", answer: str | None = None
) -> list[str]:
    """Answer the next dialog if it contains a text; dismiss it otherwise.

    Return a list that gets the text of the dialog.
    """
    said: list[str] = []

    def reply(dialog: Dialog) -> None:
        if accept and contains in dialog.message:
            dialog.accept(answer)
        else:
            dialog.dismiss()
        said.append(dialog.message)

    page.once("dialog", reply)
    return said
''',
    "dialog_text": '''
def dialog_text(page: Page, said: list[str], contains: str = "") -> str:
    """Wait for a dialog that is answered, and return its text."""
    until = time.monotonic() + 30
    while not said and time.monotonic() < until:
        page.wait_for_timeout(50)
    assert said and contains in said[0], f"no dialog with {contains!r}: {said}"
    return said[0]
''',
    "read_table": '''
def read_table(found: Locator) -> list[dict[str, str]]:
    """Read a table: a dict for each row, by the headers."""
    rows = found.locator("tr").filter(visible=True).all()
    cells = [row.locator("th, td").all_inner_texts() for row in rows]
    texts = [[" ".join(cell.split()) for cell in row] for row in cells]
    return [dict(zip(texts[0], row, strict=False)) for row in texts[1:]]
''',
    "read_pages": '''
def read_pages(
    read: Callable[[], list[dict[str, Any]]], following: Locator, key: str
) -> list[dict[str, Any]]:
    """Read the rows of a list page by page, each once."""
    rows = read()
    found = {row[key]: row for row in rows}
    while following.filter(visible=True).count() and following.is_enabled():
        before, until = rows, time.monotonic() + 30
        following.click()
        while rows == before or not rows:
            assert time.monotonic() < until, "the next page has the same rows"
            following.page.wait_for_timeout(100)
            rows = read()
        for row in rows:
            found.setdefault(row[key], row)
    return list(found.values())
''',
    "cell": '''
def cell(row: dict[str, str], header: str | int) -> str:
    """Return a cell by its header, in any case, or by its number from 1."""
    if isinstance(header, int):
        return list(row.values())[header - 1]
    return {name.lower(): text for name, text in row.items()}[header.lower()]
''',
    "move_pressed": '''
def move_pressed(found: Locator, places: list[tuple[float, float]]) -> None:
    """Press the mouse at the first place in an element, and move it to the others."""
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    assert box is not None
    for number, (x, y) in enumerate(places):
        found.page.mouse.move(box["x"] + x, box["y"] + y, steps=10 if number else 1)
        if number == 0:
            found.page.mouse.down()
    found.page.mouse.up()
''',
    "drag_by": '''
def drag_by(found: Locator, x: float, y: float) -> None:
    """Drag an element from its middle."""
    box = found.bounding_box()
    assert box is not None
    left, top = box["width"] / 2, box["height"] / 2
    move_pressed(found, [(left, top), (left + x, top + y)])
''',
    "scroll_to": '''
def scroll_to(page: Page, found: Locator | None, x: float, y: float) -> None:
    """Scroll a part of the page, or the page, to a place."""
    if found is None:
        page.evaluate("([x, y]) => window.scrollTo(x, y)", [x, y])
    else:
        found.evaluate("(element, [x, y]) => element.scrollTo(x, y)", [x, y])
''',
}
"""The functions by name, in the order in which a file has them."""


@functools.cache
def needs(name: str) -> frozenset[str]:
    """Return the modules and helpers that a helper names, itself included."""
    found = {name}
    pending = [name]
    for each in pending:
        used = set(re.findall(r"\b\w+\b", re.sub(r'""".*?"""', "", HELPERS[each], flags=re.DOTALL)))
        for other in used & (IMPORTS.keys() | HELPERS.keys() | set(PLAYWRIGHT)):
            if other not in found:
                found.add(other)
                pending += [other] if other in HELPERS else []
    return frozenset(found)
