"""What the page shows of cases and runs: the fields of their reports that a person reads, without those that have no value."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from nodes.values import Json
from runtime.display import costs
from runtime.display.facts import FIRST
from runtime.display.text import count, cut, duration, from_here, one_line, size, value_text
from runtime.observation import page_text
from runtime.report import said, timeline
from runtime.report.endings import BatchReport, CaseRecord, PauseReport, RunRecord
from runtime.report.models import AttemptReport, RunReport, StepReport
from runtime.report.parts import (
    Costs,
    DifferenceReport,
    ErrorReport,
    EvidenceReport,
    FileReport,
    FlagReport,
    FrameReport,
)
from runtime.report.text import SOURCES, described, error_in

BESIDE = 90  # characters of a step's description, and of its value, next to its name

Part = dict[str, Any]
"""A part of the page's data: JSON, but for texts and values of any length."""


@dataclasses.dataclass(frozen=True)
class Whole:
    """A text or a value that the page may have to shorten."""

    value: Json

    @functools.cached_property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False, indent=2)


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    title: str
    head: Part
    cases: list[Part]


def of_batch(report: BatchReport) -> Page:
    shard = f"shard {report.shard.number} of {report.shard.of}" if report.shard is not None else None
    cases = [_case(each, report.details) for each in report.runs]
    title = count(len(cases), "case") if len(cases) != 1 else cases[0]["name"]
    missing = [each for each in report.selected if each not in {case["case"] for case in cases}]
    return Page(title, _given(started=moment(report.started), shard=shard, elsewhere=len(missing)), cases)


def of_run(report: RunReport, green: str | None, since_green: Sequence[DifferenceReport] | None) -> Page:
    asks = report.asks
    run = _run(report, None)
    about = {"case": report.file, "name": report.workflow, "file": report.file, "status": report.state}
    case = about | _given(
        started=moment(report.started),
        seconds=report.seconds,
        took=duration(report.seconds),
        cost=_money(report.costs),
        error=_error(asks or report.error),
        path=report.path,
        place=report.place,
        green=green,
        since_green=_differences(since_green),
        runs=[run],
    )
    return Page(report.workflow, {}, [case])


def moment(at: str) -> str:
    """Format a time the same on each machine."""
    return f"{dt.datetime.fromisoformat(at).astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC" if at else ""


def _given(**fields: Any) -> Part:
    """Return the fields that have a value."""
    return {
        name: each
        for name, each in fields.items()
        if each is not None and each is not False and each not in ("", [], {})
    }


def _case(case: CaseRecord, details: Mapping[str, RunReport]) -> Part:
    seconds = sum(each.seconds or 0 for each in case.attempts)
    return {name: getattr(case, name) for name in ("case", "name", "file", "status")} | _given(
        row=case.row,
        tags=case.tags,
        notes=case.notes,
        host=case.host,
        started=moment(case.started),
        seconds=seconds,
        took=duration(seconds) if case.attempts else "",
        cost=_money(*(each.costs for each in case.attempts)),
        error=_error(case.error) or _question(case.question),
        path=case.path,
        place=case.place,
        live=case.live,
        differed=_differences(case.differed),
        green=case.green,
        since_green=_differences(case.since_green),
        runs=[_recorded(each, details) for each in _runs_of(case)],
    )


def _runs_of(case: CaseRecord) -> list[RunRecord]:
    """Return the runs of a case; of one that several processes did, the last record."""
    last = {each.run: each for each in case.attempts if each.run is not None}
    return [each for each in case.attempts if each.run is None or last[each.run] is each]


def _recorded(record: RunRecord, details: Mapping[str, RunReport]) -> Part:
    report = details.get(record.run or "")
    if report is not None:
        # The record has the file as it was named.
        return _run(report, record.exit) | _given(place=record.place)
    return _given(
        run=record.run,
        status=record.status,
        took=duration(record.seconds),
        error=_error(record.error) or _question(record.question),
        path=record.path,
        exit=record.exit,
        files=[_file(each) for each in record.files],
    )


