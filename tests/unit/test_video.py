"""Videos of pictures."""

from __future__ import annotations

import importlib.util
import io
from typing import Any

import av
import pytest

from nodes.errors import SetupError
from runtime.engine import video

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def picture(colour: tuple[int, int, int], width: int, height: int, kind: str = "mjpeg") -> bytes:
    """A JPEG or PNG of one colour."""
    shape = "rgb24" if kind == "png" else "yuvj420p"
    image: Any = av.VideoFrame(width, height, "rgb24")
    size = image.planes[0].buffer_size
    image.planes[0].update((bytes(colour) * size)[:size])
    writer: Any = av.CodecContext.create(kind, "w")
    writer.width, writer.height, writer.pix_fmt, writer.time_base = width, height, shape, video.MILLISECOND
    drawn = image.reformat(width, height, shape)
    drawn.pts = 0
    return b"".join(bytes(each) for each in (*writer.encode(drawn), *writer.encode(None)))


def frames(data: bytes) -> list[tuple[float, int, int, tuple[int, ...]]]:
    """Each frame of a video: its time, its size, and a colour in it, as near as the codec tells it."""
    file: Any = av.open(io.BytesIO(data))
    with file:
        return [
            (
                round(each.time, 3),
                each.width,
                each.height,
                tuple(round(part / 255) for part in bytes(each.reformat(format="rgb24").planes[0])[30:33]),
            )
            for each in file.decode(video=0)
        ]


def test_a_video_shows_each_picture_at_its_time() -> None:
    """The last one stays for a moment; one of another size is fitted into the first one's, which becomes even."""
    shots = [
        video.Shot(5.0, picture(RED, 65, 49)),
        video.Shot(5.5, picture(GREEN, 65, 49)),
        video.Shot(7.0, picture(BLUE, 33, 21, "png")),
    ]
    assert frames(video.encode(shots)) == [
        (0.0, 64, 48, (1, 0, 0)),
        (0.5, 64, 48, (0, 1, 0)),
        (2.0, 64, 48, (0, 0, 1)),
        (2.0 + video.LAST, 64, 48, (0, 0, 1)),
    ]


def test_a_video_needs_a_picture() -> None:
    """Without any there is none."""
    with pytest.raises(ValueError, match="no page"):
        video.encode([])


def test_a_video_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a run with a video does not begin, and is told what to install."""
    video.demand()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(SetupError) as missing:
        video.demand()
    assert (missing.value.code, "pip install av" in str(missing.value.fix)) == ("extra-missing", True)
