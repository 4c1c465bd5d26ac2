"""The HTML page of runs: one file, small, the same each time, and nothing in it is live."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.display.text import harmless
from runtime.report import page
from runtime.report.endings import BatchReport
from runtime.report.models import RunReport
from runtime.report.page import sizes
from tests.report_pages import COSTS, ERROR, Page, attempt, batch, case, png, record, run, shot, step

OURS = [
    "html",
    "head",
    "meta",
    "meta",
    "meta",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "table",
    "thead",
    "tr",
    *["th"] * 6,
    "tbody",
]
ROW = ["tr", *["td"] * 6]
REST = ["noscript", "p", "code", "script", "script"]

HOSTILE = st.sampled_from(
    [
        *(
            "</script><script>alert(1)</script>",
            "<!--",
            "<!--<script>",
            "-->",
            "]]>",
            "<img src=x onerror=alert(1)>",
            "&lt;b&gt;&amp;",
        ),
        *(
            "</title><h1>",
            "</style>",
            "%%data%%",
            "%%",
            "\u2028\u2029",
            "\x00\x1b[2J",
            "\udc80",
            "\u202egpj.exe",
            "'\"`${x}",
            "javascript:alert(1)",
        ),
    ]
) | st.text(max_size=40)


def hostile(text: str) -> BatchReport:
    """A report that has this text wherever a page, a model or an author can put it."""
    error = {"code": "x", "message": text, "evidence": {text: [text, {"a": text}]}, "fix": text}
    thread = [
        {"kind": "user", "at": "", "text": f"{text}\n[page]\n{text}\n[end of page]"},
        {
            "kind": "assistant",
            "at": "",
            "text": text,
            "key": "k",
            "source": "model",
            "model": text,
            "calls": [{"id": "1", "name": text, "arguments": text}],
        },
    ]
    tried = attempt(
        "error", args={"target": text, text: {"inside": [text]}}, error=error, thread=thread, dismissed=[text]
    )
    failed = step(f"each[{text}]", "error", attempts=[tried], value={text: text})
    kept = {
        "path": f"each[{text}]",
        "url": text,
        "title": text,
        "dialog": text,
        "messages": [{"at": "", "kind": "console", "text": text, "url": text}],
    }
    details = run(
        failed,
        state="failed",
        workflow=text,
        file=text,
        inputs={text: text},
        error=error,
        evidence=[kept],
        output=text,
        next=text,
        place=text,
    )
    differed = [{"path": text, "what": "value", "within": text, "before": text, "after": {text: text}}]
    shown = case("x", "failed", details, differed=differed) | {
        "case": text,
        "name": text,
        "file": text,
        "row": text,
        "path": text,
        "error": error,
    }
    return batch(shown, runs=[details])


@given(HOSTILE)
def test_no_text_of_a_page_a_model_or_an_author_is_live(text: str) -> None:
    """Whatever a text contains, the page has our elements alone, its data is read back whole, and only our script and style may act."""
    html = page.of_batch(hostile(text))
    html.encode()
    found = Page(html)
    assert found.tags == [*OURS, *ROW, *REST]
    data, script = found.scripts
    assert not set(data) & set("<>&\u2028\u2029")
    (shown,) = found.data["cases"]
    assert shown["error"]["message"] == harmless(text)
    assert shown["runs"][0]["steps"][0]["attempts"][0]["dismissed"] == [harmless(text)]
    hashes = {
        kind: base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()
        for kind, each in (("script", script), ("style", found.styles[0]))
    }
    rules = [each.strip() for each in found.policy.split(";")]
    assert rules == [
        "default-src 'none'",
        *(f"{kind}-src 'sha256-{hashes[kind]}'" for kind in ("style", "script")),
        *("img-src data:", "base-uri 'none'", "form-action 'none'"),
    ]


def long_run(
    number: int = 0, *, steps: int = 500, state: str = "failed", text: str = "page text " * 2_000
) -> dict[str, Any]:
    """A run with that many steps, each with arguments, a value and an exchange with a model."""
    thread = [
        {"kind": "user", "at": "", "text": f"[page]\n{text}\n[end of page]"},
        {
            "kind": "assistant",
            "at": "",
            "text": text,
            "key": "k",
            "source": "model",
            "model": "m",
            "usage": {"input": 9, "cached": 0, "output": 9, "reasoning": 0},
        },
    ]
    done = [
        step(
            f"each[#{each}]/read", attempts=[attempt(args={"instruction": text}, thread=thread)], value=[{"row": text}]
        )
        for each in range(steps - 1)
    ]
    last = step("pay", "error", attempts=[attempt("error", error=ERROR)]) if state == "failed" else step("pay")
    return run(
        *done,
        last,
        run=f"01RUN{number}",
        state=state,
        error=ERROR if state == "failed" else None,
        path="pay" if state == "failed" else None,
    )


def pictured(details: dict[str, Any], seed: int) -> dict[str, bytes]:
    """Add a picture of the failure and of three pages before it; return them."""
    pictures = [png(seed + each, 300, 300, noise=True) for each in range(4)]
    frames = [
        {"path": f"each[#{each}]/read", "at": "", "url": "http://shop.test/", "screenshot": shot(data)}
        for each, data in enumerate(pictures[1:])
    ]
    details["evidence"] = [
        {"path": "pay", "url": "http://shop.test/", "screenshot": shot(pictures[0]), "frames": frames}
    ]
    return {shot(each)["sha256"]: each for each in pictures}


def test_a_page_of_500_steps_with_pictures_has_at_most_5_mb() -> None:
    """Long texts are shortened and say by how much; the pictures of failures stay when those of other pages no longer fit."""
    runs = [long_run(number, steps=60) for number in range(9)]
    pictures = {sha: data for number, each in enumerate(runs) for sha, data in pictured(each, 10 * number).items()}
    assert sum(map(len, pictures.values())) > 1.5 * sizes.PAGE
    html = page.of_batch(
        batch(*(case(f"Case {each['run']}", "failed", each) for each in runs), runs=runs, pictures=pictures)
    )
    assert 0.8 * sizes.PAGE < len(html.encode()) <= sizes.PAGE == 5_000_000
    data = Page(html).data
    kept = [each["runs"][0]["evidence"][0]["views"] for each in data["cases"]]
    shown = [[view["picture"] in data["pictures"] for view in views] for views in kept]
    assert any(not all(each) for each in shown)
    failures = [each[-1] for each in shown]
    assert sum(failures) > sum(each[0] for each in shown)
    cut = data["cases"][0]["runs"][0]["steps"][0]["attempts"][0]["thread"][1]["text"][0]
    assert len(cut["text"]) + cut["more"] == len("page text " * 2_000)


def test_a_short_report_is_whole() -> None:
    """Nothing is shortened while there is room: texts, values and pictures are those of the report."""
    details = long_run(steps=3)
    pictures = pictured(details, 0)
    data = Page(page.of_batch(batch(case("One", "failed", details), runs=[details], pictures=pictures))).data
    assert data["pictures"] == {
        sha: f"data:image/png;base64,{base64.b64encode(each).decode()}" for sha, each in pictures.items()
    }
    first = data["cases"][0]["runs"][0]["steps"][0]
    assert first["value"] == {"json": [{"row": "page text " * 2_000}]}


def test_files_below_the_current_folder_are_named_from_it() -> None:
    """A page that a job keeps beside its files fits where both are downloaded; a file elsewhere has its whole path."""
    details = long_run(steps=3)
    kept = {"name": "trace-1.zip", "size": 1, "sha256": "0"}
    details["files"] = [kept | {"path": str(Path.cwd() / ".runops/trace-1.zip")}, kept | {"path": "/home/trace-1.zip"}]
    details["file"] = str(Path.cwd() / "pay.yaml")
    (shown,) = Page(page.of_batch(batch(case("One", "failed", details), runs=[details]))).data["cases"]
    assert [each["path"] for each in shown["runs"][0]["files"]] == [".runops/trace-1.zip", "/home/trace-1.zip"]
    assert ["file", "pay.yaml"] in shown["runs"][0]["facts"]


def test_of_too_many_steps_those_of_passed_runs_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of very many runs keeps the steps of those that failed, and counts those that it leaves out."""
    monkeypatch.setattr(sizes, "PAGE", 200_000)
    passed = [long_run(number, steps=200, state="passed", text="t") for number in range(3)]
    failed = long_run(99, steps=200, text="t")
    report = batch(
        case("Bad", "failed", failed),
        *(case(f"Good {each['run']}", "passed", each) for each in passed),
        runs=[failed, *passed],
    )
    html = page.of_batch(report)
    assert len(html.encode()) <= sizes.PAGE
    bad, *good = Page(html).data["cases"]
    assert len(bad["runs"][0]["steps"]) == 200
    assert [each["runs"][0]["left_out"] for each in good] == [200] * 3


