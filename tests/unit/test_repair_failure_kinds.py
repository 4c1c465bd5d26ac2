"""The kind of a run's failure, by its log, its page and one fresh observation."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from director.repair import candidates, failure_kinds
from director.repair.failure_kinds import Failure, PageGlance, PageLook, classify
from nodes.targets import Target

PAY = Target(role="button", name="Pay", within=Target(role="row", has_text="1003"))
SHOP = "http://shop.test/orders"
MISSING = Failure(
    "pay", "target-not-found", "site", "no element matches", {}, target=PAY, action="click", asked_for=SHOP
)
PAGE = PageGlance(url=SHOP, words="Orders\n1003 Ada", status=200)
GONE = PageLook(PAGE, "pay", "target-not-found", parts=[("role=row", 1), ("role=button", 0)])
COOKIES = {"role": "dialog", "name": "Cookies", "text": "We use cookies", "modal": True}


def failed(code: str = "target-not-found", **more: object) -> Failure:
    """A failure like MISSING with these changes."""
    return dataclasses.replace(MISSING, code=code, **more)


def showing(**more: object) -> PageGlance:
    """A page like PAGE with these changes."""
    return dataclasses.replace(PAGE, **more)


def seen(glance: PageGlance = PAGE, **more: object) -> PageLook:
    """An observation like GONE with these changes."""
    return dataclasses.replace(GONE, glance=glance, **more)


@pytest.mark.parametrize(
    ("failure", "then", "now", "kind"),
    [
        (MISSING, PAGE, GONE, "drift"),
        (MISSING, None, None, "drift"),
        (failed("target-ambiguous"), PAGE, GONE, "drift"),
        (failed("verify-failed"), PAGE, seen(code="verify-failed"), "drift"),
        (failed("verify-failed", evidence={"alert": "No such card"}), PAGE, None, "unknown"),
        (MISSING, PAGE, seen(came_after=12.0), "slow page"),
        (MISSING, showing(busy=True), PageLook(PAGE, "pay", None), "slow page"),
        (failed("timeout"), PAGE, None, "slow page"),
        (failed("target-not-actionable", evidence={"problem": "covered"}), PAGE, None, "overlay"),
        (failed("target-not-actionable", evidence={"problem": "disabled"}), PAGE, None, "unknown"),
        (failed("dialog-open"), PAGE, None, "overlay"),
        (MISSING, PAGE, seen(showing(front=COOKIES)), "overlay"),
        (
            failed(target=Target(role="button", within=Target(role="dialog"))),
            PAGE,
            seen(showing(front=COOKIES)),
            "drift",
        ),
        (MISSING, showing(url="http://shop.test/login", password=True), None, "signed out"),
        (failed(signed_in=True), showing(url="http://shop.test/login", password=True), None, "signed out"),
        (failed(asked_for=f"{SHOP}"), showing(password=True), seen(showing(password=True)), "drift"),
        (MISSING, showing(status=401), None, "signed out"),
        (
            MISSING,
            showing(words="Orders\n1004"),
            seen(showing(words="1004"), parts=[("row", 0), ("button", 0)]),
            "data changed",
        ),
        (MISSING, PAGE, seen(already=True), "data changed"),
        (MISSING, PAGE, seen(already=True, near=True), "drift"),
        (MISSING, showing(status=404), None, "data changed"),
        (
            failed(action="extract", target=Target(css="#orders tr")),
            PAGE,
            seen(rows=0, parts=[("css", 0)]),
            "data changed",
        ),
        (MISSING, showing(status=503), None, "site error"),
        (MISSING, PAGE, seen(showing(status=500)), "site error"),
        (failed("navigation-failed"), None, None, "site error"),
        (MISSING, PAGE, seen(code="navigation-failed"), "site error"),
        (failed("assert-failed", who="finding"), PAGE, None, "finding"),
        (failed("value-undefined", who="author"), PAGE, None, "workflow"),
    ],
)
def test_each_kind_is_recognized_by_its_evidence(
    failure: Failure, then: PageGlance | None, now: PageLook | None, kind: failure_kinds.Kind
) -> None:
    """Each kind has its evidence; only an otherwise fine page that has the data has drifted."""
    found = classify(failure, then, now)
    assert found.kind == kind
    assert found.why
    assert found.advice


TEXTS = st.text(max_size=30)
GLANCES = st.builds(
    PageGlance,
    url=TEXTS,
    words=TEXTS,
    status=st.none() | st.integers(100, 599),
    alert=TEXTS,
    password=st.booleans(),
    front=st.none() | st.just(COOKIES),
    busy=st.booleans(),
)
CODES = st.sampled_from(
    ["target-not-found", "timeout", "verify-failed", "target-not-actionable", "navigation-failed", "other"]
)


@given(
    code=CODES,
    status=st.integers(500, 599),
    then=GLANCES,
    signed_in=st.booleans(),
)
def test_an_error_of_the_site_is_never_fixed_in_the_file(
    code: str, status: int, then: PageGlance, signed_in: bool
) -> None:
    """A page answered with 5xx is neither drift nor a slow page, whatever else it shows."""
    failure = failed(code, signed_in=signed_in)
    found = classify(failure, dataclasses.replace(then, status=status), None)
    assert found.kind not in failure_kinds.PATCHED


@given(st.text(alphabet="ab1 ", min_size=1, max_size=8).filter(str.strip), TEXTS)
def test_a_text_is_found_as_whole_words_only(word: str, around: str) -> None:
    """A word on the page is found; with a letter attached it is another word."""
    assert candidates.is_in(word, f"x {word} y")
    assert not candidates.is_in(word, f"q{word.strip()}q")
