"""What a node may ask of the runtime: a few small protocols. A node is tested with fakes of these, and never sees Playwright or the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nodes.errors import RunOpsError
from nodes.pages import Page, Tabs
from nodes.part import EffectClass, Part
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json

Nodes = Sequence[Any]
"""The nodes of a block: ``Sequence[nodes.base.Node]``, which is built on this module."""

if TYPE_CHECKING:
    from nodes.budgets import Budget
    from nodes.schema.output import Output


class Artifacts(Protocol):
    """The files of a run: what a step keeps, and what it may read."""

    async def keep(self, name: str, data: bytes | Path) -> Json:
        """Keep ``data`` (or what the file ``data`` holds) as a file of the run; a map of ``name``, ``path``, ``size`` in bytes, ``sha256``, ``type``.

        ``name`` is made safe. Where another step has a file of that name, a number goes into it: ``receipt-2.pdf``; a step that is done
        again replaces its own file. Raises LogError ``file-write-failed``.
        """
        ...

    def find(self, path: str) -> Path:
        """The file at ``path``: relative to the folder of the workflow file, or the ``path`` of a file that this run has kept.

        Raises AuthorError ``file-outside`` for one that is neither among the run's own nor in the workflow's project, ``file-hidden``
        for one with a leading dot in its name or in that of a folder of the project, and ``file-not-found`` with a near miss.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class SavedSession:
    """A signed-in state that was kept."""

    content: Json
    """As ``Page.signed_in`` gave it."""
    saved_at: str
    """ISO 8601, UTC."""
    age: float
    """Seconds since then."""


