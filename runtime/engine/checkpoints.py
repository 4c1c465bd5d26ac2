"""Checkpoints of a run: when one is due, when its file is synced, and which files may be deleted.

A checkpoint is taken at a commit point if a document was loaded or a side effect finished since the last one. None is taken while a tab
holds input that the site has not seen. Nor is one while a tab shows the answer to a form, which its address alone does not restore. Then
the earlier one stays, and what follows it is redone after a crash: what was typed is typed again.

The browser's state is read at the commit point and synced while the next steps run; then its entry is written. The next side effect waits
for the entry, so none follows a due checkpoint that is not yet written.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from pathlib import Path

from nodes.errors import SiteError
from runtime.browser import port
from runtime.engine import skipped_steps
from runtime.log import entries
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.system import files
from runtime.system.crash_points import CrashPoint, crash_point


class Unusable(Exception):
    """The file of a checkpoint differs from what was written; the message says in what way."""


def content(checkpoint: entries.Checkpoint, store: log_store.StoreReader, run: str) -> bytes:
    """Return the content of the checkpoint's file. Raises Unusable."""
    try:
        data = store.get_file(run, checkpoint.file, private=True)
    except FileNotFoundError:
        raise Unusable("is missing") from None
    except OSError as error:
        raise Unusable(f"cannot be read ({error.strerror or error})") from None
    if checkpoint.sha256 not in (None, hashlib.sha256(data).hexdigest()):
        raise Unusable("is not what was written")
    return data


class Checkpoints:
    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self._documents: int = 0
        self._effect: bool = False
        self._writing: asyncio.Task[None] | None = None

    def opened(self, browser: port.Browser, *, due: bool = False) -> None:
        self._documents = -1 if due else browser.facts().documents
        self._effect = False

    def effect_finished(self, browser: port.Browser, *, took_up_input: bool = True) -> None:
        """Record that a side effect finished. ``took_up_input``: the site has what was typed before it."""
        if took_up_input:
            browser.effect_finished()
        self._effect = True

    async def commit(
        self, browser: port.Browser | None, verified: skipped_steps.Verified = skipped_steps.NOTHING
    ) -> None:
        """Take a checkpoint if one is due. ``verified`` is what held on the page; a run that restores the checkpoint waits for it."""
        if browser is None:
            return
        facts = browser.facts()
        if facts.pending_input or facts.posted or not (self._effect or facts.documents != self._documents):
            return
        await self.settled()
        after = self._writer.history.last_seq
        try:
            captured = await browser.capture()
        except SiteError:
            # A crashed or hanging page, a popup, an open dialog: the earlier checkpoint stays.
            return
        self._documents, self._effect = facts.documents, False
        self._writing = asyncio.create_task(self._write(captured, after, verified))

    async def settled(self) -> None:
        """Wait until the last checkpoint is synced and its entry written. Raises LogError ``log-write-failed``."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def _write(self, captured: port.Captured, after: int, verified: skipped_steps.Verified) -> None:
        name, conversation = f"checkpoint-{after}.json", self._writer.conversation
        crash_point(CrashPoint.CHECKPOINT_TAKEN)
        try:
            kept = await conversation.put_file(name, captured.data, private=True)
        except OSError as error:
            raise files.not_written("a checkpoint", Path(name), error) from None
        crash_point(CrashPoint.CHECKPOINT_FILE)
        before = self._writer.history.checkpoint
        self._writer.checkpoint(name, captured.urls, after, kept.sha256, verified.as_json())
        # After a power cut the log may end before this entry, so the last checkpoint that is known to be synced keeps its file.
        if before is not None and before.seq <= self._writer.synced:
            for file in self._writer.store.file_names(conversation.id, private=True):
                if file.startswith("checkpoint-") and file not in (name, before.file):
                    # A file that stays does no harm.
                    with contextlib.suppress(OSError):
                        await conversation.drop_file(file, private=True)
