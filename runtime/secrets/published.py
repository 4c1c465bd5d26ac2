"""What a command gives out, files and printed text: the last look before others can read it.

It knows the secrets that the process has read so far. All of it was masked before, by the masker of its run. Here a secret in a text that
is printed is masked once more; a file, or a result, that would still hold one is refused.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Protocol

from nodes.errors import UsageError
from nodes.values import Json
from runtime.secrets import gate, masking, sources
from runtime.system import files


def publish(path: Path, data: bytes) -> None:
    """Replace ``path`` with ``data``, as ``files.publish`` does. Raises UsageError ``secret-published``, OSError."""
    demand_clean(str(path), data)
    files.publish(path, data)


def write(path: Path, data: bytes) -> None:
    """Replace ``path`` with ``data``, readable by its owner only. Raises UsageError ``secret-published``, OSError."""
    demand_clean(str(path), data)
    files.write(path, data)


def demand_clean(what: str, data: bytes) -> None:
    """Raise UsageError ``secret-published`` if ``data`` holds a secret: ``what`` is to be given out."""
    shown = found(data)
    if shown is not None:
        raise UsageError(
            "secret-published",
            f"{masked(what)} would have shown a secret ({shown}), and was not written",
            fix="report it: this is a mistake of RunOps",
        )


def found(data: bytes) -> gate.Found | None:
    """Return the secrets in ``data``."""
    return gate.Gate(_masker()).data(data)


class AsJson(Protocol):
    """Formats a value as JSON that is safe to print."""

    def __call__(self, value: Json, /, *, indent: int | None = None) -> str: ...


def result(text: str, as_json: AsJson) -> str:
    """Return the result of a command as it is printed. Raises UsageError ``secret-published``."""
    shown = masked(text, as_json)
    demand_clean("the output", shown.encode(errors="surrogatepass"))
    return shown


def told(text: str, as_json: AsJson) -> str:
    """Return what a command says beside its result as it is printed: only a mask, if a secret would still be seen."""
    shown = masked(text, as_json)
    return shown if found(shown.encode(errors="surrogatepass")) is None else f"{masking.MASK}\n"


def masked(text: str, as_json: AsJson = json.dumps) -> str:
    """Return a text without the secrets. JSON stays JSON, on one line if it was."""
    masker = _masker()
    if masker.idle or (shown := masker.text(text)) == text:
        return text
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return shown
    kept = as_json(masker.json(value), indent=2 if "\n" in text.strip() else None)
    return kept + ("\n" if text.endswith("\n") else "")


def _masker() -> masking.Masker:
    # A secret that equals an ordinary word is just that word in our own text, and text of pages was masked before.
    return _masker_of(frozenset(sources.SEEN.items()))


@functools.lru_cache(maxsize=4)
def _masker_of(secrets: frozenset[tuple[str, str]]) -> masking.Masker:
    return masking.Masker(dict(secrets)).but_words
