"""One run in this process: its first entry, its engine, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nodes.errors import (
    AuthorError,
    BudgetReached,
    Cancelled,
    InternalError,
    LogError,
    Paused,
    Replaced,
    RunOpsError,
    SiteError,
)
from nodes.values import Json
from runtime import events, version
from runtime.browser import port
from runtime.engine import engine, evidence, run_state, tracing
from runtime.engine.run_state import RunState
from runtime.language import workflow
from runtime.log import entries, history, leaks
from runtime.log.store import leases, owners
from runtime.log.writer import LogWriter
from runtime.recovery import resume, workflow_source
from runtime.services import leaf_services
from runtime.system import tasks

if TYPE_CHECKING:
    from nodes.ports import Agent
    from runtime.models import requests, run_models


LEAKED = "secret-leaked"
"""Code of the error that ends a run which wrote a secret."""


class Browsers(Protocol):
    async def open(self) -> port.Browser: ...

    async def reattach(self) -> port.Browser | None: ...


def _agent(
    run: RunState, step: run_state.LeafView, models: run_models.RunModels, requester: requests.RequestScope
) -> Agent:
    from runtime.agents import agent  # most runs have no agent

    return agent.PageAgent(run, step, models, requester)


@dataclasses.dataclass(eq=False)
class Run:
    loaded: workflow.Loaded
    writer: LogWriter  # claimed, and has written the run's first entry
    _: dataclasses.KW_ONLY
    inputs: Mapping[str, Json]
    known: Mapping[str, str]  # secrets by name
    private: Path
    browsers: Browsers
    keep_browser: bool = False
    listener: events.Listener | None = None
    models: run_models.RunModels | None = None
    python_modules: Sequence[str] = ()
    step_timeout: float | None = None
    run_timeout: float | None = None  # time limit of this execution beside the file's own, in seconds
    tracing: tracing.Tracing = dataclasses.field(default_factory=tracing.Tracing)

    def __post_init__(self) -> None:
        limits = [each for each in (self.run_timeout, self.loaded.workflow.run_timeout) if each is not None]
        self._limit = min(limits, default=None)
        self._step: str | None = None  # path of the step that began last
        self._waiting: str | None = None  # what it waits for

        def services(run: RunState, step: run_state.LeafView) -> leaf_services.LeafServices:
            return leaf_services.LeafServices(run, step, self.models, self.python_modules, _agent)

        self._traced = False  # true if the evidence of the error that ended the run has its trace
        self._kept: list[dict[str, Json]] = []  # recordings of the whole run
        self.id = self.writer.conversation.id
        state = RunState(
            self.loaded,
            self.writer,
            inputs=self.inputs,
            secrets=self.known,
            open_browser=self.browsers.open,
            services=services,
            private=self.private,
            step_timeout=self.step_timeout,
            tracing=self.tracing,
        )
        self.engine = engine.ExecutionEngine(state, self._hear if self._limit is not None else self.listener)

    def _hear(self, event: events.Event) -> None:
        if isinstance(event, events.StepStarted):
            self._step, self._waiting = event.path, None
        elif isinstance(event, events.StepWaiting):
            self._step, self._waiting = event.path, event.what
        if self.listener is not None:
            self.listener(event)

    async def begin(self) -> events.RunEnded:
        return await self.drive(self.engine.run())

    async def resume(self, from_step: str | None = None) -> events.RunEnded:
        """Settle what the last process left open, then run the rest. In a rebuilt browser nothing before ``from_step`` is repeated."""
        return await self.drive(resume.resume_workflow(self.engine, self.browsers.reattach, from_step))

    async def drive(self, work: Awaitable[Json]) -> events.RunEnded:
        """Await ``work``, write the run's end, close its browser, and emit ``RunEnded``.

        If another owner has claimed the run, ``work`` is cancelled, nothing more is written, and the browser is left for that owner.
        A cancellation is reported as ``interrupted``, an error that is no RunOpsError as exit 70; both are raised again.
        """
        begun = time.monotonic()
        output: Json = None
        failure: RunOpsError | None = None
        passing: BaseException | None = None
        try:
            async with leases.renewed(self.writer.conversation):
                output = await self._with_evidence(self._in_time(work))
        except RunOpsError as error:
            failure = error
        except asyncio.CancelledError as cancelled:
            failure = Cancelled("interrupted", "the run was interrupted", fix="continue with `runops resume`")
            passing = cancelled
        except Exception as error:  # noqa: BLE001 — a bug of ours must still leave a log that shows it
            failure, passing = InternalError("internal", f"{type(error).__name__}: {error}"), error
        async with contextlib.AsyncExitStack() as last:
            # Each of these is done even if another fails, or the task is cancelled again. The lock is released last.
            last.push_async_callback(lambda: tasks.to_the_end(self.writer.conversation.aclose()))
            if self.models is not None:
                last.push_async_callback(self.models.close)
            last.push_async_callback(self._close_browser)
            ended = await self._over(output, failure, begun)
        self.engine.state.emit(ended)
        if passing is not None:
            raise passing
        return ended

    async def _over(self, output: Json, failure: RunOpsError | None, begun: float) -> events.RunEnded:
        """Write the run's end. The claim is renewed until that is synced: another owner would reconcile finished steps meanwhile."""
        writer = self.writer
        try:
            async with leases.renewed(writer.conversation):
                try:
                    await self.engine.state.checkpoints.settled()
                except (LogError, Replaced) as error:
                    failure = failure if isinstance(failure, Replaced) else error
                if not isinstance(failure, Replaced):
                    if not isinstance(failure, LogError):
                        self._kept = await evidence.recordings(self.engine.state, traced=self._traced)
                    # Sync first, so that pending files are searched for secrets as well.
                    await writer.barrier()
                    failure = await asyncio.to_thread(self._leak) or failure
                ended = self._ended(output, failure, time.monotonic() - begun)
                ended = dataclasses.replace(ended, files=[*ended.files, *self._kept])
                if not isinstance(failure, LogError | Replaced):
                    if ended.question is not None:
                        writer.note("paused", **ended.question)
                    fields = {name: getattr(ended, name) for name in ("status", "exit", "error", "path", "tolerated")}
                    kept: dict[str, Json] = {"files": [*self._kept]} if self._kept else {}
                    writer.note("ended", **fields, **kept, **writer.history.for_lists())
                    await writer.barrier()
                return ended
        except (LogError, Replaced) as error:
            return self._ended(None, error, time.monotonic() - begun)

    async def _close_browser(self) -> None:
        """Close the browser, unless another owner has claimed the run: then it is that owner's."""
        if self.engine.state.browser is None:
            return
        keep = self.keep_browser
        with contextlib.suppress(LogError):
            try:
                await self.writer.conversation.renew()
            except Replaced:
                keep = True
        with contextlib.suppress(RunOpsError):
            await self.engine.state.browser.close(keep=keep)

    async def _in_time(self, work: Awaitable[Json]) -> Json:
        """Await ``work``; when the time is up, cancel it as an interruption does. Raises SiteError ``run-timeout``."""
        limit = asyncio.timeout(self._limit)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
        error = SiteError(
            "run-timeout",
            f"the run took longer than {self._limit:g} s",
            fix="look what took so long, or allow more: `run_timeout` in the file, and `--run-timeout`",
            phase="after",
            evidence={"waited for": self._waiting} if self._waiting is not None else None,
        )
        raise error if self._step is None else error.located(self._step)

    async def _with_evidence(self, work: Awaitable[Json]) -> Json:
        try:
            output = await work
        except RunOpsError as error:
            self._traced = await evidence.keep(self.engine.state, error)
            raise
        if self.models is not None:
            said = await tasks.in_thread(self.models.finish, self.writer.history.ledger.exchanges)
            if said is not None:
                self.engine.state.emit(events.Said(said))
        return output

    def _ended(self, output: Json, failure: RunOpsError | None, seconds: float) -> events.RunEnded:
        writer, past = self.writer, self.writer.history
        if failure is None:
            shown = writer.masker.json(output)
            return ended(past, self.id, "passed", 0, seconds, output=shown, tolerated=past.tolerated)
        error = writer.error(failure)
        question = as_question(failure, error) if isinstance(failure, Paused) else None
        return ended(
            past,
            self.id,
            _status(failure),
            failure.exit,
            seconds,
            error=None if question is not None else error,
            path=failure.path,
            place=self.engine.state.loaded.place(failure.path),
            tolerated=past.tolerated,
            question=question,
        )

    def _leak(self) -> RunOpsError | None:
        """Take away what the run wrote with a secret in it; return the error that ends the run then."""
        writer = self.writer
        found = leaks.Leaks(writer.store, writer.conversation.id, writer.masker)
        if not found.found:
            return None
        names = sorted({name for each in found.found for name in each.found.secrets})
        where = ", ".join(f"{each.file} ({each.found})" for each in found.found)
        taken = found.take()
        return AuthorError(
            LEAKED,
            f"files of the run contained a secret: {where}",
            fix=f"change {', '.join(names)} where it is valid, and report how it got there",
            phase="after",
            evidence={"files": [*taken]},
        )


