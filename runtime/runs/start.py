"""Starting and resuming one run. ``runtime.Runtime`` calls it; ``run_workflow`` is for scripts."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime import events
from runtime.browser import open as open_browser
from runtime.engine import rendering, run_state, tracing, video
from runtime.engine.run_state import RunState
from runtime.language import prepare, reader, workflow
from runtime.log import entries, history
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter, value_of
from runtime.messages import messages
from runtime.recovery import copies, resume, workflow_source
from runtime.runs import model_plan, run
from runtime.secrets import hidden_names, masking
from runtime.services import functions
from runtime.settings import settings
from runtime.system import tasks
from runtime.workspace import host, run_index

if TYPE_CHECKING:
    from runtime.browser.options import BrowserOptions
    from runtime.engine import engine as engines
    from runtime.models import budgets


Text = prepare.Prepared | workflow_source.WorkflowSource


class Chromium(run.Browsers):
    def __init__(self, text: Text, private: Path, given: host.Host) -> None:
        """The inputs decide which origins are allowed; with the secrets they fill the options. ``private`` keeps the profile."""
        options = browser_options(text)
        more: dict[str, Any] = {
            "origins": text.loaded.origins(text.inputs),
            "private": private,
            "settings": given.settings,
            "usual": given.usual_mode,
        }
        self.open = functools.partial(open_browser.open_browser, options, secrets=bool(text.secrets), **more)
        self.reattach = functools.partial(open_browser.reattach, options, **more)


def browser_options(text: Text) -> BrowserOptions | None:
    """Return the options of the file's ``browser``, its references filled in; None if it has none."""
    loaded, values = text.loaded, {"inputs": text.inputs, "secrets": text.secrets}
    wanted = loaded.workflow.browser
    return rendering.filled(wanted, loaded.templates, values, rendering.RecordedClock([])) if wanted else None


async def start(
    file: Path, inputs: Mapping[str, Json], given: host.Host, listener: events.Listener | None = None
) -> events.RunEnded:
    loaded = reader.load(file)
    functions.check(loaded, given.settings.python_modules)
    return await begin(prepare.prepare(loaded, inputs, given.secrets), given, listener)


class Part(Protocol):
    """Replaces the whole workflow in a run. Such a run is a trial, and never resumed."""

    @property
    def header(self) -> dict[str, Json]: ...

    async def run(self, engine: engines.ExecutionEngine) -> Json: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options given by the parent of a run; a run without a parent has the defaults."""

    part: Part | None = None
    parent: str | None = None  # conversation that starts it
    tool: str | None = None  # path of the call there of the tool that starts it
    row: str | None = None  # label of the row that gave its inputs
    allowance: budgets.Allowance | None = None  # the parent's allowance for models
    browsers: run.Browsers | None = None  # browsers in place of the run's own
    holds: run_state.Withholds = run_state.withholds_nothing
    """Selects side effects to withhold. The first one ends the run as paused (``held``)."""
    proves: bool = False
    """True if it proves what is being built. A ``confirm`` is tried then: one that says *done* before its side effect ends the run as paused
    (``done-already``). A rule is not waited for on a page that is quiet."""
    watch: run_state.Watch | None = None
    codes: frozenset[str] = frozenset()
    """One-time codes that the parent masks: a page that it lends may show them."""
    hides: Callable[[str], None] = run_state.hides_for_nobody
    """Called with each one-time code of the run: the parent may show its page later."""
    background: Sequence[messages.Item] = ()
    """The conversation of the parent until now, for the models of the run's steps."""
    begun: Callable[[str], Awaitable[None]] | None = None
    """Called with the run's id once its log is open, before the run does anything."""


ALONE = Options()


async def begin(
    prepared: prepare.Prepared,
    given: host.Host,
    listener: events.Listener | None = None,
    *,
    key: str | None = None,
    options: Options = ALONE,
) -> events.RunEnded:
    """Run a prepared workflow to its end; with ``key``, under the id that belongs to the key.

    Raises RunOpsError only if the log cannot be opened; the result holds later failures. LogError ``run-exists``: the key has a run
    already.
    """
    loaded, known = prepared.loaded, prepared.secrets
    functions.check(loaded, given.settings.python_modules)
    models = model_plan.plan(loaded, given, allowance=options.allowance)
    part = options.part
    conversation = await (given.store.create(log_store.new_id()) if key is None else _of_key(given.store, key))
    async with log_store.release_on_error(conversation):
        masker = _masker(known, models, given, options)
        writer = LogWriter(conversation, history.History(), masker, given.reader)
        trial = part.header if part is not None else None
        run.write_header(
            writer,
            loaded,
            prepared.inputs,
            trial=trial,
            key=key,
            budget=models.budget_text,
            parent=options.parent,
            tool=options.tool,
            row=masker.text(options.row) if options.row is not None else None,
        )
        if options.background:
            from runtime.context import background  # most runs have none

            said = masking.masked_json(masker, background.written(options.background))
            writer.said(entries.User(thread=entries.BACKGROUND_THREAD), said, entries.BACKGROUND_THREAD)
        opened = await _open(prepared, writer, given, listener, models, options)
    return await opened.begin() if part is None else await opened.drive(part.run(opened.engine))


