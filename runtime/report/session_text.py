"""Renders the report of a session as lines for a terminal, from the report alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from nodes.values import Json
from runtime.context.briefs import shown
from runtime.display import costs, delegates, plans
from runtime.display.facts import facts
from runtime.display.text import count, cut, duration, harmless, joined, one_line, value_text, when
from runtime.language import inputs
from runtime.log import entries, ledger
from runtime.observation import page_text
from runtime.report import said
from runtime.report.models import BuildReport, SessionReport, VersionReport
from runtime.report.text import Style, brief, fully, spent

BESIDE = 80  # characters of arguments shown next to their tool
ITSELF = "itself"  # label of the session's own costs beside those of its subagents
BENCH = "bench"  # versions not listed: values of nodes that a build ran alone, as the call that ran them shows them
WHO = 7  # columns for the kind of a line


def whole(report: SessionReport, style: Style, *, full: bool = False) -> list[str]:
    """Return all lines; ``full`` has whole arguments and outputs of calls."""
    lines = _Lines(report, style, full=full)
    return [*lines.head(), *lines.keeps(), *lines.talk(entries.SESSION_THREAD, ""), *lines.tail()]


def lines(report: SessionReport, style: Style) -> list[str]:
    every = _Lines(report, style)
    return [text for each in report.said for text in every.in_full(each)]


class _Lines:
    def __init__(self, report: SessionReport, style: Style, *, full: bool = False) -> None:
        self._report, self._style, self._full = report, style, full
        self._outputs = {
            (each.thread, each.asked): each.text for each in report.said if isinstance(each, said.ToolResultLine)
        }
        self._results = {each.call: each for each in report.said if isinstance(each, said.ResultLine)}
        self._threads = {each.thread for each in report.said}
        self._answered = {(each.thread, each.asked) for each in report.said if isinstance(each, said.ToolResultLine)}
        self._unfinished = "running" if report.state == "running" else said.OPEN

    def head(self) -> list[str]:
        report, forked = self._report, self._report.forked
        known: dict[str, Json] = {
            "run": report.about,
            "file": report.file,
            "parent": report.parent,
            "forked": f"from {forked.conversation}, line {forked.line}" if forked is not None else None,
            "mode": report.mode,
            "budget": report.budget,
        }
        title = self._style.bold(one_line(report.title))
        return [f"{title}  {report.session}  {report.state}  {when(report.started)}", *facts(known)]

    def keeps(self) -> Iterator[str]:
        report = self._report
        if report.description is not None:
            yield f"  description  {one_line(str(report.description.value))}"
        if report.plan is not None:
            yield f"  plan  {_version(report.plan)}"
            marks = plans.DRAWN if self._style.marks else plans.MARKS
            yield from (f"    {line}" for line in plans.as_todo(report.plan.value, marks))
        if report.variables:
            yield "  variables"
            wide = max(len(one_line(name)) for name in report.variables)
            for name, each in report.variables.items():
                yield f"    {one_line(name):<{wide}}  {one_line(shown(each.value))}"
        if report.draft is not None:
            yield f"  draft  {_version(report.draft)}"

    def talk(self, thread: str, indent: str) -> Iterator[str]:
        report = self._report
        lines = [each for each in report.said if said.is_told_in(each, thread)]
        for each in lines:
            if isinstance(each, said.VersionLine) and each.of == BENCH:
                continue
            yield from (f"{indent}{line}" for line in self._line(each))
            if isinstance(each, said.CallLine) and (name := entries.delegate_thread(each.call)) in self._threads:
                yield from self.talk(name, f"{indent}  ")
        started = {each.asked for each in lines if isinstance(each, said.CallLine)}
        for answer in lines:
            for call in (answer.calls or ()) if isinstance(answer, said.AssistantLine) else ():
                if call.id not in started and (thread, call.id) not in self._answered:
                    yield f"{indent}{'tool':<{WHO}}  {one_line(call.name)}  {self._unfinished}"
        if thread in report.waiting:
            after = f" after line {lines[-1].line}" if lines else ""
            waits = (
                "waits for the model" if report.state == "running" else f"a request to the model{after}: {said.OPEN}"
            )
            yield f"{indent}{'':<{WHO}}  {waits}"

    def _line(self, line: said.OfSession) -> Iterator[str]:
        if (typed := said.typed(line)) is not None:
            yield from _block("you", typed)
            return
        match line:
            case said.NoteLine() if said.is_resume(line):
                yield f"{'note':<{WHO}}  the session was resumed, {when(line.at)}"
            case said.UserLine() | said.HeardLine():
                heard = "\n(the model does not have it yet)" if line.kind == "heard" else ""
                yield from _block("you" if line.mode is not None else "asked", f"{line.text}{heard}")
            case said.AssistantLine() | said.ArrivedLine() | said.ModelErrorLine():
                yield from _answer(line)
            case said.EventLine():
                yield from _event(line)
            case said.SummaryLine():
                yield from _block("summary", f"(of the lines up to {line.upto})\n{line.text}")
            case said.CallLine():
                yield from self._tool(line)
            case said.VersionLine(of="grant", value={"what": what}):
                # Its name is only a digest of the allowed action.
                yield f"{'kept':<{WHO}}  {line.of} {one_line(str(what))}  {_version(line)}"
            case said.VersionLine():
                name = f" {one_line(line.name)}" if line.name else ""
                yield f"{'kept':<{WHO}}  {line.of}{name}  {_version(line)}"
            case said.NoteLine():
                yield from _note(line)
            case _:
                pass

    def _tool(self, call: said.CallLine) -> Iterator[str]:
        text = f"{'tool':<{WHO}}  {self._call(call)}"
        yield cut(text, self._style.width) if self._style.width else text
        if not self._full:
            return
        yield from fully("arguments", call.args)
        if (output := self._outputs.get((call.thread, call.asked or ""))) is not None:
            yield from ("  shown", *(f"    {each}" for each in harmless(output).split("\n")))

    def _call(self, call: said.CallLine) -> str:
        result = self._results.get(call.call)
        outcome = [self._unfinished]
        if result is not None:
            outcome = [result.status, result.error.code if result.error else "", duration(result.seconds)]
        arguments = cut(_arguments(call.args), BESIDE)
        return joined(one_line(call.path), arguments, *outcome, self._spent_by(call))

    def _spent_by(self, call: said.CallLine) -> str:
        """Return the costs of the subagent that the call started, including its own subagents and summaries."""
        if entries.delegate_thread(call.call) not in self._threads:
            return ""
        every = self._report.spent.items()
        rows = [each.model_dump() for path, each in every if path == call.path or path.startswith(f"{call.path}/")]
        return costs.brief(ledger.together(rows)) if rows else ""

    def tail(self) -> Iterator[str]:
        report = self._report
        if report.costs is not None:
            yield f"  cost  {spent(report.costs)}"
            wide = max(len(path or ITSELF) for path in report.spent)
            for path, totals in report.spent.items() if len(report.spent) > 1 else ():
                yield f"    {path or ITSELF:<{wide}}  {brief(totals)}"
        for run, totals in report.runs.items():
            yield f"  run {run}  {brief(totals)}  (counts here too: runops show {run})"
        if report.following is not None:
            yield f"  run {report.following}  {self._unfinished}: runops show {report.following}"
        if report.torn:
            yield f"  torn  the last {count(report.torn, 'byte')} are no whole line: a resume cuts them"
        yield report.state
        if report.build is not None:
            yield from _build(report, report.build)
        elif report.state != "running":
            yield f"  again  runops chat --resume {report.session}"

    def in_full(self, line: said.OfSession) -> Iterator[str]:
        match line:
            case said.CallLine():
                yield f"{self._style.bold(one_line(line.path))}  line {line.line}  {line.at}"
                yield from fully("arguments", line.args)
                if line.path in self._report.open:
                    yield f"  {self._unfinished}"
            case said.ResultLine():
                yield joined(f"  {line.status}", duration(line.seconds))
                if line.error is not None:
                    yield f"    {line.error.code}: {harmless(line.error.message)}"
                yield from fully("value", line.value)
            case said.ToolResultLine():
                yield from ("  shown", *(f"    {each}" for each in harmless(line.text).split("\n")))
            case _:
                yield from self._line(line)
                yield from fully("value", line.value) if isinstance(line, said.VersionLine) else ()


def _build(report: SessionReport, build: BuildReport) -> Iterator[str]:
    talks, idle = report.purpose == "chat", report.state != "running"
    again = f"runops {report.purpose} --resume {report.session}"
    if build.waits is not None and idle:
        choices = [f"{number} {one_line(each)}" for number, each in enumerate(build.questions[-1].choices, 1)]
        asked = [*harmless(build.waits).split("\n"), *choices]
        yield from (f"  {'' if number else 'asks':<5}  {line}" for number, line in enumerate(asked))
        yield f"  answer {again} -m '/answer TEXT'" if talks else f"  answer {again} --answer TEXT"
        return
    if build.finish is not None:
        yield from _ended(build, build.finish)
    if idle and (talks or build.finish is None or not build.finish["done"]):
        yield f"  again  {again}"


def _ended(build: BuildReport, value: dict[str, Json]) -> Iterator[str]:
    done = bool(value["done"])
    yield f"  ended  done, proved: {one_line(str(value.get('proved')))}" if done else "  ended  not done"
    if value.get("summary"):
        yield f"  what   {one_line(str(value['summary']))}"
    file = value.get("file")
    fix: dict[str, Json] | None = value.get("fix")
    repairs = build.goal.repairs if build.goal is not None else None
    if fix is not None and repairs is not None:
        yield f"  patch  {one_line(str(fix.get('kept')))}"
        yield f"  apply  runops repair --run {repairs.run} --apply"
    elif file:
        yield f"  file   {one_line(str(file))}"
        if done:
            yield f"  run    runops run {shlex.quote(str(file))} --frozen{harmless(inputs.typed(value.get('inputs') or {}))}"


def _version(version: said.VersionLine | VersionReport) -> str:
    cleared = "  cleared" if isinstance(version, said.VersionLine) and version.cleared else ""
    whose = "from the file" if version.by == "file" else f"by the {version.by}"
    return f"version {version.number}{cleared}  {whose}: {one_line(version.reason)}"


def _arguments(args: Json) -> str:
    return value_text(
        {key: value for key, value in args.items() if value is not None} if isinstance(args, dict) else args
    )


def _note(line: said.NoteLine) -> Iterator[str]:
    match line:
        case said.NoteLine(name="delegate-started"):
            yield f"{'is':<{WHO}}  {delegates.how(line.data)}"
        case said.NoteLine(name="reset", data={"seconds": seconds, "problem": problem}):
            why = f"  FAILED: it {one_line(str(problem))}" if problem is not None else ""
            yield f"{'reset':<{WHO}}  {duration(float(seconds))}{why}"
        case said.NoteLine(name="tail-truncated"):
            yield f"{'note':<{WHO}}  a torn last line was cut: {count(line.data['bytes'], 'byte')}"
        case _:
            pass


def _event(line: said.EventLine) -> Iterator[str]:
    if line.asked is None:
        yield from _block("event", line.text)
    else:
        yield from _block("run", f"{one_line(line.what or '')}\n{page_text.unfenced(line.text)}")


def _answer(line: said.AssistantLine | said.ArrivedLine | said.ModelErrorLine) -> Iterator[str]:
    match line:
        case said.AssistantLine():
            if line.text or not line.calls:
                yield from _block("model", line.text)
        case said.ArrivedLine():
            yield from _block("model", f"{line.text}\n({said.BROKEN})")
        case said.ModelErrorLine():
            again = f"  (sent again after {duration(line.again)})" if line.again is not None else ""
            text = f"\n{line.text}" if line.text else ""
            yield from _block("error", f"{line.error.code}: {line.error.message}{again}{text}")


def _block(who: str, text: str) -> Iterator[str]:
    for number, line in enumerate(harmless(text).split("\n")):
        yield f"{who if number == 0 else '':<{WHO}}  {line}".rstrip()
