"""Stored runs, created without running anything."""

from __future__ import annotations

from runtime.language import reader
from runtime.log import history
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.runs import run
from runtime.secrets import masking
from tests.now import let_go, now

WORKFLOW = """
version: 1
name: Pay the open orders
nodes: [{id: one, type: transform, expr: 1}]
"""


def begun(
    store: file_store.Files, text: str = WORKFLOW, *, trial: bool = False, parent: str | None = None
) -> LogWriter:
    """A run that this process has begun, and owns."""
    writer = LogWriter(store.create(log_store.new_id()), history.History(), masking.Masker({}), store)
    tried = {"node": "one"} if trial else None
    run.write_header(writer, reader.parse(text, "pay.yaml"), {}, trial=tried, parent=parent)
    now(writer.barrier())
    return writer


def ended(store: file_store.Files, status: str | None, text: str = WORKFLOW, *, trial: bool = False) -> str:
    """The id of a run without an owner; None: it died."""
    writer = begun(store, text, trial=trial)
    if status is not None:
        writer.note("ended", status=status, exit=0)
    let_go(writer.conversation)
    return writer.conversation.id
