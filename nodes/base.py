"""Base of all nodes: the fields that all of them have (the envelope), and one coroutine, ``run``.

A node is a pydantic model. Its fields are the file language, its docstrings the reference, its ``run`` the behaviour. A *leaf* does one
thing and is one call in the log. A *container* owns blocks of nodes and logs only scope entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, ValidatorFunctionWrapHandler, WrapValidator

from nodes.errors import InternalError
from nodes.part import EffectClass, Part
from nodes.rules import Rule
from nodes.template import Condition
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.budgets import Budget
    from nodes.ports import BlockContext, LeafContext


LEAF_SECONDS = 30.0  # default time limit of one attempt of a leaf, in seconds; `timeout` overrides it
MODEL_SECONDS = 120.0  # the same for a leaf that asks a model


class Retry(Part):
    """Retries of a failed attempt. They cover errors before the action; for errors after it see ``on`` and ``confirm``."""

    attempts: int = Field(default=3, ge=1, le=100)
    """Number of attempts in all."""
    delay: float = Field(default=1.0, ge=0, le=3600)
    """Seconds before the second attempt."""
    backoff: float = Field(default=2.0, ge=1, le=10)
    """Factor of each further delay."""
    on: list[str] | None = None
    """Error codes that are retried, also after the action. By default every error before the action is retried."""


def _unknown_types(_value: Any) -> list[Node]:
    raise InternalError("internal", "a block was read before nodes.registry was imported, which knows the node types")


block_parser: Callable[[Any], list[Node]] = _unknown_types
"""Parses the nodes of a block. The registry sets it, because this module cannot import the node types: they import it."""


def _parse_block(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    return block_parser(value)


Block = Annotated[list[Any], WrapValidator(_parse_block, json_schema_input_type=list[Any])]
"""A list of nodes owned by a node. Statically ``list[Node]``; parsed by the registry, which knows every type."""


class Confirm(Part):
    """Asks the site whether an action happened, after a crash or a lost answer."""

    nodes: Block
    """Reads, ``goto``, clicks, keys and fields with ``effect: read``, and containers around them; a ``handle`` has only ``try`` and
    ``attempts`` here. They run in a fresh tab of the run's browser. If one fails, it stays unknown whether the action happened. Their ids are
    visible only in here."""
    done: Condition
    """True if the action happened. False counts only if it is false again ``settle`` seconds later."""
    settle: float = Field(default=5.0, ge=0, le=600)
    """Seconds before a *not done* is checked again. Make it longer than the site takes to carry out what it has received: after a crash it
    may still be working."""


class Node(Part, ABC):
    """The envelope of every node."""

    container: ClassVar[bool] = False
    despite_dialog: ClassVar[bool] = False
    """True if the node can work while the page shows a dialog."""
    effect_default: ClassVar[EffectClass] = "effect"
    """The default effect class. When in doubt, it is *effect*."""
    touches_page: ClassVar[bool] = False
    """True if the node needs the browser."""
    reads_at_once: ClassVar[bool] = False
    """True if the node reads the page as it is, and one that is not drawn yet gives another value."""
    asks: ClassVar[Literal["cognition", "agent"] | None] = None
    """Role in which the node asks a model; None if it asks none."""

    id: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)
    """Name of the node, unique in the file; later nodes read its value by this name."""
    type: str
    """Node type."""
    description: str | None = None
    """Purpose of the node, in your words."""
    when: Condition | None = None
    """The node runs only when this is true; otherwise it has no value."""
    on_error: Literal["fail", "continue"] = "fail"
    """``continue``: a failure leaves the node without a value and its error in ``run.errors``, and the run continues."""

    @property
    def allowance(self) -> Budget | None:
        """Return the model budget of one step of the node; None if it asks no model."""
        return None

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        """Yield the blocks that the node owns, each with its field path: ``("nodes",)``, ``("branches", 0, "nodes")``."""
        return iter(())


class Leaf(Node):
    """A node that does one thing: one call in the log for each attempt."""

    takes_up_input: ClassVar[bool] = True
    """True if, as a side effect, it consumes what was typed before, as a click does. A key or a chosen file is input itself."""

    fills_field: ClassVar[bool] = False
    """True if it changes the content of one field, and leaves everything else in view."""

    usual_seconds: ClassVar[float | None] = None
    """Default time limit of one attempt; None: that of leaves, or of leaves that ask a model."""

    value_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields whose content becomes the node's value. The log has that as the result, so it has these as they are in the file."""

    timeout: float | None = Field(default=None, gt=0, le=86400)
    """Seconds that one attempt may take. Default: the ``timeout`` of the file, or the setting, else 30; 120 if it asks a model or
    reads a mailbox; 600 for an ``agent``. The time of a ``hold`` comes on top."""
    retry: Retry | None = None
    """Retries of a failed attempt."""
    verify: list[Rule] = Field(default_factory=list)
    """Rules that must hold after the action."""
    effect: EffectClass | None = None
    """What doing it twice means. ``read``: nothing changes on the site (it opens a page, goes through a list). ``idempotent``: twice
    is as good as once (it signs in, it only asks). ``effect``: a second action, so after a crash a run asks ``confirm`` and never simply
    repeats it."""
    after_crash: Literal["confirm", "retry", "skip", "ask"] | None = None
    """Reaction to a lost answer. A ``confirm`` is asked first, unless this is ``ask``; ``retry`` and ``skip`` apply if it cannot decide."""
    confirm: Confirm | None = None
    """Asks the site whether the action happened."""

    _default: float = PrivateAttr(default=LEAF_SECONDS)

    @property
    def effect_class(self) -> EffectClass:
        """The consequence of doing the step twice. Resolved references may turn a step of another class into one of class *effect*."""
        return self.effect or self.effect_default

    @property
    def moves_page(self) -> bool:
        """True if the step may change the page, as a click does even if it is declared ``read``."""
        return self.touches_page and not self.effect_class == self.effect_default == "read"

    @property
    def ends_at_rest(self) -> bool:
        """True if the step waits after its action until the page rests."""
        return False

    @property
    def begins_once(self) -> bool:
        """True if an attempt that failed on its way leaves a page on which another one would do something else.

        ``retry`` ends then, and a resumed run restores the page.
        """
        return False

    def by_default(self, seconds: float | None) -> None:
        """Set the default time limit of steps, which leaves that ask a model have only for the page. None: the usual one."""
        self._default = seconds or LEAF_SECONDS

    @property
    def held(self) -> float:
        """Return the seconds for which the action itself lasts; 0 as long as they depend on a reference."""
        return 0.0

    @property
    def seconds(self) -> float:
        usual = self.usual_seconds or (self._default if self.asks is None else MODEL_SECONDS)
        return self.timeout or usual + self.held

    @property
    def page_seconds(self) -> float:
        """Return the seconds of the attempt for waiting on the page. A leaf that asks for one model answer has the rest for that."""
        return min(self.seconds, self._default) if self.asks == "cognition" and self.timeout is None else self.seconds

    @property
    def postconditions(self) -> list[Rule]:
        """Return the rules that hold after the action. They are also checked right before it: rules that held already prove nothing after a crash."""
        return self.verify

    @property
    def value_pending(self) -> bool:
        """True if the step still has to yield a value when all that is known is that its action happened."""
        return False

    @property
    def works_in(self) -> str | None:
        """Return the name of the tab that the node works in; None is the current one."""
        return None

    def summary(self) -> str:
        """Return the step as a line for people: ``click role=button name="Pay"``.

        Called before references are resolved, so it contains no secret.
        """
        return self.type

    @abstractmethod
    async def run(self, ctx: LeafContext) -> Json:
        """Do the one thing and return the value. Call ``await ctx.act()`` just before anything outside is touched."""


class Container(Node):
    """A node that owns blocks. It logs no call; its scope entries say what was opened, decided and committed."""

    container: ClassVar[bool] = True
    unit: ClassVar[bool] = False
    """True if the container is a unit: its end is a commit point, and the leaves in it are none."""
    in_turns: ClassVar[bool] = False
    """True if it runs its block in iterations. Values of its nodes are visible only inside an iteration, and ``run.failures.<id>`` lists
    failed ones."""

    on_redo: Literal["confirm", "redo", "ask"] | None = None
    """Reaction if the browser is lost and completed actions would be repeated: ask the site by each ``confirm``, repeat them, or ask a person."""

    @abstractmethod
    async def run(self, ctx: BlockContext) -> Json:
        """Run the blocks and return the value."""
