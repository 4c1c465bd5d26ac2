"""One attempt of a leaf: its call, its action, its outcome.

The order: resolve → find → barrier → act → verify → value. The call is written just before the action. For a side effect it is synced
before the action begins. An attempt that fails earlier has changed nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from nodes import one_time, plugins
from nodes.base import Leaf
from nodes.errors import (
    AuthorError,
    BudgetReached,
    LogError,
    ModelError,
    OriginRefused,
    Paused,
    Replaced,
    RunOpsError,
    SetupError,
    SiteError,
)
from nodes.pages import Page
from nodes.rules import Rule
from nodes.values import Json, NotJson, normalise
from runtime import events
from runtime.browser import port
from runtime.browser.port import MissingAnswer
from runtime.engine import conditions, leaf_context, opened_parts, rendering, scopes, skipped_steps
from runtime.engine.run_state import RunState, Verdict
from runtime.language.expressions.references import Compiled
from runtime.log import attempts, entries, step_paths
from runtime.secrets.one_time import SHORTEST_LEFT

if TYPE_CHECKING:
    from runtime.engine import tracing

QUIET = 5.0  # seconds without a change after which a run that proves something waits for no rule; a page that polls asks more often
GRACE = 2.0  # seconds by which a page method may overrun before the attempt is ended from outside


STOPS = (Paused, BudgetReached, LogError)  # errors that stop the run and leave the call open
AGAIN = (
    "; if the page was not ready for the action yet: `retry: {on: [verify-failed]}` does it again, which does no harm"
)
VERIFY_HELD_BEFORE = "verify-held-before"  # flag of a side effect whose rules already held just before it


class EffectWithheld(Paused):
    """Side effect that the engine was asked to withhold: everything before it was ready, and it was not done."""

    def __init__(self, path: str, node: Leaf, args: Json, matched: Sequence[str], url: str | None) -> None:
        super().__init__("held", f"the {getattr(node, 'action', node.type)} is ready, and was not done")
        self.value: dict[str, Json] = {
            "held": path,
            "effect": node.effect_class,
            "args": args,
            "matched": list[Json](matched),
            "page": url,
        }


class ValuePending(Exception):
    """The action is known to have happened, and the step still has to yield its value."""


class AskedBy(NamedTuple):
    """A model's call that a step outside any file carries out, and the fingerprint of the node that asks the model."""

    id: str
    fingerprint: str


