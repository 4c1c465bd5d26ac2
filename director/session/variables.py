"""The variables of a session: values by name that a person or a model keeps for later, each with why. And how values are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal, Protocol

from nodes import errors
from nodes.errors import ModelError
from nodes.values import Json, NotJson, normalise
from runtime.context import briefs
from runtime.log import entries
from runtime.log.session import Session
from runtime.secrets import masking

NAME = re.compile(r"(?:vars\.)?[A-Za-z_][A-Za-z0-9_]{0,79}")
"""What a variable may be called. One that is called like a node, an item or ``vars.NAME`` of the draft stands for that on the bench."""

MOST = 500
"""Variables of a session that have a value."""

LONGEST = 1 << 20
"""Characters of a value, as JSON."""

By = Literal["model", "person"]
"""Who says what is kept."""


class Keeper(Protocol):
    """Where versions are written."""

    @property
    def history(self) -> Session:
        """The session's fold."""
        ...

    @property
    def masker(self) -> masking.Masker:
        """What finds the secrets that the session knows."""
        ...

    def value(self, of: str, name: str = "") -> Json:
        """What is kept now."""
        ...

    def keep(self, version: entries.Version, value: Json) -> entries.Version:
        """Write a further version."""
        ...


class Variables:
    """Reads and writes them."""

    def __init__(self, keeper: Keeper) -> None:
        """``keeper`` is the session's desk."""
        self._keeper = keeper

    def names(self) -> list[str]:
        """The names of those that have a value, in the order in which they first had one."""
        return [each.name for each in self._keeper.history.variables()]

    def all(self) -> dict[str, Json]:
        """Every variable with its value."""
        return {name: self._keeper.value("variable", name) for name in self.names()}

    def get(self, name: str) -> Json:
        """The value of one. Raises ModelError ``variable-unknown``, with the one that was meant."""
        self._known(name)
        return self._keeper.value("variable", name)

    def set(self, name: str, value: object, *, reason: str, by: By) -> entries.Version:
        """Give it a value. Raises ModelError: ``variable-invalid`` for a name or a value that cannot be one, ``secret-refused`` for one that holds a secret."""
        if not NAME.fullmatch(name):
            raise _invalid(f"`{name[:100]}` is no name", "a name has letters, digits and `_`, at most 80")
        try:
            known = normalise(value)
        except NotJson as error:
            raise _invalid(f"`{name}` cannot have this value: {error}", "give it a value that is JSON") from None
        if len(json.dumps(known, ensure_ascii=False)) > LONGEST:
            raise _invalid(f"the value of `{name}` has more than {LONGEST:,} characters", "keep a part of it")
        names = self.names()
        if name not in names and len(names) >= MOST:
            raise _invalid(f"there are {MOST} variables already", "clear those that are not needed any more")
        refuse_secret(self._keeper.masker, [name, known], f"the variable `{name}`")
        return self._keeper.keep(entries.Version(of="variable", name=name, number=0, reason=reason, by=by), known)

    def clear(self, name: str, *, reason: str, by: By) -> entries.Version:
        """Take its value away. Raises ModelError ``variable-unknown``, but where the last one who took it away did so for the same reason."""
        wanted = entries.Version(of="variable", name=name, number=0, cleared=True, reason=reason, by=by)
        versions = self._keeper.history.versions("variable", name)
        last = versions[-1] if versions else None
        if last is None or (last.cleared, last.reason, last.by) != (
            True,
            self._keeper.masker.text(" ".join(reason.split())),
            by,
        ):
            self._known(name)
        return self._keeper.keep(wanted, None)

    def clear_all(self, *, reason: str, by: By) -> list[str]:
        """Take all values away; the names of those that had one."""
        names = self.names()
        for name in names:
            self.clear(name, reason=reason, by=by)
        return names

    def _known(self, name: str) -> None:
        if name not in (names := self.names()):
            raise unknown(name, names)


def told(values: Mapping[str, object]) -> Iterator[str]:
    """Each value on a line by the rules of display: ``NAME = …``, whole up to 100 characters, of a list the first item and how many there are."""
    for name, value in values.items():
        yield f"{name} = {briefs.shown(value)}"


def unknown(name: str, names: list[str], lacks: tuple[str, str] | None = None) -> ModelError:
    """The error of whoever asks for a variable that has no value; ``lacks`` is why it has none, and what gives it one, where that is known."""
    if lacks is not None:
        return ModelError("variable-unknown", f"`{name[:100]}` has no value that counts: {lacks[0]}", fix=lacks[1])
    close = errors.near(name, names)
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return ModelError(
        "variable-unknown",
        f"there is no variable `{name[:100]}`",
        fix=f"did you mean `{close}`?" if close else f"these have a value: {listed or 'none'}",
    )


def refuse_secret(masker: masking.Masker, value: Json, what: str) -> None:
    """Raise ModelError ``secret-refused`` where a secret stands in ``value``: what is kept would hold a mask, and a mask is no value."""
    if masker.json(value) != value:
        raise ModelError(
            "secret-refused",
            f"a secret stands in {what}, and no secret is kept",
            fix="leave it out; a workflow names it: `secrets: [NAME]`, and `{{ secrets.NAME }}` where it is typed",
        )


def _invalid(what: str, fix: str) -> ModelError:
    return ModelError("variable-invalid", what, fix=fix)
