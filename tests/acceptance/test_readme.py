"""The README is a transcript: its commands are run, and what they print is what stands there (`…` for what varies)."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from runtime import workflow
from tests.command import Project
from tests.shop_process import Shop

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a block, with what follows it."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def matches(wanted: str, printed: str) -> bool:
    """Whether the text is what stands there; `…` is anything on a line, and a line of its own any lines."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in wanted.splitlines()
    ]
    return (
        re.fullmatch("".join(lines), printed if printed.endswith("\n") or not printed else f"{printed}\n") is not None
    )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the example workflows."""
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copytree(ROOT / "workflows", folder / "workflows")
    return Project(folder, SHOP_PASSWORD="correct-horse")


def test_a_mistake_is_shown_as_the_readme_shows_it(project: Project) -> None:
    """The file with mistakes yields, to the letter, the report that the README prints."""
    (show, text), (validate, report) = commands(BLOCKS[0])
    project.write(show.split()[-1], text)
    done = project.shell(validate)
    assert done.returncode == 2
    assert matches(report, done.stdout + done.stderr), done.stdout + done.stderr


def test_the_killed_run_goes_on_as_the_readme_shows(project: Project, tmp_path: Path) -> None:
    """Killed where the README says, with the browser gone, the run prints these very lines, goes on, and nine orders are paid once."""
    (run, before), (resume, after) = commands(BLOCKS[1])
    with Shop.start(tmp_path) as shop:
        shop.switch("hold", "/orders/.*/pay", method="POST", skip=2, moment="after")
        engine = project.start(*run.replace("$SHOP", shop.url).split()[1:])
        shop.wait("held", timeout=60)
        state = json.loads(next(project.folder.glob(".runops/private/*/browser.json")).read_text())
        browser = psutil.Process(state["chromium"])
        engine.send_signal(signal.SIGKILL)
        out, err = engine.communicate()
        browser.kill()
        psutil.wait_procs([browser], timeout=10)
        shop.release()
        assert matches(before.removesuffix("Killed\n"), out + err), err
        resumed = project.runops(*resume.split()[1:])
        assert resumed.returncode == 0
        assert matches(after, resumed.stderr + resumed.stdout), resumed.stderr + resumed.stdout
        payments = [row["subject"] for row in shop.ledger("payment")]
        assert (len(payments), len(set(payments))) == (9, 9)


def test_the_workflow_of_the_readme_is_one() -> None:
    """The YAML that a newcomer reads first has no mistake."""
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert workflow.parse(text, "README.md").workflow.name == "Pay the open orders"


def test_every_link_of_the_readme_leads_somewhere() -> None:
    """Each relative link names a file of the repository."""
    links = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_first_workflow_works_as_its_page_says(project: Project, tmp_path: Path) -> None:
    """The file of docs/first-workflow.md validates, runs, and yields what the shop has."""
    (text, piece) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "first-workflow.md").read_text(), re.DOTALL)
    project.write("orders.yaml", text.replace("output:\n", f"{piece}output:\n"))
    with Shop.start(tmp_path, paid=0) as shop:
        ran = project.runops("run", "orders.yaml", "-i", f"base_url={shop.url}", "--json")
        assert ran.returncode == 1, ran.stderr
        assert json.loads(ran.stdout)["path"] == "pay"
        project.write("orders.yaml", text)
        ran = project.runops("run", "orders.yaml", "-i", f"base_url={shop.url}", "--json")
        assert ran.returncode == 0, ran.stderr
        dear = [order["number"] for order in shop.orders() if float(order["total"]) > 200]
        assert json.loads(ran.stdout)["output"] == {"dear": dear}
        assert len(dear) > 1
