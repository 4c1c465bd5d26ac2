"""Starting a run and going on with one: everything around it. ``prepare``, ``begin`` and ``resume_run`` are what the commands call; ``run_workflow`` is for programs."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime import clock, events, history, journal, log, pythons, resolve, run, runs, secrets, settings, store
from runtime.browser import launching, port
from runtime.language import callees, workflow

if TYPE_CHECKING:
    from runtime import engine as engine_module


class Chromium(run.Browsers):
    """The browser that the settings and the workflow ask for."""

    def __init__(
        self,
        loaded: workflow.Loaded,
        inputs: Mapping[str, Json],
        known: Mapping[str, str],
        private: Path,
        chosen: settings.Settings,
    ) -> None:
        """``inputs`` decide which origins are allowed, and with the secrets ``known`` fill the options; ``private`` keeps the profile."""
        wanted, values = loaded.workflow.browser, {"inputs": inputs, "secrets": known}
        self._options = resolve.filled(wanted, loaded.templates, values, clock.RecordedClock([])) if wanted else None
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


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """A workflow that was found fit to run, and everything that a run of it is given. Nothing is written yet."""

    loaded: workflow.Loaded
    inputs: Mapping[str, Json]
    """The value of every input, typed."""
    secrets: Mapping[str, str] = dataclasses.field(repr=False)


def prepare(loaded: workflow.Loaded, inputs: Mapping[str, Json]) -> Prepared:
    """What a run of ``loaded`` needs. ``inputs`` may be text (as typed on a command line) or values. Writes nothing.

    Raises RunOpsError for what keeps it from starting: inputs, origins, secrets, a secret in the file or in an input.
    """
    pythons.check(loaded)
    typed = loaded.check_inputs(inputs)
    loaded.origins(typed)
    known = settings.read_secrets(loaded.workflow.secrets, loaded.path.parent)
    masker = secrets.Masker(known)
    _refuse_secret_in_file(loaded, masker)
    if masker.json(typed) != typed:
        named = ", ".join(f"`{name}`" for name, value in typed.items() if masker.json(value) != value)
        raise UsageError(
            "secret-in-input",
            f"the input {named} holds a secret, and inputs are kept in the log",
            mend="give it as a secret (`secrets:` in the file, the value in the environment) or without it",
        )
    return Prepared(loaded, typed, known)


async def start(
    file: Path, inputs: Mapping[str, Json], chosen: settings.Settings, listener: events.Listener | None = None
) -> events.RunEnded:
    """Run a workflow file to its end: ``prepare``, then ``begin``."""
    return await begin(prepare(workflow.load(file), inputs), chosen, listener)


class Part(Protocol):
    """What a run does in place of the whole workflow: it is a trial, and never resumed."""

    @property
    def header(self) -> dict[str, Json]:
        """What the log says of it."""
        ...

    async def run(self, engine: engine_module.ExecutionEngine) -> Json:
        """Do it; the run's output."""
        ...


async def begin(
    prepared: Prepared,
    chosen: settings.Settings,
    listener: events.Listener | None = None,
    part: Part | None = None,
) -> events.RunEnded:
    """Run what was prepared, or only a part of it, to its end.

    Raises RunOpsError only where no log could be opened; how it went on from there is in what it returns.
    """
    loaded, known = prepared.loaded, prepared.secrets
    kept = store.FileStore(chosen.home)
    pen = journal.Journal(kept.create(store.new_id()), history.History(), secrets.Masker(known), kept)
    run.write_header(pen, loaded, prepared.inputs, trial=part.header if part is not None else None)
    one = _run(loaded, pen, kept, chosen, prepared.inputs, known, listener)
    one.engine.tell(events.RunStarted(one.id, loaded.workflow.name, resumed=False))
    return await one.begin() if part is None else await one.drive(part.run(one.engine))


def _refuse_secret_in_file(loaded: workflow.Loaded, masker: secrets.Masker) -> None:
    """A secret that stands in a file, or in one that it uses: what would be stored is another text. In a comment it does no harm."""
    """The stored text is masked, and a resumed run goes on with it: a mask outside comments would be used as a value."""
    hidden = {path: masker.text(text) for path, text in loaded.texts().items()}
    touched = [each for each in loaded.files() if masker.text(each.text) != each.text]
    if not touched:
        return
    try:
        files = callees.Texts(hidden, str(loaded.path.parent))
        if _workflows(workflow.parse(masker.text(loaded.text), str(loaded.path), files)) == _workflows(loaded):
            return
    except RunOpsError:
        pass
    places = [(each.path, number) for each in touched if (number := _line_with_secret(each.text, masker))]
    file, number = places[0] if places else (touched[0].path, 1)
    raise UsageError(
        "secret-in-file",
        f"{file}:{number}: a secret stands in the workflow file itself",
        mend="write `{{ secrets.NAME }}` in its place; if it only happens to be the same text, choose another secret",
    )


