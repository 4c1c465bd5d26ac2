"""Readings of one element or of many."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NotRequired, cast

from typing_extensions import TypedDict

from nodes.errors import SiteError
from nodes.pages import FieldSource, Grid
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json, sound, sound_json
from runtime.browser import isolated_world, sign_in_states
from runtime.browser.diagnosis.diagnosis import field_ambiguous, subject_of
from runtime.browser.elements import locators, rules, text_match, visibility
from runtime.browser.origins import origin
from runtime.browser.page.access import PAUSES
from runtime.browser.page.observer import Looking
from runtime.browser.page.screenshots import Pictures

Cell = str | None | dict[str, int]
"""Text of a field of a row; if the field is ambiguous, its index, the row's number, and the count."""


class Table(TypedDict):
    head: NotRequired[list[str]]
    rows: list[list[str | None]]
    tag: NotRequired[str]


_READ = r"""
  const FIELDS = 'input:not([type=hidden], [type=checkbox], [type=radio], [type=button], [type=submit], [type=reset], [type=image]), select, textarea';
  const held = (element) => {
    if (element instanceof HTMLSelectElement) return Array.from(element.selectedOptions, (each) => folded(each.label)).join(', ');
    if (element instanceof HTMLTextAreaElement) return folded(element.value);
    if (!(element instanceof HTMLInputElement) || ['button', 'submit', 'reset', 'image'].includes(element.type)) return null;
    if (['checkbox', 'radio'].includes(element.type)) return String(element.checked);
    if (element.type === 'file') return Array.from(element.files, (each) => each.name).join(', ');
    return element.type === 'password' ? '' : folded(element.value);
  };
  // Of a cell that holds nothing but a field, what that holds; the options of a list that are not chosen are no text of it.
  const read = (element) => {
    const own = held(element);
    if (own !== null) return own;
    const said = folded(seen(element)), fields = element.querySelectorAll(FIELDS);
    if (fields.length !== 1) return said;
    const options = folded(Array.from(fields[0].options ?? [], (each) => each.label).join(' '));
    return said === options ? held(fields[0]) : said;
  };
"""
"""JavaScript: text of an element, or value of a field."""

