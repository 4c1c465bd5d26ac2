"""Runtime ports for nodes: a few small protocols. Tests of a node use fakes of these; a node never sees Playwright or the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nodes.errors import RunOpsError
from nodes.mail import Letter, Mailbox, Seen, Wanted
from nodes.pages import Page, Tabs
from nodes.part import Part
from nodes.targets import Target
from nodes.values import Json

Nodes = Sequence[Any]
"""The nodes of a block: ``Sequence[nodes.base.Node]``, which imports this module."""

if TYPE_CHECKING:
    from nodes.budgets import Budget
    from nodes.schema.output import Output


class Artifacts(Protocol):
    """The files of a run: those that steps keep, and those that they may read."""

    async def keep(self, name: str, data: bytes | Path) -> Json:
        """Keep ``data`` (or the content of the file ``data``) as a file of the run. Return a map of ``name``, ``path``, ``size`` in bytes, ``sha256``, ``type``.

        ``name`` is made safe. If another step has a file of that name, a number is added: ``receipt-2.pdf``; a repeated step replaces its
        own file. Raises LogError ``file-write-failed``.
        """
        ...

    def find(self, path: str) -> Path:
        """Return the file at ``path``: relative to the folder of the workflow file, or the ``path`` of a file kept by this run.

        Raises AuthorError ``file-outside`` if it is neither the run's nor in the workflow's project, ``file-hidden`` if its name or that of
        a folder of the project has a leading dot, and ``file-not-found`` with the closest name.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class SavedSession:
    """A saved signed-in state."""

    content: Json
    """The result of ``Page.signed_in``."""
    saved_at: str
    """ISO 8601, UTC."""
    age: float
    """Seconds since then."""


class Model(Protocol):
    """A model, asked on behalf of one attempt of a step."""

    async def answer(
        self, instructions: str, question: str, output: Output, *, model: str | None, max_output: int, budget: Budget
    ) -> Json:
        """Return the model's value, of the form in ``output``. ``await ctx.act()`` comes first.

        ``model`` is None for that of the settings; ``max_output`` limits one answer (tokens), ``budget`` all spending of the step. Raises
        ModelError, SetupError, BudgetReached, AuthorError ``secret-in-request`` and ``cassette-miss``.
        """
        ...


class Agent(Protocol):
    """A model that works on the page, on behalf of one attempt of a step."""

    async def work(self, task: Any) -> Json:
        """Let it work until it is done, and has proved it; return the value. ``await ctx.act()`` comes first.

        ``task`` is the node, a ``nodes.agent.Agent``. Raises ModelError ``agent-turns``, ``agent-gave-up``, ``agent-silent``,
        ``agent-stuck``; Paused if it is unknown whether an action happened; and the errors of ``Model.answer``.
        """
        ...


class Sessions(Protocol):
    """The signed-in states of a project, by name."""

    async def save(self, name: str, content: Json) -> str:
        """Save a state in place of the one with that name; return the time, ISO 8601 UTC. Raises LogError ``file-write-failed``."""
        ...

    async def load(self, name: str) -> SavedSession | None:
        """Return the state of that name; None if there is none that can be read."""
        ...


class Sql(Protocol):
    """SQL over the values in scope. It reaches nothing else: no files, no network, no settings."""

    async def select(self, statement: str, params: Mapping[str, Json]) -> list[Json]:
        """Return the rows of one SELECT, as maps, within the attempt's time. ``$name`` is a placeholder of a param.

        Each list of maps in scope is a table, named like its reference: ``orders``, ``inputs.prices``, ``vars.seen``. Raises AuthorError
        ``sql-refused`` (no SELECT, or one that reaches further), ``sql-unknown-table``, ``sql-not-a-table``, ``sql-failed``, ``sql-limit``
        (time, memory, rows).
        """
        ...


class Python(Protocol):
    """Functions of the project, if the configuration allows their module."""

    async def call(self, function: str, args: Mapping[str, Json]) -> Json:
        """Return the result of ``module:function`` for the keyword arguments, as JSON, within the attempt's time.

        Raises UsageError ``python-not-allowed``, AuthorError ``python-not-found``, ``python-failed``.
        """
        ...


class Inbox(Protocol):
    """An open mailbox."""

    @property
    def seen(self) -> Seen: ...

    async def arrived(self) -> list[Letter]:
        """Return the wanted messages that were not returned before, the newest first. Nothing in the mailbox changes.

        Raises the errors of ``Mail.open``.
        """
        ...

    async def mark_read(self, letter: Letter) -> None: ...


class Mail(Protocol):
    """Mailboxes, read by IMAP."""

    def open(self, mailbox: Mailbox, wanted: Wanted) -> AbstractAsyncContextManager[Inbox]:
        """Open the mailbox for the messages that are wanted.

        Raises SetupError ``extra-missing``, ``mail-login-refused``, SiteError ``mail-unreachable``, AuthorError ``mail-folder-unknown``.
        """
        ...


