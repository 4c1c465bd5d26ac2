"""Detects a server's capabilities by a few tiny requests, because a server may accept a field and ignore it.

Proof of chaining: the model knows a word that only the stored response contains. Proof of background work: a response can be cancelled.
Proof of a strict schema: the answer fits the schema although the prompt asks for another answer.
"""

from __future__ import annotations

import dataclasses
import json
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import tenacity

from nodes.budgets import Budget
from nodes.errors import BudgetReached, ModelError
from nodes.values import Json
from runtime.log import entries, ledger
from runtime.messages import estimates
from runtime.messages.messages import Answer, Message, Request, Usage
from runtime.models import budgets, requests
from runtime.models.client import polling, profiles
from runtime.models.client.errors import Failed
from runtime.settings import prices

if TYPE_CHECKING:
    from runtime.models.client import client as model_client

T = TypeVar("T")

Name = Literal["streaming", "schemas", "chaining", "background"]

LEVELS: dict[Name, tuple[str, ...]] = {
    "streaming": ("no", "yes"),
    "schemas": ("none", "plain", "strict"),
    "chaining": ("no", "yes"),
    "background": ("no", "yes"),
}
"""Levels of each capability, the lowest first."""

BUDGET = Budget(calls=24, tokens=24_000)
"""Limit for one probing. Without failures it takes seven requests of some hundred tokens."""

MAX_OUTPUT = 512  # tokens of an answer: a reasoning model needs some hundred before its first word
TRIES = 3  # number of times a request is sent if its error may be temporary
LONGEST_WAIT = 20.0  # maximum seconds before a retry, whatever the server asks for
PLAIN = profiles.Profile("plain", False, False, False, "none")  # no capability: only a question and its answer

STREAMED = dataclasses.replace(PLAIN, name="streamed", streaming=True)
WITH_SCHEMA = dataclasses.replace(PLAIN, name="with-schema", schemas="strict")

CANNOT = frozenset({"model-request-refused", "model-chain-lost", "model-unknown"})
"""Error codes of a server that answers plain requests, but refuses a feature or has not kept a response."""

READY = "Answer with the one word ready."
RECALL = "Which word were you told to remember? Answer with that word, or with none."

COLOURS = ["red", "green"]
COLOUR: dict[str, Json] = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": COLOURS}},
    "required": ["colour"],
    "additionalProperties": False,
}
AGAINST = "Answer with the one word BLUE, as plain text. Do not use JSON."
"""A model constrained to ``COLOUR`` cannot follow this."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """The detected level of one capability."""

    name: Name
    level: str | None  # one of `LEVELS`; None if it could not be detected
    why: str

    @property
    def rank(self) -> int:
        """The level as a number; an unknown level counts as the lowest."""
        return LEVELS[self.name].index(self.level) if self.level is not None else 0


def promised(profile: profiles.Profile, name: Name) -> str:
    """Return the level of a capability that a profile assumes."""
    level: bool | str = getattr(profile, name)
    return level if isinstance(level, str) else LEVELS[name][level]


def promised_rank(profile: profiles.Profile, name: Name) -> int:
    return LEVELS[name].index(promised(profile, name))


def fitting(found: Sequence[Found], used: profiles.Profile) -> profiles.Profile:
    """Return the known profile with most of the server's capabilities and none that it lacks; of equals ``used``, or one without prices."""
    fits = [each for each in profiles.PROFILES.values() if all(promised_rank(each, f.name) <= f.rank for f in found)]

    def worth(profile: profiles.Profile) -> tuple[int, bool, bool]:
        ranks = sum(promised_rank(profile, each.name) for each in found)
        return ranks, profile.name == used.name, profile.name not in prices.PRICED

    return max(fits, key=worth)


