"""Cassettes: what is recorded is played back, what is asked otherwise misses, and no secret gets in."""

from __future__ import annotations

import base64
import copy
import dataclasses
import html
import json
import urllib.parse
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import AuthorError, LogError, UsageError
from runtime.log.store import store as log_store
from runtime.messages.messages import Answer, Message, Request, Usage
from runtime.models import selection
from runtime.models.cassettes import cassettes, texts
from runtime.models.cassettes.cassettes import Player, Recorder
from runtime.models.client import profiles
from runtime.runs import model_plan
from runtime.secrets import masking
from runtime.settings import settings
from runtime.system import files

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": ["refund", "other"]}},
    "required": ["kind"],
    "additionalProperties": False,
}
INSTRUCTIONS = "Answer one question.\nNobody can be asked back.\n\nSort the order."


def row(**other: Any) -> Message:
    """An order as a step sends it."""
    order = {"number": "1007", "note": "please send it back", "seen": "2026-03-01T10:15:00Z", **other}
    return Message("user", json.dumps(order, ensure_ascii=False, indent=2))


def order(**other: Any) -> Request:
    """The question about it."""
    return Request("model-1", INSTRUCTIONS, (row(**other),), SCHEMA, 8000)


def refund(text: str = '{"kind":"refund"}') -> Answer:
    """The answer to it."""
    return Answer(text, Usage(120, 0, 12, 4), "model-1-2026-01-01", f"resp_{uuid.uuid4().hex}", ("It asks for money.",))


@dataclasses.dataclass
class Taped:
    """A workflow with two recorded exchanges."""

    workflow: Path
    private: Path
    exchanges: list[tuple[str, Request, Answer]]

    def record(self, known: dict[str, str] | None = None) -> Path:
        """Record them in the run's folder, and make the cassette."""
        recorder = Recorder(self.workflow, self.private, known or {})
        for number, each in enumerate(self.exchanges):
            recorder.take(number, *each)
        return recorder.publish(len(self.exchanges))


@pytest.fixture
def taped(tmp_path: Path) -> Taped:
    """A workflow folder and the private folder of a run."""
    (tmp_path / "flows").mkdir()
    (tmp_path / "private").mkdir()
    exchanges = [
        ("each[1007]/sort", order(), refund()),
        ("each[1008]/sort", order(number="1008", note="where is it?"), refund('```json\n{"kind": "other"}\n```')),
    ]
    return Taped(tmp_path / "flows" / "triage.yaml", tmp_path / "private", exchanges)


def test_what_was_recorded_is_played_back(taped: Taped) -> None:
    """Text, usage, model and thoughts, in the order of the run; the server's id is no part of it."""
    taped.record()
    player = Player.open(taped.workflow)
    for number, (step, request, answer) in enumerate(taped.exchanges):
        assert player.answer(number, step, request) == dataclasses.replace(answer, id="")
    assert player.left_over(2) is None
    assert player.model(0) == player.model(7) == "model-1"


def test_a_cassette_is_read_by_people(taped: Taped) -> None:
    """JSON stands as JSON, lines as lines, no id and no time stamp at all, and the file can be published with the workflow."""
    path = taped.record()
    assert path == taped.workflow.parent / "cassettes" / "triage.json"
    assert path.stat().st_mode & 0o777 == 0o644
    data = path.read_text()
    whole = json.loads(data)
    assert data == json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
    first, second = whole["exchanges"]
    assert first["request"]["instructions"] == INSTRUCTIONS.split("\n")
    assert first["request"]["messages"][0]["text"]["json_indented"]["seen"] == "<time 1>"
    assert first["answer"]["text"] == {"json_tight": {"kind": "refund"}}
    assert second["answer"]["text"] == ["```json", '{"kind": "other"}', "```"]
    assert "resp_" not in data
    assert "2026-03-01" not in data
    assert str(taped.workflow.parent) not in data


