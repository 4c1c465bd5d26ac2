"""Variables of a session: named values that a model keeps for later, each with a reason. Also renders values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from director.draft.goal import GIVEN_BY_NAME
from nodes import errors
from nodes.errors import ModelError
from nodes.values import Json, NotJson, normalise
from runtime.context import briefs
from runtime.log import entries
from runtime.secrets import masking

if TYPE_CHECKING:
    from director.session.state import SessionState

NAME = re.compile(r"(?:vars\.)?[A-Za-z_][A-Za-z0-9_]{0,79}")
"""Valid names. A variable named like a node or an item of the draft, or ``vars.NAME``, replaces that value on the bench."""

MOST = 500  # limit of the variables that have a value
LONGEST = 1 << 20  # limit of a value as JSON, in characters


class Variables:
    def __init__(self, state: SessionState) -> None:
        self._state = state

    def names(self) -> list[str]:
        return [each.name for each in self._state.history.variables()]

    def all(self) -> dict[str, Json]:
        return {name: self._state.value("variable", name) for name in self.names()}

    def get(self, name: str) -> Json:
        """Return a value. Raises ModelError ``variable-unknown`` with the closest name."""
        self._known(name)
        return self._state.value("variable", name)

    def set(self, name: str, value: object, *, reason: str) -> entries.Version:
        """Set a value. Raises ModelError ``variable-invalid`` for an invalid name or value, ``secret-refused`` if it contains a secret."""
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
        refuse_secret(self._state.masker, [name, known], f"the variable `{name}`")
        return self._state.keep(entries.Version(of="variable", name=name, number=0, reason=reason, by="model"), known)

    def cleared_since(self, line: int, reason: str) -> list[str]:
        """Return the names whose value was removed after that line of the log, for this reason."""
        history, said = self._state.history, self._state.masker.text(" ".join(reason.split()))
        last = [history.versions("variable", name)[-1] for name in history.names_of("variable")]
        return [each.name for each in last if each.cleared and each.seq > line and each.reason == said]

    def clear(self, name: str, *, reason: str, others: Sequence[str] = ()) -> entries.Version:
        """Remove a value. Raises ModelError ``variable-unknown``, unless it was just removed for the same reason.

        ``others`` are names of other values: the error may mean one of them.
        """
        wanted = entries.Version(of="variable", name=name, number=0, cleared=True, reason=reason, by="model")
        versions = self._state.history.versions("variable", name)
        last = versions[-1] if versions else None
        said = self._state.masker.text(" ".join(reason.split()))
        if last is None or not last.cleared or last.reason != said:
            self._known(name, others)
        return self._state.keep(wanted, None)

    def clear_all(self, *, reason: str) -> list[str]:
        names = self.names()
        for name in names:
            self.clear(name, reason=reason)
        return names

    def _known(self, name: str, others: Sequence[str] = ()) -> None:
        if name not in (names := self.names()):
            raise unknown(name, [*names, *others])


def told(state: SessionState, of_subject: Mapping[str, object] | None = None) -> dict[str, Json]:
    """Return the values of the subject and of the session as a model sees them: hidden where their names say so."""
    return hidden(state, {**(of_subject or {}), **state.variables.all()})


def hidden(state: SessionState, values: Mapping[str, object]) -> dict[str, Json]:
    """Return the values without those that are hidden by their names."""
    return {name: state.masker.names.json(value, name) for name, value in values.items()}


def render(values: Mapping[str, object]) -> Iterator[str]:
    """Yield each value as a line ``NAME = …``: whole up to 100 characters, else shortened; a list as its first item and length."""
    for name, value in values.items():
        yield f"{name} = {briefs.shown(value)}"


def unknown(name: str, names: list[str], missing: tuple[str, str] | None = None) -> ModelError:
    if missing is not None:
        return ModelError("variable-unknown", f"`{name[:100]}` has no value that counts: {missing[0]}", fix=missing[1])
    close = errors.near(name, names)
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return ModelError(
        "variable-unknown",
        f"there is no variable `{name[:100]}`",
        fix=f"did you mean `{close}`?" if close else f"these have a value: {listed or 'none'}",
    )


def refuse_secret(masker: masking.Masker, value: Json, what: str) -> None:
    """Raise ModelError ``secret-refused`` if ``value`` contains a secret: only a mask would be stored."""
    if masker.json(value) != value:
        raise ModelError(
            "secret-refused",
            f"{what} contains a secret, and secrets are never stored",
            fix="leave it out; a workflow names it: `secrets: [NAME]`, and `{{ secrets.NAME }}` where it is typed; "
            + GIVEN_BY_NAME,
        )


def _invalid(what: str, fix: str) -> ModelError:
    return ModelError("variable-invalid", what, fix=fix)
