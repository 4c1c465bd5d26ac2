"""Facts about an element that the document states: its kind, its names, and its surroundings."""

from __future__ import annotations

import dataclasses

from runtime.browser.elements import guesses, text_match

NAMING = r"""
  // A class that a person wrote: one that a program makes holds digits, or capitals in odd places.
  const plain = (name) => /^[a-z][a-z_-]{1,40}$/.test(name) && !/^(active|selected|hover|focus|open|closed|odd|even|first|last|is-|has-|js-)/.test(name);
  const classes = (node) => Array.from(node.classList).filter(plain);
  // An attribute that a person wrote to say what an element is: not one of a framework, none that gives its present state, and no number.
  const NOISE = /^data-(v-|react|ng-|svelte|ember|radix|headlessui|turbo|hx-|bs-|reach|styled|emotion|testid$|id$|uid$|key$|index$|state|status$|active$|open$|selected$|checked$|value$|count$|text$|title$|label$|toggle$|target$|original|loaded|href$|url$|src$|date|time)/;
  const data = (node) => Array.from(node.attributes)
    .filter(({name, value}) => /^data-[a-z][a-z-]*$/.test(name) && !NOISE.test(name) && /^[A-Za-z][A-Za-z_.:-]{1,40}$/.test(value) && !/^(true|false|null|none|on|off|yes|no)$/i.test(value))
    .map(({name, value}) => `${node.localName}[${name}="${value}"]`);
"""
"""JavaScript: classes and attributes that a person gave an element."""

