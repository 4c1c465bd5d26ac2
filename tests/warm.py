"""A process that has the command imported, and forks for each call: a test waits for the command, not for Python to start.

The forked process is like any other, with its own environment, folder, streams, terminal and exit code, and runs the code of the installed script.
Only its imports and the models of its files exist already. It forks the shop, too.

python -m tests.warm SOCKET     serve on this socket, until standard input is closed
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self, TextIO

if TYPE_CHECKING:
    from pydantic import BaseModel

ROOT = Path(__file__).parents[1]
LANGUAGE = "C.UTF-8"
"""The locale that gives a forked process its encoding."""

OWN_WORK = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
"""Variables that Python reads when it starts, and that a forked process obeys nevertheless."""

NEVER = 86400.0
"""Seconds that stand for an unlimited wait."""

COMMAND, SHOP = "runops", "workflows.shop"
"""The programs that can be forked."""

SCRIPT = """#!{python} -IS
# The command as a shell finds it: has it forked, and ends as it ends.
import json, os, signal, socket, sys
try:
    for number in (0, 1, 2):
        os.fstat(number)
except OSError:  # a stream that is closed cannot be handed over
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
link = socket.socket(socket.AF_UNIX)
link.connect({address!r})
request = dict(arguments=sys.argv[1:], folder=os.getcwd(), environment=dict(os.environ))
socket.send_fds(link, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
answers = link.makefile()
pid = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _frame: os.kill(pid, number))
code = os.waitstatus_to_exitcode(int(answers.readline()))
os._exit(code if code >= 0 else 128 - code)
"""


@functools.cache
def server() -> Warm | None:
    """The serving process of this worker; None on an unsupported system."""
    if not hasattr(socket, "send_fds"):
        return None
    started = Warm()
    atexit.register(started.close)
    return started


class Warm:
    """The serving process, of one worker of the tests."""

    def __init__(self) -> None:
        """Start it."""
        self._folder = tempfile.TemporaryDirectory(prefix="runops-warm-")
        self._address = f"{self._folder.name}/socket"
        kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.warm", self._address],
            # Python detects the kind of its streams only when it starts: pipes, as each command has.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**kept, "LANG": LANGUAGE},
        )
        assert self._server.stdout is not None
        if not self._server.stdout.readline():
            raise RuntimeError(self._server.communicate()[1].decode())
        self.script = Path(self._folder.name, "runops")
        real = str(Path(sys.executable).with_name("runops"))
        self.script.write_text(SCRIPT.format(python=sys.executable, address=self._address, real=real))
        self.script.chmod(0o755)

    def takes(self, environment: Mapping[str, str]) -> bool:
        """True if a command with this environment can be forked: nothing in it changes how Python starts, except what `_become` handles."""
        changing = {name for name in environment if name.startswith(("PYTHON", "LC_"))}
        return environment.get("LANG") == LANGUAGE and changing <= OWN_WORK

    def start(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], *, asks: bool = False
    ) -> Forked:
        """Start the command with pipes for stdout and stderr, and one for stdin if it ``asks``; otherwise stdin is empty."""
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            streams: list[BinaryIO] = []
            files: list[int] = []
            for _stream in ("stdout", "stderr"):
                reading, writing = os.pipe()
                streams.append(ours.enter_context(os.fdopen(reading, "rb")))
                files.append(writing)
            said: TextIO | None = None
            if asks:
                reading, writing = os.pipe()
                said = ours.enter_context(os.fdopen(writing, "w", encoding="utf-8"))
            else:
                reading = os.open(os.devnull, os.O_RDONLY)
            files.insert(0, reading)
            for each in files:
                theirs.callback(os.close, each)
            forked = self.start_on(files, arguments, folder, environment)
            forked.give(streams, said, ours.pop_all())
            return forked

    def start_on(
        self,
        files: Sequence[int],
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        program: str = COMMAND,
        terminal: bool = False,
    ) -> Forked:
        """Start it with these as stdin, stdout and stderr; a ``terminal`` becomes its controlling terminal."""
        request = {
            "program": program,
            "arguments": arguments,
            "folder": str(folder),
            "environment": dict(environment),
            "terminal": terminal,
        }
        with contextlib.ExitStack() as opened:
            link = opened.enter_context(socket.socket(socket.AF_UNIX))
            link.connect(self._address)
            socket.send_fds(link, [json.dumps(request).encode() + b"\n"], files)
            return Forked([program, *arguments], link, opened.pop_all())

    def close(self) -> None:
        """End it."""
        self._server.communicate()
        self._folder.cleanup()


class Forked:
    """A running command, with the parts of ``subprocess.Popen`` that tests use. Leaving its `with` closes our ends and waits for its end."""

    def __init__(self, command: Sequence[str], link: socket.socket, opened: contextlib.ExitStack) -> None:
        self.args = command
        self.returncode: int | None = None
        self.stdin: TextIO | None = None
        self._link = link
        self._streams: Sequence[BinaryIO] = ()
        self._opened = opened
        self._unread = b""
        self._written: tuple[str, str] | None = None
        self.pid = int(self._line(None) or b"")

    def give(self, streams: Sequence[BinaryIO], said: TextIO | None, opened: contextlib.ExitStack) -> None:
        """Pass on our ends of its pipes, and the stack that closes them."""
        self._streams, self.stdin = streams, said
        self._opened.push(opened)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._opened:
            self._hear_no_more()
            for each in self._streams:
                each.close()
            self.wait()

    def _hear_no_more(self) -> None:
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()

    def poll(self) -> int | None:
        """The exit code, negative where a signal ended it; None while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended. Raises TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, said: str | None = None, timeout: float = NEVER) -> tuple[str, str]:
        """Send this text; its stdout and stderr, once it has ended, also when called again. Raises TimeoutError."""
        if self._written is None:
            end = time.monotonic() + timeout
            if not said:
                self._hear_no_more()
            out, err = _exchange([stream.fileno() for stream in self._streams], (said or "").encode(), self.stdin, end)
            self._written = out.decode(), err.decode()
            self.wait(max(0.0, end - time.monotonic()))
            self._opened.close()
        return self._written

    def result(self, seconds: float, said: str | None = None) -> subprocess.CompletedProcess[str]:
        """Its exit code and output, with this text on standard input; at the timeout it is killed. Raises TimeoutError."""
        try:
            out, err = self.communicate(said, seconds)
        except BaseException:
            self.kill()
            raise
        return subprocess.CompletedProcess(self.args, self.wait(), out, err)

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and (line := self._line(seconds)) is not None:
            self.returncode = os.waitstatus_to_exitcode(int(line))
        return self.returncode

    def _line(self, seconds: float | None) -> bytes | None:
        """The next line of the server; None where none comes in that time."""
        self._link.settimeout(seconds)
        while b"\n" not in self._unread:
            try:
                more = self._link.recv(64)
            except (BlockingIOError, TimeoutError):
                return None
            if not more:
                raise EOFError("the process that forks is gone")
            self._unread += more
        line, _newline, self._unread = self._unread.partition(b"\n")
        return line


