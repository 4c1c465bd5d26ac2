"""A used file may load documents only where it and its caller both allow it, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime import events
from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host
from tests import site

FLOW = """version: 1
allowed_origins: ["SHOP", "BANK"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "SHOP/start"}
  - {id: part, type: group, use: part.yaml}
  - {id: after, type: browser_action, action: goto, url: "BANK/after"}
  - {id: read, type: browser_query, query: text, target: {css: p}}
output: "{{ read }}"
"""
PART = """version: 1
allowed_origins: ["SHOP", "https://elsewhere.test"]
nodes:
  - {id: inside, type: browser_action, action: goto, url: "SHOP/inside"}
  - {id: go, type: browser_action, action: click, target: {role: link, name: LINK}, effect: idempotent, verify: [{url: "**/WAY"}]}
"""


@pytest.fixture
def sites() -> Iterator[tuple[site.Site, site.Site]]:
    """A shop and a bank of two origins, with links from the shop to the bank."""
    with site.serve() as shop, site.serve() as bank:
        shop.page("/start", "<p>start</p>")
        shop.page("/inner", "<p>inner</p>")
        shop.page(
            "/inside",
            f"<a href={shop.origin}/inner>inner</a> <a href={bank.origin}/secret>secret</a> <a href={shop.origin}/away>away</a>",
        )
        shop.redirect("/away", bank.origin + "/secret")
        bank.page("/after", "<p>after</p>")
        bank.page("/secret", "<p>secret</p>")
        yield shop, bank


async def run(folder: Path, shop: site.Site, bank: site.Site, link: str, part: str = PART) -> events.RunEnded:
    """Runs the workflow, whose part follows the link."""

    def filled(text: str) -> str:
        way = {"inner": "inner", "secret": "secret", "away": "secret"}[link]
        text = text.replace("LINK", link).replace("WAY", way)
        return text.replace("SHOP", shop.origin).replace("BANK", bank.origin)

    (folder / ".runops").mkdir(exist_ok=True)
    (folder / "flow.yaml").write_text(filled(FLOW))
    (folder / "part.yaml").write_text(filled(part))
    return await start.start(folder / "flow.yaml", {}, host.of_command(settings.Settings(home=folder / ".runops")))


async def test_a_used_file_stays_where_both_files_may_go(tmp_path: Path, sites: tuple[site.Site, site.Site]) -> None:
    """Links and redirects to an origin of the caller alone are refused while the file runs, and work after it."""
    shop, bank = sites
    ended = await run(tmp_path, shop, bank, "inner")
    assert (ended.status, ended.output) == ("passed", "after"), ended
    assert [each.path for each in bank.arrived()] == ["/after"]
    for link in ("secret", "away"):
        ended = await run(tmp_path, shop, bank, link)
        assert ended.error is not None
        assert (ended.exit, ended.path, ended.error["code"]) == (1, "part/go", "origin-refused")
        assert str(tmp_path / "part.yaml") in str(ended.error["message"])
        assert bank.arrived("/secret") == []


async def test_a_goto_of_a_used_file_is_refused_before_anything_is_sent(
    tmp_path: Path, sites: tuple[site.Site, site.Site]
) -> None:
    """The refusal names the file that does not allow the origin, and the lists to which it must be added."""
    shop, bank = sites
    ended = await run(tmp_path, shop, bank, "inner", PART.replace("SHOP/inside", "BANK/secret"))
    assert ended.error is not None
    assert (ended.path, ended.error["code"], ended.error["phase"]) == ("part/inside", "origin-refused", "before")
    part = tmp_path / "part.yaml"
    assert ended.error["evidence"]["file"] == str(part)
    assert ended.error["fix"].endswith(f"add {bank.origin} to allowed_origins of {part} and of the files that use it")
    assert bank.arrived() == []
