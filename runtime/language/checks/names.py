"""Names: checks that each reference reads a known name, and that it has a value there.

One namespace contains inputs, secrets, variables, the run, loops and nodes. A node that may not have run (its ``when``, a
branch, a tolerated error) may have no value, so reading it needs a guard. The check traverses the file in execution order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from nodes import errors
from nodes.base import Container
from nodes.handle import Handle
from nodes.iterate import Iterate
from nodes.route import Route
from runtime.language.checks.declarations import ALWAYS, Declared, branches_of, variables_of
from runtime.language.checks.scopes import COLLECTED, Breaking, Here, Need, branch_need, own_needs
from runtime.language.diagnostics import Diagnostic
from runtime.language.expressions.names_read import NOTHING, Chain, Fact, Use
from runtime.language.expressions.references import Compiled, written
from runtime.language.node_tree import Anatomy, NodeSource, ReferenceSite
from runtime.language.yaml_text import Document

LOOP_KEYS = ("index", "first", "last", "key", "length")
ERROR_KEYS = ("code", "message", "step", "phase", "who", "evidence")
RUN_KEYS = ("id", "errors", "taken", "failures")

MOST_NEAR = 100
"""Most mistakes with a search for a similar name."""

Scope = dict[str, tuple[Need, ...]]
"""Readable nodes and items, each with the conditions under which it has a value."""


def check(anatomy: Anatomy, templates: Mapping[str, Compiled], document: Document) -> list[Diagnostic]:
    """Return every mistake with names."""
    declared = Declared(anatomy, document)
    walk = _Walk(anatomy, templates, document, declared)
    walk.file()
    return declared.problems + walk.problems


class _Walk:
    """Traverses a file in execution order."""

    def __init__(
        self, anatomy: Anatomy, templates: Mapping[str, Compiled], document: Document, declared: Declared
    ) -> None:
        self.problems: list[Diagnostic] = []
        self._anatomy = anatomy
        self._templates = templates
        self._document = document
        self._declared = declared
        self._set: dict[str, list[tuple[Need, ...]]] = {}
        """Variables set so far, with the conditions of each assignment."""
        self._gone: dict[str, str] = {}
        """Reasons why names have left the scope."""

    # Traversal

    def file(self) -> None:
        """Check the whole file."""
        scope: Scope = {}
        start = Here()
        for slot in self._anatomy.slots:
            if slot.field != "output":
                self._outside(slot)
        self._block(self._anatomy.units, scope, start)
        for slot in self._anatomy.slots:
            if slot.field == "output":
                self._slot(slot, scope, start)

    def _outside(self, slot: ReferenceSite) -> None:
        """Check fields that are computed before the run: they see inputs, and secrets if they take them."""
        for use in self._uses(slot):
            if use.root in ("inputs", "secrets"):
                self._use(use, slot, {}, Here())
            else:
                self._wrong(
                    slot, use, "unknown-reference", f"`{use.root}` is not known before the run", "it sees `inputs` only"
                )

    def _block(self, units: Sequence[NodeSource], scope: Scope, here: Here) -> None:
        for unit in units:
            if here.breaking is not None:
                here = here.within(here.breaking.another())
            self._unit(unit, scope, here)

    def _unit(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        here_self = here.within(unit=unit)
        when = unit.slot("when")
        if when is not None:
            self._slot(when, scope, here_self)
        condition = self._templates.get(when.text) if when is not None else None
        needs = own_needs(unit, condition)
        facts = condition.facts(truth=True) if condition is not None else NOTHING
        inside = here_self.within(*needs, facts=facts)
        early = [slot for slot in unit.slots if slot is not when and not self._is_late(unit, slot)]
        for slot in early:
            self._slot(slot, scope, inside)
        self._confirm(unit, scope, inside)
        if _in_turns(unit) or (unit.model is None and unit.text("as")):
            self._iterate(unit, scope, inside)
        elif unit.model is Route:
            self._route(unit, scope, inside)
        elif unit.model is Handle:
            self._handle(unit, scope, inside)
        else:
            for _path, block in unit.blocks:
                self._block(block, scope, inside)
            self._late(unit, scope, inside)
        for name in variables_of(unit):
            self._set.setdefault(name, []).append((*here.needs, *needs))
        if unit.id is not None:
            scope[unit.id] = (*here.needs, *needs)

    @staticmethod
    def _is_late(unit: NodeSource, slot: ReferenceSite) -> bool:
        if unit.model is Route and slot.field == "branches":
            return True
        in_turn = _in_turns(unit) and slot.field in ("key", "while", "until")
        return bool(unit.blocks) and (slot.field in COLLECTED or in_turn)

    def _late(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        for slot in unit.slots:
            if slot.field in COLLECTED and unit.blocks:
                self._slot(slot, scope, here)

    def _iterate(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        name, turns = unit.text("as"), here
        item: Scope = {name: (), f"{name}_loop": ()} if name else {}
        if "until" not in unit.data:
            what = "turn" if "while" in unit.data else "item"
            turns = turns.within(Need(f"the loop `{unit.id}` may have no {what}"))
        turns = turns.within(loop=unit)
        inner: Scope = {**scope, **item}
        given_up = unit.data.get("each_error") == "continue"
        breaking = Breaking("its turn may have failed, and has `each_error: continue`") if given_up else None
        inside = turns.broken_by(breaking or turns.breaking)
        for slot in unit.slots:
            if slot.field == "key":
                self._slot(slot, {**scope, **({name: ()} if name else {})}, turns)
        for _path, block in unit.blocks:
            self._block(block, inner, inside)
        for slot in unit.slots:
            if slot.field == "until":
                self._slot(slot, inner, turns)
            elif slot.field == "while":
                # It is evaluated before the first iteration, when nothing in the loop has run; later it sees no more names than then.
                self._slot(slot, {known: needs for known, needs in inner.items() if known not in item}, here)
        self._late(unit, inner, turns.after(breaking))
        for gone in inner.keys() - scope.keys():
            self._gone[gone] = f"it is seen only inside the loop `{unit.id}`"

    def _route(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        before: list[frozenset[Fact]] = []
        seen: Scope = {}
        whens = {slot.path[:-1]: slot for slot in unit.slots if slot.field == "branches"}
        branches = {self._anatomy.written(path): branch for path, branch in branches_of(unit)}
        for path, block in unit.blocks:
            # A branch is reached only if those above it were not taken.
            facts = NOTHING.union(*before)
            branch = branches.get(path[:-1])
            index = None if branch is None else path[-2]
            slot = whens.get(path[:-1])
            if slot is not None:
                self._slot(slot, scope, here.within(facts=facts))
            condition = self._templates.get(slot.text) if slot is not None else None
            need = branch_need(unit, index if isinstance(index, int) else None, branch or {}, condition)
            holds = facts | (condition.facts(truth=True) if condition else NOTHING)
            inner = dict(scope)
            self._block(block, inner, here.within(need, facts=holds))
            for name in inner.keys() - scope.keys():
                seen[name] = inner[name]
                self._gone[name] = f"it is in another branch of `{unit.id}`: only one of them runs"
            if condition is not None:
                before.append(condition.facts(truth=False))
        for name in seen:
            self._gone.pop(name, None)
        scope.update(seen)
        self._late(unit, scope, here)

    def _handle(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        blocks = {str(path[-1]): block for path, block in unit.blocks}
        tried = Breaking(f"the `try` of `{unit.id}` may have failed before it")
        caught = Breaking(f"the `catch` of `{unit.id}` may not have come so far")
        self._block(blocks.get("try", []), scope, here.broken_by(tried))
        if "catch" in blocks:
            reached = here.within(Need(f"the `catch` of `{unit.id}` runs only where `try` failed"))
            self._block(blocks["catch"], scope, dataclasses.replace(reached, breaking=caught, error=True))
        if "finally" in blocks:
            self._block(blocks["finally"], scope, here)
        if "catch" not in blocks:
            # Nodes after the handle are reached only if `try` completed.
            scope.update({name: _without(needs, tried) for name, needs in scope.items()})
            for name, times in self._set.items():
                self._set[name] = [_without(needs, tried) for needs in times]
        self._late(unit, scope, here)

    def _confirm(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        if not unit.confirm and not unit.done:
            return
        inner, here = dict(scope), here.broken_by(None)
        self._block(unit.confirm, inner, here)
        for slot in unit.done:
            self._slot(slot, inner, here)
        for name in inner.keys() - scope.keys():
            self._gone[name] = f"it is seen only inside the `confirm` of `{unit.id}`"

    # One reference

    def _uses(self, slot: ReferenceSite) -> Iterable[Use]:
        compiled = self._templates.get(slot.text)
        return compiled.names if compiled is not None and slot.ref is not None else ()

    def _slot(self, slot: ReferenceSite, scope: Scope, here: Here) -> None:
        for use in self._uses(slot):
            self._use(use, slot, scope, here)

    def _use(self, use: Use, slot: ReferenceSite, scope: Scope, here: Here) -> None:
        match use.root:
            case "inputs":
                self._one_of(use, slot, self._declared.inputs, "input", "inputs")
            case "secrets":
                self._secret(use, slot)
            case "vars":
                self._variable(use, slot, here)
            case "run":
                self._run(use, slot, scope, here)
            case "loop":
                self._loop(use, slot, inside=bool(here.loops))
            case "error" if here.error:
                self._key_of(use, slot, ERROR_KEYS)
            case root if root in scope:
                if root not in self._declared.units:
                    self._item(use, slot, here)
                else:
                    self._guard(use, slot, use.chain[:1], scope[root], scope, here)
            case _:
                self._unknown(use, slot, scope, here)

    def _one_of(self, use: Use, slot: ReferenceSite, names: Sequence[str] | None, noun: str, field: str) -> None:
        if names is None or len(use.chain) < 2 or use.chain[1] in names:
            return
        name = str(use.chain[1])
        known = f"declared: {', '.join(names)}" if names else f"the file declares none: add it to `{field}:`"
        self._wrong(
            slot, use, f"unknown-{noun}", f"there is no {noun} `{name}`", self._did_you_mean(name, names), known, part=1
        )

    def _secret(self, use: Use, slot: ReferenceSite) -> None:
        if slot.ref is None or not slot.ref.secret:
            help = "secrets may stand in what `fill` types, in credentials, headers and proxies"
            self._wrong(slot, use, "secret-not-allowed", f"`{slot.field}` takes no secrets", help)
        elif len(use.chain) < 2:
            self._wrong(slot, use, "secret-not-allowed", "secrets are read one by one", "write `secrets.NAME`")
        else:
            self._one_of(use, slot, self._declared.secrets, "secret", "secrets")

    def _variable(self, use: Use, slot: ReferenceSite, here: Here) -> None:
        if len(use.chain) < 2 or not isinstance(use.chain[1], str):
            return
        name = use.chain[1]
        setters = self._declared.setters.get(name)
        if setters is None:
            self._wrong(
                slot, use, "unknown-variable", f"nothing sets the variable `{name}`", self._did_you_mean(name, self._declared.setters),
                "a `context` node sets variables: `set: {name: value}`", part=1,
            )  # fmt: skip
        elif name in self._set:
            unmet = [here.unmet(needs, use.facts) for needs in self._set[name]]
            if all(unmet) and not use.sure_of(use.chain[:2], here.facts):
                self._unguarded(use, slot, f"vars.{name}", unmet[0][0], part=1)
        elif not any(_in_loop(unit, here) for unit in setters):
            line = self._declared.line(setters[0])
            self._wrong(
                slot,
                use,
                "later-reference",
                f"the variable `{name}` is set only later",
                f"first set in line {line}",
                part=1,
            )
        elif not use.sure_of(use.chain[:2], here.facts):
            self._unguarded(use, slot, f"vars.{name}", Need("in the first turn of the loop it is not set yet"), part=1)

    def _run(self, use: Use, slot: ReferenceSite, scope: Scope, here: Here) -> None:
        if len(use.chain) < 2:
            return
        key = str(use.chain[1])
        if key not in RUN_KEYS:
            self._wrong(
                slot,
                use,
                "unknown-reference",
                f"`run` has no `{key}`",
                self._did_you_mean(key, RUN_KEYS),
                f"it has {', '.join(RUN_KEYS)}",
                part=1,
            )
        elif key != "id" and len(use.chain) > 2:
            self._of_run(use, slot, scope, here, key, str(use.chain[2]))

    def _of_run(self, use: Use, slot: ReferenceSite, scope: Scope, here: Here, key: str, name: str) -> None:
        """Check ``run.errors.X``, ``run.taken.X``, ``run.failures.X``: X must be a node of that kind that may have run."""
        unit = self._declared.units.get(name)
        kind = {"taken": Route, "failures": Iterate}.get(key)
        if unit is None:
            self._wrong(
                slot,
                use,
                "unknown-reference",
                f"there is no node `{name}`",
                self._did_you_mean(name, self._declared.units),
                part=2,
            )
        elif kind is not None and not _keeps(unit, kind):
            self._wrong(
                slot,
                use,
                "unknown-reference",
                f"`run.{key}` knows `{kind.model_fields['type'].default}` nodes, and `{name}` is none",
                part=2,
            )
        elif key == "errors" and unit.data.get("on_error") != "continue":
            help = "an error is kept only of a node with `on_error: continue`"
            self._wrong(
                slot,
                use,
                "unknown-reference",
                f"`{name}` has no `on_error: continue`, so its error ends the run",
                help,
                part=2,
            )
        elif name not in scope:
            self._unknown(use, slot, scope, here, name, part=2)
        elif key == "errors":
            self._guard(use, slot, use.chain[:3], (Need(f"it is there only if `{name}` failed"),), scope, here)
        else:
            self._guard(use, slot, use.chain[:3], scope[name], scope, here)

    def _loop(self, use: Use, slot: ReferenceSite, *, inside: bool) -> None:
        if not inside:
            self._wrong(slot, use, "unknown-reference", "`loop` is known only inside an `iterate`")
        else:
            self._key_of(use, slot, LOOP_KEYS)

    def _key_of(self, use: Use, slot: ReferenceSite, keys: Sequence[str]) -> None:
        if len(use.chain) > 1 and use.chain[1] not in keys:
            key = str(use.chain[1])
            self._wrong(
                slot,
                use,
                "unknown-reference",
                f"`{use.root}` has no `{key}`",
                self._did_you_mean(key, keys),
                f"it has {', '.join(keys)}",
                part=1,
            )

    def _item(self, use: Use, slot: ReferenceSite, here: Here) -> None:
        if any(use.root == f"{each.text('as')}_loop" for each in here.loops):
            self._loop(use, slot, inside=True)

    def _guard(
        self, use: Use, slot: ReferenceSite, chain: Chain, needs: tuple[Need, ...], scope: Scope, here: Here
    ) -> None:
        """Report the use if something may have kept the node from running and no guard excludes that."""
        unmet = here.unmet(needs, use.facts)
        if not unmet or use.sure_of(chain, here.facts):
            return
        # A node that certainly ran met all its conditions, and so did its siblings.
        ran = {fact[1] for fact in here.facts | use.facts if fact[0] == "defined"}
        met = {need for name in ran for need in scope.get(str(name), ())}
        unmet = [need for need in unmet if need not in met]
        if unmet:
            self._unguarded(use, slot, written(chain), unmet[0], part=len(chain) - 1)

    def _unguarded(self, use: Use, slot: ReferenceSite, name: str, need: Need, part: int = 0) -> None:
        self._wrong(
            slot, use, "unguarded-reference", f"`{name}` may have no value here: {need.why}",
            f"guard it: `{name} | default(…)`, `… if {name} is defined else …`, or a `when` that says the same", part=part,
        )  # fmt: skip

    def _unknown(
        self, use: Use, slot: ReferenceSite, scope: Scope, here: Here, name: str | None = None, part: int = 0
    ) -> None:
        name = name or use.root
        unit = self._declared.units.get(name)
        if unit is not None and unit in here.open:
            own = unit is here.open[-1]
            message = (
                f"`{name}` has no value yet: it is this node itself"
                if own
                else f"`{name}` has no value before its block has ended"
            )
            self._wrong(slot, use, "later-reference", message, part=part)
        elif name in self._gone:
            loop = "loop" in self._gone[name]
            help = "the loop itself has a value: the list of what the last node of each turn gave" if loop else None
            self._wrong(
                slot, use, "unknown-reference", f"`{name}` is not known here: {self._gone[name]}", help, part=part
            )
        elif unit is not None:
            self._wrong(
                slot,
                use,
                "later-reference",
                f"`{name}` has no value yet: it runs later, in line {self._declared.line(unit)}",
                part=part,
            )
        elif name == "error":
            self._wrong(
                slot,
                use,
                "unknown-reference",
                "`error` is known only inside a `catch`",
                "of a tolerated error: `run.errors.ID`",
            )
        else:
            known = [*(each for each in ALWAYS if each != "secrets"), *(["loop"] if here.loops else []), *scope]
            hint = None
            if self._declared.inputs and name in self._declared.inputs:
                hint = f"did you mean `inputs.{name}`?"
            elif name in self._declared.setters:
                hint = f"did you mean `vars.{name}`?"
            listed = ", ".join(known if len(known) <= 12 else [*known[:4], "…", *known[-8:]])
            self._wrong(
                slot,
                use,
                "unknown-reference",
                f"`{name}` is not defined here",
                hint or self._did_you_mean(name, known),
                f"in scope: {listed}",
                part=part,
            )

    # Reports

    def _did_you_mean(self, name: str, names: Iterable[str] | None) -> str | None:
        """Suggest the most similar name. The search is slow, so it stops after ``MOST_NEAR`` mistakes."""
        close = errors.near(name, names or ()) if len(self.problems) < MOST_NEAR else None
        return f"did you mean `{close}`?" if close else None

    def _wrong(self, slot: ReferenceSite, use: Use, code: str, message: str, *help: str | None, part: int = 0) -> None:
        start = use.offsets[part]
        end = start + len(str(use.chain[part]))
        mark = self._document.within(slot.path, slot.text, start, end)
        self.problems.append(self._document.source.diagnostic(code, message, mark, help=help))


def _without(needs: tuple[Need, ...], breaking: Breaking) -> tuple[Need, ...]:
    """Return the conditions without those that the end of a block has met."""
    met = frozenset(breaking.needs)
    return tuple(need for need in needs if need not in met)


def _in_loop(unit: NodeSource, here: Here) -> bool:
    """Return True if a node is in a loop around this place."""
    return any(unit.path[: len(loop.path)] == loop.path for loop in here.loops)


def _keeps(unit: NodeSource, kind: type[Container]) -> bool:
    """Return True if the unit may be of this kind: the type itself, another one that runs its block in iterations, or unknown."""
    return unit.model in (kind, None) or (kind.in_turns and _in_turns(unit))


def _in_turns(unit: NodeSource) -> bool:
    return unit.model is not None and issubclass(unit.model, Container) and unit.model.in_turns
