"""Subject of a session that builds: goal, draft with the state of each node, tabs. Before there is a draft, what it is about otherwise."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from typing_extensions import override

from director.draft import header, layout
from director.draft.draft import Draft
from director.draft.goal import Goal
from director.editing import lint, reference
from director.proving import draft_runs, finish
from director.session import prompt
from director.session.subject import Subject
from director.subjects.files import DraftSubject, FileSubject, ended
from director.tools import begin
from director.tools.build_context import BuildContext
from nodes.values import Json
from runtime.context import window
from runtime.display.text import cut, one_line
from runtime.language import inputs
from runtime.observation import page_text
from runtime.secrets import hidden_names
from runtime.workspace import run_index

TITLE = 60  # limit of the goal in the title, in characters
RUN_DRAFT = "run_draft"
WHOLE_RUNS = frozenset({RUN_DRAFT, "finish"})  # tools that run the whole draft
CHANGES = frozenset({"create_nodes", "update_node", "move_nodes", "delete_nodes"})  # tools that change the draft
NEW = "A new workflow is to be built: {goal}\nIts draft has no nodes yet: `create_nodes` begins it."

NAMED = 5  # limit of the stale nodes that are named

POLICIES = {
    "ask": "the person is asked before each",
    "allow": "they are done",
    "hold": "none is done: a run stops before it, with its target found; that is no failure",
}
"""The policies for effects, as shown to the model."""


class BuildSubject(DraftSubject):
    def __init__(self, build: BuildContext, about: Subject | None = None) -> None:
        """``about`` is the run or file that the session is about."""
        super().__init__(build.state)
        self._build, self._about = build, about

    @property
    def _goal(self) -> Goal:
        return self._build.goal

    @property
    def _other(self) -> Subject | None:
        """The run or file, while there is no draft: it is shown in the draft's place."""
        return self._about if self._state.draft is None else None

    @property
    @override
    def title(self) -> str:
        if self._other is not None and not self._goal.anew:
            return self._other.title
        own = self._title()
        its_file = isinstance(self._about, FileSubject) and self._about.path == self._goal.place
        return own if self._about is None or its_file else f"{own}; {self._about.title}"

    def _title(self) -> str:
        goal = cut(one_line(self._goal.goal), TITLE)
        draft = self._state.draft
        if draft is None:
            if not self._state.is_goal_kept:
                return super().title
            return f"build: {goal}" if self._goal.repairs is not None else f"build: {goal}; no nodes yet"
        states = self._build.bench.marks()
        known = [each for each in draft.loaded.places if each in states]
        parts = [
            f"{count} {state}" for state, count in Counter(states[each].partition(":")[0] for each in known).items()
        ]
        if stale := [each for each in known if states[each].startswith("stale")]:
            named = f"(run again: {_some(stale)})"
            parts = [f"{each} {named}" if each.endswith(" stale") else each for each in parts]
        if self._passed:
            parts = ["passed as a whole"]
        if finish.saved(self._build) is not None:
            parts = ["proved and saved"]
        if begin.is_of_another(self._build, draft):
            parts += filter(None, [begin.told(self._build)])
        return f"build: {goal}; {draft.layout.kinds()}" + (f"; {', '.join(parts)}" if parts else "")

    @property
    def _passed(self) -> bool:
        """True if the draft as it is passed as a whole, with the goal's inputs: what is stale on the bench then need not be run again."""
        draft = self._state.draft
        for each in reversed(self._state.history.actions.values()):
            if each.call.action in CHANGES | {RUN_DRAFT}:
                whole = each.call.action == RUN_DRAFT
                if whole and draft is not None and not draft_runs.has_goal_inputs(self._build, draft.loaded, each.call):
                    continue
                return whole and each.result is not None and each.result.error is None
        return False

    @override
    def summary(self) -> str:
        if self._other is not None:
            own = self._other.summary()
            return f"{own}\n{NEW.format(goal=self._goal.goal)}" if self._goal.anew else own
        draft = self._state.draft
        if draft is None:
            goal = f"Goal: {self._goal.goal}\n" if self._state.is_goal_kept else ""
            return f"{goal}The draft has no nodes yet: `create_nodes` begins it."
        # A new draft has the goal as its description: do not show it twice.
        said = [each for each in self.facts() if each.removeprefix("For: ") != one_line(self._goal.goal)]
        return "\n".join(
            [f"Goal: {self._goal.goal}", *said, *filter(None, [begin.told(self._build)]), self._next(draft)]
        )

    def _next(self, draft: Draft) -> str:
        if (saved := finish.saved(self._build)) is not None:
            return f"It is proved and saved as it is: {saved}"
        if self._passed:
            return "Next: `finish`, for it passed as a whole"
        states = self._build.bench.marks()
        stale = [each.id for each in draft.layout.nodes if states.get(each.id, "").startswith("stale")]
        waits = [each.id for each in draft.layout.nodes if not each.depth and each.id not in states]
        if stale:
            return f"Next: `execute_nodes` for what is stale ({_some(stale)})"
        if waits:
            return f"Next: `execute_nodes` for what was not tried yet ({_some(waits)})"
        return "Next: `run_draft`, for all was tried"

    @override
    def facts(self) -> Sequence[str]:
        return self._other.facts() if self._other is not None else super().facts()

    @override
    def outline(self, configuration: int = 0) -> str:
        if self._other is not None:
            return self._other.outline(configuration)
        draft = self._state.draft
        if draft is None:
            return ""
        states = self._build.bench.marks()

        def state(placed: layout.Placed) -> str:
            return f"[{states[placed.id]}]" if placed.id in states else ""

        return draft.layout.outline(state, configuration)

    @override
    def last_run(self) -> str:
        history = self._state.history
        whole = [
            run
            for call, runs in history.runs_of.items()
            if history.actions[call].call.action in WHOLE_RUNS
            for run in runs
        ]
        past = self._build.runs.past(max(whole)) if whole else None
        if past is None:
            return super().last_run()
        status = run_index.state_of(past, owned=max(whole) in history.open_runs)
        ending = past.ending.data if past.ending is not None else {}
        error: Mapping[str, Json] = ending.get("error") or {}
        return ended(max(whole), status, past.started, past.last_at, ending.get("path"), error.get("code"))

    @override
    def nodes(self, which: str, kind: str | None) -> str:
        return self._other.nodes(which, kind) if self._other is not None else super().nodes(which, kind)

    @override
    def variables(self) -> dict[str, object]:
        if self._other is not None:
            return self._other.variables()
        # Inputs have values before the draft has nodes.
        draft = self._state.draft
        given = (
            inputs.as_declared(draft.loaded.workflow.inputs, self._goal.inputs)
            if draft is not None
            else header.given(self._goal)
        )
        named = {f"inputs.{name}": value for name, value in given.items()}
        return {**super().variables(), **named, **self._build.bench.values()}

    @override
    def clearable(self) -> Sequence[str]:
        return self._build.bench.executed()

    @override
    def clear(self, names: Collection[str], reason: str) -> None:
        self._build.bench.clear(names, reason)

    @override
    def missing_value(self, name: str) -> tuple[str, str] | None:
        if self._other is not None:
            return self._other.missing_value(name)
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
        own = super().description() or (self._other.description() if self._other is not None else "")
        return own or (self._goal.goal if self._state.is_goal_kept else "")

    @override
    def browser_state(self) -> str:
        lines: list[str] = []
        for each in self._build.observer.tabs():
            name = "/".join(filter(None, (each.where, each.name)))
            title = f' "{each.title}"' if each.title else ""
            lines.append(f"- {name}{' (current)' if each.current else ''} {each.url}{title}")
        if not lines and self._about is not None:
            return self._about.browser_state()
        if lines:
            return page_text.fenced("\n".join(lines))
        if self._state.history.epoch > 1:
            return "No browser is open now. One that was open before the session was resumed is closed."
        return "No browser is open yet."

    @override
    def directive(self) -> str | None:
        return self._about.directive() if self._about is not None else None

    @override
    def state(self, path: str) -> str | None:
        if path == lint.PATH:
            return "\n".join(finish.better(self._build)) or "there is none"
        return self._about.state(path) if self._about is not None else None

    @override
    def instructions(self) -> Sequence[window.Part]:
        how = f"{prompt.prompt('build')}\n\nNode types, each with an example (`get_node_type` tells more):\n{reference.card()}"
        fix = [window.Part("fix", prompt.prompt("repair"))] if self._goal.repairs is not None else []
        return window.Part("build", how), *fix, window.Part("goal", self._wanted())

    def _wanted(self) -> str:
        if self._state.is_goal_given:
            return goal_text(self._goal, self._state.masker.names, reset=self._build.resets)
        # The beginning of a request stays the same when a message becomes the goal.
        header = self._state.history.header
        begun = header.build if header is not None else None
        goal = dataclasses.replace(self._goal, goal=UNSAID, url=begun.url if begun is not None else None)
        return goal_text(goal, self._state.masker.names, reset=self._build.resets)


