"""Variables of an exported function: their Python names, and which of them something reads."""

from __future__ import annotations

import builtins
import dataclasses
import keyword
import re

from nodes.browser_action import files
from nodes.browser_query import reads, rows
from nodes.iterate import Iterate
from nodes.template import Template
from nodes.values import Json
from runtime.export import helpers
from runtime.export.code import Chain, NotCarried
from runtime.language.expressions import references
from runtime.language.expressions.names_read import chain_of
from runtime.language.workflow import Loaded

Key = tuple[str, str]
"""A variable: its kind (``id``, ``input``, ``secret``, ``vars``, ``taken``, ``error``, ``failures``, ``local``) and its name in the workflow."""

OUR_NAMES = {"page", "tmp_path", "each", "item", "part", "text", "error", "attempt", "test", "index"}


@dataclasses.dataclass(frozen=True, slots=True)
class Loop:
    node: Iterate
    item: str
    index: str
    items: str  # the code of the list; empty for a loop without one
    key: str  # the code of the key; empty if it has none


@dataclasses.dataclass(slots=True)
class Known:
    """What an earlier writing of the same function has found out about its variables."""

    read: set[Key] = dataclasses.field(default_factory=set[Key])
    outside: dict[str, set[Key]] = dataclasses.field(default_factory=dict[str, set[Key]])
    """Variables that are read outside of the container, by its id, in which they may get no value."""
    names: frozenset[str] = frozenset({*helpers.HELPERS, *helpers.IMPORTS, *helpers.PLAYWRIGHT})
    """The names that the file has outside of functions."""


