"""Names: checks that each reference reads a known name, and that it has a value there.

A node that may not have run (its ``when``, a branch, a tolerated error) may have no value, so reading it needs a guard. The check
traverses the file in execution order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodes import errors
from nodes.base import Container
from nodes.handle import Handle
from nodes.iterate import Iterate
from nodes.route import Route
from runtime.language.checks.declarations import ALWAYS, Declared, branches_of, variables_of
from runtime.language.diagnostics import Diagnostic
from runtime.language.expressions.names_read import NOTHING, Chain, Fact, Use
from runtime.language.expressions.references import Compiled, written
from runtime.language.node_tree import Anatomy, NodeSource, ReferenceSite
from runtime.language.yaml_text import Document

LOOP_KEYS = ("index", "first", "last", "key", "length")
ERROR_KEYS = ("code", "message", "step", "phase", "who", "evidence")
RUN_KEYS = ("id", "errors", "taken", "failures")

COLLECTED = frozenset({"value", "collect"})
"""Fields of a container that are computed after its block and see its names."""

MOST_NEAR = 100  # most mistakes with a search for a similar name, which is slow


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Need:
    """Reason why a node may not run: its own condition, or one around it. Compared by identity."""

    why: str
    implied_by: tuple[frozenset[Fact], ...] = ()  # sets of facts; each set implies that the node ran


Scope = dict[str, tuple[Need, ...]]  # readable nodes and items, each with the conditions under which it has a value


@dataclasses.dataclass(slots=True, eq=False)
class Breaking:
    """A block that an error may end while the run continues elsewhere: any node in it may be the last one that ran."""

    why: str
    needs: list[Need] = dataclasses.field(default_factory=list[Need])
    """One condition for each node, in order: a later node has run only if the earlier one has."""


@dataclasses.dataclass(frozen=True, slots=True)
class Here:
    facts: frozenset[Fact] = NOTHING  # facts that hold because this place was reached
    met: frozenset[Need] = frozenset()  # conditions of this place: it is reached only if they are met
    needs: tuple[Need, ...] = ()  # all conditions around this place, outermost first
    loops: tuple[NodeSource, ...] = ()  # loops around it, outermost first
    open: tuple[NodeSource, ...] = ()
    """Nodes around it, outermost first, and the node itself: none of them has a value yet."""
    breaking: Breaking | None = None  # possible early end of the block around it while the run continues
    error: bool = False  # true if `error` is known: inside a `catch`

    def within(self, *needs: Need, facts: frozenset[Fact] = NOTHING, **changes: Any) -> Here:
        met, facts = self.met | set(needs), self.facts | facts
        return dataclasses.replace(self, facts=facts, met=met, needs=(*self.needs, *needs), **changes)


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a name, with the names that have a value there."""

    slot: ReferenceSite
    use: Use
    scope: Scope
    here: Here

    @property
    def key(self) -> str | None:
        return str(self.use.chain[1]) if len(self.use.chain) > 1 else None

    def unmet(self, needs: tuple[Need, ...]) -> list[Need]:
        """Return the conditions that nothing here implies."""
        facts = self.here.facts | self.use.facts
        implied = (need for need in needs if any(each <= facts for each in need.implied_by))
        met = self.here.met.union(implied)
        return [need for need in needs if need not in met]


def check(anatomy: Anatomy, templates: Mapping[str, Compiled], document: Document) -> list[Diagnostic]:
    declared = Declared(anatomy, document)
    walk = _Walk(anatomy, templates, document, declared)
    walk.file()
    return declared.problems + walk.problems


