"""Tools of a working agent: each call is refused, executed as a step of the engine, or answered with the page's content.

Whatever a model or a page causes becomes a text for the model. Only errors that end the step are raised: a pause, a budget, a log that
cannot be written, and an action with unknown outcome.
"""

from __future__ import annotations

import dataclasses
import urllib.parse
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from nodes import registry
from nodes.base import Leaf
from nodes.errors import (
    AuthorError,
    BudgetReached,
    Cancelled,
    InternalError,
    LogError,
    ModelError,
    OriginRefused,
    Paused,
    Replaced,
    RunOpsError,
    SiteError,
)
from nodes.ports import Task
from nodes.schema.output import Mismatch
from nodes.values import Json
from runtime import events
from runtime.agents import ports, secret_checks, tool_schemas
from runtime.browser import origins
from runtime.browser.elements import facts as element_facts
from runtime.browser.elements import targets
from runtime.engine import attempt, leaf_context, reconcile, scopes
from runtime.log import entries
from runtime.messages.messages import Tool, ToolCall
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.observation.finding import Element
from runtime.observation.observation import Observation

if TYPE_CHECKING:
    from runtime.engine.run_state import RunState

LOOK, READ = 5_000, 10_000
"""Maximum characters of an observation, and of one element's text."""

LOOK_SECONDS, ACTION_SECONDS, RULE_SECONDS = 10.0, 10.0, 5.0
"""Time limits of an observation, an action, and a rule of `success`."""

SETTLE_SECONDS = 3.0
"""Time to wait for an action's results before the model is shown the changes."""

ENDS_THE_STEP = (Paused, BudgetReached, LogError, Replaced, Cancelled, InternalError)
"""Errors that end the step, because the model cannot act on them."""


@dataclasses.dataclass(frozen=True, slots=True)
class AgentPlace:
    """The step that an agent works for."""

    run: RunState
    node: Leaf
    frame: scopes.Scope
    call: entries.Call
    """Call of its step."""
    left: Callable[[], float]
    """Seconds that the attempt has left."""
    closing: bool = False
    """True if the goal is known to be reached: no further action is allowed, and only the value is wanted."""

    @property
    def thread(self) -> str:
        """The thread of its conversation."""
        return entries.thread_of(self.call)


