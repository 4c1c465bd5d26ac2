"""Hints about valid files: their code, their node, and files without hints."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.language import callees, hints, reader
from tests.pages import ROOT
from tests.unit.test_resume import flow

AT = "http://shop.test"
OPEN = f"{{id: open, type: browser_action, action: goto, url: '{AT}/bills'}}"
NEXT = "{id: next, type: browser_action, action: click, target: {role: button, name: Next}, effect: read}"
ROWS = "{id: rows, type: browser_query, query: extract, target: {css: '#bills tr'}, fields: {name: .c0}}"
LEAFED = f"{{id: all, type: iterate, over: [1, 2], as: page, nodes: [{ROWS}, {NEXT}]}}"
READ = "{id: total, type: browser_query, query: text, target: {css: b}}"
ELSEWHERE = f"{{id: home, type: browser_action, action: goto, url: '{AT}/'}}"


def goto(name: str, path: str) -> str:
    """Open a page."""
    return f"{{id: {name}, type: browser_action, action: goto, url: '{AT}{path}'}}"


def pay(*confirm: str, more: str = "", name: str = "pay") -> str:
    """A click that must not happen twice."""
    asks = f", confirm: {{nodes: [{', '.join(confirm)}], done: true}}" if confirm else ""
    return f"{{id: {name}, type: browser_action, action: click, target: {{role: button, name: Pay}}{asks}{more}}}"


def found(*nodes: str, **files: str) -> list[tuple[str, str]]:
    """The hints about a file with these nodes: node and code of each."""
    texts = callees.Texts({f"{name}.yaml": text for name, text in files.items()})
    return [(each.node, each.code) for each in hints.of(reader.parse(flow(*nodes), "test.yaml", texts))]


@pytest.mark.parametrize("confirm", [(), (READ,)])
def test_a_side_effect_is_retried_with_an_unknown_outcome(confirm: tuple[str, ...]) -> None:
    """`retry.on` overrides `confirm`: a hint names each code that leaves a side effect unknown; codes that prove nothing happened and steps that read have none."""
    again = ", retry: {attempts: 2, on: [%s]}"
    assert found(OPEN, pay(*confirm, more=again % "timeout")) == [("pay", "retry-acts-twice")]
    assert found(OPEN, pay(*confirm, more=again % "target-not-found")) == []
    assert found(OPEN, pay(*confirm, more=", retry: {attempts: 2}")) == []
    assert found(OPEN, NEXT.replace("effect: read", f"effect: read{again % 'timeout'}")) == []


LOOK = goto("look", "/bills")
STATE = "{id: state, type: browser_query, query: exists, target: {css: '#bills tr', has_text: '25'}}"
LEAF = NEXT.replace("id: next", "id: leaf")
ONE_PAGE = [("pay", "confirm-reads-one-page")]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([OPEN, LEAFED, pay(LOOK, STATE)], ONE_PAGE),
        ([OPEN, f"{{id: to, type: iterate, over: [1], as: n, nodes: [{NEXT}]}}", pay(LOOK, STATE)], ONE_PAGE),
        # A click leads to the list, so the rows that are read identify the list.
        ([ELSEWHERE, NEXT.replace("id: next", "id: menu"), LEAFED, pay(LOOK, STATE)], ONE_PAGE),
        ([OPEN, LEAFED, pay(LOOK, f"{{id: asked, type: iterate, over: [1, 2], as: n, nodes: [{STATE}, {LEAF}]}}")], []),
        ([OPEN, LEAFED, pay(goto("look", "/bills/25"), STATE)], []),
        ([OPEN, ROWS, pay(LOOK, STATE)], []),
        # A loop that opens something in each row, and one that loads each page, do not page through a list.
        (
            [
                OPEN,
                ROWS,
                LEAFED.replace(ROWS, READ).replace(
                    "name: Next", "name: Show, within: {has_text: '{{ page }}', css: tr}"
                ),
                pay(LOOK, STATE),
            ],
            [],
        ),
        ([OPEN, LEAFED.replace(NEXT, f"{goto('load', '/bills')}, {NEXT}"), pay(LOOK, STATE)], []),
    ],
)
def test_a_confirm_that_reads_one_page_of_many(nodes: list[str], expected: list[tuple[str, str]]) -> None:
    """A `confirm` that reads a paginated list once says *not done* of a row on a later page."""
    assert found(*nodes) == expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([OPEN, LEAFED, pay(more=", verify: [{visible: {css: '#bills tr', has_text: '25'}}]")], [("pay", "verify-reads-one-page")]),
        ([OPEN, LEAFED, pay(more=", verify: [{text: paid, target: {css: h1}}]")], []),
        # Within the loop, `verify` looks at the page of the action.
        ([OPEN, LEAFED.replace(NEXT, f"{pay(more=', verify: [{text: paid, target: {css: ' + repr('#bills tr') + '}}]')}, {NEXT}")], []),
        ([OPEN, LEAFED, NEXT.replace("id: next", "id: other").replace("effect: read", "effect: read, verify: [{visible: {css: '#bills tr'}}]")], []),
    ],
)  # fmt: skip
def test_a_verify_that_reads_one_page_of_many(nodes: list[str], expected: list[tuple[str, str]]) -> None:
    """A `verify` of a side effect outside the loop that reads one page of many gets the same hint."""
    assert found(*nodes) == expected


HINT = [("total", "effect-without-goto")]
SURE = pay(goto("look", "/1"))


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([OPEN, SURE, READ], HINT),
        ([OPEN, SURE, ELSEWHERE, READ], []),
        ([OPEN, SURE], []),
        ([OPEN, pay(), READ], []),
        ([OPEN, SURE, "{id: one, type: transform, expr: 1}", READ], HINT),
        ([OPEN, SURE, pay(name="more"), READ], []),
        ([OPEN, f"{{id: g, type: group, nodes: [{SURE}]}}", f"{{id: h, type: group, nodes: [{READ}]}}"], HINT),
        ([OPEN, f"{{id: each, type: iterate, over: [1], as: n, nodes: [{READ}, {SURE}]}}", ELSEWHERE], HINT),
        ([OPEN, f"{{id: each, type: iterate, over: [1], as: n, nodes: [{ELSEWHERE}, {READ}, {SURE}]}}"], []),
        ([OPEN, SURE, f"{{id: r, type: route, branches: [{{name: a, when: true, nodes: [{ELSEWHERE}]}}]}}", READ], HINT),
        ([OPEN, SURE, f"{{id: t, type: handle, try: [{ELSEWHERE}], catch: [{READ.replace('total', 'late')}]}}", READ], []),
        ([OPEN, SURE, ELSEWHERE.replace("type:", "when: true, type:"), READ], HINT),
        ([OPEN, SURE, "{id: part, type: group, use: part.yaml}", READ], []),
    ],
)  # fmt: skip
def test_a_step_that_reads_the_page_after_a_side_effect(nodes: list[str], expected: list[tuple[str, str]]) -> None:
    """After a side effect with `confirm`, the page is opened with a `goto` before it is used; steps that may be skipped do not count."""
    assert found(*nodes, part=flow(ELSEWHERE)) == expected


def test_the_examples_have_no_hints() -> None:
    """The example workflows have no hints."""
    for file in sorted((ROOT / "workflows").rglob("*.yaml")):
        assert [(each.node, each.code) for each in hints.of(reader.load(Path(file)))] == []
