"""``runops answer``: a person answers a run's questions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from nodes.errors import UsageError
from nodes.values import Json, as_text
from runtime.cli import console, flags, foreground_run
from runtime.display import escapes
from runtime.runs import answers
from runtime.runs.runtime import Runtime
from runtime.workspace import host, run_index


def answer(
    run: flags.RunArgument,
    pairs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE", help="An answer; several are given one after another.", show_default=False
        ),
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Write the answers down, and do not continue yet.")] = False,
    take_over: flags.TakeOverFlag = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
) -> None:
    """Answer the questions with which a run paused, and continue.

    A run pauses where a `context` node asks. On a terminal, what is not given is asked for; elsewhere it is missing, unless it has a
    default. An answer is kept in the log, so it must hold no secret, and is asked for once.
    """
    here = host.load(headed=headed, keep_browser=keep_browser, linger=linger)
    run_id = run_index.find(here.kept, run)
    past, _reading = run_index.load_history(here.kept, run_id)
    questions = answers.asked(past, run_id)
    answers.masker_of(past, here.secrets)  # reads the secrets, so that an error that quotes an answer is masked
    known, missing = answers.read_all(questions, _given(pairs or []))
    if missing and not sys.stdin.isatty():
        raise answers.missing(run_id, missing, questions)
    for name in missing:
        known[name] = _asked(name, questions[name])
    foreground_run.say_taken(asyncio.run(Runtime.of(here).write_answers(run_id, known, take_over=take_over)))
    if only:
        foreground_run.written_down(run_id, as_json=as_json, answered=known)
    else:
        console.say("the answer is written down")
        foreground_run.go_on(here, run_id, as_json=as_json, quiet=quiet)


def _given(pairs: list[str]) -> Mapping[str, str]:
    given: dict[str, str] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise UsageError("bad-answer", f"{pair!r} is no answer", fix="write NAME=VALUE")
        if name.strip() in given:
            raise UsageError("bad-answer", f"`{name.strip()}` is answered twice", fix="give it once")
        given[name.strip()] = text
    return given


def _asked(name: str, question: answers.Question) -> Json:
    choices = question.get("choices")
    listed = f" ({', '.join(as_text(each) for each in choices)})" if choices else ""
    while True:
        text = console.ask(f"{question['question']}{listed}")
        try:
            return answers.read(name, question, text)
        except UsageError as error:
            console.say(f"{escapes.line(error.message)}\n  {escapes.line(error.fix or '')}")
