"""Exported examples pass under plain pytest-playwright, without RunOps, and do the same on the site."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.browser.chromium import find
from tests.command import Project
from tests.shop_process import Shop

ROOT = Path(__file__).parents[2]
SECONDS = 180.0

# A loop with extracted rows; branches and a used file; a dialog; a popup and frames.
EXAMPLES = ("pay_orders", "triage_orders", "refund_order", "book_delivery")

ALONE = """
import sys

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("runtime", "nodes", "director", "workflows", "tests"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Blocked())
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
"""Pytest where nothing of RunOps can be imported."""

CONFTEST = """
import os
import pytest

@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return {**browser_type_launch_args, "executable_path": os.environ["CHROMIUM"]}
"""


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[tuple[Shop, Shop]]:
    """Two shops with the same orders."""
    with Shop.start(tmp_path / "one", orders=6) as one, Shop.start(tmp_path / "other", orders=6) as other:
        yield one, other


def plain_pytest(folder: Path, shop: Shop, *names: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ},
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CHROMIUM": str(find.find()),
        "SHOP_PASSWORD": shop.password,
        "INPUT_BASE_URL": shop.url,
    }
    options = ("-p", "pytest_playwright.pytest_playwright", "-p", "no:cacheprovider", "-s", "-q", "-rA")
    return subprocess.run(
        [sys.executable, "-I", "-c", ALONE, *options, "--rootdir", ".", *(f"test_{name}.py" for name in names)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def printed(text: str) -> list[Any]:
    """The JSON objects that the tests printed, in order."""
    found: list[Any] = []
    decoder = json.JSONDecoder()
    while (start := text.find("{\n")) >= 0:
        value, end = decoder.raw_decode(text[start:])
        found.append(value)
        text = text[start + end :]
    return found


def done(shop: Shop) -> list[tuple[str, str]]:
    """What happened in a shop, without the numbers of its drafts."""
    return sorted((each["kind"], each["subject"]) for each in shop.ledger())


@pytest.mark.drawn(0)
def test_exported_examples_do_what_the_workflows_do(tmp_path: Path, shops: tuple[Shop, Shop]) -> None:
    """The outputs and the effects on the site are those of runs; with a site that no longer does its part the tests fail."""
    one, other = shops
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    project = Project(tmp_path, SHOP_PASSWORD=one.password)
    files = [f"workflows/{name}.yaml" for name in EXAMPLES]
    ran = project.runops("run", *files, "--json", "-i", f"base_url={one.url}", seconds=SECONDS)
    assert ran.returncode == 0, ran.stderr

    exported = project.runops("export", "--pytest", *files, "--output", "plain")
    assert exported.returncode == 0, exported.stderr
    assert "  pay: `confirm`, which asks the site after a crash whether this happened" in exported.stderr
    plain = tmp_path / "plain"
    (plain / "conftest.py").write_text(CONFTEST)
    passed = plain_pytest(plain, other, *EXAMPLES)
    assert passed.returncode == 0, passed.stdout
    assert f"{len(EXAMPLES)} passed" in passed.stdout
    assert printed(passed.stdout) == [each["output"] for each in json.loads(ran.stdout)["runs"]]
    assert done(other) == done(one)
    assert len(other.ledger("payment")) == 5

    # The shop refuses a payment, and a decision.
    for file in plain.glob("test_*.py"):
        file.write_text(file.read_text().replace("timeout=30_000", "timeout=1_000"))
    with Shop.start(tmp_path / "broken", orders=6) as broken:
        broken.switch("break", path="/orders/1001/pay", method="POST")
        broken.switch("break", path="/triage/1001", method="POST")
        failed = plain_pytest(plain, broken, "pay_orders", "triage_orders")
    assert failed.returncode == 1
    assert "2 failed" in failed.stdout, failed.stdout
    assert 'expect(containing(page.get_by_role("row"), order["number"])).to_contain_text(' in failed.stdout
