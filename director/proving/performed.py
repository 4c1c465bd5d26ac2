"""Lists what the runs of a build have done on the site, so that a person can clean up."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from director.draft import header
from director.effects import effects, requests, wording
from nodes import registry
from nodes.base import Leaf
from nodes.values import Json
from runtime.context import briefs
from runtime.display.text import count
from runtime.language import workflow
from runtime.log import attempts as log_attempts
from runtime.log import entries, history

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext


@dataclasses.dataclass(frozen=True, slots=True)
class Performed:
    """An action on the site that the build has done, or may have done, with the same element, values and inputs each time."""

    step: str
    said: str
    inputs: Mapping[str, Json]  # the inputs that decide it
    tools: Sequence[str]  # the tool that did it, for each time
    undone: int = 0  # how many of these times a later reset put the site's data back
    uncertain: int = 0  # how many of these times it is unknown whether it happened

    @property
    def stays(self) -> bool:
        """True if the site still has it, as far as is known."""
        return self.undone < len(self.tools)

    def describe(self) -> str:
        given = ", ".join(f"{name}={requests.one_line(value)}" for name, value in self.inputs.items())
        parts = [f"{self.step}: {self.said}{f', with {given}' if given else ''}", self._times()]
        parts += [f"{self.uncertain} may not have happened"] if self.uncertain else []
        if self.undone:
            parts.append(f"a later reset undid {self.undone if self.stays else 'all' if len(self.tools) > 1 else 'it'}")
        return "; ".join(parts)

    def _times(self) -> str:
        tools = Counter(self.tools)
        if len(self.tools) == 1:
            return f"done once: {self.tools[0]}"
        return f"done {len(self.tools)} times: {', '.join(f'{tool} {number}' for tool, number in tools.items())}"


def of_build(build: BuildContext) -> list[Performed]:
    """Return all actions that the tools of this session have done on the site, in order; texts are as in the logs, secrets masked.

    Those that a later reset undid are counted as such.
    """
    past = build.writer.history
    tools = {run: past.actions[call].call.action or "" for call, runs in past.runs_of.items() for run in runs}
    runs = [each for each in past.runs if each in tools]
    resets = [number for number, each in enumerate(runs) if each in past.reset_runs]
    last_reset = resets[-1] if resets else 0
    found: dict[str, Performed] = {}
    for number, run in enumerate(runs):
        for each in _of_run(build, run):
            key = repr((each.step, each.said, each.inputs))
            known = found.get(key, dataclasses.replace(each, uncertain=0))
            found[key] = dataclasses.replace(
                known,
                tools=[*known.tools, tools[run]],
                undone=known.undone + (number < last_reset),
                uncertain=known.uncertain + each.uncertain,
            )
    return list(found.values())


def told(every: Sequence[Performed], most: int) -> list[str]:
    """Return a line for each, at most ``most``, and then how many more there are."""
    lines = [each.describe() for each in itertools.islice(every, most)]
    return [*lines, *([f"… and {count(len(every) - most, 'more action')}"] if len(every) > most else [])]


def _of_run(build: BuildContext, run: str) -> Iterator[Performed]:
    past = build.runs.past(run)
    if past is None or past.header is None:
        return
    draft = build.state.draft_with(past.header.text.sha256)
    loaded = draft.loaded if draft is not None else None
    for attempt in past.all_attempts():
        call = attempt.call
        # The actions of an agent are attempts of their own.
        if call.node == log_attempts.AGENT or _did_nothing(attempt):
            continue
        leaf = _as_done(build, call)
        if leaf is not None and _changes(call, leaf, loaded) and not _fills_in(build, loaded, call):
            known = attempt.verdict == "done" or attempt.status in ("ok", "recovered")
            step = briefs.ours(call.path)
            yield Performed(step, _said(leaf), _inputs(past, loaded, call.path), (), uncertain=not known)


def _did_nothing(attempt: log_attempts.Attempt) -> bool:
    return attempt.did_nothing or attempt.was_skipped or attempt.verdict == "not-done"


def _as_done(build: BuildContext, call: entries.Call) -> Leaf | None:
    """Return the step with its values filled in; None for one that is no node, or no longer a valid one."""
    given: Json = build.writer.value_of(call)
    try:
        fields = given if isinstance(given, dict) else {}
        node = registry.parse_node({"id": "done", "type": call.node, **fields})
    except (ValidationError, ValueError):
        return None
    return node if isinstance(node, Leaf) else None


def _changes(call: entries.Call, leaf: Leaf, loaded: workflow.Loaded | None) -> bool:
    found = loaded.find(call.path) if loaded is not None else None
    # A call does not have the class that its node declares.
    node = found.node if found is not None and isinstance(found.node, Leaf) else leaf
    if call.effect == "effect" or effects.changes(node):
        return True
    return effects.is_repeatable(node) and not (loaded is not None and effects.only_signs_in(loaded, call.path))


def _fills_in(build: BuildContext, loaded: workflow.Loaded | None, call: entries.Call) -> bool:
    """Return whether a step only filled in a form, by the draft of its run or the present one: what sends it is listed if it was done."""
    now = build.state.draft
    drafts = (each for each in (loaded, now and now.loaded) if each is not None)
    return call.effect != "effect" and any(effects.fills_in(each, call.path) for each in drafts)


def _said(leaf: Leaf) -> str:
    value: Json = next((each for name in wording.VALUES if (each := getattr(leaf, name, None)) is not None), None)
    return requests.one_line(wording.done(leaf) + (f" {requests.one_line(value)}" if value is not None else ""))


def _inputs(past: history.History, loaded: workflow.Loaded | None, path: str) -> dict[str, Json]:
    """Return the run's inputs that decide the step, without the address of the site."""
    given: Mapping[str, Json] = past.header.inputs if past.header is not None else {}
    step = loaded.find(path) if loaded is not None else None
    names = set(given)
    if loaded is not None and step is not None and isinstance(step.node, Leaf):
        names = requests.decided_by(loaded, step.node, path, given)
    return {name: value for name, value in given.items() if name in names and name != header.BASE}
