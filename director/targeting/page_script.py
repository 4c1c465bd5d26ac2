"""JavaScript of proofs: identifies an element, adds rows above it, copies the page."""

from __future__ import annotations

from runtime.browser import isolated_world
from runtime.browser.elements import facts
from runtime.browser.elements.naming import NAMING

FOUND = isolated_world.Script[tuple[int, str, bool | None, bool]](
    "(all, meant) => {"
    + facts.IDENTITY
    + """
  return [all.length, all.length === 1 ? identity(all[0]) : '', meant === null ? null : all[0] === meant, all.some((each) => each.checkVisibility({visibilityProperty: true}))];
}""",
    tuple[int, str, bool | None, bool],
)
"""Number of matches, identity of the only one, whether it is the intended one, and whether any is visible."""

GROW = isolated_world.Script[int](
    "(element) => {"
    + NAMING
    + r"""
  const up = (node) => node.parentElement || (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null);
  const shape = (node) => Array.from(node.children, (child) => child.localName).join(' ');
  const like = (node) => {
    const role = node.getAttribute('role');
    const row = ['tr', 'li', 'article'].includes(node.localName) || ['row', 'listitem', 'article', 'option'].includes(role);
    const named = Array.from(node.classList);
    const all = Array.from(node.parentElement ? node.parentElement.children : []).filter((each) => each.localName === node.localName);
    if (row) return node.parentElement && node.parentElement.localName === 'thead' ? [] : all.filter((each) => each === node || shape(each) === shape(node));
    if (!['div', 'section', 'figure', 'a', 'details', 'form', 'tbody', 'dl'].includes(node.localName) && !node.localName.includes('-')) return [];
    const cards = all.filter((each) => named.some((one) => each.classList.contains(one)) && shape(each) === shape(node));
    return (cards.length > 1 || isCardByName(node)) && node.children.length ? cards : [];
  };
  const texts = (node) => {
    const found = [], walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.data.trim()) found.push(walker.currentNode);
    return found;
  };
  const turned = (text, by) => text
    .replace(/[0-9]/g, (each) => String((Number(each) + by) % 10))
    .replace(/[a-z]/g, (each) => String.fromCharCode(97 + (each.charCodeAt(0) - 97 + by) % 26))
    .replace(/[A-Z]/g, (each) => String.fromCharCode(65 + (each.charCodeAt(0) - 65 + by) % 26))
    .replace(/[^\x00-\x7f]/gu, (each) => /\p{L}/u.test(each) ? 'x' : each);
  const BUTTON = 'button, [role=button]', CONTROL = `${BUTTON}, a, label, thead th, dt, legend, summary, option, [role=tab], [role=menuitem]`;
  const SAID = ['aria-label', 'title', 'alt', 'href'];
  const added = [];
  let levels = 0;
  // A row or card is itself what there can be more of.
  const pressed = element.matches('a, button, input, select, textarea, [onclick], [role=button], [role=link], [role=option], [role=tab], [role=menuitem]');
  for (let around = pressed ? up(element) : element; around && around.localName !== 'body' && levels < 2; around = up(around)) {
    const all = like(around);
    if (!all.length) continue;
    levels += 1;
    // What several of them say is what they are labelled with; what one of them says alone is what it is about.
    const times = new Map();
    for (const each of all) {
      const attributes = [each, ...each.querySelectorAll('*')].flatMap((one) => SAID.map((name) => one.getAttribute(name) || ''));
      for (const said of new Set([...texts(each).map((one) => one.data), ...attributes].map((one) => one.trim()))) times.set(said, (times.get(said) || 0) + 1);
    }
    // So is what each of at least three says in one place, also on a button.
    const saidBy = all.map((each) => texts(each).map((one) => one.data.trim()));
    const differs = (place) => all.length > 2 && new Set(saidBy.map((each) => each[place])).size === all.length;
    for (const by of [3, 6]) {
      const clone = around.cloneNode(true);
      for (const [place, node] of texts(clone).entries()) {
        const said = node.data.trim(), plain = !/[0-9]/.test(said);
        const control = node.parentElement.closest(all.length > 1 ? BUTTON : CONTROL);
        // The first text of a part is its name, also as a link.
        if (times.get(said) > 1 || (plain && !differs(place) && control && clone.contains(control) && !(place === 0 && control.localName === 'a'))) continue;
        node.data = turned(node.data, by);
      }
      // No two elements have one id: what belongs together in a row belongs together in the next one too.
      const every = [clone, ...clone.querySelectorAll('*')], ids = new Map();
      for (const id of every.map((each) => each.getAttribute('id'))) if (id) ids.set(id, /[0-9]/.test(id) ? id.replace(/[0-9]/g, (each) => String((Number(each) + by) % 10)) : `${id}-${by}`);
      const tied = (value) => value.split(/(\s+|#)/).map((each) => ids.get(each) ?? each).join('');
      for (const node of every)
        for (const {name, value} of Array.from(node.attributes))
          if (['id', 'for', 'list', 'form', 'headers'].includes(name) || /^aria-(labelledby|describedby|controls|owns|details|activedescendant|errormessage)$/.test(name)) node.setAttribute(name, tied(value));
          else if (SAID.includes(name) && all.length > 1 && times.get(value.trim()) === 1) node.setAttribute(name, name === 'href' ? `${value}-${by}` : turned(value, by));
          else if (/[0-9]/.test(value) && !['class', 'style', 'colspan', 'rowspan', 'width', 'height', 'src', 'd', 'viewBox', 'type', 'maxlength', 'tabindex'].includes(name))
            node.setAttribute(name, value.replace(/[0-9]/g, (each) => String((Number(each) + by) % 10)));
      added.push([all[0], clone]);
    }
  }
  // The rows of one level are no parts of those of the next.
  for (const [first, clone] of added) first.before(clone);
  return added.length;
}""",
    int,
)
"""Adds two copies of each row, item or card around the element, above the first, with other texts and numbers; returns their number.

Texts that similar parts share and names of buttons that few have stay the same, as they would in a real row.
"""

CONNECTED = isolated_world.Script[bool]("(element) => element.isConnected", bool)
COPY = isolated_world.Script[str](
    r"""() => {
  const root = document.documentElement.cloneNode(true);
  for (const each of root.querySelectorAll('script, noscript, link, base, meta, iframe, frame, object, embed')) each.remove();
  for (const each of root.querySelectorAll('*'))
    for (const {name} of Array.from(each.attributes))
      if (/^on/i.test(name) || ['src', 'srcset', 'poster', 'background', 'autofocus'].includes(name)) each.removeAttribute(name);
  const style = document.createElement('style');
  for (const sheet of document.styleSheets) {
    // Those of other origins may not be read.
    try { style.append(Array.from(sheet.cssRules, (rule) => rule.cssText).join('\n')); } catch { continue; }
  }
  for (const each of root.querySelectorAll('style')) each.remove();
  root.querySelector('head')?.append(style);
  return root.innerHTML.replaceAll(/url\([^)]*\)/g, 'none');
}""",
    str,
)
"""The current page as HTML that runs and loads nothing."""

PASTE = isolated_world.Script[None]("(html) => { document.documentElement.innerHTML = html; }", None)
