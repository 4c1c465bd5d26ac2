"""Facts about an element that the document states: its kind, its names, and its surroundings."""

from __future__ import annotations

import dataclasses
import json

from runtime.browser.elements import guesses, text_match
from runtime.browser.elements.naming import NAMING

FACTS = (
    "(element) => {"
    + text_match.SEEN
    + guesses.GUESS
    + r"""
  const attribute = (name) => element.getAttribute(name) || '';
  const reads = isRead(element, seen(element), ligatures([element]));
  const guessed = reads || element.getAttribute('aria-label') ? null : guess(element, false, false);
  const short = (text) => { const found = folded(text || ''); return found.length <= 60 ? found : ''; };
  // Of a long text, whole words at its beginning.
  const begins = (text) => { const found = folded(text || ''); return found.length <= 60 ? found : found.slice(0, 60).replace(/\s+\S*$/, ''); };
  const field = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement;
  const box = element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type);
  const aria = element.getAttribute('aria-checked');
  const up = (node) => node.parentElement || (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null);
"""
    + NAMING
    + r"""
  const named = (node) => classes(node).map((each) => `${node.localName}.${CSS.escape(each)}`);
  // What is chosen in a field is not what a part of the page is about.
  const CHOICE = 'select, option, datalist, script, style, template, [role=option], [role=listbox], [role=combobox]';
  // Headings and links tell best which part of the page it is; what its neighbours say too, and what its buttons say, least.
  const rankOf = (node, said, kin) => node.closest('button, [role=button]') ? 2 : kin.some((each) => each.textContent.includes(said)) ? 3 : node.closest('h1, h2, h3, h4, h5, h6, [role=heading], a, strong, b, th') ? 0 : 1;
  const shown = (node) => node.checkVisibility({visibilityProperty: true}) || getComputedStyle(node).display === 'contents';
  const isShown = shown(element);
  const saidIn = (around, kin) => {
    const found = new Map();
    const walk = (node) => {
      if (node === element && around !== element || found.size >= 12 || node.matches(CHOICE) || (isShown && !shown(node))) return;
      const own = Array.from(node.childNodes).filter((child) => child.nodeType === 3).map((child) => child.data).join(' ');
      const holds = around !== element && node.contains(element);
      const whole = own.trim() ? unglyphed(holds ? own : seen(node)) : '', said = begins(whole);
      if (said && !found.has(said)) found.set(said, {said, node, rank: rankOf(node, said, kin)});
      if (!short(whole) || holds) for (const child of node.children) walk(child);
    };
    walk(around);
    return Array.from(found.values()).sort((one, other) => one.rank - other.rank).slice(0, 8);
  };
  const kinOf = (node) => Array.from(node.parentElement ? node.parentElement.children : []).filter((each) => each !== node && each.localName === node.localName);
  const textsOf = (around) => saidIn(around, kinOf(around).slice(0, 5)).map((each) => each.said);
  const HEADING = 'h1, h2, h3, h4, h5, h6, [role=heading], legend, summary, caption';
  const REGIONS = {DIALOG: 'dialog', FIELDSET: 'group', NAV: 'navigation', MAIN: 'main', ASIDE: 'complementary', TABLE: 'table', FORM: 'form', SECTION: 'region'};
  const ids = (node, name) => (node.getAttribute(name) || '').split(/\s+/).map((id) => id && node.getRootNode().getElementById(id)).filter(Boolean);
  // As it is written: names, and texts in CSS, know nothing of letters that a style sheet makes large.
  const raw = (node) => short(node.textContent);
  // CSS that finds an element by its text: `:text-is` knows only the text of the element itself.
  const saying = (node, tag) => {
    const whole = raw(node), own = Array.from(node.childNodes).some((child) => child.nodeType === 3 && folded(child.data) === whole);
    return [`${tag}:${own ? 'text-is' : 'has-text'}(`, whole];
  };
  const called = (node) => {
    const aria = node.getAttribute('aria-label') || ids(node, 'aria-labelledby').map((each) => each.textContent).join(' ');
    if (aria) return short(aria);
    const own = node.localName === 'fieldset' ? 'legend' : node.localName === 'table' ? 'caption' : null;
    const first = own && Array.from(node.children).find((each) => each.localName === own);
    return first ? raw(first) : '';
  };
  const landmark = (node) => ({HEADER: 'banner', FOOTER: 'contentinfo'})[node.tagName] && !node.parentElement.closest('main, article, section, aside, nav') ? {HEADER: 'banner', FOOTER: 'contentinfo'}[node.tagName] : '';
  const ALONE = ['dialog', 'alertdialog', 'search', 'banner', 'contentinfo', 'complementary', 'toolbar'];
  // CSS of a part that no part around it fits as well: by test id, data, id, class; of its classes, the one of a card, then one that its
  // neighbours have too, since the others say where it is put, then the rarest.
  const cssOf = (node) => {
    const fit = (css) => document.querySelectorAll(css).length;
    const test = node.getAttribute('data-testid') || '', id = node.id, kin = kinOf(node);
    const shared = (each) => kin.filter((one) => one.classList.contains(each)).length;
    const named = classes(node).map((each) => [each, `${node.localName}.${CSS.escape(each)}`]).map(([each, css]) => [/(card|tile|item|entry|row)(-root)?$/i.test(each) ? 0 : 1, /__|-(content|header|body|inner|wrapper)/.test(each) ? 1 : 0, -shared(each), fit(css), -each.length, css])
      .sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2] || one[3] - other[3] || one[4] - other[4]).map((each) => each[5]);
    return [.../^[A-Za-z][A-Za-z_-]{1,40}$/.test(test) ? [`[data-testid="${test}"]`] : [], .../^[A-Za-z][A-Za-z_-]{1,40}$/.test(id) && plain(id) ? [`#${id}`] : [], ...data(node), ...named]
      .filter((css) => !node.parentElement.closest(css)).slice(0, 2);
  };
  // CSS of a part by a text in it alone: by the way from the part down to the text.
  const downTo = (around, found) => {
    const steps = [];
    for (let node = found.node; node !== around; node = node.parentElement) { if (!node || steps.length > 4) return null; steps.unshift(node.localName); }
    const said = raw(found.node);
    return steps.length && said === found.said ? {text: said, way: [`${around.localName}:has(> ${steps.join(' > ')}:${found.node.childElementCount ? 'has-text' : 'text-is'}(`, said, '))']} : null;
  };
  // What is called by all that is in it is known best by a text that is the whole of one thing in it.
  const saidByPart = () => {
    const [base] = [...data(element), ...named(element), element.localName];
    const parts = Array.from(element.querySelectorAll('*')).filter((each) => !each.childElementCount && /[\p{L}\p{N}]/u.test(raw(each)) && shown(each) && !each.closest(CHOICE));
    return parts.slice(0, 6).map((each) => ({text: raw(each), way: [`${base}:has(${each.localName}:text-is(`, raw(each), '))']}));
  };
  const partOf = (around, known) => {
    const part = {role: '', name: '', css: cssOf(around), heading: null, texts: [], says: [], card: false};
    const kin = kinOf(around), own = classes(around);
    // A card is one of several of its kind that stand side by side, or is called one.
    part.card = !['td', 'th'].includes(around.localName) && (kin.some((each) => own.some((one) => each.classList.contains(one))) || isCardByName(around));
    const said = ['td', 'th'].includes(around.localName) ? [] : saidIn(around, kin.slice(0, 5)), fresh = said.filter((each) => !known.has(each.said));
    for (const each of said) known.add(each.said);
    if (fresh.length || part.card) part.texts = said.map((each) => each.said);
    if (!part.css.length && !around.matches('table, tbody, thead, ul, ol, dl, [role=rowgroup], [role=table], [role=grid], [role=list]')) part.says = fresh.filter((each) => each.rank < 2).slice(0, 3).map((each) => downTo(around, each)).filter(Boolean);
    return part;
  };
  // What holds all of the page is no part of it.
  const isAll = (node) => node.parentElement.localName === 'body' && !Array.from(node.parentElement.children).some((each) => each !== node && each.checkVisibility());
  const rows = [], areas = [], known = new Set();
  for (let around = up(element); around && around.localName !== 'body'; around = up(around)) {
    const role = around.getAttribute('role');
    const kind = role || {TR: 'row', LI: 'listitem', ARTICLE: 'article'}[around.tagName];
    if (['row', 'listitem', 'article'].includes(kind)) {
      if (rows.length < 2) rows.push({role: kind, texts: textsOf(around)});
      continue;
    }
    const part = around.parentElement && !isAll(around) ? partOf(around, known) : {role: '', name: '', css: [], heading: null, texts: [], says: [], card: false};
    const region = role || REGIONS[around.tagName] || landmark(around);
    const name = called(around);
    if (['group', 'radiogroup', 'region', 'form', 'navigation', 'table', 'grid', 'tabpanel', ...ALONE].includes(region) && (name || ALONE.includes(region))) {
      part.role = region;
      part.name = name;
    }
    const heads = Array.from(around.querySelectorAll(HEADING));
    // The heading of a part comes before everything else in it, and is the only one of its rank.
    const head = heads[0];
    if (head && !head.contains(element) && !element.contains(head)) {
      const before = head.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (before && heads.filter((each) => each.localName === head.localName).length === 1 && short(seen(head)))
        part.heading = {text: short(seen(head)), way: [`${around.localName}:has(${saying(head, head.localName)[0]}`, raw(head), '))']};
    }
    // Or right before the part.
    const leads = around.previousElementSibling;
    if (!part.heading && leads && leads.matches('h1, h2, h3, h4, h5, h6') && short(seen(leads)))
      part.heading = {text: short(seen(leads)), way: [...saying(leads, leads.localName), `) + ${around.localName}`]};
    if ((part.role || part.heading || part.says.length || (part.texts.length && part.css.length)) && areas.length < 7) areas.push({...part, tag: around.localName});
  }
  // The text beside a field or a value that names it.
  const beside = [];
  const own = (node) => Array.from(node.childNodes).filter((child) => child.nodeType === 3).map((child) => child.data).join(' ');
  const note = (caption, way) => { const said = short(caption); if (said && !beside.some((each) => each.text === said)) beside.push({text: said, way}); };
  const FILLED = `input, textarea, button, a, ${CHOICE}`;
  const speaks = (node) => !node.querySelector(FILLED) && !node.matches(FILLED);
  const tail = (from) => from === element ? '' : ` ${element.localName}`;
  for (let node = element, levels = 0; node && levels < 3 && node.localName !== 'body'; node = up(node), levels += 1) {
    let before = node.previousElementSibling, lines = '';
    for (; before && before.localName === 'br'; before = before.previousElementSibling) lines += '+ br ';
    if (node.localName === 'dd') {
      const term = before && before.localName === 'dt' ? before : null;
      if (term) note(seen(term), [...saying(term, 'dt'), `) + dd${tail(node)}`]);
      break;
    }
    // What says several things is no caption.
    if (before && /[\n\t]/.test(seen(before).trim())) break;
    if (before && speaks(before) && seen(before).trim()) {
      note(seen(before), [...saying(before, before.localName), `) ${lines}+ ${node.localName}${tail(node)}`]);
      break;
    }
    if (['td', 'th', 'tr', 'li', 'table', 'form'].includes(node.localName)) break;
    const parent = up(node);
    if (!parent || parent.localName === 'body') break;
    if (!before && own(parent).trim() && node.compareDocumentPosition(parent.firstChild) & Node.DOCUMENT_POSITION_PRECEDING) {
      note(own(parent), [`${parent.localName}:has-text(`, short(own(parent)), `) > ${node.localName}${tail(node)}`]);
      break;
    }
    if (before) break;
  }
  // The label of a check box follows it.
  const after = element.nextElementSibling;
  if (box && !beside.length && after && speaks(after) && seen(after).trim())
    note(seen(after), [`${element.localName}:has(+ ${saying(after, after.localName)[0]}`, raw(after), '))']);
  else if (box && !beside.length && up(element) && up(element).querySelectorAll('input').length === 1 && own(up(element)).trim())
    note(own(up(element)), [`${up(element).localName}:has-text(`, short(own(up(element))), `) > ${element.localName}`]);
  // An icon that nothing names is known by how it is drawn.
  const stroke = reads || element.querySelectorAll('svg').length !== 1 ? null : element.querySelector('svg path[d], svg polyline[points]');
  const drawn = [];
  for (let node = stroke; node && node !== element; node = node.parentElement) drawn.unshift(node.localName);
  const line = stroke ? stroke.localName === 'path' ? 'd' : 'points' : '', strokes = stroke ? stroke.getAttribute(line).slice(0, 32) : '';
  return {
    tag: element.localName,
    type: field ? element.type : '',
    test_id: attribute('data-testid'),
    id: attribute('id'),
    name: attribute('name'),
    placeholder: attribute('placeholder'),
    title: attribute('title'),
    alt: attribute('alt'),
    labels: field && element.labels ? Array.from(element.labels, (each) => short(each.textContent)).filter(Boolean) : [],
    text: reads ? short(unglyphed(seen(element))) : '',
    hint: guessed ? guessed[1] : '',
    checked: box ? element.checked : aria === null ? null : aria === 'true',
    drawn: /^[\w .,-]{8,}$/.test(strokes) ? `${element.localName}:has(> ${drawn.join(' > ')}[${line}^="${strokes}"])` : '',
    classes: named(element),
    inside: element.childElementCount && element.parentElement && !field ? {...partOf(element, new Set()), tag: element.localName} : null,
    data: data(element),
    link: element.localName === 'a' ? attribute('href') : '',
    rows, areas, beside, parts: field ? [] : saidByPart(),
  };
}"""
)
"""JavaScript: all facts of an element, in the shape of ``Facts``."""


