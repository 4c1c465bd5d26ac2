"""Words of other tools and languages that people and models write by habit, and what this language says instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodes.base import Node
from nodes.part import Part
from nodes.rules import Rule
from nodes.targets import Target


def _all(fix: str, *words: str) -> dict[str, str]:
    return dict.fromkeys(words, fix)


OF_RULES = {
    **_all("write `visible: {…}`", "exists", "present", "is_visible", "attached", "displayed", "element"),
    **_all("write `hidden: {…}`", "not_visible", "not_exists", "absent", "gone", "missing", "detached", "is_hidden"),
    **_all("write `text: …`, and `target: {…}` for one element", "contains", "contains_text", "has_text", "includes"),
    **_all("write `visible: {…}` with it", "selector", "locator", "css", "role", "test_id", "label"),
    **_all('write `url: "**/orders"`, a glob', "url_contains", "has_url", "path", "address"),
    **_all("write `value: …` and `target: {…}`", "has_value", "equals"),
    "disabled": "write `enabled: false` and `target: {…}`",
    "unchecked": "write `checked: false` and `target: {…}`",
}

OF_TARGETS = {
    **_all("write `css: …`", "selector", "locator", "css_selector", "query", "tag"),
    **_all("write `has_text: …`", "contains", "contains_text", "has"),
    **_all("write `within: {…}`", "parent", "inside", "in", "container", "ancestor", "row"),
    **_all("write `test_id: …`", "testid", "data_testid"),
    **_all("write `role` and `name`, or `label`", "aria_label", "accessible_name"),
    "id": 'write `css: "#…"`',
    "class": 'write `css: ".…"`',
    "href": "write `css: 'a[href=\"…\"]'`",
    "index": "write `nth: …`, from 0",
    "first": "write `nth: 0`",
    "last": "write `nth: -1`",
    "iframe": "write `frame: …`",
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
"""The field that a field of a node was meant for, if the node has that."""

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


def of_field(model: type[Part] | None, word: str, fields: Iterable[str]) -> str | None:
    """Return what to write instead of an unknown field of a part with these fields; None if the word is not known."""
    if model is None:
        return None
    if issubclass(model, Rule):
        return OF_RULES.get(word)
    if issubclass(model, Target):
        return OF_TARGETS.get(word)
    meant = OF_NODES.get(word) if issubclass(model, Node) else None
    return f"write `{meant}: …`" if meant is not None and meant in fields else None