class Step(leaf_context.LeafContext):
    def __init__(
        self,
        run: RunState,
        node: Leaf,
        frame: scopes.Scope,
        path: str,
        number: int,
        thread: str = entries.RUN_THREAD,
        asked: AskedBy | None = None,
    ) -> None:
        super().__init__(run, node, frame, path)
        self._number = number
        self._thread = thread
        self._asked = asked
        self._plan = run.plan(node) if asked is None else rendering.literal(node)
        self._args: Json = self._plan.args
        self._resolved: Leaf | None = None
        self._clock = rendering.RecordedClock(run.history.recorded(path))
        self._verified = False
        self._verifying = False
        self.again = False
        self.not_done = False  # true if the site said that an action of this attempt did not happen
        self.continued_call: entries.Call | None = None
        self._before: tuple[int, str] | None = None  # number of documents and address just before the action

    # Called by the node.

    async def act(self) -> None:
        """Write the call; for a side effect wait until it is synced. Raises SetupError ``node-type-broken`` if there is a call already."""
        if self.call is not None:
            raise SetupError(
                "node-type-broken",
                f"the node type `{self.node.type}` acts twice in one attempt",
                fix="one node is one action: let it call `await ctx.act()` once, right before that",
                phase="after",
            )
        # Filled-in references may make a side effect of a step: an address that is a script, a text with a line break.
        if self._run.holds(self.node, self.path) or self._run.holds(self._resolve(), self.path):
            self._resolve()
            url = self._page.url if self._page is not None else None
            raise EffectWithheld(self.path, self._resolve(), self._args, self._matched, url)
        await self._run.tracing.acting(self._run.hide)
        effect = self.is_effect()
        if effect:
            await self._run.checkpoints.settled()
        held = None
        if self.continued_call is not None:
            held = self.continued_call.held_before
        elif effect and self._resolve().postconditions and self._page is not None and self._page.dialog is None:
            # Rules that all hold before the action prove nothing after a crash. With a dialog open this stays unknown.
            held = await leaf_context.all_hold(self._resolve().postconditions, self.page)
        if self._page is not None:
            self._before = self._page.documents, self._page.url
        described = self._describe(held)
        self.call = await self._run.writer.announce(described) if effect else self._run.writer.call(described)

    async def verify(self) -> None:
        self._verified = self._verifying = True
        if self.node.asks == "cognition" and self._run.browser is not None:
            # The model's time does not count as the page's time.
            self._bound(self._run.browser, min(self.node.page_seconds, self.left))
        for rule in self._resolve().verify:
            if rule.kind == "expr":
                leaf_context.demand_expr(rule)
            else:
                self._say_waiting(f"verify {rule}")
                try:
                    await self._wait_for(rule)
                except SiteError as error:
                    if error.code != "rule-failed":
                        raise
                    fix = (
                        error.fix
                        or "look at what the page says: the action was done, and the page did not come to this"
                    )
                    again = "" if self.node.effect_class == "effect" else AGAIN
                    raise error.replaced(code="verify-failed", fix=f"{fix}{again}") from None
        self._verifying = False
        if self.node.moves_page and self._page is not None:
            on_page = opened_parts.Opened.by(self.node, self.holding().rules, self._page, self._before)
            self._run.opened[self._thread] = on_page
        if self.node.moves_page and not self._fresh:
            self._run.verified = self.holding()
            if self._run.verified.rules and self.node.takes_up_input:
                # The action has reached its own page: the next step need not wait for an earlier one.
                self._run.aftermath = None

    def _say_waiting(self, what: str) -> None:
        self._run.emit(events.StepWaiting(self.path, what))

    def holding(self) -> skipped_steps.Verified:
        on_page = [rule for rule in self.rules() if rule.kind != "expr"]
        return skipped_steps.Verified(on_page, self.node.page_seconds)

    async def _wait_for(self, rule: Rule) -> None:
        page = self.page
        try:
            await page.wait_for(rule)
        except SiteError as error:
            if error.code != "tab-closed" or self.page is page:
                raise
            # The action closed its own tab while the rule was checked.
            await self.page.wait_for(rule)

    # The engine's side of the attempt.

    def summary(self) -> str:
        """Return the step as one line, references filled in where possible, secrets masked."""
        try:
            return self._run.writer.masker.text(self._resolve().summary())
        except RunOpsError:
            self._clock = rendering.RecordedClock(self._run.history.recorded(self.path))
            return self.node.summary()

    def is_effect(self) -> bool:
        """True if the step is a side effect: with its references filled in, or as the file has it if they cannot be filled in."""
        try:
            return self._resolve().effect_class == "effect"
        except RunOpsError:
            return self.node.effect_class == "effect"

    def needs_value(self) -> bool:
        """True if a reference of the step has a value that held a secret and is no longer known."""
        try:
            self._resolve()
        except RunOpsError as error:
            return error.code == "value-masked"
        return False

    async def attempt(self, page: Page | None = None) -> Json:
        """Do the step once, in ``page`` or else in the run's current tab. Writes the call and its result, and returns the value.

        If it raises, the call may be written and still open: ``failed`` closes it, a pause or a cancellation leaves it open.
        """
        try:
            value = await self._do(page)
        except RunOpsError as error:
            explained = await self._with_opened(self._with_condition(error))
            raise self._placed(self._refusal() or explained) from error.__cause__
        refused = self._refusal()
        if refused is not None:
            raise refused
        return self._finished("ok", value)

    async def _do(self, page: Page | None) -> Json:
        run, node = self._run, self.node
        resolved = self._resolve()
        if node.touches_page or any(rule.kind != "expr" for rule in node.verify):
            browser = await run.need_browser(self.path)
            self._bound(browser, node.page_seconds)
            self.frame.program.confine(browser)
            self._fresh, self._page = page is not None, page or browser.tabs.get(node.works_in)
            if not node.despite_dialog:
                self._page.calm()
            if not self._fresh:
                if node.moves_page and not node.fills_field:
                    run.tracing.before(cast("tracing.Page", self._page), run.hide)
                self._demand_beginning()
                await self._arrived(browser)
        try:
            async with asyncio.timeout(node.seconds + GRACE):
                value = await self._perform(resolved)
                if resolved.ends_at_rest:
                    await self._rest()
                if not self._verified:
                    await self.verify()
                if resolved.effect_class == "effect" and not resolved.postconditions and self._page is not None:
                    await self._demand_answers()
            return normalise(value)
        except TimeoutError:
            raise _too_long(node) from None
        except NotJson as error:
            raise AuthorError("value-type", f"the value cannot be kept: {error}", phase="after") from None

    def _bound(self, browser: port.Browser, seconds: float) -> None:
        # A step with a `timeout` of its own is known to take long.
        browser.bound(seconds, quiet=QUIET if self._run.proves and self.node.timeout is None else None)

    async def _rest(self) -> None:
        """Wait until the page rests. A page that is gone, or waits for the answer to a dialog, has nothing to draw."""
        if self._page is not None and not self._page.closed and self._page.dialog is None:
            self._verifying = True
            await self._page.rest()
            self._verifying = False

    def _demand_beginning(self) -> None:
        if self._run.is_midway(self.node):
            raise SiteError(
                "list-begun",
                f"an earlier attempt of `{self.node.id}` went through a part of its list, and the page is still there",
                fix="load the list's first page with `goto` right before it",
            )

    async def _arrived(self, browser: port.Browser) -> None:
        """Wait for what an earlier, skipped step would have waited for."""
        run, page = self._run, self._page
        if page is not None and (aftermath := run.aftermath) is not None:
            reads = self.node.asks == "agent" or not self.node.moves_page
            loads = getattr(self.node, "action", None) == "goto"
            run.aftermath = None
            run.aftermath = await aftermath.arrive(browser, page, self._say_waiting, loads=loads, reads=reads)
            self.frame.program.confine(browser)
            self._bound(browser, self.node.page_seconds)
            self._begun = time.monotonic()
        if self.node.moves_page:
            run.verified = skipped_steps.NOTHING

    async def _perform(self, resolved: Leaf) -> object:
        try:
            value = await resolved.run(self)
        except (RunOpsError, TimeoutError):
            raise
        except Exception as error:
            if "." not in resolved.type:
                raise
            raise plugins.failed(resolved, error) from error
        if self.call is None:
            await self.act()
            if resolved.effect_class == "effect":
                raise SetupError(
                    "node-type-broken",
                    f"the node type `{resolved.type}` acted without `await ctx.act()`",
                    fix="call `await ctx.act()` right before the action: then a crash never causes a second one",
                    phase="after",
                )
        return value

    def _with_condition(self, error: RunOpsError) -> RunOpsError:
        """Return the error; of a condition over values that is false, with what it reads."""
        if error.evidence.get("rule") not in conditions.RULES:
            return error
        return conditions.explained(error, self.node, self._resolve(), self.frame, self._run.writer.masker)

    async def _with_opened(self, error: RunOpsError) -> RunOpsError:
        """Return the error; if an earlier step had opened what the page may have closed again, its fix says how to repeat both."""
        on_page, browser = self._run.opened.get(self._thread), self._run.browser
        if on_page is None or browser is None or self._page is None or self._page.closed:
            return error
        if any(block.number > 1 for block in step_paths.blocks(self.path)):
            return error  # both are repeated already
        browser.bound(opened_parts.LOOK_SECONDS)
        return await on_page.explained(error, self.node, self._page)

    async def _demand_answers(self) -> None:
        """Raise SiteError if a request of the action got no answer, or a server error. With ``confirm``, wait for all that it sent."""
        browser = self._run.browser
        if browser is None or self.node.asks == "agent":
            return
        if (missing := await browser.missing_answer(every=self.node.confirm is not None)) is not None:
            raise _unanswered(missing, {})

    def _refusal(self) -> RunOpsError | None:
        if self._run.browser is None or self._page is None:
            return None
        refused = self._run.browser.refusal()
        # A refused navigation during a model's work is already shown to the model.
        return refused if self.node.asks != "agent" else None

    def _placed(self, error: RunOpsError) -> RunOpsError:
        if isinstance(error, Replaced):
            # The process that now has the run reconciles the action, and may be asking the site already.
            return error
        if self.call is None:
            return error.replaced(phase="before")
        if self.node.asks == "agent":
            error = self._broken_off(error)
            if isinstance(error, STOPS):
                return error
        if self._verifying or not isinstance(error, SiteError):
            error = error.replaced(phase="after")
        return error

    def may_have_acted(self, error: RunOpsError) -> bool:
        """True if this attempt ended with ``error`` and it is still unknown if its side effect happened."""
        stopped = isinstance(error, Replaced) or (self.node.asks == "agent" and isinstance(error, STOPS))
        return not stopped and self._did_effect() and error.phase != "before"

    async def with_lost_answer(self, error: RunOpsError) -> RunOpsError:
        """Return the error, or one that says so if the rules failed because the site's answer was lost."""
        browser = self._run.browser
        if self._verifying and browser is not None and self._page is not None and (lost := await browser.lost_answer()):
            return _unanswered(lost, error.evidence)
        return error

    def recovered(self, error: RunOpsError) -> Json:
        """Return the value of a side effect that happened despite ``error``. Raises ValuePending if the step still has to yield it."""
        run, call = self._run, self.call
        assert call is not None
        if self.node.value_pending:
            run.writer.result(call, "interrupted")
            run.writer.note("reconciled", call=call.call, verdict="done", how="`confirm` says so")
            raise ValuePending
        yields = run.browser is not None and self.node.asks != "agent"
        return self._finished("recovered", self.page.url if yields else None, run.writer.error(error))

    def did_not_happen(self, error: RunOpsError) -> RunOpsError:
        self.not_done = True
        return error.replaced(
            fix="`confirm` says that it did not happen; see why on the site. `runops resume` asks again before it does it again"
        )

    def _broken_off(self, error: RunOpsError) -> RunOpsError:
        """Close the open calls of an `agent`. Return SiteError ``answer-lost`` if one is a side effect, else ``error``."""
        assert self.call is not None
        attempt = self._run.history.attempt_of(self.call)
        open_actions = [action for action in attempt.actions if action.result is None]
        for action in open_actions:
            self._run.writer.result(action.call, "interrupted")
        if not any(action.call.effect == "effect" for action in open_actions):
            return error
        return SiteError(
            "answer-lost",
            f"the agent was ended in the middle of an action: {error.message}",
            fix="give the node a `confirm`, so that the site itself can tell how far it came",
            phase="after",
            evidence=error.evidence,
        )

    def rules(self) -> Sequence[Rule]:
        """Return the rules that hold once the action has happened, references filled in."""
        return self._resolve().postconditions

    async def pass_over(self, action: attempts.Attempt, verdict: Verdict) -> Json:
        """Skip the step, because an earlier run of the block did it. Writes the entries that say so, and returns the value of ``action``."""
        run, done = self._run, verdict.found == "done"
        self._resolve()
        await leaf_context.drop_input(run, self.node)
        value: Json = leaf_context.value_of_done(run, self.node) if done else None
        masked = None
        if action.result is not None and action.result.status == "ok":
            masked = action.result.masked
            value = None if masked else run.writer.value_of(action.result)
        call = run.writer.call(self._describe(None))
        run.writer.result(call, "recovered" if done else "skipped", value=value, **({"masked": True} if masked else {}))
        if done and run.browser is not None:
            run.checkpoints.effect_finished(run.browser)
        run.emit(events.StepFinished(self.path, "recovered", 0.0, container=False))
        return scopes.UnreadableValue(self.path) if masked else value

    def may_try_again(self, error: RunOpsError) -> bool:
        """True if ``retry`` covers a SiteError or ModelError: with ``on`` by its code, else if no side effect can have happened."""
        retry = self.node.retry
        if retry is None or not isinstance(error, SiteError | ModelError) or isinstance(error, OriginRefused):
            return False
        if self.node.begins_once and error.phase == "after":
            return False
        if retry.on is not None:
            return error.code in retry.on
        return error.phase == "before" or self.not_done or not self._did_effect()

    def _did_effect(self) -> bool:
        return self.call is not None and not self.closing and self._run.history.attempt_of(self.call).acted

    def failed(self, error: RunOpsError, *, tolerated: bool = False) -> dict[str, Json]:
        """Write the attempt's error result, and its call if there is none yet. Returns the error as it is in the log."""
        run = self._run
        recorded = run.writer.error(error)
        if not isinstance(error, (*STOPS, Replaced)):
            call = self.call or run.writer.call(self._describe(None))
            run.writer.result(call, "error", error=recorded, tolerated=tolerated or None, **self._took())
            if self.not_done:
                run.writer.note("reconciled", call=call.call, verdict="not-done", how="confirm")
        if not self._fresh:
            run.load_anew = True
        seconds = time.monotonic() - self._begun
        status = "tolerated" if tolerated else events.ended_by(error)
        if self._asked is None:
            run.emit(events.StepFinished(self.path, status, seconds, False, recorded))
        return recorded

    def _finished(self, status: entries.Status, value: Json, error: dict[str, Json] | None = None) -> Json:
        run, call = self._run, self.call
        assert call is not None
        if call.effect == "effect" and self.node.asks != "agent" and run.browser is not None and self._page:
            run.checkpoints.effect_finished(run.browser, took_up_input=self.node.takes_up_input)
        if status == "ok" and call.held_before and self.node.asks != "agent":
            does = getattr(self.node, "action", None) or self.node.type
            held = f"`verify` held already before the {does}, so it does not show that the {does} did anything"
            self.flag(VERIFY_HELD_BEFORE, held, {"rules": [str(rule) for rule in self.rules()]})
        run.writer.result(call, status, value=value, error=error, **self._took())
        if self._thread == entries.RUN_THREAD:
            shown = "recovered" if status == "recovered" else "ok"
            run.emit(events.StepFinished(self.path, shown, time.monotonic() - self._begun, container=False))
            if self._page is not None and not self._fresh and not run.tracing.idle:
                run.tracing.after(self.path, call, cast("tracing.Page", self.page), run.hide)
        return value

    def _took(self) -> dict[str, Json]:
        files = (self._own_services.kept if self._own_services is not None else None) or None
        seconds, browser = round(time.monotonic() - self._begun, 4), self._run.browser
        dismissed = self._dismissed()
        took: dict[str, Json] = {"seconds": seconds, "files": files, "flags": self._flags or None}
        took["dismissed"] = dismissed or None
        took["unmatched"] = self._run.writer.masker.text(self.unmatched) if self.unmatched is not None else None
        if browser is not None and self._page is not None and not self._fresh:
            facts = browser.facts()
            took["page"] = entries.PageState(
                documents=facts.documents,
                pending=facts.pending_input,
                posted=facts.posted or None,
                status=facts.status,
                url=self._address(),
                load=self._load,
            )
        return took

    def _dismissed(self) -> list[Json]:
        """Return the overlays that were closed during the attempt, once each, and report those that could not be."""
        closed: dict[str, Json] = {}
        for each in self._run.browser.dismissed() if self._run.browser is not None else ():
            if each.problem is not None:
                self.flag("not-dismissed", f"{each.overlay} was not dismissed: {each.problem}", {})
            elif each.overlay not in closed:
                closed[each.overlay] = self._run.writer.masker.text(each.overlay)
                self._run.emit(events.Said(f"{self.path}: dismissed {closed[each.overlay]}"))
        return list(closed.values())

    def _resolve(self) -> Leaf:
        """Return the node with values in place of references, made once. In the call's arguments a secret stays a reference."""
        if self._resolved is not None:
            return self._resolved
        program = self.frame.program
        with_secrets = scopes.Scope(self.frame, {"secrets": program.secrets})
        resolved: Leaf = self.node
        args: Json = self._plan.args
        for placeholder in self._plan.placeholders:
            secret = placeholder.secret and "secrets" in placeholder.text
            values = with_secrets if secret else self.frame
            template, clock = program.loaded.templates[placeholder.text], self._clock
            if template.one_time:
                value: Json = self._one_time(template, values)
            else:
                value = rendering.fit(template.render(values, clock), placeholder.coerce, placeholder.field)
            resolved = rendering.put(resolved, placeholder.place, value)
            if not secret and placeholder.named[0] not in self.node.value_fields:
                args = rendering.put(args, placeholder.named, value)
        self._resolved, self._args = resolved, args
        return resolved

    def _one_time(self, template: Compiled, values: Mapping[str, Json]) -> one_time.OneTime:
        """Return a text with a one-time code, which is made anew when it is typed. Its other parts stay as they were."""
        first = rendering.RecordedClock(self._run.history.recorded(self.path), self.hide)
        text = str(template.render(values, first))

        async def renew() -> str:
            while True:
                again = rendering.RecordedClock(first.given, self.hide)
                renewed = str(template.render(values, again))
                if again.valid >= SHORTEST_LEFT:
                    return renewed
                self._say_waiting("the next one-time code")
                await asyncio.sleep(again.valid)

        return one_time.OneTime.of(text, renew)

    def _describe(self, held_before: bool | None) -> entries.Call:
        node, asked = self.node, self._asked
        return entries.Call(
            thread=self._thread,
            path=self.path,
            node=node.type,
            action=getattr(node, "action", None) or getattr(node, "query", None),
            again=self.continued_call and (self.continued_call.again or self.continued_call.call),
            attempt=self._number,
            effect=(self._resolved or node).effect_class,
            args=self._args,
            held_before=held_before,
            url=self._address(),
            matched=self._matched or None,
            recorded=self._clock.given or None,
            asked=asked.id if asked else None,
            fingerprint=asked.fingerprint if asked else self.frame.program.loaded.fingerprints[node.id],
        )

    def _address(self) -> str | None:
        """Return the address of the page for a side effect: a run that finds it done after a crash continues from there."""
        if self._page is None or self._fresh or (self._resolved or self.node).effect_class != "effect":
            return None
        return self._run.writer.masker.text(self.page.url)


def _too_long(node: Leaf) -> RunOpsError:
    took = f"the attempt took longer than {node.seconds:g} s"
    if node.asks is not None:
        return ModelError("model-timeout", took, fix="give the node a longer `timeout`", phase="after")
    fix = "look at what the page was doing, or give the node a longer `timeout`"
    return SiteError("timeout", took, fix=fix, phase="after")


def _unanswered(missing: MissingAnswer, evidence: dict[str, Json]) -> SiteError:
    """Return the error for a side effect whose request was not answered, or was answered with a server error."""
    unknown = "so it is unknown whether it was carried out"
    code, said = {
        "lost": ("answer-lost", f"the answer to {missing.request} was lost, {unknown}"),
        "late": ("timeout", f"the site did not answer {missing.request} in time, {unknown}"),
        "error": ("error-page", f"the site answered {missing.request} with an error of the server ({missing.status})"),
    }[missing.how]
    return SiteError(
        code,
        said,
        fix="give the node a `confirm`, so that the site itself can tell",
        phase="after",
        evidence={**evidence, "request": missing.request},
    )
