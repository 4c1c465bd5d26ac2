"""Costs of models, in words for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal

from nodes.values import Json
from runtime.display.text import count, joined

Totals = Mapping[str, Json]  # totals of `runtime.log.ledger.totals`

_LARGER = re.compile(r"--budget ([^\s`]+)")


def money(dollars: str | Decimal) -> str:
    """Format a sum: whole cents from a dollar on, two significant digits below, never zero for a positive sum."""
    exact = Decimal(dollars)
    places = max(2, 1 - exact.adjusted()) if exact else 2
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    whole, _dot, rest = f"{rounded:f}".partition(".")
    return f"${int(whole):,}.{rest.rstrip('0'):<02}"


def price(totals: Totals) -> str:
    if not totals["paid"]:
        return "nothing paid"
    known = Decimal(str(totals["known_dollars"]))
    if totals["dollars"] is not None:
        return money(known)
    return f"{money(known)} at least" if known else "price unknown"


def tokens(sent: int, received: int) -> str:
    return f"{sent:,} tokens in  {received:,} out" if sent or received else ""


def render(totals: Totals) -> str:
    """Format all totals on one line: ``3 requests  1,234 tokens in  210 out  $0.0012``."""
    used = tokens(totals["input_tokens"], totals["output_tokens"])
    return joined(count(totals["requests"], "request"), used, price(totals))


def sentence(totals: Totals) -> str:
    """Format them within a sentence: ``3 requests, 1,204 tokens, $0.01``."""
    both = totals["input_tokens"] + totals["output_tokens"]
    parts = (count(totals["requests"], "request"), f"{both:,} tokens" if both else "", price(totals))
    return ", ".join(filter(None, parts))


def brief(totals: Totals) -> str:
    return f"{count(totals['requests'], 'request')}  {price(totals)}"


def resume_command(run: str, error: Mapping[str, Json] | None) -> str:
    """Return the command that resumes a run, or its session, with the larger budget that the fix of ``error`` names."""
    evidence: Mapping[str, Json] = (error or {}).get("evidence") or {}
    if evidence.get("of") == "step":
        # The budget of a step is in its file.
        return f"runops resume {run} --allow-changed"
    larger = _LARGER.search(str((error or {}).get("fix", "")))
    command = f"runops resume {run}"
    if evidence.get("of") == "session":
        command = f"runops {evidence.get('command', 'chat')} --resume {evidence['session']}"
    return f"{command} --budget {larger[1] if larger else '…'}"
