"""Starting a run and going on with one: everything around the engine. ``start`` and ``resume`` are what the commands call; ``run_workflow`` is for programs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from nodes.errors import AuthorError, Cancelled, InternalError, LogError, Paused, RunOpsError, UsageError
from nodes.values import Json
from runtime import engine as engine_module
from runtime import events, history, journal, log, resume, runs, secrets, settings, store, version, workflow
from runtime.browser import launching, port


class Browsers(Protocol):
    """Where a run's browser comes from."""

    async def open(self) -> port.Browser:
        """A fresh browser."""
        ...

    async def reattach(self) -> port.Browser | None:
        """The run's surviving browser, if there is one."""
        ...


class Chromium(Browsers):
    """The browser that the settings and the workflow ask for."""

    def __init__(self, loaded: workflow.Loaded, inputs: Mapping[str, Json], private: Path, chosen: settings.Settings) -> None:
        """``inputs`` decide which origins are allowed; ``private`` keeps the profile."""
        self._options = loaded.workflow.browser
        self._origins = loaded.origins(inputs)
        self._private = private
        self._chosen = chosen

    @override
    async def open(self) -> port.Browser:
        return await launching.open_browser(
            self._options, origins=self._origins, private=self._private, chosen=self._chosen
        )

    @override
    async def reattach(self) -> port.Browser | None:
        return await launching.reattach(
            self._options, origins=self._origins, private=self._private, chosen=self._chosen
        )


class Run:
    """One run in this process: its workflow, its log, its engine, and how it ends."""

    def __init__(
        self,
        loaded: workflow.Loaded,
        pen: journal.Journal,
        *,
        inputs: Mapping[str, Json],
        known: Mapping[str, str],
        private: Path,
        browsers: Browsers,
        keep_browser: bool = False,
        listener: events.Listener | None = None,
    ) -> None:
        """``known`` are the secrets; the journal is claimed and has the run's first entry."""
        self.id = pen.conversation.id
        self._journal = pen
        self._browsers = browsers
        self._keep_browser = keep_browser
        self.engine = engine_module.ExecutionEngine(
            loaded,
            pen,
            inputs=inputs,
            secrets=known,
            open_browser=browsers.open,
            private=private,
            listener=listener,
        )

    async def begin(self) -> events.RunEnded:
        """Run the workflow from its first node to its end."""
        return await self.drive(self.engine.run())

    async def go_on(self) -> events.RunEnded:
        """Settle what the last process left behind, and run what is left."""
        return await self.drive(resume.go_on(self.engine, self._browsers.reattach))

    async def drive(self, work: Awaitable[Json]) -> events.RunEnded:
        """Await ``work``, write how the run ended, close its browser, and tell.

        A cancellation is told as ``interrupted`` and then goes on its way; an error that is no RunOpsError is told as exit 70 and goes on its way.
        """
        begun = time.monotonic()
        output: Json = None
        failure: RunOpsError | None = None
        passing: BaseException | None = None
        try:
            output = await work
        except RunOpsError as error:
            failure = error
        except asyncio.CancelledError as cancelled:
            failure, passing = (
                Cancelled("interrupted", "the run was interrupted", mend="go on with `runops resume`"),
                cancelled,
            )
        except Exception as error:  # noqa: BLE001 — a bug of ours must still leave a log that says so
            failure, passing = InternalError("internal", f"{type(error).__name__}: {error}"), error
        try:
            ended = self._end(output, failure or self._leak(), time.monotonic() - begun)
        finally:
            browser = self.engine.browser
            if browser is not None:
                with contextlib.suppress(RunOpsError):
                    await browser.close(keep=self._keep_browser)
            self._journal.conversation.close()
        self.engine.tell(ended)
        if passing is not None:
            raise passing
        return ended

    def _end(self, output: Json, failure: RunOpsError | None, seconds: float) -> events.RunEnded:
        """Write the last entries, and bring them to the disk."""
        pen, tolerated = self._journal, self.engine.tolerated
        if failure is None:
            ended = events.RunEnded(self.id, "passed", 0, seconds, output=pen.masker.json(output), tolerated=tolerated)
        else:
            status: events.RunStatus = "failed"
            if isinstance(failure, Paused):
                status = "paused"
            elif isinstance(failure, Cancelled):
                status = "interrupted"
            error = pen.error(failure)
            question = _question(failure, error) if isinstance(failure, Paused) else None
            ended = events.RunEnded(
                self.id,
                status,
                failure.exit,
                seconds,
                error=None if question is not None else error,
                path=failure.path,
                tolerated=tolerated,
                question=question,
            )
        if isinstance(failure, LogError):
            return ended
        try:
            if ended.question is not None:
                pen.note("paused", **ended.question)
            pen.note(
                "ended", status=ended.status, exit=ended.exit, error=ended.error, path=ended.path, tolerated=tolerated
            )
            pen.barrier()
        except LogError as error:
            return events.RunEnded(self.id, "failed", error.exit, seconds, error=pen.error(error), tolerated=tolerated)
        return ended

    def _leak(self) -> RunOpsError | None:
        """A secret that stands in anything the run wrote: that fails the run."""
        found = self._journal.masker.files_with_secrets(self._journal.files())
        if not found:
            return None
        return AuthorError(
            "secret-leaked",
            f"a secret stands in what the run wrote: {', '.join(str(file) for file in found)}",
            mend="delete the file, change the secret, and report how it came there",
            phase="after",
            evidence={"files": [str(file) for file in found]},
        )


