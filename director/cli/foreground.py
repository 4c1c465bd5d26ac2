"""A session in the foreground of a command: its resources, its signals, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar

import typer

from director.builds import loop
from director.builds import open as open_build
from director.builds import subject as build_subject
from director.cli import screen as cli_screen
from director.cli import session_options
from director.cli.builds import options
from director.conversation import delegate, reply, session_tools
from director.proving import finish
from director.scouting import pages
from director.session import person, runs, subject
from director.session import settings as session_settings
from director.session.open import SessionWriter
from director.session.state import SessionState
from director.subjects import run_report
from director.subjects import runs as run_subjects
from director.tools import build_context
from nodes.errors import BudgetReached, LogError, SetupError, UsageError
from runtime.cli import console, foreground, foreground_run
from runtime.context import background, items, limits, window
from runtime.display import costs
from runtime.display.text import one_line
from runtime.language import agent_files
from runtime.log import entries
from runtime.log import session as log_session
from runtime.log.store import store as log_store
from runtime.log.threads import Exchange
from runtime.messages.messages import Item, Usage
from runtime.models import run_models
from runtime.report import endings
from runtime.secrets import masking
from runtime.settings import settings
from runtime.system import tasks
from runtime.workspace import host

STATES: dict[int, Literal["paused", "out-of-budget", "replaced", "interrupted"]] = {
    4: "paused",
    5: "out-of-budget",
    75: "replaced",
    130: "interrupted",
    143: "interrupted",
}
"""State of a session by the exit code of its command; any other error means ``failed``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Proposal:
    """What the model proposes that the person does."""

    command: str
    reason: str


