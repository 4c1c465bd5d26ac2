"""Reports of runs for tests of their page, and that page read back."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import struct
import zlib
from html.parser import HTMLParser
from typing import Any

from typing_extensions import override

from runtime.report.endings import BatchReport
from runtime.report.models import RunReport

AT = "2026-03-01T10:00:{:06.3f}Z"
COSTS = {
    "requests": 1,
    "paid": 1,
    "input_tokens": 1200,
    "cached_tokens": 0,
    "output_tokens": 80,
    "reasoning_tokens": 0,
    "dollars": "0.0042",
    "known_dollars": "0.0042",
    "seconds": 1.5,
}
ERROR = {
    "code": "target-not-found",
    "who": "site",
    "message": 'no element matches role=button name="Pay now"',
    "phase": "before",
    "evidence": {"page": "http://shop.test/orders/1004", "nearest": ["Pay", "Add note"]},
    "fix": "look at the page",
}


def attempt(status: str | None = "ok", *, at: float = 0.0, seconds: float = 0.2, **fields: Any) -> dict[str, Any]:
    given = {"attempt": 1, "at": AT.format(at), "action": "click", "effect": "effect", "args": {"target": "Pay"}}
    rest = {
        "status": status,
        "seconds": seconds,
        "error": None,
        "flags": [],
        "dismissed": [],
        "verdict": None,
        "thread": [],
    }
    return {**given, **rest, **fields}


def step(path: str, status: str = "ok", *, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """A step with one attempt; with `attempts=[]` a container."""
    tried = [attempt(status if status in ("ok", "error") else "ok")]
    given = {"path": path, "type": "browser_action", "status": status, "seconds": 0.2, "value": None, "costs": None}
    return {**given, "attempts": tried, "parent": parent, **fields}


def run(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(RunReport.model_fields)
    lists = {name: [] for name in ("pauses", "secrets", "open", "files", "flags", "evidence")}
    process = {
        "started": AT.format(0),
        "last": AT.format(9),
        "status": fields.get("state", "passed"),
        "took_over": False,
    }
    given = {
        "version": 1,
        "run": "01RUN",
        "workflow": "Pay the orders",
        "file": "/shop/pay.yaml",
        "state": "passed",
        "started": AT.format(0),
        "last": AT.format(9),
        "seconds": 9.0,
        "processes": [process],
        "inputs": {"day": "1"},
        "texts": {},
        "tolerated": 0,
        "steps": [*steps],
    }
    return {**nothing, **lists, **given, **fields}


def record(report: dict[str, Any] | None, status: str, **fields: Any) -> dict[str, Any]:
    """The outcome of a run with that report, or of none."""
    shared = ("run", "seconds", "output", "error", "path", "place", "costs")
    given = {name: report[name] if report is not None else None for name in shared}
    rest = {"status": status, "exit": 0, "tolerated": 0, "question": None, "flags": [], "files": []}
    return {**given, **rest, **fields}


def case(
    name: str, status: str = "passed", *runs: dict[str, Any], row: str | None = None, **fields: Any
) -> dict[str, Any]:
    """A case; each of its `runs` is a report."""
    file = f"flows/{name.lower().replace(' ', '_')}.yaml"
    attempts = [record(each, each["state"]) for each in runs]
    last = record(runs[-1] if runs else None, status)
    about = {"case": f"{file}[{row}]" if row else file, "file": file, "name": name, "row": row}
    return {
        **last,
        **about,
        "started": AT.format(0),
        "attempts": attempts,
        "differed": [],
        "live": False,
        "tags": [],
        "notes": [],
        "host": "",
        **fields,
    }


def batch(*cases: dict[str, Any], runs: list[dict[str, Any]], pictures: dict[str, bytes] | None = None) -> BatchReport:
    encoded = {sha: base64.b64encode(data).decode() for sha, data in (pictures or {}).items()}
    given = {"exit": 1, "started": AT.format(0), "shard": None, "selected": [each["case"] for each in cases]}
    return BatchReport.model_validate(
        {**given, "runs": [*cases], "details": {each["run"]: each for each in runs}, "pictures": encoded}
    )


def png(seed: int, width: int = 64, height: int = 48, *, noise: bool = False) -> bytes:
    """A picture in one colour, or one that cannot be compressed."""
    chance = random.Random(seed)
    colour = chance.randbytes(3)
    lines = b"".join(b"\x00" + (chance.randbytes(3 * width) if noise else colour * width) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def shot(data: bytes, name: str = "failed-c1.png") -> dict[str, Any]:
    """A file of the run with that picture."""
    return {"name": name, "path": f"/home/{name}", "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


class Page(HTMLParser):
    """The elements of a page, its data, and the sources that its policy allows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.policy = ""
        self.text = ""
        self._in = ""
        self.feed(page)
        self.data: dict[str, Any] = json.loads(self.scripts[0])

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in = tag
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""

    @override
    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    @override
    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts.append(data)
        elif self._in == "style":
            self.styles.append(data)
        else:
            self.text += data
