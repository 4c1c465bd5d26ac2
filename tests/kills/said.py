"""What is said in the sessions that are killed: the words of a person, and a model that answers them by what stands in its request alone."""

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
"""What a death has changed, so that it is not compared: delegates that were sent again, the steps of a run that was resumed."""

WAYS: dict[Way, dict[str, str]] = {
    "streamed": {},
    "chained": {"RUNOPS_MODEL_STORE": "true", "RUNOPS_WINDOW_STRATEGY": "clean"},
    "background": {"RUNOPS_MODEL_BACKGROUND": "true"},
}
"""How the model is asked: each by its settings."""

KEEP, PLAN, NOTES, SEND = "Keep the currency.", "Plan it.", f"My notes: {'all is well, ' * 600}and so on.", "Send two."
BREAK, CONTINUE, WHAT, THANKS = "Tell me all of it.", "continue", "What came of it?", "Thank you."
AGENT, FORK = "/mode agent", "/fork"

FLAGS = ("--checkpoint-at", "1200", "--compress-to", "300", "--min-recent", "1")
"""With these the notes are summed up once, as soon as they are not the newest word."""


@dataclasses.dataclass(frozen=True)
class Plot:
    """What a session is about, and what a person says in it."""

    file: str
    words: tuple[str, ...]
    flags: tuple[str, ...] = ()
    shop: bool = False
    """Whether the run of the session orders something in the shop."""


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
"""Everything that a session may hold, and a run without a page."""


def order(url: str, ref: str) -> Plot:
    """A session with a run that puts one article into the cart of ``ref``."""
    run = f"/run flow.yaml -i base_url={url} -i ref={ref}"
    return Plot(ORDER, (KEEP, run, WHAT, FORK, THANKS), shop=True)


TASKS = {"Count the nodes.": "clean", "Name the nodes.": "inherit"}
"""What the delegates are asked, and with which history each begins."""

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
    "next_actions": [],
    "blockers": [],
    "notes": None,
}

ABOUT_THE_RUN = "w1"
"""The id of the call with which the model looks at the run."""

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
"""The tools that the model asks for behind a word, answer by answer, by the ids of the calls; then it says something."""


