"""Actions on the pages of the scout. Each is a run of a workflow with that one node, so it has the engine's barrier, guard and log."""

from __future__ import annotations

import dataclasses
import json
import re
import urllib.parse
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from typing_extensions import override

from director.draft.goal import GIVEN_BY_NAME
from director.effects import effects
from director.scouting import given, observer, page_tools
from nodes import browser_action, registry
from nodes.base import Leaf
from nodes.errors import ModelError, SiteError, did_you_mean
from nodes.values import Json
from runtime import events
from runtime.agents import actions, secret_checks
from runtime.browser import borrowed, origins
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.engine import engine as engines
from runtime.engine import run_state
from runtime.language import prepare, reader, workflow, writer
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log import entries
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.runs import start
from runtime.runs.runtime import Run

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext
    from runtime.browser.elements.facts import Facts
    from runtime.browser.page import inspection
    from runtime.observation.observation import Observation

FILE = "scouting.yaml"
SETTLE_SECONDS = 3.0  # limit of the wait for the page to settle after an action, in seconds

MOST_PAGE_ERRORS = 3
HELD = "held"
ENDED = frozenset({"page-crashed", "guard-lost"})
BY_OTHER_TOOLS = frozenset({
    "goto", "wait", "open_tab", "switch_tab", "screenshot", "pdf", "save_session", "load_session",
})  # fmt: skip
ACTIONS: Mapping[str, type[Leaf]] = {
    name: kind
    for kind in browser_action.VARIANTS
    if (name := get_args(kind.model_fields["action"].annotation)[0]) not in BY_OTHER_TOOLS
}
WITH_VALUE = {
    **dict.fromkeys(("fill", "type", "select", "paste"), "value"),
    "press": "key",
    "upload": "files",
    "select_text": "text",
}
"""The field that the value of a call is, by action. That of ``drag`` is an element."""

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
        browser = await engine.state.need_browser(self.node.id)
        row: Any = browser.tabs
        page: Tab = row.get(self.tab) if self.tab in row.named else row.current
        async with page.settling(SETTLE_SECONDS):
            # A unit takes no checkpoint: nothing ever resumes from here.
            value = await engine.block([self.node], engine.state.root, "", unit=True)
        engine.state.writer.scope("", "committed", "run", value=value)
        return value


def written(fields: Mapping[str, Json], secrets: Sequence[str], allowed: Sequence[str]) -> tuple[workflow.Loaded, Leaf]:
    """Return the workflow of an action, and its node with literal texts, as shown to a person.

    Only a ``value`` with ``secrets`` has references; all else is literal. Raises WorkflowInvalid.
    """
    head: dict[str, Json] = {"id": f"debug_{fields['action']}", "type": "browser_action"}
    plain = {name: each if secrets and name == "value" else writer.literal(each) for name, each in fields.items()}
    text = writer.text(
        {
            "version": 1,
            "name": "an action of the scout",
            "secrets": list[Json](secrets),
            "allowed_origins": list[Json](allowed),
            "nodes": [{**head, **plain}],
        }
    )
    literal = registry.parse_node({**head, **fields})
    assert isinstance(literal, Leaf)
    return reader.parse(text, FILE), literal


@dataclasses.dataclass(frozen=True, slots=True)
class _Element:
    target: Json
    facts: Facts | None  # None if an observation has no ref for it


