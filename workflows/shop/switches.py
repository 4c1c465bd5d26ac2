"""Switches with which a test makes the shop misbehave, and the requests that they hold.

A switch selects requests (method, path, how many to let pass, how many to take) and says what happens to them. Switches
are stored in the shop's file, with their remaining counts. A held request exists in its process alone, and ends with it
without being carried out.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from workflows.shop.store import Store

Kind = Literal["delay", "break", "drop", "hold", "logout"]
Moment = Literal["before", "after"]
FIXED: dict[str, Moment] = {"break": "before", "drop": "after", "logout": "before"}


class SwitchError(ValueError):
    """An invalid switch; the message gives the mistake and the fix."""


@dataclass(frozen=True)
class Switch:
    """A fault for the next matching requests. Every switch that matches a request applies to it."""

    kind: Kind
    """The fault.

    `delay`: the request takes `ms` longer. `break`: HTTP 500, not carried out. `drop`: carried out, then the connection is
    closed and the answer lost. `hold`: it waits until it is released. `logout`: all sessions end just before it.
    """
    path: str = ".*"
    """A regular expression for the whole path, without the query."""
    method: str | None = None
    """`GET`, `POST`, or any."""
    times: int | None = 1
    """The number of requests that it takes; `None` for all, until it is removed."""
    skip: int = 0
    """The number of matching requests that first pass untouched: `skip=4` begins with the fifth."""
    ms: int = 0
    """The length of a `delay`, in milliseconds."""
    moment: Moment = "before"
    """The moment of a `delay` or `hold`: before the request is carried out, or after that and before its answer."""
    id: int = 0
    """Given by the shop."""

    def matches(self, method: str, path: str) -> bool:
        """Return whether it applies to such a request."""
        return self.method in (None, method) and re.fullmatch(self.path, path) is not None


@dataclass(frozen=True)
class Held:
    """A request that the shop has received and holds."""

    id: int
    switch: int
    method: str
    path: str
    moment: Moment
    since: str


def read_switch(body: object) -> Switch:
    """Parse a switch from a JSON object. Raises `SwitchError`."""
    if not isinstance(body, dict):
        raise SwitchError(
            'a switch is a JSON object, like {"kind": "hold", "path": "/orders/1003/pay", "method": "POST"}'
        )
    given = cast("dict[str, Any]", body)
    known = {each.name for each in fields(Switch)} - {"id"}
    if unknown := sorted(set(given) - known):
        raise SwitchError(f"a switch has no `{unknown[0]}`; it has {', '.join(sorted(known))}")
    if given.get("kind") not in get_args(Kind):
        raise SwitchError(f"`kind` is one of {', '.join(get_args(Kind))}")
    _check_moment(given)
    for name, least in (("times", 1), ("skip", 0), ("ms", 0)):
        number: object = given.get(name, least)
        if number is None and name == "times":
            continue
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise SwitchError(f"`{name}` is a whole number from {least}")
    for name in ("path", "method"):
        text: object = given.get(name)
        if name in given and not isinstance(text, str) and not (name == "method" and text is None):
            raise SwitchError(f"`{name}` is a text")
    try:
        re.compile(given.get("path", ""))
    except re.error as error:
        raise SwitchError(f"`path` is not a regular expression: {error}") from error
    if given.get("method"):
        given = {**given, "method": given["method"].upper()}
    return Switch(**given)


def _check_moment(given: dict[str, Any]) -> None:
    if given.get("moment", "before") not in get_args(Moment):
        raise SwitchError("`moment` is before or after")
    fixed = FIXED.get(given["kind"])
    if fixed and given.get("moment", fixed) != fixed:
        raise SwitchError(f"`moment` of `{given['kind']}` is always {fixed}; only delay and hold have both")


class Switchboard:
    """The active switches and the held requests; may be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = threading.Condition()
        kept: dict[str, Any] = json.loads(store.setting("switches") or '{"next": 1, "switches": []}')
        self._next: int = kept["next"]
        self._switches = [Switch(**each) for each in kept["switches"]]
        self._held: dict[int, Held] = {}
        self._verdicts: dict[int, bool] = {}
        self._next_held = 1

    def add(self, switch: Switch) -> Switch:
        """Activate a switch; return it with its id."""
        with self._changed:
            added = replace(switch, id=self._next)
            self._next += 1
            self._stand([*self._switches, added])
            return added

    def remove(self, id: int | None = None) -> int:
        """Remove one switch, or all; return how many. Held requests stay held."""
        with self._changed:
            kept = [each for each in self._switches if id is not None and each.id != id]
            removed = len(self._switches) - len(kept)
            self._stand(kept)
            return removed

    def switches(self) -> list[Switch]:
        """Return the active switches, with their remaining counts."""
        with self._changed:
            return list(self._switches)

    def take(self, method: str, path: str) -> list[Switch]:
        """Return the switches that apply to the request that has just arrived, and count it for each that matches."""
        with self._changed:
            taken: list[Switch] = []
            kept: list[Switch] = []
            for each in self._switches:
                if not each.matches(method, path):
                    kept.append(each)
                elif each.skip:
                    kept.append(replace(each, skip=each.skip - 1))
                else:
                    taken.append(each)
                    if each.times is None:
                        kept.append(each)
                    elif each.times > 1:
                        kept.append(replace(each, times=each.times - 1))
            if kept != self._switches:
                self._stand(kept)
            return taken

    def hold(self, switch: Switch, method: str, path: str) -> bool:
        """Wait until released; return whether the request is to continue."""
        with self._changed:
            id = self._next_held
            self._next_held += 1
            since = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._held[id] = Held(id, switch.id, method, path, switch.moment, since)
            self._changed.notify_all()
            self._changed.wait_for(lambda: id in self._verdicts)
            return self._verdicts.pop(id)

    def held(self, path: str = ".*") -> list[Held]:
        """Return the held requests whose whole path matches, in order of arrival."""
        with self._changed:
            return [each for each in self._held.values() if re.fullmatch(path, each.path)]

    def release(self, id: int | None = None, *, go_on: bool = True) -> int:
        """Let one held request, or all, continue, or with `go_on=False` end unanswered; return how many.

        A request continues even if its browser has gone meanwhile, as on any server.
        """
        with self._changed:
            freed = [each for each in self._held if id in (None, each)]
            for each in freed:
                del self._held[each]
                self._verdicts[each] = go_on
            self._changed.notify_all()
            return len(freed)

    def wait_for_held(self, count: int, timeout: float, path: str = ".*") -> list[Held]:
        """Return the held requests once there are `count` of them, or after `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.held(path)) >= count, timeout)
            return self.held(path)

    def _stand(self, switches: list[Switch]) -> None:
        self._switches = switches
        self._store.keep("switches", json.dumps({"next": self._next, "switches": [asdict(each) for each in switches]}))
