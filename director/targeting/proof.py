"""Proves on the live page which targets find the element now, after a reload, and with more rows.

The page itself is only read. Its address is loaded by GET in a separate tab; if that is impossible, the tab gets a copy of the page
without scripts. Rows are added to that tab alone, and no form is sent.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Sequence

from playwright.async_api import Error

from director.targeting import page_script
from director.targeting.candidates import Candidate, Mark, Proof, ranked
from nodes.errors import SiteError
from nodes.targets import Target
from runtime.browser import isolated_world, origins
from runtime.browser.elements import facts, locators, targets
from runtime.browser.elements.pointed import Pointed
from runtime.browser.page.tab import Tab

PROVED = 8
TRIED = 80
RELOAD_SECONDS = 10.0
APPEAR_SECONDS = 3.0  # time limit for the element to appear after loading, in seconds: scripts fetch content later

PAUSE = 0.05


async def of(
    tab: Tab, pointed: Pointed, role: str, name: str, usable: Callable[[str], bool], anchor: str | None
) -> Proof:
    """Prove targets of the element. They use ``anchor`` if that leads to a target, and no texts that are not ``usable``.

    Raises SiteError ``no-target`` if nothing finds the element alone.
    """
    found, refused = await _now(pointed, role, name, usable, anchor)
    around: Sequence[str] | None = None
    if not found and anchor is not None:
        around = _said_around(pointed)
        found, refused = await _now(pointed, role, name, usable, None)
    if not found:
        found = await _placed(pointed, role, name, usable)
    if not found:
        raise SiteError(
            "no-target",
            f"no target finds the {role or pointed.facts.tag} and nothing else",
            fix="point at the row or part around it, or at another element that leads to the same",
        )
    who = await pointed.identity()
    proof = Proof(found, unloaded=_unloaded(tab))
    if not proof.unloaded:
        proof = await _loaded(tab, found, who)
    if proof.unloaded:
        proof = await _copied(tab, proof, who)
    return dataclasses.replace(proof, found=ranked(proof.found), refused=refused, around=around)


async def _now(
    pointed: Pointed, role: str, name: str, usable: Callable[[str], bool], anchor: str | None
) -> tuple[list[Candidate], list[tuple[Target, int]]]:
    """Return the targets that find the element alone, and better ones that also find others, with the number of matches."""
    alone = targets.ways(pointed.facts, role, name, usable)
    within = list(targets.anchored(alone, pointed.facts, usable, anchor))
    found: list[Candidate] = []
    refused: list[tuple[Target, int]] = []
    every = targets.ranked(within if anchor is not None else [*alone, *within])[:TRIED]
    async for match in targets.matches(pointed, every):
        if match.alone:
            found.append(Candidate(match.target, match.way))
            if len(found) == PROVED:
                break
        elif not found and not match.target.exact:
            refused.append((match.target, match.count))
    return found, refused


async def _placed(pointed: Pointed, role: str, name: str, usable: Callable[[str], bool]) -> list[Candidate]:
    """Return a target by the element's position among similar ones, if possible within a row or part with text."""
    alone = targets.ways(pointed.facts, role, name, usable)
    # The nearest parts are tried first: they contain the fewest similar elements.
    within = list(targets.anchored(alone, pointed.facts, usable))[:TRIED]
    async for match in targets.matches(pointed, [*within, *alone]):
        way, around = match.way, match.target.within
        if around is not None and (await pointed.places(around))[0] != 1:
            continue
        placed = Target.model_validate({**way.fields, "nth": match.index})
        where = f" in {way.why.partition(' in ')[2]}" if around is not None else ""
        return [Candidate(placed, dataclasses.replace(way, why=f"its position among similar ones{where}"), placed=True)]
    return []


def _said_around(pointed: Pointed) -> list[str]:
    known = pointed.facts
    said = [each.text for each in known.parts] + [text for row in known.rows for text in row.texts]
    said += [each.text for each in known.beside]
    said += [area.name for area in known.areas] + [area.heading.text for area in known.areas if area.heading]
    said += [text for area in known.areas for text in area.texts]
    return list(dict.fromkeys(filter(None, said)))[:8]


