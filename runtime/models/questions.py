"""One question to a model. If the answer does not match the wanted output, the model is asked to correct it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from nodes.errors import ModelError
from nodes.schema.output import Mismatch, Output
from nodes.values import Json
from runtime.log.writer import Fold, LogWriter, items_of_answer
from runtime.messages.messages import Item, Message, Request
from runtime.models import requests, run_models

if TYPE_CHECKING:
    from nodes.budgets import Budget

REPAIRS = 2  # number of corrections that a model may try


class StepModel:
    """The model of one attempt of a step. Implements ``nodes.ports.Model``."""

    def __init__(
        self,
        models: run_models.RunModels,
        writer: LogWriter[Fold],
        requester: requests.RequestScope,
        hide: Callable[[str], str] = str,
    ) -> None:
        """``hide`` returns a text without the values that the model must not see."""
        self._models, self._writer, self._requester = models, writer, requester
        self._hide = hide

    async def answer(
        self, instructions: str, question: str, output: Output, *, model: str | None, max_output: int, budget: Budget
    ) -> Json:
        """Return the value. Raises ModelError, SetupError, BudgetReached, AuthorError ``secret-in-request`` and ``cassette-miss``."""
        thread = requests.Exchanges(self._models, self._writer, self._requester, model, budget)
        wanted = thread.model()
        messages: list[Item] = []
        instructions, said = self._hide(instructions), self._hide(question)
        for turn in range(REPAIRS + 1):
            messages.append(Message("user", said))
            thread.say(said)
            request = Request(wanted, instructions, tuple(messages), output.schema(), max_output, output.strict)
            answer = await thread.exchange(request)
            try:
                return await requests.aside(len(answer.text), functools.partial(output.read, answer.text))
            except Mismatch as mismatch:
                said = correction(mismatch)
                if turn == REPAIRS:
                    first = mismatch.args[0].splitlines()[0]
                    raise ModelError(
                        "model-output-invalid",
                        f"the model's answer does not fit `output`, also after it was asked {REPAIRS} times to fix it: {first}",
                        fix="say in `instruction` what is wanted, make `output` simpler, or choose another model",
                        evidence={"answer": answer.text[:1000], "problems": [*str(mismatch).splitlines()]},
                    ) from None
            messages += items_of_answer(answer.text, (), answer.thoughts)
        raise AssertionError("the last turn returns or raises")


def correction(mismatch: Mismatch) -> str:
    """Return the message to the model about an answer that does not match."""
    return f"Your answer does not fit the schema:\n{mismatch}\nAnswer again, with the whole corrected JSON and nothing else."
