"""Services of a leaf beyond the page: files, SQL, functions, models, answers of people, signed-in states, mailboxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from nodes.cognition import ModelLeaf
from nodes.errors import AuthorError
from nodes.ports import Agent, Model, Python, Sql
from nodes.values import Json
from runtime import events
from runtime.engine.run_state import LeafView, RunState, StepServices
from runtime.log import entries
from runtime.services import artifacts, functions, mailboxes, signed_in
from runtime.services.questions import pause

if TYPE_CHECKING:
    from runtime.messages.messages import Item
    from runtime.models import requests, run_models

AgentFactory = Callable[[RunState, LeafView, "run_models.RunModels", "requests.RequestScope"], Agent]


class LeafServices(StepServices):
    """The services of one attempt of a leaf."""

    def __init__(
        self,
        run: RunState,
        step: LeafView,
        models: run_models.RunModels | None,
        python_modules: Sequence[str],
        agents: AgentFactory,
    ) -> None:
        """``models`` may be None if no node asks a model. Nodes may only call functions of ``python_modules``."""
        self._run = run
        self._step = step
        self._models = models
        self._python_modules = python_modules
        self._agents = agents
        self._artifacts: artifacts.Artifacts | None = None

    @property
    @override
    def kept(self) -> Sequence[Json]:
        return self._artifacts.kept if self._artifacts is not None else ()

    @property
    @override
    def artifacts(self) -> artifacts.Artifacts:
        if self._artifacts is None:
            folder = self._step.frame.program.loaded.path.absolute().parent
            self._artifacts = artifacts.Artifacts(self._run.writer, folder, self._step.path)
        return self._artifacts

    @property
    @override
    def sql(self) -> Sql:
        from runtime.sql import select

        return select.Select(self._step.frame, self._step.node.seconds)

    @property
    @override
    def python(self) -> Python:
        return functions.Functions(self._python_modules, self._step.node.seconds, self._run.writer.masker)

    @property
    @override
    def model(self) -> Model:
        from runtime.context import hidden_values  # most runs ask none
        from runtime.models import questions as models_questions

        models, requester = self._asking()
        hidden = hidden_values.Hidden(self._run, self._step.node, self._step.frame)
        return models_questions.StepModel(models, self._run.writer, requester, hidden.text)

    @property
    @override
    def agent(self) -> Agent:
        return self._agents(self._run, self._step, *self._asking())

    def _asking(self) -> tuple[run_models.RunModels, requests.RequestScope]:
        from runtime.context import briefs  # most runs ask none
        from runtime.models import requests

        call, models = self._step.call, self._models
        assert models is not None, "a run of a file with such a node has models"
        assert call is not None, "`await ctx.act()` comes first"
        return models, requests.RequestScope(
            call.path,
            entries.thread_of(call),
            role=self._step.node.asks or "cognition",
            left=lambda: self._step.left,
            tell=lambda what: self._run.emit(events.StepWaiting(self._step.path, what)),
            before=self._before(),
            longer="give the node a larger `max_output`",
            brief=lambda: briefs.of_step(self._run, self._models, self._step.node, self._step.frame, self._step.path),
        )

    def _before(self) -> Sequence[Item]:
        """Return the conversation of the session that began the run, if the node's model is to have it."""
        from runtime.context import background  # most runs have none

        said, node = self._run.history.background, self._step.node
        if said is None or not isinstance(node, ModelLeaf) or node.conversation == "none":
            return ()
        return background.read(self._run.writer.text_of(said))

    @property
    @override
    def sessions(self) -> signed_in.SignIns:
        return signed_in.SignIns(self._run.private.parent / "sessions")

    @property
    @override
    def mail(self) -> mailboxes.Mailboxes:
        return mailboxes.Mailboxes(self._run.history.started, lambda: self._step.left)

    @override
    def answers(self, questions: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
        known = self._run.history.answers.get(self._step.path)
        if known is None:
            self._refuse_secret_as_answer(questions)
            raise pause(self._step.path, questions)
        return known

    def _refuse_secret_as_answer(self, questions: Mapping[str, dict[str, Json]]) -> None:
        """Refuse a secret as an offered answer: a pause is written masked, and a mask is no answer."""
        masker = self._run.writer.masker
        for name, question in questions.items():
            offered = [question.get("choices"), question.get("default")]
            if masker.json(offered) != offered:
                raise AuthorError(
                    "secret-in-question",
                    f"the question `{name}` offers a secret as its answer, and answers are kept in the log",
                    fix="offer something else, such as the name of what is meant",
                )
