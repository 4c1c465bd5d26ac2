"""The watcher: Chromium's parent. It ends Chromium when no engine has held on to it for ``linger`` seconds.

A program of its own, run as ``python -I -S watcher.py`` with the standard library only. It knows no run and holds no lock. An engine holds
on by keeping a connection open; a killed engine's connection is closed by the kernel. Because the watcher is Chromium's parent, the process
id it ends cannot have gone to another process meanwhile.

It reads one JSON object from its standard input:

    command      list of Chromium's executable and switches
    environment  map of environment variables
    log          file for what Chromium writes to its standard error
    remove       list of folders that go when Chromium has ended
    token        what an engine says first
    linger       seconds

writes one line of JSON, {"watcher": pid, "port": its port on loopback, "chromium": pid}, to its standard output, or {"error": "…"}, and lets go
of both. Then it takes lines of JSON from each connection; the first must be {"token": "…"}, and each is answered by a line:

    {"linger": seconds}   how long to wait from now on           {"ok": true}
    {"end": true}         end Chromium, remove the folders, go   {"ended": true}

Whoever only wants to know says {"token": "…", "look": true}, is told {"holders": engines that hold on, "left": seconds until the end, or null
while somebody does}, and is hung up on: that makes nobody an engine, and changes nothing about the time that is left.
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

# `typing` itself would double the time that this takes to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIRST_CONNECTION_SECONDS = 15.0
"""How long the engine that started us may take to hold on."""

LONGEST_LINE = 4096

PR_SET_PDEATHSIG = 1


class Engine:
    """A connection of an engine."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = b""
        self.known = False

    def lines(self) -> list[bytes] | None:
        """Lines that have come in; None when the engine is gone."""
        try:
            chunk = self.connection.recv(LONGEST_LINE)
        except OSError:
            return None
        if not chunk or len(self.buffer) > LONGEST_LINE:
            return None
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        return lines

    def answer(self, message: dict[str, Any]) -> None:
        """Send a line; an engine that is gone misses nothing."""
        with contextlib.suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")


class Watcher:
    """Waits for engines, for Chromium's end, and for the end of its own patience."""

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
        """Returns when Chromium is to end, or has."""
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
        """Take what an engine says; one that is gone, or that does not know the token, is let go."""
        lines = engine.lines()
        for line in lines or []:
            if not self.obey(engine, line):
                lines = None
                break
        if lines is None:
            del self.engines[engine.connection]
            engine.connection.close()
            if engine.known and not any(each.known for each in self.engines.values()):
                self.deadline = time.monotonic() + self.linger

    def obey(self, engine: Engine, line: bytes) -> bool:
        """Do what a line says; False where it makes no sense."""
        try:
            message = json.loads(line)
            if not engine.known:
                welcome = message["token"] == self.spec["token"]
                if welcome and message.get("look"):
                    engine.answer(self.looked_at())
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

    def looked_at(self) -> dict[str, Any]:
        """What somebody is told who only looks."""
        left = None if self.deadline is None else round(max(self.deadline - time.monotonic(), 0.0), 3)
        return {"holders": sum(each.known for each in self.engines.values()), "left": left}

    def end(self) -> None:
        """End Chromium and all its helpers, remove its folders, and tell whoever asked for it."""
        kill_group(self.chromium)
        for folder in self.spec["remove"]:
            remove(folder)
        if self.requester is not None:
            self.requester.answer({"ended": True})


def ended(chromium: subprocess.Popen[bytes]) -> bool:
    """Whether Chromium has ended. It is left uncollected where that is possible, so that its process group cannot be another's."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, chromium.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return chromium.poll() is not None


def kill_group(chromium: subprocess.Popen[bytes]) -> None:
    """End the process group that Chromium leads. Nothing of it is worth saving: its profile goes too."""
    with contextlib.suppress(OSError):
        os.killpg(chromium.pid, signal.SIGKILL)
    chromium.wait()


def remove(folder: str) -> None:
    """Remove a folder; helpers that are just ending may still write into it for a moment."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.02)


def die_with_parent() -> None:
    """Where the kernel knows how: Chromium ends when the watcher is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def let_go(descriptors: tuple[int, ...]) -> None:
    """Point descriptors at nothing, so that nobody waits for us to close them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)
    os.close(nothing)


def start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Chromium, in a process group of its own: a Ctrl-C in the engine's terminal does not reach it."""
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
    """Write a line to whoever started us."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Start Chromium, say where we are, and watch."""
    spec = json.load(sys.stdin)
    # Our parent is done with us at once: nobody has to collect us when we end.
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
    let_go((0, 1, 2))
    watcher.watch()
    watcher.end()


if __name__ == "__main__":
    main()
