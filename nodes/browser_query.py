"""``browser_query``: reads the page. Each query is a class, so each takes its own fields and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from nodes.base import EffectClass, Leaf
from nodes.errors import AssertFailed, SiteError
from nodes.part import Part
from nodes.readings import Kind, read_as
from nodes.rules import Rule
from nodes.targets import Target
from nodes.template import Text as TextField
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class BrowserQuery(Leaf):
    """Reads the page and changes nothing."""

    touches_page: ClassVar[bool] = True
    effect_default: ClassVar[EffectClass] = "read"

    type: Literal["browser_query"] = "browser_query"


class OfElement(BrowserQuery):
    """A reading of one element."""

    target: Target
    """The element."""

    def summary(self) -> str:
        """The query and its target."""
        return f"{getattr(self, 'query', 'read')} {self.target}"


class FieldOf(Part):
    """One field of a row."""

    css: TextField | None = None
    """CSS selector below the row; without it the row itself."""
    attribute: str | None = None
    """Attribute to read in place of the text, such as ``href``."""
    type: Kind = "text"
    """What the text is read as: ``text``, ``number`` (``1,234.50 €`` is 1234.5) or ``integer``."""
    nth: int | None = None
    """Which of several matches, from 0; negative counts from the end."""
    optional: bool = False
    """Whether the field may be missing; it is then null."""


def _short_form(value: Any) -> Any:
    return {"css": value} if isinstance(value, str) else value


class Extract(OfElement):
    """Reads rows: for each element that matches ``target``, a map of fields. Value: a list of maps.

    It waits until at least ``min`` rows are there. A field that a row lacks fails the node, unless it is ``optional``.
    """

    query: Literal["extract"]
    """Read rows."""
    fields: dict[str, Annotated[FieldOf, BeforeValidator(_short_form, json_schema_input_type=str | FieldOf)]] = Field(
        min_length=1
    )
    """Name of each field, and where in the row it stands: a CSS selector, or a map with ``css``, ``attribute``, ``type``, ``nth``, ``optional``."""
    min: int = Field(default=1, ge=0)
    """How many rows there must be at least. 0 reads what is there at once: wait for the page first."""

    async def run(self, ctx: LeafContext) -> Json:
        """Read all rows in one look, then turn texts into typed values."""
        target = await ctx.located(self.target)
        await ctx.act()
        try:
            rows = await ctx.page.rows(target, list(self.fields.values()), self.min)
        except SiteError as error:
            if error.code == "target-not-found" and self.min == 1:
                error.mend = "if there may be no row, write `min: 0`; else look at the page, and correct the target"
            raise
        return [
            {
                name: _typed(name, field, text, number)
                for (name, field), text in zip(self.fields.items(), row, strict=True)
            }
            for number, row in enumerate(rows, start=1)
        ]


def _typed(name: str, field: FieldOf, text: str | None, row: int) -> Json:
    if text is not None:
        return read_as(field.type, text, f"field `{name}` of row {row}")
    if field.optional:
        return None
    raise SiteError(
        "field-not-found",
        f"row {row} has no field `{name}`",
        mend="mark the field `optional: true` if a row may lack it, or make `target` match only the rows that have it",
        evidence={
            "field": name,
            "row": row,
            "css": field.css,
            "attribute": field.attribute,
        },
    )


class Text(OfElement):
    """Reads the visible text of an element, white space folded. Value: text, or what ``as`` says."""

    query: Literal["text"]
    """Read an element's text."""
    as_: Kind = Field(default="text", alias="as")
    """What the text is read as: ``text``, ``number`` or ``integer``."""

    async def run(self, ctx: LeafContext) -> Json:
        """Read the text."""
        target = await ctx.located(self.target)
        await ctx.act()
        return read_as(self.as_, await ctx.page.text(target), f"the text of {target}")


class Value(OfElement):
    """Reads what a field holds. Value: text, or what ``as`` says."""

    query: Literal["value"]
    """Read a field's value."""
    as_: Kind = Field(default="text", alias="as")
    """What the text is read as: ``text``, ``number`` or ``integer``."""

    async def run(self, ctx: LeafContext) -> Json:
        """Read the value."""
        target = await ctx.located(self.target)
        await ctx.act()
        return read_as(self.as_, await ctx.page.value(target), f"the value of {target}")


class Exists(OfElement):
    """Tells whether any element matches now, without waiting. Value: true or false."""

    query: Literal["exists"]
    """Tell whether an element is there."""

    async def run(self, ctx: LeafContext) -> Json:
        """Look once."""
        await ctx.act()
        return await ctx.page.count(self.target) > 0


class Count(OfElement):
    """Counts the elements that match now, without waiting. Value: a whole number."""

    query: Literal["count"]
    """Count elements."""

    async def run(self, ctx: LeafContext) -> Json:
        """Look once."""
        await ctx.act()
        return await ctx.page.count(self.target)


class Url(BrowserQuery):
    """Reads the address of the page. Value: text."""

    query: Literal["url"]
    """Read the address."""

    def summary(self) -> str:
        """Which query."""
        return "read the address"

    async def run(self, ctx: LeafContext) -> Json:
        """Read the address."""
        await ctx.act()
        return ctx.page.url


class Assert(BrowserQuery):
    """A finding of the workflow: rules that must hold. It is never retried and never called drift. Value: none."""

    query: Literal["assert"]
    """State what must hold."""
    rules: list[Rule] = Field(min_length=1)
    """What must hold; each is waited for."""

    @model_validator(mode="after")
    def _no_retry(self) -> Assert:
        if self.retry is not None:
            raise ValueError(
                "an assert is a finding and is never retried: take `retry` away, or wait longer with `timeout`"
            )
        return self

    def summary(self) -> str:
        """The rules."""
        return f"assert {', '.join(str(rule) for rule in self.rules)}"

    async def run(self, ctx: LeafContext) -> Json:
        """Wait for each rule; the first that does not hold is the finding."""
        await ctx.act()
        for rule in self.rules:
            try:
                await ctx.page.wait_for(rule)
            except SiteError as error:
                if error.code != "rule-failed":
                    raise
                raise AssertFailed(
                    "assert-failed",
                    error.message,
                    mend=None,
                    phase="after",
                    evidence=error.evidence,
                ) from None


VARIANTS = (Extract, Text, Value, Exists, Count, Url, Assert)
"""The queries, told apart by ``query``."""

__all__ = [
    "VARIANTS",
    "Assert",
    "BrowserQuery",
    "Count",
    "Exists",
    "Extract",
    "FieldOf",
    "Text",
    "Url",
    "Value",
]
