"""A model with scripted answers, for the fake server of ``runtime.testing.responses``.

    model = scripted.Model([scripted.rate_limited(retry_after=0), scripted.text("Good morning.")])

An answer is one of three. A model's output: ``text``, ``call``, ``refusal``, ``thought``, joined by ``+``. A fault in its place:
``rate_limited``, ``quota``, ``server_error``, ``not_json``, ``chain_lost``. A broken connection: ``hang``, ``reset``, ``stall``, ``cut``, ``error_event``.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import email.utils
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Self

from nodes.values import Json
from runtime.messages.messages import Usage

Item = dict[str, Json]  # a piece of output or input, in the API's form


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    status: int
    message: str
    code: str | None = None
    kind: str = "server_error"  # the error's `type`
    param: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None  # sent in place of the error as JSON


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    parts: tuple[Item, ...] = ()
    """Output items, to which the server adds ids and statuses. Texts and arguments are sent unchanged, valid or not."""
    status: Literal["completed", "incomplete", "failed"] = "completed"
    reason: str | None = None  # the reason why it is incomplete: `max_output_tokens` or `content_filter`
    error: tuple[str, str] | None = None  # code and message of a failed response
    usage: Usage | Literal["counted", "untold"] = "counted"
    """``counted`` by the server's rule; ``untold``: the response reports none."""
    gate: threading.Event | None = None  # the answer waits until it is set
    polls: int = 1  # in the background: number of polls that find it unfinished
    seconds: float = 0.0  # in the background: minimum duration by the server's clock
    poll_faults: tuple[Failure, ...] = ()
    """In the background: faults returned by the first polls, in place of the response."""

    def __add__(self, other: Answer) -> Answer:
        """Join the output of both in one response; everything else comes from the first."""
        return dataclasses.replace(self, parts=(*self.parts, *other.parts))

    def using(self, *, input: int, output: int, cached: int = 0, reasoning: int = 0) -> Self:
        """Return a copy with this usage in tokens: ``cached`` of the input, ``reasoning`` of the output."""
        return dataclasses.replace(self, usage=Usage(input=input, cached=cached, output=output, reasoning=reasoning))

    def without_usage(self) -> Self:
        return dataclasses.replace(self, usage="untold")

    def held(self, gate: threading.Event) -> Self:
        """Return a copy that waits until ``gate`` is set; in the background it is unfinished until then."""
        return dataclasses.replace(self, gate=gate)

    def in_background(self, *, polls: int = 1, seconds: float = 0.0, faults: Iterable[Failure] = ()) -> Self:
        """Return a copy for background requests: it ends after so many ``polls`` and ``seconds``; the first polls get ``faults``."""
        return dataclasses.replace(self, polls=polls, seconds=seconds, poll_faults=tuple(faults))


@dataclasses.dataclass(frozen=True, slots=True)
class Broken:
    """A connection that breaks after ``before`` was sent without its end."""

    how: Literal["stall", "reset", "end", "error"]
    """``stall``: it stays open and silent; ``reset``: it drops; ``end``: it closes as if complete; ``error``: an ``error`` event ends it."""
    before: Answer | None = None  # None: not one byte is sent
    code: str = "server_error"  # code of the `error` event
    message: str = "The server had an error while processing your request."  # message of the `error` event
    nested: bool = False  # true if the `error` event has both below a field `error`, as on some servers


Scripted = Answer | Failure | Broken


@dataclasses.dataclass(frozen=True, slots=True)
class AskedFor:
    number: int  # counted from 1, over all requests to the model
    body: Item  # the body of the request
    items: tuple[Item, ...]  # the whole input, that of the responses it continues included

    @property
    def instructions(self) -> str:
        return self.body.get("instructions") or ""

    @property
    def newest(self) -> str:
        """The text of everything after the model's last output: messages, and outputs of tools."""
        fresh = list[str]()
        for item in reversed(self.items):
            if item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning"):
                break
            fresh.append(text_of(item))
        return "\n".join(reversed(fresh))

    @property
    def outputs(self) -> dict[str, str]:
        given = [item for item in self.items if item.get("type") == "function_call_output"]
        return {item["call_id"]: text_of(item) for item in given}


Script = Callable[[AskedFor], Scripted]
Rule = Callable[[AskedFor], Scripted | None]


class ScriptError(Exception):
    """The script has no answer; the message gives the reason."""


class Model:
    def __init__(self, script: Iterable[Scripted] | Script) -> None:
        self._script: Script | Iterator[Scripted] = script if callable(script) else iter(list(script))
        self._lock = threading.Lock()

    def answer(self, asked: AskedFor) -> Scripted:
        """Return the answer to a request. Raises ScriptError after the end of the script, and if its function fails."""
        with self._lock:
            if not callable(self._script):
                found = next(self._script, None)
                if found is None:
                    raise ScriptError(f"the script has no answer left for request {asked.number}")
                return found
            try:
                return self._script(asked)
            except Exception as error:
                said = f"the script's function failed at request {asked.number}: {type(error).__name__}: {error}"
                raise ScriptError(said) from error


