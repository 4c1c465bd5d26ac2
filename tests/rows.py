"""Helpers for the tests of the five context strategies: a failing workflow, a plan, and requests compared with a golden file.

UPDATE_GOLDEN=1 pytest tests/acceptance/test_rows_*.py      rewrites the golden files, to be reviewed
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.chats import Chats, words_of
from tests.command import Project

GOLDEN = Path(__file__).parent / "acceptance" / "golden" / "conversation"
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

SUM_UP = "Sum up"
"""The beginning of the instructions of a request for a summary."""

LONG = """\
version: 1
name: Add up the prices
nodes:
  - {id: parts, type: transform, expr: ["12.50", "8.00", "n/a"]}
  - {id: total, type: transform, expr: "{{ parts | map('number') | sum }}"}
  - {id: notes, type: transform, expr: "NOTES"}
output: "{{ total }}"
""".replace("NOTES", " ".join(f"line {number} of the notes" for number in range(400)))
"""A workflow whose step `total` fails, and which is longer than the output of one call may be."""

PLAN = {
    "overall_goal": "Add up all prices",
    "current_phase": "Fix",
    "phases": [
        {
            "phase_name": "Fix",
            "status": "in_progress",
            "tasks": [
                {"task_id": "guard", "description": "Leave out what is no number", "status": "pending", "notes": None, "node_ids": ["total"]}
            ],
        }
    ],
    "blockers": [],
    "notes": None,
}  # fmt: skip

_FIXED = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "DATE"),
    (re.compile(r"[\d,]+ tokens in  [\d,]+ out"), "N tokens in  N out"),
    (re.compile(r"[\d,]+ tokens, "), "N tokens, "),
    (re.compile(r"\$\d[\d.,]*\d"), "$N"),
    (re.compile(r"\b\d+\.\d s\b"), "T s"),
    (re.compile(r"(?:Each price counts\. ?){20,}"), "(Each price counts, often) "),
    (re.compile(r"the last \d+ words had no room"), "the last N words had no room"),
)
_WORDS = re.compile(r"\b\d+ words at the most")
"""They follow from the size of what is summed up, in which ids and times vary."""

_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_FILLED = re.compile(r"(?:(?:word|so) ){20,}")


def begun(project: Project, text: str = LONG) -> str:
    """The project with a failed run: its id."""
    project.write("long.yaml", text)
    project.runops("run", "long.yaml", "--quiet")
    return project.runs()[-1]["id"]


def agrees(chats: Chats, name: str, *, together: bool = False) -> None:
    """Check the requests against the golden file of that name; ``together``: delegates work concurrently."""
    file, found = GOLDEN / f"{name}.json", _record(chats, together=together)
    if UPDATE:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8")), f"not what stands in {file.name}"


def talked(chats: Chats) -> list[list[str]]:
    """The messages of each request except those for summaries."""
    return [words_of(body) for body in chats.bodies() if not is_for_summary(body)]


def summaries(chats: Chats) -> list[list[str]]:
    """The messages of each request for a summary."""
    return [words_of(body) for body in chats.bodies() if is_for_summary(body)]


def is_for_summary(body: dict[str, Any]) -> bool:
    """True if that request asks for a summary."""
    return body["instructions"].startswith(SUM_UP)


def last(chats: Chats) -> list[str]:
    """The messages of the newest request."""
    return words_of(chats.bodies()[-1])


def said(words: Sequence[str]) -> list[str]:
    """The messages of the conversation, without the state beside it."""
    return [each for each in words if not each.startswith("developer: ")]


def rendered(words: Sequence[str]) -> str:
    """The state beside the conversation, or empty. It is one message, the last one."""
    found = [each for each in words if each.startswith("developer: ")]
    assert found in ([], [words[-1]])
    return found[0].removeprefix("developer: ") if found else ""


def parts_of(words: Sequence[str]) -> dict[str, str]:
    """The parts of the state beside the conversation, by their names."""
    parts = re.split(r"^## (.+)$", rendered(words), flags=re.MULTILINE)
    assert parts[0] == ""
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _record(chats: Chats, *, together: bool) -> dict[str, Any]:
    """The requests without parts that vary by day and place. A request that begins like the one before it is shortened to the rest."""
    prompts: list[str] = []
    tools: list[list[str]] = []
    requests: list[dict[str, Any]] = []
    for body in chats.bodies():
        instructions = _WORDS.sub("N words at the most", body["instructions"])
        if instructions not in prompts:
            prompts.append(instructions)
        if (offered := [each["name"] for each in body.get("tools") or ()]) not in tools:
            tools.append(offered)
        requests.append({
            "instructions": prompts.index(instructions),
            "tools": tools.index(offered),
            "store": body["store"],
            "follows": body.get("previous_response_id"),
            "input": words_of(body),
        })  # fmt: skip
    # Requests of concurrent delegates come in any order.
    alike = [sorted(each, key=json.dumps) for _, each in itertools.groupby(requests, lambda one: one["instructions"])]
    requests = list(itertools.chain.from_iterable(alike)) if together else requests
    before: list[str] = []
    for each in requests:
        words: list[str] = each["input"]
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, words, strict=False)))
        each["input"], before = [f"(the first {same} of before)"] * (same > 0) + words[same:], words
    found = json.dumps({"instructions": prompts, "tools": tools, "requests": requests}, ensure_ascii=False)
    found = _FILLED.sub(lambda words: f"({words[0].split()[0]} × {words[0].count(' ')}) ", found)
    for pattern, fixed in _FIXED:
        found = pattern.sub(fixed.replace("\\", ""), found)
    known: dict[str, str] = {}
    found = _ID.sub(lambda one: known.setdefault(one[0], f"ID{len(known) + 1}"), found)
    return json.loads(found.replace(str(chats.folder), "FOLDER"))
