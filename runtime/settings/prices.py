"""Prices of tokens in US dollars: by ``[tool.runops.prices]``, else by the prices in genai-prices.

Money is a Decimal, exact to the last digit: prices are dollars per million tokens, so a sum has six places more than a price.
In the log it is text without an exponent (``0.0012275``), which any reader of JSON keeps as it is. Nothing is downloaded:
genai-prices uses the network only if a program starts its updater, and RunOps does not.

A price belongs to a provider. An unknown server (vLLM, Ollama, a compatible one) may give its model any name. So its prices
are those of the project's table, and otherwise unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict

from nodes.errors import UsageError
from nodes.values import Json
from runtime.messages.messages import Usage

A_MILLION = Decimal(1_000_000)

PRICED = frozenset({"openai", "azure", "openrouter"})
"""Profiles whose prices genai-prices has, under the same names."""

FORM = "{input = 0.25, cached = 0.025, output = 2.0}"

LARGEST = Decimal(10**6)
"""Maximum price of a million tokens; a higher one is a mistake."""

DATED = re.compile(r"-20\d\d-?\d\d-?\d\d$")
"""End of the name of one edition of a model."""


class BadPrice(ValueError):
    """An invalid price in the table; the message is one sentence that names the model."""


class Price(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, defer_build=True)

    input: Decimal
    cached: Decimal
    """Price of input that the server had in its cache; by default that of other input."""
    output: Decimal
    """Price of output, reasoning included."""


Table = Mapping[str, Price]
"""Prices by the name of the model: ``[tool.runops.prices]``."""


def table(given: Any) -> dict[str, Price]:
    """Return ``[tool.runops.prices]`` as prices. Raises BadPrice, which names the model and what is wrong."""
    if not isinstance(given, Mapping):
        raise BadPrice(f"it is a table of models, each with a price such as `{FORM}`")
    return {str(model): each if isinstance(each, Price) else _price(str(model), each) for model, each in given.items()}


def _price(model: str, given: Any) -> Price:
    if not isinstance(given, Mapping):
        raise BadPrice(f"the price of `{model}` is a table in US dollars per million tokens: `{FORM}`")
    for name in given:
        if name not in Price.model_fields:
            raise BadPrice(f"the price of `{model}` has an unknown `{name}`: it looks like `{FORM}`")
    missing = [name for name in ("input", "output") if name not in given]
    if missing:
        raise BadPrice(f"the price of `{model}` lacks `{missing[0]}`: it looks like `{FORM}`")
    amounts = {name: _amount(model, name, value) for name, value in given.items()}
    return Price(**{"cached": amounts["input"], **amounts})


def _amount(model: str, name: str, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise BadPrice(f"`{name}` of `{model}` is {value!r}, and no number: US dollars per million tokens")
    # The shortest text of a float is what was written.
    amount = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not (amount.is_finite() and 0 <= amount <= LARGEST):
        raise BadPrice(f"`{name}` of `{model}` is {value!r}, and no price of a million tokens in US dollars")
    return amount


def dollars(usage: Usage, model: str, own: Table, provider: str) -> Decimal | None:
    """Return the cost of ``usage`` of ``model`` at ``provider`` (the name of a profile); None if it is unknown.

    ``own`` comes first: by the exact name, else by the name without the date of an edition.
    """
    cached = min(usage.cached, usage.input)
    price = own.get(model) or own.get(DATED.sub("", model))
    if price is not None:
        sums = (usage.input - cached) * price.input + cached * price.cached + usage.output * price.output
        return sums / A_MILLION
    if provider not in PRICED:
        return None
    import genai_prices  # half a second, for those who ask a model

    counted = genai_prices.Usage(input_tokens=usage.input, cache_read_tokens=cached, output_tokens=usage.output)
    try:
        return genai_prices.calc_price(counted, model, provider_id=provider).total_price
    except (LookupError, ValueError):
        return None


def context_window(model: str, provider: str) -> int | None:
    """Return the tokens that ``model`` at ``provider`` (the name of a profile) has for input and output together; None if unknown."""
    if provider not in PRICED:
        return None
    from genai_prices import data_snapshot  # half a second, for those who ask a model

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
    evidence: dict[str, Json] = {"model": model, "provider": provider, "write": lines}
    return UsageError(
        "price-unknown",
        f"there is a budget of money, and nobody knows what `{model}` costs",
        fix=f'write its price, in US dollars per million tokens, into [tool.runops.prices] of pyproject.toml: `"{model}" = {FORM}`; '
        "or limit tokens and calls instead",
        evidence=evidence,
    )
