"""Finds the command, runs it, and converts its outcome to messages and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Generator
from typing import Annotated, Any, TextIO, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from nodes.errors import InternalError, RunOpsError, SetupError, UsageError, near
from runtime.cli import command_table, console, signals
from runtime.display import facts
from runtime.display.stream import Talk, drain
from runtime.display.text import one_line

BUG = 70

EPILOG = """Exit codes: 0 passed, 1 failed, 2 wrong usage or workflow file, 3 setup missing, 4 paused, 5 budget used up, 6 a fix is ready, 70 a bug in RunOps, 75 the run continues elsewhere, 130 interrupted. A run that was killed, interrupted, paused or out of budget continues with `runops resume`."""


class Single(TyperCommand):
    def invoke(self, ctx: Any) -> Any:
        with signals.handled_by(signals.unwind):
            return super().invoke(ctx)


class Lazy(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return [command.name for command in command_table.every()]

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand:
        """Import the command. Raises UsageError ``unknown-command`` with the nearest name."""
        command = command_table.find(cmd_name)
        if command is None:
            names = self.list_commands(ctx)
            close = near(cmd_name, names)
            raise UsageError(
                "unknown-command",
                f"there is no command `{cmd_name}`",
                fix=f"did you mean `runops {close}`?" if close else f"commands: {', '.join(names)}",
            )
        return built(command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.help) for command in command_table.every()])


def built(command: command_table.Command) -> TyperCommand:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    try:
        function = command.load()
    except (ImportError, AttributeError) as error:
        if command in command_table.OWN:
            raise
        raise SetupError(
            "command-broken",
            f"the command `{command.name}` of an installed package cannot be loaded: {error}",
            fix="fix or remove the package that offers it",
        ) from error
    app.command(command.name, cls=Single, help=function.__doc__ or command.help, context_settings=CONTEXT)(function)
    single = typer.main.get_command(app)
    assert isinstance(single, TyperCommand)
    return single


CONTEXT = {"help_option_names": ["-h", "--help"]}


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata  # costs 20 ms

        console.result(f"runops {metadata.version('runops')}")
        raise typer.Exit


def group() -> TyperGroup:
    app = typer.Typer(cls=Lazy, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.callback(epilog=EPILOG, context_settings=CONTEXT)
    def runops(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
        ] = False,
    ) -> None:
        """Run browser-automation workflows headlessly. A run that dies can continue from where it was."""

    return typer.main.get_group(app)


def run(arguments: list[str]) -> int:
    """Run one command line; return the exit code. Errors are printed, never raised."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")  # prints lines with characters that the terminal lacks, too
    with functions_on_stderr():
        try:
            code = _invoke(arguments or ["--help"])
            with console.writing():
                sys.stdout.flush()
        except BaseException as error:  # noqa: BLE001 — the last one to catch anything
            code = _ended_by(error, arguments)
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
    return code


def _invoke(arguments: list[str]) -> int:
    command = group()
    try:
        with command.make_context("runops", list(arguments), obj=tuple(arguments)) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return 0


def _ended_by(error: BaseException, arguments: list[str]) -> int:
    match error:
        case RunOpsError():
            return _failed(error, arguments)
        case typer.TyperException():
            # Typer puts its own words before pydantic's message.
            message = (
                " ".join(error.format_message().split()).replace(": Value error, ", ": ").replace(": Input ", ": it ")
            )
            return _failed(UsageError("usage", f"{message[0].lower()}{message[1:].rstrip('.')}"), arguments)
        case KeyboardInterrupt() | typer.Abort():
            console.say("interrupted")
            return error.exit if isinstance(error, signals.Interrupted) else 130
        case SystemExit():
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        case BrokenPipeError() if console.gone(sys.stdout) or console.gone(sys.stderr):
            drain(sys.stdout)
            return 0
        case OSError() if console.disk_full(error):
            return _failed(console.not_written(error), arguments)
        case _:
            return _bug(error, arguments)


def _failed(error: RunOpsError, arguments: list[str]) -> int:
    console.say(_masked(console.failure(error, console.next_command(error, arguments))))
    return _give_error(error, error.exit, arguments)


def _bug(error: BaseException, arguments: list[str]) -> int:
    text = _masked("".join(traceback.format_exception(error)))
    if os.environ.get("RUNOPS_TRACEBACK"):
        console.say(text)
        where = "Its traceback is above."
    elif file := _save(text):
        where = f"Its traceback is in {file}; with RUNOPS_TRACEBACK=1 it is printed instead."
    else:
        where = "Set RUNOPS_TRACEBACK=1 and give the command again to see its traceback."
    what = facts.shortened(one_line(_masked(f"{type(error).__name__}: {error}")))
    console.say(
        f"{console.paint('error[bug]', console.BOLD, console.RED)}: this is a bug in RunOps, not in your workflow: {what}\n"
        f"  {where} Please report it, with the command that you gave."
    )
    if arguments and arguments[0] in ("run", "resume", "decide", "answer"):
        console.say("  again  runops resume last")
    return _give_error(InternalError("bug", what), BUG, arguments)


def _give_error(error: RunOpsError, code: int, arguments: list[str]) -> int:
    """Print the error as JSON, if the command was asked for JSON; return the exit code."""
    if "--json" in arguments:
        with contextlib.suppress(RunOpsError):
            console.result(_masked(console.error_json(error, code)))
    return code


def _masked(text: str) -> str:
    if "runtime.secrets.sources" not in sys.modules:
        return text
    from runtime.secrets import masking, sources

    return masking.Masker(sources.SEEN).text(text)


def _save(text: str) -> str | None:
    """Write the traceback to a temporary file that only its owner can read; return its path, or None if that fails, or would show a secret."""
    from runtime.secrets import published

    if published.found(text.encode(errors="backslashreplace")) is not None:
        return None
    try:
        handle, name = tempfile.mkstemp(".txt", time.strftime("runops-bug-%Y%m%d-%H%M%S-"))
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return None
    return name


@contextlib.contextmanager
def functions_on_stderr() -> Generator[None]:
    """Redirect prints of a workflow's functions to stderr, secrets masked: stdout is for the command's result."""
    stdout = sys.stdout
    sys.stdout = cast("TextIO", _ByThread(stdout))
    try:
        yield
    finally:
        sys.stdout = stdout


class _ByThread:
    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout
        self._masked = _Masked()

    def __getattr__(self, name: str) -> Any:
        # Most commands call no function: do not import the module for them.
        pythons = sys.modules.get("runtime.services.functions")
        own = threading.current_thread() is threading.main_thread() or pythons is None or not pythons.is_calling()
        return getattr(self._stdout if own else self._masked, name)


class _Masked(io.TextIOBase):
    @override
    def write(self, text: str) -> int:
        from runtime.services import functions  # most commands call no function

        Talk(sys.stderr).write(functions.masked(text))
        return len(text)
