"""Many concurrent runs of one ``Runtime`` in one shared browser."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from runtime import Runtime, Settings, events
from runtime.log.store import file_store
from runtime.runs.runtime import Run
from tests import breadth, counted
from tests.site import Answer, Request, Site, serve

MANY = breadth.of(10, 20)
INTERRUPTED = (3, 7)
RAISING = 5

FLOW = """\
version: 1
name: Run {number}
inputs: {{site: {{type: string}}}}
secrets: [PASSWORD_{number}]
allowed_origins: ["{{{{ inputs.site }}}}"]
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{{{{ inputs.site }}}}/{number}", timeout: 60}}
  - {{id: fill, type: browser_action, action: fill, target: {{label: Password}}, value: "{{{{ secrets.PASSWORD_{number} }}}}"}}
  - {{id: send, type: browser_action, action: click, target: {{role: button, name: Send}}, verify: [{{title: "Done {number}"}}]}}
  - {{id: seen, type: browser_query, query: title}}
  - {{id: said, type: transform, python: "together:meet", args: {{who: "{{{{ seen }}}}"}}}}
output: "{{{{ said }}}}"
"""


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Barrier]:
    """A function at which all uninterrupted runs meet; none continues before the last has arrived."""
    barrier, module = threading.Barrier(MANY - len(INTERRUPTED)), ModuleType("together")

    def meet(who: str) -> str:
        sys.stdout.write(f"{who} is there\n")
        barrier.wait(120)
        return who.upper()

    meet.__module__ = "together"
    module.meet = meet  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "together", module)
    yield barrier
    barrier.abort()


def password(number: int) -> str:
    """The secret of a run."""
    return f"secret-of-run-{number:02}-only"


class Shop:
    """Pages that accept a password; those of the runs to be interrupted do not answer."""

    def __init__(self, site: Site) -> None:
        """Serves the pages."""
        self.taken: dict[int, str] = {}
        self.waiting = [threading.Event() for _ in INTERRUPTED]
        self.over = threading.Event()
        for number in range(MANY):
            site.answer(f"/{number}", lambda request, number=number: self._answer(number, request))

    def _answer(self, number: int, request: Request) -> Answer:
        if number in INTERRUPTED:
            self.waiting[INTERRUPTED.index(number)].set()
            self.over.wait(60)
        if request.method == "POST":
            self.taken[number] = request.body
            return Answer(f"<title>Done {number}</title>")
        form = "<form method=post><label>Password <input name=p type=password></label><button>Send</button></form>"
        return Answer(f"<title>Form</title>{form}")


async def test_many_runs_are_isolated(tmp_path: Path, together: threading.Barrier) -> None:
    """Each run has its own output and secret, despite runs interrupted twice and a raising listener. One browser serves all, no secret is written, locks are released."""
    stdout, received = sys.stdout, list[events.Event]()

    def raises(event: events.Event) -> None:
        received.append(event)
        raise ZeroDivisionError

    browser = counted.browser(tmp_path)
    chosen = Settings(
        home=tmp_path / "home", browser=browser.script, browser_mode="shared", python_modules=("together",)
    )
    secrets = {f"PASSWORD_{number}": password(number) for number in range(MANY)}
    with serve() as site:
        shop = Shop(site)
        async with Runtime(settings=chosen, secrets=secrets) as runtime:
            runs: list[Run] = []
            for number in range(MANY):
                file = tmp_path / f"{number}.yaml"
                file.write_text(FLOW.format(number=number))
                listener = raises if number == RAISING else None
                runs.append(await runtime.start(file, {"site": site.origin}, listener=listener))
            for each in shop.waiting:
                assert await asyncio.to_thread(each.wait, 60)
            for number in INTERRUPTED:
                twice = (runs[number].interrupt(), runs[number].interrupt())
                assert [each.status for each in await asyncio.gather(*twice)] == ["interrupted"] * 2
            ended = [await run.wait() for run in runs]
            assert sys.stdout is stdout
        shop.over.set()
    wanted = [None if number in INTERRUPTED else f"DONE {number}" for number in range(MANY)]
    assert [each.output for each in ended] == wanted
    assert len(received) > len(("open", "fill", "send"))
    assert shop.taken == {n: f"p={password(n)}" for n in range(MANY) if n not in INTERRUPTED}
    store = file_store.Files(tmp_path / "home")
    assert [store.owned(run.id) for run in runs] == [False] * MANY
    written = [each.read_bytes() for each in (tmp_path / "home").rglob("*") if each.is_file()]
    assert not any(password(number).encode() in each for each in written for number in range(MANY))
    (process,) = browser.processes
    assert not psutil.pid_exists(process)
