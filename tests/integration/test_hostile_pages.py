"""Pages with invalid text and replaced built-ins: a run on them ends as its workflow says, and its log is readable."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nodes.values import sound
from runtime.log import entries
from tests import browsers, hostile, site
from tests.resumes.trial import Process

pytestmark = pytest.mark.anyio

FLOW = """version: 1
name: Read and act on a hostile page, then fail
inputs: {base_url: {type: string}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/"}
  - {id: said, type: browser_query, query: text, target: {css: "#said"}}
  - {id: mark, type: browser_query, query: attribute, attribute: data-said, target: {css: "#said"}}
  - {id: held, type: browser_query, query: value, target: {css: "#field"}}
  - {id: state, type: browser_query, query: state, target: {css: "#field"}}
  - {id: rows, type: browser_query, query: extract, target: {css: "#rows li"}, fields: {text: {}, mark: {attribute: data-said}}}
  - {id: grid, type: browser_query, query: table, target: {css: "#grid"}, on_error: continue}
  - {id: count, type: browser_query, query: count, target: {css: "#rows li"}}
  - {id: shown, type: browser_query, query: observation, on_error: continue}
  - {id: down, type: browser_action, action: scroll, to: bottom, on_error: continue}
  - {id: type, type: browser_action, action: fill, target: {css: "#field"}, value: typed}
  - {id: pick, type: browser_action, action: select, target: {css: "#list"}, value: b}
  - {id: send, type: browser_action, action: click, target: {css: "#send"}, verify: [{text: sent, target: {css: "#done"}}]}
  - {id: typed, type: browser_query, query: value, target: {css: "#field"}}
  - {id: picture, type: browser_action, action: screenshot, save_as: page.png, on_error: continue}
  - {id: ask, type: browser_action, action: click, target: {css: "#ask"}, effect: read}
  - {id: asked, type: browser_action, action: dialog, answer: accept}
  - {id: file, type: browser_action, action: download, target: {css: "#file"}, on_error: continue}
  - {id: passed, type: browser_action, action: click, target: {css: "#nowhere"}, timeout: 0.5, on_error: continue}
  - id: caught
    type: handle
    try: [{id: never, type: browser_query, query: assert, rules: [{text: never said, target: {css: "#said"}}], timeout: 0.5}]
    catch: [{id: why, type: transform, expr: "{{ error.code }}"}]
  - id: titled
    type: handle
    try: [{id: not_so, type: browser_query, query: assert, rules: [{title: never so}], timeout: 0.5}]
    catch: [{id: titled_why, type: transform, expr: "{{ error.code }}"}]
  - {id: plain, type: browser_action, action: goto, url: "{{ inputs.base_url }}/plain"}
  - {id: calm, type: browser_query, query: text, target: {css: "#calm"}}
  - {id: again, type: browser_action, action: goto, url: "{{ inputs.base_url }}/"}
  - {id: last, type: browser_query, query: text, target: {css: "#said", has_text: nowhere at all}, timeout: 0.5}
"""

AT_ONCE = 3


@pytest.fixture(scope="module")
async def stays(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[None]:
    """A browser that all runs share."""
    async with browsers.opened(tmp_path_factory.mktemp("hostile"), mode="shared"):
        yield


async def end_of(number: int, home: Path) -> list[str]:
    """Runs and resumes the workflow on a drawn page, and lists the differences from the expected end."""
    page = hostile.draw(number)
    with site.serve() as served:
        hostile.serve(served, page)
        process = Process(home, FLOW, inputs={"base_url": served.origin})
        wrong: list[str] = []
        for begins in (True, False):
            life = "run" if begins else "resume"
            try:
                ended = await (process.start() if begins else process.resume())
            finally:
                await process.end_browsers()
            error: dict[str, Any] = ended.error or {}
            if (ended.exit, ended.path, error.get("code")) != (1, "last", "target-not-found"):
                wrong.append(f"{life} ended {ended.exit} at {ended.path}: {error or ended.question}")
                break
        wrong += _differences(process, page)
        if len(served.arrived("/sent")) != 1:
            wrong.append(f"it sent {len(served.arrived('/sent'))} times")
    return [f"page {number} ({page!r:.300}): {each}" for each in wrong]


def _differences(process: Process, page: hostile.Hostile) -> list[str]:
    """The differences between the log and the page."""
    lines = process.store.conversation_file(process.id).read_bytes().splitlines(keepends=True)
    for each in lines:
        entries.decode(each)
    sure, folded = sound(page.text), hostile.folded(page.text)
    values: dict[str, Any] = {
        "said": folded,
        "mark": sure,
        "rows": [{"text": folded, "mark": sure}] * 2,
        "count": 2,
        "typed": "typed",
        "caught/catch/why": "assert-failed",
        "titled/catch/titled_why": "assert-failed",
        "calm": "calm",
    }
    wrong = [
        f"{path} was {json.dumps(seen)[:300]}, and not {json.dumps(value)[:300]}"
        for path, value in values.items()
        if (seen := _value(process, path)) != value
    ]
    for path in ("grid", "shown", "down", "picture", "file", "passed"):
        last = process.history.last(path)
        code = last.result.error["code"] if last and last.result and last.result.error else "ok"
        right = ["target-not-found" if path == "passed" else "ok"]
        # Where elements clobber document properties, Playwright cannot read the page either.
        if code not in [*right, *(["page-unreadable", "timeout"] if page.clobbers else [])]:
            wrong.append(f"{path} ended {code}")
    return wrong


def _value(process: Process, path: str) -> Any:
    last = process.history.last(path)
    if last is None or last.result is None:
        return None
    entry = last.result
    return json.loads(process.store.blob(entry.blob.sha256)) if entry.blob is not None else entry.value


@pytest.fixture(scope="module")
async def ends(
    stays: None, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[int, asyncio.Task[list[str]]]:
    """The selected runs, some in parallel because each mostly waits."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> list[str]:
        async with free:
            return await end_of(number, tmp_path_factory.mktemp("run"))

    items: list[Any] = [
        each for each in request.session.items if isinstance(each, pytest.Function) and each.path == request.path
    ]
    drawn = (each.callspec.params for each in items if hasattr(each, "callspec"))
    numbers: list[int] = [params["number"] for params in drawn if "number" in params]
    return {number: asyncio.create_task(one(number)) for number in numbers}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("number", range(200))
async def test_a_run_on_a_hostile_page_ends_as_its_workflow_says(
    ends: dict[int, asyncio.Task[list[str]]], number: int
) -> None:
    """A run that reads, acts, fails and is resumed has the page's texts, sends once, and ends with its own error."""
    wrong = await ends[number]
    assert not wrong, "\n".join(wrong)


BUSY = """<!doctype html><title>Busy</title><button onclick="this.disabled = true; setTimeout(() => { ENDLESS }, 500)">Begin</button>"""

LEAVES = """version: 1
name: Leave a page that answers nothing
inputs: {base_url: {type: string}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/busy"}
  - {id: begin, type: browser_action, action: click, target: {role: button, name: Begin}, effect: read}
  - id: stuck
    type: handle
    try: [{id: never, type: browser_query, query: text, target: {css: "#come"}, timeout: 1}]
    catch:
      - {id: why, type: transform, expr: "{{ error.code }}"}
      - {id: leave, type: browser_action, action: goto, url: "{{ inputs.base_url }}/plain", timeout: 3}
  - {id: calm, type: browser_query, query: text, target: {css: "#calm"}}
  - {id: tabs, type: browser_action, action: click, target: {css: "#calm"}}
output: {calm: "{{ calm }}"}
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "endless",
    [
        "for (;;) {}",
        "setInterval(() => { for (;;) {} })",
        "const ask = new XMLHttpRequest(); ask.open(`GET`, `/never`, false); ask.send()",
    ],
    ids=["loop", "timer", "request"],
)
async def test_a_goto_leaves_a_tab_that_hangs(stays: None, tmp_path: Path, endless: str) -> None:
    """On a page that blocks its tab a step fails, and a `goto` in its `catch` continues in a new tab, with a flag."""
    over = threading.Event()

    def never(_request: site.Request) -> site.Answer:
        over.wait(30)
        return site.Answer("late")

    with site.serve() as served:
        served.page("/busy", BUSY.replace("ENDLESS", endless))
        served.page("/plain", "<!doctype html><title>Plain</title><p id=calm onclick=this.className=`clicked`>calm</p>")
        served.answer("/never", never)
        process = Process(tmp_path, LEAVES, inputs={"base_url": served.origin})
        try:
            ended = await process.start()
        finally:
            over.set()
            await process.end_browsers()
    assert (ended.exit, ended.output) == (0, {"calm": "calm"}), ended
    assert [(each["path"], each["code"]) for each in ended.flags] == [("stuck/catch/leave", "tab-replaced")]
    assert _value(process, "stuck/catch/why") == "timeout"
