"""Lists of names with values, and values as YAML: the same in errors, reports and results."""

from __future__ import annotations

from collections.abc import Mapping

from nodes.values import Json
from runtime.display import escapes
from runtime.display.text import one_line, value_text

FIRST = ("page", "url", "title", "nearest", "wanted", "seen")  # evidence that is shown before other evidence
LONGEST_LIST = 120  # characters of a list on one line
LONGEST = 300  # most characters of one piece of evidence; `--json` and the log have the whole


def facts(evidence: Mapping[str, Json], more: Mapping[str, str] | None = None) -> list[str]:
    """List names and values, one pair a line: the evidence, ``FIRST`` names first, then ``more``."""
    names = sorted(evidence, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    rows = [(name, _lines(evidence[name])) for name in names if evidence[name] not in (None, "", [], {})]
    rows += [(name, [text]) for name, text in (more or {}).items()]
    wide = max((len(name) for name, _ in rows), default=0)
    return [
        f"  {one_line(name if at == 0 else ''):<{wide}}  {text}"
        for name, texts in rows
        for at, text in enumerate(texts)
    ]


def _lines(value: Json) -> list[str]:
    if isinstance(value, list) and len(value_text(value)) > LONGEST_LIST:
        return [shortened(value_text(item)) for item in value]
    return [shortened(value_text(value))]


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _style(text: str) -> str | None:
    """Return YAML's style for a text: double quotes if it needs escapes for a terminal."""
    if not escapes.is_safe(text):
        return '"'
    return "|" if "\n" in text else None


def result_text(output: Json) -> str:
    """Format the run's output as YAML, for people and programs; a text of several lines keeps them."""
    import yaml  # slow to load, and only results need it

    class Lines(yaml.SafeDumper):
        pass

    def text_of(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=_style(text))

    Lines.add_representer(str, text_of)
    text = yaml.dump(output, Dumper=Lines, allow_unicode=True, sort_keys=False, default_flow_style=False, width=2**20)
    return text.removesuffix("...\n").removesuffix("\n")
