"""What one attempt of a step has with a model: the thread of its questions and answers, each request afforded, announced, answered, written down.

The order of a request: known already → afforded → announced, and on the disk → sent → its answer on the disk → read. So a process may die anywhere:
what was announced counts against the budget, and what was answered is not paid again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import tenacity

from nodes.errors import AuthorError, ModelError
from nodes.outputs import Misfit, Output
from nodes.values import Json
from runtime import journal, log
from runtime.crashes import CrashPoint, crash_point
from runtime.models import budgets, choosing, estimates, supply
from runtime.models.exchange import Answer, Message, Request, Usage
from runtime.models.failures import Failed

if TYPE_CHECKING:
    from nodes.budgets import Budget
    from runtime import model

_Result = TypeVar("_Result")

TRIES = 5
"""How often one request is sent, where it may go right another time."""

REPAIRS = 2
"""How often a model may mend an answer that does not fit."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before a request is sent again, where the server does not say how long: doubled each time, and drawn at random below that."""

POLL_SECONDS, SLOWEST_POLL = 0.5, 5.0
"""How often a response in the background is asked for: half as often again each time."""

AT_ONCE = 20_000
"""Characters of a request or an answer up to which it is counted and read in no time."""

TOLD_EVERY = 200
"""Characters of an answer between two words about it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Asker:
    """The step that asks."""

    call: log.Call
    role: choosing.Role
    left: Callable[[], float]
    """Seconds that the attempt has left."""
    tell: Callable[[str], None]
    """Says what is waited for."""


class StepModel:
    """A model as one attempt of a step sees it. Implements ``nodes.ports.Model``."""

    def __init__(
        self,
        models: supply.Supply,
        pen: journal.Journal,
        call: log.Call,
        *,
        role: choosing.Role,
        left: Callable[[], float],
        tell: Callable[[str], None],
    ) -> None:
        """``call`` is written."""
        self._models, self._pen = models, pen
        self._asker = Asker(call, role, left, tell)

    async def answer(
        self, instructions: str, question: str, output: Output, *, model: str | None, max_output: int, budget: Budget
    ) -> Json:
        """The value that the model gives, in a thread of its own."""
        conversation = Conversation(self._models, self._pen, self._asker, model, budget)
        return await conversation.answer(instructions, question, output, max_output)


class Conversation:
    """One attempt's thread with a model."""

    def __init__(
        self, models: supply.Supply, pen: journal.Journal, asker: Asker, model: str | None, budget: Budget
    ) -> None:
        """``model`` is the one that the node names itself. Nothing is written or sent yet."""
        self._named = model
        self._budget = budget
        self._asked = ""
        """The model of the last request."""
        self._models = models
        self._pen = pen
        self._asker = asker
        self._path = asker.call.path
        self._thread = log.model_thread(asker.call.call)
        self._previous: str | None = None
        """The id of the last response, where the server keeps it."""
        self._begun = 0.0

    async def answer(self, instructions: str, question: str, output: Output, max_output: int) -> Json:
        """The value that the model gives, of the kind that ``output`` says; an answer that does not fit is given back to it to be mended.

        Raises ModelError, SetupError, BudgetReached, AuthorError ``secret-in-request`` and ``cassette-miss``.
        """
        wanted = self._models.model(self._asker.role, self._named, self._pen.history.ledger.exchanges)
        messages: list[Message] = []
        said = question
        for turn in range(REPAIRS + 1):
            messages.append(Message("user", said))
            self._pen.said(log.User(thread=self._thread), said, self._path)
            request = Request(wanted, instructions, tuple(messages), output.schema(), max_output, output.strict)
            answer = await self._exchange(request)
            try:
                return await _aside(len(answer.text), functools.partial(output.read, answer.text))
            except Misfit as misfit:
                said = correction(misfit)
                if turn == REPAIRS:
                    raise _unfit(answer, misfit) from None
            messages.append(Message("assistant", answer.text or NOTHING))
        raise AssertionError("the last turn returns or raises")

    async def _exchange(self, request: Request) -> Answer:
        self._refuse_secrets(request)
        ledger = self._pen.history.ledger
        key = request.key
        earlier = self._pen.history.threads_that_count(self._path)
        if (known := ledger.answer(earlier, key)) is not None:
            answer = self._recorded(known)
            self._write(answer, key, "log", usage=known.usage)
            return answer
        number = ledger.exchanges
        if self._models.player is not None:
            answer = self._models.player.answer(number, self._path, request)
            self._write(answer, key, "cassette")
            return answer
        answer = await self._waited_for(ledger.waiting(earlier, key), key, number, request)
        return answer or await self._ask(request, key, number)

    def _refuse_secrets(self, request: Request) -> None:
        masker = self._pen.masker
        texts = [request.instructions, *(each.text for each in request.items if isinstance(each, Message))]
        if any(masker.text(text) != text for text in texts) or masker.json(request.schema) != request.schema:
            raise AuthorError(
                "secret-in-request",
                "a secret of the run stands in what the model would be sent, and secrets are sent to no model",
                mend="leave the value out that holds it; a model can do without",
            )

    def _recorded(self, entry: log.Assistant) -> Answer:
        self._previous = entry.response if self._models.chains else None
        usage = Usage(**entry.usage.model_dump()) if entry.usage is not None else None
        return Answer(self._pen.text_of(entry), usage, entry.model, entry.response or "")

    # One request, until it is answered or given up.

    async def _ask(self, request: Request, key: str, number: int) -> Answer:
        client = self._models.client()
        size = sum(len(each.text) for each in request.items if isinstance(each, Message))
        raw = await _aside(size, functools.partial(estimates.tokens, request))
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(self._may_go_right),
            wait=_wait,
            stop=self._is_enough,
            before_sleep=self._again,
            sleep=asyncio.sleep,
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    answer = await self._send(client, request, raw, key, attempt.retry_state.attempt_number)
                    self._take(answer, key, number, request)
                    return answer
        except Failed as failed:
            self._note_failure(failed, None)
            raise failed.error from None
        raise AssertionError("a request is answered or fails")

    async def _send(self, client: model.Client, request: Request, raw: int, key: str, tried: int) -> Answer:
        """Announce it, and send it. Raises BudgetReached before that, Failed after."""
        from runtime import model

        estimate = self._models.estimate(request, raw, self._pen.history.ledger)
        affordable = self._afford(estimate, request)
        seconds = min(self._models.seconds, self._asker.left(), affordable)
        self._asked = request.model
        self._pen.noted(
            "requested",
            {
                "key": key,
                "model": request.model,
                "estimate": estimate,
                "raw": raw,
                "limit": request.max_output,
                "seconds": round(seconds, 3),
                "try": tried,
            },
            self._thread,
        )
        self._pen.barrier()
        crash_point(CrashPoint.REQUEST_SYNCED)
        self._begun = time.monotonic()
        self._asker.tell("the model to answer" if tried == 1 else f"the model to answer, at the {_th(tried)} try")
        manner = model.Manner(store=self._models.store, previous=self._previous)
        if not self._models.background:
            return await client.ask(request, seconds, manner, self._told())
        response = await client.submit(request, seconds, manner)
        self._pen.noted("submitted", {"key": key, "response": response}, self._thread)
        self._pen.barrier()
        crash_point(CrashPoint.SUBMISSION_SYNCED)
        return await self._polled(client, response, affordable)

    async def _waited_for(self, response: str | None, key: str, number: int, request: Request) -> Answer | None:
        """The answer that an earlier process asked for in the background and never had; None where it cannot be had any more."""
        if response is None:
            return None
        self._pen.noted("submitted", {"key": key, "response": response}, self._thread)
        self._begun, self._asked = time.monotonic(), request.model
        self._asker.tell("the answer that was asked for before the crash")
        try:
            answer = await self._polled(self._models.client(), response, self._affordable())
        except Failed as failed:
            self._note_failure(failed, None if failed.pending else 0.0)
            if failed.pending:
                raise failed.error from None
            return None
        self._take(answer, key, number, request)
        return answer

    async def _polled(self, client: model.Client, response: str, affordable: float) -> Answer:
        """Ask for a background response until it is there, for as many seconds as the budgets leave; it is asked for once at least.

        It is cancelled where nobody will want it any more: not where we are killed, and not where it may be there all the same. Raises Failed.
        """
        delay = POLL_SECONDS
        try:
            while True:
                try:
                    answer = await client.fetch(response, self._models.seconds)
                    if answer is not None:
                        return answer
                except Failed as failed:
                    # What cannot be fetched this time is not lost: to ask anew would be to pay twice.
                    if failed.over or failed.error.code == "model-unknown":
                        raise
                    if not failed.again or self._asker.left() <= delay:
                        failed.pending, failed.again = True, False
                        raise
                if self._asker.left() <= delay:
                    raise Failed(_too_late())
                left = affordable - (time.monotonic() - self._begun)
                if left <= 0:
                    # Another try is refused, by the budget and in its words.
                    raise Failed(_too_late(), again=True)
                await asyncio.sleep(min(delay, left))
                delay = min(delay * 1.5, SLOWEST_POLL)
        except (Failed, asyncio.CancelledError) as ended:
            if not (isinstance(ended, Failed) and (ended.over or ended.pending)):
                await client.cancel(response)
            raise

    def _afford(self, estimate: int, request: Request) -> float:
        """Seconds that the budgets leave for it. Raises BudgetReached."""
        return self._models.afford(self._pen.history.ledger, budgets.Asked(self._path, self._budget), request, estimate)

    def _affordable(self) -> float:
        """Seconds that the budgets leave for what was asked for already."""
        return self._models.left_seconds(self._pen.history.ledger, budgets.Asked(self._path, self._budget))

    # What becomes of it.

    def _take(self, answer: Answer, key: str, number: int, request: Request) -> None:
        crash_point(CrashPoint.ANSWER_CAME)
        if self._models.recorder is not None:
            self._models.recorder.take(number, self._path, request, answer)
        self._write(answer, key, "model", seconds=time.monotonic() - self._begun)
        self._previous = answer.id or None if self._models.chains else None

    def _write(
        self,
        answer: Answer,
        key: str,
        source: log.Source,
        *,
        seconds: float | None = None,
        usage: log.Usage | None = None,
    ) -> None:
        """The exchange, whole and on the disk."""
        pen = self._pen
        for thought in answer.reasoning:
            pen.said(log.Reasoning(thread=self._thread, text=""), thought, self._path)
        if answer.usage is not None:
            usage = log.Usage(**dataclasses.asdict(answer.usage))
        entry = log.Assistant(
            thread=self._thread,
            key=key,
            source=source,
            model=answer.model,
            response=answer.id or None,
            usage=usage,
            dollars=self._models.dollars(answer.usage, self._asked, answer.model) if source == "model" else None,
            seconds=round(seconds, 4) if seconds is not None else None,
        )
        pen.said(entry, answer.text, self._path)
        pen.barrier()
        crash_point(CrashPoint.EXCHANGE_SYNCED)

    def _may_go_right(self, error: BaseException) -> bool:
        if isinstance(error, Failed) and error.error.code == "model-chain-lost" and self._previous is not None:
            # The log is the truth: the whole thread is sent again.
            self._previous, error.wait = None, 0.0
            return True
        return isinstance(error, Failed) and error.again

    def _is_enough(self, state: tenacity.RetryCallState) -> bool:
        return state.attempt_number >= TRIES or state.upcoming_sleep >= self._asker.left()

    def _again(self, state: tenacity.RetryCallState) -> None:
        failed = state.outcome.exception() if state.outcome is not None else None
        assert isinstance(failed, Failed)
        self._note_failure(failed, state.upcoming_sleep)
        self._asker.tell(f"{state.upcoming_sleep:.1f} s before the model is asked again: {failed.error.message}")

    def _note_failure(self, failed: Failed, again: float | None) -> None:
        crash_point(CrashPoint.ANSWER_CAME)
        usage = log.Usage(**dataclasses.asdict(failed.usage)) if failed.usage is not None else None
        entry = log.ModelError(
            thread=self._thread,
            error=self._pen.error(failed.error),
            usage=usage,
            dollars=self._models.dollars(failed.usage, self._asked),
            seconds=round(time.monotonic() - self._begun, 4),
            again=round(again, 4) if again is not None else None,
            free=True if not failed.sent and not failed.pending else None,
            pending=True if failed.pending else None,
        )
        self._pen.said(entry, failed.partial, self._path)

    def _told(self) -> Callable[[int], None]:
        last = 0

        def told(characters: int) -> None:
            nonlocal last
            if characters >= last + TOLD_EVERY:
                last = characters
                self._asker.tell(f"the rest of the model's answer ({characters} characters so far)")

        return told


