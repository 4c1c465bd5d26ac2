"""Writes the tables of settings in docs/ from the settings' model, or with --check refuses a page that differs.

In a page a table is between `<!-- settings: NAME… -->` and `<!-- end -->`; `NAME` may end with `*`.
"""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.settings import reference  # noqa: E402 — the root comes first
from scripts import generated_pages  # noqa: E402 — the root comes first

DOCS = ROOT / "docs"
BLOCK = re.compile(r"(?P<mark><!-- settings: (?P<names>[\w* ]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
PLACE = re.compile(r"\bdocs/(?P<page>[\w-]+\.md)(?:#(?P<anchor>[\w-]+))?")
FIX = "fix:  .venv/bin/python scripts/setting_docs.py"


def table(names: list[str], page: pathlib.Path) -> str:
    """Return the settings as a Markdown table, in the order of their model."""
    lines = ["| setting | takes | default | |", "|---|---|---|---|"]
    for each in chosen(names):
        flag = f"; flag `{each.flag}`" if each.flag else ""
        cells = (f"`{each.name}`", f"{each.takes}{flag}", default(each), linked(each.text, page))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def chosen(names: list[str]) -> list[reference.Setting]:
    """Return the settings that a table names."""
    return [each for each in reference.every() if any(fnmatch.fnmatchcase(each.name, name) for name in names)]


def default(setting: reference.Setting) -> str:
    """Return the default as it is written in pyproject.toml; nothing where the text says what holds."""
    if setting.default is None or isinstance(setting.default, list | dict):
        return ""
    return f"`{str(setting.default).lower() if isinstance(setting.default, bool) else setting.default}`"


def linked(text: str, page: pathlib.Path) -> str:
    """Return the text with a link, named as the heading, for each place in the documentation."""

    def link(found: re.Match[str]) -> str:
        other, anchor = DOCS / found["page"], found["anchor"]
        titles = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
        title = titles[0] if anchor is None else next((each for each in titles if slug(each) == anchor), None)
        if title is None:
            raise SystemExit(f"docs/{found['page']} has no heading for #{anchor}")
        where = ("" if other == page else found["page"]) + (f"#{anchor}" if anchor else "")
        return f"[{title}]({where})"

    return PLACE.sub(link, text)


def slug(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def written(page: pathlib.Path, text: str) -> str:
    """Return the page with the current tables."""
    return BLOCK.sub(lambda found: f"{found['mark']}{table(found['names'].split(), page)}\n", text)


def problems() -> list[str]:
    """Return the problems of the pages."""
    found: list[str] = []
    shown: set[str] = set()
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            shown |= {each.name for each in chosen(block["names"].split())}
            empty = [name for name in block["names"].split() if not chosen([name])]
            found += [f"{page.relative_to(ROOT)}: there is no setting `{name}`" for name in empty]
        if written(page, text) != text:
            found.append(f"{page.relative_to(ROOT)}: its settings are not those of the model; {FIX}")
    missing = [each.name for each in reference.every() if each.name not in shown]
    return found + [f"docs: no page has the setting `{name}`" for name in missing]


if __name__ == "__main__":
    sys.exit(generated_pages.main(written, problems))
