"""Declarations of a workflow file: inputs, secrets, variables, nodes, items; and their conflicts in one namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from nodes.base import Leaf
from nodes.browser_action import BrowserAction, Click, Goto
from nodes.browser_action.fields import Fill, Press, Select, Type
from nodes.context import Context
from nodes.errors import did_you_mean
from nodes.group import Group
from nodes.handle import Handle
from nodes.iterate import WAYS, Iterate
from nodes.route import OTHERWISE, Route
from nodes.tabs import MAIN
from nodes.values import Json
from runtime.language import inputs
from runtime.language.diagnostics import Diagnostic
from runtime.language.expressions.references import holds_reference
from runtime.language.expressions.sandbox import RESERVED
from runtime.language.node_tree import Anatomy, NodeSource
from runtime.language.yaml_text import Document, Path

if TYPE_CHECKING:
    from runtime.language.workflow import Workflow

ALWAYS = ("inputs", "secrets", "vars", "run")  # names defined everywhere
TAKEN = frozenset({*ALWAYS, "loop", "error"}) | RESERVED  # names that no node and no item may have


NEEDED = {
    "as": "name the item, such as `as: order`",
    "max": "say how many turns it may take at most, such as `max: 20`: a condition may never come true",
}


SEARCHES = frozenset({Click, Fill, Press, Select, Type})  # actions that may lead to what is read
ONLY_READS = "it may contain nodes that read, `goto`, a click, key or field with `effect: read` (it only opens, turns or searches), and `group`, `iterate`, `route` and `handle` around them"
NOT_AROUND_READS = {
    "use": "give the group `nodes`: those of another file are not seen here",
    "catch": "leave it out: an error must leave it unknown whether the action happened; `attempts` runs `try` again",
    "finally": "leave it out: the tab is closed at the end",
}
"""Fields that a container in a ``confirm`` may not have, with the fix. An error that is caught would be read as an answer."""


class Declared:
    def __init__(self, anatomy: Anatomy, document: Document) -> None:
        self.problems: list[Diagnostic] = []
        self.units: dict[str, NodeSource] = {}
        # An unknown field of the file may be meant for what is lacking.
        none = {} if () not in anatomy.unknown else None
        self.inputs = names_in(anatomy.clean.get("inputs", none))  # None if the file's declaration cannot be read
        self.secrets = names_in(anatomy.clean.get("secrets", none))
        self.setters: dict[str, list[NodeSource]] = {}  # nodes that set each variable, in the order of the file
        self._loops: list[NodeSource] = []
        self._anatomy = anatomy
        self._document = document
        units = list(anatomy.every_unit())
        for unit in units:
            self._id(unit)
            for name in variables_of(unit):
                self.setters.setdefault(name, []).append(unit)
        for unit in units:
            if unit.model is Iterate:
                self._way_to_loop(unit)
                self._item(unit)
            elif unit.model is Route:
                self._branches(unit)
            self._in_confirm(unit.confirm)
            if unit.data.get("after_crash") == "confirm" and "confirm" not in unit.data:
                self._report("missing-field", "`after_crash: confirm` needs a `confirm`", (*unit.path, "after_crash"))

    def line(self, unit: NodeSource) -> int | str:
        mark = self._document.mark(self._anatomy.written((*unit.path, "id")))
        return mark.line if mark else "?"

    def _id(self, unit: NodeSource) -> None:
        name, path = unit.id, (*unit.path, "id")
        if name is None:
            return
        if name in TAKEN:
            message = f"`{name}` is a word of the language and names no node"
            self._report("reserved-name", message, path, "choose another id")
        elif name in self.units:
            first = f"the first is in line {self.line(self.units[name])}; ids are unique in the whole file"
            self._report("duplicate-id", f"there are two nodes with the id `{name}`", path, first)
        else:
            self.units[name] = unit

    def _way_to_loop(self, unit: NodeSource) -> None:
        found = [field for field in WAYS if field in unit.data]
        if not found:
            fix = "give it a list (`over`), or a condition (`while` or `until`)"
            self._report("missing-field", "`iterate` needs `over`, `while` or `until`", unit.path, fix)
            return
        way, *more = found
        for field in more:
            message, fix = f"`{way}` and `{field}` exclude each other", "a loop continues by one of them: leave one out"
            self._report("conflicting-fields", message, (*unit.path, field), fix)
        needed, senseless = ((), ()) if more else WAYS[way]
        for field in needed:
            if field not in unit.data:
                message = f"`iterate` with `{way}` needs `{field}`"
                self._report("missing-field", message, (*unit.path, way), NEEDED[field])
        for field in senseless:
            if field in unit.data:
                of_over = f"it belongs to `over`: `{way}` has no list"
                fix = "for `over` the bound is `limit`" if field == "max" else of_over
                self._report("conflicting-fields", f"`{field}` has no meaning with `{way}`", (*unit.path, field), fix)

    def _item(self, unit: NodeSource) -> None:
        name, path = unit.text("as"), (*unit.path, "as")
        if name is None:
            return
        if name in TAKEN:
            message = f"`{name}` is a word of the language and names no item"
            self._report("reserved-name", message, path, "choose another name")
        around = [each for each in self._loops if each.path == unit.path[: len(each.path)]]
        if name in (each.text("as") for each in around):
            message = f"the loop around this one has an item `{name}` too"
            self._report("name-collision", message, path, "choose another name")
        self._loops.append(unit)
        for each in (name, f"{name}_loop"):
            if each in self.units:
                where = f"the node is in line {self.line(self.units[each])}; choose another name"
                self._report("name-collision", f"`{each}` is also the id of a node", path, where)

    def _branches(self, unit: NodeSource) -> None:
        seen: set[str] = set()
        for path, branch in branches_of(unit):
            name = branch.get("name")
            if name == OTHERWISE:
                fix = "put its nodes under `otherwise:`, beside `branches:`"
                message = "`otherwise` is what runs when no branch is taken"
                self._report("reserved-name", message, (*path, "name"), fix)
            elif isinstance(name, str) and name in seen:
                self._report("duplicate-branch", f"there are two branches named `{name}`", (*path, "name"))
            elif isinstance(name, str):
                seen.add(name)

    def _in_confirm(self, units: list[NodeSource]) -> None:
        for unit in units:
            if unit.model in (Group, Handle, Iterate, Route):
                for field in NOT_AROUND_READS.keys() & unit.data.keys():
                    message = f"`{field}` does not belong in a `confirm`"
                    self._report("not-in-confirm", message, (*unit.path, field), NOT_AROUND_READS[field])
                for _path, block in unit.blocks:
                    self._in_confirm(block)
            elif not _only_reads(unit):
                path = (*unit.path, "action" if "action" in unit.data else "type")
                name = unit.data.get("action") or unit.type
                lacks = unit.model in SEARCHES and unit.data.get("effect") != "read"
                message = (
                    f"`{name}` in a `confirm` needs `effect: read`"
                    if lacks
                    else f"`{name}` does not belong in a `confirm`"
                )
                self._report("not-in-confirm", message, path, ONLY_READS)

    def _report(self, code: str, message: str, path: Path, fix: str | None = None) -> None:
        self.problems.append(self._document.problem(code, message, self._anatomy.written(path), fix))


def _only_reads(unit: NodeSource) -> bool:
    """Return True if a step may be in a ``confirm``: it changes nothing on the site, and nothing in the run."""
    model, effect = unit.model, unit.data.get("effect")
    if model is None or model is BrowserAction:
        return True  # a missing action is reported separately
    if model in SEARCHES:
        return effect == "read"
    reads = issubclass(model, Leaf) and model.effect_default == "read" and model is not Context
    return (reads or model is Goto) and effect != "effect"


def names_in(value: Json) -> list[str] | None:
    """Return the names that a map or list declares; None for another value."""
    if isinstance(value, dict | list):
        names = [each for each in value if isinstance(each, str)]
        return names if len(names) == len(value) else None
    return None


def variables_of(unit: NodeSource) -> list[str]:
    fields = ("set", "ask") if unit.model is Context else ()
    return [name for field in fields for name in names_in(unit.data.get(field)) or []]


def branches_of(unit: NodeSource) -> list[tuple[Path, Mapping[str, Json]]]:
    value = unit.data.get("branches")
    items: list[Json] = value if isinstance(value, list) else []
    return [((*unit.path, "branches", index), each) for index, each in enumerate(items) if isinstance(each, dict)]


def check_tabs(anatomy: Anatomy, document: Document) -> list[Diagnostic]:
    """Report tabs that no node opens, and tabs in a ``confirm``."""
    units = list(anatomy.every_unit())
    names = sorted({MAIN} | {name for unit in units if (name := _tab_of(unit)) is not None})
    problems: list[Diagnostic] = []
    for unit in units:
        used = unit.data.get("tab")
        if isinstance(used, str) and unit.data.get("action") != "open_tab" and used not in names:
            fix = did_you_mean(used, names, f"the tabs here are {', '.join(names)}")
            path = anatomy.written((*unit.path, "tab"))
            problems.append(document.problem("unknown-tab", f"no node opens a tab called `{used}`", path, fix))
    for unit in (each for outer in units for each in _with_inner(outer.confirm)):
        for field in {"tab", "opens"} & unit.data.keys():
            path = anatomy.written((*unit.path, field))
            message, fix = f"`{field}` does not belong in a `confirm`", "it works in a separate, fresh tab"
            problems.append(document.problem("not-in-confirm", message, path, fix))
    return problems


def check_tests(workflow: Workflow, document: Document) -> list[Diagnostic]:
    """Report tests with the same name, and with inputs that the workflow does not have or that do not fit."""
    problems: list[Diagnostic] = []
    names: set[str] = set()
    for index, each in enumerate(workflow.tests):
        path: Path = ("tests", index)
        if each.name in names:
            message = f"there are two tests named `{each.name}`"
            problems.append(document.problem("duplicate-test", message, (*path, "name")))
        names.add(each.name)
        for name, value in each.inputs.items():
            at = (*path, "inputs", name)
            declared = workflow.inputs.get(name)
            if declared is None:
                fix = did_you_mean(name, workflow.inputs, f"it has {', '.join(workflow.inputs) or 'none'}")
                message = f"the workflow has no input `{name}`"
                problems.append(document.problem("unknown-input", message, at, fix, key=True))
            elif (
                not (isinstance(value, str) and holds_reference(value))
                and (wrong := inputs.mismatch(declared, value)) is not None
            ):
                fix = "values are not converted here: write it in that type"
                problems.append(document.problem("wrong-type", f"`{name}` {wrong}", at, fix))
    return problems


def check_engine(anatomy: Anatomy, document: Document, engine: str, *, secrets: bool) -> list[Diagnostic]:
    """Report actions that only Chromium has, in a file for another engine; ``secrets``: the run has some."""
    problems: list[Diagnostic] = []
    for unit in anatomy.every_unit():
        action = unit.data.get("action")
        what = _CHROMIUM_ONLY.get(action) if isinstance(action, str) else None
        if action == "drag" and "files" in unit.data:
            what = "drop of files"
        elif action == "screenshot" and secrets:
            what = "picture in a run with secrets"
        if what is not None:
            path = anatomy.written((*unit.path, "action"))
            fix = "leave `engine` out of `browser`, or do without this step"
            problems.append(
                document.problem("engine-lacks", f"{engine} has no {what}: only Chromium has it", path, fix)
            )
    return problems


_CHROMIUM_ONLY = {"download": "download", "tap": "tap", "pdf": "PDF of a page"}


def _with_inner(units: list[NodeSource]) -> Iterator[NodeSource]:
    for unit in units:
        yield unit
        for _path, block in unit.blocks:
            yield from _with_inner(block)


def _tab_of(unit: NodeSource) -> str | None:
    name = unit.data.get("tab" if unit.data.get("action") == "open_tab" else "opens")
    return name if isinstance(name, str) else None
