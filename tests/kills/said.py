"""The messages of a person in the sessions that are killed, and a model that answers them from its request alone."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from nodes.values import Json
from runtime.testing import scripted_model
from tests import shop_flows

Way = Literal["streamed", "chained", "background"]

Aside = Literal["delegates", "run"]
"""A change caused by a death and excluded from the comparison: delegates called again, the tellings of a resumed run."""

WAYS: dict[Way, dict[str, str]] = {
    "streamed": {},
    "chained": {"RUNOPS_MODEL_STORE": "true", "RUNOPS_WINDOW_STRATEGY": "clean"},
    "background": {"RUNOPS_MODEL_BACKGROUND": "true"},
}
"""Settings for each way of asking the model."""

KEEP, PLAN, NOTES, SEND = "Keep the currency.", "Plan it.", f"My notes: {'all is well, ' * 600}and so on.", "Send two."
BREAK, CONTINUE, WHAT, THANKS = "Tell me all of it.", "continue", "What came of it?", "Thank you."
AGENT, FORK = "/mode agent", "/fork"

FLAGS = ("--checkpoint-at", "1200", "--compress-to", "300", "--min-recent", "1")
"""With these the notes are summarised once, as soon as they are not the newest message."""


@dataclasses.dataclass(frozen=True)
class Plot:
    """The subject of a session, and the messages of a person."""

    file: str
    words: tuple[str, ...]
    flags: tuple[str, ...] = ()
    shop: bool = False
    """True if the run of the session orders something in the shop."""


PRICES = """\
version: 1
name: Add up the prices
inputs:
  prices: {type: string, default: "12.50 8.00"}
nodes:
  - {id: parts, type: transform, expr: "{{ inputs.prices | regex_all('[^ ]+') }}"}
  - {id: total, type: transform, expr: "{{ parts | map('number') | sum }}"}
output: "{{ total }}"
"""

ORDER = (
    shop_flows.sign_in("Order an article", f"{shop_flows.BASE_URL}, ref: {{type: string}}")
    + """
  - {id: articles, type: browser_action, action: goto, url: "{{ inputs.base_url }}/articles?for={{ inputs.ref }}"}
  - id: add
    type: browser_action
    action: click
    target: {role: button, name: Add to cart, within: {css: "#articles tbody tr", nth: 0}}
    confirm:
      settle: 0.5
      nodes:
        - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/checkouts/{{ inputs.ref }}"}
        - {id: shown, type: browser_query, query: text, target: {test_id: pieces}}
      done: "{{ (shown | number) >= 1 }}"
  - {id: checkout, type: browser_action, action: goto, url: "{{ inputs.base_url }}/checkouts/{{ inputs.ref }}"}
  - {id: pieces, type: browser_query, query: text, target: {test_id: pieces}}
