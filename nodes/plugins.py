"""Finds and imports node types of other packages, from the entry-point group ``runops.nodes``; rejects unusable ones with a message."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import traceback
import typing
import warnings

from nodes.base import Container, Leaf, Node
from nodes.errors import SetupError
from nodes.tabs import InTab

GROUP = "runops.nodes"
NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


def models() -> dict[str, type[Node]]:
    """Return the model of each node type that an installed package offers, by its name.

    Raises SetupError ``node-type-broken``, naming package and entry point, if one cannot be imported, is no node type, or has a wrong name.
    """
    found: dict[str, type[Node]] = {}
    owners: dict[str, importlib.metadata.EntryPoint] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        if NAME.fullmatch(entry.name) is None:
            raise _broken(entry, "its name needs a dot, such as `acme.captcha`", "give it a dotted name, all small")
        if entry.name in found:
            raise _broken(
                entry, f"{_package(owners[entry.name])} offers that name too", "remove one of the two packages"
            )
        found[entry.name] = _model(entry)
        owners[entry.name] = entry
    return found


def _model(entry: importlib.metadata.EntryPoint) -> type[Node]:
    try:  # any error of a package's module during import
        with warnings.catch_warnings():
            # A field that shadows something is rejected below, with a message.
            warnings.simplefilter("ignore", UserWarning)
            model = entry.load()
    except (Exception, SystemExit) as error:
        raise _broken(entry, f"it cannot be imported: {type(error).__name__}: {error}") from error
    if not (isinstance(model, type) and issubclass(model, Leaf | Container)):
        raise _broken(entry, "it is neither a `Leaf` nor a `Container`")
    if inspect.isabstract(model):
        raise _broken(entry, f"`{model.__name__}` has no `run`")
    written = typing.get_args(model.model_fields["type"].annotation)
    if written != (entry.name,):
        raise _broken(
            entry,
            f"`{model.__name__}` does not call itself that",
            f'write `type: Literal["{entry.name}"] = "{entry.name}"` in it',
        )
    _check_fields(entry, model)
    return model


def _check_fields(entry: importlib.metadata.EntryPoint, model: type[Node]) -> None:
    """Reject fields that shadow what the engine reads of every node."""
    base = Leaf if issubclass(model, Leaf) else Container
    taken = sorted(
        name for name in model.model_fields.keys() - base.model_fields.keys() if getattr(base, name, None) is not None
    )
    if taken:
        words = ", ".join(f"`{name}`" for name in taken)
        raise _broken(entry, f"{words} is a word of every node and cannot be a field", "call the field something else")
    if "tab" in model.model_fields and not issubclass(model, InTab):
        raise _broken(
            entry, "`tab` is no field of its own", "derive from `nodes.tabs.InTab` in place of `Leaf`: it has `tab`"
        )


def failed(node: Node, error: Exception) -> SetupError:
    """Return the error for an unexpected exception in a package's node: it blames the package's code, not the workflow."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    return SetupError(
        "node-type-failed",
        f"the node type `{node.type}` has a bug: {type(error).__name__}: {error}",
        fix="fix the package that offers it; what fails on purpose raises one of `nodes.errors`",
        phase="after",
        evidence={"place": place},
    )


def _broken(entry: importlib.metadata.EntryPoint, why: str, fix: str = "fix the package, or remove it") -> SetupError:
    return SetupError(
        "node-type-broken",
        f"the node type `{entry.name}` of {_package(entry)} cannot be used: {why}",
        fix=fix,
        evidence={"package": _package(entry), "entry point": f"{entry.name} = {entry.value}", "group": GROUP},
    )


def _package(entry: importlib.metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an installed package"