class ScoutActions:
    def __init__(self, build: BuildContext, looks: page_tools.Looking, mine: list[str] | None = None) -> None:
        """``mine`` are the only tabs in which it may act, by default all; tabs that these open are added."""
        self._build, self._looks, self._mine = build, looks, mine
        self._observer = cast("observer.PageObserver", build.observer)

    async def navigate(self, call: entries.Call, arguments: dict[str, Json]) -> turn.Outcome:
        """Load an address in a tab; a name that no tab has opens one."""
        tab = arguments["tab"]
        async with self._observer.scout.used() as session:
            if self._mine is not None and self._mine[0] not in session.tabs.named:
                await session.tabs.open(self._mine[0])
            new = self._new(session, tab)
            page = self._page(None if new is not None else tab)
            url = self._address(str(arguments["url"]), page.url)
            action = "open_tab" if new is not None else "goto"
            return await self._do(call, session, page, {"action": action, "url": url}, tab=new)

    def _new(self, session: Session, tab: Json) -> str | None:
        """Return the name of a tab that is to be opened; None if it is there, or may not be opened."""
        if not isinstance(tab, str) or self._mine is not None or tab == observer.BENCH:
            return None
        name = tab.removeprefix(f"{observer.SCOUT}/")
        if name in session.tabs.named:
            return None
        if name.startswith((observer.SCOUT, observer.DELEGATE)):
            raise ModelError("tool-arguments", f"`{name}` is kept for RunOps", fix="give another name")
        return name

    async def act(self, call: entries.Call, arguments: dict[str, Json]) -> turn.Outcome:
        action, value = str(arguments["action"]), arguments["value"]
        if action not in ACTIONS:
            fix = did_you_mean(action, ACTIONS, f"there are: {', '.join(ACTIONS)}")
            raise ModelError("tool-arguments", f"`debug_action` has no action `{action[:40]}`", fix=fix)
        async with self._observer.scout.there() as session:
            page = self._page(arguments["tab"], arguments["ref"])
            if action == "close_tab":
                # A page that does not answer can be closed, too.
                return await self._do(call, session, page, {"action": action})
            # A model may think for longer than the last look was allowed to take.
            self._observer.bound(page, observer.LOOK_SECONDS)
            if page.dialog is None and self._observer.last_of(page) is None:
                # The report has what changed since this observation.
                await self._observer.look_at(page)
            if page.dialog is not None and action != "dialog":
                raise SiteError("dialog-open", "the page shows a dialog", fix=f"{page_tools.ANSWER} first")
            if action == "dialog":
                accept = value not in (None, "dismiss")
                fields = actions.answered(page.dialog, None if value == "accept" else value, accept=accept)
                return await self._do(call, session, page, fields)
            return await self._on_page(call, session, page, arguments)

    async def _on_page(
        self, call: entries.Call, session: Session, page: Tab, arguments: dict[str, Json]
    ) -> turn.Outcome:
        action, ref, value = str(arguments["action"]), arguments["ref"], arguments["value"]
        kind, other = ACTIONS[action], arguments["options"]
        fields: dict[str, Json] = {"action": action}
        unused: list[str] = []
        if isinstance(other, str) and other.strip():
            own = _own(kind)
            more, unused = given.fields(other, own, _of_nodes(kind, own), action, self._build.masker)
            fields |= more
        takes_target, takes_value = kind.model_fields.get("target"), WITH_VALUE.get(action)
        if takes_target is not None and takes_target.is_required() and ref is None:
            raise _mismatch(f"`{action}` needs the ref of an element, or a target")
        if (
            takes_value is not None
            and value is None
            and takes_value not in fields
            and kind.model_fields[takes_value].is_required()
        ):
            raise _mismatch(f"`{action}` needs a value")
        facts: Facts | None = None
        for name, at in (
            ("target", ref if takes_target is not None else None),
            ("to", value if action == "drag" else None),
        ):
            if at is not None:
                found = await self._element(page, at)
                if isinstance(found, turn.Outcome):
                    return found
                fields[name] = found.target
                facts = found.facts if name == "target" else facts
        leads = ""
        if action == "click" and facts is not None and len(fields) == 2:
            fields["action"] = actions.clicked(facts)
            leads = urllib.parse.urljoin(page.url, facts.link) if facts.link else ""
        if takes_value is not None and value is not None:
            fields[takes_value] = _options(str(value)) if action in ("select", "upload") else value
        return await self._do(call, session, page, fields, leads=leads, unused=unused)

    # The request.

    async def _element(self, page: Tab, at: Json) -> _Element | turn.Outcome:
        """Return the element at a ref, or the one that a target finds; else the outcome, with what else there is."""
        if given.is_target(at):
            wanted = given.target(str(at), self._build.masker)
            found = await page.matches(wanted, 1)
            if (error := await page.mismatch(found, wanted)) is not None:
                return await self._looks.missed(page, error, [self._observer.mask(given.unwaited(error))])
            target = wanted.model_dump(mode="json", exclude_unset=True, by_alias=True)
            return _Element(target, await self._facts(page, found))
        earlier = self._observer.last_of(page)
        try:
            async with self._observer.pointed_at(page, str(at)) as (pointed, element):
                return _Element(await actions.target_of(pointed, element, self._build.masker), pointed.facts)
        except SiteError as error:
            # The report shows the current page, so that the model can find the element there.
            recorded: dict[str, Json] = self._build.masker.json(error.as_json())
            return await self._reported(page, earlier, [_failed(recorded)], str(recorded["message"]), recorded)

    async def _facts(self, page: Tab, found: inspection.Matches) -> Facts | None:
        """Return the facts of the element that a target finds; None if an observation has no ref for it."""
        ref = found.first[0].ref
        if ref is None:
            return None
        async with page.pointed(ref) as pointed:
            return pointed.facts

    def _page(self, tab: Json, ref: Json = None) -> Tab:
        where, name = self._looks.place(cast("str | None", tab), ref, "scout")
        if where == "bench":
            shown = f"{ref} was shown there: " if tab is None else ""
            fix = f"{shown}run nodes there: `execute_nodes`; or `debug_navigate` loads its page for the scout"
            raise ModelError("page-unknown", "the bench is not a tab of the scout", fix=fix)
        return self._observer.page("scout", name)

    def _address(self, url: str, here: str) -> str:
        base = here if origins.origin(here) is not None else self._build.goal.url or ""
        return actions.address(url, base, self._observer.scout.origins())

    def _secrets(self, fields: Mapping[str, Json]) -> Sequence[str]:
        """Return the names of the typed secrets. Raises ModelError ``secret-refused`` for an unknown name, and for a literal secret."""
        value = fields.get("value")
        names = _SECRET.findall(value) if isinstance(value, str) else []
        known = self._build.known()
        if unknown := [each for each in names if each not in known]:
            fix = f"there are: {', '.join(known) or 'none'}; {GIVEN_BY_NAME}"
            raise ModelError("secret-refused", f"there is no secret `{unknown[0][:80]}`", fix=fix)
        rest = {**fields, "value": _SECRET.sub("", value)} if names and isinstance(value, str) else fields
        if (why := secret_checks.refusal(dict(rest), self._build.masker)) is not None:
            fix = "type one as `{{ secrets.NAME }}` in `value` of fill, and nowhere else"
            raise ModelError("secret-refused", why, fix=fix)
        return list(dict.fromkeys(names))

    # The run.

    async def _do(
        self,
        call: entries.Call,
        session: Session,
        page: Tab,
        fields: dict[str, Json],
        *,
        tab: str | None = None,
        leads: str = "",
        unused: Sequence[str] = (),
    ) -> turn.Outcome:
        """Do the action as a run, and report the outcome. ``tab`` names the tab, if it is not ``page``; ``leads`` is a link's address.

        ``unused`` are the given fields that only a workflow uses.
        """
        scout = self._observer.scout
        session.tabs.name_new()
        name = tab or next((each for each, there in session.tabs.named.items() if there is page.page), None)
        if name is None:
            raise ModelError("page-unknown", "the tab is closed", fix="`debug_navigate` with another `tab` opens one")
        whole = {**fields, **({"tab": name} if fields["action"] == "open_tab" else {})}
        try:
            loaded, literal = written(whole, self._secrets(whole), scout.origins())
        except WorkflowInvalid as invalid:
            raise _mismatch("; ".join(dict.fromkeys(each.message for each in invalid.diagnostics))) from None
        # The validator refuses a tab that no node of the file opens, so it is set after that.
        node = cast("Leaf", loaded.workflow.nodes[0]).model_copy(update={"tab": name})
        earlier, before = self._observer.last_of(page), set(session.tabs.named)
        acts = node.effect_class == "effect"
        holds = await self._holds(literal, call, page) if acts else run_state.withholds_nothing
        address, url = self._observer.address_of(page), page.url
        # Earlier page errors do not belong to this action.
        scout.page_errors()

        async def lent() -> Session:
            return session

        def begin(listener: events.Listener, options: start.Options) -> Awaitable[Run]:
            part, browsers = ScoutAction(node, name), borrowed.Lender(lent)
            own = dataclasses.replace(options, part=part, browsers=browsers, holds=holds)
            return self._build.carrier.begin(
                prepare.Prepared(loaded, {}, dict(self._build.known())), listener=listener, options=own
            )

        ended = await self._build.runs.follow(call, begin)
        ours: list[str] = []
        error: dict[str, Json] | None = None
        # Without a target there is no summary.
        said = literal.summary()
        what = [self._observer.mask(str(fields["action"]) if said == literal.type else said)]
        if ended.question is not None and ended.question.get("reason") == HELD:
            refused = self._build.goal.policy == "ask"
            why = "the person does not want it" if refused else "its element was found and is ready"
            ours.append(f"held: {why}, and it was not done; that is no failure")
            # After a refusal no other way to do the action is offered.
            if not refused and origins.origin(leads) is not None:
                ours.append("it is a link: `debug_navigate` loads its address")
                what.append(f"leads to {self._observer.mask(leads)}")
        elif ended.status == "passed":
            ours.append("done")
        else:
            error = ended.error or _unknown(ended.question)
            if error["code"] in ENDED or not session.tabs.all():
                await scout.demand_alive()
                error = {
                    **error,
                    "fix": "`debug_action` `close_tab` closes the tab, `debug_navigate` with another `tab` opens one",
                }
            ours.append(_failed(error))
            what.append(str(error["message"]))
        moved = [("url, by itself since you saw it", address, url)] if address is not None else []
        # Other actions lead to addresses as a matter of course.
        moved += [("url", url, page.url)] if fields["action"] in effects.FIELDS and not page.closed else []
        here = origins.origin(url) or ""
        for how, old, new in moved:
            if old != new:
                both = (page_text.from_here(each, here) for each in (old, new))
                what.append(self._observer.mask(f"{how}: {' -> '.join(both)}"))
        ours += [f"not used here, only in a workflow: {', '.join(unused)}"] if unused else []
        page_errors = self._looks.shown.new([*map(self._observer.mask, scout.page_errors())], failed=error is not None)
        what += [f"page complains: {each}" for each in page_errors[:MOST_PAGE_ERRORS]]
        left = self._left_on(session, page, name, ours, before)
        if left is None:
            text = "\n".join([*ours, page_text.fenced("\n".join(what))])
            return turn.Outcome(text, text, error)
        ours = [*(await self._bad_tabs(session, left, before)), *ours]
        return await self._reported(left, earlier if left is page else None, ours, "\n".join(what), error)

    async def _holds(self, literal: Leaf, call: entries.Call, page: Tab) -> run_state.Withholds:
        """Return what the run withholds: its one action, or nothing. A person is asked for it with the texts of the page."""
        if page.dialog is not None:
            literal = literal.model_copy(update={"text": self._observer.mask(page.dialog)})
        where = self._observer.mask(page.url)
        decided = await self._build.effects.demand([(literal, literal.id)], place=call.path, page=where)
        held = decided(literal, literal.id)
        return lambda leaf, _path: held and leaf.effect_class == "effect"

    # The outcome.

    async def _reported(
        self, page: Tab, earlier: Observation | None, ours: Sequence[str], what: str, error: dict[str, Json] | None
    ) -> turn.Outcome:
        more, theirs, whole = await self._looks.after(page, earlier)
        said = "\n".join(filter(None, [*ours, more]))
        outcome = await self._looks.report(page, said, f"{what}\n{theirs}", whole=whole)
        return dataclasses.replace(outcome, error=error)

    async def _bad_tabs(self, session: Session, reported: Tab, before: set[str]) -> list[str]:
        """Return warnings about other new tabs that show an error of the site."""
        found: list[str] = []
        for name in [each for each in session.tabs.named if each not in before]:
            tab = session.tabs.get(name)
            status = await self._observer.status(tab) if tab is not reported else None
            if status is not None and status >= page_tools.BAD:
                found.append(f"the document in {name} was answered with HTTP status {status}")
        return found

    def _left_on(self, session: Session, page: Tab, name: str, ours: list[str], before: set[str]) -> Tab | None:
        """Return the tab to report on, if one is left; add messages about tabs to ``ours``."""
        opened = session.tabs.name_new()
        new = [each for each in session.tabs.named if each not in before and each not in opened]
        if opened:
            ours.append(f"{page_text.OPENED}{', '.join(opened)}")
        if page.closed:
            ours.append("the tab is closed")
        if self._mine is not None:
            self._mine += opened
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


def _own(kind: type[Leaf]) -> list[str]:
    """Return the fields that an action adds to those of every node, as a file names them."""
    shared = {*browser_action.BrowserAction.model_fields, "action", "target", "opens"}
    return [each.alias or name for name, each in kind.model_fields.items() if name not in shared]


def _of_nodes(kind: type[Leaf], own: Sequence[str]) -> list[str]:
    """Return the fields that the action has only as a node of a workflow. Its element is given by ``ref``."""
    every = (each.alias or name for name, each in kind.model_fields.items())
    return [each for each in every if each not in [*own, "target"]]


def _mismatch(message: str) -> ModelError:
    return ModelError("tool-arguments", message, fix="call it again, fixed")


def _unknown(question: Mapping[str, Any] | None) -> dict[str, Json]:
    """Return the error of a run that paused, so that it is unknown whether its action was done."""
    message = f"it is unknown whether it was done: {(question or {}).get('message') or 'the run did not end'}"
    return ModelError("scout-unknown", message, fix="look at what the site says").as_json()


def _failed(error: Mapping[str, Json]) -> str:
    return f"failed: {error['code']}" + (f"; {error['fix']}" if error.get("fix") else "")
