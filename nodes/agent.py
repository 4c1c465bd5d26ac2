"""``agent``: a model that works on the page with tools, in a limited number of turns, towards a goal."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator
from typing_extensions import override

from nodes.budgets import Budget
from nodes.cognition import LONGEST_ANSWER, SHORTEST_ANSWER, ModelLeaf
from nodes.part import EffectClass
from nodes.rules import Rule
from nodes.schema.output import OutputField
from nodes.template import Text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext

ToolName = Literal["look", "find", "read", "click", "fill", "select", "press", "goto", "dialog", "tab"]
"""Tools that an agent may have. It always has ``finish``."""

EVERY_TOOL: tuple[ToolName, ...] = ("look", "find", "read", "click", "fill", "select", "press", "goto", "dialog", "tab")

READ_TOOLS: frozenset[ToolName] = frozenset({"look", "find", "read", "tab"})  # tools that leave the site as it is
AGENT_SECONDS = 600.0  # default time limit of one attempt of an agent, in seconds; `timeout` overrides it

BUDGET = Budget(calls=100, tokens=500_000, time=Decimal(1200))
"""Default budget of an agent. Each turn sends all earlier ones, so twenty turns of observing are some 200,000 tokens."""


class Agent(ModelLeaf):
    """Gives a model a goal and tools to reach it on the page: it observes, finds, clicks, fills, and reports when it is done.

    Value: as ``output`` declares, else none. The model sees the page as a list of roles, names and texts. It types no secrets and never
    leaves the allowed origins, whatever the page says. Its end is checked: ``success`` rules hold on the page, and the value fits
    ``output``. ``runops show RUN --as-nodes STEP`` prints its actions as deterministic nodes.
    """

    effect_default: ClassVar[EffectClass] = "effect"
    touches_page: ClassVar[bool] = True
    asks: ClassVar[Literal["agent"]] = "agent"
    usual_seconds: ClassVar[float] = AGENT_SECONDS

    type: Literal["agent"] = "agent"
    goal: Annotated[Text, Field(min_length=1)]
    """The goal in your words, with all that the model must know. It may contain no secret: sign in with steps before this one."""
    tools: list[ToolName] = Field(default_factory=lambda: list(EVERY_TOOL), min_length=1)
    """The tools of the model: any of ``look``, ``find``, ``read``, ``click``, ``fill``, ``select``, ``press``, ``goto``, ``dialog``,
    ``tab``. All by default."""
    max_turns: int = Field(default=25, ge=1, le=200)
    """Limit of the model's requests. Each request shows its number and how many are left."""
    success: list[Rule] = Field(default_factory=list)
    """Rules that must hold on the page when the model reports that it is done. If one does not hold, the model sees that and continues."""
    output: OutputField | None = None
    """The value of the agent, in the forms of ``cognition``: ``string``, a list of choices, a map of fields, ``json_schema``."""
    max_output: int = Field(default=4000, ge=SHORTEST_ANSWER, le=LONGEST_ANSWER)
    """Limit of one answer, in tokens, reasoning included."""
    budget: Budget | None = None
    """Limit for one step with all its attempts: ``{tokens: 200k, calls: 50}``. Default: ``tokens=500k,calls=100,time=20m``."""

    @field_validator("tools")
    @classmethod
    def _each_once(cls, tools: list[ToolName]) -> list[ToolName]:
        return [each for each in EVERY_TOOL if each in tools]

    @property
    @override
    def allowance(self) -> Budget:
        return self.budget or BUDGET

    @property
    @override
    def effect_class(self) -> EffectClass:
        return self.effect or ("read" if READ_TOOLS.issuperset(self.tools) else self.effect_default)

    @property
    @override
    def moves_page(self) -> bool:
        return not READ_TOOLS.issuperset(self.tools)

    @property
    @override
    def postconditions(self) -> list[Rule]:
        return [*self.success, *self.verify]

    @property
    @override
    def value_pending(self) -> bool:
        return self.output is not None

    def summary(self) -> str:
        words = " ".join(str(self.goal).split())
        return f"agent: {words[:80]}{'…' if len(words) > 80 else ''}"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        return await ctx.agent.work(self)
