"""Whole builds on the shop, by script: from a sentence to a workflow that runs without a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import builds_rig, paying
from tests.builds_rig import Builds
from tests.shop_process import Shop


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    """A project of its own."""
    made = builds_rig.of(tmp_path)
    yield made
    made.close()


def test_a_sentence_becomes_a_workflow_that_runs_without_a_model(builds: Builds, tmp_path: Path) -> None:
    """The file is there, proved as often as was asked for, and passes by itself on another shop."""
    with Shop.start(tmp_path, orders=3, paid=1) as shop:
        done, told = builds.built(
            list(paying.script(shop.url)),
            "--url",
            f"{shop.url}/login",
            "--save",
            "pay.yaml",
            "-i",
            "user=admin",
            "--secret",
            "SHOP_PASSWORD",
            "--effects",
            "allow",
            goal=paying.GOAL,
            SHOP_PASSWORD=shop.password,
        )
        print(done.stderr)
        for n in range(len(builds.asked)):
            print("=======", n)
            print(builds.outputs(n)[-2:] if builds.outputs(n) else "")
        assert (done.returncode, told["status"]) == (0, "done"), done.stdout
        assert [each["status"] for each in shop.orders()] == ["paid"] * 3
    print(done.stdout)
    print((tmp_path / "pay.yaml").read_text())
    assert shop.password not in (tmp_path / "pay.yaml").read_text()
    (tmp_path / "fresh").mkdir()
    with Shop.start(tmp_path / "fresh", orders=4, paid=1) as shop:
        project = builds_rig.of(tmp_path).project
        project.environment["SHOP_PASSWORD"] = shop.password
        done = project.runops("run", "pay.yaml", "--frozen", "-i", f"base_url={shop.url}")
        assert done.returncode == 0, done.stderr
        assert [each["status"] for each in shop.orders()] == ["paid"] * 4
