"""Pages with traps: a workflow succeeds with its declared checks, and a naive script of raw Playwright does not.

The delays of the pages are random, 0 to 2 s, drawn by a seed. Only the site's ledger counts, never the messages
of a page or a script.
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
"""The longest delay of a page, in milliseconds."""
SHORTEST = 500
"""The shortest delay with which the naive script fails, in milliseconds."""

Ledger = list[dict[str, list[str]]]


@dataclasses.dataclass(frozen=True)
class Trap:
    """A page with a trap."""

    name: str
    """The name of its page, its workflow and its naive script."""
    right: Ledger
    """The forms that a person would send."""
    wrong: Ledger
    """The forms that the naive script sends before it ends without an error."""


TRAPS = [
    # A popup that opens late: the script uses its current tab.
    Trap("late_popup", [{"price": ["95"]}], [{"price": ["120"]}]),
    # A button that is replaced during the click: the click happens, and nothing is confirmed.
    Trap("replaced_button", [{"order": ["1007"]}], []),
    # An overlay: the script clicks the overlay above the button.
    Trap("overlay", [{"amount": ["75"]}], []),
    # Two forms with the same fields: the script fills the other one.
    Trap(
        "two_forms",
        [{"kind": ["delivery"], "street": ["Storgatan 3"], "city": ["Uppsala"]}],
        [{"kind": ["billing"], "street": ["Storgatan 3"], "city": ["Uppsala"]}],
    ),
    # A hidden copy of a field, before it: the script fills the hidden one.
    Trap("hidden_duplicate", [{"email": ["", "ada@example.com"]}], [{"email": ["ada@example.com", ""]}]),
    # An editor that binds late: the script's text is not in it.
    Trap("late_editor", [{"text": ["Ring twice."]}], [{"text": [""]}]),
    # A virtual list with only the visible rows: the script sums up eight of sixty.
    Trap("virtual_list", [{"sum": [str(sum(PIECES))]}], [{"sum": [str(sum(PIECES[:8]))]}]),
    # Rows that are repeated, one on each further page: the script counts them twice.
    Trap("repeated_rows", [{"sum": [str(sum(OWED))]}], [{"sum": [str(sum(OWED) + sum(OWED[PAGE_SIZE - 1 :: PAGE_SIZE - 1]))]}]),
]  # fmt: skip


@pytest.fixture(scope="module")
def scripts() -> Iterator[Scripts]:
    """The process that runs the naive scripts."""
    with Scripts() as started:
        yield started


@pytest.mark.drawn(share=0.1)
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_catches_naive_scripts_only(trap: Trap, chance: random.Random, scripts: Scripts, tmp_path: Path) -> None:
    """At any delay the workflow sends the right forms; the naive script ends without an error and has sent others."""
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
    """Wherever the session expires, the workflow signs in again and pays each order once; the naive script times out on the sign-in form."""
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
    """A naive script has fewer than 15 lines of code."""
    code = ast.parse(script.read_text()).body[1:]
    lines = {node.lineno for statement in code for node in ast.walk(statement) if isinstance(node, ast.stmt)}
    assert len(lines) < 15
