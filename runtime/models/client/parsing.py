"""Defensive parsing of a server's response: a malformed one raises Failed, never another Python error.

The failure has the response's usage, if that can be read.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

from nodes.errors import ModelError
from nodes.values import Json
from runtime.display.text import cut
from runtime.messages.messages import Answer, Thought, ToolCall, Usage
from runtime.models.client.errors import Failed

ODD = (AttributeError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)

TRANSIENT_CODES = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout", "overloaded_error"})
"""Codes of failed responses that may succeed later."""

QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded"})
"""Codes of a 429 that waiting does not fix."""

MOST_TOKENS = 2**53  # larger counts are invalid: programs that read JSON numbers as floats keep only smaller ones exact
LONGEST_NAME = 64  # maximum characters of a tool's name, and of the id of a call, in the API

NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")

CUT = "max_output_tokens"  # reason of an answer that is not complete because it may not be longer

NAMELESS = "unnamed"  # name of a call without one. No tool has this name, so the model gets `tool-unknown`

LONGEST = 200  # maximum columns shown of a code, or of a Python error


def answer(response: Any, heard: str = "") -> Answer:
    """Parse a final response; ``heard`` is the text streamed before it. Raises Failed if it is unusable."""
    used = usage(response)
    try:
        return _answer(response, used, heard)
    except ODD as error:
        raise odd(error, heard, used) from None


def odd(error: Exception, heard: str = "", used: Usage | None = None) -> Failed:
    """Build the failure for a malformed response. It is not requested again: the server would send the same, and charge each time."""
    seen = cut(f"{type(error).__name__}: {' '.join(str(error).split())}", LONGEST)
    failure = ModelError(
        "model-failed",
        f"what the server sent is not of the form of the Responses API ({seen})",
        fix="look at `model_base_url` and `model_profile`; `runops doctor --model` finds out what the server can",
        evidence={"text": heard[-500:]} if heard else None,
    )
    return Failed(failure, partial=heard, usage=used)


def failed(code: object, message: object, partial: str, used: Usage | None) -> Failed:
    """Build the failure for a response, or a stream, that reports its own failure."""
    code, said = word(code), message if isinstance(message, str) and message else "it does not say why"
    if code in QUOTA_CODES:
        error = ModelError(
            "model-quota",
            f"the account has no quota left: {said}",
            fix="look at the account's plan and bills: waiting does not fix this",
        )
        return Failed(error, partial=partial, usage=used)
    error = ModelError(
        "model-rate-limited" if code == "rate_limit_exceeded" else "model-failed",
        f"the server failed while it answered: {said}",
        fix="try again later; the provider's status page may say more",
        evidence={"code": code} if code else None,
    )
    return Failed(error, again=code is None or code in TRANSIENT_CODES, partial=partial, usage=used)


def word(code: object) -> str | None:
    return None if code is None else cut(str(code), LONGEST)


def name(response: Any) -> str:
    found: object = getattr(response, "id", None)
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""


def usage(response: Any) -> Usage | None:
    """Return the usage that the server reports; None if input or output tokens are missing: unknown is not zero."""
    used: object = getattr(response, "usage", None)
    sent, came = _tokens(used, "input_tokens"), _tokens(used, "output_tokens")
    if sent is None or came is None:
        return None
    # Compatible servers may leave out the details.
    cached = _tokens(getattr(used, "input_tokens_details", None), "cached_tokens")
    reasoning = _tokens(getattr(used, "output_tokens_details", None), "reasoning_tokens")
    return Usage(input=sent, cached=min(cached or 0, sent), output=came, reasoning=min(reasoning or 0, came))


def _tokens(used: object, field: str) -> int | None:
    found: object = getattr(used, field, None)
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if 0 <= found < MOST_TOKENS else None


def _answer(response: Any, used: Usage | None, heard: str) -> Answer:
    """Parse the response. Raises Failed, and a Python error of ``ODD`` for a malformed response."""
    text = "".join(part.text for part in _parts(response, "output_text"))
    if refusals := _parts(response, "refusal"):
        why = str(getattr(refusals[0], "refusal", None) or "it does not say why")
        error = ModelError(
            "model-refused",
            f"the model refuses to answer: {why}",
            fix="change the instruction or the input; the same again is refused again",
            evidence={"refusal": why},
        )
        raise Failed(error, partial=text or heard, usage=used)
    if response.status == "incomplete":
        reason = word(response.incomplete_details.reason if response.incomplete_details else None) or "unknown"
        # Who asks replaces the fix of a cut answer: only it knows what sets the limit.
        fix = "ask for less at once" if reason == CUT else "change what is asked"
        evidence: dict[str, Json] = {"reason": reason, "text": text or heard}
        error = ModelError("model-cut-short", f"the answer is not complete: {reason}", fix=fix, evidence=evidence)
        raise Failed(error, partial=text or heard, usage=used)
    if response.status in ("failed", "cancelled") or response.error is not None:
        code = response.error.code if response.error else response.status
        message = response.error.message if response.error else f"the response is {response.status}"
        raise failed(code, message, text or heard, used)
    output = _output(response)
    thoughts = [each.text for item in output if item.type == "reasoning" for each in item.summary or ()]
    reasoning = tuple(each for each in thoughts if isinstance(each, str))
    calls = tuple(_call(item) for item in output if item.type == "function_call")
    thoughts = _thoughts(output, used)
    return Answer(text, used, str(response.model), name(response), reasoning, calls, thoughts)


def _thoughts(output: list[Any], used: Usage | None) -> tuple[Thought, ...]:
    """Return the encrypted reasoning, each with its place among the calls. What nothing follows is left out: no server takes it back."""
    found: list[Thought] = []
    waiting: list[tuple[str, str]] = []
    calls = 0
    for item in output:
        calls += item.type == "function_call"
        if item.type == "reasoning":
            name, sealed = getattr(item, "id", None), getattr(item, "encrypted_content", None)
            if isinstance(name, str) and isinstance(sealed, str) and name and sealed:
                waiting.append((name, sealed))
        elif item.type in ("message", "function_call"):
            found += [Thought(*each, 0, calls if item.type == "function_call" else 0) for each in waiting]
            waiting = []
    # The server counts the reasoning of all together. Without its count, no token is shorter than a byte of the encrypted base64.
    known = -(-used.reasoning // len(found)) if used is not None and found else None
    return tuple(
        dataclasses.replace(each, tokens=known if known is not None else len(each.sealed) * 3 // 4) for each in found
    )


def _call(item: Any) -> ToolCall:
    """Return the tool call. Raises an error of ``ODD`` for an invalid field, or a missing one that its output needs."""
    if not isinstance(item.call_id, str) or not item.call_id:
        raise ValueError("a function call without `call_id`")
    named: object = getattr(item, "name", None)
    if not isinstance(named, str | None):
        raise TypeError("the `name` of a function call is no text")
    # Some servers send the parsed value; some send null if the tool takes no arguments.
    given: object = item.arguments
    arguments = given if isinstance(given, str) else json.dumps(given if given is not None else {}, ensure_ascii=False)
    return ToolCall(item.call_id, tool_name(named or ""), arguments)


def tool_name(text: str) -> str:
    """Make a tool's name valid for the API: a model may invent any, or leave it empty."""
    return NO_NAME.sub("_", text)[:LONGEST_NAME] or NAMELESS


def _output(response: Any) -> list[Any]:
    # Compatible servers may leave it out.
    return [*(response.output or ())]


def _parts(response: Any, kind: str) -> list[Any]:
    messages = [item for item in _output(response) if item.type == "message"]
    return [part for item in messages for part in item.content or () if part.type == kind]
