"""Words of other tools and languages that people and models write by habit, and what this language says instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from nodes.base import Node, Retry
from nodes.part import Part
from nodes.rules import Rule
from nodes.targets import Target


def _all(fix: str, *words: str) -> dict[str, str]:
    return dict.fromkeys(words, fix)


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds|h|hours?|m|min|minutes?|s|secs?|seconds?)?")
_SECONDS: Mapping[str, float] = {
    **dict.fromkeys(("ms", "milliseconds"), 0.001),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
}

OF_RULES: Mapping[str, str] = {
    **_all("visible", "exists", "present", "is_visible", "attached", "displayed", "element"),
    **_all("hidden", "not_visible", "not_exists", "absent", "gone", "missing", "detached", "is_hidden"),
    **_all("text", "contains", "contains_text", "has_text", "includes"),
    **_all("write `visible: {…}` with it", "selector", "locator", "css", "role", "test_id", "label"),
    **_all("url", "has_url", "path", "address"),
    "url_contains": 'write `url: "**/orders"`, a glob',
    **_all("value", "has_value", "equals"),
    "disabled": "write `enabled: false` and `target: {…}`",
    "unchecked": "write `checked: false` and `target: {…}`",
    "timeout": "write `timeout` beside `verify`: it is the node's",
}

OF_TARGETS: Mapping[str, str] = {
    **_all("css", "selector", "locator", "css_selector", "query", "tag"),
    **_all("has_text", "contains", "contains_text", "has"),
    **_all("within", "parent", "inside", "in", "container", "ancestor", "row"),
    **_all("test_id", "testid", "data_testid", "data-testid"),
    **_all("write `role` and `name`, or `label`", "aria_label", "accessible_name"),
    "id": 'write `css: "#…"`',
    "class": 'write `css: ".…"`',
    "href": "write `css: 'a[href=\"…\"]'`",
    "index": "nth",
    "first": "write `nth: 0`",
    "last": "write `nth: -1`",
    "iframe": "frame",
}

OF_NODES: Mapping[str, str] = {
    **_all("target", "selector", "locator", "element", "css"),
    **_all("over", "items", "list", "for_each", "in"),
    **_all("nodes", "steps", "children", "body", "do"),
    **_all("verify", "expect", "assert", "wait_for", "wait_until", "seconds", "duration"),
    **_all("when", "if", "condition", "only_if"),
    **_all("url", "href", "link", "address"),
    **_all("value", "text", "input"),
    **_all("key", "keys"),
}

OF_RETRIES: Mapping[str, str] = {
    **_all("attempts", "count", "times", "max", "max_attempts", "retries", "tries", "limit"),
    **_all("delay", "interval", "wait", "pause", "every", "seconds"),
}

OF: Mapping[type[Part], Mapping[str, str]] = {
    Rule: OF_RULES,
    Target: OF_TARGETS,
    Retry: OF_RETRIES,
    Node: OF_NODES,
}
"""The field that a field of a part was meant for, if the part has that; or the whole fix."""

CHOICES: Mapping[str, str] = {
    **_all("goto", "navigate", "visit", "open", "load"),
    **_all("fill", "input", "enter", "set_value", "clear"),
    **_all("dblclick", "double_click", "doubleclick"),
    **_all("press", "key", "keypress", "send_keys", "keyboard"),
    **_all("select", "select_option", "choose", "pick"),
    **_all("wait", "sleep", "pause", "wait_for", "wait_until"),
    **_all("upload", "set_input_files", "upload_file", "attach"),
    **_all("drag", "drag_and_drop", "drag_to"),
    **_all("scroll", "scroll_to", "scroll_into_view"),
    **_all("reload", "refresh"),
    **_all("text", "get_text", "inner_text", "text_content", "read"),
    **_all("exists", "is_visible", "visible"),
    **_all("attribute", "attr", "get_attribute"),
    **_all("extract", "list", "rows", "items", "extract_all"),
    **_all("iterate", "loop", "for", "foreach", "for_each", "while", "repeat"),
    **_all("route", "if", "switch", "branch", "condition"),
    **_all("handle", "try", "catch"),
    **_all("context", "set", "variable", "variables", "assign"),
    **_all("transform", "script", "js", "javascript", "python", "code", "evaluate"),
    **_all("cognition", "llm", "prompt", "ai"),
    "right_click": "write `action: click` with `button: right`",
    "context_click": "write `action: click` with `button: right`",
    "focus": "write `action: click`",
    "submit": "write `action: click` on its button, or `action: press` with `key: Enter`",
}
"""The action, query or node type that a word was meant for, or the whole fix."""


def amount(text: str) -> int | float | None:
    """Return the number of a text with or without a unit of time, in seconds; None if it is something else."""
    found = _AMOUNT.fullmatch(text.strip())
    return number(float(found[1]) * _SECONDS.get(found[2] or "", 1)) if found else None


def number(value: float) -> int | float:
    return int(value) if value == int(value) else round(value, 3)


def meant(model: type[Part] | None, word: str, fields: Iterable[str]) -> str | None:
    """Return the field that an unknown one of a part with these fields was meant for, or the whole fix; None if the word is not known."""
    found = next((words.get(word) for kind, words in OF.items() if model is not None and issubclass(model, kind)), None)
    return found if found is None or " " in found or found in fields else None


def of_field(model: type[Part] | None, word: str, fields: Iterable[str]) -> str | None:
    """Return what to write instead of an unknown field of a part with these fields; None if the word is not known."""
    found = meant(model, word, fields)
    return f"write `{found}: …`" if found is not None and " " not in found else found
