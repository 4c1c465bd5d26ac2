"""Lists of a session's past at paths ``@state/…``: what the person said and decided, versions of plan and draft, what delegates did."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from director.session import plan as plans
from nodes.values import Json
from runtime.context import items, replaced, summaries, summary_names
from runtime.display import costs, delegates
from runtime.display.text import cut, duration, joined, one_line
from runtime.log import entries, ledger, threads
from runtime.messages.messages import ToolCall
from runtime.models.turns import call_checks
from runtime.observation import page_text

if TYPE_CHECKING:
    from director.session.state import SessionState

ROOT, SAID, ANSWERS, CALLS = "@state", "@state/said", "@state/answers", "@state/calls"
SUMMARIES, DELEGATES, COST = "@state/summaries", "@state/delegate", "@state/cost"

ASIDE = "   "  # stands between what a person typed and what is known of it: where a value came from, who proposed it

KEPT = ("goal", "plan", "draft", "description")  # values whose versions are listed

# Limits in lists, in characters: what a call was given, what one of a delegate gave, what another one gave (or a variable's value), a
# delegate's goal.
ARGUMENTS, OUTPUT, GAVE, GOAL = 300, 300, 150, 200

PATHS = f"""\
`{SAID}`: what the person said, typed, answered and decided, word for word; when the session was resumed
`{ANSWERS}`: what you answered, each with its line
`{CALLS}`: what you called, each with its arguments, its outcome and the line of its output
`{SUMMARIES}`: what was summed up, when, and at whose word
`@state/run`: the runs; `@state/run/ID`: one of them, also what was asked and answered; `…/STEP`, `…/workflow`, `…/changes`
`@state/goal`, `@state/plan`, `@state/draft`, `@state/description`: their versions; `…/N`: one of them
`{DELEGATES}`: the delegates; `{DELEGATES}/CALL`: what one of them did
`{COST}`: what you, your delegates and the runs of the session have cost
`@state/line/N`, `@state/call/ID`: a line of the session, what a call was given: as they were named to you"""


def delegate_path(call: str) -> str:
    return f"{DELEGATES}/{call}"


def of_session(state: SessionState, path: str) -> str | None:
    """Return the list at a path, or what it leads to; None if it is a path of something else, or of nothing."""
    path = path.rstrip("/")
    made: dict[str, Callable[[], Iterator[str]]] = {
        ROOT: lambda: iter([PATHS]),
        SAID: lambda: _said(state),
        ANSWERS: lambda: _answers(state),
        CALLS: lambda: _calls(state),
        SUMMARIES: lambda: _summaries(state),
        DELEGATES: lambda: _delegates(state),
        COST: lambda: cost(state),
        **{f"{ROOT}/{of}": lambda of=of: _versions(state, of) for of in KEPT},
    }
    if path in made:
        return "\n".join(made[path]()) or "(nothing yet)"
    if path.startswith(f"{DELEGATES}/"):
        call = path.removeprefix(f"{DELEGATES}/")
        return "\n".join(_delegate(state, call)) if call in _sent(state) else None
    of, _, number = path.removeprefix(f"{ROOT}/").partition("/")
    if of not in KEPT:
        return None
    found = next((each for each in state.history.versions(of) if str(each.number) == number), None)
    return _version(state, found) if found is not None else None


# What the person said.


def of_line(state: SessionState, line: int) -> str | None:
    """Return what the list of the person's words has of a line; None if it does not name it."""
    return next((_word(state, each, whole=True) or None for each in state.history.course if each.seq == line), None)


def _said(state: SessionState) -> Iterator[str]:
    """Yield each word of the person with its line and time, and the runs, delegates and versions that came of it."""
    heard: set[int] = set()
    before: list[str] = []  # versions by a slash word, which are kept just before the word itself
    sent = [state.history.actions[call].call for call in _sent(state)]
    for each in heapq.merge(state.history.course, sent, key=lambda entry: entry.seq):
        if isinstance(each, entries.Heard):
            heard.add(each.seq)
        told = "" if isinstance(each, entries.User) and each.heard in heard else _word(state, each)
        if told:
            meanwhile = "(while the work went on)  " if isinstance(each, entries.Heard) else ""
            yield f"line {each.seq}  {_time(each.at)}  {meanwhile}{_indented(told)}"
            yield from before
            before.clear()
        if made := _made(state, each):
            line = f"    → {made}"
            if isinstance(each, entries.Version) and each.by == "person":
                before.append(line)
            else:
                yield line
    yield from before