def _line_with_secret(text: str, masker: secrets.Masker) -> int | None:
    lines = enumerate(zip(text.splitlines(), masker.text(text).splitlines(), strict=False), start=1)
    return next((n for n, (line, hidden) in lines if line != hidden and not line.lstrip().startswith("#")), None)


def _workflows(loaded: workflow.Loaded) -> list[workflow.Workflow]:
    return [each.workflow for each in loaded.files()]


def _run(
    loaded: workflow.Loaded,
    pen: journal.Journal,
    kept: store.Store,
    chosen: settings.Settings,
    inputs: Mapping[str, Json],
    known: Mapping[str, str],
    listener: events.Listener | None,
) -> run.Run:
    private = kept.private(pen.conversation.id)
    return run.Run(
        loaded,
        pen,
        inputs=inputs,
        known=known,
        private=private,
        browsers=Chromium(loaded, inputs, known, private, chosen),
        keep_browser=chosen.keep_browser,
        listener=listener,
    )


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
    runs.refuse_trial(past, run_id)
    assert past.header is not None
    loaded = _stored(past.header, kept)
    changed = _refuse_changed(past, loaded, Path(past.header.file))
    known = settings.read_secrets(loaded.workflow.secrets, Path(past.header.file).parent)
    over: list[events.RunEnded] = []

    def is_not_over(now: history.History) -> None:
        # Whoever held it until this moment may have ended it.
        if (told := _already_over(now, run_id, kept)) is not None:
            over.append(told)
            raise _OverMeanwhile

    try:
        pen = runs.claim(kept, run_id, secrets.Masker(known), is_not_over)
    except _OverMeanwhile:
        return over[0]
    one = _run(loaded, pen, kept, chosen, past.header.inputs, known, listener)
    one.engine.tell(events.RunStarted(one.id, loaded.workflow.name, resumed=True))
    if changed:
        one.engine.tell(
            events.Said(
                f"{past.header.file} has changed: this run goes on with the text it began with; a new run takes the new one"
            )
        )
    return await one.go_on()


def _stored(header: log.RunHeader, kept: store.Store) -> workflow.Loaded:
    """The workflow that the run was started with, and the files that it uses."""
    texts = {path: kept.blob(blob.sha256).decode() for path, blob in header.callees.items()}
    text = kept.blob(header.text.sha256).decode()
    return workflow.parse(text, header.file, callees.Texts(texts, str(Path(header.file).parent)))


class _OverMeanwhile(Exception):
    """The run ended between the look and the claim."""


def _already_over(past: history.History, run_id: str, kept: store.Store) -> events.RunEnded | None:
    ending = past.ending
    if ending is not None and ending.status == "passed":
        root = past.scopes[""].committed
        output = journal.value_of(root, kept) if root is not None else None
        tolerated = int(ending.data.get("tolerated") or 0)
        return events.RunEnded(run_id, "passed", 0, 0.0, output=output, tolerated=tolerated, files=past.files)
    question = runs.question_of(past, run_id)
    if ending is not None and ending.status == "paused" and question is not None:
        asked = run.as_question(question, question.as_json())
        return events.RunEnded(run_id, "paused", 4, 0.0, path=question.path, question=asked, files=past.files)
    return None


def _refuse_changed(past: history.History, stored: workflow.Loaded, file: Path) -> bool:
    """A run goes on with the text it was started with; returns whether the file now has another.

    Where it says something else of a node that already did something, that is refused.
    """
    try:
        present = workflow.load(file)
    except (RunOpsError, OSError):
        return True
    ran = {
        attempt.call.path
        for attempt in past.all_attempts()
        if attempt.call.thread == log.RUN_THREAD and not attempt.did_nothing
    }
    changed: set[str] = set()
    gone: set[str] = set()
    for path in ran:
        before, now = stored.find(path), present.find(path)
        name = _told(before, past, path)
        if now is None:
            gone.add(name)
        elif before is None or now.fingerprint != before.fingerprint:
            changed.add(name)
    if changed or gone:
        what = [f"`{name}` was changed" for name in sorted(changed)] + [f"`{name}` is gone" for name in sorted(gone)]
        raise UsageError(
            "node-changed",
            f"nodes that already ran are not the same in {file}: {', '.join(what)}",
            mend="put them back as they were, or start a new run",
            evidence={"changed": list[Json](sorted(changed)), "gone": list[Json](sorted(gone))},
        )
    return _workflows(present) != _workflows(stored)


def _told(found: workflow.Found | None, past: history.History, path: str) -> str:
    """What a node that ran is called: its id, and the file where that is not the run's own."""
    if found is None or not found.user:
        return path.rpartition("/")[2]
    assert past.header is not None
    return f"{found.node.id} of {os.path.relpath(found.file.path, Path(past.header.file).parent)}"


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
