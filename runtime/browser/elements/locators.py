"""Converts targets to Playwright locators."""

from __future__ import annotations

import functools
import json
import re
import urllib.parse
from collections.abc import Callable

from playwright.async_api import FrameLocator, Locator, Page, Playwright

from nodes.targets import Target
from runtime.browser import isolated_world
from runtime.browser.elements import grids, own_names, selectors, text_match, visibility
from runtime.observation import tree


def locator(page: Page, target: Target, *, hidden: bool = False) -> Locator:
    """Return the locator of a settled target: one without ``any_of`` and without ``nth`` below -1 (see ``settled``).

    It matches what can be seen, or all if nothing of it can be; with ``hidden`` always all.
    """
    if target.within is None:
        return narrow(_found(page, document(page, target.frames), target), target, hidden=hidden)
    within = target.within if target.frame is None else target.within.model_copy(update={"frame": target.frame})
    around = locator(page, within, hidden=hidden)
    if within.role == "row":
        # Of a grid with pinned columns a row has several parts.
        around = around.locator(grids.WHOLE_ROW)
    return narrow(_found(page, around, target), target, hidden=hidden)


async def register(playwright: Playwright) -> None:
    """Register our selector engines with Playwright, in a world that pages do not see."""
    await playwright.selectors.register(text_match.ENGINE_NAME, text_match.ENGINE, content_script=True)
    await playwright.selectors.register(NAME, ENGINE, content_script=True)
    await playwright.selectors.register(selectors.NAME, selectors.ENGINE, content_script=True)
    await playwright.selectors.register(isolated_world.NAME, isolated_world.ENGINE, content_script=True)
    await playwright.selectors.register(isolated_world.KEEP, isolated_world.KEEPER, content_script=True)
    await playwright.selectors.register(visibility.NAME, visibility.ENGINE, content_script=True)
    await playwright.selectors.register(visibility.SILENT, visibility.SILENT_ENGINE, content_script=True)
    await playwright.selectors.register(grids.NAME, grids.ENGINE, content_script=True)
    await playwright.selectors.register(own_names.NAME, own_names.ENGINE, content_script=True)


def document(page: Page, wanted: list[str]) -> Page | FrameLocator:
    """Return the document of the frame that ``wanted`` leads to, outermost first; the tab's own if it is empty."""
    root: Page | FrameLocator = page
    for each in wanted:
        root = root.frame_locator(frame_selector(each))
    return root


def frame_selector(wanted: str) -> str:
    """Return the selector of a frame. ``wanted`` is a glob of its address if it begins like one, else its name, else CSS."""
    address = None
    if wanted.startswith(("**", "/", "http://", "https://")):
        address = glob(f"*://*{wanted}" if wanted.startswith("/") else wanted).pattern
    said = json.dumps({"wanted": wanted, "address": address, "query": counts_query(wanted)})
    return f"{NAME}={urllib.parse.quote(said, safe='')}"


def narrow(found: Locator, target: Target, *, hidden: bool = False) -> Locator:
    if target.has_text is not None:
        text = text_match.pattern(target.has_text, exact=bool(target.exact))
        found = found.locator(f"{text_match.ENGINE_NAME}={urllib.parse.quote(text, safe='')}")
    by_text = target.text is not None and bool(target.exact) and target.nth is None
    if (chosen := visibility.of_kept(seen=not hidden, role=target.role is not None, text=by_text)) is not None:
        found = found.locator(visibility.KEEP).or_(found.page.locator(chosen))
    return found if target.nth is None else found.nth(target.nth)


def _found(page: Page, root: Page | FrameLocator | Locator, target: Target) -> Locator:
    exact = target.exact
    if target.role is not None:
        by_role = _by_role(page, target).or_(_by_role(page, target, silent=True))
        return by_role if isinstance(root, Page) else root.locator(by_role)
    if target.test_id is not None:
        return root.get_by_test_id(target.test_id)
    for text, get in (
        (target.label, root.get_by_label),
        (target.placeholder, root.get_by_placeholder),
        (target.text, root.get_by_text),
        (target.alt, root.get_by_alt_text),
        (target.title, root.get_by_title),
    ):
        if text is not None:
            return get(text, exact=exact)
    # The prefix keeps Playwright from reading the text as another of its selector languages.
    return root.locator(f"css={target.css}" if target.css is not None else f"xpath={target.xpath}")


def _by_role(page: Page, target: Target, *, silent: bool = False) -> Locator:
    """Return the elements of a role and name that assistive programs know; if ``silent``, those that they do not know and a person sees."""
    root = page.locator(visibility.AROUND_SILENT) if silent else page

    def named(name: re.Pattern[str] | None) -> Locator:
        # Playwright types the role as a literal of all roles; the target's validator has the same list.
        return root.get_by_role(target.role, name=name, include_hidden=silent or None)  # pyright: ignore[reportArgumentType]

    found = _called(named, target.role or "", target.name, exact=bool(target.exact)) if target.name else named(None)
    return found.locator(visibility.DRAWN_SILENT) if silent else found


