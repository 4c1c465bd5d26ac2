"""Hints about valid files: what they say, of which node, and where they say nothing."""

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
def test_a_side_effect_is_tried_again_where_nobody_knows(confirm: tuple[str, ...]) -> None:
    """`retry.on` overrides `confirm`: what it names that leaves a side effect unknown is hinted at; what proves that nothing happened, and what only reads, is not."""
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
        # What leads to the list is a click: then what is read of it tells which list it is.
        ([ELSEWHERE, NEXT.replace("id: next", "id: menu"), LEAFED, pay(LOOK, STATE)], ONE_PAGE),
        ([OPEN, LEAFED, pay(LOOK, f"{{id: asked, type: iterate, over: [1, 2], as: n, nodes: [{STATE}, {LEAF}]}}")], []),
        ([OPEN, LEAFED, pay(goto("look", "/bills/25"), STATE)], []),
        ([OPEN, ROWS, pay(LOOK, STATE)], []),
        # A loop that opens something in each row, and one that loads each page, leaf through nothing.
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
    """A `confirm` that looks at a list once, through which the file leafs, says *not done* of what is on a later page."""
    assert found(*nodes) == expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([OPEN, LEAFED, pay(more=", verify: [{visible: {css: '#bills tr', has_text: '25'}}]")], [("pay", "verify-reads-one-page")]),
        ([OPEN, LEAFED, pay(more=", verify: [{text: paid, target: {css: h1}}]")], []),
        # In the loop the page on which it acts is the one at which it looks.
        ([OPEN, LEAFED.replace(NEXT, f"{pay(more=', verify: [{text: paid, target: {css: ' + repr('#bills tr') + '}}]')}, {NEXT}")], []),
        ([OPEN, LEAFED, NEXT.replace("id: next", "id: other").replace("effect: read", "effect: read, verify: [{visible: {css: '#bills tr'}}]")], []),
    ],
)  # fmt: skip
def test_a_verify_that_reads_one_page_of_many(nodes: list[str], expected: list[tuple[str, str]]) -> None:
    """The same of the `verify` of a side effect that stands outside the loop."""
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
    """After one with a `confirm`, the next step of the page begins with a `goto`; what may be skipped is not counted on."""
    assert found(*nodes, part=flow(ELSEWHERE)) == expected


def test_the_examples_have_none() -> None:
    """The workflows that show how it is done say it as well as can be."""
    for file in sorted((ROOT / "workflows").rglob("*.yaml")):
        assert [(each.node, each.code) for each in hints.of(reader.load(Path(file)))] == []
