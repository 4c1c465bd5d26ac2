"""Converts the command line of ``runops build`` to the session of a build, and back."""

from __future__ import annotations

import dataclasses
import os
import urllib.parse
from pathlib import Path

from director.cli import session_options
from director.draft import draft as drafts
from director.draft import goal as goals
from director.draft import header as draft_header
from director.draft import output_files
from director.draft.goal import Goal, Policy
from director.effects import grants
from director.session import open as open_session
from director.session import person
from director.session import settings as session_settings
from director.session.state import SessionState
from director.tools import begin
from nodes.errors import UsageError
from nodes.values import Json
from runtime.cli import values as given_values
from runtime.context import window
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log import entries
from runtime.secrets import masking, sources
from runtime.settings.settings import Settings
from runtime.workspace import host

RECENT_OUTPUTS = 5_000  # default size of a build's newest part, in which tool outputs are whole, in tokens
CHECKPOINT_AT = 60_000  # default number of tokens since the last summary of a build at which the next one is made


@dataclasses.dataclass(frozen=True, slots=True)
class BuildOrder:
    goal: str | None = None
    url: str | None = None
    save: Path | None = None
    force: bool = False
    inputs: tuple[str, ...] = ()  # as `NAME=VALUE`
    secrets: tuple[str, ...] = ()
    effects: Policy | None = None
    reset: str | None = None
    runs: int | None = None
    resume: str | None = None
    answer: str | None = None
    take_over: bool = False
    yes: bool = False
    model: str | None = None
    strategy: window.Strategy | None = None
    store: bool | None = None
    max_output: int | None = None

    def check(self) -> None:
        """Raise UsageError ``usage`` for contradictions."""
        if self.resume is None:
            if self.answer is not None or self.take_over:
                flag = "--answer" if self.answer is not None else "--take-over"
                raise UsageError("usage", f"`{flag}` is for a build that is there", fix="name it with `--resume`")
            if self.goal is None or not self.goal.strip():
                raise UsageError(
                    "usage", "there is no goal", fix='say what is to be built: runops build "GOAL" --url URL'
                )
        elif self.answer is not None and not self.answer.strip():
            raise UsageError("usage", "`--answer` says nothing", fix="give it a text")

    @property
    def is_about_goal(self) -> bool:
        """True if it says something about what is built, besides the goal itself."""
        return any((self.url, self.save, self.force, self.inputs, self.secrets))

    def as_goal(self, file: Path | None = None) -> Goal:
        """Return a new session's goal; ``file`` is the workflow that it is about. Raises UsageError like ``changed``."""
        new = Goal.unsaid(file.absolute() if file is not None else None)
        policy = self.effects or goals.policy(unattended=self.yes)
        goal = self.changed(dataclasses.replace(new, policy=policy, runs=self.runs or new.runs))
        if self.goal is not None and not goal.is_named:
            save = goals.named(goal.goal, goal.save.parent)
            _refuse_place(save, force=self.force)
            goal = dataclasses.replace(goal, save=save)
        if policy == "allow":
            grants.refuse_allow([goal.url] if goal.url is not None else [])
        return goal

    def changed(self, goal: Goal) -> Goal:
        """Return ``goal`` with what is said here; inputs and secrets are added to its own.

        Raises UsageError ``usage``, ``bad-input``, ``file-exists``, ``file-not-written``, ``effects-not-local``.
        """
        text = self.goal.strip() if self.goal is not None else ""
        if len(text) > goals.LONGEST:
            raise UsageError(
                "usage", f"the goal has {len(text):,} characters, and may have {goals.LONGEST:,}", fix="say it shorter"
            )
        save = goal.save
        if self.save is not None:
            save = self.save.absolute()
            if save.suffix not in session_options.SUFFIXES:
                raise UsageError("usage", f"{save} is no name of a workflow", fix="end it with .yaml")
            _refuse_place(save, force=self.force)
        url = _checked(self.url) or goal.url
        if goal.policy == "allow" and url != goal.url:
            grants.refuse_allow([url] if url is not None else [])
        made = dataclasses.replace(
            goal,
            goal=text or goal.goal,
            url=url,
            save=save,
            inputs={**goal.inputs, **given_values.inputs(self.inputs).values},
            secrets=tuple(dict.fromkeys([*goal.secrets, *self.secrets])),
            force=goal.force or self.force,
        )
        _refuse_head(made)
        return made


NOTHING = BuildOrder()


def _refuse_place(save: Path, *, force: bool) -> None:
    """Raise UsageError ``file-exists``, ``file-not-written`` if no workflow can be written there, before any cost."""
    if os.path.lexists(save) and not force:
        raise UsageError(
            "file-exists",
            f"{save} is there already",
            fix="name another file with --save, or write over it: --force",
        )
    reason = output_files.obstacle(save)
    if reason is not None:
        raise UsageError(
            "file-not-written", f"{save} could not be written: {reason}", fix="name another file with --save"
        )


def _refuse_head(goal: Goal) -> None:
    """Raise UsageError ``usage`` if no workflow could begin with these options: an invalid name, a value that no input accepts."""
    nothing = "nodes: [{id: nothing, type: transform, expr: nothing}]"
    try:
        drafts.Draft.of(f"{draft_header.begun(goal)}{nothing}\n")
    except WorkflowInvalid as wrong:
        problem = wrong.diagnostics[0]
        raise UsageError(
            "usage",
            f"no workflow can begin with what was given: {problem.message}",
            fix="give inputs and secrets names of letters, digits and `_`",
        ) from None