def when(held: str | Callable[[AskedFor], bool], answer: Scripted) -> Rule:
    """Return a rule for ``first_of``: ``answer`` if the newest text contains ``held``, or if the function ``held`` returns True."""

    def rule(asked: AskedFor) -> Scripted | None:
        return answer if (held in asked.newest if isinstance(held, str) else held(asked)) else None

    return rule


def first_of(*rules: Rule, otherwise: Scripted | None = None) -> Script:
    """Return a script: the first matching rule answers, else ``otherwise``. Without either, it raises ScriptError."""

    def script(asked: AskedFor) -> Scripted:
        found = next((answer for rule in rules if (answer := rule(asked)) is not None), otherwise)
        if found is None:
            raise ScriptError(f"no rule fits: {asked.newest[:200]!r}")
        return found

    return script


def text(said: Json) -> Answer:
    written = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return _message({"type": "output_text", "text": written, "annotations": [], "logprobs": []})


def call(name: str, arguments: Json, *, call_id: str | None = None) -> Answer:
    """Call a tool. ``arguments`` as text are sent unchanged, so they need not be JSON."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    given = {"call_id": call_id} if call_id is not None else {}
    return Answer(({"type": "function_call", **given, "name": name, "arguments": written},))


def thought(summary: str, *, sealed: str | None = None) -> Answer:
    """Reason. ``sealed`` is the encrypted content, given only to a request that asks for it; by default the server makes one."""
    given = {"encrypted_content": sealed} if sealed is not None else {}
    return Answer(({"type": "reasoning", "summary": [{"type": "summary_text", "text": summary}], **given},))


def refusal(said: str = "I'm sorry, but I can't help with that.") -> Answer:
    return _message({"type": "refusal", "refusal": said})


def incomplete(said: Answer | str = "", reason: str = "max_output_tokens") -> Answer:
    """Cut the answer short after ``said``; ``reason`` may also be ``content_filter``."""
    return dataclasses.replace(_answer(said), status="incomplete", reason=reason)


def failed(code: str = "server_error", message: str = "The model failed to answer.", said: Answer | str = "") -> Answer:
    return dataclasses.replace(_answer(said), status="failed", error=(code, message))


def rate_limited(
    retry_after: float | dt.datetime | None = None, *, milliseconds: int | None = None, message: str | None = None
) -> Failure:
    """Answer 429: too many requests. ``retry_after`` is sent in seconds or as a date, ``milliseconds`` in ``retry-after-ms``."""
    headers = list[tuple[str, str]]()
    if isinstance(retry_after, dt.datetime):
        headers.append(("Retry-After", email.utils.format_datetime(retry_after.astimezone(dt.UTC), usegmt=True)))
    elif retry_after is not None:
        headers.append(("Retry-After", f"{retry_after:g}"))
    if milliseconds is not None:
        headers.append(("retry-after-ms", str(milliseconds)))
    said = message or "Rate limit reached for requests per minute. Please try again later."
    return Failure(429, said, "rate_limit_exceeded", "requests", headers=tuple(headers))


def quota() -> Failure:
    said = "You exceeded your current quota, please check your plan and billing details."
    return Failure(429, said, "insufficient_quota", "insufficient_quota")


def server_error(status: int = 500, message: str = "The server had an error while processing your request.") -> Failure:
    return Failure(status, message)


def not_json(body: bytes = b"<html>Bad gateway</html>", status: int = 200) -> Failure:
    """Answer without JSON, as a proxy between client and server may."""
    return Failure(status, "", body=body)


def chain_lost() -> Failure:
    """Answer 400: the server no longer has the response that this request continues, whichever it is."""
    said = "Previous response with id 'resp_lost' not found."
    return Failure(400, said, "previous_response_not_found", "invalid_request_error", "previous_response_id")


def hang() -> Broken:
    """Accept the request and never answer, until the client or the server closes."""
    return Broken("stall")


def reset(before: Answer | str | None = None) -> Broken:
    return Broken("reset", None if before is None else _answer(before))


def stall(before: Answer | str = "") -> Broken:
    """Stop the answer after ``before``; the connection stays open."""
    return Broken("stall", _answer(before))


def cut(before: Answer | str = "") -> Broken:
    """End the stream after ``before`` as if complete, without the event that ends a response."""
    return Broken("end", _answer(before))


def error_event(
    before: Answer | str = "",
    *,
    code: str = "server_error",
    message: str = "The server had an error while processing your request.",
    nested: bool = False,
) -> Broken:
    """End the stream after ``before`` with an ``error`` event. A request that is not streamed gets a 500 with the same message."""
    return Broken("error", _answer(before), code, message, nested)


def _message(content: Item) -> Answer:
    return Answer(({"type": "message", "role": "assistant", "content": [content]},))


def _answer(said: Answer | str) -> Answer:
    if isinstance(said, Answer):
        return said
    return text(said) if said else Answer()


def text_of(item: Item) -> str:
    kind = item.get("type", "message")
    if kind == "function_call":
        return f"{item.get('name')}({item.get('arguments')})"
    content = item.get({"function_call_output": "output", "reasoning": "summary"}.get(kind, "content"))
    if isinstance(content, str):
        return content
    parts: list[Item] = content if isinstance(content, list) else []
    return "\n".join(part.get("text") or part.get("refusal") or "" for part in parts)
