"""One attempt of a leaf: its call, its deed, its outcome.

The order: resolve → find → barrier → act → verify → value. The call is written just before the deed, and for class *effect* it
is on the disk before the deed begins; an attempt that fails earlier has changed nothing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nodes import plugins
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
from runtime.engine import clock, reconcile, rendering, scopes, skipped_steps
from runtime.log import attempts, entries
from runtime.services import leaf_services

if TYPE_CHECKING:
    from runtime.engine.engine import ExecutionEngine

GRACE = 2.0
"""Seconds that a page method may overrun its time before the attempt is ended from outside."""


VERIFY_HELD_BEFORE = "verify-held-before"
"""Flag of a side effect whose rules held just before it, too."""


class Held(Paused):
    """A deed that the engine was asked to hold: everything before it was found ready, and it was not done."""

    def __init__(self, path: str, node: Leaf, args: Json, matched: Sequence[str], url: str | None) -> None:
        """``args`` are those of its call."""
        super().__init__("held", f"the {getattr(node, 'action', node.type)} is ready, and was not done")
        self._value: dict[str, Json] = {
            "held": path,
            "effect": node.effect_class,
            "args": args,
            "matched": list[Json](matched),
            "page": url,
        }

    def as_value(self) -> dict[str, Json]:
        """What was ready: step, effect class, arguments, chosen targets, address of the page."""
        return self._value


class OwesValue(Exception):
    """The deed is known to have happened, and the step is still to be asked for its value."""


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """Why a step is done that stands in no file: a model asked for it."""

    id: str
    """Of the model's call."""
    fingerprint: str
    """Of the node whose model it is."""


