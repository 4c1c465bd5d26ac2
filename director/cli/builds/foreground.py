"""Runs a build in the foreground: opens it, follows it, and reports its end."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import typer
from typing_extensions import override

from director.builds import loop
from director.builds import open as open_build
from director.builds import subject as builds_subject
from director.cli import questions, session_options
from director.cli.builds import options, outcome
from director.cli.builds import screen as build_screen
from director.cli.session import conversation
from director.conversation import reply
from director.session import person
from director.tools.toolbox import Toolset
from nodes.errors import RunOpsError, SetupError
from runtime.cli import console, foreground, foreground_run, signals
from runtime.log import session as log_session
from runtime.log.writer import LogWriter
from runtime.report import endings
from runtime.settings import settings
from runtime.workspace import host


class Building(conversation.Conversation):
    """Resources of a build in progress. Call ``close`` on it."""

    def __init__(
        self,
        writer: LogWriter[log_session.Session],
        here: host.Host,
        models: session_options.Models,
        screen: build_screen.BuildScreen,
        who: person.Person,
    ) -> None:
        """``writer`` is the session's, and is closed with it; ``who`` answers questions."""
        super().__init__(writer, here, models, screen)
        # The budget is the session's; the rest of it applies to each run.
        of_runs = here.settings.model_copy(update={"budget": None, "model_timeout": settings.load().model_timeout})
        self.build = open_build.of_session(writer, self.state, here.having(of_runs), screen, who, self.price)
        self._about = open_build.subject_of(self.build)
        self._toolsets = open_build.toolsets(self.build)
        screen.follow(lambda: self.session, lambda: self.state.value("plan"))

    @property
    @override
    def subject(self) -> builds_subject.BuildSubject:
        return self._about

    @property
    @override
    def toolsets(self) -> Sequence[Toolset]:
        return self._toolsets

    @property
    @override
    def options(self) -> reply.ReplyOptions:
        return loop.OPTIONS

    @override
    async def close(self) -> None:
        try:
            await self.build.close()
        finally:
            await super().close()


@dataclasses.dataclass(frozen=True, slots=True)
class Came:
    """Result of a build in this process."""

    session: str
    past: log_session.Session
    code: int
    ended: loop.Ended | None
    """None if it did not end by itself."""
    error: RunOpsError | None
    """The error that ended it; None with ``ended`` None for an interruption."""

    def record(self) -> endings.BuildRecord:
        """Return the result for programs."""
        return outcome.record(self.session, self.past, self.ended, self.error, self.code)

    def told(self) -> str:
        """Describe the end, and the next command."""
        if self.error is not None:
            return outcome.broken_off(self.session, self.error)
        if self.ended is None:
            return f"interrupted; nothing is lost\n  again  runops build --resume {self.session}"
        return outcome.closing(self.session, self.past, self.ended)


def carry_out(order: options.BuildOrder, here: host.Host, *, as_json: bool, quiet: bool) -> None:
    """Begin or resume a build, to its end. Always raises ``typer.Exit``, or RunOpsError if it could not begin."""
    order.check()
    foreground_run.hush()
    here = options.as_kept(order, here)
    models = session_options.Models.of(here)
    word = order.goal if order.resume is not None else None
    came = follow(options.open_build(order, here, models), here, models, word=word, asks=not order.yes, quiet=quiet)
    try:
        _tell(came, as_json=as_json, quiet=quiet)
    except SetupError as error:
        # The same command would begin, and pay for, another build.
        error = error.replaced(fix="make room; the build stands as it was told")
        console.say(console.failure(error, f"runops build --resume {came.session}{' --json' if as_json else ''}"))
        raise typer.Exit(error.exit) from None
    raise typer.Exit(came.code)


def follow(
    opening: Coroutine[Any, Any, LogWriter[log_session.Session]],
    here: host.Host,
    models: session_options.Models,
    *,
    word: str | None = None,
    asks: bool,
    quiet: bool,
) -> Came:
    """Run the build that ``opening`` opens, and close it. ``word`` is a message of the person; with ``asks`` the person at the terminal is asked."""
    screen = build_screen.BuildScreen(sys.stderr, quiet=quiet)
    who = questions.person_at(screen.asks) if asks and questions.possible() else person.Nobody()
    held: Building | None = None
    with foreground.Foreground(
        lambda: f"again  runops build --resume {held.id}" if held is not None else "",
        clear=lambda: held and _end_browsers(held),
    ) as front:
        held = Building(front.run(opening), here, models, screen, who)
        _end_left(held)
        try:
            code, ended, error = _followed(held, front, word)
        finally:
            front.complete(held.close())
    return Came(held.id, held.session, code, ended, error)


def _followed(
    held: Building, front: foreground.Foreground, word: str | None
) -> tuple[int, loop.Ended | None, RunOpsError | None]:
    """Return the exit code, and the end; the error if it did not end by itself."""
    held.screen.say(f"build  {held.id}  {held.subject.title}")
    foreground_run.say_taken(held.writer.conversation.taken_from)
    one = loop.Build(held.build, held.talk)
    try:
        ended = front.run(one.to_its_end(word))
    except signals.Interrupted as interrupted:
        held.screen.broken()
        return interrupted.exit, None, None
    except RunOpsError as error:
        held.screen.broken()
        return error.exit, None, error
    held.screen.answered(ended.answer)
    return outcome.exit_of(ended), ended, None


def _tell(came: Came, *, as_json: bool, quiet: bool) -> None:
    """Report the end: the built workflow, its file, and the next command."""
    ended = came.ended
    if ended is None or came.code or not quiet:
        console.say(came.told())
    if as_json:
        console.result(endings.of_build(came.record()).as_json())
    elif ended is not None and ended.done and ended.value.get("fix"):
        console.result(str(ended.value["fix"]["patch"]).rstrip("\n"))
    elif ended is not None and ended.done and ended.value.get("file"):
        console.result(outcome.shown(str(ended.value["file"])))


def _end_left(held: Building) -> None:
    """End the browsers left by a dead process of this build: it tries anew. Resumed runs keep theirs."""
    _end_those(held, [held.id, *(each for each in held.session.open_runs if not held.here.kept.held(each))])


def _end_browsers(held: Building) -> None:
    """End the browsers that would outlive this process: those of the session and of the runs that it follows."""
    _end_those(held, [held.id, *held.session.open_runs])


def _end_those(held: Building, names: Sequence[str]) -> None:
    for name in names:
        folder = held.here.kept.private(name)
        for each in (folder, *(found for found in folder.glob("*") if found.is_dir())):
            foreground.end_browser(each)
