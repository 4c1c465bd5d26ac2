"""Subject of a build: its goal, its draft with the state of each node, and the tabs of its browsers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from typing_extensions import override

from director.draft import header
from director.draft.draft import Draft
from director.draft.goal import Goal
from director.editing import reference
from director.session import prompt
from director.subjects.files import DraftSubject
from director.tools.build_context import BuildContext
from runtime.context import window
from runtime.display.text import cut, one_line
from runtime.observation import page_text
from runtime.secrets import hidden_names

TITLE = 120  # limit of the goal in the title, in characters
NAMED = 5  # limit of the stale nodes that are named

POLICIES = {
    "ask": "the person is asked before each",
    "allow": "they are done",
    "hold": "none is done: a run stops before it, with its target found; that is no failure",
}
"""The policies for effects, as shown to the model."""


class BuildSubject(DraftSubject):
    def __init__(self, build: BuildContext) -> None:
        super().__init__(build.state)
        self._build, self._goal = build, build.goal

    @property
    @override
    def title(self) -> str:
        goal = cut(one_line(self._goal.goal), TITLE)
        draft = self._state.draft
        if draft is None:
            return f"build: {goal}" if self._goal.repairs is not None else f"build: {goal}; no nodes yet"
        states = self._build.bench.marks()
        known = [each for each in draft.loaded.places if each in states]
        parts = [
            f"{count} {state}" for state, count in Counter(states[each].partition(":")[0] for each in known).items()
        ]
        if stale := [each for each in known if states[each].startswith("stale")]:
            named = f"({_some(stale)})"
            parts = [f"{each} {named}" if each.endswith(" stale") else each for each in parts]
        return f"build: {goal}; {draft.layout.kinds()}" + (f"; {', '.join(parts)}" if parts else "")

    @override
    def summary(self) -> str:
        draft = self._state.draft
        if draft is None:
            return f"Goal: {self._goal.goal}\nThe draft has no nodes yet: `create_nodes` begins it."
        lines = super().summary().splitlines()
        # A new draft has the goal as its description: do not show it twice.
        said = [each for each in lines if each.removeprefix("For: ") != one_line(self._goal.goal)]
        return "\n".join([f"Goal: {self._goal.goal}", *said, self._next(draft)])

    def _next(self, draft: Draft) -> str:
        states = self._build.bench.marks()
        stale = [each.id for each in draft.layout.nodes if states.get(each.id, "").startswith("stale")]
        waits = [each.id for each in draft.layout.nodes if not each.depth and each.id not in states]
        if stale:
            return f"Next: `execute_nodes` for what is stale ({_some(stale)})"
        if waits:
            return f"Next: `execute_nodes` for what was not tried yet ({_some(waits)})"
        return "Next: `run_draft`, for all was tried"

    @override
    def outline(self) -> str:
        draft = self._state.draft
        if draft is None:
            return ""
        states = self._build.bench.marks()
        lines: list[str] = []
        for line in draft.outline().splitlines():
            words = line.split()
            state = states.get(words[1]) if len(words) > 1 else None
            lines.append(f"{line}  [{state}]" if state is not None else line)
        return "\n".join(lines)

    @override
    def variables(self) -> dict[str, object]:
        # Inputs have values before the draft has nodes.
        given = self._goal.inputs if self._state.draft is not None else header.given(self._goal)
        inputs = {f"inputs.{name}": value for name, value in given.items()}
        return {**super().variables(), **inputs, **self._build.bench.values()}

    @override
    def clearable(self) -> Sequence[str]:
        return self._build.bench.executed()

    @override
    def clear(self, names: Collection[str], reason: str) -> None:
        self._build.bench.clear(names, reason)

    @override
    def missing_value(self, name: str) -> tuple[str, str] | None:
        draft = self._state.draft
        place = draft.loaded.places.get(name) if draft is not None else None
        if place is None:
            return None
        state = self._build.bench.marks().get(name)
        if state == "done":
            return "it yields nothing, or what it yielded held a secret", "read something else"
        if state is not None and not state.startswith("stale"):
            return "it was skipped", "see its `when`, and what it reads"
        return state or "it was not executed by itself yet", f'execute_nodes "{name}", or `run_draft`'

    @override
    def description(self) -> str:
        return super().description() or self._goal.goal

    @override
    def browser_state(self) -> str:
        lines: list[str] = []
        for each in self._build.observer.tabs():
            name = "/".join(filter(None, (each.where, each.name)))
            title = f' "{each.title}"' if each.title else ""
            lines.append(f"- {name}{' (current)' if each.current else ''} {each.url}{title}")
        return page_text.fenced("\n".join(lines)) if lines else "No browser is open yet."

    @override
    def instructions(self) -> Sequence[window.Part]:
        how = f"{prompt.prompt('build')}\n\nNode types, each with an example (`get_node_type` tells more):\n{reference.card()}"
        fix = [window.Part("fix", prompt.prompt("repair"))] if self._goal.repairs is not None else []
        return window.Part("build", how), *fix, window.Part("goal", goal_text(self._goal, self._state.masker.names))


def _some(ids: Sequence[str]) -> str:
    return f"{', '.join(ids[:NAMED])}{', …' if len(ids) > NAMED else ''}"


def goal_text(goal: Goal, names: hidden_names.HiddenNames = hidden_names.DEFAULT) -> str:
    lines = ["What to build", f"Goal: {goal.goal}"]
    base = header.given(goal).get(header.BASE)
    named = f" (inputs.{header.BASE} = {base})" if base is not None else ""
    lines += [f"Site: {goal.url}{named}"] if goal.url is not None else []
    lines += [f"Input {name}: {names.json(value, name)}" for name, value in goal.inputs.items()]
    lines += [f"Secrets (their values are hidden): {', '.join(goal.secrets)}"] if goal.secrets else []
    times = "once" if goal.runs == 1 else f"{goal.runs} times"
    lines += [f"Proof: the whole draft passes {times}", f"Side effects: {POLICIES[goal.policy]}"]
    return "\n".join(lines)
