"""The pages are transcripts: their files are written, their commands run, and the output is compared with the page."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runtime.testing import responses
from tests import pages
from tests.command import Project
from tests.pages import ROOT, Block, Command
from tests.shop_process import Shop
from tests.terminal import still_running

EXEMPT = {
    ("README.md", "make demo"): "tests/acceptance/test_demo.py runs it; here it would set up a checkout",
    ("README.md", "make setup"): "sets up a checkout; tests/acceptance/test_install.py tries its parts",
    (
        "README.md",
        "runops run workflows/pay_orders.yaml",
    ): "must be killed in the middle: the next test but one does it",
}
"""The blocks that no page's test runs, by page and the beginning of their first command, with the reason. At most five."""

WITH_COMMANDS = [page for page in pages.PAGES if any(block.language == "console" for block in pages.blocks(page))]
README = ROOT / "README.md"
SHOP_PORT = "8765"
TIMEOUT = 240


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def exempt(page: Path, block: Block) -> bool:
    first = next(iter(block.commands())).text
    return any(name == name_of(page) and first.startswith(text) for name, text in EXEMPT)


def free_port() -> int:
    """A port with four digits, so that columns of the output match those of the page.

    From 7000 on: some below (4190, 5060, 6000, 6566, 6665 …) are ports that browsers refuse to open (the Fetch
    standard's "bad ports").
    """
    for port in range(7000 + os.getpid() * 37 % 2500, 9999):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder with the example workflows, as a checkout has them."""
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copytree(ROOT / "workflows", folder / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return Project(folder)


# All commands of a page go to one shell, as a reader would type them, with a marker between two commands.
PREAMBLE = r"""
mark() { local code=$?; printf '\036%s\n' "$1"; return $code; }
runops() { if [ "$1" = demo-site ]; then echo "shop on http://127.0.0.1:$PORT  (Ctrl-C ends it)"; else command runops "$@"; fi; }
pip() { uv pip "$@" --python "$INTERPRETER" --quiet --offline --no-build-isolation --no-deps --target "$SITE"; }
"""


@contextlib.contextmanager
def model_of(page: Path) -> Generator[dict[str, str]]:
    """The settings for the page's own `model.py`, if it has one: its `script` gives the answers of the model."""
    own = next((block.text for block in pages.blocks(page) if block.file == "model.py"), None)
    if own is None:
        yield {}
        return
    found: dict[str, Any] = {}
    exec(own, found)
    with responses.serve(found["script"], strict=True) as server:
        yield {
            "RUNOPS_MODEL": "the-model",
            "RUNOPS_MODEL_BASE_URL": server.url,
            "RUNOPS_MODEL_KEY": server.key,
            "RUNOPS_MODEL_PROFILE": "openai",
            "RUNOPS_PRICES": json.dumps({"the-model": {"input": 0.5, "output": 2.0}}),
        }


def run(page: Path, project: Project, port: int) -> list[tuple[Command, str]]:
    """Every command of a page with its output; the page's files exist before the commands below them run."""
    files, site = project.folder.parent / "files", project.folder.parent / "site"
    files.mkdir()
    site.mkdir()
    for example in project.folder.rglob("*.yaml"):
        example.write_text(example.read_text(encoding="utf-8").replace(SHOP_PORT, str(port)), encoding="utf-8")
    lines, commands = [PREAMBLE], list[Command]()
    for number, block in enumerate(pages.blocks(page)):
        if block.file:
            (files / str(number)).write_text(block.text.replace(SHOP_PORT, str(port)), encoding="utf-8")
            lines.append(f"mkdir -p $(dirname {block.file}); cp {files / str(number)} {block.file}")
        elif block.language == "console" and not exempt(page, block):
            for each in block.commands():
                lines.append(f"mark {len(commands)}\n{each.text.replace(SHOP_PORT, str(port))}")
                commands.append(each)
    lines.append("mark end\n")
    # No name here may begin with PYTHON: with a variable that Python might read, no command could be forked.
    more = {
        "PORT": str(port),
        "SITE": str(site),
        "INTERPRETER": sys.executable,
        "COLUMNS": "80",
    }
    if "pip install" in page.read_text(encoding="utf-8"):
        more |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=project.folder,
        env={**project.environment, **more, "PATH": project.path(**more)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
    )
    _before, *parts = re.split(r"\x1e(?:\d+|end)\n", done.stdout)
    assert len(parts) == len(commands) + 1, f"the shell did not come to the end of {name_of(page)}:\n{done.stdout}"
    return list(zip(commands, (text.replace(str(port), SHOP_PORT) for text in parts), strict=False))


