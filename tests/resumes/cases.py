"""The cases: a workflow each, in its shapes, and its required outcome."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from nodes.values import Json
from tests.resumes.office import Office
from tests.resumes.pages import FOUND, ROWS

SECONDS = 3.0
"""Timeout of a step that waits in vain."""

_ON_PAGE = re.compile(r"(?m)(?:^(?P<margin> *))?type: browser_(?:action|query)(?=,|$)")

_CONFIRM = re.compile(r"(?ms)^ *confirm:$.*?^ *done: [^\n]*\n")

FLOWS = Path(__file__).parent / "flows"

Shape = Literal["flat", "group"]
"""``group``: the nodes between the marks of the file are one group, without checkpoints between its steps."""

SHAPES: tuple[Shape, ...] = ("flat", "group")

_RECEIPT = "  - {id: number, type: browser_query, query: text, target: {test_id: number}}"
_ORDERS = """\
  - {id: open_orders, type: browser_action, action: goto, url: "{{ inputs.base_url }}/shop/orders"}
  - {id: number, type: browser_query, query: text, target: {css: "#orders tr .c0"}}"""

_CONFIRM_FILE = """\
    confirm:
      settle: 0.2
      nodes:
        - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/files"}
        - {id: there, type: browser_query, query: text, target: {css: "#files .c1"}}
      done: "{{ there == 'new' }}\""""
