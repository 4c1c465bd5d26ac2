"""A site whose pages are hard to restore. It records each effect with its key, and can hold a request while the engine dies.

Pages and effects depend on the office alone: no clock, no randomness. The pages that matter:

- `/list`: a list of 47 rows, leafed by a form; only the first page has an address.
- `/search`, `/lookup`: forms whose answers have an address that shows something else.
- `/shop/...`: an order empties the basket that it was made from.
- `/notes/...`, `/drafts/...`: a renamed page and a filed draft are not where they were.
- `/canvas`: its state is in its script until it is saved.
- `/registry`, `/files`, `/jobs`, `/payments`, `/desk`, `/app`: see `pages.py`.
"""

from __future__ import annotations

import html
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tests.site import Answer, Request

Moment = Callable[[str], bool]
"""Called before and after an effect, with its name; whether the request is to continue."""


class Effect(NamedTuple):
    """An effect as the site carried it out."""

    kind: str
    key: str


def page(title: str, body: str, status: int = 200, **headers: str) -> Answer:
    """A whole document; headers are given with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    text = f"<!doctype html><html><head><title>{html.escape(title)}</title></head><body><h1>{html.escape(title)}</h1>{body}</body></html>"
    return Answer(text, status, named)


def see(path: str, **headers: str) -> Answer:
    """The answer to a POST that sends the browser to ``path``."""
    return Answer(
        status=303, headers={"location": path, **{name.replace("_", "-"): value for name, value in headers.items()}}
    )


def table(name: str, rows: Iterable[Iterable[object]]) -> str:
    """A table with the id ``name``; the cells of a row have the classes ``c0``, ``c1`` and so on. A cell may be markup."""
    lines = "".join(
        "<tr>" + "".join(f"<td class=c{number}>{cell}</td>" for number, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table id={name}><tbody>{lines}</tbody></table>"


def form(action: str, button: str, inner: str = "", **hidden: object) -> str:
    """A form that is sent by POST, with hidden fields and a button."""
    fields = "".join(f'<input type=hidden name="{name}" value="{value}">' for name, value in hidden.items())
    return f'<form method=post action="{action}">{fields}{inner}<button>{button}</button></form>'


def field(label: str, name: str, kind: str = "text") -> str:
    """A field with its label."""
    return f'<label>{label} <input type={kind} name="{name}"></label>'


class Office:
    """The state of the site, and its effects."""

    def __init__(self, watched_by: Callable[[], Moment]) -> None:
        """``watched_by`` gives, as an effect begins, the function called around it."""
        self.effects: list[Effect] = []
        """In order, as they were carried out."""
        self._watched_by = watched_by
        self.basket: list[str] = []
        self.orders: dict[str, str] = {}
        """The article of each order, by its number."""
        self.notes = {"alpha": "The text of the note."}
        self.drafts = {"7": "Draft seven", "8": "Draft eight"}
        self.filed = {"6": "Draft six"}
        self.canvas: list[str] = []
        self.servers = ["omega"]
        self.files = {"report.txt": "old"}
        self.jobs: list[str] = []
        self.paid: list[str] = []
        self.tickets: list[str] = []
        self.items = {"1": "open", "2": "open", "3": "closed", "4": "closed", "5": "closed"}
        self.busy = 0
        """The number of effects in progress."""

    def effect(self, kind: str, key: str, carry_out: Callable[[], object]) -> bool:
        """Carry out an effect; False where the request was dropped before it."""
        moment = self._watched_by()
        self.busy += 1
        try:
            if not moment(f"site before {kind} {key}"):
                return False
            carry_out()
            self.effects.append(Effect(kind, key))
            moment(f"site after {kind} {key}")
            return True
        finally:
            self.busy -= 1

    def times(self, kind: str, key: str | None = None) -> int:
        """The number of times that the effect was carried out."""
        return sum(each.kind == kind and key in (None, each.key) for each in self.effects)

    def record(self) -> dict[str, Any]:
        """The state in which two runs can differ on the site."""
        return {
            "effects": sorted(self.effects),
            "basket": self.basket,
            "notes": sorted(self.notes),
            "drafts": sorted(self.drafts),
            "canvas": self.canvas,
            "servers": sorted(self.servers),
            "files": self.files,
        }


def posted(request: Request) -> Mapping[str, str]:
    """The fields of a form that was sent."""
    return dict(urllib.parse.parse_qsl(request.body))


def cookie(request: Request, name: str) -> str | None:
    """A cookie of the request."""
    for each in request.headers.get("cookie", "").split(";"):
        key, _equals, value = each.strip().partition("=")
        if key == name:
            return value
    return None
