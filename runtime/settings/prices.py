"""Prices of tokens in US dollars: by ``[tool.runops.prices]``, else by genai-prices; nothing is downloaded.

Money is an exact Decimal; in the log it is text without an exponent (``0.0012275``). Other servers than those of ``PRICED`` may give a model
any name, so only the project's table has their prices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from nodes.errors import UsageError
from runtime.messages.messages import Usage

A_MILLION = Decimal(1_000_000)

PRICED = frozenset({"openai", "azure", "openrouter"})  # profiles whose prices genai-prices has, under the same names

FORM = "{input = 0.25, cached = 0.025, output = 2.0}"

DATED = re.compile(r"-20\d\d-?\d\d-?\d\d$")  # date at the end of a model's name


Amount = Annotated[Decimal, Field(ge=0, le=10**6, allow_inf_nan=False)]  # a price; a higher one is a mistake


class Price(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, defer_build=True)

    input: Amount
    cached: Amount | None = None
    """Price of input from the server's cache; default: that of other input."""
    output: Amount
    """Price of output, reasoning included."""


Table = Mapping[str, Price]  # prices by the name of the model: `[tool.runops.prices]`


def dollars(usage: Usage, model: str, own: Table, provider: str) -> Decimal | None:
    """Return the cost of ``usage`` at ``provider`` (a profile's name); None if unknown. ``own`` overrides, also by the undated name."""
    cached = min(usage.cached, usage.input)
    price = own.get(model) or own.get(DATED.sub("", model))
    if price is not None:
        of_cached = price.input if price.cached is None else price.cached
        sums = (usage.input - cached) * price.input + cached * of_cached + usage.output * price.output
        return sums / A_MILLION
    if provider not in PRICED:
        return None
    import genai_prices  # costs half a second, and only model requests need it

    counted = genai_prices.Usage(input_tokens=usage.input, cache_read_tokens=cached, output_tokens=usage.output)
    try:
        return genai_prices.calc_price(counted, model, provider_id=provider).total_price
    except (LookupError, ValueError):
        return None


def context_window(model: str, provider: str) -> int | None:
    """Return the tokens of input and output together that ``model`` at ``provider`` (a profile's name) allows; None if unknown."""
    if provider not in PRICED:
        return None
    from genai_prices import data_snapshot  # costs half a second, and only model requests need it

    try:
        _provider, found = data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)
    except (LookupError, ValueError):
        return None
    return found.context_window


def known(model: str, own: Table, provider: str) -> bool:
    return dollars(Usage(1, 0, 1, 0), model, own, provider) is not None


def require(models: Iterable[str], own: Table, provider: str) -> None:
    """Raise UsageError ``price-unknown`` for the first of ``models`` whose price is unknown: its money cannot be limited."""
    for model in models:
        if not known(model, own, provider):
            raise unknown(model, provider)


def unknown(model: str, provider: str) -> UsageError:
    lines = f'[tool.runops.prices]\n"{model}" = {FORM}'
    return UsageError(
        "price-unknown",
        f"there is a budget of money, and the price of `{model}` is unknown",
        fix=f'write its price, in US dollars per million tokens, into [tool.runops.prices] of pyproject.toml: `"{model}" = {FORM}`; '
        "or limit tokens and calls instead",
        evidence={"model": model, "provider": provider, "write": lines},
    )
