"""Browser ports for nodes: one tab, and the list of tabs. ``runtime.browser`` implements them; tests of a node use fakes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol

from nodes.pointer import PLAIN, STEPS, Spot, Stroke, Way
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json

ElementAction = Literal[
    "click", "dblclick", "tap", "fill", "type", "press", "check", "select", "hover", "drag", "upload", "download"
]
"""The action for which an element must be ready."""


class Page(Protocol):
    """One tab. Every method waits as a person would, within the attempt's time, and raises SiteError with a stable code.

    Codes: ``target-not-found`` (evidence has ``nearest`` candidates), ``target-ambiguous``, ``target-not-actionable``,
    ``navigation-failed``, ``timeout``, ``page-crashed``, ``answer-lost``, ``tab-closed``, ``dialog-open``; OriginRefused with ``origin-refused``.
    An error's ``phase`` is ``after`` once the action may have reached the page.
    """

    @property
    def url(self) -> str: ...
    async def title(self) -> str: ...

    @property
    def documents(self) -> int:
        """Number of documents loaded into the tab, without blank ones."""
        ...

    async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
        """Load ``url``, wait until its document is loaded, and return the final address. A tab that does not answer is replaced by a new one.

        The new tab may request ``url`` a second time, unless ``once`` is set.
        If it differs from the present address only after ``#`` the document stays, unless ``anew`` is set.
        """
        ...

    @property
    def replaced(self) -> bool:
        """True if the last ``goto`` replaced the tab."""
        ...

    @property
    def closed(self) -> bool:
        """True if the tab is closed: then nothing can be done in it any more."""
        ...

    @property
    def dialog(self) -> str | None:
        """Text of the open dialog; None if none is open. While one is open every other method raises ``dialog-open``."""
        ...

    def calm(self) -> None:
        """Raise ``dialog-open`` if a dialog is open."""

    async def back(self) -> str:
        """Load the previous document, and return its address; raises ``no-history`` if there is none."""
        ...

    async def forward(self) -> str:
        """Load the document that ``back`` left, and return its address; raises ``no-history`` if there is none."""
        ...

    async def reload(self, *, resend: bool) -> str:
        """Reload the document, and return its address; raises ``reload-resends`` if that would send a form again and ``resend`` is not set."""
        ...

    def opening(self, name: str | None) -> AbstractAsyncContextManager[None]:
        """Wait for the tab that the enclosed action opens, and name it ``name``; raises ``no-tab-opened``. Without a name nothing is waited for."""
        ...

    async def asked(self, text: str | None) -> str:
        """Wait for a dialog that contains ``text``, and return its text; raises ``no-dialog``, ``dialog-differs``."""
        ...

    async def answer(self, *, accept: bool, text: str | None) -> None:
        """Answer the open dialog, and wait until the page continues; ``text`` is typed into a ``prompt``."""

    async def locate(self, target: Target) -> Target:
        """Return the target with every ``any_of`` replaced by the one that matches first; without one the same object, at once."""
        ...

    async def ready(self, target: Target, action: ElementAction) -> None:
        """Wait until exactly one element matches and is ready for the action, without doing it."""

    async def click(self, target: Target, how: Stroke = PLAIN) -> None: ...
    async def dblclick(self, target: Target, how: Stroke = PLAIN) -> None: ...

    async def tap(self, target: Target, at: Spot | None = None) -> None:
        """Tap the element with a finger. Raises ``no-touch`` if the browser has no touch screen."""

    async def fill(self, target: Target, text: str, *, secret: bool = False) -> None:
        """Replace the field's content by ``text``. Raises ``value-not-kept`` if the page does not keep it, without the values if ``secret``."""

    async def type(self, target: Target, text: str, delay: float, *, secret: bool = False) -> None:
        """Empty the field, then type ``text`` key by key, ``delay`` milliseconds apart."""

    async def press(self, keys: list[str], target: Target | None, hold: float = 0) -> None:
        """Press keys one after the other, each for ``hold`` seconds, the first one in the element, the others where the focus then is."""

    async def select_text(self, target: Target, text: str | None, start: str | None, end: str | None) -> str:
        """Select ``text``, or from the first ``start`` to the first ``end`` after it, by default all; return the selected text.

        The page hears no click. Raises ``text-not-found``.
        """
        ...

    async def copy(self, target: Target | None) -> str:
        """Copy all of the element, or what is selected; return the text. Raises ``nothing-selected``."""
        ...

    async def paste(self, target: Target | None, text: str, *, secret: bool = False) -> None:
        """Paste a text into the element, or into the focused one."""

    async def hover(self, target: Target, how: Stroke = PLAIN) -> None:
        """Move the mouse there, and stay for ``how.hold`` seconds."""

    async def drag(
        self, target: Target, to: Target, start: Spot | None = None, at: Spot | None = None, steps: int = STEPS
    ) -> None: ...

    async def move_pressed(self, target: Target, way: Way) -> None:
        """Press the mouse in the element, move it along the way, and release it."""

    async def drop(self, target: Target, at: Spot | None, files: Sequence[Path]) -> None:
        """Drop files on the element, as from another window."""

    async def wheel(self, target: Target | None, by: tuple[float, float], how: Stroke) -> None:
        """Turn the wheel over the element, or over the middle of the page."""

    async def scroll(
        self, target: Target | None, to: Literal["top", "bottom"] | None, by: tuple[float, float] | None
    ) -> dict[str, Json]:
        """Scroll the element into view, or it or the page to an end or by ``(x, y)`` pixels. Return ``x``, ``y``, ``at_end`` of the scrolled one."""
        ...

    async def upload(self, target: Target, files: Sequence[Path]) -> None:
        """Choose files in the file field, or in the chooser that a click on the element opens; raises ``no-file-chooser``."""

    def download(self, target: Target | None, url: str | None) -> contextlib.AbstractAsyncContextManager[Delivery]:
        """Download a file by clicking the element or from the address; it exists until the block ends.

        Raises ``no-download`` if none begins, ``download-failed`` if it breaks off, is empty, or the site answers with an error.
        """
        ...

    async def screenshot(self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool]) -> bytes:
        """Return a PNG of the element or the page; parts with a text for which ``hide`` is true are painted over."""
        ...

    async def pdf(self, landscape: bool) -> bytes: ...

    async def shows(self, hide: Callable[[str], bool]) -> bool:
        """Return whether the page, a frame or a field of it shows a text for which ``hide`` is true."""
        ...

    async def signed_in(self) -> Json:
        """Return cookies, local storage and IndexedDB of the allowed origins, for ``sign_in`` only."""
        ...

    async def sign_in(self, state: Json) -> None:
        """Replace the browser's state; data of other than allowed origins is omitted.

        Raises SiteError ``session-not-found`` if nothing is left then, ``session-expired`` if no cookie that can sign in is valid.
        """

    async def check(self, target: Target, checked: bool) -> None: ...

    async def select(self, target: Target, options: Sequence[str]) -> list[str]:
        """Choose options by label or value; returns the values chosen."""
        ...

    async def text(self, target: Target) -> str:
        """Return the visible text of the element, white space folded."""
        ...

    async def value(self, target: Target) -> str:
        """Return the content of the field."""
        ...

    async def box(self, target: Target) -> tuple[float, float, float, float]:
        """Return the left, the top, the width and the height of the inside of the element, as it is seen in the window."""
        ...

    async def attribute(self, target: Target, name: str) -> str | None:
        """Return the attribute as it is written, None if the element does not have it."""
        ...

    async def state(self, target: Target) -> dict[str, Json]:
        """Return ``visible``, ``enabled``, ``checked``, ``editable``, ``focused``, ``value`` of the element, which need not be visible."""
        ...

    async def table(self, target: Target, least: int, *, across: bool = False) -> Grid:
        """Return the table's cells as a person sees them; waits until it has ``least`` rows. Raises ``not-a-table``.

        ``across`` scrolls it from left to right if the page renders only some of its columns.
        """
        ...

    async def look(self, target: Target | None = None, *, settle: float = 2.0) -> View:
        """Observe the page or the element: roles, names, values and texts. Its refs are valid until the next observation.

        It waits until the page rests, for ``settle`` seconds at the most, and says if it does not.
        """
        ...

    async def rest(self) -> bool:
        """Wait until the document has not changed for a moment, two seconds at the most; return whether it rests."""
        ...

    async def drawn(self) -> None:
        """Wait until the page has the answers to what it asked for, and rests. Raises SiteError ``timeout`` if it still waits for one after 10 seconds."""
        ...

    async def unchanged(self) -> bool:
        """Return True if the last click, press of a key or drag has surely changed nothing that a person can see; asked once after it."""
        ...

    async def count(self, target: Target, *, hidden: bool = False) -> int:
        """Return the number of matching elements; without ``hidden`` only those that can be seen."""
        ...

    async def missing_part(self, target: Target) -> str | None:
        """Return the frame, or the part around the target, that matches nothing now; None if each of them does."""
        ...

    async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
        """Return for each matching element the text of each field, None if it has none; waits until ``least`` elements match.

        Raises ``field-ambiguous`` if a field's css matches more than once in a row and ``nth`` is not given.
        """
        ...

    async def scroll_rows(self, target: Target, *, start: bool) -> bool:
        """Scroll what holds the matching rows to its start, or on by a part, until rows cover it; return False if it was at its end."""
        ...

    async def wait_for(self, rule: Rule) -> None:
        """Wait until the rule holds; raises ``rule-failed`` with evidence (``rule``, ``wanted``, ``seen``) at the time limit."""

    async def holds(self, rule: Rule) -> bool: ...


