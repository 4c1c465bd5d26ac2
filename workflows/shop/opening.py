"""Opening and ending the shop: its settings, its file and port, and the signals."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from workflows.shop.seed import seed_orders
from workflows.shop.server import ShopServer
from workflows.shop.store import Store
from workflows.shop.switches import Switch, Switchboard
from workflows.shop.web import Shop

PORT = 8765
DEMO_PASSWORD = "correct-horse"  # noqa: S105  # of a site that guards nothing, printed in every example
ORDERS = 12
PAGE_SIZE = 10


class SetupError(Exception):
    """The shop cannot open; the message gives the reason and the fix in one sentence."""


@dataclass(frozen=True)
class Settings:
    port: int = PORT
    """0 for a free one."""
    db: Path | None = None
    """Its file, whose orders stay; `None` for a temporary one."""
    orders: int = ORDERS
    """The number of orders in a new file."""
    paid: int | None = None
    """The number of them that are paid from the start; `None` for a quarter."""
    password: str = DEMO_PASSWORD
    page_size: int = PAGE_SIZE
    switches: tuple[Switch, ...] = ()
    """Switches that are active from the start."""
    quiet: bool = False
    """Write no line per request to stderr."""


def serve(settings: Settings, opened: Callable[[str], None]) -> int:
    """Serve the shop until a signal ends it; return the exit code: 0 after SIGTERM, 130 after Ctrl-C.

    Runs in the main thread. Calls `opened` with the address as soon as the shop answers. Raises `SetupError` if the port
    or the file cannot be used.
    """
    with ExitStack() as stack:
        path = (
            settings.db or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="runops-shop-"))) / "shop.sqlite"
        )
        server = stack.enter_context(_open(settings, path))
        with _signals_end(server) as came:
            opened(server.url)
            server.serve_forever(poll_interval=0.1)
        return 0 if came[0] == signal.SIGTERM else 128 + came[0]


@contextmanager
def _open(settings: Settings, path: Path) -> Generator[ShopServer, None, None]:
    # Open the port first: if it is taken, another shop may be using this file.
    try:
        server = ShopServer(settings.port, settings.quiet)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "there is no such port"
        fix = "end the program that uses it, or start with `--port 0` to get a free one"
        raise SetupError(f"The shop cannot use port {settings.port} ({reason}): {fix}.") from error
    with server:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            store = Store(path, lambda: seed_orders(settings.orders, settings.paid))
        except (OSError, sqlite3.Error) as error:
            raise SetupError(
                f"The shop cannot use the file {path} ({error}): give another one with `--db`, or none."
            ) from error
        board = Switchboard(store)
        for switch in settings.switches:
            board.add(switch)
        server.shop = Shop(store, board, settings.password, settings.page_size)
        try:
            yield server
        finally:
            server.ending = True
            store.close()


def announce(url: str) -> None:
    """Print the line that says that the shop is open."""
    sys.stdout.write(f"shop on {url}  (Ctrl-C ends it)\n")
    sys.stdout.flush()


@contextmanager
def _signals_end(server: ShopServer) -> Generator[list[int], None, None]:
    """Stop serving at the first signal, which is then in the list.

    The handler raises nothing: an exception in a callback of the interpreter would be lost, and the shop would stay open.
    """
    came: list[int] = []
    reading, writing = os.pipe()

    def end(number: int, frame: FrameType | None) -> None:
        if not came:
            came.append(number)
            os.write(writing, b".")

    def shut_down() -> None:
        os.read(reading, 1)
        server.shutdown()

    threading.Thread(target=shut_down, daemon=True).start()
    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def end_at_eof() -> None:
    """End this process when its standard input closes, so that it does not outlive a test that was killed."""

    def watch() -> None:
        # Not through sys.stdin: its lock, held here, would keep the interpreter from ending.
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
