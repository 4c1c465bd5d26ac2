"""The table around an element, as ``query: table`` reads it: shorter than the same columns as fields of ``extract``."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

from playwright.async_api import Error

from nodes.browser_query.rows import headers
from nodes.errors import RunOpsError
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import isolated_world
from runtime.browser.elements import targets
from runtime.browser.elements.pointed import Pointed
from runtime.browser.page.tab import Tab
from runtime.language import writer

KEYS = 24  # most keys that are listed
_TABLE = (
    "xpath=ancestor-or-self::*[(self::table and not(@role)) or @role='table' or @role='grid' or @role='treegrid'][1]"
)
_KNOWN_AS = isolated_world.Script[tuple[str, str]](
    r"""(table) => {
  const ids = (table.getAttribute('aria-labelledby') || '').split(/\s+/).map((id) => id && table.getRootNode().getElementById(id)).filter(Boolean);
  const caption = Array.from(table.children).find((each) => each.localName === 'caption');
  const said = ids.map((each) => each.textContent).join(' ') || table.getAttribute('aria-label') || (caption ? caption.textContent : '') || table.title;
  return [table.getAttribute('role') || 'table', said.replace(/\s+/g, ' ').trim()];
}""",
    tuple[str, str],
)
"""JavaScript: role and name of a table."""


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    target: Target
    keys: Sequence[str]

    @property
    def line(self) -> str:
        data = self.target.model_dump(mode="json", exclude_unset=True, by_alias=True)
        more = f" … {len(self.keys) - KEYS} more" if len(self.keys) > KEYS else ""
        return f"# all rows: query: table, target: {_flow(data)}; keys: {_flow(list[Json](self.keys[:KEYS]))}{more}"


async def around(tab: Tab, pointed: Pointed, usable: Callable[[str], bool]) -> Table | None:
    """Return the nearest table around the element, or the element itself, if it has headings and a target finds it alone."""
    with contextlib.suppress(Error, RunOpsError):
        async with pointed.at(_TABLE) as table:
            if table is None:
                return None
            role, name = await table.asked(_KNOWN_AS)
            target = await targets.target_of(table.known(text="", classes=()), role, name, usable)
            grid = await tab.table(target, 0)
            keys = headers(grid.head, list(grid.columns) or None)
            if any(grid.head) and all(map(usable, keys)):
                return Table(target, keys)
    return None


def _flow(value: Json) -> str:
    return writer.inline(writer.literal(value))
