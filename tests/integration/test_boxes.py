"""Check boxes, radio buttons and switches as component libraries draw them: what a person sees is clicked, not the input behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from nodes.errors import SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = pytest.mark.drawn(share=0.4, of="boxes")

HIDDEN = "border: 0; clip: rect(0px, 0px, 0px, 0px); height: 1px; width: 1px; margin: -1px; padding: 0; overflow: hidden; position: absolute; white-space: nowrap"
DRAWN = "display: inline-block; width: 40px; height: 20px; background: gray; position: relative"

BOXES = {
    "chakra-switch": f'<div data-part=item-content><label data-scope=switch data-part=root style="display: inline-flex; position: relative"><input type=checkbox role=switch style="{HIDDEN}"><span data-part=control aria-hidden=true style="{DRAWN}"><span data-part=thumb></span></span><span data-part=label>Include refunds</span></label></div>',
    "chakra-checkbox": f'<label data-scope=checkbox data-part=root style="display: inline-flex; position: relative"><input type=checkbox style="{HIDDEN}"><div data-part=control style="{DRAWN}"></div><span data-part=label>Include <a href="/gone">refunds</a></span></label>',
    "mui": '<label style="display: inline-flex"><span style="position: relative; padding: 9px; display: inline-flex"><input type=checkbox style="position: absolute; opacity: 0; width: 100%; height: 100%; top: 0; left: 0; margin: 0; z-index: 1"><svg width=24 height=24></svg></span><span>Include refunds</span></label>',
    "ant": """<button type=button role=switch aria-checked=false aria-label="Include refunds" style="width: 40px; height: 20px" onclick="this.setAttribute('aria-checked', this.getAttribute('aria-checked') !== 'true')"><div></div></button>""",
    "bootstrap": f'<div style="position: relative; z-index: 1; padding-left: 1.5rem"><input type=checkbox id=box style="position: absolute; left: 0; z-index: -1; width: 1rem; height: 1rem; opacity: 0"><label for=box style="position: relative"><span style="{DRAWN}; position: absolute; left: -1.5rem"></span>Include refunds</label></div>',
    "vuetify": '<div style="display: flex"><div style="position: relative; width: 40px; height: 40px"><i></i><input type=checkbox id=box style="position: absolute; opacity: 0; width: 100%; height: 100%; left: 0; top: 0"></div><label for=box>Include refunds</label></div>',
    "label-studio": '<label style="display: inline-flex"><span style="position: relative"><input type=radio style="position: absolute; inset: 0; opacity: 0; z-index: 1"><span style="display: block; width: 16px; height: 16px; border: 1px solid"></span></span><span>Include refunds</span></label>',
    "covered": '<label style="position: relative; display: block"><input type=checkbox><span style="position: absolute; inset: 0; background: white">Include refunds</span></label>',
    "slider": f'<label style="display: inline-block; position: relative"><input type=checkbox style="opacity: 0; width: 0; height: 0"><span style="{DRAWN}"></span><b>Include refunds</b></label>',
    "not-displayed": f'<label><input type=checkbox style="display: none"><span style="{DRAWN}"></span>Include refunds</label>',
}


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves a page for each library."""
    with site.serve() as served:
        for name, box in BOXES.items():
            served.page(f"/{name}", f"<!doctype html><title>{name}</title><p>Before<p><form>{box}</form>")
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """The session's tab, with five seconds for each test."""
    driven.bound(5)
    return driven.page


def box(name: str) -> Target:
    return Target(css="input") if name != "ant" else Target(role="switch", name="Include refunds")


@pytest.mark.parametrize("name", BOXES)
async def test_a_box_of_a_library_is_checked_by_what_is_seen_of_it(tab: Tab, served: site.Site, name: str) -> None:
    """`check`, `uncheck` and a click reach the box through its label or the control in it, at once, and its state is the wanted one."""
    await tab.goto(f"{served.origin}/{name}")
    await tab.check(box(name), True)
    assert await tab.holds(Rule(checked=True, target=box(name)))
    if name != "label-studio":
        await tab.check(box(name), False)
        assert await tab.holds(Rule(checked=False, target=box(name)))
        await tab.click(box(name))
        assert await tab.holds(Rule(checked=True, target=box(name)))
    assert tab.url == f"{served.origin}/{name}"


async def test_what_is_not_of_the_box_and_covers_it_is_not_clicked_through(
    tab: Tab, driven: Session, served: site.Site
) -> None:
    """A box under something that is not its label is not checked, and the error names what covers it."""
    driven.bound(2)
    await tab.goto(f"{served.origin}/chakra-switch")
    await tab.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<div id=veil style=\"position: fixed; inset: 0\"></div>')"
    )
    with pytest.raises(SiteError, match=r'covered by <div id="veil"') as caught:
        await tab.check(Target(role="switch"), True)
    assert caught.value.phase == "before"
    assert await tab.holds(Rule(checked=False, target=Target(role="switch")))


