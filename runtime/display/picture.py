"""Draws the tree as lines: never wider or higher than the terminal. Pure: text in, text out."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from runtime import events
from runtime.display.progress import Progress, Step, turn_text
from runtime.display.text import count, cut, duration, fit, one_line, value_text

Tone = Literal["head", "running", "waiting", "good", "bad", "odd", "quiet"]

MARKS: dict[events.StepStatus | None, tuple[str, Tone]] = {
    None: (">>", "running"),
    "ok": ("ok", "good"),
    "error": ("!!", "bad"),
    "paused": ("??", "odd"),
    "out-of-budget": ("$$", "odd"),
    "replaced": ("->", "odd"),
    "tolerated": ("!?", "odd"),
    "skipped": ("--", "quiet"),
    "recorded": ("==", "quiet"),
    "recovered": ("ok", "good"),
}

REMARKS: dict[events.StepStatus | None, str] = {
    "error": "failed",
    "paused": "paused",
    "out-of-budget": "out of budget",
    "replaced": "continues elsewhere",
    "tolerated": "failed, tolerated",
    "skipped": "skipped",
    "recorded": "done before",
    "recovered": "done before, says the site",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line, already cut to the width; ``tone`` selects its colour."""

    text: str
    tone: Tone


def live(progress: Progress, width: int, height: int) -> list[Line]:
    now = progress.clock()
    chain = progress.open[1:]
    foot = _foot(progress, width)
    rooms = _rooms(progress.open, height - 1 - len(chain) - len(foot))
    body: list[Line] = []
    for depth, (step, room) in enumerate(zip(progress.open, rooms, strict=True)):
        body += _over(step, depth, room, width)
        if depth < len(chain):
            body.append(_running(chain[depth], depth, width, now))
    body += foot
    clock = f"{one_line(progress.run)}  {duration(now - progress.since)}".strip()
    head = Line(fit(one_line(progress.workflow), clock, width), "head")
    return [head, *body[max(0, len(body) - (height - 1)) :]][: max(height, 1)]


def final(progress: Progress, width: int, most: int = 30) -> list[Line]:
    """Draw what stays on the screen after the run: the newest ``most`` lines of its outermost steps, and the interrupted step."""
    now = progress.clock()
    left = [_running(step, depth, width, now, over=True) for depth, step in enumerate(progress.open[1:])]
    return [*_over(progress.root, 0, most - len(left), width), *left][-most:]


def _rooms(chain: list[Step], room: int) -> list[int]:
    """Return the number of lines for finished steps on each level; the innermost is served first."""
    rooms = [0] * len(chain)
    for depth in range(len(chain) - 1, -1, -1):
        wanted = sum(1 for _ in _finished(chain[depth])) + (1 if _hidden(chain[depth]) else 0)
        rooms[depth] = max(0, min(wanted, room))
        room -= rooms[depth]
    return rooms


def _finished(step: Step) -> Iterator[Step]:
    return (child for child in step.children if child.status is not None)


def _hidden(step: Step) -> Counter[events.StepStatus]:
    """Return the counts of inner steps. For a loop they are empty: its position counts earlier iterations, ``37/200``."""
    return Counter() if step.turn is not None else step.forgotten


def _over(step: Step, depth: int, room: int, width: int) -> list[Line]:
    """Draw the finished steps below ``step`` in at most ``room`` lines: the newest by name, the others as a count."""
    done = list(_finished(step))
    hidden = Counter(_hidden(step))
    if room <= 0 or not (done or hidden):
        return []
    named = room if len(done) <= room and not hidden else room - 1
    shown = done[len(done) - named :] if named else []
    for other in done[: len(done) - len(shown)]:
        hidden.update(other.tally() if other.container else {other.status: 1} if other.status else {})
    lines = [Line(cut(f"{'  ' * depth}..  {_tally(hidden)}", width), "quiet")] if hidden else []
    return lines + [_ended(child, depth, width) for child in shown]


def _ended(step: Step, depth: int, width: int) -> Line:
    mark, tone = MARKS[step.status]
    parts = [f"{'  ' * depth}{mark}  {step.label}"]
    if step.container:
        tally = step.tally()
        parts.append(_tally(tally) if tally else "")
    else:
        parts.append(step.summary)
    parts.append(REMARKS.get(step.status, ""))
    if step.error and not step.container:
        parts.append(value_text(step.error.get("message", "")))
    quiet = step.status in ("skipped", "recorded")
    return Line(fit(_join(parts), "" if quiet else duration(step.seconds), width), tone)


def _running(step: Step, depth: int, width: int, now: float, *, over: bool = False) -> Line:
    mark: str
    tone: Tone
    mark, tone = MARKS[None] if not over else ("..", "odd")
    parts = [f"{'  ' * depth}{mark}  {step.label}"]
    if step.turn is not None:
        parts.append(turn_text(step.turn))
        if step.turn.key is not None:
            parts.append(f"#{value_text(step.turn.key)}")
    elif not step.container:
        parts.append(step.summary)
    if step.attempt > 1:
        parts.append(f"attempt {step.attempt}")
    if step.container:
        trouble = {status: number for status, number in step.tally().items() if status in ("error", "tolerated")}
        parts += [f"{number} {status}" for status, number in trouble.items()]
    if over:
        parts.append("not finished")
    return Line(fit(_join(parts), duration(now - step.since), width), tone)


def _foot(progress: Progress, width: int) -> list[Line]:
    step = progress.current
    indent = "  " * (len(progress.open) - 1) + "  "
    if step is progress.root:
        return [] if progress.ended or step.children else [Line(cut(f"{indent}starting", width), "waiting")]
    if step.waiting:
        return [Line(cut(f"{indent}waiting: {one_line(step.waiting)}", width), "waiting")]
    return []


def _join(parts: list[str]) -> str:
    return "  ".join([parts[0], *(one_line(part) for part in parts[1:] if part)])


def _tally(counter: Counter[events.StepStatus]) -> str:
    total = sum(counter.values())
    others = [f"{number} {status}" for status, number in sorted(counter.items()) if status != "ok" and number]
    return ", ".join([count(total, "step"), *others])
