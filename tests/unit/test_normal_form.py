"""The normal form of a request: the parts that make a key, and the parts that do not."""

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


def normalized(text: str) -> str:
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
    """A time stamp of any zone and fraction, between words and marks, becomes a placeholder."""
    assert normalized(f"at {moment}, in log-{moment}.") == "at <time 1>, in log-<time 1>."
    assert normalized(f'{{"at": "{moment}"}}') == '{"at": "<time 1>"}'


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
    """Ids of runs and servers, and long random ids, become placeholders."""
    assert normalized(f"see {number}: order-{number}") == "see <id 1>: order-<id 1>"


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
    """Plain dates, order numbers and names stay, because they are data."""
    assert normalized(text) == text


def test_a_uuid_after_a_name_does_not_count() -> None:
    """A UUID after a name becomes a placeholder and the name stays; text that only ends like a UUID stays too."""
    assert normalized(f"order_{IDS[0]}, {IDS[0]}") == "order_<id 1>, <id 1>"
    assert normalized(f"x{IDS[0]}") == f"x{IDS[0]}"


@given(st.lists(st.sampled_from([*MOMENTS, *IDS, "word", "2026-03-01"]), max_size=6))
def test_the_same_text_has_the_same_number(parts: list[str]) -> None:
    """Placeholders are numbered by appearance, and two are equal exactly if their texts are equal."""
    found = normalized(" ; ".join(parts)).split(" ; ") if parts else []
    assert len(found) == len(parts)
    assert all((one == other) == (parts[i] == parts[j]) for i, one in enumerate(found) for j, other in enumerate(found))
    for kind in ("time", "id"):
        numbers = list(dict.fromkeys(each for each in found if each.startswith(f"<{kind} ")))
        assert numbers == [f"<{kind} {number}>" for number in range(1, len(numbers) + 1)]


@given(st.datetimes(), st.datetimes(), st.uuids(), st.uuids(), st.sampled_from([None, dt.UTC]))
def test_another_run_makes_the_same_request(
    one: dt.datetime, other: dt.datetime, first: uuid.UUID, second: uuid.UUID, zone: dt.tzinfo | None
) -> None:
    """Other times and ids, anywhere in the request, give the same key."""

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
    """Another text, field, model or limit is another request."""
    assert form(asking("order 1007", **other), {}) != form(asking("order 1007"), {})


def test_the_order_of_fields_counts() -> None:
    """Another order of fields is another request, because a model fills them in that order."""
    one, other = ({name: {"type": "string"} for name in names} for names in ("ab", "ba"))
    assert form(asking("", schema={"properties": one}), {}) != form(asking("", schema={"properties": other}), {})


@given(st.text(max_size=12), st.sampled_from(sorted(SECRETS)), st.text(max_size=12), st.data())
def test_no_secret_is_in_a_normal_form(before: str, name: str, after: str, data: st.DataObject) -> None:
    """No form of a secret is in a normal form, whatever the text around it."""
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
    found = normalized(before + form + after)
    assert masking.Masker(SECRETS).text(found) == found


def test_a_changed_secret_makes_the_same_request() -> None:
    """Only the name of a secret counts, not its value."""
    one = form(asking("Log in with s3cret-one."), {"PASSWORD": "s3cret-one"})
    other = form(asking("Log in with s3cret-two."), {"PASSWORD": "s3cret-two"})
    assert one == other
    assert normalized("tok3n-of-the-shop") == "<secret TOKEN>"
    assert (
        normal_form.normal(asking("msg_0a1b2c3d4e"), {"S": "c3d4e"}).request["messages"][0]["text"]
        == "msg_0a1b2<secret S>"
    )


def test_the_longer_of_two_secrets_is_replaced() -> None:
    """If one secret begins with another, no rest of the longer one is left."""
    known = {"LONG": "shop-pass-of-anna", "SHORT": "shop-pass"}
    asked = normal_form.normal(asking("shop-pass-of-anna, shop-pass"), known)
    assert asked.request["messages"][0]["text"] == "<secret LONG>, <secret SHORT>"


PIECES = st.lists(
    st.sampled_from([*MOMENTS, *IDS, "<time 1>", "<_id 1>", "<id 2>", "<secret X>", "\\", "<", "<_", " ", "text"]),
    max_size=8,
).map("".join)


@given(PIECES, PIECES)
def test_an_answer_comes_back_as_it_was(question: str, answer: str) -> None:
    """Placeholders in an answer are undone, and text that only looks like one stays."""
    asked = normal_form.normal(asking(question), {})
    assert asked.undo(asked.apply(answer)) == answer


