"""History of a run, folded from its log: read by the engine that resumes the run, and by every reader.

The fold answers three questions: the value of a step (``done``), the calls that a crash left open (``open_calls``), and the finished side
effects that a restore undid (``undone_after``).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from typing_extensions import override

from nodes.values import Json
from runtime.log import attempts as log_attempts
from runtime.log import entries as log_entries
from runtime.log import step_paths, threads
from runtime.log.store import integrity


def _last_effect(attempts: Sequence[log_attempts.Attempt]) -> log_attempts.Attempt | None:
    return next((each for each in reversed(attempts) if each.may_have_happened), None)


class History(threads.Fold):
    def __init__(self, entries: Iterable[log_entries.AnyEntry] = ()) -> None:
        super().__init__()
        self.header: log_entries.RunHeader | None = None
        self.attempts: dict[str, list[log_attempts.Attempt]] = {}
        self.scopes: dict[str, log_attempts.ScopeState] = {}
        self.order: list[str] = []  # step and scope paths of the thread `run`, in order of first appearance
        self.checkpoint: log_entries.Checkpoint | None = None
        self.checkpoint_before: log_entries.Checkpoint | None = None
        """Checkpoint before the last one; its file is kept too."""
        self.anew: set[str] = set()
        """Nodes and items of loops whose conditions are decided again, though they were begun."""
        self.restoring = False
        """True if the last process died while it restored a checkpoint: the state of the browser that it left is undefined."""
        self.page: log_entries.PageState | None = None
        self.failed_at = 0  # line at which the run last ended as failed
        self.ending: log_attempts.Ending | None = None
        self.processes: list[log_attempts.Process] = []  # its owners, in order
        self.background: log_entries.User | None = None
        """The conversation of the session that began the run; None if none did."""
        self.question: log_entries.Note | None = None
        self.answer: log_entries.Note | None = None
        self.pauses: list[tuple[log_entries.Note, log_entries.Note | None]] = []
        """Each question to a person, with the answer or decision."""
        self.answers: dict[str, dict[str, Json]] = {}  # A person's answers to the questions of a step, by its path
        self.decisions: dict[str, str] = {}
        """A person's decision about a step that may repeat an earlier action, by its path: ``done``, ``not-done``, ``skip``."""
        self.evidence: list[dict[str, Json]] = []
        """Evidence of failed steps, in order, as ``runtime.engine.evidence`` kept it; each has the ``path`` of its step."""
        self.confirms_tried: list[dict[str, Json]] = []
        """Trials of a ``confirm``, in order: ``path``, ``when`` (before or after the side effect), ``found`` and ``how``."""
        self._by_call: dict[str, log_attempts.Attempt] = {}
        self._setters: list[log_attempts.Attempt] = []
        self._acting: list[log_attempts.Attempt] = []  # attempts that do more than read, in the order of their calls
        self._steps: list[log_attempts.Attempt] = []
        """Attempts of steps of the run's own thread, in the order of their calls."""
        self._in_blocks: dict[tuple[str, int], dict[str, list[log_attempts.Attempt]]] = {}
        """Attempts that do more than read in a run of a handle's block, by the path of the block's first run and its number.

        Within each run by their path in the block without positions in loops, in the order of their calls.
        """
        self._seen_not_done: list[log_attempts.Attempt] = []
        """Side effects that the site, asked by the present process, did not show."""
        self._begun: set[str] = set()  # paths at which an attempt counts, and all paths around them
        self._recordings: list[
            dict[str, Json]
        ] = []  # traces and videos of the whole run, one or two for each of its ends
        self._named: dict[str, set[str]] = {}
        """File names in lower case, each with the paths of the steps that kept one."""
        with integrity.uncollected():
            for entry in entries:
                self.add(entry)

    @override
    def add(self, entry: log_entries.AnyEntry) -> None:
        self.last_seq, self.last_at = entry.seq, entry.at
        if entry.thread.startswith(log_entries.MODEL):
            self._threads.setdefault(entry.thread, threads.Thread()).add(entry)
        match entry:
            case log_entries.Scope():
                self._scope(entry)
            case log_entries.Call():
                self._called(entry)
            case log_entries.Result():
                attempt = self._by_call[entry.call]
                attempt.result, attempt.since = entry, entry.seq
                for file in entry.files or ():
                    self._named.setdefault(str(file["name"]).casefold(), set()).add(attempt.call.path)
                if entry.page is not None:
                    self.page = entry.page
            case log_entries.Checkpoint():
                self.checkpoint, self.checkpoint_before = entry, self.checkpoint
            case log_entries.Note() if entry.name not in ("requested", "submitted"):
                self._note(entry)
            case log_entries.User(thread=log_entries.BACKGROUND_THREAD):
                self.background = entry
            case _:
                self.ledger.add(entry, self._requester(entry.thread))
        if self.processes:
            self.processes[-1].last = entry.at

    def _called(self, entry: log_entries.Call) -> None:
        attempt = self._by_call[entry.call] = log_attempts.Attempt(entry)
        if entry.again is not None:
            attempt.actions = self._by_call[entry.again].actions
        if entry.asked is not None:
            self._by_call[log_entries.call_of(entry.thread)].actions.append(attempt)
        else:
            self._seen(entry.path, entry.thread)
            self.attempts.setdefault(entry.path, []).append(attempt)
            self._begin(entry.path)
            if entry.thread == log_entries.RUN_THREAD:
                self._steps.append(attempt)
            if not attempt.only_read:
                for block in step_paths.blocks(entry.path):
                    run = self._in_blocks.setdefault((block.first, block.number), {})
                    run.setdefault(block.anywhere, []).append(attempt)
        if entry.node == "context":
            self._setters.append(attempt)
        if not attempt.only_read:
            self._acting.append(attempt)

    def _begin(self, path: str) -> None:
        self._begun.add(path)
        for each in step_paths.around(path):
            if each in self._begun:
                break
            self._begun.add(each)

    def _requester(self, thread: str) -> str:
        attempt = self._by_call.get(thread.partition(":")[2])
        return attempt.call.path if attempt is not None else ""

    def _seen(self, path: str, thread: str) -> None:
        if self.anew:
            # An action there means that the condition held.
            self.anew -= {each for each in self.anew if path == each or path.startswith((f"{each}/", f"{each}["))}
        if thread == log_entries.RUN_THREAD and path not in self.attempts and path not in self.scopes:
            self.order.append(path)

    def _scope(self, entry: log_entries.Scope) -> None:
        if entry.run is not None:
            self.header, self.started, self.budget = entry.run, entry.at, entry.run.budget
        self._seen(entry.path, entry.thread)
        scope = self.scopes.setdefault(entry.path, log_attempts.ScopeState(entry.path, entry.node, entry.seq))
        if entry.event != "opened":
            setattr(scope, entry.event, entry)
        if entry.event == "decided":
            scope.stale = None

    def _note(self, entry: log_entries.Note) -> None:
        match entry.name:
            case "claimed":
                self._claimed(entry)
            case "restoring":
                self.restoring = True
            case "restored":
                self._restored(entry.data)
            case "reconciled":
                judged = self._judged(str(entry.data["call"]), entry.data["verdict"], entry)
                if judged.verdict == "not-done" and entry.data["how"] != log_entries.PERSON:
                    self._seen_not_done.append(judged)
            case "paused":
                self._paused(entry)
            case "decided":
                self._decided(entry)
            case "answered":
                self._replied(entry)
                self.answers[str(entry.data["path"])] = entry.data["answers"]
            case "evidence" | "confirm-tried":
                (self.evidence if entry.name == "evidence" else self.confirms_tried).append(entry.data)
            case "ended":
                self._ended(entry)
            case "changed":
                self._changed(entry)
            case _:
                pass

    @override
    def _claimed(self, entry: log_entries.Note) -> None:
        super()._claimed(entry)
        self.ending = None
        self.processes.append(log_attempts.Process(entry.at, entry.at, "taken_from" in entry.data))
        # The site may show the side effect by now. Only a person's *not done* outlasts the process that recorded it.
        for attempt in self._seen_not_done:
            attempt.verdict = None
        self._seen_not_done.clear()

    def _paused(self, entry: log_entries.Note) -> None:
        self.question, self.answer = entry, None
        self.pauses.append((entry, None))
        evidence: dict[str, Json] = entry.data.get("evidence") or {}
        if (attempt := self._by_call.get(str(evidence.get("call")))) is not None:
            attempt.asked = evidence

    def _ended(self, entry: log_entries.Note) -> None:
        self._recordings += entry.data.get("files") or ()
        self.ending = log_attempts.Ending(entry.data["status"], int(entry.data["exit"]), entry.data, entry.at)
        if self.processes:
            self.processes[-1].ending = self.ending
        self.ledger.stopped(entry.at)
        if self.ending.status != "paused":
            self.question = None
        if self.ending.status == "failed":
            self.failed_at = entry.seq

    def _changed(self, entry: log_entries.Note) -> None:
        """Continue the run with another workflow text: the fields in the note replace those of the header."""
        data = entry.data
        assert self.header is not None
        taken = log_entries.SourceChange.model_validate(data["taken"])
        self.header = self.header.model_copy(
            update={name: getattr(taken, name) for name in log_entries.SourceChange.model_fields}
        )
        gone: set[str] = set()
        for path in data["invalidated"]:
            for attempt in self.attempts.get(path, ()):
                attempt.invalidated = attempt.edited = True
            if self.scopes.pop(path, None) is not None and path not in self.attempts:
                gone.add(path)
            self.answers.pop(path, None)
        if data["invalidated"]:
            self.order = [path for path in self.order if path not in gone]
            self._begun.clear()
            for path, attempts in self.attempts.items():
                if not all(attempt.invalidated for attempt in attempts):
                    self._begin(path)
        for path in data["edited"]:
            for attempt in self.attempts[path]:
                attempt.edited = True
        for path in ("", *data["reopened"]):
            self.scopes[path].committed = None
        # The browser's state comes from steps that the file no longer has, so any resumed run rebuilds it.
        self.restoring = self.restoring or bool(data["rebuild"])

    def _judged(self, call: str, verdict: log_attempts.Verdict, entry: log_entries.Note) -> log_attempts.Attempt:
        attempt = self._by_call[call]
        attempt.verdict, attempt.reconciled_value = verdict, entry.data.get("value")
        if verdict != "not-done":
            attempt.rolled_back, attempt.since = False, entry.seq
        return attempt

    def _replied(self, entry: log_entries.Note) -> None:
        self.answer = entry
        if self.pauses:
            self.pauses[-1] = (self.pauses[-1][0], entry)
        if self.processes:
            self.processes[-1].only_answered = True

    def _decided(self, entry: log_entries.Note) -> None:
        self._replied(entry)
        # The process that wrote it may have died before the calls had their results.
        verdict = "skipped" if entry.data["verdict"] == "skip" else entry.data["verdict"]
        for call in entry.data["calls"]:
            self._judged(call, verdict, entry)
        if self.question is not None and not entry.data["calls"]:
            self.decisions[str(self.question.data["path"])] = str(entry.data["verdict"])

    def _restored(self, data: dict[str, Json]) -> None:
        self.restoring = False
        kept: list[str] = data.get("kept") or []
        if data["mode"] == "checkpoint":
            self._roll_back(int(data["after"]), frozenset(kept))
            for path in data.get("anew") or ():
                self.anew.add(path)
                if path in self.scopes:
                    self.scopes[path].decided = None
        # Attempts that a restore undid count again: they are kept, or their consequences are done.
        for path in kept:
            for attempt in self.attempts.get(path, ()):
                attempt.rolled_back = False

    def _roll_back(self, line: int, kept: frozenset[str]) -> None:
        """Stop counting what came after the restored state, except the steps ``kept``. Its actions are reconciled before anything is redone.

        A block that ended with a kept error stays ended: it does not run again.
        """
        ended = self.ended_by_error()
        for path, attempts in self.attempts.items():
            for attempt in attempts if path not in kept and not ended(path) else ():
                of_run = attempt.call.thread == log_entries.RUN_THREAD
                if attempt.since > line and of_run and not attempt.survives_restore:
                    for each in (attempt, *attempt.actions):
                        each.rolled_back = True
        for scope in self.scopes.values():
            # A route keeps its branch and a `when` its answer: that path has actions that must be reconciled. Only a list is made again.
            if ended(scope.path):
                continue
            if scope.decided is not None and scope.decided.seq > line and scope.decided.node == "iterate":
                scope.stale, scope.decided = scope.decided, None
            if scope.committed is not None and scope.committed.seq > line:
                scope.committed = None
            if scope.failed is not None and scope.failed.seq > line and not scope.stays_failed:
                scope.failed = None

    def ended_by_error(self) -> Callable[[str], bool]:
        """Return a test for paths: True if an error has ended a block around the path, and the block does not run again."""
        over = {scope.path for scope in self.scopes.values() if scope.stays_failed}
        return lambda path: bool(over) and any(each in over for each in step_paths.around(path))

    def effect_at(self, path: str) -> log_attempts.Attempt | None:
        """Return the last side effect at ``path`` that happened or may have."""
        return _last_effect(self.attempts.get(path, ()))

    def effects_within(self, first: str, number: int) -> list[log_attempts.Attempt]:
        """Return the last side effect of each step in one run of a block of a handle. ``first`` is the path of the block's first run."""
        run = self._in_blocks.get((first, number), {})
        reached = {attempt.call.path: None for attempts in run.values() for attempt in attempts}
        return [effect for path in reached if (effect := self.effect_at(path)) is not None]

    def repeated(self, block: step_paths.Block) -> log_attempts.Attempt | None:
        """Return the side effect of an earlier run of the block that a step in it would repeat.

        Items of a loop without keys are known by position, which proves nothing between two runs. If none was at the same position, any of
        them may be the one, and the last is returned.
        """
        numbers = range(block.number - 1, 0, -1)
        same = [self.effect_at(f"{block.first}{f'[{each}]' if each > 1 else ''}/{block.rest}") for each in numbers]
        runs = [self._in_blocks.get((block.first, each), {}).get(block.anywhere, ()) for each in numbers]
        found = [effect for effect in same if effect is not None] or [
            effect for attempts in runs if (effect := _last_effect(attempts)) is not None
        ]
        return max(found, key=lambda effect: effect.call.seq, default=None)

    def done(self, path: str) -> log_attempts.Attempt | None:
        """Return the attempt that gave the step at ``path`` its value, if it has one that counts."""
        last = self.last(path)
        return last if last is not None and last.settled and not last.rolled_back else None

    def last(self, path: str) -> log_attempts.Attempt | None:
        attempts = self.attempts.get(path)
        return log_attempts.deciding(attempts) if attempts else None

    @override
    def threads_that_count(self, path: str) -> list[str]:
        """Return the threads, the latest first, in which attempts of the step had model answers that are still valid.

        Answers stay valid if a crash ended the attempt, a restore undid it, or the model could not be asked any further. They do not if it
        reached another result, such as an unusable answer, and neither do those of attempts before it.
        """
        names: list[str] = []
        for attempt in reversed(self.attempts.get(path, [])):
            result = attempt.result
            if result is not None and result.status != "interrupted" and not attempt.rolled_back:
                error = result.error or {}
                of_others = (
                    error.get("who") in ("model", "setup", "usage") and error.get("code") != "model-output-invalid"
                )
                if not of_others and error.get("code") != "timeout":
                    break
            names.append(log_entries.model_thread(attempt.call.again or attempt.call.call))
        return names

    def attempt_of(self, call: log_entries.Call) -> log_attempts.Attempt:
        return self._by_call[call.call]

    def next_number(self, path: str) -> int:
        attempts = self.attempts.get(path)
        return attempts[-1].call.attempt + 1 if attempts else 1

    def all_attempts(self) -> list[log_attempts.Attempt]:
        return list(self._by_call.values())

    def open_calls(self) -> list[log_attempts.Attempt]:
        """Return calls that a crash left without a result, in order."""
        return [attempt for attempt in self._by_call.values() if attempt.result is None]

    def undone_after(self, line: int, skipped: Collection[str] = ()) -> list[log_attempts.Attempt]:
        """Return finished side effects that came after the state restored to ``line``, except for the steps ``skipped``."""
        ended = self.ended_by_error()
        lasts = (log_attempts.deciding(attempts) for path, attempts in self.attempts.items() if not ended(path))
        return [
            attempt
            for attempt in lasts
            if attempt.result is not None
            and attempt.call.thread == log_entries.RUN_THREAD
            and attempt.call.path not in skipped
            and (attempt.since > line or attempt.rolled_back)
            and attempt.may_have_happened
            and attempt.result.status == "ok"
            and not attempt.survives_restore
        ]

    @property
    def files(self) -> list[dict[str, Json]]:
        kept: dict[str, dict[str, Json]] = {}
        for attempt in self._by_call.values():
            if attempt.result is not None:
                kept |= {str(each["name"]): each for each in attempt.result.files or ()}
        return [*kept.values(), *self._recordings]

    @property
    def flags(self) -> list[dict[str, Json]]:
        """Matters for a person to check, with the ``path`` of the step; for each step those of its last attempt."""
        lasts = {each.call.path: each.result for each in self._by_call.values() if each.result is not None}
        return [{"path": path, **flag} for path, last in lasts.items() for flag in last.flags or ()]

    @property
    def tolerated(self) -> int:
        lasts = [attempts[-1] for attempts in self.attempts.values()]
        results = [each.result for each in lasts if not (each.rolled_back or each.invalidated)]
        failures = [scope.failed for scope in self.scopes.values()]
        return sum(1 for each in (*results, *failures) if each is not None and each.tolerated)

    def scope(self, path: str) -> log_attempts.ScopeState:
        """Return the state of a scope; an empty one if it was never opened."""
        return self.scopes.get(path) or log_attempts.ScopeState(path)

    @property
    def steps_done(self) -> int:
        return sum(1 for path in self.order if self.done(path) is not None)

    def for_lists(self) -> dict[str, Json]:
        """Return the fields that the last entry has for a list of runs, which does not read the whole log."""
        assert self.header is not None
        *earlier, process = self.processes
        worked = round(sum(each.seconds for each in earlier), 3)
        return {"workflow": self.header.workflow, "steps": self.steps_done, "worked": worked, "since": process.began}

    def set_within(self, path: str) -> list[log_attempts.Attempt]:
        scope = self.scopes[path]
        over = scope.committed or scope.failed
        first = bisect.bisect_left(self._setters, scope.opened, key=lambda attempt: attempt.call.seq)
        last = bisect.bisect_right(self._setters, over.seq if over else self.last_seq, key=lambda a: a.call.seq)
        return [
            attempt
            for attempt in self._setters[first:last]
            if attempt.call.path.startswith(f"{path}/") and attempt.settled and not attempt.rolled_back
        ]

    def begun(self, path: str) -> bool:
        """True if anything that counts was done at ``path`` or within it."""
        return path in self._begun

    def steps_backwards(self) -> Iterator[log_attempts.Attempt]:
        return reversed(self._steps)

    def named_elsewhere(self, name: str, path: str) -> bool:
        """True if a step other than the one at ``path`` has kept a file of that name, ignoring case."""
        return not self._named.get(name.casefold(), set()) <= {path}

    def page_changed_since(self, line: int) -> bool:
        last = self.last_on_page()
        return last is not None and last.call.seq > line

    def last_on_page(self) -> log_attempts.Attempt | None:
        """Return the last attempt that left a trace on the page, as far as is known."""
        return next((attempt for attempt in reversed(self._acting) if attempt.touched_page), None)

    def within(self, path: str) -> Iterator[log_attempts.Attempt]:
        for each, attempts in self.attempts.items():
            if each.startswith(f"{path}/") and attempts[-1].call.thread == log_entries.RUN_THREAD:
                yield log_attempts.deciding(attempts)

    def recorded(self, path: str) -> list[str]:
        """Return the values that ``now()`` and ``uuid()`` gave the step or scope before, so that it sees the same again."""
        scope = self.scopes.get(path)
        if scope is not None and scope.decided is not None and scope.decided.recorded:
            return scope.decided.recorded
        last = self.last(path)
        return last.call.recorded or [] if last is not None and not last.edited else []

    @property
    def status(self) -> str:
        """``passed``, ``failed``, ``paused``, ``interrupted``, or ``open``: active, or dead without a recorded end."""
        return self.ending.status if self.ending else "open"
