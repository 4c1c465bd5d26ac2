"""The parts that reports share: costs, errors, questions, files, what a page showed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        """The part as a log or an event holds it; None for None."""
        return None if data is None else cls.model_validate(data)

    @classmethod
    def each(cls, data: Iterable[Mapping[str, Json]] | None) -> list[Self]:
        """Several of them; none for None."""
        return [cls.model_validate(one) for one in data or ()]


class Printed(Model):
    """A report that a command prints."""

    version: Literal[1] = 1
    """Changes when a field changes its meaning or goes; fields may be added at any time."""

    def as_json(self) -> str:
        """The JSON object that ``--json`` prints."""
        try:
            return escapes.in_json(self.model_dump_json(indent=2))
        except PydanticSerializationError:  # the name of a file may be no text
            return escapes.as_json(self.model_dump(), indent=2)


def absent() -> Any:
    """A field that is left out of JSON where it has no value."""
    return Field(default=None, exclude_if=lambda value: value is None)


class Costs(Model):
    """What models cost."""

    requests: int
    paid: int
    """Requests that may cost something."""
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    dollars: str | None
    """A decimal number; null where the price of a request is unknown."""
    known_dollars: str
    """The sum of all prices that are known."""
    seconds: float


class ErrorReport(Model):
    """What went wrong."""

    code: str
    """See docs/errors.md."""
    who: str | None = absent()
    """Who must act: author, site, setup, usage, model, budget, …"""
    message: str
    phase: Literal["before", "after"] | None = absent()
    """Whether it came before or after the action that may have changed the site."""
    evidence: dict[str, Json] | None = absent()
    """What was seen."""
    fix: str | None = absent()
    """What to do about it."""

    @classmethod
    def raised(cls, error: RunOpsError | None) -> Self | None:
        """The report of an exception; None for None."""
        return None if error is None else cls.model_validate(error.as_json())


class QuestionReport(ErrorReport):
    """What a paused run asks; ``code`` is the reason of the pause."""

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
    """What a person should look at, though the step passed."""

    path: str | None = absent()
    """The step; absent where the flag is listed below its attempt."""
    code: str
    message: str
    evidence: dict[str, Json]


class EvidenceReport(Model):
    """What the page showed when a step failed."""

    path: str | None = absent()
    """The step."""
    url: str
    title: str | None = absent()
    dialog: str | None = absent()
    """The dialog that was open; then nothing else was looked at."""
    observation: FileReport | None = absent()
    """The page as text."""
    signs: Json = absent()
    """What the page shows at a glance, such as a sign-in form."""
    screenshot: FileReport | None = absent()
    no_screenshot: str | None = absent()
    """Why there is no screenshot: an error code."""
