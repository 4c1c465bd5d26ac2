"""Renders the frame around the conversation in a session's request: instructions before it, session state after it.

The mode changes only the instructions: tools, state and conversation stay the same. The strategy decides how much of the state is shown.
The frame is rendered for each request, and not logged.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from importlib import resources

from director.draft import layout
from director.session import plan as plans
from director.session import variables
from director.session.state import SessionState
from director.session.subject import Subject
from runtime.context import window
from runtime.context.window import Part
from runtime.log import entries
from runtime.messages.messages import Tool
from runtime.observation import page_text

Knowledge = Callable[[str], Sequence[Part]]  # returns what is known about a question, best first

SHORT = 80  # characters of a node's configuration where there is little room
WANTED = frozenset({"goal", "directive"})
"""Instructions that a person or a file gave; the others are the same for every session."""


def nothing(_asked: str) -> Sequence[Part]:
    return ()


def around(
    mode: entries.Mode,
    limits: window.Limits,
    state: SessionState,
    subject: Subject,
    tools: Sequence[Tool],
    knowledge: Knowledge = nothing,
) -> window.RequestFrame:
    masked, ours = state.masker.text, state.masker.but_words.text

    def known(asked: str) -> Sequence[Part]:
        return [Part(masked(each.name), masked(each.text)) for each in knowledge(asked)]

    return window.RequestFrame(
        tuple(
            dataclasses.replace(each, text=(masked if each.name in WANTED else ours)(each.text))
            for each in _prefix(mode, subject)
        ),
        tuple(tools),
        tuple(_told(each, state) for each in _state(limits.strategy, state, subject)),
        known,
        Part("knowledge", prompt("knowledge")),
    )


def stands(state: SessionState, subject: Subject) -> Sequence[Part]:
    """Return how things stand, whatever the strategy: the goal, and the state in full."""
    goal = state.description or subject.description()
    parts = (*([Part("goal", goal)] if goal else []), *_state("injected", state, subject))
    return [_told(each, state) for each in parts]


@functools.cache
def prompt(name: str) -> str:
    return resources.files("director").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def _prefix(mode: entries.Mode, subject: Subject) -> Iterator[Part]:
    yield Part("mode", prompt(mode))
    yield Part("rules", prompt("rules"))
    yield Part("tools", prompt("tools"), on_tools=True)
    if mode != "chat":
        yield Part("persona", prompt("persona"))
    if mode == "agent":
        yield from subject.instructions()
    if mode == "run":
        yield Part("directive", subject.directive() or "RUN_DIRECTIVE\nThere is no run yet.")


def _state(strategy: window.Strategy, state: SessionState, subject: Subject) -> Iterator[Part]:
    if strategy == "clean":
        return
    shorter = (plans.as_text(state.plan, open_only=True),)
    plan = Part("plan", plans.as_text(state.plan), shorter=shorter, rest="`get_current_plan`")
    if strategy == "hybrid":
        yield Part("status", " ".join(subject.title.split()))
        if state.plan is not None:
            yield plan
        return
    yield plan
    yield Part("workflow", _workflow(subject), shorter=tuple(_shorter(subject)), rest="`get_workflow_nodes`")
    values = "\n".join(variables.render(variables.told(state, subject.variables())))
    # A variable may contain page text.
    told = page_text.fenced(values) if values else "(none has a value)"
    yield Part("variables", told, rest="`get_workflow_variables`")
    yield Part("browser state", subject.browser_state(), rest="`get_browser_state`")


def _workflow(subject: Subject, configuration: int = layout.CONFIGURATION, note: str = "") -> str:
    outline = subject.outline(configuration) or "(there is no workflow yet)"
    return "\n".join([*subject.facts(), *([note] if note else []), outline])


def _shorter(subject: Subject) -> Iterator[str]:
    """Yield the workflow with less of each node's configuration, then without it."""
    yield _workflow(subject, SHORT, f"(Of each configuration {SHORT} characters: `get_workflow_nodes` has the rest.)")
    yield _workflow(subject, 0, "(Without the configuration: `get_workflow_nodes` has it.)")


def _told(part: Part, state: SessionState) -> Part:
    """Return the part without secrets, and without values whose names say that they are secret."""

    def told(text: str) -> str:
        return state.masker.names.text(state.masker.text(text))

    return dataclasses.replace(part, text=told(part.text), shorter=tuple(map(told, part.shorter)))
