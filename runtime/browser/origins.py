"""Origins of documents, and the ones that a workflow allows."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Iterator

from nodes.values import Json

_DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"[^\x00-\x20\x7f#/<>?@\[\\\]^|%]+")
"""Hosts that browsers accept: https://url.spec.whatwg.org/#forbidden-domain-code-point; a colon is in an IPv6 address."""

_EMPTY = frozenset({"about", "data", "javascript"})
"""Schemes whose documents come from no site: blank pages, and text written by the workflow or an allowed page."""


def origin(url: str) -> str | None:
    """Return scheme, host and port of a web address as browsers write them (no default port or trailing dot); None for others."""
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
    if not _HOST.fullmatch(host):
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" if port in (None, _DEFAULT_PORTS[scheme]) else f"{scheme}://{shown}:{port}"


class Allowed:
    def __init__(self, origins: Iterable[str], file: str | None = None) -> None:
        self.file = file  # workflow file that allows only these, if it is one that the run's own file uses
        self._origins = {known for each in origins if (known := origin(each)) is not None}

    def __contains__(self, origin: str) -> bool:
        return origin in self._origins

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._origins))

    def document(self, url: str) -> bool:
        """Return True if a document from ``url`` may load. ``blob:`` counts as its creator's origin; ``file:`` etc. are no sites."""
        scheme, _colon, rest = url.partition(":")
        if scheme.lower() in _EMPTY:
            return True
        if scheme.lower() == "blob":
            return rest.startswith("null/") or self.document(rest)
        return origin(url) in self._origins

    def stored(self, state: Json) -> Json:
        """Return Playwright's storage state without the parts that belong to none of these origins."""
        hosts = [urllib.parse.urlsplit(each).hostname or "" for each in self]
        return {
            "cookies": [each for each in state["cookies"] if any(_sent_to(each["domain"], host) for host in hosts)],
            "origins": [each for each in state["origins"] if each["origin"] in self],
        }


def _sent_to(domain: str, host: str) -> bool:
    """Return True if a cookie of this domain is sent to the host: a leading dot includes subdomains."""
    plain = domain.lower().strip("[]")
    return host == plain.lstrip(".") or (plain.startswith(".") and host.endswith(plain))


def is_blank(url: str) -> bool:
    """Return True for the address of a tab without a document, in every form that Chromium writes."""
    return url in ("", ":", "about:blank")


def is_error_page(url: str) -> bool:
    """Return True for the address of a page that a browser shows in place of a document that did not load."""
    return url.startswith(("chrome-error:", "about:neterror", "about:certerror"))


def without_query(url: str) -> str:
    """Return the address without query, fragment and credentials, safe to show."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def place(url: str) -> str:
    """Return scheme, host and port of any address: its name, password, path and query may be secret."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
