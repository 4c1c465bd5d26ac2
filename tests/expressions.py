"""Expressions evaluated without a run, with a clock that does not move."""

from typing import Any

from runtime.language.expressions import references


class Clock:
    """A clock that does not move."""

    def now(self) -> str:
        return "2026-11-21T03:00:00+00:00"

    def uuid(self) -> str:
        return "3f2b8d1e-0000-4000-8000-000000000000"

    def totp(self, secret: str) -> str:
        return f"code of {secret}"


def render(text: str, **values: Any) -> Any:
    """The value of a text with references."""
    return references.compile(text).render(values, Clock())


def value_of(expression: str, **values: Any) -> Any:
    """The value of one expression."""
    return render("{{ " + expression + " }}", **values)
