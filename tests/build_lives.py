"""Builds for tests, in this process: a function as model, and one process after another on the same log."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from director.builds import loop
from director.builds import open as open_build
from director.builds import subject as build_subject
from director.conversation import reply
from director.draft.goal import Goal, Policy
from director.session import open as open_session
from director.session import person
from director.session.events import Listener
from director.session.state import SessionState
from director.tools.build_context import BuildContext
from director.tools.toolbox import Toolset
from nodes import budgets
from nodes.errors import RunOpsError
from runtime import version
from runtime.context import limits
from runtime.log import entries
from runtime.log import session as log_session
from runtime.log.store import file_store
from runtime.log.writer import LogWriter
from runtime.messages.messages import Request
from runtime.secrets import masking
from runtime.settings import settings
from runtime.workspace import host
from tests import talks
from tests.now import let_go, now

GOAL = "Look at the shop"


@dataclasses.dataclass
class Life:
    """One process of a build, whose log is in ``folder``."""

    folder: Path
    model: talks.Model
    session: str | None = None
    """The session to resume; None: a new one."""
    who: person.Person = dataclasses.field(default_factory=person.Nobody)
    budget: str | None = None
    policy: Policy = "hold"
    url: str | None = "http://127.0.0.1:9"
    more: Callable[[BuildContext], Sequence[Toolset]] = lambda _shop: ()
    """Tools in addition to those of every build."""
    listener: Listener = dataclasses.field(default_factory=Listener)
    requests: list[Request] = dataclasses.field(default_factory=list[Request])
    ended: loop.Ended | None = None
    error: RunOpsError | None = None
    writer: LogWriter[log_session.Session] = dataclasses.field(init=False)
    build: BuildContext = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.store = file_store.Files(self.folder / ".runops")
        if self.session is None:
            goal = Goal(GOAL, self.url, self.folder / "built.yaml", 1, self.policy)
            header = entries.SessionHeader(
                purpose="build", versions=version.versions(), budget=self.budget, build=goal.as_logged()
            )
            self.writer = now(open_session.begin(file_store.FileStore(self.store), header, masking.Masker({})))
            self.session = self.writer.conversation.id
        else:
            self.writer = now(
                open_session.reopen(
                    file_store.FileStore(self.store), self.session, masking.Masker({}), budget=self.budget
                )
            )
        chosen = settings.load(home=self.folder / ".runops", model="m", model_base_url="http://127.0.0.1:9")
        own = SessionState(self.writer)
        self.build = open_build.of_session(
            self.writer, own, host.of_command(chosen), self.listener, self.who, lambda _usage, _model: None
        )
        past = self.writer.history
        budget = budgets.parse(past.budget) if past.budget is not None else None
        self.talk = reply.Talk(
            own,
            build_subject.BuildSubject(self.build),
            talks.Supply(self.model, self.requests, budget),
            chosen,
            self.listener,
            lambda: limits.of_session(past, self.writer, chosen),
            [*open_build.toolsets(self.build), *self.more(self.build)],
            loop.OPTIONS,
        )

    def live(self, word: str | None = None) -> Life:
        """Build until it ends or breaks off; resources of the process are then released."""

        async def lived() -> None:
            try:
                await self.build.runs.settle()
                self.ended = await loop.to_its_end(self.build, self.talk, word)
            except RunOpsError as error:
                self.error = error
            finally:
                await self.build.close()
                let_go(self.writer.conversation)

        asyncio.run(lived())
        return self

    @property
    def code(self) -> str | None:
        """The code of the error that ended it."""
        return self.error.code if self.error is not None else None

    @property
    def told(self) -> list[str]:
        """The outputs of the model's calls in the last request."""
        return talks.outputs(self.requests[-1])

    @property
    def file(self) -> Path:
        """The log."""
        return self.folder / ".runops" / "conversations" / f"{self.session}.jsonl"

    def again(self, model: talks.Model, **more: Any) -> Life:
        """The next process of it."""
        return Life(self.folder, model, self.session, **more)

    def cut(self, lines: int, folder: Path, model: talks.Model, **more: Any) -> Life:
        """The next process, in ``folder``, as if this one had died after that line."""
        shutil.copytree(self.folder / ".runops", folder / ".runops")
        file = folder / ".runops" / "conversations" / self.file.name
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:lines]))
        return Life(folder, model, self.session, **more)
