"""Finds elements that a broken target may have meant, each with a target of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from director.repair import candidates
from nodes.base import Leaf
from nodes.errors import RunOpsError
from nodes.targets import Target
from nodes.values import Json
from runtime.browser import isolated_world
from runtime.browser.elements import locators, targets
from runtime.browser.page.tab import Tab
from runtime.observation.observation import Observation

MOST, MOST_CANDIDATES = 12, 6
_TEXTS = ("name", "label", "text", "placeholder", "title", "alt", "test_id", "css")
_KNOWN = isolated_world.Script[list[str]](
    r"""() => {
  const found = new Set();
  for (const element of document.querySelectorAll('[id], [class], [data-testid]')) {
    if (/^[A-Za-z][\w-]*$/.test(element.id)) found.add('#' + element.id);
    for (const each of element.classList) if (/^[A-Za-z][\w-]*$/.test(each)) found.add('.' + each);
    const mark = element.getAttribute('data-testid');
    if (mark && !mark.includes('"')) found.add(`[data-testid="${mark}"]`);
    if (found.size > 3000) break;
  }
  return Array.from(found);
}""",
    list[str],
)


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    target: Target  # as in the file, with references in place of their values
    shares: bool
    worth: float
    why: str
    named: bool


@dataclasses.dataclass(slots=True)
class Elements:
    node: Leaf | None
    raw: Target  # the step's target in the file
    resolved: Target
    action: str
    refills: Callable[[str], str]  # replaces values in a text of the page by their references
    secret: bool = False  # True if a secret is typed, which is only allowed in a password field
    left_out: list[str] = dataclasses.field(default_factory=list[str])  # each with the reason in a sentence

    async def candidates(self, page: Tab, view: Observation) -> list[Candidate]:
        """Return the candidates: corrected selectors, then elements, likeliest first."""
        hints = f"{self.node.id} {self.node.description or ''}" if self.node is not None else ""
        meant = candidates.Meant.of(self.resolved, self.action, hints)
        shown = [
            candidates.Seen(each.ref, each.role, each.name, around=each.row) for each in map(view.element, view.refs)
        ]
        loose = dataclasses.replace(meant, anchor="")
        if meant.anchor:
            # Only elements in rows with the data, even if the rows are other elements now.
            shown = [each for each in shown if candidates.is_in(meant.anchor, each.around)]
        able = candidates.ROLES.get(meant.action)
        shown = [each for each in shown if able is None or each.role in able]
        first = sorted(shown, key=lambda each: -_worth(loose, each))[:MOST]
        known = [seen for each in first if (seen := await self._known(page, each)) is not None]
        scores = candidates.ranked(meant, known)
        aims = [await self._target(page, each.seen) for each in scores]
        # With `within`, elements without a target are outside of it, and are no rivals.
        rivals = [each for each, aim in zip(scores, aims, strict=True) if aim is not None or self.raw.within is None]
        found = [
            Candidate(aim, score.shares, score.worth, score.why, candidates.named(score, rivals))
            for score, aim in zip(scores, aims, strict=True)
            if aim is not None
        ]
        return [*await self._selectors(page), *found[:MOST_CANDIDATES]]

    async def _known(self, page: Tab, seen: candidates.Seen) -> candidates.Seen | None:
        try:
            async with page.pointed(seen.ref) as pointed:
                facts = pointed.facts
        except RunOpsError:
            return None
        if self.secret and facts.type != "password":
            self._left_out(f'{seen.role} "{seen.name}"')
            return None
        texts = [
            *facts.labels,
            facts.placeholder,
            facts.title,
            facts.alt,
            facts.text,
            # Text next to a field is its label; next to another element it is not.
            *(each.text for each in facts.beside if seen.role in targets.FIELDS),
        ]
        marks = [facts.id, facts.test_id, facts.name, *(each.lstrip(".") for each in facts.classes)]
        return dataclasses.replace(seen, texts=[*filter(None, texts)], marks=[*filter(None, marks)])

    def _left_out(self, what: str) -> None:
        self.left_out.append(f"{what}: not tried, for the value is a secret, and the field would show it")

    async def _target(self, page: Tab, seen: candidates.Seen) -> Target | None:
        """Return the best target of the element. It keeps the old ``within``, or one with its text, if that still exists."""
        old, raw = self.resolved.within, self.raw.within
        anchor = old.has_text if old is not None else None
        async with page.pointed(seen.ref) as pointed:
            alone = targets.ways(pointed.facts, seen.role, seen.name, _any)
            if old is None or (not anchor and await page.count(old) == 0):
                ways = targets.ranked([*alone, *targets.anchored(alone, pointed.facts, _any)])
            else:
                ways = [dataclasses.replace(each, fields={**each.fields, "within": old}) for each in alone]
                if anchor:
                    parts = targets.anchored(alone, pointed.facts, _any, anchor)
                    ways += targets.ranked([each for each in parts if "within" in each.fields])
            async for match in targets.matches(pointed, ways):
                if not match.alone:
                    continue
                target, within = match.target, match.target.within
                if within is not None and within == old:
                    target = target.model_copy(update={"within": raw})
                elif within is not None and raw is not None and anchor and within.has_text == anchor:
                    around = within.model_copy(update={"has_text": raw.has_text})
                    target = target.model_copy(update={"within": around})
                texts = {name: text for name in _TEXTS if isinstance(text := getattr(target, name), str)}
                return target.model_copy(update={name: self.refills(text) for name, text in texts.items()})
        return None

    async def _selectors(self, page: Tab) -> list[Candidate]:
        resolved, raw = self.resolved, self.raw
        if resolved.css is None and resolved.test_id is None:
            return []
        known = await _KNOWN.on(page.page)
        tries: list[dict[str, Json]] = []
        if resolved.test_id is not None:
            tries = [{"test_id": each} for each in candidates.near_marks(resolved.test_id, known)]
        elif resolved.css is not None:
            tries = [{"css": each} for each in candidates.selectors(resolved.css, known)]
        fitting: list[dict[str, Json]] = []
        for changed in tries:
            target = resolved.model_copy(update=changed)
            count = await page.count(target)
            many = self.action in ("extract", "count", "exists")
            if count != 1 and not (many and count > 0):
                continue
            if self.secret and await locators.locator(page.page, target).first.get_attribute("type") != "password":
                self._left_out(str(target))
            else:
                fitting.append({name: self.refills(str(each)) for name, each in changed.items()})
        why, named = "the document calls it so now", len(fitting) == 1
        return [Candidate(raw.model_copy(update=changed), True, 0.9, why, named) for changed in fitting]


def _any(_text: str) -> bool:
    return True


def _worth(meant: candidates.Meant, seen: candidates.Seen) -> float:
    score = candidates.scored(meant, seen)
    return score.worth if score is not None else 0.0
