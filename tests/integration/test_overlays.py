"""Overlays that come at any time are closed while a step waits: in both modes, in every tab, and after a reattach."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Error

from nodes.errors import SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser import open as open_browser
from runtime.browser.options import Mode, Overlay
from runtime.browser.port import Dismissal
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = pytest.mark.drawn(share=0.09, of="overlays")

MODES: tuple[Mode, ...] = ("own", "shared")

PAGE = """<!doctype html><title>Shop</title>
<style>.over { position: fixed; inset: 0; background: #0008 }</style>
<main><button id=pay onclick="document.querySelector('#paid').textContent += 'paid '">Pay</button><p id=paid></p>
<input aria-label=Note><p id=late></p><a href=/more target=_blank>More</a></main>
<script>
const main = document.querySelector('main');
// An overlay that hides the page from who reads by role, as many do.
const show = (name, button, close) => {
  const over = document.createElement('div');
  over.className = 'over';
  over.setAttribute('role', 'dialog');
  over.setAttribute('aria-label', name);
  over.innerHTML = `<p>${name}</p><button>${button}</button>`;
  over.querySelector('button').onclick = () => close(over);
  document.body.append(over);
  main.inert = true;
};
const away = (over) => { over.remove(); main.inert = false; };
const fading = (over) => setTimeout(() => away(over), 400);
</script>"""

NEWSLETTER = Overlay(
    target=Target(role="dialog", name="Newsletter"),
    click=Target(role="button", name="No thanks"),
)
PAY = Target(role="button", name="Pay")
PAID = Target(css="#paid")


@pytest.fixture(scope="module")
def shop() -> Iterator[site.Site]:
    with site.serve() as served:

        def page(more: str) -> str:
            return f"{PAGE}<script>{more}</script>"

        newsletter = "show('Newsletter', 'No thanks', away)"
        served.page("/quiet", page(""))
        served.page("/at-once", page(newsletter))
        served.page("/late", page(f"setTimeout(() => {newsletter}, 300); main.querySelector('#pay').disabled = true;"
                                  "setTimeout(() => { main.querySelector('#pay').disabled = false }, 700)"))  # fmt: skip
        served.page("/fading", page("show('Newsletter', 'No thanks', fading)"))
        served.page("/two", page(f"{newsletter}; show('Cookies', 'Refuse', away)"))
        served.page("/stubborn", page("show('Newsletter', 'No thanks', () => { document.title += '!' })"))
        served.page("/buttonless", page("show('Newsletter', 'Yes', away)"))
        served.page("/itself", page("show('Newsletter', 'No thanks', away);"
                                    "document.querySelector('.over').onclick = () => away(document.querySelector('.over'))"))  # fmt: skip
        served.page("/cookies", page("show('Cookies', 'Refuse', away)"))
        served.page("/reads", page(f"{newsletter}; setInterval(() => {{ document.querySelector('#late').innerHTML ="
                                   " main.inert ? '' : '<button>Here</button>' }, 300)"))  # fmt: skip
        served.page("/leaves", page("show('Newsletter', 'No thanks', () => { location.href = '/quiet' })"))
        served.page(
            "/framed",
            "<!doctype html><title>Framed</title><iframe name=inner src=/at-once width=600 height=400></iframe>",
        )
        served.page("/more", page(newsletter))
        yield served


@pytest.fixture(params=MODES)
async def driven(request: pytest.FixtureRequest, shop: site.Site, tmp_path: Path) -> AsyncGenerator[Session]:
    async with browsers.opened(tmp_path, shop.origin, mode=request.param) as browser:
        browser.dismiss([NEWSLETTER])
        yield browser


NAME = 'role=dialog name="Newsletter"'
GONE = Dismissal(NAME)


@pytest.mark.parametrize("path", ["at-once", "late", "fading"])
async def test_an_action_closes_what_lies_over_its_element(path: str, driven: Session, shop: site.Site) -> None:
    """An overlay that is there before the action, comes while it waits, or fades away, is closed, and told once; the action is done once."""
    page = driven.page
    await page.goto(f"{shop.origin}/{path}")
    await page.click(PAY)
    assert await page.text(PAID) == "paid"
    assert driven.dismissed() == [GONE]
    assert driven.dismissed() == []


async def test_two_overlays(driven: Session, shop: site.Site) -> None:
    """Two overlays, one over the other, are both closed, whichever stands first in the list."""
    cookies = Overlay(target=Target(role="dialog", name="Cookies"), click=Target(role="button", name="Refuse"))
    driven.dismiss([NEWSLETTER, cookies])
    await driven.page.goto(f"{shop.origin}/two")
    await driven.page.click(PAY)
    assert sorted(each.overlay for each in driven.dismissed()) == ['role=dialog name="Cookies"', NAME]


async def test_every_tab_and_no_other_overlay(driven: Session, shop: site.Site) -> None:
    """A tab that the page opened closes it too. An overlay that the file does not name stays, and the error names it."""
    page = driven.page
    await page.goto(f"{shop.origin}/quiet")
    async with page.opening("more"):
        await page.click(Target(role="link", name="More"))
    more = driven.tabs.get("more")
    await more.click(PAY)
    assert await more.text(PAID) == "paid"
    assert driven.dismissed() == [GONE]
    await page.goto(f"{shop.origin}/cookies")
    driven.bound(1)
    with pytest.raises(SiteError) as refused:
        await page.click(PAY)
    assert refused.value.phase == "before"
    assert driven.dismissed() == []


async def test_keys_and_waiting_reads(driven: Session, shop: site.Site) -> None:
    """A key goes to the page, and a rule that cannot hold before the overlay is gone comes to hold."""
    page = driven.page
    await page.goto(f"{shop.origin}/at-once")
    await page.press(["Tab"], None)
    assert driven.dismissed() == [GONE]
    await page.goto(f"{shop.origin}/reads")
    await page.wait_for(Rule(visible=Target(role="button", name="Here")))
    assert driven.dismissed() == [GONE]


async def test_the_target_itself_is_clicked_without_a_click(driven: Session, shop: site.Site) -> None:
    """Without `click` the overlay itself is clicked; with `any_of` each alternative is looked for."""
    driven.dismiss([Overlay(target=Target(any_of=[Target(text="Chat"), Target(role="dialog", name="Newsletter")]))])
    await driven.page.goto(f"{shop.origin}/itself")
    await driven.page.click(PAY)
    assert len(driven.dismissed()) == 1


async def test_the_list_can_change(driven: Session, shop: site.Site) -> None:
    """An overlay that is no longer in the list is left alone, also in a tab that has looked for it before."""
    page = driven.page
    await page.goto(f"{shop.origin}/at-once")
    await page.click(PAY)
    driven.dismiss([])
    driven.dismissed()
    await page.goto(f"{shop.origin}/at-once")
    driven.bound(1)
    with pytest.raises(SiteError):
        await page.click(PAY)
    assert driven.dismissed() == []


async def test_a_click_that_loads_a_page(driven: Session, shop: site.Site) -> None:
    """Where closing the overlay loads another page, the action is done there."""
    await driven.page.goto(f"{shop.origin}/leaves")
    await driven.page.click(PAY)
    assert await driven.page.text(PAID) == "paid"
    assert driven.page.url == f"{shop.origin}/quiet"
    assert driven.dismissed() == [GONE]


async def test_an_overlay_in_a_frame(driven: Session, shop: site.Site) -> None:
    """An overlay inside a frame is found by a target with `frame`."""
    frame = "inner"
    dialog = Target(role="dialog", name="Newsletter", frame=frame)
    driven.dismiss([Overlay(target=dialog, click=Target(role="button", name="No thanks", frame=frame))])
    await driven.page.goto(f"{shop.origin}/framed")
    await driven.page.click(Target(role="button", name="Pay", frame=frame))
    assert len(driven.dismissed()) == 1


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("stubborn", "it was clicked, and is still there"),
        ("buttonless", 'there is no role=button name="No thanks"'),
    ],
)
async def test_an_overlay_that_stays(path: str, problem: str, driven: Session, shop: site.Site) -> None:
    """One that cannot be closed is tried twice in a document and told once with the reason; the action fails as covered, with nothing sent."""
    page = driven.page
    await page.goto(f"{shop.origin}/{path}")
    driven.bound(8)
    with pytest.raises(SiteError) as refused:
        await page.click(PAY)
    assert (refused.value.code, refused.value.phase) == ("target-not-actionable", "before")
    assert driven.dismissed() == [Dismissal(NAME, problem)]
    driven.bound(5)
    assert await page.text(PAID) == ""
    driven.bound(1)
    with pytest.raises(SiteError):
        await page.click(PAY)
    assert driven.dismissed() == []


async def test_a_tab_that_is_gone_before_it_is_watched(driven: Session, shop: site.Site) -> None:
    """The first action in a tab that is gone fails as such, with nothing sent."""
    page = driven.page
    await page.goto(f"{shop.origin}/quiet")
    await page.page.close()
    with pytest.raises(SiteError) as refused:
        await page.click(PAY)
    assert (refused.value.code, refused.value.phase) == ("page-crashed", "before")


async def test_a_tab_that_could_not_be_watched_at_first(
    driven: Session, shop: site.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the browser refuses to look for overlays, the action fails with nothing sent, and the next one tries again."""
    page = driven.page
    await page.goto(f"{shop.origin}/at-once")

    async def refuse(*_given: object, **_more: object) -> None:
        raise Error("busy")

    with monkeypatch.context() as broken:
        broken.setattr(page.page, "add_locator_handler", refuse)
        with pytest.raises(SiteError) as refused:
            await page.click(PAY)
    assert refused.value.phase == "before"
    await page.click(PAY)
    assert await page.text(PAID) == "paid"
    assert driven.dismissed() == [GONE]


async def test_after_a_reattach(shop: site.Site, tmp_path: Path) -> None:
    """A reattached browser closes overlays of its list, in the tab as it was left."""
    async with browsers.opened(tmp_path, shop.origin, mode="own", linger=60) as browser:
        await browser.page.goto(f"{shop.origin}/at-once")
        await browser.close(keep=True)
        again = await open_browser.reattach(None, origins=[shop.origin], private=tmp_path, settings=browsers.Chosen())
        assert again is not None
        try:
            again.bound(10)
            again.dismiss([NEWSLETTER])
            await again.page.click(PAY)
            assert again.dismissed() == [GONE]
        finally:
            await again.close()
