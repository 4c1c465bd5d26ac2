"""The tool ``execute_nodes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from director.bench import bench as benches
from director.bench import report as bench_report
from director.tools import barrier, begin
from director.tools.toolbox import PERHAPS, TEXT, OfBuild, of, tool
from nodes.values import Json
from runtime.log import entries
from runtime.messages.messages import ToolCall
from runtime.models.turns import turn

NAME = "execute_nodes"
SHORTEST = 8  # characters of a value hidden by its name that is looked for in what an action would type

_FIELDS: dict[str, dict[str, Json]] = {
    "nodes": {"type": "string", "description": "`all`, `3`, `1-3,10`, ids, `login..submit`, or step paths."},
    "mode": {
        "type": ["string", "null"],
        "enum": ["flow", "isolated", None],
        "description": "In a row (default), or each from its own state.",
    },
    "from": {
        "type": ["string", "null"],
        "enum": ["before", "live", "fresh", None],
        "description": "The page right before the first (default), the current page, or a new browser.",
    },
    "item": of(PERHAPS, "In a loop: key or number of the item; null is the first."),
    "reason": TEXT,
}
EXECUTE = tool(
    NAME,
    "Runs nodes on the bench; returns status, value, error, and the page after them: whole when new, else what changed.",
    _FIELDS,
)


class Execute(OfBuild):
    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        begin.with_draft(self._build)

        async def work(call: entries.Call) -> turn.Outcome:
            given: dict[str, Any] = arguments
            request = benches.BenchRequest(
                given["nodes"], given["mode"] or "flow", given["from"] or "before", given["item"], given["reason"]
            )
            bench = self._build.bench
            assert isinstance(bench, benches.Bench), "the bench of a build"
            report = await bench.execute(call, request)
            text = self._masked(bench_report.text_of(report))
            if report.view is not None:
                bench.own.note_shown(report.view, text, bench_report.shown_budget(report, text))
            return turn.Outcome(text, text)

        return await barrier.done(self._build.writer, NAME, arguments, place, work)

    @override
    def needs(self, arguments: Mapping[str, Json], failed: str, theirs: Mapping[str, Json]) -> bool:
        return arguments.get("from") != "fresh"

    @override
    def stopped(self, asked: ToolCall) -> bool:
        """One at a node that failed; not one before an action that is held or was done already: the page is valid there."""
        build = self._build
        call = next(
            (each.call for each in reversed(build.state.history.actions.values()) if each.call.asked == asked.id), None
        )
        ran = [build.runs.past(run) for run in build.runs.of(call)] if call is not None else []
        return any(past is not None and past.status not in ("passed", "paused") for past in ran)

    @override
    def interrupted_outcome(self, call: entries.Call) -> turn.Outcome | None:
        build = self._build
        text = self._masked(bench_report.interrupted({run: build.runs.past(run) for run in build.runs.of(call)}))
        return turn.Outcome(text, text)

    def _masked(self, text: str) -> str:
        build = self._build
        # What an action would type has no name of its own there.
        given = build.writer.masker.names.within(
            {**build.goal.inputs, **build.bench.values(), **build.state.variables.all()}
        )
        hidden = {f"given {number}": each for number, each in enumerate(given) if len(each) >= SHORTEST}
        return build.masker.knowing(hidden).text(text)
