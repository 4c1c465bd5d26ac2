"""Checks of a signed-in state before it is loaded: one that cannot sign in any more would let a run continue signed out."""

from __future__ import annotations

from nodes.errors import SiteError
from nodes.values import Json

FIX = "sign in and keep the state with `save_session`, in the `catch` of a `handle` around this node"


def require_usable(state: Json, now: float) -> None:
    """Raise SiteError if the state, reduced to the allowed origins, cannot sign in at ``now`` (seconds since 1970).

    ``session-not-found``: nothing in it is for these origins. ``session-expired``: every cookie that can sign in has expired.
    """
    cookies, stored = state["cookies"], state["origins"]
    signing_in = _signing_in(cookies, stored)
    if not cookies and not stored:
        raise SiteError(
            "session-not-found",
            "the signed-in state has nothing for the origins that the workflow allows",
            fix=FIX,
        )
    # A cookie without a date ends with the browser, on the site's side or not at all.
    if signing_in and all(0 < each["expires"] <= now for each in signing_in):
        names: list[Json] = sorted({str(each["name"]) for each in signing_in})
        raise SiteError(
            "session-expired",
            "the signed-in state has expired: no cookie that can sign in is valid any more",
            fix=FIX,
            evidence={"cookies": names},
        )


def _signing_in(cookies: Json, stored: Json) -> list[Json]:
    """Return the cookies that may sign in: those hidden from scripts; without any, and without stored data, all."""
    hidden = [each for each in cookies if each["httpOnly"]]
    return hidden or ([] if stored else list(cookies))