def _word(state: SessionState, entry: entries.Entry, *, whole: bool = False) -> str:
    """Return what the person said with an entry, with the question ``whole`` or cut; empty if it is no word of theirs."""
    match entry:
        case entries.User(thread=entries.SESSION_THREAD) | entries.Heard():
            return state.writer.text_of(entry)
        case entries.User():
            return summaries.command(state.writer.text_of(entry))
        case entries.Note(name="stopped"):
            return "/stop"
        case entries.Event():
            return _set_apart(state.masker.text(entry.what or ""))
        case entries.Version(of="mode" | "window", by="person"):
            # No event tells it. A flag stands without its value.
            return f"{entry.reason} {entry.value}" if entry.reason.startswith("--") else entry.reason
        case entries.Note(name="child-started") if "call" not in entry.data:
            return _set_apart(str(entry.data["what"] or ""))
        case entries.Note(name="asked") if whole:
            return str(entry.data["question"])
        case entries.Note(name="answered"):
            question = str(entry.data["question"])
            return f"answered: {entry.data['answer']}\nto: {question if whole else cut(one_line(question), ARGUMENTS)}"
        case _:
            return ""


def _set_apart(word: str) -> str:
    """Return a typed word with what we know of it on a line of its own."""
    return word.replace(f"{ASIDE}(", "\n(")


def _made(state: SessionState, entry: entries.Entry) -> str:
    match entry:
        case entries.Note(name="child-started"):
            return f"`@state/run/{entry.data['run']}`" if not _is_delegates(state, entry) else ""
        case entries.Call():
            return _delegate_in_short(state, entry.call)
        case entries.Note(name="asked"):
            question = str(entry.data["question"])
            known = state.history.asked(question, str(entry.data["place"]))
            if known is not None and known.answer is not None:
                return ""
            return f"{_time(entry.at)}  asked, and not answered: {cut(one_line(question), ARGUMENTS)} (`@state/line/{entry.seq}`)"
        case entries.Note(name="claimed"):
            header = state.history.header
            begun = f"began in mode {'agent' if header is not None and header.purpose == 'build' else 'chat'}"
            what = "was resumed" if int(entry.data["epoch"]) > 1 else begun
            held = (
                f"; strategy, where no flag says another: {entry.data['strategy']}" if "strategy" in entry.data else ""
            )
            return f"{_time(entry.at)}  the session {what}{held}"
        case entries.Version() if entry.of not in ("bench", "grant", "mode", "window"):
            path = f"{ROOT}/{entry.of}/{entry.number}"
            what = f"`{path}`" if entry.of in KEPT else " ".join(filter(None, (entry.of, entry.name)))
            if entry.of == "variable" and not entry.cleared:
                value = state.masker.names.json(state.writer.value_of(entry), entry.name)
                what += f" = {cut(json.dumps(value, ensure_ascii=False), GAVE)}"
            # What a person changed has the time of their word.
            at = f"{_time(entry.at)}  " if entry.by != "person" else ""
            return f"{at}{what} by the {entry.by}: {cut(one_line(entry.reason), ARGUMENTS)}"
        case entries.Arrived() if text := state.history.thread(entry.thread).broken.get(entry.seq):
            until = _time(_last_piece(state, entry).at)
            return f"the process ended while you answered: {cut(one_line(text), OUTPUT)} (`@state/line/{entry.seq}`, until {until})"
        case entries.ModelError(error={"code": items.STOPPED}):
            return "\n    → ".join(_ended_by(state, entry))
        case entries.ModelError():
            return one_line(f"no answer: {entry.error.get('code')}: {entry.error.get('message')}")
        case _:
            return ""


