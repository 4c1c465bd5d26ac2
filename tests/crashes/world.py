"""The environment of a random workflow: a site with a ledger, and a process that dies on schedule.

The site is the judge: it records each action with its page and typed fields, and outlives every process and browser.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import override

from nodes.errors import SiteError
from nodes.pointer import PLAIN, Stroke
from nodes.rules import Rule
from nodes.targets import Target
from runtime.log import entries
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.system import files
from tests.fakes import FakePage, FakeSite
from tests.rig import Killed

if TYPE_CHECKING:
    from nodes.pages import ElementAction, FieldSource

Fault = Literal["missing", "refused", "silent", "late", "lost-before", "lost-after", "flaky"]
"""The fault of an action: missing; refused; without effect; done, but an error shown; its answer lost, once; missing at first."""


class Reaper:
    """Counts every externally visible operation of a process, and ends it at the scheduled one."""

    def __init__(self) -> None:
        """A process that lives."""
        self.count = 0
        self.at = 0
        self.dead = False
        self.kills: list[str] = []

    def arm(self, at: int) -> None:
        """A new process; it dies just before operation ``at``, never where that is 0."""
        self.count, self.at, self.dead = 0, at, False

    def tick(self, what: str) -> None:
        """Called before each operation."""
        self.count += 1
        if self.count == self.at and not self.dead:
            self.dead = True
            self.kills.append(f"{self.count}:{what}")
        if self.dead:
            raise Killed


@dataclasses.dataclass(frozen=True)
class Record:
    """An action as recorded by the site."""

    target: str
    url: str
    fields: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Listing:
    """A list on the site: its items, and its changes from one observation to the next."""

    items: Sequence[str]
    shuffled: bool = False
    vanishing: str = ""
    """An item whose action (this, a hyphen, the item) was carried out is no longer listed."""
    growing: bool = False


class World(FakeSite):
    """The site."""

    def __init__(self, reaper: Reaper, faults: Mapping[str, Fault], listings: Mapping[str, Listing], seed: int) -> None:
        """``faults`` by the name of an action's node; ``seed`` decides which of its targets are affected."""
        super().__init__(before_click=self._begin, on_click=self._carried_out, page=WatchedPage)
        self.reaper = reaper
        self.faults = dict(faults)
        self.listings = listings
        self.seed = seed
        self.books: list[Record] = []
        self.looks = 0
        self._once: set[str] = set()

    def repair(self) -> None:
        """Remove all faults."""
        self.faults.clear()

    def fault(self, target: str) -> Fault | None:
        """The fault of this action."""
        name = target.removeprefix("css=").split("-")[0]
        fault = self.faults.get(name)
        return fault if fault is not None and random.Random(f"{self.seed} {target}").random() < 0.6 else None

    def first_time(self, target: str) -> bool:
        """True if the target is asked for the first time."""
        known = target in self._once
        self._once.add(target)
        return not known

    def rows(self, name: str) -> list[list[str]]:
        """The rows of a list now."""
        listing = self.listings[name]
        self.looks += 1
        shown = [each for each in listing.items if f"css={listing.vanishing}-{each}" not in self.actions]
        if listing.growing and self.looks > 1:
            shown.append(f"new{self.looks}")
        if listing.shuffled:
            random.Random(self.seed + self.looks).shuffle(shown)
        return [[each] for each in shown]

    async def _begin(self, target: str, page: FakePage) -> None:
        self.reaper.tick(f"click {target}")
        match self.fault(target):
            case "refused":
                raise SiteError("site-refused", "the site says no", phase="after")
            case "lost-before" if self.first_time(target):
                raise SiteError("answer-lost", "nobody knows", phase="after")
            case _:
                self.books.append(Record(target, page.address, tuple(sorted(page.filled.items()))))

    async def _carried_out(self, target: str, page: FakePage) -> None:
        # The typed fields are with the site now, and the page shows an empty form.
        page.filled.clear()
        self.reaper.tick(f"answer to {target}")
        match self.fault(target):
            case "late":
                raise SiteError("site-refused", "the site did it and says no", phase="after")
            case "lost-after" if self.first_time(target):
                raise SiteError("answer-lost", "nobody knows", phase="after")
            case _:
                pass