class PageTools:
    """Executes the tool calls of one attempt's model. Implements ``runtime.models.turns.turn.Tools``."""

    def __init__(self, place: AgentPlace, task: Task) -> None:
        """Prepare the tools, without observing the page."""
        self._place = place
        self._run = place.run
        self._task = task
        self._masker = place.run.writer.masker
        self._seen: tuple[ports.Page, Observation] | None = None
        """The last observation, and its tab."""
        self._shown: dict[str, tuple[str, str]] = {}
        """Elements that this process has shown, by ref, as they were last shown."""
        self.turn = 0
        """Number of the turn, from 1."""

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools for the model."""
        return tool_schemas.offered(self._task.tools, self._task.output)

    @property
    def final(self) -> Collection[str]:
        """The tool that ends the work."""
        return (tool_schemas.FINISH,)

    @property
    def side_by_side(self) -> Collection[str]:
        """None, because there is one page."""
        return ()

    @property
    def reads(self) -> Collection[str]:
        """None, because an observation decides where the next action is done."""
        return ()

    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        """Execute a call, and return the text for the model. The arguments fit the tool's schema."""
        if (why := secret_checks.refusal(arguments, self._masker)) is not None:
            return self._refused(ModelError("secret-refused", why, fix="continue without it"))
        self._waiting(asked.name, arguments)
        try:
            await self._ready()
            self._demand_shown(arguments.get("ref"))
            match asked.name:
                case "look":
                    return await self._look(arguments["ref"])
                case "find":
                    return await self._find(arguments)
                case "read":
                    return await self._read(arguments["ref"])
                case tool_schemas.FINISH:
                    return await self._finish(arguments)
                case _:
                    return await self._action(asked, arguments, place)
        except ENDS_THE_STEP:
            raise
        except (SiteError, AuthorError) as error:
            return self._failed(error, *await self._trouble(whole=error.code == "ref-gone"))

    def told(self, asked: ToolCall, result: entries.Result) -> str:
        """Render a call that was done before the process died, and not reported yet."""
        said = "done" if result.error is None else f"failed: {result.error.get('code')}"
        return f"{said}; the run was interrupted since, so look at what the page shows now"

    def _waiting(self, name: str, arguments: dict[str, Json]) -> None:
        what = ""
        ref = arguments.get("ref")
        if isinstance(ref, str) and self._seen is not None and self._seen[1].has(ref):
            element = self._seen[1].element(ref)
            what = f' {element.role} "{element.name}"' if element.name else f" {element.role}"
        elif isinstance(address := arguments.get("url"), str):
            what = f" {address}"
        counted = page_text.counted(self.turn, self._task.max_turns)
        self._run.emit(events.StepWaiting(self._place.call.path, f"{counted}: {name}{what}"))

    def _demand_shown(self, ref: Json) -> None:
        """Refuse a ref from before a crash: a reattached browser numbers refs anew, so it may belong to another element."""
        if isinstance(ref, str) and self._place.call.again is not None and ref not in self._shown:
            raise _gone(ref, "; the run was interrupted since you were shown it")

    # Observations of the page.

    async def _ready(self) -> None:
        browser = await self._run.need_browser(self._place.call.path)
        browser.bound(min(LOOK_SECONDS, max(self._place.left(), 0.1)))
        self._place.frame.program.confine(browser)

    @property
    def _page(self) -> ports.Page:
        browser = self._run.browser
        assert browser is not None, "the page was made ready"
        return cast("ports.Page", browser.page)

    async def _view(self) -> Observation:
        """Observe the page, secrets masked."""
        page = self._page
        page.calm()
        seen = await page.look()
        here = origins.origin(page.url) or ""
        view = seen.masked(self._masker.text, lambda address: self._masker.text(page_text.from_here(address, here)))
        self._seen = (page, view)
        return view

    async def _look(self, ref: str | None) -> turn.Outcome:
        view = await self._view()
        if ref is None:
            return self._told("", view.render(LOOK))
        if not view.has(ref):
            raise _gone(ref)
        return self._told("", view.subtree(ref, LOOK))

    async def _find(self, wanted: dict[str, Json]) -> turn.Outcome:
        role, name, row, text = (wanted[each] or None for each in ("role", "name", "row", "text"))
        if not (role or name or row or text):
            return self._refused(
                ModelError(
                    "tool-arguments", "give at least one of role, name, row and text", fix="call it again, fixed"
                )
            )
        view = await self._view()
        return self._told("", view.find(role, name, row, text, LOOK))

    async def _read(self, ref: str) -> turn.Outcome:
        async with self._page.pointed(ref) as pointed:
            said = self._masker.text(await pointed.said())
            found = await self._target_of(pointed, await self._element(ref))
            field = bool(pointed.facts.type)
        cut = f"the first {READ:,} of {len(said):,} characters" if len(said) > READ else ""
        value: Json = {"text": said[:READ], "field": field, "target": found}
        return self._told(cut, said[:READ] or "(nothing)", value=value)

    async def _target_of(self, pointed: ports.Pointed, element: Element) -> Json:
        """Return a target that finds the element again; None where there is none."""
        try:
            target = await targets.target_of(pointed, element.role, element.name, self._usable)
        except SiteError:
            return None
        return target.model_dump(mode="json", exclude_unset=True, by_alias=True)

    # Actions on the page.

    async def _action(self, asked: ToolCall, arguments: dict[str, Json], at: turn.Place) -> turn.Outcome:
        if self._page.dialog is None and (self._seen is None or self._seen[0] is not self._page):
            # Changes are reported against this observation.
            await self._view()
        fields = await self._fields(asked.name, arguments)
        try:
            node = self._node(asked.name, fields)
        except ValidationError as error:
            said = "; ".join(str(each["msg"]).removeprefix("Value error, ") for each in error.errors())
            return self._refused(ModelError("tool-arguments", said, fix="call it again, fixed"))
        if self._place.closing and node.effect_class == "effect":
            return self._refused(
                ModelError(
                    "goal-reached",
                    "the goal is reached, and nothing more may be done",
                    fix="look, if you must, and call `finish`",
                )
            )
        step = attempt.Step(
            self._run,
            node,
            self._place.frame,
            at.path,
            1,
            self._place.thread,
            attempt.AskedBy(asked.id, self._place.call.fingerprint),
        )
        async with self._page.settling(min(SETTLE_SECONDS, max(self._place.left(), 0.0))):
            failed = await self._attempted(step)
        ours, theirs = await self._trouble()
        if failed is not None:
            outcome = self._failed(failed, ours, theirs)
        else:
            outcome = self._told("\n".join(filter(None, ["done", ours])), theirs)
        return dataclasses.replace(outcome, written=True)

    async def _attempted(self, step: attempt.Step) -> RunOpsError | None:
        """Execute the action; return an error that the model can handle. An error with unknown outcome is raised, and its call stays open."""
        try:
            await reconcile.attempt_step(self._run, step)
        except ENDS_THE_STEP:
            raise
        except RunOpsError as error:
            step.failed(error)
            return error
        return None

    def _node(self, name: str, fields: dict[str, Json]) -> Leaf:
        """Build the node of the action."""
        common: dict[str, Json] = {"id": name, "type": "browser_action", "timeout": self._seconds()}
        if self._task.effect is not None:
            common["effect"] = self._task.effect
        node = registry.parse_node({**common, **fields})
        assert isinstance(node, Leaf)
        return node

    def _seconds(self) -> float:
        return round(max(0.1, min(ACTION_SECONDS, self._place.left())), 3)

    async def _fields(self, name: str, arguments: dict[str, Json]) -> dict[str, Any]:
        """Build a node's fields from a tool call. Raises SiteError for an element that is missing, or that no target finds."""
        match name:
            case "click":
                target, facts = await self._target(arguments["ref"])
                if facts.type == "radio":
                    return {"action": "check", "target": target}
                if facts.type == "checkbox":
                    return {"action": "uncheck" if facts.checked else "check", "target": target}
                return {"action": "click", "target": target}
            case "fill":
                return {
                    "action": "fill",
                    "target": (await self._target(arguments["ref"]))[0],
                    "value": arguments["text"],
                }
            case "select":
                options = arguments["options"]
                value = options[0] if len(options) == 1 else options
                return {"action": "select", "target": (await self._target(arguments["ref"]))[0], "value": value}
            case "press":
                fields: dict[str, Any] = {"action": "press", "key": arguments["key"]}
                if arguments["ref"] is not None:
                    fields["target"] = (await self._target(arguments["ref"]))[0]
                return fields
            case "goto":
                url: str = arguments["url"]
                url = urllib.parse.urljoin(self._page.url, url) if url.startswith("/") else url
                self._refuse_no_site(url)
                return {"action": "goto", "url": url}
            case "dialog":
                if self._page.dialog is None:
                    raise SiteError("no-dialog", "the page shows no dialog", fix="continue without one")
                if not arguments["accept"]:
                    return {"action": "dialog", "answer": "dismiss"}
                typed = {} if arguments["text"] is None else {"value": arguments["text"]}
                return {"action": "dialog", "answer": "accept", **typed}
            case _:
                return {"action": "switch_tab", "tab": arguments["name"]}

    def _refuse_no_site(self, url: str) -> None:
        """Allow only addresses of sites. An author may open `data:`, `about:` and `javascript:`; a model could be persuaded to by a page."""
        if origins.origin(url) is not None:
            return
        header = self._run.history.header
        allowed = self._place.frame.program.origins or (header.origins if header is not None else [])
        scheme = f"{url.partition(':')[0]}:"[:40]
        raise OriginRefused(
            "origin-refused",
            f"an agent opens addresses of web sites only, and not {scheme}",
            fix="give the whole address, with https:// or http://",
            evidence={"origin": scheme, "allowed": list[Json](allowed), "kind": "main frame"},
        )

    async def _target(self, ref: str) -> tuple[targets.Target, element_facts.Facts]:
        element = await self._element(ref)
        async with self._page.pointed(ref) as pointed:
            return await targets.target_of(pointed, element.role, element.name, self._usable), pointed.facts

    async def _element(self, ref: str) -> Element:
        """Return the element as it is now. Raises SiteError ``ref-gone`` where the ref now belongs to another element or name."""
        earlier, view = self._seen, await self._view()
        if earlier is not None and earlier[0] is self._page:
            # Changes are reported against what the model saw last.
            self._seen = earlier
        if not view.has(ref):
            raise _gone(ref)
        element = view.element(ref)
        if self._shown.get(ref, now := page_text.known_by(element.role, element.name)) != now:
            raise _gone(ref, f": it is the {element.role} {element.name!r} by now")
        return element

    def _usable(self, text: str) -> bool:
        return secret_checks.refusal(text, self._masker) is None

    # Results of actions.

    async def _trouble(self, *, whole: bool = False) -> tuple[str, str]:
        """Report the page's state: in our words, and in its own. It is shown ``whole``, or where earlier refs are no longer valid."""
        run, ours = self._run, list[str]()
        assert run.browser is not None
        await self._ready()
        if (refused := run.browser.refusal()) is not None:
            ours.append(page_text.refused_words(refused))
        page = self._page
        await self._bring_back(page)
        if self._seen is not None and self._seen[0] is not page and self._seen[0] not in self._tabs.all():
            ours.append(page_text.CLOSED)
        ours += [f"{page_text.OPENED}{name}; `tab` goes there" for name in self._tabs.name_new()]
        if page.dialog is not None:
            ours.append("the page shows a dialog, which must be answered with `dialog` before anything else. It says:")
            return "\n".join(ours), self._masker.text(page.dialog)
        earlier = self._seen
        try:
            view = await self._view()
            while (refused := run.browser.refusal()) is not None:
                # The page left for a refused address during the observation, which shows Chromium's error page.
                ours.append(page_text.refused_words(refused))
                await self._bring_back(page)
                view = await self._view()
        except (SiteError, AuthorError) as error:
            ours.append(f"the page cannot be looked at now ({error.code})")
            return "\n".join(ours), ""
        if earlier is None or earlier[0] is not page:
            return "\n".join(ours), view.render(LOOK)
        return "\n".join(ours), page_text.page_now(view, earlier[1], LOOK, whole=whole)

    async def _bring_back(self, page: ports.Page) -> None:
        """Return to the last page where Chromium shows its error page after a refused document."""
        if page.url.startswith("chrome-error:") and page.dialog is None:
            try:
                await page.back()
            except (SiteError, AuthorError):
                # There is no page to return to; the model sees that itself.
                return

    @property
    def _tabs(self) -> ports.Tabs:
        assert self._run.browser is not None
        return cast("ports.Tabs", self._run.browser.tabs)

    def _counted(self) -> str:
        return page_text.counted(self.turn, self._task.max_turns)

    def _told(self, ours: str, theirs: str, value: Json = None) -> turn.Outcome:
        """Return the outcome of a successful call."""
        return turn.Outcome(told=self._text(ours, theirs), value=value)

    def _failed(self, error: RunOpsError, ours: str, theirs: str) -> turn.Outcome:
        """Return the outcome of a failed call, with the page's current content, which may show the reason."""
        head = f"failed: {error.code}"
        if not isinstance(error, OriginRefused) and error.fix:
            head += f"; {error.fix}"
        elif isinstance(error, OriginRefused):
            head += f"; {page_text.refused_words(error)}"
        said = "\n".join(filter(None, [self._masker.text(error.message), theirs]))
        recorded = self._run.writer.error(error)
        return turn.Outcome(told=self._text("\n".join(filter(None, [head, ours])), said), error=recorded)

    def _refused(self, error: ModelError) -> turn.Outcome:
        """Return the outcome of a call that was not tried."""
        fix = f". {error.fix}" if error.fix else ""
        return turn.Outcome(
            told=self._text(f"refused: {error.message} ({error.code}){fix}", ""),
            error=self._run.writer.error(error),
        )

    def _text(self, ours: str, theirs: str) -> str:
        if self._seen is not None:
            view = self._seen[1]
            known = {ref: view.element(ref) for ref in page_text.refs_in(theirs) if view.has(ref)}
            self._shown |= {ref: page_text.known_by(each.role, each.name) for ref, each in known.items()}
        lines = [self._counted(), self._masker.text(ours), page_text.fenced(theirs) if theirs else ""]
        return "\n".join(filter(None, lines))

    # The end.

    async def _finish(self, arguments: dict[str, Json]) -> turn.Outcome:
        """Check on the page that the goal is reached, whatever the model claims."""
        done, note = bool(arguments["done"]), str(arguments["note"])
        if not done:
            return turn.Outcome(told="ended", value={"done": False, "note": note})
        if (missing := await self._not_reached() or await self._denied()) is not None:
            return missing
        value: Json = None
        if self._task.output is not None:
            try:
                value = self._task.output.read(tool_schemas.answered(self._task.output, arguments["output"]))
            except Mismatch as mismatch:
                return self._refused(
                    ModelError(
                        "output-mismatch", f"`output` does not fit:\n{mismatch}", fix="call `finish` again, fixed"
                    )
                )
        return turn.Outcome(told="ended", value={"done": True, "note": note, "output": value})

    async def _not_reached(self) -> turn.Outcome | None:
        """Return the outcome for the first rule of `success` that does not hold; None where all do."""
        browser = self._run.browser
        assert browser is not None
        for rule in self._task.success:
            browser.bound(min(RULE_SECONDS, max(self._place.left(), 0.1)))
            try:
                if rule.kind == "expr":
                    leaf_context.demand_expr(rule)
                else:
                    await self._page.wait_for(rule)
            except (SiteError, AuthorError) as error:
                seen = error.evidence.get("seen")
                words = f"the work is not done: {rule} does not hold on the page"
                shown = f"it shows: {seen}" if isinstance(seen, str | int | float) else ""
                recorded = self._run.writer.error(error)
                return turn.Outcome(told=self._text(words, self._masker.text(shown)), error=recorded)
        return None

    async def _denied(self) -> turn.Outcome | None:
        """Return the outcome if the site denies the result; None if it confirms it, or without a `confirm` or a side effect."""
        run, node, call = self._place.run, self._place.node, self._place.call
        action = run.history.attempt_of(call)
        if self._place.closing or node.confirm is None or not action.acted:
            return None
        said = await reconcile.ask_once_answered(run, node, self._place.frame, call.path, call)
        if said.found == "unknown":
            raise reconcile.unknown(node, action, said)
        if said.found == "done":
            return None
        denied = ModelError(
            "goal-denied",
            "the work is not done: the site does not have it",
            fix="look at what the page says, and do it, or end with `done` false",
            phase="after",
        )
        return self._refused(denied)


def _gone(ref: str, why: str = "") -> SiteError:
    return SiteError(
        "ref-gone",
        f"the page has no element {ref[:40]} now{why}",
        fix="take the ref that the element has now; look, where it is not shown here",
    )
