"""Observations of twelve real pages: nothing that one can act on is out of reach, whatever the budget."""

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

BUDGETS = (1000, 3000, 5000)


@dataclasses.dataclass(frozen=True)
class Sites:
    """What the pages are served by."""

    own: site.Site
    tasks: str
    shop: Shop
    admin: DjangoAdmin


@dataclasses.dataclass(frozen=True)
class Shown:
    """A page of the twelve."""

    address: str
    """Behind the name of what serves it."""
    runs: str = ""
    """CSS of its rows that are alike, and may be folded."""
    click: tuple[str, str | None] = ("", None)
    """Role of an element to click, and how its name begins; None for one without a name. It is the first that has them."""
    changes: str = ""
    """What the difference must say after the click."""


PAGES = {
    "table": Shown("own:/table", "tbody tr", ("button", "Edit"), "done"),
    "orders": Shown("shop:/orders", "tbody tr", ("link", "Open"), 'gone: row "1003 | Priya'),
    "order": Shown("shop:/orders/1001", "", ("button", "Pay"), 'gone: button "Pay"'),
    "form": Shown("shop:/form", "", ("checkbox", "Include samples"), 'changed: checkbox "Include samples" (checked)'),
    "messages": Shown("shop:/messages", "tbody tr", ("link", "1003"), 'heading "Message'),
    "delivery": Shown("shop:/delivery", "", ("link", "Dock"), 'heading "'),
    "articles": Shown("shop:/articles?for=A1", "tbody tr", ("button", "Add"), 'link "Cart (1)"'),
    "list": Shown("admin:/admin/billing/invoice/", "tbody tr, #changelist-filter li", ("checkbox", "Select all"), "(checked)"),
    "change": Shown("admin:/admin/billing/invoice/add/", "", ("button", "Save"), "error"),
    "flight": Shown("tasks:/miniwob/book-flight.html", "", ("textbox", None), "new: "),
    "inbox": Shown("tasks:/miniwob/email-inbox.html", ".email-thread", ("clickable", ""), ""),
    "boxes": Shown("tasks:/miniwob/click-checkboxes-large.html", "", ("checkbox", ""), "(checked)"),
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
    """One browser for all tests here, signed in everywhere."""
    origins = (sites.own.origin, sites.tasks, sites.shop.url, sites.admin.url)
    async with browsers.opened(tmp_path_factory.mktemp("private"), *origins, seconds=60) as browser:
        for address in (f"{sites.shop.url}/login", f"{sites.admin.url}/admin/login/?next=/admin/"):
            await browser.page.goto(address)
            await browser.page.fill(Target(css="[name=username]"), "admin")
            await browser.page.fill(Target(css="[type=password]"), sites.shop.password)
            await browser.page.press("Enter", Target(css="[type=password]"))
            await browser.page.wait_for(Rule(hidden=Target(css="[type=password]")))
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """Its tab, with a minute for each test."""
    driven.bound(60)
    return driven.page


async def show(tab: Tab, sites: Sites, name: str) -> judge.Judged:
    """Go to a page, and judge it."""
    served, _, path = PAGES[name].address.partition(":")
    origin = {"own": sites.own.origin, "tasks": sites.tasks, "shop": sites.shop.url, "admin": sites.admin.url}[served]
    await tab.goto(origin + path)
    if served == "tasks":
        await tab.page.evaluate(tasks.BEGIN)
    return await judge.judged(tab.page, PAGES[name].runs)


async def probes(tab: Tab, seen: Observation) -> dict[str, int | None]:
    """For each ref the number of the element to which it leads, read off the element itself."""

    async def probe(ref: str) -> int | None:
        number = await (await tab.by_ref(ref)).get_attribute("data-probe")
        return None if number is None else int(number)

    refs = seen.refs
    numbers: list[int | None] = []
    for first in range(0, len(refs), 50):
        numbers += await asyncio.gather(*(probe(ref) for ref in refs[first : first + 50]))
    return dict(zip(refs, numbers, strict=True))


def fold_lines(text: str) -> list[str]:
    """The lines that stand for what is not shown."""
    return [line.strip() for line in text.split("\n") if line.lstrip().startswith("…")]


def all_said(seen: Observation) -> set[str]:
    """Every line that the page has."""
    return {line.strip() for line in seen.render(1_000_000).split("\n")}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", PAGES)
async def test_nothing_is_out_of_reach(name: str, tab: Tab, sites: Sites) -> None:
    """Whatever the budget: it is kept, no line is cut, each element is found by role and name, and row where alike, and its ref is its own."""
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


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", PAGES)
async def test_what_is_shown(name: str, tab: Tab, sites: Sites) -> None:
    """At 5,000 characters each element outside of rows that are alike has its ref; at 3,000 all headings, alerts, dialogs and errors are there."""
    wanted = await show(tab, sites, name)
    seen = await tab.look()
    numbers = await probes(tab, seen)
    text = seen.render()
    lacking = {number for ref, number in numbers.items() if f"[ref={ref}]" not in text and number in wanted.probes}
    assert lacking <= wanted.in_runs
    for budget in BUDGETS[1:]:
        for said in wanted.loud:
            assert json.dumps(said, ensure_ascii=False)[1:-1].casefold() in seen.render(budget).casefold()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", PAGES)
async def test_what_a_click_changed_is_said(name: str, tab: Tab, sites: Sites) -> None:
    """After one click the difference names what changed, in at most 800 characters; without one it says that nothing did."""
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


async def test_what_is_folded_says_how_to_see_it(tab: Tab, sites: Sites) -> None:
    """Of 200 rows the first and the last are shown; the line between counts the others, and the look that it names shows them."""
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


async def test_a_ref_that_is_gone_says_so(tab: Tab, sites: Sites) -> None:
    """A ref leads to its element until that is gone; then, and where there never was one, the error says to look again."""
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


async def test_what_the_snapshot_does_not_tell(tab: Tab, sites: Sites) -> None:
    """Passwords are dots, wherever they stand; what has no role or no ref of Playwright's has one of ours; a field's own error is said."""
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


async def test_a_look_at_an_element_keeps_the_refs_of_the_page(tab: Tab, sites: Sites) -> None:
    """A look at one element shows it alone, and every ref of the page still leads where it led."""
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


async def test_a_ref_of_ours_is_never_given_again(tab: Tab, sites: Sites) -> None:
    """An element without a ref of Playwright's has another ref in another document, be that in the tab or in a frame: an old ref leads nowhere."""
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


async def test_a_ref_in_a_frame_that_went_away_is_gone_at_once(tab: Tab, sites: Sites) -> None:
    """Nobody waits for it: not for one of ours, and not for one of Playwright's."""
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


async def test_a_page_as_deep_as_any_is_shown(tab: Tab, sites: Sites) -> None:
    """Lists in lists, a hundred deep, are a page like others; what one can act on at the bottom is shown, and leads where it should."""
    sites.own.page("/deep", f"<!doctype html>{'<ul><li>x' * 100}<button>Deep</button>{'</ul>' * 100}")
    await tab.goto(f"{sites.own.origin}/deep")
    seen = await tab.look()
    (ref,) = seen.refs
    assert f'button "Deep" [ref={ref}]' in seen.render(100_000)
    assert await (await tab.by_ref(ref)).inner_text() == "Deep"
    assert (await tab.look()).since(seen) == "nothing changed"


async def test_what_is_cut_short_says_so(tab: Tab, sites: Sites) -> None:
    """A text that the page's own look-out cuts ends with dots, so that the beginning of a secret at its end is masked, too."""
    secret = "hunter2-and-much-more"
    soft = f"<p>Read <span style='cursor:pointer' onclick=1>{'x ' * 145}{secret}</span></p>"
    field = f"<label>Name <input aria-invalid=true aria-describedby=why></label><p id=why>{'y ' * 145}{secret}</p>"
    sites.own.page("/cut", f"<!doctype html>{soft}{field}")
    await tab.goto(f"{sites.own.origin}/cut")
    masked = (await tab.look()).masked(Masker({"code": secret}).text)
    elements = [masked.element(ref) for ref in masked.refs]
    assert not any("hunter" in each.name for each in elements)
    assert "hunter" not in masked.render(100_000)
