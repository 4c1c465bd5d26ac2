"""Reads tables: those of HTML, and those of elements with roles, also where a page renders only some of their columns."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from runtime.browser import isolated_world
from runtime.browser.elements import grids, text_match


class Rendered(TypedDict):
    """What a page has of a table now."""

    tag: NotRequired[str]  # for an element that is no table
    keys: list[str]  # what each row is known by, as long as nothing is scrolled up or down
    columns: list[int]  # number of each column, from 1
    head: list[str]
    rows: list[list[str | None]]
    of: int  # number of columns that the table has according to the page; 0 if it does not say


READ = r"""
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
    // Firefox draws no options of a list that is closed.
    return said === options || (!said && fields[0].checkVisibility()) ? held(fields[0]) : said;
  };
"""
"""JavaScript: text of an element, or value of a field."""


TABLES = isolated_world.Script[list[Rendered]](
    "(tables) => {"
    + text_match.SEEN
    + READ
    + grids.GRIDS
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
  // A cell is repeated in all columns and rows that it spans.
  const filled = (lines, text) => {
    const cells = lines.map(() => []);
    lines.forEach((line, y) => {
      const placed = line.length && line.every(column);
      let x = 0;
      for (const cell of line) {
        if (placed) x = column(cell) - 1;
        while (!placed && cells[y][x] !== undefined) x += 1;
        const right = x + across(cell), rows = cell.rowSpan ?? number(cell, 'aria-rowspan') ?? 1;
        const last = rows === 0 ? lines.length : Math.min(lines.length, y + rows);
        for (let down = y; down < last; down += 1)
          for (let at = x; at < right; at += 1) cells[down][at] = text(cell);
        x = right;
      }
    });
    return cells;
  };
  const ofHtml = (table) => {
    const shown = Array.from(table.rows).filter(drawn);
    let above = shown.filter((row) => row.parentElement === table.tHead);
    let body = shown.filter((row) => row.parentElement !== table.tHead && row.parentElement !== table.tFoot);
    if (!above.length) {
      const first = body.findIndex((row) => Array.from(row.cells).some((cell) => cell.tagName !== 'TH'));
      above = body.slice(0, first === -1 ? body.length : first);
      body = body.slice(above.length);
    }
    const keyed = body.map((row, n) => row.getAttribute('aria-rowindex') ?? String(n));
    return [above.map((row) => Array.from(row.cells)), body.map((row) => Array.from(row.cells)), keyed];
  };
  const ofRoles = (table) => {
    const lines = linesOf(table), body = lines.filter((line) => !line.head && !line.filters);
    return [lines.filter((line) => line.head).map((line) => line.cells), body.map((line) => line.cells), body.map((line) => line.key)];
  };
  return tables.map((table) => {
    const html = table instanceof HTMLTableElement;
    if (!html && !table.matches(GRID)) return {tag: table.tagName.toLowerCase(), keys: [], columns: [], head: [], rows: [], of: 0};
    const [above, lines, known] = (html ? ofHtml : ofRoles)(table);
    // A line of one cell over all columns is a remark, such as "no rows", or the heading of a group.
    const wide = (line) => line.reduce((sum, cell) => sum + across(cell), 0);
    const whole = Math.max(0, ...[...above, ...lines.filter((line) => line.length > 1)].map(wide));
    const ours = lines.map((_line, n) => n).filter((n) => whole < 2 || lines[n].length > 1 || wide(lines[n]) < whole);
    const body = ours.map((n) => lines[n]), keys = ours.map((n) => known[n]);
    const headers = filled(above, heading), rows = filled(body, read);
    const width = Math.max(0, ...headers.map((row) => row.length), ...rows.map((row) => row.length));
    const columns = Array.from({length: width}, (_each, x) => x).filter((x) => [...headers, ...rows].some((row) => row[x] !== undefined));
    const head = columns.map((x) => Array.from(new Set(headers.map((row) => row[x] ?? ''))).filter(Boolean).join(' '));
    return {
      keys, head, columns: columns.map((x) => x + 1), rows: rows.map((row) => columns.map((x) => row[x] ?? null)),
      of: Math.max(0, number(table, 'aria-colcount') ?? 0),
    };
  });
}""",
    list[Rendered],
)
"""Its rows are the table's own in the order in which they are shown, without those of tables in its cells."""

ACROSS = isolated_world.Script[bool | None](
    "async (tables, start) => {"
    + grids.GRIDS
    + """
  const table = tables[0], rows = table ? below(table, ROW) : [];
  const scrolls = (at) => at.scrollWidth > at.clientWidth + 1 && /auto|scroll|overlay/.test(getComputedStyle(at).overflowX);
  const holder = (row) => { for (let at = over(row); at; at = over(at)) if (scrolls(at)) return at; return null; };
  const box = rows.map(holder).find(Boolean);
  if (!box) return null;
  const before = box.scrollLeft;
  box.scrollTo({left: start ? 0 : before + 0.8 * box.clientWidth, behavior: 'instant'});
  const within = rows.filter((row) => box.contains(row) && row !== box);
  const covered = () => {
    const {left} = box.getBoundingClientRect(), right = left + box.clientWidth;
    // Cells that stay where they are tell nothing; a row of few cells is a heading of others.
    const cells = within.filter((row) => row.isConnected).map((row) => below(row, CELL).filter((cell) => getComputedStyle(cell).position !== 'sticky'));
    const most = Math.max(0, ...cells.map((each) => each.length));
    return cells.filter((each) => each.length && each.length > most / 2).every((each) => {
      const places = each.map((cell) => cell.getBoundingClientRect());
      return Math.min(...places.map((place) => place.left)) <= left + 2 && Math.max(...places.map((place) => place.right)) >= right - 2;
    });
  };
  const frame = () => new Promise((heard) => { requestAnimationFrame(() => requestAnimationFrame(heard)); setTimeout(heard, 100); });
  const began = performance.now();
  do await frame(); while (!covered() && performance.now() - began < 1000);
  return Math.abs(box.scrollLeft - before) > 1;
}""",
    bool | None,
)
"""Scrolls a table to its first column, or on to the right, until there are cells to see; true if that moved it, null if nothing can be scrolled."""
