"""Observations of twelve real pages: every element that one can act on is reachable, at any size limit."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import AsyncIterator, Iterator

import pytest

from nodes.errors import SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.observation.observation import Observation
from runtime.secrets.masking import Masker
from tests import breadth, browsers, site
from tests.django_process import DjangoAdmin
from tests.observed import judge, table, tasks
from tests.shop_process import Shop

pytestmark = pytest.mark.drawn(share=0.3, of="observation")

BUDGETS = (1000, 3000, 5000)


@dataclasses.dataclass(frozen=True)
class Sites:
    """The servers of the pages."""

    own: site.Site
    tasks: str
    shop: Shop
    admin: DjangoAdmin


@dataclasses.dataclass(frozen=True)
class PageCase:
    """One of the twelve pages."""

    address: str
    """The server's name, a colon, and the path."""
    runs: str = ""
    """CSS of similar rows, which may be folded."""
    click: tuple[str, str | None] = ("", None)
    """The role and the beginning of the name (None: no name) of the element to click, the first that matches."""
    changes: str = ""
    """The text that the difference after the click must contain."""


PAGES = {
    "table": PageCase("own:/table", "tbody tr", ("button", "Edit"), "done"),
    "orders": PageCase("shop:/orders", "tbody tr", ("link", "Open"), "gone: 5 elements"),
    "order": PageCase("shop:/orders/1001", "", ("button", "Pay"), 'button "Pay" [ref='),
    "form": PageCase("shop:/form", "", ("checkbox", "Include samples"), 'changed: checkbox "Include samples" (checked)'),
    "messages": PageCase("shop:/messages", "tbody tr", ("link", "1003"), 'new: checkbox "Urgent"'),
    "delivery": PageCase("shop:/delivery", "", ("link", "Dock"), 'heading "'),
    "articles": PageCase("shop:/articles?for=A1", "tbody tr", ("button", "Add"), 'link "Cart (1)"'),
    "list": PageCase("admin:/admin/billing/invoice/", "tbody tr, #changelist-filter li", ("checkbox", "Select all"), "(checked)"),
    "change": PageCase("admin:/admin/billing/invoice/add/", "", ("button", "Save"), "error"),
    "flight": PageCase("tasks:/miniwob/book-flight.html", "", ("textbox", None), "new: "),
    "inbox": PageCase("tasks:/miniwob/email-inbox.html", ".email-thread", ("clickable", ""), ""),
    "boxes": PageCase("tasks:/miniwob/click-checkboxes-large.html", "", ("checkbox", ""), "(checked)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """A table, the shop, a Django admin and the tasks."""
    with (
        site.serve() as own,
        tasks.served() as served,
        Shop.start(tmp_path_factory.mktemp("shop")) as shop,
        DjangoAdmin.start(tmp_path_factory.mktemp("django")) as admin,
    ):
        own.page("/table", table.page())
        yield Sites(own, served, shop, admin)


@pytest.fixture(scope="module")
async def driven(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here, signed in everywhere."""
    origins = (sites.own.origin, sites.tasks, sites.shop.url, sites.admin.url)
    async with browsers.opened(tmp_path_factory.mktemp("private"), *origins, seconds=60) as browser:
        for address in (f"{sites.shop.url}/login", f"{sites.admin.url}/admin/login/?next=/admin/"):
            await browser.page.goto(address)
            await browser.page.fill(Target(css="[name=username]"), "admin")
            await browser.page.fill(Target(css="[type=password]"), sites.shop.password)
            await browser.page.press(["Enter"], Target(css="[type=password]"))
            await browser.page.wait_for(Rule(hidden=Target(css="[type=password]")))
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """The session's tab, with a minute for each test."""
    driven.bound(60)
    return driven.page


async def show(tab: Tab, sites: Sites, name: str) -> judge.Judged:
    """Opens a page, and determines what its observation must contain."""
    served, _, path = PAGES[name].address.partition(":")
    origin = {"own": sites.own.origin, "tasks": sites.tasks, "shop": sites.shop.url, "admin": sites.admin.url}[served]
    await tab.goto(origin + path)
    if served == "tasks":
        await tab.page.evaluate(tasks.BEGIN)
    return await judge.judged(tab.page, PAGES[name].runs)


async def probes(tab: Tab, seen: Observation) -> dict[str, int | None]:
    """For each ref, the number of its element, read from the element itself."""

    async def probe(ref: str) -> int | None:
        number = await (await tab.by_ref(ref)).get_attribute("data-probe")
        return None if number is None else int(number)

    refs = seen.refs
    numbers: list[int | None] = []
    for first in range(0, len(refs), 50):
        numbers += await asyncio.gather(*(probe(ref) for ref in refs[first : first + 50]))
    return dict(zip(refs, numbers, strict=True))


def fold_lines(text: str) -> list[str]:
    """The lines that replace folded content."""
    return [line.strip() for line in text.split("\n") if line.lstrip().startswith("…")]


def all_said(seen: Observation) -> set[str]:
    """Every line of the page."""
    return {line.strip() for line in seen.render(1_000_000).split("\n")}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", PAGES)
async def test_nothing_is_out_of_reach(name: str, tab: Tab, sites: Sites) -> None:
    """At any limit no line is cut, and each element is found by role, name and, if alike, row, with its own ref."""
    wanted = await show(tab, sites, name)
    seen = await tab.look()
    numbers = await probes(tab, seen)
    assert wanted.probes <= {*numbers.values()}
    assert "data-probe" not in seen.render(1_000_000)
    elements = [seen.element(ref) for ref, number in numbers.items() if number in wanted.probes]
    lines = all_said(seen)
    for budget in BUDGETS:
        text = seen.render(budget)
        assert len(text) <= budget
        assert {line.strip() for line in text.split("\n")} - lines == set(fold_lines(text))
        for element in breadth.some(elements, -(-len(elements) // len(BUDGETS))):
            found = seen.find(role=element.role, name=element.name, budget=budget)
            if f"[ref={element.ref}]" not in found:
                found = seen.find(role=element.role, name=element.name, row=element.row, budget=budget)
            assert f"[ref={element.ref}]" in found, element
            assert len(found) <= budget


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", PAGES)
async def test_elements_and_alerts_are_shown(name: str, tab: Tab, sites: Sites) -> None:
    """At 5,000 characters every element outside similar rows has its ref. From 3,000 on all headings, alerts, dialogs and errors are shown."""
    wanted = await show(tab, sites, name)
    seen = await tab.look()
    numbers = await probes(tab, seen)
    text = seen.render()
    missing = {number for ref, number in numbers.items() if f"[ref={ref}]" not in text and number in wanted.probes}
    assert missing <= wanted.in_runs
    for budget in BUDGETS[1:]:
        for said in wanted.loud:
            assert json.dumps(said, ensure_ascii=False)[1:-1].casefold() in seen.render(budget).casefold()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", PAGES)
async def test_the_difference_names_what_a_click_changed(name: str, tab: Tab, sites: Sites) -> None:
    """After a click the difference names the change in at most 800 characters; without one it says that nothing changed."""
    await show(tab, sites, name)
    before = await tab.look()
    assert (await tab.look()).since(before) == "nothing changed"
    role, called = PAGES[name].click
    found = [element for ref in before.refs if (element := before.element(ref)).role == role]
    chosen = [each for each in found if (each.name.startswith(called) if called is not None else not each.name)]
    await (await tab.by_ref(chosen[0].ref)).click()
    await tab.page.wait_for_load_state()
    said = (await tab.look()).since(before)
    assert PAGES[name].changes in said
    assert said != "nothing changed"
    assert len(said) <= 800


async def test_a_fold_says_how_to_see_it(tab: Tab, sites: Sites) -> None:
    """A table of 200 rows shows the first and last; the fold between them names the look that shows more."""
    await show(tab, sites, "table")
    seen = await tab.look()
    for budget in BUDGETS:
        (fold,) = [line for line in fold_lines(seen.render(budget)) if "rows" in line]
        ref = fold.partition("look(ref=")[2].rstrip(")")
        assert seen.element(ref).role == "table"
        part = seen.subtree(ref, 5000)
        assert len(part) <= 5000
        assert part.count("row ") > seen.render(budget).count("row ")
    assert 'row "Choose | 1000 | Gesa Cleoson' in seen.render()
    assert 'row "Choose | 1199 | Cleo Dirkson' in seen.render()


async def test_a_missing_ref_is_refused(tab: Tab, sites: Sites) -> None:
    """A ref leads to its element until that is removed; then, and for an unknown ref, the error is `ref-gone`."""
    await show(tab, sites, "orders")
    seen = await tab.look()
    pay = seen.refs[-1]
    await (await tab.by_ref(pay)).evaluate("element => element.remove()")
    for ref in (pay, "e999999", "f99999e1", "x99999", "f99999x1", "nonsense >> x", ""):
        with pytest.raises(SiteError, match="there is no element") as gone:
            await tab.by_ref(ref)
        assert gone.value.code == "ref-gone"


HIDDEN = """<!doctype html><title>Hidden</title>
<label>Password <input type=password value="hunter2 2"></label>
<p>Read <span style="cursor:pointer" onclick="document.title='went'">the small print</span> first.</p>
<button style="pointer-events:none">Covered</button>
<p onclick=1>A paragraph</p> <div contenteditable>Write here</div>
<x-box></x-box><script>customElements.define('x-box', class extends HTMLElement {
  connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = '<input type=password value=hunter3><button>In the shadow</button>'; }
});</script>
<form><label>Mail <input required type=email value=wrong></label><button>Send</button></form>
<iframe srcdoc="<input type=password value=hunter4><p>See <b onclick=1>it</b></p><div role=alert>Frame alert</div>"></iframe>"""


async def test_content_missing_in_playwrights_snapshot_is_added(tab: Tab, sites: Sites) -> None:
    """Passwords are dots everywhere. Elements without role or Playwright ref get one of our refs, and a field's own error is shown."""
    sites.own.page("/hidden", HIDDEN)
    await tab.goto(f"{sites.own.origin}/hidden")
    wanted = await judge.judged(tab.page, "")
    await tab.page.get_by_role("button", name="Send").click()
    seen = await tab.look()
    text = seen.render()
    assert "hunter" not in text
    assert not any(secret in seen.words for secret in ("hunter2 2", "hunter3", "hunter4"))
    assert text.count("••••") == 3
    assert {*(await probes(tab, seen)).values()} >= wanted.probes
    assert re.search(r'clickable "the small print" \[ref=(f\d+)?x\d+\]', text)
    assert 'textbox "Mail" [ref=' in text
    assert "error: " in next(line for line in text.split("\n") if "Mail" in line)
    assert 'alert "Frame alert"' in seen.render(400)
    small = next(ref for ref in seen.refs if seen.element(ref).name == "the small print")
    await (await tab.by_ref(small)).click()
    assert await tab.title() == "went"


async def test_a_filled_field_shows_its_value(tab: Tab, sites: Sites) -> None:
    """Each kind of field shows what was filled in: one with an empty placeholder, and an editable part with the role of a field."""
    sites.own.page(
        "/filled",
        '<label>When? <input type=date placeholder=""></label><label>What? <input></label>'
        "<div role=textbox aria-label=Note contenteditable></div><label>More <textarea placeholder=Tell></textarea></label>",
    )
    await tab.goto(f"{sites.own.origin}/filled")
    values = {"When?": "2026-11-21", "What?": "Window", "Note": "Call first", "More": "Two words"}
    for name, value in values.items():
        await tab.fill(Target(role="textbox", name=name), value)
    lines = (await tab.look()).render().split("\n")
    for name, value in values.items():
        assert any(line.startswith(f'textbox "{name}" [') and f'= "{value}"' in line for line in lines), name


async def test_observing_an_element_leaves_the_pages_refs_valid(tab: Tab, sites: Sites) -> None:
    """Observing one element shows it alone, and all refs of the page stay valid."""
    await show(tab, sites, "orders")
    whole = await tab.look()
    part = await tab.look(Target(css="main table"))
    assert part.render().split("\n")[1] == 'table "Orders"'
    assert "Sign out" not in part.render()
    assert {ref: number for ref, number in (await probes(tab, whole)).items() if part.has(ref)} == await probes(
        tab, part
    )
    assert len(await probes(tab, whole)) == len(whole.refs)


SOFT = "<!doctype html><title>{0}</title><p>Read <span style='cursor:pointer' onclick=1>{0}</span></p>"


async def test_our_refs_are_never_reused(tab: Tab, sites: Sites) -> None:
    """Our refs differ between documents, in the tab or in a frame, so an old ref leads nowhere."""
    frame = "<iframe srcdoc=\"<p>See <b style='cursor:pointer' onclick=1>it</b></p>\"></iframe>"
    sites.own.page("/keep", SOFT.format("Keep") + frame)
    sites.own.page("/drop", SOFT.format("Drop") + frame)
    await tab.goto(f"{sites.own.origin}/keep")
    before = (await tab.look()).refs
    assert len(before) == 2
    await tab.goto(f"{sites.own.origin}/drop")
    after = (await tab.look()).refs
    assert len(after) == 2
    assert not {*before} & {*after}
    for ref in before:
        with pytest.raises(SiteError, match="there is no element"):
            await tab.by_ref(ref)
    assert [await (await tab.by_ref(ref)).inner_text() for ref in after] == ["Drop", "it"]


async def test_a_ref_in_a_removed_frame_fails_at_once(tab: Tab, sites: Sites) -> None:
    """A ref in a removed frame, ours or Playwright's, gives `ref-gone` without waiting."""
    sites.own.page(
        "/frames",
        "<!doctype html><iframe srcdoc=\"<button>In</button><b style='cursor:pointer' onclick=1>it</b>\"></iframe>",
    )
    await tab.goto(f"{sites.own.origin}/frames")
    refs = (await tab.look()).refs
    assert len(refs) == 2
    await tab.page.evaluate("document.querySelector('iframe').remove()")
    for ref in refs:
        with pytest.raises(SiteError, match="there is no element") as gone:
            await tab.by_ref(ref)
        assert gone.value.code == "ref-gone"


async def test_a_deeply_nested_page_is_shown(tab: Tab, sites: Sites) -> None:
    """In lists nested a hundred deep the element at the bottom is shown, and its ref leads to it."""
    sites.own.page("/deep", f"<!doctype html>{'<ul><li>x' * 100}<button>Deep</button>{'</ul>' * 100}")
    await tab.goto(f"{sites.own.origin}/deep")
    seen = await tab.look()
    (ref,) = seen.refs
    assert f'button "Deep" [ref={ref}]' in seen.render(100_000)
    assert await (await tab.by_ref(ref)).inner_text() == "Deep"
    assert (await tab.look()).since(seen) == "nothing changed"


async def test_text_cut_by_the_page_script_is_masked(tab: Tab, sites: Sites) -> None:
    """A text that the page script cuts is marked, so that the beginning of a secret at its end is masked."""
    secret = "hunter2-and-much-more"
    soft = f"<p>Read <span style='cursor:pointer' onclick=1>{'x ' * 145}{secret}</span></p>"
    field = f"<label>Name <input aria-invalid=true aria-describedby=why></label><p id=why>{'y ' * 145}{secret}</p>"
    sites.own.page("/cut", f"<!doctype html>{soft}{field}")
    await tab.goto(f"{sites.own.origin}/cut")
    masked = (await tab.look()).masked(Masker({"code": secret}).text)
    elements = [masked.element(ref) for ref in masked.refs]
    assert not any("hunter" in each.name for each in elements)
    assert "hunter" not in masked.render(100_000)
