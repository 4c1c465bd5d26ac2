"""Reports of runs and sessions: four output forms from one model, with a published schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from director.builds import loop
from director.cli.builds import outcome
from nodes.errors import ModelError
from runtime import events
from runtime.cli import app
from runtime.cli.commands import schema as schemas
from runtime.log import entries as log_entries
from runtime.log import history, session
from runtime.log.store import file_store
from runtime.report import endings, of_run, parts, text
from runtime.workspace import run_index
from tests import exchanges, reports
from tests.session_log import everything

WORKFLOW = """
version: 1
name: Shares
inputs:
  over: {type: list, default: [1, 2, 3, 4, 5, 6, 7]}
  by: {type: integer, default: 0}
nodes:
  - id: each
    type: iterate
    over: "{{ inputs.over }}"
    as: number
    nodes: [{id: half, type: transform, expr: "{{ number / 2 }}"}]
  - {id: share, type: transform, expr: "{{ 10 // inputs.by }}"}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for runs, which the command uses too, beside a workflow that fails."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shares.yaml").write_text(WORKFLOW)
    return tmp_path / ".runops"


@pytest.fixture
def printed(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert app.run(list(arguments)) == code
        return capsys.readouterr().out

    return run


ENDED = events.RunEnded(
    run="R",
    status="paused",
    exit=4,
    seconds=1.23456,
    path="pay",
    question={"reason": "effect-unknown", "message": "Was it paid?", "path": "pay", "fix": None, "evidence": {"a": 1}},
)
ERROR = ModelError("model-failed", "the server failed", fix="try again", evidence={"status": 500})
PATCH = endings.PatchReport(
    verdict="proved",
    steps=[endings.PatchedStep(path="pay", what="another name", file="x.yaml", others=[])],
    run="C",
    reached=None,
    done=[],
    patch="--- x.yaml",
    kept="R.patch",
)


def _build() -> endings.BuildRecord:
    left = loop.Ended(done=False, value={"done": False, "summary": "no such page"}, answer="")
    return outcome.of_build("S", session.Session(), left, ERROR, 1).record


def _session(home: Path) -> str:
    return everything(file_store.Files(home), file="pay.yaml")


def _began(printed: Callable[..., str], given: str) -> str:
    return json.loads(printed("run", "shares.yaml", "-i", given, "--json", "--quiet"))["runs"][0]["run"]


EXAMPLES: dict[schemas.Name, Callable[[Path, Callable[..., str]], list[str]]] = {
    "run": lambda home, printed: [
        printed("run", "shares.yaml", "--quiet", code=1) + printed("show", "last", "--json"),
        (exchanges.every_way(home).end("failed", 1), printed("show", "last", "--json"))[1],
    ],
    "session": lambda home, printed: [printed("show", _session(home), "--json")],
    "run-ending": lambda _home, printed: [
        printed("run", "shares.yaml", "--quiet", code=1) + printed("resume", "last", "--json", "--quiet", code=1),
        endings.of_run(ENDED, "R", "paused", 4).as_json(),
        endings.of_run(None, "R", "interrupted", 130).as_json(),
        endings.AnswerKept(run="R", answered={"who": "Ada"}).as_json(),
        endings.AnswerKept(run="R", decided="not-done").as_json(),
    ],
    "run-diff": lambda _home, printed: [printed("diff", _began(printed, "by=2"), _began(printed, "by=5"), "--json")],
    "batch-ending": lambda _home, printed: [
        printed("run", "shares.yaml", "--json", "--quiet", code=1),
        printed("run", "shares.yaml", "-i", "by=five", "--json", code=2),
    ],
    "batch-report": lambda home, printed: [
        printed("run", "shares.yaml", "--quiet", "--report", str(home / "r.json"), code=1)
        + (home / "r.json").read_text()
    ],
    "case-list": lambda _home, printed: [
        printed("run", "shares.yaml", "--quiet", code=1) + printed("run", "shares.yaml", "--list", "--json"),
        printed("run", "none.yaml", "--list", "--shard", "1/1", "--json", code=2),
    ],
    "chat-ending": lambda _home, _printed: [
        endings.ChatEnding(
            session="S",
            status="failed",
            exit=1,
            mode="chat",
            about=endings.AboutReport(run=None, file="x.yaml"),
            built=endings.BuiltReport(
                goal="Do it.",
                file="x.yaml",
                proved="full",
                output=1,
                changed=None,
                finish={"done": True},
                questions=[],
            ),
            words=[
                endings.of_word("Why?", "So.", None, None),
                endings.of_word("And?", None, ERROR, None),
                endings.of_word("/run", None, None, ENDED),
            ],
            costs=None,
            runs={},
            delegates=[],
            window=None,
            warnings=[],
        ).as_json()
    ],
    "build-ending": lambda _home, _printed: [endings.of_build(_build()).as_json()],
    "verify-ending": lambda _home, _printed: [
        endings.of_verify(
            endings.VerifyRecord(
                file="x.yaml",
                exit=1,
                proved="not",
                reset=True,
                effects=[endings.ActionReport(node="pay", action="click Pay", what="never reached")],
                not_executed=["pay"],
                unproved=[],
                written=False,
                error=parts.ErrorReport.raised(ERROR),
            ),
            [(ENDED, "R", 4), (None, None, 130)],
        ).as_json()
    ],
    "repair-ending": lambda _home, _printed: [
        endings.NothingToRepair(run="R").as_json(),
        endings.RepairApplied(run="R", verdict="held", files=["x.yaml"], done=["pay"]).as_json(),
        endings.RepairEnding(
            run="R",
            status="fix-ready",
            exit=6,
            path="pay",
            code="target-not-found",
            kind="drift",
            why=["it has another name"],
            next="runops repair --run R --apply",
            fix=PATCH,
            tried=[],
            looked=None,
            build=_build(),
        ).as_json(),
    ],
}
"""Printed reports, by schema."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_printed_reports_fit_their_schema(name: schemas.Name, home: Path, printed: Callable[..., str]) -> None:
    """A report fits its schema and has its version first; with any field missing or misspelled it does not fit."""
    for example in EXAMPLES[name](home, printed):
        found: dict[str, Any] = json.loads(example)
        assert next(iter(found)) == "version"
        reports.check(name, found)
        for place in (found, *_objects(found)):
            for field in [*place]:
                value = place.pop(field)
                assert not reports.fits(name, found) or field in _optional(name), f"without {field}"
                place[f"{field}_"] = value
                assert not reports.fits(name, found), f"with {field}_"
                place[field] = place.pop(f"{field}_")
        reports.check(name, found)


@functools.cache
def _optional(name: schemas.Name) -> set[str]:
    """Fields that a part of the report omits if they have no value."""
    parts_of: list[Any] = [*schemas.schema_of(name).get("$defs", {}).values()]
    return {field for each in parts_of for field in each["properties"] if field not in each["required"]}


def _objects(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of a report that belong to its model, without those from pages or workflows."""
    lists = ("steps", "said", "runs", "words", "questions", "flags", "differences")
    parts_of = [each for name in lists if isinstance(found.get(name), list) for each in found[name]]
    parts_of += [found[name] for name in ("error", "fix", "build", "costs", "question") if found.get(name)]
    return [*parts_of, *(attempt for each in parts_of for attempt in each.get("attempts", []))]


def test_each_schema_is_a_schema_and_each_report_has_one(printed: Callable[..., str]) -> None:
    """`runops schema --of NAME` prints a valid draft 2020-12 schema; without a name it prints that of workflow files."""
    for name in get_args(schemas.Name):
        schema = json.loads(printed("schema", "--of", name))
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        jsonschema.Draft202012Validator.check_schema(schema)
    assert printed("schema") == printed("schema", "--of", "workflow")
    assert (
        set(reports.NAMES.values())
        == {*get_args(schemas.Name)} - {"workflow", "agent", "batch-event", "chat-event", "chat-line"}
        == set(EXAMPLES)
    )
    assert set(reports.NAMES) == set(_below(parts.Printed))


def _below(model: type[parts.Printed]) -> list[type[parts.Printed]]:
    return [found for each in model.__subclasses__() for found in (each, *_below(each))]


def test_a_name_of_a_file_that_is_no_text_is_printed_all_the_same() -> None:
    """A file name that is no text is in the JSON with its bytes escaped."""
    ending = endings.RepairApplied(run="R", verdict="proved", files=["caf\udce9.yaml"], done=[])
    assert "caf\\udce9.yaml" in ending.as_json()
    assert json.loads(ending.as_json())["files"] == ["caf\udce9.yaml"]


def test_a_brief_report_folds_loops_and_reads_no_blobs(home: Path, printed: Callable[..., str]) -> None:
    """A brief report counts passed iterations and omits values; the whole report has all of them."""
    printed("run", "shares.yaml", "--quiet", code=1)
    store = file_store.Files(home)
    past, reading = run_index.load_history(store, run_index.find(store, "last"))
    brief, whole = (of_run.run_report(past, reading, store, brief=each) for each in (True, False))
    assert [(each.path, each.folded) for each in brief.steps] == [("each", 7), ("share", 0)]
    assert len(whole.steps) == 1 + 7 * 2 + 1
    assert [each.value for each in whole.steps if each.type == "transform"] == [0.5, 1, 1.5, 2, 2.5, 3, 3.5, None]
    assert not any(each.value for each in brief.steps)
    lines = text.whole(brief, text.Style())
    assert "  ok  7 turns, shown one by one with --at each" in lines
    assert [each for each in text.whole(whole, text.Style()) if "half" in each]


def test_every_step_names_its_parent(home: Path, printed: Callable[..., str]) -> None:
    """Each step names its parent, which comes first, even if keys contain slashes."""
    past = history.History()
    header = log_entries.RunHeader(
        workflow="w",
        file="w.yaml",
        text=log_entries.blob_of(b"", ""),
        callees={},
        inputs={},
        secrets=[],
        origins=[],
        browser={},
        versions={},
    )
    paths = ["each", "each[#a/b]", "each[#a/b]/pay", "each[#a]", "each[#a]/pay"]
    entries: list[log_entries.AnyEntry] = [log_entries.Scope(path="", event="opened", node="run", run=header)]
    entries += [log_entries.Scope(path=each, event="opened", node="group") for each in paths]
    for number, entry in enumerate(entries, 1):
        past.add(log_entries.numbered(entry, number))
    store = file_store.Files(home)
    report = of_run.run_report(past, run_index.log_store.Reading("R", entries, 0, owned=False), store)
    assert [(each.parent, each.label) for each in report.steps] == [
        (None, "each"),
        ("each", "[#a/b]"),
        ("each[#a/b]", "pay"),
        ("each", "[#a]"),
        ("each[#a]", "pay"),
    ]


@pytest.mark.parametrize(("seconds", "began"), [(10.0, "00.250Z"), (0.5, "09.500Z"), (None, "09.500Z")])
def test_an_attempt_begins_when_it_begins_to_wait(seconds: float | None, began: str) -> None:
    """A call that is logged only when its element is ready, or never came, has the time at which the wait began."""
    call = log_entries.Call(
        at="2026-01-01T00:00:09.500Z",
        call="a",
        path="pay",
        node="transform",
        effect="effect",
        attempt=1,
        fingerprint="",
    )
    result = log_entries.Result(at="2026-01-01T00:00:10.250Z", call="a", status="error", seconds=seconds)
    assert of_run.began(call, result) == f"2026-01-01T00:00:{began}"
    assert of_run.began(call, None) == call.at
