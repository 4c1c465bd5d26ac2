"""The demo: a shop on a free port, and a workflow that pays its open orders and can be killed half-way.

`make demo` runs it, `make demo-resume` resumes its run.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / ".runops" / "demo"
PASSWORD = "correct-horse"  # noqa: S105 — the made-up shop's made-up password
PAY_MILLISECONDS = 800
"""Duration of each payment in the shop: long enough to kill the run within one."""
RESUME = "make demo-resume"


def _wait_for_the_run(_number: int, _frame: object) -> None:
    """Ignore Ctrl-C: the run receives it, too, and needs a moment to log its state."""


def main() -> int:
    """Run the demo, or with ``--resume`` the last one again; return the exit code of ``runops``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resume", action="store_true", help="continue with the run that the last demo left")
    resuming = parser.parse_args().resume
    signal.signal(signal.SIGINT, _wait_for_the_run)
    if resuming and not (STATE / "shop.json").exists():
        sys.stderr.write("there is no demo to continue with: type `make demo` first\n")
        return 2
    with shop(fresh=not resuming) as site:
        if resuming:
            code = resume(site)
        else:
            say(f"the shop is on {site.url}; kill this at any time and continue with:  {RESUME}")
            code = runops("run", "workflows/pay_orders.yaml", "-i", f"base_url={site.url}")
        report(site, code)
    return code


@dataclasses.dataclass(frozen=True, slots=True)
class Shop:
    """The running shop of the demo."""

    url: str
    port: int

    def payments(self) -> list[str]:
        """Return the order number of each payment in the shop's ledger."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection):
            connection.request("GET", "/_ledger?kind=payment")
            return [row["subject"] for row in json.load(connection.getresponse())]


@contextlib.contextmanager
def shop(*, fresh: bool) -> Generator[Shop]:
    """Serve a new shop on a free port, or the last one with its data on its old port. It ends with this process, however that ends."""
    STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = STATE / "shop.json"
    port = 0 if fresh else int(json.loads(known.read_text())["port"])
    if fresh:
        for file in STATE.glob("shop.*"):
            file.unlink()
    slow = json.dumps(
        {"kind": "delay", "path": "/orders/.*/pay", "method": "POST", "ms": PAY_MILLISECONDS, "times": None}
    )
    arguments = ["--port", str(port), "--db", str(STATE / "shop.db"), "--password", PASSWORD, "--quiet", "--until-eof"]
    process = subprocess.Popen(
        [sys.executable, "-m", "workflows.shop", *arguments, *(["--switch", slow] if fresh else [])],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = next((word for word in line.split() if word.startswith("http://")), None)
        if url is None:
            raise SystemExit(process.wait(timeout=10))
        port = int(url.rstrip("/").rpartition(":")[2])
        known.write_text(json.dumps({"port": port}))
        yield Shop(url.rstrip("/"), port)
    finally:
        process.terminate()
        process.wait(timeout=10)


def resume(site: Shop) -> int:
    """Resume the last run on this shop."""
    listed = subprocess.run(command("runs", "--json"), cwd=ROOT, capture_output=True, text=True, check=True)
    runs = [run for run in json.loads(listed.stdout)["runs"] if run["workflow"] == "Pay the open orders"]
    if not runs:
        sys.stderr.write("the demo left no run: type `make demo`\n")
        return 2
    say(f"the shop is on {site.url} again, with its data: {len(site.payments())} payments so far")
    say(f"runops resume {runs[-1]['id']}")
    return runops("resume", runs[-1]["id"])


def runops(*arguments: str) -> int:
    """Run the command in this terminal; return its exit code."""
    return subprocess.run(
        command(*arguments), cwd=ROOT, env={**os.environ, "SHOP_PASSWORD": PASSWORD}, check=False
    ).returncode


def command(*arguments: str) -> list[str]:
    """Return the installed command with arguments."""
    return [str(Path(sys.executable).parent / "runops"), *arguments]


def report(site: Shop, code: int) -> None:
    """Print what was done, where the log is, and the next command."""
    payments = site.payments()
    twice = sorted({number for number in payments if payments.count(number) > 1})
    say("")
    say(
        f"the shop's ledger has {len(payments)} payments"
        + (f", {', '.join(twice)} TWICE" if twice else ", none of them twice")
    )
    say(f"the log is in {(ROOT / '.runops' / 'conversations').relative_to(ROOT)}")
    if code == 0:
        say("next:  .venv/bin/runops show last   every step of the run")
        say("       make test                    the tests; docs/first-workflow.md leads to a workflow of your own")
    else:
        say(f"next:  {RESUME}   (it starts the shop again, and then continues with the run)")


def say(text: str) -> None:
    """Print one line for the person."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
