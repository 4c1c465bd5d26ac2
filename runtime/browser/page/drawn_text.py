"""Texts that a page draws but its scripts cannot read: in pseudo-elements, closed shadow roots, image addresses and canvases.

A layout snapshot of the browser contains them. Each secret is marked at the nearest element that a locator can find and that
covers it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from playwright.async_api import CDPSession, Error, Frame, Page

MARK = "data-runops-hidden"

TOGETHER = 1_000
"""Most characters of the texts within one element that are joined to find a secret across several of them."""

TIMES = 3  # attempts to mark a page that changes meanwhile
ROUNDED = 1.0  # pixels by which the box of a text may exceed the one that covers it

_STYLES = ["background-image", "content", "list-style-image"]


class _Box(NamedTuple):
    left: float
    top: float
    width: float
    height: float

    def covers(self, other: _Box) -> bool:
        return (
            self.left - ROUNDED <= other.left
            and self.top - ROUNDED <= other.top
            and other.left + other.width <= self.left + self.width + ROUNDED
            and other.top + other.height <= self.top + self.height + ROUNDED
        )

    @property
    def seen(self) -> bool:
        """True if any of it can be in a picture."""
        return self.width > 0 and self.height > 0 and self.left + self.width > 0 and self.top + self.height > 0


class Found(NamedTuple):
    elements: list[int]
    """Backend ids of the covering elements."""

    bare: bool
    """True if a secret is drawn where no element covers it."""


async def shown(page: Page, hide: Callable[[str], bool], *, canvases: bool) -> bool:
    """Return True if any text is drawn for which ``hide`` is true; with ``canvases``, also for any canvas."""
    async with _sessions(page) as sessions:
        for frame, session in sessions.items():
            with _unless_gone(frame):
                found = await _find(session, hide, canvases=canvases)
                if found.elements or found.bare:
                    return True
    return False


async def mark(page: Page, hide: Callable[[str], bool], *, canvases: bool, secret: Sequence[Frame]) -> bool:
    """Mark the elements that cover each drawn secret, and with ``canvases`` every canvas. Return True if all are covered.

    ``secret`` are the frames in which something is marked already. A screenshot does not wait until another process has painted
    its masks. So a frame with a mark and its own process is marked as a whole in the document around it, up to the main frame.
    """
    for _time in range(TIMES - 1):
        # A page may replace an element between the snapshot and the mark.
        with contextlib.suppress(Error):
            return await _mark(page, hide, canvases, secret)
    return await _mark(page, hide, canvases, secret)


async def _mark(page: Page, hide: Callable[[str], bool], canvases: bool, secret: Sequence[Frame]) -> bool:
    async with _sessions(page) as sessions:
        marked = {_root(frame, sessions) for frame in secret}
        for frame, session in sessions.items():
            with _unless_gone(frame):
                inner = [sessions[each] for each in marked if each and _root(each.parent_frame, sessions) is frame]
                owners = [await _owner(session, each) for each in inner]
                found = await _find(session, hide, canvases=canvases, owners=owners)
                if found.elements:
                    await _sent(session, "DOM.getDocument", depth=0)
                    arguments = {"backendNodeIds": found.elements}
                    pushed = await _sent(session, "DOM.pushNodesByBackendIdsToFrontend", **arguments)
                    for node in pushed["nodeIds"]:
                        await _sent(session, "DOM.setAttributeValue", nodeId=node, name=MARK, value="")
                if found.elements or found.bare:
                    marked.add(frame)
                if frame is page.main_frame:
                    return not found.bare
    return True


@contextlib.asynccontextmanager
async def _sessions(page: Page) -> AsyncGenerator[dict[Frame, CDPSession]]:
    """Open a session for the main frame and for each frame in another process than its parent; inner frames come first."""
    sessions: dict[Frame, CDPSession] = {}
    try:
        for frame in reversed(page.frames):
            with _unless_gone(frame):
                if (session := await _session(page, frame)) is not None:
                    sessions[frame] = session
        yield sessions
    finally:
        for session in sessions.values():
            with contextlib.suppress(Error):
                await session.detach()


def _root(frame: Frame | None, sessions: Mapping[Frame, CDPSession]) -> Frame | None:
    """Return the frame with a session whose process shows ``frame``; None above the main frame."""
    while frame is not None and frame not in sessions:
        frame = frame.parent_frame
    return frame


async def _owner(session: CDPSession, inner: CDPSession) -> int:
    """Return the backend id of the element that holds the frame of ``inner``."""
    tree = await _sent(inner, "Page.getFrameTree")
    owner = await _sent(session, "DOM.getFrameOwner", frameId=tree["frameTree"]["frame"]["id"])
    return int(owner["backendNodeId"])


async def _find(
    session: CDPSession, hide: Callable[[str], bool], *, canvases: bool, owners: Sequence[int] = ()
) -> Found:
    taken = await _sent(session, "DOMSnapshot.captureSnapshot", computedStyles=_STYLES)
    found = [_Document(each, taken["strings"], hide).found(canvases, owners) for each in taken["documents"]]
    return Found([element for each in found for element in each.elements], any(each.bare for each in found))


@contextlib.contextmanager
def _unless_gone(frame: Frame) -> Generator[None]:
    """Ignore errors of a frame that went away: it is not in a picture."""
    try:
        yield
    except Error:
        if not frame.is_detached():
            raise


async def _session(page: Page, frame: Frame) -> CDPSession | None:
    """Return a session for the frame; None if the snapshot of another frame contains its document."""
    try:
        return await page.context.new_cdp_session(page if frame is page.main_frame else frame)
    except Error as error:
        if _SAME_PROCESS in error.message:
            return None
        raise


_SAME_PROCESS = "does not have a separate CDP session"


async def _sent(session: CDPSession, method: str, **arguments: Any) -> dict[str, Any]:
    return await session.send(method, arguments)  # pyright: ignore[reportUnknownMemberType]


class _Document:
    def __init__(self, document: dict[str, Any], strings: list[str], hide: Callable[[str], bool]) -> None:
        self._strings, self._hide = strings, hide
        self._known: dict[str, bool] = {}
        nodes, layout = document["nodes"], document["layout"]
        self._nodes = nodes
        self._names: list[int] = nodes["nodeName"]
        self._parents: list[int] = nodes["parentIndex"]
        rooted = dict(zip(nodes["shadowRootType"]["index"], nodes["shadowRootType"]["value"], strict=True))
        self._closed = {number for number, kind in rooted.items() if strings[kind] != "open"}
        self._pseudo = set(nodes["pseudoType"]["index"])
        self._boxes: dict[int, _Box] = {}
        self._texts: list[tuple[int, str, _Box]] = []
        self._styles: list[tuple[int, str, _Box]] = []
        for node, text, bounds, styles in zip(
            layout["nodeIndex"], layout["text"], layout["bounds"], layout["styles"], strict=True
        ):
            box = _Box(*bounds)
            # The first box of an element is the element's main one.
            self._boxes.setdefault(node, box)
            if text >= 0:
                self._texts.append((node, strings[text], box))
            values = (strings[style] for style in styles if style >= 0)
            self._styles += [(node, value, box) for value in values if "data:" in value]

    def found(self, canvases: bool, owners: Sequence[int]) -> Found:
        ids: list[int] = self._nodes["backendNodeId"]
        secret = [*self._secret(canvases), *((node, box) for node, box in self._boxes.items() if ids[node] in owners)]
        covers = [(node, self._cover(node, box)) for node, box in secret if box.seen]
        elements = sorted({ids[cover] for _node, cover in covers if cover is not None})
        return Found(elements, bare=any(cover is None for _node, cover in covers))

    def _secret(self, canvases: bool) -> Iterator[tuple[int, _Box]]:
        unread: set[int] = set()
        for node, text, box in self._texts:
            if any(each in self._closed or each in self._pseudo for each in (node, *self._above(node))):
                unread.add(node)
                if self._is_secret(text):
                    yield node, box
        # A secret may be split over several texts, and a script may read some of them.
        for texts in self._together(unread):
            if len(texts) > 1 and self._is_secret("".join(text for _node, text, _box in texts)):
                yield from ((node, box) for node, _text, box in texts)
        for node, value, box in self._styles:
            if self._is_secret(value):
                yield node, box
        for node, box in self._boxes.items():
            name = self._strings[self._names[node]].lower()
            if canvases and name == "canvas":
                yield node, box
            if name in ("img", "object", "embed", "image", "video") and any(map(self._is_secret, self._values(node))):
                yield node, box

    def _values(self, node: int) -> list[str]:
        return [self._strings[each] for each in self._nodes["attributes"][node][1::2]]

    def _is_secret(self, text: str) -> bool:
        if text not in self._known:
            self._known[text] = self._hide(text)
        return self._known[text]

    def _above(self, node: int) -> Iterator[int]:
        while (node := self._parents[node]) >= 0:
            yield node

    def _together(self, unread: set[int]) -> Iterator[list[tuple[int, str, _Box]]]:
        """Return the texts within each element that has unread ones, unless they are longer than ``TOGETHER``."""
        groups: dict[int, list[tuple[int, str, _Box]]] = {
            each: [] for node in unread for each in (node, *self._above(node))
        }
        lengths = dict.fromkeys(groups, 0)
        for node, text, box in self._texts:
            for above in (node, *self._above(node)):
                if above in groups and lengths[above] <= TOGETHER:
                    lengths[above] += len(text)
                    groups[above].append((node, text, box))
        return (texts for above, texts in groups.items() if lengths[above] <= TOGETHER)

    def _cover(self, node: int, box: _Box) -> int | None:
        """Return the nearest element that a locator can find and that covers the box."""
        path = [node, *self._above(node)]
        inside = max((number for number, each in enumerate(path) if each in self._closed), default=-1)
        for each in path[inside + 1 :]:
            reached = each not in self._pseudo and self._nodes["nodeType"][each] == 1
            if reached and each in self._boxes and self._boxes[each].covers(box):
                return each
        return None
