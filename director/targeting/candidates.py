"""Candidate targets of an element with their proofs, and their ranking. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from nodes.targets import Target
from nodes.values import Json
from runtime.browser.elements import targets
from runtime.browser.elements.facts import Facts
from runtime.browser.elements.targets import Way
from runtime.language import writer
from runtime.observation.lines import quoted

Mark = Literal["one", "none", "several", "another", "untried"]
"""Matches of a target: the intended element alone, none, several, another element; or it was not tried."""

MOST = 1_500
OTHERS = 3
WORTH_TELLING = 20
PLACED, PLACED_WITHIN = 8, 40
"""Scores of a target by position: among all similar elements, and within a row or part identified by its text."""

_FAILS = 45


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A target that now matches only the element, and its proofs."""

    target: Target
    way: Way
    reloaded: Mark = "untried"  # result on the reloaded page
    grown: Mark = "untried"  # result there with more rows above
    placed: bool = False  # True if it depends on positions

    @property
    def score(self) -> int:
        """Score from 0 to 100 of how meaningful it is; less for each failed proof, and slightly less for each missing one."""
        score = self.way.worth if not self.placed else PLACED_WITHIN if self.target.within is not None else PLACED
        score -= self.way.whole if self.target.exact else 0
        said = (self.target.name, self.target.label, self.target.text, self.target.title, self.target.alt)
        # A number in a name may be a count, which changes.
        score -= 6 if any(re.search(r"\d", each) for each in said if each is not None) else 0
        for mark, untried in ((self.reloaded, 6), (self.grown, 4)):
            score -= untried if mark == "untried" else 0 if mark == "one" else _FAILS
        return max(0, min(100, score))

    @property
    def holds(self) -> bool:
        return self.reloaded in ("one", "untried") and self.grown in ("one", "untried")

    @property
    def fields(self) -> dict[str, Json]:
        data = self.target.model_dump(mode="json", exclude_unset=True, by_alias=True)
        return {key: writer.literal(value) for key, value in data.items()}


def ranked(found: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, best first; only the best of those found in the same way or written the same."""
    best: dict[str, Candidate] = {}
    written: list[dict[str, Json]] = []
    for each in sorted(found, key=lambda one: -one.score):
        if each.way.why not in best and each.fields not in written:
            best[each.way.why] = each
            written.append(each.fields)
    return list(best.values())


@dataclasses.dataclass(frozen=True, slots=True)
class Proof:
    found: Sequence[Candidate]  # the best first; never empty
    refused: Sequence[tuple[Target, int]] = ()  # better targets that match more than one element, with the number
    unloaded: str = ""  # reason why the page was not reloaded; else empty
    ungrown: str = ""  # reason why no rows were added; else empty
    rows: int = 0
    around: Sequence[str] | None = None  # texts around the element, if the requested anchor finds nothing there

    def marks(self, each: Candidate) -> str:
        said = ["one now"]
        if not self.unloaded:
            said.append(f"{_WORDS[each.reloaded]} after reload")
        if self.rows and each.grown != "untried":
            said.append(f"{_WORDS[each.grown]} with {self.rows} more rows above")
        return ", ".join(said)


_WORDS: dict[Mark, str] = {
    "one": "one",
    "none": "NONE",
    "several": "SEVERAL",
    "another": "ANOTHER ONE",
    "untried": "not tried",
}

_BOXES = ("checkbox", "radio", "switch")
_TYPED = ("textbox", "searchbox", "spinbutton", "combobox", "editable")


def kind(role: str, facts: Facts) -> tuple[str, str]:
    if facts.tag == "select":
        return "select", "`select`; read: `query: value`"
    if facts.type in _BOXES or role in _BOXES:
        both = "" if "radio" in (facts.type, role) else ", `uncheck`"
        return facts.type or role, f"`check`{both}; read: `query: state`"
    if facts.type == "file":
        return "file field", "`upload`"
    if facts.type in ("button", "submit", "reset", "image") or role in targets.PRESSED:
        return role, "`click`, `hover`"
    if facts.type or role in _TYPED:
        return f"{facts.type or role} field", "`fill`, `type`, `press`; read: `query: value`"
    if facts.tag == "table":
        return "table", "read: `query: table`"
    if targets.is_part(facts, role):
        return role, "`within` of what is in it; read: `query: text`; all of its kind: `query: extract`"
    return role or facts.tag, "read: `query: text`; all of its kind: `query: extract`"


def lines_of(proof: Proof, fields: Sequence[str] = (), most: int = MOST) -> tuple[list[str], list[str]]:
    """Return a proof as two lists of lines: our text, and text with parts of the page, which includes ``fields``.

    Both have about ``most`` characters at most, but the best target and ``fields`` are always whole.
    """
    best, *others = proof.found
    ours = [f"score {best.score} of 100: found by {best.way.why}; {proof.marks(best)}"]
    ours += [f"not reloaded: {proof.unloaded}"] if proof.unloaded else []
    ours += [f"no rows added: {proof.ungrown}"] if proof.ungrown else []
    if proof.around is not None:
        ours.append("`anchor` does not find it alone, so it is left out here; try one of the texts around the element")
    if best.placed and best.holds and best.target.within is not None:
        ours.append("only its position distinguishes it there: check after the action that it was the right one")
    elif best.placed:
        ours.append("only its position distinguishes it, and that changes: give an `anchor`, or have the page changed")
    elif not best.holds:
        ours.append("this proof failed: point at the row or part around it, or give an `anchor`")
    elif "very text" in best.way.why:
        ours.append("found by its present text: good for a check, not for reading; read a cell with its `query: table`")
    theirs = [writer.text({"target": best.fields}).rstrip(), *fields]
    room = most - sum(len(each) + 1 for each in [*ours, *theirs])
    for line in _rest(proof, others):
        room -= len(line) + 1
        if room < 0:
            break
        theirs.append(line)
    return ours, theirs


def _rest(proof: Proof, others: Sequence[Candidate]) -> Iterator[str]:
    if proof.around is not None:
        yield f"# around it: {', '.join(quoted(each, 60) for each in proof.around) or 'nothing'}"
    for each in [one for one in others if one.score >= WORTH_TELLING][:OTHERS]:
        line = writer.text({"target": each.fields}).strip().removeprefix("target: ")
        if "\n" not in line:
            marks = proof.marks(each)
            yield f"# {each.score}: {line}{'' if marks == proof.marks(proof.found[0]) else f' ({marks})'}"
    for target, count in proof.refused[:2]:
        yield f"# refused, {count} match: {target}"
