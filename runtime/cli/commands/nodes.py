"""``runops nodes``: the node types."""

from __future__ import annotations

import textwrap
from typing import Annotated

from nodes.errors import UsageError
from runtime.cli import console, flags
from runtime.language import reference

WIDEST = 100  # columns of a paragraph without a terminal's own width


def nodes(
    words: Annotated[
        list[str] | None,
        flags.argument(
            "[show NAME [KIND]]",
            "A node type (`iterate`), one of its kinds (`browser_action click`, or just `click`), or a part of nodes: "
            "`step`, `container`, `target`, `rule`, `retry`, `confirm`.",
        ),
    ] = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """List the node types, or show all about one: what it does, its fields, its value."""
    name, kind = named(words or [])
    if name is not None:
        entry = reference.entry(name, kind)
        console.result(console.as_json(node=entry.as_json()) if as_json else shown(entry))
        return
    found = reference.summaries()
    if as_json:
        console.result(
            console.as_json(nodes=[{"name": each.name, "text": each.text, "kinds": list(each.kinds)} for each in found])
        )
        return
    wide = max(len(each.name) for each in found)
    for each in found:
        console.result(f"{each.name:<{wide}}  {each.text}")
        if each.kinds:
            console.result(_filled(" ".join(each.kinds), wide + 4))
    console.say(f"all about one:  runops nodes show NAME   (also {', '.join(reference.PARTS)})")


def named(words: list[str]) -> tuple[str | None, str | None]:
    """Return the name and the kind in ``show NAME KIND`` or ``NAME KIND``; None for a missing one. Raises UsageError for more."""
    if words[:1] == ["show"]:
        words = words[1:]
        if not words:
            raise UsageError("usage", "`runops nodes show` needs a name", fix="`runops nodes` lists them")
    if len(words) > 2:
        raise UsageError("usage", "one node at a time", fix=f"runops nodes show {' '.join(words[:2])}")
    return words[0] if words else None, words[1] if len(words) > 1 else None


def shown(entry: reference.Entry) -> str:
    pieces = [entry.name, *(_filled(each) for each in entry.text.split("\n\n"))]
    about = [f"Value: {_lower(entry.value)}"] if entry.value else []
    if entry.effect:
        about.append(f"Class: {entry.effect}.")
    if about:
        pieces.append("\n".join(_filled(each) for each in about))
    if entry.kinds:
        wide = max(len(_kind(each)) for each in entry.kinds)
        pieces.append("\n".join(f"  {_kind(each):<{wide}}  {reference.sentence(each.text)}" for each in entry.kinds))
        if len(entry.fields) > 1:
            pieces.append("\n".join(["fields of all of them", *_fields(entry.fields)]))
        pieces.append(f"all about one:  runops nodes show {entry.name} {_kind(entry.kinds[0])}")
    else:
        pieces.append("\n".join(_fields(entry.fields)))
    pieces += ["\n".join([f"a {each.name}: {_lower(each.text)}", *_fields(each.fields)]) for each in entry.parts]
    if entry.around:
        pieces.append(f"and what every {entry.around} may have:  runops nodes show {entry.around}")
    return "\n\n".join(pieces)


def _kind(entry: reference.Entry) -> str:
    return entry.name.rpartition(".")[2]


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _filled(text: str, margin: int = 0) -> str:
    blank, width = " " * margin, min(console.columns() or WIDEST, WIDEST)
    return textwrap.fill(" ".join(text.split()), width, initial_indent=blank, subsequent_indent=blank)


def _fields(fields: list[reference.Field]) -> list[str]:
    wide = max((len(each.name) for each in fields), default=0)
    lines: list[str] = []
    for each in fields:
        lines.append(f"  {each.name:<{wide}}  {'; '.join(each.notes)}")
        if each.text:
            lines.append(_filled(each.text, wide + 4))
    return lines
