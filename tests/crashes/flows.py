"""Random workflows: actions with and without `confirm` or `verify`, in every container, some of them faulty."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

from tests.crashes import world

Spec = dict[str, Any]
"""A node as written in a file."""


@dataclasses.dataclass
class Flow:
    """A workflow, and the behaviour of its site."""

    text: str = ""
    texts: dict[str, str] = dataclasses.field(default_factory=dict)
    faults: dict[str, world.Fault] = dataclasses.field(default_factory=dict)
    listings: dict[str, world.Listing] = dataclasses.field(default_factory=dict)
    repeatable: set[str] = dataclasses.field(default_factory=set)
    """Actions that may be done more than once: idempotent, or declared repeatable."""
    exact: bool = True
    """True if a killed run must end exactly like an uninterrupted one. Not so where a crash changes how often the site is asked."""
    ordered: bool = True
    """True if the lists come in the same order each time."""
    whys: list[str] = dataclasses.field(default_factory=list)
    """The reasons why it is not exact."""


@dataclasses.dataclass
class Scope:
    """The surroundings of nodes: readable references, and the suffix that separates targets of different items or uses."""

    suffix: str = ""
    shown: list[str] = dataclasses.field(default_factory=list)
    """Readable references whose values do not depend on the time."""
    free: bool = False
    """True if actions are declared repeatable."""
    caught: bool = False
    depth: int = 0

    def inner(self, **changes: Any) -> Scope:
        """A scope within this one: its references are not visible outside."""
        return dataclasses.replace(self, shown=list(self.shown), depth=self.depth + 1, **changes)


class Author:
    """Writes one flow."""

    def __init__(self, seed: int) -> None:
        """The same flow for the same seed."""
        self.chance = random.Random(seed)
        self.flow = Flow()
        self._count = 0
        self._parts: list[str] = []
        self._room = self.chance.choice([6, 12, 20])
        self._faulty = self.chance.choice([0.0, 0.1, 0.3])

    def write(self) -> Flow:
        """The flow."""
        scope = Scope()
        nodes = [self._set_first(), *([self._goto(scope)] if self._happens(0.8) else []), *self._block(scope, 6, 3)]
        self.flow.text = self._file(nodes, scope, {})
        if not self.flow.ordered and "vars.n %" in "".join([self.flow.text, *self.flow.texts.values()]):
            self._inexact("what is done depends on the order")
        return self.flow

    def _file(self, nodes: list[Spec], scope: Scope, inputs: Spec) -> str:
        output = {f"v{number}": each for number, each in enumerate(scope.shown)}
        output["n"] = "{{ vars.n }}"
        return json.dumps(
            {"version": 1, "name": "random", "inputs": inputs, "nodes": nodes, "output": output}, indent=1
        )

    def _happens(self, chance: float) -> bool:
        return self.chance.random() < chance

    def _id(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _inexact(self, why: str) -> None:
        self.flow.exact = False
        self.flow.whys.append(why)

    def _block(self, scope: Scope, most: int, depth: int) -> list[Spec]:
        kinds = {"_action": 6, "_goto": 1.5, "_fill": 1.5, "_compute": 1, "_text": 0.7, "_set": 1.2}
        if depth > 0:
            kinds |= {"_group": 1.2, "_iterate": 1.6, "_again": 0.7, "_route": 0.8, "_handle": 1.6, "_use": 0.7}
        nodes: list[Spec] = []
        for kind in self.chance.choices(list(kinds), list(kinds.values()), k=self.chance.randint(1, most)):
            if self._room <= 0 and nodes:
                break
            self._room -= 1
            write = getattr(self, kind)
            made: Spec | list[Spec] = write(scope) if kind in LEAVES else write(scope, depth - 1)
            nodes.extend(made if isinstance(made, list) else [made])
        return nodes

    def _envelope(self, node: Spec, scope: Scope, *, tolerate: float = 0.1) -> Spec:
        if self._happens(0.08):
            node["when"] = "{{ vars.n % 2 == 0 }}"
        if self._happens(tolerate):
            node["on_error"] = "continue"
            scope.shown.append(f"{{{{ run.errors.{node['id']}.code | default('-') }}}}")
        return node

    # Leaves

    def _set_first(self) -> Spec:
        return {"id": self._id("s"), "type": "context", "set": {"n": 0}}

    def _goto(self, _scope: Scope) -> Spec:
        name = self._id("g")
        return {"id": name, "type": "browser_action", "action": "goto", "url": f"http://shop.test/{name}"}

    def _fill(self, scope: Scope) -> Spec:
        name = self._id("f")
        value = f"{name}{scope.suffix} {{{{ vars.n }}}}"
        return {"id": name, "type": "browser_action", "action": "fill", "target": {"css": name}, "value": value}

    def _compute(self, scope: Scope) -> Spec:
        name = self._id("c")
        expr = self.chance.choice([*scope.shown[-4:], "{{ vars.n + 1 }}", f"{name}{scope.suffix}"])
        if scope.caught and self._happens(0.5):
            expr = "{{ error.code ~ ' ' ~ error.phase }}"
        node = self._envelope({"id": name, "type": "transform", "expr": expr}, scope, tolerate=0.0)
        scope.shown.append(f"{{{{ {name} | default('-') }}}}")
        return node

    def _text(self, scope: Scope) -> Spec:
        name = self._id("t")
        scope.shown.append(f"{{{{ {name} | default('-') }}}}")
        return {"id": name, "type": "browser_query", "query": "text", "target": {"css": f"{name}{scope.suffix}"}}

    def _set(self, scope: Scope) -> Spec:
        return self._envelope(
            {"id": self._id("s"), "type": "context", "set": {"n": "{{ vars.n + 1 }}"}}, scope, tolerate=0.0
        )

    def _action(self, scope: Scope, *, broken: bool = False) -> Spec:
        name = self._id("d")
        target = f"{name}{scope.suffix}"
        node: Spec = {"id": name, "type": "browser_action", "action": "click", "target": {"css": target}}
        kind = self.chance.choices(["confirm", "verify", "both", "nothing", "idempotent"], [5, 1, 1, 2, 1.5])[0]
        known = kind in ("confirm", "both")
        if kind in ("verify", "both"):
            node["verify"] = [{"text": "yes", "target": {"css": f"{target}_done"}}]
        if known:
            look = f"look_{name}"
            query = {"id": look, "type": "browser_query", "query": "text", "target": {"css": f"{target}_done"}}
            node["confirm"] = {"settle": 0, "nodes": [query], "done": f"{{{{ {look} == 'yes' }}}}"}
        if kind == "idempotent":
            node["effect"] = "idempotent"
        if kind == "idempotent" or scope.free:
            self.flow.repeatable.add(name)
        if known and self._happens(0.1):
            node["after_crash"], known = "ask", False
        if self._happens(0.1):
            node["retry"] = {"attempts": 2, "delay": 0}
        self._envelope(node, scope)
        if broken or self._happens(self._faulty):
            self._make_faulty(name, kind, known=known)
        scope.shown.append(f"{{{{ {name} is defined }}}}")
        return node

    def _make_faulty(self, name: str, kind: str, *, known: bool) -> None:
        possible: list[world.Fault] = ["missing", "refused", "refused", "late", "lost-before", "lost-after", "flaky"]
        if kind in ("verify", "both"):
            possible.append("silent")
        fault = self.flow.faults[name] = self.chance.choice(possible)
        # A crash in the middle of such an action gives it another chance, or lets a person report what an error had hidden.
        if (
            fault == "flaky"
            or kind == "idempotent"
            or (fault == "late" and not known)
            or (fault == "lost-before" and known)
        ):
            self._inexact(f"{name} {fault}")

    # Containers

    def _group(self, scope: Scope, depth: int) -> Spec:
        node: Spec = {"id": self._id("u"), "type": "group"}
        free = False
        if self._happens(0.25):
            node["on_redo"] = self.chance.choice(["ask", "confirm", "redo"])
            free = node["on_redo"] == "redo"
        before = scope.free
        scope.free = before or free
        node["nodes"] = self._block(scope, 5, depth)
        scope.free = before
        return self._envelope(node, scope)

    def _iterate(self, scope: Scope, depth: int) -> list[Spec]:
        name, item = self._id("i"), self._id("o")
        items = [f"{item}{letter}" for letter in "abcd"[: self.chance.randint(0 if self._happens(0.1) else 1, 4)]]
        before: list[Spec] = []
        node: Spec = {"id": name, "type": "iterate", "as": item}
        if self._happens(0.5):
            rows = self._id("r")
            before.append(
                {
                    "id": rows,
                    "type": "browser_query",
                    "query": "extract",
                    "min": 0,
                    "target": {"css": rows},
                    "fields": {"n": "b"},
                }
            )
            node["over"], read = f"{{{{ {rows} }}}}", f"{item}.n"
            listing = world.Listing(
                items,
                shuffled=self._happens(0.4),
                vanishing=f"d{self._count + 1}" if self._happens(0.4) else "",
                growing=self._happens(0.15),
            )
            self.flow.listings[rows] = listing
            self.flow.ordered = self.flow.ordered and not listing.shuffled
            if listing.growing:
                self._inexact("growing")
        else:
            node["over"], read, listing = items, item, world.Listing(items)
        keyed = self._happens(0.6)
        if keyed:
            node["key"] = f"{{{{ {read} }}}}"
        if self._happens(0.2):
            node["limit"] = self.chance.randint(1, 3)
            if listing.shuffled:
                self._inexact("limit of a shuffled list")
        self._turns(node, scope, depth, f"-{{{{ {read} }}}}")
        return [*before, self._envelope(node, scope)]

    def _again(self, scope: Scope, depth: int) -> Spec:
        name, item = self._id("w"), self._id("o")
        node: Spec = {"id": name, "type": "iterate", "as": item, "max": 5}
        times = self.chance.randint(1, 3)
        if self._happens(0.5):
            node["until"] = f"{{{{ {item} >= {times} }}}}"
            self._turns(node, scope, depth, f"-{{{{ {item} }}}}")
        else:
            turn = self._id("c")
            self._turns(node, scope, depth, f"-{{{{ {item} }}}}")
            node["nodes"].insert(0, {"id": turn, "type": "transform", "expr": f"{{{{ {item} }}}}"})
            node["while"] = f"{{{{ {turn} is undefined or {turn} < {times} }}}}"
        return self._envelope(node, scope)

    def _turns(self, node: Spec, scope: Scope, depth: int, suffix: str) -> None:
        inner = scope.inner(suffix=scope.suffix + suffix)
        known = len(inner.shown)
        node["nodes"] = self._block(inner, 4, depth)
        node["collect"] = [*inner.shown[known:], "{{ vars.n }}"] if self.flow.ordered else inner.shown[known:] or [1]
        if self._happens(0.4):
            node["each_error"] = "continue"
            scope.shown.append(f"{{{{ run.failures.{node['id']} | default('-') }}}}")
        scope.shown.append(f"{{{{ {node['id']} | default('-') }}}}")

    def _route(self, scope: Scope, depth: int) -> Spec:
        name = self._id("b")
        before = list(scope.shown)
        shown: list[str] = []

        def block() -> list[Spec]:
            # A branch sees nothing of another one.
            branch = dataclasses.replace(scope, shown=list(before))
            nodes = self._block(branch, 3, depth)
            shown.extend(branch.shown[len(before) :])
            return nodes

        branches = [
            {"name": f"{name}_{number}", "when": f"{{{{ vars.n % 3 == {number} }}}}", "nodes": block()}
            for number in range(self.chance.randint(1, 2))
        ]
        node: Spec = {"id": name, "type": "route", "branches": branches}
        if self._happens(0.6):
            node["otherwise"] = block()
        scope.shown.extend(shown)
        scope.shown.append(f"{{{{ run.taken.{name} | default('-') }}}}")
        return self._envelope(node, scope)

    def _handle(self, scope: Scope, depth: int) -> Spec:
        node: Spec = {"id": self._id("h"), "type": "handle"}
        if self._happens(0.2):
            node["on_redo"] = self.chance.choice(["ask", "confirm"])
        faulty = self._faulty
        self._faulty = max(self._faulty, self.chance.choice([0.0, 0.3, 0.6]))
        node["try"] = self._block(scope, 4, depth)
        if self._happens(0.4):
            # A next try must respect an action that was done, followed by one that fails.
            node["try"] += [self._action(scope), self._action(scope, broken=True)]
        self._faulty = faulty / 2
        if self._happens(0.7):
            was, scope.caught = scope.caught, True
            node["catch"] = self._block(scope, 3, depth)
            scope.caught = was
            scope.shown = [each for each in scope.shown if "error.code ~" not in each]
        if self._happens(0.5):
            node["finally"] = self._block(scope, 3, depth)
        self._faulty = faulty
        if self._happens(0.5) or not node.keys() & {"catch", "finally"}:
            node["attempts"] = self.chance.randint(2, 3)
        if self._happens(0.25):
            node["on"] = [self.chance.choice(["site-refused", "target-not-found", "verify-failed"])]
        return self._envelope(node, scope)

    def _use(self, scope: Scope, depth: int) -> Spec:
        name = self._id("p")
        if self._parts and self._happens(0.3):
            file = self.chance.choice(self._parts)
        else:
            file = f"part{name}.yaml"
            inner = Scope(suffix="-{{ inputs.tag }}", free=scope.free, depth=scope.depth + 1)
            nodes = [self._set_first(), *self._block(inner, 4, depth)]
            self.flow.texts[file] = self._file(nodes, inner, {"tag": {"type": "string"}})
            self._parts.append(file)
        scope.shown.append(f"{{{{ {name} | default('-') }}}}")
        return self._envelope(
            {"id": name, "type": "group", "use": file, "with": {"tag": f"{name}{scope.suffix}"}}, scope
        )


LEAVES = frozenset({"_action", "_goto", "_fill", "_compute", "_text", "_set"})
