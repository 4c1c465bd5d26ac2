"""Writes the references in docs/ from the models and ports, or with --check refuses a page that differs.

In a page the reference of a node type or part is between `<!-- reference: NAME -->` and `<!-- end -->`, the members of a port between
`<!-- port: CLASS EXPRESSION -->` and `<!-- end -->`. Every node type has its own page, docs/nodes/TYPE.md.
"""

import ast
import dataclasses
import inspect
import itertools
import os
import pathlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from nodes import pages, ports, registry  # noqa: E402 — the root comes first
from runtime.language import reference as language_reference  # noqa: E402 — the root comes first
from scripts import generated_pages  # noqa: E402 — the root comes first

DOCS = ROOT / "docs"
BLOCK = re.compile(r"(?P<mark><!-- (?P<kind>reference|port): (?P<names>[\w. ]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
HOMES = {
    "target": "targets.md",
    "rule": "rules.md",
    "retry": "nodes/README.md#retry",
    "confirm": "nodes/README.md#confirm",
    "input": "workflow-language.md#inputs",
    "test": "workflow-language.md#tests",
    "expected": "workflow-language.md#tests",
    "browser": "browser.md#options",
    "overlay": "browser.md#overlays",
}
"""The page that describes each part that a field may contain."""
FIX = "fix:  .venv/bin/python scripts/node_docs.py"


def reference(name: str, page: pathlib.Path) -> str:
    """Return the fields of a node type or part as Markdown; a type with several kinds begins with an overview."""
    entry = language_reference.entry(name)
    if not entry.kinds:
        return _one(entry, page)
    field = next(
        each.name for each in entry.kinds[0].fields if each.required and each.kind == f"`{_last(entry.kinds[0])}`"
    )
    shared = [each for each in entry.fields if each.name != "type"]
    hidden = {"type", field, *(each.name for each in shared)}
    lines = [f"| `{field}` | what it does | value | class |", "|---|---|---|---|"]
    lines += [
        f"| [`{_last(each)}`](#{_last(each)}) | {_cell(language_reference.sentence(each.text))} | {_cell(each.value or '')} | {each.effect} |"
        for each in entry.kinds
    ]
    if shared:
        names = {each.name for each in shared}
        lacking = [f"`{_last(each)}`" for each in entry.kinds if not names <= {one.name for one in each.fields}]
        but = f" but {' and '.join(filter(None, [', '.join(lacking[:-1]), lacking[-1]]))}" if lacking else " of them"
        lines += ["", f"Every one{but} takes:", "", *_table(shared, page)]
    for each in entry.kinds:
        lines += ["", f"### {_last(each)}", "", each.text]
        if each.value:
            lines += ["", f"Value: {each.value[0].lower()}{each.value[1:]}"]
        fields = [one for one in each.fields if one.name not in hidden]
        if fields:
            lines += ["", *_table(fields, page)]
        for part in each.parts:
            lines += ["", f"*{part.name}*: {part.text[0].lower()}{part.text[1:]}", "", *_table(part.fields, page)]
    return "\n".join(lines)


def _one(entry: language_reference.Entry, page: pathlib.Path) -> str:
    about = [entry.text]
    if entry.value:
        about += [f"Value: {entry.value[0].lower()}{entry.value[1:]}"]
    if entry.effect:
        about += [f"Class: *{entry.effect}*."]
    lines = [
        "\n\n".join(about),
        "",
        *_table([each for each in entry.fields if each.name != "type" or not entry.around], page),
    ]
    for part in entry.parts:
        lines += ["", f"*{part.name}*: {part.text[0].lower()}{part.text[1:]}", "", *_table(part.fields, page)]
    return "\n".join(lines)


def _table(fields: list[language_reference.Field], page: pathlib.Path) -> list[str]:
    lines = ["| field | takes | |", "|---|---|---|"]
    for each in fields:
        kind, *notes = each.notes
        lines.append(f"| `{each.name}` | {_cell('; '.join([_linked(kind, page), *notes]))} | {_cell(each.text)} |")
    return lines


def _linked(kind: str, page: pathlib.Path) -> str:
    def link(found: re.Match[str]) -> str:
        home = DOCS / HOMES[found[0]]
        here = home.name.partition("#")
        place = "#" + here[2] if here[2] and home.with_name(here[0]) == page else os.path.relpath(home, page.parent)
        return found[0] if home == page else f"[{found[0]}]({place})"

    return re.sub(rf"(?<!`)\b(?:{'|'.join(HOMES)})\b(?!`)", link, kind)


def _last(entry: language_reference.Entry) -> str:
    return entry.name.rpartition(".")[2]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def port(name: str, expression: str) -> str:
    """Return the members of a protocol or dataclass of nodes/ports.py or nodes/pages.py as a list, with signature and promises."""
    module = pages if hasattr(pages, name) else ports
    chosen = getattr(module, name)
    if dataclasses.is_dataclass(chosen):
        return "\n".join(f"- `{each}`: {told}" if told else f"- `{each}`" for each, told in _told(module, name))
    lines: list[str] = []
    members: dict[str, object] = {}
    for each in inspect.getmro(chosen):
        if each.__module__ == module.__name__:
            members |= vars(each)
    for each, member in members.items():
        if each.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        function = member.fget if isinstance(member, property) else member
        assert function is not None
        told = (
            language_reference.plain(inspect.cleandoc(function.__doc__ or "")).replace("\n\n", "\n").replace("\n", " ")
        )
        lines.append(f"- `{_call(each, member, expression)}`{told and f': {told}'}")
    return "\n".join(lines)


def _told(module: ModuleType, name: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a dataclass, each with the docstring under it."""
    tree = ast.parse(inspect.getsource(module))
    body = next(each.body for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name)
    for each, after in itertools.pairwise([*body, ast.Pass()]):
        if isinstance(each, ast.AnnAssign):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            yield ast.unparse(each), language_reference.plain(" ".join(str(text).split()))


def _call(name: str, member: object, expression: str) -> str:
    if isinstance(member, property):
        return f"{expression}.{name}"
    assert inspect.isfunction(member)
    signature = inspect.signature(member)
    taken: list[str] = []
    for each in list(signature.parameters.values())[1:]:
        if each.kind is each.KEYWORD_ONLY and "*" not in taken:
            taken.append("*")
        stars = "**" if each.kind is each.VAR_KEYWORD else ""
        default = "" if each.default is each.empty else f" = {each.default}"
        taken.append(f"{stars}{each.name}: {each.annotation}{default}")
    gives = "" if signature.return_annotation == "None" else f" -> {signature.return_annotation}"
    return f"{'await ' if inspect.iscoroutinefunction(member) else ''}{expression}.{name}({', '.join(taken)}){gives}"


def written(page: pathlib.Path, text: str) -> str:
    """Return the page with the current references."""

    def made(found: re.Match[str]) -> str:
        names = found["names"].split()
        body = port(names[0], names[1]) if found["kind"] == "port" else reference(names[0], page)
        return f"{found['mark']}{body}\n"

    return BLOCK.sub(made, text)


def problems() -> list[str]:
    """Return the problems of the pages."""
    found: list[str] = []
    for kind in registry.BUILT_IN:
        page = DOCS / "nodes" / f"{kind.name}.md"
        if not page.exists() or f"<!-- reference: {kind.name} -->" not in page.read_text(encoding="utf-8"):
            found.append(f"docs/nodes/{kind.name}.md: it has no `<!-- reference: {kind.name} -->` … `<!-- end -->`")
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if written(page, text) != text:
            found.append(f"{page.relative_to(ROOT)}: its reference is not what the code says; {FIX}")
    return found


if __name__ == "__main__":
    sys.exit(generated_pages.main(written, problems))
