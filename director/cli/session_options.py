"""Converts a command line to an open session: its subject, its model, its file."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path

from director.conversation import knowledge
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
from runtime.log import entries, threads
from runtime.log import session as log_session
from runtime.log.store import store
from runtime.log.writer import LogWriter, Texts
from runtime.models import run_models, selection
from runtime.secrets import masking, sources
from runtime.settings import prices, settings
from runtime.workspace import host, run_index

SUFFIXES = (".yaml", ".yml")


@dataclasses.dataclass(frozen=True, slots=True)
class About:
    """Subject of a session: a run, a workflow file, or nothing."""

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
        run = run_index.find(here.kept, name)
        run_index.load_history(here.kept, run)  # a new session needs a readable subject
        return cls(run=run)

    @classmethod
    def of(cls, session: log_session.Session) -> About:
        """Return the current subject of a session."""
        if session.about is not None:
            return cls(run=session.about)
        file = session.header.file if session.header is not None else None
        return cls(file=Path(file) if file is not None else None)

    def workflow_file(self, kept: store.Kept) -> Path | None:
        """Return the workflow file, also that of a run."""
        return run_index.workflow_file(run_index.load_history(kept, self.run)[0]) if self.run is not None else self.file

    def subject(self, here: host.Host, own: SessionState) -> subject.Subject:
        """Return the readable subject; ``own`` has the session's draft, for a session without a readable subject."""
        try:
            if self.run is not None:
                return runs.RunSubject(here.kept, self.run)
            if self.file is not None:
                return files.FileSubject(self.file, here)
        except (UsageError, LogError) as error:
            # The conversation about it still exists, and can continue.
            return files.GoneSubject(f"run {self.run}" if self.run is not None else f"workflow {self.file}", error, own)
        return files.DraftSubject(own)

    def secrets(self, here: host.Host) -> Mapping[str, str]:
        """Return the workflow's secrets that have a value: they are masked in messages, too. None if it cannot be read."""
        with contextlib.suppress(RunOpsError):
            if self.run is not None:
                header = run_index.load_history(here.kept, self.run)[0].header
                beside = Path(header.file).parent if header is not None else None
                return sources.known(here.secrets, header.secrets, beside) if header is not None else {}
            if self.file is not None:
                return sources.known(here.secrets, files.secrets_of(self.file), self.file.parent)
        return {}


def secrets_of(session: log_session.Session, here: host.Host) -> Mapping[str, str]:
    """Return the secrets with a value of every subject that the session ever had; of a build those that it may use."""
    header = session.header
    if header is not None and header.build is not None:
        build = header.build
        place = Path(build.repairs.file if build.repairs is not None else build.save)
        return sources.known(here.secrets, build.secrets, place.parent)
    every = [About(header.run), About(file=Path(header.file) if header.file else None)] if header is not None else []
    for each in session.thread(entries.SESSION_THREAD).said:
        if isinstance(each, threads.Happened):
            every += [About(event.run) for event in each.events if event.run is not None]
    return {name: value for about in dict.fromkeys(every) for name, value in about.secrets(here).items()}


@dataclasses.dataclass(frozen=True, slots=True)
class Models:
    """The validated model of the conversation."""

    chosen: settings.Settings
    server: selection.Server

    @classmethod
    def of(cls, here: host.Host) -> Models:
        """Return the model. Raises SetupError ``model-unset``, ``model-key-missing``; UsageError ``bad-setting`` if models may not be asked."""
        chosen = here.settings
        if chosen.model_calls != "live":
            raise UsageError(
                "bad-setting",
                f"a conversation asks a model, and `model_calls` is `{chosen.model_calls}`",
                fix="set it to `live`: RUNOPS_MODEL_CALLS=live",
            )
        selection.model_for("director", chosen)
        return cls(chosen, selection.server(chosen, here.secrets))

    def masked(self) -> dict[str, str]:
        """Return the values that must be masked: the key."""
        return {selection.KEY: self.server.key} if len(self.server.key) >= selection.MASKED_KEY else {}

    def check(self, budget: budgets.Budget | None) -> None:
        """Raise UsageError ``price-unknown`` if money is limited, and the model's price is unknown."""
        if budget is not None and budget.money is not None:
            model = selection.model_for("director", self.chosen)
            prices.require([model], self.chosen.prices, self.server.profile.name)

    def supply(self, writer: LogWriter[log_session.Session], kept: store.Kept) -> run_models.RunModels:
        """Return the models of a session, within its budget. Raises UsageError ``price-unknown``."""
        session = writer.history
        budget = budgets.parse(session.budget) if session.budget is not None else None
        self.check(budget)
        private = kept.private(writer.conversation.id)
        return run_models.RunModels(self.chosen, self.server, budget, private, private, {}, self.masked())