def _run(report: RunReport, code: int | None) -> Part:
    places = {each.path: number for number, each in enumerate(report.steps)}
    return _given(
        run=report.run,
        status=report.state,
        exit=str(code) if code is not None else None,
        started=moment(report.started),
        took=timeline.took(report),
        spans=[[each.started, each.last] for each in report.processes],
        facts=_facts_of(report, code),
        happened=timeline.lines(report, moment),
        error=_error(report.asks or report.error),
        asks=report.asks is not None,
        path=report.path,
        place=report.place,
        next=report.next,
        steps=[_step(report, each, places) for each in report.steps],
        evidence=[_evidence(each) for each in report.evidence],
        files=[_file(each) for each in report.files],
        flags=[_flag(each) for each in report.flags],
        output=Whole(report.output) if report.output is not None else None,
    )


def _facts_of(report: RunReport, code: int | None) -> list[list[str]]:
    inputs = ", ".join(f"{name}={value_text(value)}" for name, value in report.inputs.items())
    rows = {
        "file": from_here(report.file),
        "row": report.row or "",
        "inputs": inputs,
        "secrets": ", ".join(report.secrets),
        "trial of": value_text(report.trial) if report.trial else "",
        "key": report.key or "",
        "session": report.parent or "",
        "costs": costs.render(report.costs.model_dump()) if report.costs is not None else "",
        "budget": report.budget or "",
        "processes": str(len(report.processes)) if len(report.processes) > 1 else "",
        "tolerated": count(report.tolerated, "failure") if report.tolerated else "",
        "exit code": str(code) if code is not None else "",
    }
    return [[name, one_line(text)] for name, text in rows.items() if text]


def _step(report: RunReport, step: StepReport, places: Mapping[str, int]) -> Part:
    last = step.attempts[-1] if step.attempts else None
    preview = step.preview or (value_text(step.value) if step.attempts and step.value is not None else "")
    return {name: getattr(step, name) for name in ("path", "label", "type", "status")} | _given(
        parent=places.get(step.parent) if step.parent else None,
        seconds=step.seconds,
        does=_beside(described(last.action or step.type, last.args)) if last is not None else None,
        preview=_beside(preview),
        value=Whole(step.value) if step.value is not None else None,
        page=step.page,
        cost=costs.render(step.costs.model_dump()) if step.costs is not None else None,
        error=_error(error_in(report, step)) if not step.attempts else None,
        attempts=[_attempt(each) for each in step.attempts],
    )


def _beside(text: str) -> str:
    # Measuring columns is slow, and many values are long.
    return cut(one_line(text[: 4 * BESIDE]), BESIDE)


def _attempt(attempt: AttemptReport) -> Part:
    args = cast("dict[str, Json]", attempt.args) if isinstance(attempt.args, dict) else {}
    return _given(
        at=attempt.at,
        seconds=attempt.seconds,
        status=attempt.status,
        effect=attempt.effect,
        action=attempt.action,
        args=[[name, Whole(args[name])] for name in _in_order(args)],
        error=_error(attempt.error),
        verdict=attempt.verdict,
        flags=[_flag(each) for each in attempt.flags],
        dismissed=attempt.dismissed,
        thread=[part for line in attempt.thread if (part := _line(line)) is not None],
    )


def _in_order(args: Mapping[str, Json]) -> list[str]:
    """Return the names of arguments: the target first, what is checked afterwards last. The action is shown already."""
    names = [name for name, value in args.items() if value is not None and name not in ("action", "query")]
    return sorted(names, key=lambda name: {"target": 0, "instruction": 0, "verify": 2, "budget": 2}.get(name, 1))


