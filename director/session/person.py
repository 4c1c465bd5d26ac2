"""Asks the person of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from typing_extensions import override

from nodes.errors import Paused, UsageError
from nodes.values import Json
from runtime.log import entries, session
from runtime.log.writer import LogWriter

LONGEST = 20_000  # limit of an answer, in characters


class Person(Protocol):
    open: int = 0  # number of questions that wait for an answer

    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        """Return the answer: one of ``choices``, or free text if there are none or ``free`` is set.

        ``place`` is the path of the call that asks. Raises Paused ``question`` if no person is there: the session waits (exit 4), and the
        call is repeated once there is an answer.
        The caller marks page text in the question.
        """
        ...


class Nobody(Person):
    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        raise Paused(
            "question",
            question,
            fix="answer it: `runops build --resume last --answer TEXT`",
            evidence={"choices": list(choices)},
        )


class Remembering(Person):
    """Logs questions and answers, so that nothing is asked twice at the same place, even after a crash."""

    def __init__(self, writer: LogWriter[session.Session], asked: Person) -> None:
        self._writer, self._asked = writer, asked

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        masker = self._writer.masker
        shown, offered = masker.text(question), [masker.text(each) for each in choices]
        known = self._writer.history.asked(shown, place)
        if known is not None and known.answer is not None:
            return known.answer
        asked: dict[str, Json] = {"question": shown, "choices": list[Json](offered), "free": free, "place": place}
        self._writer.noted("asked", asked, entries.SESSION_THREAD)
        await self._writer.barrier()
        self.open += 1
        try:
            answer = await self._asked.ask(shown, offered, place=place, free=free)
        except Paused:
            self._writer.noted("paused", asked, entries.SESSION_THREAD)
            await self._writer.barrier()
            raise
        finally:
            self.open -= 1
        self._writer.noted("answered", {**asked, "answer": answer}, entries.SESSION_THREAD)
        await self._writer.barrier()
        return masker.text(answer)


async def answer(writer: LogWriter[session.Session], text: str) -> None:
    """Answer the question for which a session waits. Raises UsageError ``no-question``, ``bad-answer``."""
    found = writer.history.waits_for
    if found is None:
        raise UsageError(
            "no-question",
            f"session {writer.conversation.id} waits for no answer",
            fix=f"continue with it: `runops build --resume {writer.conversation.id}`",
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
    """Return the choice that was typed, by its number or text, or the free text; None if it is no valid answer."""
    typed = " ".join(text.split())
    for number, choice in enumerate(choices, 1):
        if typed.casefold() in (str(number), " ".join(choice.split()).casefold()):
            return choice
    begun = [each for each in choices if typed and each.casefold().startswith(typed.casefold())]
    if len(begun) == 1 and not free:
        return begun[0]
    return text.strip()[:LONGEST] if typed and (free or not choices) else None


def listed(choices: Sequence[str]) -> list[str]:
    return [f"{number} {choice}" for number, choice in enumerate(choices, 1)]


class Typing(Person):
    def __init__(self, show: Callable[[str], None], read: Callable[[], Awaitable[str | None]]) -> None:
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
