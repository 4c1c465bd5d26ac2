"""Readings of one element or of many."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

from nodes.errors import SiteError
from nodes.pages import FieldSource, Grid
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json, sound, sound_json
from runtime.browser import isolated_world, sign_in_states
from runtime.browser.diagnosis.diagnosis import field_ambiguous, subject_of
from runtime.browser.elements import grids, locators, rules, tables, text_match, visibility
from runtime.browser.origins import origin
from runtime.browser.page import quiet
from runtime.browser.page.access import PAUSES
from runtime.browser.page.observer import Looking
from runtime.browser.page.screenshots import Pictures
from runtime.browser.run_pages import lacks

Cell = str | None | dict[str, int]
"""Text of a field of a row; if the field is ambiguous, its index, the row's number, and the count."""


_ROWS = isolated_world.Script[tuple[list[list[Cell]], int]](
    "(rows, fields) => {"
    + text_match.SEEN
    + tables.READ
    + visibility.COUNTS
    + grids.GRIDS
    + """
  const roots = (row) => {
    const inside = [row, ...row.querySelectorAll('*')].filter((element) => element.shadowRoot);
    return [row, ...inside.flatMap((element) => roots(element.shadowRoot))];
  };
  const within = (row, css) => roots(row).flatMap((root) => Array.from(root.querySelectorAll(css)));
  // A row that is split over pinned columns is one, with the fields of all its parts.
  const grids = new Map(), done = new Set();
  const whole = rows.filter(counts).map((row) => partsOf(row, grids)).filter((parts) => !done.has(parts) && done.add(parts));
  if (whole.some((parts) => parts.length > 1)) {
    // Its parts come in the order in which they are shown.
    const order = new Map(Array.from(grids.values()).flatMap((lines) => Array.from(new Set(lines.values()))).map((parts, n) => [parts, n]));
    whole.sort((one, other) => (order.get(one) ?? -1) - (order.get(other) ?? -1));
  }
  const found = whole.map((parts, number) => fields.map(({css, attribute, nth}, index) => {
    const all = css === null ? parts.slice(0, 1) : parts.flatMap((part) => within(part, css));
    if (nth === null && all.length > 1) return {ambiguous: all.length, number, index};
    const element = all.at(nth ?? 0);
    if (!element) return null;
    return attribute === null ? read(element) : element.getAttribute(attribute);
  }));
  return [found, rows.length];
}""",
    tuple[list[list[Cell]], int],
)


_HOLDER = """
  const holder = (rows) => {
    const root = document.scrollingElement ?? document.documentElement;
    // Of a table some rows may stay where they are.
    for (const first of new Set(rows.map((row) => row.parentElement)))
      for (let at = first; at; at = at.parentElement)
        if (at !== root && at.scrollHeight > at.clientHeight + 1 && /auto|scroll|overlay/.test(getComputedStyle(at).overflowY)) return at;
    return root;
  };
"""
"""JavaScript: the element that scrolls rows."""

_SCROLL_ROWS = isolated_world.Script[bool](
    "async (rows, start) => {"
    + _HOLDER
    + """
  const box = holder(rows), before = box.scrollTop;
  box.scrollTo({top: start ? 0 : before + 0.8 * box.clientHeight, behavior: 'instant'});
  // The page hears of it before the next frame is drawn; a page out of sight draws none.
  await new Promise((heard) => { requestAnimationFrame(() => requestAnimationFrame(heard)); setTimeout(heard, 100); });
  return Math.abs(box.scrollTop - before) > 1;
}""",
    bool,
)

_COVERED = isolated_world.Script[bool](
    "(rows) => {"
    + _HOLDER
    + """
  const box = holder(rows), root = box === (document.scrollingElement ?? document.documentElement);
  const shown = rows.map((row) => row.getBoundingClientRect()).filter(({height}) => height > 0);
  if (!shown.length) return false;
  const {top, bottom} = root ? {top: 0, bottom: innerHeight} : box.getBoundingClientRect();
  const last = Math.max(...shown.map((each) => each.bottom)), first = Math.min(...shown.map((each) => each.top));
  const rest = box.scrollHeight - box.clientHeight - box.scrollTop;
  // Something other than rows may follow the last one.
  return first < bottom && (last >= bottom - 2 || rest < box.clientHeight) && last > top;
}""",
    bool,
)
"""True if the rows fill what is seen of them, or the end of the list is near."""

COVER_SECONDS = 1.0  # seconds that a list may take until it shows rows where it was scrolled to

_TEXT = isolated_world.Script[str]("(element) => {" + text_match.SEEN + "return folded(seen(element)); }", str)

_STATE = isolated_world.Script[dict[str, Json]](
    "(element) => {"
    + rules.STATES
    + """
  const box = element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type);
  const field = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement;
  const chooses = element instanceof HTMLSelectElement;
  return {
    visible: visible(element),
    enabled: enabled(element),
    checked: box || element.hasAttribute('aria-checked') ? checked(element) : null,
    editable: enabled(element) && (element.isContentEditable || chooses || (field && !element.readOnly)),
    focused: element.getRootNode().activeElement === element,
    value: field || chooses ? element.value : null,
  };
}""",
    dict[str, Json],
)