def _last_piece(state: SessionState, first: entries.Arrived) -> entries.Entry:
    """Return the last kept piece of an answer that a process left, by its first."""
    last: entries.Entry = first
    for each in state.history.course:
        if each.seq > first.seq and each.thread == first.thread:
            if not isinstance(each, entries.Arrived):
                break
            last = each
    return last


def _is_delegates(state: SessionState, began: entries.Note) -> bool:
    """True if a delegate's call began the run: its own list has that."""
    action = state.history.actions.get(str(began.data.get("call")))
    return action is not None and action.call.thread.startswith(entries.DELEGATE)


def _ended_by(state: SessionState, stopped: entries.ModelError) -> Iterator[str]:
    """Yield the last call before a ``/stop``, and the calls that were not begun."""
    said = state.history.thread(stopped.thread).said
    before = said[: said.index(stopped)]
    last = before[-1] if before else None
    if not isinstance(last, threads.Exchange):
        return
    calls = [(each, last.done[each.id]) for each in state.writer.calls_of(last.answer)]
    begun = [each for each in calls if not _is_left_out(each[1])]
    if begun:
        asked, done = begun[-1]
        yield f"stopped after the call {_with_arguments(asked)}  {_ended(done)}"
    if left := [_with_arguments(asked) for asked, done in calls if _is_left_out(done)]:
        yield f"left out: {', '.join(left)}"


def _is_left_out(done: threads.Done) -> bool:
    error = done.result.error if done.result is not None else None
    return done.call is None or (error or {}).get("code") == call_checks.OVER


def _time(at: str) -> str:
    return at[:19].replace("T", " ")


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _answers(state: SessionState) -> Iterator[str]:
    """Yield the beginning of each answer in words, with its line and time, also of those that broke off."""
    thread = state.history.thread(entries.SESSION_THREAD)
    found = [(each, text) for each in state.history.course if (text := thread.broken.get(each.seq))]
    for said in thread.said:
        if isinstance(said, threads.Exchange):
            found.append((said.answer, state.writer.text_of(said.answer)))
        elif isinstance(said, entries.ModelError):
            found.append((said, state.writer.text_of(said)))
    for entry, text in sorted(found, key=lambda each: each[0].seq):
        if text:
            broke = "" if isinstance(entry, entries.Assistant) else "(broke off)  "
            yield f"`@state/line/{entry.seq}`  {_time(entry.at)}  {broke}{cut(one_line(text), ARGUMENTS)}"


def _calls(state: SessionState) -> Iterator[str]:
    """Yield each call of the session's model with its time, arguments, outcome and the line of its output.

    Of calls that only read paths one after the other, it yields the paths, as what was read stands there.
    """
    every = [
        (said.answer, asked, said.done[asked.id])
        for said in state.history.thread(entries.SESSION_THREAD).said
        if isinstance(said, threads.Exchange)
        for asked in state.writer.calls_of(said.answer)
    ]
    for only_read, group in itertools.groupby(every, key=lambda each: each[1].name == summary_names.READ):
        if not only_read:
            for answer, asked, done in group:
                yield from _call(state, answer.at, asked, done)
        elif read := dict.fromkeys(_json(asked.arguments).get("path") for _, asked, done in group if done.output):
            yield f"{summary_names.READ} of {', '.join(f'`{each}`' for each in read)}"


def _call(state: SessionState, asked_at: str, asked: ToolCall, done: threads.Done) -> Iterator[str]:
    at = done.call.at if done.call is not None else asked_at
    took = duration(done.result.seconds) if done.result is not None else ""
    yield joined(_time(at), _with_arguments(asked), _ended(done), took)
    if done.call is not None:
        yield from _ran(state, done.call)
    if done.output is not None:
        gave = cut(one_line(page_text.unfenced(state.writer.text_of(done.output))), GAVE)
        yield f"    gave `@state/line/{done.output.seq}`: {gave}"


def _with_arguments(asked: ToolCall) -> str:
    given = {key: value for key, value in _json(asked.arguments).items() if value is not None}
    text = json.dumps(given, ensure_ascii=False)
    whole = f" (whole: `{replaced.PATH}{asked.id}`)" if len(text) > ARGUMENTS else ""
    return f"{asked.name} {cut(text, ARGUMENTS)}{whole}"