async def _aside(size: int, work: Callable[[], _Result]) -> _Result:
    """What ``work`` over so many characters gives; where they are many, the lease, the time-out and Ctrl-C do not wait for it."""
    return work() if size <= AT_ONCE else await asyncio.to_thread(work)


NOTHING = "(nothing)"
"""What stands for an empty answer in the next request: servers take no empty message."""


def correction(misfit: Misfit) -> str:
    """What a model is told of an answer that does not fit."""
    return (
        f"Your answer does not fit the schema:\n{misfit}\nAnswer again, with the whole corrected JSON and nothing else."
    )


def _unfit(answer: Answer, misfit: Misfit) -> ModelError:
    return ModelError(
        "model-output-invalid",
        f"the model's answer does not fit `output`, also after it was asked {REPAIRS} times to mend it: {misfit.args[0].splitlines()[0]}",
        mend="say in `instruction` what is wanted, make `output` simpler, or choose another model",
        evidence={"answer": answer.text[:1000], "problems": [*str(misfit).splitlines()]},
    )


def _too_late() -> ModelError:
    return ModelError(
        "model-timeout",
        "the answer in the background is not there, and the attempt's time is over",
        mend="give the node a longer `timeout`",
    )


def _wait(state: tenacity.RetryCallState) -> float:
    """Seconds before the next try: what the server asks for, else longer each time, and at random."""
    failed = state.outcome.exception() if state.outcome is not None else None
    if isinstance(failed, Failed) and failed.wait is not None:
        return failed.wait
    return tenacity.wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT)(state)


def _th(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
