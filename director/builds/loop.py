"""The loop of a build: the model's turns, from the goal to an accepted `finish` or an early stop.

The model decides what to do; this module ensures that the build ends. One turn is a request and every call of its answer, in order
(``runtime.models.turns.turn``). Each is logged before the next begins, so a build resumes where it stopped: after a crash, Ctrl-C,
a budget limit or a question.
"""

from __future__ import annotations

import dataclasses
from typing import Any

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

NO_PROGRESS = frozenset({"agent-stuck", "build-stopped", "talk-turns"})
"""Codes of errors that mean that the build made no progress; the unfinished draft is saved."""

CONTINUE = "Continue with the build."
"""The message sent by `--resume` without a message, if the model has nothing left to answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    done: bool  # True if the workflow does what was requested
    value: dict[str, Json]
    answer: str


async def to_its_end(build: BuildContext, talk: reply.Talk, word: str | None = None) -> Ended:
    """Begin or resume the build, and run it to its end; ``word`` is a message of the person.

    Raises ModelError if the model makes no progress, BudgetReached, Paused, SetupError, LogError and Replaced. Completed work
    stays, and the build can be resumed.
    """
    repair_builds.equip(build)
    if build.goal.repairs is not None and talk.untouched:
        await build.bench.take_over(build.goal.repairs.run)
    try:
        answer = await _first_answer(build, talk, word)
        while talk.ended is None:
            answer = await _answer_again(build, talk, answer)
    except ModelError as error:
        if error.code not in NO_PROGRESS:
            raise
        # The draft is saved for a person who continues by hand. A failure to save must not hide why the build ended.
        try:
            left = finish.leave_partial(build, error.message)["file"]
        except UsageError as unsaved:
            left = unsaved.message
        raise error.replaced(evidence={**error.evidence, **({"draft": left} if left else {})}) from None
    ended: Any = talk.ended.value
    value: dict[str, Json] = ended if isinstance(ended, dict) else {}
    return Ended(bool(value.get("done", True)), value, answer)


async def _first_answer(build: BuildContext, talk: reply.Talk, word: str | None) -> str:
    if talk.untouched:
        evidence = build.goal.repairs.evidence if build.goal.repairs is not None else None
        return await talk.say("\n\n".join(filter(None, (build.goal.goal, evidence, word))))
    if word:
        return await talk.say(word)
    found = await talk.go_on()
    return found if found is not None else await talk.say(CONTINUE)


async def _answer_again(build: BuildContext, talk: reply.Talk, answer: str) -> str:
    """Remind a model that answered without a call. Raises ModelError ``build-stopped`` for the second time in a row."""
    writer = build.writer
    said = writer.history.thread(entries.SESSION_THREAD).said
    before = [each for each in said if isinstance(each, entries.User | threads.Exchange)][-2:-1]
    if any(isinstance(each, entries.User) and writer.text_of(each) == REMINDER for each in before):
        raise ModelError(
            "build-stopped",
            "the model stopped building: it answered twice without asking for a tool",
            fix=f"continue with it: runops build --resume {writer.conversation.id}",
            evidence={"answer": answer[:1000]},
        )
    return await talk.remind(REMINDER)
