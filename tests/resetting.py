"""A reset of the shop for tests: a command that takes back its payments, and notes how many there were."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.shop_process import Shop

PROGRAM = """\
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
paid = db.execute("SELECT count(*) FROM ledger WHERE kind = 'payment'").fetchone()[0]
db.execute("DELETE FROM ledger WHERE kind = 'payment'")
db.commit()
open("resets", "a").write(f"{paid}\\n")
"""


def command(shop: Shop, folder: Path) -> str:
    """The command line; its program is in the folder."""
    program = folder / "reset.py"
    program.write_text(PROGRAM)
    return shlex.join([sys.executable, str(program), str(shop.db)])


def paid_before(folder: Path) -> list[int]:
    """The number of payments that each reset has taken back, in order."""
    file = folder / "resets"
    return [int(each) for each in file.read_text().split()] if file.exists() else []
