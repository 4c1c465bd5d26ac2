"""Pictures of the page after the run's steps: the newest in memory in case a step fails, or all of them.

If every step has one, the next step waits for it before it begins. In case of a failure only, a picture is taken when a step begins that may
take away what is seen, and pictures may take a share of the time: steps that end right after one another share one. In a run with secrets such a
picture is done before the step acts; in a run without secrets nothing waits for it.
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
SHARE = 0.06  # part of the time that pictures may take which are only for a failure, and for which steps wait
SHARE_BESIDE = 0.2  # the same if nothing waits for them
SAVED = 0.1  # most seconds that are saved up for pictures that follow one another closely
WAITING = 0.1  # seconds without another step after which the last one has its picture in any case

TOO_FAST = "too-fast"
"""Why a frame has no picture: there was no time for one before the page went to another address."""
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

    async def frame(self, hide: Callable[[str], bool] | None, *, small: bool = False) -> bytes: ...


@dataclasses.dataclass(eq=False, slots=True)
class Frame:
    """The page after a step."""

    path: str
    call: str  # id of the attempt's call
    at: str
    url: str
    page: Page
    along: str | None = None  # the last step that had ended, too, when the picture was there
    seconds: float = dataclasses.field(default_factory=time.monotonic)
    picture: bytes | None = (
        None  # a JPEG without any secret, or the PNG of a failed step, with its secrets painted over
    )
    refused: str | None = TOO_FAST  # why there is no picture


class Tracing:
    def __init__(self, mode: Mode = "off", *, video: bool = False) -> None:
        self.mode: Mode = mode
        self.video = video
        self.frames: deque[Frame] = deque(maxlen=MOST if self.all else BEFORE + 1)
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
        """Take a picture of the page after a step, or let it wait for the next one. ``hide`` is None if the run has no secrets."""
        frame = Frame(path, call.call, entries.now(), page.url, page)
        self.frames.append(frame)
        if page.closed or page.dialog is not None:
            frame.refused = NONE
        elif self.all:
            self._begin(page, hide)
        else:
            self._wait_no_longer()
            self._later = asyncio.get_running_loop().call_later(WAITING, self._begin, page, hide)

    def before(self, page: Page, hide: Callable[[str], bool] | None) -> None:
        """Take a picture of the page before a step that may take away what is seen, if there is time and none was taken."""
        if self._lacking(page) and page.dialog is None and self._may_take(SHARE if hide is not None else SHARE_BESIDE):
            self._begin(page, hide)

    def failed(self, path: str, call: entries.Call, page: Page, picture: bytes) -> None:
        """Take the picture of the page at which a step failed."""
        if not self.idle:
            for frame in self._lacking(page):
                frame.picture, frame.refused, frame.along = picture, None, path
            self.frames.append(Frame(path, call.call, entries.now(), page.url, page, picture=picture, refused=None))

    async def acting(self, hide: Callable[[str], bool] | None) -> None:
        """Wait for a picture, before a step acts that may show a secret."""
        if self.all or hide is not None:
            await self.settled()

    async def settled(self) -> None:
        """Wait for the picture of the last step."""
        self._wait_no_longer()
        if self._taking is not None:
            taking, self._taking = self._taking, None
            await taking

    def steps_before(self, path: str | None) -> Sequence[Frame]:
        """Return the frames of the last steps before the one that failed, oldest first."""
        return [each for each in self.frames if each.path != path][-BEFORE:]

    def _may_take(self, share: float) -> bool:
        now = time.monotonic()
        self._saved = min(SAVED, self._saved + share * (now - self._since))
        self._since = now
        return self._saved > 0 and (self._taking is None or self._taking.done())

    def _lacking(self, page: Page) -> Sequence[Frame]:
        """Return the frames without a picture that the page, as it is now, still is of."""
        return [each for each in self.frames if (each.page, each.url, each.refused) == (page, page.url, TOO_FAST)]

    def _wait_no_longer(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _begin(self, page: Page, hide: Callable[[str], bool] | None) -> None:
        self._wait_no_longer()
        self._taking = asyncio.get_running_loop().create_task(self._take(page, hide, self._taking))

    async def _take(self, page: Page, hide: Callable[[str], bool] | None, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await earlier
        begun = time.monotonic()
        lacking = self._lacking(page)
        picture, refused = None, NONE
        with contextlib.suppress(Exception):  # a picture must never be what a run fails at
            try:
                async with asyncio.timeout(SECONDS_OF_ALL if self.all else SECONDS):
                    picture = await page.frame(hide, small=hide is None and not self.all)
            except RunOpsError as error:
                refused = error.code
        self._saved -= time.monotonic() - begun
        if picture is None:
            for frame in lacking[-1:]:
                frame.refused = refused
            return
        newest = next((each.path for each in reversed(self.frames) if each.page is page), None)
        for frame in lacking:
            frame.picture, frame.refused, frame.along = picture, None, newest if newest != frame.path else None
