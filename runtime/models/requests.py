"""Requests of one attempt of a step: each is checked against the budgets, announced, synced, sent, answered, synced.

The process may die at any point: an announced request counts against the budget, and an answer in the log is not paid again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

import tenacity

from nodes.errors import AuthorError, RunOpsError
from nodes.values import Json
from runtime.log import entries, threads
from runtime.log.writer import Fold, LogWriter, Texts
from runtime.messages import estimates
from runtime.messages.messages import Answer, Item, Request, Thought, ToolCall, ToolOutput, Usage
from runtime.models import budgets, run_models, selection
from runtime.models.client import parsing, polling
from runtime.models.client.errors import Failed
from runtime.secrets import masking
from runtime.system import tasks
from runtime.system.crash_points import CrashPoint, crash_point

if TYPE_CHECKING:
    from nodes.budgets import Budget
    from runtime.models.client import client as model_client

_Result = TypeVar("_Result")

TRIES = 5  # number of times one request is sent if its error may be temporary

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before a request is sent again, unless the server names them: random, below a limit that doubles each time."""

UNSEEN = "(you are shown no pictures: read the page with the other tools)"
"""Said to a model that does not see, in place of a picture."""

AT_ONCE = 20_000  # characters of a request or an answer that may be processed on the event loop
TOLD_EVERY = 200  # characters of an answer between two progress reports


@dataclasses.dataclass(frozen=True, slots=True)
class RequestScope:
    """The step or session that makes requests."""

    path: str
    """Path of the step, or of a delegate of a session; empty for the session itself. Costs are recorded under it."""
    thread: str
    role: selection.Role
    left: Callable[[], float]
    tell: Callable[[str], None]  # reports the reason of a wait
    brief: Callable[[], str] = lambda: ""  # returns the brief about the run's state; called for each request
    before: Sequence[Item] = ()  # items before those of its thread, in each request
    longer: str = ""  # how a longer answer is allowed: what a person changes for it
    hear: Callable[[str], None] | None = None
    """Shows a person each piece of an answer's text as it arrives, secrets masked; all at once if it arrives whole. A resent request starts over.
    What was shown is logged as it comes."""
    patient: bool = False
    """True if an answer is waited for as long as ``left``: a request that the server works on is not sent again. A set `model_timeout` counts."""


