"""Proofs that the runs of a draft give of its actions."""

from __future__ import annotations

import functools
import textwrap
from pathlib import Path
from typing import get_args

import hypothesis
import pytest
from hypothesis import strategies as st

from director.proving import finish, proofs
from nodes.errors import SiteError
from runtime.language import prepare, reader, workflow
from runtime.log import entries, history
from runtime.log.store import file_store
from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host, run_index
from tests import rig
from tests.fakes import FakePage

TEXT = textwrap.dedent("""
    version: 1
    nodes:
      - id: each
        type: iterate
        over: [1, 2]
        as: it
        nodes:
          - {id: one, type: browser_action, action: click, target: {text: One}}
      - {id: two, type: browser_action, action: click, target: {text: Two}, on_error: continue}
      - id: way
        type: route
        branches:
          - {name: left, when: "{{ false }}", nodes: [{id: three, type: browser_action, action: click, target: {text: Three}}]}
        otherwise: [{id: look, type: context, set: {a: 1}}]
""")

KEYS: tuple[str, ...] = ("one", "two", "three")
OUTCOMES = st.sampled_from(get_args(proofs.Outcome))


@functools.cache
def loaded() -> workflow.Loaded:
    """The workflow with three actions."""
    return reader.parse(TEXT, "t.yaml")


def ran(actions: dict[str, proofs.Outcome], **more: object) -> proofs.Ran:
    """A passed run with these outcomes of its actions."""
    return proofs.Ran("r", "passed", actions, **more)  # type: ignore[arg-type]


OF_ALL = st.tuples(*[OUTCOMES] * len(KEYS)).map(lambda each: ran(dict(zip(KEYS, each, strict=True))))
RUNS = st.lists(OF_ALL, min_size=1, max_size=4)


@hypothesis.given(RUNS)
def test_full_is_said_only_of_what_was_done(runs: list[proofs.Ran]) -> None:
    """A proof is full if and only if each action was done in some run; else it names the others, to be explained unless withheld."""
    every = proofs.of_runs(loaded(), runs)
    undone = [key for key in KEYS if not any(each.outcomes[key] == "done" for each in runs)]
    headline = proofs.headline(every, runs)
    assert (headline == proofs.FULL) == (not undone)
    for key in undone:
        assert f"{key} (" in headline
        withheld = any(each.outcomes[key] == "held" for each in runs)
        assert withheld or key in proofs.to_be_said(every, runs)


@hypothesis.given(RUNS, st.data())
def test_a_run_that_did_not_pass_proves_nothing_whole(runs: list[proofs.Ran], data: st.DataObject) -> None:
    """One withheld or failed run prevents a full proof, whatever the others did."""
    withheld = data.draw(st.booleans())
    broken = proofs.Ran(
        "r", "paused" if withheld else "failed", dict.fromkeys(KEYS, "done"), withheld="two" if withheld else None
    )
    runs = data.draw(st.permutations([*runs, broken]))
    headline = proofs.headline(proofs.of_runs(loaded(), runs), runs)
    assert headline.startswith("up to two" if withheld else "not")


@hypothesis.given(RUNS)
def test_words_count_every_run(runs: list[proofs.Ran]) -> None:
    """The description of an action counts the runs that did it among all runs, and credits no other run."""
    for each in proofs.of_runs(loaded(), runs):
        done = sum(run.outcomes[each.key] == "done" for run in runs)
        assert (f"done in {done} of {len(runs)} run" in each.describe()) == (done > 0)
        if all(run.outcomes[each.key] == "not reached" for run in runs):
            assert each.describe() == "never reached"


@pytest.mark.anyio
@pytest.mark.parametrize("fails", [False, True])
async def test_a_run_says_what_it_did(tmp_path: Path, fails: bool) -> None:
    """The log shows actions as done in a loop iteration, tolerated as failed, or never reached in another branch."""

    async def click(target: str, _page: FakePage) -> None:
        if fails and "Two" in target:
            raise SiteError("not-actionable", "it cannot be clicked")

    one = rig.Rig(tmp_path, TEXT)
    one.site.before_click = click
    ended = await one.start()
    assert ended.status == "passed"
    past = history.History(one.reader.read(one.id).entries)
    assert proofs.outcomes_of(one.loaded, past) == {
        "one": "done",
        "two": "passed by" if fails else "done",
        "three": "not reached",
        "look": "done",
    }


