"""``ctx.sql``: a SELECT over the names in scope, executed in a separate process."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any

from typing_extensions import override

from nodes import errors, ports
from nodes.errors import AuthorError, RunOpsError, SetupError
from nodes.template import kind_of
from nodes.values import Json
from runtime.sql import lockdown

MEGABYTES = 256  # default memory limit of a statement
MOST_ROWS = 100_000  # default limit of rows of a result
HIDDEN = frozenset({"inputs", "secrets", "vars", "run", "loop", "error"})  # names that are no tables themselves


@dataclasses.dataclass(frozen=True, slots=True)
class Select(ports.Sql):
    """SQL over the names that a step sees."""

    names: Mapping[str, Json]
    seconds: float
    """Time limit of a statement, including the start of its process."""
    megabytes: int = MEGABYTES
    rows: int = MOST_ROWS

    @override
    async def select(self, statement: str, params: Mapping[str, Json]) -> list[Json]:
        try:
            async with asyncio.timeout(self.seconds), _worker() as worker:
                return await self._talk(worker, statement, params)
        except TimeoutError:
            message = f"the statement took longer than {self.seconds:g} s"
            raise AuthorError(
                "sql-limit", message, fix=f"{lockdown.NARROW}; or give the node a longer `timeout`"
            ) from None

    async def _talk(self, worker: asyncio.subprocess.Process, statement: str, params: Mapping[str, Json]) -> list[Json]:
        limits = {"megabytes": self.megabytes, "seconds": self.seconds, "rows": self.rows}
        text = statement.replace('""', '"').casefold()
        tables = [[name, rows] for name, rows in self._tables() if name[-1].casefold() in text]
        assert worker.stdin is not None
        assert worker.stdout is not None
        answer = b""
        with contextlib.suppress(ConnectionError):
            for line in ({"sql": statement, "params": dict(params), **limits}, tables):
                worker.stdin.write(json.dumps(line).encode() + b"\n")
            # A worker that refuses the statement does not read the tables.
            with contextlib.suppress(ConnectionError):
                await worker.stdin.drain()
            answer = await worker.stdout.readline()
        if not answer.endswith(b"\n"):
            raise await self._no_answer(worker)
        found: dict[str, Any] = json.loads(answer)
        if (name := found.get("unknown")) is not None:
            raise self._no_table(tuple(name))
        if (wrong := found.get("error")) is not None:
            raise AuthorError(wrong["code"], wrong["message"], fix=wrong["fix"], evidence=wrong["evidence"])
        return found["rows"]

    async def _no_answer(self, worker: asyncio.subprocess.Process) -> RunOpsError:
        if await worker.wait() > 0:
            return _not_started("it ended at once")
        # The worker reports every other error itself; only the kernel ends it without an answer, for its memory.
        message = f"the statement needs more than {self.megabytes} MB of memory"
        return AuthorError("sql-limit", message, fix=lockdown.NARROW)

    def _no_table(self, name: tuple[str, ...]) -> AuthorError:
        written = ".".join(name)
        found = self._find(name)
        if found is None:
            return self._unknown(written)
        what = "a list of other things" if isinstance(found[0], list) else kind_of(found[0])
        fix = "make maps of it in a `transform` before, or give it as one of `params`"
        return AuthorError("sql-not-a-table", f"`{written}` is {what}, and a table is a list of maps", fix=fix)

    def _find(self, name: tuple[str, ...]) -> tuple[Json] | None:
        """Return a 1-tuple with a table's value. Case matters only for names that differ in nothing else."""
        if len(name) == 1 and name[0] not in HIDDEN:
            return _looked_up(self.names, name[0])
        if len(name) == 2 and name[0].casefold() != "secrets":
            found = _looked_up(self.names, name[0])
            return _looked_up(found[0], name[1]) if found and isinstance(found[0], Mapping) else None
        return None

    def _unknown(self, written: str) -> AuthorError:
        tables = [".".join(name) for name, _rows in self._tables()]
        last = written.rpartition(".")[2].casefold()
        meant = next((each for each in tables if each.rpartition(".")[2].casefold() == last), written)
        fix = errors.did_you_mean(meant, tables, "name a list of maps as references do: `orders`, `inputs.prices`")
        listed = f"tables in scope: {', '.join(tables)}" if tables else "no list of maps is in scope"
        message = f"there is no table `{written}` here"
        return AuthorError("sql-unknown-table", message, fix=fix, evidence={"tables": listed})

    def _tables(self) -> Iterator[tuple[tuple[str, ...], list[Json]]]:
        for name in sorted(self.names):
            try:
                value = self.names[name]
            except AuthorError:
                continue
            if name not in HIDDEN and _is_table(value):
                yield (name,), value
            elif name != "secrets" and isinstance(value, Mapping):
                yield from (((name, each), inner) for each, inner in value.items() if _is_table(inner))


def _is_table(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _looked_up(names: Mapping[str, Json], name: str) -> tuple[Json] | None:
    if name in names:
        return (names[name],)
    alike = [each for each in names if each.casefold() == name.casefold()]
    return (names[alike[0]],) if len(alike) == 1 else None


@contextlib.asynccontextmanager
async def _worker() -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start a process that executes one statement; it has ended when the block ends."""
    environment = {name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "runtime.sql.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**environment, "MALLOC_ARENA_MAX": "2", "PYTHONUTF8": "1"},
            limit=1 << 30,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(error.strerror or str(error)) from None
    try:
        yield worker
    finally:
        with contextlib.suppress(ProcessLookupError):
            worker.kill()
        await asyncio.shield(worker.wait())


def _not_started(why: str) -> SetupError:
    fix = "look at this machine's limits of processes and memory (`ulimit -a`), and at how RunOps is installed"
    return SetupError("sql-not-started", f"the process for SQL cannot be started: {why}", fix=fix)
