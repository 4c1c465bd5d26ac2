"""The loop of a build: the model's turns, from the goal to an accepted `finish`, or to where it stops.

The model decides what to do: observe, write a few nodes, test them, continue. This module ensures that the build ends. One turn is a
request and every call of its answer, in order (``runtime.models.turns.turn``). Each is logged before the next begins. So a build
resumes where it stopped: after a crash, Ctrl-C, a budget limit or a question.
"""

from __future__ import annotations

import dataclasses

from director.conversation import reply
from director.proving import finish, repair_builds
from director.tools.build_context import BuildContext
from director.tools.toolbox import FINISH
from nodes.errors import ModelError, UsageError
from nodes.values import Json
from runtime.log import entries, threads

OPTIONS = reply.ReplyOptions(turns=60, an_answer=3600.0, max_output=16_000, left_open=True)

REMINDER = (
    f"Nothing is finished yet. Continue with the build; end it with `{FINISH}`, and ask the person with `ask_user`."
)
"""Message for a model that answers without a tool call."""

NOWHERE = frozenset({"agent-stuck", "build-stopped", "talk-turns"})
"""Codes of errors that mean that the build made no progress; the draft is left as far as it is."""

GO_ON = "Continue with the build."
"""The message for `--resume` without one, if the model had the last word or gave none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    done: bool  # True if the workflow does what was requested
    value: dict[str, Json]
    answer: str


class Build:
    def __init__(self, build: BuildContext, talk: reply.Talk) -> None:
        self._build, self._talk = build, talk

    async def to_its_end(self, word: str | None = None) -> Ended:
        """Begin or resume the build; ``word`` is a message of the person.

        Raises ModelError if the model makes no progress, BudgetReached, Paused, SetupError, LogError and Replaced. Completed work
        stays, and the build can be resumed.
        """
        await self._build.runs.settle()
        repair_builds.equip(self._build)
        if self._build.goal.repairs is not None and self._talk.untouched:
            await self._build.bench.take_over(self._build.goal.repairs.run)
        try:
            answer = await self._begun(word)
            while self._talk.ended is None:
                answer = await self._reminded(answer)
        except ModelError as error:
            if error.code in NOWHERE:
                # The draft is saved even so, for a person who continues by hand.
                raise error.replaced(evidence={**error.evidence, **self._left(error.message)}) from None
            raise
        value = self._talk.ended.value
        left: dict[str, Json] = value if isinstance(value, dict) else {}
        return Ended(bool(left.get("done", True)), left, answer)

    def _left(self, why: str) -> dict[str, Json]:
        """Return where the draft was left, or why it could not be: that error must not hide why the build ended."""
        try:
            left = finish.leave_partial(self._build, why)
        except UsageError as error:
            return {"draft": error.message}
        return {"draft": left["file"]} if left["file"] else {}

    async def _begun(self, word: str | None) -> str:
        if self._talk.untouched:
            goal = self._build.goal
            evidence = goal.repairs.evidence if goal.repairs is not None else None
            return await self._talk.say("\n\n".join(filter(None, (goal.goal, evidence, word))))
        if word:
            return await self._talk.say(word)
        found = await self._talk.go_on()
        return found if found is not None else await self._talk.say(GO_ON)

    async def _reminded(self, answer: str) -> str:
        """Remind a model that answers without a call to continue; a second time in a row is too much."""
        if self._was_reminded():
            raise ModelError(
                "build-stopped",
                "the model stopped building: it answered twice without asking for a tool",
                fix=f"continue with it: runops build --resume {self._build.writer.conversation.id}",
                evidence={"answer": answer[:1000]},
            )
        return await self._talk.remind(REMINDER)

    def _was_reminded(self) -> bool:
        said = self._build.writer.history.thread(entries.SESSION_THREAD).said
        words = [each for each in said if isinstance(each, entries.User | threads.Exchange)]
        before = words[-2] if len(words) > 1 else None
        return isinstance(before, entries.User) and self._build.writer.text_of(before) == REMINDER
