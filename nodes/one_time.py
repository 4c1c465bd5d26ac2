"""Texts with a one-time code, which is made anew at the moment of its use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


class OneTime(str):
    """A text with a one-time code, as it was when the step began. ``renew`` returns it with the present code."""

    __slots__ = ("renew",)

    renew: Callable[[], Awaitable[str]]

    @classmethod
    def of(cls, text: str, renew: Callable[[], Awaitable[str]]) -> OneTime:
        made = cls(text)
        made.renew = renew
        return made


async def current(text: str, ready: Callable[[], Awaitable[None]] | None = None) -> str:
    """Return the text to type now. For a one-time code, ``ready`` is awaited first: the code would grow old while the field is waited for."""
    if not isinstance(text, OneTime):
        return text
    if ready is not None:
        await ready()
    return await text.renew()
