"""``context``: sets variables, or asks a person for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from nodes.base import Leaf
from nodes.part import EffectClass, Part
from nodes.template import JsonValue, ListValue, Text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class Question(Part):
    """A question for a person; a text alone is its ``question``."""

    question: Text
    """The question."""
    type: Literal["string", "integer", "number", "boolean"] = "string"
    """Type of the answer."""
    choices: ListValue | None = Field(default=None, min_length=1)
    """The answers to choose from."""
    default: JsonValue = None
    """The default answer. Without it one is required."""

    def as_asked(self) -> dict[str, Json]:
        return self.model_dump(mode="json", exclude_unset=True)


def _question(value: Any) -> Any:
    """Return a question with its type, also where the file leaves it out: the log and the person are told of it."""
    given = {"question": value} if isinstance(value, str) else value
    return {"type": "string", **given} if isinstance(given, dict) else given


class Context(Leaf):
    """Sets variables, which every later node reads as ``vars.<name>``. Only ``context`` writes them. Value: the new values and answers.

    With ``ask`` the run pauses (exit 4) until a person has answered with ``runops answer``; then it continues, and never asks this again.
    """

    effect_default: ClassVar[EffectClass] = "read"

    type: Literal["context"] = "context"
    set: dict[str, JsonValue] = Field(default_factory=dict, min_length=1)
    """Names and their new values."""
    ask: dict[str, Annotated[Question, BeforeValidator(_question, json_schema_input_type=str | Question)]] = Field(
        default_factory=dict, min_length=1
    )
    """Names and the question for each: a text, or a map of ``question``, ``type``, ``choices``, ``default``. No answer may contain a secret."""

    @model_validator(mode="after")
    def _something_to_do(self) -> Context:
        if not self.set and not self.ask:
            raise ValueError("a `context` needs `set` or `ask`")
        if twice := sorted(self.set.keys() & self.ask.keys()):
            raise ValueError(f"`{twice[0]}` is both set and asked for")
        return self

    def summary(self) -> str:
        ways = {"set": self.set, "ask for": self.ask}
        return ", ".join(f"{way} {', '.join(names)}" for way, names in ways.items() if names)

    async def run(self, ctx: LeafContext) -> Json:
        """Return the values in the file, references resolved, and the answers. The engine puts them into ``vars``."""
        answers = ctx.answers({name: each.as_asked() for name, each in self.ask.items()}) if self.ask else {}
        await ctx.act()
        return {**self.set, **answers}
