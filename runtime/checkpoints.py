"""When a checkpoint is due, when its file is on the disk, and which files may go.

A checkpoint is taken at a commit point if since the last one a document was loaded or an effect finished, and no tab holds input that the
site has not seen, and none shows the answer to a form, which its address alone does not give. Otherwise the earlier one stands, and what follows it is redone after a crash: what was typed is typed again.

The browser's state is read at the commit point; bringing it to the disk goes on beside the next steps, and its entry is written when it is
there. Before the next deed of class *effect* it is waited for, so a deed never lies behind a checkpoint that was due before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from pathlib import Path

from nodes.errors import SiteError
from runtime import aftermaths, durable, journal, log, regular
from runtime.browser import port
from runtime.crashes import CrashPoint, crash_point


def unusable(checkpoint: log.Checkpoint, private: Path) -> str | None:
    """In what way the checkpoint's file in ``private`` is not what was written; None where it is."""
    try:
        data = regular.read(private / checkpoint.file)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if checkpoint.sha256 not in (None, hashlib.sha256(data).hexdigest()):
        return "is not what was written"
    return None


class Checkpoints:
    """Takes checkpoints for one run."""

    def __init__(self, pen: journal.Journal, private: Path) -> None:
        """Files go into ``private``."""
        self._journal = pen
        self._private = private
        self._documents: int = 0
        self._effect: bool = False
        self._writing: asyncio.Task[None] | None = None

    def opened(self, browser: port.Browser, *, due: bool = False) -> None:
        """Count from this browser's present state; ``due`` where nobody knows what came since the last checkpoint."""
        self._documents = -1 if due else browser.facts().documents
        self._effect = False

    def effect_finished(self, browser: port.Browser, *, took_up_input: bool = True) -> None:
        """A deed of class *effect* finished; ``took_up_input``: the site has what was typed before it."""
        if took_up_input:
            browser.effect_finished()
        self._effect = True

    async def commit(self, browser: port.Browser | None, verified: aftermaths.Verified = aftermaths.NOTHING) -> None:
        """Take a checkpoint if one is due; ``verified`` is what held on the page, for which who restores it waits."""
        if browser is None:
            return
        facts = browser.facts()
        if facts.pending_input or facts.posted or not (self._effect or facts.documents != self._documents):
            return
        await self.settled()
        after = self._journal.history.last_seq
        try:
            captured = await browser.capture()
        except SiteError:
            # A page that cannot be looked at (it crashed, it is stuck): the earlier checkpoint stands.
            return
        self._documents, self._effect = facts.documents, False
        self._writing = asyncio.create_task(self._write(captured, after, verified))

    async def settled(self) -> None:
        """Wait until the last checkpoint is on the disk and its entry written. Raises LogError ``log-write-failed``."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def _write(self, captured: port.Captured, after: int, verified: aftermaths.Verified) -> None:
        file = self._private / f"checkpoint-{after}.json"
        crash_point(CrashPoint.CHECKPOINT_TAKEN)
        try:
            await asyncio.to_thread(durable.write, file, captured.data)
        except OSError as error:
            raise durable.not_written("a checkpoint", file, error) from None
        crash_point(CrashPoint.CHECKPOINT_FILE)
        before = self._journal.history.checkpoint
        digest = hashlib.sha256(captured.data).hexdigest()
        self._journal.checkpoint(file.name, captured.urls, after, digest, verified.as_json())
        # After a power cut the log may end before this entry, so the last one that is known to be on the disk keeps its file.
        if before is not None and before.seq <= self._journal.synced:
            for older in self._private.glob("checkpoint-*.json"):
                if older.name not in (file.name, before.file):
                    # One that stays is in nobody's way.
                    with contextlib.suppress(OSError):
                        older.unlink()