class Exchanges:
    """Requests of one attempt in its thread, one after another."""

    def __init__(
        self,
        models: run_models.RunModels,
        writer: LogWriter[Fold],
        requester: RequestScope,
        named: str | None,
        budget: Budget | None,
        within: budgets.Requester | None = None,
    ) -> None:
        """``named`` is the model that the node names, ``budget`` its own budget; that of ``within`` applies as well."""
        self._named = named
        self.share = budgets.Requester(requester.path, budget, within)
        """The budgets that its requests fall under, besides that of the run or session."""
        self._asked = ""
        self._models = models
        self._writer = writer
        self._requester = requester
        self._path = requester.path
        self._thread = requester.thread
        self._previous: str | None = None  # the id of the response that the last request continued
        self._lost: str | None = None  # the id of a response that the server no longer has
        self._begun: float | None = None  # time when an unanswered request was sent, or the wait for its answer began
        self._come: list[str] = []  # pieces received of the current or the last answer

    def model(self) -> str:
        """Return the model to ask next. Raises SetupError ``model-unset``."""
        return self._models.model(self._requester.role, self._named, self._writer.history.ledger.exchanges)

    def say(self, text: str, mode: entries.Mode | None = None, heard: int | None = None) -> None:
        """Log the next message to the model; ``mode`` is the session's mode for a message of a person, kept at the line ``heard``."""
        self._writer.said(entries.User(thread=self._thread, mode=mode, heard=heard), text, self._path)

    def broken_off(self, error: RunOpsError) -> None:
        """Log that the last message gets no answer, and why. Keeps the received part, so that the thread can continue from it."""
        self._note_failure(Failed(error, partial="".join(self._come)), None)
        self._come = []

    async def exchange(self, request: Request) -> Answer:
        """Send ``request``, unless the log or a cassette has its answer; return the answer once the exchange is synced.

        Raises ModelError, SetupError, BudgetReached, AuthorError ``secret-in-request`` and ``cassette-miss``.
        """
        said = (*self._requester.before, *request.items)
        items = readable(said, self._models.reader(request.model), sees=self._models.sees)
        request = dataclasses.replace(request, items=items, brief=self._requester.brief())
        self._refuse_secrets(request)
        ledger = self._writer.history.ledger
        key = request.key
        earlier = self._writer.history.threads_that_count(self._path)
        # Reuse no answer of this thread: the same request again in it asks for another answer.
        others = [each for each in earlier if each != self._thread]
        if (known := ledger.answer(others, key)) is not None:
            answer = recorded(known, self._writer)
            await self._write(answer, key, "log", usage=known.usage)
            return self._told_whole(answer)
        number = ledger.exchanges
        if self._models.player is not None:
            answer = with_unique_ids(
                self._models.player.answer(number, self._path, request), self._taken(request), self._writer.masker
            )
            await self._write(answer, key, "cassette")
            return self._told_whole(answer)
        answer = await self._waited_for(ledger.waiting(earlier, key), key, number, request)
        return answer or await self._ask(request, key, number)

    def _refuse_secrets(self, request: Request) -> None:
        masker = self._writer.masker
        # All but the messages are the author's or our text: an ordinary word in it is no secret, even if it equals one.
        forms: Json = [[each.description, each.parameters] for each in request.tools]
        for place, names in (
            ("instructions", masker.but_words.named(request.instructions)),
            ("schema of the answer", masker.but_words.named(request.schema)),
            ("tools", masker.but_words.named(forms)),
            ("messages", masker.named([*texts_of(request)[1:]])),
        ):
            if names:
                raise AuthorError(
                    "secret-in-request",
                    f"the value of the secret {', '.join(names)} is in the {place} for the model, and secrets are sent to no model",
                    fix="leave the value out that holds it; a model can do without",
                )

    # One request, until it is answered or given up.

    async def _ask(self, request: Request, key: str, number: int) -> Answer:
        client = self._models.client()
        size = sum(map(len, texts_of(request)))
        raw = await aside(size, functools.partial(estimates.tokens, request))
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(self._may_go_right),
            wait=wait,
            stop=self._is_enough,
            before_sleep=self._again,
            sleep=asyncio.sleep,
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    answer = await self._send(client, request, raw, key, attempt.retry_state.attempt_number)
                    return await self._take(answer, key, number, request)
        except Failed as failed:
            self._advise(failed)
            self._note_failure(failed, None)
            raise failed.error from None
        raise AssertionError("a request is answered or fails")

    async def _send(self, client: model_client.Client, request: Request, raw: int, key: str, tried: int) -> Answer:
        from runtime.models.client import client as model_client

        estimate = self._models.estimate(request, raw, self._writer.history.ledger)
        affordable = self._models.afford(self._writer.history.ledger, self.share, request, estimate)
        seconds = min(self._models.limit(patient=self._requester.patient), self._requester.left(), affordable)
        self._asked = request.model
        self._writer.noted(
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
        await self._writer.barrier()
        crash_point(CrashPoint.REQUEST_SYNCED)
        self._begun = time.monotonic()
        self._requester.tell("the model to answer" if tried == 1 else f"the model to answer (try {tried})")
        self._previous, known = None, 0
        if self._models.chains:
            said = self._writer.history.thread(self._thread).said
            reader = self._models.reader(request.model)
            self._previous, known = continued(said, request, self._writer, self._lost, reader)
        self._come = []
        options = model_client.ClientOptions(
            store=self._models.store,
            previous=self._previous,
            known=known,
            # Where the server continues from the stored response, it has the reasoning itself.
            sealed=not self._models.chains or bool(request.state),
            patient=self._requester.patient,
        )
        if not self._models.background:
            return await self._heard(client, request, seconds, options)
        response = await client.submit(request, seconds, options)
        self._writer.noted("submitted", {"key": key, "response": response}, self._thread)
        await self._writer.barrier()
        crash_point(CrashPoint.SUBMISSION_SYNCED)
        return self._told_whole(await self._polled(client, response, affordable))

    async def _heard(
        self, client: model_client.Client, request: Request, seconds: float, options: model_client.ClientOptions
    ) -> Answer:
        length = counted = 0
        shown: list[str] = []  # pieces shown to a person, and not logged yet

        def show(piece: str) -> None:
            if self._requester.hear is not None:
                self._requester.hear(piece)
                shown.append(piece)

        stream = masking.Stream(self._writer.masker, show)

        def come(piece: str) -> None:
            nonlocal length, counted
            self._come.append(piece)
            length += len(piece)
            stream.take(piece)
            if length >= counted + TOLD_EVERY:
                counted = length
                self._requester.tell(f"the rest of the model's answer ({counted} characters so far)")
                self._keep_shown(shown)

        try:
            answer = await client.ask(request, seconds, options, come)
        finally:
            stream.end()
        return answer if length else self._told_whole(answer)

    def _keep_shown(self, shown: list[str]) -> None:
        """Log what was shown since the last time, so that it outlives the process, and empty the list."""
        if shown:
            self._writer.said(entries.Arrived(thread=self._thread, text=""), "".join(shown), self._path)
            shown.clear()

    def _told_whole(self, answer: Answer) -> Answer:
        """Report the text of an answer that did not arrive in pieces."""
        if answer.text and self._requester.hear is not None:
            self._requester.hear(self._writer.masker.text(answer.text))
        return answer

    async def _waited_for(self, response: str | None, key: str, number: int, request: Request) -> Answer | None:
        """Return the answer that an earlier process requested in the background and did not receive; None if it is no longer available."""
        if response is None:
            return None
        self._writer.noted("submitted", {"key": key, "response": response}, self._thread)
        self._begun, self._asked = time.monotonic(), request.model
        self._requester.tell("the answer that was asked for before the crash")
        try:
            affordable = self._models.left_seconds(self._writer.history.ledger, self.share)
            answer = await self._polled(self._models.client(), response, affordable)
        except Failed as failed:
            # A response that ended with a permanent error ends the request too, with or without a crash.
            ends = failed.pending or (failed.over and not failed.again and not failed.stopped)
            self._advise(failed)
            self._note_failure(failed, None if ends else 0.0)
            if ends:
                raise failed.error from None
            return None
        return self._told_whole(await self._take(answer, key, number, request))

    async def _polled(self, client: model_client.Client, response: str, affordable: float) -> Answer:
        return await polling.polled(
            client, response, self._models.seconds, self._requester.left, lambda: affordable - (self._seconds() or 0.0)
        )

    # Handling of answers and failures.

    async def _take(self, came: Answer, key: str, number: int, request: Request) -> Answer:
        crash_point(CrashPoint.ANSWER_CAME)
        answer = with_unique_ids(came, self._taken(request), self._writer.masker)
        reader = self._models.reader(request.model)
        thoughts = [dataclasses.replace(each, reader=reader) for each in answer.thoughts]
        answer = dataclasses.replace(answer, thoughts=self._writer.without_secrets(thoughts))
        renamed = answer.calls != came.calls or (answer.calls and not request.tools)
        # A stored response has the original calls and the temporary state, later requests do not: then it cannot be continued.
        stored = self._models.chains and not renamed and not request.state
        if self._models.recorder is not None:
            await tasks.in_thread(self._models.recorder.take, number, self._path, request, answer)
        await self._write(answer, key, "model", seconds=self._seconds(), stored=stored)
        return answer

    def _taken(self, request: Request) -> list[Collection[str]]:
        """Return the ids of the thread's calls, also of those left out of this request: a later one may have them."""
        before = self._writer.history.thread(self._thread).ids
        return [before, {each.id for each in request.items if isinstance(each, ToolCall) and each.id not in before}]

    async def _write(
        self,
        answer: Answer,
        key: str,
        source: entries.Source,
        *,
        seconds: float | None = None,
        usage: entries.Usage | None = None,
        stored: bool = False,
    ) -> None:
        writer = self._writer
        for thought in answer.reasoning:
            writer.said(entries.Reasoning(thread=self._thread, text=""), thought, self._path)
        if answer.usage is not None:
            usage = entries.Usage(**dataclasses.asdict(answer.usage))
        entry = entries.Assistant(
            thread=self._thread,
            key=key,
            source=source,
            model=answer.model,
            response=answer.id or None,
            stored=True if stored and answer.id else None,
            usage=usage,
            dollars=self._models.dollars(answer.usage, self._asked, answer.model) if source == "model" else None,
            seconds=seconds,
        )
        writer.said(entry, answer.text, self._path, answer.calls, answer.thoughts)
        await writer.barrier()
        self._begun, self._come = None, []
        crash_point(CrashPoint.EXCHANGE_SYNCED)

    def _seconds(self) -> float | None:
        return round(time.monotonic() - self._begun, 4) if self._begun is not None else None

    def _may_go_right(self, error: BaseException) -> bool:
        if isinstance(error, Failed) and error.error.code == "model-chain-lost" and self._previous is not None:
            # The log is complete without the server: send the whole thread again.
            self._lost, error.wait = self._previous, 0.0
            return True
        return isinstance(error, Failed) and error.again

    def _is_enough(self, state: tenacity.RetryCallState) -> bool:
        return state.attempt_number >= TRIES or state.upcoming_sleep >= self._requester.left()

    def _again(self, state: tenacity.RetryCallState) -> None:
        failed = state.outcome.exception() if state.outcome is not None else None
        assert isinstance(failed, Failed)
        self._note_failure(failed, state.upcoming_sleep)
        self._requester.tell(f"{state.upcoming_sleep:.1f} s before the model is asked again: {failed.error.message}")

    def _advise(self, failed: Failed) -> None:
        """Say in the fix of an answer that was cut what allows a longer one."""
        if failed.error.evidence.get("reason") == parsing.CUT and self._requester.longer:
            failed.error = failed.error.replaced(fix=f"{failed.error.fix}, or {self._requester.longer}")

    def _note_failure(self, failed: Failed, again: float | None) -> None:
        crash_point(CrashPoint.ANSWER_CAME)
        usage = entries.Usage(**dataclasses.asdict(failed.usage)) if failed.usage is not None else None
        entry = entries.ModelError(
            thread=self._thread,
            error=self._writer.error(failed.error),
            usage=usage,
            dollars=self._models.dollars(failed.usage, self._asked),
            seconds=self._seconds(),
            again=round(again, 4) if again is not None else None,
            free=True if not failed.sent and not failed.pending else None,
            pending=True if failed.pending else None,
        )
        self._writer.said(entry, failed.partial, self._path)
        if not failed.pending:
            self._begun = None


def recorded(entry: entries.Assistant, texts: Texts) -> Answer:
    """Return the answer that a log entry records."""
    usage = Usage(**entry.usage.model_dump()) if entry.usage is not None else None
    calls, thoughts = texts.calls_of(entry), texts.thoughts_of(entry)
    return Answer(texts.text_of(entry), usage, entry.model, entry.response or "", calls=calls, thoughts=thoughts)


def readable(items: Sequence[Item], reader: str, *, sees: bool = True) -> tuple[Item, ...]:
    """Leave out the thoughts of other models and servers, and pictures if the model does not see."""
    return tuple(
        each if sees else _unseen(each) for each in items if not isinstance(each, Thought) or each.reader == reader
    )


def _unseen(item: Item) -> Item:
    if not isinstance(item, ToolOutput) or item.picture is None:
        return item
    return ToolOutput(item.id, f"{item.text}\n{UNSEEN}")


def texts_of(request: Request) -> list[str]:
    texts = [request.instructions, request.brief, request.state]
    for item in request.items:
        if isinstance(item, Thought):
            # No secret can be read in it: `LogWriter.without_secrets`.
            continue
        texts += (item.id, item.name, item.arguments) if isinstance(item, ToolCall) else (item.text,)
    return texts


def with_unique_ids(answer: Answer, ids: Sequence[Collection[str]], masker: masking.Masker) -> Answer:
    """Give each call a valid name, and an id without a secret that is unique and not in ``ids``: some servers number calls from 1."""
    taken: set[str] = set()
    calls: list[ToolCall] = []
    for call in answer.calls:
        number, name = sum(map(len, ids)) + len(taken) + 1, call.id
        while name in taken or any(name in each for each in ids) or masker.text(name) != name:
            name, number = f"call_{number}", number + 1
        taken.add(name)
        calls.append(ToolCall(name, parsing.tool_name(masker.text(call.name)), call.arguments))
    return dataclasses.replace(answer, calls=tuple(calls))


async def aside(size: int, work: Callable[[], _Result]) -> _Result:
    """Run ``work`` on a text of ``size`` characters: on a long one in a thread, so that lease, timeouts and Ctrl-C need not wait."""
    return work() if size <= AT_ONCE else await asyncio.to_thread(work)


def wait(state: tenacity.RetryCallState) -> float:
    """Return the seconds before the next try: as the server asks, else random below a growing limit."""
    failed = state.outcome.exception() if state.outcome is not None else None
    if isinstance(failed, Failed) and failed.wait is not None:
        return failed.wait
    return tenacity.wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT)(state)


def continued(
    said: Sequence[threads.Saying], request: Request, texts: Texts, lost: str | None, reader: str = ""
) -> tuple[str | None, int]:
    """Return the id of the stored response to continue, and the number of items that it contains; None and 0 to send the whole request.

    It is the last answer in ``said``, unless it is ``lost``, if its request was the same as this one up to that answer.
    """
    last = next((each.answer for each in reversed(said) if isinstance(each, threads.Exchange)), None)
    if last is None or not last.stored or last.response == lost or request.state:
        return None, 0
    its = readable(texts.items_of(last), reader)
    for begins in range(len(request.items) - len(its), 0, -1):
        if request.items[begins : begins + len(its)] == its:
            before = dataclasses.replace(request, items=request.items[:begins])
            return (last.response, begins + len(its)) if before.key == last.key else (None, 0)
    return None, 0