@given(PIECES, PIECES)
def test_text_that_looks_like_a_placeholder_is_none(one: str, other: str) -> None:
    """Two texts with one normal form differ only in times and ids: undone with one table, they are equal."""
    first, second = normal_form.normal(asking(one), {}), normal_form.normal(asking(other), {})
    if first.request == second.request:
        assert second.undo(normalized(one)) == other


def test_an_answer_has_the_ids_of_this_run() -> None:
    """An id in a replayed answer is that of the current request, not that of the recorded one."""
    recorded, asked = (normal_form.normal(asking(f"order {number}"), {}) for number in (IDS[0], str(uuid.uuid4())))
    kept = recorded.apply(f"refund {IDS[0]}, not {IDS[1]}")
    assert kept == f"refund <id 1>, not {IDS[1]}"
    assert asked.undo(kept) == f"refund {asked.texts['<id 1>']}, not {IDS[1]}"


HERE, THERE = "http://127.0.0.1:46737", "https://shop.test"


def looked(origin: str, ref: str, other: str) -> Request:
    """A conversation of an agent that has observed a page."""
    page = (
        f'page "Orders" {origin}/orders\nbutton "Pay" [ref={ref}]\nlink "Help" [ref={other}]\n9 more: look(ref={ref})'
    )
    call = ToolCall("a", "click", json.dumps({"ref": ref}))
    output = ToolOutput("a", f"there is no element {ref} any more")
    return asking("", items=(Message("user", "Pay."), ToolCall("l", "look", "{}"), ToolOutput("l", page), call, output))


def test_the_origin_of_a_page_does_not_count() -> None:
    """An allowed origin is replaced by its place in the file; an address that only begins with it, and any other address, are data."""
    text = f"{HERE}/orders, {HERE}. {HERE}0/orders {HERE}.evil.test x{HERE} {THERE}/"
    found = normal_form.normal(asking(text), {}, [THERE, HERE]).request["messages"][0]["text"]
    assert found == f"<origin 2>/orders, <origin 2>. {HERE}0/orders {HERE}.evil.test x{HERE} <origin 1>/"
    assert normalized(f"{HERE}/orders") == f"{HERE}/orders"


def test_the_numbers_of_refs_do_not_count() -> None:
    """A page with other refs is the same page, even if its frames came in another order; the chosen element counts."""
    one = normal_form.normal(looked(HERE, "f1e5", "f2x7"), {}, [HERE])
    assert one.request == normal_form.normal(looked(THERE, "e9", "f3e1"), {}, [THERE]).request
    other = looked(THERE, "e9", "f3e1")
    swapped = dataclasses.replace(
        other, items=(*other.items[:3], ToolCall("a", "click", '{"ref": "f3e1"}'), other.items[4])
    )
    assert one.request != normal_form.normal(swapped, {}, [THERE]).request


def test_text_that_looks_like_a_ref_is_data() -> None:
    """A typed text and a word of the page stay unchanged, even if they equal the ref of an element."""
    asked = normal_form.normal(asking("[ref=e5] room e5, f1e5"), {})
    assert asked.request["messages"][0]["text"] == "[ref=<ref 1>] room e5, f1e5"
    assert asked.apply('{"ref": "e5", "text": "e5"}') == '{"ref": "<ref 1>", "text": "e5"}'


def test_a_replayed_answer_acts_on_the_page_of_its_run() -> None:
    """A replayed answer uses the element and the address of this run's page."""
    mine, theirs = (
        normal_form.normal(looked(HERE, "f1e5", "f2x7"), {}, [HERE]),
        normal_form.normal(looked(THERE, "e9", "f3e1"), {}, [THERE]),
    )
    [(_name, kept)] = mine.named(
        [ToolCall("z", "goto", json.dumps({"ref": "f2x7", "url": f"{HERE}/help", "no": "e9"}))]
    )
    assert json.loads(theirs.undo(kept.arguments)) == {"ref": "f3e1", "url": f"{THERE}/help", "no": "e9"}


def test_a_text_that_looks_like_the_placeholder_of_a_ref_is_kept() -> None:
    """A text that looks like a placeholder comes back unchanged, whatever refs the page has."""
    asked = normal_form.normal(asking("[ref=e5] <ref 1> <origin 1>"), {}, [HERE])
    assert asked.request["messages"][0]["text"] == "[ref=<ref 1>] <_ref 1> <_origin 1>"
    assert asked.undo(asked.apply("<ref 1> <origin 1> <_ref 1>")) == "<ref 1> <origin 1> <_ref 1>"
