"""``ask_user``: the only tool with which a model asks the person a question."""

from __future__ import annotations

from typing_extensions import override

from director.tools.toolbox import TEXT, OfBuild, of, tool
from nodes.errors import ModelError
from nodes.values import Json
from runtime.models.turns import turn

NAME = "ask_user"

LONGEST = 2_000
MOST = 9

_CHOICES: dict[str, Json] = {"type": ["array", "null"], "items": TEXT}
ASK = tool(
    NAME,
    "Asks the person what neither the goal nor the site tells.",
    {"question": TEXT, "choices": of(_CHOICES, "Short answers to choose from.")},
)


class AskUser(OfBuild):
    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        question = str(arguments["question"]).strip()
        choices = [str(each).strip() for each in arguments.get("choices") or ()]
        if not question or len(question) > LONGEST or len(choices) > MOST or not all(choices):
            raise ModelError(
                "question-invalid",
                f"a question has 1 to {LONGEST:,} characters, and at most {MOST} choices, none of them empty",
                fix="ask again, in short",
            )
        # A line of the question must not look like one of RunOps, such as a choice or a command.
        question = "\n    ".join(filter(None, map(str.strip, question.splitlines())))
        choices = [" ".join(each.split()) for each in choices]
        answer = await self._build.person.ask(question, choices, place=place.path, free=True)
        return turn.Outcome(answer, answer)
