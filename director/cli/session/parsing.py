"""What a person types in a conversation: a word for the model, or one with a slash, which is for the command."""

from __future__ import annotations

import dataclasses
import difflib
import re
import shlex
from collections.abc import Callable, Sequence

from nodes.errors import UsageError


@dataclasses.dataclass(frozen=True, slots=True)
class SlashLine:
    """A word with a slash."""

    name: str
    """Without the slash."""
    rest: tuple[str, ...]
    """What stands behind it, taken apart as a shell does."""


@dataclasses.dataclass(frozen=True, slots=True)
class SlashCommand:
    """A word with a slash that there is."""

    name: str
    shape: str
    help: str


KNOWN = (
    SlashCommand("mode", "/mode [chat|agent|run]", "tell the mode, or change it"),
    SlashCommand("run", "/run [FILE] [-i NAME=VALUE]", "run the workflow, and tell the model how it ended"),
    SlashCommand("resume", "/resume [RUN]", "go on with the run that this is about, or with another one"),
    SlashCommand("save", "/save [FILE.md]", "write the conversation as Markdown"),
    SlashCommand("fork", "/fork", "go on in a fork; this session stays as it is"),
    SlashCommand("cost", "/cost", "what was spent"),
    SlashCommand("window", "/window [NAME VALUE]", "what the model would be sent now; or change how that is chosen"),
    SlashCommand("plan", "/plan", "the plan, as a list of tasks"),
    SlashCommand("vars", "/vars", "the variables"),
    SlashCommand("help", "/help", "this list"),
    SlashCommand("quit", "/quit", "end; `runops chat --resume` goes on"),
)


_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
"""What can stand in no text: bytes that are no UTF-8 come as halves of characters, and no file has a NUL in its name."""


def parse(line: str) -> str | SlashLine:
    """What was typed: the text for the model, or a word with a slash. ``//…`` is said with one slash. What is no text is told as ``\N{REPLACEMENT CHARACTER}``.

    Raises UsageError ``unknown-word`` with the nearest one, ``usage`` where a quotation mark has no end.
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
    """Raise UsageError ``usage`` where more stands behind the word than it takes."""
    if len(word.rest) > count:
        raise UsageError(
            "usage", f"`/{word.name}` does not take {' '.join(word.rest[count:])!r}", fix=f"type: {shape(word.name)}"
        )


def shape(name: str) -> str:
    """How the word is typed."""
    return next(each.shape for each in KNOWN if each.name == name)


def listed() -> list[str]:
    """All of them, a line for each."""
    wide = max(len(each.shape) for each in KNOWN)
    return [f"{each.shape:<{wide}}  {each.help}" for each in KNOWN]


def file_and_inputs(word: SlashLine) -> tuple[str | None, list[str]]:
    """What ``/run`` is to run, and with which inputs (``NAME=VALUE``). Raises UsageError ``usage``."""
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
    r"""Words from lines: one that ends with ``\\`` goes on in the next one."""

    def __init__(self, read: Callable[[], str]) -> None:
        """``read`` gives a line without its end, and raises EOFError after the last."""
        self._read = read

    def word(self) -> str:
        """The next word. Raises EOFError where there is none; what ``read`` raises else loses what was begun."""
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
    """The words with a slash that begin as ``typed`` does, for whoever presses Tab."""
    return [f"/{each.name}" for each in KNOWN if f"/{each.name}".startswith(typed)] if typed.startswith("/") else []
