"""Tools of a working agent: each call is refused, executed as a step of the engine, or answered with the page's content.

An error becomes a text for the model. Only some end the step: a pause, a budget, a log that cannot be written, an unknown outcome.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError
from typing_extensions import override

from nodes import errors as node_errors
from nodes import registry
from nodes.agent import Agent
from nodes.base import Leaf
from nodes.errors import AuthorError, ModelError, OriginRefused, RunOpsError, SiteError
from nodes.schema.output import Mismatch
from nodes.values import Json
from runtime import events
from runtime.agents import actions, secret_checks, tool_schemas
from runtime.browser import origins
from runtime.engine import attempt, leaf_context, reconcile, run_state
from runtime.log import entries
from runtime.messages.messages import Tool, ToolCall
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.observation.finding import Element
from runtime.observation.observation import Observation

if TYPE_CHECKING:
    from runtime.browser.page.tab import Tab, Tabs
    from runtime.engine.run_state import LeafView, RunState

AGAIN = "call it again, fixed"
LOOK, READ = 5_000, 10_000  # characters
LOOK_SECONDS, ACTION_SECONDS, RULE_SECONDS = 10.0, 10.0, 5.0
SETTLE_SECONDS = 3.0
LOOKS = 3  # most observations of a page that is an error page of Chromium
ENDS_THE_STEP = (
    *(node_errors.Paused, node_errors.BudgetReached, node_errors.LogError, node_errors.Replaced, node_errors.Cancelled),
    node_errors.InternalError,
)
"""Errors that the model cannot act on."""


class PageTools(turn.Tools):
    """Executes the tool calls of one attempt's model.

    Once the goal is known to be reached (``step.closing``), side effects are refused, and only the value is asked for.
    """

    def __init__(self, run: RunState, step: LeafView, call: entries.Call, task: Agent) -> None:
        self._run, self._step, self._call, self._task = run, step, call, task
        self._masker = run.writer.masker
        self._seen: tuple[Tab, Observation] | None = None
        self._shown: dict[str, tuple[str, str]] = {}
        """Role and name of the elements that this process has shown, by ref, as last shown."""
        self.turn = 0

    @property
    @override
    def offered(self) -> tuple[Tool, ...]:
        return tool_schemas.offered(self._task.tools, self._task.output)

    @property
    @override
    def final(self) -> Collection[str]:
        return (tool_schemas.FINISH,)

    @override
    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        if (why := secret_checks.refusal(arguments, self._masker)) is not None:
            return self._refused("secret-refused", why, "continue without it")
        self._waiting(asked.name, arguments)
        try:
            await self._ready()
            ref = arguments.get("ref")
            if isinstance(ref, str) and self._call.again is not None and ref not in self._shown:
                # A reattached browser numbers refs anew.
                raise actions.gone(ref, "; the run was interrupted since you were shown it")
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

    @override
    def render_done(self, asked: ToolCall, result: entries.Result) -> str:
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
        self._run.emit(events.StepWaiting(self._call.path, f"{counted}: {name}{what}"))

    async def _ready(self) -> None:
        browser = await self._run.need_browser(self._call.path)
        browser.bound(min(LOOK_SECONDS, max(self._step.left, 0.1)))
        self._step.frame.program.confine(browser)

    @property
    def _page(self) -> Tab:
        browser = self._run.browser
        assert browser is not None, "the page was made ready"
        return cast("Tab", browser.page)

    async def _view(self) -> Observation:
        page = self._page
        looks, seen = 0, None
        # A browser may show its error page only some time after a document was refused.
        while seen is None or (origins.is_error_page(page.url) and looks < LOOKS):
            await self._bring_back(page)
            page.calm()
            seen = await page.look()
            looks += 1
        here = origins.origin(page.url) or ""
        view = seen.masked(self._masker.text, lambda address: self._masker.text(page_text.from_here(address, here)))
        self._seen = (page, view)
        return view

    async def _look(self, ref: str | None) -> turn.Outcome:
        view = await self._view()
        if ref is not None and not view.has(ref):
            raise actions.gone(ref)
        return turn.Outcome(self._text("", view.render(LOOK) if ref is None else view.subtree(ref, LOOK)))

    async def _find(self, arguments: dict[str, Json]) -> turn.Outcome:
        role, name, row, text = (arguments[each] or None for each in ("role", "name", "row", "text"))
        if not (role or name or row or text):
            return self._refused("tool-arguments", "give at least one of role, name, row and text", AGAIN)
        view = await self._view()
        return turn.Outcome(self._text("", view.find(role, name, row, text, LOOK)))

    async def _read(self, ref: str) -> turn.Outcome:
        async with self._page.pointed(ref) as pointed:
            said = self._masker.text(await pointed.said())
            try:
                found = await actions.target_of(pointed, await self._element(ref), self._masker)
            except SiteError as error:
                if error.code != "no-target":
                    raise
                found = None
            field = bool(pointed.facts.type)
        cut = f"the first {READ:,} of {len(said):,} characters" if len(said) > READ else ""
        value: Json = {"text": said[:READ], "field": field, "target": found}
        return turn.Outcome(self._text(cut, said[:READ] or "(nothing)"), value)

    async def _action(self, asked: ToolCall, arguments: dict[str, Json], at: turn.Place) -> turn.Outcome:
        if self._page.dialog is None and (self._seen is None or self._seen[0] is not self._page):
            # The changes are reported in comparison with this observation.
            await self._view()
        fields = await self._fields(asked.name, arguments)
        try:
            node = self._node(asked.name, fields)
        except ValidationError as error:
            said = "; ".join(str(each["msg"]).removeprefix("Value error, ") for each in error.errors())
            return self._refused("tool-arguments", said, AGAIN)
        if self._step.closing and node.effect_class == "effect":
            message = "the goal is reached, and no further action is allowed"
            return self._refused("goal-reached", message, "look if you need to, and call `finish`")
        by = attempt.AskedBy(asked.id, self._call.fingerprint)
        step = attempt.Step(self._run, node, self._step.frame, at.path, 1, entries.thread_of(self._call), by)
        async with self._page.settling(min(SETTLE_SECONDS, max(self._step.left, 0.0))):
            failed: RunOpsError | None = None
            try:
                # An error that leaves the outcome unknown ends the step, and the call stays open.
                await reconcile.attempt_step(self._run, step)
            except ENDS_THE_STEP:
                raise
            except RunOpsError as error:
                step.failed(error)
                failed = error
        ours, theirs = await self._trouble()
        if failed is not None:
            return dataclasses.replace(self._failed(failed, ours, theirs), written=True)
        return turn.Outcome(self._text("\n".join(filter(None, ["done", ours])), theirs), written=True)

    def _node(self, name: str, fields: dict[str, Json]) -> Leaf:
        seconds = round(max(0.1, min(ACTION_SECONDS, self._step.left)), 3)
        common: dict[str, Json] = {"id": name, "type": "browser_action", "timeout": seconds}
        if self._task.effect is not None:
            common["effect"] = self._task.effect
        node = registry.parse_node({**common, **fields})
        assert isinstance(node, Leaf)
        return node

    async def _fields(self, name: str, arguments: dict[str, Json]) -> dict[str, Any]:
        """Build a node's fields from a tool call. Raises SiteError if the element is missing, or if no target finds only it."""
        fields: dict[str, Any] = {"action": name}
        if arguments.get("ref") is not None:
            ref = str(arguments["ref"])
            element = await self._element(ref)
            async with self._page.pointed(ref) as pointed:
                fields["target"] = await actions.target_of(pointed, element, self._masker)
                if name == "click":
                    fields["action"] = actions.clicked(pointed.facts)
        match name:
            case "fill":
                fields["value"] = arguments["text"]
            case "select":
                options: Any = arguments["options"]
                fields["value"] = options[0] if len(options) == 1 else options
            case "press":
                fields["key"] = arguments["key"]
            case "goto":
                header = self._run.history.header
                allowed = self._step.frame.program.origins or (header.origins if header is not None else [])
                fields["url"] = actions.address(str(arguments["url"]), self._page.url, allowed)
            case "dialog":
                return actions.answered(self._page.dialog, arguments["text"], accept=bool(arguments["accept"]))
            case "tab":
                return {"action": "switch_tab", "tab": arguments["name"]}
            case _:
                pass
        return fields

    async def _element(self, ref: str) -> Element:
        """Return the element as it is now. Raises SiteError ``ref-gone`` if the ref is gone or now has another role or name."""
        earlier, view = self._seen, await self._view()
        if earlier is not None and earlier[0] is self._page:
            # The changes are reported in comparison with what the model saw last.
            self._seen = earlier
        if not view.has(ref):
            raise actions.gone(ref)
        element = view.element(ref)
        if self._shown.get(ref, now := page_text.known_by(element.role, element.name)) != now:
            raise actions.gone(ref, f": it is the {element.role} {element.name!r} by now")
        return element

    async def _trouble(self, *, whole: bool = False) -> tuple[str, str]:
        """Return a text of ours about the page, and the page's own: its changes, or if ``whole`` or with invalid refs all of it."""
        run, ours = self._run, list[str]()
        assert run.browser is not None
        await self._ready()
        if (refused := run.browser.refusal()) is not None:
            ours.append(page_text.refused_words(refused))
        page = self._page
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
                # The page tried to load a refused address during the observation.
                ours.append(page_text.refused_words(refused))
                view = await self._view()
        except (SiteError, AuthorError) as error:
            ours.append(f"the page cannot be looked at now ({error.code})")
            return "\n".join(ours), ""
        if earlier is None or earlier[0] is not page:
            return "\n".join(ours), view.render(LOOK)
        return "\n".join(ours), view.render(LOOK) if whole else page_text.page_now(view, earlier[1], view.render, LOOK)[
            0
        ]

    async def _bring_back(self, page: Tab) -> None:
        """Go back to the last page if the browser shows its error page after a refused document."""
        if origins.is_error_page(page.url) and page.dialog is None:
            # If there is no page to go back to, the model sees the error page.
            with contextlib.suppress(SiteError, AuthorError):
                await page.back()

    @property
    def _tabs(self) -> Tabs:
        assert self._run.browser is not None
        return cast("Tabs", self._run.browser.tabs)

    def _failed(self, error: RunOpsError, ours: str, theirs: str) -> turn.Outcome:
        fix = page_text.refused_words(error) if isinstance(error, OriginRefused) else error.fix
        head = f"failed: {error.code}" + (f"; {fix}" if fix else "")
        page = "\n".join(filter(None, [self._masker.text(error.message), theirs]))
        text = self._text("\n".join(filter(None, [head, ours])), page)
        return turn.Outcome(text, error=self._run.writer.error(error))

    def _refused(self, code: str, message: str, fix: str) -> turn.Outcome:
        error = ModelError(code, message, fix=fix, phase="after" if code == "goal-denied" else "before")
        return turn.Outcome(self._text(f"refused: {message} ({code}). {fix}", ""), error=self._run.writer.error(error))

    def _text(self, ours: str, theirs: str) -> str:
        if self._seen is not None:
            view = self._seen[1]
            known = {ref: view.element(ref) for ref in page_text.refs_in(theirs) if view.has(ref)}
            self._shown |= {ref: page_text.known_by(each.role, each.name) for ref, each in known.items()}
        counted = page_text.counted(self.turn, self._task.max_turns)
        return "\n".join(filter(None, [counted, self._masker.text(ours), theirs and page_text.fenced(theirs)]))

    async def _finish(self, arguments: dict[str, Json]) -> turn.Outcome:
        """End the work; if the model claims success, only if the page and ``confirm`` show that the goal is reached."""
        done, note = bool(arguments["done"]), str(arguments["note"])
        if not done:
            return turn.Outcome(text="ended", value={"done": False, "note": note})
        if (missing := await self._not_reached() or await self._denied()) is not None:
            return missing
        value: Json = None
        if self._task.output is not None:
            try:
                value = self._task.output.read(tool_schemas.answered(self._task.output, arguments["output"]))
            except Mismatch as mismatch:
                message = f"`output` does not fit:\n{mismatch}"
                return self._refused("output-mismatch", message, "call `finish` again, fixed")
        return turn.Outcome(text="ended", value={"done": True, "note": note, "output": value})

    async def _not_reached(self) -> turn.Outcome | None:
        """Return the outcome for the first rule of `success` that does not hold; None if all hold."""
        browser = self._run.browser
        assert browser is not None
        for rule in self._task.success:
            browser.bound(min(RULE_SECONDS, max(self._step.left, 0.1)))
            try:
                if rule.kind == "expr":
                    leaf_context.demand_expr(rule)
                else:
                    await self._page.wait_for(rule)
            except (SiteError, AuthorError) as error:
                seen = error.evidence.get("seen")
                shown = f"it shows: {seen}" if isinstance(seen, str | int | float) else ""
                text = self._text(f"the work is not done: {rule} does not hold on the page", self._masker.text(shown))
                return turn.Outcome(text=text, error=self._run.writer.error(error))
        return None

    async def _denied(self) -> turn.Outcome | None:
        """Return the outcome if `confirm` finds the work not done; None if done, or without a `confirm` or a side effect."""
        node, call = self._step.node, self._call
        action = self._run.history.attempt_of(call)
        if self._step.closing or node.confirm is None or not action.acted:
            return None
        step = run_state.StepReached(node, self._step.frame, call.path, action)
        said = await reconcile.ask_once_answered(self._run, step)
        if said.found == "unknown":
            raise reconcile.unknown(step, said)
        if said.found == "done":
            return None
        fix = "look at the page, and do the work, or call `finish` with `done` false"
        return self._refused("goal-denied", "the work is not done: the site does not have it", fix)
