"""The tool of the bench, as a model calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from director import deeds, tools
from director.bench import benches, telling
from nodes.values import Json
from runtime import log, secrets, turn
from runtime.models.exchange import Tool

if TYPE_CHECKING:
    from director.workshop import Workshop

NAME = "execute_nodes"

_PERHAPS: dict[str, Json] = {"type": ["string", "null"]}

_FIELDS: dict[str, Json] = {
    "nodes": {"type": "string", "description": "`all`, `3`, `1-3,10`, ids, `login..submit`, or step paths."},
    "mode": {
        "type": ["string", "null"],
        "enum": ["flow", "isolated", None],
        "description": "In a row (default), or each from its own state.",
    },
    "from": {
        "type": ["string", "null"],
        "enum": ["before", "live", "fresh", None],
        "description": "The page right before the first (default), as it stands, or a new browser.",
    },
    "item": {**_PERHAPS, "description": "In a loop: key or number of the item; null is the first."},
    "reason": {"type": "string"},
}


def kits(shop: Workshop) -> Sequence[tools.Kit]:
    """The tools of the bench."""
    return (Execute(shop),)


class Execute(tools.Kit):
    """Runs nodes of the draft, each once, and tells what became of each."""

    def __init__(self, shop: Workshop) -> None:
        """Nothing is opened yet."""
        self._shop = shop

    @property
    @override
    def tool(self) -> Tool:
        schema: dict[str, Json] = {
            "type": "object",
            "properties": _FIELDS,
            "required": list[Json](_FIELDS),
            "additionalProperties": False,
        }
        return Tool(NAME, "Runs nodes of the draft on the bench and tells status, value, error and page.", schema)

    @property
    @override
    def modes(self) -> frozenset[log.Mode]:
        return tools.CHANGED

    @property
    @override
    def side_by_side(self) -> bool:
        return False

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        async def work(call: log.Call) -> turn.Outcome:
            given: dict[str, Any] = arguments
            wanted = benches.Wanted(
                str(given["nodes"]),
                given["mode"] or "flow",
                given["from"] or "before",
                given["item"],
                str(given["reason"]),
            )
            bench = self._shop.bench
            assert isinstance(bench, benches.Bench), "the bench of a build"
            told = self._masked(telling.told(await bench.execute(call, wanted)))
            bench.told(told)
            return turn.Outcome(told, told)

        return await deeds.done(self._shop.pen, NAME, arguments, place, work)

    @override
    def find_out(self, call: log.Call) -> turn.Outcome | None:
        if call.action != NAME:
            return None
        shop = self._shop
        told = self._masked(telling.found_out({run: shop.runs.past(run) for run in shop.runs.of(call)}))
        return turn.Outcome(told, told)

    def _masked(self, text: str) -> str:
        return secrets.Masker(self._shop.known()).text(self._shop.pen.masker.text(text))
