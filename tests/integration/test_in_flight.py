"""Kills with something in flight: a dialog, a navigation, a download, a file chooser, a popup.

The engine is a separate process that dies by SIGKILL. The resumed run finds its browser or none, and in either case
it ends with every action carried out once.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

from runtime import events
from runtime.runs import start as start_run
from runtime.settings import settings
from runtime.workspace import host
from tests import browsers, site
from tests.command import Project, warm_server
from tests.kills import flow, mortal
from tests.terminal import still_running

pytestmark = pytest.mark.full_browser

CONFIRM = """
    confirm:
      settle: 1
      nodes:
        - {id: look, type: browser_action, action: goto, url: "{{ inputs.base }}/actions"}
        - {id: count, type: browser_query, query: text, target: {test_id: count}, as: number}
      done: "{{ count > 0 }}"
"""

HEAD = """
version: 1
name: In flight
inputs: {base: {type: string}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/start"}
"""

LAST = """
  - {id: open_again, type: browser_action, action: goto, url: "{{ inputs.base }}/actions"}
  - {id: actions, type: browser_query, query: text, target: {test_id: count}, as: number}
output: "{{ actions }}"
"""

ACTION = "fetch('/action', {method: 'POST'})"


@dataclasses.dataclass(frozen=True)
class Case:
    """One kind of operation in flight."""

    start: str
    """The page that the run begins on."""
    nodes: str
    point: str = ""
    """The crash point at which the engine dies."""
    stalled: str = ""
    """Or the path whose answer the site stalls: its request kills the engine, and a second request releases both."""
    alone: bool = False
    """The answer is released as soon as the engine is dead, instead."""
    actions: int = 1
    stuck: bool = False
    """The run's tab hangs afterwards."""


CASES = {
    # The dialog is open; its answer is logged as a call, and was not given.
    "confirm": Case(
        f"<button onclick=\"if (confirm('Sure?')) {ACTION}.then(() => document.title = 'Done')\">Ask</button>",
        """
  - {id: ask, type: browser_action, action: click, target: {role: button, name: Ask}, effect: idempotent}
  - id: yes
    type: browser_action
    action: dialog
    answer: accept
    verify: [{title: Done}]
"""
        + CONFIRM,
        point="call-synced",
        stuck=True,
    ),
    # The same with the browser's own dialog before leaving a page with typed text.
    "beforeunload": Case(
        "<label>Name<input></label><script>onbeforeunload = (event) => event.preventDefault()</script>"
        "<a href=/leave>Leave</a>",
        """
  - {id: name, type: browser_action, action: fill, target: {label: Name}, value: Ada}
  - {id: ask, type: browser_action, action: click, target: {role: link, name: Leave}, effect: idempotent}
  - id: leave
    type: browser_action
    action: dialog
    answer: accept
    verify: [{url: "**/leave"}]
"""
        + CONFIRM,
        point="call-synced",
        stuck=True,
    ),
    # A form and the page that answers it are under way.
    "submit": Case(
        "<form method=post action=/action><button>Send</button></form>",
        """
  - id: send
    type: browser_action
    action: click
    target: {role: button, name: Send}
    verify: [{url: "**/action"}]
"""
        + CONFIRM,
        stalled="/action",
    ),
    "navigation": Case(
        "",
        """
  - {id: slow, type: browser_action, action: goto, url: "{{ inputs.base }}/slow"}
  - {id: arrived, type: browser_query, query: assert, rules: [{title: Slow}]}
""",
        stalled="/slow",
        actions=0,
    ),
    # Half of the file has arrived.
    "download": Case(
        "<a href=/file download>File</a>",
        """
  - {id: file, type: browser_action, action: download, target: {role: link, name: File}}
  - {id: whole, type: browser_query, query: assert, rules: [{expr: "{{ file.size == 8 }}"}]}
""",
        stalled="/file",
        actions=0,
    ),
    # The page opens a file chooser after the engine has died.
    "file chooser": Case(
        f"<button>Choose</button><input type=file hidden onchange=\"{ACTION}.then(() => document.title = 'Done')\"><script>"
        "document.querySelector('button').onclick = () => {"
        " const request = new XMLHttpRequest(); request.open('POST', '/choosing', false); request.send();"
        " document.querySelector('input').click(); }</script>",
        """
  - id: choose
    type: browser_action
    action: upload
    target: {role: button, name: Choose}
    files: paper.txt
    verify: [{title: Done}]
"""
        + CONFIRM,
        stalled="/choosing",
        alone=True,
    ),
    "popup": Case(
        "<a href=/slow target=_blank>Open</a>",
        """
  - {id: pop, type: browser_action, action: click, target: {role: link, name: Open}, opens: other, effect: idempotent}
  - {id: there, type: browser_query, query: assert, tab: other, rules: [{title: Slow}]}
""",
        stalled="/slow",
        actions=0,
    ),
}


class World:
    """A site, a run on it, and the means to kill and resume it."""

    def __init__(self, served: site.Site, folder: Path, case: Case) -> None:
        self.site = served
        self.folder = folder
        self.home = folder / ".runops"
        self.case = case
        self.actions = 0
        self.asked = threading.Semaphore(0)
        """Counts the requests for the stalled path."""
        self.free = threading.Event()
        served.page("/start", f"<!doctype html><title>Start</title>{case.start}")
        served.answer("/action", self._action)
        served.answer("/leave", self._action)
        served.answer("/actions", lambda _request: site.Answer(f"<p data-testid=count>{self.actions}</p>"))
        served.answer("/slow", lambda _request: self._stalled_answer("<title>Slow</title>", "/slow"))
        served.answer("/choosing", lambda _request: self._stalled_answer("", "/choosing"))
        served.answer("/file", lambda _request: site.Answer("the file", midway=lambda: self._stall("/file")))
        (folder / "flow.yaml").write_text(HEAD + case.nodes + LAST)
        (folder / "paper.txt").write_text("a paper")

    def _action(self, request: site.Request) -> site.Answer:
        self._stall(request.path)
        self.actions += 1
        return site.Answer("<title>Done</title>")

    def _stalled_answer(self, body: str, path: str) -> site.Answer:
        self._stall(path)
        return site.Answer(body)

    def _stall(self, path: str) -> None:
        if path == self.case.stalled:
            self.asked.release()
            self.free.wait(60)

    def kill_in_flight(self) -> None:
        """Runs an engine until it has died as the case says."""
        if warm_server() is None:
            pytest.skip("this system cannot fork commands")
        fate = mortal.Fate(str(self.folder / "record"), [(flow.START, self.case.point, 1)])
        project = Project(self.folder, RUNOPS_LINGER="60", **fate.environment())
        with project.start("run", "flow.yaml", "-i", f"base={self.site.origin}") as engine:
            if self.case.stalled:
                assert self.asked.acquire(timeout=60)
                engine.send_signal(signal.SIGKILL)
            _out, said = engine.communicate(timeout=60)
        assert engine.returncode == -signal.SIGKILL, said

    def browser(self) -> psutil.Process:
        """The remaining Chromium."""
        (file,) = self.home.glob("private/*/browser.json")
        return psutil.Process(json.loads(file.read_text())["chromium"])

    def titles(self) -> list[str]:
        """The titles of the remaining Chromium's tabs."""
        (file,) = self.home.glob("private/*/browser.json")
        host = json.loads(file.read_text())["address"].split("/")[2]
        with urllib.request.urlopen(f"http://{host}/json/list", timeout=10) as answer:
            return [each["title"] for each in json.load(answer)]

    async def resume(self) -> tuple[events.RunEnded, list[str]]:
        """Resumes the run, and returns its end and the messages."""
        said: list[str] = []

        def listen(event: events.Event) -> None:
            if isinstance(event, events.Said):
                said.append(event.text)

        (conversation,) = self.home.glob("conversations/*.jsonl")
        chosen = settings.load(home=self.home, linger=0.0)
        return await start_run.resume_run(conversation.stem, host.of_command(chosen), listen), said


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[[Case], World]]:
    """Makes the world of a case, and kills the remaining browser."""
    made: list[World] = []
    with site.serve() as served:

        def make(case: Case) -> World:
            made.append(World(served, tmp_path, case))
            return made[0]

        try:
            yield make
        finally:
            for each in made:
                each.free.set()
                with contextlib.suppress(psutil.Error, ValueError):
                    each.browser().kill()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("chromium", ["survives", "gone"])
