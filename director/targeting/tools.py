"""``propose_target``: turns an element that a model was shown into a target for a file."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

from playwright.async_api import Error
from typing_extensions import override

from director.scouting import observer
from director.targeting import candidates, fields, proof, tables
from director.tools.toolbox import PERHAPS, TEXT, OfBuild, of, tool
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.agents import actions
from runtime.browser.diagnosis import nearest
from runtime.browser.elements import locators
from runtime.browser.page.tab import Tab
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.observation.tree import ACTING

NAME = "propose_target"
PRESSED_SECONDS = 2.0
_BOXES = frozenset({"checkbox", "radio", "switch"})


PROPOSE = tool(
    NAME,
    "Find targets for an element, and prove each: now, after a reload, with more rows. For a row, card, table or text, also the `fields` of extract.",
    {
        "tab": PERHAPS,
        "ref": TEXT,
        "anchor": of(PERHAPS, "Text of the row, card or part to find it by."),
        "reason": TEXT,
    },
)


class Propose(OfBuild):
    kind = "read"

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        masker, sight = self._build.writer.masker, cast("observer.PageObserver", self._build.observer)
        where, name = sight.place(cast("str | None", arguments["tab"]), place.thread, arguments["ref"])
        anchor = cast("str | None", arguments["anchor"]) or None
        usable = actions.usable(masker)
        async with sight.alone(where):
            page = sight.page(where, name)
            async with sight.pointed_at(page, str(arguments["ref"]), anew=True) as (pointed, element):
                row = fields.read(await pointed.asked(fields.FIELDS), usable) if element.role not in ACTING else None
                table = await tables.around(page, pointed, usable) if row is not None else None
                proved = await proof.of(page, pointed, element.role, element.name, usable, anchor)
                pressed = await _pressed(page, element.role, proved)
        what, fits = candidates.kind(element.role, pointed.facts)
        more = pressed if row is None else fields.lines_of(row)
        if row is not None and table is not None:
            rest, fits = fields.beside_table(row), fits.replace("`query: extract`", "`query: table`")
            more = [table.line, *(fields.lines_of(rest) if rest is not None else [])]
        ours, theirs = candidates.lines_of(proved, more)
        text = masker.text("\n".join([f"{what}; fits: {fits}", *ours, page_text.fenced("\n".join(theirs))]))
        return turn.Outcome(text, text)


async def _pressed(page: Tab, role: str, proved: candidates.Proof) -> list[str]:
    """Return the line with what takes the clicks of the element, if that is another part of its control."""
    if role in _BOXES:
        # `check` and `click` of a box reach it through its label.
        return []
    with contextlib.suppress(Error, TimeoutError, RunOpsError):
        async with asyncio.timeout(PRESSED_SECONDS):
            found = await nearest.in_place(page.page, locators.locator(page.page, proved.found[0].target))
            return [f"# it takes no click itself; `click` {found}"] if found else []
    return []