def _ended(done: threads.Done) -> str:
    return _outcome(done.result) if done.call is not None else "answered" if done.output is not None else "not begun"


# Summaries.


def _summaries(state: SessionState) -> Iterator[str]:
    """Yield each request for a summary: when, at whose word, of which lines, and where the summary stands, or why there is none."""
    for name in state.history.threads:
        said = state.history.thread(name).said
        question = said[0] if said and name.startswith(entries.SUMMARY) else None
        if isinstance(question, entries.User):
            typed = summaries.command(state.writer.text_of(question)) if question.mode is not None else ""
            whose = typed or (
                "its next part" if question.mode is not None else "by itself, as the settings of the window ask"
            )
            of = f" (of delegate {name.partition(entries.DELEGATE)[2]})" if entries.DELEGATE in name else ""
            came = said[-1]
            if isinstance(came, threads.Exchange):
                text = cut(one_line(state.writer.text_of(came.answer)), OUTPUT)
                found = f"`@state/line/{came.answer.seq}`: {text}" if text else "no summary: the model said nothing"
            else:
                found = f"no summary: {came.error.get('code')}" if isinstance(came, entries.ModelError) else "not yet"
            yield f"{_time(question.at)}  {whose}{of}  of the lines up to {question.upto}  {found}"


# Versions.


def _versions(state: SessionState, of: str) -> Iterator[str]:
    for each in state.history.versions(of):
        cleared = "  cleared" if each.cleared else ""
        yield f"`{ROOT}/{of}/{each.number}`  {_time(each.at)}  by the {each.by}{cleared}: {cut(one_line(each.reason), ARGUMENTS)}"


def _version(state: SessionState, version: entries.Version) -> str:
    head = f"version {version.number}, {_time(version.at)}, by the {version.by}: {one_line(version.reason)}"
    if version.cleared:
        return f"{head}\n(cleared)"
    value = state.writer.value_of(version)
    if version.of == "plan":
        return f"{head}\n{plans.as_text(plans.of(value))}"
    if version.of == "goal":
        given = {key: each for key, each in state.masker.names.json(value).items() if each}
        fields = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in given.values())
        return "\n".join((head, *(f"{name}: {text}" for name, text in zip(given, fields, strict=True))))
    return f"{head}\n{value}"


# Costs.


def cost(state: SessionState) -> Iterator[str]:
    """Yield what the session has cost in all, and by itself, its delegates, its summaries and its runs."""
    spent = state.history.ledger
    parts = {
        **{path or "session": each for path, each in spent.totals_by_step().items()},
        **{f"run {run}": each for run, each in spent.totals_by_run().items()},
    }
    if not parts:
        yield "nothing was asked yet"
        return
    every = {"all": ledger.together(list(parts.values())), **(parts if len(parts) > 1 else {})}
    ran = {
        state.history.actions[call].call.path: (delegates.how(note.data, tools=False), delegate_path(call))
        for call, note in state.history.delegates.items()
    }
    wide = max(map(len, every))
    for name, each in every.items():
        yield joined(f"{name:<{wide}}  {costs.render(each)}", *ran.get(name, ()))


# Delegates, and scouts, which are delegates of a build.


def _sent(state: SessionState) -> list[str]:
    """Return the ids of the calls that sent them, in order."""
    return [entries.call_of(each) for each in state.history.threads if each.startswith(entries.DELEGATE)]


def _delegates(state: SessionState) -> Iterator[str]:
    for call in _sent(state):
        yield _delegate_in_short(state, call)


def _delegate_in_short(state: SessionState, call: str) -> str:
    given = _given(state, call)
    goal = cut(one_line(str(given.get("goal") or given.get("task") or "")), GOAL)
    return f"`{delegate_path(call)}`  {_head(state, call)}: {goal}"


def _head(state: SessionState, call: str) -> str:
    known, action = state.history.delegates.get(call), state.history.actions[call]
    who = f"{action.call.path} {(known.data['agent'] or '') if known is not None else ''}".rstrip()
    return f"{who}  {_time(action.call.at)}  {_outcome(action.result)}"