def _masker(secrets: Mapping[str, str], models: model_plan.Plan, given: host.Host, options: Options) -> masking.Masker:
    return masking.Masker({**secrets, **models.masked}, hidden_names.of(given.settings.hidden_names), options.codes)


async def _of_key(store: log_store.Store, key: str) -> log_store.Conversation:
    while True:
        run_id = await store.keyed(key)
        conversation = await store.create(run_id)
        async with log_store.release_on_error(conversation):
            if await store.keyed(key) == run_id:
                return conversation
        # `runops prune` deleted the key before the run existed. The key has another id now.
        await tasks.to_the_end(conversation.aclose())


async def _open(
    text: Text,
    writer: LogWriter,
    given: host.Host,
    listener: events.Listener | None,
    models: model_plan.Plan,
    options: Options,
    *,
    resumed: bool = False,
) -> run.Run:
    if given.settings.video:
        video.demand()
    private = await asyncio.to_thread(given.reader.private, writer.conversation.id)
    opened = run.Run(
        text.loaded,
        writer,
        inputs=text.inputs,
        known=text.secrets,
        private=private,
        browsers=options.browsers or Chromium(text, private, given),
        keep_browser=given.settings.keep_browser,
        listener=listener,
        models=models.supply(private, text.secrets, text.loaded.origins(text.inputs)),
        python_modules=given.settings.python_modules,
        step_timeout=given.settings.step_timeout,
        run_timeout=given.settings.run_timeout,
        tracing=tracing.Tracing(given.settings.trace, video=given.settings.video),
    )
    state = opened.engine.state
    state.holds, state.watch, state.hides = options.holds, options.watch, options.hides
    state.proves = options.proves
    if options.begun is not None:
        # A run must be synced before anyone learns its id.
        await writer.barrier()
        await options.begun(opened.id)
    header = state.history.header
    row = header.row if header is not None else None
    state.emit(events.RunStarted(opened.id, text.loaded.workflow.name, resumed=resumed, row=row))
    return opened


async def resume_run(
    run_id: str,
    given: host.Host,
    listener: events.Listener | None = None,
    *,
    allow_changed: bool = False,
    take_over: bool = False,
    from_step: str | None = None,
    options: Options = ALONE,
) -> events.RunEnded:
    """Resume a run.

    One that passed returns its result again, one that waits for an answer its question; the log of either stays unchanged.
    If the site can answer instead of a person, it is asked. With ``allow_changed`` the run continues with its file as it is now. Then a
    question is asked again only if it still applies. With ``take_over`` an active process that owns the run is ended first.
    If the browser is gone, nothing before ``from_step`` is done again.

    Raises RunHeld, LogError for a damaged log, WorkflowInvalid, UsageError ``node-changed`` if finished steps do not fit the current file.
    """
    store = given.reader
    past, reading = await asyncio.to_thread(run_index.load_history, store, run_id)
    if past.status != "passed":
        # Also one that waits: an answer would have no effect, as it cannot continue.
        run_index.refuse_trial(past, run_id)
    over = _already_over(past, run_id, given, from_step)
    if over is not None and not (allow_changed and over.status in FIXED_BY_FILE):
        return over
    assert past.header is not None
    text = workflow_source.text_of(run_id, past.header, given, take=allow_changed)
    if allow_changed:
        functions.check(text.loaded, given.settings.python_modules)
    if over is not None and not text.changed:
        return over

    def may_continue(now: history.History) -> None:
        # The last owner may have ended the run, or continued it.
        over = _already_over(now, run_id, given, from_step)
        if over is not None and not (text.changed and allow_changed and over.status in FIXED_BY_FILE):
            raise _OverMeanwhile(over)
        text.check(now)

    text.check(past)
    models = model_plan.plan(text.loaded, given, past.budget, options.allowance)
    models.refuse_late_recording(past.ledger.exchanges, await asyncio.to_thread(store.private, run_id))
    masker = _masker(text.secrets, models, given, options)
    try:
        writer = await run_index.claim(
            given.store,
            run_id,
            masker,
            may_continue,
            take_over=take_over,
            budget=models.budget_text,
            known=(past, reading),
        )
    except _OverMeanwhile as meanwhile:
        return meanwhile.ended
    opened = await _reopened(text, writer, given, listener, models, options)
    if writer.conversation.taken_from is not None:
        opened.engine.state.emit(events.Said(writer.conversation.taken_from.as_taken()))
    if text.word is not None:
        opened.engine.state.emit(events.Said(text.word))
    return await opened.resume(from_step)


