"""What a model is told of its build before it has written anything, and how long that is."""

from __future__ import annotations

import types
from pathlib import Path
from typing import cast

import pytest

from director.bench import bench
from director.builds import subject
from director.draft import draft
from director.session import prompt
from director.tools.build_context import BuildContext
from tests import build_contexts


def of_states(build: BuildContext, states: dict[str, str]) -> subject.BuildSubject:
    """A subject whose nodes have these states."""
    build.bench = cast(bench.Bench, types.SimpleNamespace(marks=lambda: states))
    return subject.BuildSubject(build)


def test_where_the_site_is_can_be_read_from_the_beginning(tmp_path: Path) -> None:
    """The input that the first nodes read is told with the wish and among the values, before there is a draft that declares it."""
    build = build_contexts.opened(tmp_path, "http://127.0.0.1:8765/admin/", inputs={"user": "admin"})
    about = subject.BuildSubject(build)
    assert "Site: http://127.0.0.1:8765/admin/ (inputs.base_url = http://127.0.0.1:8765)" in subject.goal_text(
        build.goal
    )
    assert about.variables() == {"inputs.base_url": "http://127.0.0.1:8765", "inputs.user": "admin"}


def test_an_input_that_the_person_gave_counts_before_the_address(tmp_path: Path) -> None:
    """Where they named another base, that one is told."""
    build = build_contexts.opened(tmp_path, "http://127.0.0.1:8765/x", inputs={"base_url": "http://127.0.0.1:9"})
    assert "(inputs.base_url = http://127.0.0.1:9)" in subject.goal_text(build.goal)


def test_what_does_not_count_any_more_is_named(tmp_path: Path) -> None:
    """The first five by their ids, so that the next call can run them again."""
    ids = [f"n{number}" for number in range(8)]
    nodes = "".join(f"  - {{id: {each}, type: transform, expr: 1}}\n" for each in ids)
    build = build_contexts.opened(tmp_path, text=f"version: 1\nnodes:\n{nodes}")
    states = {**dict.fromkeys(ids, "stale"), "n0": "done"}
    about = of_states(build, states)
    assert about.title.endswith("1 done, 7 stale (n1, n2, n3, n4, n5, …)")


def test_the_summary_says_what_comes_next(tmp_path: Path) -> None:
    """Nodes to begin with, then those that are stale or were not tried, then the whole; the goal stands there once."""
    states: dict[str, str] = {}
    build = build_contexts.opened(tmp_path, goal="Read it.")
    about = of_states(build, states)
    assert "`create_nodes` begins it" in about.summary()
    text = "version: 1\ndescription: Read it.\nnodes:\n- {id: a, type: transform, expr: 1}\n- {id: b, type: group, nodes: [{id: c, type: transform, expr: 1}]}\n"
    build.state.write_draft(draft.Draft.of(text), reason="new")
    assert about.summary().splitlines()[-1] == "Next: `execute_nodes` for what was not tried yet (a, b)"
    assert about.summary().count("Read it.") == 1
    states |= {"a": "done", "b": "done", "c": "stale: `a` has run again"}
    assert about.summary().splitlines()[-1] == "Next: `execute_nodes` for what is stale (c)"
    states["c"] = "done"
    assert about.summary().splitlines()[-1] == "Next: `run_draft`, for all was tried"
    assert about.nodes("workflow", None) == "version: 1\ndescription: Read it."
    assert about.nodes("c", None) == "# 3  line 5\n- {id: c, type: transform, expr: 1}"


@pytest.mark.parametrize(
    "words",
    [
        "`effect: idempotent`",
        "`effect: read`",
        'output: {orders: "{{ orders }}"}',
        "`unproved`",
        "`propose_target`",
        "by its own id",
        "inputs: {user: {type: string, default: admin}}",
        "`create_nodes` with `inputs:",
        "two meanings",
    ],
)
def test_the_instructions_say_what_builders_stumbled_over(words: str) -> None:
    """Each in few words, and all of them in at most 450."""
    text = prompt.prompt("build")
    assert words in text
    assert len(text.split()) <= 450
