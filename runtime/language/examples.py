"""Tests of a workflow file: runs with given inputs, and how each must end. ``pytest --runops`` runs them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from nodes.part import Part
from nodes.values import Json


class Expected(Part):
    """How the run of a test must end."""

    status: Literal["passed", "failed", "paused"] = "passed"
    """State in which it must end. ``paused``: it waits for a person."""
    output: Json = None
    """Output that it must have, as a whole. Without this field any output will do."""
    error: str | None = None
    """Code of the error with which it must fail, such as ``verify-failed``; of one that is paused, the reason of its question."""

    @model_validator(mode="after")
    def _of_status(self) -> Expected:
        if self.error is not None and self.status == "passed":
            raise ValueError("a run with an `error` has not passed: write `status: failed` or `paused`")
        if "output" in self.model_fields_set and self.status != "passed":
            raise ValueError("only a run that passed has an `output`: leave one of the two out")
        return self


def _selectable(name: str) -> str:
    if not name.strip() or "::" in name or any(each in name for each in "[]\n"):
        raise ValueError("a test is selected by its name, so the name has a character, and neither `::` nor brackets")
    return name


class WorkflowTest(Part):
    """A test of the workflow: a run with these inputs, and how it must end."""

    name: Annotated[str, AfterValidator(_selectable)] = Field(max_length=100)
    """Name of the test, unique in the file."""
    inputs: dict[str, Json] = Field(default_factory=dict)
    """Inputs of the run. Those that every test needs, such as the address of the site, are given by the fixture ``runops_inputs``."""
    expect: Expected = Field(default_factory=Expected)
    """How the run must end. Default: it passes."""
