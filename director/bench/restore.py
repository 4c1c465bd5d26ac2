"""Restores a bench from a failed run: the values of its steps, and the browser at its last checkpoint.

The engine replays the log, as for a resumed run, without acting.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from typing_extensions import override

from director.bench import watcher
from director.bench.records import Lineage
from director.bench.results import Results
from director.proving import draft_runs
from nodes.base import Leaf, Node
from nodes.errors import InternalError, RunOpsError
from runtime.browser import port
from runtime.engine import checkpoints, engine, run_state, scopes
from runtime.engine.run_state import RunState
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.recovery import workflow_source
from runtime.workspace import run_index

if TYPE_CHECKING:
    from director.tools.build_context import BuildContext

WHY = "results of the failed run"


class Restore(watcher.Watcher):
    """Watches a replay of the log: values of nodes, and which of them are before its last checkpoint."""

    def __init__(self, results: Results, run: str, state: RunState, line: int) -> None:
        """``line`` of the log is that of the checkpoint."""
        super().__init__(results, WHY, lambda: run, pins={})
        self._state, self._line = state, line
        self.before_line: Lineage = ()  # the nodes that had changed the page by then
        self.within = False  # True if a part of a container other than a loop has changed the page since

    @override
    async def after(self, node: Node, frame: scopes.Scope, path: str, *, ran: bool) -> None:
        await super().after(node, frame, path, ran=ran)
        if self._state.replayed_to > self._line:
            return
        if len(self.lineage) > len(self.before_line):
            self.before_line, self.within = self.lineage, False
        elif isinstance(node, Leaf) and node.moves_page and ran:
            place = self._place(node, path)
            # A loop continues from wherever its last item left the page.
            self.within = self.within or place is None or not place.loops


async def take(build: BuildContext, results: Results, run: str) -> None:
    """Restore the results of the run, if the file is unchanged for it and can be read; else do nothing."""
    with contextlib.suppress(RunOpsError):
        past, _reading = await asyncio.to_thread(run_index.load_history, build.here.reader, run)
        loaded = draft_runs.as_saved(build)
        fit = draft_runs.prepared(build, loaded, draft_runs.declared(build, loaded))
        if (
            past.header is None
            or workflow_source.WorkflowSource(run, past.header, build.here, loaded, take=True).changed
        ):
            return
        state = RunState(
            loaded,
            LogWriter(log_store.Unwritten(run), past, build.writer.masker, build.here.reader),
            inputs=fit.inputs,
            secrets=fit.secrets,
            open_browser=_none,
            services=_no_services,
            private=build.here.reader.private(run),
        )
        walker = engine.ExecutionEngine(state)
        last = past.checkpoint
        watch = state.watch = Restore(results, run, state, last.after if last is not None else 0)
        with contextlib.suppress(RunOpsError):
            # The replay fails with the error of the run itself.
            await walker.find_open_step()
        if last is not None and watch.before_line and not watch.within:
            with contextlib.suppress(checkpoints.Unusable):
                data = await asyncio.to_thread(checkpoints.content, last, build.here.reader, run)
                await results.keep_state(watch.before_line, port.Captured(data, last.urls))


def _no_services(_run: RunState, _step: run_state.LeafView) -> run_state.StepServices:
    raise AssertionError("a walk that only looks does nothing")


async def _none() -> port.Browser:
    raise InternalError("internal", "what is recorded needs no browser")