IDENTITY = (
    text_match.SEEN
    + r"""
  const identity = (element) => {
    const up = (node) => node.parentElement || (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null);
    // A clock that runs, and how long ago something was, are nothing to be known by.
    const said = (node) => folded(seen(node)).replace(/\d+(:\d\d)+|\d+ ?(s|sec|seconds?|min|minutes?)\b/g, '').slice(0, 300);
    const known = ['type', 'name', 'href', 'role', 'aria-label', 'alt', 'title', 'placeholder'].map((name) => element.getAttribute(name) || '');
    const isCard = (node) => !['td', 'th', 'dt', 'dd', 'body'].includes(node.localName) && node.parentElement && Array.from(node.parentElement.children)
      .some((each) => each !== node && each.localName === node.localName && Array.from(node.classList).some((one) => each.classList.contains(one)));
    const isRow = (node) => ['tr', 'li', 'article'].includes(node.localName) || ['row', 'listitem', 'article'].includes(node.getAttribute('role')) || isCard(node);
    const leaves = (node) => Array.from(new Set([node, ...node.querySelectorAll('*')].slice(0, 400)
      .filter((each) => each.checkVisibility({visibilityProperty: true}) && Array.from(each.childNodes).some((child) => child.nodeType === 3 && child.data.trim())).map(said))).filter(Boolean).slice(0, 40);
    // A row is known by what no other one beside it says: what else is in it may be opened, counted or done meanwhile.
    const own = (node) => {
      const kin = Array.from(node.parentElement ? node.parentElement.children : []).filter((each) => each !== node && each.localName === node.localName).slice(0, 20);
      const all = leaves(node), others = new Set(kin.flatMap(leaves)), alone = all.filter((each) => !others.has(each));
      return alone.length ? alone : all;
    };
    let row = [];
    for (let around = up(element); around && !row.length; around = up(around)) if (isRow(around)) row = own(around);
    // Of what is called the same in several parts, the heading of its part tells which it is.
    const heads = row.length ? [] : Array.from(element.getRootNode().querySelectorAll('h1, h2, h3, h4, h5, h6, [role=heading], legend, caption'))
      .filter((head) => !element.contains(head) && head.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
    const head = heads.length ? said(heads[heads.length - 1]).replace(/[(\[]?\d[\d.,]*[)\]]?/g, '') : '';
    return JSON.stringify([element.localName, ...known, element.localName === 'select' ? '' : isRow(element) ? own(element) : said(element), row, head]);
  };
"""
)
"""JavaScript: identity of an element by its text and that of its row, card or heading, to recognize it in another document by ``same``."""