_HAS_DATABASE = isolated_world.Script[bool](
    "async () => { try { return (await indexedDB.databases()).length > 0; } catch { return false; } }", bool
)


class Reads(Pictures, Looking):
    async def text(self, target: Target) -> str:
        target, found = await self._found(target)
        return await self._read(target, lambda: _TEXT.of(found, milliseconds=self._deadline.milliseconds()), waits=True)

    async def value(self, target: Target) -> str:
        target, found = await self._found(target)
        async with self._asking(target):
            return sound(await found.input_value(timeout=self._deadline.milliseconds()))

    async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
        wanted = [{"css": field.css, "attribute": field.attribute, "nth": field.nth} for field in fields]
        seen = every = 0

        async def look() -> list[list[Cell]] | None:
            nonlocal seen, every
            await self._parsed()
            settled = await self._settled_now(target)
            rows: list[list[Cell]] = []
            if settled is not None:
                rows, every = await _ROWS.of_all(locators.locator(self.page, settled, hidden=True), wanted)
            seen = len(rows)
            return rows if seen >= least else None

        rows = await self._until(look, target)
        if rows is None:
            if every and not seen:
                raise await self.diagnosis.all_hidden(target, every)
            raise await self.diagnosis.missing(target, wanted=least, seen=seen)
        if not rows:
            await self.diagnosis.demand_answer(target)
        if ambiguous := next((cell for row in rows for cell in row if isinstance(cell, dict)), None):
            raise field_ambiguous(fields, ambiguous)
        return cast("list[list[str | None]]", rows)

    async def attribute(self, target: Target, name: str) -> str | None:
        target, found = await self._found(target)
        async with self._asking(target):
            return sound_json(await found.get_attribute(name, timeout=self._deadline.milliseconds()))

    async def state(self, target: Target) -> dict[str, Json]:
        target, found = await self._found(target)
        async with self._asking(target):
            return await _STATE.of(found, milliseconds=self._deadline.milliseconds())

    async def table(self, target: Target, least: int, *, across: bool = False) -> Grid:
        table = await self._rendered(target, least)
        columns, rows = dict(zip(table["columns"], table["head"], strict=True)), _cells(table)
        if across and table["of"] > len(columns):
            async for more in self._across(target):
                columns.update(zip(more["columns"], more["head"], strict=True))
                for key, cells in _cells(more).items():
                    # Rows that were not there at first belong to another place of the list.
                    if key in rows:
                        rows[key].update({number: text for number, text in cells.items() if text is not None})
        numbers = sorted(columns)
        return Grid(
            [columns[number] for number in numbers],
            [[cells.get(number) for number in numbers] for cells in rows.values()],
            numbers,
            max(0, table["of"] - len(numbers)),
        )

    async def _across(self, target: Target) -> AsyncGenerator[tables.Rendered]:
        """Scroll a table from its first column to its last one, and read it at each place."""
        target, found = await self._found(target)
        async with self._asking(target):
            if await tables.ACROSS.of_all(found, argument=True) is None:
                return
            moved: bool | None = True
            while moved:
                for each in await tables.TABLES.of_all(found):
                    yield each
                moved = await tables.ACROSS.of_all(found, argument=False)
            await tables.ACROSS.of_all(found, argument=True)

    async def _rendered(self, target: Target, least: int) -> tables.Rendered:
        seen = 0

        async def look() -> tables.Rendered | None:
            nonlocal seen
            await self._parsed()
            settled = await self._settled_now(target)
            found: list[tables.Rendered] = []
            if settled is not None:
                found = await tables.TABLES.of_all(locators.locator(self.page, settled))
            if len(found) > 1:
                raise await self.diagnosis.ambiguous(settled or target, "before")
            seen = len(found[0]["rows"]) if found else 0
            if not found and not least:
                return {"keys": [], "columns": [], "head": [], "rows": [], "of": 0}
            # An element that is no table does not become one by waiting.
            return found[0] if found and ("tag" in found[0] or seen >= least) else None

        table = await self._until(look, target)
        if table is not None and "tag" not in table and not table["rows"]:
            await self.diagnosis.demand_answer(target)
        if table is None:
            if seen or not await self.count(target):
                raise await self.diagnosis.missing(target, wanted=least, seen=seen)
            raise self.diagnosis.page_error(
                "target-not-found",
                f"{target} has no row (waited {self._deadline.waited():g} s)",
                "if there may be no row, write `min: 0`; else look at the page, and correct the target",
                **await self.diagnosis.says(),
            )
        if "tag" in table:
            raise SiteError(
                "not-a-table",
                f"{target} is a <{table['tag']}>, and no table",
                fix="point at the table itself (`css: table`, `role: grid`), or read rows of another kind with `extract`",
                evidence={"page": self.page.url, "tag": table["tag"]},
            )
        return table

    async def scroll_rows(self, target: Target, *, start: bool) -> bool:
        target, _found = await self._found(target)
        every = locators.locator(self.page, target, hidden=True)
        async with self._asking(target):
            moved = await _SCROLL_ROWS.of_all(every, start)
            began = time.monotonic()
            # A list that shows only a part renders the next one a moment later: reading before would leave rows out.
            while not await _COVERED.of_all(every):
                if time.monotonic() - began > COVER_SECONDS:
                    break
                await asyncio.sleep(PAUSES[0])
        return moved

    async def count(self, target: Target, *, hidden: bool = False) -> int:
        async def look() -> int:
            await self._parsed()
            settled = await self._settled_now(target)
            if settled is None:
                return 0
            found = locators.locator(self.page, settled, hidden=True)
            return await found.count() if hidden else await rules.COUNT.of_all(found)

        count = await self._read(target, look)
        if not count:
            await self.diagnosis.demand_answer(target)
        return count

    async def missing_part(self, target: Target) -> str | None:
        return await self._read(target, lambda: self.diagnosis.missing_part(target))

    async def wait_for(self, rule: Rule) -> None:
        if rule.kind == "url" and self.dialogs.message is not None:
            # An address can be read while a dialog is open, and does not change meanwhile.
            if not locators.address_matches(rule.url or "", self.page.url):
                self.dialogs.refuse("after")
            return
        last = rules.RuleCheck(False, None, None)

        async def look() -> bool | None:
            nonlocal last
            last = await self._look(rule)
            return True if last.holds else False if await self._comes_to_nothing(rule, last) else None

        # A condition over values does not change by waiting.
        held = await (look() if rule.kind == "expr" else self._until(look, subject_of(rule)))
        if not held:
            raise await self.diagnosis.rule_failed(rule, last)

    async def _comes_to_nothing(self, rule: Rule, last: rules.RuleCheck) -> bool:
        seconds = self._deadline.quiet
        if seconds is None:
            return False
        ambiguous = last.matches > 1 and rule.kind != "count"
        return await quiet.since(self.page, self._run.answers, quiet.MOMENT if ambiguous else seconds)

    async def holds(self, rule: Rule) -> bool:
        return (await self._read(subject_of(rule), lambda: self._look(rule))).holds

    async def _look(self, rule: Rule) -> rules.RuleCheck:
        subject = subject_of(rule)
        if rule.kind == "url" and self.page.is_closed():
            # A closed tab keeps its address, and would be checked until the time is up. A request to the tab reveals that it is gone.
            await self.page.title()
        for_nothing = rule.kind == "hidden" or (rule.kind == "count" and rule.count == 0)
        settled = subject if subject is None or locators.settled(subject) else await self._settled_now(subject)
        if subject is not None and settled is None:
            seen = rules.RuleCheck(for_nothing, None, None, 0)
        else:
            seen = await rules.look(self.page, rule, settled)
        if seen.holds and for_nothing and (status := await self.diagnosis.broken()) is not None:
            # A missing element on a server error page proves nothing.
            return rules.RuleCheck(False, seen.wanted, f"an error of the server ({status})")
        return seen

    async def signed_in(self) -> Json:
        await self._run.know_origins()
        state: Any = await self._read(None, lambda: self.page.context.storage_state(indexed_db=True))
        return self._run.allowed.stored(state)

    async def sign_in(self, state: Json) -> None:
        allowed: Any = self._run.allowed.stored(state)
        sign_in_states.require_usable(allowed, time.time())
        await self._run.know_origins()
        if self._run.engine != "chromium" and await self._read(None, self._any_database):
            raise lacks(
                self._run.engine,
                "`load_session` once a page has made an IndexedDB",
                "it cannot put another one in its place",
                "load the state before the first `goto`",
            )
        if self._run.engine == "chromium":
            await self._read(None, self._close_databases)
        await self._read(None, lambda: self.page.context.set_storage_state(allowed))

    async def _any_database(self) -> bool:
        frames = [frame for page in self.page.context.pages for frame in page.frames if origin(frame.url)]
        return any([await _HAS_DATABASE.on(frame) for frame in frames])

    async def _close_databases(self) -> None:
        """Clear the IndexedDB of every open document: while a page has one open, none can be put in its place."""
        documents = {origin(frame.url) for page in self.page.context.pages for frame in page.frames}
        session = await self.page.context.new_cdp_session(self.page)
        try:
            for each in documents - {None}:
                await session.send("Storage.clearDataForOrigin", {"origin": each, "storageTypes": "indexeddb"})  # pyright: ignore[reportUnknownMemberType]
        finally:
            await session.detach()


def _cells(table: tables.Rendered) -> dict[str, dict[int, str | None]]:
    """Return the cells of each row by the numbers of their columns; rows by what they are known by."""
    found: dict[str, dict[int, str | None]] = {}
    for number, (key, row) in enumerate(zip(table["keys"], table["rows"], strict=True)):
        found[key if key not in found else f"{key} {number}"] = dict(zip(table["columns"], row, strict=True))
    return found