def _question(paused: Paused, error: dict[str, Json]) -> dict[str, Json]:
    return {
        "reason": paused.code,
        "message": error["message"],
        "path": paused.path,
        "mend": error.get("mend"),
        "evidence": error.get("evidence"),
    }


async def start(
    file: Path, inputs: Mapping[str, Json], chosen: settings.Settings, listener: events.Listener | None = None
) -> events.RunEnded:
    """Run a workflow file to its end. ``inputs`` may be text (as typed on a command line) or values.

    Raises RunOpsError for what keeps it from starting: the file, inputs, secrets, the log. How it went on from there is in what it returns.
    """
    loaded = workflow.load(file)
    typed = loaded.check_inputs(inputs)
    known = settings.read_secrets(loaded.workflow.secrets, file.parent)
    kept = store.FileStore(chosen.home)
    masker = secrets.Masker(known)
    pen = journal.Journal(kept.create(store.new_id()), history.History(), masker, kept)
    write_header(pen, loaded, typed)
    run = _run(loaded, pen, kept, chosen, typed, known, listener)
    run.engine.tell(events.RunStarted(run.id, loaded.workflow.name, resumed=False))
    return await run.begin()


def _run(
    loaded: workflow.Loaded,
    pen: journal.Journal,
    kept: store.Store,
    chosen: settings.Settings,
    inputs: Mapping[str, Json],
    known: Mapping[str, str],
    listener: events.Listener | None,
) -> Run:
    private = kept.private(pen.conversation.id)
    return Run(
        loaded,
        pen,
        inputs=inputs,
        known=known,
        private=private,
        browsers=Chromium(loaded, inputs, private, chosen),
        keep_browser=chosen.keep_browser,
        listener=listener,
    )


def write_header(pen: journal.Journal, loaded: workflow.Loaded, typed: Mapping[str, Json]) -> None:
    """Write the run's first entry, and who owns it."""
    header = log.RunHeader(
        workflow=loaded.workflow.name,
        file=str(loaded.path.absolute()),
        text=pen.put_text(loaded.text, "workflow.yaml"),
        inputs=pen.masker.json(typed),
        secrets=list(loaded.workflow.secrets),
        origins=loaded.origins(typed),
        browser={},
        versions=version.versions(),
    )
    pen.scope("", "opened", "run", run=header)
    pen.note("claimed", **store.me(), epoch=1, version=version.VERSION)


async def resume_run(
    run_id: str, chosen: settings.Settings, listener: events.Listener | None = None
) -> events.RunEnded:
    """Go on with a run. One that passed yields its result again, one that waits for an answer its question; nothing is written to either.

    Raises RunHeld, LogError for a damaged log, UsageError ``node-changed`` where a node that already ran was changed since.
    """
    past, _reading = runs.load_history(chosen, run_id)
    kept = store.FileStore(chosen.home)
    if (told := _already_over(past, run_id, kept)) is not None:
        return told
    assert past.header is not None
    text = kept.blob(past.header.text.sha256).decode()
    loaded = workflow.parse(text, past.header.file)
    _refuse_changed(past, loaded, Path(past.header.file))
    known = settings.read_secrets(loaded.workflow.secrets, Path(past.header.file).parent)
    pen = runs.claim(kept, run_id, secrets.Masker(known))
    run = _run(loaded, pen, kept, chosen, past.header.inputs, known, listener)
    run.engine.tell(events.RunStarted(run.id, loaded.workflow.name, resumed=True))
    return await run.go_on()


def _already_over(past: history.History, run_id: str, kept: store.Store) -> events.RunEnded | None:
    ending = past.ending
    if ending is not None and ending.status == "passed":
        root = past.scopes[""].committed
        output = journal.value_of(root, kept) if root is not None else None
        return events.RunEnded(
            run_id, "passed", 0, 0.0, output=output, tolerated=int(ending.data.get("tolerated") or 0)
        )
    question = runs.question_of(past, run_id)
    if ending is not None and ending.status == "paused" and question is not None:
        return events.RunEnded(
            run_id, "paused", 4, 0.0, path=question.path, question=_question(question, question.as_json())
        )
    return None


def _refuse_changed(past: history.History, stored: workflow.Loaded, file: Path) -> None:
    """A run goes on with the text it was started with. Where the file now says something else of a node that already ran, that is refused."""
    try:
        present = workflow.load(file)
    except (RunOpsError, OSError):
        return
    ran = {
        attempt.call.path.rpartition("/")[2] for attempt in past.all_attempts() if attempt.call.thread == log.RUN_THREAD
    }
    changed = sorted(
        name
        for name in ran
        if present.fingerprints.get(name) is not None and present.fingerprints[name] != stored.fingerprints.get(name)
    )
    gone = sorted(name for name in ran if name not in present.fingerprints)
    if changed or gone:
        what = [f"`{name}` was changed" for name in changed] + [f"`{name}` is gone" for name in gone]
        raise UsageError(
            "node-changed",
            f"nodes that already ran are not the same in {file}: {', '.join(what)}",
            mend="put them back as they were, or start a new run",
            evidence={"changed": list[Json](changed), "gone": list[Json](gone)},
        )


def run_workflow(
    file: str | Path,
    inputs: Mapping[str, Json] | None = None,
    *,
    listener: events.Listener | None = None,
    **flags: Any,
) -> events.RunEnded:
    """Run a workflow file from a program, to its end; ``flags`` are settings by name. Inside an event loop use ``start``.

    Raises RunOpsError for what keeps it from starting; how it ended is in what it returns.
    """
    return asyncio.run(start(Path(file), inputs or {}, settings.load(**flags), listener))
