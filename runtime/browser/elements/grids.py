"""Tables made of elements with roles: their rows and cells as a person sees them, also where a row is split over pinned parts."""

from __future__ import annotations

NAME = "runops-row"

GRIDS = r"""
  const GRID = '[role=grid], [role=treegrid], [role=table]';
  const ROW = '[role=row], tr:not([role])';
  const HEAD = '[role=columnheader], th:not([role])';
  const CELL = `[role=gridcell], [role=cell], [role=rowheader], td:not([role]), ${HEAD}`;
  const over = (node) => node.assignedSlot || node.parentElement || (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null);
  const below = (root, css) => {
    const found = Array.from(root.querySelectorAll(css));
    if (found.length) return found;
    // What is in shadow roots is looked for only where there is nothing outside of them.
    const inside = [root, ...root.querySelectorAll('*')].filter((element) => element.shadowRoot);
    return inside.flatMap((element) => below(element.shadowRoot, css));
  };
  const drawn = (element) => element.checkVisibility({visibilityProperty: true});
  // The table that a row belongs to; none for a row of a table in a cell.
  const gridOf = (row) => {
    for (let at = over(row); at; at = over(at)) {
      if (at.matches(GRID)) return at;
      if (at.matches(CELL)) return null;
    }
    return null;
  };
  const number = (element, name) => {
    const written = Number.parseInt(element.getAttribute(name) ?? '', 10);
    return Number.isNaN(written) ? null : written;
  };
  // A page may say anything: a table has at most some thousand columns.
  const MOST = 10000;
  const column = (cell) => {
    const written = number(cell, 'aria-colindex');
    return written !== null && written >= 1 && written <= MOST ? written : null;
  };
  const across = (cell) => Math.min(MOST, Math.max(1, cell.colSpan ?? number(cell, 'aria-colspan') ?? 1));
  // Where the part of a row begins that can be seen: columns that are scrolled away lie under the pinned ones.
  const begins = (part, grid) => {
    let left = part.getBoundingClientRect().left;
    for (let at = over(part); at && at !== grid; at = over(at))
      if (getComputedStyle(at).overflowX !== 'visible') left = Math.max(left, at.getBoundingClientRect().left);
    return left;
  };
  const cellsOf = (row) => below(row, CELL).filter((cell) => drawn(cell) && (() => {
    for (let at = over(cell); at; at = over(at)) {
      if (at === row) return true;
      if (at.matches(CELL)) return false;
    }
    return false;
  })());
  // In the order of the columns; of a line of several parts, each with its own cells.
  const ordered = (parts, grid) => {
    const cells = parts.map(cellsOf), all = cells.flat();
    if (all.length && all.every(column)) return all.sort((one, other) => column(one) - column(other));
    if (parts.length < 2 || getComputedStyle(grid).direction === 'rtl') return all;
    const places = new Map(parts.map((part, n) => [cells[n], begins(part, grid)]));
    return cells.sort((one, other) => places.get(one) - places.get(other)).flat();
  };
  // The lines of a table: each is one row as a person sees it, of one or several elements.
  const linesOf = (grid) => {
    const lines = [], known = new Map();
    for (const row of below(grid, ROW)) {
      if (!drawn(row) || gridOf(row) !== grid) continue;
      const {top, height} = row.getBoundingClientRect(), first = below(row, CELL)[0];
      const head = Boolean(first && first.matches(HEAD)), index = row.getAttribute('aria-rowindex') ?? row.getAttribute('row-index');
      const key = index === null ? `${Math.round(top)} ${Math.round(height)}` : index;
      const line = known.get(`${head} ${key}`);
      const beside = line && Math.abs(line.top - top) < Math.max(2, height) && (height > 0 || index !== null);
      if (beside && line.parts.every((part) => part.parentNode !== row.parentNode)) line.parts.push(row);
      else {
        const made = {key, top, index: number(row, 'aria-rowindex'), head, parts: [row]};
        known.set(`${head} ${key}`, made);
        lines.push(made);
      }
    }
    for (const line of lines) {
      line.cells = ordered(line.parts, grid);
      line.head = line.cells.length > 0 && line.cells.every((cell) => cell.matches(HEAD));
    }
    // Fields to filter by stand beside the headers, as a row of cells.
    const heads = new Set(lines.filter((line) => line.head).flatMap(({parts}) => parts.map((part) => part.parentNode)));
    const besideHead = (line) => !line.head && line.parts.every((part) => heads.has(part.parentNode));
    const apart = lines.some((line) => !line.head && !besideHead(line));
    for (const line of lines) line.filters = apart && besideHead(line) && line.cells.some((cell) => cell.querySelector('input, select, textarea'));
    const kept = lines.filter((line) => line.cells.length);
    const indexed = kept.every((line) => line.index !== null);
    return kept.sort((one, other) => indexed ? one.index - other.index : one.top - other.top);
  };
  const columnsOf = (lines) => {
    const columns = new Set();
    for (const {cells} of lines) {
      if (!cells.every(column)) return null;
      for (const cell of cells)
        for (let n = 0; n < across(cell); n += 1) columns.add(column(cell) + n);
    }
    return columns.size;
  };
  // All parts of a row; of many rows each table is read once.
  const partsOf = (row, known = new Map()) => {
    const grid = row.matches(ROW) ? gridOf(row) : null;
    if (!grid || grid instanceof HTMLTableElement) return [row];
    if (!known.has(grid)) known.set(grid, new Map(linesOf(grid).flatMap(({parts}) => parts.map((part) => [part, parts]))));
    return known.get(grid).get(row) ?? [row];
  };
"""
"""JavaScript: ``linesOf`` a table of elements with roles, each with ``cells`` in the order of its columns, and ``partsOf`` a row.

Parts of a line have the same ``aria-rowindex`` (or ``row-index``), or without one the same place, and stand in different elements.
"""

ENGINE = (
    "(() => {"
    + GRIDS
    + """
  const queryAll = (root) => root instanceof Element ? partsOf(root) : [root];
  return {query: (root) => queryAll(root)[0] ?? null, queryAll};
})()"""
)
"""Playwright selector engine: adds to a row matched before it the other parts of the same row."""

WHOLE_ROW = f"{NAME}=all"
