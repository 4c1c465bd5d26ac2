"""Renders reports as Markdown. Page texts, values and names become code: nothing in them is a link, a mention, HTML or a heading."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from runtime.display.facts import facts, result_text
from runtime.display.text import count, cut, duration, from_here, harmless, joined, one_line, size, when
from runtime.log import entries
from runtime.observation import page_text
from runtime.report import said, session_text, text, timeline
from runtime.report.models import RunReport, SessionReport, StepReport
from runtime.report.parts import ErrorReport
from runtime.report.text import error_in, spent, viewer

HEAD = "# Session "  # beginning of a session's Markdown
LONGEST = 2_000  # maximum characters of a tool's output or an error; `runops show --json` has all of it
MOST = 500  # maximum steps in the table of a run, and items of other lists: CI servers limit the length of a summary
CELL = 80  # maximum characters of a table cell

_TICKS = re.compile("`+")
_OURS = re.compile(
    r"^( {0,3})(#+[ \t]+(?:You|Note|Model|Run|Session)\b|(?:You|Note|Model|Run|Session)\b.*\n {0,3}(?:=+|-+)[ \t]*$)",
    re.MULTILINE,
)
"""Heading that looks like one of ours in a session, in either of Markdown's two forms."""

_LIVE = re.compile(r"[\\`*\[\]<>&~|]|(?<!\w)_|_(?!\w)|(?<=@)(?=\w)|(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.IGNORECASE)
"""Text that Markdown or a CI server would interpret: a mark, a mention, an address."""

JOINER = "\u2060"  # invisible; it splits a mention or an address so that it is not interpreted


def code(text: str) -> str:
    text = one_line(text)
    if not text:
        return ""
    fence = "`" * (max((len(each) for each in _TICKS.findall(text)), default=0) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(text: str, language: str = "") -> str:
    text = harmless(text)
    fence = "`" * max(3, max((len(each) for each in _TICKS.findall(text)), default=0) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def plain(text: str) -> str:
    return _LIVE.sub(lambda found: f"\\{found[0]}" if found[0] else JOINER, harmless(text))


def spoken(text: str) -> str:
    """Return a speaker's Markdown without headings that look like another speaker's. Page texts in it become code."""
    parts = page_text.parts(text)
    own = [_OURS.sub(r"\1\\\2", harmless(each)) for each in parts[::2]]
    theirs = [f"\n\n{fenced(each, 'text')}\n\n" for each in parts[1::2]]
    return "".join(each for pair in itertools.zip_longest(own, theirs, fillvalue="") for each in pair)


# Runs.


def of_run(report: RunReport) -> str:
    return "\n\n".join(part for part in _run(report) if part) + "\n"


def _run(report: RunReport) -> Iterator[str]:
    yield f"# Run {code(report.workflow)}"
    row = f" · row {code(report.row)}" if report.row is not None else ""
    yield f"**{report.state}** · {timeline.span(report, when)} · {code(report.run)} · {code(from_here(report.file))}{row}"
    yield "\n".join(f"- {plain(each)}" for each in timeline.lines(report, when))
    if (question := report.asks) is not None:
        yield f"## Question\n\n{_at(question.path, report.place)}"
        yield error(question)
    elif report.error is not None:
        yield f"## Error\n\n{_at(report.path, report.place)}".rstrip()
        yield error(report.error)
        yield "\n".join(page(report))
    yield "\n".join(_table(report))
    if report.output is not None:
        yield f"## Output\n\n{fenced(shortened(result_text(report.output)), 'text')}"
    yield "\n".join(
        _listed("Flags", [f"{code(f'{each.path}: {each.code}')} {code(each.message)}" for each in report.flags])
    )
    yield "\n".join(_listed("Files", [f"{code(from_here(each.path))} {size(each.size)}" for each in report.files]))
    yield f"Cost: {spent(report.costs)}" if report.costs is not None else ""
    yield f"Next:\n\n{fenced(report.next, 'sh')}" if report.next else ""


def _at(path: str | None, place: str | None) -> str:
    return f"At {code(path)}{f' in {code(place)}' if place else ''}:" if path else ""


def error(error: ErrorReport) -> str:
    lines = "\n".join([f"{error.code}: {error.message}", *facts(error.evidence or {})])
    return f"{fenced(shortened(lines), 'text')}{f'{chr(10)}{chr(10)}Fix: {code(error.fix)}' if error.fix else ''}"


def page(report: RunReport) -> Iterator[str]:
    found = next((each for each in reversed(report.evidence) if each.path == report.path), None)
    if found is None:
        return
    yield f"- page {code(found.title or '')} {code(found.url)}"
    if found.dialog:
        yield f"- dialog {code(found.dialog)}"
    for name, file in (("as text", found.observation), ("screenshot", found.screenshot)):
        if file is not None:
            yield f"- {name} {code(from_here(file.path))}"
    for frame in found.frames or ():
        picture = frame.screenshot
        shown = from_here(picture.path) if picture is not None else f"no picture: {frame.no_screenshot}"
        along = f", after {code(frame.along)} as well" if frame.along else ""
        yield f"- before it, {code(frame.path)}: {code(shown)}{along}"
    for each in found.messages or ():
        yield f"- the page said {code(joined(each.text, each.url or ''))}"
    if found.trace is not None:
        yield f"- trace: {code(viewer(from_here(found.trace.path)))}"


def _table(report: RunReport) -> Iterator[str]:
    if not report.steps:
        return
    yield from ("## Steps", "", "| step | outcome | time | value |", "|---|---|---|---|")
    for each in report.steps[:MOST]:
        yield f"| {cell(each.path)} | {each.status} | {duration(each.seconds)} | {cell(_seen(report, each))} |"
        if each.folded:
            yield f"| {cell(each.path)} | ok |  | {count(each.folded, 'turn')} |"
    if len(report.steps) > MOST:
        yield from ("", f"{count(len(report.steps) - MOST, 'more step')}: `runops show {report.run}`")


def _seen(report: RunReport, step: StepReport) -> str:
    if step.status in ("ok", "recovered", "skipped") or (error := error_in(report, step)) is None:
        return step.preview
    return f"{error.code}: {error.message}"


def cell(text: str) -> str:
    """Render code in a table. A similar character replaces `|`, as renderers differ on an escaped one."""
    return code(cut(one_line(text), CELL).replace("|", "│"))


def _listed(title: str, items: list[str]) -> Iterator[str]:
    if items:
        yield from (f"## {title}", "", *(f"- {each}" for each in items[:MOST]))
        yield from (f"- and {len(items) - MOST} more" for _ in items[MOST : MOST + 1])


def part_of_run(report: RunReport) -> str:
    lines = "\n".join(text.step(report, text.Style()))
    return f"# Run {code(report.workflow)}\n\n{code(report.run)} · {code(report.file)}\n\n{fenced(lines, 'text')}\n"


# Sessions.


def part_of_session(report: SessionReport) -> str:
    lines = "\n".join(session_text.lines(report, text.Style()))
    return f"{HEAD}{report.session}\n\n{fenced(lines, 'text')}\n"


def of_session(report: SessionReport) -> str:
    return "\n\n".join(_session(report)) + "\n"


def _session(report: SessionReport) -> Iterator[str]:
    yield f"{HEAD}{report.session}"
    about = [f"begun {report.started}"]
    about += [f"about run {report.about}"] if report.about else []
    about += [f"about {report.file}"] if report.file else []
    about += [f"forked from {report.forked.conversation}"] if report.forked is not None else []
    yield "\n".join(f"- {plain(one_line(each))}" for each in about)
    lines = [each for each in report.said if said.is_told_in(each, entries.SESSION_THREAD)]
    results = {each.asked: each.text for each in lines if isinstance(each, said.ToolResultLine)}
    for line in lines:
        if (typed := said.typed(line)) is not None:
            yield "## You"
            yield spoken(typed)
        elif said.is_resume(line):
            yield f"*The session was resumed, {when(line.at)}.*"
        else:
            yield from _line(line, results)


def _line(line: said.OfSession, results: dict[str, str]) -> Iterator[str]:
    match line:
        case said.UserLine():
            yield f"## {'You' if line.mode is not None else 'Note'}"
            yield spoken(line.text)
        case said.HeardLine():
            yield "## You"
            yield spoken(line.text)
            yield "*The model does not have it yet.*"
        case said.ArrivedLine():
            yield "## Model"
            yield spoken(line.text)
            yield f"*{said.BROKEN[0].upper()}{said.BROKEN[1:]}.*"
        case said.EventLine(asked=str()):
            yield f"## Run\n\n{code(line.what or '')}"
            yield fenced(page_text.unfenced(line.text), "text")
        case said.EventLine():
            yield f"*{plain(one_line(line.text))}*"
        case said.ModelErrorLine(final=True):
            yield "## Model"
            if line.text:
                yield spoken(line.text)
            yield f"*The answer broke off: {plain(one_line(f'{line.error.code}: {line.error.message}'))}*"
        case said.AssistantLine():
            yield f"## Model ({plain(one_line(line.model))})"
            if line.text:
                yield spoken(line.text)
            for call in line.calls or ():
                yield f"**{plain(one_line(call.name))}**"
                yield fenced(call.arguments or "", "json")
                answer = results.get(call.id)
                yield fenced(shortened(answer)) if answer is not None else "*Open: no outcome is recorded.*"
        case _:
            pass


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… ({len(text):,} characters in all)"
