"""``runops ps``: active runs, sessions and browsers."""

from __future__ import annotations

import dataclasses

from runtime.cli import console, flags
from runtime.display.text import duration, one_line, when
from runtime.workspace import active, host


def ps(as_json: flags.JsonFlag = False) -> None:
    """List the runs and sessions that a process holds, and leftover browsers of other runs.

    It changes nothing: a browser ends when it would have ended anyway.
    """
    store = host.load().reader
    found = active.find(store)
    if as_json:
        console.result(console.as_json(home=store.place, alive=[dataclasses.asdict(each) for each in found]))
    elif found:
        console.result("\n".join(console.table([HEAD, *(row(each) for each in found)])))
        for command in dict.fromkeys(each.next for each in found):
            console.say(f"  {LABELS.get(command.split()[1], 'again')}  {command}")
    else:
        console.say(f"nothing is active in {store.place}\n  what ran: runops runs")


LABELS = {"show": "look ", "prune": "clear", "runs": "look "}


HEAD = ["run", "state", "process", "browser", "since", "workflow"]


def row(each: active.Active) -> list[str]:
    return [
        each.run,
        each.state,
        process(each),
        browser(each),
        when(each.holder.since) if each.holder is not None else "",
        one_line(f"{'session: ' if each.kind == 'session' else ''}{each.workflow or '?'}"),
    ]


def process(each: active.Active) -> str:
    if each.holder is None:
        return "?" if each.state == "running" else ""
    return f"{each.holder.pid} on {one_line(each.holder.host)}" if each.holder.elsewhere else str(each.holder.pid)


def browser(each: active.Active) -> str:
    if each.browser is None:
        return ""
    if each.browser.left is not None:
        return f"{each.browser.chromium}, ends in {duration(each.browser.left)}"
    return f"{each.browser.chromium}, does not answer" if each.browser.holders is None else str(each.browser.chromium)
