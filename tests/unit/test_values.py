"""Values: their JSON normal form, and back."""

import datetime as dt
import decimal
import enum
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.values import LARGEST_INTEGER, NotJson, as_text, decimal_to_json, normalise


class Colour(enum.Enum):
    """An enum."""

    RED = "red"


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30)
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.binary()
    | st.sampled_from(Colour)
)
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(anything)
def test_the_normal_form_is_normal(value: Any) -> None:
    """Normalising a normalised value changes nothing."""
    once = normalise(value)
    assert normalise(once) == once
    assert repr(normalise(once)) == repr(once)


@given(anything)
def test_a_normalised_value_survives_json(value: Any) -> None:
    """A normalised value written as UTF-8 JSON is read back equal, with the same types."""
    once = normalise(value)
    again = json.loads(json.dumps(once, allow_nan=False, ensure_ascii=False).encode())
    assert repr(again) == repr(once)


@given(st.sets(st.integers() | st.text(max_size=3)))
def test_a_set_becomes_the_same_list_whatever_its_order(values: set[Any]) -> None:
    """Sets have no order, so their list is sorted."""
    assert normalise(values) == normalise(frozenset(sorted(values, key=repr)))


@given(st.integers())
def test_integers_beyond_64_bits_become_text(value: int) -> None:
    """An integer of up to 64 bits stays a number; a larger one becomes text."""
    assert normalise(value) == (value if abs(value) <= LARGEST_INTEGER else str(value))


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20))
def test_no_digit_of_a_decimal_is_lost(value: decimal.Decimal) -> None:
    """A decimal becomes a number where that is exact, and else text with every digit."""
    given = decimal_to_json(value)
    assert decimal.Decimal(repr(given) if isinstance(given, float) else given) == value


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (dt.date(2026, 11, 21), "2026-11-21"),
        (dt.datetime(2026, 11, 21, 3, 0, tzinfo=dt.UTC), "2026-11-21T03:00:00+00:00"),
        (dt.timedelta(minutes=1.5), 90.0),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (b"\x00\xff", "AP8="),
        (Colour.RED, "red"),
        (decimal.Decimal("12.50"), 12.5),
        (decimal.Decimal("0.1000000000000000000001"), "0.1000000000000000000001"),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        ("\ud800", "\ufffd"),
    ],
)
def test_examples(value: Any, given: Any) -> None:
    """Each kind has one form."""
    assert normalise(value) == given


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, object(), decimal.Decimal("nan")])
def test_a_value_without_json_form_is_refused(value: Any) -> None:
    """A value without a JSON form is refused, not converted to text."""
    with pytest.raises(NotJson):
        normalise([value])


def test_a_value_that_nests_too_deeply_is_refused() -> None:
    """A value that contains itself raises an error."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotJson, match="nests deeper"):
        normalise(endless)


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (1.5, "1.5"), (["ü"], '["ü"]'), ("a", "a")])
def test_a_value_in_a_text_is_written_as_json(value: Any, text: str) -> None:
    """A value in a text is written as JSON, and text as it is."""
    assert as_text(value) == text
