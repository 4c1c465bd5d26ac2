"""Export of an agent's actions as nodes: the file of its step, with a group that repeats them without a model."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodes import registry
from nodes.agent import Agent
from nodes.base import Leaf
from nodes.errors import UsageError
from nodes.iterate import Iterate
from nodes.targets import WAYS
from nodes.values import Json
from runtime.language import workflow
from runtime.language import writer as language_writer
from runtime.language.writer import Comment
from runtime.log import attempts as log_attempts
from runtime.log import entries, history, threads
from runtime.log.store import store as log_store
from runtime.log.writer import Texts, value_of
from runtime.observation import page_text
from runtime.recovery import workflow_source

NOTHING_CHANGED = page_text.fenced(page_text.UNCHANGED)

TEXTS = frozenset({"value", "name", "label", "text", "has_text", "title", "placeholder", "alt"})
"""Fields with text of the page, or with typed text. An input's value in them becomes a reference to the input."""

SHORTEST = 4  # length of an input that is searched for in them: shorter ones occur in other words by chance
HANDED_ON = ("description", "when", "on_error")  # fields of the agent that its group keeps


def as_nodes(run: str, past: history.History, store: log_store.StoreReader, path: str) -> str:
    """Return the file of the step at ``path``; a group with the actions of the agent's last attempt replaces the agent.

    Failed actions are left out; those that changed nothing become comments. Raises UsageError ``not-an-agent``.
    """
    assert past.header is not None, "a run that began has a header"
    found = workflow_source.stored(past.header, store).find(path)
    attempts = past.attempts.get(path)
    agents = [each for each, tries in past.attempts.items() if tries[0].call.node == log_attempts.AGENT]
    if found is None or not isinstance(found.node, Agent) or not attempts:
        raise UsageError(
            "not-an-agent",
            f"`{path}` is no step of an `agent` that run {run} has done",
            fix=f"its agents: {', '.join(agents)}" if agents else "it has done no step of an `agent`",
        )
    attempt = attempts[-1]
    thread = past.thread(entries.thread_of(attempt.call))
    actions = _Actions(found, past.header.inputs if not found.user else {}, store)
    for each in thread.said:
        if isinstance(each, threads.Exchange):
            for asked in each.answer.calls or ():
                actions.take(each.done[asked.id])
    data: Any = copy.deepcopy(found.file.document.data)
    *above, last = found.file.places[found.node.id]
    owner = data
    for step in above:
        owner = owner[step]
    owner[last] = actions.group(owner[last], attempt)
    notes = [f"{found.node.id}: the actions of an agent in run {run}, as nodes. They ask no model."]
    if attempt.result is None or attempt.result.status not in ("ok", "recovered"):
        notes.append("It did not reach its goal there.")
    if any(isinstance(each, Iterate) for each in found.around):
        notes.append(f"It works in a loop. These are the actions of one turn, {path}, with the values of that turn.")
        notes.append("Every turn would do the same: replace the values by references to the item before you run it.")
    if found.user:
        notes.append(f"This is the file that `{found.user}` uses, not that of the run, with the values of that call.")
    if found.file.callees:
        notes.append(f"It uses other files by relative paths: save it in the folder of {found.file.path}.")
    return "".join(f"# {each}\n" for each in notes) + language_writer.text(data)


