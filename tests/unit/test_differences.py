"""Differences of two runs: each once, in its smallest part, at the step where it begins; what is equal is silent."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodes.values import Json
from runtime.report.differences import MOST, differences
from runtime.report.models import RunReport
from runtime.report.parts import DifferenceReport

FAILED = {"code": "expression-failed", "message": "division by zero"}


def step(path: str, status: str = "ok", value: Json = None, error: Json = None, **fields: Json) -> dict[str, Any]:
    """A step, with an attempt unless its ``type`` is that of a container."""
    attempt = {
        "attempt": 1,
        "at": "2026-01-01T00:00:00Z",
        "action": None,
        "effect": "read",
        "args": {},
        "status": status,
        "seconds": 0.1,
        "error": error,
        "flags": [],
        "dismissed": [],
        "verdict": None,
        "thread": [],
    }
    leaf = {"type": "transform", "attempts": [attempt]}
    return {
        "path": path,
        "status": status,
        "seconds": 0.1,
        "value": value,
        "costs": None,
        "parent": None,
        **leaf,
        **fields,
    }


def container(path: str, status: str = "ok", value: Json = None, **fields: Json) -> dict[str, Any]:
    return step(path, status, value, **{"type": "iterate", "attempts": [], **fields})


def report(*steps: dict[str, Any], **fields: Json) -> RunReport:
    given: dict[str, Json] = {
        "run": "R1",
        "workflow": "Shares",
        "file": "/w/shares.yaml",
        "texts": {"/w/shares.yaml": "aa"},
        "state": "passed",
        "started": "2026-01-01T00:00:00Z",
        "last": "2026-01-01T00:00:09Z",
        "seconds": 9.0,
        "processes": [],
        "pauses": [],
        "inputs": {},
        "secrets": [],
        "trial": None,
        "key": None,
        "row": None,
        "parent": None,
        "steps": list(steps),
        "open": [],
        "error": None,
        "path": None,
        "place": None,
        "tolerated": 0,
        "files": [],
        "flags": [],
        "evidence": [],
        "costs": None,
        "budget": None,
        "question": None,
        "next": None,
    }
    return RunReport.model_validate({**given, **fields})


def said(found: list[DifferenceReport]) -> list[tuple[Json, ...]]:
    return [(each.path, each.what, each.within, each.before, each.after) for each in found]


def test_a_run_does_not_differ_from_another_that_took_longer() -> None:
    """The same steps with other times, ids and processes are no difference."""
    one = report(step("a", value=[1, {"b": None}]))
    other = report(
        step("a", value=[1, {"b": None}], seconds=9.0), run="R2", started="2027-01-01T00:00:00Z", seconds=80.0
    )
    assert differences(one, other) == []


def test_a_value_differs_in_its_smallest_parts() -> None:
    """Fields and items are compared one by one, items also behind one that was put in; true is not 1."""
    one = report(step("a", value={"orders": [{"id": 1, "paid": 1}, {"id": 2}], "odd name": "x", "same": [1] * 50}))
    other = report(
        step("a", value={"orders": [{"id": 9}, {"id": 1, "paid": True}, {"id": 2}], "odd name": "y", "same": [1] * 50})
    )
    assert said(differences(one, other)) == [
        ("a", "value", "orders[0]", {"id": 1, "paid": 1}, None),
        ("a", "value", "orders[0]", None, {"id": 9}),
        ("a", "value", "orders[1]", None, {"id": 1, "paid": True}),
        ("a", "value", '["odd name"]', "x", "y"),
    ]
    assert said(differences(report(step("a", value=[1, {"p": 1}])), report(step("a", value=[1, {"p": True}])))) == [
        ("a", "value", "[1].p", 1, True)
    ]


def test_a_value_that_differs_everywhere_is_shown_once() -> None:
    """Of more than ``MOST`` parts the whole values are shown."""
    one, other = ({f"f{number}": number + more for number in range(MOST + 1)} for more in (0, 1))
    assert said(differences(report(step("a", value=one)), report(step("a", value=other)))) == [
        ("a", "value", None, one, other)
    ]


def test_a_failure_is_said_at_its_step_alone() -> None:
    """The containers around a failed step, and the value that it therefore lacks, are not listed too; steps that never began are."""
    one = report(
        container("each", value=[5, 5]),
        container("each[#1]", parent="each"),
        step("each[#1]/half", value=5, parent="each[#1]"),
        container("each[#2]", parent="each"),
        step("each[#2]/half", value=5, parent="each[#2]"),
        step("last", value=1),
        output=1,
    )
    other = report(
        container("each", "error"),
        container("each[#1]", "error", parent="each"),
        step("each[#1]/half", "error", error=FAILED, parent="each[#1]"),
        state="failed",
        error=FAILED,
        path="each[#1]/half",
    )
    assert said(differences(one, other)) == [
        ("", "status", None, "passed", "failed"),
        ("each[#1]/half", "status", None, "ok", "error"),
        ("each[#1]/half", "error", None, None, FAILED),
        ("each[#2]", "missing", None, "ok", None),
        ("last", "missing", None, "ok", None),
    ]
    assert [each.what for each in differences(other, one)] == ["status", "status", "error", "new", "new"]


def test_the_steps_of_a_container_that_was_skipped_are_not_listed_as_missing() -> None:
    one = report(container("ask", type="handle"), step("ask/try/a", parent="ask"))
    other = report(container("ask", "skipped", type="handle"))
    assert said(differences(one, other)) == [("ask", "status", None, "ok", "skipped")]


def test_items_of_a_loop_are_matched_by_their_keys() -> None:
    """An item with a key is compared with the same one wherever it comes; the value of the loop is not repeated."""
    pay = {"1": 10, "2": 20, "3": 30}

    def loop(*keys: str, **paid: int) -> RunReport:
        items = [(f"each[#{key}]", {**pay, **paid}[key]) for key in keys]
        steps = [
            [container(path, parent="each"), step(f"{path}/pay", value=value, parent=path)] for path, value in items
        ]
        return report(container("each", value=[value for _, value in items]), *itertools.chain(*steps))

    assert said(differences(loop("1", "2"), loop("2", "3", "1", **{"1": 11}))) == [
        ("each[#3]", "new", None, None, "ok"),
        ("each[#1]/pay", "value", None, 10, 11),
    ]


def test_a_page_is_said_where_the_ways_part() -> None:
    """Steps that follow on the same other page are silent."""

    def on(*pages: str) -> RunReport:
        return report(*(step(f"s{number}", page=f"http://shop/{page}") for number, page in enumerate(pages)))

    one, other = on("", "orders", "orders", ""), on("", "login", "login", "")
    assert said(differences(one, other)) == [("s1", "page", None, "http://shop/orders", "http://shop/login")]


def test_an_error_of_the_server_is_said_where_it_began() -> None:
    """Of two runs at the same addresses, one saw an error of the server: that is what differed, once."""

    def answered(*statuses: int | None) -> RunReport:
        return report(*(step(f"s{number}", page="http://shop/", http=each) for number, each in enumerate(statuses)))

    found = differences(answered(None, 500, 500), answered(None, None, None))
    assert said(found) == [("s1", "page", "answer", "error 500 of the server", "no error")]


def test_a_site_with_another_address_is_one_difference() -> None:
    """Addresses of the site in pages, values and errors are then no difference; where two sites become one they are."""

    def at(origin: str, more: str = "") -> RunReport:
        return report(
            step("a", page=f"{origin}/x"),
            step("b", "error", page=f"{origin}/y{more}", error={"code": "c", "message": f"at {origin}/y"}),
            step("c", value={"links": [f"{origin}/1"]}),
            inputs={"shop": origin},
        )

    assert said(differences(at("http://127.0.0.1:1"), at("http://shop", "?z"))) == [
        ("", "inputs", "shop", "http://127.0.0.1:1", "http://shop"),
        ("", "page", None, "http://127.0.0.1:1", "http://shop"),
        ("b", "page", None, "http://127.0.0.1:1/y", "http://shop/y?z"),
    ]
    blank = report(
        step("a", page="about:blank"), step("b", page="http://h:80/x", value="http://h:8080 http://h:80. about:")
    )
    there = report(step("a", page="http://n/"), step("b", page="http://n/x", value="http://h:8080 http://n. about:"))
    assert said(differences(blank, there)) == [
        ("", "page", None, "http://h:80", "http://n"),
        ("a", "page", None, "about:blank", "http://n/"),
    ]
    two = report(step("a", page="http://one/x"), step("b", page="http://two/x"))
    into_one = report(step("a", page="http://one/x"), step("b", page="http://one/x"))
    assert said(differences(two, into_one)) == [("b", "page", None, "http://two/x", "http://one/x")]


def test_inputs_texts_and_errors_outside_of_steps_differ() -> None:
    """Inputs differ in their parts; the workflow file and each file that it uses by name."""
    one = report(inputs={"a": {"x": [1, 2]}, "b": 1}, texts={"/w/shares.yaml": "aa", "/w/lib/in.yaml": "bb"}, output=1)
    other = report(inputs={"a": {"x": [1, 3]}}, texts={"/w/shares.yaml": "cc"}, state="failed", error=FAILED)
    assert said(differences(one, other)) == [
        ("", "file", "shares.yaml", "aa", "cc"),
        ("", "file", "in.yaml", "bb", None),
        ("", "inputs", "a.x[1]", 2, 3),
        ("", "inputs", "b", 1, None),
        ("", "status", None, "passed", "failed"),
        ("", "error", None, None, FAILED),
    ]
    assert said(differences(one, report(file="/w/other.yaml", inputs=dict(one.inputs), output=2))) == [
        ("", "file", None, "/w/shares.yaml", "/w/other.yaml"),
        ("", "output", None, 1, 2),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab. ", max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, JSON)
def test_values_differ_exactly_if_their_json_does(one: Json, other: Json) -> None:
    """There is a difference if and only if the values are not the same JSON, and the other way round there are as many."""
    steps = [report(step("a", value=each)) for each in (one, other)]
    found = differences(*steps)
    assert bool(found) == (json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    assert len(found) <= MOST
    if any(each is None for each in (one, other)):
        assert len(found) <= 1


def test_long_lists_are_compared_as_a_whole() -> None:
    """A long list takes no time that grows with its square."""
    one, other = list(range(3_000)), list(range(3_000))[::-1]
    assert said(differences(report(step("a", value=one)), report(step("a", value=other)))) == [
        ("a", "value", None, one, other)
    ]