@pytest.mark.parametrize("name", CASES)
async def test_killed_in_flight(
    name: str, chromium: Literal["survives", "gone"], world: Callable[[Case], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was in flight, and with or without its browser, the resumed run passes, and no action is done twice."""
    there = world(CASES[name])
    monkeypatch.chdir(there.folder)
    there.kill_in_flight()
    if chromium == "gone":
        browser = there.browser()
        browser.kill()
        assert still_running([browser]) == []
    # A stalled answer stays stalled until the next engine requests it too.
    if there.case.alone:
        there.free.set()
    resuming = asyncio.ensure_future(there.resume())
    if there.case.stalled and not there.case.alone:
        await until_asked_again(there, resuming)
    ended, said = await resuming
    assert (ended.status, ended.output) == ("passed", there.case.actions), ended
    assert there.actions == there.case.actions
    stuck = chromium == "survives" and there.case.stuck
    assert any("does not answer: it waits in a dialog" in text for text in said) is stuck, said
    assert any("the browser is still there" in text for text in said) is (chromium == "survives" and not stuck), said


async def until_asked_again(there: World, resuming: asyncio.Future[Any]) -> None:
    """Releases the stalled answers once the next engine repeats the request, or asks if the action happened."""
    before = len(there.site.arrived("/actions"))

    def asked() -> bool:
        again = there.asked.acquire(blocking=False) or len(there.site.arrived("/actions")) > before
        return again or resuming.done()

    await browsers.until(asked, 60)
    there.free.set()


@pytest.mark.drawn(0)
async def test_the_answer_was_an_error(world: Callable[[Case], World], monkeypatch: pytest.MonkeyPatch) -> None:
    """If the action was not done and its tab shows a browser error, the run continues from its checkpoint and performs it."""
    there = world(dataclasses.replace(CASES["submit"], stalled="/lost"))

    def lost(request: site.Request) -> site.Answer:
        there._stall("/lost")
        return site.Answer(drop=True)

    there.site.answer("/action", lost)
    monkeypatch.chdir(there.folder)
    there.kill_in_flight()
    there.free.set()
    # The browser retries by itself. Once it has given up, the title is the site's address.
    await browsers.until(lambda: "127.0.0.1" in there.titles(), 30)
    there.site.answer("/action", there._action)
    ended, said = await there.resume()
    assert (ended.status, ended.output) == ("passed", 1), ended
    assert there.actions == 1
    assert any("shows an error of the browser's" in text for text in said), said


async def test_an_unknown_outcome_pauses(world: Callable[[Case], World], monkeypatch: pytest.MonkeyPatch) -> None:
    """A tab stuck in a dialog that may have been answered, without `confirm`, pauses the run, and nothing is done."""
    case = CASES["confirm"]
    there = world(dataclasses.replace(case, nodes=case.nodes.replace(CONFIRM, "")))
    monkeypatch.chdir(there.folder)
    there.kill_in_flight()
    ended, said = await there.resume()
    assert (ended.status, ended.exit) == ("paused", 4)
    assert ended.question is not None
    assert ended.question["reason"] == "outcome-unknown"
    assert there.actions == 0
    assert any("does not answer: it waits in a dialog" in text for text in said), said