async def test_a_box_that_does_not_take_the_state_is_an_error(tab: Tab, served: site.Site) -> None:
    """A click that leaves the box as it was is reported, also where another element was clicked for it."""
    await tab.goto(f"{served.origin}/chakra-switch")
    await tab.page.evaluate("() => { document.querySelector('label').onclick = (event) => event.preventDefault(); }")
    with pytest.raises(SiteError, match="did not allow its state to change"):
        await tab.check(Target(role="switch"), True)


async def test_a_label_that_is_shown_late_is_waited_for(tab: Tab, served: site.Site) -> None:
    """A box in a part that still opens is checked once its label is there."""
    await tab.goto(f"{served.origin}/chakra-switch")
    await tab.page.evaluate(
        "const form = document.querySelector('form'); form.hidden = true; setTimeout(() => { form.hidden = false; }, 700)"
    )
    await tab.check(Target(css="input"), True)
    assert await tab.holds(Rule(checked=True, target=Target(role="switch")))


async def test_a_box_that_is_not_there_is_reported_as_before(tab: Tab, driven: Session, served: site.Site) -> None:
    """No box, or several, is an error of the target."""
    driven.bound(1)
    await tab.goto(f"{served.origin}/mui")
    with pytest.raises(SiteError, match="no element matches") as caught:
        await tab.check(Target(role="checkbox", name="Nothing"), True)
    assert (caught.value.code, caught.value.phase) == ("target-not-found", "before")
    driven.bound(2)
    await tab.page.evaluate("document.querySelector('form').innerHTML += document.querySelector('form').innerHTML")
    with pytest.raises(SiteError) as caught:
        await tab.check(Target(css="input"), True)
    assert caught.value.code == "target-ambiguous"


async def test_a_click_on_a_field_is_one_on_its_control(tab: Tab, driven: Session, served: site.Site) -> None:
    """A field that lets clicks through to the part of its control around it is clicked there, also once what lies over both is gone; one that is disabled, in a larger part, or in one whose middle is another control, is not."""
    control = "<div class=control onclick='said.textContent += this.id'{}><input readonly aria-label={} style='pointer-events: none'{}></div>"
    served.page(
        "/control",
        "<!doctype html><title>Control</title><p id=said></p>"
        + control.format(" id=a", "Folder", "")
        + control.format(" id=b", "Kind", " disabled")
        + control.format(" id=c style='height: 300px'", "Size", "")
        + "<div class=row style='width: 300px; height: 24px' onclick='said.textContent += 9'><input aria-label=Name style='pointer-events: none; width: 80px'><button style='margin-left: 20px; width: 120px'>Remove</button></div>"
        + "<div id=veil style='position: fixed; inset: 0'></div><script>setTimeout(() => veil.remove(), 1500)</script>",
    )
    driven.bound(5)
    await tab.goto(f"{served.origin}/control")
    await tab.click(Target(label="Folder"))
    for name in ("Kind", "Size", "Name"):
        driven.bound(1)
        with pytest.raises(SiteError):
            await tab.click(Target(role="textbox", name=name))
    driven.bound(3)
    assert await tab.text(Target(css="#said")) == "a"


async def test_the_error_names_what_is_seen_in_place_of_a_hidden_field(
    tab: Tab, driven: Session, served: site.Site
) -> None:
    """Where only the input is hidden, or its own control takes its clicks, the fix is that control; of what is all hidden there is none."""
    served.page(
        "/bare",
        f"<!doctype html><title>Bare</title><div class=row><input type=checkbox style='{HIDDEN}' aria-label=Refunds><div class=field-switch style='{DRAWN}; cursor: pointer'></div></div>"
        "<div class=row hidden><select></select><button>Deep</button></div>"
        "<main><p>Much</p><div class=activator tabindex=0><div class=control><input id=choice readonly aria-label=Folder style='pointer-events: none'></div></div>"
        "<div class=cell style='position: relative'><input id=over readonly aria-label=Kind><div class=shield style='position: absolute; inset: 0'></div></div></main>",
    )
    for css, fix in (
        ("#choice", "point at what is seen in its place: css=div.control"),
        ("#over", "point at what is seen in its place: css=div.shield"),
        ("[type=checkbox]", "point at what is seen in its place: css=div.field-switch"),
        ("select", "have the step before show it"),
    ):
        driven.bound(3)
        await tab.goto(f"{served.origin}/bare")
        driven.bound(1)
        with pytest.raises(SiteError) as caught:
            await tab.click(Target(css=css))
        assert fix in str(caught.value.fix), str(caught.value)
