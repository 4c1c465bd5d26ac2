"""What a node may ask of the browser: one tab, and the row of tabs. ``runtime.browser`` implements it; a node is tested with a fake of it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol

from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json

ElementAction = Literal[
    "click", "dblclick", "fill", "type", "press", "check", "select", "hover", "drag", "upload", "download"
]
"""What an element must be able to take before it counts as ready."""


class Page(Protocol):
    """One tab. Every method waits as a person would, within the attempt's time, and raises SiteError with a stable code.

    Codes: ``target-not-found`` (evidence has ``nearest`` candidates), ``target-ambiguous``, ``target-not-actionable``,
    ``navigation-failed``, ``timeout``, ``page-crashed``, ``answer-lost``, ``tab-closed``, ``dialog-open``; OriginRefused with ``origin-refused``.
    An error's ``phase`` is ``after`` once the action may have reached the page.
    """

    @property
    def url(self) -> str:
        """Address of the tab's document."""
        ...

    async def title(self) -> str:
        """Title of the tab's document."""
        ...

    @property
    def documents(self) -> int:
        """How many documents were loaded into the tab, blank ones aside."""
        ...

    async def goto(self, url: str, *, anew: bool = False) -> str:
        """Load ``url``, wait until its document is loaded, and return the final address. A tab that does not answer is replaced by a new one.

        Where it differs from the present address only behind ``#`` the document stays, unless it is to be loaded ``anew``.
        """
        ...

    @property
    def replaced(self) -> bool:
        """Whether the last ``goto`` replaced the tab."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the tab is closed: then nothing can be done in it any more."""
        ...

    @property
    def dialog(self) -> str | None:
        """What the open dialog says; None where none is open. While one is open every other method raises ``dialog-open``."""
        ...

    def calm(self) -> None:
        """Raises ``dialog-open`` where a dialog is open."""
        ...

    async def back(self) -> str:
        """Load the document before, and return its address; raises ``no-history`` where there is none."""
        ...

    async def forward(self) -> str:
        """Load the document that ``back`` came from, and return its address; raises ``no-history`` where there is none."""
        ...

    async def reload(self, *, resend: bool) -> str:
        """Load the document again, and return its address; one that would send a form again raises ``reload-resends`` without ``resend``."""
        ...

    def opening(self, name: str | None) -> AbstractAsyncContextManager[None]:
        """The action within opens a tab: wait for it, and call it ``name``; raises ``no-tab-opened``. Without a name nothing is waited for."""
        ...

    async def asked(self, text: str | None) -> str:
        """Wait for a dialog that says ``text``, and return what it says; raises ``no-dialog``, ``dialog-differs``."""
        ...

    async def answer(self, *, accept: bool, text: str | None) -> None:
        """Answer the open dialog, and wait until the page has gone on; ``text`` is what is typed into a ``prompt``."""
        ...

    async def locate(self, target: Target) -> Target:
        """The target with every ``any_of`` replaced by the one that matches first; at once, and the same object, where there is none."""
        ...

    async def ready(self, target: Target, action: ElementAction) -> None:
        """Wait until exactly one element matches and could take the action, without doing it."""
        ...

    async def click(self, target: Target) -> None:
        """Click the element."""
        ...

    async def dblclick(self, target: Target) -> None:
        """Click the element twice, as one action."""
        ...

    async def fill(self, target: Target, text: str, *, secret: bool = False) -> None:
        """Put ``text`` in the place of what the field holds; ``value-not-kept`` where the page does not keep it, without the values if ``secret``."""
        ...

    async def type(self, target: Target, text: str, delay: float, *, secret: bool = False) -> None:
        """Empty the field, then type ``text`` key by key, ``delay`` milliseconds apart."""
        ...

    async def press(self, key: str, target: Target | None) -> None:
        """Press a key in the element, or where the focus is."""
        ...

    async def hover(self, target: Target) -> None:
        """Move the mouse over the element."""
        ...

    async def drag(self, target: Target, to: Target) -> None:
        """Drag the element onto another."""
        ...

    async def scroll(
        self, target: Target | None, to: Literal["top", "bottom"] | None, by: tuple[int, int] | None
    ) -> dict[str, Json]:
        """Scroll the element into view, or within it or the page to an end or by ``(x, y)`` pixels; ``x``, ``y``, ``at_end`` of what was scrolled."""
        ...

    async def upload(self, target: Target, files: Sequence[Path]) -> None:
        """Choose files in the file field, or in the chooser that a click on the element opens: else ``no-file-chooser``."""
        ...

    def download(self, target: Target | None, url: str | None) -> contextlib.AbstractAsyncContextManager[Delivery]:
        """The file that a click on the element, or the address, gives; it is there until the block ends.

        Raises ``no-download`` where none begins, ``download-failed`` where it breaks off, is empty, or the site answers with an error.
        """
        ...

    async def screenshot(self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool]) -> bytes:
        """A PNG of the element or the page; whatever shows a text for which ``hide`` is true is painted over."""
        ...

    async def pdf(self, landscape: bool) -> bytes:
        """The page as a PDF."""
        ...

    async def shows(self, hide: Callable[[str], bool]) -> bool:
        """Whether the page, a frame or a field of it shows a text for which ``hide`` is true."""
        ...

    async def signed_in(self) -> Json:
        """Cookies, local storage and IndexedDB of the allowed origins: for ``sign_in`` only."""
        ...

    async def sign_in(self, state: Json) -> None:
        """Put a state in the place of what the browser holds; what belongs to no allowed origin is left out."""
        ...

    async def check(self, target: Target, checked: bool) -> None:
        """Set the box or radio button."""
        ...

    async def select(self, target: Target, options: Sequence[str]) -> list[str]:
        """Choose options by label or value; returns the values chosen."""
        ...

    async def text(self, target: Target) -> str:
        """Visible text of the element, white space folded."""
        ...

    async def value(self, target: Target) -> str:
        """What the field holds."""
        ...

    async def attribute(self, target: Target, name: str) -> str | None:
        """The attribute as it is written, None where the element has none of that name."""
        ...

    async def state(self, target: Target) -> dict[str, Json]:
        """``visible``, ``enabled``, ``checked``, ``editable``, ``focused``, ``value`` of the element, which need not be visible."""
        ...

    async def table(self, target: Target, least: int) -> Grid:
        """The table's cells as a person sees them; waits until it has ``least`` rows. Raises ``not-a-table``."""
        ...

    async def look(self, target: Target | None = None) -> View:
        """One look at the page or the element: roles, names, values and texts; its refs stand until the next look."""
        ...

    async def count(self, target: Target) -> int:
        """How many elements match now."""
        ...

    async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
        """For each element that matches, the text of each field, None where it has none; waits until ``least`` elements match.

        Raises ``field-ambiguous`` where a field's css matches more than once in a row and ``nth`` does not say which.
        """
        ...

    async def wait_for(self, rule: Rule) -> None:
        """Wait until the rule holds; raises ``rule-failed`` with evidence (``rule``, ``wanted``, ``seen``) when time runs out."""
        ...

    async def holds(self, rule: Rule) -> bool:
        """Whether the rule holds now."""
        ...


