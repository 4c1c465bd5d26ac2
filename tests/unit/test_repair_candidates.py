"""Candidates for an element that may have another name by now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from director.repair import candidates
from director.repair.candidates import Meant, Seen, alike, ranked, selectors
from nodes.targets import Target

SIGN_IN = Meant.of(Target(role="button", name="Sign in"), "click")
IN_ROW = Meant.of(Target(role="button", name="Pay", within=Target(role="row", has_text="1003")), "click", "pay")


def test_similar_names_come_first() -> None:
    """A kept word or a synonym counts more than the role alone; an element that cannot take the action is no candidate."""
    seen = [
        Seen("e1", "button", "Enter"),
        Seen("e2", "button", "Log in"),
        Seen("e3", "textbox", "Sign in"),
        Seen("e4", "link", "Sign in here"),
    ]
    found = ranked(SIGN_IN, seen)
    assert [each.seen.ref for each in found] == ["e2", "e4", "e1"]
    assert [each.shares for each in found] == [True, True, False]


@pytest.mark.parametrize(
    ("was", "now", "others", "recognized"),
    [
        ("Add note", "Save note", ["Pay"], True),
        ("Open list", "Open", ["All", "Paid"], True),
        ("Opened", "Open", ["Orders"], True),
        ("Open orders", "All", [], False),
        ("Open orders", "Orders", ["Open"], False),
        ("Save order", "Save", ["Order"], False),
        ("Add note", "Save note", ["Drop note"], False),
    ],
)
def test_a_name_is_recognized_only_without_rivals(was: str, now: str, others: list[str], recognized: bool) -> None:
    """A name is recognized if it is nearly the old one and no other element of its role keeps as much or another word."""
    meant = Meant.of(Target(role="link", name=was), "click")
    scores = ranked(meant, [Seen(each, "link", each) for each in (now, *others)])
    best = next(each for each in scores if each.seen.name == now)
    assert candidates.named(best, scores) is recognized
    elsewhere = [score for each in others if (score := candidates.scored(meant, Seen(each, "button", each)))]
    assert candidates.named(best, elsewhere) is best.shares, "another role is no rival"


def test_another_role_needs_the_full_name() -> None:
    """An element of another role needs the full name: the button `Cancel order` is not the link `Order`, but may be the link `Cancel order`."""
    meant = Meant.of(Target(role="button", name="Cancel order"), "click")
    found = {
        each.seen.name: each for each in ranked(meant, [Seen("1", "link", "Order"), Seen("2", "link", "Cancel order")])
    }
    assert [candidates.named(found[name], []) for name in ("Order", "Cancel order")] == [False, True]


def test_an_element_of_another_row_is_no_candidate() -> None:
    """The same button in the row of another order is another action."""
    seen = [
        Seen("e1", "button", "Pay", around="1004 Ada Pay"),
        Seen("e2", "button", "Settle", around="1003 Ben Settle"),
    ]
    assert [each.seen.ref for each in ranked(IN_ROW, seen)] == ["e2"]
    assert ranked(IN_ROW, [Seen("e1", "button", "Pay", around="10031 Ada")]) == []


def test_names_in_a_selector_count() -> None:
    """If the target is only a selector, names in that selector count."""
    meant = Meant.of(Target(css="#save-order"), "click")
    found = ranked(
        meant, [Seen("e1", "button", "Cancel"), Seen("e2", "button", "Save the order"), Seen("e3", "button", "x")]
    )
    assert (found[0].seen.ref, found[0].shares) == ("e2", True)


@pytest.mark.parametrize(
    ("css", "known", "found"),
    [
        ("#orders tbody tr", ["#order-list", "#menu"], ["#order-list tbody tr"]),
        ("#orders > .row", ["#orders", ".row"], ["#orders .row"]),
        ("#orders .row", ["#orders", ".row"], []),
        ("#orders tr", ["#menu", ".orders"], []),
        ('[data-testid="pay"] b', ['[data-testid="pay-now"]'], ['[data-testid="pay-now"] b']),
    ],
)
def test_a_selector_is_fixed_with_similar_names(css: str, known: list[str], found: list[str]) -> None:
    """Only names missing on the page are replaced, by similar names of the same kind."""
    assert selectors(css, known) == found


@given(st.text(max_size=20), st.text(max_size=20))
def test_similarity_is_a_measure(one: str, other: str) -> None:
    """Similarity is symmetric, between 0 and 1, and 1 for the same words."""
    assert alike(one, other) == alike(other, one)
    assert 0.0 <= alike(one, other) <= 1.0
    if candidates.words(one):
        assert alike(one, one) == 1.0
