"""Permissions of a build for side effects: an action is requested from a person, then done or withheld.

A yes covers one action: this node with this target and value, these items and inputs, on the page that the steps before it reach and
fill in. If any of that changes, a person is asked again. A yes to a click never lets an agent click: the actions of an agent are
covered only by a yes to the agent itself. Answers are in the session's log, so that a resumed build asks nothing twice.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import urllib.parse
from collections.abc import Collection, Iterator, Mapping, Sequence

from director.effects import effects, requests, wording
from director.session import person as persons
from director.session.state import SessionState
from nodes.base import Leaf
from nodes.errors import Paused, RunOpsError, UsageError
from nodes.values import Json
from runtime.context import briefs
from runtime.engine import run_state
from runtime.language import workflow
from runtime.log import entries, session
from runtime.log.writer import LogWriter

YES, NO, HOLD_ALL = "yes", "no", "hold all"
CHOICES = (YES, NO, HOLD_ALL)
"""The answers to a requested action. Any other answer is not a yes."""

ALL = "all"  # name of the grant that withholds every later action

_SCOUTING = re.compile(r"(?:^|/)\d+_debug_\w+$")


def is_loopback(origin: str) -> bool:
    host = urllib.parse.urlsplit(origin).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_allow(origins: Sequence[str]) -> None:
    """Raise UsageError ``effects-not-local`` if a site is on another machine, or none is known: `allow` is for local sites."""
    others = [each for each in origins if not is_loopback(each)]
    if others or not origins:
        where = ", ".join(others) or "a site that is not named"
        raise UsageError(
            "effects-not-local",
            f"`--effects allow` does everything without a question, and is for sites on this machine only, not for {where}",
            fix="use `--effects ask` or `--effects hold`, or build against a copy on 127.0.0.1",
        )


class Grants:
    def __init__(self, writer: LogWriter[session.Session], state: SessionState, person: persons.Person) -> None:
        self._writer, self._state, self._person = writer, state, person
        self._asking = asyncio.Lock()

    async def demand(
        self,
        actions: Sequence[tuple[Leaf, str]],
        *,
        place: str,
        page: str | None = None,
        inputs: Mapping[str, Json] | None = None,
        pins: Mapping[str, Json] | None = None,
        other_page: bool = False,
    ) -> run_state.Withholds:
        """Return which of these actions (each with its path) are withheld; first ask for those that have no answer yet.

        ``place`` is the path of the requesting call, ``page`` the address of the page, if known. ``inputs`` default to the goal's;
        ``pins``, which replace values of nodes, default to the session's variables.

        Under `ask` each action is asked for once; on an ``other_page``, to which the draft need not lead, each time. A yes covers that
        action alone. Actions of other classes are never withheld. Raises Paused ``question`` if no person can answer. Call this before the
        tool's call is logged: the call is then repeated with the answer.
        """
        loaded = self._state.draft.loaded if self._state.draft is not None else None
        given = self._inputs(loaded, inputs)
        once = place if other_page or _SCOUTING.search(place) else ""
        pinned = self._state.variables.all() if pins is None else pins
        every = [requests.action(loaded, leaf, path, given, pinned, once) for leaf, path in actions]
        known = {each.path: each for each in every if effects.changes(each.leaf)}
        policy = self._policy(loaded, given)
        granted: set[str] = set()
        if policy == "ask":
            async with self._asking:
                granted = {path for path, each in known.items() if await self._is_granted(each, place, page)}
                if self._holds_all():
                    granted = set()
        return run_state.withholds_nothing if policy == "allow" else withheld(loaded, known, granted)

    def _inputs(self, loaded: workflow.Loaded | None, inputs: Mapping[str, Json] | None) -> Mapping[str, Json]:
        given = dict(self._state.goal.inputs if inputs is None else inputs)
        if loaded is None:
            return given
        try:
            return loaded.check_inputs({name: each for name, each in given.items() if name in loaded.workflow.inputs})
        except RunOpsError:
            return given

    def _holds_all(self) -> bool:
        return self._writer.history.latest("grant", ALL) is not None

    def _policy(self, loaded: workflow.Loaded | None, inputs: Mapping[str, Json]) -> str:
        goal = self._state.goal
        if goal.policy == "ask":
            return "hold" if self._holds_all() else "ask"
        if goal.policy != "allow":
            return "hold"
        try:
            origins = list(loaded.origins(inputs)) if loaded is not None else []
        except RunOpsError:
            return "hold"
        if goal.url is not None:
            origins.append(goal.url)
        return "allow" if origins and all(map(is_loopback, origins)) else "hold"

    async def _is_granted(self, action: requests.EffectRequest, place: str, page: str | None) -> bool:
        if self._holds_all():
            return False
        known: dict[str, Json] = self._state.value("grant", action.key) or {}
        if known.get("answer") is not None:
            return known["answer"] == YES
        # An open question is repeated in its first wording: the answer is matched to that.
        question = str(known.get("question") or self._question(action, page, place))
        record: dict[str, Json] = {
            "answer": None,
            "question": question,
            "what": requests.one_line(action.leaf.summary()),
            "path": briefs.ours(action.path),
            "place": place,
        }
        try:
            said = await self._person.ask(question, CHOICES, place=place)
        except Paused:
            await self._keep(action.key, record, "a person is asked")
            raise
        answer = " ".join(said.strip().lower().split())
        answer = {"y": YES, "n": NO}.get(answer, answer)
        record["answer"] = answer if answer in CHOICES else NO
        if answer == HOLD_ALL:
            await self._keep(ALL, record, "everything is held from here on")
        await self._keep(action.key, record, f"a person answered: {record['answer']}")
        return answer == YES

    async def _keep(self, name: str, value: Json, reason: str) -> None:
        self._state.keep(entries.Version(of="grant", name=name, number=0, reason=reason, by="person"), value)
        await self._writer.barrier()

    def _who(self, place: str) -> str:
        """Return who asks: the delegate in whose call the ``place`` is, by its name, or the build."""
        above = place.rpartition("/")[0]
        known = self._writer.history.actions.values()
        sent = next((each.call for each in known if each.call.path == above and each.call.action == "delegate"), None)
        if sent is None:
            return "The build"
        given: dict[str, Json] = self._writer.value_of(sent)
        name = given.get("agent")
        return f"The delegate {name}" if name else "A delegate"

    def _question(self, action: requests.EffectRequest, page: str | None, place: str) -> str:
        """Return the question for a person: the action, its target, items and page; text that may come from a page is quoted."""
        wants = (
            "let a model act on the site by itself: it may click and type"
            if action.is_agent
            else "do what changes the site"
        )
        lines = [f"{self._who(place)} wants to {wants}. May it do just this?"]
        lines += wording.lines_of(action, page or action.opened or self._state.goal.url)
        return self._writer.masker.text("\n".join([*lines, *wording.choices(once=bool(action.place))]))


def withheld(
    loaded: workflow.Loaded | None, known: Mapping[str, requests.EffectRequest], granted: Collection[str]
) -> run_state.Withholds:
    """Return a rule that withholds all actions but the ``granted`` ones of ``known``, by path; a granted agent may act."""

    def holds(leaf: Leaf, path: str) -> bool:
        if not effects.changes(leaf):
            return False
        where = effects.key_of(loaded, path)
        action = known.get(where)
        if action is not None:
            return where not in granted or not effects.is_filled(effects.core(leaf), effects.core(action.leaf))
        # An agent's own actions have paths below its own.
        return not any(known[each].is_agent for each in effects.above(loaded, path) if each in granted)

    return holds


def answers(writer: LogWriter[session.Session]) -> Iterator[dict[str, Json]]:
    """Yield the requests of a build, in order: ``answer`` (None while open), ``question``, ``what``, ``path``, ``place``."""
    for name in writer.history.names_of("grant"):
        if name != ALL and (found := writer.history.latest("grant", name)) is not None:
            yield writer.value_of(found)
