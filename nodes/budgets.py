"""Budgets for models: money, tokens, requests, time. Written as a text or a map, on the command line, in settings and at a node."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from nodes.part import Part

BudgetPart = Literal["money", "tokens", "calls", "time"]

GRAMMAR = "money=0.50usd,tokens=200k,calls=40,time=5m"  # the whole grammar by example

FIX = f"write it as `{GRAMMAR}`: any of these four, each once"

LARGEST = {"money": Decimal(10**6), "tokens": Decimal(10**12), "calls": Decimal(10**9), "time": Decimal(30 * 24 * 3600)}
"""Largest budgets, in dollars, tokens, requests and seconds."""

UNITS = {
    "money": {"": 1, "usd": 1},
    "tokens": {"": 1, "k": 1000, "m": 1_000_000},
    "calls": {"": 1},
    "time": {"": 1, "s": 1, "m": 60, "h": 3600},
}

FORMS = {
    "money": "`0.50usd` or `$0.50`, in US dollars as prices of models are",
    "tokens": "`200k`, `2m` or `50000`",
    "calls": "a whole number, such as `40`",
    "time": "`90s`, `5m` or `1h`",
}

AMOUNT = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,9})?)\s*(?P<unit>[a-z]*)", re.IGNORECASE)


class BadBudget(ValueError):
    """The text is not a budget. The message is one sentence that names the part; ``fix`` shows the grammar, or what was probably meant."""

    def __init__(self, message: str, fix: str = FIX) -> None:
        super().__init__(message)
        self.fix = fix


def _amount(part: BudgetPart, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise BadBudget(f"`{part}` of a budget is a text or a number, and no {type(value).__name__}")
    text = f"{Decimal(repr(value)):f}" if isinstance(value, float) else str(value).strip()
    found = AMOUNT.fullmatch((text.removeprefix("$").lstrip() if part == "money" else text).replace("_", ""))
    factor = UNITS[part].get(found["unit"].lower()) if found else None
    if found is None or factor is None:
        raise BadBudget(f"`{part}` cannot be {value!r}: write {FORMS[part]}")
    number = Decimal(found["number"]) * factor
    if number <= 0:
        raise BadBudget(f"`{part}` cannot be {value!r}: a budget is more than nothing", f"leave `{part}` out, or {FIX}")
    if number > LARGEST[part]:
        raise BadBudget(f"`{part}` cannot be {value!r}: at most {LARGEST[part]:,} is allowed")
    return number


def _count(part: BudgetPart, value: Any) -> int:
    number = _amount(part, value)
    if number != int(number):
        raise BadBudget(f"`{part}` cannot be {value!r}: it must be a whole number")
    return int(number)


def _parser(parse: Callable[[BudgetPart, Any], Decimal | int], part: BudgetPart, schema: Any) -> BeforeValidator:
    return BeforeValidator(functools.partial(parse, part), json_schema_input_type=schema)


class Budget(Part):
    """Limits of spending on models. Each given part is a separate limit; at least one is required."""

    money: Annotated[Decimal, _parser(_amount, "money", str | float)] | None = None
    """US dollars: ``0.50usd``, ``$0.50`` or a number."""
    tokens: Annotated[int, _parser(_count, "tokens", str | int)] | None = None
    """Tokens of input and output together: ``200k``, ``2m`` or a number."""
    calls: Annotated[int, _parser(_count, "calls", str | int)] | None = None
    """Requests that are sent, also those that fail."""
    time: Annotated[Decimal, _parser(_amount, "time", str | float)] | None = None
    """Time spent waiting for answers: ``90s``, ``5m``, ``1h`` or a number of seconds."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return _split(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _something(self) -> Budget:
        if not str(self):
            raise BadBudget("the budget is empty")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add the text form to the schema."""
        whole = handler.resolve_ref_schema(handler(schema))
        described = {"description": whole.pop("description", "")}
        return {**described, "anyOf": [{"type": "string", "examples": [GRAMMAR]}, whole]}

    def __str__(self) -> str:
        """Return the text form of this budget."""
        written: dict[str, Callable[[Any], str]] = {"money": money, "tokens": tokens, "calls": str, "time": time}
        parts = {name: getattr(self, name) for name in written}
        return ",".join(f"{name}={written[name](value)}" for name, value in parts.items() if value is not None)


def parse(text: str) -> Budget:
    """Parse a budget. Raises BadBudget."""
    try:
        return Budget.model_validate(text)
    except ValidationError as error:
        context = error.errors(include_url=False)[0].get("ctx", {})
        raise context["error"] from None


def known(value: Any) -> Any:
    """Return a budget from outside a workflow unchanged: a text, a map of known parts, a Budget or None. Raises BadBudget for anything else."""
    if value is None or isinstance(value, str | Budget):
        return value
    if not isinstance(value, Mapping):
        raise BadBudget("a budget is a text or a table")
    unknown = next((str(name) for name in value if name not in LARGEST), None)
    if unknown is not None:
        raise BadBudget(f"a budget has no `{unknown}`", _meant(unknown, str(value[unknown])))
    return value


def _split(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = (each.strip() for each in part.partition("="))
        name = name.lower()
        if not name and not sign:
            if text.strip() and text.strip() != ",":
                raise BadBudget("a part of the budget is empty: there is a comma too many")
            continue
        if name not in LARGEST:
            raise BadBudget(
                f"a budget has no `{name}`" if sign else f"`{name}` is no part of a budget", _meant(name, value)
            )
        if not value:
            raise BadBudget(f"`{name}` has no value")
        if name in found:
            raise BadBudget(f"`{name}` is given twice")
        found[name] = value
    return found


def _meant(name: str, value: str) -> str:
    if name.isdigit():
        return f"a comma separates parts, and is in no number; {FIX}"
    close = difflib.get_close_matches(re.split(r"[^a-z]", name)[0], LARGEST, 1, 0.5)
    return f"did you mean `{close[0]}={value or '…'}`? {FIX}" if close else FIX


def money(dollars: Decimal) -> str:
    """Return a sum as in a budget: ``0.50usd``, with cents at least."""
    plain = dollars.normalize()
    return f"{plain if int(plain.as_tuple().exponent) < -2 else plain.quantize(Decimal('0.01')):f}usd"


def tokens(count: int) -> str:
    """Return a number of tokens: ``200k``, ``2m``, ``1234``."""
    unit, size = _largest_unit("tokens", Decimal(count))
    return f"{count // size}{unit}"


def time(seconds: Decimal | float) -> str:
    """Return a duration: ``1h``, ``5m``, ``90s``."""
    exact = Decimal(str(seconds)).normalize()
    unit, size = _largest_unit("time", exact)
    return f"{exact / size:f}{unit}"


def _largest_unit(part: BudgetPart, number: Decimal) -> tuple[str, int]:
    """Return the largest unit that divides the number, else the smallest."""
    return next(each for each in reversed(UNITS[part].items()) if each[1] == 1 or (number and not number % each[1]))


@functools.cache
def default() -> Budget:
    """Return the default budget of a model node: ``tokens=100k,calls=20,time=10m``.

    An answer and the two that fix it, each sent five times because the server is busy, are 15 requests. 100,000 tokens are ten times the
    need of such a node, and cost less than a dollar with most models. Ten minutes are ten requests that time out. It has no money limit,
    because the price of some models is unknown.
    """
    return Budget(calls=20, tokens=100_000, time=Decimal(600))
