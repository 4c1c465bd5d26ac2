"""Loops on a fake site: by list or condition, with failing iterations, killed at every action and resumed."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest

from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from tests.fakes import FakePage
from tests.rig import Killed, Rig


def action(name: str, target: str) -> str:
    """A click that must not happen twice, with a `confirm`."""
    confirm = (
        f"{{settle: 0, nodes: [{{id: look_{name}, type: browser_query, query: text, target: {{css: '{target}_done'}}}}],"
        f" done: \"{{{{ look_{name} == 'yes' }}}}\"}}"
    )
    return f"{{id: {name}, type: browser_action, action: click, target: {{css: '{target}'}}, confirm: {confirm}}}"


UNTIL = 'until: "{{ left == 0 }}"'
WHILE = 'while: "{{ left is undefined or left > 0 }}"'
PAY = action("pay", "pay{{ o }}")


def flow(nodes: str, output: str = "null", more: str = "") -> str:
    """A workflow file with these nodes."""
    return f"version: 1\nname: test\n{more}\noutput: {output}\nnodes:\n{textwrap.indent(nodes.strip(), '  ')}\n"


def pages(way: str, most: int = 5, more: str = "", output: str = '"{{ pages }}"') -> str:
    """A workflow that visits three pages."""
    nodes = f"""
- id: pages
  type: iterate
  {way}
  max: {most}
  as: page
  nodes:
    - {action("next", "next{{ page }}")}
    - {{id: left, type: transform, expr: "{{{{ 3 - page }}}}"}}
  {more}
"""
    return flow(nodes, output)


def codes(text: str) -> list[tuple[str, int]]:
    """The codes of the mistakes in a file, each with its line."""
    try:
        reader.parse(text, "flow.yaml")
    except WorkflowInvalid as error:
        return [(each.code, each.mark.line if each.mark else 0) for each in error.diagnostics]
    return []


def pay_each(rig: Rig, *, fail: AbstractSet[str] = frozenset(), kill: dict[str, int] | None = None) -> None:
    """Let the site perform actions, and the process die at those in ``kill``."""
    kill = kill if kill is not None else {}

    async def action(target: str, page: FakePage) -> None:
        page.browser.site.texts[f"{target}_done"] = "yes"
        if target in kill:
            del kill[target]
            raise Killed

    rig.site.on_click = action
    rig.missing = {f"css={name}" for name in fail}


@pytest.mark.parametrize("way", [UNTIL, WHILE])
async def test_a_loop_continues_as_its_condition_says(tmp_path: Path, way: str) -> None:
    """`while` is evaluated before each iteration and `until` after it, with the last iteration's values; `as` is the iteration's number."""
    rig = Rig(tmp_path, pages(way))
    ended = await rig.start()
    assert (ended.status, ended.output, rig.site.actions) == (
        "passed",
        [2, 1, 0],
        ["css=next1", "css=next2", "css=next3"],
    )


async def test_a_while_that_is_false_runs_nothing(tmp_path: Path) -> None:
    """A `while` that is false from the start yields an empty list."""
    rig = Rig(tmp_path, pages('while: "{{ left | default(0) > 0 }}"'))
    assert ((await rig.start()).output, rig.site.actions) == ([], [])


@pytest.mark.parametrize("way", [UNTIL, WHILE])
async def test_an_endless_loop_is_an_error(tmp_path: Path, way: str) -> None:
    """A loop that needs more iterations than `max` fails with `loop-limit` and their number; exactly `max` is enough."""
    assert (await Rig(tmp_path / "a", pages(way, most=3)).start()).status == "passed"
    ended = await Rig(tmp_path / "b", pages(way, most=2)).start()
    assert ended.error is not None
    assert (ended.exit, ended.path, ended.error["code"], ended.error["evidence"]) == (
        1,
        "pages",
        "loop-limit",
        {"turns": 2},
    )
    assert "max" in ended.error["fix"]


async def test_the_length_of_a_conditional_loop_is_unknown(tmp_path: Path) -> None:
    """A conditional loop has no `loop.last` and `loop.length`; `loop` is known even if the item has no name."""
    nodes = """
- id: turns
  type: iterate
  until: "{{ loop.index == 2 }}"
  max: 9
  nodes: [{id: seen, type: transform, expr: "{{ [loop.index, loop.first, loop.last, loop.length, loop.key] }}"}]
