"""Token estimates before a request is sent: never too low, and not far too high."""

import dataclasses
import itertools
import json
import math
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.messages import estimates, tokens
from runtime.messages.messages import Message, Picture, Request, Tool, ToolCall, ToolOutput
from runtime.models.client import client as model_client
from runtime.models.client import profiles
from runtime.testing import responses, scripted_model

GOLDEN = json.loads((Path(__file__).parent / "golden" / "tokens.json").read_text(encoding="utf-8"))
SAMPLES: list[dict[str, Any]] = GOLDEN["samples"]

RANKS = {token: rank for rank, token in enumerate(tokens.unpacked(tokens.MERGES.read_bytes()))}

DENSE = {
    *("English prose", "Markdown", "JSON rows", "JSON rows, indented", "JSON, compact", "JSON Schema", "YAML workflow"),
    *(
        "YAML rows",
        "page observation",
        "HTML",
        "HTML, minified",
        "Python",
        "SQL",
        "shell",
        "log lines",
        "CSV",
        "numbers",
    ),
    *("hexadecimal ids", "UUIDs", "addresses", "white space", "CSS", "base64", "ULIDs", "random ASCII"),
}
"""The usual content of requests."""


def request(text: str, *, instructions: str = "", schema: dict[str, Any] | None = None) -> Request:
    """A request with one user message."""
    return Request("m", instructions, (Message("user", text),), schema, 100)


@pytest.mark.parametrize("sample", SAMPLES, ids=[each["of"] for each in SAMPLES])
def test_a_text_is_never_counted_too_low(sample: dict[str, Any]) -> None:
    """The count is at least that of the real tokenizer, at most 16 % above for usual content and 65 % for any text."""
    counted, real = tokens.count(sample["text"]), sample["tokens"]
    assert real <= counted <= real * (1.16 if sample["of"] in DENSE else 1.65)


def test_together_the_samples_are_counted_closely() -> None:
    """Over all samples of usual content the count is at most 7 % too high."""
    dense = [each for each in SAMPLES if each["of"] in DENSE]
    assert len(dense) == len(DENSE)
    assert sum(tokens.count(each["text"]) for each in dense) <= 1.07 * sum(each["tokens"] for each in dense)


@given(st.text())
@example("don't DON'Tx we'll I'D 1234567 a\r\n//\n  \n   x Éa\u0301\u0301 \x1c\x85")
@example("\udc80 lone")
def test_pieces_are_the_text(text: str) -> None:
    """Pieces join to the text; each has at least one token, and at most one per byte."""
    found = tokens.pieces(text)
    assert "".join(found) == text
    assert all(found)
    assert len(found) <= tokens.count(text) <= len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Hello world", ["Hello", " world"]),
        ("don't WE'LL x'y", ["don't", " WE'LL", " x", "'y"]),
        ("CamelCase HTMLParser", ["Camel", "Case", " HTMLParser"]),
        ("12345 a1", ["123", "45", " a", "1"]),
        ("a  b \n\n c", ["a", " ", " b", " \n\n", " c"]),
        ("x.//\n/y", ["x", ".//\n/", "y"]),
        ("नमस्ते ❤\ufe0f👍", ["नमस्ते", " ❤\ufe0f👍"]),
        ("人人生而自由。1", ["人人生而自由", "。", "1"]),
    ],
)
def test_a_text_is_cut_where_the_tokenizer_cuts(text: str, wanted: list[str]) -> None:
    """Words keep their leading space, digits come in threes, punctuation keeps its line ends, and marks their letters."""
    assert tokens.pieces(text) == wanted


