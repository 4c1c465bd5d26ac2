"""Finds the fields of a row, card or table, as ``fields`` of ``extract``: each matches exactly once in its row."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Sequence

from nodes.values import Json
from runtime.browser import isolated_world
from runtime.browser.elements import text_match
from runtime.browser.elements.naming import NAMING
from runtime.language import writer
from runtime.observation.lines import quoted

MOST = 900
SAID = 30


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field, matched by ``css`` in its row."""

    name: str
    css: str
    attribute: str | None
    said: str
    found: int  # number of rows that have it exactly once
    several: bool  # True if a row has more than one
    headed: bool  # True if it is a cell under a heading, which `query: table` reads


@dataclasses.dataclass(frozen=True, slots=True)
class Fields:
    rows: int
    every: str  # CSS that matches exactly these rows; empty if none does
    fields: Sequence[Field]


FIELDS = isolated_world.Script[Fields | None](
    "(element) => {"
    + text_match.SEEN
    + NAMING
    + r"""
  const short = (text) => folded(text || '').slice(0, 60);
  const role = (node) => node.getAttribute('role') || '';
  const isRow = (node) => ['tr', 'li', 'article'].includes(node.localName) || ['row', 'listitem', 'article', 'option'].includes(role(node));
  const shown = (node) => node.checkVisibility({visibilityProperty: true}) || getComputedStyle(node).display === 'contents';
  const kin = (node) => Array.from(node.parentElement ? node.parentElement.children : []).filter((each) =>
    each.localName === node.localName && shown(each) && (isRow(node) || classes(node).some((one) => each.classList.contains(one)) || role(each) !== '' && role(each) === role(node)));
  const isCard = (node) => !['td', 'th', 'dt', 'dd', 'body', 'option'].includes(node.localName) && node.children.length > 0 && kin(node).length > 1;
  // The row that is meant: the element, the first one in it, or the one around it.
  let row = isRow(element) ? element : null;
  if (!row && (element.localName === 'table' || ['table', 'grid', 'treegrid', 'list', 'feed'].includes(role(element)) || ['ul', 'ol', 'tbody'].includes(element.localName)))
    row = Array.from(element.querySelectorAll('tr, li, article, [role=row], [role=listitem], [role=article]')).find((each) => shown(each) && !(each.localName === 'tr' && !each.querySelector('td')) && !each.querySelector('[role=columnheader]')) || null;
  else if (!row && isCard(element)) row = element;
  else if (!row)
    for (let around = element.parentElement; around && around.localName !== 'body' && !row; around = around.parentElement)
      if (isRow(around) || isCard(around)) row = around;
  if (!row || !row.parentElement) return null;
  const cells = (node) => Array.from(node.children).filter((each) => ['td', 'th'].includes(each.localName) || ['cell', 'gridcell', 'rowheader'].includes(role(each)));
  const tabular = cells(row).length > 1;
  const alike = kin(row).filter((each) => !tabular || cells(each).length === cells(row).length && (cells(row).some((one) => one.localName === 'td') === cells(each).some((one) => one.localName === 'td')));
  const only = (css, found, among) => { try { const all = among.querySelectorAll(css); return all.length === 1 && all[0] === found; } catch { return false; } };
  const marks = (node) => {
    const own = [...data(node), ...['itemprop'].filter((name) => node.getAttribute(name)).map((name) => `[${name}=${JSON.stringify(node.getAttribute(name))}]`)];
    const test = node.getAttribute('data-testid') || '', label = node.getAttribute('aria-label') || '', [stem] = label.split(/\d/);
    if (plain(test)) own.unshift(`[data-testid=${JSON.stringify(test)}]`);
    // In each row a label may end with its own number.
    if (label) own.push(`${node.localName}[aria-label${stem === label ? '' : '^'}=${JSON.stringify(stem)}]`);
    return [...own, ...classes(node).map((each) => `${node.localName}.${CSS.escape(each)}`)];
  };
  const path = (node) => {
    const parts = [];
    for (let each = node; each !== row; each = each.parentElement) {
      const like = Array.from(each.parentElement.children).filter((one) => one.localName === each.localName);
      parts.unshift(like.length > 1 ? `${each.localName}:nth-of-type(${like.indexOf(each) + 1})` : each.localName);
    }
    return `:scope > ${parts.join(' > ')}`;
  };
  const ways = (node) => {
    const tag = node.localName, above = node.parentElement;
    const cell = tabular && above === row ? [`${tag}:nth-child(${Array.from(row.children).indexOf(node) + 1})`] : [];
    const within = above && above !== row ? [...marks(above), ...cells(row).includes(above) ? ways(above).slice(0, 1) : [], above.localName].map((each) => `${each} > ${tag}`) : [];
    return [...marks(node), ...cell, tag, ...within, path(node)];
  };
  const fields = [], taken = new Set();
  const note = (node, name, said, attribute) => {
    const headed = over(node) !== '';
    if (fields.filter((each) => each.headed === headed).length >= (headed ? 24 : 12) || (!said && !headed)) return;
    let best = null;
    for (const css of ways(node)) {
      if (!only(css, node, row)) continue;
      const counts = alike.map((each) => each.querySelectorAll(css).length);
      const found = counts.filter((each) => each === 1).length, several = counts.some((each) => each > 1);
      if (!best || (best.several && !several) || (best.several === several && found > best.found)) best = {css, found, several};
    }
    if (best && !taken.has(best.css + attribute)) { taken.add(best.css + attribute); fields.push({...best, name, said: short(said), attribute, headed}); }
  };
  const table = row.closest('table, [role=table], [role=grid], [role=treegrid]');
  const head = tabular && table ? Array.from(table.querySelectorAll('tr, [role=row]')).find((each) => each !== row && each.querySelector('th, [role=columnheader]') && each.children.length === row.children.length) : null;
  // The heading of a column, if the node is a cell of it.
  const over = (node) => {
    const said = tabular && node.parentElement === row && head ? short(seen(head.children[Array.from(row.children).indexOf(node)])) : '';
    return /[\p{L}\p{N}]/u.test(said) ? said : '';
  };
  const named = (node) => {
    for (let each = node; each && each !== row.parentElement; each = each.parentElement) {
      if (over(each)) return over(each);
      const mark = Array.from(each.attributes).find(({name, value}) => data(each).includes(`${each.localName}[${name}="${value}"]`)) || each.getAttributeNode('itemprop');
      if (each !== row && mark) return mark.value;
      if (each === node && classes(each)[0]) return classes(each)[0];
    }
    return node.localName;
  };
  const own = (node) => Array.from(node.childNodes).filter((child) => child.nodeType === 3).map((child) => child.data).join(' ').trim();
  const walk = (node) => {
    if (!shown(node) || ['script', 'style', 'template', 'svg', 'button'].includes(node.localName) || role(node) === 'button') return;
    const field = ['input', 'select', 'textarea'].includes(node.localName);
    const cell = tabular && node.parentElement === row;
    if (node !== row) {
      if (field) { if (!['hidden', 'password', 'submit', 'button', 'reset', 'image'].includes(node.type)) note(node, node.name || named(node), ['checkbox', 'radio'].includes(node.type) ? String(node.checked) : node.value || '-', null); return; }
      // A cell says what the one thing in it says.
      const same = !cell && tabular && folded(seen(node)) === folded(seen(cells(row).find((each) => each.contains(node)) || row));
      if (!cell && own(node) && !same) note(node, named(node), seen(node).trim(), null);
      if (node.localName === 'a' && node.getAttribute('href')) note(node, `${named(node)}_link`, node.getAttribute('href'), 'href');
      if (node.localName === 'img' && node.getAttribute('alt')) note(node, `${named(node)}_alt`, node.getAttribute('alt'), 'alt');
      if (!cell && own(node) && !node.querySelector('a[href]')) return;
    }
    for (const child of node.children) if (!cell || child.localName === 'a' || child.children.length || marks(child).length) walk(child);
  };
  // First all columns. What only holds what one presses says nothing.
  for (const each of tabular ? cells(row) : []) if (shown(each) && (own(each) || !each.querySelector('button, [role=button], input'))) note(each, named(each), seen(each).trim(), null);
  walk(row);
  // What finds all of these rows and nothing else.
  const same = (css) => { try { const all = Array.from(document.querySelectorAll(css)).filter(shown); return all.length === alike.length && all.every((each) => alike.includes(each)); } catch { return false; } };
  const parent = row.parentElement, above = [];
  for (let each = parent; each && each.localName !== 'body' && above.length < 8; each = each.parentElement) {
    if (/^[A-Za-z][A-Za-z_-]{1,40}$/.test(each.id)) above.push(`#${each.id}`);
    above.push(...marks(each));
  }
  const tags = [...marks(row), row.localName === 'tr' && parent.localName === 'tbody' ? 'tbody tr' : row.localName];
  const every = [...tags, ...above.flatMap((each) => tags.map((tag) => `${each} ${tag}`)), `${parent.localName} > ${row.localName}`];
  return {rows: alike.length, every: every.find(same) || '', fields};
}""",
    Fields | None,
)


