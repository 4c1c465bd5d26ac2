"""What a command gives out, files and printed text, is looked at for the secrets that the process has read."""

from __future__ import annotations

import ast
import base64
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import director
import nodes
import runtime
from nodes.errors import RunOpsError
from runtime.batch.reports import event_lines, summary, writing
from runtime.cli import app, console, report_flags
from runtime.display import escapes, stream
from runtime.report import endings
from runtime.runs import results
from runtime.secrets import published, sources
from runtime.secrets.masking import MASK, Masker

SECRET = 'correct "7" horse'


@pytest.fixture(autouse=True)
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has read a secret, and another one that equals an ordinary word."""
    monkeypatch.setattr(sources, "SEEN", {"KEY": SECRET, "WORD": "password"})


@pytest.fixture
def unmasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masking is switched off."""
    monkeypatch.setattr(Masker, "text", lambda _self, text: text)
    monkeypatch.setattr(Masker, "json", lambda _self, value: value)


@pytest.mark.parametrize("say", [console.say, console.result])
def test_printed_text_is_masked(say: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    """A text of either stream has no secret; one that equals a word stays as it is, since it may be ours."""
    say(f"the password is {SECRET} or {json.dumps(SECRET)}")
    printed = capsys.readouterr()
    assert printed.out + printed.err == f'the password is {MASK} or "{MASK}"\n'


def test_printed_json_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON in which a secret is masked is valid JSON, also if the secret is a number."""
    sources.SEEN["PIN"] = "84729130"
    console.result(console.as_json(key=SECRET, pin=84729130, other=[1, "two"]))
    assert json.loads(capsys.readouterr().out) == {"version": 1, "key": MASK, "pin": MASK, "other": [1, "two"]}


def test_masked_json_keeps_its_line_and_its_escapes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of JSON stays one line, and what GitHub's runner would take for a command stays escaped."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    console.result(escapes.as_json({"key": SECRET, "said": "##[error]no", "turned": "\u202e"}))
    printed = capsys.readouterr().out
    assert (printed.count("\n"), "##[" in printed, "\u202e" in printed) == (1, False, False)
    assert json.loads(printed) == {"key": MASK, "said": "##[error]no", "turned": "\u202e"}


def test_every_source_makes_its_secrets_known(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing printed shows a secret that a test or a program gave; two values of one name are both known."""
    for value in ("first-4471", "second-9920"):
        assert sources.read(sources.Given({"GIVEN": value}), ["GIVEN"]) == {"GIVEN": value}
    console.say("first-4471 second-9920")
    assert capsys.readouterr().err == f"{MASK} {MASK}\n"


def test_drawings_are_masked(capsys: pytest.CaptureFixture[str]) -> None:
    """A drawing on the terminal is masked, with its colours."""
    stream.Talk(sys.stderr).draw(f"\x1b[1m{SECRET}\x1b[0m")
    assert capsys.readouterr().err == f"\x1b[1m{MASK}\x1b[0m"


@pytest.mark.usefixtures("unmasked")
def test_a_result_with_a_secret_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Without masks nothing of a result is printed, and the error names the secret without its value."""
    with pytest.raises(RunOpsError) as refused:
        console.result(f"all is {SECRET}")
    assert (refused.value.code, capsys.readouterr().out) == ("secret-published", "")
    assert "KEY" in refused.value.message
    assert SECRET not in str(refused.value.as_json())


@pytest.mark.usefixtures("unmasked")
@pytest.mark.parametrize("form", [str, lambda text: base64.b64encode(gzip.compress(text.encode())).decode()])
def test_what_is_said_with_a_secret_is_left_out(form: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without masks a line with a secret is replaced, also if it is packed; other lines stay."""
    console.say(f"all is {form(SECRET * 9)}")
    console.say("well")
    assert capsys.readouterr().err == f"{MASK}\nwell\n"


def _report(file: Path) -> None:
    nothing = endings.BatchReport(exit=0, started="", shard=None, selected=[], runs=[], details={}, pictures={})
    writing.ReportFile("--junit", file, lambda _report: SECRET.encode()).write(nothing)


GIVEN_OUT: dict[str, Callable[[Path], object]] = {
    "a report": _report,
    "a file for others": lambda file: published.publish(file, SECRET.encode()),
    "a private file": lambda file: published.write(file, SECRET.encode()),
}


@pytest.mark.parametrize("what", GIVEN_OUT)
def test_a_file_with_a_secret_is_not_written(what: str, tmp_path: Path) -> None:
    """A file that would show a secret is refused, and the one before it stays."""
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(RunOpsError) as refused:
        GIVEN_OUT[what](file)
    assert refused.value.code == "secret-published"
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


def test_an_event_with_a_secret_is_not_written(tmp_path: Path) -> None:
    """The line that would show a secret, and all after it, are left out, and the next update fails."""
    file = tmp_path / "events.jsonl"
    outcomes = [results.Outcome(results.Case(Path(name))) for name in ("clean.yaml", f"{SECRET}.yaml")]
    lines = event_lines.EventLines(file)
    lines.update(results.Results(outcomes[:1]), Masker({}))
    outcomes[1].begin()
    with pytest.raises(RunOpsError) as refused:
        lines.update(results.Results(outcomes), Masker({}))
    assert refused.value.code == "secret-published"
    assert [json.loads(each)["cases"] for each in file.read_text().splitlines()] == [["clean.yaml"]]


def test_a_summary_with_a_secret_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary of a CI step that would show a secret is not appended."""
    file = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    monkeypatch.setattr(summary, "of_batch", lambda _report, _most: f"# {SECRET}")
    nothing = endings.BatchReport(exit=0, started="", shard=None, selected=[], runs=[], details={}, pictures={})
    with pytest.raises(RunOpsError) as refused:
        report_flags._summarize(nothing)
    assert refused.value.code == "secret-published"
    assert file.read_text() == ""


@pytest.mark.usefixtures("unmasked")
def test_a_traceback_with_a_secret_is_not_kept() -> None:
    """Without masks the file of a traceback is not written."""
    assert app._save(f"ValueError: {SECRET}") is None


WRITES = {
    "files.publish", "files.write", "files.write_once", "files.keep", "system_files.publish", "system_files.write",
    "system_files.write_once", "system_files.keep", "regular_files.write", "os.write", "os.pwrite", "sys.stdout.write",
    "sys.stderr.write", "print", "mkstemp", "tempfile.mkstemp", "shutil.copyfile", "shutil.copy",
}  # fmt: skip
_WORDS = re.compile(r"\bwrite|publish|files\.keep|open\(|print|mkstemp|shutil")
METHODS = {"write_text", "write_bytes"}
MODES = {"w", "wb", "a", "ab", "x", "xb", "w+", "wb+", "r+", "rb+", "a+", "ab+"}

PROTECTED = {
    "runtime/secrets/published.py": "looked at by the gate",
    "runtime/log/store/file_store.py": "logs, values and files of runs: masked by their writer, searched at the end of the run",
    "runtime/log/leaks.py": "paints over what the gate found",
    "runtime/cli/app.py": "the traceback: masked, looked at by the gate",
    "runtime/batch/reports/event_lines.py": "masked, looked at by the gate",
    "runtime/cli/report_flags.py": "the summary of a step: masked, looked at by the gate",
    "runtime/display/stream.py": "masked; and a last line of ours from a signal handler",
    "runtime/system/files.py": "writes for the others here",
}
"""Places that write what may have a secret, and their protection."""

HARMLESS = {
    "runtime/sql/worker.py": "a pipe to its parent",
    "runtime/browser/chromium/watcher.py": "a pipe to its parent",
    "runtime/browser/engines/bidi_bridge.py": "a pipe to its parent",
    "runtime/browser/engines/worker.py": "a program of ours",
    "runtime/browser/chromium/launch.py": "settings of the browser's private profile",
    "runtime/browser/own.py": "private: how to reach the browser",
    "runtime/models/cassettes/cassettes.py": "private until the cassette is published",
    "runtime/cli/commands/sign_ins.py": "a signed-in state, given out on demand: it is one secret",
    "runtime/cli/commands/schema.py": "schemas of ours",
    "runtime/cli/commands/export.py": "the workflow of the author as a test",
    "runtime/cli/scaffold.py": "files of ours to begin with",
    "runtime/system/regular_files.py": "writes for others",
    "runtime/language/reference.py": "documentation of ours",
    "runtime/batch/worker.py": "a pipe to its parent, which prints",
    "runtime/engine/video.py": "memory",
    "runtime/cli/completing.py": "names of files and runs for the shell",
    "runtime/cli/machine.py": "a letter, to see if a file can be written",
    "runtime/cli/signals.py": "one word of ours",
    "runtime/services/signed_in.py": "private: signed-in states",
    "director/bench/results.py": "private: values of nodes that were tried",
    "director/draft/output_files.py": "a file of the person with a line of proof",
    "director/repair/patch_files.py": "a fix that has a secret was refused before",
    "director/proving/resets.py": "process ids",
}
"""Places that write nothing of a page, a model or a run, and why."""


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def _writes(part: ast.AST) -> bool:
    if isinstance(part, ast.Attribute | ast.Name) and isinstance(part.ctx, ast.Load):
        return (name := _dotted(part)) in WRITES or name.rpartition(".")[2] in METHODS
    if isinstance(part, ast.Call) and _dotted(part.func).rpartition(".")[2] in ("open", "fdopen"):
        given = [*part.args, *(each.value for each in part.keywords)]
        return any(isinstance(each, ast.Constant) and each.value in MODES for each in given)
    return False


def _writing() -> Iterator[str]:
    for package in (runtime, director, nodes):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            text = file.read_text()
            # Most files have none of the words, and parsing takes time.
            if _WORDS.search(text) and any(map(_writes, ast.walk(ast.parse(text)))):
                yield str(file.relative_to(folder.parent))


def test_every_place_that_writes_is_known() -> None:
    """A module that writes files or streams by itself is listed above, with its protection or why it needs none."""
    found = {each for each in _writing() if not each.startswith("runtime/testing/")}
    assert found == {*PROTECTED, *HARMLESS}
