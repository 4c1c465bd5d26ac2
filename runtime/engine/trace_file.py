"""Writes a trace that Playwright's viewer opens: the steps of a run, their pictures, and the messages of its pages.

The format is that of Playwright's own traces (version 10), and this writes the parts that a run has: no snapshots of documents.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nodes.values import Json
from runtime.browser.port import Message
from runtime.display.text import described, value_text
from runtime.engine import tracing
from runtime.log import attempts, entries, history
from runtime.secrets import masking

VERSION = 10
PAGE = "page@1"
LONGEST = 2_000  # most characters of a message


class Picture(NamedTuple):
    """A picture of the page after an attempt."""

    call: str  # id of its call
    at: str
    data: bytes


def write(
    past: history.History, pictures: Sequence[Picture], messages: Sequence[Message], masker: masking.Masker
) -> bytes:
    """Return the trace as a zip archive. Its pictures must show no secret; its texts are masked here."""
    return _Trace(past, masker).written(pictures, messages)


class _Trace:
    def __init__(self, past: history.History, masker: masking.Masker) -> None:
        self._past, self._masker = past, masker
        self._began = _seconds(past.started)

    def written(self, pictures: Sequence[Picture], messages: Sequence[Message]) -> bytes:
        shown = {each.call: each for each in pictures}
        events = [self._options(), *(each for attempt in self._past.all_attempts() for each in self._action(attempt))]
        events += [each for picture in shown.values() for each in self._shown(picture)]
        events += [self._said(each) for each in messages if each.kind != "request"]
        requests = [self._request(each) for each in messages if each.kind == "request"]
        kept = io.BytesIO()
        # Stored as they are: pictures are compressed already, and a search of the file for secrets reads its texts.
        with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("trace.trace", self._lines(events))
            archive.writestr("trace.network", self._lines(requests))
            for picture in shown.values():
                archive.writestr(_file(picture), picture.data)
        return kept.getvalue()

    def _lines(self, events: Sequence[dict[str, Json]]) -> str:
        return "".join(f"{json.dumps(each)}\n" for each in events)

    def _options(self) -> dict[str, Json]:
        header = self._past.header
        return {
            "version": VERSION,
            "type": "context-options",
            "origin": "library",
            "browserName": "chromium",
            "options": {},
            "platform": "",
            "wallTime": 1000 * self._began,
            "monotonicTime": 0,
            "sdkLanguage": "python",
            "title": self._masked(header.workflow) if header is not None else "",
            "contextId": "run",
        }

    def _action(self, attempt: attempts.Attempt) -> Iterator[dict[str, Json]]:
        call, result = attempt.call, attempt.result
        ended = self._time(result.at) if result is not None else None
        begun = self._time(call.at)
        if result is not None and ended is not None and result.seconds:
            # The call is written right before the action, and the step begins before that.
            begun = min(begun, ended - 1000 * result.seconds)
        action = call.action or call.node
        given = call.args
        # The viewer fills in what stands in braces.
        title = self._masked(f"{call.path}  {described(action, call.args)}")
        yield {
            "type": "before",
            "callId": call.call,
            "startTime": begun,
            "title": title.replace("{", "(").replace("}", ")"),
            "class": "Step",
            "method": action,
            "params": self._texts(given) if isinstance(given, dict) else {},
            "pageId": PAGE,
        }
        if result is None or ended is None:
            return
        after: dict[str, Json] = {"type": "after", "callId": call.call, "endTime": ended}
        if result.error is not None:
            said, fix = f"{result.error.get('code')}: {result.error.get('message')}", result.error.get("fix")
            message = self._masked(f"{said}\n\n{fix}" if fix else said)
            # The viewer shows the message alone.
            after["error"] = {"name": "Error", "message": message}
        elif result.value is not None:
            after["result"] = self._texts({"value": result.value})
        yield after

    def _shown(self, picture: Picture) -> Iterator[dict[str, Json]]:
        width, height = size(picture.data)
        at = self._time(picture.at)
        file = _file(picture)
        yield {
            "type": "screencast-frame",
            "pageId": PAGE,
            "file": file,
            "width": width,
            "height": height,
            "timestamp": at,
            "frameSwapWallTime": 1000 * _seconds(picture.at),
        }
        yield {
            "type": "screenshot",
            "callId": picture.call,
            "phase": "after",
            "pageId": PAGE,
            "timestamp": at,
            "file": file,
        }

    def _said(self, message: Message) -> dict[str, Json]:
        text, at, url = self._masked(message.text), 1000 * (message.at - self._began), self._masked(message.url or "")
        if message.kind == "console":
            location: dict[str, Json] = {"url": url, "lineNumber": 0, "columnNumber": 0}
            said: dict[str, Json] = {"messageType": message.level, "text": text, "args": [], "location": location}
            return {"type": "console", **said, "time": at, "pageId": PAGE}
        error: dict[str, Json] = {"error": {"name": "Error", "message": text, "stack": ""}}
        params: dict[str, Json] = {"error": error, "location": {"url": url, "line": 0, "column": 0}}
        return {"type": "event", "time": at, "class": "BrowserContext", "method": "pageError", "params": params}

    def _request(self, message: Message) -> dict[str, Json]:
        said = self._masked(message.text)
        nothing: dict[str, Json] = {"httpVersion": "", "cookies": [], "headers": [], "headersSize": -1, "bodySize": -1}
        response: dict[str, Json] = {
            **nothing,
            "status": message.status or -1,
            "statusText": said,
            "content": {"size": -1, "mimeType": "x-unknown"},
            "redirectURL": "",
            "_transferSize": -1,
        }
        if message.status is None:
            response["_failureText"] = said
        snapshot: dict[str, Json] = {
            "pageref": PAGE,
            "startedDateTime": entries.moment(message.at),
            "time": 0,
            "_monotonicTime": 1000 * (message.at - self._began),
            "request": {**nothing, "method": message.method, "url": self._masked(message.url or ""), "queryString": []},
            "response": response,
            "cache": {},
            "timings": {"send": -1, "wait": -1, "receive": -1},
        }
        return {"type": "resource-snapshot", "snapshot": snapshot}

    def _texts(self, values: Mapping[str, Json]) -> dict[str, Json]:
        """Return values as texts: the masks of a map would leave its keys."""
        return {name: self._masked(value_text(value)) for name, value in values.items()}

    def _masked(self, text: str) -> str:
        return self._masker.text(text)[:LONGEST]

    def _time(self, at: str) -> float:
        """Return a time of the log in milliseconds since the run began."""
        return round(1000 * (_seconds(at) - self._began), 3)


def _seconds(at: str) -> float:
    return dt.datetime.fromisoformat(at).timestamp()


def _file(picture: Picture) -> str:
    return f"screenshots/{picture.call}-after.{tracing.ending(picture.data)}"


def size(picture: bytes) -> tuple[int, int]:
    """Return width and height of a PNG or JPEG; 0 for anything else."""
    if picture.startswith(tracing.PNG):
        return int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")
    place = 2
    while picture[place : place + 1] == b"\xff" and place + 9 <= len(picture):
        kind, length = picture[place + 1], int.from_bytes(picture[place + 2 : place + 4], "big")
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(picture[place + 7 : place + 9], "big"), int.from_bytes(
                picture[place + 5 : place + 7], "big"
            )
        place += 2 + length
    return 0, 0
