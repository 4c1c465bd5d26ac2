"""Annotations and the step summary of GitHub Actions, read as its runner and its renderer read them."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import SetupError
from runtime.batch import policy
from runtime.batch.reports import github, summary
from runtime.cli import report_flags
from runtime.display import escapes, stream
from runtime.display.text import cut, one_line
from runtime.language import diagnostics, reader
from runtime.report.parts import DifferenceReport
from runtime.runs import results
from tests.cases import case, ended, report, run

COMMANDS = ("error", "warning", "notice", "debug", "group", "add-mask", "set-env", "set-output", "stop-commands")


@dataclasses.dataclass
class Command:
    """A command that the runner would obey."""

    name: str
    properties: dict[str, str]
    message: str


def obeyed(printed: str) -> list[Command]:
    """What GitHub's runner takes for commands in a stream: `::` at the beginning of a line, or `##[` anywhere (actions/runner, ActionCommand.cs)."""
    found: list[Command] = []
    for line in re.split(r"\r\n|\r|\n", printed):
        if line.strip().startswith("::"):
            head, _, message = line.strip()[2:].partition("::")
            name, _, given = head.partition(" ")
            pairs = (each.partition("=") for each in given.split(",") if each)
            properties = {key.strip(): unescaped(value, ((":", "%3A"), (",", "%2C"))) for key, _, value in pairs}
            found.append(Command(name, properties, unescaped(message)))
        elif "##[" in line:
            found.append(Command(line[line.index("##[") :], {}, ""))
    return found


def unescaped(text: str, more: Any = ()) -> str:
    """A text as the runner reads it."""
    for sign, escape in (("\r", "%0D"), ("\n", "%0A"), *more, ("%", "%25")):
        text = text.replace(escape, sign)
    return text


def printed(*texts: str) -> str:
    """What the command prints of these texts in GitHub Actions."""
    out = io.StringIO()
    for each in texts:
        stream.Talk(out).line(each)
    return out.getvalue()


@pytest.fixture(autouse=True)
def in_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub's runner reads the output."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


def annotated(*outcomes: results.Outcome, workspace: Path | None = None) -> list[Command]:
    """The annotations of these cases, as the runner reads them."""
    return obeyed(printed(*github.lines(report([*outcomes]), workspace)))


def test_each_outcome_is_annotated_on_its_line() -> None:
    """A failure and an interruption are errors, a pause and a flaky case (which may be) are warnings, each at file, line and column of the step; what passed or was not begun is not annotated."""
    error = {"code": "gone", "message": "no button", "fix": "look"}
    flaky = run(run(case("7"), "failed", error=error, path="pay"), "passed", 0, id="01SECOND")
    question = {"reason": "question", "message": "which?", "path": "pay", "fix": None, "evidence": None}
    found = annotated(
        ended("passed", 0),
        ended("failed", error=error, path="pay"),
        flaky,
        ended("paused", 4, question=question, path="pay"),
        ended("interrupted", 130),
        case("9"),
    )
    at = {"file": "shop/pay.yaml", "line": "4", "col": "5"}
    assert found == [
        Command("error", {**at, "title": 'Pay "all" & <go>: failed'}, found[0].message),
        Command("error", {"file": "shop/pay.yaml", "title": 'Pay "all" & <go>: interrupted'}, found[1].message),
        Command("warning", {**at, "title": 'Pay "all" & <go> [7]: flaky'}, found[2].message),
        Command("warning", {**at, "title": 'Pay "all" & <go>: paused'}, found[3].message),
    ]
    assert found[0].message == "pay: gone: no button\nfix: look\nlook: runops show 01RUN"
    look = "look: runops diff 01RUN 01SECOND"
    assert found[2].message == f"passed in run 01SECOND, after 1 run failed\nrun 01RUN: pay: gone: no button\n{look}"
    policy.Policy(fail_on_flaky=True).note(flaky)
    (strict,) = annotated(flaky)
    assert (strict.name, "it counts as failed: `--fail-on-flaky`" in strict.message) == ("error", True)


def test_an_annotation_has_the_values_of_a_false_condition() -> None:
    """What a condition read stands below the message; other evidence is left to the reports."""
    read = {"values": ["price = 9.3", "inputs.most = 9"], "url": "http://shop.test/"}
    (found,) = annotated(
        ended("failed", error={"code": "assert-failed", "message": "it is false", "evidence": read}, path="pay")
    )
    assert found.message == (
        "pay: assert-failed: it is false\nvalues: price = 9.3, inputs.most = 9\nlook: runops show 01RUN"
    )


