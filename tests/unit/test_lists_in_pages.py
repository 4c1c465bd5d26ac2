"""Lists of several pages on a fake site: read whole after a failure or a death on the way, or not at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.errors import SiteError
from nodes.pages import FieldSource
from nodes.targets import Target
from nodes.values import Json
from tests.fakes import FakePage
from tests.rig import Killed, Rig

pytestmark = pytest.mark.anyio

PAGES = 3
WHOLE: list[Json] = [{"no": f"{page}-{row}"} for page in range(1, PAGES + 1) for row in range(2)]
OPEN = "{id: open, type: browser_action, action: goto, url: 'http://shop.test/'}"
ROWS = (
    "{id: rows, type: browser_query, query: extract, target: {css: li}, fields: {no: b}, key: no, next: {role: button,"
    " name: Next}, timeout: 5%s}"
)
RETRY = ", retry: {attempts: 3, delay: 0, on: [timeout]}"


@dataclasses.dataclass
class Trouble:
    """Something that happens once, when the second page is read."""

    raises: type[BaseException] | None = SiteError


def pages(trouble: Trouble) -> type[FakePage]:
    """A tab with a list of three pages, all at one address."""

    class Pages(FakePage):
        number = 1

        @override
        async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
            self.number = 1
            return await super().goto(url, anew=anew, once=once)

        @override
        async def click(self, target: Target, how: object = None) -> None:
            await super().click(target)
            self.number += 1

        @override
        async def count(self, target: Target, *, hidden: bool = False) -> int:
            return 1

        @override
        async def state(self, target: Target) -> dict[str, Json]:
            return {"enabled": self.number < PAGES}

        @override
        async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
            if self.number == 2 and (raises := trouble.raises) is not None:
                trouble.raises = None
                raise raises("timeout", "the page does not answer") if raises is SiteError else raises()
            return [[f"{self.number}-{row}"] for row in range(2)]

    return Pages


def rig(folder: Path, *nodes: str, trouble: type[BaseException] | None = SiteError) -> Rig:
    """A run of these nodes on the list, with its rows as the output."""
    text = "version: 1\nnodes:\n" + "".join(f"  - {each}\n" for each in nodes) + "output: '{{ rows }}'\n"
    made = Rig(folder, text)
    made.site.page = pages(Trouble(trouble))
    return made


async def test_a_list_is_not_tried_again_from_its_middle(tmp_path: Path) -> None:
    """An error on a later page ends the step, whatever its `retry` says, and a resumed run reads the list whole."""
    run = rig(tmp_path, OPEN, ROWS % RETRY)
    ended = await run.start()
    assert ended.error is not None
    assert (ended.error["code"], ended.error["phase"], len(run.site.actions)) == ("timeout", "after", 1)
    assert "does not begin in the middle of a list" in ended.error["fix"]
    run.die()
    assert (await run.resume()).output == WHOLE


async def test_a_list_is_tried_again_on_its_first_page(tmp_path: Path) -> None:
    """An error before the first click on `next` is retried, as that of every reading."""
    run = rig(tmp_path, OPEN, ROWS % RETRY, trouble=None)
    failed: list[str] = []

    async def late(target: str, _page: FakePage) -> None:
        if not failed:
            failed.append(target)
            raise SiteError("timeout", "something covers the button")

    run.site.before_click = late
    assert (await run.start()).output == WHOLE


@pytest.mark.parametrize("survives", [False, True])
async def test_a_list_that_a_death_cut_off_is_read_whole(tmp_path: Path, survives: bool) -> None:
    """After a death on a later page the list is read from its first page, though the page has survived on the later one."""
    run = rig(tmp_path, OPEN, ROWS % "", trouble=Killed)
    with pytest.raises(Killed):
        await run.start()
    run.die(browser_survives=survives)
    assert (await run.resume()).output == WHOLE


@pytest.mark.parametrize(
    ("first", "code"),
    [(OPEN.replace("id: open", "id: anew"), None), ("{id: one, type: transform, expr: 1}", "list-begun")],
)
async def test_a_block_that_reads_a_list_again_begins_at_its_first_page(
    tmp_path: Path, first: str, code: str | None
) -> None:
    """A `handle` that runs again reads the list whole if it loads it, and else is told that it would read a part."""
    block = f"{{id: rows, type: handle, attempts: 2, try: [{first}, {(ROWS % '').replace('id: rows', 'id: list')}]}}"
    ended = await rig(tmp_path, OPEN, block).start()
    assert ended.error is None if code is None else ended.error is not None and ended.error["code"] == code
    assert ended.output == (WHOLE if code is None else None)
