"""Watcher: the parent process of Chromium. It ends Chromium when no engine has held it for ``linger`` seconds.

A separate program, run as ``python -I -S watcher.py`` with the standard library only. It knows no run and holds no lock. An
engine holds Chromium by an open connection; the kernel closes the connection of a killed engine. As Chromium's parent, the
watcher knows that the process id it kills was not reused.

It reads one JSON object from its standard input:

    command      list of Chromium's executable and switches
    environment  map of environment variables
    log          file for Chromium's standard error
    remove       list of folders to remove after Chromium's end
    token        what an engine sends first
    linger       seconds

It writes one line of JSON to its standard output, then closes both: {"watcher": pid, "port": its port on loopback,
"chromium": pid}, or {"error": "…"}. Each connection then sends lines of JSON, first {"token": "…"}, and gets a line for each:

    {"linger": seconds}   how long to wait from now on           {"ok": true}
    {"end": true}         end Chromium, remove the folders, go   {"ended": true}

A client that only wants a report sends {"token": "…", "look": true}. It receives {"holders": number of engines, "left":
seconds until the end, or null while there are any} and is disconnected. It does not become an engine, and no timer changes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

# `typing` would double our start time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIRST_CONNECTION_SECONDS = 15.0  # seconds that the engine that started us may take to connect

LONGEST_LINE = 4096

PR_SET_PDEATHSIG = 1


class Engine:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = b""
        self.known = False

    def lines(self) -> list[bytes] | None:
        """Return the lines received; None when the engine is gone."""
        try:
            chunk = self.connection.recv(LONGEST_LINE)
        except OSError:
            return None
        if not chunk or len(self.buffer) > LONGEST_LINE:
            return None
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        return lines

    def answer(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")


class Watcher:
    """Waits for engines, for Chromium's end, and for its own deadline."""

    def __init__(
        self, spec: dict[str, Any], chromium: subprocess.Popen[bytes], listener: socket.socket, wakeup: socket.socket
    ) -> None:
        self.spec = spec
        self.linger: float = spec["linger"]
        self.chromium = chromium
        self.listener = listener
        self.wakeup = wakeup
        self.engines: dict[socket.socket, Engine] = {}
        self.deadline: float | None = time.monotonic() + FIRST_CONNECTION_SECONDS
        self.over = False
        self.requester: Engine | None = None

    def watch(self) -> None:
        """Return when Chromium has ended, or is to be ended."""
        while not self.over and not ended(self.chromium):
            left = None if self.deadline is None else self.deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            readable, _, _ = select.select([self.listener, self.wakeup, *self.engines], [], [], left)
            for each in readable:
                if each is self.wakeup:
                    self.wakeup.recv(LONGEST_LINE)
                elif each is self.listener:
                    connection, _ = self.listener.accept()
                    self.engines[connection] = Engine(connection)
                else:
                    self.serve(self.engines[each])

    def serve(self, engine: Engine) -> None:
        """Handle what an engine sends; disconnect one that is gone or does not know the token."""
        lines = engine.lines()
        for line in lines or []:
            if not self.execute(engine, line):
                lines = None
                break
        if lines is None:
            del self.engines[engine.connection]
            engine.connection.close()
            if engine.known and not any(each.known for each in self.engines.values()):
                self.deadline = time.monotonic() + self.linger

    def execute(self, engine: Engine, line: bytes) -> bool:
        """Execute a line; return False for an invalid one."""
        try:
            message = json.loads(line)
            if not engine.known:
                welcome = message["token"] == self.spec["token"]
                if welcome and message.get("look"):
                    engine.answer(self.report())
                    return False
                engine.known = welcome
                if engine.known:
                    self.deadline = None
                    engine.answer({"ok": True})
                return engine.known
            if message.get("end"):
                self.requester, self.over = engine, True
                return True
            self.linger = float(message["linger"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        engine.answer({"ok": True})
        return True

    def report(self) -> dict[str, Any]:
        left = None if self.deadline is None else round(max(self.deadline - time.monotonic(), 0.0), 3)
        return {"holders": sum(each.known for each in self.engines.values()), "left": left}

    def end(self) -> None:
        """End Chromium with all its helpers, remove its folders, and answer the engine that requested it."""
        kill_group(self.chromium)
        for folder in self.spec["remove"]:
            remove(folder)
        if self.requester is not None:
            self.requester.answer({"ended": True})


def ended(chromium: subprocess.Popen[bytes]) -> bool:
    """Return True if Chromium has ended. Where possible it is not reaped, so its process group id cannot be reused."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, chromium.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return chromium.poll() is not None


def kill_group(chromium: subprocess.Popen[bytes]) -> None:
    """End the process group that Chromium leads. Nothing needs saving: its profile is removed too."""
    with contextlib.suppress(OSError):
        os.killpg(chromium.pid, signal.SIGKILL)
    chromium.wait()


def remove(folder: str) -> None:
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.02)


def die_with_parent() -> None:
    """Let Chromium end when the watcher is killed, if the kernel supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def redirect_to_null(descriptors: tuple[int, ...]) -> None:
    """Point descriptors at /dev/null, so that no process waits for us to close them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)
    os.close(nothing)


def start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start Chromium in a separate process group: Ctrl-C in the engine's terminal does not reach it."""
    log = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            spec["command"],
            env=spec["environment"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - the watcher has one thread
        )
    finally:
        os.close(log)


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    spec = json.load(sys.stdin)
    # Our parent exits at once, so no process has to reap us.
    if os.fork():
        os._exit(0)
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    wakeup, raised = socket.socketpair()
    raised.setblocking(False)
    signal.set_wakeup_fd(raised.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        chromium = start(spec)
    except OSError as error:
        say({"error": f"{spec['command'][0]}: {error.strerror}"})
        for folder in spec["remove"]:
            remove(folder)
        return
    watcher = Watcher(spec, chromium, listener, wakeup)

    def stop(_signal: int, _frame: object) -> None:
        watcher.over = True

    signal.signal(signal.SIGTERM, stop)
    say({"watcher": os.getpid(), "port": listener.getsockname()[1], "chromium": chromium.pid})
    redirect_to_null((0, 1, 2))
    watcher.watch()
    watcher.end()


if __name__ == "__main__":
    main()
