"""Examples, links and references in the manual are valid before anything runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from runtime.language import agent_files, reader
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid
from tests import pages
from tests.pages import PAGES, ROOT, Block

MORE = [ROOT / "CONTRIBUTING.md"]
LANGUAGES = {"console", "yaml", "python", "toml", "json", "markdown", "text"}
COMMAND = re.compile(r"^(?:\$ |runops |make |pip |\. )", re.MULTILINE)

STANDINS: dict[str, object] = {
    "orders": [{"number": "1001", "total": 12.5, "status": "unpaid"}],
    "order": {"number": "1001", "total": 12.5, "status": "unpaid", "customer": "Ada", "note": "It came broken."},
    "rows": [{"number": "1001"}],
    "prices": [{"article": "A1", "price": 9.9}],
    "page_count": 3,
}
"""Values that a fragment of a file may read, by name."""

AROUND = {
    "inputs": {
        "base_url": {"type": "string", "default": "http://127.0.0.1:8765"},
        "number": {"type": "string", "default": "1001"},
        "with_coupon": {"type": "boolean", "default": True},
        "tenant": {"type": "string", "default": "north"},
        "known": {"type": "list", "default": []},
    },
    "secrets": ["SHOP_PASSWORD", "SHOP_OTP", "TOKEN", "MAIL_USER", "MAIL_PASSWORD"],
}
"""The inputs and secrets of a fragment of a file."""


def location(page: Path, block: Block) -> str:
    return f"{page.relative_to(ROOT).as_posix()}:{block.line}"


def every(language: str, *more: Path) -> list[Any]:
    """The blocks of a language on all pages, except files with node types of a package that only run with their page."""
    return [
        pytest.param(page, block, id=location(page, block))
        for page in [*PAGES, *more]
        for block in pages.blocks(page)
        if block.language == language and "type: acme." not in block.text
    ]


def whole(fragment: str) -> str:
    """A complete workflow file around a fragment: with a version, required nodes, and the values it reads."""
    data = yaml.safe_load(fragment)
    if isinstance(data, dict) and not {"id", "type"} & set(data):
        file = {"version": 1, **AROUND, "nodes": [{"id": "nothing", "type": "transform", "expr": 1}], **data}
        return yaml.safe_dump(file, sort_keys=False, allow_unicode=True)
    own = set(re.findall(r"\b(?:id|as): (\w+)", fragment))
    read = {name for name in STANDINS if re.search(rf"\b{name}\b", fragment)} - own
    before = [{"id": name, "type": "transform", "expr": STANDINS[name]} for name in sorted(read)]
    file = {"version": 1, **AROUND, "nodes": before}
    lines = fragment if isinstance(data, list) else "- " + fragment.replace("\n", "\n  ")
    head = yaml.safe_dump(file, sort_keys=False, allow_unicode=True).replace("nodes: []\n", "nodes:\n")
    return head + lines


@pytest.mark.parametrize(("sheet", "block"), every("yaml", *MORE))
def test_workflows_on_pages_are_valid(sheet: Path, block: Block, tmp_path: Path) -> None:
    """Files and completed fragments have no mistake, except those named `mistake…`; nor has the file of an agent, or of a CI job."""
    if block.file and block.file.startswith("agents/"):
        problems: list[Diagnostic] = []
        agent_files.read(block.file, block.text.encode(), problems)
        assert problems == []
        return
    if block.file and block.file.startswith(".git"):
        jobs = yaml.safe_load(block.text)
        jobs = jobs.get("jobs", jobs)
        steps = [
            step for job in jobs.values() for step in job.get("script") or [each.get("run") for each in job["steps"]]
        ]
        assert any(step and step.startswith("runops run ") for step in steps)
        return
    text = block.text if re.search(r"^version:", block.text, re.MULTILINE) else whole(block.text)
    # Used files are beside it, as in the page's folder.
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for each in pages.blocks(sheet):
        if each.file and each.language == "yaml":
            (tmp_path / each.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / each.file).write_text(each.text, encoding="utf-8")
    file = tmp_path / (block.file or "piece.yaml")
    file.write_text(text, encoding="utf-8")
    try:
        reader.load(file)
        found = ""
    except WorkflowInvalid as error:
        found = error.render(colour=False)
    wrong = file.name.startswith("mistake")
    assert bool(found) == wrong, f"{location(sheet, block)}\n{found}\n\n{text}"


@pytest.mark.parametrize("sheet", [*PAGES, *MORE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_has_a_known_language(sheet: Path) -> None:
    """Each fenced block has a language known to the tests, and commands are only in blocks that are run."""
    for block in pages.blocks(sheet):
        assert block.language in LANGUAGES or sheet in MORE, f"{location(sheet, block)}: `{block.language}`"
        if block.language == "text":
            assert not COMMAND.search(block.text), f"{location(sheet, block)}: write ```console"


@pytest.mark.parametrize(("sheet", "block"), [*every("python", *MORE), *every("toml", *MORE), *every("json", *MORE)])
def test_code_in_other_languages_parses(sheet: Path, block: Block) -> None:
    """Python, TOML and JSON blocks parse."""
    match block.language:
        case "python":
            compile(block.text, location(sheet, block), "exec")
        case "toml":
            tomllib.loads(block.text)
        case _:
            json.loads(block.text)


def anchors(page: Path) -> set[str]:
    """The anchors of a page: its headings as GitHub writes them."""
    text = pages.FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("sheet", [*PAGES, *MORE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(sheet: Path) -> None:
    """Each relative link names an existing file, and an existing heading if it has one."""
    text = pages.FENCE.sub("", sheet.read_text(encoding="utf-8"))
    broken: list[str] = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, place = link.partition("#")
        other = (sheet.parent / name).resolve() if name else sheet
        if not other.exists() or (place and place not in anchors(other)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    """Each page is reachable by links from the README."""
    seen: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8"))
        ahead += [(page.parent / each).resolve() for each in links if (page.parent / each).exists()]
    assert set(PAGES) - seen == set()


def test_the_references_agree_with_the_code() -> None:
    """Each node type has its page, and the pages agree with the fields and ports in the code."""
    command = [sys.executable, str(ROOT / "scripts" / "node_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