class Step(leaf_services.Surroundings):
    """One attempt of a leaf. It is what the node sees of it, too (``nodes.ports.LeafContext``)."""

    def __init__(
        self,
        engine: ExecutionEngine,
        node: Leaf,
        frame: scopes.Frame,
        path: str,
        number: int,
        thread: str = entries.RUN_THREAD,
        asked: Asked | None = None,
    ) -> None:
        """Attempt ``number`` of ``node``, in ``thread``. What a model ``asked`` for holds values only: nothing in it is a reference."""
        super().__init__(engine, node, frame, path)
        self._number = number
        self._thread = thread
        self._asked = asked
        self._plan = engine.plan(node) if asked is None else rendering.literal(node)
        self._args: Json = self._plan.args
        self._resolved: Leaf | None = None
        self._clock = clock.RecordedClock(engine.history.recorded(path))
        self._verified = False
        self._verifying = False
        self.again = False
        """Whether attempts are left after this one."""
        self.not_done: bool = False
        """Whether the site said that a deed of this attempt did not happen."""
        self.goes_on_from: entries.Call | None = None
        """The call of the attempt that a crash ended, and with whose conversation this one goes on."""

    # What the node does.

    async def act(self) -> None:
        """Write the call; for class *effect* wait until it is on the disk. Raises SetupError ``node-type-broken`` where the attempt has its call."""
        if self._call is not None:
            raise SetupError(
                "node-type-broken",
                f"the node type `{self._node.type}` acts twice in one attempt",
                mend="one node is one action: let it call `await ctx.act()` once, right before that",
                phase="after",
            )
        # Filled in, a step may do what its words do not show: load an address that is a script, type a line break.
        if self._engine.holds(self._node, self._path) or self._engine.holds(self._resolve(), self._path):
            self._resolve()
            url = self._page.url if self._page is not None else None
            raise Held(self._path, self._resolve(), self._args, self._matched, url)
        effect = self.is_deed()
        if effect:
            await self._engine.checkpoints.settled()
        held = None
        if self.goes_on_from is not None:
            held = self.goes_on_from.held_before
        elif effect and self._resolve().postconditions and self._page is not None and self._page.dialog is None:
            # A page that shows a dialog cannot be looked at: then nobody knows.
            held = await self._holds_already()
        described = self._describe(held)
        self._call = await self._engine.journal.announce(described) if effect else self._engine.journal.call(described)

    async def verify(self) -> None:
        """Wait until the rules hold."""
        self._verified = self._verifying = True
        if self._node.asks == "cognition" and self._engine.browser is not None:
            # What the model took is not the page's time.
            self._engine.browser.bound(min(self._node.page_seconds, self.left))
        for rule in self._resolve().verify:
            if rule.kind == "expr":
                reconcile.demand_expr(rule)
            else:
                self._waiting(f"verify {rule}")
                try:
                    await self._wait_for(rule)
                except SiteError as error:
                    if error.code != "rule-failed":
                        raise
                    otherwise = "look at what the page says: the deed was done, and the page did not come to this"
                    raise error.replaced(code="verify-failed", mend=error.mend or otherwise) from None
        self._verifying = False
        if self._node.moves_page and not self._fresh:
            self._engine.verified = self.holding()
            if self._engine.verified.rules and self._node.takes_up_input:
                # The action leads to a page of its own, and is there.
                self._engine.aftermath = None

    def _waiting(self, what: str) -> None:
        self._engine.tell(events.StepWaiting(self._path, what))

    def holding(self) -> skipped_steps.Verified:
        """What holds on the page once the step is over, and how long the page has to come to that."""
        on_page = [rule for rule in self._resolve().postconditions if rule.kind != "expr"]
        return skipped_steps.Verified(on_page, self._node.page_seconds)

    async def _wait_for(self, rule: Rule) -> None:
        page = self.page
        try:
            await page.wait_for(rule)
        except SiteError as error:
            if error.code != "tab-closed" or self.page is page:
                raise
            # The deed closed its own tab while the rule was looked at.
            await self.page.wait_for(rule)

    # What the engine does with it.

    def summary(self) -> str:
        """The step as one line, references filled in where they can be, secrets masked."""
        try:
            return self._engine.journal.masker.text(self._resolve().summary())
        except RunOpsError:
            self._clock = clock.RecordedClock(self._engine.history.recorded(self._path))
            return self._node.summary()

    def is_deed(self) -> bool:
        """Whether the step is of class *effect*: as it is with its references filled in, or, where they cannot be, as the file has it."""
        try:
            return self._resolve().effect_class == "effect"
        except RunOpsError:
            return self._node.effect_class == "effect"

    def lacks_value(self) -> bool:
        """Whether a reference of the step has a value that held a secret and is not known any more."""
        try:
            self._resolve()
        except RunOpsError as error:
            return error.code == "value-masked"
        return False

    async def attempt(self, page: Page | None = None) -> Json:
        """Do it once, in ``page`` or else in the run's current tab. The value; the call and its result are written then.

        When it raises, the call may be written and still be open: ``failed`` closes it, a pause or a cancellation leaves it open.
        """
        try:
            value = await self._do(page)
        except RunOpsError as error:
            return await self._after(self._refusal() or self._with_condition(error))
        refused = self._refusal()
        if refused is not None:
            raise refused
        return self._finished("ok", value)

    async def _do(self, page: Page | None) -> Json:
        engine, node = self._engine, self._node
        resolved = self._resolve()
        if node.touches_page or any(rule.kind != "expr" for rule in node.verify):
            browser = await engine.need_browser(self._path)
            browser.bound(node.page_seconds)
            self._frame.program.confine(browser)
            self._fresh, self._page = page is not None, page or browser.tabs.get(node.works_in)
            if not node.despite_dialog:
                self._page.calm()
            if not self._fresh:
                await self._arrived(browser)
        try:
            async with asyncio.timeout(node.seconds + GRACE):
                value = await self._run(resolved)
                if not self._verified:
                    await self.verify()
                if resolved.effect_class == "effect" and not resolved.postconditions and self._page is not None:
                    await self._demand_answers()
            return normalise(value)
        except TimeoutError:
            raise _too_long(node) from None
        except NotJson as error:
            raise AuthorError("value-type", f"the value cannot be kept: {error}", phase="after") from None

    async def _arrived(self, browser: port.Browser) -> None:
        """Wait for what an earlier step, which was passed over, would have waited for."""
        engine, page = self._engine, self._page
        if page is not None and (aftermath := engine.aftermath) is not None:
            reads = self._node.asks == "agent" or not self._node.moves_page
            loads = getattr(self._node, "action", None) == "goto"
            engine.aftermath = None
            engine.aftermath = await aftermath.arrive(browser, page, self._waiting, loads=loads, reads=reads)
            self._frame.program.confine(browser)
            browser.bound(self._node.page_seconds)
            self._begun = time.monotonic()
        if self._node.moves_page:
            engine.verified = skipped_steps.NOTHING

    async def _run(self, resolved: Leaf) -> object:
        try:
            value = await resolved.run(self)
        except (RunOpsError, TimeoutError):
            raise
        except Exception as error:
            if "." not in resolved.type:
                raise
            raise plugins.failed(resolved, error) from error
        if self._call is None:
            await self.act()
            if resolved.effect_class == "effect":
                raise SetupError(
                    "node-type-broken",
                    f"the node type `{resolved.type}` did its deed without saying so",
                    mend="`await ctx.act()` stands right before the deed: then a crash never causes a second one",
                    phase="after",
                )
        return value

    def _with_condition(self, error: RunOpsError) -> RunOpsError:
        """The error; where a condition over values is false, with the condition as the file has it: filled in, all of them read alike."""
        if error.evidence.get("rule") not in ("expr", "a condition"):
            return error
        for field in ("verify", "rules"):
            for written, filled in zip(
                getattr(self._node, field, ()), getattr(self._resolve(), field, ()), strict=True
            ):
                if filled.kind == "expr" and not filled.expr:
                    said = f"the condition `{written.expr}` is false"
                    return error.replaced(message=said, evidence={"condition": str(written.expr)})
        return error

    async def _demand_answers(self) -> None:
        """Raise SiteError where the site did not answer what the deed asked of it. Where ``confirm`` can tell, all that it sent is waited for."""
        browser = self._engine.browser
        if browser is None or self._node.asks == "agent":
            return
        if (missing := await browser.missing_answer(every=self._node.confirm is not None)) is not None:
            raise _unanswered(missing, {})

    async def _lost_answer(self) -> MissingAnswer | None:
        if self._engine.browser is None or self._page is None:
            return None
        return await self._engine.browser.lost_answer()

    def _refusal(self) -> RunOpsError | None:
        if self._engine.browser is None or self._page is None:
            return None
        refused = self._engine.browser.refusal()
        # Where the page wanted to go while a model worked on it, the model was told.
        return refused if self._node.asks != "agent" else None

    async def _after(self, error: RunOpsError) -> Json:
        """An attempt went wrong. Where the deed may have happened all the same, find out."""
        if isinstance(error, Replaced):
            # Whoever has the run finds out, and may be asking the site already.
            raise error
        if self._call is None:
            raise error.replaced(phase="before")
        if self._node.asks == "agent":
            error = self._broken_off(error)
            if isinstance(error, Paused | BudgetReached | LogError):
                raise error
        if self._verifying or not isinstance(error, SiteError):
            error = error.replaced(phase="after")
        if not self._did_deed() or error.phase == "before":
            raise error
        if self._verifying and (lost := await self._lost_answer()):
            error = _unanswered(lost, error.evidence)
        verdict = await reconcile.after_error(
            self._engine, self._node, self._frame, self._path, self._call, error, again=self.again
        )
        if verdict == "done" and self._node.owes_value:
            self._engine.journal.result(self._call, "interrupted")
            self._engine.journal.note("judged", call=self._call.call, verdict="done", how="`confirm` says so")
            raise OwesValue
        if verdict == "done":
            yields = self._engine.browser is not None and self._node.asks != "agent"
            return self._finished("recovered", self.page.url if yields else None, self._engine.journal.error(error))
        self.not_done = verdict == "not-done"
        if self.not_done:
            error = error.replaced(
                mend="`confirm` says that it did not happen; see why on the site. `runops resume` asks again before it does it again"
            )
        raise error

    def _broken_off(self, error: RunOpsError) -> RunOpsError:
        """An `agent` ended with an error: the calls that are open still get their result. A deed among them is one of which nobody knows what became."""
        assert self._call is not None
        attempt = self._engine.history.attempt_of(self._call)
        open_deeds = [deed for deed in attempt.deeds if deed.result is None]
        for deed in open_deeds:
            self._engine.journal.result(deed.call, "interrupted")
        if not any(deed.call.effect == "effect" for deed in open_deeds):
            return error
        return SiteError(
            "answer-lost",
            f"the agent was ended in the middle of a deed: {error.message}",
            mend="give the node a `confirm`, so that the site itself can tell how far it came",
            phase="after",
            evidence=error.evidence,
        )

    def rules(self) -> Sequence[Rule]:
        """What holds once the deed has happened, references filled in."""
        return self._resolve().postconditions

    async def pass_over(self, deed: attempts.Attempt, judgement: reconcile.Judgement) -> Json:
        """Do nothing, for an earlier run of the block did it; the value that the ``deed`` had, and the entries that say so."""
        engine, status = self._engine, "recovered" if judgement.found == "done" else "skipped"
        self._resolve()
        await reconcile.drop_input(engine, self._node)
        value: Json = reconcile.value_of_done(engine, self._node) if status == "recovered" else None
        masked = None
        if deed.result is not None and deed.result.status == "ok":
            masked = deed.result.masked
            value = None if masked else engine.journal.value_of(deed.result)
        call = engine.journal.call(self._describe(None))
        engine.journal.result(call, status, value=value, **({"masked": True} if masked else {}))
        if status == "recovered" and engine.browser is not None:
            engine.checkpoints.effect_finished(engine.browser)
        engine.tell(events.StepFinished(self._path, "recovered", 0.0, container=False))
        return scopes.Lost(self._path) if masked else value

    def may_try_again(self, error: RunOpsError) -> bool:
        """Whether ``retry`` covers this error: before the deed, or after one that the site says did not happen, or by its code."""
        retry = self._node.retry
        if retry is None or not isinstance(error, SiteError | ModelError) or isinstance(error, OriginRefused):
            return False
        if retry.on is not None:
            return error.code in retry.on
        return error.phase == "before" or self.not_done or not self._did_deed()

    def _did_deed(self) -> bool:
        """Whether the attempt did a deed of class *effect*, or may have."""
        return self._call is not None and not self.closing and self._engine.history.attempt_of(self._call).acted

    def failed(self, error: RunOpsError, *, tolerated: bool = False) -> dict[str, Json]:
        """Write the attempt's error result (and its call, if it came to none); the error as it stands in the log."""
        engine = self._engine
        recorded = engine.journal.error(error)
        if not isinstance(error, Paused | BudgetReached | LogError | Replaced):
            call = self._call or engine.journal.call(self._describe(None))
            fields = {"error": recorded, "tolerated": tolerated or None, **self._trace()}
            engine.journal.result(call, "error", **fields)
            if self.not_done:
                engine.journal.note("judged", call=call.call, verdict="not-done", how="confirm")
        if not self._fresh:
            engine.load_anew = True
        seconds = time.monotonic() - self._begun
        status = "tolerated" if tolerated else events.ended_by(error)
        if self._asked is None:
            engine.tell(events.StepFinished(self._path, status, seconds, False, recorded))
        return recorded

    def _finished(self, status: entries.Status, value: Json, error: dict[str, Json] | None = None) -> Json:
        engine, call = self._engine, self._call
        assert call is not None
        if call.effect == "effect" and self._node.asks != "agent" and engine.browser is not None and self._page:
            engine.checkpoints.effect_finished(engine.browser, took_up_input=self._node.takes_up_input)
        if status == "ok" and call.held_before and self._node.asks != "agent":
            self._tell_that_verify_held()
        engine.journal.result(call, status, value=value, error=error, **self._trace())
        shown = "recovered" if status == "recovered" else "ok"
        if self._thread == entries.RUN_THREAD:
            engine.tell(events.StepFinished(self._path, shown, time.monotonic() - self._begun, container=False))
        return value

    def _tell_that_verify_held(self) -> None:
        does = getattr(self._node, "action", None) or self._node.type
        self.flag(
            VERIFY_HELD_BEFORE,
            f"`verify` held already before the {does}, so it does not show that the {does} did anything",
            {"rules": [str(rule) for rule in self.rules()]},
        )

    def _trace(self) -> dict[str, Json]:
        """How long the attempt took, what files it kept, and what it left on the pages."""
        kept = self._artifacts.kept if self._artifacts is not None else None
        took: dict[str, Json] = {
            "seconds": round(time.monotonic() - self._begun, 4),
            "files": kept or None,
            "flags": self._flags or None,
        }
        browser = self._engine.browser
        if browser is None or self._page is None or self._fresh:
            return took
        facts = browser.facts()
        return {
            **took,
            "page": entries.PageState(
                documents=facts.documents,
                pending=facts.pending_input,
                posted=facts.posted or None,
                status=facts.status,
                url=self._address(),
                load=self._load,
            ),
        }

    def _resolve(self) -> Leaf:
        """The node with values in the place of references, made once; in the call's arguments a secret stays a reference."""
        if self._resolved is not None:
            return self._resolved
        program, frame = self._frame.program, self._frame
        secrets: Mapping[str, Json] | None = None
        resolved: Leaf = self._node
        args: Json = self._plan.args
        for hole in self._plan.holes:
            values: Mapping[str, Json] = frame
            if hole.secret and "secrets" in hole.text:
                secrets = secrets or scopes.Frame(frame, {"secrets": program.secrets})
                values = secrets
            value = rendering.fit(
                program.loaded.templates[hole.text].render(values, self._clock), hole.coerce, hole.field
            )
            resolved = rendering.put(resolved, hole.place, value)
            if values is frame:
                args = rendering.put(args, hole.named, value)
        self._resolved, self._args = resolved, args
        return resolved

    def _describe(self, held_before: bool | None) -> entries.Call:
        node = self._node
        return entries.Call(
            thread=self._thread,
            path=self._path,
            node=node.type,
            action=getattr(node, "action", None) or getattr(node, "query", None),
            again=(self.goes_on_from.again or self.goes_on_from.call) if self.goes_on_from is not None else None,
            attempt=self._number,
            effect=(self._resolved or node).effect_class,
            args=self._args,
            held_before=held_before,
            url=self._address(),
            matched=self._matched or None,
            recorded=self._clock.given or None,
            asked=self._asked.id if self._asked is not None else None,
            fingerprint=self._asked.fingerprint
            if self._asked is not None
            else self._frame.program.loaded.fingerprints[node.id],
        )

    def _address(self) -> str | None:
        """Where the page is, of a step of class *effect*: a run that finds it done after a crash continues from there."""
        if self._page is None or self._fresh or (self._resolved or self._node).effect_class != "effect":
            return None
        return self._engine.journal.masker.text(self.page.url)

    async def _holds_already(self) -> bool:
        """Whether every rule holds before the deed: then holding after a crash proves nothing."""
        return await reconcile.all_hold(self._resolve().postconditions, self.page)


def _too_long(node: Leaf) -> RunOpsError:
    took = f"the attempt took longer than {node.seconds:g} s"
    if node.asks is not None:
        return ModelError("model-timeout", took, mend="give the node a longer `timeout`", phase="after")
    mend = "look at what the page was doing, or give the node a longer `timeout`"
    return SiteError("timeout", took, mend=mend, phase="after")


def _unanswered(missing: MissingAnswer, evidence: dict[str, Json]) -> SiteError:
    """The error for a side effect whose request was not answered, or with an error of the server."""
    request = missing.request
    match missing.how:
        case "lost":
            code, said = (
                "answer-lost",
                f"the answer to {request} was lost, so nobody knows from here whether it was carried out",
            )
        case "late":
            code, said = (
                "timeout",
                f"the site did not answer {request} in time, so nobody knows from here whether it was carried out",
            )
        case "error":
            code, said = "error-page", f"the site answered {request} with an error of the server ({missing.status})"
    return SiteError(
        code,
        said,
        mend="give the node a `confirm`, so that the site itself can tell",
        phase="after",
        evidence={**evidence, "request": request},
    )