output: "{{ pieces }}"
"""
)

TALK = Plot(PRICES, (KEEP, AGENT, PLAN, NOTES, SEND, BREAK, CONTINUE, "/run flow.yaml", WHAT, FORK, THANKS), FLAGS)
"""Everything that a session may contain, and a run without a page."""


def order(url: str, ref: str) -> Plot:
    """A session with a run that puts one article into the cart of ``ref``."""
    run = f"/run flow.yaml -i base_url={url} -i ref={ref}"
    return Plot(ORDER, (KEEP, run, WHAT, FORK, THANKS), shop=True)


LONG = " Each price was read and added." * 8

TASKS = {"Count the nodes.": "clean", "Name the nodes.": "inherit"}
"""The tasks of the delegates, and the history with which each begins."""

PLANNED: dict[str, Json] = {
    "overall_goal": "Add up all prices",
    "current_phase": "look",
    "phases": [
        {
            "phase_name": "look",
            "status": "pending",
            "tasks": [{"task_id": "t", "description": "look", "status": "pending", "notes": None, "node_ids": []}],
        }
    ],
    "blockers": [],
    "notes": None,
}

ABOUT_THE_RUN = "w1"
"""The id of the call with which the model reads the run."""

_STEPS: dict[str, list[dict[str, tuple[str, Json]]]] = {
    KEEP: [
        {
            "k1": ("get_workflow_summary", {}),
            "k2": ("set_variable", {"name": "currency", "value": '"EUR"', "reason": "it was said"}),
        }
    ],
    PLAN: [
        {"p1": ("update_plan", {"plan": PLANNED, "reason": "it is new"})},
        {
            "p2": ("patch_plan_task", {"task_id": "t", "status": "completed", "notes": None, "reason": "it is done"}),
            "p3": ("update_workflow_description", {"description": "Add up.", "reason": "it is wanted"}),
        },
    ],
    WHAT: [{ABOUT_THE_RUN: ("get_workflow_nodes", {"which": "all", "type": None})}],
}
"""The tools that the model calls after a message, answer by answer, by the ids of the calls; then it answers with text."""


class Voice:
    """The model. One answer breaks off and is requested again; the answer to ``BREAK`` never completes."""

    def __init__(self, way: Way) -> None:
        self.requests: list[dict[str, Any]] = []
        """All requests, in order, each without the parts that differ from session to session."""
        self._way: Way = way
        self._lock = threading.Lock()
        self._broke = False

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The answer to a request."""
        with self._lock:
            self.requests.append(canonical(asked))
        if asked.instructions.startswith("Sum up"):
            return scripted_model.text("All is well. The currency is EUR.")
        outputs = asked.outputs
        word = _newest_word(asked.items)
        if word in TASKS:
            if not asked.items[-1].get("call_id"):
                return scripted_model.call(
                    "get_workflow_nodes", {"which": "all", "type": None}, call_id=f"of {word[:5]}"
                )
            return scripted_model.text(f"Done: {word}")
        if word == SEND:
            return self._sends(asked)
        if word == BREAK:
            return self._breaks()
        for calls in _STEPS.get(word, []):
            if not all(each in outputs for each in calls):
                made = [scripted_model.call(name, given, call_id=each) for each, (name, given) in calls.items()]
                return _joined([scripted_model.thought("Let me see."), *made])
        # One answer is so long that a part of it is kept before it ends.
        more = LONG if word == WHAT else ""
        return scripted_model.text(f"So much about {word[:20]!r}.{more}")

    @staticmethod
    def _sends(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """Delegate each task without a result: one that a crash has ended is delegated again."""
        sent = [each for each in asked.items if each.get("name") == "delegate"]
        outputs = asked.outputs
        known = {task for each in sent for task in TASKS if f"Done: {task}" in outputs[each["call_id"]]}
        left = [task for task in TASKS if task not in known]
        if not left:
            return scripted_model.text("Both are known.")
        return _joined(
            scripted_model.call(
                "delegate",
                {"goal": task, "deliverable": "One line.", "end": "It is known.", "context": TASKS[task]},
                call_id=f"d{len(sent) + number}",
            )
            for number, task in enumerate(left)
        )

    def _breaks(self) -> scripted_model.Scripted:
        if not self._broke:
            self._broke = True
            return (
                scripted_model.rate_limited(milliseconds=1)
                if self._way == "background"
                else scripted_model.cut("The fi")
            )
        return scripted_model.incomplete("The first half")


def _joined(parts: Any) -> scripted_model.Answer:
    first, *rest = parts
    for each in rest:
        first += each
    return first


def _newest_word(items: Sequence[Mapping[str, Any]]) -> str:
    """The message to answer, without reports of events and of the state."""
    known = {*_STEPS, *TASKS, NOTES, SEND, BREAK, CONTINUE, THANKS}
    said = [scripted_model.text_of(dict(each)) for each in items if each.get("role") == "user"]
    # The message to a delegate has more paragraphs than its goal.
    return next(word for each in reversed(said) for word in (each, each.partition("\n\n")[0]) if word in known)


# The comparison.

_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_TIMES = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min)\b|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[:.\d]*Z?")


_TOOK = re.compile(r" in \d+(?:\.\d+)? (?:ms|s|min)\b")
"""The time that a step took is told only if it took a second: a slow machine tells it, too."""

_WORD = re.compile(r"/resume ID: |/run flow\.yaml(?: -i \S+)*: ")
_REF = re.compile(r"\bref-\w+")
_LINE = re.compile(r"\bto line \d+ of the log|(?<=@state/line/)\d+")
_UNFINISHED = re.compile(r"/run: of run ID nothing is known")


def alike(text: str) -> str:
    """The text without ids, times, lines and order references; `/resume` of a run is replaced by `/run`."""
    text = _TIMES.sub("TIME", _TOOK.sub("", _ID.sub("ID", _REF.sub("REF", text))))
    return _LINE.sub("LINE", _WORD.sub("/run: ", text))


def named_lines(text: str) -> list[int]:
    """The lines of the log whose paths the text names."""
    return [int(each) for each in re.findall(r"@state/line/(\d+)", text)]