@pytest.mark.anyio
async def test_a_withheld_action_was_not_done(tmp_path: Path) -> None:
    """A withheld action is reported as ready and not done, and the steps after it as not reached; the site has seen neither."""
    one = rig.Rig(tmp_path, TEXT)
    fit = prepare.Prepared(one.loaded, {}, {})
    chosen = settings.load(home=tmp_path / ".runops")
    options = start.Options(browsers=one, holds=lambda leaf, _path: leaf.id == "two")
    ended = await start.begin(fit, host.of_command(chosen), options=options)
    past, _reading = run_index.load_history(file_store.Files(chosen.home), ended.run)
    assert (ended.status, proofs.withheld_at(past)) == ("paused", "two")
    assert proofs.outcomes_of(one.loaded, past) == {
        "one": "done",
        "two": "held",
        "three": "not reached",
        "look": "not reached",
    }
    assert len(one.site.actions) == 2


@pytest.mark.parametrize(("clicked", "became"), [(True, "done"), (False, "idle")])
def test_an_agent_that_changes_nothing_has_done_nothing(clicked: bool, became: proofs.Outcome) -> None:
    """An agent that reached its goal counts as done only if it performed an action."""
    file = reader.parse("version: 1\nallowed_origins: []\nnodes: [{id: work, type: agent, goal: Tidy up.}]\n", "t.yaml")
    common = {"attempt": 1, "effect": "effect", "args": {}, "fingerprint": ""}
    own = entries.Call.model_validate({**common, "path": "work", "node": "agent", "call": "c1", "seq": 1})
    thread = entries.model_thread("c1")
    inner = {"path": "work/1_click", "node": "browser_action", "call": "c2", "seq": 2, "thread": thread, "asked": "x"}
    action = [
        entries.Call.model_validate({**common, **inner}),
        entries.Result(call="c2", status="ok", thread=thread, seq=3),
    ]
    past = history.History([own, *(action if clicked else []), entries.Result(call="c1", status="ok", seq=4)])
    assert proofs.outcomes_of(file, past) == {"work": became}


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ([{"a": 1, "b": None}, {"a": None, "b": ""}], ["b"]),
        ([{"a": [], "b": 0}, {"a": {}, "b": False}], ["a"]),
        ([None, None], ["output"]),
        ([[], ""], ["output"]),
        ([{}, {}], ["output"]),
        ([0, False], []),
        (["x", None], []),
        ([], []),
    ],
)
def test_an_output_that_is_always_empty_is_named(outputs: list[object], names: list[str]) -> None:
    """A field that is null or empty in every run is named; one with a value in some run, also 0 or false, is not."""
    assert proofs.empty_names(outputs) == names


@pytest.mark.parametrize(
    ("earlier", "unsaid"), [((), ["sorted"]), (({"sorted": ["1001"]},), []), (({"sorted": []},), ["sorted"])]
)
def test_an_output_that_an_earlier_run_yielded_is_not_empty(
    earlier: tuple[dict[str, list[str]], ...], unsaid: list[str]
) -> None:
    """An output counts as not empty if an earlier run of the same text yielded it and left the proof nothing to yield."""
    text = 'version: 1\nnodes: [{id: one, type: transform, expr: "{{ [] }}"}]\noutput: {sorted: "{{ one }}"}\n'
    before = tuple(proofs.Ran(f"r{number}", "passed", {}, output=each) for number, each in enumerate(earlier))
    last = proofs.Ran("last", "passed", {}, output={"sorted": []})
    proof = finish.Proof(text, reader.parse(text, "draft.yaml"), (last,), before)
    assert list(finish.unsaid(proof, finish.FinishRequest("It sorts.", ""))) == unsaid
