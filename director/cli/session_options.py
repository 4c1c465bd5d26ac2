"""Opens a session from a command line: its subject, its models, its log."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path

from director.draft.goal import Goal
from director.session import open as session_open
from director.session import settings as session_settings
from director.session import subject
from director.session.state import SessionState
from director.subjects import files, runs
from nodes import budgets
from nodes.errors import LogError, RunOpsError, UsageError
from nodes.values import Json
from runtime import version
from runtime.context import limits
from runtime.language import agent_files
from runtime.log import entries, threads
from runtime.log import session as log_session
from runtime.log.store import store as log_store
from runtime.log.writer import Texts
from runtime.messages.messages import Usage
from runtime.models import run_models, selection
from runtime.secrets import hidden_names, masking, sources
from runtime.settings import prices
from runtime.settings.settings import Settings
from runtime.workspace import host, run_index

SUFFIXES = (".yaml", ".yml")


@dataclasses.dataclass(frozen=True, slots=True)
class About:
    run: str | None = None
    file: Path | None = None

    @classmethod
    def named(cls, name: str | None, here: host.Host) -> About:
        """Return the subject ``name``. Raises UsageError ``file-not-found``, ``unknown-run``, ``not-a-run``; LogError if the log is damaged."""
        if name is None:
            return cls()
        path = Path(name)
        if path.suffix in SUFFIXES or path.is_file():
            files.FileSubject(path, here)  # a file with mistakes is a subject, a missing one is not
            return cls(file=path.absolute())
        run = run_index.find(here.reader, name)
        run_index.load_history(here.reader, run)  # a new session needs a readable subject
        return cls(run=run)

    @property
    def named_any(self) -> bool:
        return self.run is not None or self.file is not None

    @classmethod
    def of(cls, session: log_session.Session) -> About:
        if session.about is not None:
            return cls(run=session.about)
        file = session.header.file if session.header is not None else None
        return cls(file=Path(file) if file is not None else None)

    def workflow_file(self, store: log_store.StoreReader) -> Path | None:
        return (
            run_index.workflow_file(run_index.load_history(store, self.run)[0]) if self.run is not None else self.file
        )

    def subject(self, here: host.Host, own: SessionState) -> subject.Subject:
        try:
            if self.run is not None:
                return runs.RunSubject(here.reader, self.run)
            if self.file is not None:
                return files.FileSubject(self.file, here)
        except (UsageError, LogError) as error:
            # The conversation can continue without its subject.
            return files.GoneSubject(f"run {self.run}" if self.run is not None else f"workflow {self.file}", error, own)
        return files.DraftSubject(own)

    def secrets(self, here: host.Host) -> Mapping[str, str]:
        """Return the workflow's secrets that have a value, to mask them in messages; none if the workflow cannot be read."""
        with contextlib.suppress(RunOpsError):
            if self.run is not None:
                header = run_index.load_history(here.reader, self.run)[0].header
                beside = Path(header.file).parent if header is not None else None
                return sources.known(here.secrets, header.secrets, beside) if header is not None else {}
            if self.file is not None:
                return sources.known(here.secrets, files.secrets_of(self.file), self.file.parent)
        return {}


def secrets_of(session: log_session.Session, here: host.Host) -> Mapping[str, str]:
    """Return the secrets with a value of every subject that the session ever had, and those that it may use in what it builds."""
    header = session.header
    texts = Texts(here.reader)
    told = [entries.Build.model_validate(texts.value_of(each)) for each in session.versions("goal")]
    if header is not None and header.build is not None:
        told.append(header.build)
    own: dict[str, str] = {}
    for goal in map(Goal.of, told):
        own |= sources.known(here.secrets, goal.secrets, goal.place.parent)
    every = [About(header.run), About(file=Path(header.file) if header.file else None)] if header is not None else []
    for each in session.thread(entries.SESSION_THREAD).said:
        if isinstance(each, threads.Happened):
            every += [About(event.run) for event in each.events if event.run is not None]
    return {**{name: value for about in dict.fromkeys(every) for name, value in about.secrets(here).items()}, **own}


