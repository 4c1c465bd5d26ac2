"""Sources of the values of secrets: a port, the environment of a command, and the values that a program gives."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import dotenv
from typing_extensions import override

from nodes.errors import SetupError
from runtime.secrets.masking import SHORTEST
from runtime.system import regular_files


class SecretSource(Protocol):
    def find(self, names: Iterable[str], beside: Path | None = None) -> dict[str, str]:
        """Return the value of each; empty if there is none. ``beside`` is the folder of the workflow that needs them."""
        ...

    def how_to_set(self, name: str, beside: Path | None = None) -> str: ...


class Environment(SecretSource):
    """The variables of this process, else ``.env`` in the workflow's folder, else in the current one."""

    @override
    def find(self, names: Iterable[str], beside: Path | None = None) -> dict[str, str]:
        wanted = list(dict.fromkeys(names))
        files = _env_files(beside) if wanted else []
        places: list[Mapping[str, str]] = [os.environ, *map(read_env_file, files)]
        return {name: next((place[name] for place in places if place.get(name)), "") for name in wanted}

    @override
    def how_to_set(self, name: str, beside: Path | None = None) -> str:
        if os.environ.get("GITHUB_ACTIONS"):
            return (
                f"add it to the secrets of the repository, and `{name}: ${{{{ secrets.{name} }}}}` to `env:` of the job"
            )
        if os.environ.get("CI"):
            return f"add `{name}` to the secret variables of the project, so that the job has it in its environment"
        return f"set it in the environment (`export {name}=…`) or write `{name}=…` into {Path.cwd() / '.env'}"


ENVIRONMENT = Environment()
"""The secrets of a command."""

SEEN: dict[str, str] = {}
"""The values, by name, that the process has read from any source: nothing that it gives out may show them."""


class Given(SecretSource):
    def __init__(self, values: Mapping[str, str]) -> None:
        """``values`` are read at each use."""
        self._values = values

    @override
    def find(self, names: Iterable[str], beside: Path | None = None) -> dict[str, str]:
        return {name: self._values.get(name, "") for name in names}

    @override
    def how_to_set(self, name: str, beside: Path | None = None) -> str:
        return f"give the runtime a secret `{name}`"


def read(source: SecretSource, names: Iterable[str], beside: Path | None = None) -> dict[str, str]:
    """Return the values. Raises SetupError ``secret-missing`` or ``secret-too-short`` with every name, and never a value."""
    found = find(source, names, beside)
    missing = [name for name, value in found.items() if not value]
    if missing:
        raise SetupError(
            "secret-missing",
            f"the workflow needs {_listed(missing)}, and {'it is' if len(missing) == 1 else 'they are'} not set",
            fix=source.how_to_set(missing[0], beside),
        )
    short = [name for name, value in found.items() if len(value) < SHORTEST]
    if short:
        raise SetupError(
            "secret-too-short",
            f"{_listed(short)} has fewer than {SHORTEST} characters, too few to be told from innocent text and masked",
            fix="use a longer secret, or make it an input if it is none",
        )
    return found


def known(source: SecretSource, names: Iterable[str], beside: Path | None = None) -> dict[str, str]:
    """Return the secrets that have a value: no output may show them, needed or not."""
    return {name: value for name, value in find(source, names, beside).items() if len(value) >= SHORTEST}


def find(source: SecretSource, names: Iterable[str], beside: Path | None = None) -> dict[str, str]:
    """Return the value of each, empty if there is none, and remember them all."""
    found = source.find(names, beside)
    for name, value in found.items():
        if len(value) >= SHORTEST and value not in SEEN.values():
            # Files of one process may have different secrets of one name.
            SEEN[next(each for each in _numbered(name) if each not in SEEN)] = value
    return found


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} ({number})" for number in itertools.count(2))


def read_env_file(file: Path) -> dict[str, str]:
    """Return the values of a ``.env`` file as written: a ``$`` in a password is a dollar sign. Raises SetupError ``env-file-unreadable``."""
    try:
        values = dotenv.dotenv_values(stream=io.StringIO(regular_files.read_text(file)), interpolate=False)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        fix = regular_files.fix(error) or "fix the file or take it away"
        raise SetupError("env-file-unreadable", f"{file} cannot be read: {reason}", fix=fix) from None
    return {name: value for name, value in values.items() if value is not None}


def _env_files(beside: Path | None) -> list[Path]:
    folders = [Path.cwd()] if beside is None else [beside.absolute(), Path.cwd()]
    return [folder / ".env" for folder in dict.fromkeys(folders)]


def _listed(names: list[str]) -> str:
    return ("the secret " if len(names) == 1 else "the secrets ") + ", ".join(names)
