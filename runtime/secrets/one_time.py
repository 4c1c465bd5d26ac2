"""One-time codes of RFC 6238 (TOTP), as authenticator apps make them."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from nodes.errors import SetupError

if TYPE_CHECKING:
    from pyotp.totp import TOTP

SHORTEST_LEFT = 2.0  # seconds for which a code must still be valid: else the next one is waited for
DIGITS = 6  # fewest digits of a code


@dataclasses.dataclass(frozen=True, slots=True)
class Code:
    text: str
    left: float  # seconds for which it is valid


def code(secret: str, now: float) -> Code:
    """Return the code at ``now``, in seconds since 1970. ``secret`` is base32, or an ``otpauth://`` address with period, digits and algorithm.

    Raises SetupError ``extra-missing`` without the library, ``otp-secret`` for another text.
    """
    try:
        totp = _totp(secret.strip())
        return Code(totp.at(int(now)), totp.interval - now % totp.interval)
    except (ValueError, TypeError, KeyError):
        # What they say may quote the secret.
        raise SetupError(
            "otp-secret",
            "the secret that `totp` was given is no key for one-time codes",
            fix="give the site's key as it shows it, in base32 (`JBSW Y3DP …`), or its `otpauth://totp/…` address",
        ) from None


def _totp(secret: str) -> TOTP:
    try:
        import pyotp  # an extra, which few runs need
        from pyotp.totp import TOTP
    except ImportError:
        raise SetupError(
            "extra-missing",
            "`totp` needs the package pyotp, which is not installed",
            fix="type: pip install pyotp",
        ) from None
    if not secret.lower().startswith("otpauth:"):
        return TOTP(re.sub(r"[\s-]", "", secret).upper())
    made = pyotp.parse_uri(secret)
    if type(made) is not TOTP or made.digits < DIGITS or made.interval <= SHORTEST_LEFT:
        raise ValueError
    return made
