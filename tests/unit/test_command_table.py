"""The table of commands, and the function of each name."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.errors import LogError, RunOpsError, SetupError, UsageError
from runtime.cli import app, command_table, console

HEAVY = ("playwright", "openai", "duckdb")


def modules_after(*arguments: str) -> set[str]:
    """The top-level modules loaded in a process after the command."""
    program = (
        "import sys\n"
        "from runtime.cli.main import main\n"
        f"code = main({list(arguments)!r})\n"
        "sys.stderr.write('\\n'.join(sorted({name.partition('.')[0] for name in sys.modules})))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split("\n"))


class Entry:
    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch):
    """Replaces the installed entry points."""

    def offer(**entries: str) -> None:
        found = [Entry(name.replace("_", " ", 1).replace(" ", ": ", 1), value) for name, value in entries.items()]
        monkeypatch.setattr(
            importlib.metadata, "entry_points", lambda group: found if group == command_table.GROUP else []
        )

    return offer


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_load_no_browser_model_or_database(arguments: list[str]) -> None:
    """The general help does not load what only a run needs."""
    assert not modules_after(*arguments) & set(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_load_neither_rich_console_nor_settings(arguments: list[str]) -> None:
    """The general help is fast: it loads no module that takes tens of milliseconds."""
    assert not modules_after(*arguments) & {"pydantic_settings", "asyncio", "yaml", "jinja2"}


def test_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`runops --help` lists all commands of the table, in its order."""
    assert app.run(["--help"]) == 0
    out = capsys.readouterr().out
    places = [out.index(f"  {command.name} ") for command in command_table.every()]
    assert places == sorted(places)
    assert all(command.help in out for command in command_table.every())


@pytest.mark.parametrize("command", command_table.OWN, ids=lambda command: command.name)
def test_every_command_of_the_table_can_be_loaded(command: command_table.Command) -> None:
    """Each name has a function whose annotations typer accepts."""
    assert app.built(command).name == command.name


def test_a_command_of_a_package_is_imported_only_when_called(offers, capsys: pytest.CaptureFixture[str]) -> None:
    """The help reads only the name of the entry point; a call imports it."""
    offers(greet_Say_hello="no.such.module:greet")
    assert app.run(["--help"]) == 0
    assert "greet" in capsys.readouterr().out
    assert app.run(["greet"]) == SetupError.exit
    assert "command-broken" in capsys.readouterr().err


def test_lost_output_of_a_package_command_is_an_error() -> None:
    """If output cannot be flushed at exit, as on a full disk, the command fails with a code."""
    program = (
        "import sys, types\n"
        "from runtime.cli import app\nfrom runtime.cli import command_table as table\n"
        "greeter = sys.modules['greeter'] = types.ModuleType('greeter')\n"
        "greeter.greet = lambda: print('hello')\n"
        "table.OWN += (table.Command('greet', 'Say hello', 'greeter:greet'),)\n"
        "sys.exit(app.run(['greet']))\n"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", program]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered, check=False)
    assert done.returncode == 3
    assert "output-not-written" in done.stderr


@pytest.mark.parametrize(
    ("error", "command"),
    [
        (UsageError("x", "wrong"), "runops run --help"),
        (UsageError("x", "wrong", fix="`runops runs` lists the runs"), None),
        (UsageError("unknown-command", "wrong"), "runops --help"),
        (SetupError("x", "no secret"), "runops run 'my flow.yaml'"),
        (SetupError("x", "no browser", fix="type: runops install"), None),
        (LogError("x", "damaged"), "runops runs"),
    ],
)
def test_a_failure_ends_with_the_next_command_to_type(error: RunOpsError, command: str | None) -> None:
    """The last line names a command, unless the fix already does."""
    next_command = console.next_command(error, ["run", "my flow.yaml"])
    assert next_command == command
    text = console.failure(error, next_command)
    assert "runops " in text.splitlines()[-1]


def test_a_package_cannot_replace_a_command_of_ours(offers) -> None:
    """An entry point with the name of one of our commands is ignored."""
    offers(run_Something_else="evil:run")
    assert command_table.find("run") in command_table.OWN
    assert [command.name for command in command_table.every()].count("run") == 1


@pytest.mark.parametrize(("typed", "meant"), [("rnu", "run"), ("resum", "resume"), ("vaildate", "validate")])
def test_a_mistyped_command_names_the_nearest(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown command is a usage error that suggests the nearest one."""
    assert app.run([typed]) == UsageError.exit
    captured = capsys.readouterr()
    assert f"did you mean `runops {meant}`?" in captured.err
    assert captured.out == ""


def test_an_unknown_option_is_wrong_usage_with_the_help_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped option ends with the help command of its command."""
    assert app.run(["runs", "--jsn"]) == 2
    assert "runops runs --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run"], "missing argument 'PATH'"),
        (["decide", "last"], "missing argument 'VERDICT'. Choose from: done, not-done, skip"),
        (["run", "squares.yaml", "-i", "turns"], "NAME=VALUE"),
        (["run", "squares.yaml", "-i", "turns=1", "-i", "turns=2"], "given twice"),
        (["run", "squares.yaml", "--linger", "soon"], "--linger"),
        (["run", "squares.yaml", "--linger", "-1"], "--linger"),
        (["show", "nothing"], "no runs"),
        (["rnu", "squares.yaml"], "did you mean `runops run`?"),
        (["decide", "last", "perhaps"], "perhaps"),
    ],
)
def test_wrong_usage_is_a_sentence_and_the_next_command(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A usage error exits with 2, names the mistake, and says what to type."""
    monkeypatch.chdir(tmp_path)
    assert app.run(arguments) == 2
    printed = capsys.readouterr()
    assert text in printed.err
    assert "runops" in printed.err
    assert printed.out == ""