def same(one: str, other: str) -> bool:
    """Return whether two identities are of one element. Two rows are one if the first text of either, and most of the fewer texts, are in the other."""
    pairs = zip(json.loads(one or "[]"), json.loads(other or "[]"), strict=False)
    return one == other or (bool(one and other) and all(_like(*pair) for pair in pairs))


def _like(one: str | list[str], other: str | list[str]) -> bool:
    if not (isinstance(one, list) and isinstance(other, list) and one and other):
        return one == other
    shared = len(set(one) & set(other))
    return (one[0] in other or other[0] in one) and 2 * shared > min(len(one), len(other))


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    role: str
    texts: tuple[str, ...]  # short texts in it, in the order of the page


@dataclasses.dataclass(frozen=True, slots=True)
class Caption:
    """A text beside or above the element, or a part of the page, that names it."""

    text: str
    way: tuple[str, str, str]
    """CSS from the text to the element: the part before the text, the text as written, the part after it."""

    @property
    def css(self) -> str:
        before, text, after = self.way
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'{before}"{escaped}"{after}'


@dataclasses.dataclass(frozen=True, slots=True)
class Area:
    """A part of the page around the element: a card, or something with a name or a heading."""

    tag: str
    role: str = ""
    name: str = ""  # name of the part with that role
    css: tuple[str, ...] = ()  # selectors of it, by what a person called it; no part around it has the same
    heading: Caption | None = None  # heading above it, with the CSS from the heading to the part
    texts: tuple[str, ...] = ()  # short texts in it, those first that tell best which part it is
    says: tuple[Caption, ...] = ()
    """Texts in it, each with CSS that finds the part by it, if nothing else names the part."""
    card: bool = False  # True if it is one of several of its kind, or called a card


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """Facts that the document states about an element; a text is empty if it states none."""

    tag: str = ""
    type: str = ""  # type of a field: `text`, `checkbox`, `select-one` …
    test_id: str = ""
    id: str = ""
    name: str = ""
    placeholder: str = ""
    title: str = ""
    alt: str = ""
    labels: tuple[str, ...] = ()
    text: str = ""
    hint: str = ""  # CSS by its icon or tooltip, if nothing in it is read
    checked: bool | None = None
    classes: tuple[str, ...] = ()  # selectors of it, by classes that a person gave it
    data: tuple[str, ...] = ()  # selectors of it, by `data-` attributes that a person gave it as a name
    link: str = ""  # address of a link, as written
    drawn: str = ""  # CSS by the lines of its icon, if nothing else says what it is
    inside: Area | None = None  # the element itself as a part of the page
    rows: tuple[Row, ...] = ()  # rows, items and articles around it, the nearest first
    areas: tuple[Area, ...] = ()  # other parts of the page around it, the nearest first
    beside: tuple[Caption, ...] = ()
    parts: tuple[Caption, ...] = ()  # texts of single things in it, each with CSS of the element that holds it
    frames: tuple[str, ...] = ()  # frames that lead to it, outermost first, each as a target names it
