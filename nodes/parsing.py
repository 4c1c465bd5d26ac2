"""Converts the text of a page to a typed value."""

from __future__ import annotations

import decimal
import re
from typing import Literal

from nodes.errors import SiteError
from nodes.values import Json, decimal_to_json

Kind = Literal["text", "number", "integer"]  # type of a value read from a text

BLANKS = "\\s'’"
r"""Separators of digit groups besides ``.`` or ``,``; ``\s`` includes narrow and no-break spaces."""

DIGITS = re.compile(rf"[-−+]?\s*(?:(?<!\w)[.,])?\d[\d.,{BLANKS}]*")
"""A number with its sign. A mark may lead it only if no letter precedes: `$.50` is a half, and `No.5` is five."""


def read_number(text: str, decimal_mark: str = ".") -> Json:
    """Return the one number in ``text``: ``"1,234.50 €"`` is 1234.5. ``decimal_mark`` is ``.`` or ``,``; the other, blanks and apostrophes group digits.

    Raises ValueError if there is no number, or more than one, or its digits are not grouped by threes.
    """
    found = [match.group() for match in DIGITS.finditer(text)]
    if len(found) != 1:
        raise ValueError(f"{'no number' if not found else 'more than one number'} in {text!r}")
    grouping = "," if decimal_mark == "." else "."
    written = found[0].replace("−", "-").strip().rstrip(".,").rstrip()
    sign = written[0] if written[0] in "+-" else ""
    whole, _mark, fraction = written.removeprefix(sign).strip().partition(decimal_mark)
    groups = re.split(rf"[{grouping}{BLANKS}]", whole)
    well_grouped = len(groups) == 1 or (0 < len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:]))
    if not well_grouped or (fraction and not fraction.isdecimal()):
        raise ValueError(f"{found[0].strip()!r} is not a number with the decimal mark {decimal_mark!r}")
    return decimal_to_json(decimal.Decimal(f"{sign}{''.join(groups)}.{fraction or 0}"))


def read_as(kind: Kind, text: str, what: str) -> Json:
    """Return ``text`` as a value of ``kind``; ``what`` names it in the error. Raises SiteError ``value-type``."""
    if kind == "text":
        return text
    try:
        value = read_number(text)
        if kind == "integer" and not isinstance(value, int):
            raise ValueError(f"{text!r} is not a whole number")
    except ValueError as error:
        raise SiteError(
            "value-type",
            f"{what} is not {'a whole number' if kind == 'integer' else 'a number'}: {error}",
            fix="read it as `type: text` and take it apart with a filter, or point at the element that holds only the number",
            evidence={"text": text, "wanted": kind},
        ) from None
    return value
