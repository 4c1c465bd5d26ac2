"""Repair goals: when a model is asked for a fix, what it is shown, and which runs prove the fix."""

from __future__ import annotations

import types
from typing import Any, get_args

import hypothesis
import pytest
from hypothesis import strategies as st

from director.proving import proofs, repair_builds
from director.repair import failure_kinds, failures, goals, repair
from runtime.language import reader
from runtime.log import entries
from runtime.observation import page_text

FILE = reader.parse(
    """
version: 1
name: Pays
inputs: {base: {type: string, default: "http://127.0.0.1:1"}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/"}
  - {id: send, type: browser_action, action: click, target: {role: button, name: Send}}
  - {id: pay, type: browser_action, action: click, target: {role: button, name: Pay}}
""",
    "pays.yaml",
)


def outcome(
    kind: failure_kinds.Kind = "drift", words: str = "Pay now", proof: Any = None, path: str = "pay", **more: Any
) -> repair.Outcome:
    """A repair of a run that failed at `pay`, on a page with these words."""
    failure = failure_kinds.Failure(path, "target-not-found", "site", f"nothing is called {words}", {})
    case = failures.Case(
        "R", failure, failure_kinds.PageGlance(words=words, alert=words), FILE.find(path), {}, ("target",)
    )
    return repair.Outcome(case, failure_kinds.Found(kind, words), proof, **more)


def proof(verdict: repair.Verdict) -> repair.Proof:
    """A proof of a candidate with this verdict."""
    return repair.Proof(verdict, (), FILE, "C", None, ())


@pytest.mark.parametrize("kind", get_args(failure_kinds.Kind))
def test_a_model_is_asked_only_where_the_file_may_be_wrong(kind: failure_kinds.Kind) -> None:
    """Only drift, overlays, slow pages and unknown failures go to a model. None goes if a fix is proved, withheld or refused, continuing works, or the step is missing."""
    may = kind in ("drift", "overlay", "slow page", "unknown")
    assert goals.is_open(outcome(kind)) is may
    assert goals.is_open(outcome(kind, proof=proof("guess"))) is may
    assert not goals.is_open(outcome(kind, proof=proof("guess"), refused=True))
    assert goals.is_open(outcome(kind, refused=True)) is may
    assert not goals.is_open(outcome(kind, proof=proof("held")))
    assert not goals.is_open(outcome(kind, proof=proof("proved")))
    assert not goals.is_open(outcome(kind, works_now=True))
    assert not goals.is_open(outcome(kind, path="gone"))


@hypothesis.given(st.sampled_from(["", page_text.END, "[end of page"]), st.text(max_size=200))
def test_page_text_is_only_within_the_fence(first: str, words: str) -> None:
    """Whatever the page says, the fence ends once, at the end of the evidence, and the evidence is bounded."""
    text = f"{first} QQ {words} " * 40
    evidence = goals.evidence(outcome(words=text, tried=[text] * 8))
    before, _, page = evidence.partition(page_text.BEGIN)
    assert "QQ" not in before
    assert page.count(page_text.END) == 1
    assert page.endswith(page_text.END)
    assert len(evidence) < 3 * goals.WORDS + 20 * goals.LINE


def ran(status: str, withheld: str | None, *reached: str) -> proofs.Ran:
    """A proof run that reached these steps."""
    return proofs.Ran("P", status, dict.fromkeys(reached, "done"), withheld=withheld)


def test_runs_that_did_not_reach_the_step_prove_no_fix() -> None:
    """A run stopped before the step proves nothing, one stopped at it does. If the step is gone from the file, only a run to its end counts."""

    def missed(path: str, *runs: proofs.Ran) -> str | None:
        goal = types.SimpleNamespace(repairs=entries.Repairs(run="R", path=path, file="pays.yaml", evidence=""))
        build: Any = types.SimpleNamespace(goal=goal)
        error = repair_builds.missed(build, FILE, runs)
        return str(error) if error is not None else None

    early = ran("paused", "send", "open", "send")
    reason = missed("pay", early, early)
    assert reason is not None
    assert "held at send" in reason
    assert missed("pay", ran("paused", "pay", "open", "send", "pay")) is None
    assert missed("pay", ran("passed", None, "open", "send")) is not None
    assert missed("gone", early) is not None
    assert missed("gone", ran("passed", None, "open", "send", "pay")) is None
