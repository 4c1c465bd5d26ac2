"""The kinds of browsers."""

from __future__ import annotations

from typing import Literal

Engine = Literal["chromium", "firefox", "webkit"]
