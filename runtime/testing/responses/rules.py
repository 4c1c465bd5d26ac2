"""Rules of the protocol, as the API enforces them: a request that breaks one is refused with the API's message."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import itertools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from nodes.values import Json
from runtime.testing.responses import schemas
from runtime.testing.scripted_model import Item

FIELDS = frozenset({
    "background", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "parallel_tool_calls",
    "previous_response_id", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier",
    "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})  # fmt: skip
"""Fields of a request that OpenAI's API knows, except those of conversations and of stored prompts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """A server's abilities; by default those of OpenAI's."""

    fields: frozenset[str] = FIELDS
    """The known fields. ``previous_response_id`` is needed for chaining, ``store`` for keeping, ``background`` for background work."""
    unknown: Literal["refuse", "ignore"] = "refuse"  # reaction to an unknown field: 400, or it is ignored
    schemas: Literal["strict", "any", "none"] = "strict"
    """``strict``: a strict schema must follow the API's rules; ``any``: every schema is accepted; ``none``: a schema for JSON is a 400."""
    unsealed: frozenset[str] = frozenset()  # models without reasoning: they refuse to be asked for it
    unknown_model: Literal[400, 404] = 404
    """Status for an unknown model. Servers differ; the code is ``model_not_found`` everywhere."""

    @property
    def keeps(self) -> bool:
        return "store" in self.fields


OPENAI = Profile()  # all abilities; unknown fields are refused

IGNORING = Profile(FIELDS - {"previous_response_id", "store", "background"}, "ignore", "any")
"""A server that accepts every field and keeps no state: a request that continues another one is answered as if it were the first."""

REFUSING = Profile(FIELDS - {"previous_response_id", "store", "background"}, "refuse", "none")
"""A server that refuses state and schemas."""

SEALED = "reasoning.encrypted_content"

LEAST_OUTPUT = 16  # tokens: the lowest `max_output_tokens`

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ASKED = ("input_text", "input_image", "input_file")
_DETAILS = ("low", "high", "auto", "original")
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,(.+)")
_BEGINNINGS = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}
_ROLES = {"user": _ASKED, "system": _ASKED, "developer": _ASKED, "assistant": ("output_text", "refusal")}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "a boolean": bool,
    "an integer": int,
    "a string": str,
    "an array": list,
    "an object": dict,
    "one of a string or array of objects": (str, list),
}
_REQUEST = {
    "instructions": "a string",
    "store": "a boolean",
    "stream": "a boolean",
    "background": "a boolean",
    "tools": "an array",
    "text": "an object",
    "max_output_tokens": "an integer",
}
_ITEMS = {
    "message": {"role": "a string", "content": "one of a string or array of objects"},
    "function_call": {"call_id": "a string", "name": "a string", "arguments": "a string"},
    "function_call_output": {"call_id": "a string", "output": "one of a string or array of objects"},
    "reasoning": {"id": "a string", "summary": "an array"},
}
"""Kinds of input items that the fake knows, with their required fields."""


@dataclasses.dataclass(eq=False)
class ApiError(Exception):
    """A refusal of a request, with the API's message."""

    message: str
    code: str | None = None
    param: str | None = None
    status: int = 400
    violation: bool = True  # true if no client that follows the protocol would have sent it
    kind: str = "invalid_request_error"


def check_fields(body: Json, profile: Profile) -> Item:
    """Return the known fields of a request. Raises ApiError for a forbidden or missing field, or an invalid value."""
    if not isinstance(body, dict):
        raise ApiError("We could not parse the JSON body of your request.")
    sent: Item = body
    for name in sorted(sent.keys() - profile.fields):
        if profile.unknown == "refuse":
            raise ApiError(f"Unknown parameter: '{name}'.", "unknown_parameter", name)
    read: Item = {name: value for name, value in sent.items() if name in profile.fields}
    if not read.get("model"):
        raise _missing("model")
    if not read.get("input") and not read.get("previous_response_id"):
        raise ApiError('One of "input" or "previous_response_id" must be provided.', "missing_required_parameter")
    for name, kind in _REQUEST.items():
        if read.get(name) is not None:
            _check_kind(read[name], kind, name)
    limit = read.get("max_output_tokens")
    if limit is not None and limit < LEAST_OUTPUT:
        raise ApiError(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}, but got {limit} instead.",
            "integer_below_min_value",
            "max_output_tokens",
        )
    if SEALED in (read.get("include") or ()) and read["model"] in profile.unsealed:
        raise ApiError("Encrypted content is not supported with this model.", param="include", violation=False)
    if read.get("background") and read.get("store") is False:
        raise ApiError("Background mode requires 'store' to be true.", "invalid_value", "background")
    return read


