"""Runs the person's command that puts the site's data back before a whole run.

The command is the person's own, and is run as they would type it: by their shell, in the project's folder. No model sees or chooses it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO

from nodes.errors import SetupError
from nodes.values import Json
from runtime.display.text import duration, harmless, one_line
from runtime.language import workflow
from runtime.system import files, processes, regular_files, tasks
from runtime.workspace import host

FOLDER = "resets"  # private folder that names the commands at work
KEPT = 2_000  # characters of the output that are kept: its end
READ = 64 * 1024  # bytes of the output that are read for it
GRACE = 2.0  # seconds between the request to end and the kill of a command that takes too long

GATE = 'read -r go && exec "$0" -c "$1" </dev/null'
"""Begins the command once it is known which one is at work: if this process dies before that, nothing is begun."""

FIX = "run it by hand until it ends with exit code 0"


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    problem: str | None  # why it failed; None if it ended with exit code 0
    seconds: float
    output: str  # the end of its output, secrets masked

    def check(self, fix: str = FIX) -> None:
        """Raise SetupError ``reset-failed`` if it failed."""
        if self.problem is not None:
            evidence: dict[str, Json] = {"output": self.output} if self.output else {}
            raise SetupError(
                "reset-failed", f"the reset {self.problem}, so the run was not begun", fix=fix, evidence=evidence
            )

    def describe(self, command: str) -> str:
        """Return the outcome for a person; if it failed, with the last lines."""
        head = f"reset  {one_line(command)}  {duration(self.seconds)}"
        if self.problem is None:
            return head
        return "\n".join([f"{head}  FAILED: it {self.problem}", *(f"  {each}" for each in self.output.splitlines())])

    def as_logged(self) -> dict[str, Json]:
        return {"problem": self.problem, "seconds": self.seconds, "output": self.output}


def of(here: host.Host, folder: Path) -> Reset | None:
    """Return the reset that the settings name, for a workflow in ``folder``; None if they name none."""
    command = here.settings.reset
    if command is None or not command.strip():
        return None
    active = here.settings.home / "private" / FOLDER
    return Reset(command, workflow.workspace(folder), here.settings.reset_timeout, active)


@dataclasses.dataclass(frozen=True, slots=True)
class Reset:
    command: str
    folder: Path
    limit: float  # seconds that it may take
    active: Path  # folder that names the commands now at work

    async def carry_out(self, mask: Callable[[str], str]) -> Done:
        """Run the command, after the end of those that dead processes have left. If this is cancelled, the command is ended first."""
        await asyncio.to_thread(_end_leftovers, self.active)
        begun = time.monotonic()
        with tempfile.TemporaryFile() as output:
            problem = await self._run(output)
            said = await asyncio.to_thread(_end_of, output)
        return Done(problem, round(time.monotonic() - begun, 2), harmless(mask(said))[-KEPT:].strip())

    async def _run(self, output: IO[bytes]) -> str | None:
        shell = shutil.which(os.environ.get("SHELL") or "") or "/bin/sh"
        try:
            # Its output is a file: a server that it leaves at work would keep a pipe open.
            process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", GATE, shell, self.command, cwd=self.folder, stdin=asyncio.subprocess.PIPE,
                stdout=output, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return f"could not be started in {self.folder}: {error.strerror or error}"
        except ValueError as error:  # a NUL character
            return f"could not be started: {error}"
        try:
            with _noted(self.active, process.pid):
                assert process.stdin is not None
                process.stdin.write(b"go\n")
                process.stdin.close()
                code = await asyncio.wait_for(process.wait(), self.limit)
        except TimeoutError:
            await tasks.to_the_end(_end(process))
            return f"took more than {self.limit:g} s, and was ended"
        except BaseException:
            await tasks.to_the_end(_end(process))
            raise
        if code < 0:
            return f"was ended by signal {-code}"
        return f"ended with exit code {code}" if code else None


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the command with all that it has started, at last by force: what it has just forked may miss the first signal."""
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)


def _end_of(output: IO[bytes]) -> str:
    """Return the end of the output. A first line that is not whole is left out: half a secret in it would not be masked."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - READ))
    text = output.read().decode(errors="replace")
    return text.partition("\n")[2] if size > READ else text


# The commands at work: a killed process leaves its own, which must not go on beside the next.


@contextlib.contextmanager
def _noted(folder: Path, pid: int) -> Generator[None]:
    """Keep the identity of a command, and of this process, in ``folder`` while the command is at work."""
    file = folder / f"{pid}.json"
    known = {"command": [pid, processes.started(pid)], "owner": [os.getpid(), processes.started(os.getpid())]}
    try:
        files.folder(folder)
        files.write(file, json.dumps({**known, "boot": processes.boot()}).encode())
    except OSError as error:
        raise files.not_written("what is at work", file, error) from None
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _end_leftovers(folder: Path) -> None:
    """End the commands whose RunOps process is gone, each with what it has started."""
    for file in folder.glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            known = json.loads(regular_files.read(file))
            (pid, since), (owner, owned) = known["command"], known["owner"]
            if known["boot"] == processes.boot():
                if processes.started(owner) == owned:
                    continue
                if since is not None and processes.started(pid) == since:
                    os.killpg(pid, signal.SIGKILL)
            file.unlink(missing_ok=True)
