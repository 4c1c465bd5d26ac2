"""Row 2 of the five context strategies: six parts in each request, and the reaction when they grow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.context import items
from runtime.testing.scripted_model import Answer, AskedFor, call, text
from tests.chats import Chats, text_of, typed
from tests.rows import LONG, PLAN, agrees, begun, last, parts_of, rendered, said, summaries, talked

SECRET = "correct-horse-battery"

WITH_SECRET = LONG.replace("nodes:", "secrets: [till_password]\nnodes:", 1)

KEPT = {"unit": '"EUR"', "long": json.dumps("word " * 30), "many": '["first", "second", "third"]', "none": "[]"}
"""Variables that the model sets, as JSON: one for each way of rendering."""

SUMMARY = "The prices are to be added up (aim). `n/a` is left out (decided). " + "Each price counts. " * 120


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def injected(asked: AskedFor) -> Answer:
    """A model that plans, sets variables, talks, and writes a long summary without names."""
    if asked.instructions.startswith("Sum up"):
        return text(SUMMARY)
    if "Plan it." in asked.newest:
        kept = {**KEPT, "password": json.dumps(SECRET)}
        calls = [call("set_variable", {"name": name, "value": kept[name], "reason": "asked"}) for name in kept]
        return sum(calls, call("update_plan", {"plan": PLAN, "reason": "begun"}))
    return text("Yes. " + "The price of each thing counts. " * 12)


INJECTED = ("--strategy", "injected")
SETTINGS: dict[str, tuple[str, ...]] = {
    "injected": INJECTED,
    "hybrid": ("--strategy", "hybrid"),
    "warn_at_7202": (*INJECTED, "--warn-at", "7202"),
    "compress_at_7815": (*INJECTED, "--compress-at", "7815", "--warn-at", "7392"),
    "compress_to_100": (*INJECTED, "--compress-at", "7815", "--warn-at", "7392", "--compress-to", "100"),
}
"""Settings of the row, each with a value besides its default."""


@pytest.mark.drawn(share=0.15)
@pytest.mark.parametrize("name", SETTINGS)
def test_injected_six_parts(name: str, chats: Chats) -> None:
    """System prompt, plan, outline, variables, browser state and history are in each request; the state is last, fresh, unlogged. Growth causes a warning, then a summary."""
    project = chats.answers(injected, till_password=SECRET)
    run = begun(project, WITH_SECRET)
    words = "Plan it.\n" + "".join(f"Question {number}, on order-{number}0{number}?\n" for number in range(1, 9))
    done = typed(project, words, "chat", run, "--mode", "agent", *SETTINGS[name])
    assert done.returncode == 0, done.stderr
    agrees(chats, f"injected_six_parts-{name}")
    state = parts_of(last(chats))
    if name == "hybrid":
        assert list(state) == ["status", "plan"]
    else:
        assert list(state) == ["plan", "workflow", "variables", "browser state"]
        assert re.search(
            r"^  2 total  transform  - error: expression-failed  \{\"expr\": ", state["workflow"], re.MULTILINE
        )
        assert "Name: Add up the prices" in state["workflow"]
        variables = re.findall(r"^([\w.]+) = (.+)$", state["variables"], re.MULTILINE)
        assert dict(variables) | {
            "unit": '"EUR"',
            "long": f'"{"word " * 19}wor…',
            "many": '["first", "second", "third"]',
            "none": "[] (empty)",
            "secrets.till_password": '"[hidden]"',
        } == dict(variables)
    assert "Leave out what is no number" in state["plan"]
    # Fresh: a change by the first message is in the next request, and the old value is gone.
    first, second = talked(chats)[:2]
    assert "Leave out" not in rendered(first)
    assert "Leave out" in rendered(second)
    assert SECRET not in str([text_of(each) for each in chats.bodies()])
    for file in (project.folder / ".runops").rglob("*"):
        assert not file.is_file() or b"## workflow" not in file.read_bytes()
    warned, summed = done.stderr.count("the window is nearly full"), summaries(chats)
    # A window that has shrunk fills again.
    assert warned == {"warn_at_7202": 1, "compress_at_7815": 1, "compress_to_100": 2}.get(name, 0)
    assert bool(summed) == name.startswith("compress_")
    if summed:
        demand_summary(chats, bound=100 if name == "compress_to_100" else None)


def demand_summary(chats: Chats, bound: int | None) -> None:
    """The prompt lists what a summary must keep, omitted names are added, and the summary respects its size limit."""
    rules = next(body["instructions"] for body in chats.bodies() if "Sum up" in body["instructions"])
    for each in (
        "decisions, with their reasons",
        "the goal",
        "demands, prohibitions",
        "errors",
        "ids",
        "letter by letter",
    ):
        assert each in rules
    words = said(last(chats))
    summary = next(each for each in words if items.SUMMARY in each)
    assert "left out (decided)" in summary
    names = summary.partition("Word for word: ")[2]
    assert bound is not None or "order-101" in names
    # In a quarter of 100 tokens only the names of variables have room, which come before others.
    assert re.search(r"order-\d0\d" if bound is None else r"^`\w+`, `\w+`", names)
    assert not any("Question 1" in each for each in words if each != summary)
    assert "user: Question 8, on order-808?" in words
    size = items.size_of(summary.removeprefix("user: ")).tokens
    with_settings = int(re.findall(r"(\d+) words at the most", rules)[0])
    assert (size <= 100, with_settings <= 60) == ((True, True) if bound else (False, False))


def test_a_conversation_is_summed_up_at_180_000_tokens_with_a_warning_at_160_000(chats: Chats) -> None:
    """With only the limits of the strategy, a summary may have up to 20,000 tokens, and no more."""

    def answer(asked: AskedFor) -> Answer:
        return text("so " * 17_000) if asked.instructions.startswith("Sum up") else text("Yes.")

    project = chats.answers(answer)
    long = "so " * 42_500
    words = "".join(f"Part {number}: {long}\n" for number in range(1, 6))
    done = typed(project, words, "chat", "--strategy", "injected", seconds=180)
    assert done.returncode == 0, done.stderr
    agrees(chats, "injected_six_parts-at_180000")
    sizes = [int(each.replace(",", "")) for each in re.findall(r"window ([\d,]+) of 180,000 tokens", done.stderr)]
    assert 125_000 < sizes[2] < 160_000 < sizes[3] < 180_000
    assert sizes[4] < 120_000
    before, after = done.stderr.split("the window is nearly full")
    assert before.count("--  1 request") == 3
    assert "where there are more, the oldest is summed up" in after
    (body,) = [each for each in chats.bodies() if "Sum up" in each["instructions"]]
    assert "5000 words at the most" in body["instructions"]
    assert body["max_output_tokens"] >= 20_000
    summary = next(each for each in said(last(chats)) if items.SUMMARY in each)
    assert 15_000 < items.size_of(summary.removeprefix("user: ")).tokens <= 20_000


def test_json_warns_that_the_window_is_nearly_full(chats: Chats) -> None:
    """`--json` has each warning, also under `--quiet`, and none while there is room."""
    found: list[dict[str, Any]] = []
    for flags in (("--warn-at", "2000"), ("--warn-at", "170000")):
        project = chats.answers(text("Yes."))
        done = project.runops("chat", "--strategy", "injected", *flags, "-m", "word " * 100, "--json", "--quiet")
        assert (done.returncode, done.stderr) == (0, "Yes.\n")
        found.append(json.loads(done.stdout))
    warned, other = found
    assert len(warned["warnings"]) == 1
    assert "the window is nearly full" in warned["warnings"][0]
    assert (warned["window"]["warns"], other["window"]["warns"], other["warnings"]) == (True, False, [])
