"""What a person can see of a page: only that counts, where there is anything to see."""

from __future__ import annotations

from runtime.browser import isolated_world

VISIBLE = """
  const hasArea = (element) => {
    if (getComputedStyle(element).display === 'contents') return Array.from(element.children).some(visible);
    const {width, height} = element.getBoundingClientRect();
    return width > 0 && height > 0;
  };
  const visible = (element) => element.checkVisibility({visibilityProperty: true}) && hasArea(element);
"""
"""JavaScript: visibility as Playwright defines it, so that a rule agrees with a click."""

COUNTS = """
  const UNSEEN = 'head, head *, meta, link, script, style, template, input[type=hidden], datalist *, area, source, track, col, colgroup';
  // What is hidden does not count; what is never to be seen was asked for as it is. The options of a closed list are drawn nowhere.
  const counts = (element) => element.matches(UNSEEN) || (element.closest('select') ?? element).checkVisibility({visibilityProperty: true})
    || (getComputedStyle(element).display === 'contents' && Array.from(element.children).some(counts));
"""
"""JavaScript: which elements of a list count."""

UNSPOKEN = """
  const above = (node) => node.assignedSlot || node.parentElement || (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null);
  const unspoken = (element) => {
    for (let at = element; at; at = above(at)) if ((at.getAttribute('aria-hidden') || '').toLowerCase() === 'true') return true;
    return false;
  };
"""
"""JavaScript: whether an element is kept from assistive programs (``aria-hidden``), and by that from Playwright's roles."""

DRAWN = r"""
  // Not only as large as a pixel, or cut to nothing, as what is hidden from the eye alone.
  const drawn = (node) => {
    const {width, height} = node.getBoundingClientRect(), {clip, clipPath} = getComputedStyle(node);
    return width > 2 && height > 2 && !/^rect\((0px|1px)[ ,]/.test(clip) && !/^inset\((50|100)%/.test(clipPath) && node.checkVisibility({visibilityProperty: true});
  };
  // XPath from a node to another: up to what holds both, then down.
  const wayTo = (from, to) => {
    let around = from, levels = 0;
    const steps = [];
    for (; !around.contains(to); around = around.parentElement) levels += 1;
    for (let node = to; node !== around; node = node.parentElement) steps.unshift(`/*[${Array.from(node.parentElement.children).indexOf(node) + 1}]`);
    return `xpath=ancestor::*[${levels}]${steps.join('')}`;
  };
"""
"""JavaScript: what a person sees something of, and the way to it from what is hidden."""

NAME, SILENT = "runops-seen", "runops-silent"

ENGINE = (
    "(() => {"
    + VISIBLE
    + UNSPOKEN
    + """
  const queryAll = (_root, wanted) => {
    const every = globalThis._runopsKept || [], byText = globalThis._runopsByText || new Set();
    globalThis._runopsKept = [];
    globalThis._runopsByText = null;
    const chosen = choose(every, wanted), named = chosen.filter((each) => !byText.has(each));
    const inner = named.length ? named : chosen.filter((each) => !chosen.some((other) => other !== each && each.contains(other)));
    const outside = wanted.endsWith('text') ? inner.filter((each) => !each.closest('[role=tooltip], [data-testid*=tooltip i]')) : [];
    return outside.length === 1 ? outside : inner;
  };
  const choose = (every, wanted) => {
    const first = (...choices) => choices.find((choice) => choice().length)?.() ?? every;
    const shown = wanted.startsWith('seen') ? every.filter(visible) : every;
    if (!wanted.endsWith('role')) return first(() => shown);
    return first(() => shown.filter((each) => !unspoken(each)), () => shown, () => every.filter((each) => !unspoken(each)));
  };
  return {query: (root, wanted) => queryAll(root, wanted)[0] ?? null, queryAll};
})()"""
)
"""Playwright selector engine: of the elements that ``isolated_world.KEEPER`` has passed on, those that can be seen; all if there are none.

A hidden twin, such as a template or a menu for small screens, then makes no target ambiguous, and a target of something that is never
seen, such as a file field, finds it. Of elements found by role those under ``aria-hidden`` count only if there are no others, and one found by a whole text counts before
those in tooltips, which repeat it.
"""

SILENT_ENGINE = (
    "(() => {"
    + UNSPOKEN
    + """
  const silent = (root) => Array.from(root.querySelectorAll('[aria-hidden="true" i]')).concat(
    Array.from(root.querySelectorAll('*')).filter((each) => each.shadowRoot).flatMap((each) => silent(each.shadowRoot)));
  const around = (root) => {
    if (root instanceof Element && unspoken(root)) return [root];
    // Most of them are icons, which hold nothing.
    return Array.from(new Set(silent(root).map((each) => each.matches('[role], :not(i, span, div, svg, p)') ? each.parentNode : each.childElementCount ? each : null).filter(Boolean)));
  };
  const queryAll = (root, wanted) => {
    if (wanted === 'around') return around(root);
    return root instanceof Element && unspoken(root) && root.checkVisibility({visibilityProperty: true}) ? [root] : [];
  };
  return {query: (root, wanted) => queryAll(root, wanted)[0] ?? null, queryAll};
})()"""
)
"""Playwright selector engine for what is drawn though it is under ``aria-hidden``: ``around`` finds the elements to look for it in,
``drawn`` keeps it of the elements matched before. A search of whole documents would make every target by role slower.
"""

AROUND_SILENT, DRAWN_SILENT = f"{SILENT}=around", f"{SILENT}=drawn"

KEEP = f"{isolated_world.KEEP}=all"


def of_kept(*, seen: bool, role: bool, text: bool) -> str | None:
    """Return the selector that chooses among the elements passed on by ``KEEP``; None if all of them count."""
    if not (seen or role):
        return None
    return f"{NAME}={'-'.join(['seen'] * seen + ['role'] * role + ['text'] * text)}"
