"""Actions on the pages of the scout. Each is a separate run of a workflow with that one node, so it has the engine's barrier, guard and log."""

from __future__ import annotations

import dataclasses
import json
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from director.scouting import observer, page_tools, single_node
from nodes.base import Leaf
from nodes.errors import ModelError, OriginRefused, SiteError
from nodes.values import Json
from runtime.agents import secret_checks
from runtime.browser import borrowed, origins
from runtime.browser.elements import facts as element_facts
from runtime.browser.elements import targets
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.engine import engine as engines
from runtime.engine import run_state
from runtime.language import prepare
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log import entries
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.runs import start
from runtime.secrets import masking

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext
    from runtime.observation.observation import Observation

SETTLE_SECONDS = 3.0
"""Limit of waiting for the consequences of an action, in seconds."""

MOST_PAGE_ERRORS = 3
"""Limit of the page errors reported for one action."""

HELD = "held"
"""Reason of a run that paused before an action that is not allowed."""

ENDED = frozenset({"page-crashed", "guard-lost"})
"""Codes of errors after which the whole browser may be gone."""

ON_ELEMENT = frozenset({"click", "fill", "select", "check", "uncheck", "hover"})
"""Actions that need a ref."""

WITH_VALUE = frozenset({"fill", "select", "press"})
"""Actions that need a value."""

