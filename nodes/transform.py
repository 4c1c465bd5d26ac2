"""``transform``: computes values from values."""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from nodes import csv_text
from nodes.base import Leaf
from nodes.errors import AuthorError
from nodes.part import EffectClass
from nodes.template import OPENING, JsonValue, Text, kind_of
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext

WAYS = ("expr", "fields", "sql", "python")

ENDINGS = (".csv", ".json", ".txt")


def _ends(name: str) -> str:
    if OPENING not in name and PurePath(name).suffix.lower() not in ENDINGS:
        raise ValueError(f"`save_as` ends with one of {', '.join(ENDINGS)}")
    return name


FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def _names_function(name: str) -> str:
    if OPENING not in name and not FUNCTION.fullmatch(name):
        raise ValueError("`python` is `module:function`, such as `acme.rules:price`")
    return name


class Transform(Leaf):
    """Computes a value from values; touches neither page nor network. Give exactly one of ``expr``, ``fields``, ``sql``, ``python``.

    With ``save_as`` the value is written to a file that the run keeps, and the node's value is the file: a map with ``name``, ``path``,
    ``size``, ``sha256``, ``type``.
    """

    effect_default: ClassVar[EffectClass] = "read"
    value_fields: ClassVar[frozenset[str]] = frozenset({"expr", "fields"})

    type: Literal["transform"] = "transform"
    expr: JsonValue = None
    """One expression, or a text with expressions in it: its value is the node's."""
    fields: dict[str, JsonValue] | None = None
    """Names and expressions: the value is a map."""
    sql: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    """One SELECT (or ``WITH … SELECT``, ``FROM …``, ``VALUES …``) in DuckDB's SQL: the value is the list of its rows, as maps.

    Every list of maps in scope is a table, named like its reference: ``orders``, ``inputs.prices``, ``vars.seen``. It reaches nothing else:
    no files, no network, no settings. At most 100,000 rows, 256 MB of memory, and the node's ``timeout``.
    """
    params: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], JsonValue] | None = None
    """Values for ``sql``: ``$limit`` in the statement is the param ``limit``."""
    python: Annotated[str, AfterValidator(_names_function)] | None = None
    """A Python function, ``module:function``, called with ``args``; it must only compute. The configuration (``python_modules``) must allow
    the module."""
    args: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], JsonValue] | None = None
    """Keyword arguments for ``python``."""
    save_as: Annotated[Text, AfterValidator(_ends)] | None = None
    """Name of a file for the value: ``.csv`` (of a list of maps), ``.json``, or ``.txt`` (of a text)."""

    @model_validator(mode="after")
    def _one_way(self) -> Transform:
        if sum(way in self.model_fields_set for way in WAYS) != 1:
            raise ValueError("a transform takes exactly one of `expr`, `fields`, `sql` and `python`")
        for extra, way in (("params", "sql"), ("args", "python")):
            if extra in self.model_fields_set and way not in self.model_fields_set:
                raise ValueError(f"`{extra}` goes with `{way}`")
        return self

    def summary(self) -> str:
        if self.fields is not None:
            return f"make {', '.join(self.fields)}"
        if self.python is not None:
            return f"call {self.python}"
        return "compute" if self.sql is None else "select"

    async def run(self, ctx: LeafContext) -> Json:
        """Return the value, or the file with it: references are already resolved."""
        await ctx.act()
        if self.sql is not None:
            value: Json = await ctx.sql.select(self.sql, self.params or {})
        elif self.python is not None:
            value = await ctx.python.call(self.python, self.args or {})
        else:
            value = self.expr if self.fields is None else self.fields
        if self.save_as is None:
            return value
        return await ctx.artifacts.keep(self.save_as, written(value, self.save_as))


def written(value: Json, name: str) -> bytes:
    """Return the value as the content of a file of this name.

    Raises AuthorError ``value-mismatch`` if that is impossible, ``bad-file-name`` for another ending.
    """
    match PurePath(name).suffix.lower():
        case ".csv":
            try:
                return csv_text.written(value).encode()
            except csv_text.NoSheet as error:
                raise AuthorError(
                    "value-mismatch", str(error), fix="make maps of it first, or save it as .json"
                ) from None
        case ".json":
            return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
        case ".txt" if isinstance(value, str):
            return value.encode()
        case ".txt":
            raise AuthorError(
                "value-mismatch",
                f"`{name}` holds a text, and the value is {kind_of(value)}",
                fix="save it as .json, or make a text of it first",
            )
        case _:
            raise AuthorError(
                "bad-file-name", f"`save_as` cannot be {name!r}", fix=f"end the name with one of {', '.join(ENDINGS)}"
            )