def ended(
    past: history.History, run: str, status: events.RunStatus, code: int, seconds: float = 0.0, **fields: Any
) -> events.RunEnded:
    costs = past.ledger.totals()
    return events.RunEnded(run, status, code, seconds, files=past.files, flags=past.flags, costs=costs, **fields)


def _status(failure: RunOpsError) -> events.RunStatus:
    if isinstance(failure, Paused):
        return "paused"
    if isinstance(failure, Cancelled):
        return "interrupted"
    if isinstance(failure, BudgetReached):
        return "out-of-budget"
    return "replaced" if isinstance(failure, Replaced) else "failed"


def as_question(paused: Paused, error: dict[str, Json]) -> dict[str, Json]:
    """Return the question of a pause as the log and events hold it; ``error`` is the pause with its secrets masked."""
    return {
        "reason": paused.code,
        "message": error["message"],
        "path": paused.path,
        "fix": error.get("fix"),
        "evidence": error.get("evidence"),
    }


def write_header(
    writer: LogWriter, loaded: workflow.Loaded, typed: Mapping[str, Json], *, trial: Json = None, **fields: Any
) -> None:
    """Write the run's first entry, and its owner. ``trial`` describes a run of single nodes; ``fields`` are further fields of the header."""
    header = entries.RunHeader(
        **dict(workflow_source.facts(loaded, typed, writer)),
        file=str(loaded.path.absolute()),
        browser={},
        versions=version.versions(),
        trial=writer.masker.json(trial),
        **fields,
    )
    writer.scope("", "opened", "run", run=header)
    writer.note("claimed", **owners.me(), epoch=writer.conversation.epoch, version=version.VERSION)
