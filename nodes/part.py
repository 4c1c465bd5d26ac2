"""Base of every model of the file language."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of the file language: unknown fields are errors, values are kept strictly as written, docstrings describe fields."""

    called: ClassVar[str] = "the file"
    """Its name in messages, if it is the root of a file."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
        populate_by_name=True,
        # A file uses few of the eighty node models: only those are built.
        defer_build=True,
    )

    @classmethod
    def lacking(cls, given: Collection[str]) -> list[str]:
        """Return the fields that must be there beside those given, and are not."""
        required = [field.alias or name for name, field in cls.model_fields.items() if field.is_required()]
        return [name for name in required if name not in given]


EffectClass = Literal["read", "idempotent", "effect"]
"""The consequence of doing a step twice: nothing, the same again, or a second action."""