def read(found: Fields | None, usable: Callable[[str], bool]) -> Fields | None:
    """Return the fields with unique names; None if there are none. Fields with texts that are not ``usable`` are left out."""
    taken: Counter[str] = Counter()
    named: list[Field] = []
    for each in found.fields if found is not None else ():
        name = re.sub(r"\W+", "_", each.name.casefold()).strip("_")[:40] or "field"
        if usable(each.css) and usable(name):
            taken[name] += 1
            named.append(dataclasses.replace(each, name=name if taken[name] == 1 else f"{name}_{taken[name]}"))
    if found is None or not named:
        return None
    return Fields(found.rows, found.every if usable(found.every) else "", named)


def beside_table(found: Fields) -> Fields | None:
    """Return the fields that `query: table` does not read, after one that tells the rows apart; None if it reads all."""
    headed = [each for each in found.fields if each.headed]
    others = [each for each in found.fields if not each.headed]
    return dataclasses.replace(found, fields=[*headed[:1], *others]) if others else None


def lines_of(found: Fields, most: int = MOST) -> list[str]:
    """Return ``fields`` as YAML lines of a node, each with its text in the observed row, in at most ``most`` characters."""
    lines = [f"# all {found.rows} of its kind: target: {_flow({'css': found.every})}"] if found.every else []
    lines.append("fields:")
    left = most - sum(len(each) + 1 for each in lines)
    chosen: list[tuple[str, str]] = []
    for each in found.fields:
        way: dict[str, Json] = {"css": each.css}
        if each.attribute is not None:
            way["attribute"] = each.attribute
        if each.found < found.rows:
            way["optional"] = True
        there = "" if each.found == found.rows else f", in {each.found} of {found.rows}"
        there += ", SEVERAL in some" if each.several else ""
        line = f"  {_flow(each.name)}: {_flow(each.css if len(way) == 1 else way)}"
        if len(line) < left:
            chosen.append((line, f" # {quoted(each.said, SAID)}{there}"))
            left -= len(line) + 1
    # All fields come before the text of any.
    for line, said in chosen:
        lines.append(f"{line}{said}" if len(said) <= left else line)
        left -= len(said) if len(said) <= left else 0
    return lines if chosen else []


def _flow(value: Json) -> str:
    return writer.inline(writer.literal(value))
