"""The person of a session, as its tools ask them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from typing_extensions import override

from nodes.errors import Paused


class Person(Protocol):
    """Who wants the workflow."""

    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "") -> str:
        """What they answer; one of ``choices``, where there are any, or words of their own. Page text in the question is marked as such by who asks.

        ``place`` is the path of the call that asks. Raises Paused ``question`` where nobody is there: the session waits with it (exit 4), and asks again,
        with the answer there, once somebody gave one.
        """
        ...


class Nobody(Person):
    """A session without a terminal, or with ``--yes``: a question waits."""

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "") -> str:
        raise Paused(
            "question",
            question,
            mend="answer it: `runops build --resume last --answer TEXT`",
            evidence={"choices": list(choices)},
        )
