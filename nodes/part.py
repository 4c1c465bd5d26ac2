"""The base of every piece of the file language."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A piece of the file language: unknown fields are errors, values are kept strictly as written, docstrings describe fields."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
        populate_by_name=True,
        # A file has a few of the eighty kinds of node: only what it has is built.
        defer_build=True,
    )


EffectClass = Literal["read", "idempotent", "effect"]
"""What doing a step twice would mean: nothing, the same again, or a second action."""