def _outcome(result: entries.Result | None) -> str:
    if result is None:
        return "no outcome known"
    code = str((result.error or {}).get("code") or "")
    found = (
        f"it was interrupted, and what came of it was found at {_time(result.at)}"
        if result.status == "recovered"
        else ""
    )
    return ": ".join(filter(None, (result.status, found, code)))


def _given(state: SessionState, call: str) -> dict[str, Json]:
    return state.writer.value_of(state.history.actions[call].call) or {}


def _delegate(state: SessionState, call: str) -> Iterator[str]:
    """Yield the task of a delegate, what it said and called with the outcomes, its answer and its cost."""
    action = state.history.actions[call]
    yield _head(state, call)
    yield from (f"{name}: {_indented(str(value))}" for name, value in _given(state, call).items() if value)
    permissions = _permissions(state, action.call.path)
    for said in state.history.thread(entries.delegate_thread(call)).said:
        if isinstance(said, threads.Exchange):
            if text := state.writer.text_of(said.answer):
                yield f"{_time(said.answer.at)}  said: {_indented(text)}"
            for asked in state.writer.calls_of(said.answer):
                done = said.done[asked.id]
                permitted = permissions.pop(done.call.path, []) if done.call is not None else []
                yield from _called(state, asked.name, asked.arguments, done, permitted)
        elif isinstance(said, entries.ModelError):
            code = said.error.get("code")
            found = "was found interrupted" if code == "interrupted" else f"broke off: {code}"
            yield f"{_time(said.at)}  {found}"
    for waiting in permissions.values():  # their call is not begun before there is an answer
        yield from waiting
    if action.result is not None and action.result.error is not None:
        yield f"error: {_indented(str(action.result.error.get('message')))}"
    totals = ledger.totals([*state.history.ledger.within(action.call.path)])
    yield f"cost: {costs.sentence(totals)}"


def _permissions(state: SessionState, path: str) -> dict[str, list[str]]:
    """Return what the person was asked and answered, and what that allowed, by the paths of the delegate's calls."""
    found: dict[str, list[str]] = {}
    for each in state.history.course:
        match each:
            case entries.Note(name="asked"):
                place, told = str(each.data["place"]), f"asked the person: {each.data['question']}"
            case entries.Note(name="answered"):
                place, told = str(each.data["place"]), f"answered: {each.data['answer']}"
            case entries.Version(of="grant"):
                given = state.writer.value_of(each)
                place, told = str(given["place"]), f"permission for {given['what']}: {each.reason}"
            case _:
                continue
        if place.rpartition("/")[0] == path:
            found.setdefault(place, []).append(f"    {_time(each.at)}  {_indented(told)}")
    return found


def _called(
    state: SessionState, name: str, arguments: str, done: threads.Done, permitted: Iterable[str]
) -> Iterator[str]:
    call = done.call
    given = {key: value for key, value in _json(arguments).items() if value is not None}
    at = f"{_time(call.at)}  " if call is not None else ""
    outcome = _outcome(done.result) if call is not None else "answered" if done.output is not None else "not begun"
    yield f"{at}{name} {cut(json.dumps(given, ensure_ascii=False), ARGUMENTS)}  {outcome}"
    yield from permitted
    if call is not None:
        yield from _ran(state, call)
    if done.output is not None:
        gave = one_line(state.writer.text_of(done.output))
        short = cut(gave, OUTPUT)
        yield f"    gave: {short}" + (f" (`@state/line/{done.output.seq}`)" if short != gave else "")


def _ran(state: SessionState, call: entries.Call) -> Iterator[str]:
    """Yield the delegate and the runs of a call."""
    if call.call in _sent(state):
        yield f"    sent: `{delegate_path(call.call)}`"
    yield from (f"    did: `{ROOT}/run/{run}`" for run in state.history.runs_of.get(call.call, []))


def _json(arguments: str) -> dict[str, Json]:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return {"arguments": arguments}
    return given if isinstance(given, dict) else {"arguments": arguments}
