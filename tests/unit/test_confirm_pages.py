"""`confirm` over several pages: allowed nodes, a fresh check each time in its own tab, and no change to the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.browser_action import Goto
from nodes.errors import SiteError
from nodes.pointer import PLAIN, Stroke
from nodes.targets import Target
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log import entries
from tests.fakes import FakePage
from tests.rig import Killed, Rig
from tests.unit.test_resume import OPEN, flow, kill, pay

PAID = 3
"""The page of the list with the payment."""


class Paged(FakePage):
    """A list of three pages with a button for the next one."""

    number = 1

    async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
        self.number = 1
        return await super().goto(url, anew=anew, once=once)

    async def text(self, target: Target) -> str:
        there = self.number == PAID and self.browser.site.texts.get("paid")
        return "paid" if there else f"bill {self.number}"

    async def count(self, target: Target, *, hidden: bool = False) -> int:
        if self.browser.site.texts.get("broken") == str(self.number):
            raise SiteError("target-ambiguous", "two elements match")
        return int(self.number < PAID)

    async def click(self, target: Target, how: Stroke = PLAIN) -> None:
        if str(target) == "css=next":
            self.number += 1
            return
        await super().click(target, how)


LEAF = "{id: leaf, type: browser_action, action: click, target: {css: next}, when: '{{ more }}', effect: read}"
LIST = (
    "{id: look, type: browser_action, action: goto, url: 'http://shop.test/list'}, "
    "{id: found, type: iterate, until: '{{ more is undefined or not more }}', max: MAX, each_error: continue, collect: '{{ bill }}', nodes: ["
    "{id: bill, type: browser_query, query: text, target: {css: bill}}, "
    f"{{id: more, type: browser_query, query: exists, target: {{css: next}}}}, {LEAF}]}}, "
    "{id: which, type: route, branches: [{name: many, when: '{{ found | length > 1 }}', nodes: [{id: last, type: transform, expr: '{{ found[-1] }}'}]}]}"
)


def asking(most: int = 9) -> str:
    """A payment whose `confirm` goes through the list."""
    done = "{{ which == 'paid' and run.taken.which == 'many' }}"
    return pay(f', confirm: {{settle: 0, nodes: [{LIST.replace("MAX", str(most))}], done: "{done}"}}')


def paged(home: Path, **more: int) -> Rig:
    """A run on the list."""
    rig = Rig(home, flow(OPEN, asking(**more), "{id: end, type: transform, expr: '{{ 1 }}'}"))
    rig.site.page = Paged
    return rig


async def died(rig: Rig, *, paid: bool) -> None:
    """Runs until it dies in the middle of the payment, with its browser."""

    async def pay_and_die(_target: str, page: FakePage) -> None:
        page.browser.site.texts |= {"paid": "yes"}
        raise Killed

    rig.site.before_click, rig.site.on_click = (None, pay_and_die) if paid else (kill, None)
    with pytest.raises(Killed):
        await rig.start()
    rig.site.before_click = rig.site.on_click = None
    rig.die()


async def test_a_payment_on_the_third_page_is_found(tmp_path: Path) -> None:
    """`confirm` reads all pages under its own paths and thread, and the payment is not repeated."""
    rig = paged(tmp_path)
    await died(rig, paid=True)
    assert (await rig.resume()).status == "passed"
    assert rig.site.actions == ['role=button name="Pay"']
    in_confirm = [each.call for each in rig.history.all_attempts() if each.call.thread.startswith(entries.CONFIRM)]
    assert [each.path for each in in_confirm][:4] == [
        "pay/confirm/look",
        "pay/confirm/found[1]/bill",
        "pay/confirm/found[1]/more",
        "pay/confirm/found[1]/leaf",
    ]
    assert in_confirm[-1].path == "pay/confirm/which/last"
    assert {each.effect for each in in_confirm} <= {"read", "idempotent"}
    assert not [path for path in rig.history.scopes if "confirm" in path]


async def test_a_second_check_reads_the_whole_list_again(tmp_path: Path) -> None:
    """Not done needs two independent checks, so a payment that appears between them is found."""
    rig = paged(tmp_path)
    await died(rig, paid=False)
    checks: list[int] = []

    class Late(Paged):
        async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
            if url.endswith("/list"):
                checks.append(1)
                self.browser.site.texts |= {"paid": "yes"} if len(checks) == LATE else {}
            return await super().goto(url, anew=anew, once=once)

    rig.site.page = Late
    assert (await rig.resume()).status == "passed"
    assert (len(checks), rig.site.actions) == (LATE, [])


LATE = 3
"""The check that finds the payment: one on the restored state, then two at the action."""


@pytest.mark.parametrize(("most", "broken"), [(2, ""), (9, "2")])
async def test_an_incomplete_list_gives_no_verdict(tmp_path: Path, most: int, broken: str) -> None:
    """With more pages than `max`, or an unreadable page, a person is asked and nothing is repeated, whatever `each_error` says."""
    rig = paged(tmp_path, most=most)
    rig.site.texts["broken"] = broken
    await died(rig, paid=True)
    ended = await rig.resume()
    assert (ended.status, rig.site.actions) == ("paused", ['role=button name="Pay"'])


async def test_a_node_that_resolves_to_an_action_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node in `confirm` that becomes an action once its references are resolved is not done, and a person is asked."""

    def resolved(node: Goto) -> str:
        return "effect" if node.url.endswith("/act") else "idempotent"

    monkeypatch.setattr(Goto, "effect_class", property(resolved))
    visited: list[str] = []

    class Watched(FakePage):
        async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
            visited.append(url)
            return await super().goto(url, anew=anew, once=once)

    look = "{id: look, type: browser_action, action: goto, url: \"{{ 'http://shop.test/' ~ 'act' }}\"}"
    rig = Rig(tmp_path, flow(OPEN, pay(f", confirm: {{settle: 0, nodes: [{look}], done: false}}")))
    rig.site.page = Watched
    await died(rig, paid=True)
    ended = await rig.resume()
    assert (ended.status, len(rig.site.actions)) == ("paused", 1)
    assert ended.question is not None
    assert "a `confirm` only finds out" in ended.question["message"]
    assert set(visited) == {"http://shop.test/"}


