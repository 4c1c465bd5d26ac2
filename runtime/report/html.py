"""Renders the report of a session as one HTML page without scripts, links or files beside it. Every text is escaped: nothing in it is live."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from nodes.values import Json
from runtime.display import plans
from runtime.display.facts import facts
from runtime.display.text import count, cut, duration, harmless, joined, one_line, value_text, when
from runtime.log import entries
from runtime.observation import page_text
from runtime.report import said, timeline
from runtime.report.models import RunReport, SessionReport, StepReport
from runtime.report.parts import ErrorReport
from runtime.report.text import brief, error_in, spent

BESIDE = 100  # characters of arguments shown beside a folded call
GOOD = frozenset({"ok", "recovered", "passed"})

# No script, no request: the page shows what it holds, and nothing else.
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --soft: color-mix(in srgb, currentColor 8%, transparent); --dim: color-mix(in srgb, currentColor 60%, transparent) }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.4rem; margin-bottom: .2rem }} h2 {{ font-size: 1.05rem; margin: 2rem 0 .5rem }} h3 {{ font-size: .9rem; margin: .8rem 0 .2rem }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: .6rem .8rem; border-radius: .4rem; margin: .3rem 0; font-size: .82rem; max-height: 34rem; overflow-y: auto }}
details {{ border-left: 3px solid var(--soft); padding-left: .8rem; margin: .35rem 0 }} summary {{ cursor: pointer; overflow-wrap: anywhere }}
table {{ border-collapse: collapse }} td, th {{ text-align: left; padding: .15rem .9rem .15rem 0; vertical-align: top }} td {{ overflow-wrap: anywhere }}
.text {{ white-space: pre-wrap; overflow-wrap: anywhere }} .you {{ background: var(--soft); padding: .6rem .8rem; border-radius: .4rem }}
.who {{ color: var(--dim); font-size: .8rem; margin-top: 1rem }} .dim {{ color: var(--dim) }} .bad {{ color: #c33 }} .page {{ border: 1px dashed var(--dim) }}
img {{ max-width: 100%; border: 1px solid var(--soft) }} ul.plan {{ list-style: none; padding-left: 0; white-space: pre-wrap }}
</style></head><body>
"""


def of_session(report: SessionReport, runs: Mapping[str, RunReport], pictures: Mapping[str, bytes]) -> str:
    """Return the page of a session. ``runs`` and ``pictures``, by id and SHA-256, are those that can be read."""
    return _page(report.title, _Session(report, runs, pictures).whole())


def pictures_of(report: SessionReport) -> list[str]:
    """Return the SHA-256 of the pictures that were shown to models."""
    shown = (each.picture for each in report.said if isinstance(each, said.ToolResultLine))
    return list(dict.fromkeys(each.blob.sha256 for each in shown if each is not None))


def runs_of(report: SessionReport) -> list[str]:
    """Return the runs that the session began, in order."""
    notes = (each for each in report.said if isinstance(each, said.NoteLine) and each.name == "child-started")
    return list(dict.fromkeys(str(each.data["run"]) for each in notes))


def _page(title: str, parts: Iterable[str]) -> str:
    return "\n".join([_HEAD.format(title=_escaped(one_line(title))), *parts, "</body></html>\n"])


def _escaped(text: str) -> str:
    return escape(harmless(text))


def _tag(name: str, text: str, kind: str = "") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f"<{name}{of_kind}>{_escaped(text)}</{name}>"


def _folded(summary: str, parts: Iterable[str], *, opened: bool = False) -> str:
    """Return an element that opens on a click; ``summary`` is HTML."""
    return "\n".join([f"<details{' open' if opened else ''}><summary>{summary}</summary>", *parts, "</details>"])


def _head_of(status: str, name: str, *more: str) -> str:
    mark = f'<span class="{"dim" if status in GOOD else "bad"}">{_escaped(status)}</span>'
    rest = "  ".join(one_line(each) for each in more if each)
    return f'{mark} <b>{_escaped(one_line(name))}</b> <span class="dim">{_escaped(rest)}</span>'


def _block(title: str, text: str, kind: str = "") -> list[str]:
    return [_tag("h3", title), _tag("pre", text, kind)]


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(["<table>", *(f"<tr>{_tag('th', one)}{_tag('td', two)}</tr>" for one, two in rows), "</table>"])


