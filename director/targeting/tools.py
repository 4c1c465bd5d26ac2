"""``propose_target``: from an element that a model was shown to a target that stands in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from typing_extensions import override

from director import eyes
from director.targeting import candidates, fields, proof
from director.tools import CHANGED, Kit
from director.workshop import Workshop
from nodes.values import Json
from runtime import log, turn
from runtime.agents import refusals, telling
from runtime.models.exchange import Tool
from runtime.observing.tree import ACTING

NAME = "propose_target"


def kits(shop: Workshop) -> Sequence[Kit]:
    """The tools that propose targets."""
    return (Propose(shop),)


class Propose(Kit):
    """Proposes targets for an element, each proved on the page. It looks, and touches nothing."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop

    @property
    @override
    def tool(self) -> Tool:
        text: dict[str, Json] = {"type": "string"}
        perhaps: dict[str, Json] = {"type": ["string", "null"]}
        given: dict[str, Json] = {
            "tab": {**perhaps, "description": "As in inspect_tab."},
            "ref": text,
            "anchor": {**perhaps, "description": "Text of the row, card or part by which it is to be found."},
            "reason": text,
        }
        schema: dict[str, Json] = {
            "type": "object",
            "properties": given,
            "required": list[Json](given),
            "additionalProperties": False,
        }
        return Tool(
            NAME,
            "Targets for an element, each proved: one now, after reload, with more rows; of a row, card, table or text there with `fields` for extract.",
            schema,
        )

    @property
    @override
    def modes(self) -> frozenset[log.Mode]:
        return CHANGED

    @property
    @override
    def side_by_side(self) -> bool:
        return False

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        """The best target as YAML, the fields of its row where it is read, others behind it, with what was proved of each."""
        masker, sight = self._shop.pen.masker, cast("eyes.Eyes", self._shop.eyes)
        where, name = sight.place(cast("str | None", arguments["tab"]))
        anchor = cast("str | None", arguments["anchor"]) or None

        def usable(text: str) -> bool:
            return refusals.refusal(text, masker) is None

        async with sight.pointed(where, name, str(arguments["ref"])) as (pointed, element):
            page = sight.page(where, name)
            holds = None
            if element.role not in ACTING:
                holds = fields.read(await pointed.asked(fields.FIELDS), usable)
            proved = await proof.of(page, pointed, element.role, element.name, usable, anchor)
        what, fits = candidates.kind(element.role, pointed.facts)
        ours, theirs = candidates.told(proved, fields.told(holds) if holds is not None else ())
        told = "\n".join([f"{what}; fits: {fits}", *ours, telling.fenced("\n".join(theirs))])
        told = masker.text(told)
        return turn.Outcome(told, told)
