"""Selects the lines of a page that match the words of an instruction, without a model. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from runtime.observation.observation import Observation
from runtime.observation.tree import DIALOGS
from runtime.observation.wanted import said, wanted

MOST = 1_500
EVERYTHING = 200_000
NEW_LINE = "\n"

_ALWAYS_SHOWN = ("alert", "dialog", "alertdialog")  # roles that are always shown

INHERITED = 0.4  # share of its score that a line passes to its content, and a heading to the lines below it

LEAST = 0.3
"""Least share of the best line's score that a line needs to be shown. Content of the best line is always shown."""

PLACES, NEAR = 5, 6  # most lines around which others are shown, and how far away these may be

MAIN = "main"  # the line with which the main part of a page begins

ALWAYS = 0.3  # score of a role that is always shown; a word that is unique on the page scores 1


def select(view: Observation, instruction: str, most: int = MOST, known: Collection[str] = ()) -> str:
    """Return the lines of the page with words of the instruction, the lines that contain these, and alerts and dialogs.

    A page that fits is returned whole, without ``known`` site frames that have none of the words. If nothing matches, the beginning is
    returned.
    """
    whole = _without(view.render(most), view.render(most, known=known), wanted(instruction))
    head, *lines = view.render(EVERYTHING).split("\n")
    if len(head) + sum(len(each) + 1 for each in lines) <= most:
        return whole
    scores = _scores(lines, wanted(instruction))
    if not scores:
        return f"{head}\n(none of the words is on the page; its beginning:)\n{view.render(most - 60).partition(NEW_LINE)[2]}"
    least = max(scores.values()) * LEAST
    scores = {number: score for number, score in scores.items() if score >= least}
    taken = _taken(lines, sorted(scores, key=lambda each: (-scores[each], each)), most - len(head) - 40)
    left_out = sum(1 for each in scores if each not in taken)
    shown = [head, *(lines[each] for each in sorted(taken))]
    return "\n".join([*shown, *([f"… {left_out} more lines fit"] if left_out else [])])


def glance(page: str, most: int, words: Collection[str]) -> str:
    """Return the lines of a text of a page that matter where something failed, in the order of the page; the rest is counted.

    First come messages and dialogs with what they hold, lines with the words, and what is near them; then the main part, its controls first.
    """
    if len(page) <= most:
        return page
    head, *lines = page.split("\n")
    scores = _scores(lines, words, always=True)
    for number in sorted(scores, key=lambda each: -scores[each])[:PLACES]:
        for distance in range(1, NEAR + 1):
            for each in (number - distance, number + distance):
                if 0 <= each < len(lines):
                    scores[each] = max(scores.get(each, 0), ALWAYS * scores[number] / distance)
    begins = lines.index(MAIN) if MAIN in lines else 0
    order = sorted(
        range(len(lines)), key=lambda each: (-scores.get(each, 0), each < begins, "[ref=" not in lines[each], each)
    )
    # A gap between lines takes one, too.
    taken = sorted(_taken(lines, order, most - len(head) - 30, gap=2))
    shown = [head]
    for last, number in zip([-1, *taken], taken, strict=False):
        shown += [*(["…"] if number > last + 1 else []), lines[number]]
    left = len(lines) - len(taken)
    return "\n".join([*shown, f"… {left} more line{'' if left == 1 else 's'}"])


def _taken(lines: Sequence[str], order: Sequence[int], most: int, gap: int = 0) -> set[int]:
    """Return the numbers of the first lines of an order that fit with the lines around them."""
    taken: set[int] = set()
    for number in order:
        more = {number, *_above(lines, number)} - taken
        size = sum(len(lines[each]) + 1 + gap for each in more)
        if size <= most:
            taken |= more
            most -= size
    return taken


def _without(whole: str, folded: str, words: frozenset[str]) -> str:
    left_out = {*whole.split("\n")} - {*folded.split("\n")}
    return whole if any(words.intersection(said(each)) for each in left_out) else folded


def _scores(lines: Sequence[str], words: Collection[str], *, always: bool = False) -> dict[int, float]:
    """Return the scores of relevant lines. Words in few lines score higher than words in many.

    Without ``always`` there are none where no line has a word; with it, what a dialog holds counts as well.
    """
    spoken = [said(line) for line in lines]
    standing = Counter(word for each in spoken for word in set(words).intersection(each))
    scores: dict[int, float] = {}
    within: list[tuple[int, float]] = []
    """The containers around a line, each with its depth and the score that it passes on."""
    headed, found = 0.0, False
    for number, line in enumerate(lines):
        role, depth = spoken[number][0] if spoken[number] else "", _depth(line)
        while within and within[-1][0] >= depth:
            within.pop()
        own = sum(1 / standing[word] for word in set(words).intersection(spoken[number]))
        loud = ALWAYS if role in _ALWAYS_SHOWN else 0.0
        if role == "heading":
            headed = own * INHERITED
        inherited = max(headed, within[-1][1] if within else 0.0)
        found = found or own > 0
        score = own + loud + (inherited if role != "heading" else 0.0)
        if score:
            scores[number] = score
        passed = ALWAYS if always and role in DIALOGS else max(own, inherited) * INHERITED
        within.append((depth, passed))
    return scores if found or always else {}


def _above(lines: Sequence[str], number: int) -> Iterator[int]:
    depth = _depth(lines[number])
    for each in range(number - 1, -1, -1):
        if (found := _depth(lines[each])) < depth:
            yield each
            depth = found
        if not depth:
            return


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
