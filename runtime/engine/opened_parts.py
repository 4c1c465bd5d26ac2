"""A part of a page that a step opened, and that the page may close again when it draws itself anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from nodes.base import Leaf
from nodes.errors import AuthorError, RunOpsError, SiteError
from nodes.pages import Page
from nodes.rules import Rule

OPENS = frozenset({"click", "dblclick", "tap", "press", "hover"})
MISSED = frozenset({"target-not-found", "target-not-actionable"})  # codes of errors if the part is closed again

LOOK_SECONDS = 2.0  # seconds to look whether it is still open
OPENED_BY = "opened_by"  # in the evidence of such an error: the id of the step that opened the part


@dataclasses.dataclass(frozen=True, slots=True)
class Opened:
    node: str
    rules: Sequence[Rule]  # that held on the page once the step was done

    @staticmethod
    def by(node: Leaf, rules: Sequence[Rule], page: Page, before: tuple[int, str] | None) -> Opened | None:
        """Return what a step with ``effect: read`` opened; None if it does not open, or led to another address.

        ``before``: number of documents and address just before it.
        """
        opens = getattr(node, "action", None) in OPENS and node.effect_class == "read"
        return Opened(node.id, rules) if opens and before == (page.documents, page.url) else None

    async def explained(self, error: RunOpsError, node: Leaf, page: Page) -> RunOpsError:
        """Return the error of a later step on the page; if the part may be closed, its fix says how to repeat both."""
        if error.code not in MISSED or await self._still_open(page):
            return error
        repeat = f"repeat both: `handle` with `attempts: 3`, and in its `try` `{self.node}`, then `{node.id}` with a short `timeout`"
        fix = f"what `{self.node}` opened is closed again: {repeat}"
        if not self.rules:
            said = f"{error.fix}; " if error.fix else ""
            fix = f"{said}if the page closed again what `{self.node}` opened, {repeat}"
        return error.replaced(fix=fix, evidence={**error.evidence, OPENED_BY: self.node})

    async def _still_open(self, page: Page) -> bool:
        try:
            return bool(self.rules) and all([await page.holds(rule) for rule in self.rules])
        except (SiteError, AuthorError):
            return False
