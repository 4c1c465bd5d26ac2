"""``runops nodes``: the node types."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from nodes.errors import UsageError
from runtime import manual
from runtime.cli import console
from runtime.cli.flags import JsonFlag

WIDEST = 100
"""Columns of a paragraph where no terminal says otherwise."""


def nodes(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[show NAME]",
            help="A node type (`iterate`), one of its kinds (`browser_action.click`), or `target`, `rule`, `retry`, `confirm`.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the node types, or show all about one: what it does, its fields, its value."""
    name = name_in(words or [])
    if name is None:
        found = manual.summaries()
        if as_json:
            console.result(console.as_json(nodes=[{"name": each, "text": text} for each, text in found]))
        else:
            wide = max(len(each) for each, _text in found)
            console.result("\n".join(f"{each:<{wide}}  {text}" for each, text in found))
            console.say("all about one:  runops nodes show NAME")
        return
    entries = manual.entries(name)
    if as_json:
        console.result(console.as_json(nodes=[each.as_json() for each in entries]))
    else:
        console.result("\n\n".join(shown(each) for each in entries))


def name_in(words: list[str]) -> str | None:
    """The name in ``show NAME`` or ``NAME``; None where there is none. Raises UsageError for anything else."""
    if words[:1] == ["show"]:
        words = words[1:]
        if not words:
            raise UsageError("usage", "`runops nodes show` needs a name", mend="`runops nodes` lists them")
    if len(words) > 1:
        raise UsageError("usage", "one node at a time", mend=f"runops nodes show {words[0]}")
    return words[0] if words else None


def shown(entry: manual.Entry) -> str:
    """The reference of a node, as text."""
    width = min(console.columns() or WIDEST, WIDEST)
    paragraphs = [textwrap.fill(" ".join(each.split()), width) for each in entry.text.split("\n\n")]
    if entry.effect:
        paragraphs.append(f"Effect class: {entry.effect}.")
    lines = [entry.name, "", "\n\n".join(paragraphs), "", *_fields(entry.fields, width)]
    if entry.envelope:
        lines += [
            "",
            "as every step" if entry.effect else "as every container",
            *_fields(entry.envelope, width),
        ]
    return "\n".join(lines)


def _fields(fields: list[manual.Field], width: int) -> list[str]:
    wide = max((len(each.name) for each in fields), default=0)
    lines: list[str] = []
    for each in fields:
        notes = [each.kind]
        if each.required:
            notes.append("required")
        if each.default is not None and each.default != "":
            notes.append(f"default `{str(each.default).lower() if isinstance(each.default, bool) else each.default}`")
        if each.secrets:
            notes.append("takes references and secrets")
        elif each.references:
            notes.append("takes references")
        lines.append(f"  {each.name:<{wide}}  {'; '.join(notes)}")
        margin = " " * (wide + 4)
        lines += textwrap.wrap(" ".join(each.text.split()), width, initial_indent=margin, subsequent_indent=margin)
    return lines
