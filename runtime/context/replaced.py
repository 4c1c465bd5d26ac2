"""Arguments of calls whose content a later call has replaced: they leave the window, and a pointer stays."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from nodes.values import Json
from runtime.messages import estimates
from runtime.messages.messages import ToolCall

PATH = "@state/call/"  # prefix of the path of a call's arguments, by its id

When = Literal["now", "later"]
"""``now``: it stands elsewhere in the request; ``later``: once the call is not recent, so that a request begins like the one before."""


@dataclasses.dataclass(frozen=True, slots=True)
class Calls:
    """The calls of an answer, whole and with pointers in place of the arguments that are replaced ``now``, and ``later``."""

    whole: tuple[ToolCall, ...]
    now: tuple[ToolCall, ...]
    later: tuple[ToolCall, ...]

    def saved(self, calls: Sequence[ToolCall]) -> tuple[int, int]:
        """Return the tokens and characters by which ``calls`` are shorter than the whole ones."""
        pairs = [(one, other) for one, other in zip(self.whole, calls, strict=True) if one is not other]
        tokens = sum(estimates.of_item(one) - estimates.of_item(other) for one, other in pairs)
        return tokens, sum(len(one.arguments) - len(other.arguments) for one, other in pairs)


class Replaced:
    def __init__(self, contents: Mapping[str, str], when: Callable[[str], When | None]) -> None:
        """``contents`` names, by tool, the argument that may be replaced; ``when`` says of the id of a call since when it is."""
        self._contents, self._when = contents, when
        self._shorter: dict[str, ToolCall] = {}

    def may(self, tool: str) -> bool:
        return tool in self._contents

    def calls(self, whole: Sequence[ToolCall]) -> Calls:
        """Return the calls of an answer."""
        since = [self._when(each.id) if self.may(each.name) else None for each in whole]
        shorter = [self._pointed(each) if when is not None else each for each, when in zip(whole, since, strict=True)]
        now = (short if when == "now" else each for each, short, when in zip(whole, shorter, since, strict=True))
        return Calls(tuple(whole), tuple(now), tuple(shorter))

    def _pointed(self, call: ToolCall) -> ToolCall:
        """Return the call with a pointer in its arguments, which stay JSON; the call itself where that is not shorter."""
        if call.id not in self._shorter:
            self._shorter[call.id] = _pointed(call, self._contents[call.name])
        return self._shorter[call.id]


def _pointed(call: ToolCall, content: str) -> ToolCall:
    try:
        given: Json = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    if not isinstance(given, dict) or content not in given:
        return call
    size = len(json.dumps(given[content], ensure_ascii=False))
    kept = {name: each for name, each in given.items() if name != content}
    arguments = json.dumps(
        {**kept, "left_out": f"{content}, {size} characters, kept at {PATH}{call.id}"}, ensure_ascii=False
    )
    shorter = dataclasses.replace(call, arguments=arguments)
    return (
        shorter
        if estimates.of_item(shorter) < estimates.of_item(call) and len(arguments) < len(call.arguments)
        else call
    )


NOTHING = Replaced({}, lambda _asked: None)
