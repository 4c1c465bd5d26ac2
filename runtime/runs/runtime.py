"""The way in for programs: many runs in one event loop, each started, followed, answered and interrupted."""

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
from runtime.log.store import owners, store
from runtime.runs import answers, keys
from runtime.runs import start as start_run
from runtime.secrets import sources
from runtime.services import functions
from runtime.settings import settings
from runtime.system import tasks
from runtime.workspace import host, run_index

LOOK_SECONDS = 0.2
"""Between two looks at the log of a run."""

Entries = AsyncGenerator[entries.AnyEntry]

Work = Callable[[events.Listener], Coroutine[Any, Any, events.RunEnded]]
"""What carries a run, told who listens."""


class Run:
    """One life of a run in this process: from a start or a resume to its end."""

    def __init__(self, runtime: Runtime, run_id: str | None, listener: events.Listener | None) -> None:
        """``Runtime`` makes them. ``run_id`` is None for a run that is yet to begin."""
        self._runtime = runtime
        self._id = run_id
        self._listener = listener
        self._begun = asyncio.Event()
        self._told: events.RunEnded | None = None
        self._task: asyncio.Task[events.RunEnded]

    @property
    def id(self) -> str:
        """What it is called in the store."""
        assert self._id is not None
        return self._id

    async def carry(self, work: Work) -> Self:
        """Begin ``work``, and return once the run has its id. Raises what kept it from beginning."""
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
        return self

    def _listen(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self._id = event.run
            self._begun.set()
        elif isinstance(event, events.RunEnded):
            self._told = event
        if self._listener is not None:
            self._listener(event)

    def when_over(self, call: Callable[[Run], object]) -> None:
        """Have ``call`` told of it once this life of the run has ended."""
        self._task.add_done_callback(lambda _task: call(self))

    async def wait(self) -> events.RunEnded:
        """How this life of the run ended. Whoever waits may be cancelled, and the run goes on.

        Raises RunOpsError for what kept it from being gone on with, and what a bug of ours raised.
        """
        await asyncio.wait((self._task,))
        if not self._task.cancelled():
            return self._task.result()
        if self._told is not None:
            return self._told
        return events.RunEnded(self.id, "interrupted", Cancelled("interrupted", "").exit, 0.0)

    async def to_its_end(self) -> events.RunEnded:
        """How it ended, as ``wait``; where whoever waits is cancelled, the run is interrupted first, and its end is written."""
        try:
            return await self.wait()
        except asyncio.CancelledError:
            await tasks.to_the_end(self.interrupt())
            raise

    async def interrupt(self) -> events.RunEnded:
        """End this life of the run as Ctrl-C does: what is done is kept, and ``resume`` goes on from there."""
        self._task.cancel()
        return await self.wait()

    def follow(self, after: int = 0) -> Entries:
        """The entries of its log: ``Runtime.follow``."""
        return self._runtime.follow(self.id, after)


class Runtime:
    """Runs workflows. What it needs it is given: nothing of the process's environment, folder or streams is read or changed.

    ``async with`` it: at the end of the block what still runs is interrupted.
    """

    def __init__(
        self,
        *,
        store: store.Store | None = None,
        settings: settings.Settings | None = None,
        secrets: sources.SecretSource | Mapping[str, str] | None = None,
        usual_mode: Mode = "shared",
    ) -> None:
        """``usual_mode`` is the browser of a run for which neither the settings nor its file name one.

        Without ``settings`` their defaults count; without a ``store`` runs are kept in the folder that they name; without ``secrets`` there are none.
        """
        self._host = host.given(settings, store, secrets, usual_mode)
        self._active: set[Run] = set()
        self._browsers = contextlib.AsyncExitStack()

    @classmethod
    def of(cls, given: host.Host) -> Runtime:
        """The same of what a command has."""
        return cls(store=given.store, settings=given.settings, secrets=given.secrets, usual_mode=given.usual_mode)

    async def __aenter__(self) -> Self:
        """Nothing is opened before a run needs it; a shared browser stays until the end of the block."""
        await self._browsers.enter_async_context(shared.kept())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything, as ``aclose``."""
        await self.aclose()

    async def aclose(self) -> None:
        """Interrupt what still runs, and wait until its end is written."""
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
        listener: events.Listener | None = None,
    ) -> Run:
        """Begin a run of a workflow file. With ``key`` go on with the run of that key, where there is one, as ``resume`` does.

        Returns once its log is open. Raises RunOpsError for what keeps it from starting.
        """
        loaded = await asyncio.to_thread(reader.load, Path(file))
        functions.check(loaded, self._host.settings.python_modules)
        prepared = prepare.prepare(loaded, inputs or {}, self._host.secrets)
        return await self.begin(prepared, key=key, allow_changed=allow_changed, listener=listener)

    async def begin(
        self,
        prepared: prepare.Prepared,
        *,
        key: str | None = None,
        allow_changed: bool = False,
        options: start_run.Options = start_run.ALONE,
        listener: events.Listener | None = None,
    ) -> Run:
        """Begin a run of what was prepared: ``start``."""

        def work(heard: events.Listener) -> Coroutine[Any, Any, events.RunEnded]:
            if key is None:
                return start_run.begin(prepared, self._host, heard, options=options)
            return keys.begin_or_go_on(prepared, key, self._host, heard, allow_changed=allow_changed, options=options)

        return await self._carried(Run(self, None, listener), work)

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
        """Go on with a run. One that passed, or that waits for a person, is over at once, as it was.

        Raises RunHeld where it is carried already, LogError for a damaged log, UsageError.
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

        return await self._carried(Run(self, run_id, listener), work)

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
        """Go on with a copy of a run by another file, ``loaded``: ``running.go_on_copy``."""
        return await self._carried(
            Run(self, None, listener),
            lambda heard: start_run.go_on_copy(
                run_id, loaded, self._host, heard, about=about, ended=ended, options=options
            ),
        )

    async def answer(self, run_id: str, given: Mapping[str, str], *, listener: events.Listener | None = None) -> Run:
        """Answer the questions with which a run paused, each as text, and go on with it.

        Raises UsageError where it asks nothing, or for an answer that is missing, unknown or does not fit its question.
        """
        past, _reading = await asyncio.to_thread(run_index.load_history, self._host.kept, run_id)
        known, missing = answers.read_all(answers.asked(past, run_id), given)
        if missing:
            raise answers.missing(run_id, missing, answers.asked(past, run_id))
        await self.write_answers(run_id, known)
        return await self.resume(run_id, listener=listener)

    async def write_answers(
        self, run_id: str, values: Mapping[str, Json], *, take_over: bool = False
    ) -> owners.Holder | None:
        """Keep the answers to a run's questions, as ``answers.read_all`` reads them, without going on; from whom the run was taken over."""
        writer = await answers.write(self._host, run_id, values, take_over=take_over)
        return writer.conversation.taken_from

    async def decide(self, run_id: str, verdict: run_index.Verdict, *, listener: events.Listener | None = None) -> Run:
        """Say whether the side effect happened of which nobody knows, and go on. Raises UsageError ``nothing-to-decide``."""
        await self.write_decision(run_id, verdict)
        return await self.resume(run_id, listener=listener)

    async def write_decision(
        self, run_id: str, verdict: run_index.Verdict, *, take_over: bool = False
    ) -> owners.Holder | None:
        """Keep the decision without going on; from whom the run was taken over."""
        writer = await run_index.decide(self._host.store, run_id, verdict, take_over=take_over)
        return writer.conversation.taken_from

    async def interrupt(self, run_id: str) -> events.RunEnded:
        """End a run that this object carries. Raises UsageError ``run-not-carried`` for any other."""
        for run in self._active:
            if run.id == run_id:
                return await run.interrupt()
        raise UsageError(
            "run-not-carried",
            f"run {run_id} is not carried by this process",
            fix="interrupt it where it runs, or take it over with `resume(…, take_over=True)`",
        )

    def follow(self, run_id: str, after: int = 0) -> Entries:
        """The entries of a run's log behind number ``after``, secrets masked, each once and in order, until nobody carries the run.

        A number is a cursor: who follows from the last one that was seen misses nothing, also of a run that is gone on with later. Looking
        costs what is new. Raises UsageError ``unknown-run``.
        """
        # At once, and not with the first entry: a service answers with an error while it can.
        if not self._host.kept.has(run_id):
            raise store.unknown(self._host.kept, run_id)
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
            if not reading.held and not was_held:
                return
            was_held = reading.held
            if was_held:
                await asyncio.sleep(LOOK_SECONDS)

    async def _carried(self, run: Run, work: Work) -> Run:
        await run.carry(work)
        self._active.add(run)
        run.when_over(self._active.discard)
        return run