class Model(Protocol):
    """A model, asked on behalf of one attempt of a step."""

    async def answer(
        self, instructions: str, question: str, output: Output, *, model: str | None, max_output: int, budget: Budget
    ) -> Json:
        """The value that the model gives, of the kind that ``output`` says. ``await ctx.act()`` comes first.

        ``model`` is the one to ask, None for that of the settings; ``max_output`` bounds one answer (tokens), ``budget`` all that the step spends.
        Raises ModelError, SetupError, BudgetReached, AuthorError ``secret-in-request`` and ``cassette-miss``.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """What an agent is to reach, and with what."""

    goal: str
    tools: tuple[str, ...]
    """The tools that it is given; ``finish`` it always has."""
    max_turns: int
    success: tuple[Rule, ...]
    """What must hold on the page in the end."""
    output: Output | None
    """What it yields; None for nothing."""
    model: str | None
    """The model to ask, None for that of the settings."""
    max_output: int
    """Tokens of one answer."""
    budget: Budget
    """What all its answers may cost."""
    effect: EffectClass | None
    """The class of all its actions; None leaves each its own."""


class Agent(Protocol):
    """A model that works on the page, on behalf of one attempt of a step."""

    async def work(self, task: Task) -> Json:
        """Let it work until it is done, and has shown so; the value. ``await ctx.act()`` comes first.

        Raises ModelError ``agent-turns``, ``agent-gave-up``, ``agent-silent``, ``agent-stuck``; Paused where nobody knows whether an action happened; and
        what ``Model.answer`` raises.
        """
        ...


class Sessions(Protocol):
    """The signed-in states of a project, by name."""

    async def save(self, name: str, content: Json) -> str:
        """Keep a state in the place of the one with that name; the time, ISO 8601 UTC. Raises LogError ``file-write-failed``."""
        ...

    async def load(self, name: str) -> SavedSession | None:
        """The state of that name; None where there is none that can be read."""
        ...


class Sql(Protocol):
    """SQL over what is in scope. It reaches nothing else: no files, no network, no settings."""

    async def select(self, statement: str, params: Mapping[str, Json]) -> list[Json]:
        """The rows of one SELECT, as maps, within the attempt's time. ``$name`` stands for a param.

        Each list of maps in scope is a table, by the name that a reference has: ``orders``, ``inputs.prices``, ``vars.seen``. Raises
        AuthorError ``sql-refused`` (no SELECT, or one that reaches further), ``sql-unknown-table``, ``sql-not-a-table``, ``sql-failed``,
        ``sql-limit`` (time, memory, rows).
        """
        ...


class Python(Protocol):
    """Functions of the project, where the configuration allows their module."""

    async def call(self, function: str, args: Mapping[str, Json]) -> Json:
        """What ``module:function`` returns for the keyword arguments, as JSON, within the attempt's time.

        Raises UsageError ``python-not-allowed``, AuthorError ``python-not-found``, ``python-failed``.
        """
        ...


class LeafContext(Protocol):
    """What one attempt of a leaf sees. The node's own fields already hold values in place of references."""

    @property
    def page(self) -> Page:
        """The tab the node works in: that of its ``tab``, or the current one; also the current one once the named one is closed."""
        ...

    @property
    def tabs(self) -> Tabs:
        """All tabs of the run."""
        ...

    @property
    def left(self) -> float:
        """Seconds that the attempt has left: what looks again and again ends with an error of its own before that."""
        ...

    @property
    def artifacts(self) -> Artifacts:
        """The files of the run."""
        ...

    @property
    def sql(self) -> Sql:
        """SQL over what is in scope."""
        ...

    @property
    def python(self) -> Python:
        """Functions of the project."""
        ...

    @property
    def model(self) -> Model:
        """A model; the node's class says ``asks``."""
        ...

    @property
    def agent(self) -> Agent:
        """A model that works on the page; the node's class says ``asks = "agent"``."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The signed-in states of the project."""
        ...

    def holds_secret(self, text: str) -> bool:
        """Whether a secret of the run stands in ``text``."""
        ...

    def masked(self, text: str) -> str:
        """``text`` with every secret of the run masked, as it may be shown and sent."""
        ...

    def flag(self, code: str, message: str, evidence: dict[str, Json]) -> None:
        """Something that a person should look at, though the step goes on: told at once, and kept with the result of the attempt.

        ``code`` is stable, ``message`` one sentence without a final stop.
        """
        ...

    async def act(self) -> None:
        """The last thing before the action: the call is written, and for class *effect* it is on the disk, when this returns.

        Call it once, after finding what is to be acted on. Whatever is raised before it counts as phase ``before``.
        """
        ...

    async def load(self, url: str, *, anew: bool = False) -> None:
        """``page.goto``; also ``anew`` where the run wants a new document, for the first address and after a failed step. The log says which it was."""
        ...

    def answers(self, questions: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
        """What a person answered to the step's questions; where nobody has, the run pauses with them (Paused ``question``)."""
        ...

    async def located(self, target: Target) -> Target:
        """``page.locate``, with the choice among ``any_of`` noted in the call."""
        ...

    async def verify(self) -> None:
        """Wait until the node's ``verify`` rules hold. A node whose value depends on them calls it; otherwise it follows ``run``."""
        ...


class BlockContext(Protocol):
    """What a container sees: it runs blocks, and what it decides is kept, so that a resumed run decides the same."""

    def render(self, part: Part, field: str, **bound: Json) -> Json:
        """The value of ``part.field``, coerced to the field's kind, with ``bound`` names in scope too."""
        ...

    def decide(self, evaluate: Callable[[], Json]) -> Json:
        """What this scope decided when it was first opened, or else what ``evaluate()`` yields now, which is then recorded."""
        ...

    async def block(self, nodes: Nodes) -> Json:
        """Run a block in the scope around the container, once; the value of its last node that ran, None if none did."""
        ...

    async def turn(
        self,
        nodes: Nodes,
        item: Item,
        *,
        collect: str | None = None,
        condition: str | None = None,
        give_up: bool = False,
    ) -> Iteration:
        """Run a block for one item, in a scope of its own with the item and ``loop`` in it.

        ``give_up``: an error that ``on_error`` could pass over ends the turn and no more. ``collect`` and ``condition`` name fields of
        the container that are worked out there at its end: what the turn yields, in place of its last node's value, and whether another
        turn follows. A finished turn is told as it was, and not done again. The container's class says ``in_turns = True``.
        """
        ...

    def goes_on(self, condition: str) -> bool:
        """Whether the condition, a field of the container, lets a first turn begin."""
        ...

    async def callee(self, part: Part, inputs: str, secrets: Sequence[str]) -> Json:
        """Run the file that the container uses, with the inputs in the field ``inputs`` of ``part`` and these secrets; what it yields."""
        ...

    async def part(
        self,
        nodes: Nodes,
        name: str,
        number: int,
        *,
        keep: Callable[[RunOpsError, bool], bool],
        again: Callable[[RunOpsError], bool] | None = None,
        caught: RunOpsError | None = None,
    ) -> Ended:
        """Run a block in a scope of its own, ``name`` or ``name[number]``, with ``error`` bound where one was ``caught``.

        ``again`` says of an error whether the block should run once more; it may, unless an action stands in the way, which the error then
        tells. An error that ``keep(error, may run again)`` asks for is kept and told: a resumed run goes on behind the block, with the
        same error. Any other is raised.
        """
        ...

    async def finish(self, nodes: Nodes, name: str, number: int, outcome: RunOpsError | None) -> bool:
        """Run a block at the end, in a scope of its own, and keep with it how the round ended.

        Whether the run has failed, and was resumed, since: then the round is over. An error of the block is raised, with ``outcome`` in
        its evidence.
        """
        ...

    def note_taken(self, branch: str | None) -> None:
        """Name the branch that was taken: it is then ``run.taken.<id>``."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One turn of a loop."""

    name: str | None
    """The ``as`` name; ``<name>_loop`` is the turn's ``loop``."""
    value: Json
    index: int
    """From 1."""
    length: int | None
    """None where nobody knows beforehand."""
    key: str | int | float | None
    """What tells the item from the others, where the loop has a ``key``."""

    @property
    def segment(self) -> str:
        """How the turn stands in a step path: ``[#1007]`` by key, ``[3]`` by index."""
        return f"[{self.index}]" if self.key is None else f"[#{escaped(self.key)}]"

    @property
    def bound(self) -> dict[str, Json]:
        """The names that the turn brings into its block."""
        own = {} if self.name is None else {self.name: self.value, f"{self.name}_loop": self.loop}
        return {"loop": self.loop, **own}

    @property
    def loop(self) -> dict[str, Json]:
        """What ``loop`` is inside the block."""
        return {
            "index": self.index,
            "first": self.index == 1,
            "last": None if self.length is None else self.index == self.length,
            "key": self.key,
            "length": self.length,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Iteration:
    """How one turn of a loop ended."""

    value: Json = None
    given_up: bool = False
    """Whether it failed, and the loop goes on all the same."""
    go_on: bool = True
    """Whether another turn follows, as far as the loop's condition says."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """How a block ended."""

    value: Json = None
    error: RunOpsError | None = None
    again: bool = False
    """Whether it is to run once more, and may."""


def escaped(key: str | float) -> str:
    """A key as it stands in a step path, which a slash or a bracket in it would break."""
    text = str(key)
    for mark in "%/]\n":
        text = text.replace(mark, f"%{ord(mark):02X}")
    return text
