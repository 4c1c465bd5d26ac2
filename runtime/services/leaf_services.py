"""What a leaf sees of the run while it is attempted: the page, the files, SQL, functions, models, answers of people."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from nodes.base import Leaf
from nodes.errors import AuthorError
from nodes.pages import Page, Tabs
from nodes.ports import Agent, Model, Python, Sql
from nodes.targets import Target
from nodes.values import Json
from runtime import events
from runtime.engine import scopes
from runtime.log import entries
from runtime.runs import answers
from runtime.services import artifacts, functions, signed_in

if TYPE_CHECKING:
    from runtime.engine.engine import ExecutionEngine
    from runtime.models import requests


class Surroundings:
    """All of ``nodes.ports.LeafContext`` that is there for one attempt of a leaf, but the deed itself."""

    def __init__(self, engine: ExecutionEngine, node: Leaf, frame: scopes.Frame, path: str) -> None:
        """Of ``node`` at ``path``, which sees the names of ``frame``. The time of the attempt begins."""
        self._engine = engine
        self._node = node
        self._frame = frame
        self._path = path
        self._begun = time.monotonic()
        self._matched: list[str] = []
        self._page: Page | None = None
        self._fresh = False
        """Whether the page is a tab of its own, none of the run's."""
        self._artifacts: artifacts.Artifacts | None = None
        self._call: entries.Call | None = None
        self._flags: list[dict[str, Json]] = []
        self._load: Literal["new", "same"] | None = None
        """Whether an address that was loaded gave a new document."""
        self.closing = False
        """Whether the deed is known to have happened, so that only the step's value is wanted, and nothing more may be done."""

    @property
    def page(self) -> Page:
        """The tab the node works in."""
        assert self._page is not None, "the node type lacks `touches_page = True`"
        # A node that names no tab works in the current one, and may have made another one current.
        if not self._fresh and (self._node.works_in is None or self._page.closed):
            self._page = self._tabs().get(None)
        return self._page

    @property
    def tabs(self) -> Tabs:
        """All tabs of the run."""
        return self._tabs()

    def _tabs(self) -> Tabs:
        assert self._engine.browser is not None, "the node does not say that it touches the page"
        return self._engine.browser.tabs

    @property
    def artifacts(self) -> artifacts.Artifacts:
        """The files of the run."""
        if self._artifacts is None:
            folder = self._frame.program.loaded.path.absolute().parent
            self._artifacts = artifacts.Artifacts(self._engine.journal, folder, self._path)
        return self._artifacts

    @property
    def sql(self) -> Sql:
        """SQL over the names that the step sees."""
        from runtime.sql import select

        return select.Select(self._frame, self._node.seconds)

    @property
    def python(self) -> Python:
        """The functions that the configuration allows."""
        return functions.Functions(self._engine.python_modules, self._node.seconds, self._engine.journal.masker)

    @property
    def model(self) -> Model:
        """A model, for this attempt."""
        assert self._engine.models is not None, "a run of a file with such a node has models"
        assert self._call is not None, "`await ctx.act()` comes first"
        from runtime.models import questions as models_questions  # most runs ask none

        return models_questions.StepModel(self._engine.models, self._engine.journal, self._asker(self._call))

    def _asker(self, call: entries.Call) -> requests.Asker:
        from runtime.context import briefs  # most runs ask none
        from runtime.models import requests

        return requests.Asker(
            call.path,
            entries.thread_of(call),
            role=self._node.asks or "cognition",
            left=lambda: self.left,
            tell=lambda what: self._engine.tell(events.StepWaiting(self._path, what)),
            brief=lambda: briefs.of_step(self._engine, self._node, self._frame, self._path),
        )

    @property
    def agent(self) -> Agent:
        """A model that works on the page, for this attempt."""
        assert self._call is not None, "`await ctx.act()` comes first"
        from runtime.agents import agent as agents_agent
        from runtime.agents import page_tools

        place = page_tools.Place(self._engine, self._node, self._frame, self._call, lambda: self.left, self.closing)
        return agents_agent.Worker(place, self._asker(self._call))

    @property
    def sessions(self) -> signed_in.SignIns:
        """The signed-in states of the project."""
        return signed_in.SignIns(self._engine.private.parent / "sessions")

    def answers(self, questions: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
        """What a person answered to the step's questions; raises Paused where nobody has."""
        known = self._engine.history.answers.get(self._path)
        if known is None:
            self._refuse_secret_as_answer(questions)
            raise answers.pause(self._path, questions)
        return known

    def _refuse_secret_as_answer(self, questions: Mapping[str, dict[str, Json]]) -> None:
        """A pause is written down masked, and a mask is no answer."""
        masker = self._engine.journal.masker
        for name, question in questions.items():
            offered = [question.get("choices"), question.get("default")]
            if masker.json(offered) != offered:
                raise AuthorError(
                    "secret-in-question",
                    f"the question `{name}` offers a secret as its answer, and answers are kept in the log",
                    mend="offer something else, such as the name of what is meant",
                )

    @property
    def left(self) -> float:
        """Seconds that the attempt has left."""
        return max(0.0, self._node.seconds - (time.monotonic() - self._begun))

    def holds_secret(self, text: str) -> bool:
        """Whether a secret of the run stands in ``text``."""
        masker = self._engine.journal.masker
        return masker.text(text) != text

    def masked(self, text: str) -> str:
        """``text`` with every secret of the run masked."""
        return self._engine.journal.masker.text(text)

    def flag(self, code: str, message: str, evidence: dict[str, Json]) -> None:
        """Tell what a person should look at, and keep it for the result."""
        flag: dict[str, Json] = self._engine.journal.masker.json(
            {"code": code, "message": message, "evidence": evidence}
        )
        self._flags.append(flag)
        self._engine.tell(events.Said(f"{self._path}: {flag['message']}"))

    async def load(self, url: str, *, anew: bool = False) -> None:
        """Load an address; as a new document also where the run wants one."""
        page, engine = self.page, self._engine
        before = page.documents
        await page.goto(url, anew=anew or (engine.load_anew and not self._fresh))
        if not self._fresh:
            engine.load_anew = False
        self._load = "new" if page.documents != before else "same"

    async def located(self, target: Target) -> Target:
        """The target with its ``any_of`` chosen."""
        chosen = await self.page.locate(target)
        if chosen is not target:
            self._matched.append(str(chosen))
        return chosen
