"""Opens a session, runs its conversation, and reports its end."""

from __future__ import annotations

import sys

import typer

from director.cli import screen as cli_screen
from director.cli import session_options
from director.cli.session import conversation, followed_runs, parsing
from director.cli.session import input as line_input
from director.cli.session import loop as session_loop
from nodes.errors import UsageError
from runtime.cli import console, foreground_run, signals
from runtime.cli.foreground import Foreground
from runtime.display.stream import Talk
from runtime.log import entries
from runtime.report import endings, of_session
from runtime.report.parts import Costs
from runtime.workspace import host

STATES: dict[int, endings.ChatStatus] = {
    0: "ended",
    1: "failed",
    2: "failed",
    3: "failed",
    4: "paused",
    5: "out-of-budget",
    75: "replaced",
    130: "interrupted",
    143: "interrupted",
}
"""State of a session by its exit code; any other is ``failed``."""


def converse(
    goal: session_options.ChatOptions, here: host.Host, message: str | None, *, as_json: bool, quiet: bool
) -> None:
    """Begin or resume a session, and process its messages. Always raises ``typer.Exit``, or RunOpsError if it could not begin."""
    if message is not None and not message.strip():
        raise UsageError("usage", "`--message` says nothing", fix="give it a text, or leave it out and type")
    foreground_run.hush()
    person = message is None and line_input.interactive()
    here = session_options.as_kept(goal, here)
    models = session_options.Models.of(here)
    answers = Talk(sys.stderr) if as_json else None
    screen = cli_screen.Screen(as_it_comes=person, quiet=quiet, answers=answers)
    held: conversation.Conversation | None = None
    with Foreground(
        lambda: again(held) if held is not None else "", clear=lambda: held and followed_runs.end_browser(held)
    ) as front:
        writer, there_before = front.run(session_options.open_session(goal, here, models))
        held = conversation.Conversation(writer, here, models, screen)
        try:
            code = _talk(held, front, goal, message, person=person, there_before=there_before)
        finally:
            front.complete(held.close())
    _end(held, code, as_json=as_json, quiet=quiet)
    raise typer.Exit(code)


def _talk(
    held: conversation.Conversation,
    front: Foreground,
    goal: session_options.ChatOptions,
    message: str | None,
    *,
    person: bool,
    there_before: bool,
) -> int:
    """Process all messages; return the exit code."""
    loop = session_loop.Loop(held, front, person=person)
    try:
        title = held.subject.title
        held.screen.say("  ".join(filter(None, ("chat", held.id, title))))
        foreground_run.say_taken(held.writer.conversation.taken_from)
        if there_before and goal.fork is None:
            front.complete(followed_runs.settle(held))
            loop.take_up()
        if message is not None:
            if not loop.over:
                loop.take(message)
        else:
            said = held.session.thread(entries.SESSION_THREAD).said
            earlier = [
                held.writer.text_of(each) for each in said if isinstance(each, entries.User) and each.mode is not None
            ]
            read = line_input.terminal(earlier) if person else line_input.standard_input()
            loop.follow(parsing.Lines(read).word)
    except signals.Interrupted as interrupted:
        held.screen.broken()
        if person:
            held.screen.say("")
        return interrupted.exit
    return 0 if person else loop.code


def again(held: conversation.Conversation) -> str:
    """Return the next command."""
    return f"again  runops chat --resume {held.id}"


def _end(held: conversation.Conversation, code: int, *, as_json: bool, quiet: bool) -> None:
    if not quiet or code:
        console.say(("interrupted\n  " if code in (130, 143) else "") + again(held))
    if as_json:
        console.result(_ending(held, code).as_json())


def _ending(held: conversation.Conversation, code: int) -> endings.ChatEnding:
    about = held.about
    report = held.screen.report
    return endings.ChatEnding(
        session=held.id,
        status=STATES.get(code, "failed"),
        exit=code,
        mode=held.session.mode,
        about=endings.AboutReport(run=about.run, file=str(about.file) if about.file is not None else None),
        words=[each.report() for each in held.words],
        costs=Costs.maybe(held.session.ledger.totals()),
        runs=of_session.costs_of_runs(held.session),
        window=report.as_json() if report is not None else None,
        warnings=held.screen.warnings,
    )
