"""The loop of a build: the model's turns, from the goal to a `finish` that was accepted, or to where it stops.

You know what a build does: look, write a few nodes, try them, go on. All of that is the model's; what is enforced here is that it comes to an end. One
turn is a request and every call of its answer, in order (``runtime.models.turns.turn``); the log has each before the next begins, so that whoever takes the build up
again, after a crash, Ctrl-C, a budget or a question, goes on where it stood.
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

REMINDER = f"Nothing is finished yet. Go on with the build; end it with `{FINISH}`, and ask the person with `ask_user`."
"""What a model is told that answers without asking for a tool."""

NOWHERE = frozenset({"agent-stuck", "build-stopped", "talk-turns"})
"""Codes of errors after which a build got nowhere by itself: the draft is left as far as it came."""

GO_ON = "Go on with the build."
"""What a person's `--resume` says where the model has the last word, or gave none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """How a build ended by itself."""

    done: bool
    """Whether the workflow does what was asked for."""
    value: dict[str, Json]
    """What `finish` left."""
    answer: str
    """What the model said with it."""


class Build:
    """A build, in this process."""

    def __init__(self, build: BuildContext, talk: reply.Talk) -> None:
        """``talk`` has the tools of ``build``."""
        self._build, self._talk = build, talk

    async def to_its_end(self, word: str | None = None) -> Ended:
        """Begin the build, or go on with it; ``word`` is what the person says besides, then.

        Raises ModelError where the model gets nowhere, BudgetReached, Paused, SetupError, LogError and Replaced; what was done stands, and the build can be
        gone on with from there.
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
                # What there is of it is worth a file, for whoever goes on by hand.
                raise error.replaced(evidence={**error.evidence, **self._left(error.message)}) from None
            raise
        value = self._talk.ended.value
        left: dict[str, Json] = value if isinstance(value, dict) else {}
        return Ended(bool(left.get("done", True)), left, answer)

    def _left(self, why: str) -> dict[str, Json]:
        """Where the draft was left, if there is one, or why it could not be: that must not stand in the place of why the build ended."""
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
        """Tell a model that talks to go on; a second time in a row is too much."""
        if self._was_reminded():
            raise ModelError(
                "build-stopped",
                "the model stopped building: it answered twice without asking for a tool",
                fix=f"go on with it: runops build --resume {self._build.writer.conversation.id}",
                evidence={"answer": answer[:1000]},
            )
        return await self._talk.remind(REMINDER)

    def _was_reminded(self) -> bool:
        """Whether the last answer is one to the reminder."""
        said = self._build.writer.history.thread(entries.SESSION_THREAD).said
        words = [each for each in said if isinstance(each, entries.User | threads.Exchange)]
        before = words[-2] if len(words) > 1 else None
        return isinstance(before, entries.User) and self._build.writer.text_of(before) == REMINDER