class Conversation:
    """Resources of a session in progress, until ``close``."""

    def __init__(
        self,
        writer: SessionWriter,
        here: host.Host,
        models: session_options.Models | None,
        screen: cli_screen.Screen,
        who: person.Person | None = None,
        *,
        command: Literal["chat", "build"] = "chat",
    ) -> None:
        """``close`` closes ``writer``. Without ``models`` the session can only be shown. ``who`` answers the questions of a build."""
        self.here, self.models, self.screen, self.command = here, models, screen, command
        self._who = who or person.Nobody()
        self.words: list[endings.WordReport] = []
        self._use(writer)

    def _use(self, writer: SessionWriter) -> None:
        self.writer, self.state = writer, SessionState(writer)
        self.runs = runs.Runs(writer, self.here.reader, self.screen, self.price)
        self._supply: run_models.RunModels | None = None
        self._talk: reply.Talk | None = None
        self._build: build_context.BuildContext | None = None
        self.screen.follows(self.session, lambda: self.state.value("plan"))

    @property
    def id(self) -> str:
        return self.writer.conversation.id

    @property
    def session(self) -> log_session.Session:
        return self.writer.history

    @property
    def again(self) -> str:
        return f"runops {self.command} --resume {self.id}"

    @property
    def about(self) -> session_options.About:
        return session_options.About.of(self.session)

    @property
    def settings(self) -> settings.Settings:
        if not self.session.builds:
            return self.here.settings
        kept = self.session.latest("window", "strategy")
        return options.settings_for(self.here.settings, self.writer.value_of(kept) if kept is not None else None)

    @property
    def build(self) -> build_context.BuildContext | None:
        """What the tools of a build share; None in a session that never was in mode agent."""
        if self._build is None and self.session.builds:
            # The budget belongs to the session: each run gets what is left of it.
            here = self.here.having(self.here.settings.model_copy(update={"budget": None}))
            self._build = open_build.of_session(
                self.writer, self.state, here, self.screen, self._who, self.price, self.workflow_file
            )
        return self._build

    def workflow_file(self) -> Path | None:
        """Return the file that the session is about, or whose run; None if it is gone, as after `prune`."""
        with contextlib.suppress(UsageError, LogError):
            file = self.about.workflow_file(self.here.reader)
            return file if file is not None and file.exists() else None
        return None

    def workflow_to_run(self) -> Path | None:
        """Return the workflow of the session: what was built in it and saved, else what it is about."""
        last = finish.last(self.build) if self.build is not None else None
        left = last.value if last is not None else {}
        built = left.get("file") if left.get("done") and not left.get("fix") else None
        return Path(str(built)) if built else self.about.workflow_file(self.here.reader)

    @property
    def subject(self) -> subject.Subject:
        about = self.about
        other = about.subject(self.here, self.state)
        return build_subject.BuildSubject(self.build, other if about.named_any else None) if self.build else other

    @property
    def talk(self) -> reply.Talk:
        """The conversation about its current subject. Raises UsageError ``price-unknown``."""
        if self._talk is None:
            if self._supply is None and self.models is not None:
                models = dataclasses.replace(self.models, settings=self.settings)
                self._supply = models.supply(self.writer, self.here.reader)
            own, builds = loop.OPTIONS if self.session.builds else reply.CHAT, self.command == "build"
            self._talk = reply.Talk(
                self.state,
                self.subject,
                self._supply,
                self.here.settings,
                self.screen,
                self.limits,
                open_build.toolsets(self.build) if self.build is not None else (),
                # In a chat the person continues after an interruption, so that no call stays open.
                dataclasses.replace(own, left_open=builds, without=session_tools.OF_TALKS if builds else frozenset()),
                self._delegates(),
            )
        return self._talk

    def _delegates(self) -> delegate.Delegates:
        name = "delegate_clean_context"
        return delegate.Delegates(
            self.here.settings.delegate_clean_context,
            session_settings.origin(self.state, name),
            agent_files.of_project(),
            pages.Pages(self.build) if self.build is not None else None,
        )

    async def renew(self) -> None:
        """Take the present mode, goal and subject: what is offered to the model may be other than before."""
        self._talk = None
        if self._supply is not None:
            await self._supply.close()
            self._supply = None

    async def settle(self) -> None:
        """End what a dead process of this session has left: browsers, and runs of tools whose end is not logged."""
        if self.build is not None:
            # Browsers left by a dead process are not reused; runs that are resumed elsewhere keep theirs.
            dead = [each for each in self.session.open_runs if not self.here.reader.owned(each)]
            await asyncio.to_thread(end_browsers, self.here.reader, [self.id, *dead])
            await self.build.runs.settle()

    def price(self, usage: Usage, model: str) -> Decimal | None:
        return self.models.price(usage, model) if self.models is not None else None

    def limits(self) -> window.Limits:
        return limits.of_session(self.session, self.writer, self.settings)

    def background(self) -> Sequence[Item]:
        """Return the conversation until now as the models of a run have it that begins here."""
        thread = items.Thread(self.session.thread(entries.SESSION_THREAD), self.writer)
        return background.of_session(thread, self.limits())

    async def happened(self, text: str, typed: str | None = None) -> None:
        """Log an action of the person, with what they typed, or something that happened meanwhile."""
        self.writer.said(entries.Event(thread=entries.SESSION_THREAD, what=typed), text, "")
        await self.writer.barrier()

    def hear(self, text: str) -> None:
        """Log what the person says while something works: the model has it with its next request. Raises LogError."""
        self.writer.said(entries.Heard(thread=entries.SESSION_THREAD, mode=self.session.mode), text, "")

    @property
    def proposal(self) -> Proposal | None:
        """The command that the model has proposed since the person's last message or run.

        None if the run has moved on since the model was told of it: it may wait for something else.
        """
        if self._has_moved():
            return None
        for each in reversed(self.session.thread(entries.SESSION_THREAD).said):
            if isinstance(each, entries.Event) or (isinstance(each, entries.User) and each.mode is not None):
                return None
            if isinstance(each, Exchange):
                for call in reversed(self.writer.calls_of(each.answer)):
                    result = each.done[call.id].result
                    if call.name == session_tools.PROPOSE and result is not None and result.status == "ok":
                        given = json.loads(call.arguments)
                        return Proposal(one_line(str(given["command"])), one_line(str(given["reason"])))
        return None

    def stop(self) -> bool:
        """Stop the model; False if it does not work."""
        asks = self.build is not None and self.build.person.open > 0
        return self._talk is not None and self._talk.stop(at_once=asks)

    async def tell_run(self, run: str, what: str, spent: entries.Ran | None = None) -> str:
        """Tell a run at this place of the conversation, and return the line that says where it stands.

        From now on the session is about it, and is charged what it ``spent``. Raises UsageError ``unknown-run``, LogError.
        """
        known = {**session_options.secrets_of(self.session, self.here), **session_options.About(run).secrets(self.here)}
        key = self.models.masked() if self.models is not None else {}
        self.writer.masker = masking.Masker({**known, **key}, self.writer.masker.names, self.writer.masker.codes)
        view = await tasks.in_thread(run_subjects.view, self.here.reader, run)
        told = run_report.telling(view, self.session.told.get(run, 0), self.writer.masker.names)
        taken = self.session.thread(entries.SESSION_THREAD).ids
        asked = next(name for name in (f"run_{number}" for number in itertools.count(1)) if name not in taken)
        entry = entries.Event(
            thread=entries.SESSION_THREAD, run=run, spent=spent, asked=asked, what=what, upto=told.upto
        )
        self.writer.said(entry, told.text, f"told/{asked}")
        await self.writer.barrier()
        self._talk = None
        return run_report.head(view)

    async def catch_up(self) -> None:
        """Tell the run that the session is about, if the conversation does not have it yet, or it has moved on."""
        run = self.about.run
        if run is None:
            return
        with contextlib.suppress(UsageError, LogError):
            if await tasks.in_thread(self._is_ahead, run):
                await self.tell_run(run, f"about run {run}")

    def _is_ahead(self, run: str) -> bool:
        """True if the run has more in its log than the conversation has of it. Raises UsageError, LogError."""
        return self.session.told.get(run, 0) < self.here.reader.read(run).entries[-1].seq

    def _has_moved(self) -> bool:
        """True if the session's run is ahead of the conversation, or cannot be read."""
        run = self.about.run
        try:
            return run is not None and self._is_ahead(run)
        except (UsageError, LogError):
            return True

    async def move(self, writer: SessionWriter) -> None:
        await self.close()
        self._use(writer)

    async def close(self) -> None:
        """Sync and release the session, with its browsers."""
        if self._build is not None:
            build, self._build = self._build, None
            await build.close()
        if self._supply is not None:
            await self._supply.close()
            self._supply = None
        await tasks.to_the_end(self.writer.conversation.aclose())

    def end_browsers(self) -> None:
        """End the browsers that would outlive this process: those of the session and of the runs that it follows."""
        end_browsers(self.here.reader, [self.id, *self.session.open_runs])


