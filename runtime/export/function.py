"""One function of an exported file: the steps of a workflow, or of a file that it uses."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import re
from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

from nodes.base import Leaf, Node
from nodes.browser_action import fields, files, navigation, sessions
from nodes.browser_query import reads, rows
from nodes.context import Context
from nodes.group import Group
from nodes.handle import Handle
from nodes.iterate import Iterate
from nodes.route import OTHERWISE, Route
from nodes.template import Template
from nodes.transform import Transform
from nodes.values import Json
from runtime.export import expressions, layout, leaves
from runtime.export.code import NotCarried, negated
from runtime.export.variables import Key, Known, Loop, Variables, safe, snake
from runtime.language.expressions import references
from runtime.language.workflow import Loaded, below, plain

_CHECKING = (
    *(reads.Text, reads.Value, reads.Attribute, reads.State, rows.Table, rows.Extract),
    *(fields.Select, files.Download, navigation.Dialog, Transform),
)
"""Steps that are done, or checked, by the code of their value."""


class File(Protocol):
    """What the functions of a file share."""

    def need(self, name: str) -> str: ...
    def lost(self, place: str, what: str) -> None: ...
    def stub(self, node: Leaf, name: str, parameters: list[str], why: str) -> str:
        """Write a function for a step that is left out; return its name."""
        ...

    def function(self, loaded: Loaded) -> tuple[str, list[str]]:
        """Return the name of the function that does the steps of a used file, and the fixtures that it takes besides the page."""
        ...


class Function(Variables):
    """Writes the statements of a function. Written again with what was found, it has no variable that nothing reads."""

    def __init__(self, file: File, loaded: Loaded, known: Known, where: str = "") -> None:
        super().__init__(loaded, known)
        self.depth = 1
        self.tab = "page"
        self.lines: list[str] = []
        self.tabs: set[str] = set()
        self.answered: set[str] = set()
        """The ids of the steps whose dialog is answered by then."""
        self._file, self._where = file, where

    def need(self, helper: str) -> str:
        return self._file.need(helper)

    def local(self, name: str) -> str:
        return self.name(("local", name))

    def page_of(self, tab: str | None) -> str:
        if tab is None:
            return self.tab
        if tab != "main" and tab not in self.tabs:
            raise NotCarried(f"the tab `{tab}` of another file")
        return "page" if tab == "main" else self.name(("tab", tab))

    def open_tab(self, tab: str) -> str:
        self.tabs.add(tab)
        return "page" if tab == "main" else self.name(("tab", tab))

    def bound(self, code: str) -> str:
        """Return parameters that bind the variables of a loop which a function in it reads."""
        if not self.loops:
            return ""
        read = {each.id for each in ast.walk(ast.parse(code, mode="eval")) if isinstance(each, ast.Name)}
        loops = {name for loop in self.loops for name in (loop.item, loop.index)}
        return ", ".join(f"{name}={name}" for name in sorted(read & ({*self._names.values()} | loops)))

    def set_variable(self, name: str, code: str) -> None:
        self._assign(("vars", name), code)

    # Statements.

    def line(self, code: str) -> None:
        self.lines += layout.statement(self.depth, code)

    def comment(self, text: str) -> None:
        self.lines += layout.comment(self.depth, text)

    def blank(self) -> None:
        if self.lines and self.lines[-1] and not self.lines[-1].endswith(":"):
            self.lines.append("")

    def lost(self, node: Node, what: str) -> None:
        """Say what of a node is left out, at its place and in the list."""
        self.comment(f"Left out: {what}")
        self._file.lost(f"{self._where}{node.id}", what)

    def _assign(self, key: Key, code: str) -> None:
        if key[0] == "append":
            self.line(f"{self.name(('id', key[1]))}.append({code})")
            return
        self.defined.setdefault(key, tuple(self.inside))
        if self._wants(key) and code != (name := self.name(key)):
            self.line(f"{name} = {code}")

    def _wants(self, key: Key) -> bool:
        # The value of a turn is wanted if that of the loop is.
        return (("id", key[1]) if key[0] in ("append", "value") else key) in self._known.read

    # Nodes.

    def block(self, nodes: Sequence[Node], result: Key | None = None) -> None:
        """Write the nodes of a block; ``result`` is the variable that gets the value of the last one that runs."""
        begin = len(self.lines)
        sure = next((number for number in reversed(range(len(nodes))) if not _may_not_run(nodes[number])), -1)
        target = result
        if result is not None and result[0] == "append" and sure < len(nodes) - 1:
            # Only one of several gives the value.
            target = ("value", result[1])
        if target is not None and sure < 0 and self._wants(target):
            self.line(f"{self.name(target)} = None")
        for number, node in enumerate(nodes):
            following = nodes[number + 1] if number + 1 < len(nodes) else None
            if isinstance(following, navigation.Dialog):
                # The step itself says what of it is not carried over.
                with contextlib.suppress(NotCarried):
                    leaves.expect_dialog(self, following)
            if len(self.lines) > begin and (node.description or node.container or node.when is not None):
                self.blank()
            self.node(node, target if number >= sure else None)
        if result is not None and target is not None and target != result and self._wants(target):
            self._assign(result, self.name(target))

    @contextlib.contextmanager
    def _indented(self) -> Generator[None]:
        """Write the body of a compound statement; it needs one statement at least."""
        begin = len(self.lines)
        self.depth += 1
        yield
        if not any(line.strip() and not line.strip().startswith("#") for line in self.lines[begin:]):
            self.line("pass")
        self.depth -= 1

    def _head(self, code: str) -> contextlib.AbstractContextManager[None]:
        self.line(code)
        return self._indented()

    def node(self, node: Node, result: Key | None = None) -> None:
        """Write a node; ``result`` is the variable of the container that has its value."""
        key = ("id", node.id)
        conditional = _may_not_run(node)
        if node.description:
            self.comment(node.description)
        if conditional or isinstance(node, Route | Handle | Iterate):
            self.begin_none(node.id)
        with contextlib.ExitStack() as around:
            if node.when is not None:
                around.enter_context(self._head(f"if {self._condition(node)}:"))
            if conditional:
                self.inside.append(node.id)
                around.callback(self.inside.pop)
            if node.on_error == "continue":
                around.callback(self._except_continue, node)
                around.enter_context(self._head("try:"))
            self._kind(node, key, result if result is not None and self._wants(result) else None)

    def _condition(self, node: Node) -> str:
        try:
            return expressions.of(node.when, self)
        except NotCarried as error:
            self.lost(node, f"its condition `when`: {error}")
            self.need("pytest")
            self.line(f"pytest.skip({layout.quoted(f'{node.id}: a condition was left out')})")
            return "True"

    def begin_none(self, container: str) -> None:
        """Give the variables that are read outside of a container, and may get no value in it, one before it."""
        for key in sorted(self._known.outside.get(container, ()), key=self.name):
            self.line(f"{self.name(key)} = None")

    def _error_name(self) -> str:
        """Return the variable of an error; within the block that handles one, that of another."""
        return f"error_{len(self.errors) + 1}" if self.errors else "error"

    def _except_continue(self, node: Node) -> None:
        key, error = ("error", node.id), self._error_name()
        self.defined.setdefault(key, tuple(self.inside))
        with self._head(f"except {self.need('FAILURES')}{f' as {error}' if self._wants(key) else ''}:"):
            if self._wants(key):
                self.line(f'{self.name(key)} = {{"code": type({error}).__name__, "message": str({error})}}')

    def _kind(self, node: Node, key: Key, result: Key | None) -> None:
        if isinstance(node, Leaf):
            self._leaf(node, key, result)
            return
        if result is not None:
            self.found.read.add(key)
        before = len(self.lines), self.depth, list(self.inside), list(self.loops), self._found_so_far()
        try:
            self._container(node, key)
        except NotCarried as error:
            begin, self.depth, self.inside, self.loops, self.found = before
            del self.lines[begin:]
            self._without_block(node, key, str(error))
        if result is not None and self._wants(key):
            self._assign(result, self.name(key))

    def _found_so_far(self) -> Known:
        """Return what is read up to here: what is written and taken back again reads nothing."""
        return Known(set(self.found.read), {name: set(keys) for name, keys in self.found.outside.items()})

    def _container(self, node: Node, key: Key) -> None:
        match node:
            case Group():
                self._group(node, key)
            case Iterate():
                self._iterate(node, key)
            case Route():
                self._route(node, key)
            case Handle():
                self._handle(node, key)
            case _:
                raise NotCarried(f"the node type `{node.type}` of a plugin")

    def _without_block(self, node: Node, key: Key, why: str) -> None:
        """Skip the test at a container that is left out."""
        self.comment(f"Left out: {node.id} ({why}).")
        self._file.lost(f"{self._where}{node.id}", why)
        self.line(f"{self.need('pytest')}.skip({layout.quoted(f'{node.id} was left out: {why}')})")
        for each in (key, *(("id", inner.id) for inner in below(node))):
            self._assign(each, "None")

    def _leaf(self, node: Leaf, key: Key, result: Key | None) -> None:
        before = self._found_so_far()
        if node.confirm is not None:
            self.lost(node, "`confirm`, which asks the site after a crash whether this happened.")
        if node.retry is not None:
            self._retried(node, key, result)
            return
        begin, depth, asked = len(self.lines), self.depth, False
        try:
            value = leaves.emit(self, node)
        except NotCarried as error:
            del self.lines[begin:]
            self.depth, self.found = depth, before
            before = self._found_so_far()
            asked = isinstance(node, Context) and any(self._wants(("vars", each)) for each in (*node.ask, *node.set))
            if asked:
                self.found.read.add(key)
            value = self._stub(node, str(error), wanted=self._wants(key) or result is not None)
        checks = isinstance(node, _CHECKING) and value is not None and _can_fail(value)
        if len(self.lines) == begin and not (checks or self._wants(key) or result is not None):
            # Nothing is written, so nothing is read.
            self.found = before
        self._yield(key, result, value, checks=checks)
        if asked and isinstance(node, Context) and self._wants(key):
            for each in (*node.ask, *node.set):
                self._assign(("vars", each), f"{self.name(key)}[{layout.quoted(each)}]")

    def _yield(self, key: Key, result: Key | None, value: str | None, *, checks: bool) -> None:
        """Write a step's value to the variables that want it; a reading that checks something is done in any case."""
        self.defined.setdefault(key, tuple(self.inside))
        if self._wants(key):
            self._assign(key, value or "None")
            value = self.name(key)
        elif checks and value is not None and result is None:
            self.line(value if _is_call(value) else f"_ = {value}")
        if result is not None:
            self._assign(result, value or "None")

    def _retried(self, node: Leaf, key: Key, result: Key | None) -> None:
        retry = node.retry
        assert retry is not None
        if retry.on is not None:
            self.comment(f"Here every error is retried, not only {', '.join(retry.on)}.")
        with self._head(f"for attempt in range({retry.attempts}):"):
            with self._head("try:"):
                self._leaf(node.model_copy(update={"retry": None, "confirm": None}), key, result)
                self.line("break")
            with self._head(f"except {self.need('FAILURES')}:"):
                with self._head(f"if attempt == {retry.attempts - 1}:"):
                    self.line("raise")
                factor = f" * {retry.backoff:g}**attempt" if retry.backoff != 1 else ""
                self.line(f"page.wait_for_timeout({round(retry.delay * 1000):_}{factor})")

    def _stub(self, node: Leaf, why: str, *, wanted: bool) -> str | None:
        """Write a call of a function that the person has to fill in; a reading that nothing needs is only named."""
        self.comment(f"Left out: {node.id} ({why}).")
        self._file.lost(f"{self._where}{node.id}", why)
        changes = node.effect_class != "read" and not isinstance(node, sessions.SaveSession)
        if not changes and not wanted:
            return None
        parameters = self._parameters(node)
        name = f"do_{snake(node.id)}" if changes else f"get_{snake(node.id)}"
        name = self._file.stub(node, name, ["page", *parameters], why)
        call = f"{name}({', '.join(['page', *parameters])})"
        if wanted:
            return call
        self.line(call)
        return None

    def _parameters(self, node: Leaf) -> list[str]:
        """Return the variables that a left-out step reads."""
        found: list[str] = []
        for text in _templates(plain(node, frozenset({"confirm", "verify"}))):
            for use in references.compile(text).names:
                try:
                    code, _rest = self.read(use.chain)
                except NotCarried:
                    continue
                if code.isidentifier() and code not in found:
                    found.append(code)
        return found

    # Containers.

    def _value(self, node: Group | Route | Handle, key: Key) -> None:
        if node.value is not None and self._wants(key):
            try:
                self._assign(key, expressions.of(node.value, self))
            except NotCarried as error:
                self.lost(node, f"its `value`: {error}")
                self._assign(key, f"pytest.skip({layout.quoted(f'{node.id}: its value was left out')})")
                self.need("pytest")

    def _group(self, node: Group, key: Key) -> None:
        self.defined.setdefault(key, tuple(self.inside))
        if node.nodes is not None:
            self.block(node.nodes, None if node.value is not None else key)
            self._value(node, key)
            self.blank()
            return
        callee = self._loaded.callees[node.id]
        name, more = self._file.function(callee)
        given = [f"{safe(each)}={expressions.of(value, self)}" for each, value in (node.with_ or {}).items()]
        call = f"{name}({', '.join([self.tab, *map(self.need, more), *given])})"
        if self._wants(key) and node.value is None:
            self._assign(key, call)
        else:
            self.line(call)
        self._value(node, key)

    def _route(self, node: Route, key: Key) -> None:
        self.defined.setdefault(key, tuple(self.inside))
        taken = ("taken", node.id)
        self.inside.append(node.id)
        result = None if node.value is not None else key
        branches = [(branch.name, branch.when, branch.nodes) for branch in node.branches]
        for number, (name, when, nodes) in enumerate(branches):
            self.inside.pop()
            condition = expressions.of(when, self)
            self.inside.append(node.id)
            self.line(f"{'elif' if number else 'if'} {condition}:")
            self._branch(name, nodes, taken, result)
        if node.otherwise is not None:
            self.line("else:")
            self._branch(OTHERWISE, node.otherwise, taken, result)
        elif self._wants(taken) or (result is not None and self._wants(key)):
            with self._head("else:"):
                self._assign(taken, "None")
                if result is not None:
                    self._assign(key, "None")
        self.inside.pop()
        self._value(node, key)
        self.blank()

    def _branch(self, name: str, nodes: list[Node], taken: Key, result: Key | None) -> None:
        with self._indented():
            self.inside.pop()
            self._assign(taken, layout.quoted(name))
            self.inside.append(taken[1])
            self.block(nodes, result)

    def _handle(self, node: Handle, key: Key) -> None:
        self.defined.setdefault(key, tuple(self.inside))
        if node.on is not None:
            self.comment(f"Here every error is caught, not only {', '.join(node.on)}.")
            self._file.lost(f"{self._where}{node.id}", "`on`: every error is caught")
        result = None if node.value is not None else key
        self.inside.append(node.id)
        with contextlib.ExitStack() as around:
            if node.finally_ is not None and node.attempts > 1:
                around.callback(self._finally, node.finally_)
                around.enter_context(self._head("try:"))
            if node.attempts > 1:
                around.enter_context(self._head(f"for attempt in range({node.attempts}):"))
            with self._head("try:"):
                self.block(node.try_, result)
                if node.attempts > 1:
                    self.line("break")
            if node.attempts > 1 or node.catch is not None:
                self._catch(node, result)
            if node.finally_ is not None and node.attempts == 1:
                self._finally(node.finally_)
        self.inside.pop()
        self._value(node, key)
        self.blank()

    def _finally(self, nodes: list[Node]) -> None:
        with self._head("finally:"):
            self.block(nodes)

    def _catch(self, node: Handle, result: Key | None) -> None:
        head, error = len(self.lines), self._error_name()
        with self._head(f"except {self.need('FAILURES')} as {error}:"):
            if node.attempts > 1:
                with self._head(f"if attempt < {node.attempts - 1}:"):
                    self.line("continue")
            if node.catch is None:
                self.line("raise")
            else:
                self.errors.append(error)
                self.block(node.catch, result)
                self.errors.pop()
        body = "\n".join(line for line in self.lines[head + 1 :] if not line.lstrip().startswith("#"))
        if not re.search(rf"\b{error}\b", body):
            self.lines[head] = self.lines[head].replace(f" as {error}", "")

    def _iterate(self, node: Iterate, key: Key) -> None:
        self.defined.setdefault(key, tuple(self.inside))
        failures = ("failures", node.id)
        if self._wants(key):
            self.line(f"{self.name(key)} = []")
        if self._wants(failures):
            self.line(f"{self.name(failures)} = []")
        self.defined.setdefault(failures, tuple(self.inside))
        loop = self._loop(node)
        # A condition before an iteration reads what the one before it left.
        while_ = None if node.while_ is None else self._in(loop, node.while_)
        with self._head(self._loop_head(node, loop)):
            self.loops.append(loop)
            self.inside.append(node.id)
            if while_ is not None:
                self._break_if(negated(while_))
                self._limit(node, loop)
            if node.each_error == "continue":
                with self._head("try:"):
                    self._iteration(node, key)
                self._except_each(node, loop, failures)
            else:
                self._iteration(node, key)
            if node.until is not None:
                self._break_if(expressions.of(node.until, self))
            self.loops.pop()
            self.inside.pop()
        if node.until is not None:
            with self._head("else:"):
                self.line(self._too_many(node))
        self.blank()

    def _break_if(self, condition: str) -> None:
        with self._head(f"if {condition}:"):
            self.line("break")

    def _limit(self, node: Iterate, loop: Loop) -> None:
        with self._head(f"if {loop.index} > {expressions.of(node.max, self)}:"):
            self.line(self._too_many(node))

    def _too_many(self, node: Iterate) -> str:
        return f"{self.need('pytest')}.fail({layout.quoted(f'{node.id}: too many rounds')})"

    def _in(self, loop: Loop, value: Json) -> str:
        self.loops.append(loop)
        try:
            return expressions.of(value, self)
        finally:
            self.loops.pop()

    def _loop(self, node: Iterate) -> Loop:
        item = self.name(("item", f"{node.as_}")) if node.as_ and node.over is not None else ""
        index = self._index_of(node)
        if node.over is None:
            return Loop(node, "", index, "", "")
        items = expressions.of(node.over, self)
        if node.limit is not None:
            items = f"{items}[:{expressions.of(node.limit, self)}]"
        loop = Loop(node, item or "_", index, items, "")
        if node.key is not None:
            loop = dataclasses.replace(loop, key=self._in(loop, node.key))
        return loop

    def _index_of(self, node: Iterate) -> str:
        outer = [loop.index for loop in self.loops]
        return next(name for name in ("index", *(f"index_{number}" for number in range(2, 99))) if name not in outer)

    def _loop_head(self, node: Iterate, loop: Loop) -> str:
        if node.over is None:
            most = (
                f"{node.max}"
                if isinstance(node.max, int) and not isinstance(node.max, Template)
                else expressions.of(node.max, self)
            )
            end = (
                str(node.max + 1 + (node.while_ is not None))
                if most.isdecimal() and node.max is not None
                else f"{most} + {1 + (node.while_ is not None)}"
            )
            return f"for {loop.index} in range(1, {end}):"
        if self._wants(("local", f"index of {node.id}")):
            return f"for {loop.index}, {loop.item} in enumerate({loop.items}, start=1):"
        return f"for {loop.item} in {loop.items}:"

    def _iteration(self, node: Iterate, key: Key) -> None:
        wanted = self._wants(key)
        if not wanted or node.collect is not None:
            self.block(node.nodes)
            if wanted:
                self.line(f"{self.name(key)}.append({expressions.of(node.collect, self)})")
            return
        self.block(node.nodes, ("append", node.id))

    def _except_each(self, node: Iterate, loop: Loop, failures: Key) -> None:
        wanted, error = self._wants(failures), self._error_name()
        with self._head(f"except {self.need('FAILURES')}{f' as {error}' if wanted else ''}:"):
            if wanted:
                self.found.read.add(("local", f"index of {node.id}"))
                parts = f'"index": {loop.index}, "key": {loop.key or "None"}, "message": str({error})'
                self.line(f"{self.name(failures)}.append({{{parts}}})")
            else:
                self.line("continue")


def _may_not_run(node: Node) -> bool:
    return node.when is not None or node.on_error == "continue"


def _can_fail(code: str) -> bool:
    """True if an expression does more than name values."""
    plain = (ast.Expression, ast.Constant, ast.Name, ast.Load, ast.List, ast.Dict, ast.JoinedStr, ast.FormattedValue)
    return not all(isinstance(each, plain) for each in ast.walk(ast.parse(code, mode="eval")))


def _is_call(code: str) -> bool:
    return isinstance(ast.parse(code, mode="eval").body, ast.Call)


def _templates(value: Json) -> Iterator[str]:
    """Yield the texts with references in a part of a file."""
    if isinstance(value, str):
        if "{{" in value:
            yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _templates(each)
