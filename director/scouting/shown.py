"""What a model was shown of pages: parts of site frames, whole pages, and their errors. None of it is told twice."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from director.scouting import stretches
from runtime.observation import page_frame
from runtime.observation.observation import Observation

AS_BEFORE = "as shown before"
RECENT = (
    10_000  # characters shown since after which a page or a part counts as forgotten: a model is sent old ones no more
)
BUDGETS = (3_000, 5_000)  # limits in which whole pages are shown, in characters

NEW_LINE = "\n"
_REF = re.compile(r"\[ref=(\w+)\]")
_NUMBERED = re.compile(r"((?:f\d+)?)([ex]\d+)")
_LOOK = re.compile(r": look\((?:ref=(\w+))?\)$", re.MULTILINE)
_TIMES = re.compile(r" \(\d+ times\)$")


class Shown:
    """What one model was shown, on any page."""

    def __init__(self) -> None:
        self.goal: Collection[str] = ()  # words that keep a row of a long run in sight
        self._around: dict[str, int] = {}  # parts of site frames, with the characters shown until then
        self._pages: dict[tuple[str, str], tuple[int, list[str]]] = {}
        """The refs of each page as it was shown, by its address and its lines without refs, with the characters shown until then."""
        self._stretches = stretches.Stretches()
        self._page_errors: set[str] = set()
        self._length = 0

    @property
    def around(self) -> Collection[str]:
        """Return the parts of site frames that the model still has."""
        return frozenset(part for part, then in self._around.items() if self._length - then < RECENT)

    def note(self, view: Observation, text: str, budget: int) -> None:
        """Record a text of a page, with all of it that fits into ``budget`` characters; 0 if it has only parts."""
        self._length += len(text)
        self._stretches.note(text, self._length)
        lines = set(map(page_frame.bare, text.split("\n")))
        self._around |= {part: self._length for part in view.around if page_frame.is_shown(part, lines)}
        for each in BUDGETS:
            if each <= budget:
                outline, refs = self._outline(view, each)
                page = view.url, outline
                # To be reminded of a page, or of a part, is not to see it.
                if not reminds(text):
                    self._pages[page] = self._length, refs
                elif page in self._pages:
                    self._pages[page] = self._pages[page][0], refs

    def page(self, view: Observation, budget: int) -> str:
        """Return the page in at most ``budget`` characters; of one that was shown already only the refs that are others now."""
        page = self._stretches.without_known(view.render(budget, self.around, self.goal), self._length - RECENT)
        outline, refs = self._outline(view, budget)
        then, before = self._pages.get((view.url, outline), (-RECENT, []))
        if self._length - then >= RECENT or len(before) != len(refs):
            return page
        text = f"{page.partition(NEW_LINE)[0]}\n{AS_BEFORE}{_changed(before, refs)}"
        return text if len(text) < len(outline) / 2 else page

    def _outline(self, view: Observation, budget: int) -> tuple[str, list[str]]:
        text = view.render(budget, goal=self.goal)
        return _REF.sub("", text), _REF.findall(text)

    def new(self, page_errors: Sequence[str], *, failed: bool) -> list[str]:
        """Return the errors of pages that were not returned before, whatever their count; all of them if an action ``failed``."""
        found = [each for each in page_errors if failed or _TIMES.sub("", each) not in self._page_errors]
        self._page_errors |= {_TIMES.sub("", each) for each in page_errors}
        return found


def by_tool(page: str, tab: str = "") -> str:
    """Return a text of a page that names our tool, for the page of ``tab``, where it says how to see more."""
    return _LOOK.sub(lambda found: f": inspect_tab{tab}{f' ref={found[1]}' if found[1] else ''}", page)


def reminds(text: str) -> bool:
    """Return True if the text only says of a page, or of a long part, that it was shown before."""
    return any(each.startswith(AS_BEFORE) for each in text.split(NEW_LINE)) or stretches.are_left_out(text)


def _changed(before: Sequence[str], now: Sequence[str]) -> str:
    """Return which refs are others now: pairs, or their new beginning if that is all that is new."""
    pairs = [(old, new) for old, new in zip(before, now, strict=True) if old != new]
    if not pairs:
        return ""
    parts = [(_NUMBERED.fullmatch(old), _NUMBERED.fullmatch(new)) for old, new in pairs]
    begins = {(old[1], new[1]) if old and new and old[2] == new[2] else None for old, new in parts}
    if len(pairs) == len(before) and len(begins) == 1 and None not in begins:
        old, new = pairs[0]
        return f", with other refs: {new} for {old}, and so on"
    return f", but with refs {', '.join(f'{new} for {old}' for old, new in pairs)}"
