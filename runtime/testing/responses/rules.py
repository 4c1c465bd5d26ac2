"""The rules of the protocol, as the API enforces them: a request that breaks one is refused with the API's own words."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from nodes.values import Json
from runtime.testing.responses import schemas
from runtime.testing.responses.profile import Profile

LEAST_OUTPUT = 16
"""Tokens: the lowest ``max_output_tokens``."""

Item = dict[str, Json]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES = {
    "user": ("input_text", "input_image", "input_file"),
    "system": ("input_text", "input_image", "input_file"),
    "developer": ("input_text", "input_image", "input_file"),
    "assistant": ("output_text", "refusal"),
}
_FIELDS: dict[str, tuple[tuple[str, type | tuple[type, ...]], ...]] = {
    "message": (("role", str), ("content", (str, list))),
    "function_call": (("call_id", str), ("name", str), ("arguments", str)),
    "function_call_output": (("call_id", str), ("output", (str, list))),
    "reasoning": (("id", str), ("summary", list)),
}
"""The kinds of input items that the fake knows, with the fields that each must have."""
_WORD_FOR: dict[type | tuple[type, ...], str] = {
    str: "a string",
    list: "an array",
    (str, list): "one of a string or array of objects",
    bool: "a boolean",
    int: "an integer",
    dict: "an object",
}


class ApiError(Exception):
    """A request is refused, with this status and the API's words."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, param: str | None = None, violation: bool = True
    ) -> None:
        """``violation``: no client that follows the protocol would have sent it."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.violation = violation
        self.kind = "invalid_request_error"


def check_fields(body: Json, profile: Profile) -> dict[str, Json]:
    """Return the known fields of a request. Raises ApiError for forbidden fields, and for values of a wrong kind."""
    if not isinstance(body, dict):
        raise ApiError(400, "We could not parse the JSON body of your request.")
    sent: Item = body
    for name in sorted(sent.keys() - profile.fields):
        if profile.unknown == "refuse":
            raise ApiError(400, f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    read: Item = {name: value for name, value in sent.items() if name in profile.fields}
    if not read.get("model"):
        raise _missing("model")
    if not read.get("input") and not read.get("previous_response_id"):
        raise ApiError(
            400, "One of \"input\" or \"previous_response_id\" must be provided.", code="missing_required_parameter"
        )  # fmt: skip
    for name, kind in (("instructions", str), ("store", bool), ("stream", bool), ("background", bool), ("tools", list), ("text", dict)):  # fmt: skip
        if read.get(name) is not None:
            _kind(read[name], kind, name)
    _check_limit(read.get("max_output_tokens"))
    if read.get("background") and read.get("store") is False:
        raise ApiError(400, "Background mode requires 'store' to be true.", code="invalid_value", param="background")
    return read


def _check_limit(limit: Json) -> None:
    if limit is None:
        return
    _kind(limit, int, "max_output_tokens")
    if limit < LEAST_OUTPUT:
        raise ApiError(
            400,
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}, but got {limit} instead.",
            code="integer_below_min_value",
            param="max_output_tokens",
        )


def check_format(body: dict[str, Json], profile: Profile) -> None:
    """Raise ApiError unless the format of the answer and the tools are valid."""
    form = form_of(body)
    if form.get("type") == "json_schema":
        if profile.schemas == "none":
            raise ApiError(400, "This server does not support 'json_schema'.", code="unsupported_value", param="text.format")  # fmt: skip
        _name(form, "text.format")
        if not isinstance(form.get("schema"), dict):
            raise _missing("text.format.schema")
        begin = f"Invalid schema for response_format '{form['name']}': "
        _check_schema(form, form["schema"], profile, begin, ("invalid_json_schema", "text.format.schema"))
    elif form.get("type") == "json_object":
        if "json" not in json.dumps([body.get("input"), body.get("instructions")]).lower():
            raise ApiError(
                400,
                "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
                param="input",
            )
    elif form.get("type") != "text":
        raise _value(form.get("type"), ("text", "json_object", "json_schema"), "text.format.type")
    for number, tool in enumerate(body.get("tools") or ()):
        _check_tool(tool, f"tools[{number}]", profile)


def form_of(body: Item) -> Item:
    """Return the format that a request asks for. Raises ApiError where it is none."""
    asked: Item = body.get("text") or {}
    form: Item = asked.get("format") or {"type": "text"}
    _kind(form, dict, "text.format")
    return form


def _check_tool(given: Json, place: str, profile: Profile) -> None:
    _kind(given, dict, place)
    tool: Item = given
    if tool.get("type") != "function":
        raise _value(tool.get("type"), ("function",), f"{place}.type")
    _name(tool, place)
    begin = f"Invalid schema for function '{tool['name']}': "
    _check_schema(tool, tool.get("parameters"), profile, begin, ("invalid_function_parameters", f"{place}.parameters"))


def _check_schema(asked: Item, schema: Json, profile: Profile, begin: str, names: tuple[str, str]) -> None:
    if not asked.get("strict") or profile.schemas != "strict":
        return
    try:
        schemas.check(schema)
    except schemas.SchemaError as error:
        raise ApiError(400, f"{begin}{error}", code=names[0], param=names[1]) from None


def items_of(given: Json) -> list[Item]:
    """Return a request's input as items: text alone is a message of the user. Raises ApiError for invalid items."""
    if given is None:
        return []
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    _kind(given, list, "input")
    for number, item in enumerate(given):
        _check_item(item, f"input[{number}]")
    return [{"type": "message", **item} for item in given]


