"""Workflow files in a run: the run's own, and each that a ``group`` uses. None of them sees anything of another."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.errors import AuthorError, UsageError
from nodes.values import Json
from runtime.browser import port
from runtime.language.inputs import mismatch

if TYPE_CHECKING:
    from runtime.language import workflow


@dataclasses.dataclass(eq=False, slots=True)
class Program:
    loaded: workflow.Loaded
    run: str
    secrets: Mapping[str, str]  # secrets that the file may read
    path: str = ""  # step path of the group that uses it; empty for the run's own file
    origins: Sequence[str] | None = None
    """Origins whose documents may load while it runs; None for all that the browser was opened with."""
    variables: dict[str, Json] = dataclasses.field(default_factory=dict)
    facts: dict[str, Json] = dataclasses.field(init=False)  # value of `run` in its references

    def __post_init__(self) -> None:
        self.facts = {"id": self.run, "errors": {}, "taken": {}, "failures": {}}

    def scope(self, inputs: Mapping[str, Json]) -> Scope:
        names: dict[str, Json] = {"inputs": dict(inputs), "vars": self.variables, "run": self.facts}
        return Scope(names=names, program=self)

    def inputs_of(self, group: str, given: Mapping[str, Json]) -> dict[str, Json]:
        """Return the inputs of the file that a group uses, defaults filled in. Raises AuthorError ``value-mismatch`` for a wrong kind."""
        file = self.loaded.callees[group]
        for name, value in given.items():
            if wrong := mismatch(file.workflow.inputs[name], value):
                raise AuthorError(
                    "value-mismatch",
                    f"`with.{name}` {wrong}",
                    fix=f"give `{name}` a value of that kind; filters turn one into another (`number`, `from_json`, `list`, `json`)",
                    evidence={"field": f"with.{name}", "file": str(file.path)},
                )
        return {name: given.get(name, each.default) for name, each in file.workflow.inputs.items()}

    def callee(self, group: str, path: str, inputs: Mapping[str, Json], secrets: Sequence[str]) -> Program:
        """Return the file that a group at ``path`` uses, with these inputs. Raises AuthorError ``bad-origin`` for an invalid origin."""
        file = self.loaded.callees[group]
        try:
            own = file.origins(inputs)
        except UsageError as error:
            raise AuthorError(error.code, error.message, fix=error.fix, evidence={"file": str(file.path)}) from None
        # A file that names no address works on the pages that its caller has open.
        if file.workflow.allowed_origins is None and not own:
            origins = self.origins
        else:
            origins = own if self.origins is None else [each for each in own if each in self.origins]
        return Program(file, self.run, {name: self.secrets[name] for name in secrets}, path, origins)

    def confine(self, browser: port.Browser) -> None:
        """Let documents load only from the file's allowed origins from now on."""
        browser.confine(self.origins, str(self.loaded.path))


class UnreadableValue:
    """The value of a step that held a secret, was stored masked, and can no longer be read again."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class Scope(Mapping[str, Json]):
    """One scope. Reading searches outwards; binding stays here."""

    __slots__ = ("_program", "names", "outer")

    def __init__(
        self,
        outer: Scope | None = None,
        names: dict[str, Json] | None = None,
        program: Program | None = None,
    ) -> None:
        self.outer = outer
        self._program = outer._program if outer is not None else program
        self.names: dict[str, Json] = {} if names is None else names

    @property
    def program(self) -> Program:
        assert self._program is not None, "a scope of no file"
        return self._program

    def bind(self, name: str, value: Json) -> None:
        self.names[name] = value

    def _outwards(self) -> Iterator[Scope]:
        frame: Scope | None = self
        while frame is not None:
            yield frame
            frame = frame.outer

    def __getitem__(self, name: str) -> Json:
        for frame in self._outwards():
            if name in frame.names:
                value = frame.names[name]
                if value.__class__ is UnreadableValue:
                    raise _unreadable(name, value)
                return value
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in frame.names for frame in self._outwards())

    def __iter__(self) -> Iterator[str]:
        return iter({name for frame in self._outwards() for name in frame.names})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _unreadable(name: str, lost: UnreadableValue) -> AuthorError:
    return AuthorError(
        "value-masked",
        f"the value of `{name}` held a secret, so it was stored masked, and the page it was read from has moved on",
        fix=f"start a new run, or read `{name}` again right before it is needed",
        evidence={"step": lost.path},
    )