_OVERWRITE = f"""\
  - {{id: send, type: browser_action, action: click, target: {{role: button, name: Upload}}, effect: read, verify: [{{visible: {{role: button, name: Overwrite}}}}]}}
  - id: overwrite
    type: browser_action
    action: click
    target: {{role: button, name: Overwrite}}
    verify: [{{text: new, target: {{css: "#files"}}}}]
{_CONFIRM_FILE}"""
_ACCEPT = f"""\
  - {{id: send, type: browser_action, action: click, target: {{role: button, name: Upload}}, effect: read}}
  - id: overwrite
    type: browser_action
    action: dialog
    answer: accept
    verify: [{{text: new, target: {{css: "#files"}}}}]
{_CONFIRM_FILE}"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A workflow on the office."""

    name: str
    flow: str
    """The file's name, without its suffix."""
    output: Json
    """The required output of every run."""
    effects: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The kind of effect of each node on the site, by its id, as the office records it. Each happens exactly once."""
    left: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The required content of the office's record besides the effects."""
    fill: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Replacements for words of the file."""
    confirms: bool = True
    """True if its effects keep their `confirm`; otherwise a person is asked."""
    shapes: tuple[Shape, ...] = SHAPES

    def text(self, shape: Shape) -> str:
        """The workflow file in this shape."""
        text = (FLOWS / f"{self.flow}.yaml").read_text()
        for word, by in self.fill.items():
            assert word in text, word
            text = text.replace(word, by)
        if not self.confirms:
            text = _CONFIRM.sub("", text)
        text = _ON_PAGE.sub(_bounded, text)
        return _grouped(text) if shape == "group" else text

    def happened(self, office: Office, path: str) -> bool:
        """The truth about the effect of the step at ``path``."""
        kind = self.effects.get(path.rpartition("/")[2])
        return kind is not None and office.times(kind) > 0


def _bounded(step: re.Match[str]) -> str:
    """The type of a step, and its timeout on the same line or on the next."""
    return (
        f"{step[0]}, timeout: {SECONDS:g}"
        if step["margin"] is None
        else f"{step[0]}\n{step['margin']}timeout: {SECONDS:g}"
    )


def _grouped(text: str) -> str:
    """The file with a group instead of each part between two marks."""
    lines: list[str] = []
    part: list[str] | None = None
    groups = 0
    for line in text.splitlines():
        if line == "  # group":
            groups, part = groups + 1, []
        elif line == "  # end":
            assert part is not None
            lines += [f"  - id: group_{groups}", "    type: group", "    nodes:"]
            lines.append(textwrap.indent("\n".join(part), "    "))
            part = None
        else:
            (lines if part is None else part).append(line)
    return "\n".join(lines) + "\n"


_ABOUT = "An office in the rain."

_CONFIRMED = [
    Case(name="list", flow="list", output={"count": 47, "names": [*ROWS]}),
    # Without a `verify` a restart of the list goes unnoticed.
    Case(
        name="list-trusting",
        flow="list",
        fill={'        verify: [{text: "Page {{ loop.index + 1 }}", target: {test_id: page}}]\n': ""},
        output={"count": 47, "names": [*ROWS]},
    ),
    Case(
        name="search",
        flow="search",
        output={
            "found": [{"name": each} for each in FOUND["blue"]],
            "first": "Blue chair",
            "said": "3 found",
            "place": _ABOUT,
            "looked_up": [{"name": each} for each in FOUND["red"]],
            "count": 2,
        },
    ),
    # As the docs advise: after an effect a `goto`.
    Case(
        name="shop",
        flow="shop",
        fill={"  # NEXT": _ORDERS},
        output={"number": "1001", "place": _ABOUT},
        effects={"order": "order"},
        left={"basket": []},
    ),
    Case(
        name="shop-receipt",
        flow="shop",
        fill={"  # NEXT": _RECEIPT},
        output={"number": "1001", "place": _ABOUT},
        effects={"order": "order"},
        left={"basket": []},
    ),
    Case(
        name="notes",
        flow="notes",
        output={
            "text": "The text of the note.",
            "heading": "Note beta",
            "draft": "Draft seven",
            "filed": [{"number": "6", "text": "Draft six"}, {"number": "7", "text": "Draft seven"}],
        },
        effects={"rename": "rename", "file": "file"},
        left={"notes": ["beta"], "drafts": ["8"]},
    ),
    Case(
        name="canvas",
        flow="canvas",
        output={"triggers": 0, "timers": 0, "nodes": ["trigger", "timer"]},
        effects={"save": "save"},
        left={"canvas": ["trigger", "timer"]},
    ),
    Case(
        name="registry",
        flow="registry",
        output={"registered": True, "before": 1, "after": 2, "place": _ABOUT},
        effects={"register": "register"},
        left={"servers": ["alpha", "omega"]},
    ),
    Case(
        name="files",
        flow="files",
        fill={"ASK": "page", "  # ANSWER": _OVERWRITE},
        output={"files": [{"name": "report.txt", "text": "new"}]},
        effects={"overwrite": "upload"},
        left={"files": {"report.txt": "new"}},
    ),
    Case(
        name="files-question",
        flow="files",
        fill={"ASK": "browser", "  # ANSWER": _ACCEPT},
        output={"files": [{"name": "report.txt", "text": "new"}]},
        effects={"overwrite": "upload"},
        left={"files": {"report.txt": "new"}},
    ),
    Case(
        name="job",
        flow="job",
        output={"parts": 3, "names": [{"name": "one"}, {"name": "two"}, {"name": "three"}], "place": _ABOUT},
        effects={"start": "job"},
    ),
    Case(
        name="payments",
        flow="payments",
        output={"state": "paid", "place": _ABOUT},
        effects={"pay": "pay"},
    ),
    Case(
        name="desk",
        flow="desk",
        output={"tickets": [{"subject": "Rain"}], "place": _ABOUT},
        effects={"ticket": "ticket"},
    ),
    Case(
        name="app",
        flow="app",
        output={"open": [{"number": "1", "state": "open"}], "count": 1},
        effects={"save": "close"},
    ),
]  # fmt: skip

CASES = [
    *_CONFIRMED,
    *(
        dataclasses.replace(each, name=f"{each.name}-asked", confirms=False)
        for each in _CONFIRMED
        if each.name in ("shop", "notes", "payments")
    ),
]

BY_NAME: Mapping[str, Case] = {each.name: each for each in CASES}
