"""``agent``: a model that works on the page with tools, in a bounded number of turns, towards a goal."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator
from typing_extensions import override

from nodes.base import Leaf
from nodes.budgets import Budget
from nodes.cognition import LONGEST_ANSWER, SHORTEST_ANSWER
from nodes.part import EffectClass
from nodes.ports import Task
from nodes.rules import Rule
from nodes.schema.output import OutputField
from nodes.template import Text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext

ToolName = Literal["look", "find", "read", "click", "fill", "select", "press", "goto", "dialog", "tab"]
"""What an agent may be given. ``finish`` it always has."""

EVERY_TOOL: tuple[ToolName, ...] = (
    "look",
    "find",
    "read",
    "click",
    "fill",
    "select",
    "press",
    "goto",
    "dialog",
    "tab",
)

LOOKING: frozenset[ToolName] = frozenset({"look", "find", "read", "tab"})
"""Tools that leave the site as it is."""

AGENT_SECONDS = 600.0
"""How long one attempt of an agent may take unless ``timeout`` says otherwise."""

BUDGET = Budget(calls=100, tokens=500_000, time=Decimal(1200))
"""What an agent may spend that says nothing itself. Each turn sends all that came before, so twenty turns of looking are some 200,000 tokens."""


class Agent(Leaf):
    """Gives a model a goal and tools to reach it on the page: it looks, finds, clicks, fills, and says when it is done. Value: what ``output`` says, else none.

    The model sees the page as a list of roles, names and texts. It types no secrets and leaves the allowed origins nowhere, whatever the page
    says. Its end is checked: ``success`` rules hold on the page, the value fits ``output``. What it did can be printed as deterministic nodes
    (``runops show RUN --as-nodes STEP``).
    """

    effect_default: ClassVar[EffectClass] = "effect"
    touches_page: ClassVar[bool] = True
    asks: ClassVar[Literal["agent"]] = "agent"
    usual_seconds: ClassVar[float] = AGENT_SECONDS

    type: Literal["agent"] = "agent"
    goal: Annotated[Text, Field(min_length=1)]
    """What is to be reached, in your words, with all that the model must know. No secret may stand in it: sign in with steps before this one."""
    tools: list[ToolName] = Field(default_factory=lambda: list(EVERY_TOOL), min_length=1)
    """What the model may do: any of ``look``, ``find``, ``read``, ``click``, ``fill``, ``select``, ``press``, ``goto``, ``dialog``, ``tab``. All by default."""
    max_turns: int = Field(default=25, ge=1, le=200)
    """How many requests the model may take. One is told of each, and of how many are left."""
    success: list[Rule] = Field(default_factory=list)
    """Rules that must hold on the page when the model says that it is done; what does not hold is told to it, and it goes on."""
    output: OutputField | None = None
    """What the agent yields, in the forms that ``cognition`` has: ``string``, a list of choices, a map of fields, ``json_schema``."""
    model: str | None = Field(default=None, min_length=1)
    """The model to ask, as its provider names it. Default: that of the settings."""
    max_output: int = Field(default=4000, ge=SHORTEST_ANSWER, le=LONGEST_ANSWER)
    """Tokens that one answer may have, reasoning included."""
    budget: Budget | None = None
    """What one step may spend at most, with all its attempts: ``{tokens: 200k, calls: 50}``. Default: ``tokens=500k,calls=100,time=20m``."""

    @field_validator("tools")
    @classmethod
    def _each_once(cls, tools: list[ToolName]) -> list[ToolName]:
        return [each for each in EVERY_TOOL if each in tools]

    @property
    @override
    def allowance(self) -> Budget:
        """What the step may spend."""
        return self.budget or BUDGET

    @property
    @override
    def effect_class(self) -> EffectClass:
        """An agent that can only look changes nothing."""
        return self.effect or ("read" if LOOKING.issuperset(self.tools) else self.effect_default)

    @property
    @override
    def moves_page(self) -> bool:
        """An agent that can only look leaves the page as it is."""
        return not LOOKING.issuperset(self.tools)

    @property
    @override
    def postconditions(self) -> list[Rule]:
        """What holds once the goal is reached."""
        return [*self.success, *self.verify]

    @property
    @override
    def value_pending(self) -> bool:
        """Whether it is still asked for its value where the goal is known to be reached."""
        return self.output is not None

    def summary(self) -> str:
        """The beginning of the goal."""
        words = " ".join(str(self.goal).split())
        return f"agent: {words[:80]}{'…' if len(words) > 80 else ''}"

    async def run(self, ctx: LeafContext) -> Json:
        """The agent's value."""
        await ctx.act()
        return await ctx.agent.work(
            Task(
                goal=self.goal,
                tools=tuple(self.tools),
                max_turns=self.max_turns,
                success=tuple(self.success),
                output=self.output,
                model=self.model,
                max_output=self.max_output,
                budget=self.allowance,
                effect=self.effect,
            )
        )
