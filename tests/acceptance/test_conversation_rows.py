"""The five ways of managing a window, each as a conversation through the command with a fake server: what it was asked is what stands in golden files.

UPDATE_GOLDEN=1 pytest tests/acceptance/test_conversation_rows.py      writes them anew, to be read before they are kept
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime import window
from runtime.testing import scripted
from runtime.testing.scripted import Answer, Asked, call, incomplete, text
from tests.chats import Chats, text_of, typed, words_of
from tests.command import Project

GOLDEN = Path(__file__).parent / "golden" / "conversation"
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

LONG = """\
version: 1
name: Add up the prices
nodes:
  - {id: parts, type: transform, expr: ["12.50", "8.00", "n/a"]}
  - {id: total, type: transform, expr: "{{ parts | map('number') | sum }}"}
  - {id: notes, type: transform, expr: "NOTES"}
output: "{{ total }}"
""".replace("NOTES", " ".join(f"line {number} of the notes" for number in range(400)))
"""A workflow whose step `total` fails, and which is longer than a model is told of one call."""

PLAN = {
    "overall_goal": "Add up all prices",
    "current_phase": "Mend",
    "phases": [
        {
            "phase_name": "Mend",
            "status": "in_progress",
            "tasks": [
                {"task_id": "guard", "description": "Leave out what is no number", "status": "pending", "notes": None, "node_ids": ["total"]}
            ],
        }
    ],
    "next_actions": [],
    "blockers": [],
    "notes": None,
}  # fmt: skip

_FIXED = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "DATE"),
    (re.compile(r"[\d,]+ tokens in  [\d,]+ out"), "N tokens in  N out"),
    (re.compile(r"\$\d[\d.,]*"), "$N"),
    (re.compile(r"\b\d+\.\d s\b"), "T s"),
)
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Conversations in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def begun(project: Project) -> str:
    """The project with a run that has failed: its id."""
    project.write("long.yaml", LONG)
    project.runops("run", "long.yaml", "--quiet")
    return project.runs()[-1]["id"]


def record(chats: Chats, *, together: bool = False) -> dict[str, Any]:
    """What the server was asked, without what differs from day to day and from place to place; ``together``: in which delegates work at the same time."""
    prompts: list[str] = []
    requests: list[dict[str, Any]] = []
    for body in chats.bodies():
        if body["instructions"] not in prompts:
            prompts.append(body["instructions"])
        requests.append({
            "instructions": prompts.index(body["instructions"]),
            "tools": [each["name"] for each in body.get("tools") or ()],
            "store": body["store"],
            "follows": body.get("previous_response_id"),
            "input": words_of(body),
        })  # fmt: skip
    # Those of delegates that work at the same time come in any order.
    alike = [sorted(each, key=json.dumps) for _, each in itertools.groupby(requests, lambda one: one["instructions"])]
    requests = list(itertools.chain.from_iterable(alike)) if together else requests
    told = json.dumps({"instructions": prompts, "requests": requests}, ensure_ascii=False)
    for pattern, fixed in _FIXED:
        told = pattern.sub(fixed.replace("\\", ""), told)
    known: dict[str, str] = {}
    told = _ID.sub(lambda found: known.setdefault(found[0], f"ID{len(known) + 1}"), told)
    return json.loads(told.replace(str(chats.folder), "FOLDER"))


def agrees(chats: Chats, name: str, *, together: bool = False) -> None:
    """What the server was asked stands in the golden file of that name."""
    file, found = GOLDEN / f"{name}.json", record(chats, together=together)
    if UPDATE:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8")), f"not what stands in {file.name}"


def last(chats: Chats) -> list[str]:
    """The words of the newest request."""
    return words_of(chats.bodies()[-1])


# 1.


def unified(asked: Asked) -> Answer:
    """What the model of the first row answers: it reads on in an output that was cut."""
    newest = asked.newest
    if "line 300 of the notes" in newest:
        return text("It adds up prices, and has notes.")
    if "line 0 of the notes" in newest:
        cut = re.search(r"@state/[\w./:#-]*\w", newest)
        assert cut is not None
        return call("read_state", {"path": cut[0], "start": 4000, "end": 9000})
    if "What does it do?" in newest:
        return call("get_workflow_nodes", {"which": "all", "type": None})
    if "Why did it fail?" in newest:
        return incomplete("The step `total` met ")
    return text("`n/a`, which is no number." if "continue" in newest else "You are welcome.")


UNIFIED = [
    ("max_messages_80", ()),
    ("max_messages_4", ("--max-messages", "4")),
    ("max_chars_400", ("--max-chars", "400")),
    ("no_tool_results", ("--no-tool-results",)),
    ("no_events", ("--no-events",)),
]


@pytest.mark.parametrize(("name", "flags"), UNIFIED, ids=[name for name, _flags in UNIFIED])
def test_unified_log_across_modes(name: str, flags: tuple[str, ...], chats: Chats) -> None:
    """Words, tools with a preview and a range of their output, a run, an answer that broke off and goes on, three modes and two processes: one log, one window."""
    project = chats.answers(unified)
    project.write("long.yaml", LONG)
    first = "What does it do?\n/run\nWhy did it fail?\n/mode agent\ncontinue\n"
    assert typed(project, first, "chat", "long.yaml", "--mode", "chat", *flags).returncode == 0
    done = typed(project, "/mode run\nThanks.\n", "chat", "--resume", "last")
    assert (done.returncode, done.stdout) == (0, "You are welcome.\n")
    agrees(chats, f"unified_log-{name}")
    bodies, words = chats.bodies(), last(chats)
    assert len({body["instructions"] for body in bodies}) == 3
    assert len({json.dumps(body["tools"]) for body in bodies}) == 1
    assert "user: Thanks." in words
    events = [each for each in words if "/run" in each and "failed at total" in each]
    partial = [each for each in words if "The step `total` met" in each and "LLM_ERROR" in each]
    match name:
        case "max_messages_80":
            assert "user: What does it do?" in words
            assert events
            assert partial
            assert any("line 300 of the notes" in each for each in words)
        case "max_messages_4":
            spoken = [each for each in words if not each.startswith("developer")]
            assert len(spoken) <= 4
            assert "What does it do?" not in str(words)
        case "max_chars_400":
            assert sum(len(each.partition(": ")[2]) for each in words if not each.startswith("developer")) <= 400
        case "no_tool_results":
            assert "user: What does it do?" in words
            assert not any("line 300 of the notes" in each for each in words)
            assert any("@state/" in each for each in words)
        case _:
            assert partial
            assert not events


# 2.


def injected(asked: Asked) -> Answer:
    """What the model of the second row answers."""
    if "Sum up" in asked.instructions:
        return text("The prices are to be added up; `n/a` is left out (decided). Node `total`.")
    if "Plan it." in asked.newest:
        unit = call("set_variable", {"name": "unit", "value": '"EUR"', "reason": "asked"})
        return call("update_plan", {"plan": PLAN, "reason": "begun"}) + unit
    return text("Yes. " + "The price of each thing counts. " * 12)


INJECTED = [
    ("injected", ("--strategy", "injected")),
    ("hybrid", ("--strategy", "hybrid")),
    ("compress_at_2900", ("--strategy", "injected", "--compress-at", "2900", "--warn-at", "2500")),
]


@pytest.mark.parametrize(("name", "flags"), INJECTED, ids=[name for name, _flags in INJECTED])
def test_injected_six_parts(name: str, flags: tuple[str, ...], chats: Chats) -> None:
    """System prompt, plan, outline, variables, browser state and history in each request, the state last, fresh, and in no log; where it grows, a warning and then a summary."""
    project = chats.answers(injected)
    run = begun(project)
    said = "Plan it.\n" + "".join(f"Question {number}?\n" for number in range(1, 9))
    done = typed(project, said, "chat", run, "--mode", "agent", *flags)
    assert done.returncode == 0, done.stderr
    agrees(chats, f"injected_six_parts-{name}")
    state = last(chats)[-1]
    assert state.startswith("developer: ")
    parts = re.findall(r"^## (.+)$", state.removeprefix("developer: "), re.MULTILINE)
    warned, summed = (
        "the window fills" in done.stderr,
        "Sum up" in str([body["instructions"] for body in chats.bodies()]),
    )
    if name == "hybrid":
        assert parts == ["status", "plan"]
    else:
        assert parts == ["plan", "outline", "variables", "browser state"]
        assert 'unit = "EUR"' in state
        assert "Leave out what is no number" in state
        assert "total" in state
    assert (warned, summed) == ((True, True) if name == "compress_at_2900" else (False, False))
    if summed:
        assert "left out (decided)" in str(last(chats))
        assert "user: Question 1?" not in last(chats)
    for file in (project.folder / ".runops").rglob("*"):
        assert not file.is_file() or b"## outline" not in file.read_bytes()


# 3.

GETS: list[tuple[str, dict[str, Any]]] = [
    ("get_workflow_summary", {}),
    ("get_workflow_nodes", {"which": "1-2", "type": "transform"}),
    ("get_workflow_nodes", {"which": "recent", "type": None}),
    ("get_workflow_variables", {"key": None}),
    ("get_workflow_variables", {"key": "parts"}),
    ("get_current_plan", {}),
    ("get_workflow_description", {}),
    ("get_browser_state", {}),
]


def clean(asked: Asked) -> Answer:
    """What the model of the third row answers."""
    if "Sum up" in asked.instructions:
        return text("Everything about the run was asked, and answered.")
    if "Look at all" in asked.newest:
        calls = [call(name, arguments) for name, arguments in GETS]
        return sum(calls[1:], calls[0])
    return text(f"Answer {sum(item.get('role') == 'assistant' for item in asked.items) + 1}.")


CLEAN = [
    ("clean", ("--strategy", "clean"), {}),
    ("injected", ("--strategy", "injected"), {}),
    ("chained", ("--strategy", "clean"), {"RUNOPS_MODEL_STORE": "true"}),
    ("not_chained", ("--strategy", "injected"), {"RUNOPS_MODEL_STORE": "true"}),
    ("checkpoint", ("--strategy", "clean", "--compress-at", "2700"), {"RUNOPS_MODEL_STORE": "true"}),
]


@pytest.mark.parametrize(("name", "flags", "more"), CLEAN, ids=[each[0] for each in CLEAN])
def test_clean_with_retrieval_tools(name: str, flags: tuple[str, ...], more: dict[str, str], chats: Chats) -> None:
    """Nothing of the state is told, each part has its tool; where the server keeps what it is sent only what is new is sent, until a summary begins a new chain; and where it has lost it, the whole."""
    project = chats.answers(clean, **more)
    run = begun(project)
    done = typed(project, "Look at all.\nSecond?\nThird?\n", "chat", run, *flags)
    assert done.returncode == 0, done.stderr
    assert chats.server is not None
    chats.server.forget()
    done = typed(project, "Fourth?\n", "chat", "--resume", "last")
    assert done.returncode == 0, done.stderr
    agrees(chats, f"clean_with_retrieval_tools-{name}")
    bodies = [body for body in chats.bodies() if "Sum up" not in body["instructions"]]
    told = any(each.startswith("developer: ") for body in bodies for each in words_of(body))
    assert told == ("injected" in flags)
    # What stands before the word are the steps of the run itself.
    read = words_of(bodies[1])
    read = read[read.index("user: Look at all.") :] if "user: Look at all." in read else read
    assert sum(each.startswith("output: ") for each in read) == len(GETS)
    assert "expression-failed" in str(read) or name == "checkpoint"
    follows = [body.get("previous_response_id") is not None for body in bodies]
    match name:
        case "chained":
            assert follows[:4] == [False, True, True, True]
            assert words_of(bodies[3]) == ["user: Third?"]
            assert "user: Look at all." in words_of(bodies[-1])
        case "checkpoint":
            assert any("Everything about the run was asked" in str(words_of(body)) for body in bodies)
            # The new chain, which the server has lost, and then the whole.
            assert follows[-2:] == [True, False]
        case _:
            assert not any(follows)
            assert "user: Look at all." in words_of(bodies[3])


# 4.

KNOWLEDGE = """\
# Prices
Prices are in euro, and `n/a` stands for none.
# Shipping
Shipping is free from 50 euro.
# Returns
Returns take 14 days; the price is paid back.
# Opening hours
From nine to five.
"""


def strict(asked: Asked) -> Answer:
    """What the model of the fourth row answers."""
    if "Sum up" in asked.instructions:
        return text("The colour was asked for: it is blue (decided).")
    return text("It is so, and it was so before. " * 6)


STRICT = [
    ("1500", ("--strict",)),
    ("900", ("--hard-limit", "900")),
    ("prune", ("--strict", "--overflow", "prune")),
    ("min_recent_1", ("--strict", "--min-recent", "1")),
    ("top_k_1", ("--strict", "--top-k", "1")),
    ("top_k_0", ("--strict", "--top-k", "0")),
]


@pytest.mark.parametrize(("name", "flags"), STRICT, ids=[name for name, _flags in STRICT])
def test_strict_budget(name: str, flags: tuple[str, ...], chats: Chats) -> None:
    """A hard limit on the whole request, knowledge by keyword, and what does not fit summed up or left out; too large a word is not sent, and all of it is saved."""
    project = chats.answers(strict)
    project.write("shop.md", KNOWLEDGE)
    (folder := project.folder / "known").mkdir()
    (project.folder / "shop.md").rename(folder / "shop.md")
    limit = 900 if name == "900" else window.STRICT
    said = "".join(f"What about thing {number}, its price and its returns?\n" for number in range(1, 15))
    said += "word " * 2_000 + "\nWhat do prices and returns say?\n/save all.md\n"
    done = typed(project, said, "chat", "--strategy", "clean", "--knowledge", "known", *flags)
    assert done.returncode == 0, done.stderr
    agrees(chats, f"strict_budget-{name}")
    assert "error[window-too-large]" in done.stderr
    bodies = chats.bodies()
    assert not any("word word" in text_of(body) for body in bodies)
    sizes = [int(found.replace(",", "")) for found in re.findall(r"window ([\d,]+) of", done.stderr)]
    assert len(sizes) == 15
    assert max(sizes) <= limit
    assert all(str(body["input"]).count("What do prices and returns say?") == 1 for body in bodies[-1:])
    summed = any("Sum up" in body["instructions"] for body in bodies)
    assert summed == ("prune" not in flags)
    told = next((each for each in last(chats) if each.startswith("developer: ")), "")
    sections = re.findall(r"^## (?:developer: )?.*shop\.md: (\w+)", told.removeprefix("developer: "), re.MULTILINE)
    assert len(sections) == {"top_k_1": 1, "top_k_0": 0}.get(name, 2)
    assert "Opening" not in sections
    saved = (project.folder / "all.md").read_text()
    assert "What about thing 1, its price" in saved


# 5.


def delegating(asked: Asked) -> Answer:
    """What the model of the fifth row answers, and what its delegates do."""
    newest = asked.newest
    if "Say 1" in newest:
        return text("One.")
    if "Say 2" in newest:
        return text("Two.")
    if "Fail" in newest:
        return scripted.refusal("I will not.")
    if "Send one that inherits" in newest:
        return call("delegate", {"task": "Say 1", "context": "inherit", "reason": "asked"})
    if "Send one" in newest:
        return call("delegate", {"task": "Say 1", "context": None, "reason": "asked"})
    if "Send a clean one" in newest:
        return call("delegate", {"task": "Say 1", "context": "clean", "reason": "asked"})
    if "Send three" in newest:
        tasks = ("Say 1", "Say 2", "Fail")
        calls = [call("delegate", {"task": each, "context": "clean", "reason": "asked"}) for each in tasks]
        return calls[0] + calls[1] + calls[2]
    return text("Done." if "the delegate" in newest else "I heard: the colour is blue.")


DELEGATION = [
    ("inherit", ("--delegate-inherit",), {}),
    ("clean", ("--delegate-clean",), {}),
    ("by_setting", (), {"RUNOPS_DELEGATE_CLEAN_CONTEXT": "true"}),
]


@pytest.mark.parametrize(("name", "flags", "more"), DELEGATION, ids=[each[0] for each in DELEGATION])
def test_delegation(name: str, flags: tuple[str, ...], more: dict[str, str], chats: Chats) -> None:
    """A delegate begins with its task alone or with the conversation, as its call or the default says; only its answer and its cost come back, also of one that failed."""
    project = chats.answers(delegating, **more)
    words = ("The colour is blue.", "Send one.", "Send a clean one.", "Send one that inherits.", "Send three.", "/cost")
    done = typed(project, "\n".join(words) + "\n", "chat", "--mode", "agent", *flags)
    assert done.returncode == 0, done.stderr
    agrees(chats, f"delegation-{name}", together=True)
    bodies = chats.bodies()
    described = next(each["description"] for each in bodies[0]["tools"] if each["name"] == "delegate")
    is_clean = name != "inherit"
    assert ("can be understood by itself" in described) == is_clean
    sent = [words_of(body) for body in bodies if "user: Say 1" in words_of(body)]
    assert ["The colour is blue." in str(each) for each in sent] == [not is_clean, False, True, False]
    outputs = [each for each in last(chats) if each.startswith("output: ")]
    assert len(outputs) == 6
    assert all("the delegate took 1 request" in each or "the delegate failed" in each for each in outputs)
    assert "One." in outputs[0]
    assert "model-refused" in outputs[-1]
    costs = done.stdout.splitlines()
    assert sum("_delegate" in each for each in costs) == 6
    assert re.search(r"^all +15 requests", done.stdout, re.MULTILINE)
