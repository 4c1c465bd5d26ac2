"""A Django admin as a separate process, for tests: 14 vendors and 45 invoices, on a free port.

with DjangoAdmin.start(tmp_path) as django:
    ...  # sign in at django.url + "/admin/" as `admin` with django.password
    assert django.sql("SELECT count(*) AS invoices FROM billing_invoice") == [{"invoices": 45}]
"""

from __future__ import annotations

import select
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parent.parent
# A new one creates its tables first.
START_TIMEOUT = 60.0


@dataclass
class DjangoAdmin:
    """A running admin. Create one with `DjangoAdmin.start`."""

    folder: Path
    """Contains its database `db.sqlite3`, the uploads (`media`), and its log `django.log`."""
    password: str
    """The password of the user `admin`."""
    url: str = ""
    """Like `http://127.0.0.1:41234`, without a slash at its end."""
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @classmethod
    def start(cls, folder: Path, *, password: str = "correct-horse") -> Self:
        """Start an admin with its data in `folder`; existing data is kept, the password too."""
        admin = cls(folder, password)
        admin._launch()
        return admin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def log(self) -> str:
        """Its stderr so far: a line per request."""
        return (self.folder / "django.log").read_text()

    def sql(self, query: str, values: Mapping[str, object] | tuple[object, ...] = ()) -> list[dict[str, Any]]:
        """The rows that a query finds in Django's own database, each a map by column. It cannot write.

        Tables: billing_vendor, billing_invoice, billing_line.
        """
        with closing(sqlite3.connect(f"{(self.folder / 'db.sqlite3').as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, values)]

    def end(self) -> None:
        """End it, if it runs."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _launch(self) -> None:
        with (self.folder / "django.log").open("a") as log:
            self._process = process = subprocess.Popen(
                [sys.executable, "-m", "tests.django_admin", str(self.folder), self.password],
                cwd=ROOT,
                # Kept open: the admin ends when this process does, in whatever way.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT)
        self.url = process.stdout.readline().strip() if ready else ""
        if not self.url:
            self.end()
            raise RuntimeError(f"the Django admin did not start:\n{self.log}")