class View(Protocol):
    """An observation of a page: roles, names, values and texts as assistive programs see them, with a ref for each interactive element."""

    @property
    def url(self) -> str: ...

    def render(self, budget: int) -> str:
        """Return the page in at most ``budget`` characters. The rest is folded, with its count and how to see it; no element is cut.

        A line for folded content begins with ``…``, after its margin, and no other line does.
        """
        ...

    @property
    def words(self) -> str:
        """Return the whole content of the page, in order, one part a line: texts, names, values of fields. Nothing is folded or omitted."""
        ...

    def masked(self, mask: Callable[[str], str]) -> View:
        """Return the same observation with ``mask`` applied to each text."""
        ...

    def has(self, ref: str) -> bool: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Delivery:
    """A file that the site gave."""

    name: str  # the site's name for it
    path: Path


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a table, each repeated over the columns and rows that it spans."""

    head: list[str]  # header of each column, from one or several header rows; empty if there is none
    rows: list[list[str | None]]  # visible rows of the body, all as wide as the table; None if a row lacks the cell
    columns: Sequence[int] = ()  # numbers of the columns, from 1; empty if none is left out
    unrendered: int = 0  # number of columns that the page has not rendered


class FieldSource(Protocol):
    """Place of a field of ``extract`` in a row."""

    @property
    def css(self) -> str | None:
        """Selector below the row; None means the row itself."""
        ...

    @property
    def attribute(self) -> str | None:
        """Attribute to read instead of the text."""
        ...

    @property
    def nth(self) -> int | None:
        """Index among several matches."""
        ...


class Tabs(Protocol):
    """The tabs of a run."""

    def get(self, name: str | None) -> Page:
        """Return the tab of that name, by default the current one. Raises ``tab-closed`` if no open tab has it."""
        ...

    async def open(self, name: str) -> None:
        """Make the tab of that name the current one; opens a new one if needed."""

    async def switch(self, name: str) -> None:
        """Make the tab of that name the current one. Raises ``tab-closed``."""

    async def close(self, name: str | None) -> None:
        """Close a tab, by default the current one. After the current one its opener becomes current, else ``main``.

        One that is already closed is no error.
        """