def test_recorded_again_it_has_the_same_bytes(taped: Taped) -> None:
    """Other ids, other times, another folder: the same cassette, and the file is not written again."""
    path = taped.record({"PASSWORD": "s3cret-one"})
    before, written = path.read_bytes(), path.stat().st_mtime_ns
    step, _request, answer = taped.exchanges[0]
    taped.exchanges[0] = (step, order(seen="2027-12-24T08:00:00.5+01:00"), dataclasses.replace(answer, id="resp_2"))
    again = Recorder(taped.workflow, taped.private / "other", {"PASSWORD": "s3cret-two"})
    for number, each in enumerate(taped.exchanges):
        again.take(number, *each)
    assert again.publish(2).read_bytes() == before
    assert path.stat().st_mtime_ns == written


def test_times_ids_and_secrets_of_another_run_hit(taped: Taped) -> None:
    """The same cassette answers a run with another time stamp, another id, and another value of a secret; the answer speaks of the ids of that run."""
    mine, theirs = log_store.new_id(), log_store.new_id()
    taped.exchanges = [("sort", order(id=mine, at="tok3n-one"), refund(f"refund {mine}"))]
    taped.record({"TOKEN": "tok3n-one"})
    asked = order(id=theirs, at="tok3n-two", seen="2027-01-01T00:00:00Z")
    found = Player.open(taped.workflow, {"TOKEN": "tok3n-two"}).answer(0, "sort", asked)
    assert found.text == f"refund {theirs}"


MISSES: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "a word of the instruction": (
        {"instructions": INSTRUCTIONS.replace("Sort", "Judge")},
        "instruction",
        ["- Sort the order.", "+ Judge the order."],
    ),
    "a choice of the schema": (
        {"schema": json.loads(json.dumps(SCHEMA).replace("other", "else"))},
        "schema.properties.kind.enum[1]",
        ['- "other"', '+ "else"'],
    ),
    "a field more": (
        {"schema": SCHEMA | {"properties": SCHEMA["properties"] | {"why": {"type": "string"}}}},
        "schema.properties.why",
        ["- (nothing)", '+ {"type": "string"}'],
    ),
    "an input row": (
        {"items": (row(note="please keep it"),)},
        "message 1",
        ["please keep it", "please send it back"],
    ),
    "a date in a row": ({"items": (row(due="2026-03-01"),)}, "message 1", ["+   ", '"due": "2026-03-01"']),
    "one message more": (
        {"items": (row(), Message("assistant", "{}"), Message("user", "again"))},
        "message 2, message 3",
        ["- (there is none)", "+ {}"],
    ),
    "the model": ({"model": "model-2"}, "model", ["- model-1", "+ model-2"]),
    "the limit": ({"max_output": 100}, "max_output", ["- 8000", "+ 100"]),
    "the order of fields": ({"schema": dict(reversed(SCHEMA.items()))}, "schema", ["another order"]),
}


@pytest.mark.parametrize("name", MISSES)
def test_what_is_asked_otherwise_misses(taped: Taped, name: str) -> None:
    """The miss names the step, the part of the request, and what stands there and there; the fix records again."""
    changed, part, lines = MISSES[name]
    taped.record()
    with pytest.raises(AuthorError) as caught:
        Player.open(taped.workflow).answer(0, "each[1007]/sort", dataclasses.replace(order(), **changed))
    error = caught.value
    assert error.code == "cassette-miss"
    assert error.message.startswith("step each[1007]/sort asks its model what the cassette does not have: ")
    assert error.evidence["differs"] == part
    assert [each for each in lines if each not in error.evidence["difference"]] == []
    assert "order" not in error.evidence
    assert f"runops run {taped.workflow} --model-calls record" in (error.fix or "")


def test_another_order_misses(taped: Taped) -> None:
    """Two requests that changed places miss, and the miss says where the request stands."""
    taped.record()
    step, request, _answer = taped.exchanges[1]
    with pytest.raises(AuthorError) as caught:
        Player.open(taped.workflow).answer(0, step, request)
    assert caught.value.evidence["differs"] == "step, message 1"
    assert "exchange 2 of the cassette" in caught.value.evidence["order"]


