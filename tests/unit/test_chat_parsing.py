"""Parsing of what a person types in a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from director.cli import input as typed_input
from director.cli.session import slash_commands
from nodes.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("why?", "why?"),
        ("  why?  ", "why?"),
        ("", ""),
        ("//usr/bin is a folder", "/usr/bin is a folder"),
        ("1/2", "1/2"),
        ("/mode", ("mode", ())),
        ("/mode agent", ("mode", ("agent",))),
        ("/save 'my notes.md'", ("save", ("my notes.md",))),
        ("/run flow.yaml -i name='a b'", ("run", ("flow.yaml", "-i", "name=a b"))),
    ],
)
def test_a_message_without_a_slash_is_for_the_model(typed: str, read: str | tuple[str, tuple[str, ...]]) -> None:
    """A slash begins a command, split as in a shell; two slashes are sent to the model as one."""
    assert slash_commands.parse(typed) == read


@pytest.mark.parametrize(
    ("typed", "fix"),
    [("/plam", "did you mean `/plan`?"), ("/windows", "did you mean `/window`?"), ("/xyzzy", "`/help` lists them")],
)
def test_an_unknown_slash_command_is_answered_with_the_nearest(typed: str, fix: str) -> None:
    """An unknown slash command is never sent to the model."""
    with pytest.raises(UsageError) as refused:
        slash_commands.parse(typed)
    assert refused.value.code == "unknown-word"
    assert fix in (refused.value.fix or "")


def test_an_unclosed_quotation_mark_is_an_error() -> None:
    """The error names the command."""
    with pytest.raises(UsageError, match="quotation mark of `/save` has no end"):
        slash_commands.parse("/save 'my")


def test_run_takes_a_file_and_inputs() -> None:
    """The file may come anywhere or be omitted; an input stands alone or behind its flag, which needs a value."""
    assert slash_commands.file_and_inputs(("-i", "a=1", "flow.yaml", "--input", "b=2", "c=3")) == (
        "flow.yaml",
        ["a=1", "b=2", "c=3"],
    )
    assert slash_commands.file_and_inputs(()) == (None, [])
    for rest in (("a.yaml", "b.yaml"), ("a.yaml", "-i")):
        with pytest.raises(UsageError):
            slash_commands.file_and_inputs(rest)


def test_extra_arguments_are_refused() -> None:
    """The fix shows how to type the command."""
    with pytest.raises(UsageError) as refused:
        slash_commands.refuse_more("cost", ("all",), 0)
    assert refused.value.fix == "type: /cost"


def test_each_command_of_the_help_exists() -> None:
    """The help lists each command once, and each listed command is accepted."""
    unused: Any = None
    assert {*slash_commands.SlashCommands(unused, unused)._known, "quit"} == set(slash_commands.SHAPES)
    lines = [each for each in slash_commands.listed() if each not in slash_commands.GROUPS]
    for name, line in zip(slash_commands.SHAPES, lines, strict=True):
        assert line.startswith(f"  /{name}")
        assert slash_commands.parse(f"/{name}") == (name, ())


def test_tab_completes_slash_commands_only() -> None:
    """Text without a slash is not completed."""
    assert slash_commands.completed("/re") == ["/resume"]
    assert slash_commands.completed("re") == []


def lines_of(*given: str | BaseException) -> Callable[[], str]:
    """A reader of messages from these lines, then end of input."""
    left = iter(given)

    def read() -> str:
        line = next(left, None)
        if line is None:
            raise EOFError
        if isinstance(line, BaseException):
            raise line
        return line

    return typed_input.messages(read)


def test_a_line_that_ends_with_a_backslash_continues() -> None:
    """The backslash is dropped, and input that ends in the middle of a message still gives it."""
    read = lines_of("one\\", "two", "three", "four\\")
    assert [read(), read(), read()] == ["one\ntwo", "three", "four"]
    with pytest.raises(EOFError):
        read()


def test_an_interrupted_message_is_dropped() -> None:
    """A message that Ctrl-C cut off is not part of the next one."""
    read = lines_of("one\\", KeyboardInterrupt(), "two")
    with pytest.raises(KeyboardInterrupt):
        read()
    assert read() == "two"


@pytest.mark.parametrize("typed", ["a\x00b", "a\udcffb"])
def test_invalid_characters_are_replaced(typed: str) -> None:
    """Invalid UTF-8 and NULs, which fit no log, request or file name, are replaced."""
    assert slash_commands.parse(typed) == "a\N{REPLACEMENT CHARACTER}b"
    assert slash_commands.parse(f'/save "{typed}"') == ("save", ("a\N{REPLACEMENT CHARACTER}b",))
