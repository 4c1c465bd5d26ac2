"""The sites of the recorded builds, each on a free port with its own data."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path

from tests.django_process import DjangoAdmin
from tests.shop_process import Shop

PASSWORDS = {"SHOP_PASSWORD": "correct-horse", "ADMIN_PASSWORD": "correct-horse", "CALENDAR_PASSWORD": "battery-staple"}
"""The secrets of the sites, by the names of their variables."""

SECONDS = 30.0
"""Timeout for a site to start."""

COUNTRIES = ("Portugal", "Ireland", "France", "Germany")

CUSTOMERS = [
    (number, f"Customer {number:03d}", ("Porto", "Cork", "Lyon", "Ulm")[number % 4], COUNTRIES[number % 4], owed)
    for number, owed in enumerate(((each * 37) % 211 + (0.5 if each % 3 else 0.0) for each in range(1, 421)), 1)
]
"""Number, name, city, country, debt: more than one page shows, for each country."""


@contextlib.contextmanager
def started(site: str, folder: Path, programs: Path, *, orders: int = 27) -> Generator[tuple[str, object]]:
    """The address of a site with its data in ``folder``, and its data source for a judge; stopped at the end.

    ``programs`` has Datasette and Radicale; a shop begins with so many ``orders``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    match site:
        case "shop":
            with Shop.start(folder, orders=orders) as shop:
                yield shop.url, shop
        case "django":
            with DjangoAdmin.start(folder) as django:
                yield django.url, django
        case "datasette":
            with _datasette(folder, programs) as url:
                yield url, folder / "customers.db"
        case "radicale":
            with _radicale(folder, programs) as url:
                yield url, folder / "collections"
        case _:
            raise ValueError(f"there is no site {site}")


@contextlib.contextmanager
def _datasette(folder: Path, programs: Path) -> Generator[str]:
    file = folder / "customers.db"
    if not file.exists():
        with contextlib.closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(
                "create table customers (id integer primary key, name text, city text, country text, owes real)"
            )
            connection.executemany("insert into customers values (?, ?, ?, ?, ?)", CUSTOMERS)
    port = free_port()
    with _process(
        [str(programs / "datasette"), "serve", str(file), "--host", "127.0.0.1", "--port", str(port)], folder
    ):
        yield _answering(f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def _radicale(folder: Path, programs: Path) -> Generator[str]:
    port = free_port()
    users = folder / "users"
    users.write_text(f"ada:{PASSWORDS['CALENDAR_PASSWORD']}\n")
    config = folder / "config"
    config.write_text(
        f"[server]\nhosts = 127.0.0.1:{port}\n[auth]\ntype = htpasswd\nhtpasswd_filename = {users}\n"
        f"htpasswd_encryption = plain\ndelay = 0\n[storage]\nfilesystem_folder = {folder / 'collections'}\n"
    )
    with _process([str(programs / "radicale"), "--config", str(config)], folder):
        yield _answering(f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def _process(command: list[str], folder: Path) -> Generator[None]:
    with (folder / "site.log").open("a") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _answering(url: str) -> str:
    until = time.monotonic() + SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return url
        except urllib.error.HTTPError:
            return url
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