async def _reopened(
    text: workflow_source.WorkflowSource,
    writer: LogWriter,
    given: host.Host,
    listener: events.Listener | None,
    models: model_plan.Plan,
    options: Options,
) -> run.Run:
    async with log_store.release_on_error(writer.conversation):
        text.take(writer)
        return await _open(text, writer, given, listener, models, options, resumed=True)


Ended = Callable[["RunState", RunOpsError], Awaitable[None]]
"""Called with the error that ended a run, before its browser changes."""


async def resume_copy(
    run_id: str,
    loaded: workflow.Loaded,
    given: host.Host,
    listener: events.Listener | None = None,
    *,
    about: dict[str, Json],
    ended: Ended | None = None,
    options: Options = ALONE,
) -> events.RunEnded:
    """Copy a run, and continue the copy from the same step in a fresh browser, with ``loaded`` as its file. The run itself is only read.

    The site keeps what was done, so the options' ``holds`` must name the side effects to withhold. ``about`` describes the copy's purpose.
    ``ended`` inspects the page where the copy ends with an error, or a withheld action.

    Raises LogError, and UsageError ``node-changed`` if finished steps do not fit ``loaded``.
    """
    past, reading = await asyncio.to_thread(run_index.load_history, given.reader, run_id)
    assert past.header is not None
    functions.check(loaded, given.settings.python_modules)
    text = workflow_source.WorkflowSource(run_id, past.header, given, loaded, take=True)
    text.check(past)
    models = model_plan.plan(text.loaded, given, past.budget, options.allowance)
    masker = _masker(text.secrets, models, given, options)
    writer = await copies.make(given.store, reading, masker, about, options.parent)
    opened = await _reopened(text, writer, given, listener, models, options)
    return await opened.drive(_copied(opened.engine, ended))


async def _copied(engine: engines.ExecutionEngine, ended: Ended | None) -> Json:
    async def nowhere() -> None:
        return None

    try:
        return await resume.resume_workflow(engine, nowhere)
    except RunOpsError as error:
        if ended is not None:
            await ended(engine.state, error)
        raise


class _OverMeanwhile(Exception):
    """The run ended between the read and the claim."""

    def __init__(self, ended: events.RunEnded) -> None:
        super().__init__()
        self.ended = ended


FIXED_BY_FILE = ("paused", "out-of-budget")  # statuses of ended runs that a changed file lets continue


def _already_over(
    past: history.History, run_id: str, given: host.Host, from_step: str | None
) -> events.RunEnded | None:
    ending = past.ending
    if ending is None:
        return None
    error: dict[str, Json] = ending.data.get("error") or {}
    if error.get("code") == run.LEAKED:
        raise UsageError(
            "run-leaked",
            f"{run_id} wrote a secret, which was painted over: values that it needs may be missing",
            fix="start a new run",
        )
    if ending.status == "passed":
        root = past.scopes[""].committed
        output = value_of(root, given.reader) if root is not None else None
        return run.ended(past, run_id, "passed", 0, output=output, tolerated=int(ending.data.get("tolerated") or 0))
    question = run_index.question_of(past, run_id)
    by_step = from_step is not None and run_index.answered_by_step(past)
    if ending.status == "paused" and question is not None and not by_step and not run_index.site_can_tell(past):
        asked = run.as_question(question, question.as_json())
        return run.ended(past, run_id, "paused", 4, path=question.path, question=asked)
    if ending.status == "out-of-budget" and not _more_is_given(past, given.settings):
        return run.ended(past, run_id, "out-of-budget", 5, error=error, path=ending.data.get("path"))
    return None


def _more_is_given(past: history.History, given: settings.Settings) -> bool:
    """True if the settings give another budget, or if the used-up one is a session's: the next request checks that."""
    error: dict[str, Json] = (past.ending.data.get("error") if past.ending is not None else None) or {}
    evidence: dict[str, Json] = error.get("evidence") or {}
    if evidence.get("of") == "session":
        return True
    assert past.header is not None
    return given.budget is not None and str(given.budget) != past.budget


def run_workflow(
    file: str | Path,
    inputs: Mapping[str, Json] | None = None,
    *,
    listener: events.Listener | None = None,
    **flags: Any,
) -> events.RunEnded:
    """Run a workflow file from a program, to its end; ``flags`` are settings by name. Inside an event loop use ``start``.

    Raises the RunOpsError that prevents the start; the result shows how the run ended.
    """
    return asyncio.run(start(Path(file), inputs or {}, host.load(**flags), listener))
