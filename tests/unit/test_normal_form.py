"""The normal form of a request: what counts, and what does not."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import html
import json
import urllib.parse
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.log.store import store as log_store
from runtime.messages.messages import Message, Request, ToolCall, ToolOutput
from runtime.models.cassettes import normal_form
from runtime.secrets import masking

SECRETS = {"PASSWORD": 'pa"ss wörd/1', "TOKEN": "tok3n-of-the-shop"}


def form(request: Request, secrets: Mapping[str, str]) -> str:
    """The normal form of a request, in the order of its fields."""
    return json.dumps(normal_form.normal(request, secrets).request)


def asking(text: str, **other: Any) -> Request:
    """A request with this text."""
    plain = Request("model-1", "Sort the order.", (Message("user", text),), {"type": "object"}, 500)
    return dataclasses.replace(plain, **other)


def said(text: str) -> str:
    """The text in normal form."""
    return normal_form.normal(asking(text), SECRETS).request["messages"][0]["text"]


MOMENTS = [
    "2026-03-01T10:15:00Z",
    "2026-03-01T10:15:00.123456+02:00",
    "2026-03-01T10:15",
    "2026-03-01 10:15:00",
    "2026-03-01t10:15:00,5z",
    "2026-03-01T10:15:00-0500",
    "20260301T101500Z",
    "Sun, 01 Mar 2026 10:15:00 GMT",
    "Sun, 01 Mar 2026 10:15:00 +0000",
    "Sun, 1 Mar 2026 10:15:00 -0530",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_time_stamp_does_not_count(moment: str) -> None:
    """Whatever the zone and the fraction, between words and marks."""
    assert said(f"at {moment}, in log-{moment}.") == "at <time 1>, in log-<time 1>."
    assert said(f'{{"at": "{moment}"}}') == '{"at": "<time 1>"}'


IDS = [
    "3f2b8c1e-9d4a-4c6b-8f0e-1a2b3c4d5e6f",
    "01JD3K8Q2ZV7W9X5YB6C4D1E0F",
    "resp_67c9fdcecf488190bdd9a0409de3a1ec",
    "call_12345xyz",
    "msg_0a1b2c3d4e",
    "msg_3f2b8c1e-9d4a-4c6b-8f0e-1a2b3c4d5e6f",
    "chatcmpl-9aBcDeFgHiJkLmN",
    "d41d8cd98f00b204e9800998ecf8427e",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
]


@pytest.mark.parametrize("number", IDS)
def test_an_id_does_not_count(number: str) -> None:
    """Ids of runs, of servers, and what is long and drawn at random."""
    assert said(f"see {number}: order-{number}") == "see <id 1>: order-<id 1>"


DATA = [
    "2026-03-01",
    "10:15:00",
    "1007",
    "call_customers",
    "resp_1",
    "order_20260301",
    "SKU-3f2b8c1e",
    "deadbeef",
    "01JD3K8Q2ZV7W9X5YB6C4D1E0",
    "x01JD3K8Q2ZV7W9X5YB6C4D1E0F",
    "d41d8cd98f00b204e9800998ecf8427",
    "12026-03-01T10:15:00Z",
    "1 March 2026",
    "61109010140000071219812874",
    "12345678901234567890123456789012",
    "1234567890123456789012345678901234567890",
    "1234567890" * 6 + "1234",
    "req_20261122",
    "msg_12345678",
    "call_12345678",
    "1763805600000",
]


@pytest.mark.parametrize("text", DATA)
def test_data_counts(text: str) -> None:
    """Plain dates, numbers of orders and names are what is asked about."""
    assert said(text) == text


def test_a_uuid_behind_a_name_does_not_count() -> None:
    """The name before it does, and what only looks like the end of a UUID is none."""
    assert said(f"order_{IDS[0]}, {IDS[0]}") == "order_<id 1>, <id 1>"
    assert said(f"x{IDS[0]}") == f"x{IDS[0]}"


@given(st.lists(st.sampled_from([*MOMENTS, *IDS, "word", "2026-03-01"]), max_size=6))
def test_the_same_text_has_the_same_number(parts: list[str]) -> None:
    """Placeholders are numbered as they appear, and two that are equal are for two texts that are equal."""
    found = said(" ; ".join(parts)).split(" ; ") if parts else []
    assert len(found) == len(parts)
    assert all((one == other) == (parts[i] == parts[j]) for i, one in enumerate(found) for j, other in enumerate(found))
    for kind in ("time", "id"):
        numbers = list(dict.fromkeys(each for each in found if each.startswith(f"<{kind} ")))
        assert numbers == [f"<{kind} {number}>" for number in range(1, len(numbers) + 1)]


@given(st.datetimes(), st.datetimes(), st.uuids(), st.uuids(), st.sampled_from([None, dt.UTC]))
def test_another_run_asks_the_same(
    one: dt.datetime, other: dt.datetime, first: uuid.UUID, second: uuid.UUID, zone: dt.tzinfo | None
) -> None:
    """Times and ids of today and of tomorrow, wherever in the request, make no other key."""

    def at(moment: dt.datetime, number: uuid.UUID, run: str) -> Request:
        stamp = moment.replace(tzinfo=zone).isoformat()
        schema = {"type": "object", "properties": {"of": {"type": "string", "enum": [str(number), run]}}}
        return asking(f"{stamp} {number}", instructions=f"Run {run}, {stamp}.", schema=schema)

    assert form(at(one, first, log_store.new_id()), {}) == form(at(other, second, log_store.new_id()), {})


@pytest.mark.parametrize(
    "other",
    [
        {"model": "model-2"},
        {"instructions": "Sort the orders."},
        {"instructions": "Sort the order. "},
        {"items": (Message("user", "order 1008"),)},
        {"items": (Message("assistant", "order 1007"),)},
        {"items": (Message("user", "order 1007"), Message("assistant", "a"), Message("user", "b"))},
        {"schema": None},
        {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"max_output": 501},
        {"strict": False},
    ],
)
def test_everything_else_counts(other: dict[str, Any]) -> None:
    """A word, a field, the model, a limit: another request."""
    assert form(asking("order 1007", **other), {}) != form(asking("order 1007"), {})


def test_the_order_of_fields_counts() -> None:
    """A model fills them in in that order."""
    one, other = ({name: {"type": "string"} for name in names} for names in ("ab", "ba"))
    assert form(asking("", schema={"properties": one}), {}) != form(asking("", schema={"properties": other}), {})


@given(st.text(max_size=12), st.sampled_from(sorted(SECRETS)), st.text(max_size=12), st.data())
def test_no_secret_stands_in_a_normal_form(before: str, name: str, after: str, data: st.DataObject) -> None:
    """In none of its forms, whatever stands around it; and another value of it makes no other request."""
    value = SECRETS[name]
    form = data.draw(
        st.sampled_from(
            [
                value,
                urllib.parse.quote(value, safe=""),
                html.escape(value),
                json.dumps(value)[1:-1],
                base64.b64encode(value.encode()).decode().rstrip("="),
                "".join(f"%{byte:02x}" for byte in value.encode()),
                "".join(f"&#{ord(each)};" for each in value),
            ]
        )
    )
    found = said(before + form + after)
    assert masking.Masker(SECRETS).text(found) == found


def test_a_changed_secret_asks_the_same() -> None:
    """What counts of a secret is its name."""
    one = form(asking("Log in with s3cret-one."), {"PASSWORD": "s3cret-one"})
    other = form(asking("Log in with s3cret-two."), {"PASSWORD": "s3cret-two"})
    assert one == other
    assert said("tok3n-of-the-shop") == "<secret TOKEN>"
    assert (
        normal_form.normal(asking("msg_0a1b2c3d4e"), {"S": "c3d4e"}).request["messages"][0]["text"]
        == "msg_0a1b2<secret S>"
    )


def test_of_two_secrets_the_longer_one_is_meant() -> None:
    """Where one begins with the other, no rest of the longer one is left."""
    known = {"LONG": "shop-pass-of-anna", "SHORT": "shop-pass"}
    asked = normal_form.normal(asking("shop-pass-of-anna, shop-pass"), known)
    assert asked.request["messages"][0]["text"] == "<secret LONG>, <secret SHORT>"


PIECES = st.lists(
    st.sampled_from([*MOMENTS, *IDS, "<time 1>", "<_id 1>", "<id 2>", "<secret X>", "\\", "<", "<_", " ", "text"]),
    max_size=8,
).map("".join)


@given(PIECES, PIECES)
def test_an_answer_comes_back_as_it_was(question: str, answer: str) -> None:
    """Placeholders in an answer are undone, and what only looks like one is left."""
    asked = normal_form.normal(asking(question), {})
    assert asked.undo(asked.apply(answer)) == answer


@given(PIECES, PIECES)
def test_what_looks_like_a_placeholder_is_none(one: str, other: str) -> None:
    """Two texts with one normal form differ in times and ids only: undone with the same table, they are the same."""
    first, second = normal_form.normal(asking(one), {}), normal_form.normal(asking(other), {})
    if first.request == second.request:
        assert second.undo(said(one)) == other


def test_an_answer_speaks_of_the_ids_of_this_run() -> None:
    """An id that the model gives back is that of the request which is asked, and not of the one that was recorded."""
    recorded, asked = (normal_form.normal(asking(f"order {number}"), {}) for number in (IDS[0], str(uuid.uuid4())))
    kept = recorded.apply(f"refund {IDS[0]}, not {IDS[1]}")
    assert kept == f"refund <id 1>, not {IDS[1]}"
    assert asked.undo(kept) == f"refund {asked.texts['<id 1>']}, not {IDS[1]}"


HERE, THERE = "http://127.0.0.1:46737", "https://shop.test"


def looked(origin: str, ref: str, other: str) -> Request:
    """A conversation of an agent that has looked at a page."""
    page = (
        f'page "Orders" {origin}/orders\nbutton "Pay" [ref={ref}]\nlink "Help" [ref={other}]\n9 more: look(ref={ref})'
    )
    call = ToolCall("a", "click", json.dumps({"ref": ref}))
    said = ToolOutput("a", f"there is no element {ref} any more")
    return asking("", items=(Message("user", "Pay."), ToolCall("l", "look", "{}"), ToolOutput("l", page), call, said))


def test_where_the_pages_are_does_not_count() -> None:
    """An origin that the run may load is known by its place in the file; what only begins like it, and any other address, are data."""
    text = f"{HERE}/orders, {HERE}. {HERE}0/orders {HERE}.evil.test x{HERE} {THERE}/"
    found = normal_form.normal(asking(text), {}, [THERE, HERE]).request["messages"][0]["text"]
    assert found == f"<origin 2>/orders, <origin 2>. {HERE}0/orders {HERE}.evil.test x{HERE} <origin 1>/"
    assert said(f"{HERE}/orders") == f"{HERE}/orders"


def test_how_elements_are_counted_does_not_count() -> None:
    """A page of another shop whose frames came in another order is the same page; which element is meant counts."""
    one = normal_form.normal(looked(HERE, "f1e5", "f2x7"), {}, [HERE])
    assert one.request == normal_form.normal(looked(THERE, "e9", "f3e1"), {}, [THERE]).request
    other = looked(THERE, "e9", "f3e1")
    swapped = dataclasses.replace(
        other, items=(*other.items[:3], ToolCall("a", "click", '{"ref": "f3e1"}'), other.items[4])
    )
    assert one.request != normal_form.normal(swapped, {}, [THERE]).request


def test_what_only_looks_like_a_ref_is_data() -> None:
    """A text that is typed, and a word of the page, keep their letters, though an element has them for its ref."""
    asked = normal_form.normal(asking("[ref=e5] room e5, f1e5"), {})
    assert asked.request["messages"][0]["text"] == "[ref=<ref 1>] room e5, f1e5"
    assert asked.apply('{"ref": "e5", "text": "e5"}') == '{"ref": "<ref 1>", "text": "e5"}'


def test_an_answer_acts_on_the_page_of_the_run_that_is_played() -> None:
    """The element and the address that the model chose are those of this run's page."""
    mine, theirs = (
        normal_form.normal(looked(HERE, "f1e5", "f2x7"), {}, [HERE]),
        normal_form.normal(looked(THERE, "e9", "f3e1"), {}, [THERE]),
    )
    [(_name, kept)] = mine.named(
        [ToolCall("z", "goto", json.dumps({"ref": "f2x7", "url": f"{HERE}/help", "no": "e9"}))]
    )
    assert json.loads(theirs.undo(kept.arguments)) == {"ref": "f3e1", "url": f"{THERE}/help", "no": "e9"}


def test_a_text_that_looks_like_our_placeholder_of_a_ref_is_kept() -> None:
    """It comes back as it was, whatever refs the page has."""
    asked = normal_form.normal(asking("[ref=e5] <ref 1> <origin 1>"), {}, [HERE])
    assert asked.request["messages"][0]["text"] == "[ref=<ref 1>] <_ref 1> <_origin 1>"
    assert asked.undo(asked.apply("<ref 1> <origin 1> <_ref 1>")) == "<ref 1> <origin 1> <_ref 1>"
