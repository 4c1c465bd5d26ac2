"""What Chromium tells about itself beside its user agent (client hints), as Playwright derives it."""

from __future__ import annotations

import re

from runtime.browser.devtools import connection as devtools_connection
from runtime.browser.options import BrowserOptions

_PLATFORMS = (
    ("Android", re.compile(r"Android (\d+(?:\.\d+)?(?:\.\d+)?)")),
    ("iOS", re.compile(r"iPhone OS (\d+(?:_\d+)?)")),
    ("iOS", re.compile(r"iPad; CPU OS (\d+(?:_\d+)?)")),
    ("macOS", re.compile(r"Mac OS X (\d+(?:_\d+)?(?:_\d+)?)")),
    ("Windows", re.compile(r"Windows\D+(\d+(?:\.\d+)?(?:\.\d+)?)")),
    ("Linux", re.compile(r"linux()", re.IGNORECASE)),
)
"""Platforms in the order in which they are sought; an iPhone's user agent also names Mac OS X."""


def hints(user_agent: str, *, mobile: bool) -> devtools_connection.Params:
    """Return ``userAgentMetadata`` for a user agent; a browser of an unknown platform is one of Windows."""
    found = ((name, pattern.search(user_agent)) for name, pattern in _PLATFORMS)
    platform, version = next(((name, match[1]) for name, match in found if match), ("Windows", ""))
    is_arm = platform in ("Android", "iOS") or (platform == "macOS" and "Intel" not in user_agent)
    return {
        "mobile": mobile,
        "model": "",
        "architecture": "arm" if is_arm or "ARM" in user_agent else "x86",
        "platform": platform,
        "platformVersion": version,
    }


def headers(options: BrowserOptions) -> dict[str, str]:
    """Return the headers with which Chromium tells sites the same; none if the user agent is its own."""
    if options.user_agent is None:
        return {}
    told = hints(options.user_agent, mobile=options.mobile)
    return {"sec-ch-ua-mobile": f"?{int(options.mobile)}", "sec-ch-ua-platform": f'"{told["platform"]}"'}