class Services(Protocol):
    """What one attempt of a leaf may use beyond the page."""

    @property
    def artifacts(self) -> Artifacts: ...
    @property
    def sql(self) -> Sql: ...
    @property
    def python(self) -> Python: ...

    @property
    def model(self) -> Model:
        """A model; the node's class sets ``asks``."""
        ...

    @property
    def agent(self) -> Agent:
        """A model that works on the page; the node's class sets ``asks = "agent"``."""
        ...

    @property
    def sessions(self) -> Sessions: ...
    @property
    def mail(self) -> Mail: ...

    def answers(self, questions: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
        """Return a person's answers to the step's questions; if there are none yet, the run pauses (Paused ``question``)."""
        ...


class LeafContext(Services, Protocol):
    """Context of one attempt of a leaf. The node's own fields have their references resolved."""

    @property
    def page(self) -> Page:
        """The tab of the node: that of its ``tab``, or the current one; also the current one once the named one is closed."""
        ...

    @property
    def tabs(self) -> Tabs: ...

    @property
    def limit(self) -> float:
        """Return the seconds that the attempt may take in all."""
        ...

    @property
    def left(self) -> float:
        """Return the seconds left for the attempt. A polling step ends with a specific error before that."""
        ...

    def holds_secret(self, text: str) -> bool:
        """Return whether ``text`` contains a secret of the run."""
        ...

    def masked(self, text: str) -> str:
        """Return ``text`` with every secret of the run masked, as it may be shown and sent."""
        ...

    def hide(self, code: str) -> None:
        """Mask this one-time code from now on, as a secret, while the process has the run."""
        ...

    unmatched: str | None
    """Part around a target that matched nothing, so that nothing was found: kept with the result of the attempt."""

    def flag(self, code: str, message: str, evidence: dict[str, Json]) -> None:
        """Report something for a person to check, while the step continues: emitted at once, and kept with the result of the attempt.

        ``code`` is stable, ``message`` one sentence without a final stop.
        """

    async def act(self) -> None:
        """Called last before the action. When it returns, the call is written, and for class *effect* synced to disk.

        Call it once, after finding the target. Errors raised before it count as phase ``before``.
        """

    async def load(self, url: str, *, anew: bool = False, once: bool = False) -> None:
        """Call ``page.goto``; also ``anew`` if the run needs a new document: for the first address and after a failed step. The choice is logged."""

    async def located(self, target: Target) -> Target:
        """Call ``page.locate``, and log the choice among ``any_of`` in the call."""
        ...

    async def verify(self) -> None:
        """Wait until the node's ``verify`` rules hold. A node whose value depends on them calls it; otherwise it follows ``run``."""


class BlockContext(Protocol):
    """Context of a container: it runs blocks, and logs decisions, so that a resumed run decides the same."""

    def render(self, part: Part, field: str, /, **bound: Json) -> Json:
        """Return the value of ``part.field``, coerced to the field's kind, with ``bound`` names in scope too."""
        ...

    def decide(self, evaluate: Callable[[], Json]) -> Json:
        """Return the decision logged when this scope was first opened, else the result of ``evaluate()``, which is then logged."""
        ...

    async def block(self, nodes: Nodes) -> Json:
        """Run a block in the scope around the container, once; return the value of its last node that ran, None if none did."""
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
        """Run a block for one item, in a separate scope with the item and ``loop`` in it.

        ``give_up``: an error that ``on_error`` could tolerate ends only the iteration. ``collect`` and ``condition`` name fields of the
        container that are evaluated there at its end: the iteration's value, in place of its last node's, and whether another one follows. A
        finished iteration is returned as logged, and not repeated. The container's class sets ``in_turns = True``.
        """
        ...

    def goes_on(self, condition: str) -> bool:
        """Return whether the condition, a field of the container, allows a first iteration."""
        ...

    async def callee(self, part: Part, inputs: str, secrets: Sequence[str]) -> Json:
        """Run the file that the container uses, with the inputs in the field ``inputs`` of ``part`` and these secrets; return its output."""
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
        """Run a block in a separate scope, ``name`` or ``name[number]``, with ``error`` bound if one was ``caught``.

        ``again`` decides for an error whether the block should run once more. It may, unless an action prevents it, which the error then
        names. An error for which ``keep(error, may run again)`` is true is logged and returned: a resumed run continues after the block,
        with the same error. Any other is raised.
        """
        ...

    async def finish(self, nodes: Nodes, name: str, number: int, outcome: RunOpsError | None) -> bool:
        """Run a final block in a separate scope, and log with it how the block retry ended.

        Return whether the run has failed and was resumed since: then this block retry is over. An error of the block is raised, with
        ``outcome`` in its evidence.
        """
        ...

    def note_taken(self, branch: str | None) -> None:
        """Log the name of the taken branch: it is then ``run.taken.<id>``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One item of a loop."""

    name: str | None
    """The ``as`` name; ``<name>_loop`` is the item's ``loop``."""
    value: Json
    index: int
    """From 1."""
    length: int | None
    """None if unknown beforehand."""
    key: str | int | float | None
    """Identifies the item, if the loop has a ``key``."""

    @property
    def segment(self) -> str:
        """Return the item in a step path: ``[#1007]`` by key, ``[3]`` by index."""
        return f"[{self.index}]" if self.key is None else f"[#{escaped(self.key)}]"

    @property
    def bound(self) -> dict[str, Json]:
        """Return the names bound in its block."""
        own = {} if self.name is None else {self.name: self.value, f"{self.name}_loop": self.loop}
        return {"loop": self.loop, **own}

    @property
    def loop(self) -> dict[str, Json]:
        """Return the value of ``loop`` inside the block."""
        return {
            "index": self.index,
            "first": self.index == 1,
            "last": None if self.length is None else self.index == self.length,
            "key": self.key,
            "length": self.length,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Iteration:
    """The end of one iteration of a loop."""

    value: Json = None
    given_up: bool = False
    """True if it failed, and the loop continues."""
    go_on: bool = True
    """True if another iteration follows, according to the loop's condition."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """The end of a block."""

    value: Json = None
    error: RunOpsError | None = None
    again: bool = False
    """True if it should run once more, and may."""


def escaped(key: str | float) -> str:
    """Return a key as written in a step path, which a slash or a bracket in it would break."""
    text = str(key)
    for mark in "%/]\n":
        text = text.replace(mark, f"%{ord(mark):02X}")
    return text