_ROWS = isolated_world.Script[tuple[list[list[Cell]], int]](
    "(rows, fields) => {"
    + text_match.SEEN
    + _READ
    + visibility.COUNTS
    + """
  const roots = (row) => {
    const inside = [row, ...row.querySelectorAll('*')].filter((element) => element.shadowRoot);
    return [row, ...inside.flatMap((element) => roots(element.shadowRoot))];
  };
  const within = (row, css) => roots(row).flatMap((root) => Array.from(root.querySelectorAll(css)));
  const found = rows.filter(counts).map((row, number) => fields.map(({css, attribute, nth}, index) => {
    const all = css === null ? [row] : within(row, css);
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
    for (let at = rows[0]?.parentElement; at; at = at.parentElement)
      if (at.scrollHeight > at.clientHeight + 1 && /auto|scroll|overlay/.test(getComputedStyle(at).overflowY)) return at;
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

# `rows` returns the table's own rows in display order, without those of nested tables.
_TABLE = isolated_world.Script[list[Table]](
    "(tables) => {"
    + text_match.SEEN
    + _READ
    + r"""
  // Of a header that sorts: without the number of the sort order, without arrows, and without what is only there to sort.
  const heading = (cell) => {
    const whole = read(cell);
    if (!cell.querySelector('a, button, [role=button]')) return whole;
    const words = (text) => /\p{L}/u.test(text);
    const parts = [];
    const walk = (node) => {
      if (!node.checkVisibility({visibilityProperty: true})) return;
      for (const child of node.childNodes) {
        if (child instanceof Element) {
          if (child.children.length) walk(child);
          else if (child.checkVisibility({visibilityProperty: true})) parts.push([folded(seen(child)), child]);
        } else if (child.nodeType === 3) {
          const upper = getComputedStyle(node).textTransform === 'uppercase';
          parts.push([folded(upper ? child.data.toUpperCase() : child.data), node]);
        }
      }
    };
    walk(cell);
    const sorts = (part, at) => at.closest('a, button, [role=button]') && /\bsort/i.test(part);
    const arrows = /^[\s▲▼△▽↑↓↕⇅⬍⌃⌄]+|[\s▲▼△▽↑↓↕⇅⬍⌃⌄]+$/gu;
    const said = parts.filter(([part, at]) => words(part) && !sorts(part, at)).map(([part]) => part.replace(arrows, '')).join(' ');
    return said || whole;
  };
  const grid = (rows, text) => {
    const cells = rows.map(() => []);
    rows.forEach((row, y) => {
      let x = 0;
      for (const cell of row.cells) {
        while (cells[y][x] !== undefined) x += 1;
        const last = cell.rowSpan === 0 ? rows.length : Math.min(rows.length, y + cell.rowSpan);
        for (let down = y; down < last; down += 1)
          for (let right = x; right < x + cell.colSpan; right += 1) cells[down][right] = text(cell);
        x += cell.colSpan;
      }
    });
    return cells;
  };
  return tables.map((table) => {
    if (!(table instanceof HTMLTableElement)) return {tag: table.tagName.toLowerCase(), rows: []};
    const shown = Array.from(table.rows).filter((row) => row.checkVisibility({visibilityProperty: true}));
    let above = shown.filter((row) => row.parentElement === table.tHead);
    let body = shown.filter((row) => row.parentElement !== table.tHead && row.parentElement !== table.tFoot);
    if (!above.length) {
      const first = body.findIndex((row) => Array.from(row.cells).some((cell) => cell.tagName !== 'TH'));
      above = body.slice(0, first === -1 ? body.length : first);
      body = body.slice(above.length);
    }
    const headers = grid(above, heading), rows = grid(body, read);
    const width = Math.max(0, ...headers.map((row) => row.length), ...rows.map((row) => row.length));
    const columns = Array.from({length: width}, (_each, x) => x);
    const head = columns.map((x) => Array.from(new Set(headers.map((row) => row[x] ?? ''))).filter(Boolean).join(' '));
    return {head, rows: rows.map((row) => columns.map((x) => row[x] ?? null))};
  });
}""",
    list[Table],
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

    async def table(self, target: Target, least: int) -> Grid:
        seen = 0

        async def look() -> Table | None:
            nonlocal seen
            await self._parsed()
            settled = await self._settled_now(target)
            tables: list[Table] = []
            if settled is not None:
                tables = await _TABLE.of_all(locators.locator(self.page, settled))
            if len(tables) > 1:
                raise await self.diagnosis.ambiguous(settled or target, "before")
            seen = len(tables[0]["rows"]) if tables else 0
            if not tables and not least:
                return {"head": [], "rows": []}
            # An element that is no table does not become one by waiting.
            return tables[0] if tables and ("tag" in tables[0] or seen >= least) else None

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
                f"{target} is a <{table['tag']}>, not a <table>",
                fix="point at the table itself (`css: table`), or read rows of another kind with `extract`",
                evidence={"page": self.page.url, "tag": table["tag"]},
            )
        return Grid(table.get("head", []), table["rows"])

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
            return last.holds or None

        # A condition over values does not change by waiting.
        held = await (look() if rule.kind == "expr" else self._until(look, subject_of(rule)))
        if not held:
            raise await self.diagnosis.rule_failed(rule, last)

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
        await self._read(None, self._close_databases)
        await self._read(None, lambda: self.page.context.set_storage_state(allowed))

    async def _close_databases(self) -> None:
        """Clear the IndexedDB of every open document: while a page has one open, none can be put in its place."""
        documents = {origin(frame.url) for page in self.page.context.pages for frame in page.frames}
        session = await self.page.context.new_cdp_session(self.page)
        try:
            for each in documents - {None}:
                await session.send("Storage.clearDataForOrigin", {"origin": each, "storageTypes": "indexeddb"})  # pyright: ignore[reportUnknownMemberType]
        finally:
            await session.detach()
