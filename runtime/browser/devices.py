"""Devices that a browser can appear as: Playwright's list, kept here so that a file is checked without Playwright's driver."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
from pathlib import Path
from typing import Any

from runtime.system import regular_files

FILE = Path(__file__).with_name("devices.json")


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    user_agent: str
    viewport: tuple[int, int]
    screen: tuple[int, int]
    scale: float
    mobile: bool
    touch: bool


def find(name: str) -> Device | None:
    facts = _known().get(name)
    if facts is None:
        return None
    user_agent, viewport, screen, scale, mobile, touch = facts
    return Device(user_agent, tuple(viewport), tuple(screen), scale, mobile, touch)


def like(name: str) -> str:
    """Return a sentence with the devices that are called most like ``name``."""
    known = {each.lower(): each for each in _known()}
    close = [known[each] for each in difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)]
    return f"did you mean {' or '.join(f'`{each}`' for each in close or ('iPhone 15', 'Pixel 7'))}?"


@functools.cache
def _known() -> dict[str, list[Any]]:
    return json.loads(regular_files.read_text(FILE))
