"""The shop as a separate process, for tests: forked on a free port, killed and started again with its data.

with Shop.start(tmp_path, orders=3, paid=0) as shop:
    shop.switch("hold", path="/orders/1001/pay", method="POST")
    ...
    shop.wait("held")
    shop.kill()
    shop.restart()
    assert shop.ledger("payment") == []
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlencode

from tests import warm

ROOT = Path(__file__).parent.parent
START_TIMEOUT = 20.0
RESTART_TIMEOUT = 10.0
PORT_TAKEN = 3

SwitchKind = Literal["delay", "break", "drop", "hold", "logout"]
Moment = Literal["before", "after"]


@dataclass
class Shop:
    """A running shop, or one that was stopped and can be restarted. Create one with `Shop.start`."""

    folder: Path
    """Contains its file `shop.sqlite`, and its log `shop.log`."""
    password: str
    """The password of the user `admin`."""
    arguments: tuple[str, ...]
    port: int = 0
    _process: subprocess.Popen[str] | warm.Forked | None = field(default=None, repr=False)
    _ends: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        orders: int = 12,
        paid: int | None = None,
        page_size: int = 10,
        password: str = "correct-horse",
        port: int = 0,
    ) -> Self:
        """Start a shop that keeps its data in `folder`, by default on a free port.

        `paid` of the `orders` are paid from the start, by default a quarter (rounded down).
        """
        arguments = ["--orders", str(orders), "--page-size", str(page_size), "--password", password]
        if paid is not None:
            arguments += ["--paid", str(paid)]
        folder.mkdir(parents=True, exist_ok=True)
        shop = cls(folder, password, tuple(arguments), port)
        shop.restart()
        return shop

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def url(self) -> str:
        """Like `http://127.0.0.1:41234`, without a slash at its end; the same after a restart."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def db(self) -> Path:
        """The SQLite file."""
        return self.folder / "shop.sqlite"

    @property
    def log(self) -> str:
        """The shop's stderr so far: a line per request."""
        return (self.folder / "shop.log").read_text()

    @property
    def pid(self) -> int:
        """The process id of the running shop."""
        return self._running().pid

    # Events

    def ledger(self, kind: str | None = None, subject: str | None = None) -> list[dict[str, Any]]:
        """The rows of a kind and subject, oldest first: id, time, request_id, kind, subject, detail.

        Kinds: payment, note, decision, assignment, refund, document, invoice, price, delivery_draft, delivery,
        gate_reserved, gate_released, label, cart, checkout, receipt, form, registration_draft, registration, sign_in, sign_out.
        """
        return self.api("GET", "/_ledger" + _query(kind=kind, subject=subject))

    def orders(self) -> list[dict[str, Any]]:
        """All orders: number (a text), customer, total (a text like 248.50), status (paid, unpaid), payments (a count)."""
        return self.api("GET", "/_orders")

    def set_price(self, article: str, price: str) -> dict[str, str]:
        """Give a product another price, a text like 9.90; returns all prices by article."""
        return self.api("POST", "/_price", {"article": article, "price": price})

    # Misbehaviour

    def switch(
        self,
        kind: SwitchKind,
        path: str = ".*",
        *,
        method: Literal["GET", "POST"] | None = None,
        times: int | None = 1,
        skip: int = 0,
        ms: int = 0,
        moment: Moment | None = None,
    ) -> int:
        """Apply a switch to the next requests with that method whose whole path matches; returns its id.

        `times` of them, after `skip` that pass; `None`: until `clear`. See `workflows.shop.switches.Switch`.
        """
        switch = {
            "kind": kind,
            "path": path,
            "method": method,
            "times": times,
            "skip": skip,
            "ms": ms,
            **({"moment": moment} if moment is not None else {}),
        }
        return self.api("POST", "/_switch", switch)["id"]

    def switches(self) -> list[dict[str, Any]]:
        """The switches still in force, with their remaining counts."""
        return self.api("GET", "/_switches")["switches"]

    def held(self) -> list[dict[str, Any]]:
        """The requests held back now: id, switch, method, path, moment, since."""
        return self.api("GET", "/_switches")["held"]

    def wait(
        self,
        event: Literal["held", "ledger"] = "held",
        *,
        count: int = 1,
        path: str | None = None,
        kind: str | None = None,
        subject: str | None = None,
        timeout: int = 30,
    ) -> list[dict[str, Any]]:
        """Wait until `count` requests are held back (with that `path`), or that many rows exist (of `kind` and `subject`).

        Returns them. Raises `TimeoutError` after `timeout` seconds.
        """
        query = _query(event=event, count=count, path=path, kind=kind, subject=subject, timeout=timeout)
        answer = self.api("GET", f"/_wait{query}", timeout=timeout + 10)
        if not answer["happened"]:
            raise TimeoutError(
                f"after {timeout} s: {len(answer['rows'])} of {count} {event}; the shop's log:\n{self.log}"
            )
        return answer["rows"]

    def wait_for_request(self, line: str, timeout: float = 30.0) -> None:
        """Wait until the shop's log has a request like `GET /orders/1001`. Raises `TimeoutError`."""
        until = time.monotonic() + timeout
        while line not in self.log:
            if time.monotonic() > until:
                raise TimeoutError(f"no {line} in {timeout:g} s; the shop's log:\n{self.log}")
            time.sleep(0.05)

    def release(self, *, go_on: bool = True) -> int:
        """Let held requests continue, or drop them unanswered; returns their number."""
        return self.api("POST", "/_release", {"go_on": go_on})["released"]

    def clear(self) -> None:
        """Remove all switches and let held requests continue."""
        self.api("DELETE", "/_switches")
        self.release()

    def mirror(self, text: str | None = None) -> None:
        """Let `/mirror/<place>` show that text; `None`: the last password typed."""
        self.api("POST", "/_mirror", {"source": "password"} if text is None else {"source": "text", "text": text})

    # The process

    def kill(self) -> None:
        """Kill it (SIGKILL), as a crash would."""
        process = self._running()
        process.kill()
        self._reap(process)

    def end(self) -> int | None:
        """Stop it in order, if it runs; returns its exit code."""
        if self._process is None:
            return None
        process = self._process
        process.terminate()
        return self._reap(process)

    def restart(self) -> None:
        """Restart it on the same port with its data; a running one is stopped first."""
        self.end()
        until = time.monotonic() + RESTART_TIMEOUT
        # A free port may be used briefly by an outgoing connection while the shop is closed.
        while (code := self._launch()) == PORT_TAKEN and self.port and time.monotonic() < until:
            time.sleep(0.05)
        if code is not None:
            raise RuntimeError(f"the shop ended with {code}:\n{self.log}")

    def api(self, method: str, path: str, body: object = None, *, timeout: float = 20) -> Any:
        """Call the JSON interface; raises `RuntimeError` with the shop's own message if it refuses."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"{method} {path}: {error.read().decode()}") from error

    def _launch(self) -> int | None:
        arguments = ["--port", str(self.port), "--db", str(self.db), "--until-eof", *self.arguments]
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            log = theirs.enter_context((self.folder / "shop.log").open("a"))
            (asked, ask), (reading, writing) = os.pipe(), os.pipe()
            # Kept open: the shop ends when this process does, in whatever way.
            ours.callback(os.close, ask)
            said = ours.enter_context(os.fdopen(reading, encoding="utf-8"))
            theirs.callback(os.close, asked)
            theirs.callback(os.close, writing)
            self._process = process = _begin((asked, writing, log.fileno()), arguments)
            self._ends = ours.pop_all()
        ready, _, _ = select.select([said], [], [], START_TIMEOUT)
        line = said.readline() if ready else ""
        if not line:
            if not ready:
                process.kill()
            return self._reap(process)
        # The third word of the line is the address.
        self.port = int(line.split()[2].rpartition(":")[2])
        return None

    def _running(self) -> subprocess.Popen[str] | warm.Forked:
        if self._process is None:
            raise RuntimeError("the shop does not run")
        return self._process

    def _reap(self, process: subprocess.Popen[str] | warm.Forked) -> int:
        self._process = None
        try:
            code = process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        with self._ends, process:
            return code


def _begin(files: tuple[int, int, int], arguments: list[str]) -> subprocess.Popen[str] | warm.Forked:
    """Start a shop with these as stdin, stdout and stderr."""
    if (server := warm.server()) is not None:
        return server.start_on(files, arguments, ROOT, {}, program=warm.SHOP)
    command = [sys.executable, "-m", "workflows.shop", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=files[0], stdout=files[1], stderr=files[2], text=True)


def _query(**fields: object) -> str:
    given = {name: value for name, value in fields.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
