"""Cassettes replay what was recorded, refuse requests that differ, and contain no secret."""

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
    """The request about an order."""
    return Request("model-1", INSTRUCTIONS, (row(**other),), SCHEMA, 8000)


def refund(text: str = '{"kind":"refund"}') -> Answer:
    """The answer to that request."""
    return Answer(text, Usage(120, 0, 12, 4), "model-1-2026-01-01", f"resp_{uuid.uuid4().hex}", ("It asks for money.",))


@dataclasses.dataclass
class Taped:
    """A workflow with two recorded exchanges."""

    workflow: Path
    private: Path
    exchanges: list[tuple[str, Request, Answer]]

    def record(self, known: dict[str, str] | None = None) -> Path:
        """Records the exchanges in the run's folder and publishes the cassette."""
        recorder = Recorder(self.workflow, self.private, known or {})
        for number, each in enumerate(self.exchanges):
            recorder.take(number, *each)
        return recorder.publish(len(self.exchanges))


@pytest.fixture
def taped(tmp_path: Path) -> Taped:
    """Recorded exchanges with a workflow folder and the private folder of a run."""
    (tmp_path / "flows").mkdir()
    (tmp_path / "private").mkdir()
    exchanges = [
        ("each[1007]/sort", order(), refund()),
        ("each[1008]/sort", order(number="1008", note="where is it?"), refund('```json\n{"kind": "other"}\n```')),
    ]
    return Taped(tmp_path / "flows" / "triage.yaml", tmp_path / "private", exchanges)


def test_recorded_answers_are_replayed(taped: Taped) -> None:
    """Text, usage, model and reasoning are replayed in the order of the run, without the server's response id."""
    taped.record()
    player = Player.open(taped.workflow)
    for number, (step, request, answer) in enumerate(taped.exchanges):
        assert player.answer(number, step, request) == dataclasses.replace(answer, id="")
    assert player.left_over(2) is None
    assert player.model(0) == player.model(7) == "model-1"


def test_a_cassette_is_readable(taped: Taped) -> None:
    """JSON is stored as JSON and text as lines, without ids, time stamps or paths, in a file that can be published."""
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


def test_a_second_recording_has_the_same_bytes(taped: Taped) -> None:
    """Another id, time, secret and folder give the same cassette, and the file is not rewritten."""
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
    """Requests that differ only in times, ids and secret values are answered, with the ids of the replaying run."""
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
def test_a_changed_request_misses(taped: Taped, name: str) -> None:
    """The miss names the step, the changed part of the request and both versions; the fix is to record again."""
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
    """Two swapped requests miss, and the error names the exchange that has the request."""
    taped.record()
    step, request, _answer = taped.exchanges[1]
    with pytest.raises(AuthorError) as caught:
        Player.open(taped.workflow).answer(0, step, request)
    assert caught.value.evidence["differs"] == "step, message 1"
    assert "exchange 2 of the cassette" in caught.value.evidence["order"]


def test_a_request_of_another_step_misses(taped: Taped) -> None:
    """A renamed step misses even if it asks the same."""
    taped.record()
    with pytest.raises(AuthorError) as caught:
        Player.open(taped.workflow).answer(0, "each[1007]/judge", order())
    assert caught.value.evidence["difference"].splitlines() == ["- each[1007]/sort", "+ each[1007]/judge"]


def test_a_request_beyond_the_end_misses(taped: Taped) -> None:
    """A run with more requests than were recorded misses."""
    taped.record()
    with pytest.raises(AuthorError, match="the cassette has only 2 exchanges"):
        Player.open(taped.workflow).answer(2, "each[1009]/sort", order())


def test_a_long_line_is_shown_around_its_change(taped: Taped) -> None:
    """The difference of a long line shows only the words around the change."""
    taped.exchanges = [("sort", dataclasses.replace(order(), instructions=f"{'a ' * 500}old {'b ' * 500}"), refund())]
    taped.record()
    asked = dataclasses.replace(order(), instructions=f"{'a ' * 500}new {'b ' * 500}")
    with pytest.raises(AuthorError) as caught:
        Player.open(taped.workflow).answer(0, "sort", asked)
    difference = caught.value.evidence["difference"]
    assert " old " in difference
    assert " new " in difference
    assert len(difference) < 400
    assert len(caught.value.message) < 600


def test_unused_exchanges_are_reported(taped: Taped) -> None:
    """A passed run that leaves exchanges unused is warned about them."""
    taped.record()
    warning = Player.open(taped.workflow).left_over(1)
    assert warning is not None
    assert warning.startswith(
        "the cassette has 1 more exchange that the run did not have, the first of step each[1008]/sort"
    )


