"""The summary of a step in GitHub Actions: Markdown with a table of the cases, and the details of each that did not simply pass.

Page texts, values and names are code in it: none is a link, a mention, HTML or a heading.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator

from runtime.batch.reports import cases
from runtime.display import costs
from runtime.display.text import count, duration, one_line
from runtime.log import ledger
from runtime.report import difference_text, markdown
from runtime.report.endings import BatchReport, CaseRecord, RunRecord
from runtime.report.models import RunReport
from runtime.report.parts import ErrorReport

MOST = 1 << 20  # bytes of a step's summary that GitHub takes; of more it shows nothing
ROWS = 1_000  # cases in the table; those that passed are left out first
DIFFERENCES = 20  # differences that are listed of a case

MARKS = {
    "passed": "✅ passed",
    "flaky": "⚠️ flaky",
    "failed": "❌ failed",
    "paused": "⏸️ paused",
    "interrupted": "🛑 interrupted",
    "out-of-budget": "💰 out of budget",
    "replaced": "↪️ continues elsewhere",
    "error": "🚫 not run",
    "begun": "❔ no end",
    "skipped": "⏭️ skipped",
}

CUT = "\n*The summary is cut here, as GitHub takes one MiB of a step. The report files have all of it.*\n"


def of_batch(report: BatchReport, most: int = MOST) -> str:
    """Return the summary in at most ``most`` bytes of UTF-8."""
    left = most - len(CUT.encode())
    kept: list[str] = []
    for each in _parts(report):
        part = f"{each}\n"
        left -= len(part.encode())
        if left < 0:
            return "".join([*kept, CUT]) if most >= len(CUT.encode()) else ""
        kept.append(part)
    return "".join(kept)


def _parts(report: BatchReport) -> Iterator[str]:
    """Yield the summary in parts; each may be the last."""
    yield f"## {head(report)}\n"
    yield from _table(report)
    yield ""
    for case in report.runs:
        if case.status not in ("passed", "skipped"):
            yield "\n".join(_details(case, report.details))
    if spent := [each for each in map(cases.costs, report.runs) if each is not None]:
        yield f"Cost: {costs.render(ledger.together(spent))}\n"


def head(report: BatchReport) -> str:
    tally = Counter(each.status for each in report.runs)
    counts = [f"{number} {MARKS[state].partition(' ')[2]}" for state in MARKS if (number := tally[state])]
    shard = f", shard {report.shard.number} of {report.shard.of}" if report.shard is not None else ""
    took = duration(sum(map(cases.seconds, report.runs)))
    return f"RunOps: {', '.join(counts) or 'no case'}{shard} ({took} of runs)"


def _table(report: BatchReport) -> Iterator[str]:
    if not report.runs:
        return
    shown = report.runs
    if len(shown) > ROWS:
        first = {each.case for each in sorted(shown, key=lambda each: each.status == "passed")[:ROWS]}
        shown = [each for each in shown if each.case in first]
    yield "| outcome | case | time | step | what |\n|---|---|---|---|---|"
    for each in shown:
        what = "" if each.status == "passed" else cases.message(each)
        step = cases.telling(each).path or ""
        cells = [markdown.cell(text) for text in (str(each.case), step, what)]
        live = " (live model)" if each.live else ""
        yield f"| {MARKS[each.status]}{live} | {cells[0]} | {duration(cases.seconds(each))} | {cells[1]} | {cells[2]} |"
    if len(shown) < len(report.runs):
        yield f"\n{count(len(report.runs) - len(shown), 'more case')}"


def _details(case: CaseRecord, details: dict[str, RunReport]) -> Iterator[str]:
    run = cases.telling(case)
    yield f"<details><summary>{MARKS[case.status]} {_in_html(str(case.case))}</summary>\n"
    if run.path or run.place:
        yield f"At {markdown.code(run.path or '')}{f' in {markdown.code(run.place)}' if run.place else ''}:\n"
    yield f"{_error(run)}\n"
    report = details.get(run.run or "")
    yield from markdown.page(report) if report is not None else ()
    if case.status == "flaky":
        yield from _differences(case)
    if len(case.attempts) > 1:
        runs = ", ".join(f"{markdown.code(each.run or '')} {each.status}" for each in case.attempts)
        yield f"\nRuns: {runs}\n"
    yield from (f"\n{markdown.plain(each)}\n" for each in case.notes)
    last = details.get(case.run or "")
    commands = [f"runops show {run.run}", *([last.next] if last is not None and last.next else [])]
    commands += [f"runops diff {run.run} {case.run}"] if case.status == "flaky" else []
    if case.run is not None:
        yield f"\n{markdown.fenced(chr(10).join(commands), 'sh')}\n"
    yield "</details>\n"


def _error(run: RunRecord) -> str:
    problems = cases.problems(cases.evidence(run).get("problems"))
    if problems:
        lines = [line for each in problems for line in (f"{each.place}: {each.code}: {each.message}", *each.help)]
        return markdown.fenced(markdown.shortened("\n".join(lines)), "text")
    found = ErrorReport(
        code=cases.code(run), message=cases.message(run), evidence=cases.evidence(run) or None, fix=cases.fix(run)
    )
    return markdown.error(found)


def _differences(case: CaseRecord) -> Iterator[str]:
    if not case.differed:
        return
    yield "\nWhat differed when it passed:\n"
    rows = difference_text.rows(case.differed)
    yield from (f"- {' '.join(markdown.code(text) for text in row if text)}" for row in rows[:DIFFERENCES])
    if len(rows) > DIFFERENCES:
        yield f"- and {len(rows) - DIFFERENCES} more"


def _in_html(text: str) -> str:
    """Return a name for a line of HTML, in which Markdown is not read on every server."""
    return f"<code>{html.escape(one_line(text))}</code>"