class Variables:
    def __init__(self, loaded: Loaded, known: Known) -> None:
        self.found = Known()
        self.loops: list[Loop] = []
        self.inside: list[str] = []
        """The ids of the containers around the present place that may not run."""
        self.defined: dict[Key, tuple[str, ...]] = {}
        self.errors: list[str] = []
        """The variables with the errors that the blocks around the present place handle."""
        self._loaded, self._known = loaded, known
        self._names: dict[Key, str] = {}

    def read(self, chain: Chain) -> tuple[str, Chain]:
        root, rest = str(chain[0]), chain[1:]
        if (loop := self._of_loop(root, rest)) is not None:
            return loop
        match root:
            case "inputs" | "secrets" | "vars" if rest:
                kind = {"inputs": "input", "secrets": "secret", "vars": "vars"}[root]
                return self._variable((kind, str(rest[0]))), rest[1:]
            case "run" if len(rest) > 1 and rest[0] in ("errors", "taken", "failures"):
                kind = {"errors": "error", "taken": "taken", "failures": "failures"}[str(rest[0])]
                return self._variable((kind, str(rest[1]))), rest[2:]
            case "error" if self.errors and "error" not in self._loaded.index:
                return self._error_part(rest)
            case _ if root in self._loaded.index:
                return self._variable(("id", root)), rest
            case _:
                raise NotCarried(f"`{references.written(chain)}`")

    def _error_part(self, rest: Chain) -> tuple[str, Chain]:
        code = {"message": f"str({self.errors[-1]})", "code": f"type({self.errors[-1]}).__name__"}.get(
            str(rest[0]) if rest else ""
        )
        if code is None:
            raise NotCarried(f"`{references.written(('error', *rest))}`")
        return code, rest[1:]

    def _of_loop(self, root: str, rest: Chain) -> tuple[str, Chain] | None:
        for loop in reversed(self.loops):
            if root == loop.node.as_:
                return loop.item or loop.index, rest
            if root == f"{loop.node.as_}_loop" or (root == "loop" and loop is self.loops[-1]):
                parts = {
                    "index": loop.index,
                    "first": f"({loop.index} == 1)",
                    "last": f"({loop.index} == len({loop.items}))" if loop.items else "None",
                    "length": f"len({loop.items})" if loop.items else "None",
                    "key": loop.key or "None",
                }
                if not rest or rest[0] not in parts:
                    raise NotCarried(f"`{root}` as a whole")
                if "index" in parts[str(rest[0])]:
                    self.found.read.add(("local", f"index of {loop.node.id}"))
                return parts[str(rest[0])], rest[1:]
        return None

    def _variable(self, key: Key) -> str:
        """Return a variable that is read here."""
        self.found.read.add(key)
        if (container := self._without(key)) is not None:
            self.found.outside.setdefault(container, set()).add(key)
        return self.name(key)

    def _without(self, key: Key) -> str | None:
        """Return the container before which a variable needs a value, as it may get none; empty for the function itself."""
        kind, _name = key
        if kind in ("input", "secret", "local"):
            return None
        if kind == "vars":
            # It keeps its value from turn to turn.
            known = key in self.defined and set(self.defined[key]) <= set(self.inside)
            return None if known else ""
        if key in self.defined:
            return next((each for each in self.defined[key] if each not in self.inside), None)
        # It is read before it is set: in an earlier turn of a loop.
        if not self.loops:
            return ""
        return self.loops[-1].node.id

    def name(self, key: Key) -> str:
        """Return the Python name of a variable."""
        if key not in self._names:
            kind, name = key
            suffix = {"taken": "_taken", "error": "_error", "failures": "_failures", "value": "_value"}.get(kind, "")
            wanted = f"{snake(name)}{suffix}"
            other = {"input": f"{wanted}_input", "secret": f"{wanted}_secret", "vars": f"{wanted}_variable"}
            for each in (wanted, other.get(kind, f"{wanted}_"), *(f"{wanted}_{number}" for number in range(2, 999))):
                if each not in self._names.values() and not _reserved(each, self._file_names):
                    self._names[key] = each
                    break
        return self._names[key]

    @property
    def _file_names(self) -> set[str]:
        return {*OUR_NAMES, *self._known.names, *(safe(each.path.stem) for each in self._loaded.callees.values())}

    def taken(self, name: str) -> bool:
        return name in self._names.values() or _reserved(name, self._file_names) or name in self._loaded.index

    def is_file(self, value: Json) -> bool:
        chain, _places, computed = chain_of(references.compile(str(value)).trees[0])
        node = self._loaded.index[str(chain[0])][0] if chain and str(chain[0]) in self._loaded.index else None
        kept = isinstance(node, files.Download | files.Screenshot | files.Pdf) or bool(getattr(node, "save_as", None))
        return kept and len(chain) == 1 and not computed

    def is_text(self, value: Json) -> bool:
        """True if a reference surely has a text as its value."""
        trees = references.compile(str(value)).trees
        chain, _places, computed = chain_of(trees[0])
        if not chain or computed:
            return False
        root, key = str(chain[0]), str(chain[1]) if len(chain) > 1 else ""
        if root in ("secrets", "inputs"):
            given = self._loaded.workflow.inputs.get(key)
            return root == "secrets" or (given is not None and given.type == "string" and len(chain) == 2)
        for loop in reversed(self.loops):
            if root == loop.node.as_ and isinstance(loop.node.over, Template):
                over, _places, _rest = chain_of(references.compile(loop.node.over).trees[0])
                rows_of = self._loaded.index.get(str(over[0])) if over else None
                field = rows_of[0].fields.get(key) if rows_of and isinstance(rows_of[0], rows.Extract) else None
                return field is not None and field.type == "text"
        if root in self._loaded.index and len(chain) == 1:
            node = self._loaded.index[root][0]
            return isinstance(node, reads.Text | reads.Value) and node.as_ == "text"
        return False


def snake(name: str) -> str:
    """Return a name as Python writes those of variables."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")


def safe(name: str) -> str:
    """Return a name as Python writes it, with a ``_`` where it would be another's: a word of Python, or a built-in function."""
    found = re.sub(r"\W", "_", snake(name))
    if not found.isidentifier():
        return f"_{found}"
    other = keyword.iskeyword(found) or hasattr(builtins, found) or found in ("page", "tmp_path")
    return f"{found}_" if other else found


def _reserved(name: str, ours: set[str]) -> bool:
    if re.fullmatch(r"(error|index)_\d+", name):
        return True
    return keyword.iskeyword(name) or name in ours or hasattr(builtins, name) or name in ("l", "i", "o", "_")
