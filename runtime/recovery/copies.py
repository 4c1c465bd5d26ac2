"""A copy of a run: another conversation with the same history, for trying something while the run itself stays as it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nodes.values import Json
from runtime import version
from runtime.engine import checkpoints
from runtime.log import entries, history
from runtime.log.store import owners
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.secrets import masking
from runtime.system import files


async def make(
    store: log_store.Store,
    reading: log_store.Reading,
    masker: masking.Masker,
    about: dict[str, Json],
    parent: str | None,
) -> LogWriter:
    """Return the writer of a new conversation with all entries of the run of ``reading``, and its last checkpoint.

    It is a trial for the purpose ``about`` (``node`` and more), and never resumed. ``parent`` is the conversation that asked for it.
    """
    conversation = await store.create(log_store.new_id())
    async with log_store.release_on_error(conversation):
        writer = LogWriter(conversation, history.History(), masker, store.reader)
        for entry in reading.entries:
            copied = entry
            if isinstance(entry, entries.Scope) and entry.run is not None:
                header = entry.run.model_copy(update={"trial": about, "key": None, "parent": parent})
                copied = entry.model_copy(update={"run": header})
            writer.copy(copied)
        await _take_checkpoint(store.reader, reading.id, writer)
        writer.note("claimed", **owners.me(), epoch=conversation.epoch, version=version.VERSION)
    return writer


async def _take_checkpoint(store: log_store.StoreReader, run: str, writer: LogWriter) -> None:
    """Copy the last checkpoint's file if it is unchanged. Without it the copy begins on a blank page, as the run would."""
    last = writer.history.checkpoint
    if last is None:
        return
    try:
        data = await asyncio.to_thread(checkpoints.content, last, store, run)
        await writer.conversation.put_file(last.file, data, private=True)
    except checkpoints.Unusable:
        return
    except OSError as error:
        raise files.not_written("a checkpoint", Path(last.file), error) from None
