"""Exported code, run without RunOps."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

from nodes.template import Template
from runtime.export import code, expressions, helpers


class Names:
    """Names of values as Python has them, and what their code needs."""

    def __init__(self) -> None:
        self.needed: set[str] = set()

    def read(self, chain: code.Chain) -> tuple[str, code.Chain]:
        return str(chain[0]), chain[1:]

    def taken(self, name: str) -> bool:
        return False

    def need(self, helper: str) -> str:
        self.needed.add(helper)
        return helper


def value_of(text: str, **values: Any) -> Any:
    """The value of a text with references, by its translation to Python."""
    names = Names()
    translated = expressions.of(Template(text), names)
    used = set(names.needed)
    for each in names.needed & helpers.HELPERS.keys():
        used |= helpers.needs(each)
    lines = [line for name, line in helpers.IMPORTS.items() if name in used]
    lines += [text for name, text in helpers.HELPERS.items() if name in used]
    space: dict[str, Any] = dict(values)
    exec("\n".join(["from __future__ import annotations", *lines]), space)
    return eval(translated, space)


def steps_of(text: str) -> str:
    """The statements of the test in an exported file."""
    return re.sub(r".*^def test_\w+\(.*?\) -> None:\n", "", text, flags=re.DOTALL | re.MULTILINE)


def output_of(text: str, name: str, *folder: Path) -> Any:
    """The output that the test in an exported file prints; its steps touch no page."""
    space: dict[str, Any] = {"__name__": "exported", "__file__": "exported.py"}
    exec(compile(text, "exported.py", "exec"), space)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        space[name](None, *folder)
    return json.loads(printed.getvalue()) if printed.getvalue() else None
