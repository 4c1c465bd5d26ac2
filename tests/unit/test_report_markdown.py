"""Reports as Markdown: text from pages, models and people is shown, and none of it is active markup."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from director.session import open as open_session
from nodes.values import Json
from runtime import version
from runtime.cli import app
from runtime.language import reader
from runtime.log import entries, history
from runtime.log import session as log_session
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.observation import page_text
from runtime.report import markdown, of_run, of_session
from runtime.runs import run
from runtime.secrets import masking
from runtime.testing import memory_store
from runtime.workspace import run_index
from tests.now import let_go, now
from tests.session_log import everything

HOSTILE = [
    "<script>EVIL()</script><img src=x onerror=EVIL>",
    "a | EVIL | c \\| EVIL \\\\| d ` | ` EVIL",
    "``` EVIL `` ` end```\n```\n\n# EVIL\n",
    "EVIL\n\n# EVIL\n\n- EVIL\n\n| EVIL |\n|---|\n\n> EVIL\n\nEVIL\n----\n",
    "[EVIL](https://EVIL.test) ![EVIL](https://EVIL.test) <https://EVIL.test> [EVIL]: https://EVIL.test",
    "@EVIL EVIL@EVIL.test https://EVIL.test www.EVIL.test #1 **EVIL** *EVIL* ~~EVIL~~",
    "\u202eEVIL\u202c \x1b[2JEVIL\x07 \u2066EVIL",
    "`EVIL",
    "EVIL` ",
    "&lt;EVIL&gt; <!-- EVIL --> <!EVIL> <?EVIL?>\n~~~\nEVIL",
]
"""Texts of a page; EVIL marks the parts that could become active markup."""

LIVE = {"html_block", "html_inline", "link_open", "image"}


def tokens(text: str) -> list[Token]:
    """The tokens of a Markdown renderer, inline parts included."""
    found = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    return [part for each in found for part in (each, *(each.children or ()))]


def failed(home: Path, text: str) -> str:
    """The id of a run in which every text from a page or a workflow is ``text``."""
    store = file_store.Files(home)
    writer = LogWriter(store.create(log_store.new_id()), history.History(), masking.Masker({}), store)
    flow = reader.parse("version: 1\nname: Pay\nnodes:\n  - {id: a, type: transform, expr: 1}\n", "pay.yaml")
    run.write_header(writer, flow, {"who": text})
    one = writer.call(
        entries.Call(path="seen", node="transform", attempt=1, effect="read", args={"expr": text}, fingerprint="f")
    )
    writer.result(one, "ok", value=text, seconds=1.5, flags=[{"code": "odd", "message": text, "evidence": {"x": text}}])
    two = writer.call(entries.Call(path=f"each[#{text}]", node="transform", attempt=1, effect="read", fingerprint="f"))
    error: dict[str, Json] = {"code": "verify-failed", "who": "site", "message": text, "evidence": {"page": text}}
    error["fix"] = text
    writer.result(two, "error", error=error, seconds=0.5)
    kept: dict[str, Json] = {"name": "trace.zip", "path": f"/{text}/trace.zip", "size": 1, "sha256": "0"}
    writer.note(
        "evidence",
        path=two.path,
        url=text,
        title=text,
        dialog=text,
        frames=[
            {"path": text, "at": "2026-01-01T00:00:00.000Z", "url": text, "screenshot": kept, "along": text},
            {"path": text, "at": "2026-01-01T00:00:00.000Z", "url": text, "no_screenshot": "too-fast"},
        ],
        messages=[{"at": "2026-01-01T00:00:00.000Z", "kind": "console", "text": text, "url": text}],
        trace=kept,
    )
    writer.note("ended", status="failed", exit=1, error=error, path=two.path)
    now(writer.barrier())
    let_go(writer.conversation)
    return writer.conversation.id


def of(home: Path, text: str) -> str:
    store = file_store.Files(home)
    past, reading = run_index.load_history(store, failed(home, text))
    return markdown.of_run(of_run.run_report(past, reading, store, brief=True))


def test_a_run_is_a_page_with_its_state_error_steps_and_next_command(tmp_path: Path) -> None:
    """The report of a failed run has everything that a person needs, in order."""
    text = of(tmp_path, "no button")
    wanted = [
        "# Run `Pay`",
        "**failed** · ",
        "## Error",
        "At `each[#no button]`:",
        "verify-failed: no button",
        "Fix: `no button`",
        "- page `no button` `no button`",
        "- dialog `no button`",
        "- before it, `no button`: `/no button/trace.zip`, after `no button` as well",
        "- before it, `no button`: `no picture: too-fast`",
        "- the page said `no button  no button`",
        "- trace: `playwright show-trace '/no button/trace.zip'`",
        "| step | outcome | time | value |",
        "| `seen` | ok | 1.5 s | `no button` |",
        "| `each[#no button]` | error | 0.5 s | `verify-failed: no button` |",
        "## Flags",
        "- `seen: odd` `no button`",
        "Next:",
        "runops resume ",
    ]
    places = [text.index(each) for each in wanted]
    assert places == sorted(places)


def test_a_paused_run_shows_its_question_with_its_place_and_how_to_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report shows the asking step with its line in the file, then the question, then the command."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path / ".runops"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ask.yaml").write_text(
        'version: 1\nname: Ask\nnodes:\n  - {id: ask, type: context, ask: {who: {question: "Who?", type: string}}}\n'
    )
    assert app.run(["run", "ask.yaml", "--quiet"]) == 4
    capsys.readouterr()
    assert app.run(["show", "last", "--markdown"]) == 0
    text = capsys.readouterr().out
    assert f"## Question\n\nAt `ask` in `{tmp_path / 'ask.yaml'}:4:5`:\n\n```text\nquestion: Who?" in text
    assert re.search(r"Next:\n\n```sh\nrunops answer \w+ who=…\n```\n$", text)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_page_text_is_not_live(tmp_path: Path, hostile: str) -> None:
    """Page text becomes code: no HTML, link, mention, heading, list or column, and no character that reorders its surroundings."""
    plain, text = of(tmp_path, "x"), of(tmp_path, hostile)
    assert "EVIL" in text
    found = tokens(text)
    assert not LIVE & {each.type for each in found}
    assert not [
        each.content for each in found if "EVIL" in each.content and each.type not in ("code_inline", "fence", "inline")
    ]
    shape = [each.type for each in tokens(plain) if each.type not in ("code_inline", "text", "inline")]
    assert [each.type for each in found if each.type not in ("code_inline", "text", "inline")] == shape
    assert all(each == "\n" or each.isprintable() for each in text)
    assert all(len(re.findall(r"\|", line)) == 5 for line in text.splitlines() if line.startswith("| `"))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_only_messages_of_a_session_are_markdown(tmp_path: Path, hostile: str) -> None:
    """Outputs of tools, events, reasons of failed answers and model names are not rendered as Markdown."""
    header = entries.SessionHeader(purpose="chat", file="shop.yaml", versions=version.versions())
    writer = now(open_session.begin(memory_store.MemoryStore(tmp_path), header, masking.Masker({})))
    thread = entries.SESSION_THREAD
    writer.said(entries.Event(thread=thread), hostile.strip(), "")
    error = {"code": "model-failed", "message": hostile}
    writer.said(entries.ModelError(thread=thread, error=error), "", "")
    writer.said(entries.Assistant(thread=thread, key="0" * 64, source="model", model=hostile), "So.", "")
    now(writer.barrier())
    reading = writer.store.read(writer.conversation.id)
    text = markdown.of_session(of_session.session_report(log_session.Session(reading.entries), reading, writer))
    found = tokens(text)
    assert not LIVE & {each.type for each in found}
    assert [each.type for each in found].count("heading_open") == 3
    assert all(each == "\n" or each.isprintable() or each == markdown.JOINER for each in text)
    assert not re.search(r"@EVIL|https?://EVIL|www\.EVIL", text)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_page_text_within_a_message_is_code(hostile: str) -> None:
    """Page text inside the message of a repair becomes code; the text around it stays as it is."""
    for whole in (True, False):
        page = page_text.fenced(hostile) if whole else f"{page_text.BEGIN}\n{hostile}"
        found = tokens(markdown.spoken(f"Repair **it**: {page}{chr(10) + 'Then stop.' if whole else ''}"))
        assert not LIVE & {each.type for each in found}
        assert {each.type for each in found if "EVIL" in each.content} == {"fence"}
        assert "strong_open" in {each.type for each in found}
        assert any(each.content == "Then stop." for each in found) is whole


def test_a_part_of_a_report_is_shown_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With ``--at`` the Markdown has the plain text as one code block."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path))
    run, session = failed(tmp_path, "x"), everything(file_store.Files(tmp_path))
    for each, at in ((run, "seen"), (session, "2")):
        assert app.run(["show", each, "--at", at]) == 0
        text = capsys.readouterr().out.rstrip("\n")
        assert app.run(["show", each, "--at", at, "--markdown"]) == 0
        assert f"```text\n{text}\n```\n" in capsys.readouterr().out


def test_a_long_run_has_a_table_that_ends(tmp_path: Path) -> None:
    """The table is limited, because CI servers limit summaries; the remaining steps are counted."""
    store = file_store.Files(tmp_path)
    past, reading = run_index.load_history(store, failed(tmp_path, "x"))
    report = of_run.run_report(past, reading, store)
    many = report.model_copy(update={"steps": report.steps * markdown.MOST})
    text = markdown.of_run(many)
    assert len([line for line in text.splitlines() if line.startswith("|")]) == markdown.MOST + 2
    assert f"{markdown.MOST} more steps: `runops show {report.run}`" in text


def test_show_prints_markdown_of_runs_and_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--markdown` excludes other formats; the error says which option to leave out."""
    monkeypatch.setenv("RUNOPS_HOME", str(tmp_path))
    named = failed(tmp_path, "x"), everything(file_store.Files(tmp_path))
    for each, head in zip(named, ("# Run `Pay`\n", f"# Session {named[1]}\n"), strict=True):
        assert app.run(["show", each, "--markdown"]) == 0
        assert capsys.readouterr().out.startswith(head)
    others: list[list[Any]] = [["--json"], ["--window"], ["--as-nodes", "seen"]]
    for other in others:
        assert app.run(["show", named[0], "--markdown", *other]) == 2
        printed = capsys.readouterr().err
        assert f"`--markdown` and `{other[0]}`" in printed
        assert "leave one of them out" in printed


def test_files_below_the_current_folder_are_named_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that a job keeps beside its files fits where both are downloaded; a file elsewhere has its whole path."""
    inside = f"{tmp_path}/deep".lstrip("/")
    monkeypatch.chdir(tmp_path)
    assert f"- trace: `playwright show-trace /{tmp_path.name}/trace.zip`" in of(tmp_path / "home", tmp_path.name)
    text = of(tmp_path / "home", inside)
    assert "- before it, " in text
    assert ": `deep/trace.zip`" in text
    assert "- trace: `playwright show-trace deep/trace.zip`" in text