def canonical(asked: scripted_model.AskedFor) -> dict[str, Any]:
    """The request in a comparable form: all that the model reads, and whether it chains to an answer that the server keeps."""
    body: dict[str, Any] = {name: value for name, value in asked.body.items() if name != "previous_response_id"}
    # The server numbers its reasoning, and checks that it comes back as it was given.
    own = {"id", "encrypted_content"}
    items = [{name: value for name, value in each.items() if name not in own} for each in asked.items]
    compared = {**body, "input": items, "follows": asked.body.get("previous_response_id") is not None}
    compared = json.loads(alike(json.dumps(compared, ensure_ascii=False)))
    compared["input"] = [each for each in map(_but_unfinished, compared["input"]) if each is not None]
    return compared


def _but_unfinished(item: dict[str, Any]) -> dict[str, Any] | None:
    """The item without a run that died before it was recorded: the run that takes its place is told later."""
    lines = scripted_model.text_of(item).splitlines()
    if item.get("role") != "user" or not any(map(_UNFINISHED.match, lines)):
        return item
    left = [each for each in lines if not _UNFINISHED.match(each)]
    return {**item, "content": "\n".join(left)} if len(left) > 1 else None


def without(request: Mapping[str, Any], asides: Collection[Aside]) -> dict[str, Any]:
    """The request without the delegates and their results, or without a run's steps, where a death has changed those."""
    items: list[dict[str, Any]] = request["input"]
    left_out: set[str] = set()
    if "delegates" in asides:
        left_out |= {each["call_id"] for each in items if each.get("name") == "delegate"}
    if "run" in asides:
        left_out |= {each["call_id"] for each in items if str(each.get("call_id")).startswith("run_")} | {ABOUT_THE_RUN}
    follows = request["follows"] if not asides else None
    kept = [each for each in items if each.get("call_id") not in left_out]
    if asides:
        kept = [each for each in kept if each.get("type") != "reasoning"]
    return {**request, "follows": follows, "input": kept}


_OWN = frozenset(
    {
        "thread",
        "line",
        "at",
        "seconds",
        "usage",
        "dollars",
        "key",
        "response",
        "stored",
        "call",
        "attempt",
        "again",
        "upto",
        "heard",
    }
)
"""Fields that differ in each entry."""


def shown(session: dict[str, Any], asides: Collection[Aside]) -> dict[str, Any]:
    """The result of ``runops show --json`` in a comparable form, without the parts that a death has changed."""
    calls = {each["call"]: each for each in session["said"] if each["kind"] == "call"}
    ended = {each["call"] for each in session["said"] if each["kind"] == "result" and each["status"] == "interrupted"}
    threads: dict[str, list[Any]] = {}
    for each in session["said"]:
        # Delegates run concurrently: entries of one are between those of another.
        sent = calls.get(each["thread"].removeprefix("delegate:") if _is_delegates(each) else each.get("call"), {})
        place = sent["path"] if sent.get("action") == "delegate" else each["thread"]
        asked = each.get("asked") or sent.get("asked") or ""
        # Reasoning without an answer does not count.
        if each["kind"] in ("note", "reasoning", "arrived") or (
            each["kind"] == "model_error" and each.get("again") is not None
        ):
            continue
        if each.get("call") in ended or (each["kind"] == "event" and _UNFINISHED.match(alike(each["text"]))):
            continue
        if "delegates" in asides and (place != each["thread"] or asked.startswith("d")):
            continue
        if "run" in asides and (asked == ABOUT_THE_RUN or asked.startswith("run_")):
            continue
        entry = {name: value for name, value in each.items() if name not in _OWN}
        if "delegates" in asides:
            if each.get("calls"):
                entry["calls"] = [call for call in each["calls"] if call["name"] != "delegate"]
                if not entry["calls"]:
                    continue
            # After a repeated delegate the calls have other numbers.
            entry |= {"path": re.sub(r"^\d+_", "", each["path"])} if "path" in each else {}
        if entry.get("status") == "recovered":
            # Its answer was in the log, and so was the result of the call.
            entry["status"] = "ok"
        threads.setdefault(place, []).append(entry)
    kept = {name: session[name] for name in ("mode", "about", "plan", "description", "variables", "open", "state")}
    kept |= {f"said in {thread}": entries for thread, entries in threads.items()}
    return json.loads(_AT.sub('"at": ""', alike(json.dumps(kept, ensure_ascii=False))))


def _is_delegates(entry: dict[str, Any]) -> bool:
    return entry["thread"].startswith("delegate:")


_AT = re.compile(r'"at": "[^"]*"')
