"""The person of a session, as its tools ask them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from typing_extensions import override

from nodes.errors import Paused, UsageError
from nodes.values import Json
from runtime.log import entries, session
from runtime.log.writer import LogWriter

LONGEST = 20_000
"""Characters of an answer."""


class Person(Protocol):
    """Who wants the workflow."""

    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        """What they answer: one of ``choices``, where there are any; words of their own where there are none, or where it is ``free``.

        ``place`` is the path of the call that asks. Raises Paused ``question`` where nobody is there: the session waits with it (exit 4), and asks again,
        with the answer there, once somebody gave one. Page text in the question is marked as such by who asks.
        """
        ...


class Nobody(Person):
    """A session without a terminal, or with ``--yes``: a question waits."""

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        raise Paused(
            "question",
            question,
            fix="answer it: `runops build --resume last --answer TEXT`",
            evidence={"choices": list(choices)},
        )


class Remembering(Person):
    """Keeps in the session's log what was asked and answered: nobody is asked the same twice at the same place, also not after a crash."""

    def __init__(self, writer: LogWriter[session.Session], asked: Person) -> None:
        """``asked`` is who answers what has no answer yet."""
        self._writer, self._asked = writer, asked

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        masker = self._writer.masker
        shown, offered = masker.text(question), [masker.text(each) for each in choices]
        known = self._writer.history.asked(shown, place)
        if known is not None and known.answer is not None:
            return known.answer
        asked: dict[str, Json] = {"question": shown, "choices": list[Json](offered), "free": free, "place": place}
        try:
            answer = await self._asked.ask(shown, offered, place=place, free=free)
        except Paused:
            self._writer.noted("paused", asked, entries.SESSION_THREAD)
            await self._writer.barrier()
            raise
        self._writer.noted("answered", {**asked, "answer": answer}, entries.SESSION_THREAD)
        await self._writer.barrier()
        return masker.text(answer)


async def answer(writer: LogWriter[session.Session], text: str) -> None:
    """Answer the question that a session waits with. Raises UsageError ``no-question``, ``bad-answer``."""
    found = writer.history.waits_for
    if found is None:
        raise UsageError(
            "no-question",
            f"session {writer.conversation.id} waits for no answer",
            fix=f"go on with it: `runops build --resume {writer.conversation.id}`",
        )
    meant = meaning(text, found.choices, free=found.free)
    if meant is None:
        raise UsageError(
            "bad-answer",
            f"{text[:80]!r} is none of the choices",
            fix=f"answer with one of: {', '.join(listed(found.choices))}",
            evidence={"question": found.question},
        )
    asked: dict[str, Json] = {
        "question": found.question,
        "choices": list[Json](found.choices),
        "free": found.free,
        "place": found.place,
    }
    writer.noted("answered", {**asked, "answer": meant}, entries.SESSION_THREAD)
    await writer.barrier()


def meaning(text: str, choices: Sequence[str], *, free: bool) -> str | None:
    """What is meant by what somebody has typed: a choice, by its number or its text, or their own words; None where it is nothing that was asked for."""
    typed = " ".join(text.split())
    for number, choice in enumerate(choices, 1):
        if typed.casefold() in (str(number), " ".join(choice.split()).casefold()):
            return choice
    begun = [each for each in choices if typed and each.casefold().startswith(typed.casefold())]
    if len(begun) == 1 and not free:
        return begun[0]
    return text.strip()[:LONGEST] if typed and (free or not choices) else None


def listed(choices: Sequence[str]) -> list[str]:
    """The choices with their numbers."""
    return [f"{number} {choice}" for number, choice in enumerate(choices, 1)]


class Typing(Person):
    """Somebody at a terminal."""

    def __init__(self, show: Callable[[str], None], read: Callable[[], Awaitable[str | None]]) -> None:
        """``show`` shows lines; ``read`` gives the next line that is typed, None where no more comes."""
        self._show, self._read = show, read

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        self._show("\n".join([question, *(f"  {each}" for each in listed(choices))]))
        while True:
            typed = await self._read()
            if typed is None:
                return await Nobody().ask(question, choices, place=place, free=free)
            meant = meaning(typed, choices, free=free)
            if meant is not None:
                return meant
            if typed.strip():
                self._show(f"Type one of: {', '.join(listed(choices))}")
