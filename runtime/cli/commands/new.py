"""``runops new``: a workflow to begin with."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

from nodes.errors import UsageError
from nodes.values import Json
from runtime.browser.origins import origin
from runtime.cli import console, flags, scaffold
from runtime.display import escapes
from runtime.language import reader

SUFFIXES = (".yaml", ".yml")
FOLDER = Path("workflows")
DEMO = "http://127.0.0.1:8765/prices"


def new(
    name: Annotated[str, flags.argument("NAME|PATH", "Its name, or the path of its file.")],
    url: Annotated[str | None, flags.option("--url URL", "Its page; by default one of `runops demo-site`.")] = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Write a small workflow that passes, with a remark at each part, to change into your own.

    A NAME becomes a file in `workflows/`, where that folder exists. A file that is there is never written over.
    """
    file = _file(name)
    if file.exists() or file.is_symlink():
        raise UsageError("file-exists", f"{file} is there already", fix="give another name, or take that file away")
    page = url or DEMO
    if (origin(page) is None and not page.startswith(("data:", "file:"))) or "{{" in page or not page.isprintable():
        raise UsageError(
            "usage", f"`{page}` is no address", fix="give the whole address: --url https://shop.test/prices"
        )
    top = Path.cwd()
    schema = scaffold.schema_for(file.absolute().parent, top)
    done: list[scaffold.Written] = []
    if schema is None:
        schema = file.absolute().parent / scaffold.SCHEMA
        done.append(scaffold.put(file.parent / scaffold.SCHEMA, scaffold.schema_text()))
    text = scaffold.modeline(file.absolute(), schema) + _filled(file, page)
    done.insert(0, scaffold.put(file, text))
    reader.load(file)
    following = _next(file, demo=url is None)
    if as_json:
        files: list[Json] = [{"file": str(each.file), "state": each.state} for each in done]
        console.result(console.as_json(files=files, next=[*following]))
        return
    console.result("\n".join(console.table([[each.state, escapes.line(str(each.file))] for each in done])))
    console.say("\n".join(["next", *(f"  {escapes.line(each)}" for each in following)]))


def _file(name: str) -> Path:
    path = Path(name)
    if path.name in ("", ".."):
        raise UsageError("usage", f"`{name}` is no name of a file", fix="give a name: runops new shop")
    if path.suffix in SUFFIXES:
        return path
    beside = FOLDER if path.parent == Path() and FOLDER.is_dir() else Path()
    return beside / path.with_name(f"{path.name}{SUFFIXES[0]}")


def _filled(file: Path, page: str) -> str:
    """Return the template with the values of this workflow; a text in quotes of JSON is YAML, too."""
    name = file.stem.replace("_", " ").replace("-", " ").strip()
    quoted = {"<NAME>": name[:1].upper() + name[1:], "default: <URL>": page}
    text = scaffold.template("new.yaml")
    for mark, value in quoted.items():
        text = text.replace(
            mark, mark.replace("<NAME>", "").replace("<URL>", "") + json.dumps(value, ensure_ascii=False)
        )
    shown = escapes.line(shlex.quote(str(file)))
    return text.replace("<FILE>", shown).replace("<URL>", escapes.line(shlex.quote(page)))


def _next(file: Path, *, demo: bool) -> list[str]:
    path = shlex.quote(str(file))
    site = ["runops demo-site   (in another terminal)"] if demo else []
    return [*site, f"runops run {path}", f"runops validate {path}"]