def test_mistakes_are_annotated_where_they_are() -> None:
    """Each mistake of a refused file is an error at its own place, once, even if several cases have it; another refusal names the file."""
    with pytest.raises(diagnostics.WorkflowInvalid) as caught:
        reader.parse(
            "version: 1\nnodes:\n  - {id: a, type: transfrom, expr: 1}\n  - {id: b, type: tap}\n", "a,b:c.yaml"
        )
    refused = [results.Outcome(results.Case(Path("a,b:c.yaml"), row=row)) for row in ("1", "2")]
    for each in refused:
        each.refused = caught.value
    secret = results.Outcome(results.Case(Path("s.yaml")))
    secret.refused = SetupError("secret-missing", "no TOKEN", fix="set it")
    found = annotated(*refused, secret)
    assert [(each.properties["file"], each.properties.get("line")) for each in found] == [
        ("a,b:c.yaml", "3"),
        ("a,b:c.yaml", "4"),
        ("s.yaml", None),
    ]
    assert "transform" in found[0].message


def test_the_tenth_annotation_sums_up_the_rest() -> None:
    """Of each level ten are printed at most, and the last one lists those that are left out."""
    failed = [ended("failed", error={"code": "x", "message": f"number {number}"}) for number in range(12)]
    flaky = [run(run(case(str(n)), "failed", error={"code": "x", "message": "m"}), "passed", 0) for n in range(10)]
    found = annotated(*failed, *flaky)
    assert [each.name for each in found] == ["error"] * 10 + ["warning"] * 10
    last = found[9]
    assert (last.properties["title"], last.message.count("\n")) == ("3 more errors", 2)
    for number in (9, 10, 11):
        assert f"number {number}" in last.message
    assert "more" not in found[-1].properties["title"]


