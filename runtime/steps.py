"""One leaf: its attempts, its call, its outcome.

The order of an attempt: resolve → find → barrier → act → verify → value. The call is written just before the deed, and for class *effect* it
is on the disk before the deed begins; an attempt that fails earlier has changed nothing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.base import Leaf
from nodes.errors import AuthorError, LogError, OriginRefused, Paused, RunOpsError, SiteError
from nodes.ports import Page
from nodes.rules import Rule
from nodes.targets import Target
from nodes.template import Template
from nodes.values import Json, NotJson, normalise
from runtime import events, frames, history, judge, log, resolve

if TYPE_CHECKING:
    from runtime.engine import ExecutionEngine

GRACE = 2.0
"""Seconds that a page method may overrun its time before the attempt is ended from outside."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tolerated:
    """The step failed, and ``on_error: continue`` lets the run go on."""

    error: dict[str, Json]


class RecordedClock:
    """``now()`` and ``uuid()``: first what the log says they gave before, then new ones."""

    def __init__(self, before: list[str]) -> None:
        """``before`` is what was recorded, in order."""
        self._before = before
        self.given: list[str] = []

    def now(self) -> str:
        """The present moment, ISO 8601 UTC."""
        return self._give(lambda: dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))

    def uuid(self) -> str:
        """A random UUID."""
        return self._give(lambda: str(uuid.uuid4()))

    def _give(self, make: Callable[[], str]) -> str:
        position = len(self.given)
        value = self._before[position] if position < len(self._before) else make()
        self.given.append(value)
        return value


def render_deep(
    value: Json, templates: Mapping[str, resolve.Compiled], values: Mapping[str, Json], clock: resolve.Clock
) -> Json:
    """``value`` with every template in it rendered."""
    if isinstance(value, Template):
        return templates[value].render(values, clock)
    if isinstance(value, dict):
        return {key: render_deep(item, templates, values, clock) for key, item in value.items()}
    if isinstance(value, list):
        return [render_deep(item, templates, values, clock) for item in value]
    return value


async def run(engine: ExecutionEngine, node: Leaf, frame: frames.Frame, path: str) -> Json | Tolerated:
    """The step's value: recorded, found out, or made now."""
    before = engine.history.last(path)
    if before is not None and (known := _known(engine, node, path, before)) is not Nothing:
        return known
    if engine.settling:
        raise judge.Reached(node, frame, path, before)
    if before is not None and before.settled and not before.behind and Step(engine, node, frame, path, 1).lacks_value():
        return frames.Lost(path)
    # The one rule that nothing may get around: a deed that may have happened is judged before it is attempted again.
    if before is not None and before.may_have_happened:
        await judge.before_attempt(engine, judge.Reached(node, frame, path, before))
        if (known := _known(engine, node, path, before)) is not Nothing:
            return known
    return await _attempts(engine, node, frame, path, first=before.call.attempt + 1 if before is not None else 1)


class Nothing:
    """No value is known."""


def _known(engine: ExecutionEngine, node: Leaf, path: str, before: history.Attempt) -> Json:
    """The recorded value; Nothing where there is none, or where it held a secret and can be made again."""
    if before.behind or not before.settled:
        return Nothing
    result = before.result
    assert result is not None
    engine.tell(events.StepFinished(path, "recorded", 0.0, container=False))
    if result.tolerated and before.verdict != "done":
        return Tolerated(result.error or {})
    if not result.masked:
        known = engine.journal.value_of(result) if result.status != "interrupted" else before.judged_value
        return _bind_effects(engine, node, known)
    if before.call.effect == "read" and not (node.touches_page and engine.history.page_changed_since(result.seq)):
        return frames.Lost(path) if engine.settling else Nothing
    return frames.Lost(path)


def _bind_effects(engine: ExecutionEngine, node: Leaf, value: Json) -> Json:
    if node.type == "context" and isinstance(value, dict):
        engine.variables.update(value)
    return value


async def _attempts(
    engine: ExecutionEngine, node: Leaf, frame: frames.Frame, path: str, first: int
) -> Json | Tolerated:
    retry = node.retry
    last = first + (retry.attempts if retry else 1) - 1
    delay = retry.delay if retry else 0.0
    for number in range(first, last + 1):
        step = Step(engine, node, frame, path, number)
        step.again = number < last
        engine.tell(
            events.StepStarted(path, node.type, step.summary(), path.count("/"), container=False, attempt=number)
        )
        try:
            value = await step.attempt()
        except RunOpsError as error:
            again = number < last and step.may_try_again(error)
            tolerated = not again and engine.tolerates(node, error)
            recorded = step.failed(error, tolerated=tolerated)
            if tolerated:
                return Tolerated(recorded)
            if not again:
                raise
            engine.tell(events.StepWaiting(path, f"{delay:g} s before attempt {number + 1}: {error.message}"))
            await asyncio.sleep(delay)
            delay *= retry.backoff if retry else 1.0
        else:
            return _bind_effects(engine, node, value)
    raise AssertionError("an attempt returns or raises")