Held = TypeVar("Held", bound=Conversation)


@contextlib.contextmanager
def followed(
    opening: Coroutine[Any, Any, SessionWriter], make: Callable[[SessionWriter], Held]
) -> Generator[tuple[foreground.Foreground, Held]]:
    """Open a session, and close it at the end. If the process is ended at once, it prints the command that resumes."""
    conversation: Held | None = None
    with foreground.Foreground(
        lambda: f"again  {conversation.again}" if conversation is not None else "",
        clear=lambda: conversation and conversation.end_browsers(),
    ) as front:
        conversation = make(front.run(opening))
        try:
            conversation.screen.say(
                "  ".join(filter(None, (conversation.command, conversation.id, conversation.subject.title)))
            )
            foreground_run.report_takeover(conversation.writer.conversation.taken_from)
            yield front, conversation
        finally:
            front.complete(conversation.close())


def end_browsers(store: log_store.StoreReader, names: Iterable[str]) -> None:
    """End the browsers of runs and sessions; a build has several, each in its own folder."""
    for name in names:
        folder = store.private(name)
        for each in (folder, *(found for found in folder.glob("*") if found.is_dir())):
            foreground.end_browser(each)


def result(text: str | None, again: str) -> None:
    """Print the result of a command that may have paid for it.

    If it cannot be printed, exit with ``again`` as the next command: the same command would begin, and pay, anew.
    """
    try:
        if text is not None:
            console.result(text)
    except SetupError as error:
        console.say(console.failure(error.replaced(fix="make room; the work itself is kept"), again))
        raise typer.Exit(error.exit) from None


def with_larger_budget(again: str, error: BudgetReached) -> str:
    """Return the command that continues within a larger budget."""
    larger = costs.resume_command("", error.as_json()).rpartition(" --budget ")[2]
    return f"{again} --budget {larger}"