@pytest.mark.parametrize("text", [" " * 1_000_000 + "x", "a" * 1_000_000, "茶" * 300_000])
def test_a_very_long_piece_is_counted_without_merging(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece that is never split would take seconds to merge, so its bytes are counted, never fewer than its tokens."""
    joined: list[int] = []

    def counted(piece: bytes, ranks: dict[bytes, int]) -> int:
        joined.append(len(piece))
        return really(piece, ranks)

    really = tokens.joined
    monkeypatch.setattr(tokens, "joined", counted)
    assert len(text) // 128 <= tokens.count(text) <= len(text.encode())
    assert sum(joined) <= tokens.LONGEST


def parts_of(piece: bytes) -> set[bytes]:
    """Each substring of the bytes."""
    return {piece[start:end] for start in range(len(piece)) for end in range(start + 1, len(piece) + 1)}


@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode), st.integers(256, 50_000))
def test_a_shorter_merge_list_counts_no_fewer(piece: bytes, end: int) -> None:
    """A prefix of the merge list never gives fewer tokens than the whole list."""
    first = {part: RANKS[part] for part in parts_of(piece) if RANKS.get(part, end) < end}
    assert tokens.joined(piece, first) >= tokens.joined(piece, RANKS)


@given(st.text("abc", max_size=30), st.permutations(["ab", "bc", "ca", "aa", "abc", "bca", "aab", "abab"]))
def test_merges_equal_a_naive_implementation(text: str, order: list[str]) -> None:
    """Neighbours of the lowest rank merge first, the left ones if equal, until no pair is a token."""
    ranks = {token.encode(): rank for rank, token in enumerate(order)}
    parts = [each.encode() for each in text]
    while True:
        found = [
            (ranks[left + right], at)
            for at, (left, right) in enumerate(itertools.pairwise(parts))
            if left + right in ranks
        ]
        if not found:
            break
        _, at = min(found)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    assert tokens.joined(text.encode(), ranks) == len(parts)


def test_the_merge_list_survives_packing() -> None:
    """A packed list keeps its order; the list of the package begins with the single bytes."""
    some = [b"a", b"\x00", b" the", bytes(range(128))]
    assert tokens.unpacked(tokens.packed(some)) == some
    merges = tokens.unpacked(tokens.MERGES.read_bytes())
    assert {each for each in merges if len(each) == 1} == {bytes([each]) for each in range(256)}
    assert len(merges) == len(set(merges)) == 50_000


def test_everything_in_a_request_counts() -> None:
    """Instructions, each message and the schema add at least their own tokens; the answer limit adds none."""
    plain = estimates.tokens(request("hello"))
    schema = {"type": "object", "properties": {"ok": {"type": "boolean", "description": "whether it is"}}}
    with_schema = estimates.tokens(request("hello", schema=schema))
    assert with_schema >= plain + tokens.count(json.dumps(schema))
    assert estimates.tokens(request("hello", instructions="Be short.")) >= plain + tokens.count("Be short.")
    two = Request("m", "", (Message("user", "hello"), Message("assistant", "yes"), Message("user", "hello")), None, 9)
    assert estimates.tokens(two) >= plain + 2
    assert plain == estimates.tokens(Request("m", "", (Message("user", "hello"),), None, 100_000))


LOOK = Tool(
    "look",
    "See the page.",
    {
        "type": "object",
        "properties": {"ref": {"type": ["string", "null"]}},
        "required": ["ref"],
        "additionalProperties": False,
    },
)


def test_tools_calls_and_outputs_count() -> None:
    """Descriptions and schemas of tools, arguments of calls and outputs add at least their own tokens."""
    plain = request("hello")
    tooled = dataclasses.replace(plain, tools=(LOOK,))
    before = estimates.tokens(tooled)
    written = json.dumps(LOOK.parameters)
    assert before >= estimates.tokens(plain) + tokens.count(LOOK.description) + tokens.count(written)
    call, output = ToolCall("call_a", "look", '{"ref": "e5"}'), ToolOutput("call_a", "button Pay, and many more words")
    asked = estimates.tokens(dataclasses.replace(tooled, items=(*tooled.items, call)))
    assert asked >= before + tokens.count(call.arguments) + tokens.count(call.name)
    answered = estimates.tokens(dataclasses.replace(tooled, items=(*tooled.items, call, output)))
    assert answered >= asked + tokens.count(output.text)
    assert estimates.tokens(dataclasses.replace(plain, brief="You are here.")) >= estimates.tokens(plain) + 4


@pytest.mark.parametrize(
    ("width", "height", "patches"), [(32, 32, 1), (33, 32, 2), (1280, 720, 40 * 23), (4000, 4000, 1536)]
)
def test_a_picture_counts_by_its_patches(width: int, height: int, patches: int) -> None:
    """A picture counts 2.46 tokens for each 32 × 32 pixels that it covers, of at most 1,536, whatever its data are; and so does the output that holds it."""
    counted = estimates.of_picture(width, height) - estimates.A_MESSAGE
    assert patches * 2.46 <= counted < patches * 2.46 + 1
    plain, shown = ToolOutput("c", "kept"), ToolOutput("c", "kept", Picture("QUJD" * 9_999, width, height))
    assert estimates.of_item(shown) == estimates.of_item(plain) + estimates.of_picture(width, height)


async def test_a_conversation_with_tools_is_never_estimated_lower_than_the_server_counts() -> None:
    """No request of the real client is estimated lower than a server with the same tokenizer counts."""
    tools = (LOOK, dataclasses.replace(LOOK, name="find", description="Find an element of the page by its words."))
    asked = dataclasses.replace(request("Pay the order.", instructions="Work."), tools=tools, brief="Step 3 of 4.")
    script = [
        scripted_model.call("look", {"ref": None}),
        scripted_model.call("find", {"ref": "e5"}),
        scripted_model.text("Done."),
    ]
    with responses.serve(script, tokens=tokens.count) as server:
        client = model_client.Client(server.url, server.key, profiles.PROFILES["openai"])
        counted: list[int] = []
        try:
            for _turn in script:
                answer = await client.ask(asked, 30)
                assert answer.usage is not None
                counted.append(answer.usage.input)
                assert counted[-1] <= estimates.tokens(asked)
                outputs = [ToolOutput(each.id, "button Pay, and more words " * 20) for each in answer.calls]
                asked = dataclasses.replace(asked, items=(*asked.items, *answer.calls, *outputs))
        finally:
            await client.close()
    assert counted[0] + 200 < counted[-1]


COUNTED = st.lists(st.tuples(st.integers(1, 10**6), st.floats(0.1, 9), st.integers(0, 500)), min_size=1, max_size=12)


@given(COUNTED, st.integers(0, 10**7))
def test_estimates_are_never_below_earlier_counts(points: list[tuple[int, float, int]], raw: int) -> None:
    """After a server's count, a request of the same size is estimated at least as high, and never below its raw count."""
    calibrated = estimates.Calibrated()
    seen = [(size, math.ceil(size * ratio) + more) for size, ratio, more in points]
    for size, counted in seen:
        calibrated.take("m", size, counted)
    assert all(calibrated.corrected("m", size) >= counted for size, counted in seen)
    assert calibrated.corrected("m", raw) >= raw
    largest, its = max(seen)
    ratio = max(1.0, its / largest) if largest >= estimates.LEAST_TOKENS else 1.0
    more = max(0.0, *(counted - ratio * size for size, counted in seen))
    assert calibrated.corrected("m", raw) == max(raw, math.ceil(raw * ratio + more - 1e-6))
    assert calibrated.corrected("another", raw) == raw


@given(st.floats(1, 4), st.integers(0, 190), st.lists(st.integers(1000, 10**6), min_size=2, max_size=8))
def test_a_steady_server_is_learned(ratio: float, more: int, sizes: list[int]) -> None:
    """For a server with a constant ratio and offset, a larger request is estimated right up to a multiple of the offset."""
    calibrated = estimates.Calibrated()
    for size in sizes:
        calibrated.take("m", size, math.ceil(size * ratio) + more)
    larger = 2 * max(sizes)
    real = math.ceil(larger * ratio) + more
    assert real - 1 <= calibrated.corrected("m", larger) <= real + 2 * (more + 2) + more + 2


def test_calibration_time_stays_constant() -> None:
    """Counts without influence on a correction are dropped, so the work per answer does not grow."""
    calibrated, checked = estimates.Calibrated(), Counter[str]()

    def trace(frame: types.FrameType, event: str, _argument: object) -> None:
        if event == "call":
            checked[frame.f_code.co_name] += 1

    for size in range(200, 2_200):
        if size == 2_100:
            sys.setprofile(trace)
        calibrated.take("m", size, size + size * 7919 % 101)
    sys.setprofile(None)
    assert checked["take"] == 100
    assert sum(checked.values()) < 100 * 100


def test_a_small_request_sets_no_ratio() -> None:
    """A fixed overhead of 90 tokens adds only 90 to a large request, and a lower count lowers nothing."""
    calibrated = estimates.Calibrated()
    calibrated.take("m", 30, 120)
    assert calibrated.corrected("m", 10_000) == 10_090
    calibrated.take("m", 10_000, 6_000)
    assert calibrated.corrected("m", 10_000) == 10_090
    hello = estimates.tokens(request("hello"))
    assert calibrated.corrected("m", hello) == hello + 90
    calibrated.take("m", 0, 50)
    assert calibrated.corrected("m", 10_000) == 10_090
    calibrated.take("m", hello, hello + 95)
    assert calibrated.corrected("m", hello) == hello + 95
