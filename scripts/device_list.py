"""Writes runtime/browser/devices.json, the devices that the installed Playwright describes: python scripts/device_list.py."""

import asyncio
import json
from typing import Any

from playwright.async_api import async_playwright

from runtime.browser import devices


async def described() -> dict[str, list[Any]]:
    """Return each device as user agent, size of the page area, size of the screen, scale, mobile, touch."""
    async with async_playwright() as playwright:
        known: dict[str, dict[str, Any]] = playwright.devices  # pyright: ignore[reportUnknownMemberType]
        return {name: _facts(each) for name, each in known.items()}


def _facts(device: dict[str, Any]) -> list[Any]:
    viewport, screen = ([each["width"], each["height"]] for each in (device["viewport"], _screen(device)))
    return [
        device["user_agent"],
        viewport,
        screen,
        device["device_scale_factor"],
        device["is_mobile"],
        device["has_touch"],
    ]


def _screen(device: dict[str, Any]) -> dict[str, int]:
    return device.get("screen") or device["viewport"]


def text(known: dict[str, list[Any]]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in known.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    devices.FILE.write_text(text(asyncio.run(described())), encoding="utf-8")