"""
    ended = await Rig(tmp_path, flow(nodes, '"{{ turns }}"')).start()
    assert ended.output == [[1, True, None, None, None], [2, False, None, None, None]]


async def test_collect_is_the_value_of_an_iteration(tmp_path: Path) -> None:
    """`collect` is evaluated at the end of each iteration, from that iteration's values."""
    rig = Rig(tmp_path, pages(UNTIL, more='collect: "{{ page ~ left }}"'))
    assert (await rig.start()).output == ["12", "21", "30"]


@pytest.mark.parametrize("key", ["", ', key: "{{ o }}"'])
async def test_a_limit_leaves_the_rest(tmp_path: Path, key: str) -> None:
    """A loop does at most `limit` items, and its length is that number."""
    nodes = f"""
- {{id: each, type: iterate, over: [a, b, c], as: o, limit: "{{{{ 1 + 1 }}}}"{key}, nodes: [{{id: x, type: transform, expr: "{{{{ o ~ loop.length ~ loop.last }}}}"}}]}}
"""
    assert (await Rig(tmp_path, flow(nodes, '"{{ each }}"')).start()).output == ["a2false", "b2true"]


EACH = f"""
- id: each
  type: iterate
  over: [a, b, c]
  as: o
  key: "{{{{ o }}}}"
  each_error: continue
  nodes:
    - {{id: fine, type: transform, expr: 1}}
    - {PAY}
    - {{id: name, type: transform, expr: "{{{{ o }}}}"}}
- {{id: end, type: browser_action, action: click, target: {{css: end}}, effect: idempotent}}
"""
OUTPUT = '{paid: "{{ each }}", failed: "{{ run.failures.each }}"}'


async def test_an_iteration_that_fails_is_given_up(tmp_path: Path) -> None:
    """With `each_error: continue` the next item begins, the list omits the failed one, and its error is reported with its step."""
    rig = Rig(tmp_path, flow(EACH, OUTPUT))
    pay_each(rig, fail={"payb"})
    rig.site.before_click = None
    rig.missing = {"css=payb"}
    ended = await rig.start()
    (failure,) = ended.output["failed"]
    assert (ended.status, ended.tolerated, ended.output["paid"]) == ("passed", 1, ["a", "c"])
    assert {name: failure[name] for name in ("index", "key", "step", "code")} == {
        "index": 2,
        "key": "b",
        "step": "each[#b]/pay",
        "code": "target-not-found",
    }
    assert "css=payb" in failure["message"]


async def test_a_given_up_iteration_collects_nothing(tmp_path: Path) -> None:
    """With `each_error: continue` the list has what `collect` makes of every other iteration, in order, also after a kill and a resume."""
    collecting = EACH.replace("each_error: continue", 'each_error: continue\n  collect: "{{ name ~ loop.index }}"')
    rig = Rig(tmp_path, flow(collecting, OUTPUT))
    pay_each(rig, fail={"payb"}, kill={"css=end": 1})
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=True)
    ended = await rig.resume()
    assert (ended.tolerated, ended.output["paid"]) == (1, ["a1", "c3"])
    assert [failure["step"] for failure in ended.output["failed"]] == ["each[#b]/pay"]


async def test_a_collect_that_fails_gives_the_iteration_up(tmp_path: Path) -> None:
    """`each_error: continue` covers `collect` too; the failure names the loop's own iteration."""
    nodes = """
- {id: each, type: iterate, over: [1, 0, 4], as: n, each_error: continue, collect: "{{ 4 // n }}", nodes: [{id: x, type: transform, expr: 1}]}
"""
    ended = await Rig(tmp_path, flow(nodes, OUTPUT)).start()
    assert (ended.tolerated, ended.output["paid"]) == (1, [4, 1])
    assert [failure["index"] for failure in ended.output["failed"]] == [2]


async def test_without_failures_the_list_of_them_is_empty(tmp_path: Path) -> None:
    """`run.failures.<id>` has a value wherever the loop has run."""
    rig = Rig(tmp_path, flow(EACH, OUTPUT))
    pay_each(rig)
    assert (await rig.start()).output == {"paid": ["a", "b", "c"], "failed": []}


