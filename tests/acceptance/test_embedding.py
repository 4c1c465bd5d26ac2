"""The web service of docs/embedding.md, verbatim, with three concurrent runs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.log.store import file_store
from tests.site import Answer, Request, serve

PAGE = Path("docs/embedding.md")
SECRET = "a-secret-password"

ASKS = """\
version: 1
nodes:
  - {id: who, type: context, ask: {name: {question: Who approves?}}}
  - {id: said, type: transform, expr: "approved by {{ who.name }}"}
output: "{{ said }}"
"""
LOGIN = """\
version: 1
inputs: {site: {type: string}}
secrets: [SHOP_PASSWORD]
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/"}
  - {id: fill, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
  - {id: seen, type: browser_query, query: title}
output: "{{ seen }}"
"""
WAITS = """\
version: 1
inputs: {site: {type: string}}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/held", timeout: 60}
"""


class Service:
    """The service, at work."""

    def __init__(self, port: int) -> None:
        """It listens on this port of loopback."""
        self._base = f"http://127.0.0.1:{port}"

    def ask(self, path: str, given: object = None, **headers: str) -> Any:
        """Send a request; returns the JSON of the response. Raises HTTPError."""
        with self._asked(path, given, headers) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def follow(self, run: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """The entries of a run's log, as they come."""
        with self._asked(f"/runs/{run}", None, {"Last-Event-ID": str(after)}) as answer:
            number = 0
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    number = int(value)
                elif name == "data":
                    entry = json.loads(value)
                    assert entry["seq"] == number
                    yield entry

    def _asked(self, path: str, given: object, headers: dict[str, str]) -> Any:
        data = json.dumps(given).encode() if given is not None else None
        request = urllib.request.Request(self._base + path, data, headers)
        return urllib.request.urlopen(request, timeout=60)


@contextlib.contextmanager
def served(folder: Path) -> Generator[Service]:
    """The service of the page in its own process, until the block ends."""
    blocks = re.findall(r'```python title="service.py"\n(.*?)```', PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 1
    (folder / "service.py").write_text(blocks[0])
    environment = {**os.environ, "SHOP_PASSWORD": SECRET, "PYTHONPATH": f"{folder}:{Path.cwd()}"}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-m", "uvicorn", "service:app", "--fd", str(listening.fileno())]
        process = subprocess.Popen(
            command, cwd=folder, env=environment, pass_fds=[listening.fileno()], stderr=subprocess.PIPE, text=True
        )
        port = listening.getsockname()[1]
    try:
        yield Service(port)
    finally:
        process.send_signal(signal.SIGTERM)
        _out, said = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM), said
    assert "Traceback" not in said


def test_the_service_of_the_page_carries_runs(tmp_path: Path) -> None:
    """Three runs are concurrent: one is answered and passes, one signs in and shows no secret, one is interrupted. Each is followed from its reader's cursor."""
    (tmp_path / "flows").mkdir()
    for name, text in (("asks", ASKS), ("login", LOGIN), ("waits", WAITS)):
        (tmp_path / "flows" / f"{name}.yaml").write_text(text)
    with serve() as site, served(tmp_path) as service:
        site.answer("/", lambda _request: Answer("<title>Shop</title><label>Password <input type=password></label>"))
        arrived, over = threading.Event(), threading.Event()

        def hold(_request: Request) -> Answer:
            arrived.set()
            over.wait(60)
            return Answer("late")

        site.answer("/held", hold)
        asks = service.ask("/flows/asks", {})["run"]
        waits = service.ask("/flows/waits", {"site": site.origin})["run"]
        login = service.ask("/flows/login", {"site": site.origin})["run"]

        seen = [*service.follow(login)]
        assert (seen[-1]["name"], seen[-1]["data"]["status"]) == ("ended", "passed")
        assert [entry["seq"] for entry in seen] == [*range(1, len(seen) + 1)]
        assert SECRET not in json.dumps(seen)

        begun = [*service.follow(asks)]
        assert [entry["name"] for entry in begun[-2:]] == ["paused", "ended"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            service.ask(f"/runs/{asks}/answer", {"nam": "Ada"})
        assert refused.value.code == 409
        assert json.loads(refused.value.read())["code"] == "unknown-answer"
        service.ask(f"/runs/{asks}/answer", {"name": "Ada"})
        rest = [*service.follow(asks, begun[-1]["seq"])]
        assert rest[0]["seq"] == begun[-1]["seq"] + 1
        assert rest[-1]["data"]["status"] == "passed"

        assert arrived.wait(60)
        assert service.ask(f"/runs/{waits}/interrupt", {}) == {"status": "interrupted"}
        with pytest.raises(urllib.error.HTTPError):
            service.ask("/runs/NOBODY")
        arrived.clear()
        still = service.ask("/flows/waits", {"site": site.origin})["run"]
        assert arrived.wait(60)
    over.set()
    store = file_store.Files(tmp_path / "runs")
    assert [store.owned(run) for run in store.ids()] == [False] * 4
    last = store.read(still).entries[-1]
    assert last.model_dump()["data"]["status"] == "interrupted"
