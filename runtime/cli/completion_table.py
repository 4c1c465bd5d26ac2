"""What completion in a shell knows of each command: its options and arguments, from the command itself.

``scripts/command_docs.py`` writes it into ``completions.json``, since importing a command takes too long at a prompt.
"""

from __future__ import annotations

import re
import types
import typing
from typing import Any

from nodes.values import Json
from runtime.cli import app, command_table
from runtime.settings import reference

OF_ARGUMENT = {
    "FILE": "workflows",
    "FILES...": "workflows",
    "FOLDER": "folders",
    "PATH": "workflows",
    "RUN": "runs",
    "SESSION": "sessions",
    "SETTING": "settings",
    "WORKFLOW": "workflows",
}
OF_OPTION = {"FILE": "files", "FOLDER": "folders", "RUN": "runs", "SESSION": "sessions"}


def whole() -> dict[str, Json]:
    """Return the table of the commands that this package and the Director have."""
    ours = [
        each for each in command_table.every() if each.target.partition(".")[0] in ("runtime", "director", "workflows")
    ]
    settings: dict[str, Json] = {each.name: _sentence(each.text) for each in reference.every()}
    return {"commands": {each.name: described(each) for each in ours}, "settings": settings}


def described(command: command_table.Command) -> dict[str, Json]:
    parameters = [each for each in app.built(command).params if not getattr(each, "hidden", False)]
    return {
        "help": command.help,
        "options": [_option(each) for each in parameters if hasattr(each, "is_flag") and each.name != "help"],
        "arguments": [_argument(each) for each in parameters if not hasattr(each, "is_flag")],
    }


def _option(parameter: Any) -> dict[str, Json]:
    kinds = [OF_OPTION[each] for each in (parameter.metavar or "").split("|") if each in OF_OPTION]
    return {
        "names": [*parameter.opts],
        "off": [*parameter.secondary_opts],
        "flag": bool(parameter.is_flag),
        "choices": _choices(parameter.type_descriptor.annotation),
        "kinds": [*kinds],
        "help": _sentence(parameter.help or ""),
    }


def _argument(parameter: Any) -> dict[str, Json]:
    metavar: str = parameter.metavar or ""
    kinds = [OF_ARGUMENT[each] for each in metavar.split("|") if each in OF_ARGUMENT]
    if re.match(r"REPORT\b", metavar):
        kinds.append("files")
    words: list[Json] = [*re.findall(r"\b[a-z][a-z-]+\b", metavar)]  # as in `[show NAME]`
    return {
        "choices": _choices(parameter.type_descriptor.annotation) or words,
        "kinds": [*kinds],
        "many": parameter.nargs == -1,
    }


def _choices(annotation: Any) -> list[Json]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return [str(each) for each in arguments]
    if origin in (typing.Union, types.UnionType, typing.Annotated, list):
        return [choice for each in arguments if not isinstance(each, str) for choice in _choices(each)]
    return []


def _sentence(text: str) -> str:
    return re.split(r"(?<=[.:;]) ", text)[0].rstrip(".:;").replace("`", "")
