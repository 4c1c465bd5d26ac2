"""What a hand can do with an element whose role does not say it: drag it, drop on it, press it, scroll in it, draw on it.

A script cannot ask for listeners. DevTools can, in Chromium only, for a round trip for each element that has one, and they tell little:
frameworks listen at the root of a page for all its elements, and a script that counts clicks listens everywhere. So this reads what a person
sees, the cursor, and what the document states: attributes, and the classes by which common libraries mark what they made draggable.
"""

from __future__ import annotations

AFFORDANCES = r"""
  const DRAGGED = '[draggable=true], [aria-grabbed], [ondragstart], [ondrag], [aria-roledescription*="draggable" i], [aria-roledescription="sortable" i],'
    + '.ui-draggable, .ui-sortable-handle, .cdk-drag, [data-rbd-draggable-id], [data-rfd-draggable-id]';
  const DROPPED_ON = '[ondrop], [ondragover], [ondragenter], [aria-dropeffect]:not([aria-dropeffect=none]), .ui-droppable, .ui-sortable, .cdk-drop-list, .dropzone,'
    + '[data-rbd-droppable-id], [data-rfd-droppable-id]';
  const PRESSED = '[onmousedown], [onmouseup], [onpointerdown], [onpointerup], [ontouchstart], [ondblclick], [oncontextmenu], svg [pointer-events]:not([pointer-events=none])';
  const DRAGS = /^(grab|grabbing|move|all-scroll|.*-resize)$/, PRESSES = /^(crosshair|cell|copy|alias|zoom-in|zoom-out|context-menu)$/;
  // Of a cursor with pictures the last word is the one without.
  const lastWord = (cursor) => cursor.split(',').pop().trim();
  const use = (cursor) => { const word = lastWord(cursor); return DRAGS.test(word) ? 'draggable' : PRESSES.test(word) ? 'clickable' : ''; };
  const PICTURE = 100;  // pixels that a drawing has at least in both directions to be shown with its size
  const HIDES = 8;  // pixels that must be out of view to scroll to

  const outOfView = (element, style) => {
    const parts = [], scrolls = (value) => value === 'auto' || value === 'scroll';
    const say = (pixels, where) => { if (pixels >= HIDES) parts.push(`${Math.round(pixels / 10) * 10} px ${where}`); };
    if (scrolls(style.overflowY) && element.scrollHeight - element.clientHeight >= HIDES) {
      say(element.scrollTop, 'above');
      say(element.scrollHeight - element.clientHeight - element.scrollTop, 'below');
    }
    if (scrolls(style.overflowX) && element.scrollWidth - element.clientWidth >= HIDES) {
      say(Math.abs(element.scrollLeft), 'before');
      say(element.scrollWidth - element.clientWidth - Math.abs(element.scrollLeft), 'after');
    }
    return parts.join(', ');
  };
  // Elements and what they are used for: `as` a role of ours, or null if the snapshot says it, `reach` if they are read by their content, `states`, `size`, `out` of view.
  // `hovered` are selectors of elements that get another cursor while the mouse is over them.
  const affordances = (every, roots, hovered) => {
    const spots = new Map(), cursors = new Map();
    const all = (selector) => roots.flatMap((root) => Array.from(root.querySelectorAll(selector)));
    const around = roots.length > 1 ? (element) => element.assignedSlot || element.parentElement || element.getRootNode().host || null : (element) => element.parentElement;
    const note = (element, as, more = {}) => {
      const spot = spots.get(element) || {as, reach: false, states: [], size: '', out: ''};
      // What can be dragged can be pressed as well.
      if (as === 'draggable' || !spot.as) spot.as = as;
      spots.set(element, Object.assign(spot, more));
      if ((as === 'draggable' || as === 'droppable') && !spot.states.includes(as)) spot.states.push(as);
    };
    for (const element of every) {
      const style = getComputedStyle(element), cursor = style.cursor, above = around(element);
      cursors.set(element, cursor);
      // A cursor is inherited: the outermost element with it is the one to use.
      const own = above && cursors.get(above) !== cursor;
      if (own && use(cursor)) note(element, use(cursor));
      else if (own && cursor === 'pointer') note(element, element.ownerSVGElement ? 'clickable' : null);
      const tag = element.localName, picture = tag === 'canvas' || tag === 'svg' && !element.ownerSVGElement;
      if (picture) {
        const box = element.getBoundingClientRect(), size = `${Math.round(box.width)}x${Math.round(box.height)}`;
        if (tag === 'canvas') note(element, 'canvas', {size, as: 'canvas'});
        else if (Math.min(box.width, box.height) >= PICTURE && !element.closest('a, button, [role=button]')) note(element, 'img', {size, as: 'img', reach: true});
      } else if ((element.firstElementChild || tag === 'pre') && (style.overflowY !== 'visible' || style.overflowX !== 'visible') && !['textarea', 'select', 'input'].includes(tag)) {
        const out = outOfView(element, style);
        if (out) note(element, 'scrollable', {reach: true, out});
      }
    }
    for (const [selector, cursor] of hovered) {
      const as = lastWord(cursor) === 'pointer' ? 'clickable' : use(cursor);
      if (!as) continue;
      // A field of a form hides what the form itself has by that name.
      const fits = (element) => Element.prototype.matches.call(element, selector);
      const within = (element) => { for (let above = around(element); above; above = around(above)) if (fits(above)) return true; return false; };
      for (const element of all(selector)) if (!spots.has(element) && cursors.get(element) !== 'not-allowed' && !within(element)) note(element, as);
    }
    for (const element of all(PRESSED)) note(element, 'clickable');
    for (const element of all(DRAGGED)) note(element, 'draggable');
    for (const element of all(DROPPED_ON)) note(element, 'droppable', spots.has(element) ? {} : {reach: true});
    // The page itself is no part of it.
    for (const element of spots.keys()) if (element.localName === 'html' || element.localName === 'body') spots.delete(element);
    return spots;
  };
"""
"""JavaScript: ``affordances(every, roots, hovered)`` gives a map of the elements that a hand can use to what it can do."""