class _Actions:
    def __init__(self, found: workflow.Found, inputs: Mapping[str, Json], store: log_store.StoreReader) -> None:
        """``inputs`` are those that the step's file may read."""
        texts = sorted(
            ((each, name) for name, each in inputs.items() if isinstance(each, str)), key=lambda pair: -len(pair[0])
        )
        self._addresses = {each.rstrip("/"): name for each, name in texts if re.match(r"https?://[^/]", each)}
        """Names of inputs by value, the longest value first; the same for ``_texts``."""
        self._texts = {
            each: name for each, name in texts if len(each) >= SHORTEST and "://" not in each and each == each.strip()
        }
        self._store = store
        self._ids = set(found.file.index)
        self._nodes: list[dict[str, Json]] = []
        self._shown: list[Json] = []
        self._read: dict[str, str] = {}  # id of the node that reads a text from the page, by that text

    def take(self, done: threads.Done) -> None:
        call, result = done.call, done.result
        if call is None or result is None or result.status != "ok":
            return
        if call.node == "agent":
            if call.action == "read":
                self._reading(value_of(result, self._store))
            return
        args: Any = value_of(call, self._store)
        fields: dict[str, Json] = args or {}
        values = {key: self._value(fields[key], key) for key in sorted(fields, key=lambda key: key != "action")}
        node: dict[str, Json] = {"id": self._id(str(call.action), fields.get("target")), "type": call.node, **values}
        if call.action in ("click", "press", "dialog") and call.effect != "effect":
            node["effect"] = call.effect
        reported = Texts(self._store).text_of(done.output) if done.output is not None else ""
        opened = page_text.opened_in(reported)
        if call.action in ("click", "press") and reported.endswith(NOTHING_CHANGED) and not opened:
            shown = language_writer.text({"nodes": [node]}).strip().partition("\n")[2]
            self._shown.append(Comment(f"left out, because nothing changed:\n{shown}"))
            return
        if opened and call.action in ("click", "press"):
            node["opens"] = opened[0]
        if (address := page_text.left_on(reported)) is not None and not re.search(r"[*{}\[\]\\]", address):
            # The action closed its tab, which may take a while: wait for the tab below it, which gets the next action.
            node["verify"] = [{"url": f"**{re.split('[?#]', address)[0]}"}]
        self._add(node)

    def _add(self, node: dict[str, Json]) -> None:
        self._ids.add(str(node["id"]))
        self._nodes.append(node)
        self._shown.append(node)

    def _value(self, value: Json, key: str = "") -> Json:
        """Return a value for the file: what looks like a reference is escaped, addresses and texts of inputs become references."""
        if isinstance(value, str):
            for address, name in self._addresses.items():
                if value == address or value.startswith((f"{address}/", f"{address}?", f"{address}#")):
                    return f"{{{{ inputs.{name} }}}}{language_writer.literal(value[len(address) :])}"
        if isinstance(value, dict):
            return {key: self._value(each, key) for key, each in value.items()}
        return self._from_inputs(value) if isinstance(value, str) and key in TEXTS else language_writer.literal(value)

    def _from_inputs(self, text: str) -> Json:
        """Replace texts of inputs by references, if they are whole words."""
        if not self._texts:
            return language_writer.literal(text)
        words = "|".join(map(re.escape, self._texts))
        parts = re.split(rf"(?<![\w{{.-])({words})(?![\w}}-]|\.\w)", text)
        return "".join(
            f"{{{{ inputs.{self._texts[part]} }}}}" if number % 2 else str(language_writer.literal(part))
            for number, part in enumerate(parts)
        )

    def _id(self, action: str, target: Any) -> str:
        words = re.findall(r"[a-z0-9]+", _named(target).lower())
        base = "_".join([action, *words])[:60].rstrip("_")
        names = itertools.chain([base], (f"{base}_{number}" for number in itertools.count(2)))
        return next(name for name in names if name not in self._ids)

    def _reading(self, read: Any) -> None:
        if read["target"] is None:
            return
        name = self._id("read", read["target"])
        query = "value" if read["field"] else "text"
        self._read.setdefault(str(read["text"]), name)
        self._add({"id": name, "type": "browser_query", "query": query, "target": self._value(read["target"])})

    def group(self, agent: dict[str, Json], attempt: log_attempts.Attempt) -> dict[str, Json]:
        if rules := [*(agent.get("success") or ()), *(agent.get("verify") or ())]:
            self._verified(rules)
        if agent.get("confirm") is not None:
            self._confirmed({name: agent[name] for name in ("confirm", "after_crash") if agent.get(name) is not None})
        value = value_of(attempt.result, self._store) if attempt.result is not None else None
        used = {self._read[each] for each in _texts(value) if each in self._read}
        nodes = [each for each in self._shown if not _is_read(each) or each["id"] in used]
        if all(isinstance(each, Comment) for each in nodes):
            nodes.append({"id": self._id("nothing", None), "type": "transform", "expr": True})
        group: dict[str, Json] = {"id": agent["id"], "type": "group"}
        group |= {field: agent[field] for field in HANDED_ON if field in agent}
        group["nodes"] = nodes
        if "output" in agent and attempt.result is not None:
            if any(each not in self._read for each in _texts(value)):
                nodes.append(Comment("Values below are the model's answer: nothing that it read contains them."))
            group["value"] = self._valued(value)
        return group

    def _verified(self, rules: Sequence[Json]) -> None:
        """Attach the rules to the last action; if other nodes follow it, to a ``wait`` at the end."""
        last = next((each for each in reversed(self._nodes) if each["type"] == "browser_action"), None)
        if last is not None and self._nodes[-1] is last:
            before: Any = last.get("verify", [])
            last["verify"] = [*before, *rules]
        else:
            self._add({"id": self._id("reached", None), "type": "browser_action", "action": "wait", "verify": rules})

    def _confirmed(self, fields: Mapping[str, Json]) -> None:
        """Attach the agent's ``confirm`` to its last side effect."""
        for node in reversed(self._nodes):
            parsed = registry.parse_node(copy.deepcopy(node))
            if isinstance(parsed, Leaf) and parsed.effect_class == "effect":
                node.update(fields)
                return

    def _valued(self, value: Json) -> Json:
        if isinstance(value, str) and value in self._read:
            return f"{{{{ {self._read[value]} }}}}"
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._read:
            return f"{{{{ {self._read[str(value)]} | number }}}}"
        if isinstance(value, dict):
            return {key: self._valued(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._valued(each) for each in value]
        return self._from_inputs(value) if isinstance(value, str) else language_writer.literal(value)


def _is_read(node: Json) -> bool:
    return isinstance(node, dict) and node["type"] == "browser_query"


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _named(target: Any) -> str:
    if target is None:
        return ""
    name = target.get("name") or next((target[way] for way in WAYS if way in target), "")
    within: Any = target.get("within") or {}
    return f"{name} {within.get('has_text') or ''}"
