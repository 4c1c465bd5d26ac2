"""Which documents a workflow allows: a question of their origin."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Iterator

_DEFAULT_PORTS = {"http": 80, "https": 443}

_EMPTY = frozenset({"about", "data", "javascript"})
"""Schemes whose documents come from no site: a blank page, or what the workflow or an allowed page itself wrote."""


def origin(url: str) -> str | None:
    """Scheme, host and port of a web address, as browsers write them (no default port, no trailing dot); None for every other address."""
    try:
        parts = urllib.parse.urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if scheme not in _DEFAULT_PORTS or not host:
        return None
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" if port in (None, _DEFAULT_PORTS[scheme]) else f"{scheme}://{shown}:{port}"


class Allowed:
    """The origins whose documents may load."""

    def __init__(self, origins: Iterable[str], file: str | None = None) -> None:
        self.file = file
        """The workflow file that allows no others, where it is one that the run's own file uses."""
        self._origins = {known for each in origins if (known := origin(each)) is not None}

    def __contains__(self, origin: str) -> bool:
        return origin in self._origins

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._origins))

    def document(self, url: str) -> bool:
        """Whether a document from ``url`` may load. ``blob:`` counts as the origin that made it; ``file:`` and the like are no sites."""
        scheme, _colon, rest = url.partition(":")
        if scheme.lower() in _EMPTY:
            return True
        if scheme.lower() == "blob":
            return rest.startswith("null/") or self.document(rest)
        return origin(url) in self._origins


def is_blank(url: str) -> bool:
    """Whether this is the address of a tab that has no document yet, in any of the ways in which Chromium writes it."""
    return url in ("", ":", "about:blank")


def without_query(url: str) -> str:
    """The address without query, fragment and credentials: what may be shown of it."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