class Redrawn(FakePage):
    """A page that draws itself anew after a panel was opened, and closes it with that, as often as the site says."""

    opened = False

    async def click(self, target: Target, how: Stroke = PLAIN) -> None:
        if str(target) == "css=panel":
            left = int(self.browser.site.texts["redraws"])
            self.browser.site.texts["redraws"] = str(max(0, left - 1))
            self.opened = not left
            return
        await super().click(target, how)

    async def text(self, target: Target) -> str:
        if not self.opened:
            raise SiteError("target-not-found", "no element matches css=state")
        return "paid" if self.browser.site.texts.get("paid") else "open"


PANEL = (
    "{id: look, type: browser_action, action: goto, url: 'http://shop.test/list'}, "
    "{id: again, type: handle, attempts: 3, try: ["
    "{id: panel, type: browser_action, action: click, target: {css: panel}, effect: read}, "
    "{id: state, type: browser_query, query: text, target: {css: state}}]}"
)


@pytest.mark.parametrize("paid", [True, False])
@pytest.mark.parametrize(("redraws", "status"), [(2, "passed"), (99, "paused")])
async def test_a_confirm_opens_a_panel_again_that_the_page_closed(
    tmp_path: Path, redraws: int, status: str, paid: bool
) -> None:
    """`handle` repeats the click and the read together; if that never succeeds, a person is asked and the payment is not repeated."""
    ends = "{id: end, type: transform, expr: '{{ 1 }}'}"
    confirm = f", confirm: {{settle: 0, nodes: [{PANEL}], done: \"{{{{ again == 'paid' and state == again }}}}\"}}"
    rig = Rig(tmp_path, flow(OPEN, pay(confirm), ends))
    rig.site.page = Redrawn
    rig.site.texts["redraws"] = str(redraws)
    await died(rig, paid=paid)
    assert (await rig.resume()).status == status
    assert len(rig.site.actions) == int(paid or status == "passed")
    assert not [path for path in rig.history.scopes if "confirm" in path]