@pytest.mark.parametrize("survives", [True, False])
@pytest.mark.parametrize("where", ["css=paya", "css=payc", "css=end"])
async def test_an_iteration_that_was_given_up_stays_given_up(tmp_path: Path, where: str, survives: bool) -> None:
    """A run killed in any item or after the loop resumes with the same failures, and every other item is paid once."""
    rig = Rig(
        tmp_path, flow("- {id: open, type: browser_action, action: goto, url: 'http://shop.test/'}" + EACH, OUTPUT)
    )
    pay_each(rig, fail={"payb"}, kill={where: 1})
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=survives)
    ended = await rig.resume()
    assert (ended.status, ended.tolerated, ended.output["paid"]) == ("passed", 1, ["a", "c"])
    assert [failure["step"] for failure in ended.output["failed"]] == ["each[#b]/pay"]
    assert [action for action in rig.site.actions if "pay" in action] == ["css=paya", "css=payc"]


async def test_an_assert_is_given_up_and_an_origin_is_not(tmp_path: Path) -> None:
    """`each_error: continue` covers the errors that `on_error: continue` covers, but never a refused origin."""
    from nodes.errors import OriginRefused

    rig = Rig(tmp_path, flow(EACH, OUTPUT))

    async def stray(_target: str, page: FakePage) -> None:
        page.browser.refused = OriginRefused("origin-refused", "a document of http://evil.test was refused")

    rig.site.on_click = stray
    ended = await rig.start()
    assert (ended.status, ended.error and ended.error["code"], ended.path) == (
        "failed",
        "origin-refused",
        "each[#a]/pay",
    )


@pytest.mark.parametrize("way", [UNTIL, WHILE])
@pytest.mark.parametrize("survives", [True, False])
@pytest.mark.parametrize("page", [1, 2, 3])
async def test_a_conditional_loop_continues_where_it_died(tmp_path: Path, way: str, survives: bool, page: int) -> None:
    """A loop killed in any iteration repeats no finished iteration and no decision of its condition."""
    rig = Rig(tmp_path, pages(way))
    pay_each(rig, kill={f"css=next{page}": 1})
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=survives)
    ended = await rig.resume()
    assert (ended.status, ended.output) == ("passed", [2, 1, 0])
    assert rig.site.actions == ["css=next1", "css=next2", "css=next3"]


async def test_a_condition_is_not_evaluated_again(tmp_path: Path) -> None:
    """A condition with another value at the resume does not change the number of iterations."""
    nodes = f"""
- id: turns
  type: iterate
  while: "{{{{ vars.n | default(0) < 2 }}}}"
  max: 9
  nodes:
    - {{id: count, type: context, set: {{n: "{{{{ loop.index }}}}"}}}}
    - {action("go", "go{{ loop.index }}")}
- {{id: reset, type: context, set: {{n: 0}}}}
- {action("end", "end")}
"""
    rig = Rig(tmp_path, flow(nodes, '{turns: "{{ turns | length }}", n: "{{ vars.n }}"}'))
    pay_each(rig, kill={"css=end": 1})
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    assert (await rig.resume()).output == {"turns": 2, "n": 0}
    assert rig.site.actions == ["css=go1", "css=go2", "css=end"]


@pytest.mark.parametrize("survives", [True, False])
async def test_variables_of_finished_iterations_are_known_again(tmp_path: Path, survives: bool) -> None:
    """A resumed run knows the variables that finished iterations set."""
    nodes = """
- {id: zero, type: context, set: {sum: 0}}
- id: each
  type: iterate
  over: [1, 2, 3]
  as: o
  nodes:
    - {id: go, type: browser_action, action: click, target: {css: "go{{ o }}"}, effect: idempotent}
    - {id: add, type: context, set: {sum: "{{ vars.sum + o }}"}}
"""
    rig = Rig(tmp_path, flow(nodes, '"{{ vars.sum }}"'))
    pay_each(rig, kill={"css=go3": 1})
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=survives)
    assert (await rig.resume()).output == 6


async def test_an_error_of_one_iteration_is_unknown_in_the_next(tmp_path: Path) -> None:
    """`run.errors` and `run.taken` of nodes in a loop are those of the iteration."""
    nodes = """
- id: each
  type: iterate
  over: [0, 1]
  as: o
  nodes:
    - {id: half, type: transform, expr: "{{ 1 // o }}", on_error: continue}
    - {id: said, type: transform, expr: "{{ run.errors.half is defined }}"}
"""
    assert (await Rig(tmp_path, flow(nodes, '"{{ each }}"')).start()).output == [True, False]