def test_a_request_of_another_step_misses(taped: Taped) -> None:
    """The same question of a step that was renamed is another one."""
    taped.record()
    with pytest.raises(AuthorError) as caught:
        Player.open(taped.workflow).answer(0, "each[1007]/judge", order())
    assert caught.value.evidence["difference"].splitlines() == ["- each[1007]/sort", "+ each[1007]/judge"]


def test_a_request_beyond_the_end_misses(taped: Taped) -> None:
    """A run that asks more than was recorded."""
    taped.record()
    with pytest.raises(AuthorError, match="the cassette has only 2 exchanges"):
        Player.open(taped.workflow).answer(2, "each[1009]/sort", order())


def test_a_long_line_is_told_where_it_differs(taped: Taped) -> None:
    """Of a page of text on one line the difference shows the words around the change, and stays short."""
    taped.exchanges = [("sort", dataclasses.replace(order(), instructions=f"{'a ' * 500}old {'b ' * 500}"), refund())]
    taped.record()
    asked = dataclasses.replace(order(), instructions=f"{'a ' * 500}new {'b ' * 500}")
    with pytest.raises(AuthorError) as caught:
        Player.open(taped.workflow).answer(0, "sort", asked)
    told = caught.value.evidence["difference"]
    assert " old " in told
    assert " new " in told
    assert len(told) < 400
    assert len(caught.value.message) < 600


def test_a_run_that_asks_less_is_told(taped: Taped) -> None:
    """What is left of the cassette when the run has passed is worth a word."""
    taped.record()
    told = Player.open(taped.workflow).left_over(1)
    assert told is not None
    assert told.startswith(
        "the cassette has 1 more exchange that the run did not have, the first of step each[1008]/sort"
    )


def test_a_run_that_goes_on_goes_on_recording(taped: Taped) -> None:
    """What was recorded before a crash is there for the recorder of the next process; what was asked again takes the place of what was lost."""
    first, second = taped.exchanges
    Recorder(taped.workflow, taped.private, {}).take(0, first[0], first[1], refund('{"kind":"lost"}'))
    after = Recorder(taped.workflow, taped.private, {})
    after.take(0, *first)
    after.take(1, *second)
    alone = after.publish(2).read_bytes()
    assert taped.record().read_bytes() == alone


def test_a_run_that_was_not_recorded_from_its_beginning_makes_no_cassette(taped: Taped) -> None:
    """Its cassette would miss at once; the one that is there stays."""
    path = taped.record()
    before = path.read_bytes()
    recorder = Recorder(taped.workflow, taped.private / "other", {})
    recorder.take(1, *taped.exchanges[1])
    with pytest.raises(UsageError) as caught:
        recorder.publish(2)
    assert caught.value.code == "cassette-incomplete"
    assert path.read_bytes() == before


def test_nothing_is_published_before_the_run_has_passed(taped: Taped) -> None:
    """What a failed run recorded stays in its private folder, readable by its owner only."""
    Recorder(taped.workflow, taped.private, {}).take(0, *taped.exchanges[0])
    assert not cassettes.path_of(taped.workflow).exists()
    [kept] = (taped.private / "cassette").iterdir()
    assert kept.stat().st_mode & 0o077 == 0


VALUE = 'pa"ss wörd/1'