def test_the_same_report_gives_the_same_page() -> None:
    """Bytes do not change with the time, the machine's zone, or a way through JSON as `report merge` reads it."""
    details = long_run(steps=20)
    report = batch(case("One", "failed", details), runs=[details], pictures=pictured(details, 0))
    html = page.of_batch(report)
    assert html == page.of_batch(report)
    assert html == page.of_batch(BatchReport.model_validate_json(report.model_dump_json()))
    assert "2026-03-01 10:00:00 UTC" in html


def test_a_picture_that_is_none_is_left_out() -> None:
    """Only PNG and JPEG become addresses of pictures, whatever a report says."""
    details = long_run(steps=2)
    (sha, _data), *_ = pictured(details, 0).items()
    for bad in ("", 'no base64 " onerror=1', base64.b64encode(b"<svg onload=alert(1)>").decode()):
        report = batch(case("One", "failed", details), runs=[details]).model_copy(update={"pictures": {sha: bad}})
        assert Page(page.of_batch(report)).data["pictures"] == {}


def test_cases_without_a_run_are_shown() -> None:
    """A case that could not start has its error, one that was not begun its word; without scripts both are rows of a table."""
    bad = case("Bad", "error") | record(None, "error", error={"code": "yaml", "message": "no mapping"})
    found = Page(page.of_batch(batch(bad, case("Later", "skipped"), runs=[])))
    assert [each["status"] for each in found.data["cases"]] == ["error", "skipped"]
    assert found.tags.count("tr") == 3
    for text in ("Bad", "no mapping", "skipped"):
        assert text in found.text


