"""A session on a page that somebody else opened: the parts of a browser of our own work there too, and nothing of it stays."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from playwright.async_api import Browser, Error, Page, async_playwright

from nodes.targets import Target
from runtime.browser import lent, playwright_internals
from runtime.browser.chromium import find
from runtime.browser.devtools import origin_guard
from runtime.browser.elements import locators
from runtime.browser.options import Overlay
from runtime.browser.session import Session
from tests.site import Answer, Site, serve


@contextlib.asynccontextmanager
async def launched() -> AsyncGenerator[Browser]:
    """A Chromium that Playwright started and holds, as for pytest-playwright."""
    async with async_playwright() as playwright:
        await locators.register(playwright)
        browser = await playwright.chromium.launch(executable_path=find.find())
        yield browser
        await browser.close()


@contextlib.asynccontextmanager
async def lending(page: Page, *origins: str) -> AsyncGenerator[Session]:
    session = await lent.LentPage(playwright_internals.async_page(page), None, origins, secrets=False).open()
    session.bound(10.0)
    try:
        yield session
    finally:
        await session.close()


def listeners(page: Page) -> dict[tuple[str, str], list[Any]]:
    """Every listener on the page, its main frame, and its context."""
    parts: dict[str, Any] = {"page": page, "context": page.context, "frame": page.main_frame}
    found: dict[tuple[str, str], list[Any]] = {}
    for name, part in parts.items():
        for emitter in (part._impl_obj, getattr(part._impl_obj, "_event_emitter", part._impl_obj)):
            found |= {(name, str(event)): emitter.listeners(event) for event in emitter.event_names()}
    return found


def shop(site: Site, elsewhere: Site) -> str:
    file = {"content-disposition": "attachment; filename=orders.csv", "content-type": "text/csv"}
    site.answer("/file", lambda _request: Answer("a,b\n", headers=file))
    elsewhere.page("/", "<title>Elsewhere</title>")
    return site.page(
        "/",
        f"""<title>Shop</title><a href=/file>Export</a> <a href=/other target=_blank>Open</a>
        <button onclick="setTimeout(() => confirm('Sure?'))">Ask</button>
        <button onclick="document.body.append(Object.assign(document.createElement('iframe'), {{src: '{elsewhere.origin}/'}}))">Frame</button>
        <div role=dialog>Cookies <button onclick="this.parentNode.remove()">Accept</button></div>""",
        content_type="text/html",
    )


async def test_a_lent_page_has_what_a_page_of_our_own_has() -> None:
    """Files, frames and tabs of other origins, dialogs, overlays and checkpoints; then its owner finds it as it was."""
    with serve() as site, serve() as elsewhere:
        address = shop(site, elsewhere)
        site.page("/other", "<title>Other</title>", content_type="text/html")
        async with launched() as browser:
            other = await browser.new_page()
            page = await browser.new_page()
            await page.goto(address)
            before = listeners(page)
            async with lending(page, site.origin) as session:
                assert session.page.url == address
                async with session.page.download(Target(role="link", name="Export"), None) as delivery:
                    assert (delivery.name, delivery.path.read_text()) == ("orders.csv", "a,b\n")
                await session.page.click(Target(role="button", name="Frame"))
                assert await session.at_rest()
                refusal = session.refusal()
                assert refusal is not None
                assert (refusal.evidence or {})["kind"] == "sub frame"
                await other.goto(elsewhere.origin)
                assert await other.title() == "Elsewhere", "contexts of others load what they like"
                async with session.page.opening("new"):
                    await session.page.click(Target(role="link", name="Open"))
                assert session.tabs.get("new").url.endswith("/other")
                await session.tabs.close("new")
                assert (await session.capture()).urls == [address]
                cookies = Target(role="dialog")
                session.dismiss([Overlay(target=cookies, click=Target(role="button", name="Accept", within=cookies))])
                await session.page.click(Target(role="button", name="Ask"))
                assert await session.page.asked("Sure?")
                assert [each.problem for each in session.dismissed()] == [None]
            assert listeners(page) == before
            assert await page.evaluate("confirm('And now?')") is False
            await page.goto(address)
            await page.get_by_role("button", name="Frame").click()
            await page.frame_locator("iframe").locator("html").wait_for()
            assert await page.get_by_role("dialog").is_visible(), "nothing closes overlays any more"
            assert not page.is_closed()


async def test_a_route_guards_where_chromium_does_not() -> None:
    """It refuses documents of other origins in every frame, and lets their parts and the routes of the page's owner pass."""
    with serve() as site, serve() as elsewhere:
        elsewhere.page("/", "<title>Elsewhere</title>")
        elsewhere.answer(
            "/part.js", lambda _request: Answer("document.title = 'Whole'", headers={"content-type": "text/javascript"})
        )
        site.page(
            "/framed", f"<iframe src={elsewhere.origin}/></iframe><script src={elsewhere.origin}/part.js></script>"
        )
        site.page("/named", "<title>Named</title>")
        site.redirect("/away", elsewhere.origin + "/")
        async with launched() as browser:
            context = await browser.new_context()
            page = await context.new_page()
            await context.route(
                "**/named", lambda route: route.fulfill(body="<title>Routed</title>", content_type="text/html")
            )
            guarded = origin_guard.GuardedTarget([site.origin])
            guard = lent.RouteGuard(guarded)
            await guard.start(context)
            await page.goto(site.origin + "/framed")
            assert await page.title() == "Whole"
            assert kind(guarded) == "sub frame"
            assert not elsewhere.arrived("/")
            with pytest.raises(Error):
                await page.goto(elsewhere.origin + "/")
            assert kind(guarded) == "main frame"
            assert not elsewhere.arrived("/")
            page = await context.new_page()  # the other one shows an error of Chromium's, later
            await page.goto(site.origin + "/away")
            assert kind(guarded) == "redirect"
            await page.goto(site.origin + "/named")
            assert await page.title() == "Routed"
            await guard.stop(context)
            await page.goto(elsewhere.origin + "/")
            assert await page.title() == "Elsewhere"


def kind(guarded: origin_guard.GuardedTarget) -> object:
    refusal = guarded.refusal()
    return None if refusal is None else (refusal.evidence or {})["kind"]
