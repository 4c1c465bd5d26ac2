"""What comes while the model or a run works: messages are kept at once, `/stop` ends the work, everything else is done after it."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import Callable, Generator
from typing import Protocol

from director.cli import foreground
from director.cli import input as typed_input
from nodes.errors import RunOpsError
from runtime.cli.foreground import Foreground

STOPS = "--  stops after the call in hand"

Parse = Callable[[str], str | None]
"""Returns the message of a line that is said at once, or None if the line waits for its turn."""


def typed(line: str) -> str | None:
    """Take each message of a person at a terminal at once; slash commands wait."""
    text = line.strip()
    if text.startswith("//"):
        return text[1:]
    return None if (text.startswith("/") and text != typed_input.STOP) or text in typed_input.ENDS else text


class Arrivals(Protocol):
    """Standard input while something works."""

    def heard(
        self, loop: asyncio.AbstractEventLoop, hear: Callable[[str | None], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Call ``hear`` with each line that comes; with None at the Ctrl-D of a person."""
        ...


class Meanwhile:
    """Takes what comes on standard input while something works."""

    def __init__(
        self,
        conversation: foreground.Conversation,
        front: Foreground,
        arrivals: Arrivals,
        said_at_once: Parse = typed,
    ) -> None:
        self._conversation, self._front, self._arrivals, self._said_at_once = (
            conversation,
            front,
            arrivals,
            said_at_once,
        )
        self._waiting: collections.deque[str] = collections.deque()
        self._begun: list[str] = []  # lines of an incomplete message
        self._syncing: set[asyncio.Task[None]] = set()
        front.meanwhile = self.listening

    def before(self, read: Callable[[], str]) -> Callable[[], str]:
        """Return a reader of lines that first returns those that have waited."""
        return lambda: self._waiting.popleft() if self._waiting else read()

    @contextlib.contextmanager
    def listening(self, loop: asyncio.AbstractEventLoop) -> Generator[None]:
        try:
            with self._arrivals.heard(loop, self._hear):
                yield
        finally:
            self._waiting += self._begun
            self._begun = []
            if self._syncing:
                self._front.complete(self._synced())

    def _hear(self, line: str | None) -> None:
        if line is None:
            # Ctrl-D at a terminal: everything that was said before is done first.
            self._waiting.append("/quit")
            return
        self._begun.append(line)
        if line.endswith("\\"):
            return
        lines, self._begun = self._begun, []
        said = self._said_at_once("\n".join([*(each[:-1] for each in lines[:-1]), lines[-1]]))
        if said is None:
            self._waiting += lines
            self._conversation.screen.say("--  waits until the work is done")
        elif said.strip() == typed_input.STOP:
            self._stop()
        elif said.strip():
            self._conversation.hear(said)
            self._keep(self._conversation.screen.kept)

    def _keep(self, then: Callable[[], None]) -> None:
        sync = asyncio.ensure_future(self._sync(then))
        self._syncing.add(sync)
        sync.add_done_callback(self._syncing.discard)

    async def _sync(self, then: Callable[[], None]) -> None:
        # A log that fails ends the work itself.
        with contextlib.suppress(RunOpsError):
            await self._conversation.writer.barrier()
            then()

    async def _synced(self) -> None:
        await asyncio.gather(*self._syncing)

    def _stop(self) -> None:
        if self._conversation.stop():
            self._keep(lambda: self._conversation.screen.say(STOPS))
        else:
            self._conversation.screen.say(STOPS)
            self._front.stop()
