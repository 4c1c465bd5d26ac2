"""Text for a terminal, and proof that no other control characters reach it."""

import ast
import io
import json
import re
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli import console
from runtime.display import escapes, facts, stream
from tests import modules

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that no text for people may contain, since a terminal would obey them."""

HOSTILE = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("\x1b[2J\x07\x9b\r\n\t\u202e\u2066\u200f\u2028\ud800\\")),
    max_size=40,
)


@given(HOSTILE)
def test_text_for_people_has_no_control_characters(text: str) -> None:
    """Output keeps line breaks and tabs, and escapes all other control characters."""
    out = io.StringIO()
    stream.Talk(out).write(text)
    stream.put(out, text)
    assert OBEYED.search(out.getvalue().replace("\r\n", "\n")) is None
    assert not set(escapes.line(text)) & set("\n\r\t")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("a\x00b\x7f", r"a\x00b\x7f"),
        ("over\rwritten", r"over\x0dwritten"),
        ("invoice\u202efdp.exe", r"invoice\u202efdp.exe"),
        ("\u2066\u2069\u200f", r"\u2066\u2069\u200f"),
        ("half \ud83d", r"half \ud83d"),
        ("one\n\ttwo", "one\n\ttwo"),
        ("支払い 👩‍👧", "支払い 👩‍👧"),
    ],
)
def test_an_escape_shows_the_code_of_its_character(text: str, shown: str) -> None:
    r"""Control characters become `\x` with two digits, bidirectional marks `\u` with four."""
    assert escapes.shown(text) == shown
    assert escapes.shown(shown) == shown


def test_only_our_own_colours_pass() -> None:
    """Our colour sequences reach the terminal; sequences in outside text are escaped, even inside our colours."""
    assert escapes.shown(escapes.styled("a\x1b[8mb", 1, 31)) == "\x1b[1;31ma\\x1b[8mb\x1b[0m"
    assert escapes.shown(f"{escapes.ERASED}x") == "\r\x1b[Kx"


@given(HOSTILE, HOSTILE)
def test_json_is_equal_and_has_no_control_characters(name: str, text: str) -> None:
    """A program that reads `--json` gets the original data, though control characters are escaped."""
    for printed in (console.as_json(v={name: [text]}), escapes.as_json({"v": {name: [text]}})):
        assert OBEYED.search(printed) is None
        assert json.loads(printed)["v"] == {name: [text]}


@given(
    st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\x1b\n\u202e")), max_size=40)
)
def test_a_result_for_people_is_read_back_as_it_was(text: str) -> None:
    """The YAML of a result escapes control characters and reads back equal."""
    printed = escapes.shown(facts.result_text({"text": text})) + "\n"
    assert OBEYED.search(printed) is None
    assert yaml.safe_load(printed) == {"text": text}


BORDER = {
    "runtime/display/stream.py": "the border itself",
    "runtime/sql/worker.py": "its stdout is a pipe to the process that started it",
    "runtime/browser/chromium/watcher.py": "the same",
    "runtime/browser/engines/bidi_bridge.py": "its stderr is a pipe to Playwright's driver",
    "director/cli/input.py": "a prompt that never varies, drawn by the line editor",
    "runtime/cli/completing.py": "a pipe to the shell; names of files and runs in printable characters only",
    "runtime/cli/console.py": "asks by typer's prompt, what it asks made harmless",
}
"""The files that may write to a standard stream without escaping, and why."""


def test_no_module_bypasses_the_escaping() -> None:
    """No module writes to a standard stream except through `Talk`, `put` and `put_at_once`."""
    found = modules.places(raw_writes)
    assert {file: seen for file, seen in found.items() if file not in BORDER} == {}
    assert found.keys() >= BORDER.keys()


@pytest.mark.parametrize(
    "line",
    [
        "print(name)",
        "sys.stdout.write(name)",
        "sys.stderr.buffer.write(name)",
        "sys.stdout.writelines(names)",
        "out = sys.stdout.write",
        "os.write(2, name)",
        "typer.echo(name)",
        "click.secho(name)",
        "typer.prompt(name)",
        "input(name)",
        "rich.console.Console()",
        "Console(file=talk)",
        "talk.draw(name)",
        "warnings.warn(name)",
        "traceback.print_exc()",
        "sys.__stdout__",
    ],
)
def test_each_bypass_is_detected(line: str) -> None:
    """Each of these lines is detected in a module."""
    assert list(raw_writes(ast.parse(line)))


def raw_writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The places of a module that write for people without escaping."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="print" | "input" | "Console" | "pprint" as name)):
                yield node.lineno, name
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"), attr=name) if (
                name in ("write", "writelines", "buffer")
            ):
                yield node.lineno, f"sys.….{name}"
            case ast.Attribute(value=ast.Name(id="sys"), attr="__stdout__" | "__stderr__" as name):
                yield node.lineno, name
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="os"), attr="write" | "writev"),
                args=[ast.Constant(value=1 | 2), written],
            ) if not isinstance(written, ast.Constant):
                yield node.lineno, "os.write"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="typer" | "click"), attr=name)) if name in (
                "echo",
                "secho",
                "prompt",
                "confirm",
                "echo_via_pager",
            ):
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr="Console" | "draw" as name)):
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="warnings"), attr="warn")):
                yield node.lineno, "warnings.warn"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="traceback"), attr=name)) if name.startswith("print"):
                yield node.lineno, name
            case _:
                pass
