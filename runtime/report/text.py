"""Renders the report of a run as lines for a terminal, from the report alone."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterator

from nodes.values import Json
from runtime.display import costs
from runtime.display.facts import facts, result_text
from runtime.display.text import count, cut, described, duration, fit, from_here, harmless, joined, one_line, when
from runtime.report import said, timeline
from runtime.report.models import AttemptReport, RunReport, StepReport
from runtime.report.parts import Costs, ErrorReport, FileReport, FlagReport, FrameReport

BESIDE = 60  # characters of a step's description next to its name

SOURCES = {"model": "", "cassette": "from the cassette", "log": "from the log, where an earlier attempt left it"}


@dataclasses.dataclass(frozen=True, slots=True)
class Style:
    width: int | None = None  # its columns; None if lines are not cut
    bold: Callable[[str], str] = str
    marks: bool = True  # true if it can show the marks of a list of tasks
    moment: Callable[[str], str] = when  # renders a time


def whole(report: RunReport, style: Style) -> list[str]:
    lines = [*_head(report, style), *_tree(report, report.steps, {}, style)]
    files = [f"  {_kept(each)}  {count(each.size, 'byte')}" for each in report.files]
    cost = [f"  cost  {spent(report.costs)}"] if report.costs is not None else []
    return [*lines, *fully("output", report.output), *files, *cost, *_outcome(report, style)]


def step(report: RunReport, style: Style) -> list[str]:
    top = report.steps[0]
    lines = [f"{style.bold(one_line(top.path))}  {top.status}"]
    if top.costs is not None:
        lines.append(f"  cost  {spent(top.costs)}")
    for attempt in top.attempts:
        lines += _attempt(report, top, attempt)
    if not top.attempts and (error := error_in(report, top)):
        lines += [f"    {line}" for line in _error_lines(error)]
    lines += [f"  {line}" for line in timeline.pauses(report, style.moment)]
    lines += [f"  {line}" for line in _page(report, top)]
    lines += fully("value", top.value)
    return [*lines, *_tree(report, report.steps[1:], {top.path: 0}, style)]


def spent(totals: Costs) -> str:
    return costs.render(totals.model_dump())


def brief(totals: Costs) -> str:
    return costs.brief(totals.model_dump())


def fully(name: str, value: Json) -> list[str]:
    if value is None:
        return []
    return [f"  {name}", *(f"    {line}" for line in harmless(result_text(value)).split("\n"))]


def error_in(report: RunReport, step: StepReport) -> ErrorReport | None:
    """Return the step's last error; for a container, the run's error if its own condition, list or decision raised it."""
    if step.attempts:
        return step.attempts[-1].error
    return report.error if report.path == step.path else None


def _head(report: RunReport, style: Style) -> list[str]:
    head = (
        f"{style.bold(one_line(report.workflow))}  {report.run}  {report.state}  {timeline.span(report, style.moment)}"
    )
    names = ("file", "row", "inputs", "trial", "key", "parent", "budget")
    happened = (f"  {each}" for each in timeline.lines(report, style.moment))
    return [head, *facts({name: getattr(report, name) for name in names}), *happened]


def _tree(report: RunReport, steps: list[StepReport], depths: dict[str, int], style: Style) -> Iterator[str]:
    """Yield the steps with their errors; ``depths`` has the depth of each step already shown, by path."""
    for each in steps:
        depth = depths[each.path] = depths.get(each.parent or "", -1) + 1
        indent = "  " * depth
        yield _line(each, indent, style)
        if each.status not in ("ok", "recovered", "skipped") and (error := error_in(report, each)):
            yield from (f"{indent}    {line}" for line in _error_lines(error))
        if each.attempts:
            yield from (f"{indent}    {line}" for line in _noted(each.attempts[-1]))
        if each.folded:
            yield f"{indent}  ok  {count(each.folded, 'turn')}, shown one by one with --at {shlex.quote(each.path)}"


def _line(step: StepReport, indent: str, style: Style) -> str:
    parts = [one_line(step.label)]
    if step.attempts:
        last = step.attempts[-1]
        parts.append(cut(described(last.action or step.type, last.args), BESIDE))
        parts.append(count(len(step.attempts), "attempt") if len(step.attempts) > 1 else "")
        parts.append(one_line(f"= {step.preview}") if step.preview else "")
    left = joined(f"{indent}{step.status}", *parts)
    right = joined(brief(step.costs) if step.costs is not None else "", duration(step.seconds))
    return fit(left, right, style.width) if style.width else joined(left, right)


def _attempt(report: RunReport, step: StepReport, attempt: AttemptReport) -> Iterator[str]:
    unfinished = "running" if report.state == "running" else "open"
    status = attempt.status or f"{unfinished}: no outcome recorded"
    verdict = f"judged: {attempt.verdict}" if attempt.verdict else ""
    yield joined(f"  attempt {attempt.attempt}", status, verdict, duration(attempt.seconds), attempt.at)
    yield f"    {described(attempt.action or step.type, attempt.args)}  ({attempt.effect})"
    if attempt.error is not None:
        yield from (f"    {line}" for line in _error_lines(attempt.error))
    yield from (f"    {line}" for line in _noted(attempt, whole=True))
    for line in attempt.thread:
        yield f"    {joined(*_said(line))}"
        text = line.text if isinstance(line, said.TextLine) else ""
        yield from (f"      {each}" for each in harmless(text).split("\n") if text)


def _page(report: RunReport, step: StepReport) -> list[str]:
    found = next((each for each in reversed(report.evidence) if each.path == step.path), None)
    if found is None:
        return []
    where = one_line(" ".join(filter(None, [f'"{found.title}"' if found.title else "", found.url])))
    dialog = f"  with the dialog {one_line(found.dialog)!r}" if found.dialog else ""
    kept = [from_here(each.path) for each in (found.observation, found.screenshot) if each is not None]
    before = [f"before  {one_line(each.path)}  {_shown(each)}" for each in found.frames or ()]
    said = [f"said  {one_line(joined(each.text, each.url or ''))}" for each in found.messages or ()]
    trace = [f"trace  {viewer(from_here(found.trace.path))}"] if found.trace is not None else []
    return [f"page  {where}{dialog}", *(f"look  {one_line(each)}" for each in kept), *before, *said, *trace]


def _shown(frame: FrameReport) -> str:
    if frame.screenshot is None:
        return f"no picture: {one_line(frame.no_screenshot or '')}"
    return one_line(from_here(frame.screenshot.path)) + (
        f"  (after {one_line(frame.along)} as well)" if frame.along else ""
    )


def _kept(file: FileReport) -> str:
    is_trace = file.name.startswith("trace-") and file.type == "application/zip"
    return f"trace  {viewer(file.path)}" if is_trace else f"file  {one_line(file.path)}"


def viewer(trace: str) -> str:
    """Return the command that opens a trace."""
    return f"playwright show-trace {one_line(shlex.quote(trace))}"


def _outcome(report: RunReport, style: Style) -> list[str]:
    question = report.asks
    if question is not None:
        how = f"  answer  {report.next}" if report.next else "  it was a proof: no answer continues with this run"
        return [f"{style.bold('PAUSED')} {one_line(question.path or '')}   {harmless(question.message)}", how]
    if report.next is None:
        return [report.state]
    error = report.error.message if report.error is not None else ""
    if report.state == "out-of-budget" and report.trial is None:
        head = f"{style.bold('OUT OF BUDGET')} {harmless(error)}"
    else:
        # The steps above do not show an error outside all steps.
        head = f"{report.state}  {harmless('' if report.path else error)}".rstrip()
    return [head, f"  again  {report.next}"]


def _noted(attempt: AttemptReport, *, whole: bool = False) -> Iterator[str]:
    yield from (f"dismissed  {harmless(each)}" for each in attempt.dismissed)
    yield from _flag_lines(attempt.flags, whole=whole)


def _flag_lines(flags: list[FlagReport], *, whole: bool = False) -> Iterator[str]:
    for flag in flags:
        yield f"flag  {flag.code}: {harmless(flag.message)}"
        yield from (f"  {line}" for line in (facts(flag.evidence) if whole else ()))


def _error_lines(error: ErrorReport) -> list[str]:
    return [f"{error.code}: {harmless(error.message)}", *facts(error.evidence or {})]


def _said(line: said.OfRun) -> Iterator[str]:
    match line:
        case said.UserLine() | said.ReasoningLine() | said.ToolResultLine():
            yield {"user": "asked", "reasoning": "thought", "tool_result": "shown"}[line.kind]
        case said.RequestedLine():
            yield from ("request", one_line(line.model))
            yield f"about {line.estimate:,} tokens in, at most {line.limit:,} out"
            yield f"try {line.tries}" if line.tries != 1 else ""
        case said.SubmittedLine():
            yield from ("submitted", one_line(line.response), "the server works on it in the background")
        case said.ModelErrorLine():
            yield from ("failed", f"{line.error.code}: {one_line(line.error.message)}")
            yield from _cost(line)
            yield f"again after {duration(line.again)}" if line.again is not None else "not sent again"
        case said.AssistantLine():
            yield from ("answer", one_line(line.model), SOURCES[line.source])
            yield from _cost(line) if line.source == "model" else ()
        case said.DoneLine():
            yield from ("did", described(line.action or line.node, line.args), line.status or said.OPEN)
            yield line.error.code if line.error is not None else ""
            yield duration(line.seconds)
        case said.OpenLine():
            yield line.text


def _cost(line: said.AssistantLine | said.ModelErrorLine) -> Iterator[str]:
    if line.usage is not None:
        yield costs.tokens(line.usage.input, line.usage.output)
    yield costs.money(line.dollars) if line.dollars is not None else ""
    yield duration(line.seconds)