def _check_item(given: Json, place: str) -> None:
    _kind(given, dict, place)
    item: Item = given
    kind = item.get("type", "message")
    if kind not in _FIELDS:
        raise _value(kind, tuple(_FIELDS), f"{place}.type")
    for name, wanted in _FIELDS[kind]:
        if item.get(name) is None:
            raise _missing(f"{place}.{name}")
        _kind(item[name], wanted, f"{place}.{name}")
    if kind == "message":
        _check_message(item, place)


def _check_message(item: Item, place: str) -> None:
    if item["role"] not in _ROLES:
        raise _value(item["role"], tuple(_ROLES), f"{place}.role")
    if isinstance(item["content"], list):
        parts: list[Item] = item["content"]
        for number, part in enumerate(parts):
            _kind(part, dict, f"{place}.content[{number}]")
            if part.get("type") not in _ROLES[item["role"]]:
                raise _value(part.get("type"), _ROLES[item["role"]], f"{place}.content[{number}].type")


def check_thread(items: Sequence[Item], kept: Collection[str]) -> None:
    """Raise ApiError unless every call has one output, every output a call, and every reasoning item its successor.

    ``kept`` holds the ids of all stored items: reasoning without its content is known only if stored.
    """
    _check_calls(items)
    for number, item in enumerate(items):
        if item["type"] != "reasoning":
            continue
        if not item.get("encrypted_content") and item["id"] not in kept:
            raise ApiError(
                404,
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input.",
                param="input",
            )
        after = items[number + 1] if number + 1 < len(items) else None
        if after is None or (after["type"] == "message" and after["role"] != "assistant"):
            raise ApiError(
                400,
                f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                param="input",
            )


def _check_calls(items: Sequence[Item]) -> None:
    calls, outputs = set[str](), set[str]()
    for item in items:
        if item["type"] == "function_call":
            _once(item["call_id"], calls, "function call")
        elif item["type"] == "function_call_output":
            if item["call_id"] not in calls:
                raise ApiError(
                    400, f"No tool call found for function call output with call_id {item['call_id']}.", param="input"
                )
            _once(item["call_id"], outputs, "function call output")
    for item in items:
        if item["type"] == "function_call" and item["call_id"] not in outputs:
            raise ApiError(400, f"No tool output found for function call {item['call_id']}.", param="input")


def _once(call_id: str, seen: set[str], what: str) -> None:
    if call_id in seen:
        raise ApiError(400, f"Duplicate {what} with call_id {call_id}.", code="duplicate_call_id", param="input")
    seen.add(call_id)


def _missing(param: str) -> ApiError:
    return ApiError(400, f"Missing required parameter: '{param}'.", code="missing_required_parameter", param=param)


def _value(found: Json, wanted: tuple[str, ...], param: str) -> ApiError:
    names = ", ".join(f"'{each}'" for each in wanted)
    return ApiError(400, f"Invalid value: '{found}'. Supported values are: {names}.", code="invalid_value", param=param)


def _kind(value: Json, wanted: type | tuple[type, ...], param: str) -> None:
    if isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool)):
        return
    raise ApiError(
        400,
        f"Invalid type for '{param}': expected {_WORD_FOR[wanted]}, but got {_found(value)} instead.",
        code="invalid_type",
        param=param,
    )


def _found(value: Json) -> str:
    for kind in (bool, int, str, list, dict):
        if isinstance(value, kind):
            return _WORD_FOR[kind]
    return "null" if value is None else "a decimal"


def _name(asked: Item, place: str) -> None:
    name = asked.get("name")
    if not name:
        raise _missing(f"{place}.name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ApiError(
            400,
            f"Invalid '{place}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            code="invalid_value",
            param=f"{place}.name",
        )
