"""A session saved as Markdown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from director.cli.session import slash_commands
from director.session import open as open_session
from nodes.errors import UsageError
from runtime import version
from runtime.log import entries, session
from runtime.log.writer import LogWriter
from runtime.messages.messages import ToolCall
from runtime.report import markdown, of_session
from runtime.secrets import masking
from runtime.testing import memory_store
from tests.now import now

SECRET = "correct-horse"


def begun(tmp_path: Path) -> LogWriter[session.Session]:
    """A session with every kind of entry."""
    header = entries.SessionHeader(purpose="chat", file="shop.yaml", versions=version.versions())
    writer = now(
        open_session.begin(memory_store.MemoryStore(tmp_path), header, masking.Masker({"SHOP_PASSWORD": SECRET}))
    )
    thread = entries.SESSION_THREAD
    writer.said(entries.User(thread=thread, mode="chat"), f"Why? The password is {SECRET}.", "")
    writer.said(
        entries.Assistant(thread=thread, key="0" * 64, source="model", model="m"),
        "I look.",
        "",
        [ToolCall("a", "get_workflow_nodes", '{"which":"all"}'), ToolCall("b", "get_current_plan", "{}")],
    )
    call = entries.Call(
        thread=thread, path="1_get_workflow_nodes", node="session", asked="a", attempt=1, effect="read", fingerprint=""
    )
    writer.result(writer.call(call), "ok", value="…")
    writer.said(
        entries.ToolResult(thread=thread, asked="a"), "```yaml\n- {id: pay}\n```" + "x" * 5000, "1_get_workflow_nodes"
    )
    writer.said(entries.Event(thread=thread), "/run shop.yaml: passed", "")
    error = {"code": "model-stream-broken", "message": "the stream broke"}
    writer.said(entries.ModelError(thread=thread, error=error), "It fai", "")
    return writer


def saved(writer: LogWriter[session.Session]) -> str:
    now(writer.barrier())
    reading = writer.store.read(writer.conversation.id)
    return markdown.of_session(of_session.session_report(writer.history, reading, writer, brief=True))


def test_messages_and_actions_are_saved_in_order(tmp_path: Path) -> None:
    """Messages, answers, tools with outputs, events and broken answers with their errors are saved in order, and secrets masked."""
    writer = begun(tmp_path)
    text = saved(writer)
    wanted = [
        f"# Session {writer.conversation.id}",
        "- about shop.yaml",
        "## You",
        "Why?",
        "## Model (m)",
        "I look.",
        "**get_workflow_nodes**",
        '{"which":"all"}',
        "- {id: pay}",
        "**get_current_plan**",
        "*Open: no outcome is recorded.*",
        "*/run shop.yaml: passed*",
        "It fai",
        "model-stream-broken",
    ]
    places = [text.index(each) for each in wanted]
    assert places == sorted(places)
    assert SECRET not in text


def test_a_tool_output_stays_in_its_block_and_is_cut(tmp_path: Path) -> None:
    """A fence in an output does not end its block, and a long output is cut with its size."""
    writer = begun(tmp_path)
    text = saved(writer)
    assert "````\n```yaml\n- {id: pay}\n```" in text
    assert "… (5,023 characters in all)\n````" in text
    assert "x" * 2001 not in text


def test_saving_changes_nothing(tmp_path: Path) -> None:
    """Saving twice gives the same text, and adds no line to the log."""
    writer = begun(tmp_path)
    line = writer.history.last_seq
    assert saved(writer) == saved(writer)
    assert writer.history.last_seq == line


def test_no_message_can_forge_a_heading(tmp_path: Path) -> None:
    """A heading in an answer is escaped, and so are control characters."""
    writer = begun(tmp_path)
    thread = entries.SESSION_THREAD
    before = saved(writer)
    for forged in ("## You\n\nPay.", "You\n---\nPay.", "  # Model (m)\nPay.\x1b[2J"):
        writer.said(entries.Assistant(thread=thread, key="0" * 64, source="model", model="m"), f"So:\n{forged}", "")
    added = saved(writer).removeprefix(before)
    headings = [line for line in added.splitlines() if line.lstrip(" ").startswith("#")]
    assert headings == ["## Model (m)"] * 3
    assert "\\You\n---" in added
    assert "\x1b" not in added


def test_only_a_saved_session_is_overwritten(tmp_path: Path) -> None:
    """A workflow, a folder and a pipe are not overwritten; a saved session is."""
    workflow, folder, pipe, notes = (tmp_path / name for name in ("shop.yaml", "folder", "pipe", "notes.md"))
    workflow.write_text("version: 1")
    folder.mkdir()
    os.mkfifo(pipe)
    for path in (workflow, folder, pipe, tmp_path / "none" / "notes.md"):
        with pytest.raises(UsageError) as caught:
            slash_commands.write(path, f"{markdown.HEAD}a")
        assert caught.value.code == "file-not-written"
    assert workflow.read_text() == "version: 1"
    assert pipe.is_fifo()
    for text in (f"{markdown.HEAD}a", f"{markdown.HEAD}b"):
        slash_commands.write(notes, text)
        assert notes.read_text() == text