class Step:
    """One attempt of a leaf, and what the node sees of it (``nodes.ports.LeafContext``)."""

    def __init__(
        self,
        engine: ExecutionEngine,
        node: Leaf,
        frame: frames.Frame,
        path: str,
        number: int,
        thread: str = log.RUN_THREAD,
    ) -> None:
        """Attempt ``number`` of ``node``, in ``thread``."""
        self._engine = engine
        self._node = node
        self._frame = frame
        self._path = path
        self._number = number
        self._thread = thread
        self._begun = time.monotonic()
        self._plan = engine.plan(node)
        self._args: Json = self._plan.args
        self._resolved: Leaf | None = None
        self._clock = RecordedClock(engine.history.recorded(path))
        self._matched: list[str] = []
        self._page: Page | None = None
        self._call: log.Call | None = None
        self._verified = False
        self._verifying = False
        self.again = False
        """Whether attempts are left after this one."""
        self.not_done: bool = False
        """Whether the site said that a deed of this attempt did not happen."""

    # What the node sees.

    @property
    def page(self) -> Page:
        """The tab the node works on."""
        assert self._page is not None, "the node does not say that it touches the page"
        return self._page

    async def located(self, target: Target) -> Target:
        """The target with its ``any_of`` chosen."""
        chosen = await self.page.locate(target)
        if chosen is not target:
            self._matched.append(str(chosen))
        return chosen

    async def act(self) -> None:
        """Write the call; for class *effect* wait until it is on the disk."""
        effect = self._node.effect_class == "effect"
        if effect:
            await self._engine.checkpoints.settled()
        held = await self._holds_already() if effect and self._resolve().verify and self._page is not None else None
        self._call = self._engine.journal.call(self._describe(held), barrier=effect)

    async def verify(self) -> None:
        """Wait until the rules hold."""
        self._verified = self._verifying = True
        for rule in self._resolve().verify:
            if rule.kind == "expr":
                judge.demand_expr(rule)
            else:
                self._engine.tell(events.StepWaiting(self._path, f"verify {rule}"))
                try:
                    await self.page.wait_for(rule)
                except SiteError as error:
                    if error.code == "rule-failed":
                        error.code = "verify-failed"
                        error.mend = (
                            error.mend
                            or "look at what the page says: the deed was done, and the page did not come to this"
                        )
                    raise
        self._verifying = False

    # What the engine does with it.

    def summary(self) -> str:
        """The step as one line, references filled in where they can be, secrets masked."""
        try:
            return self._engine.journal.masker.text(self._resolve().summary())
        except RunOpsError:
            self._clock = RecordedClock(self._engine.history.recorded(self._path))
            return self._node.summary()

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
            return await self._after(self._refusal() or error)
        refused = self._refusal()
        if refused is not None:
            raise refused
        return self._finished("ok", value)

    async def _do(self, page: Page | None) -> Json:
        engine, node = self._engine, self._node
        resolved = self._resolve()
        if node.touches_page or any(rule.kind != "expr" for rule in node.verify):
            browser = await engine.need_browser(self._path)
            browser.bound(node.seconds)
            self._page = page or browser.page
        try:
            async with asyncio.timeout(node.seconds + GRACE):
                value = await resolved.run(self)
                if self._call is None:
                    await self.act()
                if not self._verified:
                    await self.verify()
            if node.effect_class == "effect" and not node.verify and (lost := self._lost_answer()):
                raise _answer_lost(lost, {})
            return normalise(value)
        except TimeoutError:
            raise SiteError(
                "timeout",
                f"the attempt took longer than {node.seconds:g} s",
                mend="look at what the page was doing, or give the node a longer `timeout`",
                phase="after",
            ) from None
        except NotJson as error:
            raise AuthorError("value-type", f"the value cannot be kept: {error}", phase="after") from None

    def _lost_answer(self) -> str | None:
        return (
            self._engine.browser.lost_answer() if self._engine.browser is not None and self._page is not None else None
        )

    def _refusal(self) -> RunOpsError | None:
        return self._engine.browser.refusal() if self._engine.browser is not None and self._page is not None else None

    async def _after(self, error: RunOpsError) -> Json:
        """An attempt went wrong. Where the deed may have happened all the same, find out."""
        if self._call is None:
            error.phase = "before"
            raise error
        if self._verifying or not isinstance(error, SiteError):
            error.phase = "after"
        if self._node.effect_class != "effect" or error.phase == "before":
            raise error
        if self._verifying and (lost := self._lost_answer()):
            error = _answer_lost(lost, error.evidence)
        verdict = await judge.after_error(
            self._engine, self._node, self._frame, self._path, self._call, error, again=self.again
        )
        if verdict == "done":
            browser = self._engine.browser
            return self._finished(
                "recovered", browser.page.url if browser is not None else None, self._engine.journal.error(error)
            )
        self.not_done = verdict == "not-done"
        raise error

    def rules(self) -> Sequence[Rule]:
        """The ``verify`` rules, references filled in."""
        return self._resolve().verify

    def may_try_again(self, error: RunOpsError) -> bool:
        """Whether ``retry`` covers this error: before the deed, or after one that the site says did not happen, or by its code."""
        retry = self._node.retry
        if retry is None or not isinstance(error, SiteError) or isinstance(error, OriginRefused):
            return False
        if retry.on is not None:
            return error.code in retry.on
        return error.phase == "before" or self.not_done or self._node.effect_class != "effect"

    def failed(self, error: RunOpsError, *, tolerated: bool = False) -> dict[str, Json]:
        """Write the attempt's error result (and its call, if it came to none); the error as it stands in the log."""
        engine = self._engine
        recorded = engine.journal.error(error)
        if not isinstance(error, Paused | LogError):
            call = self._call or engine.journal.call(self._describe(None), barrier=False)
            fields = {"error": recorded, "tolerated": tolerated or None, **self._trace()}
            engine.journal.result(call, "error", **fields)
            if self.not_done:
                engine.journal.note("judged", call=call.call, verdict="not-done", how="confirm")
        seconds = time.monotonic() - self._begun
        engine.tell(events.StepFinished(self._path, "tolerated" if tolerated else "error", seconds, False, recorded))
        return recorded

    def _finished(self, status: log.Status, value: Json, error: dict[str, Json] | None = None) -> Json:
        engine, call = self._engine, self._call
        assert call is not None
        if call.effect == "effect" and engine.browser is not None and self._page is not None:
            engine.checkpoints.effect_finished(engine.browser)
        engine.journal.result(call, status, value=value, error=error, **self._trace())
        shown = "recovered" if status == "recovered" else "ok"
        if self._thread == log.RUN_THREAD:
            engine.tell(events.StepFinished(self._path, shown, time.monotonic() - self._begun, container=False))
        return value

    def _trace(self) -> dict[str, Json]:
        """How long the attempt took, and what it left on the pages."""
        seconds = round(time.monotonic() - self._begun, 4)
        browser = self._engine.browser
        if browser is None or self._page is None or self._thread != log.RUN_THREAD:
            return {"seconds": seconds}
        facts = browser.facts()
        return {"seconds": seconds, "page": log.PageState(documents=facts.documents, pending=facts.pending_input)}

    def _resolve(self) -> Leaf:
        """The node with values in the place of references, made once; in the call's arguments a secret stays a reference."""
        if self._resolved is not None:
            return self._resolved
        templates, frame = self._engine.loaded.templates, self._frame
        secrets: Mapping[str, Json] | None = None
        resolved: Leaf = self._node
        args: Json = self._plan.args
        for hole in self._plan.holes:
            values: Mapping[str, Json] = frame
            if hole.secret and "secrets" in hole.text:
                secrets = secrets or frames.Frame(frame, {"secrets": self._engine.secrets})
                values = secrets
            value = resolve.fit(templates[hole.text].render(values, self._clock), hole.coerce, hole.field)
            resolved = resolve.put(resolved, hole.place, value)
            if values is frame:
                args = resolve.put(args, hole.named, value)
        self._resolved, self._args = resolved, args
        return resolved

    def _describe(self, held_before: bool | None) -> log.Call:
        node = self._node
        return log.Call(
            thread=self._thread,
            path=self._path,
            node=node.type,
            action=getattr(node, "action", None) or getattr(node, "query", None),
            attempt=self._number,
            effect=node.effect_class,
            args=self._args,
            held_before=held_before,
            matched=self._matched or None,
            recorded=self._clock.given or None,
            fingerprint=self._engine.loaded.fingerprints[node.id],
        )

    async def _holds_already(self) -> bool:
        """Whether every rule holds before the deed: then holding after a crash proves nothing."""
        return await judge.all_hold(self._resolve().verify, self.page)


def _answer_lost(request: str, evidence: dict[str, Json]) -> SiteError:
    return SiteError(
        "answer-lost",
        f"the answer to {request} was lost, so nobody knows from here whether it was carried out",
        mend="give the node a `confirm`, so that the site itself can tell",
        phase="after",
        evidence={**evidence, "request": request},
    )
