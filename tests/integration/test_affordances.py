"""What has no role and no name is seen: what can be dragged, dropped on, drawn on, scrolled and pressed has a ref, and a name or a guess."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.observation.observation import Observation
from tests import browsers, site
from tests.observed import drawn


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site with the pages."""
    with site.serve() as served:
        for name, page in drawn.PAGES.items():
            served.page(f"/{name}", page)
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """The session's tab, with half a minute for each test."""
    driven.bound(30)
    return driven.page


async def lines(tab: Tab, seen: Observation) -> dict[str, str]:
    """The line of each element with a ref, by what the page states about the element; elements of which it states nothing are left out."""
    found: dict[str, str] = {}
    for line in seen.render(100_000).split("\n"):
        if "[ref=" in line:
            stated = await (await tab.by_ref(line.partition("[ref=")[2].partition("]")[0])).get_attribute("data-can")
            if stated is not None:
                assert stated not in found
                found[stated] = line.strip()
    return found


def fits(stated: str, line: str) -> bool:
    """Tells whether a line shows an element as the page states it."""
    role, _, words = stated.partition("|")
    if not line.startswith(role) if role[0] != "(" else role not in line:
        return False
    if not words:
        return '"' not in line
    if words[0] == "?":
        return f' (unnamed) guessed "{words[1:]}"' in line
    return f'"{words}"' in line and "guessed" not in line


@pytest.mark.parametrize("name", drawn.PAGES)
async def test_what_a_person_can_use_is_shown(name: str, tab: Tab, served: site.Site) -> None:
    """Each element that a person can use has a line with a ref that leads to it, with what it is, and its name or a guess that is marked as such."""
    await tab.goto(f"{served.origin}/{name}")
    stated = await tab.page.locator("[data-can]").evaluate_all("all => all.map(each => each.getAttribute('data-can'))")
    found = await lines(tab, await tab.look())
    assert sorted(found) == sorted(stated)
    assert [(each, line) for each, line in found.items() if not fits(each, line)] == []
