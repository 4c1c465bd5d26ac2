"""``runops show`` of a build: how it ended, or what it waits for, beside what every session has."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from nodes.values import Json
from runtime import log, sessions
from runtime.display.text import harmless, one_line
from runtime.language import inputs

FINISH = "finish"
"""The tool with which a build ends."""

Value = Callable[[log.Result], Json]
"""What a result holds."""


def left(past: sessions.Session, value_of: Value) -> dict[str, Json] | None:
    """What the build has left, where it ended by itself and nothing was said to it since."""
    found: dict[str, Json] | None = None
    for deed in past.deeds.values():
        call, result = deed.call, deed.result
        if call.thread != log.SESSION_THREAD or call.action != FINISH or result is None or result.status != "ok":
            continue
        value = value_of(result)
        if isinstance(value, dict) and "done" in value and not _said_since(past, result.seq):
            found = value
    return found


def _said_since(past: sessions.Session, line: int) -> bool:
    said = past.thread(log.SESSION_THREAD).said
    return any(isinstance(each, log.User) and each.mode is not None and each.seq > line for each in said)


def as_json(past: sessions.Session, value_of: Value) -> dict[str, Json]:
    """The build, for programs."""
    assert past.header is not None
    questions: list[Json] = [
        {"question": each.question, "choices": list[Json](each.choices), "answer": each.answer}
        for each in past.questions
    ]
    waits = past.waits_for
    return {
        "wish": past.header.build.model_dump(mode="json") if past.header.build is not None else None,
        "questions": questions,
        "waits": waits.question if waits is not None else None,
        "finish": left(past, value_of),
    }


def lines(session: str, past: sessions.Session, value_of: Value, *, held: bool) -> Iterator[str]:
    """How it ended or what it waits for, and the next command to type, for people."""
    again = f"runops build --resume {session}"
    waits, value = past.waits_for, left(past, value_of)
    if waits is not None and not held:
        asked = harmless(waits.question).split("\n")
        yield f"  asks   {asked[0]}"
        yield from (f"         {line}" for line in asked[1:])
        yield from (f"         {number} {one_line(each)}" for number, each in enumerate(waits.choices, 1))
        yield f"  answer {again} --answer TEXT"
        return
    if value is not None:
        yield from _ended(past, value)
    if not held and (value is None or not value["done"]):
        yield f"  again  {again}"


def granted(value: Json) -> str:
    """For which deed an answer was given, in words; the name of a grant is only a digest."""
    kept: dict[str, Json] = value if isinstance(value, dict) else {}
    return f" {one_line(str(kept['what']))}" if kept.get("what") else ""


def _ended(past: sessions.Session, value: dict[str, Json]) -> Iterator[str]:
    done = bool(value["done"])
    how = f"done, proved: {one_line(str(value.get('proved')))}" if done else "not done"
    yield f"  ended  {how}"
    if value.get("summary"):
        yield f"  what   {one_line(str(value['summary']))}"
    file = value.get("file")
    mend: dict[str, Json] | None = value.get("mend")
    mends = past.header.build.mends if past.header is not None and past.header.build is not None else None
    if mend is not None and mends is not None:
        yield f"  patch  {one_line(str(mend.get('kept')))}"
        yield f"  apply  runops repair --run {mends.run} --apply"
    elif file:
        yield f"  file   {one_line(str(file))}"
        if done:
            yield f"  run    runops run {shlex.quote(str(file))} --frozen{harmless(inputs.typed(value.get('inputs') or {}))}"
