"""Tools of a session, and the toolbox of one model, which offers the same tools in every mode and refuses those not allowed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from typing_extensions import override

from director.session import state_paths
from director.session.events import Listener
from director.session.state import SessionState
from director.tools import barrier
from nodes.errors import ModelError, RunOpsError
from nodes.values import Json
from runtime.log import entries
from runtime.messages.messages import Tool, ToolCall
from runtime.models.turns import call_checks, turn
from runtime.observation import page_text

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

LONGEST = 6_000
"""Limit of a call's result as shown to a model, in characters. A longer one is shown by its beginning and the path of the rest."""

BEGINNING = 4_000
FINISH = "finish"
READ: frozenset[entries.Mode] = frozenset({"chat", "agent", "run"})
KEPT: frozenset[entries.Mode] = frozenset({"chat", "agent"})
CHANGED: frozenset[entries.Mode] = frozenset({"agent"})
"""The modes that allow a tool that reads (``READ``), that keeps a value (``KEPT``), or that changes something (``CHANGED``)."""


Kind = Literal["read", "note", "edit", "scout", "work"]
"""What a tool changes: nothing, the plan or description, the draft, a page beside the draft; ``work`` uses or changes all of these."""

NEEDS: Mapping[Kind, frozenset[Kind]] = {
    "read": frozenset(),
    "note": frozenset({"edit", "scout", "work"}),
    "edit": frozenset({"work"}),
    "scout": frozenset({"scout"}),
    "work": frozenset({"edit", "work"}),
}
"""A call is not done if one of these kinds failed before it in the same answer. The draft and its bench have nothing of a page beside them."""


class Toolset:
    """One tool and its implementation."""

    side_by_side = False  # True if consecutive calls of it run concurrently
    kind: Kind = "work"

    def __init__(self, offered: Tool, modes: frozenset[entries.Mode]) -> None:
        """``offered`` describes the tool to the model; ``modes`` are those in which it may be used."""
        self.tool, self.modes = offered, modes
        if modes == READ:
            self.kind = "read"

    @property
    def reads(self) -> bool:
        """True if it changes nothing."""
        return self.modes == READ

    def needs(self, arguments: Mapping[str, Json], failed: str, theirs: Mapping[str, Json]) -> bool:
        """Return whether a call needs one of the same kind that failed, or stopped: of the tool ``failed``, with ``theirs`` as arguments."""
        return False

    def stopped(self, asked: ToolCall) -> bool:
        """Return whether a call that reported no error stopped half way, so that calls of its kind may lack what they need."""
        return False

    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        """Execute a call. A mistake of the model is an outcome with an error, or a RunOpsError. After a crash the ``value`` is shown."""
        raise NotImplementedError

    def outcome_of_open_call(self, call: entries.Call) -> turn.Outcome | None:
        """Return the outcome of a call that a crash left open; None if it is unknown, or the call is another tool's."""
        return self.interrupted_outcome(call) if call.action == self.tool.name else None

    def interrupted_outcome(self, _call: entries.Call) -> turn.Outcome | None:
        """Return the outcome of a call of this tool that a crash left open; None if it cannot have done anything."""
        return None


class Simple(Toolset):
    def __init__(
        self,
        offered: Tool,
        modes: frozenset[entries.Mode],
        do: Callable[[dict[str, Json]], str],
        kind: Kind | None = None,
    ) -> None:
        super().__init__(offered, modes)
        self._do, self.kind = do, kind or self.kind

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        text = self._do(arguments)
        return turn.Outcome(text, text)


class OfBuild(Toolset):
    """A tool of a build, by default allowed in the modes that do work."""

    def __init__(self, build: BuildContext, offered: Tool, modes: frozenset[entries.Mode] = CHANGED) -> None:
        super().__init__(offered, modes)
        self._build = build


