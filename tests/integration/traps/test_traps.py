"""Pages that deceive: a workflow gets through by what it says, a naive script of raw Playwright does not.

The delays of the pages are random, 0 to 2 s, drawn by a seed. What counts is the ledger of the site, never
what a page or a script says of itself.
"""

from __future__ import annotations

import ast
import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import site
from tests.command import Project
from tests.integration.traps.fair import OWED, PAGE_SIZE, PIECES, Fair
from tests.integration.traps.scripts import Scripts
from tests.shop_process import Shop

HERE = Path(__file__).parent
LONGEST = 2000
"""Milliseconds that a page may take."""
SHORTEST = 500
"""Milliseconds that it takes at least where the naive script is to fail: a trap that springs late enough catches nobody."""

Ledger = list[dict[str, list[str]]]


@dataclasses.dataclass(frozen=True)
class Trap:
    """A page that deceives."""

    name: str
    """Of its page, its workflow and its naive script."""
    right: Ledger
    """What a person would send."""
    wrong: Ledger
    """What the naive script sends, before it ends as if all were well."""


TRAPS = [
    # A window that opens late: the script takes the tab that it is in.
    Trap("late_popup", [{"price": ["95"]}], [{"price": ["120"]}]),
    # A button that is replaced while it is clicked: the click was done, and nothing was confirmed.
    Trap("replaced_button", [{"order": ["1007"]}], []),
    # An overlay: the script clicks what lies over the button.
    Trap("overlay", [{"amount": ["75"]}], []),
    # Two forms with the same fields: the script fills the other one.
    Trap(
        "two_forms",
        [{"kind": ["delivery"], "street": ["Storgatan 3"], "city": ["Uppsala"]}],
        [{"kind": ["billing"], "street": ["Storgatan 3"], "city": ["Uppsala"]}],
    ),
    # A hidden copy of a field, before it: the script fills what nobody sees.
    Trap("hidden_duplicate", [{"email": ["", "ada@example.com"]}], [{"email": ["ada@example.com", ""]}]),
    # An editor that binds after the first keystrokes: what the script typed is not in it.
    Trap("late_editor", [{"text": ["Ring twice."]}], [{"text": [""]}]),
    # A list that has only the rows which are seen: the script sums up eight of sixty.
    Trap("virtual_list", [{"sum": [str(sum(PIECES))]}], [{"sum": [str(sum(PIECES[:8]))]}]),
    # Rows that repeat, one on each further page: the script counts them twice.
    Trap("repeated_rows", [{"sum": [str(sum(OWED))]}], [{"sum": [str(sum(OWED) + sum(OWED[PAGE_SIZE - 1 :: PAGE_SIZE - 1]))]}]),
]  # fmt: skip


@pytest.fixture(scope="module")
def scripts() -> Iterator[Scripts]:
    """Who runs the naive scripts."""
    with Scripts() as started:
        yield started


@pytest.mark.drawn(share=0.2)
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_that_catches_the_naive(trap: Trap, chance: random.Random, scripts: Scripts, tmp_path: Path) -> None:
    """However long the page takes, the workflow sends what a person would; the naive script ends well and has sent something else."""
    project = Project(tmp_path)
    with site.serve() as served:
        fair = Fair(served, trap.name, chance.randint(0, LONGEST))
        ended = project.runops(
            "run", str(HERE / "workflows" / f"{trap.name}.yaml"), f"--input=base_url={served.origin}"
        )
        assert (ended.returncode, fair.ledger) == (0, trap.right), ended.stderr
    with site.serve() as served:
        fair = Fair(served, trap.name, chance.randint(SHORTEST, LONGEST))
        code, said = scripts.run(HERE / "naive" / f"{trap.name}.py", served.origin)
        assert (code, fair.ledger) == (0, trap.wrong), said


@pytest.mark.drawn(0)
def test_a_session_that_ends_in_the_middle(chance: random.Random, scripts: Scripts, tmp_path: Path) -> None:
    """Wherever the session ends, the workflow signs in again and each order is paid once; the naive script looks for a row on the sign-in form."""
    project = Project(tmp_path, SHOP_PASSWORD="correct-horse")
    with Shop.start(tmp_path, orders=3, paid=0) as shop:
        shop.switch("delay", "/orders.*", times=2, skip=chance.randint(1, 6), ms=chance.randint(0, LONGEST))
        shop.switch("logout", "/orders.*", skip=chance.randint(1, 8))
        ended = project.runops("run", str(HERE / "workflows" / "session_expiry.yaml"), f"--input=base_url={shop.url}")
        assert ended.returncode == 0, ended.stderr
        assert len(shop.ledger("sign_in")) >= 2
        assert sorted(row["subject"] for row in shop.ledger("payment")) == ["100", "1001", "1002"]
    (tmp_path / "shop.sqlite").unlink()
    with Shop.start(tmp_path, orders=3, paid=0) as shop:
        shop.switch("logout", "/orders.*", skip=chance.randint(1, 4))
        code, said = scripts.run(HERE / "naive" / "session_expiry.py", shop.url)
        assert code == 1
        assert "TimeoutError: Page.click: Timeout 3000ms exceeded" in said
        assert len(shop.ledger("payment")) < 3


@pytest.mark.parametrize("script", sorted((HERE / "naive").glob("*.py")), ids=lambda script: script.stem)
def test_naive_scripts_are_short(script: Path) -> None:
    """A naive script has fewer than 15 lines of code: what it lacks is not length."""
    code = ast.parse(script.read_text()).body[1:]
    lines = {node.lineno for statement in code for node in ast.walk(statement) if isinstance(node, ast.stmt)}
    assert len(lines) < 15
