"""Reports of runs as one HTML page that needs no network: ``of_batch`` for those of a command, ``of_run`` for one.

``content`` decides what the page shows, ``sizes`` how much of it; ``page.html``, ``page.css`` and the scripts draw it in the browser. Texts
are data of the page and become text nodes only, so nothing in them is live.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

from nodes.values import Json
from runtime.display.text import harmless, one_line
from runtime.report.endings import BatchReport
from runtime.report.models import RunReport
from runtime.report.page import content, sizes
from runtime.report.parts import DifferenceReport

SCRIPTS = (
    "dom.js",
    "words.js",
    "route.js",
    "tree.js",
    "talk.js",
    "step.js",
    "timeline.js",
    "run.js",
    "list.js",
    "keys.js",
    "main.js",
)
"""Their order is that of the page; each uses those before it."""


def of_batch(report: BatchReport) -> str:
    """Return the page of all cases of ``report``, with the runs and the pictures that it has."""
    return _page(content.of_batch(report), report.pictures)


def of_run(
    report: RunReport,
    pictures: Mapping[str, bytes],
    *,
    green: str | None = None,
    since_green: Sequence[DifferenceReport] | None = None,
) -> str:
    """Return the page of one run. ``pictures``, by SHA-256, are those that can be read; ``since_green`` compares it with the run ``green``."""
    encoded = {sha: base64.b64encode(data).decode() for sha, data in pictures.items()}
    return _page(content.of_run(report, green, since_green), encoded)


def _page(shown: content.Page, pictures: Mapping[str, str]) -> str:
    style, script = _file("page.css"), "\n".join(_file(f"scripts/{each}") for each in SCRIPTS)
    data = sizes.fitted(shown, pictures, sizes.PAGE - len(style) - len(script))
    parts = {
        "title": _escaped(shown.title),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "plain": "\n".join(_plain(shown)),
        "data": data,
    }
    pieces = _file("page.html").split("%%")
    return "".join(parts[each] if number % 2 else each for number, each in enumerate(pieces))


def _plain(shown: content.Page) -> Iterable[str]:
    """Yield the rows of the table that is read without scripts."""
    for case in shown.cases:
        why = case["error"]["message"].value if "error" in case else ""
        texts = (case["status"], case["name"], case["file"], case.get("started"), case.get("took"), why)
        yield f"<tr>{''.join(f'<td>{_escaped(each)}</td>' for each in texts)}</tr>"


def _escaped(text: Json) -> str:
    return html.escape(one_line(harmless(str(text or ""))))


def _file(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
