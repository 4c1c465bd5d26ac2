"""``runops show``: the steps of a run from its log, even while it is active; the messages of a session."""

from __future__ import annotations

import contextlib
import sys
from importlib import metadata
from typing import Annotated

from nodes.errors import RunOpsError, SetupError, UsageError
from runtime.cli import console, flags
from runtime.context import report as context_report
from runtime.context import report_text
from runtime.display import plans
from runtime.log.store import store as log_store
from runtime.log.writer import Texts
from runtime.report import differences, html, markdown, models, of_run, of_session, page, pictures, session_text, text
from runtime.workspace import host, run_index, session_index

WINDOWS = "runops.windows"
"""Entry-point group of the functions that report a conversation's window: (host, conversation) -> report."""


def show(
    conversation: Annotated[
        str, flags.argument("RUN|SESSION", "Its id, or a unique beginning or end of it; `last` is the last run.")
    ],
    at: Annotated[
        str | None,
        flags.option("--at PATH", "Only this step, in full, and those below it; for a session a call or line."),
    ] = None,
    as_nodes: Annotated[
        str | None,
        flags.option("--as-nodes PATH", "Print the workflow, with nodes in place of the `agent` at this path."),
    ] = None,
    window: Annotated[
        bool, flags.option("--window", "The next request to the model: sizes, shares, what is left out, and why.")
    ] = False,
    as_json: Annotated[bool, flags.option("--json", "Print everything as one JSON object.")] = False,
    as_markdown: Annotated[
        bool, flags.option("--markdown", "Print it as Markdown, for a CI summary or a ticket.")
    ] = False,
    as_html: Annotated[
        bool, flags.option("--html", "Print it as one HTML page: each call and each step opens on a click.")
    ] = False,
    full: Annotated[
        bool, flags.option("--full", "Of a session: each call with its whole arguments and its output.")
    ] = False,
) -> None:
    """Show a run step by step: outcomes, values, errors with their evidence, and open calls. Of a session: messages, saved values, costs.

    It only reads, so it works while a run or session is active, and after it died. `--window` of a run shows the request of a chat about it.
    """
    forms = {
        "--markdown": as_markdown,
        "--html": as_html,
        "--full": full,
        "--json": as_json,
        "--window": window,
        "--as-nodes": as_nodes is not None,
    }
    given = [name for name, each in forms.items() if each]
    if len(given) > 1 and given != ["--json", "--window"]:
        raise UsageError(
            "usage", f"`{given[0]}` and `{given[1]}` are two forms of a report", fix="leave one of them out"
        )
    if as_html and at is not None:
        raise UsageError("usage", "`--html` shows the whole, and `--at` a part", fix="leave one of them out")
    here = host.load()
    store = here.reader
    found = run_index.find(store, conversation)
    if window:
        report = _window(here, found)
        in_json = as_json and console.as_json(conversation=found, **report.as_json())
        shown = in_json or "\n".join(report_text.lines(report))
    elif session_index.kind(store, found) == "session":
        if as_nodes is not None:
            raise UsageError("usage", f"{found} is a session, and `--as-nodes` is for runs", fix="leave it out")
        if as_html:
            shown = _page_of_session(store, found)
        else:
            shown = _session(store, found, at, as_json=as_json, as_markdown=as_markdown, full=full)
    elif full:
        raise UsageError(
            "usage", f"{found} is a run, and `--full` is for sessions", fix="take `--at STEP`, or `--html`"
        )
    elif as_nodes is not None:
        from runtime.agents import export  # most calls need none

        past, _reading = run_index.load_history(store, found)
        shown = export.as_nodes(found, past, store, as_nodes)
    elif as_html:
        shown = _page_of_run(store, found)
    else:
        shown = _run(store, found, at, as_json=as_json, as_markdown=as_markdown)
    console.result(shown.removesuffix("\n"))


def _window(here: host.Host, conversation: str) -> context_report.Report:
    """Report the next request of a session, or of a chat about a run, by a function of ``WINDOWS``; writes and sends nothing.

    Raises SetupError ``window-not-offered`` if no installed package offers one, and its errors.
    """
    message, fix = "no installed package reports the context of conversations", "install RunOps again"
    for entry in metadata.entry_points(group=WINDOWS):
        try:
            reporter = entry.load()
        except (ImportError, AttributeError) as error:
            message = f"the report of the context cannot be loaded: {error}"
            fix = "install RunOps again, or fix the package that offers it"
        else:
            return reporter(here, conversation)
    raise SetupError("window-not-offered", message, fix=fix)


def _page_of_session(store: log_store.StoreReader, session: str) -> str:
    reading = store.read(session)
    report = of_session.session_report(session_index.fold(reading), reading, Texts(store))
    runs: dict[str, models.RunReport] = {}
    for run in html.runs_of(report):
        # One that was pruned, or whose log is damaged, is only named.
        with contextlib.suppress(RunOpsError):
            runs[run] = _whole_run(store, run)
    seen: dict[str, bytes] = {}
    for each in html.pictures_of(report):
        with contextlib.suppress(RunOpsError):
            seen[each] = store.blob(each)
    return html.of_session(report, runs, seen)


def _page_of_run(store: log_store.StoreReader, run: str) -> str:
    report = _whole_run(store, run)
    seen = pictures.of_run(report, store)
    # Nothing is compared with a run whose log is damaged.
    with contextlib.suppress(RunOpsError):
        green = run_index.last_passed(store, run) if report.state not in ("passed", "running") else None
        if green is not None:
            since = differences.differences(_whole_run(store, green), report)
            return page.of_run(report, seen, green=green, since_green=since)
    return page.of_run(report, seen)


def _whole_run(store: log_store.StoreReader, run: str) -> models.RunReport:
    past, reading = run_index.load_history(store, run)
    return of_run.run_report(past, reading, store, placed=True)


def _session(
    store: log_store.StoreReader, session: str, at: str | None, *, as_json: bool, as_markdown: bool, full: bool
) -> str:
    reading, whole = store.read(session), at is None
    brief = not as_json and whole and not full
    report = of_session.session_report(session_index.fold(reading), reading, Texts(store), at=at, brief=brief)
    if as_json:
        return report.as_json()
    if as_markdown:
        return markdown.of_session(report) if whole else markdown.part_of_session(report)
    if whole:
        return "\n".join(session_text.whole(report, _style(), full=full))
    return "\n".join(session_text.lines(report, _style()))


def _run(store: log_store.StoreReader, run: str, at: str | None, *, as_json: bool, as_markdown: bool) -> str:
    (past, reading), whole = run_index.load_history(store, run), at is None
    placed = as_json or (as_markdown and whole)
    report = of_run.run_report(past, reading, store, at=at, brief=not as_json, placed=placed)
    if as_json:
        return report.as_json()
    if as_markdown:
        return markdown.of_run(report) if whole else markdown.part_of_run(report)
    return "\n".join((text.whole if whole else text.step)(report, _style()))


def _style() -> text.Style:
    try:
        "".join(plans.DRAWN.values()).encode(sys.stdout.encoding or "ascii")
        marks = True
    except (UnicodeEncodeError, LookupError):
        marks = False
    return text.Style(console.columns(), lambda words: console.paint(words, console.BOLD, stream=sys.stdout), marks)