def _called(named: Callable[[re.Pattern[str] | None], Locator], role: str, name: str, *, exact: bool) -> Locator:
    """Return the elements that an observation calls so."""
    item = role in own_names.ITEMS
    own = own_names.selector(name, exact=exact, item=item)
    if item:
        return named(None).locator(own)
    found = named(own_names.pattern(name, exact=exact))
    # The text of a field is its value.
    return found if role in tree.FIELDS else found.or_(named(own_names.doubtful(name, exact=exact)).locator(own))


def settled(target: Target) -> bool:
    """Return True if the target is final: no ``any_of`` to choose from, no ``nth`` to count from the end."""
    if target.any_of is not None or (target.nth is not None and target.nth < -1):
        return False
    return target.within is None or settled(target.within)


def alternative(target: Target, choice: Target) -> Target:
    """Return ``choice`` (one of ``target.any_of``) with the narrowing fields of ``target``; fields of the choice win."""
    narrowing = {
        name: getattr(target, name)
        for name in ("within", "has_text", "nth", "exact", "frame")
        if getattr(target, name) is not None and getattr(choice, name) is None
    }
    return choice.model_copy(update=narrowing)


QUERY_MARKS = "=&"
ROUTES = ("/", "!/")  # beginnings of a fragment that is the path of an application


def address_matches(pattern: str, url: str) -> bool:
    """Return True if the glob of a rule's ``url`` matches the address.

    ``**/orders`` does not match ``/login?next=/orders``. The fragment counts if the glob has a ``#``, and may count if it is a route (``#/orders``).
    """
    found = glob(pattern)
    whole, _mark, fragment = url.partition("#")
    addresses = [url] if "#" in pattern else [whole, *([url] if fragment.startswith(ROUTES) else [])]
    return any(
        found.fullmatch(each if counts_query(pattern) else _without_query(each)) is not None for each in addresses
    )


def _without_query(url: str) -> str:
    """Return the address without its query, and without that of its route."""
    return "#".join(each.partition("?")[0] for each in url.split("#", 1))


def counts_query(pattern: str) -> bool:
    """Return True if the query of an address counts for a glob: one that names a part of it need not have the ``?`` as well."""
    return any(mark in pattern for mark in ("?", "=/")) or any(
        mark in pattern.rpartition("/")[2] for mark in QUERY_MARKS
    )


@functools.lru_cache(maxsize=256)
def glob(pattern: str) -> re.Pattern[str]:
    """Convert a rule's ``url`` to a regex for the whole address: ``**`` is anything, ``*`` anything but a slash, the rest literal."""
    parts = re.split(r"(\*\*|\*)", pattern)
    stars = {"**": ".*", "*": "[^/]*"}
    return re.compile("".join(stars.get(part, re.escape(part)) for part in parts), re.DOTALL)


NAME = "runops-frame"


FRAMES = """
  const frames = (root) => Array.from(root.querySelectorAll('*')).flatMap((element) => [
    ...(element.matches('iframe, frame') ? [element] : []),
    ...(element.shadowRoot ? frames(element.shadowRoot) : []),
  ]);
"""
"""JavaScript: all frame elements below a root."""

ENGINE = (
    "(() => {"
    + FRAMES
    + """
  const queryAll = (root, body) => {
    const {wanted, address, query} = JSON.parse(decodeURIComponent(body));
    const all = frames(root);
    if (address !== null) {
      const whole = new RegExp(`^(?:${address})$`, 's');
      return all.filter((frame) => whole.test(query ? frame.src : frame.src.split(/[?#]/)[0]));
    }
    const named = all.filter((frame) => frame.name === wanted);
    if (named.length) return named;
    document.createDocumentFragment().querySelector(wanted);
    return all.filter((frame) => frame.matches(wanted));
  };
  return {query: (root, body) => queryAll(root, body)[0] ?? null, queryAll};
})()"""
)
"""Playwright selector engine for frames. It tries the name before CSS: ``payment`` is a name, and also valid CSS that matches nothing."""


KNOWN = (
    "(root) => {"
    + FRAMES
    + """
  return frames(root).slice(0, 10).map((frame) =>
    [frame.name && `name="${frame.name}"`, frame.id && `id="${frame.id}"`, frame.src && `src="${frame.src.split('?')[0]}"`]
      .filter(Boolean).join(' ') || 'a frame without name or address');
}"""
)
"""JavaScript: one line for each frame of a document."""
