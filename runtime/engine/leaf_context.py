"""View of the run for a leaf during an attempt, and the check of its rules against the page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Literal

from nodes.base import Leaf
from nodes.errors import SiteError
from nodes.pages import Page, Tabs
from nodes.ports import Agent, Artifacts, Mail, Model, Python, Sessions, Sql
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime import events
from runtime.browser import origins
from runtime.engine import scopes
from runtime.engine.run_state import RunState, StepServices
from runtime.log import attempts, entries
from runtime.secrets import masking


class LeafContext:
    """All of ``nodes.ports.LeafContext`` for one attempt of a leaf, except the action itself."""

    def __init__(self, run: RunState, node: Leaf, frame: scopes.Scope, path: str) -> None:
        self._run = run
        self.node = node
        self.frame = frame
        self.path = path
        self._begun = time.monotonic()
        self._matched: list[str] = []
        self._page: Page | None = None
        self._fresh = False  # true if the page is a separate tab, none of the run's
        self.call: entries.Call | None = None
        self._flags: list[dict[str, Json]] = []
        self.unmatched: str | None = None
        self._load: Literal["new", "same"] | None = None
        """"new" if a loaded address gave a new document, else "same"; None if none was loaded."""
        self.closing = False
        """True if the action is known to have happened: only the step's value is missing, and no more actions may be done."""
        self._own_services: StepServices | None = None

    @property
    def page(self) -> Page:
        assert self._page is not None, "the node type lacks `touches_page = True`"
        # A node that names no tab works in the current one, and may have switched to another.
        if not self._fresh and (self.node.works_in is None or self._page.closed):
            self._page = self.tabs.get(None)
        return self._page

    @property
    def tabs(self) -> Tabs:
        assert self._run.browser is not None, "the node does not say that it touches the page"
        return self._run.browser.tabs

    @property
    def _services(self) -> StepServices:
        if self._own_services is None:
            self._own_services = self._run.services(self._run, self)
        return self._own_services

    @property
    def artifacts(self) -> Artifacts:
        return self._services.artifacts

    @property
    def sql(self) -> Sql:
        return self._services.sql

    @property
    def python(self) -> Python:
        return self._services.python

    @property
    def model(self) -> Model:
        return self._services.model

    @property
    def agent(self) -> Agent:
        return self._services.agent

    @property
    def sessions(self) -> Sessions:
        return self._services.sessions

    @property
    def mail(self) -> Mail:
        return self._services.mail

    def answers(self, questions: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
        """Return a person's answers to the step's questions. Raises Paused if there are none."""
        return self._services.answers(questions)

    @property
    def limit(self) -> float:
        return self.node.seconds

    @property
    def left(self) -> float:
        return max(0.0, self.limit - (time.monotonic() - self._begun))

    def holds_secret(self, text: str) -> bool:
        return self.masked(text) != text

    def masked(self, text: str) -> str:
        return self._run.writer.masker.text(text)

    def hide(self, code: str) -> None:
        self._run.writer.masker = self._run.writer.masker.passing(code)
        self._run.hides(code)

    def flag(self, code: str, message: str, evidence: dict[str, Json]) -> None:
        flag: dict[str, Json] = self._run.writer.masker.json({"code": code, "message": message, "evidence": evidence})
        self._flags.append(flag)
        self._run.emit(events.Said(f"{self.path}: {flag['message']}"))

    async def load(self, url: str, *, anew: bool = False, once: bool = False) -> None:
        page, run = self.page, self._run
        before = page.documents
        await page.goto(url, anew=anew or (run.load_anew and not self._fresh), once=once)
        if not self._fresh:
            run.load_anew = False
        self._load = "new" if page.documents != before else "same"

    async def located(self, target: Target) -> Target:
        chosen = await self.page.locate(target)
        if chosen is not target:
            self._matched.append(str(chosen))
        return chosen


def demand_expr(rule: Rule) -> None:
    if not rule.expr:
        raise SiteError(
            "verify-failed", "the condition of `expr` is false", phase="after", evidence={"rule": "expr", "seen": False}
        )


async def all_hold(rules: Sequence[Rule], page: Page) -> bool:
    for rule in rules:
        if not (rule.expr if rule.kind == "expr" else await page.holds(rule)):
            return False
    return True


def led_to(action: attempts.Attempt) -> str | None:
    """Return the address to which a side effect led. If its result is not recorded: the address at which it was done."""
    page = action.result.page if action.result is not None else None
    url = (page.url if page is not None else None) or action.call.url
    return url if url is not None and masking.MASK not in url and origins.origin(url) is not None else None


def value_of_done(run: RunState, node: Leaf, action: attempts.Attempt | None = None) -> str | None:
    """Return the value of a step that is only known to have happened: the address of its page. An `agent` has none."""
    if run.browser is None or node.asks == "agent":
        return None
    known = led_to(action) if action is not None and not run.attached else None
    return known or run.browser.page.url


async def drop_input(run: RunState, node: Leaf) -> None:
    """Drop input that was typed again for an action that already took it up: it must not go out with the next action."""
    if run.browser is not None and run.browser.facts().pending_input:
        run.browser.bound(node.seconds)
        run.root.program.confine(run.browser)  # the page may be one that the caller of the step's file opened
        await run.browser.page.goto(run.browser.page.url, anew=True)