FORMS = {
    "plain": VALUE,
    "capitals": VALUE.upper(),
    "one space": " ".join(VALUE.split()),
    "address": urllib.parse.quote(VALUE, safe=""),
    "form": urllib.parse.quote_plus(VALUE),
    "HTML": html.escape(VALUE),
    "HTML as a whole": "".join(f"&#{ord(each)};" for each in VALUE),
    "JSON": json.dumps(VALUE)[1:-1],
    "JSON as a whole": "".join(f"\\u{ord(each):04x}" for each in VALUE),
    "CSV": VALUE.replace('"', '""'),
    "base64": base64.b64encode(VALUE.encode()).decode().rstrip("="),
    "base64 behind one byte": base64.b64encode(b"x" + VALUE.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("where", ["text", "lines", "json", "reasoning", "step"])
def test_a_secret_is_refused(taped: Taped, form: str, where: str) -> None:
    """Wherever it stands, and in whichever form; the error names step and secret and not its value; the cassette that was there stays."""
    path = taped.record()
    before = path.read_bytes()
    step, request, answer = taped.exchanges[0]
    match where:
        case "text":
            answer = dataclasses.replace(answer, text=f"log in with {form}")
        case "lines":
            answer = dataclasses.replace(answer, text=f"first\n{form}\nlast")
        case "json":
            answer = dataclasses.replace(answer, text=json.dumps({"kind": [form]}))
        case "reasoning":
            answer = dataclasses.replace(answer, reasoning=(f"the word is {form}",))
        case _:
            step = f"each[{form}]/sort"
    recorder = Recorder(taped.workflow, taped.private, {"PASSWORD": VALUE, "OTHER": "never-there"})
    recorder.take(0, step, request, answer)
    with pytest.raises(UsageError) as caught:
        recorder.publish(1)
    assert caught.value.code == "cassette-secret"
    assert "the secret PASSWORD" in caught.value.message
    assert caught.value.evidence["secret"] == "PASSWORD"
    assert where == "step" or masking.Masker({"P": VALUE}).json(str(caught.value)) == str(caught.value)
    assert path.read_bytes() == before


def test_a_secret_over_several_lines_is_refused(taped: Taped) -> None:
    """A text that is shown as lines is looked at as it was said."""
    step, request, answer = taped.exchanges[0]
    recorder = Recorder(taped.workflow, taped.private, {"KEY": "first half\nsecond half"})
    recorder.take(0, step, request, dataclasses.replace(answer, text="it is first half\nsecond half"))
    with pytest.raises(UsageError, match="the secret KEY"):
        recorder.publish(1)


def test_the_key_of_the_models_is_refused_too(taped: Taped) -> None:
    """It is no secret of the workflow, and stands in no cassette all the same: nothing is written, and what is told does not show it."""
    key = "sk-a-key-of-24-characters"
    server = selection.Server("http://127.0.0.1:9/v1", profiles.PROFILES["compatible"], key)
    chosen = settings.Settings(model_calls="record")
    plan = model_plan.Plan(chosen, True, None, server, taped.workflow)
    supply = plan.supply(taped.private / "keyed", {})
    assert supply is not None
    assert supply.recorder is not None
    step, request, answer = taped.exchanges[0]
    supply.recorder.take(0, step, request, dataclasses.replace(answer, text=f"it is {key}"))
    before = taped.record().read_bytes()
    with pytest.raises(UsageError, match="the secret RUNOPS_MODEL_KEY") as caught:
        supply.finish(1)
    assert caught.value.code == "cassette-secret"
    assert key not in f"{caught.value} {caught.value.evidence}"
    assert cassettes.path_of(taped.workflow).read_bytes() == before


def damaged(whole: Any, *way: str | int, value: Any) -> Any:
    """The cassette with another value at a place."""
    found = copy.deepcopy(whole)
    here = found
    for step in way[:-1]:
        here = here[step]
    here[way[-1]] = value
    return found


DAMAGE: list[tuple[tuple[str | int, ...], Any, str, str]] = [
    (("runops_cassette",), 2, "cassette-too-new", "version 2"),
    (("runops_cassette",), "1", "cassette-damaged", "does not say its version"),
    (("exchanges",), {}, "cassette-damaged", "exchanges"),
    (("exchanges", 0, "request", "model"), 1, "cassette-damaged", "exchanges.0.request.model"),
    (("exchanges", 1, "answer", "usage", "input"), "1", "cassette-damaged", "exchanges.1.answer.usage.input"),
    (("exchanges", 1, "answer", "txt"), "1", "cassette-damaged", "exchanges.1.answer.txt"),
    (("exchanges", 0, "answer", "text"), {"yaml": 1}, "cassette-damaged", "exchanges.0.answer.text"),
    (("exchanges", 0, "answer", "text"), ["a", 1], "cassette-damaged", "exchanges.0.answer.text"),
]


@pytest.mark.parametrize(("way", "value", "code", "text"), DAMAGE)
def test_a_damaged_cassette_is_refused(
    taped: Taped, way: tuple[str | int, ...], value: Any, code: str, text: str
) -> None:
    """Before anything is asked, with the place; one of a later version by name."""
    path = taped.record()
    path.write_text(json.dumps(damaged(json.loads(path.read_text()), *way, value=value)))
    with pytest.raises(UsageError) as caught:
        Player.open(taped.workflow)
    assert caught.value.code == code
    assert text in caught.value.message
    assert str(path) in caught.value.message
    assert "--model-calls record" in (caught.value.fix or "")


def test_a_cassette_that_is_no_json_is_refused_with_its_line(taped: Taped) -> None:
    """As after a merge that went wrong."""
    path = taped.record()
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:3], "<<<<<<< HEAD", *lines[3:]]))
    with pytest.raises(UsageError) as caught:
        Player.open(taped.workflow)
    assert caught.value.code == "cassette-damaged"
    assert f"{path}:4: " in caught.value.message


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"\xff\xfe\x00", b"[" * 100_000])
def test_what_is_no_cassette_is_refused(taped: Taped, data: bytes) -> None:
    """Whatever stands in the file."""
    taped.record().write_bytes(data)
    with pytest.raises(UsageError) as caught:
        Player.open(taped.workflow)
    assert caught.value.code == "cassette-damaged"