def _line(line: said.OfRun) -> Part | None:
    """Return what a line says, and who says it; None for one that only announces a request."""
    match line:
        case said.UserLine():
            return _given(who="asked", text=_spoken(line.text))
        case said.ReasoningLine():
            return _given(who="reasoning", text=_spoken(line.text))
        case said.ToolResultLine():
            picture = line.picture.blob.sha256 if line.picture is not None else None
            return _given(who="shown", text=_spoken(line.text), picture=picture)
        case said.AssistantLine():
            calls = [[each.name, Whole(each.arguments or "")] for each in line.calls or ()]
            source = SOURCES[line.source]
            return _given(
                who="answer", model=line.model, source=source, text=_spoken(line.text), calls=calls, **_used(line)
            )
        case said.ModelErrorLine():
            again = f"sent again after {duration(line.again)}" if line.again is not None else ""
            return _given(who="failed", text=_spoken(line.text), error=_error(line.error), source=again, **_used(line))
        case said.DoneLine():
            does = described(line.action or line.node, line.args)
            return _given(
                who="did",
                does=does,
                status=line.status or "open",
                error=_error(line.error),
                took=duration(line.seconds),
            )
        case said.OpenLine():
            return _given(who="open", text=_spoken(line.text))
        case _:
            return None


def _used(line: said.AssistantLine | said.ModelErrorLine) -> Part:
    tokens = costs.tokens(line.usage.input, line.usage.output) if line.usage is not None else ""
    return {"tokens": tokens, "cost": costs.money(line.dollars) if line.dollars else "", "took": duration(line.seconds)}


def _spoken(text: str) -> list[Whole]:
    """Split a text into our words and texts of pages, in turns."""
    parts = [each.strip("\n") for each in page_text.parts(text)]
    return [Whole(each) for each in parts] if any(parts) else []


def _error(error: ErrorReport | None) -> Part | None:
    if error is None:
        return None
    evidence = error.evidence or {}
    names = sorted(evidence, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    facts = [[name, _texts(evidence[name])] for name in names if evidence[name] not in (None, "", [], {})]
    return _given(
        code=error.code, who=error.who, message=Whole(error.message), facts=facts, fix=error.fix, phase=error.phase
    )


def _question(asked: PauseReport | None) -> Part | None:
    if asked is None:
        return None
    return _error(ErrorReport(code=asked.reason, message=asked.message, evidence=asked.evidence, fix=asked.fix))


def _texts(value: Json) -> list[Whole]:
    return [Whole(value_text(each)) for each in (value if isinstance(value, list) else [value])]


def _flag(flag: FlagReport) -> Part:
    facts = [[name, _texts(value)] for name, value in flag.evidence.items()]
    return _given(path=flag.path, code=flag.code, message=Whole(flag.message), facts=facts)


def _evidence(found: EvidenceReport) -> Part:
    """Return the pages in their order, that of the failure last."""
    views = [_given(**_view(each), along=each.along) for each in found.frames or ()]
    return _given(
        path=found.path,
        views=[*views, _given(**_view(found), title=found.title)],
        dialog=found.dialog,
        observation=_file(found.observation),
        messages=[
            _given(at=each.at, kind=each.kind, text=Whole(each.text), url=each.url, status=each.status)
            for each in found.messages or ()
        ],
        trace=_file(found.trace),
    )


def _view(page: FrameReport | EvidenceReport) -> Part:
    shot = page.screenshot
    picture = shot.sha256 if shot is not None else None
    return {"path": page.path, "url": page.url, "picture": picture, "file": _file(shot), "none": page.no_screenshot}


def _file(file: FileReport | None) -> Part | None:
    if file is None:
        return None
    return _given(name=file.name, path=from_here(file.path), size=size(file.size), type=file.type)


def _differences(found: Iterable[DifferenceReport] | None) -> list[Part] | None:
    if found is None:
        return None
    return [
        _given(path=each.path, what=each.what, within=each.within, before=Whole(each.before), after=Whole(each.after))
        for each in found
    ]


def _money(*spent: Costs | None) -> str | None:
    """Return the price of all together; None if no model was asked."""
    known = [each for each in spent if each is not None]
    if not any(each.paid for each in known):
        return None
    return " + ".join(costs.price(each.model_dump()) for each in known if each.paid)
