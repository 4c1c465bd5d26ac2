"""What a reference can see: names and their values, in nested scopes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from nodes.errors import AuthorError
from nodes.values import Json

if TYPE_CHECKING:
    from runtime.engine import programs


class Lost:
    """The value of a step that held a secret, was stored masked, and can no longer be read again."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        """``path`` is the step's."""
        self.path = path


class Frame(Mapping[str, Json]):
    """One scope. Reading looks outwards; binding stays here."""

    __slots__ = ("_program", "names", "outer")

    def __init__(
        self,
        outer: Frame | None = None,
        names: dict[str, Json] | None = None,
        program: programs.Program | None = None,
    ) -> None:
        """A scope within ``outer``, with ``names`` bound; or the outermost of ``program``."""
        self.outer = outer
        self._program = outer._program if outer is not None else program
        self.names: dict[str, Json] = {} if names is None else names

    @property
    def program(self) -> programs.Program:
        """The file to which the scope belongs, as it is being run."""
        assert self._program is not None, "a scope of no file"
        return self._program

    def bind(self, name: str, value: Json) -> None:
        """Give ``name`` a value here."""
        self.names[name] = value

    def __getitem__(self, name: str) -> Json:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                value = frame.names[name]
                if value.__class__ is Lost:
                    raise _lost(name, value)
                return value
            frame = frame.outer
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return True
            frame = frame.outer
        return False

    def __iter__(self) -> Iterator[str]:
        seen: set[str] = set()
        frame: Frame | None = self
        while frame is not None:
            yield from frame.names.keys() - seen
            seen |= frame.names.keys()
            frame = frame.outer

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _lost(name: str, lost: Lost) -> AuthorError:
    return AuthorError(
        "value-masked",
        f"the value of `{name}` held a secret, so it was stored masked, and the page it was read from has moved on",
        mend=f"start a new run, or read `{name}` again right before it is needed",
        evidence={"step": lost.path},
    )