class _Walk:
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
        self._gone: dict[str, str] = {}  # reasons why names have left the scope

    def file(self) -> None:
        scope: Scope = {}
        for slot in self._anatomy.slots:
            if slot.field != "output":
                self._before_run(slot)
        self._block(self._anatomy.units, scope, Here())
        for slot in self._anatomy.slots:
            if slot.field == "output":
                self._slot(slot, scope, Here())

    def _before_run(self, slot: ReferenceSite) -> None:
        """Check a field that is computed before the run: it sees inputs, and secrets if it takes them."""
        for use in self._uses(slot):
            site = Reading(slot, use, {}, Here())
            if use.root in ("inputs", "secrets"):
                self._use(site)
            else:
                self._unknown_reference(site, f"`{use.root}` is not known before the run", "it sees `inputs` only")

    def _block(self, units: Sequence[NodeSource], scope: Scope, here: Here) -> None:
        for unit in units:
            if here.breaking is not None:
                here.breaking.needs.append(Need(here.breaking.why))
                here = here.within(here.breaking.needs[-1])
            self._unit(unit, scope, here)

    def _unit(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        here = here.within(open=(*here.open, unit))
        when = unit.slot("when")
        if when is not None:
            self._slot(when, scope, here)
        condition = self._templates.get(when.text) if when is not None else None
        needs = _own_needs(unit, condition)
        inside = here.within(*needs, facts=_facts(condition, truth=True))
        for slot in unit.slots:
            if slot is not when and not _is_late(unit, slot):
                self._slot(slot, scope, inside)
        self._confirm(unit, scope, inside)
        if _repeats(unit) or (unit.model is None and unit.text("as")):
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

    def _late(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        for slot in unit.slots if unit.blocks else ():
            if slot.field in COLLECTED:
                self._slot(slot, scope, here)

    def _iterate(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        name = unit.text("as")
        turns = here.within(loops=(*here.loops, unit))
        if "until" not in unit.data:
            what = "turn" if "while" in unit.data else "item"
            turns = turns.within(Need(f"the loop `{unit.id}` may have no {what}"))
        inner: Scope = {**scope, **({name: (), f"{name}_loop": ()} if name else {})}
        given_up = unit.data.get("each_error") == "continue"
        breaking = Breaking("its turn may have failed, and has `each_error: continue`") if given_up else None
        for slot in unit.slots:
            if slot.field == "key":
                self._slot(slot, {**scope, **({name: ()} if name else {})}, turns)
        for _path, block in unit.blocks:
            self._block(block, inner, turns.within(breaking=breaking or turns.breaking))
        for slot in unit.slots:
            if slot.field == "until":
                self._slot(slot, inner, turns)
            elif slot.field == "while":
                # It is evaluated before the first iteration too, when nothing in the loop has run, and sees no item.
                items = (name, f"{name}_loop")
                self._slot(slot, {known: needs for known, needs in inner.items() if known not in items}, here)
        ended = dataclasses.replace(turns, met=turns.met.union(breaking.needs)) if breaking else turns
        self._late(unit, inner, ended)
        for gone in inner.keys() - scope.keys():
            self._gone[gone] = f"it is seen only inside the loop `{unit.id}`"

    def _route(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        # A branch is reached only if those above it were not taken.
        facts = NOTHING
        seen: Scope = {}
        whens = {slot.path[:-1]: slot for slot in unit.slots if slot.field == "branches"}
        branches = {self._anatomy.written(path): branch for path, branch in branches_of(unit)}
        for path, block in unit.blocks:
            branch, slot = branches.get(path[:-1]), whens.get(path[:-1])
            if slot is not None:
                self._slot(slot, scope, here.within(facts=facts))
            condition = self._templates.get(slot.text) if slot is not None else None
            name = "otherwise" if branch is None else str(branch.get("name"))
            implied_by = (frozenset[Fact]({("taken", unit.id or "", name)}),)
            if branch is not None and path[-2] == 0:
                implied_by += _implying(condition)
            need = Need(f"the branch `{name}` of `{unit.id}` may not be taken", implied_by)
            inner = dict(scope)
            self._block(block, inner, here.within(need, facts=facts | _facts(condition, truth=True)))
            for name in inner.keys() - scope.keys():
                seen[name] = inner[name]
                self._gone[name] = f"it is in another branch of `{unit.id}`: only one of them runs"
            facts |= _facts(condition, truth=False)
        for name in seen:
            self._gone.pop(name, None)
        scope.update(seen)
        self._late(unit, scope, here)

    def _handle(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        blocks = {str(path[-1]): block for path, block in unit.blocks}
        tried = Breaking(f"the `try` of `{unit.id}` may have failed before it")
        self._block(blocks.get("try", []), scope, here.within(breaking=tried))
        if "catch" in blocks:
            caught = Breaking(f"the `catch` of `{unit.id}` may have failed before it")
            need = Need(f"the `catch` of `{unit.id}` runs only if `try` failed")
            self._block(blocks["catch"], scope, here.within(need, breaking=caught, error=True))
        self._block(blocks.get("finally", []), scope, here)
        if "catch" not in blocks:
            # Nodes after the handle are reached only if `try` completed.
            scope.update({name: _without(needs, tried) for name, needs in scope.items()})
            self._set = {name: [_without(needs, tried) for needs in times] for name, times in self._set.items()}
        self._late(unit, scope, here)

    def _confirm(self, unit: NodeSource, scope: Scope, here: Here) -> None:
        inner, here = dict(scope), here.within(breaking=None)
        self._block(unit.confirm, inner, here)
        for slot in unit.done:
            self._slot(slot, inner, here)
        for name in inner.keys() - scope.keys():
            self._gone[name] = f"it is seen only inside the `confirm` of `{unit.id}`"

    def _uses(self, slot: ReferenceSite) -> Iterable[Use]:
        compiled = self._templates.get(slot.text)
        return compiled.names if compiled is not None and slot.ref is not None else ()

    def _slot(self, slot: ReferenceSite, scope: Scope, here: Here) -> None:
        for use in self._uses(slot):
            self._use(Reading(slot, use, scope, here))

    def _use(self, site: Reading) -> None:
        match site.use.root:
            case "inputs":
                self._one_of(site, self._declared.inputs, "input", "inputs")
            case "secrets":
                self._secret(site)
            case "vars":
                self._variable(site)
            case "run":
                self._key_of(site, RUN_KEYS)
                if site.key in ("errors", "taken", "failures") and len(site.use.chain) > 2:
                    self._of_run(site, site.key, str(site.use.chain[2]))
            case "loop" if not site.here.loops:
                self._unknown_reference(site, "`loop` is known only inside an `iterate`")
            case "loop":
                self._key_of(site, LOOP_KEYS)
            case "error" if site.here.error:
                self._key_of(site, ERROR_KEYS)
            case root if root in self._declared.units and root in site.scope:
                self._guard(site, site.use.chain[:1], site.scope[root])
            case root if any(root == f"{each.text('as')}_loop" for each in site.here.loops):
                self._key_of(site, LOOP_KEYS)
            case root if root not in site.scope:
                self._not_in_scope(site)
            case _:
                pass  # the item of a loop

    def _one_of(self, site: Reading, names: Sequence[str] | None, noun: str, field: str) -> None:
        name = site.key
        if names is not None and name is not None and name not in names:
            known = f"declared: {', '.join(names)}" if names else f"the file declares none: add it to `{field}:`"
            near = self._did_you_mean(name, names)
            self._wrong(site, f"unknown-{noun}", f"there is no {noun} `{name}`", near, known, part=1)

    def _secret(self, site: Reading) -> None:
        if site.slot.ref is None or not site.slot.ref.secret:
            help = "secrets may be used in what `fill` types, in credentials, headers and proxies"
            self._wrong(site, "secret-not-allowed", f"`{site.slot.field}` takes no secrets", help)
        elif site.key is None:
            self._wrong(site, "secret-not-allowed", "secrets are read one by one", "write `secrets.NAME`")
        else:
            self._one_of(site, self._declared.secrets, "secret", "secrets")

    def _variable(self, site: Reading) -> None:
        chain = site.use.chain
        if len(chain) < 2 or not isinstance(name := chain[1], str):
            return
        setters = self._declared.setters.get(name)
        sure = site.use.sure_of(chain[:2], site.here.facts)
        if setters is None:
            near = self._did_you_mean(name, self._declared.setters)
            help = "a `context` node sets variables: `set: {name: value}`"
            self._wrong(site, "unknown-variable", f"nothing sets the variable `{name}`", near, help, part=1)
        elif name in self._set:
            unmet = [site.unmet(needs) for needs in self._set[name]]
            if all(unmet) and not sure:
                self._unguarded(site, chain[:2], unmet[0][0])
        elif not any(unit.path[: len(loop.path)] == loop.path for unit in setters for loop in site.here.loops):
            line = f"first set in line {self._declared.line(setters[0])}"
            self._wrong(site, "later-reference", f"the variable `{name}` is set only later", line, part=1)
        elif not sure:
            before = f"or set it before the loop: `{{id: first_{name}, type: context, set: {{{name}: …}}}}`"
            self._unguarded(site, chain[:2], Need("in the first turn of the loop it is not set yet"), before)

    def _of_run(self, site: Reading, key: str, name: str) -> None:
        """Check ``run.errors.X``, ``run.taken.X``, ``run.failures.X``: X must be a node of that kind that may have run."""
        unit = self._declared.units.get(name)
        kind: type[Container] | None = {"taken": Route, "failures": Iterate}.get(key)
        if unit is None:
            near = self._did_you_mean(name, self._declared.units)
            self._unknown_reference(site, f"there is no node `{name}`", near, part=2)
        elif kind is not None and not (unit.model in (kind, None) or (kind.in_turns and _repeats(unit))):
            word = kind.model_fields["type"].default
            self._unknown_reference(site, f"`run.{key}` knows `{word}` nodes, and `{name}` is none", part=2)
        elif key == "errors" and unit.data.get("on_error") != "continue":
            help = "an error is kept only of a node with `on_error: continue`"
            message = f"`{name}` has no `on_error: continue`, so its error ends the run"
            self._unknown_reference(site, message, help, part=2)
        elif name not in site.scope:
            self._not_in_scope(site, part=2)
        else:
            needs = (Need(f"it is there only if `{name}` failed"),) if key == "errors" else site.scope[name]
            self._guard(site, site.use.chain[:3], needs)

    def _key_of(self, site: Reading, keys: Sequence[str]) -> None:
        if (key := site.key) is not None and key not in keys:
            help = self._did_you_mean(key, keys), f"it has {', '.join(keys)}"
            self._unknown_reference(site, f"`{site.use.root}` has no `{key}`", *help, part=1)

    def _guard(self, site: Reading, chain: Chain, needs: tuple[Need, ...]) -> None:
        """Report the use if something may have kept the node from running and no guard excludes that."""
        unmet = site.unmet(needs)
        if not unmet or site.use.sure_of(chain, site.here.facts):
            return
        # A node that certainly ran met all its conditions: the same conditions are met for this one.
        ran = {str(fact[1]) for fact in site.here.facts | site.use.facts if fact[0] == "defined"}
        met = {need for name in ran for need in site.scope.get(name, ())}
        if unmet := [need for need in unmet if need not in met]:
            self._unguarded(site, chain, unmet[0], self._carried(site, self._declared.units.get(str(chain[-1]))))

    def _carried(self, site: Reading, unit: NodeSource | None) -> str | None:
        """Return how a value of a node is carried from one turn of a loop to the next, if the node is in a loop around this place."""
        loops = [each for each in site.here.loops if unit is not None and unit.path[: len(each.path)] == each.path]
        if unit is None or unit.id is None or not loops:
            return None
        name = unit.id
        if unit in loops:
            node = f'{{id: keep_{name}, type: context, set: {{{name}_so_far: "{{{{ vars.{name}_so_far | default([]) + [VALUE] }}}}"}}}}'
            return f"to collect over the turns: `{node}`"
        node = f'{{id: keep_{name}, type: context, set: {{last_{name}: "{{{{ {name} }}}}"}}}}'
        if unit.data.get("when") is not None or site.scope.get(name):
            node = node.removesuffix("}") + f', when: "{{{{ {name} is defined }}}}"}}'
        read = f"`vars.last_{name} | default(…)`"
        return f"each turn begins without values; to have that of an earlier turn, keep it at the end, `{node}`, and read {read}"

    def _unguarded(self, site: Reading, chain: Chain, need: Need, more: str | None = None) -> None:
        name = written(chain)
        fix = f"guard it: `{name} | default(…)`, `… if {name} is defined else …`, or a `when` that says the same"
        message = f"`{name}` may have no value here: {need.why}"
        self._wrong(site, "unguarded-reference", message, fix, more, part=len(chain) - 1)

    def _not_in_scope(self, site: Reading, part: int = 0) -> None:
        name = str(site.use.chain[part])
        unit = self._declared.units.get(name)
        if unit is not None and unit in site.here.open:
            why = "yet: it is this node itself" if unit is site.here.open[-1] else "before its block has ended"
            message = f"`{name}` has no value {why}"
            self._wrong(site, "later-reference", message, self._carried(site, unit), part=part)
        elif gone := self._gone.get(name):
            help = "the loop's own value is a list: the value of the last node of each turn" if "loop" in gone else None
            self._unknown_reference(site, f"`{name}` is not known here: {gone}", help, part=part)
        elif unit is not None:
            message = f"`{name}` has no value yet: it runs later, in line {self._declared.line(unit)}"
            self._wrong(site, "later-reference", message, self._carried(site, unit), part=part)
        elif name == "error":
            help = "of a tolerated error: `run.errors.ID`"
            self._unknown_reference(site, "`error` is known only inside a `catch`", help)
        else:
            loop = ["loop"] if site.here.loops else []
            known = [*(each for each in ALWAYS if each != "secrets"), *loop, *site.scope]
            near = self._did_you_mean(name, known)
            for owner, names in (("vars", self._declared.setters), ("inputs", self._declared.inputs or ())):
                near = f"did you mean `{owner}.{name}`?" if name in names else near
            listed = ", ".join(known if len(known) <= 12 else [*known[:4], "…", *known[-8:]])
            self._unknown_reference(site, f"`{name}` is not defined here", near, f"in scope: {listed}", part=part)

    def _did_you_mean(self, name: str, names: Iterable[str]) -> str | None:
        return errors.did_you_mean(name, names) if len(self.problems) < MOST_NEAR else None

    def _unknown_reference(self, site: Reading, message: str, *help: str | None, part: int = 0) -> None:
        self._wrong(site, "unknown-reference", message, *help, part=part)

    def _wrong(self, site: Reading, code: str, message: str, *help: str | None, part: int = 0) -> None:
        start = site.use.offsets[part]
        end = start + len(str(site.use.chain[part]))
        mark = self._document.within(site.slot.path, site.slot.text, start, end)
        self.problems.append(self._document.source.diagnostic(code, message, mark, help=help))


def _facts(condition: Compiled | None, *, truth: bool) -> frozenset[Fact]:
    return condition.facts(truth=truth) if condition is not None else NOTHING


def _implying(when: Compiled | None) -> tuple[frozenset[Fact], ...]:
    return (when.parts,) if when is not None and when.parts else ()


def _own_needs(unit: NodeSource, when: Compiled | None) -> list[Need]:
    """Return the reasons in a node's own fields why it may have no value: first its ``when``."""
    found: list[Need] = []
    if unit.data.get("when") not in (None, True):
        found.append(Need("its `when` may be false", _implying(when)))
    if unit.data.get("on_error") == "continue":
        no_error: Fact = ("undefined", "run", "errors", unit.id or "")
        found.append(Need("it may fail, and has `on_error: continue`", (frozenset({no_error}),)))
    return found


def _is_late(unit: NodeSource, slot: ReferenceSite) -> bool:
    """Return True for a field that is not evaluated at the node's beginning."""
    if unit.model is Route and slot.field == "branches":
        return True
    in_turn = _repeats(unit) and slot.field in ("key", "while", "until")
    return bool(unit.blocks) and (slot.field in COLLECTED or in_turn)


def _without(needs: tuple[Need, ...], breaking: Breaking) -> tuple[Need, ...]:
    """Return the conditions that are still open once the block of ``breaking`` has completed."""
    return tuple(need for need in needs if need not in breaking.needs)


def _repeats(unit: NodeSource) -> bool:
    return unit.model is not None and issubclass(unit.model, Container) and unit.model.in_turns
