"""Common parts of reports: costs, errors, questions, files, evidence of pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.display import escapes


class Model(BaseModel):
    """A part of a report."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
        use_attribute_docstrings=True,
        defer_build=True,
        json_schema_serialization_defaults_required=True,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    @classmethod
    def maybe(cls, data: Mapping[str, Json] | None) -> Self | None:
        return None if data is None else cls.model_validate(data)


class Printed(Model):
    """A report that a command prints."""

    version: Literal[1] = 1
    """Changes if a field is removed or changes its meaning. Fields may be added at any time."""

    def as_json(self) -> str:
        try:
            return escapes.in_json(self.model_dump_json(indent=2))
        except PydanticSerializationError:  # the name of a file may be no text
            return escapes.as_json(self.model_dump(), indent=2)


def absent() -> Any:
    """Declare a field that JSON omits if it has no value."""
    return Field(default=None, exclude_if=lambda value: value is None)


class Costs(Model):
    """The costs of models."""

    requests: int
    paid: int
    """Requests that may cost something."""
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    dollars: str | None
    """A decimal number; null if the price of a request is unknown."""
    known_dollars: str
    """The sum of all known prices."""
    seconds: float


class ErrorReport(Model):
    """An error."""

    code: str
    """See docs/errors.md."""
    who: str | None = absent()
    """The side that must act: author, site, setup, usage, model, budget, …"""
    message: str
    phase: Literal["before", "after"] | None = absent()
    """Before or after the action that may have changed the site."""
    evidence: dict[str, Json] | None = absent()
    """Facts about the error."""
    fix: str | None = absent()
    """Advice on how to fix it."""

    @classmethod
    def raised(cls, error: RunOpsError | None) -> Self | None:
        return None if error is None else cls.model_validate(error.as_json())


class QuestionReport(ErrorReport):
    """The question of a paused run; ``code`` is the reason of the pause."""

    path: str | None = None
    """The step that asks."""


class FileReport(Model):
    """A file that the run keeps."""

    name: str
    path: str
    size: int
    """Bytes."""
    sha256: str
    type: str | None = absent()
    """Its media type; absent for files of evidence."""


class FlagReport(Model):
    """Something to check, although the step passed."""

    path: str | None = absent()
    """The step; absent if the flag is listed below its attempt."""
    code: str
    message: str
    evidence: dict[str, Json]


class DifferenceReport(Model):
    """One difference between two runs."""

    path: str
    """The step; empty for the run itself."""
    what: Literal["status", "error", "value", "page", "missing", "new", "inputs", "file", "output"]
    """`missing` and `new`: only the first or only the second run has the step."""
    within: str | None = absent()
    """The part that differs: a place in the value (`[2].price`), the name of an input, a file. Absent for the whole."""
    before: Json = None
    after: Json = None


class FrameReport(Model):
    """A picture of the page after a step."""

    path: str
    """The step."""
    at: str
    url: str | None = absent()
    screenshot: FileReport | None = absent()
    along: str | None = absent()
    """The last step that had ended, too, when the picture was taken; absent if it was taken before another one ended."""
    no_screenshot: str | None = absent()
    """Why there is none: the error code."""


class PageErrorReport(Model):
    """A message on a page's console, or a failed request of a page."""

    at: str
    kind: Literal["console", "error", "request"]
    """`error`: an exception that the page did not catch."""
    text: str
    url: str | None = absent()
    status: int | None = absent()
    """The HTTP status of a request."""


class EvidenceReport(Model):
    """The page's content when a step failed."""

    path: str | None = absent()
    """The step."""
    url: str
    title: str | None = absent()
    dialog: str | None = absent()
    """The dialog that was open. Nothing else was observed then."""
    observation: FileReport | None = absent()
    """The page as text."""
    signs: Json = absent()
    """Signals of the page, such as a sign-in form."""
    screenshot: FileReport | None = absent()
    no_screenshot: str | None = absent()
    """The error code that explains a missing screenshot."""
    frames: list[FrameReport] | None = absent()
    """The pages after the steps before it, at most three, oldest first."""
    messages: list[PageErrorReport] | None = absent()
    """Messages of its pages, and requests that failed, oldest first."""
    trace: FileReport | None = absent()
    """A trace that opens in Playwright's viewer."""
