"""Signed-in states: saved in one browser, loaded in another of either mode, and after they expired."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from nodes.errors import SiteError
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import open as open_browser
from runtime.browser.options import Mode
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = pytest.mark.drawn(share=0.3, of="sign-ins")

MODES: tuple[Mode, ...] = ("own", "shared")

STORE = """<!doctype html><title>Storing</title><script>
localStorage.setItem('token', 'local');
const opening = indexedDB.open('app', 1);
opening.onupgradeneeded = () => opening.result.createObjectStore('keys').put({id: 'database'}, 'user');
opening.onsuccess = () => { document.title = 'Stored'; };
</script>"""

ME = """<!doctype html><title>Me</title><p id=who></p><script>
const opening = indexedDB.open('app', 1);
opening.onupgradeneeded = () => opening.result.createObjectStore('keys');
opening.onsuccess = () => {
  const reading = opening.result.transaction('keys').objectStore('keys').get('user');
  reading.onsuccess = () => {
    const seen = [COOKIE, localStorage.getItem('token') ?? 'nothing', reading.result?.id ?? 'nothing'];
    document.querySelector('#who').textContent = seen.join(' ');
    document.title = 'Read';
  };
};
</script>"""

WHO = Target(css="#who")


@pytest.fixture(scope="module")
def shop() -> Iterator[site.Site]:
    with site.serve() as served:

        def me(request: site.Request) -> site.Answer:
            sent = request.headers.get("cookie", "")
            return site.Answer(ME.replace("COOKIE", json.dumps("cookie" if "sid=7" in sent else "nothing")))

        served.page("/login", STORE, set_cookie="sid=7; Path=/; HttpOnly; Max-Age=3600")
        served.answer("/me", me)
        served.page("/blank", "<!doctype html><title>Blank</title>")
        yield served


async def sign_in(browser: Session, origin: str) -> None:
    await browser.page.goto(f"{origin}/login")
    await browser.page.wait_for(Rule(title="Stored"))


async def who(browser: Session, origin: str) -> str:
    """What the site takes the browser for: by cookie, local storage and IndexedDB."""
    await browser.page.goto(f"{origin}/me")
    await browser.page.wait_for(Rule(title="Read"))
    return await browser.page.text(WHO)


@pytest.fixture
async def saved(shop: site.Site, tmp_path: Path) -> Json:
    """A state that a browser of mode *shared* saved."""
    async with browsers.opened(tmp_path / "saving", shop.origin, mode="shared") as browser:
        await sign_in(browser, shop.origin)
        return await browser.page.signed_in()


@pytest.mark.parametrize("loads", MODES)
@pytest.mark.parametrize("saves", MODES)
async def test_a_state_is_loaded_in_either_mode(saves: Mode, loads: Mode, shop: site.Site, tmp_path: Path) -> None:
    """Cookies, local storage and IndexedDB saved in one mode, as JSON, sign in another browser of either mode."""
    for name in ("saving", "loading"):
        (tmp_path / name).mkdir()
    async with browsers.opened(tmp_path / "saving", shop.origin, mode=saves, seconds=20) as browser:
        await sign_in(browser, shop.origin)
        state = json.dumps(await browser.page.signed_in())
    async with browsers.opened(tmp_path / "loading", shop.origin, mode=loads, seconds=20) as browser:
        assert await who(browser, shop.origin) == "nothing nothing nothing"
        await browser.page.sign_in(json.loads(state))
        assert await who(browser, shop.origin) == "cookie local database"


@contextlib.asynccontextmanager
async def found_again(browser: Session, private: Path, *origins: str) -> AsyncGenerator[Session]:
    """The browser, released by its engine and reattached; closed with the block."""
    await browser.close(keep=True)
    again = await open_browser.reattach(None, origins=origins, private=private, settings=browsers.Chosen())
    assert again is not None
    again.bound(20)
    try:
        yield again
    finally:
        await again.close()


async def test_a_reattached_browser_saves_what_it_has_not_shown_since(shop: site.Site, tmp_path: Path) -> None:
    """After a resume a state still has the stored data of an origin that no tab shows any more."""
    elsewhere = shop.origin.replace("127.0.0.1", "localhost")
    origins = (shop.origin, elsewhere)
    async with browsers.opened(tmp_path, *origins, mode="own", linger=60, seconds=20) as browser:
        await sign_in(browser, shop.origin)
        await browser.page.goto(f"{elsewhere}/blank")
        async with found_again(browser, tmp_path, *origins) as again:
            state = await again.page.signed_in()
    (stored,) = state["origins"]
    assert stored["origin"] == shop.origin
    assert stored["localStorage"] == [{"name": "token", "value": "local"}]
    assert stored["indexedDB"]


async def test_a_reattached_browser_is_signed_in_as_another(shop: site.Site, saved: Json, tmp_path: Path) -> None:
    """A state that is loaded after a resume replaces also the data of an origin that no tab shows any more."""
    elsewhere = shop.origin.replace("127.0.0.1", "localhost")
    origins = (shop.origin, elsewhere)
    async with browsers.opened(tmp_path, *origins, mode="own", linger=60, seconds=20) as browser:
        await sign_in(browser, elsewhere)
        await browser.page.goto(f"{shop.origin}/blank")
        async with found_again(browser, tmp_path, *origins) as again:
            await again.page.sign_in(saved)
            assert await who(again, elsewhere) == "nothing nothing nothing"
            assert await who(again, shop.origin) == "cookie local database"


@pytest.mark.parametrize("mode", MODES)
async def test_an_expired_state_is_refused(mode: Mode, shop: site.Site, saved: Json, tmp_path: Path) -> None:
    """A state whose cookie has expired is no state: loading it fails, and the browser stays as it was."""
    over = {**saved, "cookies": [{**each, "expires": 1_000_000_000} for each in saved["cookies"]]}
    async with browsers.opened(tmp_path, shop.origin, mode=mode) as browser:
        await sign_in(browser, shop.origin)
        with pytest.raises(SiteError) as refused:
            await browser.page.sign_in(over)
        assert refused.value.code == "session-expired"
        assert refused.value.evidence == {"cookies": ["sid"]}
        assert await who(browser, shop.origin) == "cookie local database"