def check_format(body: Item, profile: Profile) -> None:
    form = form_of(body)
    if form.get("type") == "json_schema":
        if profile.schemas == "none":
            raise ApiError("This server does not support 'json_schema'.", "unsupported_value", "text.format")
        _check_name(form, "text.format")
        if not isinstance(form.get("schema"), dict):
            raise _missing("text.format.schema")
        begin = f"Invalid schema for response_format '{form['name']}': "
        _check_schema(form, form["schema"], profile, begin, "invalid_json_schema", "text.format.schema")
    elif form.get("type") == "json_object":
        if "json" not in json.dumps([body.get("input"), body.get("instructions")]).lower():
            raise ApiError(
                "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
                param="input",
            )
    else:
        _check_value(form.get("type"), ("text", "json_object", "json_schema"), "text.format.type")
    for number, tool in enumerate(body.get("tools") or ()):
        _check_tool(tool, f"tools[{number}]", profile)


def form_of(body: Item) -> Item:
    asked: Item = body.get("text") or {}
    form: Item = asked.get("format") or {"type": "text"}
    _check_kind(form, "an object", "text.format")
    return form


def _check_tool(tool: Item, place: str, profile: Profile) -> None:
    _check_kind(tool, "an object", place)
    _check_value(tool.get("type"), ("function",), f"{place}.type")
    _check_name(tool, place)
    begin = f"Invalid schema for function '{tool['name']}': "
    _check_schema(tool, tool.get("parameters"), profile, begin, "invalid_function_parameters", f"{place}.parameters")


def _check_schema(asked: Item, schema: Json, profile: Profile, begin: str, code: str, param: str) -> None:
    if asked.get("strict") and profile.schemas == "strict":
        try:
            schemas.check(schema)
        except schemas.SchemaError as error:
            raise ApiError(f"{begin}{error}", code, param) from None


def items_of(given: Json) -> list[Item]:
    """Return a request's input as items; a text alone becomes a user's message. Raises ApiError for invalid items."""
    if given is None:
        return []
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    _check_kind(given, "an array", "input")
    for number, item in enumerate(given):
        _check_item(item, f"input[{number}]")
    return [{"type": "message", **item} for item in given]


def _check_item(item: Item, place: str) -> None:
    _check_kind(item, "an object", place)
    kind = item.get("type", "message")
    _check_value(kind, _ITEMS, f"{place}.type")
    for name, wanted in _ITEMS[kind].items():
        if item.get(name) is None:
            raise _missing(f"{place}.{name}")
        _check_kind(item[name], wanted, f"{place}.{name}")
    if kind == "function_call_output":
        _check_parts(item["output"], _ASKED, f"{place}.output")
    if kind == "message":
        _check_value(item["role"], _ROLES, f"{place}.role")
        _check_parts(item["content"], _ROLES[item["role"]], f"{place}.content")


def _check_parts(content: Json, kinds: Collection[str], place: str) -> None:
    for number, part in enumerate(content if isinstance(content, list) else ()):
        _check_kind(part, "an object", f"{place}[{number}]")
        _check_value(part.get("type"), kinds, f"{place}[{number}].type")
        if part["type"] == "input_image":
            _check_picture(part, f"{place}[{number}]")


def _check_picture(part: Item, place: str) -> None:
    if part.get("detail") is not None:
        _check_value(part["detail"], _DETAILS, f"{place}.detail")
    address = part.get("image_url")
    if address is None and part.get("file_id") is None:
        raise _missing(f"{place}.image_url")
    if isinstance(address, str) and address.startswith(("https://", "http://")):
        return
    if address is not None and not _is_picture(address):
        raise ApiError(
            f"Invalid '{place}.image_url'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,...'), or a URL.",
            "invalid_value",
            f"{place}.image_url",
        )


