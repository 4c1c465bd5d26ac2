"""Facts that an accessibility snapshot lacks.

These are passwords, errors of a field, elements to act on that have no role, no ref or no name, and ghosts. A ghost is a text that the
snapshot contains and people do not see: one that a style sheet adds before or after an element and hides, or a word for which an icon font
draws a picture.

A Playwright selector engine reads them, because engines run in the isolated world that has Playwright's refs. It gives
separate refs (``x3``) to elements without one in the snapshot.
"""

from __future__ import annotations

from runtime.browser.elements import affordances, grids, guesses, naming

NAME = "runops-look"

# `facts` and `self` return an element outside any document; its text is the answer.
ENGINE = (
    "(() => {"
    + affordances.AFFORDANCES
    + guesses.GUESS
    + naming.NAMING
    + grids.GRIDS
    + r"""
return {
  told(found) {
    const element = Document.prototype.createElement.call(document, 'i');
    element.textContent = JSON.stringify(found);
    return [element];
  },
  // All elements, also those in open shadow roots, which are added to `roots`.
  all(root, roots = []) {
    const found = [];
    const walk = (below) => {
      roots.push(below);
      for (const element of below.querySelectorAll('*')) {
        found.push(element);
        if (element.shadowRoot) walk(element.shadowRoot);
      }
    };
    walk(root);
    return found;
  },
  query(root, asked) { return this.queryAll(root, asked)[0]; },
  queryAll(root, asked) {
    if (asked === 'self') return this.told(root._ariaRef ? root._ariaRef.ref : null);
    if (asked.startsWith('facts ')) {
      const [number, marks] = asked.slice(6).split(' ');
      if (globalThis._runopsDocument === undefined) globalThis._runopsDocument = Number(number);
      const roots = [], every = this.all(document, roots), rules = this.rules(), drawn = ligatures(roots);
      const [facts, acts] = this.facts(every, roots, rules.hovered, drawn);
      return this.told([String(document.title), globalThis._runopsDocument, facts, this.ghosts(rules.added, drawn), marks ? this.marks(every) : [],
        acts, every.some((element) => element._ariaRef),
        {url: location.href, rested: Boolean(globalThis._runopsRest), vanished: this.vanished(), grids: this.grids(), collapsed: this.collapsed(), front: this.front(every)}]);
    }
    return this.all(document).filter((element) => element.isConnected && `x${element._runopsRef}` === asked);
  },
  // Elements that were observed, and are gone since the page was found at rest.
  vanished() {
    const rest = globalThis._runopsRest, gone = (rest && rest.gone) || [];
    if (rest) rest.gone = null;
    return gone.some((node) => !node.isConnected && [node, ...node.querySelectorAll('*')].some((element) => element._ariaRef && !element.isConnected));
  },
  grids() {
    const found = [], ref = (element) => element._ariaRef ? element._ariaRef.ref : null;
    for (const grid of document.querySelectorAll(GRID)) {
      const of = number(grid, 'aria-colcount') ?? 0;
      if (!ref(grid) || !drawn(grid) || (of <= 0 && grid instanceof HTMLTableElement)) continue;
      const lines = linesOf(grid), split = lines.some(({parts}) => parts.length > 1), columns = columnsOf(lines) ?? of;
      if (!split && columns >= of) continue;
      found.push({ref: ref(grid), of: Math.max(of, columns), columns, rows: split ? lines.map(({parts, cells}) => [parts.map(ref), cells.map(ref)]) : []});
    }
    return found;
  },
  // Refs of what a hand can reach, where a dialog keeps it from all the rest; empty without one.
  front(every) {
    const USED = 'a[href], button, input, select, textarea, [role=button], [role=option], [role=menuitem], [tabindex]', width = innerWidth, height = innerHeight;
    const fixed = (element) => { for (let each = element; each; each = each.parentElement) if (getComputedStyle(each).position === 'fixed') return each; return null; };
    const covers = (element) => { const box = element.getBoundingClientRect(); return box.left <= 2 && box.top <= 2 && box.right >= width - 20 && box.bottom >= height - 2; };
    const hits = [[3, 3], [width / 2, 3], [3, height / 2], [3, height - 4], [width / 2, height - 4]].map(([x, y]) => document.elementFromPoint(x, y));
    const layers = new Set(hits.filter(Boolean).map(fixed).filter((each) => each && covers(each)));
    const bare = (hit) => !hit || (['HTML', 'BODY'].includes(hit.tagName) && getComputedStyle(document.body).pointerEvents === 'none');
    const unnamed = Array.from(layers).filter((each) => each.querySelector('h1, h2, h3, h4, h5, h6, [role=heading], input, select, textarea') && each.querySelector(USED));
    const dialogs = Array.from(document.querySelectorAll('dialog:modal, [role=dialog], [role=alertdialog]')).filter((each) => each.checkVisibility({visibilityProperty: true}) && each.getBoundingClientRect().height > 0);
    const dialog = dialogs[dialogs.length - 1] || unnamed[0];
    if (!dialog) return [];
    const top = dialog.matches(':modal') ? dialog : fixed(dialog) || dialog;
    // A layer with the dialog in it is the page.
    const over = (layer) => layers.has(layer) && (layer === top || !layer.contains(top));
    if (!hits.every((hit) => bare(hit) || hit.closest('dialog:modal') || over(fixed(hit)))) return [];
    // The snapshot may leave out an element, and have what is in it.
    const refs = (element) => [element, ...element.querySelectorAll('*')].filter((each) => each._ariaRef).map((each) => each._ariaRef.ref);
    const roots = [top, ...Array.from(layers).filter((each) => !each.contains(top) && each.querySelector(USED))];
    const found = roots.flatMap(refs);
    for (const element of every) {
      if (!element._ariaRef || roots.some((each) => each.contains(element))) continue;
      const box = element.getBoundingClientRect(), hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      if (hit && (hit === element || (element.matches(USED) && element.contains(hit)))) found.push(element._ariaRef.ref);
    }
    return found;
  },
  collapsed() {
    return Array.from(document.querySelectorAll('[role=treeitem][aria-expanded=false], [role=row][aria-expanded=false]'), (element) => element._ariaRef)
      .filter(Boolean).map(({ref}) => ref);
  },
  // Selectors of elements to which a style sheet adds a text, and of those that get a cursor when the mouse is over them.
  rules() {
    const added = [], hovered = [];
    const walk = (list) => {
      for (const rule of list) {
        const selector = rule.selectorText;
        if (rule.cssRules && !selector) walk(rule.cssRules);
        if (!selector) continue;
        if (/:(before|after)\b/.test(selector) && rule.style.content && rule.style.content !== 'none') {
          for (const each of selector.split(/,(?![^(]*\))/)) {
            const found = /^(.*?)::?(before|after)\s*$/.exec(each.trim());
            if (found) added.push([found[1].trim() || '*', `::${found[2]}`]);
          }
        } else if (selector.includes(':hover') && rule.style.cursor) {
          const resting = selector.replace(/:hover\b/g, '');
          try { document.querySelector(resting); hovered.push([resting, rule.style.cursor]); } catch { continue; }
        }
      }
    };
    for (const sheet of document.styleSheets) {
      // Those of other origins may not be read.
      try { walk(sheet.cssRules); } catch { continue; }
    }
    return {added, hovered};
  },
  ghosts(added, drawn) {
    const px = (value) => parseFloat(value) || 0;
    const hidden = (style) => px(style.opacity || '1') === 0 || px(style.fontSize) === 0 || (/^rgba\(.*, 0\)$/.test(style.color) && style.webkitBackgroundClip !== 'text')
      || /^rect\((0|1)px, (0|1)px, (0|1)px, (0|1)px\)$/.test(style.clip) || /^inset\((50|100)%/.test(style.clipPath) || px(style.textIndent) < -500
      || (['absolute', 'fixed'].includes(style.position) && [style.left, style.right, style.top, style.bottom].some((each) => px(each) < -500 || px(each) > 9000))
      || (style.overflow === 'hidden' && (px(style.width) <= 1 || px(style.height) <= 1) && style.display !== 'inline') || style.transform === 'matrix(0, 0, 0, 0, 0, 0)';
    const ghosts = [];
    // The snapshot may have left out the nearest one.
    const around = (named) => { const refs = []; for (let each = named; each && refs.length < 4; each = each.parentElement) if (each._ariaRef) refs.push(each._ariaRef.ref); return refs; };
    for (const [selector, pseudo] of added) {
      let elements = [];
      try { elements = Array.from(document.querySelectorAll(selector)).slice(0, 2000); } catch { continue; }
      for (const element of elements) {
        let named = element;
        while (named && !named._ariaRef) named = named.parentElement;
        if (!named || ghosts.length >= 500) continue;
        const style = getComputedStyle(element, pseudo);
        if (!/["']|attr/.test(style.content) || !hidden(style)) continue;
        const parts = Array.from(style.content.matchAll(/"((?:[^"\\]|\\.)*)"|attr\(([\w-]+)\)/g), (each) => each[2] ? element.getAttribute(each[2]) || '' : each[1]);
        const text = parts.join('').replace(/\\(.)/g, '$1').replace(/\s+/g, ' ').trim();
        if (text) ghosts.push([around(named), text.slice(0, 300)]);
      }
    }
    for (const [element, word] of drawn) {
      let named = element;
      while (named && !named._ariaRef) named = named.parentElement;
      if (named && ghosts.length < 500) ghosts.push([around(named), word]);
    }
    return ghosts;
  },
  marks(all) {
    const found = [];
    const around = (element) => element.assignedSlot || element.parentElement || element.getRootNode().host || null;
    const test = (element) => element.getAttribute('data-testid'), USED = 'input, select, textarea, button, a, [role], [tabindex]';
    const named = (element) => {
      if (test(element)) return `test_id ${test(element)}`;
      if (!element._ariaRef || !element.matches(USED)) return null;
      const css = plain(element.id) ? `#${element.id}` : plain(element.getAttribute('name') || '') ? `${element.localName}[name=${element.getAttribute('name')}]` : null;
      return css && element.getRootNode().querySelectorAll(css).length === 1 ? `css ${css}` : null;
    };
    const every = all.map((element) => [element, named(element)]).filter((each) => each[1]), times = new Map();
    for (const [, mark] of every) times.set(mark, (times.get(mark) || 0) + 1);
    for (const [element, mark] of every) {
      // One that several have finds none of them.
      if (times.get(mark) > 1 || found.length >= 300 || !element.checkVisibility({visibilityProperty: true})) continue;
      // The snapshot may have made a text of what is around it out of the element.
      const refs = [];
      for (let each = element; each && refs.length < 8; each = around(each)) refs.push(each._ariaRef ? each._ariaRef.ref : null);
      const said = element.textContent.replace(/\s+/g, ' ').trim();
      const [, key, value] = /^(\S+) ([^]*)$/.exec(mark);
      found.push([refs, key, value, key === 'test_id' && said.length <= 60 ? said : '']);
    }
    return found;
  },
  facts(every, roots, hovered, drawn) {
    const found = [], classed = new Map(), spots = affordances(every, roots, hovered);
    let any = false;
    // What is cut is marked as cut: the beginning of a secret is known by that.
    const short = (text) => {
      const whole = (text || '').replace(/\s+/g, ' ').trim();
      return whole.length <= 300 ? whole : `${whole.slice(0, 299)}…`;
    };
    const ROLES = {A: 'link', BUTTON: 'button', SELECT: 'combobox', TEXTAREA: 'textbox', SUMMARY: 'button'};
    const INPUTS = {checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox',
      button: 'button', submit: 'button', reset: 'button', image: 'button', file: 'button', color: 'button'};
    const ACTING = ['button', 'link', 'checkbox', 'radio', 'switch', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio',
      'option', 'treeitem', 'textbox', 'searchbox', 'combobox', 'slider', 'spinbutton'];
    const around = (element) => element.assignedSlot || element.parentElement || element.getRootNode().host || null;
    const refs = (elements, most) => { const all = []; for (const each of elements) { if (each._ariaRef) all.push(each._ariaRef.ref); if (all.length === most) break; } return all; };
    const within = function* (element) { for (let above = around(element); above; above = around(above)) yield above; };
    const before = function* (element) {
      for (let each = element, levels = 0; each && levels < 4; each = each.parentElement, levels += 1)
        for (let earlier = each.previousElementSibling; earlier; earlier = earlier.previousElementSibling) yield* [earlier, ...Array.from(earlier.querySelectorAll('*')).slice(0, 3)];
    };
    // Whether it may stand deeper than the snapshot goes.
    const deep = (element) => {
      let levels = 0;
      for (let above = around(element); above; above = around(above)) if (above._ariaRef) levels += 1;
      return levels >= 25;
    };
    const role = (element) => {
      const tag = element.tagName, given = (element.getAttribute('role') || '').trim().split(/\s+/)[0];
      if (ACTING.includes(given)) return given;
      if (tag === 'INPUT') return element.type === 'hidden' ? null : INPUTS[element.type] || 'textbox';
      if (tag === 'A' && !element.hasAttribute('href')) return element.hasAttribute('onclick') ? 'clickable' : null;
      if (ROLES[tag]) return ROLES[tag];
      if (element.hasAttribute('contenteditable') && element.isContentEditable) return 'editable';
      if (tag === 'BODY' || tag === 'HTML') return null;
      if (element.hasAttribute('onclick') || element.tabIndex >= 0 && element.hasAttribute('tabindex')) return 'clickable';
      // A text that Playwright counts to what is around it.
      if (element._ariaRef || element.childNodes.length !== 1 || element.firstChild.nodeType !== 3) return null;
      const above = around(element);
      if (!above || getComputedStyle(element).cursor !== 'pointer') return null;
      return getComputedStyle(above).cursor === 'pointer' ? null : 'clickable';
    };
    const named = (element) => short(element.getAttribute('aria-label')
      || (element.labels && element.labels.length ? Array.from(element.labels, (each) => each.textContent).join(' ') : '')
      || (['button', 'submit', 'reset'].includes(element.type) ? element.value : '')
      || (element.tagName === 'SELECT' ? '' : element.textContent) || element.alt || element.title || element.placeholder);
    const wrong = (element) => {
      const said = element.getAttribute('aria-invalid');
      if (said && said !== 'false') {
        const ids = `${element.getAttribute('aria-errormessage') || ''} ${element.getAttribute('aria-describedby') || ''}`;
        const texts = ids.split(/\s+/).map((id) => id && element.getRootNode().getElementById(id)).filter(Boolean);
        return short(texts.map((each) => each.textContent).join(' ')) || short(element.validationMessage);
      }
      return element.matches(':user-invalid') ? short(element.validationMessage) : '';
    };
    const shown = (element) => {
      if (!element.checkVisibility({visibilityProperty: true})) return false;
      const box = element.getBoundingClientRect();
      return box.width > 0 && box.height > 0;
    };
    const says = (element) => (element instanceof SVGElement ? Array.from(element.querySelectorAll('text'), (each) => each.textContent).join(' ') : element.innerText) || '';
    const silent = (element) => !(element._ariaRef && isRead(element, element._ariaRef.name, drawn)) && (element.tagName === 'SELECT' || !isRead(element, says(element), drawn));
    for (const element of every) {
      const acts = role(element), plain = acts && acts !== 'clickable' && acts !== 'editable', password = element.type === 'password';
      const error = acts || element.hasAttribute('aria-invalid') ? wrong(element) : '';
      any ||= Boolean(acts);
      // To press it tells nothing new of a button.
      const all = spots.get(element), spot = all && !(plain && !all.reach && !all.states.length) ? all : null;
      if (!acts && !error && !spot) continue;
      const ref = element._ariaRef ? element._ariaRef.ref : null, low = ref && deep(element), seen = ref && !low || shown(element);
      // What can be focused, to scroll it with keys, is for all that a part that scrolls.
      const used = spot && spot.as && (!acts || acts === 'clickable') ? spot : null;
      const guessed = seen && silent(element) ? guess(element, Boolean(used && used.reach), !plain) : null;
      // The snapshot says the hint of a text field only.
      const hint = ['searchbox', 'spinbutton', 'combobox'].includes(acts) ? short(element.placeholder) : '';
      // Nor does it say what an editable part with the role of a field holds.
      const value = plain && element.isContentEditable && element.hasAttribute('contenteditable') ? short(element.innerText) : '';
      // The snapshot says all of it.
      if (ref && !low && !password && !error && !guessed && !hint && !value && (plain || !acts) && !(spot && spot.as) && element.tagName !== 'SUMMARY') continue;
      if (!element._runopsRef) {
        // The list is kept in this isolated world, where no script of the page meets it.
        globalThis._runopsRefs = (globalThis._runopsRefs || 0) + 1;
        element._runopsRef = globalThis._runopsRefs;
      }
      const said = {role: used ? used.as : acts, password, error, shown: seen};
      if (guessed) said.guess = guessed[0];
      if (guessed && guessed[2]) classed.set(guessed[0], [...classed.get(guessed[0]) || [], said]);
      if (hint) said.placeholder = hint;
      if (value) said.value = value;
      if (spot && spot.as) Object.assign(said, {reach: Boolean(used && used.reach), states: spot.states, size: spot.size, out: spot.out});
      // It may have to be given a place.
      if (!ref || low || !plain) {
        const places = {within: refs(within(element), 8), before: refs(before(element), 8), holds: refs(element.querySelectorAll('*'), 5)};
        Object.assign(said, {name: used && used.reach ? '' : named(element)}, places);
      }
      found.push([ref, element._runopsRef, said]);
    }
    // A class that several have says how they look, and not which each is.
    for (const several of classed.values()) if (several.length >= 3) for (const said of several) delete said.guess;
    return [found, any];
  },
};
})()"""
)
"""Queries: ``facts 7`` gives the facts as JSON (7 numbers a new document), ``facts 7 marks`` also test ids, ``self`` an element's ref.

``x3`` finds the element with that ref.
"""