def _exchange(streams: Sequence[int], said: bytes, asks: TextIO | None, end: float) -> list[bytes]:
    """The output of pipes until they are closed; meanwhile this text is sent to ``asks``, as fast as it is read."""
    written = {stream: bytearray() for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        if said and asks is not None:
            os.set_blocking(asks.fileno(), False)
            selector.register(asks.fileno(), selectors.EVENT_WRITE)
        while selector.get_map():
            if (left := end - time.monotonic()) <= 0:
                raise TimeoutError(b"".join(written.values()).decode(errors="replace"))
            for key, _events in selector.select(left):
                if key.fd not in written:
                    said = _say_some(key.fd, said)
                    if not said and asks is not None:
                        selector.unregister(key.fd)
                        asks.close()
                elif chunk := os.read(key.fd, 1 << 16):
                    written[key.fd] += chunk
                else:
                    selector.unregister(key.fd)
    return [bytes(written[stream]) for stream in streams]


def _say_some(pipe: int, said: bytes) -> bytes:
    """The rest of the text to send; nothing once the reader is gone."""
    try:
        return said[os.write(pipe, said[: 1 << 16]) :]
    except BrokenPipeError:
        return b""


def serve(address: str) -> int:
    """Fork for each request; returns in the forked process with the exit code of its command, and at the end."""
    _import_all()
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as door, selectors.DefaultSelector() as selector:
        door.bind(address)
        door.listen()
        selector.register(door, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            if sys.stdin in [key.fileobj for key, _events in selector.select()]:
                return 0
            link, _address = door.accept()
            if os.fork() == 0:
                door.close()
                return _serve_one(link)
            link.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass


def _serve_one(link: socket.socket) -> int:
    """Fork once more and report how that ends; returns in the forked process."""
    message, files, _flags, _address = socket.recv_fds(link, 1 << 20, 3)
    while not message.endswith(b"\n"):
        if not (more := link.recv(1 << 20)):
            os._exit(0)  # whoever asked was killed
        message += more
    pid = os.fork()
    if pid == 0:
        link.close()
        return _become(json.loads(message), files)
    for each in files:
        os.close(each)
    with contextlib.suppress(BrokenPipeError):
        link.send(b"%d\n" % pid)
        _pid, status = os.waitpid(pid, 0)
        link.send(b"%d\n" % status)
    os._exit(0)


def _import_all() -> None:
    from nodes.part import Part
    from runtime.cli import command_table

    for command in command_table.every():
        # A module that cannot be loaded fails for its own caller.
        with contextlib.suppress(ImportError):
            command.load()
    for module in (
        "director.cli.builds.repairs",
        "director.cli.session.foreground",
        "director.session.settings",
        "director.cli.window",
        "runtime.browser.open",
        "runtime.cli.app",
        "runtime.cli.main",
        "runtime.language.workflow",
        "runtime.runs.start",
        "playwright.async_api",
        # Modules that these import only on use.
        "concurrent.futures.thread",
        "encodings.utf_8_sig",
        "playwright._impl.json_pipe",
        "playwright._impl.local_utils",
        "playwright._impl.protocol_channels",
        "runtime.models.questions",
        "runtime.sql.select",
        "typer._adapters",
        "typer._click.decorators",
        # Modules by which tests change a forked command.
        "tests.hasty",
        "tests.kills.mortal",
        "tests.one_browser",
        "workflows.shop.__main__",
    ):
        importlib.import_module(module)
    _build(Part)
    _ask()


def _ask() -> None:
    """Ask a model, and count its answer: the first time takes half a second for imports and set-up."""
    from runtime.messages import messages, tokens
    from runtime.models.client import client as model_client
    from runtime.models.client import profiles
    from runtime.settings import prices
    from runtime.testing import responses, scripted_model

    tool = messages.Tool(
        "look", "Look.", {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    )
    asked = messages.Request("some-model", "Be brief.", (messages.Message("user", "Hello."),), None, 100, tools=(tool,))

    async def ask(server: responses.Server) -> None:
        client = model_client.Client(server.url, server.key, profiles.PROFILES["openai"])
        answer = await client.ask(asked, 60.0)
        assert answer.usage is not None
        tokens.count(answer.text)
        prices.context_window(asked.model, "openai")
        prices.dollars(answer.usage, asked.model, {}, "openai")
        response = await client.submit(asked, 60.0)
        while await client.fetch(response, 60.0) is None:
            pass
        await client.close()

    answers = [
        scripted_model.thought("So.") + scripted_model.text("Hello."),
        scripted_model.text("Hello.").in_background(polls=0),
    ]
    with responses.serve(answers) as server:
        asyncio.run(ask(server))
    # A thread of ours would not exist in a forked process.
    assert threading.active_count() == 1


def _build(model: type[BaseModel]) -> None:
    """Build the validators of this model's subclasses: otherwise each command would build them on first use."""
    for each in model.__subclasses__():
        if not each.__pydantic_complete__:
            each.model_rebuild()
        _build(each)


def _become(request: dict[str, object], files: Sequence[int]) -> int:
    """Become the requested program."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if request.get("terminal"):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # Tests started in the background ignore Ctrl-C; the program is in the foreground.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Python decides when it starts whether to flush output at the end of each line, as on a terminal.
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(str(request["folder"]))
    environment, arguments = request["environment"], request["arguments"]
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    if request.get("program", COMMAND) == SHOP:
        from workflows.shop import __main__ as shop

        sys.argv = [SHOP, *arguments]
        return shop.main()

    from runtime.cli import main
    from tests import hasty, one_browser
    from tests.kills import mortal

    mortal.install_from(environment)
    one_browser.install_from(environment)
    hasty.install_from(environment)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["runops", *arguments]
    # As for the installed script: relative to its folder, not to that of this server.
    further = str(environment.get("PYTHONPATH") or "").split(os.pathsep)
    sys.path[:1] = [str(Path(sys.executable).parent), *filter(None, further)]
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    return main.main()


def _leave(code: int) -> int:
    """End this process as Python would, without freeing imported modules: changing their memory would copy it first.

    Threads are joined, exit functions called, and unreferenced objects collected, which may still report errors. Returns ``code`` where the streams
    cannot be flushed: Python reports that itself.
    """
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return code
    os._exit(code)


if __name__ == "__main__":
    sys.exit(_leave(serve(sys.argv[1])))