def _is_picture(address: Json) -> bool:
    found = _PICTURE.fullmatch(address) if isinstance(address, str) else None
    if found is None:
        return False
    try:
        return base64.b64decode(found[2], validate=True).startswith(_BEGINNINGS[found[1]])
    except binascii.Error:
        return False


def check_thread(items: Sequence[Item], kept: Collection[str]) -> None:
    """Raise ApiError unless each call has one output, each output a call, and each reasoning item its successor.

    ``kept`` has the ids of all stored items: reasoning without its encrypted content is accepted only if it is stored.
    """
    _check_calls(items)
    for item, after in itertools.zip_longest(items, items[1:]):
        if item["type"] != "reasoning":
            continue
        if not item.get("encrypted_content") and item["id"] not in kept:
            raise ApiError(
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input.",
                param="input",
                status=404,
            )
        if after is None or (after["type"] == "message" and after["role"] != "assistant"):
            raise ApiError(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                param="input",
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Sealed:
    """A reasoning item that the server gave with its encrypted content, before a call."""

    id: str
    content: str
    model: str


def check_sealed(items: Sequence[Item], model: str, given: Mapping[str, Sequence[Sealed]]) -> None:
    """Raise ApiError unless each call stands after the reasoning that it was given with (``given``, by call), and that is unchanged.

    Another model can read none of it.
    """
    known = {each.id: each for thoughts in given.values() for each in thoughts}
    before = dict[str, Json]()
    for item in items:
        if item["type"] == "reasoning":
            before[item["id"]] = item.get("encrypted_content")
            its = known.get(item["id"])
            if (
                its is not None
                and item.get("encrypted_content")
                and (its.content, its.model) != (item["encrypted_content"], model)
            ):
                said = f"The encrypted content for item {item['id']} could not be verified."
                raise ApiError(said, "invalid_encrypted_content")
        elif item["type"] == "function_call":
            missing = [
                each.id for each in given.get(item["call_id"], ()) if each.model == model and each.id not in before
            ]
            if missing:
                said = f"Item '{item['call_id']}' of type 'function_call' was provided without its required 'reasoning' item: '{missing[0]}'."
                raise ApiError(said, param="input")


def _check_calls(items: Sequence[Item]) -> None:
    seen: dict[str, set[str]] = {"function_call": set(), "function_call_output": set()}
    for item in items:
        if (kind := item["type"]) not in seen:
            continue
        call = item["call_id"]
        if kind == "function_call_output" and call not in seen["function_call"]:
            raise ApiError(f"No tool call found for function call output with call_id {call}.", param="input")
        if call in seen[kind]:
            what = kind.replace("_", " ")
            raise ApiError(f"Duplicate {what} with call_id {call}.", "duplicate_call_id", "input")
        seen[kind].add(call)
    for call in sorted(seen["function_call"] - seen["function_call_output"]):
        raise ApiError(f"No tool output found for function call {call}.", param="input")


def _missing(param: str) -> ApiError:
    return ApiError(f"Missing required parameter: '{param}'.", "missing_required_parameter", param)


def _check_value(found: Json, wanted: Collection[str], param: str) -> None:
    if found not in wanted:
        names = ", ".join(f"'{each}'" for each in wanted)
        raise ApiError(f"Invalid value: '{found}'. Supported values are: {names}.", "invalid_value", param)


def _check_kind(value: Json, wanted: str, param: str) -> None:
    if isinstance(value, _TYPES[wanted]) and (wanted == "a boolean" or not isinstance(value, bool)):
        return
    kind = (
        "null" if value is None else next((word for word, it in _TYPES.items() if isinstance(value, it)), "a decimal")
    )
    raise ApiError(f"Invalid type for '{param}': expected {wanted}, but got {kind} instead.", "invalid_type", param)


def _check_name(asked: Item, place: str) -> None:
    name = asked.get("name")
    if not name:
        raise _missing(f"{place}.name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ApiError(
            f"Invalid '{place}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            "invalid_value",
            f"{place}.name",
        )