async def test_a_limit_holds_when_the_list_is_made_again(tmp_path: Path) -> None:
    """Items begun before the list was read again count, though the list misses them, so at most `limit` items are done."""
    orders = ["a", "b", "c", "d"]
    nodes = f"""
- {{id: open, type: browser_action, action: goto, url: "http://shop.test/"}}
- id: unit
  type: group
  nodes:
    - {{id: rows, type: browser_query, query: extract, min: 0, target: {{css: rows}}, fields: {{n: b}}}}
    - {{id: each, type: iterate, over: "{{{{ rows | map(attribute='n') | list }}}}", as: o, key: "{{{{ o }}}}", limit: 2, nodes: [{PAY}, {{id: to, type: browser_action, action: fill, target: {{css: f}}, value: x}}]}}
"""
    rig = Rig(tmp_path, flow(nodes, '"{{ each | length }}"'))

    def listed() -> None:
        rig.site.texts["css=rows"] = json.dumps([[order] for order in orders])

    async def action(target: str, page: FakePage) -> None:
        page.browser.site.texts[f"{target}_done"] = "yes"
        orders.remove(target.removeprefix("css=pay"))
        listed()
        if target == "css=payb":
            raise Killed

    listed()
    rig.site.on_click = action
    with pytest.raises(Killed):
        await rig.start()
    rig.die()
    assert ((await rig.resume()).output, rig.site.actions) == (2, ["css=paya", "css=payb"])


ONE = "[{id: a, type: transform, expr: 1}]"


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"over": [1], "as": "o", "while": "{{ true }}", "max": 3}, [("conflicting-fields", 9)]),
        ({"while": "{{ true }}", "until": "{{ true }}", "max": 3}, [("conflicting-fields", 8)]),
        ({}, [("missing-field", 5)]),
        ({"over": [1]}, [("missing-field", 7)]),
        ({"until": "{{ a == 1 }}"}, [("missing-field", 7)]),
        ({"until": "{{ a == 1 }}", "max": 3, "limit": 2}, [("conflicting-fields", 9)]),
        ({"until": "{{ a == 1 }}", "max": 0}, [("out-of-bounds", 8)]),
        ({"over": [1], "as": "o", "max": 3}, [("conflicting-fields", 9)]),
        ({"while": "{{ a == 1 }}", "max": 3}, [("unguarded-reference", 7)]),
        ({"while": "{{ a is undefined or a == 1 }}", "max": 3}, []),
        ({"while": "{{ loop.index < 3 }}", "max": 3}, [("unknown-reference", 7)]),
        ({"until": "{{ a == 1 and loop.index > 1 }}", "max": 3}, []),
        ({"until": "{{ a == 1 }}", "max": 3, "each_error": "continue"}, [("unguarded-reference", 7)]),
        ({"over": [1], "as": "o", "collect": "{{ a + o }}", "each_error": "continue"}, []),
        ({"over": [1], "as": "o", "collect": "{{ b }}"}, [("unknown-reference", 9)]),
    ],
)  # fmt: skip
def test_a_loop_is_written_in_one_way(fields: dict[str, Any], found: list[tuple[str, int]]) -> None:
    """A loop has exactly one of `over`, `while` and `until`, with their own fields; every reference in a condition is known there."""
    lines = "".join(f"    {name}: {json.dumps(value)}\n" for name, value in fields.items())
    text = f"version: 1\nname: t\n\nnodes:\n  - id: each\n    type: iterate\n{lines}    nodes: {ONE}\n"
    assert codes(text) == found


@pytest.mark.parametrize("name", ["part", "field", "ctx", "name"])
async def test_an_item_may_have_any_name(tmp_path: Path, name: str) -> None:
    """The name of a loop's item is free: a key reads the item whatever it is called."""
    text = flow(
        f"""
- id: each
  type: iterate
  over: [a, b]
  as: {name}
  key: "{{{{ {name} }}}}"
  nodes: [{{id: again, type: transform, expr: "{{{{ {name} }}}}"}}]
""",
        '"{{ each }}"',
    )
    assert (await Rig(tmp_path, text).start()).output == ["a", "b"]
