"""Row 1 of the five context strategies: one log for chat, agent and run, and one window made from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing.scripted_model import Answer, AskedFor, call, incomplete, text
from tests.chats import Chats, typed, words_of
from tests.rows import LONG, agrees, last, said


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def unified(asked: AskedFor) -> Answer:
    """A model that reads on in a truncated output, and breaks off once."""
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


SETTINGS: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "max_messages_4": ("--max-messages", "4", "--overflow", "prune"),
    "max_chars_1000": ("--max-chars", "1000", "--overflow", "prune"),
    "no_tool_results": ("--no-tool-results",),
    "recent_outputs_280": ("--recent-outputs", "280"),
    "no_events": ("--no-events",),
}
"""Settings of the row, each with a value besides its default."""

QUESTION, PARTIAL, WELCOME = "user: What does it do?", "The step `total` met", "You are welcome.\n"


@pytest.mark.drawn(share=0.15)
@pytest.mark.parametrize("name", SETTINGS)
def test_unified_log_across_modes(name: str, chats: Chats) -> None:
    """Messages, tools, a run, a partial answer, three modes and two processes share one log, from which both session and run resume.

    A setting drops the oldest items first, and never the newest message.
    """
    project = chats.answers(unified)
    project.write("long.yaml", LONG)
    first = f"{QUESTION.removeprefix('user: ')}\n/run\nWhy did it fail?\n/mode agent\ncontinue\n"
    assert typed(project, first, "chat", "long.yaml", "--mode", "chat", *SETTINGS[name]).returncode == 0
    (project.folder / "long.yaml").unlink()
    done = typed(project, "/resume\n/mode run\nThanks.\n", "chat", "--resume", "last")
    assert (done.returncode, done.stdout) == (0, WELCOME)
    # The run: its log alone records its steps and its position.
    assert "1 step is done and will not be done again, continuing at total" in done.stderr
    agrees(chats, f"unified_log-{name}")
    bodies, words = chats.bodies(), said(last(chats))
    # A mode changes only the instructions before the conversation; from the first one in mode agent on, the tools of a build are offered.
    assert len({body["instructions"] for body in bodies}) == 3
    builds = ['"finish"' in json.dumps(body["tools"]) for body in bodies]
    assert (builds[0], builds[-1], builds) == (False, True, sorted(builds))
    assert len({json.dumps(body["tools"]) for body in bodies}) == 2
    assert words[-1] == "user: Thanks."
    events = [each for each in words if "failed at total" in each]
    partial = [each for each in words if PARTIAL in each and "LLM_ERROR" in each]
    outputs = [each for each in words if each.startswith("output: ") and "left out" not in each]
    outputs = [each for each in outputs if " of the notes" in each]
    chars = sum(len(each.partition(": ")[2]) for each in words)
    whole = name in ("defaults", "no_events")
    narrow = name in ("max_messages_4", "max_chars_1000")
    assert (QUESTION in words) == (not narrow)
    assert bool(partial) == (name != "max_messages_4")
    assert bool(events) == (name != "no_events")
    assert (len(words) > 4, chars > 1_000) == (name != "max_messages_4", whole or name == "recent_outputs_280")
    # The output of the first tool was truncated, that of the second is the part read by range.
    assert [("line 0 of" in each, "line 399 of" in each) for each in outputs] == (
        [(True, False), (False, True)] if whole else []
    )
    assert any("@state/" in each for each in words)
    read = words_of(bodies[2])
    if name == "recent_outputs_280":
        # The newest output is whole, once: with the next message a pointer replaces it.
        assert "line 399 of the notes" in str(read)
    if name == "no_tool_results":
        assert "line 399 of the notes" not in str(read)
    if whole:
        before, after = said(words_of(bodies[3])), said(words_of(bodies[4]))
        assert before[-1] == "user: Why did it fail?"
        assert after == [*before, *partial, "user: continue"]


def test_an_exchange_is_kept_or_dropped_whole(chats: Chats) -> None:
    """No call appears without its output, nor an output without its call, and the oldest exchanges are dropped first, for any size."""
    project = chats.answers(unified)
    project.write("long.yaml", LONG)
    rooms = range(3, 12)
    words = "What does it do?\n" + "".join(f"/window max_messages {most}\nThanks {most}.\n" for most in rooms)
    done = typed(project, words, "chat", "long.yaml", "--overflow", "prune")
    assert done.returncode == 0, done.stderr
    everything: list[str] = []
    kept: set[int] = set()
    for most, sent in zip(rooms, chats.bodies()[3:], strict=True):
        found = said(words_of(sent))
        everything = [*everything, *found[-2:]] if everything else [*said(words_of(chats.bodies()[2])), *found[-2:]]
        assert len(found) <= most
        assert found == everything[-len(found) :]
        assert sum(each.startswith("call ") for each in found) == sum(each.startswith("output: ") for each in found)
        kept.add(most - len(found))
    assert kept == {0, 1}, "one place stays free where only the half of an exchange would have room"
