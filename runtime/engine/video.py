"""Makes a video (WebM) of pictures with their times."""

from __future__ import annotations

import fractions
import importlib.util
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

from nodes.errors import SetupError
from runtime.engine import tracing

CODEC = "libvpx"
TYPE = "video/webm"
MILLISECOND = fractions.Fraction(1, 1000)
LAST = 1.0  # seconds for which the last picture is shown


class Shot(NamedTuple):
    at: float  # seconds
    picture: bytes  # a JPEG or PNG


def demand() -> None:
    """Raise SetupError ``extra-missing`` without the library."""
    if importlib.util.find_spec("av") is None:
        raise SetupError(
            "extra-missing",
            "a video needs the package av, which is not installed",
            fix="type: pip install av",
        )


def encode(shots: Sequence[Shot]) -> bytes:
    """Return a video in which each picture is shown from its time to that of the next. Raises ValueError if there is none."""
    if not shots:
        raise ValueError("no page was shown that could have a picture")
    import av  # an extra, which few runs need

    file = io.BytesIO()
    written: Any = av.open(file, "w", format="webm")
    with written:
        first = _read(shots[0].picture)
        stream = written.add_stream(CODEC, rate=25)
        # The codec takes even sizes only.
        stream.width, stream.height = first.width // 2 * 2, first.height // 2 * 2
        stream.pix_fmt, stream.time_base, stream.codec_context.time_base = "yuv420p", MILLISECOND, MILLISECOND
        for at, picture in (*shots, Shot(shots[-1].at + LAST, shots[-1].picture)):
            frame = _read(picture).reformat(stream.width, stream.height, "yuv420p")
            frame.pts, frame.time_base = round(1000 * (at - shots[0].at)), MILLISECOND
            written.mux(stream.encode(frame))
        written.mux(stream.encode(None))
    return file.getvalue()


def _read(picture: bytes) -> Any:
    import av

    reader: Any = av.CodecContext.create("png" if tracing.ending(picture) == "png" else "mjpeg", "r")
    return [*reader.decode(av.Packet(picture)), *reader.decode(None)][0]