def _checked(url: str | None) -> str | None:
    """Return an address of a site. Raises UsageError ``usage``."""
    if url is None:
        return None
    try:
        parts = urllib.parse.urlsplit(url)
        written = url.isprintable() and " " not in url
        fits = written and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        named = parts.username is not None or parts.password is not None
    except ValueError:
        fits = named = False
    if named:
        raise UsageError(
            "usage", "`--url` holds a user or a password", fix="leave it out; pass a password with `--secret NAME`"
        )
    if not fits:
        raise UsageError("usage", f"{url!r} is no address of a site", fix="write it whole: --url https://…")
    return url


def settings_for(given: Settings, strategy: window.Strategy | None = None) -> Settings:
    """Add the defaults of a build; ``strategy`` is that of the session, if it keeps one."""
    defaults = {"window_recent_outputs": RECENT_OUTPUTS}
    if (strategy or given.window_strategy) == "hybrid":
        # A build has many small calls: more summaries would cost more than they save.
        defaults["window_checkpoint_at"] = CHECKPOINT_AT
    update: dict[str, float] = {name: value for name, value in defaults.items() if getattr(given, name) is None}
    return given.model_copy(update=update)


def given(order: BuildOrder, settings: Settings) -> dict[str, Json]:
    flags = {
        "model_director": order.model,
        "model_store": order.store,
        "session_max_output": order.max_output,
        "reset": order.reset,
    }
    return session_settings.given(settings, flags)


async def open_build(
    order: BuildOrder, here: host.Host, models: session_options.Models, found: session_options.Found | None = None
) -> open_session.SessionWriter:
    """Begin a build, or resume the ``found`` session as one, with the answer that was given."""
    source: entries.SessionHeader | session_options.Found
    if found is not None:
        goal, secrets = resumed(order, here, models, found)
        secrets |= sources.read(here.secrets, goal.secrets, goal.place.parent)
        source = found
    else:
        goal, secrets = begun(order, here, models)
        source = entries.SessionHeader(purpose="build", versions={}, build=goal.as_logged())

    async def keep(own: SessionState) -> None:
        session_settings.keep(own, given(order, here.settings))
        if order.strategy is not None:
            session_options.set_limit(own, here.settings, "strategy", order.strategy, f"--strategy {order.strategy}")
        if found is not None:
            keep_changes(own, dataclasses.replace(order, goal=None), goal)
        if own.history.mode != "agent":
            version = entries.Version(of="mode", number=0, reason="runops build", by="person")
            own.keep(version, "agent")
        if order.answer is not None:
            await person.answer(own.writer, order.answer)

    return await session_options.open_session(here, models, source, secrets, keep, take_over=order.take_over)


def begun(
    order: BuildOrder, here: host.Host, models: session_options.Models, file: Path | None = None
) -> tuple[Goal, dict[str, str]]:
    """Return the goal of a new session, and the secrets that it may use. Raises UsageError like ``BuildOrder.changed``, ``secret-in-input``."""
    goal = order.as_goal(file)
    secrets = sources.read(here.secrets, goal.secrets, goal.place.parent)
    _refuse_secret(order, goal, masking.Masker({**secrets, **models.masked()}))
    return goal, secrets


def resumed(
    order: BuildOrder, here: host.Host, models: session_options.Models, found: session_options.Found
) -> tuple[Goal, dict[str, str]]:
    """Return the goal of a session that continues, as the flags change it, and all secrets that it may use. Raises like ``begun``."""
    # What is typed as goal is a further message.
    order = dataclasses.replace(order, goal=None)
    goal = order.changed(found.goal) if order.is_about_goal else found.goal
    if order.effects == "allow":
        grants.refuse_allow([goal.url] if goal.url is not None else [])
    secrets = {
        **session_options.secrets_of(found.past, here),
        **sources.read(here.secrets, order.secrets, goal.place.parent),
    }
    _refuse_secret(order, goal, masking.Masker({**secrets, **models.masked()}))
    return goal, secrets


def spoken(order: BuildOrder, here: host.Host, masker: masking.Masker, goal: Goal) -> tuple[Goal, dict[str, str]]:
    """Return ``goal`` as the person changes it in the session, and the secrets that are new. Raises like ``begun``."""
    made = order.changed(goal)
    secrets = sources.read(here.secrets, order.secrets, made.place.parent)
    _refuse_secret(order, made, masker.knowing(secrets))
    return made, secrets


def keep_changes(own: SessionState, order: BuildOrder, goal: Goal, *, reason: str = "the command line") -> None:
    """Log what the flags change in a session that continues; its next requests and runs go by it."""
    later: dict[str, Json] = {"build_effects": order.effects, "build_runs": order.runs}
    session_settings.keep(own, {name: value for name, value in later.items() if value is not None})
    if order.is_about_goal or order.goal is not None:
        # A message that would become the goal is none yet.
        text = goal.goal if order.goal is not None or own.is_goal_kept else ""
        # A file that is not there yet is named for a new workflow.
        anew = goal.anew if order.save is None else not os.path.lexists(goal.save)
        begin.keep_goal(own, dataclasses.replace(goal, goal=text, anew=anew), reason=reason, by="person")


def _refuse_secret(order: BuildOrder, goal: Goal, masker: masking.Masker) -> None:
    """Raise UsageError ``secret-in-input`` if the goal contains a secret: the log would have a mask in place of the value."""
    said: dict[str, Json] = {"the goal": goal.goal, "`--url`": goal.url}
    said["`--save`"] = str(goal.save) if order.save is not None else None
    said["`--reset`"] = order.reset
    said |= {f"`-i {name}`": value for name, value in goal.inputs.items()}
    wrong = [name for name, value in said.items() if masker.json(value) != value]
    if wrong:
        raise UsageError(
            "secret-in-input",
            f"{', '.join(wrong)}: it contains a secret, and would be sent to the model and kept in the log",
            fix="leave it out; a secret is given by its name only: `--secret NAME`",
        )
