"""API for programs: start, follow, answer and interrupt many runs in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nodes.errors import Cancelled, UsageError
from nodes.values import Json
from runtime import events
from runtime.browser import shared
from runtime.browser.options import Mode
from runtime.language import prepare, reader, workflow
from runtime.log import entries
from runtime.log.store import owners
from runtime.log.store import store as log_store
from runtime.runs import answers, keys
from runtime.runs import start as start_run
from runtime.secrets import sources
from runtime.services import functions
from runtime.settings import settings
from runtime.system import tasks
from runtime.workspace import host, run_index

LOOK_SECONDS = 0.2  # seconds between two reads of a run's log

Entries = AsyncGenerator[entries.AnyEntry]

Work = Callable[[events.Listener], Coroutine[Any, Any, events.RunEnded]]
"""Executes a run, and passes its events to the given listener."""


class Run:
    """One execution of a run in this process: from a start or a resume to its end."""

    def __init__(self, runtime: Runtime, run_id: str | None, listener: events.Listener | None) -> None:
        self._runtime = runtime
        self._id = run_id
        self._listener = listener
        self._begun = asyncio.Event()
        self._ended: events.RunEnded | None = None
        self._task: asyncio.Task[events.RunEnded]

    @property
    def id(self) -> str:
        assert self._id is not None
        return self._id

    async def launch(self, work: Work, active: set[Run]) -> Self:
        """Begin ``work``, and return once the run has its id; it is in ``active`` until it ends. Raises the error that prevented the start."""
        self._task = asyncio.create_task(work(self._listen))
        begun = asyncio.create_task(self._begun.wait())
        try:
            await asyncio.wait((self._task, begun), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait((self._task,))
            raise
        finally:
            begun.cancel()
        if not self._begun.is_set():
            self._id = self._task.result().run
        active.add(self)
        self._task.add_done_callback(lambda _task: active.discard(self))
        return self

    def _listen(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self._id = event.run
            self._begun.set()
        elif isinstance(event, events.RunEnded):
            self._ended = event
        if self._listener is not None:
            self._listener(event)

    async def wait(self) -> events.RunEnded:
        """Wait until this execution ends, and return how. Cancelling the wait does not stop the run.

        Raises RunOpsError if the run could not be resumed, and the exception of a bug.
        """
        await asyncio.wait((self._task,))
        if not self._task.cancelled():
            return self._task.result()
        if self._ended is not None:
            return self._ended
        return events.RunEnded(self.id, "interrupted", Cancelled("interrupted", "").exit, 0.0)

    async def to_its_end(self) -> events.RunEnded:
        """Wait as ``wait`` does. If the wait is cancelled, interrupt the run and write its end first."""
        try:
            return await self.wait()
        except asyncio.CancelledError:
            await tasks.to_the_end(self.interrupt())
            raise

    async def interrupt(self) -> events.RunEnded:
        """End this execution as Ctrl-C does: finished steps are kept, and ``resume`` continues from there."""
        self._task.cancel()
        return await self.wait()

    def follow(self, after: int = 0) -> Entries:
        return self._runtime.follow(self.id, after)


class Runtime:
    """Runs workflows. It neither reads nor changes the process's environment, folder or streams: all it needs is passed in.

    Use it with ``async with``: runs still active at the end of the block are interrupted.
    """

    def __init__(
        self,
        *,
        store: log_store.Store | None = None,
        settings: settings.Settings | None = None,
        secrets: sources.SecretSource | Mapping[str, str] | None = None,
        usual_mode: Mode = "shared",
    ) -> None:
        """Take the host's parts. ``usual_mode`` is the browser mode of a run if neither settings nor file name one.

        Without ``settings`` their defaults apply. Without ``store`` runs are kept in the folder that the settings name. Without
        ``secrets`` there are none.
        """
        self._host = host.given(settings, store, secrets, usual_mode)
        self._active: set[Run] = set()
        self._browsers = contextlib.AsyncExitStack()

    @classmethod
    def of(cls, given: host.Host) -> Runtime:
        """Build one from the host of a command."""
        return cls(store=given.store, settings=given.settings, secrets=given.secrets, usual_mode=given.usual_mode)

    async def __aenter__(self) -> Self:
        """Keep a shared browser until the end of the block. Nothing is opened before a run needs it."""
        await self._browsers.enter_async_context(shared.kept())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Interrupt active runs, and wait until their ends are written."""
        for run in [*self._active]:
            with contextlib.suppress(Exception):
                await run.interrupt()
        await self._browsers.aclose()

    async def start(
        self,
        file: str | Path,
        inputs: Mapping[str, Json] | None = None,
        *,
        key: str | None = None,
        allow_changed: bool = False,
        row: str | None = None,
        listener: events.Listener | None = None,
    ) -> Run:
        """Begin a run of a workflow file, with ``row`` the label of what gave its inputs. If the run of ``key`` exists, continue it as ``resume`` does.

        Returns once its log is open. Raises the RunOpsError that prevents the start.
        """
        loaded = await asyncio.to_thread(reader.load, Path(file))
        functions.check(loaded, self._host.settings.python_modules)
        prepared = prepare.prepare(loaded, inputs or {}, self._host.secrets)
        options = start_run.Options(row=row)
        return await self.begin(prepared, key=key, allow_changed=allow_changed, options=options, listener=listener)

    async def begin(
        self,
        prepared: prepare.Prepared,
        *,
        key: str | None = None,
        allow_changed: bool = False,
        options: start_run.Options = start_run.ALONE,
        listener: events.Listener | None = None,
    ) -> Run:
        def work(heard: events.Listener) -> Coroutine[Any, Any, events.RunEnded]:
            if key is None:
                return start_run.begin(prepared, self._host, heard, options=options)
            return keys.begin_or_resume(prepared, key, self._host, heard, allow_changed=allow_changed, options=options)

        return await Run(self, None, listener).launch(work, self._active)

    async def resume(
        self,
        run_id: str,
        *,
        allow_changed: bool = False,
        take_over: bool = False,
        from_step: str | None = None,
        options: start_run.Options = start_run.ALONE,
        listener: events.Listener | None = None,
    ) -> Run:
        """Resume a run. One that passed, or that waits for a person, ends at once with the same result.

        Raises RunHeld if a process already executes it, LogError for a damaged log, UsageError.
        """

        def work(heard: events.Listener) -> Coroutine[Any, Any, events.RunEnded]:
            return start_run.resume_run(
                run_id,
                self._host,
                heard,
                allow_changed=allow_changed,
                take_over=take_over,
                from_step=from_step,
                options=options,
            )

        return await Run(self, run_id, listener).launch(work, self._active)

    async def copy(
        self,
        run_id: str,
        loaded: workflow.Loaded,
        *,
        about: dict[str, Json],
        ended: start_run.Ended | None = None,
        options: start_run.Options = start_run.ALONE,
        listener: events.Listener | None = None,
    ) -> Run:
        def work(heard: events.Listener) -> Coroutine[Any, Any, events.RunEnded]:
            return start_run.resume_copy(run_id, loaded, self._host, heard, about=about, ended=ended, options=options)

        return await Run(self, None, listener).launch(work, self._active)

    async def answer(self, run_id: str, given: Mapping[str, str], *, listener: events.Listener | None = None) -> Run:
        """Answer the questions of a paused run, each as text, and resume it.

        Raises UsageError if it asks nothing, or for an answer that is missing, unknown or does not fit its question.
        """
        past, _reading = await asyncio.to_thread(run_index.load_history, self._host.reader, run_id)
        known, missing = answers.read_all(answers.asked(past, run_id), given)
        if missing:
            raise answers.missing(run_id, missing, answers.asked(past, run_id))
        await self.write_answers(run_id, known)
        return await self.resume(run_id, listener=listener)

    async def write_answers(
        self, run_id: str, values: Mapping[str, Json], *, take_over: bool = False
    ) -> owners.Holder | None:
        """Keep the answers that ``answers.read_all`` read, without resuming. Return the owner from whom the run was taken over."""
        writer = await answers.write(self._host, run_id, values, take_over=take_over)
        return writer.conversation.taken_from

    async def decide(self, run_id: str, verdict: run_index.Verdict, *, listener: events.Listener | None = None) -> Run:
        """Say if the side effect with unknown outcome happened, and resume. Raises UsageError ``nothing-to-decide``."""
        await self.write_decision(run_id, verdict)
        return await self.resume(run_id, listener=listener)

    async def write_decision(
        self, run_id: str, verdict: run_index.Verdict, *, take_over: bool = False
    ) -> owners.Holder | None:
        """Keep the decision without resuming. Return the owner from whom the run was taken over."""
        writer = await run_index.decide(self._host.store, run_id, verdict, take_over=take_over)
        return writer.conversation.taken_from

    async def interrupt(self, run_id: str) -> events.RunEnded:
        """End a run that this object executes. Raises UsageError ``run-not-carried`` for any other."""
        found = next((run for run in self._active if run.id == run_id), None)
        if found is not None:
            return await found.interrupt()
        raise UsageError(
            "run-not-carried",
            f"run {run_id} is not executed by this process",
            fix="interrupt it where it runs, or take it over with `resume(…, take_over=True)`",
        )

    def follow(self, run_id: str, after: int = 0) -> Entries:
        """Yield the entries of a run's log after number ``after``, secrets masked, each once and in order, until no process executes it.

        A number is a cursor: following from the last seen entry misses nothing, even if the run is resumed later. A read costs only the new
        entries. Raises UsageError ``unknown-run``.
        """
        # Raise at once, not with the first entry: a service can still answer with an error.
        if not self._host.reader.has(run_id):
            raise log_store.unknown(self._host.reader, run_id)
        return self._entries(run_id, after)

    async def _entries(self, run_id: str, after: int) -> Entries:
        was_held = True
        while True:
            reading = await self._host.store.read(run_id, after)
            for entry in reading.entries:
                yield entry
                after = entry.seq
            if reading.entries:
                continue
            if not reading.owned and not was_held:
                return
            was_held = reading.owned
            if was_held:
                await asyncio.sleep(LOOK_SECONDS)
