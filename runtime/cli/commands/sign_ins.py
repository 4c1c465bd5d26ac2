"""``runops sign-ins``: the signed-in states of this project, and how they get to another machine."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from pathlib import Path
from typing import Annotated

from nodes.browser_action.sessions import to_name
from nodes.errors import UsageError, did_you_mean
from nodes.template import Unfit
from nodes.values import Json
from runtime.cli import console, flags
from runtime.display.text import one_line, when
from runtime.services.signed_in import SignIns
from runtime.system import files, regular_files
from runtime.workspace import host

WORDS = {"export": 3, "import": 3, "delete": 2}


def sign_ins(
    words: Annotated[
        list[str] | None,
        flags.argument(
            "[export NAME FILE | import NAME FILE | delete NAME]",
            "Write the state NAME to FILE, save FILE as the state NAME, or delete it. `-` is standard output or input.",
        ),
    ] = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """List the signed-in states that `save_session` saved, or carry one to another machine.

    The file of `export` is as good as a password: only you can read it, and it is never printed on a terminal. It has the form of
    Playwright's `storageState`, and `import` takes files of Playwright too.
    """
    states = SignIns(host.load().files.home / "private" / "sessions")
    done = _carried_out(states, words) if words else None
    printed = words is not None and words[0] == "export" and words[-1] == "-"
    if as_json and not printed:
        listed: list[Json] = [dataclasses.asdict(each) for each in states.every()]
        console.result(console.as_json(sign_ins=listed))
    elif done is not None:
        console.say(done)
    elif found := states.every():
        rows = [[each.name, when(each.saved_at), one_line(", ".join(each.sites))] for each in found]
        console.result("\n".join(console.table([["name", "saved", "sites"], *rows])))
    else:
        console.say("no signed-in states\n  a workflow saves one with `save_session`")


def _carried_out(states: SignIns, words: list[str]) -> str:
    what, name = words[0], words[1] if len(words) > 1 else ""
    if what not in WORDS:
        fix = did_you_mean(what, WORDS, f"one of {', '.join(WORDS)}")
        raise UsageError("usage", f"`runops sign-ins {what[:40]}` is unknown", fix=fix)
    if len(words) != WORDS[what]:
        takes = "NAME FILE" if WORDS[what] == 3 else "NAME"
        raise UsageError("usage", f"`runops sign-ins {what}` takes {takes}", fix=f"runops sign-ins {what} {takes}")
    try:
        to_name(name)
    except Unfit as unfit:
        raise UsageError("bad-input", f"`{name[:80]}` {unfit}", fix="give the name that `save_session` has") from None
    if what == "delete":
        states.delete(name)
        return f"deleted the signed-in state {name}"
    if what == "export":
        _write(words[2], states.exported(name))
        return f"exported the signed-in state {name}: who has the file is signed in"
    saved_at = asyncio.run(states.bring(name, _read(words[2])))
    return f"imported the signed-in state {name}, saved {when(saved_at)}"


def _write(file: str, data: bytes) -> None:
    if file != "-":
        try:
            files.write(Path(file).absolute(), data)
        except OSError as error:
            raise files.not_kept("the signed-in state", Path(file), error) from None
    elif sys.stdout.isatty():
        raise UsageError(
            "session-shown",
            "a signed-in state is never printed on a terminal",
            fix="give a file, or pipe it into the program that takes it",
        )
    else:
        console.result(data.decode())


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return regular_files.read(file)
    except OSError as error:
        raise UsageError(
            "session-unreadable",
            f"{file} cannot be read: {error.strerror or error}",
            fix=regular_files.fix(error) or "give a file that `runops sign-ins export` wrote",
        ) from None
