"""Runs a build in the foreground: opens it, follows it, and reports its end."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from typing import Any

import typer

from director.builds import loop
from director.cli import foreground, session_options
from director.cli import input as typed_input
from director.cli import screen as cli_screen
from director.cli.builds import options, outcome, reset_question
from director.cli.session import meanwhile
from director.proving import performed
from director.session import person
from director.session.open import SessionWriter
from nodes.errors import RunOpsError
from runtime import logger
from runtime.cli import console, signals
from runtime.context import items
from runtime.report import endings
from runtime.workspace import host


def carry_out(order: options.BuildOrder, here: host.Host, *, as_json: bool, quiet: bool) -> None:
    """Begin or resume a build, and follow it to its end. Always raises ``typer.Exit``, or RunOpsError if it could not begin."""
    order.check()
    logger.silence()
    found: session_options.Found | None = None
    if order.resume is not None:
        found = session_options.find(here, order.resume, options.given(order, here.settings), builds=True)
        here = found.here
    models = session_options.Models.of(here)
    word = order.goal if order.resume is not None else None
    opening = options.open_build(order, here, models, found)
    came = follow(opening, here, models, word=word, asks=not order.yes, quiet=quiet)
    record, ended = came.record, came.ended
    if ended is None or record.exit or not quiet:
        console.say(came.text)
    result: str | None = None
    if as_json:
        result = endings.of_build(record).as_json()
    elif came.fix:
        result = str(came.fix["patch"]).rstrip("\n")
    elif record.status == "done" and record.file:
        result = outcome.shown(record.file)
    foreground.result(result, f"runops build --resume {record.session}{' --json' if as_json else ''}")
    raise typer.Exit(record.exit)


def follow(
    opening: Coroutine[Any, Any, SessionWriter],
    here: host.Host,
    models: session_options.Models,
    *,
    word: str | None = None,
    asks: bool,
    quiet: bool,
) -> outcome.Outcome:
    """Run the build that ``opening`` opens, and close it.

    ``word`` is a message of the person; with ``asks`` a person at the terminal answers questions.
    """
    screen = cli_screen.BuildScreen(sys.stderr, quiet=quiet)
    is_there = asks and typed_input.can_ask()
    who = typed_input.person_at(screen.asks) if is_there else person.Nobody()
    ended: loop.Ended | None = None
    failed: RunOpsError | None = None
    code = 0
    with foreground.followed(
        opening, lambda writer: foreground.Conversation(writer, here, models, screen, who, command="build")
    ) as (front, conversation):
        front.complete(conversation.settle())
        build = conversation.build
        assert build is not None, "a build is in mode agent"
        if is_there:
            meanwhile.Meanwhile(conversation, front, typed_input.Arrivals())
        try:
            front.run(reset_question.settle(conversation, build, screen, typed_input.prompted if is_there else None))
            ended = front.run(loop.to_its_end(build, conversation.talk, word))
        except signals.Interrupted as interrupted:
            code = interrupted.exit
        except RunOpsError as error:
            code, failed = (130, None) if error.code == items.STOPPED else (error.exit, error)
        screen.ends()
        # A proof, or a draft that is given up, tells it itself.
        done = performed.of_build(build) if ended is None and code in (1, 130, 143) else ()
        if ended is not None:
            screen.answered(ended.answer)
    return outcome.of_build(
        conversation.id, conversation.session, ended, failed, code, goal=conversation.state.goal, done=done
    )
