"""Facts that an accessibility snapshot lacks.

These are passwords, errors of a field, elements to act on that have no role or no ref, and ghosts. A ghost is a text that a
style sheet adds before or after an element and hides. The snapshot contains it, but people do not see it.

A Playwright selector engine reads them, because engines run in the isolated world that has Playwright's refs. It gives
separate refs (``x3``) to elements without one in the snapshot.
"""

from __future__ import annotations

NAME = "runops-look"

# `facts` and `self` return an element outside any document; its text is the answer.
ENGINE = r"""({
  told(found) {
    const element = Document.prototype.createElement.call(document, 'i');
    element.textContent = JSON.stringify(found);
    return [element];
  },
  all(root) {
    const found = [];
    const walk = (below) => {
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
      return this.told([String(document.title), globalThis._runopsDocument, this.facts(), this.ghosts(), marks ? this.marks() : [], Array.prototype.some.call(document.getElementsByTagName('*'), (element) => element._ariaRef)]);
    }
    return this.all(document).filter((element) => element.isConnected && `x${element._runopsRef}` === asked);
  },
  ghosts() {
    const asked = [];
    const rules = (list) => {
      for (const rule of list) {
        if (rule.cssRules && !rule.selectorText) rules(rule.cssRules);
        if (!rule.selectorText || !/:(before|after)\b/.test(rule.selectorText) || !rule.style.content || rule.style.content === 'none') continue;
        for (const each of rule.selectorText.split(/,(?![^(]*\))/)) {
          const found = /^(.*?)::?(before|after)\s*$/.exec(each.trim());
          if (found) asked.push([found[1].trim() || '*', `::${found[2]}`]);
        }
      }
    };
    for (const sheet of document.styleSheets) {
      // Those of other origins may not be read.
      try { rules(sheet.cssRules); } catch { continue; }
    }
    const px = (value) => parseFloat(value) || 0;
    const hidden = (style) => px(style.opacity || '1') === 0 || px(style.fontSize) === 0 || (/^rgba\(.*, 0\)$/.test(style.color) && style.webkitBackgroundClip !== 'text')
      || /^rect\((0|1)px, (0|1)px, (0|1)px, (0|1)px\)$/.test(style.clip) || /^inset\((50|100)%/.test(style.clipPath) || px(style.textIndent) < -500
      || (['absolute', 'fixed'].includes(style.position) && [style.left, style.right, style.top, style.bottom].some((each) => px(each) < -500 || px(each) > 9000))
      || (style.overflow === 'hidden' && (px(style.width) <= 1 || px(style.height) <= 1) && style.display !== 'inline') || style.transform === 'matrix(0, 0, 0, 0, 0, 0)';
    const ghosts = [];
    for (const [selector, pseudo] of asked) {
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
        if (text) ghosts.push([named._ariaRef.ref, text.slice(0, 300)]);
      }
    }
    return ghosts;
  },
  marks() {
    const found = [];
    const around = (element) => element.assignedSlot || element.parentElement || element.getRootNode().host || null;
    const every = this.all(document).filter((element) => element.getAttribute('data-testid')), times = new Map();
    const named = (element) => element.getAttribute('data-testid');
    for (const element of every) times.set(named(element), (times.get(named(element)) || 0) + 1);
    for (const element of every) {
      const mark = named(element);
      // One that several have finds none of them.
      if (times.get(mark) > 1 || found.length >= 300 || !element.checkVisibility({visibilityProperty: true})) continue;
      // The snapshot may have made a text of what is around it out of the element.
      const refs = [];
      for (let each = element; each && refs.length < 8; each = around(each)) refs.push(each._ariaRef ? each._ariaRef.ref : null);
      const said = element.textContent.replace(/\s+/g, ' ').trim();
      found.push([refs, mark, said.length <= 60 ? said : '']);
    }
    return found;
  },
  facts() {
    const found = [];
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
    const within = (element) => {
      for (let above = around(element); above; above = around(above)) if (above._ariaRef) return above._ariaRef.ref;
      return null;
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
    for (const element of this.all(document)) {
      const acts = role(element), password = element.type === 'password', ref = element._ariaRef ? element._ariaRef.ref : null;
      const error = acts || element.hasAttribute('aria-invalid') ? wrong(element) : '';
      if (!acts && !error) continue;
      if (!element._runopsRef) {
        // The list is kept in this isolated world, where no script of the page meets it.
        globalThis._runopsRefs = (globalThis._runopsRefs || 0) + 1;
        element._runopsRef = globalThis._runopsRefs;
      }
      const low = ref && deep(element);
      const plain = ref && !low && !password && !error && acts !== 'clickable' && acts !== 'editable' && element.tagName !== 'SUMMARY';
      found.push(plain ? [ref, element._runopsRef] : [ref, element._runopsRef, within(element), acts, ref && !low ? '' : named(element), password, error,
        ref && !low ? true : shown(element)]);
    }
    return found;
  },
})"""
"""Queries: ``facts 7`` gives the facts as JSON (7 numbers a new document), ``facts 7 marks`` also test ids, ``self`` an element's ref.

``x3`` finds the element with that ref.
"""