def _value(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _arguments(text: str | None) -> Json:
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text


def _error(error: ErrorReport) -> list[str]:
    lines = [f"{error.code}: {error.message}", *facts(error.evidence or {})]
    return [_tag("pre", "\n".join([*lines, *([f"fix: {error.fix}"] if error.fix else [])]), "bad")]


class _Session:
    def __init__(self, report: SessionReport, runs: Mapping[str, RunReport], pictures: Mapping[str, bytes]) -> None:
        self._report, self._runs, self._pictures = report, runs, pictures
        self._results = {each.call: each for each in report.said if isinstance(each, said.ResultLine)}
        self._calls = {(each.thread, each.asked): each for each in report.said if isinstance(each, said.CallLine)}
        self._outputs = {
            (each.thread, each.asked): each for each in report.said if isinstance(each, said.ToolResultLine)
        }
        self._begun: dict[str, list[str]] = {}
        for each in report.said:
            if isinstance(each, said.NoteLine) and each.name == "child-started" and "call" in each.data:
                self._begun.setdefault(str(each.data["call"]), []).append(str(each.data["run"]))

    def whole(self) -> Iterator[str]:
        report = self._report
        yield _tag("h1", report.title)
        about = [f"about run {report.about}" if report.about else "", report.file or "", f"mode {report.mode}"]
        yield _tag("p", joined(report.session, report.state, when(report.started), *about), "dim")
        yield from self._keeps()
        yield _tag("h2", "Conversation")
        yield from self._talk(entries.SESSION_THREAD)
        yield from self._costs()

    def _keeps(self) -> Iterator[str]:
        report = self._report
        if report.description is not None:
            yield _tag("p", str(report.description.value), "text")
        if report.plan is not None:
            yield _tag("h2", "Plan")
            lines = plans.as_todo(report.plan.value, plans.DRAWN)
            yield f'<ul class="plan">{"".join(_tag("li", each) for each in lines)}</ul>'
        if report.variables:
            yield _tag("h2", "Variables")
            yield _table((name, value_text(each.value)) for name, each in report.variables.items())

    def _costs(self) -> Iterator[str]:
        report = self._report
        if report.costs is None and not report.runs:
            return
        yield _tag("h2", "Costs")
        rows = [("all", spent(report.costs))] if report.costs is not None else []
        if len(report.spent) > 1:
            rows += [(path or "itself", brief(each)) for path, each in report.spent.items()]
        yield _table([*rows, *((f"run {run}", brief(each)) for run, each in report.runs.items())])

    def _talk(self, thread: str) -> Iterator[str]:
        for line in self._report.said:
            if not said.is_told_in(line, thread):
                continue
            if (typed := said.typed(line)) is not None:
                yield _tag("div", "You", "who")
                yield from _spoken(typed, "text you")
            elif said.is_resume(line):
                yield _tag("p", f"the session was resumed, {when(line.at)}", "dim")
            else:
                yield from self._line(line, thread)

    def _line(self, line: said.OfSession, thread: str) -> Iterator[str]:
        match line:
            case said.UserLine():
                yield _tag("div", "You" if line.mode is not None else "Asked", "who")
                yield from _spoken(line.text, "text you")
            case said.HeardLine():
                yield _tag("div", "You, and the model does not have it yet", "who")
                yield from _spoken(line.text, "text you")
            case said.ArrivedLine():
                yield _tag("div", f"Model: {said.BROKEN}", "who")
                yield from _spoken(line.text, "text")
            case said.AssistantLine():
                yield _tag("div", joined("Model", line.model, when(line.at)), "who")
                yield from _spoken(line.text, "text")
                for call in line.calls or ():
                    yield self._call(call, thread)
            case said.ModelErrorLine():
                yield _tag("div", "Model", "who")
                yield from _spoken(line.text, "text")
                yield from _error(line.error)
            case said.ReasoningLine():
                yield _folded('<span class="dim">reasoning</span>', [_tag("pre", line.text)])
            case said.SummaryLine():
                title = f'<span class="dim">{_escaped(f"summary of the lines up to {line.upto}")}</span>'
                yield _folded(title, [_tag("pre", line.text)])
            case said.EventLine(asked=str()):
                told = [_tag("pre", page_text.unfenced(line.text))]
                name = line.what or f"run {line.run}"
                report = self._runs.get(line.run or "")
                state = report.state if report is not None else ""
                yield _folded(_head_of(state, name, line.run or ""), _run(report) if report is not None else told)
            case said.EventLine():
                yield _tag("p", line.text, "dim text")
            case _:
                pass

    def _call(self, asked: said.AskedCall, thread: str) -> str:
        call, output = self._calls.get((thread, asked.id)), self._outputs.get((thread, asked.id))
        result = self._results.get(call.call) if call is not None else None
        arguments = call.args if call is not None else _arguments(asked.arguments)
        status = result.status if result is not None else "refused" if output is not None else said.OPEN
        seconds = duration(result.seconds) if result is not None else ""
        known = (
            {key: each for key, each in arguments.items() if each is not None} if isinstance(arguments, dict) else {}
        )
        head = _head_of(status, asked.name, cut(value_text(known), BESIDE) if known else "", seconds)
        parts = _block("arguments", _value(arguments))
        if call is not None and entries.delegate_thread(call.call) in {each.thread for each in self._report.said}:
            parts += [_tag("h3", "what it said and did"), *self._talk(entries.delegate_thread(call.call))]
        for run in self._begun.get(call.call, ()) if call is not None else ():
            report = self._runs.get(run)
            if report is not None:
                parts.append(_folded(_head_of(report.state, f"run {report.workflow}", run), _run(report)))
            else:
                parts.append(_tag("p", f"run {run}: its log is gone", "dim"))
        if result is not None and result.error is not None:
            parts += _error(result.error)
        if output is not None:
            parts += [_tag("h3", "output"), *_spoken(output.text, "text"), *self._picture(output)]
        return _folded(head, parts)

    def _picture(self, output: said.ToolResultLine) -> list[str]:
        data = self._pictures.get(output.picture.blob.sha256) if output.picture is not None else None
        if data is None:
            return []
        return [f'<img alt="a picture of the page" src="data:image/png;base64,{base64.b64encode(data).decode()}">']


def _spoken(text: str, kind: str) -> Iterator[str]:
    """Return what was said; texts of pages in it stand in a frame."""
    for number, each in enumerate(page_text.parts(text)):
        if each.strip():
            yield _tag("pre", each, "page") if number % 2 else _tag("div", each.strip(), kind)


def _run(report: RunReport) -> list[str]:
    """Return the steps of a run, each to open: arguments, errors, values; containers hold theirs."""
    parts = [_tag("p", each, "dim") for each in timeline.lines(report, when)]
    if (ends := report.asks or report.error) is not None:
        parts += [_tag("p", f"at {report.path}", "dim")] if report.path else []
        parts += _error(ends)
    children: dict[str | None, list[StepReport]] = {}
    for each in report.steps:
        children.setdefault(each.parent, []).append(each)

    def steps(parent: str | None) -> Iterator[str]:
        for each in children.get(parent, ()):
            inside = [*_step(report, each), *steps(each.path)]
            head = _head_of(
                each.status, each.label, each.type, cut(one_line(each.preview), BESIDE), duration(each.seconds)
            )
            yield _folded(head, inside) if inside else f"<div>{head}</div>"
            if each.folded:
                yield _tag("p", f"{count(each.folded, 'turn')} like it", "dim")

    parts += steps(None)
    if report.output is not None:
        parts += _block("output", _value(report.output))
    parts += [_tag("p", f"file {each.path}", "dim") for each in report.files]
    return parts


def _step(report: RunReport, step: StepReport) -> Iterator[str]:
    for attempt in step.attempts:
        if attempt.args:
            yield from _block(
                f"arguments{f' of attempt {attempt.attempt}' if len(step.attempts) > 1 else ''}", _value(attempt.args)
            )
        if attempt.thread:
            yield _folded('<span class="dim">exchange with the model</span>', _exchange(attempt.thread))
        if attempt.error is not None:
            yield from _error(attempt.error)
    if not step.attempts and (error := error_in(report, step)) is not None:
        yield from _error(error)
    if step.value is not None:
        yield from _block("value", _value(step.value))
    if step.costs is not None:
        yield _tag("p", f"cost  {brief(step.costs)}", "dim")


def _exchange(thread: Iterable[said.OfRun]) -> Iterator[str]:
    for line in thread:
        match line:
            case said.UserLine():
                yield _tag("h3", "asked")
                yield from _spoken(line.text, "text")
            case said.AssistantLine():
                yield _tag("h3", joined("model", line.model))
                yield from _spoken(line.text, "text")
                for call in line.calls or ():
                    yield from _block(call.name, _value(_arguments(call.arguments)))
            case said.ToolResultLine():
                yield _tag("h3", "output")
                yield from _spoken(line.text, "text")
            case said.ModelErrorLine():
                yield from _error(line.error)
            case _:
                pass