async def _loaded(tab: Tab, found: Sequence[Candidate], who: str) -> Proof:
    try:
        async with asyncio.timeout(RELOAD_SECONDS), tab.beside(RELOAD_SECONDS) as fresh:
            landed = await fresh.goto(tab.url)
            if landed.partition("#")[0] != tab.url.partition("#")[0]:
                return Proof(found, unloaded=f"its address leads to {origins.without_query(landed)[:100]}")
            proof = await _reloaded(fresh, found, who)
            return proof if proof.unloaded else await _grown(fresh, proof, who, [each.reloaded for each in proof.found])
    except TimeoutError:
        return Proof(found, unloaded="it took too long")
    except SiteError as error:
        return Proof(found, unloaded=error.code)
    except Error:
        return Proof(found, unloaded="the tab did not answer")


async def _copied(tab: Tab, proof: Proof, who: str) -> Proof:
    """Return the proof with rows added in a copy of the current page, which has no scripts and loads nothing."""
    unknown = dataclasses.replace(proof, ungrown="the page could not be copied")
    try:
        async with asyncio.timeout(RELOAD_SECONDS), tab.beside(RELOAD_SECONDS) as fresh:
            await page_script.PASTE.on(fresh.page, await page_script.COPY.on(tab.page))
            marks: list[Mark] = [await _mark(fresh, each.target, who) for each in proof.found]
            return await _grown(fresh, proof, who, marks) if "one" in marks else unknown
    except (TimeoutError, SiteError, Error):
        return unknown


def _unloaded(tab: Tab) -> str:
    """Return why the page cannot be reloaded without side effects; empty if it can."""
    if tab.posted:
        return "the page is the answer to a form, which would be sent again"
    if not tab.url.startswith(("http://", "https://")):
        return "it has no address of a site"
    return ""


async def _reloaded(fresh: Tab, found: Sequence[Candidate], who: str) -> Proof:
    until = time.monotonic() + APPEAR_SECONDS
    marks = [await _mark(fresh, each.target, who) for each in found]
    while "one" not in marks and time.monotonic() <= until:
        await asyncio.sleep(PAUSE)
        marks = [await _mark(fresh, each.target, who) for each in found]
    if set(marks) == {"none"}:
        return Proof(found, unloaded="the element is not there at once: something must be done first to show it")
    # Tries that failed before the element appeared are repeated.
    marks = [
        mark if mark == "one" else await _mark(fresh, each.target, who) for each, mark in zip(found, marks, strict=True)
    ]
    return Proof([dataclasses.replace(each, reloaded=mark) for each, mark in zip(found, marks, strict=True)])


async def _mark(fresh: Tab, target: Target, who: str, meant: str | None = None) -> Mark:
    """Return the result of a target for the element with the identity ``who``, which must be the held element ``meant`` if given."""
    try:
        count, said, meant_one, seen = await page_script.FOUND.of_all(locators.locator(fresh.page, target), held=meant)
    except (Error, SiteError):
        return "none"
    if count != 1:
        return "several" if count else "none"
    # The element itself stays what it is, though rows that were added make another row of what is around it.
    if meant_one if meant_one is not None else facts.same(said, who):
        return "one"
    # A hidden match may be the intended element, whose text is still another.
    return "another" if seen else "none"


async def _grown(fresh: Tab, proof: Proof, who: str, before: Sequence[Mark]) -> Proof:
    """Return the proof with rows added above the element in the tab ``fresh``, where the candidates had the results ``before``."""
    first = next((each for each, mark in zip(proof.found, before, strict=True) if mark == "one"), None)
    if first is None:
        return proof
    meant = await locators.locator(fresh.page, first.target).element_handle(timeout=APPEAR_SECONDS * 1000)
    try:
        rows = await page_script.GROW.at(meant)
        if not rows:
            return dataclasses.replace(proof, ungrown="it is in no row, item or card")
        if not await page_script.CONNECTED.at(meant):
            return dataclasses.replace(proof, ungrown="the page redraws itself")
        held = await isolated_world.hold(meant)
        marks: list[Mark] = [
            await _mark(fresh, each.target, who, held) if mark == "one" else "untried"
            for each, mark in zip(proof.found, before, strict=True)
        ]
    finally:
        await meant.dispose()
    grown = [dataclasses.replace(each, grown=mark) for each, mark in zip(proof.found, marks, strict=True)]
    return dataclasses.replace(proof, found=grown, rows=rows)
