"""What a command gives out, files and printed text: the last look before others can read it.

It knows the secrets that the process has read so far. All of it was masked before, by the masker of its run. Here a secret in a text that
is printed is masked once more; a file, or a result, that would still hold one is refused.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

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


def result(text: str) -> str:
    """Return the result of a command as it is printed. Raises UsageError ``secret-published``."""
    shown = masked(text)
    demand_clean("the output", shown.encode(errors="surrogatepass"))
    return shown


def told(text: str) -> str:
    """Return what a command says beside its result as it is printed: only a mask, if a secret would still be seen."""
    shown = masked(text)
    return shown if found(shown.encode(errors="surrogatepass")) is None else f"{masking.MASK}\n"


def masked(text: str) -> str:
    """Return a text without the secrets. JSON stays JSON."""
    masker = _masker()
    if masker.idle or (shown := masker.text(text)) == text:
        return text
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return shown
    return json.dumps(masker.json(value), indent=2) + ("\n" if text.endswith("\n") else "")


def _masker() -> masking.Masker:
    # A secret that equals an ordinary word is just that word in our own text, and text of pages was masked before.
    return _masker_of(frozenset(sources.ENVIRONMENT.seen.items()))


@functools.lru_cache(maxsize=4)
def _masker_of(secrets: frozenset[tuple[str, str]]) -> masking.Masker:
    return masking.Masker(dict(secrets)).but_words
