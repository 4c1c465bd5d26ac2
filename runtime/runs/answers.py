"""Reading, checking and writing the answers to the questions of a paused run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodes import errors
from nodes.errors import UsageError
from nodes.values import Json, as_text
from runtime.language import inputs, yaml_text
from runtime.log import history
from runtime.log.writer import LogWriter
from runtime.secrets import masking, sources
from runtime.services.questions import REASON, Question
from runtime.workspace import host, run_index

BLANK = "…"
"""Stands for an answer in a printed command, and is none itself."""


def how(run: str, reason: str, evidence: Json) -> str:
    if reason in run_index.WITHOUT_QUESTION:
        return f"runops show {run}   (it was a proof: no answer continues with this run)"
    if reason in run_index.ABOUT_PAGE:
        return f"runops resume {run} --from STEP"
    if reason != REASON:
        # Pasted as it is, it must not decide: the verdicts are no part of the command, and a shell would take `|` as a pipe.
        decide = f"runops decide {run} VERDICT   (VERDICT: done, not-done or skip)"
        asks = isinstance(evidence, dict) and "resume_asks" in evidence
        return f"runops resume {run}   (asks the site again), or {decide}" if asks else decide
    names = evidence["questions"] if isinstance(evidence, dict) else {}
    return " ".join(["runops answer", run, *(f"{name}={BLANK}" for name in names)])


def question_fields(reason: str, evidence: Json) -> dict[str, Json]:
    known: dict[str, Any] = evidence if isinstance(evidence, dict) else {}
    if reason == REASON:
        return {name: question_text(question) for name, question in known.get("questions", {}).items()}
    because = {"because": known["error"]["message"]} if known.get("error") else {}
    return because | {name: value for name, value in known.items() if name not in OF_PROGRAMS}


OF_PROGRAMS = frozenset({"call", "calls", "error", "args", "resume_asks", "unanswered"})
"""Names in the evidence of a pause that add nothing for a person."""


def question_text(question: Question) -> str:
    choices: list[Json] | None = question.get("choices")
    may_be = inputs.WORDS[question["type"]] if choices is None else " or ".join(as_text(each) for each in choices)
    default = f"; default {as_text(question['default'])}" if question.get("default") not in (None, "") else ""
    return f"{question['question']}  ({may_be}{default})"


def asked(past: history.History, run: str) -> dict[str, Question]:
    """Return the questions that the run waits with. Raises UsageError ``nothing-to-answer``."""
    question = past.question
    if past.status == "paused" and question is not None and past.answer is None:
        if question.data["reason"] == REASON:
            return question.data["evidence"]["questions"]
        said, fix = "waits for a decision, and asks nothing else", f"`{how(run, str(question.data['reason']), None)}`"
        if (stopped := run_index.WITHOUT_QUESTION.get(str(question.data["reason"]))) is not None:
            said = f"stopped before {stopped}"
            fix = "have the action done by a run: `runops run FILE`"
        raise UsageError("nothing-to-answer", f"run {run} {said}", fix=fix)
    state = "was answered already" if past.status == "paused" else ENDED.get(str(past.status), f"is {past.status}")
    others = "`runops runs --state paused` lists the runs that wait"
    fix = others if past.status == "passed" else f"continue with `runops resume {run}`; {others}"
    raise UsageError("nothing-to-answer", f"run {run} asks nothing: it {state}", fix=fix)


ENDED = {"passed": "has passed", "failed": "has failed", "interrupted": "was interrupted"}

YES_NO = {"yes": True, "no": False}


def read(name: str, question: Question, text: str) -> Json:
    """Convert a text to an answer by the question's type and choices. Raises UsageError ``bad-answer``."""
    if text.strip() == BLANK:
        fix = f"give it as `{name}=ANSWER`"
        raise UsageError("bad-answer", f"`{name}={BLANK}` holds no answer yet: {question['question']}", fix=fix)
    choices: list[Json] | None = question.get("choices")
    if choices is not None:
        known = next((choice for choice in choices if as_text(choice) == text.strip()), None)
        if known is not None:
            return known
        fix = f"it is one of {', '.join(as_text(choice) for choice in choices)}"
        raise UsageError("bad-answer", f"`{name}` cannot be {text!r}: {question['question']}", fix=fix)
    kind: inputs.Kind = question["type"]
    value: Json = text if kind == "string" else yaml_text.plain(text.strip())
    if kind == "boolean":
        value = YES_NO.get(text.strip().casefold(), value)
    if not inputs.fits(value, kind):
        raise UsageError(
            "bad-answer",
            f"`{name}` must be {inputs.WORDS[kind]}, and {text!r} is not: {question['question']}",
            fix=f"give it as `{name}={ {'integer': '12', 'number': '12.5'}.get(kind, 'true') }`",
        )
    return value


def read_all(questions: Mapping[str, Question], given: Mapping[str, str]) -> tuple[dict[str, Json], list[str]]:
    """Return the known answers with defaults, and the names of missing ones. Raises UsageError ``unknown-answer``, ``bad-answer``."""
    for name in given:
        if name not in questions:
            close = errors.near(name, questions)
            fix = f"did you mean `{close}`?" if close else f"it asks for {', '.join(questions)}"
            raise UsageError("unknown-answer", f"the run does not ask for `{name}`", fix=fix)
    known = {name: read(name, questions[name], text) for name, text in given.items()}
    defaults = {name: each["default"] for name, each in questions.items() if "default" in each and name not in known}
    return {**known, **defaults}, [name for name in questions if name not in known and name not in defaults]


def missing(run: str, names: Sequence[str], questions: Mapping[str, Question]) -> UsageError:
    listed = ", ".join(f"`{name}` ({questions[name]['question']})" for name in names)
    return UsageError(
        "missing-answer",
        f"the run asks for {listed}",
        fix=f"type: runops answer {run} {' '.join(f'{name}={BLANK}' for name in names)}",
    )


def masker_of(past: history.History, source: sources.SecretSource) -> masking.Masker:
    """Return a masker with the run's secrets; no answer may contain one. Raises SetupError if a secret is not set."""
    assert past.header is not None
    return masking.Masker(sources.read(source, past.header.secrets, Path(past.header.file).parent))


async def write(given: host.Host, run: str, answers: Mapping[str, Json], *, take_over: bool = False) -> LogWriter:
    past, _reading = await asyncio.to_thread(run_index.load_history, given.reader, run)
    masker = masker_of(past, given.secrets)
    for name, value in answers.items():
        if masker.json(value) != value:
            raise UsageError(
                "secret-in-answer",
                f"the answer `{name}` holds a secret, and answers are kept in the log",
                fix="answer without it: a field that takes secrets reads `secrets.NAME`",
            )

    def same(now: history.History) -> None:
        asked(now, run)
        if now.question != past.question:
            raise UsageError("nothing-to-answer", f"run {run} asks something else by now", fix=f"`runops show {run}`")

    async with run_index.spoken(given.store, run, masker, same, take_over=take_over) as (writer, question):
        writer.note("answered", path=question["path"], answers=dict(answers))
    return writer