class WatchedPage(FakePage):
    """A tab on which every operation is counted."""

    @property
    def world(self) -> World:
        site = self.browser.site
        assert isinstance(site, World)
        return site

    @override
    async def goto(self, url: str, *, anew: bool = False, once: bool = False) -> str:
        self.world.reaper.tick(f"goto {url}")
        return await super().goto(url, anew=anew, once=once)

    @override
    async def ready(self, target: Target, action: ElementAction) -> None:
        fault = self.world.fault(str(target))
        if fault == "missing" or (fault == "flaky" and self.world.first_time(str(target))):
            raise SiteError("target-not-found", f"there is no {target}")

    @override
    async def click(self, target: Target, how: Stroke = PLAIN) -> None:
        if self.world.fault(str(target)) == "silent":
            self.world.reaper.tick(f"click {target}")
            self.filled.clear()
            return
        await super().click(target, how)

    @override
    async def fill(self, target: Target, text: str, *, secret: bool = False) -> None:
        self.world.reaper.tick(f"fill {target}")
        await super().fill(target, text)

    @override
    async def text(self, target: Target) -> str:
        self.world.reaper.tick(f"look at {target}")
        name = str(target)
        if name.endswith("_done"):
            return "yes" if name.removesuffix("_done") in self.world.actions else "no"
        return f"text of {target}"

    @override
    async def rows(self, target: Target, fields: Sequence[FieldSource], least: int) -> list[list[str | None]]:
        self.world.reaper.tick(f"list {target}")
        return json.loads(json.dumps(self.world.rows(str(target).removeprefix("css="))))

    @override
    async def holds(self, rule: Rule) -> bool:
        return str(rule.target).removesuffix("_done") in self.world.actions


class WatchedStore(file_store.Files):
    """A store that counts its writes, and knows how much of them a power cut would leave."""

    def __init__(self, home: Path, reaper: Reaper, seed: int) -> None:
        """As a file store; the time to store a file is random."""
        super().__init__(home)
        self.reaper = reaper
        self.chance = random.Random(seed)
        self.on_disk = 0
        self.open: file_store.OpenFile | None = None

    def give_up(self) -> None:
        """Act as the kernel does for a process that ended."""
        if self.open is not None:
            self.open.close()

    def cut_power(self, conversation: str, chance: random.Random) -> None:
        """Anything that was not synced may be lost, from any byte on."""
        file = self.conversation_file(conversation)
        size = file.stat().st_size
        with file.open("r+b") as opened:
            opened.truncate(chance.choice([self.on_disk, size, chance.randint(self.on_disk, size)]))


class _Watched(file_store.OpenFile):
    def __init__(self, store: file_store.Files, *given: Any) -> None:
        super().__init__(store, *given)
        assert isinstance(store, WatchedStore)
        self._owner, self._owner.open = store, self

    @override
    def append(self, entry: entries.AnyEntry) -> entries.AnyEntry:
        what = getattr(entry, "event", getattr(entry, "name", getattr(entry, "status", "")))
        self._owner.reaper.tick(f"write {entry.kind} {what} {getattr(entry, 'path', '')}")
        return super().append(entry)

    @override
    async def barrier(self) -> None:
        self._owner.reaper.tick("barrier")
        # Without a pause, in which something else would sometimes come first.
        self.sync()
        self._owner.on_disk = self._owner.conversation_file(self.id).stat().st_size

    @override
    async def put_file(self, name: str, data: bytes | Path, *, private: bool = False) -> log_store.File:
        """In the background, but in an order that a seed repeats."""
        for _ in range(self._owner.chance.choice([0, 1, 3, 10])):
            await asyncio.sleep(0)
        self._owner.reaper.tick(f"keep {name}")
        path = self._files.file(self.id, name, private=private)
        files.folder(path.parent)
        content = data if isinstance(data, bytes) else data.read_bytes()
        files.write(path, content)
        return log_store.File(name, str(path), len(content), hashlib.sha256(content).hexdigest())


WatchedStore.opens = _Watched
