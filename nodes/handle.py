"""``handle``: the reaction to errors."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from nodes.base import Block, Container, Node
from nodes.errors import RunOpsError, can_be_passed
from nodes.template import JsonValue
from nodes.values import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodes.ports import BlockContext, Ended


class Handle(Container):
    """Runs ``try``; when it fails, retries it or runs ``catch``; then always runs ``finally``.

    Errors of the workflow and of the site are caught, a failed ``assert`` included; never a document from a foreign origin, a pause or an
    interruption. Its end is a commit point. Value: ``value``, or that of the block that ended it, ``try`` or ``catch``.

    No ``finally`` runs when the run pauses, is interrupted or dies: the run will continue. When a run that failed after its ``finally`` is
    resumed, it begins the handle again. If a block runs again, a completed action is not simply repeated: its ``confirm`` is asked, or
    ``on_redo: redo`` repeats it. Without either, ``try`` does not run again, and a resumed run asks a person.
    """

    unit: ClassVar[bool] = True

    type: Literal["handle"] = "handle"
    try_: Block = Field(alias="try", min_length=1)
    """The nodes that may fail. Afterwards, and in the other blocks, those after the failure have no value."""
    catch: Block | None = None
    """The nodes to run when ``try`` failed. ``error`` has ``code``, ``message``, ``step``, ``phase``, ``who`` and ``evidence``."""
    finally_: Block | None = Field(default=None, alias="finally")
    """The nodes to run at the end, after success or failure."""
    attempts: int = Field(default=1, ge=1, le=20)
    """Limit of the runs of ``try`` before ``catch``."""
    on: list[str] | None = Field(default=None, min_length=1)
    """Error codes. Only these are caught, or retried. Default: every error that can be caught."""
    value: JsonValue = None
    """Value of the node, in place of that of the block that ended it."""

    @model_validator(mode="after")
    def _does_something(self) -> Handle:
        if self.catch is None and self.finally_ is None and self.attempts == 1:
            raise ValueError(
                "a `handle` needs `catch`, `finally`, or `attempts` above 1: without them it handles nothing"
            )
        return self

    def blocks(self) -> Iterator[tuple[tuple[str | int, ...], list[Node]]]:
        yield ("try",), self.try_
        if self.catch is not None:
            yield ("catch",), self.catch
        if self.finally_ is not None:
            yield ("finally",), self.finally_

    async def run(self, ctx: BlockContext) -> Json:
        """Run ``try`` as often as allowed, ``catch``, ``finally``. Repeat that if the run failed after ``finally`` and was resumed."""
        tries = 0
        for turn in itertools.count(1):
            ended, tries = await self._tried(ctx, tries)
            if ended.error is not None and self.catch is not None and self._catches(ended.error):
                ended = await ctx.part(self.catch, "catch", turn, keep=self._keep, caught=ended.error)
            failed_since = self.finally_ is not None and await ctx.finish(self.finally_, "finally", turn, ended.error)
            if ended.error is None:
                return ended.value if self.value is None else ctx.render(self, "value")
            if not failed_since:
                raise ended.error
        raise AssertionError("a handle ends or fails")

    async def _tried(self, ctx: BlockContext, before: int) -> tuple[Ended, int]:
        """Run ``try`` until it passes, or may not run again. Return its end, and its number of runs over all repetitions."""
        for number in itertools.count(before + 1):
            left = self.attempts - (number - before)
            ended = await ctx.part(
                self.try_,
                "try",
                number,
                keep=self._keep_of_try,
                again=lambda error, left=left: left > 0 and self._catches(error),
            )
            if not ended.again:
                return ended, number
        raise AssertionError("a try ends")

    def _catches(self, error: RunOpsError) -> bool:
        return can_be_passed(error) and (self.on is None or error.code in self.on)

    def _keep(self, _error: RunOpsError, _again: bool) -> bool:
        return self.finally_ is not None

    def _keep_of_try(self, error: RunOpsError, again: bool) -> bool:
        """Return whether the run continues after this error, also when resumed. Any other error ends the run; a resume begins at the failed step."""
        return again or self.finally_ is not None or (self.catch is not None and self._catches(error))