_SECRET = re.compile(r"\{\{\s*secrets\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclasses.dataclass(frozen=True, slots=True)
class ScoutAction(start.Part):
    """One node, done in the tab that it names."""

    node: Leaf
    tab: str

    @property
    @override
    def header(self) -> dict[str, Json]:
        return {"node": self.node.id, "nodes": [self.node.id], "scouting": True}

    @override
    async def run(self, engine: engines.ExecutionEngine) -> Json:
        """Do it, and wait for its consequences; return its value."""
        browser = cast("borrowed.Lent", await engine.state.need_browser(self.node.id))
        row: Any = browser.tabs
        page: Tab = row.get(self.tab) if self.tab in row.named else row.current
        async with page.settling(SETTLE_SECONDS):
            # A unit takes no checkpoint: nothing ever resumes from here.
            value = await engine.block([self.node], engine.state.root, "", unit=True)
        engine.state.writer.scope("", "committed", "run", value=value)
        return value


class ScoutActions:
    """Does the actions that one model requests."""

    def __init__(self, build: BuildContext, looks: page_tools.Looking, mine: list[str] | None = None) -> None:
        """``mine`` are the only tabs in which it may act; tabs that these open are added."""
        self._build, self._looks, self._mine = build, looks, mine
        self._observer = cast("observer.PageObserver", build.observer)
        self._leads = ""
        """Address of the link that is about to be clicked."""

    async def navigate(self, call: entries.Call, arguments: dict[str, Json]) -> turn.Outcome:
        """Load an address in a tab; the first opens the browser."""
        async with self._observer.scout.used() as session:
            if self._mine is not None and self._mine[0] not in session.tabs.named:
                await session.tabs.open(self._mine[0])
            page = self._page(arguments["tab"])
            url = self._address(str(arguments["url"]), page.url)
            return await self._do(call, session, page, {"action": "goto", "url": url})

    async def open_tab(self, call: entries.Call, arguments: dict[str, Json]) -> turn.Outcome:
        """Open a named tab at an address."""
        name = str(arguments["name"])
        if name == observer.BENCH or name.startswith(observer.SCOUT):
            raise ModelError("tool-arguments", f"`{name}` is what a browser is called", fix="give another name")
        async with self._observer.scout.used() as session:
            if name in session.tabs.named:
                raise ModelError(
                    "tool-arguments", f"a tab `{name[:80]}` is open", fix="give another name, or `debug_navigate`"
                )
            page = self._page(None)
            url = self._address(str(arguments["url"]), page.url)
            return await self._do(call, session, page, {"action": "open_tab", "url": url}, name)

    async def close_tab(self, call: entries.Call, arguments: dict[str, Json]) -> turn.Outcome:
        """Close a tab."""
        async with self._observer.scout.there() as session:
            return await self._do(call, session, self._page(arguments["name"]), {"action": "close_tab"})

    async def act(self, call: entries.Call, arguments: dict[str, Json]) -> turn.Outcome:
        """Do one action in a tab."""
        async with self._observer.scout.there() as session:
            page = self._page(arguments["tab"])
            if page.dialog is None and self._observer.last_of(page) is None:
                # Changes are reported relative to the page before the action.
                await self._observer.look_at(page)
            action = str(arguments["action"])
            if page.dialog is not None and action != "dialog":
                raise SiteError("dialog-open", "the page shows a dialog", fix=f"{page_tools.ANSWER} first")
            earlier = self._observer.last_of(page)
            try:
                fields = await self._fields(page, action, arguments["ref"], arguments["value"])
            except SiteError as error:
                return await self._not_found(page, earlier, error)
            return await self._do(call, session, page, fields)

    async def _not_found(self, page: Tab, earlier: Observation | None, error: SiteError) -> turn.Outcome:
        """Report an element that is no longer there, with the current page, where the model finds it."""
        more, theirs, whole = await self._looks.after(page, earlier)
        recorded: dict[str, Json] = self._masker.json(error.as_json())
        ours = "\n".join(filter(None, [_failed(recorded), more]))
        told = await self._looks.told(page, ours, f"{recorded['message']}\n{theirs}", whole=whole)
        return dataclasses.replace(told, error=recorded)

    # The request.

    def _page(self, tab: Json) -> Tab:
        name: str | None = tab
        if self._mine is not None:
            _where, name = self._looks.place(name)
        elif name is not None:
            where, name = self._observer.place(name)
            if where == "bench":
                fix = "run nodes there: `execute_nodes`; or null"
                raise ModelError("page-unknown", "the bench is no tab of the scout", fix=fix)
        return self._observer.page("scout", name)

    def _address(self, url: str, here: str) -> str:
        """Return a complete address of a web site."""
        base = here if origins.origin(here) is not None else self._build.goal.url or ""
        whole = urllib.parse.urljoin(base, url) if url.startswith(("/", "?")) else url
        if origins.origin(whole) is not None:
            return whole
        allowed = self._observer.scout.origins()
        raise OriginRefused(
            "origin-refused",
            f"`{url[:100]}` is no whole address of a web site",
            fix=f"give it with https:// or http://, or from / on; {', '.join(allowed) or 'no site'} may be opened",
            evidence={"allowed": list[Json](allowed), "kind": "main frame"},
        )

    async def _fields(self, page: Tab, action: str, ref: Json, value: Json) -> dict[str, Json]:
        """Return the fields of the node. Raises ModelError ``tool-arguments``, SiteError for an element that is missing, or that no target finds."""
        self._leads = ""
        if action in ON_ELEMENT and ref is None:
            raise _mismatch(f"`{action}` needs the ref of an element")
        if action in WITH_VALUE and value is None:
            raise _mismatch(f"`{action}` needs a value")
        if action == "dialog":
            return self._answer(page, value)
        if action == "back":
            return {"action": "back"}
        fields: dict[str, Json] = {"action": action}
        if ref is not None:
            target, facts = await self._target(page, str(ref))
            fields["target"] = target
            if action == "click" and facts.type == "radio":
                fields["action"] = "check"
            elif action == "click" and facts.type == "checkbox":
                fields["action"] = "uncheck" if facts.checked else "check"
            elif action == "click" and facts.link:
                self._leads = urllib.parse.urljoin(page.url, facts.link)
        if action == "press":
            fields["key"] = value
        elif action == "select":
            fields["value"] = _options(str(value))
        elif action == "fill":
            fields["value"] = value
        return fields

    def _answer(self, page: Tab, value: Json) -> dict[str, Json]:
        if page.dialog is None:
            raise SiteError("no-dialog", "the page shows no dialog", fix="continue without one")
        if value in (None, "dismiss"):
            return {"action": "dialog", "answer": "dismiss"}
        typed = {} if value == "accept" else {"value": value}
        return {"action": "dialog", "answer": "accept", **typed}

    async def _target(self, page: Tab, ref: str) -> tuple[Json, element_facts.Facts]:
        masker = self._masker
        async with self._observer.pointed_at(page, ref) as (pointed, element):
            target = await targets.target_of(
                pointed, element.role, element.name, lambda text: secret_checks.refusal(text, masker) is None
            )
            return target.model_dump(mode="json", exclude_unset=True, by_alias=True), pointed.facts

    @property
    def _masker(self) -> masking.Masker:
        return masking.Masker(self._build.known())

    # The run.

    async def _do(
        self, call: entries.Call, session: Session, page: Tab, fields: dict[str, Json], tab: str | None = None
    ) -> turn.Outcome:
        """Do it as a run, and report the outcome. ``tab`` is the tab concerned, if that is not ``page``."""
        session.tabs.name_new()
        name = tab or next((each for each, there in session.tabs.named.items() if there is page.page), None)
        if name is None:
            raise ModelError("page-unknown", "the tab is closed", fix="`debug_open_tab` opens one")
        written = self._written({**fields, **({"tab": name} if fields["action"] == "open_tab" else {})})
        prepared = prepare.Prepared(written.loaded, written.inputs, dict(self._build.known()))
        # A file cannot name a tab that no node of it opens.
        node = written.node.model_copy(update={"tab": name})
        earlier, before = self._observer.last_of(page), set(session.tabs.named)
        holds = None
        if node.effect_class == "effect":
            holds = await self._holds(written.literal, call, page)
        # Earlier page errors do not belong to this action.
        self._observer.scout.page_errors()
        ended = await self._build.runs.follow(
            call,
            lambda listener, options: self._build.carrier.begin(
                prepared,
                listener=listener,
                options=dataclasses.replace(
                    options, part=ScoutAction(node, name), browsers=borrowed.Lender(session), holds=holds
                ),
            ),
        )
        ours: list[str] = []
        error: dict[str, Json] | None = None
        paused = ended.question.get("reason") if ended.question is not None else None
        # Without a target there is no summary.
        said = written.literal.summary()
        what = self._observer.mask(str(fields["action"]) if said == written.literal.type else said)
        if paused == HELD:
            refused = self._build.goal.policy == "ask"
            why = "the person does not want it" if refused else "what it needs was found and is ready"
            ours.append(f"held: {why}, and it was not done; that is no failure")
            # A refused action is not done in another way either.
            if not refused and origins.origin(self._leads) is not None:
                ours.append("it is a link: `debug_navigate` loads where it leads")
                what = f"{what}\nleads to {self._observer.mask(self._leads)}"
        elif ended.status == "passed":
            ours.append("done")
        else:
            error = ended.error or _unknown(ended.question)
            if error["code"] in ENDED or not session.tabs.all():
                await self._observer.scout.demand_alive()
                error = {**error, "fix": "`debug_close_tab` closes the tab, `debug_open_tab` opens another one"}
            ours.append(_failed(error))
            what = f"{what}\n{error['message']}"
        complained = [f"page complains: {self._observer.mask(each)}" for each in self._observer.scout.page_errors()]
        what = "\n".join([what, *complained[:MOST_PAGE_ERRORS]])
        left = self._left_on(session, page, name, ours, before)
        if left is None:
            text = "\n".join([*ours, page_text.fenced(what)])
            return turn.Outcome(text, text, error)
        ours = [*(await self._bad_tabs(session, left, before)), *ours]
        more, theirs, whole = await self._looks.after(left, earlier if left is page else None)
        told = await self._looks.told(left, "\n".join(filter(None, [*ours, more])), f"{what}\n{theirs}", whole=whole)
        return dataclasses.replace(told, error=error)

    async def _holds(self, literal: Leaf, call: entries.Call, page: Tab) -> run_state.Withholds:
        """Return whether the run's one action is withheld. A person is asked for it in the page's words."""
        where = self._observer.mask(page.url)
        if page.dialog is not None:
            literal = literal.model_copy(update={"text": self._observer.mask(page.dialog)})
        decided = await self._build.effects.demand([(literal, literal.id)], place=call.path, page=where)
        held = decided(literal, literal.id)
        return lambda leaf, _path: held and leaf.effect_class == "effect"

    def _written(self, fields: dict[str, Json]) -> single_node.Written:
        try:
            return single_node.written(fields, self._secrets(fields), self._observer.scout.origins())
        except WorkflowInvalid as error:
            raise _mismatch("; ".join(dict.fromkeys(each.message for each in error.diagnostics))) from None

    def _secrets(self, fields: Mapping[str, Json]) -> Sequence[str]:
        """Return the typed secrets. Raises ModelError for an unknown one, and for anything else that looks like a secret."""
        value = fields.get("value")
        names = _SECRET.findall(value) if isinstance(value, str) else []
        known = self._build.known()
        if unknown := [each for each in names if each not in known]:
            raise ModelError(
                "secret-refused",
                f"there is no secret `{unknown[0][:80]}`",
                fix=f"there are: {', '.join(known) or 'none'}",
            )
        rest = {**fields, "value": _SECRET.sub("", value)} if names and isinstance(value, str) else fields
        if (why := secret_checks.refusal(dict(rest), self._masker)) is not None:
            fix = "type one as `{{ secrets.NAME }}` in `value` of fill, and nowhere else"
            raise ModelError("secret-refused", why, fix=fix)
        return list(dict.fromkeys(names))

    # The outcome.

    async def _bad_tabs(self, session: Session, told: Tab, before: set[str]) -> list[str]:
        """Return the first warning: other tabs that opened, and show an error of the site."""
        found: list[str] = []
        for name in [each for each in session.tabs.named if each not in before]:
            tab = session.tabs.get(name)
            status = await self._observer.status(tab) if tab is not told else None
            if status is not None and status >= page_tools.BAD:
                found.append(f"the document in {name} was answered with HTTP status {status}")
        return found

    def _left_on(self, session: Session, page: Tab, name: str, ours: list[str], before: set[str]) -> Tab | None:
        """Return the tab to report on, if any is left; messages about tabs are added to ``ours``."""
        opened = session.tabs.name_new()
        new = [each for each in session.tabs.named if each not in before and each not in opened]
        if opened:
            ours.append(f"{page_text.OPENED}{', '.join(opened)}")
        if self._mine is not None:
            self._mine += opened
        if page.closed:
            ours.append("the tab is closed")
        there = [each for each in session.tabs.named if self._mine is None or each in self._mine]
        left = new[0] if new else name if not page.closed else next(iter(there), None)
        if self._mine is None and left is not None:
            self._observer.scout.latest = left
        return session.tabs.get(left) if left is not None else None


def _options(value: str) -> Json:
    if value.lstrip().startswith("["):
        try:
            several = json.loads(value)
        except ValueError:
            return value
        if several and all(isinstance(each, str) for each in several):
            return several
    return value


def _mismatch(message: str) -> ModelError:
    return ModelError("tool-arguments", message, fix="call it again, fixed")


def _unknown(question: Mapping[str, Any] | None) -> dict[str, Json]:
    """Return the error of a run that paused: it is unknown whether its action was done."""
    message = str((question or {}).get("message") or "the run did not end")
    return ModelError(
        "scout-unknown", f"nobody knows whether it was done: {message}", fix="look at what the site says"
    ).as_json()


def _failed(error: Mapping[str, Json]) -> str:
    fix = f"; {error['fix']}" if error.get("fix") else ""
    return f"failed: {error['code']}{fix}"
