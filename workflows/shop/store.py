"""The data of the shop, in one SQLite file.

The ledger alone says what was done: an order is paid if the ledger has a payment (or if it was paid before the shop
opened), and notes and records *are* ledger rows. Every change is committed when its method returns, so that a killed
shop continues with the same data, sessions included.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from workflows.shop.seed import SeedOrder

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    place INTEGER PRIMARY KEY, number TEXT NOT NULL UNIQUE, customer TEXT NOT NULL, ordered TEXT NOT NULL,
    cents INTEGER NOT NULL, paid_before INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, request_id TEXT NOT NULL, kind TEXT NOT NULL,
    subject TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_subject ON ledger (kind, subject);
CREATE TABLE IF NOT EXISTS files (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (token TEXT PRIMARY KEY, user TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

SELECT = """
SELECT * FROM (
    SELECT place, number, customer, ordered, cents,
           paid_before OR EXISTS (SELECT 1 FROM ledger WHERE kind = 'payment' AND subject = number) AS paid
    FROM orders
) """
ONE = SELECT + "WHERE number = ?"
SOME = SELECT + "WHERE ?1 IS NULL OR paid = ?1 OR number = ?2 "
LIST = SOME + "ORDER BY place LIMIT ?3 OFFSET ?4"
COUNT = SOME.replace("*", "count(*)", 1)

Status = Literal["open", "paid"]


@dataclass(frozen=True)
class Order:
    """An order in its current state."""

    number: str
    customer: str
    ordered: str
    cents: int
    paid: bool

    @property
    def total(self) -> str:
        """A plain number such as `248.50`, without a currency."""
        return f"{self.cents // 100}.{self.cents % 100:02}"

    @property
    def status(self) -> Literal["paid", "unpaid"]:
        """The status as the pages show it."""
        return "paid" if self.paid else "unpaid"


@dataclass(frozen=True)
class LedgerRow:
    """One side effect that took place."""

    id: int
    time: str
    """UTC, ISO 8601 with milliseconds."""
    request_id: str
    kind: str
    """A kind such as `payment` or `sign_in`; the module that records it defines it."""
    subject: str
    """The object of the side effect: an order number, an e-mail address, a gate, a user, or empty."""
    detail: dict[str, Any]


class Store:
    """The shop's data; its methods may be called from any thread."""

    def __init__(self, path: Path, seed: Callable[[], list[SeedOrder]]) -> None:
        """Open the file at `path`; a new one gets the orders of `seed`, an existing one keeps its own.

        Raises `sqlite3.Error` if `path` cannot be opened or is no SQLite file.
        """
        self._changed = threading.Condition(threading.RLock())
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        # NORMAL in WAL mode survives the end of the process, which is all that the shop promises; FULL is slower.
        self._db.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {SCHEMA}")
        if self.setting("opened") is None:
            self._open_with(seed())

    def close(self) -> None:
        with self._changed:
            self._db.close()

    # Orders

    def orders(
        self, status: Status | None = None, *, keep: str | None = None, page: int = 1, size: int = -1
    ) -> tuple[list[Order], int]:
        """Return one page of the orders of a status, and their number on all pages; a `size` of -1 is one page with all.

        `keep` is the number of an order that is included whatever its status.
        """
        values = (None if status is None else status == "paid", keep)
        with self._changed:
            total: int = self._db.execute(COUNT, values).fetchone()[0]
            return [_order(row) for row in self._db.execute(LIST, (*values, size, (page - 1) * size))], total

    def order(self, number: str) -> Order | None:
        """Return the order of that number, if there is one."""
        with self._changed:
            row = self._db.execute(ONE, (number,)).fetchone()
            return None if row is None else _order(row)

    # The ledger

    def record(
        self, request_id: str, kind: str, subject: str = "", detail: Mapping[str, object] | None = None
    ) -> LedgerRow:
        """Write one side effect, without any check: a repeated request is recorded twice."""
        with self._changed:
            row = self._insert(request_id, kind, subject, detail or {})
            self._changed.notify_all()
            return row

    def record_file(
        self, request_id: str, kind: str, subject: str, detail: Mapping[str, object], content: bytes
    ) -> LedgerRow:
        """Write one side effect with a file, which `content` returns by the id of the row."""
        with self._changed, self._transaction():
            row = self._insert(request_id, kind, subject, detail)
            self._db.execute("INSERT INTO files VALUES (?, ?)", (row.id, content))
            self._changed.notify_all()
            return row

    def content(self, id: int) -> bytes:
        """Return the file of the row with that id; empty if it has none."""
        with self._changed:
            row = self._db.execute("SELECT content FROM files WHERE id = ?", (id,)).fetchone()
            return b"" if row is None else row["content"]

    def ledger(self, kind: str | None = None, subject: str | None = None) -> list[LedgerRow]:
        """Return the rows of a kind and subject, oldest first; `None` is any."""
        with self._changed:
            rows = self._db.execute(
                "SELECT * FROM ledger WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR subject = ?2) ORDER BY id",
                (kind, subject),
            )
            return [_ledger_row(row) for row in rows]

    def ledger_row(self, id: int, kind: str | None = None) -> LedgerRow | None:
        """Return the row of that id, if there is one of that kind."""
        with self._changed:
            row = self._db.execute(
                "SELECT * FROM ledger WHERE id = ?1 AND (?2 IS NULL OR kind = ?2)", (id, kind)
            ).fetchone()
            return None if row is None else _ledger_row(row)

    def wait_for_rows(
        self, count: int, timeout: float, kind: str | None = None, subject: str | None = None
    ) -> list[LedgerRow]:
        """Return the rows of a kind and subject once there are `count` of them, or after `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.ledger(kind, subject)) >= count, timeout)
            return self.ledger(kind, subject)

    # Sessions

    def sign_in(self, request_id: str, user: str) -> str:
        """Begin a session and record it; return its token."""
        token = uuid4().hex
        with self._changed, self._transaction():
            self._db.execute("INSERT INTO sessions VALUES (?, ?)", (token, user))
            self._insert(request_id, "sign_in", user, {})
        return token

    def sign_out(self, request_id: str, token: str, user: str) -> None:
        """End one session and record it."""
        with self._changed, self._transaction():
            self._db.execute("DELETE FROM sessions WHERE token = ?", (token,))
            self._insert(request_id, "sign_out", user, {})

    def sign_everyone_out(self) -> None:
        """End all sessions without a ledger row, as if the shop had lost them."""
        with self._changed:
            self._db.execute("DELETE FROM sessions")

    def user(self, token: str) -> str | None:
        """Return the user with that token, if there is one."""
        with self._changed:
            row = self._db.execute("SELECT user FROM sessions WHERE token = ?", (token,)).fetchone()
            return None if row is None else row["user"]

    # Settings

    def setting(self, name: str) -> str | None:
        """Return the value of that name, if there is one."""
        with self._changed:
            row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
            return None if row is None else row["value"]

    def keep(self, name: str, value: str) -> None:
        """Store a value under a name; it replaces an earlier one."""
        with self._changed:
            self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def _open_with(self, orders: list[SeedOrder]) -> None:
        # One transaction sets the mark, too: a shop that is killed while it opens its new file begins again.
        with self._changed, self._transaction():
            self._db.executemany(
                "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (place, order.number, order.customer, order.ordered, order.cents, order.paid)
                    for place, order in enumerate(orders, 1)
                ],
            )
            self.keep("opened", _now())

    def _insert(self, request_id: str, kind: str, subject: str, detail: Mapping[str, object]) -> LedgerRow:
        time, copy = _now(), dict(detail)
        cursor = self._db.execute(
            "INSERT INTO ledger (time, request_id, kind, subject, detail) VALUES (?, ?, ?, ?, ?)",
            (time, request_id, kind, subject, json.dumps(copy, ensure_ascii=False)),
        )
        assert cursor.lastrowid is not None
        return LedgerRow(cursor.lastrowid, time, request_id, kind, subject, copy)

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)


class _Transaction:
    """Commits at its end, rolls back after an exception."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self._db.execute("COMMIT" if kind is None else "ROLLBACK")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _order(row: sqlite3.Row) -> Order:
    return Order(row["number"], row["customer"], row["ordered"], row["cents"], bool(row["paid"]))


def _ledger_row(row: sqlite3.Row) -> LedgerRow:
    return LedgerRow(row["id"], row["time"], row["request_id"], row["kind"], row["subject"], json.loads(row["detail"]))