def test_a_missing_cassette_says_how_it_is_made(taped: Taped) -> None:
    """With the command that records it."""
    with pytest.raises(UsageError) as caught:
        Player.open(taped.workflow)
    assert caught.value.code == "cassette-missing"
    assert caught.value.fix == f"record it: runops run {taped.workflow} --model-calls record"


def test_a_disk_that_is_full_stops_the_run(taped: Taped, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that cannot be kept is not taken as recorded; a cassette that cannot be written leaves the old one."""
    path = taped.record()
    before = path.read_bytes()

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    recorder = Recorder(taped.workflow, taped.private, {})
    recorder.take(0, "other", order(), refund())
    monkeypatch.setattr(files, "write", full)
    with pytest.raises(LogError) as caught:
        recorder.take(1, *taped.exchanges[1])
    assert caught.value.code == "log-write-failed"
    with pytest.raises(UsageError) as refused:
        recorder.publish(1)
    assert refused.value.code == "file-not-written"
    assert path.read_bytes() == before


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
WRITTEN = st.one_of(
    st.text(max_size=20),
    st.lists(st.text(max_size=5), max_size=4).map("\n".join),
    *(
        JSONS.map(lambda value, style=style: json.dumps(value, ensure_ascii=False, **style))
        for style in texts.STYLES.values()
    ),
    st.sampled_from(['{"a":1, "b":2}', '{"a": 1, "a": 2}', "[1.0, 1e5]", "[1.50]", "[NaN]", "{", "[]", "{}", "\n", ""]),
)


@given(WRITTEN)
def test_nothing_of_a_text_is_lost_in_showing_it(text: str) -> None:
    """Whatever a text is, it comes back to the character, through a file too."""
    shown = json.loads(json.dumps(texts.shown(text)))
    assert texts.hidden(shown) == text
    assert text in texts.all_of({"text": shown, "step": "s"})


def test_a_review_sees_values_and_lines() -> None:
    """What is JSON is shown as JSON in whichever of the usual ways it is written, and what has lines as lines."""
    assert texts.shown('{"a": [1]}') == {"json": {"a": [1]}}
    assert texts.shown('{"a":[1]}') == {"json_tight": {"a": [1]}}
    assert texts.shown('{\n  "a": 1\n}') == {"json_indented": {"a": 1}}
    assert texts.shown("one\ntwo") == ["one", "two"]
    assert texts.shown("17") == "17"
