"""``runops runs`` and ``runops ps``: list runs and sessions, all of them or the active ones."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from nodes.errors import UsageError
from nodes.values import Json
from runtime import events
from runtime.cli import console, flags
from runtime.display import costs
from runtime.display.text import duration, one_line, when
from runtime.log.store import store as log_store
from runtime.workspace import active, host, run_index, session_index


def runs(
    sessions: Annotated[bool, flags.option("--sessions", "List sessions (`runops chat`, `build`), no runs.")] = False,
    limit: Annotated[int | None, flags.option("--limit, -n N", "Only the N newest.", min=1)] = None,
    state: Annotated[log_store.State | None, flags.option("--state", "Only runs in this state.")] = None,
    of_tools: Annotated[
        bool, flags.option("--all", "Also the runs that tools of sessions began, to try nodes and to prove a draft.")
    ] = False,
    as_json: Annotated[bool, flags.option("--json", "Print the list as one JSON object.")] = False,
) -> None:
    """List the runs of this project, oldest first, with state, start and duration. `--sessions` lists its sessions.

    What tools of a session ran is listed by `runops show SESSION`, and here with `--all`.
    """
    store = host.load().reader
    if sessions:
        if limit is not None or state is not None or of_tools:
            said = "`--limit`, `--state` and `--all` are for runs, and `--sessions` lists none"
            raise UsageError("usage", said, fix="leave one of them out")
        _sessions(store, as_json=as_json)
        return
    found = run_index.list_runs(store, limit, state, of_tools=of_tools)
    if as_json:
        listed: list[Json] = [dataclasses.asdict(each) for each in found]
        console.result(console.as_json(home=store.place, runs=listed))
    elif found:
        console.result("\n".join(console.table([HEAD, *(row(each) for each in found)])))
    elif state is not None:
        console.say(f"no run in {store.place} is {state}")
    else:
        more = "\n  its sessions: runops runs --sessions" if session_index.list_sessions(store) else ""
        console.say(f"no runs in {store.place}{more}\n  start one: runops run FILE")


def _sessions(store: log_store.StoreReader, *, as_json: bool) -> None:
    found = session_index.list_sessions(store)
    if as_json:
        console.result(console.as_json(home=store.place, sessions=[dataclasses.asdict(each) for each in found]))
    elif found:
        console.result("\n".join(console.table([SESSION_HEAD, *(session_row(each) for each in found)])))
    else:
        console.say(f"no sessions in {store.place}\n  begin one: runops chat")


SESSION_HEAD = ["session", "state", "started", "messages", "cost", "about"]


def session_row(session: session_index.SessionSummary) -> list[str]:
    about = session.about or session.begins
    return [
        session.id,
        session.state,
        when(session.started),
        str(session.messages),
        costs.price(session.costs) if session.costs is not None else "",
        one_line(session.problem or f"{session.purpose}{': ' if about else ''}{about}"),
    ]


HEAD = ["run", "state", "started", "took", "steps", "workflow"]


def row(run: run_index.RunSummary) -> list[str]:
    return [
        run.id,
        run.state,
        when(run.started),
        duration(run.seconds),
        str(run.steps),
        one_line(run.problem or _called(run)),
    ]


def _called(run: run_index.RunSummary) -> str:
    return f"{'try: ' if run.trial else ''}{events.titled(run.workflow, run.row)}"


def ps(as_json: flags.JsonFlag = False) -> None:
    """List the runs and sessions that a process holds, and leftover browsers of other runs.

    It changes nothing: a browser ends when it would have ended anyway.
    """
    store = host.load().reader
    found = active.find(store)
    if as_json:
        console.result(console.as_json(home=store.place, alive=[dataclasses.asdict(each) for each in found]))
    elif found:
        console.result("\n".join(console.table([ACTIVE_HEAD, *(active_row(each) for each in found)])))
        for command in dict.fromkeys(each.next for each in found):
            console.say(f"  {LABELS.get(command.split()[1], 'again')}  {command}")
    else:
        console.say(f"nothing is active in {store.place}\n  what ran: runops runs")


LABELS = {"show": "look ", "prune": "clear", "runs": "look "}
ACTIVE_HEAD = ["run", "state", "process", "browser", "since", "workflow"]


def active_row(each: active.Active) -> list[str]:
    return [
        each.run,
        each.state,
        _process(each),
        _browser(each),
        when(each.holder.since) if each.holder is not None else "",
        one_line(f"{'session: ' if each.kind == 'session' else ''}{each.workflow or '?'}"),
    ]


def _process(each: active.Active) -> str:
    if each.holder is None:
        return "?" if each.state == "running" else ""
    return f"{each.holder.pid} on {one_line(each.holder.host)}" if each.holder.elsewhere else str(each.holder.pid)


def _browser(each: active.Active) -> str:
    if each.browser is None:
        return ""
    if each.browser.left is not None:
        return f"{each.browser.chromium}, ends in {duration(each.browser.left)}"
    return f"{each.browser.chromium}, does not answer" if each.browser.holders is None else str(each.browser.chromium)