@pytest.mark.parametrize(
    "sheet",
    [
        pytest.param(
            page, id=name_of(page), marks=[] if page == README else [pytest.mark.drawn(share=0.03, of="pages")]
        )
        for page in WITH_COMMANDS
    ],
)
def test_a_page_shows_the_real_output(sheet: Path, project: Project, tmp_path: Path) -> None:
    """Each command of a page, typed in order in an empty project, prints the text below it (`…` for what varies)."""
    port = free_port()
    with contextlib.ExitStack() as opened:
        if SHOP_PORT in sheet.read_text(encoding="utf-8") or "workflows/" in sheet.read_text(encoding="utf-8"):
            opened.enter_context(Shop.start(tmp_path, port=port))
        project.environment |= opened.enter_context(model_of(sheet))
        done = run(sheet, project, port)
    wrong = list[str]()
    for command, printed in done:
        if found := pages.difference(command.wanted, printed):
            wrong.append(f"{name_of(sheet)}:{command.line + found[0]}: $ {command.text}\n{found[1]}")
    assert not wrong, "\n\n".join(["what is printed (+) is not what stands there (-)", *wrong])


def test_few_blocks_are_not_run() -> None:
    """The list of blocks that are not run has at most five entries, each with a reason and an existing block."""
    assert len(EXEMPT) <= 5
    there = [
        (name_of(page), next(iter(block.commands())).text)
        for page in WITH_COMMANDS
        for block in pages.blocks(page)
        if block.language == "console"
    ]
    for page, text in EXEMPT:
        assert [each for each in there if each[0] == page and each[1].startswith(text)], f"{page}: `{text}` is gone"


def test_the_killed_run_resumes_as_the_readme_shows(project: Project, tmp_path: Path) -> None:
    """A run killed as in the README, with the browser gone, prints exactly these lines on resume, and pays nine orders once."""
    project.environment["SHOP_PASSWORD"] = "correct-horse"
    (block,) = [each for each in pages.blocks(README) if "Killed\n" in each.text]
    start, resume = block.commands()
    assert exempt(README, block)
    with Shop.start(tmp_path) as shop:
        shop.switch("hold", "/orders/.*/pay", method="POST", skip=2, moment="after")
        engine = project.start(*start.text.split()[1:], "-i", f"base_url={shop.url}")
        shop.wait("held", timeout=60)
        state = json.loads(next(project.folder.glob(".runops/private/*/browser.json")).read_text())
        browser = psutil.Process(state["chromium"])
        engine.send_signal(signal.SIGKILL)
        out, err = engine.communicate()
        browser.kill()
        assert still_running([browser]) == []
        shop.release()
        here = str(shop.port)
        assert pages.difference(start.wanted.removesuffix("Killed\n"), (out + err).replace(here, SHOP_PORT)) is None, (
            err
        )
        resumed = project.runops(*resume.text.split()[1:])
        printed = (resumed.stderr + resumed.stdout).replace(here, SHOP_PORT)
        assert resumed.returncode == 0
        assert pages.difference(resume.wanted, printed) is None, printed
        payments = [row["subject"] for row in shop.ledger("payment")]
        assert (len(payments), len(set(payments))) == (9, 9)
