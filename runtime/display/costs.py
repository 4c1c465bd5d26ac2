"""What models cost, in words for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal

from nodes.values import Json
from runtime.display.text import count

Totals = Mapping[str, Json]
"""What was spent, as ``runtime.log.ledger.totals`` rolls it up."""

_LARGER = re.compile(r"--budget ([^\s`]+)")


def money(dollars: str | Decimal) -> str:
    """A sum as people read it: whole cents from a dollar on, two figures that count below, and never nothing for something."""
    exact = Decimal(dollars)
    places = max(2, 1 - exact.adjusted()) if exact else 2
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    whole, _dot, rest = f"{rounded:f}".partition(".")
    return f"${int(whole):,}.{rest.rstrip('0'):<02}"


def price(totals: Totals) -> str:
    """What it cost, as far as that is known."""
    if not totals["paid"]:
        return "nothing paid"
    known = Decimal(str(totals["known_dollars"]))
    if totals["dollars"] is not None:
        return money(known)
    return f"{money(known)} at least" if known else "price unknown"


def tokens(sent: int, received: int) -> str:
    """The tokens of requests; nothing where no server told any."""
    return f"{sent:,} tokens in  {received:,} out" if sent or received else ""


def told(totals: Totals) -> str:
    """The whole of it on one line: ``3 requests  1,234 tokens in  210 out  $0.0012``."""
    used = tokens(totals["input_tokens"], totals["output_tokens"])
    return "  ".join(filter(None, [count(totals["requests"], "request"), used, price(totals)]))


def brief(totals: Totals) -> str:
    """As much of it as stands beside a step: ``3 requests  $0.0012``."""
    return f"{count(totals['requests'], 'request')}  {price(totals)}"


def resume_command(run: str, error: Mapping[str, Json] | None) -> str:
    """What goes on with a run that is out of budget, or with the session that followed it; ``error`` says of which, and how much it takes."""
    evidence: Mapping[str, Json] = (error or {}).get("evidence") or {}
    if evidence.get("of") == "step":
        # The budget of a step stands in its file.
        return f"runops resume {run} --allow-changed"
    larger = _LARGER.search(str((error or {}).get("fix", "")))
    if evidence.get("of") == "session":
        return f"runops {evidence.get('command', 'chat')} --resume {evidence['session']} --budget {larger[1] if larger else '…'}"
    return f"runops resume {run} --budget {larger[1] if larger else '…'}"
