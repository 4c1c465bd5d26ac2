"""The files that a build leaves: the workflow, with a head that says who made it and how far it is proved, and a page of notes beside it.

A file that was there before is never overwritten, unless the person said so. One that the build itself has left says so in its head, with a sum of what
follows: once anybody has edited it since, it is theirs.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from nodes.errors import UsageError
from runtime.display.text import one_line
from runtime.system import files, regular_files

NOTES = ".build.md"
"""How the page of notes ends that stands beside a workflow ``x.yaml``: ``x.build.md``."""

_HEAD = re.compile(r"\ufeff?# Built by `runops build`, session (\S+), sum ([0-9a-f]{16})\r?\n")
_PROVED = re.compile(rf"{_HEAD.pattern}# proved: ")
_CLAIM = re.compile(rf"({_HEAD.pattern}# proved: )([^\r\n]*)")
_NOTES_HEAD = re.compile(r"<!-- Built by `runops build`, session (\S+), sum ([0-9a-f]{16}) -->\n")


def workflow(session: str, text: str, lines: list[str]) -> str:
    """The text of a workflow with a head: who made it, and ``lines``. The rest is as it was, also its byte order mark and the ends of its lines."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    end = "\r\n" if "\r\n" in text else "\n"
    more = "".join(f"# {one_line(each)}".rstrip() + end for each in lines)
    rest = f"{more}{text.removeprefix(mark)}"
    return f"{mark}# Built by `runops build`, session {session}, sum {_sum(rest)}{end}{rest}"


def patched(text: str, run: str) -> str:
    """The text of a workflow as a fix of ``run`` has made it: where a head claims a proof for what it was before, it says that this is not that text any more."""
    return _CLAIM.sub(lambda found: f"{found[1]}of the text before it was changed by a fix of run {run}", text, count=1)


def notes(session: str, text: str) -> str:
    """A page of notes with a head that says who made it."""
    return f"<!-- Built by `runops build`, session {session}, sum {_sum(text)} -->\n{text}"


def notes_of(file: Path) -> Path:
    """The page of notes that stands beside a workflow."""
    return file.with_name(f"{file.stem}{NOTES}")


def may_write(file: Path, session: str) -> bool:
    """Whether nothing stands there, or just what this session has left there."""
    try:
        # Ends of lines count: so nothing is made of them here.
        text = regular_files.read(file).decode()
    except FileNotFoundError:
        return not file.is_symlink()
    except (OSError, UnicodeError):
        return False
    return _is_left(text, session)


def changed(file: Path, session: str) -> str | None:
    """What has become of the workflow that a session has left there; None where it is just as it was."""
    try:
        text = regular_files.read(file).decode()
    except FileNotFoundError:
        return "it is not there any more"
    except (OSError, UnicodeError):
        return "it cannot be read"
    return None if _is_left(text, session) else "it has changed since: what was proved is not what it says now"


def _is_left(text: str, session: str) -> bool:
    found = _HEAD.match(text) or _NOTES_HEAD.match(text)
    return found is not None and found[1] == session and found[2] == _sum(text[found.end() :])


def free_name(file: Path, session: str) -> Path:
    """The file, or, where something else stands there, one with a number behind its name."""
    names = (file.with_name(f"{file.stem}-{number}{file.suffix}") for number in range(2, 1000))
    free = (each for each in (file, *names) if may_write(each, session))
    return next(free, file.with_name(f"{session}{file.suffix}"))


def partial_name(file: Path, session: str) -> Path:
    """Where a draft is left that is not done: in its place, or, where something else or a proved one stands there, as ``x.partial.yaml``."""
    own = may_write(file, session) and not (file.exists() and _PROVED.match(regular_files.read(file).decode()))
    return file if own else free_name(file.with_name(f"{file.stem}.partial{file.suffix}"), session)


def obstacle(file: Path) -> str | None:
    """Why no workflow could be left there, as far as can be seen without writing one."""
    folder = next(each for each in file.parents if os.path.lexists(each))
    if os.path.isdir(file):  # noqa: PTH112 - a path raises where a name is too long
        return "it is a folder"
    if not folder.is_dir():
        return f"{folder} is no folder"
    try:
        str(file).encode()
    except UnicodeError:
        return "its name is no UTF-8"
    names = (*file.parts[len(folder.parts) :], notes_of(file).name)
    if max(len(os.fsencode(each)) for each in names) > os.pathconf(folder, "PC_NAME_MAX"):
        return "its name is too long"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"nothing may be written in {folder}"


def write(file: Path, text: str) -> None:
    """Put the text there, whole or not at all, for everybody to read who may read files here. Raises UsageError ``file-not-written``."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write(file, text.encode())
        file.chmod(0o666 & ~_umask())
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise UsageError(
            "file-not-written",
            f"{file} could not be written: {reason}",
            fix="the person sees to it that it can be; then call `finish` again",
        ) from None


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