class View(Protocol):
    """One look at a page: roles, names, values and texts as assistive programs see them, with a ref for each element that one can act on."""

    @property
    def url(self) -> str:
        """Address of the document."""
        ...

    def render(self, budget: int) -> str:
        """The page in at most ``budget`` characters: what does not fit is folded, with its count and how to see it; no element is cut.

        A line that stands for what is folded begins with ``…``, behind its margin, and no other line does.
        """
        ...

    @property
    def words(self) -> str:
        """All that stands on the page, in order, one part a line: texts, names, values of fields. Nothing is folded or left out."""
        ...

    def masked(self, mask: Callable[[str], str]) -> View:
        """The same look, with ``mask`` of each text in its place."""
        ...

    def has(self, ref: str) -> bool:
        """Whether an element of the page has this ref."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Delivery:
    """A file that the site gave."""

    name: str
    """As the site calls it."""
    path: Path


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a table, each repeated over the columns and rows that it spans."""

    head: list[str]
    """What stands above each column, from one or several rows of headers; empty where there is no header."""
    rows: list[list[str | None]]
    """Rows of the body that are visible, all as wide as the table; None where a row has no cell."""


class FieldSource(Protocol):
    """Where in a row a field of ``extract`` stands."""

    @property
    def css(self) -> str | None:
        """Selector below the row; None means the row itself."""
        ...

    @property
    def attribute(self) -> str | None:
        """Attribute to read in place of the text."""
        ...

    @property
    def nth(self) -> int | None:
        """Which of several matches."""
        ...


class Tabs(Protocol):
    """The tabs of a run."""

    def get(self, name: str | None) -> Page:
        """The tab of that name, the current one where none is given. Raises ``tab-closed`` where no open tab has it."""
        ...

    async def open(self, name: str) -> None:
        """Make the tab of that name the current one; a new one where none is open."""
        ...

    async def switch(self, name: str) -> None:
        """Make the tab of that name the current one. Raises ``tab-closed``."""
        ...

    async def close(self, name: str | None) -> None:
        """Close a tab, the current one where none is named; where it was the current one its opener is next, else ``main``.

        One that is closed already is left at that.
        """
        ...