def refused(node: str) -> list[str]:
    """The mistakes of a file whose `confirm` contains ``node``."""
    try:
        reader.parse(flow(OPEN, pay(f", confirm: {{nodes: [{node}], done: true}}")), "test.yaml")
    except WorkflowInvalid as error:
        return [each.code for each in error.diagnostics]
    return []


LOOP = "{id: looped, type: iterate, over: [1], as: n, nodes: [{}]}"
CLICK = "{id: a, type: browser_action, action: click, target: {css: a}}"
READ = "{id: b, type: browser_query, query: title}"


@pytest.mark.parametrize("within", ["{}", LOOP], ids=["alone", "in a loop"])
@pytest.mark.parametrize(
    ("node", "codes"),
    [
        (CLICK.replace("}}", "}, effect: read}"), []),
        (CLICK, ["not-in-confirm"]),
        (CLICK.replace("}}", "}, effect: idempotent}"), ["not-in-confirm"]),
        (CLICK.replace("}}", "}, effect: read, opens: other}"), ["not-in-confirm"]),
        ("{id: a, type: browser_action, action: press, key: Enter, effect: read}", []),
        ("{id: a, type: browser_action, action: press, key: Enter}", ["not-in-confirm"]),
        ("{id: a, type: browser_action, action: fill, target: {label: Search}, value: x, effect: read}", []),
        ("{id: a, type: browser_action, action: fill, target: {label: Search}, value: x}", ["not-in-confirm"]),
        (
            "{id: a, type: browser_action, action: upload, target: {label: File}, files: x, effect: read}",
            ["not-in-confirm"],
        ),
        ("{id: a, type: browser_action, action: goto, url: 'http://shop.test/', effect: effect}", ["not-in-confirm"]),
        ("{id: a, type: context, set: {x: 1}}", ["not-in-confirm"]),
        (f"{{id: a, type: group, nodes: [{READ}]}}", []),
        (f"{{id: a, type: group, nodes: [{CLICK.replace('id: a', 'id: c')}]}}", ["not-in-confirm"]),
        ("{id: a, type: group, use: other.yaml}", ["not-in-confirm", "use-not-found"]),
        (f"{{id: a, type: handle, try: [{READ}], attempts: 2}}", []),
        (f"{{id: a, type: handle, try: [{CLICK.replace('id: a', 'id: c')}], attempts: 2}}", ["not-in-confirm"]),
        (f"{{id: a, type: handle, try: [{READ}], catch: [{READ.replace('id: b', 'id: c')}]}}", ["not-in-confirm"]),
        (
            f"{{id: a, type: handle, try: [{READ}], attempts: 2, finally: [{READ.replace('id: b', 'id: c')}]}}",
            ["not-in-confirm"],
        ),
        (f"{{id: a, type: route, branches: [{{name: one, when: true, nodes: [{READ}]}}]}}", []),
    ],
)
def test_only_reading_nodes_are_allowed_in_confirm(within: str, node: str, codes: list[str]) -> None:
    """Reads, `goto`, clicks, keys and fields with `effect: read` are allowed, with containers around them, and nothing that catches an error."""
    assert refused(within.replace("{}", node)) == codes


def test_both_branches_of_a_route_are_checked() -> None:
    """A click in `otherwise` is refused like one in a branch."""
    for one, other in ((CLICK, READ), (READ, CLICK)):
        node = f"{{id: way, type: route, branches: [{{name: one, when: true, nodes: [{one}]}}], otherwise: [{other}]}}"
        assert refused(node) == ["not-in-confirm"]
