"""What every node has: the envelope, and one coroutine, ``run``.

A node is a pydantic model. Its fields are the file language, its docstrings the reference, its ``run`` the meaning. A *leaf* does one
thing and is one call in the log; a *container* owns blocks of nodes and leaves scope entries only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from nodes.errors import InternalError
from nodes.part import EffectClass, Part
from nodes.rules import Rule
from nodes.template import Condition
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.budgets import Budget
    from nodes.ports import BlockContext, LeafContext


LEAF_SECONDS = 10.0
"""How long one attempt of a leaf may take unless ``timeout`` says otherwise."""

MODEL_SECONDS = 120.0
"""The same for a leaf that asks a model."""


class Retry(Part):
    """When a failed attempt is tried again. It covers errors before the action; after the action see ``on`` and ``confirm``."""

    attempts: int = Field(default=3, ge=1, le=100)
    """How many attempts in all."""
    delay: float = Field(default=1.0, ge=0, le=3600)
    """Seconds before the second attempt."""
    backoff: float = Field(default=2.0, ge=1, le=10)
    """What each further delay is multiplied by."""
    on: list[str] | None = None
    """Error codes to try again, also after the action. Without it every error before the action is tried again."""


def _unknown_types(_value: Any) -> list[Node]:
    raise InternalError("internal", "a block was read before nodes.registry was imported, which knows the node types")


block_parser: Callable[[Any], list[Node]] = _unknown_types
"""Parses the nodes of a block. The registry sets it: it knows every node type, and each of them imports this module."""


def _parse_block(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    return block_parser(value)


Block = Annotated[list[Any], WrapValidator(_parse_block, json_schema_input_type=list[Any])]
"""A list of nodes owned by a node. Statically ``list[Node]``; parsed by the registry, which knows every type."""


class Confirm(Part):
    """How to learn from the site itself whether an action happened, after a crash or a lost answer."""

    nodes: Block
    """Reads, ``goto``, clicks with ``effect: read``, and ``iterate`` and ``route`` around them, run in a fresh tab of the run's browser. Any error of
    theirs leaves open whether the action happened. Their ids are seen only in here."""
    done: Condition
    """True when the action happened. False is believed when it is false again ``settle`` seconds later."""
    settle: float = Field(default=5.0, ge=0, le=600)
    """Seconds before a *not done* is looked at again. Longer than the site takes to carry out what it has received: after a crash nobody else knows that it is still at work."""


class Node(Part, ABC):
    """The envelope of every node."""

    container: ClassVar[bool] = False
    despite_dialog: ClassVar[bool] = False
    """Whether the node can work while the page shows a dialog."""
    effect_default: ClassVar[EffectClass] = "effect"
    """The effect class where the file names none. *effect* where in doubt."""
    touches_page: ClassVar[bool] = False
    """Whether the node needs the browser."""
    asks: ClassVar[Literal["cognition", "agent"] | None] = None
    """As what the node asks a model; None where it asks none."""

    id: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)
    """Name of the node, unique in the file; later nodes read its value by this name."""
    type: str
    """Node type."""
    description: str | None = None
    """What the node is for, in your words."""
    when: Condition | None = None
    """The node runs only when this is true; otherwise it has no value."""
    on_error: Literal["fail", "continue"] = "fail"
    """``continue``: a failure leaves the node without a value, its error in ``run.errors``, and the run goes on."""

    @property
    def allowance(self) -> Budget | None:
        """What one step of the node may spend on models; None where it asks none."""
        return None

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        """The blocks that the node owns, each with the field path it stands at: ``("nodes",)``, ``("branches", 0, "nodes")``."""
        return iter(())


class Leaf(Node):
    """A node that does one thing: one call in the log for each attempt."""

    takes_up_input: ClassVar[bool] = True
    """Whether, as a side effect, it hands over to the site what was typed before: a click does, a key or a chosen file is input itself."""

    usual_seconds: ClassVar[float | None] = None
    """How long one attempt may take where the file says nothing; None: as leaves do, and those that ask a model."""

    timeout: float | None = Field(default=None, gt=0, le=86400)
    """Seconds that one attempt may take (10 by default, 120 where a model is asked, 600 for an ``agent``)."""
    retry: Retry | None = None
    """When a failed attempt is tried again."""
    verify: list[Rule] = Field(default_factory=list)
    """Rules that must hold after the action."""
    effect: EffectClass | None = None
    """What doing it twice would mean. ``read``: nothing changes on the site (it opens a page, leafs through a list); ``idempotent``: twice is as good as once
    (it signs in, it only asks); ``effect``: a second action, so after a crash a run asks ``confirm``, and never simply does it again."""
    after_crash: Literal["confirm", "retry", "skip", "ask"] | None = None
    """What to do when an answer is lost. A ``confirm`` is asked first, unless this says ``ask``; ``retry`` and ``skip`` are for what it cannot tell."""
    confirm: Confirm | None = None
    """How to learn from the site whether the action happened."""

    @property
    def effect_class(self) -> EffectClass:
        """What doing the step twice would mean. A step whose references are filled in may turn out to be of class *effect* that was not before."""
        return self.effect or self.effect_default

    @property
    def moves_page(self) -> bool:
        """Whether doing the step may leave the page another than it was: also a click that is said only to ``read``, which nobody minds twice."""
        return self.touches_page and not self.effect_class == self.effect_default == "read"

    @property
    def seconds(self) -> float:
        """How long one attempt may take."""
        return self.timeout or self.usual_seconds or (LEAF_SECONDS if self.asks is None else MODEL_SECONDS)

    @property
    def page_seconds(self) -> float:
        """How long the page may be waited for, of the attempt's time: a step that asks a model for one answer looks first, and the rest is the model's."""
        return min(self.seconds, LEAF_SECONDS) if self.asks == "cognition" and self.timeout is None else self.seconds

    @property
    def postconditions(self) -> list[Rule]:
        """What holds once the action has happened: looked at right before it too, so that after a crash it can say that it did."""
        return self.verify

    @property
    def value_pending(self) -> bool:
        """Whether the step is still asked for its value where its action is known to have happened, and nothing else is known of it."""
        return False

    @property
    def works_in(self) -> str | None:
        """Name of the tab that the node works in; None is the current one."""
        return None

    def summary(self) -> str:
        """The step as one short line for people: ``click role=button name="Pay"``. No secret stands in it: called before references are filled."""
        return self.type

    @abstractmethod
    async def run(self, ctx: LeafContext) -> Json:
        """Do the one thing and return the value. ``await ctx.act()`` comes just before anything outside is touched."""


class Container(Node):
    """A node that owns blocks. It writes no call; its scope says what was opened, decided and committed."""

    container: ClassVar[bool] = True
    unit: ClassVar[bool] = False
    """Whether the container is a unit: its end is a commit point, and the leaves in it are none."""
    in_turns: ClassVar[bool] = False
    """Whether it runs its block in turns: what the nodes yield is seen only inside a turn, and ``run.failures.<id>`` lists the turns given up."""

    on_redo: Literal["confirm", "redo", "ask"] | None = None
    """When the browser is gone and actions already done would be done again: ask the site by each ``confirm``, repeat them, or ask a person."""

    @abstractmethod
    async def run(self, ctx: BlockContext) -> Json:
        """Run the blocks and return the value."""
