"""Pictures of the page after the run's steps: the newest in memory in case a step fails, or all of them.

A picture is taken beside the next step, and done before that step acts. In case of a failure only, pictures may take a small share of the
time, so a step that ends right after others may have none. If every step has one, the next step waits for it before it begins.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from nodes.errors import RunOpsError
from runtime.log import entries

Mode = Literal["on", "off", "on-failure"]

BEFORE = 3  # number of steps before the failed one whose frames are kept
MOST = 1_000  # frames in memory of a run that keeps them all; later ones replace the oldest
SECONDS = 0.5  # time limit of a picture for which the next step may have to wait
SECONDS_OF_ALL = 3.0  # the same if every step has one, before the next step begins
SHARE = 0.06  # part of the time that pictures may take if they are only for a failure
SAVED = 0.1  # most seconds that are saved up for pictures that follow one another closely
WAITING = (
    0.1  # seconds after which a step that has not acted yet leaves time for the picture that its predecessor lacks
)

TOO_FAST = "too-fast"
"""Why a frame has no picture: the next step acted before there was time for one."""
NONE = "no-picture"
"""Why a frame has no picture: the page gave none."""


PNG = b"\x89PNG\r\n\x1a\n"


def ending(picture: bytes) -> str:
    """Return the ending of a picture's file."""
    return "png" if picture.startswith(PNG) else "jpeg"


class Page(Protocol):
    @property
    def url(self) -> str: ...

    @property
    def closed(self) -> bool: ...

    @property
    def dialog(self) -> str | None: ...

    async def frame(self, hide: Callable[[str], bool] | None) -> bytes: ...


@dataclasses.dataclass(eq=False, slots=True)
class Frame:
    """The page after a step."""

    path: str
    call: str  # id of the attempt's call
    at: str
    url: str
    seconds: float = dataclasses.field(default_factory=time.monotonic)
    picture: bytes | None = (
        None  # a JPEG without any secret, or the PNG of a failed step, with its secrets painted over
    )
    refused: str | None = TOO_FAST  # why there is no picture


class Tracing:
    def __init__(self, mode: Mode = "off", *, video: bool = False) -> None:
        self.mode: Mode = mode
        self.video = video
        self.frames: deque[Frame] = deque(maxlen=MOST if self.all else BEFORE)
        self._saved, self._since = 0.0, time.monotonic()
        self._taking: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    @property
    def all(self) -> bool:
        """True if every step has a picture, whatever it takes."""
        return self.mode == "on" or self.video

    @property
    def idle(self) -> bool:
        return self.mode == "off" and not self.video

    def after(self, path: str, call: entries.Call, page: Page, hide: Callable[[str], bool] | None) -> None:
        """Take a picture of the page after a step, if there is time. ``hide`` is None if the run has no secrets."""
        frame = Frame(path, call.call, entries.now(), page.url)
        self.frames.append(frame)
        if page.closed or page.dialog is not None:
            frame.refused = NONE
        elif self.all or self._may_take():
            self._begin(frame, page, hide)
        else:
            self._later = asyncio.get_running_loop().call_later(WAITING, self._begin, frame, page, hide)

    def failed(self, path: str, call: entries.Call, url: str, picture: bytes) -> None:
        """Take the picture of the page at which a step failed."""
        if not self.idle:
            self.frames.append(Frame(path, call.call, entries.now(), url, picture=picture, refused=None))

    async def settled(self) -> None:
        """Wait for the picture of the last step: from now on the page may change."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._taking is not None:
            taking, self._taking = self._taking, None
            await taking

    def steps_before(self, path: str | None) -> Sequence[Frame]:
        """Return the frames of the last steps before the one that failed, oldest first."""
        return [each for each in self.frames if each.path != path][-BEFORE:]

    def _may_take(self) -> bool:
        now = time.monotonic()
        self._saved = min(SAVED, self._saved + SHARE * (now - self._since))
        self._since = now
        return self._saved > 0

    def _begin(self, frame: Frame, page: Page, hide: Callable[[str], bool] | None) -> None:
        self._later = None
        self._taking = asyncio.get_running_loop().create_task(self._take(frame, page, hide))

    async def _take(self, frame: Frame, page: Page, hide: Callable[[str], bool] | None) -> None:
        begun = time.monotonic()
        frame.refused = NONE
        with contextlib.suppress(Exception):  # a picture must never be what a run fails at
            try:
                async with asyncio.timeout(SECONDS_OF_ALL if self.all else SECONDS):
                    frame.picture = await page.frame(hide)
                frame.refused = None
            except RunOpsError as error:
                frame.refused = error.code
        self._saved -= time.monotonic() - begun