FACTS = (
    "(element) => {"
    + text_match.SEEN
    + guesses.GUESS
    + r"""
  const attribute = (name) => element.getAttribute(name) || '';
  const reads = isRead(element, seen(element), ligatures([element]));
  const guessed = reads || element.getAttribute('aria-label') ? null : guess(element, false, false);
  const short = (text) => { const found = folded(text || ''); return found.length <= 60 ? found : ''; };
  const field = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement;
  const box = element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type);
  const aria = element.getAttribute('aria-checked');
  const up = (node) => node.parentElement || (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null);
"""
    + NAMING
    + r"""
  const named = (node) => classes(node).map((each) => `${node.localName}.${CSS.escape(each)}`);
  const textsOf = (around) => {
    const texts = [];
    const walk = (node) => {
      if (node === element || texts.length >= 8) return;
      const own = Array.from(node.childNodes).filter((child) => child.nodeType === 3).map((child) => child.data).join(' ');
      const holds = node.contains(element);
      const said = own.trim() ? short(holds ? own : seen(node)) : '';
      if (said && !texts.includes(said)) texts.push(said);
      if (!said || holds) for (const child of node.children) walk(child);
    };
    walk(around);
    return texts;
  };
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
  const rows = [], areas = [];
  for (let around = up(element); around && around.localName !== 'body'; around = up(around)) {
    const role = around.getAttribute('role');
    const kind = role || {TR: 'row', LI: 'listitem', ARTICLE: 'article'}[around.tagName];
    if (['row', 'listitem', 'article'].includes(kind)) {
      if (rows.length < 2) rows.push({role: kind, texts: textsOf(around)});
      continue;
    }
    const part = {role: '', name: '', css: [], heading: null, texts: []};
    const region = role || REGIONS[around.tagName] || '';
    const name = called(around);
    if (['dialog', 'alertdialog', 'group', 'radiogroup', 'region', 'form', 'navigation', 'complementary', 'table', 'grid', 'tabpanel', 'search'].includes(region)
        && (name || ['dialog', 'alertdialog', 'search'].includes(region))) {
      part.role = region;
      part.name = name;
    }
    part.css = named(around);
    // A card is one of several of its kind that stand side by side.
    const like = !['td', 'th'].includes(around.localName) && around.parentElement && Array.from(around.parentElement.children)
      .filter((each) => each !== around && each.localName === around.localName && classes(around).some((one) => each.classList.contains(one)));
    if (like && like.length) part.texts = textsOf(around);
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
    if ((part.role || part.heading || part.texts.length) && areas.length < 5) areas.push({...part, tag: around.localName});
  }
  // The text beside a field or a value that names it.
  const beside = [];
  const own = (node) => Array.from(node.childNodes).filter((child) => child.nodeType === 3).map((child) => child.data).join(' ');
  const note = (caption, way) => { const said = short(caption); if (said && !beside.some((each) => each.text === said)) beside.push({text: said, way}); };
  const speaks = (node) => !node.querySelector('input, select, textarea, button, a') && !node.matches('input, select, textarea, button, a, script, style');
  const tail = (from) => from === element ? '' : ` ${element.localName}`;
  for (let node = element, levels = 0; node && levels < 3 && node.localName !== 'body'; node = up(node), levels += 1) {
    const before = node.previousElementSibling;
    if (node.localName === 'dd') {
      const term = before && before.localName === 'dt' ? before : null;
      if (term) note(seen(term), [...saying(term, 'dt'), `) + dd${tail(node)}`]);
      break;
    }
    if (before && speaks(before) && before.localName !== 'br' && seen(before).trim()) {
      note(seen(before), [...saying(before, before.localName), `) + ${node.localName}${tail(node)}`]);
      break;
    }
    if (['td', 'th', 'tr', 'li', 'table', 'form'].includes(node.localName)) break;
    const parent = up(node);
    if (!parent || parent.localName === 'body') break;
    if (!before && own(parent).trim() && node.compareDocumentPosition(parent.firstChild) & Node.DOCUMENT_POSITION_PRECEDING) {
      note(own(parent), [`${parent.localName}:has-text(`, short(own(parent)), `) > ${node.localName}${tail(node)}`]);
      break;
    }
    if (before && before.localName !== 'br') break;
  }
  // The label of a check box follows it.
  const after = element.nextElementSibling;
  if (box && !beside.length && after && speaks(after) && seen(after).trim())
    note(seen(after), [`${element.localName}:has(+ ${saying(after, after.localName)[0]}`, raw(after), '))']);
  else if (box && !beside.length && up(element) && up(element).querySelectorAll('input').length === 1 && own(up(element)).trim())
    note(own(up(element)), [`${up(element).localName}:has-text(`, short(own(up(element))), `) > ${element.localName}`]);
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
    classes: named(element),
    data: data(element),
    link: element.localName === 'a' ? attribute('href') : '',
    rows, areas, beside,
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
    let row = '';
    for (let around = up(element); around && !row; around = up(around))
      if (['tr', 'li', 'article'].includes(around.localName) || ['row', 'listitem', 'article'].includes(around.getAttribute('role')) || isCard(around)) row = said(around);
    // Of what is called the same in several parts, the heading of its part tells which it is.
    const heads = row ? [] : Array.from(element.getRootNode().querySelectorAll('h1, h2, h3, h4, h5, h6, [role=heading], legend, caption'))
      .filter((head) => !element.contains(head) && head.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
    const head = heads.length ? said(heads[heads.length - 1]).replace(/[(\[]?\d[\d.,]*[)\]]?/g, '') : '';
    return JSON.stringify([element.localName, ...known, element.localName === 'select' ? '' : said(element), row, head]);
  };
"""
)
"""JavaScript: identity of an element by its text and that of its row, card or heading, to recognize it in another document."""


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
    css: tuple[str, ...] = ()  # selectors of it, by classes that a person gave it
    heading: Caption | None = None  # heading above it, with the CSS from the heading to the part
    texts: tuple[str, ...] = ()  # short texts in it, if it is one of several cards


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
    rows: tuple[Row, ...] = ()  # rows, items and articles around it, the nearest first
    areas: tuple[Area, ...] = ()  # other parts of the page around it, the nearest first
    beside: tuple[Caption, ...] = ()
    frames: tuple[str, ...] = ()  # frames that lead to it, outermost first, each as a target names it