class ModelTools(turn.Tools):
    def __init__(self, state: SessionState, listener: Listener, toolsets: Sequence[Toolset]) -> None:
        self._state, self._listener = state, listener
        self.toolsets: Mapping[str, Toolset] = {each.tool.name: each for each in toolsets}

    @property
    @override
    def offered(self) -> Sequence[Tool]:
        return tuple(each.tool for each in self.toolsets.values())

    @property
    @override
    def final(self) -> Collection[str]:
        return (FINISH,)

    @property
    @override
    def side_by_side(self) -> Collection[str]:
        return frozenset(name for name, each in self.toolsets.items() if each.side_by_side)

    @property
    def reads(self) -> Collection[str]:
        return frozenset(name for name, each in self.toolsets.items() if each.reads)

    @override
    def needs(self, asked: ToolCall, earlier: turn.Done) -> bool:
        mine, theirs = self.toolsets.get(asked.name), self.toolsets.get(earlier.asked.name)
        failed = earlier.error is not None
        if mine is None or theirs is None:
            return failed and (mine is None or mine.kind != "read")
        if failed and not mine.kind == theirs.kind == "edit":
            return theirs.kind in NEEDS[mine.kind]
        if not failed and not (mine.kind == theirs.kind and theirs.stopped(earlier.asked)):
            return False
        given, other = (call_checks.arguments(each, self.offered) for each in (asked, earlier.asked))
        return isinstance(given, dict) and isinstance(other, dict) and mine.needs(given, earlier.asked.name, other)

    @override
    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        self._listener.called(place.path, asked.name, self._state.masker.text(asked.arguments))
        outcome = await self._outcome(self.toolsets[asked.name], arguments, place)
        shown = self._state.masker.names.text(outcome.text)
        text = self._bounded(shown, place) if asked.name != state_paths.NAME else shown
        self._listener.done(place.path, self._state.masker.text(text), failed=outcome.error is not None)
        return dataclasses.replace(outcome, text=text)

    def refused(self, asked: ToolCall, place: turn.Place, text: str) -> None:
        masker = self._state.masker
        self._listener.called(place.path, asked.name, masker.text(asked.arguments))
        self._listener.done(place.path, masker.text(text), failed=True)

    async def _outcome(self, toolset: Toolset, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        try:
            self._refuse(toolset)
            return await toolset.take(arguments, place)
        except RunOpsError as error:
            # These errors end the session's work: the log is lost or has a new owner, a budget is used up, a person is asked.
            if error.who in barrier.ENDS:
                raise
            return turn.Outcome(call_checks.render_error(error.as_json()), error=error.as_json())

    def _refuse(self, toolset: Toolset) -> None:
        mode = self._state.history.mode
        if mode not in toolset.modes:
            allowed = " or ".join(f"`/mode {each}`" for each in sorted(toolset.modes))
            raise ModelError(
                "tool-not-in-mode",
                f"`{toolset.tool.name}` cannot be used in mode {mode}",
                fix=f"tell the person what you would do; they allow it with {allowed}",
            )

    def _bounded(self, text: str, place: turn.Place) -> str:
        """Return the text as shown: whole, or its beginning and the path of the rest. The call's value is always whole."""
        if len(text) <= LONGEST:
            return text
        where = f"@state/{self._state.conversation}/{place.path}"
        begins = text[:BEGINNING]
        if begins.rfind(page_text.BEGIN) > begins.rfind(page_text.END):
            begins = f"{begins}\n{page_text.END}"
        return f"{begins}\n… ({len(text):,} characters in all; read on: `read_state` {where} from {BEGINNING})"

    @override
    def render_done(self, asked: ToolCall, result: entries.Result) -> str:
        if result.error is not None:
            return call_checks.render_error(result.error)
        value = self._state.writer.value_of(result)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = self._state.masker.names.text(text)
        call = self._state.history.actions[result.call].call
        return self._bounded(text, turn.Place(0, call.path, call.thread)) if asked.name != state_paths.NAME else text


TEXT: dict[str, Json] = {"type": "string"}
PERHAPS: dict[str, Json] = {"type": ["string", "null"]}
NUMBER: dict[str, Json] = {"type": ["integer", "null"]}
FLAG: dict[str, Json] = {"type": ["boolean", "null"]}


def of(schema: dict[str, Json], description: str) -> dict[str, Json]:
    return {**schema, "description": description}


REASON = TEXT  # its name says what it is: each word here is sent with every request


def fields(properties: dict[str, dict[str, Json]]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list[Json](properties),
        "additionalProperties": False,
    }


def each(items: dict[str, Json]) -> dict[str, Json]:
    return {"type": "array", "items": items}


def tool(name: str, description: str, properties: dict[str, dict[str, Json]]) -> Tool:
    return Tool(name, description, fields(properties))
