"""The files that a build writes: the workflow, with its session and proof in its head, and a page of notes next to it.

``runops verify`` writes its proof into the same head.

An existing file is overwritten only if the person allows it, or if this build wrote it. The head has a checksum of the content, so a file
that was edited since counts as another's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from nodes.errors import UsageError
from runtime.display.text import one_line
from runtime.secrets import published
from runtime.system import files, regular_files

NOTES = ".build.md"  # suffix of the page of notes: `x.build.md` for the workflow `x.yaml`

PROVED = "proved: "
BUILT = "how it was built and proved: "  # the last line of a head names the notes, or the runs of `runops verify`
STOPPED = "what was done, and why it stopped: "
RUNS = "the runs that proved it: "

_VERIFIED = "Verified by `runops verify`"
_HEAD = re.compile(rf"\ufeff?# (?:Built by `runops build`, session (\S+)|{_VERIFIED}), sum ([0-9a-f]{{16}})\r?\n")
_PROVED = re.compile(rf"{_HEAD.pattern}# {PROVED}")
_CLAIM = re.compile(rf"({_HEAD.pattern}# {PROVED})([^\r\n]*)")
_HEAD_ENDS = re.compile(rf"\A\ufeff?(?:# [^\r\n]*\r?\n)*?# ((?:{BUILT}|{STOPPED}|{RUNS})[^\r\n]*)\r?\n")
_NOTES_HEAD = re.compile(r"<!-- Built by `runops build`, session (\S+), sum ([0-9a-f]{16}) -->\n")


def workflow(session: str, text: str, lines: list[str]) -> str:
    """Return the text of a workflow with a head: the session, and ``lines``. Byte order mark and line ends stay as they are."""
    return _with_head(f"Built by `runops build`, session {session}", text, lines)


def verified(text: str, lines: Sequence[str], runs: Sequence[str]) -> str:
    """Return a workflow with the proof that these runs gave in its head, in place of an earlier one; the rest stays as it is.

    The head of a build keeps its session and its notes. If the file was edited since, it stays another's for that build.
    """
    found, ends = _HEAD.match(text), _HEAD_ENDS.search(text)
    if found is None or found[1] is None or ends is None:
        return _with_head(_VERIFIED, without_head(text), [*lines, f"{RUNS}{', '.join(runs)}"])
    edited = found[2] if found[2] != _sum(text[found.end() :]) else None
    more = [*lines, f"verified later, by the runs {', '.join(runs)}", ends[1]]
    return _with_head(f"Built by `runops build`, session {found[1]}", without_head(text), more, edited)


def _with_head(first: str, text: str, lines: Sequence[str], checksum: str | None = None) -> str:
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    end = "\r\n" if "\r\n" in text else "\n"
    more = "".join(f"# {one_line(each)}".rstrip() + end for each in lines)
    rest = f"{more}{text.removeprefix(mark)}"
    return f"{mark}# {first}, sum {checksum or _sum(rest)}{end}{rest}"


def without_head(text: str) -> str:
    """Return the text of a workflow without the head that a build or ``runops verify`` has written."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    found = _HEAD.match(text)
    ends = _HEAD_ENDS.search(text) if found is not None else None
    return f"{mark}{text[ends.end() :]}" if ends is not None else text


def patched(text: str, run: str) -> str:
    """Return the text as patched by a fix of ``run``: a proof in its head is marked as one of the text before."""
    return _CLAIM.sub(lambda found: f"{found[1]}of the text before it was changed by a fix of run {run}", text, count=1)


def notes(session: str, text: str) -> str:
    return f"<!-- Built by `runops build`, session {session}, sum {_sum(text)} -->\n{text}"


def notes_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}{NOTES}")


def may_write(file: Path, session: str) -> bool:
    """Return whether the file is missing, or unchanged since this session wrote it."""
    return not os.path.lexists(file) or changed(file, session) is None


def changed(file: Path, session: str) -> str | None:
    """Describe how the workflow that a session wrote has changed; None if it has not."""
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
    """Return the file, or if something else is there, a name with a number appended."""
    names = (file.with_name(f"{file.stem}-{number}{file.suffix}") for number in range(2, 1000))
    free = (each for each in (file, *names) if may_write(each, session))
    return next(free, file.with_name(f"{session}{file.suffix}"))


def partial_name(file: Path, session: str) -> Path:
    """Return the path of an unfinished draft: ``file``, or ``x.partial.yaml`` if something else or a proved workflow is there."""
    own = may_write(file, session) and not (file.exists() and _PROVED.match(regular_files.read(file).decode()))
    return file if own else free_name(file.with_name(f"{file.stem}.partial{file.suffix}"), session)


def obstacle(file: Path) -> str | None:
    """Explain why no workflow could be written there, as far as this can be seen without writing; else None."""
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
    """Write the text atomically, with the permissions of a new file. Raises UsageError ``file-not-written``."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        published.publish(file, text.encode())
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise UsageError(
            "file-not-written",
            f"{file} could not be written: {reason}",
            fix="the person must make it writable; then call `finish` again",
        ) from None


def overwrite(file: Path, text: str) -> None:
    """Write an existing file and keep its mode and owner; a link is followed. Raises OSError."""
    file = file.resolve()
    known = file.stat()
    files.write(file, text.encode())
    file.chmod(known.st_mode & 0o777)
    with contextlib.suppress(PermissionError):
        os.chown(file, known.st_uid, known.st_gid)


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
