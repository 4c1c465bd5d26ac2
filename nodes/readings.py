"""From the text of a page to a typed value."""

from __future__ import annotations

import decimal
import re
from typing import Literal

from nodes.errors import SiteError
from nodes.values import Json, decimal_to_json

Kind = Literal["text", "number", "integer"]
"""What a text is read as."""

DIGITS = re.compile(r"[-−+]?\s*\d[\d\s.,'’  ]*")


def read_number(text: str, decimal_mark: str = ".") -> Json:
    """The one number in ``text``: ``"1,234.50 €"`` is 1234.5. ``decimal_mark`` is ``.`` or ``,``; the other, blanks and apostrophes group digits.

    Raises ValueError where there is no number, or more than one.
    """
    found = [match.group() for match in DIGITS.finditer(text)]
    if len(found) != 1:
        raise ValueError(f"{'no number' if not found else 'more than one number'} in {text!r}")
    digits = re.sub(r"[\s'’  ]", "", found[0]).replace("−", "-").rstrip(".,")
    grouping = "," if decimal_mark == "." else "."
    whole, _mark, fraction = digits.partition(decimal_mark)
    groups = whole.lstrip("+-").split(grouping)
    well_grouped = len(groups) == 1 or (0 < len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:]))
    if not well_grouped or decimal_mark in fraction or grouping in fraction:
        raise ValueError(f"{found[0].strip()!r} is not a number with the decimal mark {decimal_mark!r}")
    return decimal_to_json(decimal.Decimal(digits.replace(grouping, "")))


def read_as(kind: Kind, text: str, what: str) -> Json:
    """``text`` as a value of ``kind``; ``what`` names it in the error. Raises SiteError ``value-type``."""
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
            mend="read it as `type: text` and take it apart with a filter, or point at the element that holds only the number",
            evidence={"text": text, "wanted": kind},
        ) from None
    return value