def test_a_run_of_which_a_worker_died_is_shown_once() -> None:
    """A case whose run was resumed after its worker died has two records of that run, and the page one; its notes say why."""
    details = run(step("one"))
    died = record(details, "interrupted")
    shown = case("One", "passed", details, notes=["its worker died"]) | {"attempts": [died, record(details, "passed")]}
    (found,) = Page(page.of_batch(batch(shown, runs=[details]))).data["cases"]
    assert [each["status"] for each in found["runs"]] == ["passed"]
    assert found["notes"] == ["its worker died"]


def test_one_run_is_a_page_of_one_case() -> None:
    """The page of `show RUN --html` has the run's outcome, costs, question and differences like that of a case."""
    report = RunReport.model_validate(
        run(step("ask"), state="paused", costs=COSTS, path="ask", question={"code": "question", "message": "Go on?"})
    )
    (shown,) = Page(page.of_run(report, {}, green="01GREEN", since_green=[])).data["cases"]
    assert (shown["status"], shown["cost"], shown["error"]["message"]) == ("paused", "$0.0042", "Go on?")
    assert (shown["green"], shown["runs"][0]["asks"], shown["runs"][0]["run"]) == ("01GREEN", True, "01RUN")
    assert json.dumps(shown["runs"][0]["facts"]).count("1,200 tokens in") == 1
