"""Steps as plain Playwright: what each does on the page, and the code of its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodes.base import Leaf
from nodes.browser_action import mouse
from runtime.export.actions import ACTIONS, expect_dialog
from runtime.export.code import NotCarried
from runtime.export.queries import QUERIES
from runtime.export.step import Body, Value, check

WHY = {
    "cognition": "it asks a model",
    "agent": "a model does it",
    "ai_extract": "it asks a model",
    "ai_answer": "it asks a model",
    "mail": "it reads a mailbox",
    "observation": "it is RunOps' own view of a page",
    "load_session": "signed-in states of RunOps are not carried over",
    "save_session": "signed-in states of RunOps are not carried over",
    "select_text": "it selects text with the mouse",
    "copy": "the clipboard is the workflow's own",
}


def emit(body: Body, node: Leaf) -> Value:
    """Write the statements of a step, and return the code of its value. Raises NotCarried before it writes any."""
    translate = ACTIONS.get(type(node)) or QUERIES.get(type(node))
    if translate is None:
        name = getattr(node, "action", None) or getattr(node, "query", None) or node.type
        raise NotCarried(WHY.get(name, f"the node type `{node.type}` is of a plugin"))
    tab = body.page_of(node.works_in)
    may_close = bool(node.verify) and tab != "page" and isinstance(node, mouse.Opener)
    value = (
        _within(body, f"with {body.need('closing')}({tab}):", translate, node) if may_close else translate(body, node)
    )
    if getattr(node, "rest", False) is not False:
        body.line(f"{body.page_of(node.works_in)}.wait_for_load_state()")
        body.line(f"{body.page_of(node.works_in)}.wait_for_timeout(500)")
    page = body.page_of(node.works_in)
    if may_close:
        page = body.local("here")
        body.line(f"{page} = {body.need('left')}({tab}, page)")
    for rule in node.verify:
        check(body, node, rule, page)
    return value


def _within(body: Body, head: str, translate: Callable[[Body, Any], Value], node: Leaf) -> Value:
    """Write the statements of a step into a block. Raises NotCarried before it writes any."""
    begin = len(body.lines)
    body.line(head)
    body.depth += 1
    try:
        return translate(body, node)
    except NotCarried:
        del body.lines[begin:]
        raise
    finally:
        body.depth -= 1


__all__ = ["emit", "expect_dialog"]