def test_paths_begin_at_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path below GITHUB_WORKSPACE is relative to it, wherever the command was given."""
    (tmp_path / "web").mkdir()
    monkeypatch.chdir(tmp_path / "web")
    (found,) = annotated(ended("failed", error={"code": "x", "message": "m"}), workspace=tmp_path)
    assert found.properties["file"] == "web/shop/pay.yaml"


HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from("::##[]%\r\n,=:` |<&@*_\u2028\x1b\ud800")), max_size=60)
MARKUP = (
    *("::error::x", "##[add-mask]x", "%0A::set-env name=A::b", " ::stop-commands::t", "\n::error::"),
    *("<img src=x>", "[a](http://x)", "@me", "```", "</code>", "</details>", "| a | b |", "\n# Big"),
)
PAGES = st.one_of(
    HOSTILE,
    st.builds(
        "{}{}{}".format,
        HOSTILE,
        st.sampled_from(MARKUP),
        HOSTILE,
    ),
)


@given(PAGES)
def test_no_text_is_a_command(text: str) -> None:
    """Whatever a page, a name or a value says, the runner obeys only our annotations, and each has our title and the place of the file."""
    error = {"code": text, "message": text, "fix": text, "evidence": {text: text}}
    failed = ended("failed", error=error, path=text, place=f"{text}:4:5")
    flaky = run(run(case(text), "failed", error=error, path=text), "passed", 0, id=text)
    found = annotated(failed, flaky)
    assert [each.name for each in found] == ["error", "warning"]
    assert all(set(each.properties) <= {"file", "line", "col", "title"} for each in found)
    titles = [f"{one.name}: {word}" for one, word in ((failed, "failed"), (flaky, "flaky"))]
    assert [each.properties["title"] for each in found] == [
        cut(one_line(each), github.TITLE).replace("##[", r"\x23#[") for each in titles
    ]
    assert obeyed(printed(text, f"\t{text}")) == []
    assert obeyed(escapes.as_json({"x": [text]}, indent=2)) == []


@given(st.lists(st.sampled_from([":", "::", "#", "##", "[", "error", "::error::", "x", " "]), max_size=6))
def test_a_command_in_pieces_is_none(pieces: list[str]) -> None:
    """A text that is printed in pieces makes no command with `::`, wherever it is divided."""
    out = io.StringIO()
    for each in pieces:
        stream.Talk(out).write(each)
    assert not out.getvalue().strip().startswith("::")


def test_results_are_exact_where_commands_are_escaped() -> None:
    """A result that GitHub would obey is printed so that YAML and JSON still read the same value."""
    import json

    import yaml

    from runtime.display import facts

    for value in ("::error::x", {"a": "b\n::error::x", "c": ["##[error]x"]}, "  ::debug::"):
        assert yaml.safe_load(printed(facts.result_text(value))) == value
        assert obeyed(printed(facts.result_text(value))) == []
        assert json.loads(printed(escapes.as_json(value, indent=2))) == value


def test_a_summary_has_a_table_and_what_failed() -> None:
    """The summary has a row for each case, and opens for a failure its step, error, page, runs and next commands, for a flaky case what differed."""
    error = {"code": "gone", "message": "no button", "evidence": {"page": "http://shop.test"}, "fix": "look"}
    flaky = run(run(case("7"), "failed", error=error, path="pay"), "passed", 0, id="01SECOND")
    whole = report([ended("passed", 0), ended("failed", error=error, path="pay"), flaky])
    differed = [DifferenceReport(path="pay", what="value", before=1, after="| two |")]
    runs = [each.model_copy(update={"differed": differed if each.status == "flaky" else []}) for each in whole.runs]
    text = summary.of_batch(whole.model_copy(update={"runs": runs}))
    lines = text.splitlines()
    assert lines[0] == "## RunOps: 1 passed, 1 flaky, 1 failed (5.0 s of runs)"
    assert lines[4:7] == [
        "| ✅ passed | `shop/pay.yaml` | 1.2 s |  |  |",
        "| ❌ failed | `shop/pay.yaml` | 1.2 s | `pay` | `no button` |",
        "| ⚠️ flaky | `shop/pay.yaml[7]` | 2.5 s | `pay` | `passed after 1 run failed: no button` |",
    ]
    assert text.count("<details>") == text.count("</details>") == 2
    for said in ("At `pay` in `shop/pay.yaml:4:5`:", "http://shop.test", "Fix: `look`", "runops show 01RUN"):
        assert said in text
    assert '- `pay` `value` `1 → "| two |"`' in lines
    assert "Runs: `01RUN` failed, `01SECOND` passed" in lines
    assert "runops show 01RUN\nrunops diff 01RUN 01SECOND\n" in text


def test_a_summary_is_cut_at_githubs_limit() -> None:
    """A summary never has more bytes than GitHub takes, in what other commands of the step wrote too, and says that it is cut."""
    failed = [ended("failed", error={"code": "x", "message": "ü" * 5_000}, path="pay") for _ in range(400)]
    whole = report(failed)
    text = summary.of_batch(whole)
    assert 1_000_000 < len(text.encode()) <= summary.MOST
    assert text.endswith(summary.CUT)
    assert text.count("<details>") == text.count("</details>")
    assert len(summary.of_batch(whole, 300).encode()) <= 300
    assert summary.of_batch(whole, 10) == ""


@given(PAGES)
def test_no_text_is_live_in_a_summary(text: str) -> None:
    """No text of a page, a value or a name leaves its code: outside of code there is no HTML of ours but what folds, no link and no mention."""
    error = {"code": text, "message": text, "fix": text, "evidence": {text: text}}
    flaky = run(run(case(text), "failed", error=error, path=text), "passed", 0, id=text)
    flaky.notes.append("not retried: its file says `rerun: never`")
    found = summary.of_batch(report([ended("failed", error=error, path=text), flaky]))
    bare = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", found, flags=re.DOTALL | re.MULTILINE)
    bare = re.sub(r"(?<!`)(`+)(?!`)(?:.*?[^`])?\1(?!`)", "", bare)
    bare = re.sub(r"<code>[^<>\n]*</code>", "", bare)
    assert set(re.findall(r"<[^>]*>", bare)) <= {"<details>", "</details>", "<summary>", "</summary>"}
    assert not re.search(r"[@\[\]\ud800]|https?:", bare)
    assert [line for line in bare.splitlines() if line.startswith("#")] == [
        "## RunOps: 1 flaky, 1 failed (3.8 s of runs)"
    ]
    assert all(line.count("|") == 6 for line in found.splitlines() if re.match(r"\| (❌|⚠️)", line))


def test_the_summary_is_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """What other commands of the step wrote stays; a file that cannot be written is one sentence, and no failure."""
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    for name in (str(file), str(tmp_path / "none" / "summary.md")):
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", name)
        for each in report_flags.for_github(None):
            each(report([ended("passed", 0)], exit=0))
    assert file.read_text().startswith("before\n## RunOps: 1 passed")
    file.write_text("x" * (summary.MOST - 20))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    for each in report_flags.for_github("on"):
        each(report([ended("passed", 0)], exit=0))
    assert file.stat().st_size == summary.MOST - 20, "no room is left"
    assert capsys.readouterr().err.count("the summary of the step cannot be written") == 1


def test_github_is_told_only_if_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the flag, annotations and summary are made in GitHub Actions alone; the flag decides anywhere."""
    listening = [bool(report_flags.for_github(each)) for each in (None, "on", "off")]
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert (listening, [bool(report_flags.for_github(each)) for each in (None, "on", "off")]) == (
        [True, True, False],
        [False, True, False],
    )