def test_a_resumed_run_continues_its_recording(taped: Taped) -> None:
    """Exchanges from before a crash are kept, and a repeated request replaces its lost answer."""
    first, second = taped.exchanges
    Recorder(taped.workflow, taped.private, {}).take(0, first[0], first[1], refund('{"kind":"lost"}'))
    after = Recorder(taped.workflow, taped.private, {})
    after.take(0, *first)
    after.take(1, *second)
    alone = after.publish(2).read_bytes()
    assert taped.record().read_bytes() == alone


def test_a_partly_recorded_run_makes_no_cassette(taped: Taped) -> None:
    """A recording without the first exchange is refused, and the existing cassette stays."""
    path = taped.record()
    before = path.read_bytes()
    recorder = Recorder(taped.workflow, taped.private / "other", {})
    recorder.take(1, *taped.exchanges[1])
    with pytest.raises(UsageError) as caught:
        recorder.publish(2)
    assert caught.value.code == "cassette-incomplete"
    assert path.read_bytes() == before


def test_nothing_is_published_before_the_run_has_passed(taped: Taped) -> None:
    """The exchanges of an unfinished run stay in its private folder, readable only by the owner."""
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
    "base64 after one byte": base64.b64encode(b"x" + VALUE.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("where", ["text", "lines", "json", "reasoning", "step"])
def test_a_secret_is_refused(taped: Taped, form: str, where: str) -> None:
    """A secret in any place and encoding is refused. The error names step and secret, not the value, and the old cassette stays."""
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
    """A secret is found in text that the cassette would store as separate lines."""
    step, request, answer = taped.exchanges[0]
    recorder = Recorder(taped.workflow, taped.private, {"KEY": "first half\nsecond half"})
    recorder.take(0, step, request, dataclasses.replace(answer, text="it is first half\nsecond half"))
    with pytest.raises(UsageError, match="the secret KEY"):
        recorder.publish(1)


def test_the_key_of_the_models_is_refused_too(taped: Taped) -> None:
    """The model key, though no secret of the workflow, stops the recording, and the error does not show it."""
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
    """The cassette with another value at the path."""
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
    """The error comes before any request and names the place, or the version if it is too new."""
    path = taped.record()
    path.write_text(json.dumps(damaged(json.loads(path.read_text()), *way, value=value)))
    with pytest.raises(UsageError) as caught:
        Player.open(taped.workflow)
    assert caught.value.code == code
    assert text in caught.value.message
    assert str(path) in caught.value.message
    assert "--model-calls record" in (caught.value.fix or "")


def test_a_cassette_that_is_no_json_is_refused_with_its_line(taped: Taped) -> None:
    """The error names the line, here of a merge conflict."""
    path = taped.record()
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:3], "<<<<<<< HEAD", *lines[3:]]))
    with pytest.raises(UsageError) as caught:
        Player.open(taped.workflow)
    assert caught.value.code == "cassette-damaged"
    assert f"{path}:4: " in caught.value.message


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"\xff\xfe\x00", b"[" * 100_000])
def test_other_content_is_refused(taped: Taped, data: bytes) -> None:
    """A file without a cassette is refused as damaged."""
    taped.record().write_bytes(data)
    with pytest.raises(UsageError) as caught:
        Player.open(taped.workflow)
    assert caught.value.code == "cassette-damaged"


def test_a_missing_cassette_says_how_it_is_made(taped: Taped) -> None:
    """The fix is the command that records it."""
    with pytest.raises(UsageError) as caught:
        Player.open(taped.workflow)
    assert caught.value.code == "cassette-missing"
    assert caught.value.fix == f"record it: runops run {taped.workflow} --model-calls record"


def test_a_disk_that_is_full_stops_the_run(taped: Taped, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that cannot be stored is an error, and a cassette that cannot be written leaves the old one."""
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
def test_any_text_survives_its_stored_form(text: str) -> None:
    """Any text is restored exactly, also from a file."""
    shown = json.loads(json.dumps(texts.shown(text)))
    assert texts.hidden(shown) == text
    assert text in texts.all_of({"text": shown, "step": "s"})


def test_stored_texts_are_readable() -> None:
    """JSON in each usual style is stored as JSON, and text with several lines as lines."""
    assert texts.shown('{"a": [1]}') == {"json": {"a": [1]}}
    assert texts.shown('{"a":[1]}') == {"json_tight": {"a": [1]}}
    assert texts.shown('{\n  "a": 1\n}') == {"json_indented": {"a": 1}}
    assert texts.shown("one\ntwo") == ["one", "two"]
    assert texts.shown("17") == "17"
