"""Indexed answers of a run's history, compared with a scan of all its entries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodes.values import Json
from runtime.log import attempts as log_attempts
from runtime.log import entries, history, step_paths

BLOB = entries.Blob(sha256="0" * 64, bytes=1, preview="x", path="workflow")
HEADER = entries.RunHeader(
    workflow="w", file="w.yaml", text=BLOB, callees={}, inputs={}, secrets=[], origins=[], browser={}, versions={}
)
TAKEN: Json = {"workflow": "w", "text": BLOB.model_dump(), "callees": {}, "inputs": {}, "secrets": [], "origins": []}

STEPS = ("a", "each[1]/a", "each[1]/b", "each[10]/a", "each[10]/try/b", "each[10]/try[2]/b", "each", "tail/b/c", "tai")
SCOPES = (("each[1]", "item"), ("each[10]", "item"), ("each[10]/try", "try"), ("tail", "group"), ("each", "iterate"))
NODES = ("browser_action", "browser_query", "transform", "acme.clock")

ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from(STEPS), st.sampled_from(NODES), st.sampled_from(["run", "confirm:c2"])),
        st.tuples(st.just("action"), st.sampled_from(["read", "effect"])),
        st.tuples(st.just("result"), st.sampled_from(["ok", "before", "after", "interrupted"]), st.sampled_from(["", "A.csv", "a.CSV", "b"])),
        st.tuples(st.just("scope"), st.sampled_from(SCOPES), st.sampled_from(["opened", "committed", "failed"])),
        st.tuples(st.just("void"), st.sets(st.sampled_from((*STEPS, *(path for path, _node in SCOPES))))),
        st.tuples(st.just("restored"), st.integers(0, 30)),
    ),
    max_size=30,
)  # fmt: skip


class Past:
    """A history that grows by drawn entries."""

    def __init__(self) -> None:
        self.history = history.History()
        self.open: list[entries.Call] = []
        self.add(entries.Scope(path="", event="opened", node="workflow", run=HEADER))

    def add(self, entry: entries.AnyEntry) -> entries.AnyEntry:
        """Append it."""
        written = entries.numbered(entry, self.history.last_seq + 1)
        self.history.add(written)
        return written

    def take(self, act: tuple[Any, ...]) -> None:
        """Do one thing that a run may do."""
        match act:
            case ("call", str(path), str(node), str(thread)):
                action = "click" if node == "browser_action" else None
                call = entries.Call(
                    thread=thread,
                    path=path,
                    node=node,
                    action=action,
                    attempt=1,
                    effect="read" if node in ("transform", "browser_query") else "effect",
                    fingerprint="",
                )
                self._call(call)
            case ("action", effect) if self.open:
                asked_by = self.open[0]
                call = entries.Call(
                    thread=entries.model_thread(asked_by.call),
                    path=f"{asked_by.path}/1_click",
                    node="browser_action",
                    action="click",
                    asked="x",
                    attempt=1,
                    effect=effect,
                    fingerprint="",
                )
                self._call(call)
            case ("result", how, file) if self.open:
                self._result(self.open.pop(0), how, file)
            case ("scope", (path, node), event):
                if self.history.scopes.get(path) is not None or event == "opened":
                    self.add(entries.Scope(path=path, event=event, node=node))
            case ("void", paths):
                data: dict[str, Json] = {"invalidated": sorted(paths), "edited": [], "reopened": [], "rebuild": False}
                self.add(entries.Note(name="changed", data={"taken": TAKEN, **data}))
            case ("restored", line):
                self.add(entries.Note(name="restored", data={"mode": "checkpoint", "after": line}))
            case _:
                pass

    def _call(self, call: entries.Call) -> None:
        written = self.add(call)
        assert isinstance(written, entries.Call)
        self.open.append(written)

    def _result(self, call: entries.Call, how: str, file: str) -> None:
        error: dict[str, Json] | None = {"code": "x", "phase": how} if how in ("before", "after") else None
        status: entries.Status = "error" if error else "interrupted" if how == "interrupted" else "ok"
        files: list[dict[str, Json]] | None = [{"name": file}] if file else None
        self.add(entries.Result(call=call.call, status=status, error=error, files=files))


def every(past: history.History) -> list[log_attempts.Attempt]:
    """All attempts, in order."""
    return past.all_attempts()


def begun(past: history.History, path: str) -> bool:
    """The definition of ``History.begun``."""
    return any(
        any(not attempt.invalidated for attempt in attempts)
        for each, attempts in past.attempts.items()
        if each == path or each.startswith(f"{path}/")
    )


@given(ACTS)
def test_indexed_answers_agree_with_a_scan_of_everything(acts: list[tuple[Any, ...]]) -> None:
    """Whatever a run did, the indexes of begun steps, page changes, file names and latest steps agree with a scan of all attempts."""
    past = Past()
    places = {*STEPS, *(path for path, _node in SCOPES), "tail/b", "each[1", "", "nowhere"}
    for act in acts:
        past.take(act)
        now = past.history
        assert {path: now.begun(path) for path in places} == {path: begun(now, path) for path in places}
        on_page = [each for each in every(now) if each.touched_page]
        assert now.last_on_page() is (on_page[-1] if on_page else None)
        lines = range(now.last_seq + 1)
        assert [now.page_changed_since(line) for line in lines] == [
            any(each.call.seq > line for each in on_page) for line in lines
        ]
        in_run = [each for each in every(now) if each.call.thread == entries.RUN_THREAD and each.call.asked is None]
        assert [*now.steps_backwards()] == in_run[::-1]
        kept = [
            (file["name"], each.call.path) for each in every(now) for file in (each.result and each.result.files) or ()
        ]
        for name in ("A.csv", "b"):
            owners = {path for file_name, path in kept if str(file_name).casefold() == name.casefold()}
            assert {path for path in STEPS if now.named_elsewhere(name, path)} == {
                path for path in STEPS if owners - {path}
            }
        assert_order(now)


def assert_order(now: history.History) -> None:
    """Check that the order has each path once, and only paths with an attempt or a scope."""
    assert len(now.order) == len({*now.order})
    assert {*now.order} <= {*now.attempts, *now.scopes}


@given(ACTS)
def test_a_block_that_an_error_ended_stays_ended(acts: list[tuple[Any, ...]]) -> None:
    """A path is in a block that an error ended exactly if it begins with that block's path and a slash."""
    past = Past()
    for act in acts:
        past.take(act)
    ended: Callable[[str], bool] = past.history.ended_by_error()
    over = tuple(f"{scope.path}/" for scope in past.history.scopes.values() if scope.stays_failed)
    for path in (*STEPS, "each[1]", "each[1", ""):
        assert ended(path) == path.startswith(over)


