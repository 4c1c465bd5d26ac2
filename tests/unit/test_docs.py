"""What the pages of the manual show is right before anything is run: files, pieces of files, links, references."""

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

from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
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
"""What a piece of a file may read without saying where it comes from, by name; and a value of its kind."""

AROUND = {
    "inputs": {
        "base_url": {"type": "string", "default": "http://127.0.0.1:8765"},
        "number": {"type": "string", "default": "1001"},
        "with_coupon": {"type": "boolean", "default": True},
        "tenant": {"type": "string", "default": "north"},
        "known": {"type": "list", "default": []},
    },
    "secrets": ["SHOP_PASSWORD", "TOKEN"],
}
"""The inputs and secrets of a piece of a file."""


def told(page: Path, block: Block) -> str:
    return f"{page.relative_to(ROOT).as_posix()}:{block.line}"


def every(language: str, *more: Path) -> list[Any]:
    """The blocks of a language on all pages; but for files with node types of a package, which is there only where the page is run."""
    return [
        pytest.param(page, block, id=told(page, block))
        for page in [*PAGES, *more]
        for block in pages.blocks(page)
        if block.language == language and "type: acme." not in block.text
    ]


def whole(piece: str) -> str:
    """A piece of a workflow file as a whole one: with a version, the nodes it needs to be one, and what it reads from elsewhere."""
    data = yaml.safe_load(piece)
    if isinstance(data, dict) and not {"id", "type"} & set(data):
        file = {"version": 1, **AROUND, "nodes": [{"id": "nothing", "type": "transform", "expr": 1}], **data}
        return yaml.safe_dump(file, sort_keys=False, allow_unicode=True)
    own = set(re.findall(r"\b(?:id|as): (\w+)", piece))
    read = {name for name in STANDINS if re.search(rf"\b{name}\b", piece)} - own
    before = [{"id": name, "type": "transform", "expr": STANDINS[name]} for name in sorted(read)]
    file = {"version": 1, **AROUND, "nodes": before}
    lines = piece if isinstance(data, list) else "- " + piece.replace("\n", "\n  ")
    head = yaml.safe_dump(file, sort_keys=False, allow_unicode=True).replace("nodes: []\n", "nodes:\n")
    return head + lines


@pytest.mark.parametrize(("sheet", "block"), every("yaml", *MORE))
def test_what_a_page_shows_of_a_workflow_is_valid(sheet: Path, block: Block, tmp_path: Path) -> None:
    """A whole file has no mistake, nor has a piece between what it needs; and a file called `mistake…` has one."""
    text = block.text if re.search(r"^version:", block.text, re.MULTILINE) else whole(block.text)
    # Files that another one uses lie beside it, as in the page's folder.
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
    assert bool(found) == wrong, f"{told(sheet, block)}\n{found}\n\n{text}"


@pytest.mark.parametrize("sheet", [*PAGES, *MORE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_says_what_it_is(sheet: Path) -> None:
    """No fenced block is without a language that the tests know, and commands stand only in those that are run."""
    for block in pages.blocks(sheet):
        assert block.language in LANGUAGES or sheet in MORE, f"{told(sheet, block)}: `{block.language}`"
        if block.language == "text":
            assert not COMMAND.search(block.text), f"{told(sheet, block)}: write ```console"


@pytest.mark.parametrize(("sheet", "block"), [*every("python", *MORE), *every("toml", *MORE), *every("json", *MORE)])
def test_code_in_other_languages_can_be_read(sheet: Path, block: Block) -> None:
    """What is Python, TOML or JSON is that."""
    match block.language:
        case "python":
            compile(block.text, told(sheet, block), "exec")
        case "toml":
            tomllib.loads(block.text)
        case _:
            json.loads(block.text)


def anchors(page: Path) -> set[str]:
    """What a link to a place in a page may name: its headings, as GitHub writes them."""
    text = pages.FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("sheet", [*PAGES, *MORE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(sheet: Path) -> None:
    """Each relative link names a file of the repository, and a heading in it where it names one."""
    text = pages.FENCE.sub("", sheet.read_text(encoding="utf-8"))
    broken: list[str] = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, place = link.partition("#")
        other = (sheet.parent / name).resolve() if name else sheet
        if not other.exists() or (place and place not in anchors(other)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    """From the README every page can be reached by links."""
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


def test_the_references_are_those_of_the_code() -> None:
    """Every node type has its page, and what the pages say of fields and ports is what the models and protocols say."""
    command = [sys.executable, str(ROOT / "scripts" / "node_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
