"""A run without a command or a browser: an engine on a real log and a fake site, which can die at any point and resume."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Mapping
from pathlib import Path

from nodes.values import Json
from runtime import events, testing
from runtime.browser import port
from runtime.engine import tracing
from runtime.language import callees, reader
from runtime.log import history
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.models import run_models
from runtime.recovery import workflow_source
from runtime.runs import model_plan, run, single_node
from runtime.secrets import masking
from runtime.settings.settings import Settings
from runtime.workspace import host, run_index
from tests.fakes import FakeBrowser, FakeSite
from tests.now import let_go


class Killed(BaseException):
    """The process dies here: nothing more is written."""


@dataclasses.dataclass
class Rig:
    """One run."""

    home: Path
    text: str
    site: FakeSite = dataclasses.field(default_factory=FakeSite)
    inputs: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    secrets: Mapping[str, str] = dataclasses.field(default_factory=dict)
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The files that the workflow uses, by path."""
    missing: set[str] = dataclasses.field(default_factory=set)
    """Targets missing on every page."""
    browser: FakeBrowser | None = None
    """The browser that the run opened last."""
    survivor: FakeBrowser | None = None
    """The surviving browser that the next resume finds."""
    elsewhere: log_store.Store | None = None
    """The store of the log, if not files."""
    keep_browser: bool = False
    """True if the browser stays open when the run ends."""
    proves: bool = False
    """True if each `confirm` is tried, as in a proof; not by a run that is resumed."""
    tracing: tracing.Tracing = dataclasses.field(default_factory=tracing.Tracing)
    settings: Settings | None = None
    """Settings of model requests."""
    models: run_models.RunModels | None = None
    """The models of the last run."""
    file: str = "test.yaml"
    """The path of the workflow, with its files beside it."""
    told: list[events.Event] = dataclasses.field(default_factory=list)
    id: str = dataclasses.field(default_factory=log_store.new_id)

    def __post_init__(self) -> None:
        """Parse the workflow."""
        self.store = file_store.Files(self.home)
        self.loaded = reader.parse(self.text, self.file, callees.Texts(self.texts))
        self.masker = masking.Masker(self.secrets)
        self.open_writer: LogWriter | None = None
        self.open_run: run.Run | None = None

    @property
    def reader(self) -> log_store.StoreReader:
        """The reader of the store."""
        return self.elsewhere.reader if self.elsewhere is not None else self.store

    @property
    def keeper(self) -> log_store.Store:
        """The store."""
        return self.elsewhere or file_store.FileStore(self.store)

    async def open(self) -> port.Browser:
        """A fresh browser on the site."""
        self.browser = FakeBrowser(self.site)
        self.browser.missing |= self.missing
        return self.browser

    async def reattach(self) -> port.Browser | None:
        """The survivor, once."""
        browser, self.survivor = self.survivor, None
        self.browser = browser or self.browser
        return browser

    async def newly_begun(self) -> LogWriter:
        """The empty log of the run."""
        return LogWriter(await self.keeper.create(self.id), history.History(), self.masker, self.reader)

    async def start(self) -> events.RunEnded:
        """Start the run."""
        writer = self.open_writer = await self.newly_begun()
        run.write_header(writer, self.loaded, self.inputs)
        begun = self._run(writer)
        begun.engine.state.proves = self.proves
        return await self._lived(begun.begin())

    async def try_out(self, node: str, pins: Mapping[str, Json]) -> events.RunEnded:
        """Run one node by itself, as ``runops try`` does."""
        one = single_node.Trial(self.loaded, self.loaded.index[node][0], pins)
        writer = self.open_writer = await self.newly_begun()
        run.write_header(writer, self.loaded, self.inputs, trial=one.header)
        own = self._run(writer)
        return await self._lived(own.drive(one.run(own.engine)))

    async def resume(self, from_step: str | None = None) -> events.RunEnded:
        """Resume it."""
        return await self._lived(self._run(await run_index.claim(self.keeper, self.id, self.masker)).resume(from_step))

    async def resume_changed(self, text: str, texts: Mapping[str, str] | None = None) -> events.RunEnded:
        """Resume it as ``--allow-changed`` does, with its file now ``text``. Raises UsageError where that is refused."""
        present = reader.parse(text, self.file, callees.Texts(texts if texts is not None else self.texts))
        header = self.history.header
        assert header is not None
        given = host.given(None, self.keeper, self.secrets, "own")
        taken = workflow_source.WorkflowSource(self.id, header, given, present, take=True)
        writer = await run_index.claim(self.keeper, self.id, self.masker, taken.check)
        taken.take(writer)
        self.loaded, self.inputs = taken.loaded, taken.inputs
        return await self._lived(self._run(writer).resume())

    async def _lived(self, life: Awaitable[events.RunEnded]) -> events.RunEnded:
        try:
            return await life
        finally:
            # The kernel ends a dead process's connections.
            if self.models is not None:
                await self.models.close()

    def _run(self, writer: LogWriter) -> run.Run:
        self.told.clear()
        self.open_writer = writer
        self.open_run = run.Run(
            self.loaded,
            writer,
            inputs=self.inputs,
            known=self.secrets,
            private=self.reader.private(self.id),
            browsers=self,
            keep_browser=self.keep_browser,
            listener=self.told.append,
            models=self._models(writer),
            python_modules=self.settings.python_modules if self.settings is not None else (),
            step_timeout=self.settings.step_timeout if self.settings is not None else None,
            run_timeout=self.settings.run_timeout if self.settings is not None else None,
            tracing=self.tracing,
        )
        return self.open_run

    def _models(self, writer: LogWriter) -> run_models.RunModels | None:
        if self.settings is not None:
            plan = model_plan.plan(self.loaded, host.of_command(self.settings), writer.history.budget)
            self.models = plan.supply(self.reader.private(self.id), self.secrets)
        return self.models

    def die(self, *, browser_survives: bool = False) -> None:
        """Act as the kernel does for a killed process: its lock is released, none of its tasks continues. The browser may survive."""
        writing = self.open_run.engine.state.checkpoints._writing if self.open_run is not None else None
        # Its loop may be gone, and the task with it.
        if writing is not None and not writing.get_loop().is_closed():
            writing.cancel()
        if self.open_writer is not None:
            if isinstance(self.elsewhere, testing.MemoryStore):
                self.elsewhere.lose(self.id)
            else:
                let_go(self.open_writer.conversation)
        self.survivor = self.browser if browser_survives else None

    @property
    def history(self) -> history.History:
        """The history, read from the log."""
        return history.History(self.reader.read(self.id).entries)

    def calls(self, path: str) -> list[str]:
        """The outcomes of the step's attempts: a result's status, or ``open``, with the verdict if any."""
        return [
            (attempt.result.status if attempt.result else "open") + (f" {attempt.verdict}" if attempt.verdict else "")
            for attempt in self.history.attempts.get(path, [])
        ]
