"""HTTP authentication: whether the site's answer asks for it, and how a workflow signs in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

UNAUTHORIZED = 401

NO_ANSWER = "ERR_INVALID_AUTH_CREDENTIALS"  # network error of Chromium for a site that asks, and shows nothing else

_SCHEME = re.compile(r"(?:^|[,\n])\s*(basic|digest)(?=[\s,]|$)", re.IGNORECASE)


def asked(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether an answer asks for a name and password that the option ``http_credentials`` can give."""
    return status == UNAUTHORIZED and _SCHEME.search(headers.get("www-authenticate", "")) is not None


def fix(secrets: Sequence[str], *, given: bool) -> str:
    """Return what to write. ``secrets`` are the names of the run's secrets; ``given``: the site has refused what was written."""
    if given:
        return "the site refuses the name and password of `http_credentials`: correct them in the head of the workflow"
    name = secrets[0] if len(secrets) == 1 else "NAME"
    choices = f"; secrets: {', '.join(secrets)}" if len(secrets) > 1 else ""
    written = f'browser: {{http_credentials: {{username: ada, password: "{{{{ secrets.{name} }}}}"}}}}'
    return f"the site asks for HTTP credentials: write `{written}` in the head of the workflow{choices}"
