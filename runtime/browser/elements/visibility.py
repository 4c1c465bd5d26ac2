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

NAME = "runops-seen"

ENGINE = (
    "(() => {"
    + VISIBLE
    + """
  const queryAll = () => {
    const every = globalThis._runopsKept || [];
    globalThis._runopsKept = [];
    const shown = every.filter(visible);
    return shown.length ? shown : every;
  };
  return {query: () => queryAll()[0] ?? null, queryAll};
})()"""
)
"""Playwright selector engine: of the elements that ``isolated_world.KEEPER`` has passed on, those that can be seen; all if there are none.

A hidden twin, such as a template or a menu for small screens, then makes no target ambiguous, and a target of something that is never
seen, such as a file field, finds it.
"""

KEEP, OF_KEPT = f"{isolated_world.KEEP}=all", f"{NAME}=kept"