BLOCKS = (
    "h/try/pay", "h/try[2]/pay", "h/try[3]/pay", "h/try[12]/pay", "h/catch/pay", "h/try/all[1]/pay", "h/try[2]/all[3]/pay",
    "h/try[2]/all[1]/pay", "h/try[3]/all[3]/pay", "all[#k]/h/try/pay", "all[#k]/h/try[2]/in/try/pay", "h/try[2]/in/try[2]/pay", "h/try/in/try/pay",
)  # fmt: skip

SIDE_EFFECTS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from(BLOCKS), st.just("browser_action"), st.sampled_from(["run"])),
        st.tuples(st.just("result"), st.sampled_from(["ok", "before", "after", "interrupted"]), st.just("")),
        st.tuples(st.just("void"), st.sets(st.sampled_from(BLOCKS), max_size=3)),
    ),
    min_size=10,
    max_size=40,
)  # fmt: skip


def last_effect(now: history.History, path: str) -> log_attempts.Attempt | None:
    """The last side effect of the step at ``path``, if any."""
    return next((each for each in reversed(now.attempts.get(path, [])) if each.may_have_happened), None)


def repeated(now: history.History, block: step_paths.Block) -> log_attempts.Attempt | None:
    """The definition of ``History.repeated``."""
    first = block.first
    before = tuple(f"{first}{f'[{each}]' if each > 1 else ''}/" for each in range(1, block.number))
    same: list[log_attempts.Attempt] = []
    elsewhere: list[log_attempts.Attempt] = []
    for path in now.attempts:
        start = next((each for each in before if path.startswith(each)), None)
        effect = last_effect(now, path)
        if start is None or effect is None:
            continue
        rest = path.removeprefix(start)
        if re.sub(r"\[\d+\]", "", rest) == re.sub(r"\[\d+\]", "", block.rest):
            (same if rest == block.rest else elsewhere).append(effect)
    return max(same or elsewhere, key=lambda each: each.call.seq, default=None)


@given(SIDE_EFFECTS)
def test_a_side_effect_of_an_earlier_run_of_a_block_is_found(acts: list[tuple[Any, ...]]) -> None:
    """A block's earlier side effect is found by the same path, else in any iteration of a loop without keys. The last one counts, each step once."""
    past = Past()
    for act in acts:
        past.take(act)
    now = past.history
    for path in BLOCKS:
        for block in step_paths.blocks(path):
            assert now.repeated(block) is repeated(now, block)
            within = [
                effect
                for each in now.attempts
                if each.startswith(f"{block.path}/") and (effect := last_effect(now, each))
            ]
            assert {each.call.seq for each in now.effects_within(block.first, block.number)} == {
                each.call.seq for each in within
            }
            assert len(now.effects_within(block.first, block.number)) == len(within)
