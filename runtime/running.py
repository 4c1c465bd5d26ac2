"""Starting a run and going on with one: everything around it. ``start`` and ``resume_run`` are what the commands call; ``run_workflow`` is for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime import events, history, journal, log, resolve, run, runs, secrets, settings, steps, store, workflow
from runtime.browser import launching, port


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
        self._options = resolve.filled(wanted, loaded.templates, values, steps.RecordedClock([])) if wanted else None
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
    _refuse_secret_in_file(file, loaded, masker)
    if masker.json(typed) != typed:
        named = ", ".join(f"`{name}`" for name, value in typed.items() if masker.json(value) != value)
        raise UsageError(
            "secret-in-input",
            f"the input {named} holds a secret, and inputs are kept in the log",
            mend="give it as a secret (`secrets:` in the file, the value in the environment) or without it",
        )
    pen = journal.Journal(kept.create(store.new_id()), history.History(), masker, kept)
    run.write_header(pen, loaded, typed)
    one = _run(loaded, pen, kept, chosen, typed, known, listener)
    one.engine.tell(events.RunStarted(one.id, loaded.workflow.name, resumed=False))
    return await one.begin()


def _refuse_secret_in_file(file: Path, loaded: workflow.Loaded, masker: secrets.Masker) -> None:
    """The stored text is masked, and a resumed run goes on with it: a mask outside comments would be used as a value."""
    masked = masker.text(loaded.text)
    if masked == loaded.text:
        return
    try:
        same = workflow.parse(masked, str(file)).workflow == loaded.workflow
    except RunOpsError:
        same = False
    if same:
        return
    lines = enumerate(zip(loaded.text.splitlines(), masked.splitlines(), strict=False), start=1)
    number = next((n for n, (line, hidden) in lines if line != hidden and not line.lstrip().startswith("#")), 1)
    raise UsageError(
        "secret-in-file",
        f"{file}:{number}: a secret stands in the workflow file itself",
        mend="write `{{ secrets.NAME }}` in its place; if it only happens to be the same text, choose another secret",
    )


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
    assert past.header is not None
    text = kept.blob(past.header.text.sha256).decode()
    loaded = workflow.parse(text, past.header.file)
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


class _OverMeanwhile(Exception):
    """The run ended between the look and the claim."""


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
            run_id, "paused", 4, 0.0, path=question.path, question=run.as_question(question, question.as_json())
        )
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
        attempt.call.path.rpartition("/")[2]
        for attempt in past.all_attempts()
        if attempt.call.thread == log.RUN_THREAD and not attempt.did_nothing
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
    return present.workflow != stored.workflow


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
