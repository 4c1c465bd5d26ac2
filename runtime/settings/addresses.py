"""Check of a server address before anything is sent. It never shows the address, which may contain a password."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Sequence

LONGEST = 2000  # maximum number of characters of an address

LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
NUMBERS = re.compile(r"[0-9.]+")
PRINTABLE = re.compile(r"[!-~]+")


class BadAddress(ValueError):
    """An address that cannot be used; the message gives the reason without any part of the address."""

    def __init__(self, wrong: str, fix: str) -> None:
        super().__init__(wrong)
        self.fix = fix


def checked(address: str) -> str:
    """Return the address of a model's server, if it has http or https, a host, and perhaps a port and a path. Raises BadAddress."""
    fix = "write it as `https://HOST/v1` or `http://HOST:PORT/v1`"
    _demand_printable(address, fix)
    if "@" in address:
        raise BadAddress(
            "it contains a name or a password (`…@`), and would be shown with them",
            "leave them out, and give the key in RUNOPS_MODEL_KEY",
        )
    if "?" in address or "#" in address:
        raise BadAddress(
            "it continues after a `?` or a `#`, where no path can be added to it",
            "leave that out, and give the key in RUNOPS_MODEL_KEY",
        )
    _demand_host(address, ("http", "https"), fix)
    return address


def checked_browser(address: str) -> str:
    """Return the DevTools address of a browser; a name and a password may stand in it. Raises BadAddress."""
    fix = "write it as `http://HOST:PORT` or `ws://HOST:PORT/devtools/browser/ID`"
    _demand_printable(address, fix)
    _demand_host(address, ("http", "https", "ws", "wss"), fix)
    return address


def _demand_printable(address: str, fix: str) -> None:
    if not PRINTABLE.fullmatch(address) or len(address) > LONGEST:
        raise BadAddress(
            "it is empty, far too long, or contains blanks or other characters that no address has",
            f"{fix}; a host with letters other than a to z in its encoded form, `xn--…`",
        )


def _demand_host(address: str, schemes: Sequence[str], fix: str) -> None:
    try:
        parts = urllib.parse.urlsplit(address)
        scheme, host, _ = parts.scheme, parts.hostname, parts.port
    except ValueError:
        raise BadAddress("its host or its port is invalid", fix) from None
    if scheme not in schemes or not address[len(scheme) :].startswith("://"):
        *others, last = (f"with {each}://" for each in schemes)
        raise BadAddress(f"it begins neither {', '.join(others)} nor {last}", fix)
    if not host or not _is_host(host, parts.netloc.rpartition("@")[2]):
        raise BadAddress("its host is invalid", fix)


def _is_host(host: str, place: str) -> bool:
    if "[" in place or NUMBERS.fullmatch(host):
        try:
            number = ipaddress.ip_address(host)
        except ValueError:
            return False
        return number.version == 4 or re.fullmatch(rf"\[{re.escape(host)}\](:[0-9]*)?", place.lower()) is not None
    labels = host.removesuffix(".").split(".")
    return len(host) <= 253 and all(LABEL.fullmatch(each) for each in labels)