@dataclasses.dataclass(frozen=True, slots=True)
class Models:
    settings: Settings
    server: selection.Server

    @classmethod
    def of(cls, here: host.Host) -> Models:
        """Return the models. Raises SetupError ``model-unset``, ``model-key-missing``; UsageError ``bad-setting`` if none may be asked."""
        settings = here.settings
        if settings.model_calls != "live":
            raise UsageError(
                "bad-setting",
                f"a conversation asks a model, and `model_calls` is `{settings.model_calls}`",
                fix="set it to `live`: RUNOPS_MODEL_CALLS=live",
            )
        selection.model_for("director", settings)
        return cls(settings, selection.server(settings, here.secrets))

    def masked(self) -> dict[str, str]:
        return {selection.KEY: self.server.key} if len(self.server.key) >= selection.MASKED_KEY else {}

    def check(self, budget: budgets.Budget | None, agents: Iterable[agent_files.Agent] = ()) -> None:
        """Raise UsageError ``price-unknown`` if a budget limits money, and the price of a model that spends it is unknown."""
        own = selection.model_for("director", self.settings)
        limited = budget is not None and budget.money is not None
        theirs = [
            each.model or own
            for each in agents
            if limited or (each.budget is not None and each.budget.money is not None)
        ]
        prices.require([own, *theirs] if limited else theirs, self.settings.prices, self.server.profile.name)

    def price(self, usage: Usage, model: str) -> Decimal | None:
        return prices.dollars(usage, model, self.settings.prices, self.server.profile.name)

    def supply(self, writer: session_open.SessionWriter, store: log_store.StoreReader) -> run_models.RunModels:
        """Return the models of a session, within its budget. Raises UsageError ``price-unknown``."""
        session = writer.history
        budget = budgets.parse(session.budget) if session.budget is not None else None
        self.check(budget)
        private = store.private(writer.conversation.id)
        return run_models.RunModels(self.settings, self.server, budget, private, private, {}, self.masked())


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    id: str
    past: log_session.Session
    here: host.Host

    @property
    def goal(self) -> Goal:
        reading = self.here.reader.read(self.id)
        return SessionState(session_open.look(self.here.reader, reading, self.past, masking.Masker({}))).goal


def find(here: host.Host, name: str, flags: Mapping[str, Json], *, builds: bool = False) -> Found:
    """Return the session ``name``; its own settings apply unless ``flags`` override them. With ``builds``, `last` is one that builds.

    Raises UsageError ``unknown-session``, ``not-a-session``; LogError.
    """
    session = session_open.find(here.reader, name, builds=builds)
    past = log_session.Session(here.reader.read(session).entries)
    return Found(
        session, past, here.having(session_settings.of_session(past, Texts(here.reader), here.settings, flags))
    )


async def open_session(
    here: host.Host,
    models: Models,
    source: entries.SessionHeader | Found,
    secrets: Mapping[str, str],
    keep: Callable[[SessionState], Awaitable[None]],
    *,
    fork: bool = False,
    take_over: bool = False,
) -> session_open.SessionWriter:
    """Open a new session, an existing one, or a ``fork`` of it, for writing; ``keep`` logs the options of the command line.

    Raises UsageError ``price-unknown``, and FileInvalid for the project's agents, before anything is written.
    """
    models.check(here.settings.budget, agent_files.of_project().values())
    budget = str(here.settings.budget) if here.settings.budget is not None else None
    masker = masking.Masker({**secrets, **models.masked()}, hidden_names.of(here.settings.hidden_names))
    past = source.past if isinstance(source, Found) else log_session.Session()
    strategy = limits.of_session(past, Texts(here.reader), here.settings).strategy
    if isinstance(source, entries.SessionHeader):
        header = source.model_copy(update={"versions": version.versions(), "budget": budget})
        writer = await session_open.begin(here.store, header, masker, strategy=strategy)
    elif fork:
        writer = await session_open.fork(here.store, source.id, masker, budget=budget, strategy=strategy)
    else:
        writer = await session_open.reopen(
            here.store, source.id, masker, take_over=take_over, budget=budget, strategy=strategy
        )
    async with log_store.release_on_error(writer.conversation):
        await keep(SessionState(writer))
    return writer


def set_limit(own: SessionState, settings: Settings, name: str, value: Json, reason: str) -> None:
    """Log a changed setting of the window. Raises UsageError ``bad-setting``."""
    known = limits.checked(name, value)
    if limits.of_session(own.history, own.writer, settings).model_dump()[name] != known:
        own.keep(entries.Version(of="window", name=name, number=0, reason=reason, by="person"), known)
