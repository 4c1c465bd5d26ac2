"""Steps as plain Playwright: what each does on the page, and the code of its value."""

from __future__ import annotations

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
    value = translate(body, node)
    if getattr(node, "rest", False) is not False:
        body.line(f"{body.page_of(node.works_in)}.wait_for_load_state()")
        body.line(f"{body.page_of(node.works_in)}.wait_for_timeout(500)")
    page = body.page_of(node.works_in)
    if node.verify and page != "page" and isinstance(node, mouse.Opener):
        page = body.local("here")
        body.line(f"{page} = {body.need('left')}({body.page_of(node.works_in)}, page)")
    for rule in node.verify:
        check(body, node, rule, page)
    return value


__all__ = ["emit", "expect_dialog"]
