"""Opens the build context of a build, over a log that is written or only read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from director.bench import bench
from director.bench import tools as bench_tools
from director.editing import tools as editing
from director.effects import grants
from director.proving import tools as proving
from director.scouting import observer, scout
from director.scouting import tools as scouting
from director.session import person, runs
from director.session.events import Listener
from director.session.state import SessionState
from director.targeting import tools as targeting
from director.tools import ask_user, build_context
from director.tools.build_context import BuildContext
from director.tools.toolbox import Toolset
from runtime.log import session
from runtime.log.writer import LogWriter
from runtime.secrets import sources
from runtime.workspace import host


def of_session(
    writer: LogWriter[session.Session],
    state: SessionState,
    here: host.Host,
    listener: Listener,
    who: person.Person,
    price: runs.Price,
    file: Callable[[], Path | None] = lambda: None,
) -> build_context.BuildContext:
    """Return the build context of a session. Nothing is opened or written yet.

    ``here`` has the settings of the build's runs; ``who`` answers questions; ``file`` returns the workflow that the session is about.
    """

    def known() -> Mapping[str, str]:
        draft, goal = state.draft, state.goal
        declared = draft.loaded.workflow.secrets if draft is not None else ()
        return sources.known(here.secrets, [*goal.secrets, *declared], goal.place.parent)

    build = build_context.BuildContext(
        writer=writer,
        state=state,
        here=here,
        listener=listener,
        person=person.Remembering(writer, who),
        runs=runs.Runs(writer, here.reader, listener, price),
        known=known,
        file=lambda: Path(state.goal.repairs.file) if state.goal.repairs is not None else file(),
    )
    furnish(build)
    return build


def furnish(build: BuildContext) -> None:
    build.observer = observer.PageObserver(build)
    build.effects = grants.Grants(build.writer, build.state, build.person)
    build.bench = bench.Bench(build)


def toolsets(build: BuildContext) -> Sequence[Toolset]:
    return (
        ask_user.AskUser(build, ask_user.ASK),
        *editing.toolsets(build),
        bench_tools.Execute(build, bench_tools.EXECUTE),
        targeting.Propose(build, targeting.PROPOSE),
        *scouting.toolsets(build),
        scout.Scouting(build),
        *proving.toolsets(build),
    )