def _some(ids: Sequence[str]) -> str:
    return f"{', '.join(ids[:NAMED])}{', …' if len(ids) > NAMED else ''}"


UNSAID = "what the person asks for in this conversation. Build only if they want a workflow, or another one than it is; else answer"
"""The goal in the instructions of a session that was given none: they begin alike whatever is said."""


RESET = (
    "a reset puts the site's data back before each whole run (`run_draft`, `finish`), so each run must do each action. On the bench do "
    "all up to an action, and leave the action to `run_draft`: the page after it stays on the bench, where the nodes that follow are written and tried"
)
"""What a reset means for the whole runs, as told to the model."""

AGAIN = (
    "each on the data that the time before left: do what is still to do (`when`, `route`), and check what is done. If a queue empties, an empty one is right "
    "the second time. What was already done while testing is named in `unproved` of `finish` with the reason, or shown by `run_draft` with other inputs"
)
"""What whole runs without a reset mean, as told to the model."""


def _with_type(value: Json) -> str:
    """Return an input's value; of a text that may be meant as another type also that type: it is text until one is declared."""
    kind = inputs.likely(value) if isinstance(value, str) else None
    return f"{value} (text; to compute with it or to compare it so, declare it as {kind})" if kind else f"{value}"


def goal_text(
    goal: Goal,
    names: hidden_names.HiddenNames = hidden_names.DEFAULT,
    declared: Collection[str] = (),
    *,
    reset: bool = False,
) -> str:
    """Return what is built; ``declared`` are the inputs whose types are known. ``reset``: the site's data are put back before each run."""
    lines = ["What to build", f"Goal: {goal.goal}"]
    base = header.given(goal).get(header.BASE)
    named = f" (inputs.{header.BASE} = {base})" if base is not None else ""
    lines += [f"Site: {goal.url}{named}"] if goal.url is not None else []
    for name, value in goal.inputs.items():
        shown = names.json(value, name)
        lines.append(f"Input {name}: {shown if name in declared else _with_type(shown)}")
    lines += [f"Secrets (their values are hidden): {', '.join(goal.secrets)}"] if goal.secrets else []
    times = "once" if goal.runs == 1 else f"{goal.runs} times"
    how = f"; {RESET}" if reset else f", {AGAIN}" if goal.runs > 1 else ""
    lines += [f"Proof: the whole draft passes {times}{how}", f"Side effects: {POLICIES[goal.policy]}"]
    return "\n".join(lines)