@dataclasses.dataclass(frozen=True, slots=True)
class ChatOptions:
    """The requested session, and its options."""

    about: str | None = None
    resume: str | None = None
    fork: str | None = None
    mode: entries.Mode | None = None
    window: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    settings: Mapping[str, Json] = dataclasses.field(default_factory=dict[str, Json])
    """Other given settings of the session, by name."""
    take_over: bool = False

    def check(self) -> None:
        """Raise UsageError ``usage`` for contradictions."""
        if self.resume is not None and self.fork is not None:
            raise UsageError("usage", "`--resume` and `--fork` contradict each other", fix="leave one of them out")
        if self.about is not None and (self.resume is not None or self.fork is not None):
            raise UsageError(
                "usage",
                f"a session that continues is about what it was about, and not about {self.about!r}",
                fix="leave it out, or begin a session: `runops chat` without `--resume` and `--fork`",
            )


def as_kept(goal: ChatOptions, here: host.Host) -> host.Host:
    """Return ``here`` with the settings of the requested session; an existing one has its own.

    Raises UsageError ``unknown-session``, ``not-a-session``; LogError.
    """
    goal.check()
    named = goal.resume if goal.resume is not None else goal.fork
    if named is None:
        return here
    found = session_open.find(here.kept, named, "chat" if goal.resume is not None else None)
    past = log_session.Session(here.kept.read(found).entries)
    if goal.resume is not None and past.header is not None and past.header.purpose == "build":
        raise UsageError(
            "not-a-chat",
            f"{found} is a build, and no chat",
            fix=f"continue with it: `runops build --resume {found}`; talk about it: `runops chat --fork {found}`",
        )
    return here.having(session_settings.of_session(past, Texts(here.kept), here.settings, goal.settings))


async def open_session(
    goal: ChatOptions, here: host.Host, models: Models
) -> tuple[LogWriter[log_session.Session], bool]:
    """Return the session's writer, and whether it existed before. Mode, window and settings of the options are logged."""
    goal.check()
    chosen, kept = here.settings, here.kept
    budget = str(chosen.budget) if chosen.budget is not None else None
    masked = models.masked()
    if chosen.chat_knowledge is not None:
        # Unreadable files are reported before anything is begun.
        knowledge.Knowledge.read([chosen.chat_knowledge])
    named = goal.resume if goal.resume is not None else goal.fork
    if named is not None:
        conversation = session_open.find(kept, named, "chat" if goal.resume is not None else None)
        past = log_session.Session(kept.read(conversation).entries)
        masker = masking.Masker({**secrets_of(past, here), **masked})
        if goal.fork is not None:
            models.check(chosen.budget)
            writer = await session_open.fork(here.store, conversation, masker, budget=budget)
        else:
            writer = await session_open.reopen(
                here.store, conversation, masker, take_over=goal.take_over, budget=budget
            )
    else:
        models.check(chosen.budget)
        about = About.named(goal.about, here)
        header = entries.SessionHeader(
            purpose="chat",
            run=about.run,
            file=str(about.file) if about.file is not None else None,
            versions=version.versions(),
            budget=budget,
        )
        writer = await session_open.begin(here.store, header, masking.Masker({**about.secrets(here), **masked}))
    async with store.release_on_error(writer.conversation):
        _write_goal(writer, goal, chosen, begun=named is None)
    return writer, named is not None


def _write_goal(
    writer: LogWriter[log_session.Session], goal: ChatOptions, chosen: settings.Settings, *, begun: bool
) -> None:
    one = SessionState(writer)
    mode = goal.mode or (chosen.chat_mode if begun else None)
    if mode is not None and mode != writer.history.mode:
        one.keep(entries.Version(of="mode", number=0, reason=f"--mode {mode}", by="person"), mode)
    session_settings.keep(one, goal.settings)
    for name, value in goal.window.items():
        set_limit(one, writer, chosen, name, value, f"--{name.replace('_', '-')}")


def set_limit(
    one: SessionState,
    writer: LogWriter[log_session.Session],
    chosen: settings.Settings,
    name: str,
    value: Json,
    reason: str,
) -> None:
    """Keep a changed setting of the window. Raises UsageError ``bad-setting``."""
    known = limits.checked(name, value)
    if getattr(limits.of_session(writer.history, writer, chosen), name) != known:
        one.keep(entries.Version(of="window", name=name, number=0, reason=reason, by="person"), known)
