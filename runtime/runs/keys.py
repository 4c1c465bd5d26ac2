"""One run per key: ``runops run FILE --resume-if-exists KEY`` begins the run of a key, or resumes it if it exists."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from nodes.errors import LogError, UsageError
from nodes.values import Json
from runtime import events
from runtime.language import prepare
from runtime.log import entries, history
from runtime.runs import start
from runtime.secrets import masking
from runtime.workspace import host, run_index

LONGEST = 200  # maximum length of a key, in characters


async def begin_or_resume(
    prepared: prepare.Prepared,
    key: str,
    given: host.Host,
    listener: events.Listener | None = None,
    *,
    allow_changed: bool = False,
    options: start.Options = start.ALONE,
) -> events.RunEnded:
    """Begin the run of ``key``, or resume it as ``resume_run`` does; return how it ended.

    Raises RunHeld if another process owns it; UsageError ``bad-key``, or ``key-taken`` if its run has another file or other inputs.
    """
    check(key, prepared.secrets)
    try:
        return await start.begin(prepared, given, listener, key=key, options=options)
    except LogError as error:
        if error.code != "run-exists":
            raise
    run_id = await given.store.keyed(key)
    past, _reading = await asyncio.to_thread(run_index.load_history, given.reader, run_id)
    _refuse_other(past, run_id, prepared, key)
    return await start.resume_run(run_id, given, listener, allow_changed=allow_changed, options=options)


def check(key: str, known: Mapping[str, str]) -> None:
    """Raise UsageError ``bad-key`` for an invalid key, or for one that contains a secret of ``known``."""
    if masking.Masker(known).text(key) != key:
        raise UsageError(
            "bad-key", "the key holds a secret, and keys are kept in the log", fix="choose a key without it"
        )
    if not key.strip() or len(key) > LONGEST or not key.isprintable():
        raise UsageError(
            "bad-key",
            "a key has 1 to 200 printable characters, and not only blanks",
            fix='name what is done once: `--resume-if-exists "orders of 2026-03-01"`',
        )


def _refuse_other(past: history.History, run_id: str, prepared: prepare.Prepared, key: str) -> None:
    header = past.header
    assert header is not None
    evidence: dict[str, Json] = {}
    file, masker = str(prepared.loaded.path.absolute()), masking.Masker(prepared.secrets)
    digest = hashlib.sha256(masker.text(prepared.loaded.text).encode()).hexdigest()
    if file != header.file and digest != header.text.sha256:
        evidence["file"] = {"begun": _short(header.file), "now": _short(file)}
    evidence |= _other_inputs(header, prepared, masker)
    if not evidence:
        return
    what = "another file" if "file" in evidence else f"other inputs ({', '.join(evidence)})"
    raise UsageError(
        "key-taken",
        f"the key {key!r} has run {run_id}, which was begun with {what}",
        fix=f"another run takes another key; `runops show {run_id}` tells of this one",
        evidence={"run": run_id, **evidence},
    )


def _other_inputs(header: entries.RunHeader, prepared: prepare.Prepared, masker: masking.Masker) -> dict[str, Json]:
    """Return the inputs that differ. An input that is new in the file counts only if its value is not its default."""
    declared, before = prepared.loaded.workflow.inputs, header.inputs
    given: dict[str, Json] = masker.json(dict(prepared.inputs))
    return {
        name: {"begun": before.get(name), "now": value}
        for name, value in given.items()
        if value != (before[name] if name in before else declared[name].default)
    }


def _short(file: str) -> str:
    return os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file