class Voice:
    """The model. One answer breaks off and is asked for again; the answer to ``BREAK`` never comes to its end."""

    def __init__(self, way: Way) -> None:
        self.requests: list[dict[str, Any]] = []
        """All that was asked, in order, each without what differs from session to session."""
        self._way: Way = way
        self._lock = threading.Lock()
        self._broke = False

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """What it says to a request."""
        with self._lock:
            self.requests.append(canonical(asked))
        if asked.instructions.startswith("Sum up"):
            return scripted_model.text("All is well. The currency is EUR.")
        told = asked.outputs
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
            if not all(each in told for each in calls):
                made = [scripted_model.call(name, given, call_id=each) for each, (name, given) in calls.items()]
                return _joined([scripted_model.thought("Let me see."), *made])
        return scripted_model.text(f"So much about {word[:20]!r}.")

    @staticmethod
    def _sends(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """Sends for what no delegate has found out yet: one that a crash has ended is sent again."""
        sent = [each for each in asked.items if each.get("name") == "delegate"]
        told = asked.outputs
        known = {task for each in sent for task in TASKS if f"Done: {task}" in told[each["call_id"]]}
        left = [task for task in TASKS if task not in known]
        if not left:
            return scripted_model.text("Both are known.")
        return _joined(
            scripted_model.call(
                "delegate",
                {"task": task, "context": TASKS[task], "reason": None},
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
    """What was said last, that it answers; what is told of events and of the state is none of it."""
    known = {*_STEPS, *TASKS, NOTES, SEND, BREAK, CONTINUE, THANKS}
    said = [scripted_model.text_of(dict(each)) for each in items if each.get("role") == "user"]
    return next(each for each in reversed(said) if each in known)


# What is compared.

_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_TIMES = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min)\b|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[:.\d]*Z?")


_WORD = re.compile(r"/resume ID: |/run [^:]*flow\.yaml: ")
_REF = re.compile(r"\bref-\w+")
_LINE = re.compile(r"to line \d+ of the log")
_UNFINISHED = re.compile(r"/run: (?:run ID (?!passed)|of run ID nothing is known)")


def alike(text: str) -> str:
    """The text without ids, times, lines and what is ordered; what a person types to continue with a run is what they typed to begin it."""
    return _LINE.sub(
        "to LINE of the log", _WORD.sub("/run: ", _TIMES.sub("TIME", _ID.sub("ID", _REF.sub("REF", text))))
    )


def canonical(asked: scripted_model.AskedFor) -> dict[str, Any]:
    """A request as it is compared: all that the model reads, and whether it continues from an answer that the server keeps."""
    body: dict[str, Any] = {name: value for name, value in asked.body.items() if name != "previous_response_id"}
    items = [{name: value for name, value in each.items() if name != "id"} for each in asked.items]
    told = {**body, "input": items, "follows": asked.body.get("previous_response_id") is not None}
    told = json.loads(alike(json.dumps(told, ensure_ascii=False)))
    told["input"] = [each for each in map(_but_unfinished, told["input"]) if each is not None]
    return told


def _but_unfinished(item: dict[str, Any]) -> dict[str, Any] | None:
    """The item without how far a run came that died with the session: how it ended is told behind that."""
    lines = scripted_model.text_of(item).splitlines()
    if item.get("role") != "user" or not any(map(_UNFINISHED.match, lines)):
        return item
    left = [each for each in lines if not _UNFINISHED.match(each)]
    return {**item, "content": "\n".join(left)} if len(left) > 1 else None


def without(request: Mapping[str, Any], asides: Collection[Aside]) -> dict[str, Any]:
    """The request as it is compared where a death has changed this: without what was asked of delegates, and what came of it; without a run's steps."""
    items: list[dict[str, Any]] = request["input"]
    left_out: set[str] = set()
    if "delegates" in asides:
        left_out |= {each["call_id"] for each in items if each.get("name") == "delegate"}
    if "run" in asides:
        left_out |= {each["call_id"] for each in items if str(each.get("call_id")).startswith("run_")} | {ABOUT_THE_RUN}
    follows = request["follows"] if not asides else None
    return {**request, "follows": follows, "input": [each for each in items if each.get("call_id") not in left_out]}


_OWN = frozenset(
    {"thread", "line", "at", "seconds", "usage", "dollars", "key", "response", "call", "attempt", "again", "upto"}
)
"""What each entry has for itself."""


def shown(session: dict[str, Any], asides: Collection[Aside]) -> dict[str, Any]:
    """What ``runops show --json`` says of a session, as it is compared where a death has changed this."""
    calls = {each["call"]: each for each in session["said"] if each["kind"] == "call"}
    ended = {each["call"] for each in session["said"] if each["kind"] == "result" and each["status"] == "interrupted"}
    told: dict[str, list[Any]] = {}
    for each in session["said"]:
        # Delegates are at work at the same time: what one writes stands between what the other does.
        sent = calls.get(each["thread"].removeprefix("delegate:") if _is_delegates(each) else each.get("call"), {})
        place = sent["path"] if sent.get("action") == "delegate" else each["thread"]
        asked = each.get("asked") or sent.get("asked") or ""
        # A thought of which the answer never came counts for nothing.
        if each["kind"] in ("note", "reasoning") or (each["kind"] == "model_error" and each.get("again") is not None):
            continue
        if each.get("call") in ended or (each["kind"] == "event" and _UNFINISHED.match(alike(each["text"]))):
            continue
        if "delegates" in asides and (place != each["thread"] or asked.startswith("d")):
            continue
        if "run" in asides and asked == ABOUT_THE_RUN:
            continue
        entry = {name: value for name, value in each.items() if name not in _OWN}
        if "delegates" in asides:
            if each.get("calls"):
                entry["calls"] = [call for call in each["calls"] if call["name"] != "delegate"]
                if not entry["calls"]:
                    continue
            # Behind a delegate that was sent again the calls have other numbers.
            entry |= {"path": re.sub(r"^\d+_", "", each["path"])} if "path" in each else {}
        if entry.get("status") == "recovered":
            # Its answer was in the log, and what came of the call was found there.
            entry["status"] = "ok"
        told.setdefault(place, []).append(entry)
    kept = {name: session[name] for name in ("mode", "about", "plan", "description", "variables", "open", "state")}
    kept |= {f"said in {thread}": entries for thread, entries in told.items()}
    return json.loads(_AT.sub('"at": ""', alike(json.dumps(kept, ensure_ascii=False))))


def _is_delegates(entry: dict[str, Any]) -> bool:
    return entry["thread"].startswith("delegate:")


_AT = re.compile(r'"at": "[^"]*"')
