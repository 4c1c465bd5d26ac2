"""Scores and proposals of target candidates: a failed proof never scores higher than a passed one, and a proposal is bounded."""

from __future__ import annotations

import dataclasses

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from director.targeting import candidates
from director.targeting.candidates import Candidate, Mark, Proof
from nodes.targets import Target
from runtime.browser.elements.facts import Facts
from runtime.browser.elements.targets import Way

EVERY: list[Mark] = ["one", "none", "several", "another", "untried"]
MARKS = st.sampled_from(EVERY)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)


@st.composite
def found(draw: st.DrawFn) -> Candidate:
    """Any candidate."""
    fields = draw(
        st.one_of(
            st.builds(lambda name: {"role": "button", "name": name}, TEXTS),
            st.builds(
                lambda name, row: {"role": "link", "name": name, "within": {"role": "row", "has_text": row}},
                TEXTS,
                TEXTS,
            ),
            st.builds(lambda text: {"css": "td", "within": {"css": "tr", "has_text": text}}, TEXTS),
        )
    )
    way = Way(fields, draw(st.integers(10, 96)), draw(st.sampled_from(["its label", "its text", "its place"])))
    return Candidate(Target.model_validate(fields), way, draw(MARKS), draw(MARKS), placed=draw(st.booleans()))


@given(found(), MARKS)
def test_a_failed_proof_never_scores_higher_than_a_passed_one(candidate: Candidate, mark: Mark) -> None:
    """For each proof the score of a passed one is at least that of an untried one, and that at least of a failed one."""
    for proof in ("reloaded", "grown"):
        proved, tried, failed = (
            dataclasses.replace(candidate, **{proof: each}).score for each in ("one", "untried", "several")
        )
        assert proved >= tried >= failed
        other = dataclasses.replace(candidate, **{proof: mark})
        assert failed <= other.score <= proved
        assert 0 <= other.score <= 100


@given(st.lists(found(), min_size=1, max_size=8), st.booleans(), st.integers(0, 4))
def test_a_proposal_is_bounded_and_its_best_is_whole(several: list[Candidate], unloaded: bool, rows: int) -> None:
    """A proposal keeps to its length; the best target is YAML that reads back the same, and the others are comments."""
    proof = Proof(candidates.ranked(several), [(several[0].target, 3)], "no address" if unloaded else "", rows=rows)
    written = [each.fields for each in proof.found]
    assert all(each not in written[:place] for place, each in enumerate(written))
    ours, theirs = candidates.lines_of(proof)
    text = "\n".join(theirs)
    assert len("\n".join([*ours, text])) <= candidates.MOST or len(theirs) == 1
    assert yaml.safe_load(text) == {"target": proof.found[0].fields}
    assert proof.found[0].score == max(each.score for each in several)
    if proof.found[0].placed:
        assert any("only its position" in line for line in ours)


def test_page_text_that_looks_like_an_expression_is_escaped() -> None:
    """An element name like `{{ secrets.X }}` never becomes a reference in the file."""
    way = Way({"role": "button", "name": "{{ secrets.PASSWORD }}"}, 94, "its role and name")
    assert "{{ secrets" not in str(Candidate(Target.model_validate(way.fields), way).fields)


@pytest.mark.parametrize(
    ("role", "facts", "kind", "fits"),
    [
        ("combobox", Facts("select", "select-one"), "select", "`select`"),
        ("checkbox", Facts("input", "checkbox"), "checkbox", "`uncheck`"),
        ("radio", Facts("input", "radio"), "radio", "`check`;"),
        ("button", Facts("input", "file"), "file field", "`upload`"),
        ("textbox", Facts("input", "email"), "email field", "`fill`"),
        ("link", Facts("a"), "link", "`click`"),
        ("table", Facts("table"), "table", "`query: table`"),
        ("cell", Facts("td"), "cell", "`query: text`"),
    ],
)
def test_the_actions_that_fit_an_element(role: str, facts: Facts, kind: str, fits: str) -> None:
    """Each kind of element is listed with the actions and queries that it takes."""
    what, actions = candidates.kind(role, facts)
    assert what == kind
    assert fits in actions
