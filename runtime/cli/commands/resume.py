"""``runops resume``, ``decide`` and ``answer``: continue a run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Annotated, Literal

from nodes.errors import UsageError
from nodes.values import Json, as_text
from runtime.cli import console, flags, foreground_run
from runtime.display import escapes
from runtime.log.store import owners
from runtime.report import endings
from runtime.runs import answers
from runtime.runs.runtime import Runtime
from runtime.workspace import host, run_index


def resume(
    run: flags.RunArgument,
    allow_changed: flags.AllowChangedFlag = False,
    take_over: flags.TakeOverFlag = False,
    from_step: flags.FromFlag = None,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    engine: flags.EngineFlag = None,
    browser_url: flags.BrowserUrlFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
    trace: flags.TraceFlag = None,
    video: flags.VideoFlag = None,
    budget: flags.BudgetFlag = None,
    model_calls: flags.ModelCallsFlag = None,
) -> None:
    """Resume a run that was killed, interrupted, paused, or failed. Finished steps are not repeated.

    It continues with the text of the file that it began with. With `--allow-changed` it continues with the file as it is now: unfinished steps may
    change, and a change before a finished step is refused. An interrupted side effect must stay as it was.

    A run that another process holds is refused. `--take-over` ends that process, even if it is stopped or stuck; the run continues here, in
    its browser if that still exists.

    If its browser is gone, steps after the last checkpoint are repeated to reach the page. If the site no longer allows that, `--from STEP`
    leaves out everything before the step. Choose one that begins with its own `goto`.

    A run that is out of budget continues with a larger one (`--budget`), and its earlier spending counts.

    A run that passed prints its result again. A paused one asks its question until it is answered (`runops decide`, `runops answer`).
    """
    here = host.load(
        headed=headed,
        browser_engine=engine,
        browser_url=browser_url,
        keep_browser=keep_browser,
        linger=linger,
        trace=trace,
        video=video,
        budget=budget,
        model_calls=model_calls,
    )
    run_id = run_index.find(here.reader, run)
    foreground_run.carry_out(
        lambda carrier, listener: carrier.resume(
            run_id, allow_changed=allow_changed, take_over=take_over, from_step=from_step, listener=listener
        ),
        here=here,
        as_json=as_json,
        quiet=quiet,
    )


def decide(
    run: flags.RunArgument,
    verdict: Annotated[Literal["done", "not-done", "skip"], flags.argument("VERDICT", "Whether the action happened.")],
    only: Annotated[bool, flags.option("--only", "Save the answer, and do not continue yet.")] = False,
    take_over: flags.TakeOverFlag = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    engine: flags.EngineFlag = None,
    browser_url: flags.BrowserUrlFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
    trace: flags.TraceFlag = None,
    video: flags.VideoFlag = None,
) -> None:
    """Tell a paused run whether its last side effect happened, and continue.

    A run pauses if that is unknown: it was killed in the middle of a click, or the site's answer was lost. Look at the site, then answer
    `done`: it happened, and is not repeated; `not-done`: it did not happen, and is done now; `skip`: continue without it.
    """
    here = host.load(
        headed=headed,
        browser_engine=engine,
        browser_url=browser_url,
        keep_browser=keep_browser,
        linger=linger,
        trace=trace,
        video=video,
    )
    run_id = run_index.find(here.reader, run)
    replaced = asyncio.run(Runtime.of(here).write_decision(run_id, verdict, take_over=take_over))
    _continue(here, run_id, replaced, only=only, as_json=as_json, quiet=quiet, decided=verdict)


def answer(
    run: flags.RunArgument,
    pairs: Annotated[list[str] | None, flags.argument("NAME=VALUE", "One or more answers.")] = None,
    only: Annotated[bool, flags.option("--only", "Save the answers, and do not continue yet.")] = False,
    take_over: flags.TakeOverFlag = False,
    as_json: flags.JsonFlag = False,
    quiet: flags.QuietFlag = False,
    headed: flags.HeadedFlag = None,
    engine: flags.EngineFlag = None,
    browser_url: flags.BrowserUrlFlag = None,
    keep_browser: flags.KeepBrowserFlag = None,
    linger: flags.LingerFlag = None,
    trace: flags.TraceFlag = None,
    video: flags.VideoFlag = None,
) -> None:
    """Answer the questions of a paused run, and continue.

    A run pauses if a `context` node asks a question. On a terminal you are asked for missing answers; elsewhere each needs a default. Answers are
    kept in the log, so they must not contain secrets.
    """
    here = host.load(
        headed=headed,
        browser_engine=engine,
        browser_url=browser_url,
        keep_browser=keep_browser,
        linger=linger,
        trace=trace,
        video=video,
    )
    if "=" in run:
        raise UsageError(
            "usage", f"`{run}` is an answer, and no run", fix=f"name the run first: runops answer last {run}"
        )
    run_id = run_index.find(here.reader, run)
    past, _reading = run_index.load_history(here.reader, run_id)
    questions = answers.asked(past, run_id)
    answers.masker_of(past, here.secrets)  # reads the secrets, so that an error that quotes an answer is masked
    known, missing = answers.read_all(questions, _given(pairs or []))
    if missing and not sys.stdin.isatty():
        raise answers.missing(run_id, missing, questions)
    for name in missing:
        known[name] = _asked(name, questions[name])
    replaced = asyncio.run(Runtime.of(here).write_answers(run_id, known, take_over=take_over))
    _continue(here, run_id, replaced, only=only, as_json=as_json, quiet=quiet, answered=known)


def _continue(
    here: host.Host,
    run_id: str,
    replaced: owners.Holder | None,
    *,
    only: bool,
    as_json: bool,
    quiet: bool,
    **what: Json,
) -> None:
    """Resume a run whose question is answered; with ``only``, report only that the answer is saved."""
    foreground_run.report_takeover(replaced)
    if not only:
        console.say("the answer is saved")
        foreground_run.carry_out(
            lambda carrier, listener: carrier.resume(run_id, listener=listener), here=here, as_json=as_json, quiet=quiet
        )
    console.say(f"saved\n  again  runops resume {run_id}")
    if as_json:
        console.result(endings.AnswerKept(run=run_id, **what).as_json())


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
