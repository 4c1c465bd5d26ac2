"""Build contexts for tests: a build without its model, whose tools a test calls itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from director.builds import open as open_build
from director.conversation.session_tools import Toolbox
from director.draft import draft
from director.draft.goal import Goal, Policy
from director.session import open as open_session
from director.session import person
from director.session import runs as session_runs
from director.session.events import Listener
from director.session.state import SessionState
from director.tools.build_context import BuildContext
from director.tools.toolbox import Toolset
from nodes.values import Json
from runtime import version
from runtime.log import entries
from runtime.messages.messages import ToolCall
from runtime.models.turns import turn
from runtime.secrets import masking
from runtime.workspace import host
from tests.now import now
from tests.talks import About


class Answering(person.Person):
    """A person who gives these answers, one after the other."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    @override
    async def ask(self, question: str, choices: Sequence[str] = (), *, place: str = "", free: bool = False) -> str:
        self.asked.append(question)
        return self.answers.pop(0)


def opened(
    folder: Path,
    url: str | None = None,
    text: str | None = None,
    *,
    policy: Policy = "allow",
    who: person.Person | None = None,
    inputs: Mapping[str, Json] | None = None,
    known: Mapping[str, str] | None = None,
    listener: Listener | None = None,
    runs: int = 2,
    goal: str = "Do it.",
    save: str = "built.yaml",
    force: bool = False,
    **flags: Any,
) -> BuildContext:
    """A build context whose logs are in ``folder``; ``text`` is its draft, ``known`` are secrets by name. ``await build.close()`` closes its browsers."""
    here = host.load(home=folder / ".runops", **flags)
    given = Goal(goal, url, folder / save, runs, policy, inputs or {}, list(known or {}), force)
    header = entries.SessionHeader(purpose="build", versions=version.versions(), build=given.as_logged())
    writer = now(open_session.begin(here.store, header, masking.Masker(known or {})))
    own = SessionState(writer)
    own.keep(entries.Version(of="mode", number=0, reason="a build", by="person"), "agent")
    heard = listener or Listener()
    build = BuildContext(
        writer=writer,
        state=own,
        here=here,
        listener=heard,
        person=person.Remembering(writer, who or person.Nobody()),
        runs=session_runs.Runs(writer, here.reader, heard, lambda _usage, _model: None),
        known=lambda: known or {},
    )
    open_build.furnish(build)
    if text is not None:
        own.write_draft(draft.Draft.of(text), reason="as given")
    return build


_numbers = itertools.count(1)


async def call(
    build: BuildContext, name: str, more: Sequence[Toolset] | None = None, /, **arguments: Json
) -> turn.Outcome:
    """The outcome of a tool of the build; ``more`` are its tools, unless it has all of them."""
    box = Toolbox(build.state, About(), build.listener, open_build.toolsets(build) if more is None else more)
    number = next(_numbers)
    asked = ToolCall(f"call_{number}", name, json.dumps(arguments))
    tool = next(each for each in box.offered if each.name == name)
    assert set(arguments) == set(tool.parameters["properties"]), "a model gives every argument that the schema has"
    return await box.take(asked, arguments, turn.Place(number, f"{number}_{name}", entries.SESSION_THREAD, asked.id))
