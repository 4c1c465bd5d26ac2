"""Parses typed lines: a message for the model, or a slash command."""

from __future__ import annotations

import dataclasses
import difflib
import re
import shlex
from collections.abc import Callable, Sequence

from nodes.errors import UsageError


@dataclasses.dataclass(frozen=True, slots=True)
class SlashLine:
    """A typed slash command."""

    name: str
    """Without the slash."""
    rest: tuple[str, ...]
    """Its arguments, split like in a shell."""


@dataclasses.dataclass(frozen=True, slots=True)
class SlashCommand:
    """Definition of a slash command."""

    name: str
    shape: str
    help: str


KNOWN = (
    SlashCommand("mode", "/mode [chat|agent|run]", "tell the mode, or change it"),
    SlashCommand("run", "/run [FILE] [-i NAME=VALUE]", "run the workflow, and tell the model how it ended"),
    SlashCommand("resume", "/resume [RUN]", "continue with the run that this is about, or with another one"),
    SlashCommand("save", "/save [FILE.md]", "write the conversation as Markdown"),
    SlashCommand("fork", "/fork", "continue in a fork; this session stays as it is"),
    SlashCommand("cost", "/cost", "what was spent"),
    SlashCommand("window", "/window [NAME VALUE]", "what the model would be sent now; or change how that is chosen"),
    SlashCommand("plan", "/plan", "the plan, as a list of tasks"),
    SlashCommand("vars", "/vars", "the variables"),
    SlashCommand("help", "/help", "this list"),
    SlashCommand("quit", "/quit", "end; `runops chat --resume` continues"),
)


_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
"""Characters that no text may contain: undecodable bytes come as lone surrogates, and file names contain no NUL."""


def parse(line: str) -> str | SlashLine:
    """Return the message for the model, or a slash command. ``//…`` is a message with one slash. Invalid characters become ``�``.

    Raises UsageError ``unknown-word`` with the closest command, ``usage`` for an unclosed quotation mark.
    """
    text = _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", line.strip())
    if not text.startswith("/"):
        return text
    if text.startswith("//"):
        return text[1:]
    name, _, rest = text[1:].partition(" ")
    if all(each.name != name for each in KNOWN):
        near = difflib.get_close_matches(name, [each.name for each in KNOWN], 1)
        fix = (
            f"did you mean `/{near[0]}`?"
            if near
            else "`/help` lists them; what begins with `//` is said with one slash"
        )
        raise UsageError("unknown-word", f"there is no word `/{name}`", fix=fix)
    try:
        return SlashLine(name, tuple(shlex.split(rest)))
    except ValueError:
        raise UsageError(
            "usage", f"a quotation mark of `/{name}` has no end", fix="close it, or put a `\\` before it"
        ) from None


def at_most(word: SlashLine, count: int) -> None:
    """Raise UsageError ``usage`` if the command has too many arguments."""
    if len(word.rest) > count:
        raise UsageError(
            "usage", f"`/{word.name}` does not take {' '.join(word.rest[count:])!r}", fix=f"type: {shape(word.name)}"
        )


def shape(name: str) -> str:
    """Return the command's syntax."""
    return next(each.shape for each in KNOWN if each.name == name)


def listed() -> list[str]:
    """Return all commands, a line each."""
    wide = max(len(each.shape) for each in KNOWN)
    return [f"{each.shape:<{wide}}  {each.help}" for each in KNOWN]


def file_and_inputs(word: SlashLine) -> tuple[str | None, list[str]]:
    """Return the file of ``/run`` and its inputs (``NAME=VALUE``). Raises UsageError ``usage``."""
    files: list[str] = []
    inputs: list[str] = []
    rest = iter(word.rest)
    for each in rest:
        if each in ("-i", "--input"):
            value = next(rest, None)
            if value is None:
                raise UsageError("usage", f"behind `{each}` an input is missing", fix=f"type: {shape(word.name)}")
            inputs.append(value)
        else:
            files.append(each)
    at_most(SlashLine(word.name, tuple(files)), 1)
    return (files[0] if files else None), inputs


class Lines:
    r"""Joins lines to messages: one that ends with ``\\`` continues in the next one."""

    def __init__(self, read: Callable[[], str]) -> None:
        """``read`` returns a line without its end, and raises EOFError after the last."""
        self._read = read

    def word(self) -> str:
        """Return the next message. Raises EOFError at the end; other errors of ``read`` discard an incomplete message."""
        parts: list[str] = []
        while True:
            try:
                line = self._read()
            except EOFError:
                if parts:
                    return "\n".join(parts)
                raise
            if not line.endswith("\\"):
                return "\n".join([*parts, line])
            parts.append(line[:-1])


def known_names(typed: str) -> Sequence[str]:
    """Return the slash commands that begin with ``typed``, for Tab."""
    return [f"/{each.name}" for each in KNOWN if f"/{each.name}".startswith(typed)] if typed.startswith("/") else []
