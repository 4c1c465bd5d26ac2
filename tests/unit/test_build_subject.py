"""The state of a build that a model sees before it has written anything, and its length."""

from __future__ import annotations

import types
from pathlib import Path
from typing import cast

import pytest

from director.bench import bench
from director.builds import subject
from director.draft import draft
from director.draft.goal import Goal
from director.session import prompt
from director.tools.build_context import BuildContext
from runtime.log import entries
from tests import build_contexts


def of_states(build: BuildContext, states: dict[str, str]) -> subject.BuildSubject:
    """A subject whose nodes have these states."""
    build.bench = cast(bench.Bench, types.SimpleNamespace(marks=lambda: states))
    return subject.BuildSubject(build)


def test_the_site_is_shown_from_the_beginning(tmp_path: Path) -> None:
    """The input with the site's address is shown with the goal and among the values before a draft declares it."""
    build = build_contexts.opened(tmp_path, "http://127.0.0.1:8765/admin/", inputs={"user": "admin"})
    about = subject.BuildSubject(build)
    assert "Site: http://127.0.0.1:8765/admin/ (inputs.base_url = http://127.0.0.1:8765)" in subject.goal_text(
        build.goal
    )
    assert about.variables() == {"inputs.base_url": "http://127.0.0.1:8765", "inputs.user": "admin"}


def test_an_input_of_the_person_precedes_the_address(tmp_path: Path) -> None:
    """If the person gave another base URL, that one is shown."""
    build = build_contexts.opened(tmp_path, "http://127.0.0.1:8765/x", inputs={"base_url": "http://127.0.0.1:9"})
    assert "(inputs.base_url = http://127.0.0.1:9)" in subject.goal_text(build.goal)


def test_an_input_is_shown_as_the_draft_declares_it(tmp_path: Path) -> None:
    """An input that was typed as text has among the values the type that the draft declares, as in a run; one that does not fit stays text."""
    text = """\
version: 1
name: Cheap
inputs: {limit: {type: number}, ids: {type: list}, user: {type: string}}
nodes: [{id: all, type: transform, expr: "{{ inputs.limit }}"}]
"""
    typed = {"limit": "10", "ids": "none", "user": "7"}
    build = build_contexts.opened(tmp_path, text=text, inputs=typed)
    build.bench = cast(bench.Bench, types.SimpleNamespace(values=dict[str, object]))
    shown = subject.BuildSubject(build).variables()
    assert {name: shown[name] for name in ("inputs.limit", "inputs.ids", "inputs.user")} == {
        "inputs.limit": 10,
        "inputs.ids": "none",
        "inputs.user": "7",
    }


def test_the_likely_type_of_an_input_is_named(tmp_path: Path) -> None:
    """An input that the person typed is text; where it reads as another type, the goal names that type, unless it is hidden."""
    typed = {"above": "200", "share": "1.5", "all": "true", "ids": "[1]", "user": "ada", "no": "4711-a"}
    told = subject.goal_text(Goal("Find the tea.", None, tmp_path / "tea.yaml", inputs={**typed, "many": 12}))
    so = "(text; to compute with it or to compare it so, declare it as"
    for name, kind in (("above", "integer"), ("share", "number"), ("all", "boolean"), ("ids", "list")):
        assert f"\nInput {name}: {typed[name]} {so} {kind})\n" in told
    assert "Input above: 200\n" in subject.goal_text(
        Goal("x", None, tmp_path / "x", inputs={"above": "200"}), declared={"above"}
    )
    for line in ("user: ada", "no: 4711-a", "many: 12"):
        assert f"\nInput {line}\n" in told
    hiding = subject.goal_text(Goal("x", None, tmp_path / "x", inputs={"password": "77"}))
    assert "Input password: [hidden]\n" in hiding


def logged(build: BuildContext, name: str, status: entries.Status) -> None:
    """Write a call of a tool with its outcome into the session's log."""
    call = entries.Call(
        path=name, node="session", action=name, attempt=1, effect="effect", args={}, fingerprint="", thread=entries.SESSION_THREAD
    )  # fmt: skip
    error = {"code": "draft-failed", "message": "no"} if status == "error" else None
    build.writer.result(build.writer.call(call), status, error=error)


def test_stale_nodes_are_named(tmp_path: Path) -> None:
    """The first five stale nodes are named, so that the next call can run them again."""
    ids = [f"n{number}" for number in range(8)]
    nodes = "".join(f"  - {{id: {each}, type: transform, expr: 1}}\n" for each in ids)
    build = build_contexts.opened(tmp_path, text=f"version: 1\nnodes:\n{nodes}")
    states = {**dict.fromkeys(ids, "stale"), "n0": "done"}
    about = of_states(build, states)
    assert about.title.endswith("1 done, 7 stale (run again: n1, n2, n3, n4, n5, …)")


def test_the_summary_says_what_comes_next(tmp_path: Path) -> None:
    """First come new nodes, then stale or untried ones, then the whole run. The goal is shown once."""
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
    states["a"] = "stale: the site was reset"
    cases: list[tuple[str, entries.Status, str]] = [
        ("run_draft", "error", "Next: `execute_nodes` for what is stale (a)"),
        ("run_draft", "ok", "Next: `finish`, for it passed as a whole"),
        ("inspect_tab", "error", "Next: `finish`, for it passed as a whole"),
        ("update_node", "ok", "Next: `execute_nodes` for what is stale (a)"),
    ]
    for name, status, told in cases:
        logged(build, name, status)
        assert about.summary().splitlines()[-1] == told
        assert about.title.endswith("; passed as a whole") == ("finish" in told)
    assert about.nodes("workflow", None) == "version: 1\ndescription: Read it."
    assert about.nodes("c", None) == "# 3  line 5\n- {id: c, type: transform, expr: 1}"


@pytest.mark.parametrize(
    "words",
    [
        "the one that signs in `idempotent`",
        "turns pages `read`",
        'output: {orders: "{{ orders }}"}',
        "`propose_target`",
        "by its own id",
        "inputs: {user: {type: string, default: admin}}",
        "`create_nodes` with `inputs:",
        "two meanings",
    ],
)
def test_the_instructions_cover_known_difficulties(words: str) -> None:
    """The instructions contain each hint, and have at most 500 words."""
    text = prompt.prompt("build")
    assert words in text
    assert len(text.split()) <= 500
