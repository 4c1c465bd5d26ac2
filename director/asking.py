"""``ask_user``: the only way in which a build asks its person something."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from director.tools import CHANGED, Kit
from director.workshop import Workshop
from nodes.errors import ModelError
from nodes.values import Json
from runtime import log, turn
from runtime.models.exchange import Tool

NAME = "ask_user"

LONGEST = 2_000
"""Characters of a question."""

MOST = 9
"""Choices of a question."""


class AskUser(Kit):
    """The tool."""

    def __init__(self, shop: Workshop) -> None:
        """``shop`` has the person."""
        self._shop = shop

    @property
    @override
    def tool(self) -> Tool:
        text: dict[str, Json] = {"type": "string"}
        fields: dict[str, Json] = {
            "question": text,
            "choices": {"type": ["array", "null"], "items": text, "description": "Short answers to choose from."},
        }
        schema: dict[str, Json] = {
            "type": "object",
            "properties": fields,
            "required": list[Json](fields),
            "additionalProperties": False,
        }
        return Tool(NAME, "Asks the person what neither the wish nor the site tells.", schema)

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
        question = str(arguments["question"]).strip()
        choices = [str(each).strip() for each in arguments.get("choices") or ()]
        if not question or len(question) > LONGEST or len(choices) > MOST or not all(choices):
            raise ModelError(
                "question-invalid",
                f"a question has 1 to {LONGEST:,} characters, and at most {MOST} choices, none of them empty",
                mend="ask again, in short",
            )
        answer = await self._shop.person.ask(question, choices, place=place.path, free=True)
        return turn.Outcome(answer, answer)


def kits(shop: Workshop) -> Sequence[Kit]:
    """The tools of asking."""
    return (AskUser(shop),)