class Prober:
    """Probes the models of one server. ``close`` it at the end."""

    def __init__(
        self, client: Callable[[profiles.Profile], model_client.Client], seconds: float, price: budgets.Price
    ) -> None:
        """``client`` makes a client with the given profile; ``seconds`` is the limit of one request."""
        self._make = client
        self._clients: dict[str, model_client.Client] = {}
        self._seconds = seconds
        self._price = price
        self.spent: list[ledger.Spent] = []  # every request to a model

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def listed(self) -> dict[str, str | None]:
        """Return the models that the server lists, each with its shutdown date, if any. Raises Failed."""
        return await self._client(PLAIN).models(self._seconds)

    async def answers(self, name: str) -> str:
        """Ask for a plain answer, and return the model's name from it. Raises Failed, BudgetReached."""
        answer = await self._ask(PLAIN, _request(name, READY))
        if not answer.text.strip():
            fix = "look at the model, and at its server"
            raise Failed(ModelError("model-failed", "the answer has no text", fix=fix))
        return answer.model

    async def probe(self, name: str) -> list[Found]:
        probes: dict[Name, Callable[[str], Awaitable[tuple[str, str]]]] = {
            "streaming": self._streaming,
            "schemas": self._schemas,
            "chaining": self._chaining,
            "background": self._background,
        }
        return [await self._found(each, probe(name)) for each, probe in probes.items()]

    async def _found(self, name: Name, probe: Awaitable[tuple[str, str]]) -> Found:
        """Return the result of a probe. A refused request proves that the server lacks the capability; any other failure proves nothing."""
        try:
            return Found(name, *await probe)
        except Failed as failed:
            cannot = failed.error.code in CANNOT
            return Found(name, LEVELS[name][0] if cannot else None, failed.error.message)
        except BudgetReached as reached:
            return Found(name, None, reached.message)

    async def _streaming(self, name: str) -> tuple[str, str]:
        pieces: list[str] = []
        try:
            await self._ask(STREAMED, _request(name, "Count from one to ten in words."), progress=pieces.append)
        except Failed as failed:
            if failed.error.code != "model-stream-broken":
                raise
            return "no", failed.error.message
        if len(pieces) < 2:
            return "no", "the whole answer came in one piece"
        return "yes", "an answer came in pieces, and its stream said how it ended"

    async def _schemas(self, name: str) -> tuple[str, str]:
        answer = await self._ask(WITH_SCHEMA, dataclasses.replace(_request(name, AGAINST), schema=COLOUR))
        if _fits(answer.text):
            return "strict", "an answer fits its schema although another one was asked for"
        return "plain", "it takes a schema, and does not hold the model to it"

    async def _chaining(self, name: str) -> tuple[str, str]:
        nonce = secrets.token_hex(4)
        first = await self._ask(PLAIN, _request(name, f"Remember this word: {nonce}. Answer with ok."), store=True)
        answer = await self._ask(PLAIN, _request(name, RECALL), store=True, previous=first.id)
        if nonce in answer.text:
            return "yes", "a word from one request was known in the next"
        return "no", "it takes `previous_response_id` and ignores it: the next request did not know the word"

    async def _background(self, name: str) -> tuple[str, str]:
        await self._done(await self._submit(_request(name, READY)))
        # A server that answers at once also lets the response be fetched, but it cannot cancel it.
        response = await self._submit(_request(name, "Write the numbers from one to three hundred in words."))
        await self._client(PLAIN).cancel(response)
        try:
            await self._done(response)
        except Failed as failed:
            if failed.stopped:
                return "yes", "a response was fetched when it was done, and another one could be cancelled"
            if failed.error.code != "model-cut-short":
                raise
        return "no", "it takes `background` and answers at once, or it cannot cancel"

    # One request.

    async def _ask(
        self,
        profile: profiles.Profile,
        request: Request,
        *,
        store: bool = False,
        previous: str | None = None,
        progress: model_client.Progress | None = None,
    ) -> Answer:
        from runtime.models.client import client as model_client

        options = model_client.ClientOptions(store, previous)
        answer = await self._tried(
            request, lambda: self._client(profile).ask(request, self._seconds, options, progress)
        )
        self._paid(answer.usage)
        return answer

    async def _submit(self, request: Request) -> str:
        return await self._tried(request, lambda: self._client(PLAIN).submit(request, self._seconds))

    async def _done(self, response: str) -> None:
        """Wait until the background response is finished. Raises Failed."""
        until = time.monotonic() + self._seconds
        answer = await polling.polled(
            self._client(PLAIN), response, self._seconds, lambda: until - time.monotonic(), lambda: math.inf
        )
        self._paid(answer.usage)

    async def _tried(self, request: Request, send: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``send``, retried after temporary errors. Raises Failed, BudgetReached."""
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, Failed) and error.again),
            wait=lambda state: min(requests.wait(state), LONGEST_WAIT),
            stop=tenacity.stop_after_attempt(TRIES),
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                estimate = estimates.tokens(request)
                account = budgets.Account(BUDGET, budgets.spent(self.spent, self._price))
                account.check(budgets.need(request, estimate, self._price))
                self.spent.append(ledger.Spent(0, "", "", "", request.model, estimate, request.max_output))
                try:
                    return await send()
                except Failed as failed:
                    self.spent[-1].free = not failed.sent
                    self._paid(failed.usage)
                    raise
        raise AssertionError("the last try returns or raises")

    def _paid(self, usage: Usage | None) -> None:
        row = self.spent[-1]
        if usage is not None:
            row.usage = entries.Usage(**dataclasses.asdict(usage))
            row.dollars = self._price(usage, row.model)

    def _client(self, profile: profiles.Profile) -> model_client.Client:
        if profile.name not in self._clients:
            self._clients[profile.name] = self._make(profile)
        return self._clients[profile.name]


def _request(name: str, said: str) -> Request:
    return Request(name, "", (Message("user", said),), None, MAX_OUTPUT)


def _fits(text: str) -> bool:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and set(value) == {"colour"} and value["colour"] in COLOURS
