"""Queries of the whole page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from nodes.browser_query.base import BrowserQuery
from nodes.errors import AssertFailed, SiteError
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


class Url(BrowserQuery):
    """Reads the address of the page. Value: text."""

    query: Literal["url"]
    """Read the address."""

    def summary(self) -> str:
        return "read the address"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        return ctx.page.url


class Title(BrowserQuery):
    """Reads the title of the page. Value: text."""

    query: Literal["title"]
    """Read the title."""

    def summary(self) -> str:
        return "read the title"

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        return await ctx.page.title()


class Observation(BrowserQuery):
    """Reads the content of the page, or of an element, as lines: roles, names, values, texts, as assistive programs see them. Value: text.

    Interactive elements have a ref. Content beyond ``max_chars`` is folded into lines with its kind and count; no element is cut.
    """

    query: Literal["observation"]
    """Read the page as roles and names."""
    target: Target | None = None
    """The element; without it the whole page."""
    max_chars: int = Field(default=5_000, ge=200, le=1_000_000)
    """Limit of the text, in characters."""

    def summary(self) -> str:
        return f"observe {self.target or 'the page'}"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        await ctx.act()
        view = await ctx.page.look(target)
        return view.render(self.max_chars)


class Assert(BrowserQuery):
    """A finding of the workflow: rules that must hold. It is never retried and never called drift. Value: none."""

    query: Literal["assert"]
    """State the rules that must hold."""
    rules: list[Rule] = Field(min_length=1)
    """The rules; each is waited for."""

    @model_validator(mode="after")
    def _no_retry(self) -> Assert:
        if self.retry is not None:
            raise ValueError(
                "an assert is a finding and is never retried: take `retry` away, or wait longer with `timeout`"
            )
        return self

    def summary(self) -> str:
        return f"assert {', '.join(str(rule) for rule in self.rules)}"

    async def run(self, ctx: LeafContext) -> Json:
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
                    fix="look at the page: if it is right, correct the rule; if not, this is what the workflow found",
                    phase="after",
                    evidence=error.evidence,
                ) from None
