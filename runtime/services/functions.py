"""Functions of the project that a workflow may call: only those of modules that the configuration names."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from nodes import errors, ports, transform
from nodes.errors import AuthorError, UsageError
from nodes.values import Json, NotJson, normalise
from runtime.language import workflow
from runtime.language.diagnostics import WorkflowInvalid
from runtime.secrets import masking
from runtime.services import threads
from runtime.settings import settings

SETTING = "python_modules"


def check(loaded: workflow.Loaded, allowed: Sequence[str]) -> None:
    """Raise WorkflowInvalid, exit 2, if the file, or one that it uses, calls a function of a module not in ``allowed``."""
    called = [
        (file, node.id, node.python.partition(":")[0])
        for file in loaded.files()
        for node in file.nodes()
        if isinstance(node, transform.Transform) and node.python is not None
    ]
    wrong = [
        file.document.source.diagnostic(
            "python-not-allowed", _not_allowed(module), file.mark(node_id, "python"), help=[_fix(module, allowed)]
        )
        for file, node_id, module in called
        if module not in allowed
    ]
    if wrong:
        raise WorkflowInvalid(wrong)


def _not_allowed(module: str) -> str:
    return f"the configuration does not allow functions of the Python module `{module}`"


def _fix(module: str, allowed: Sequence[str]) -> str:
    close = errors.near(module, allowed)
    add = f'if you trust it, write `{SETTING} = ["{module}"]` under [tool.runops] in pyproject.toml'
    return f"did you mean `{close}`?" if close else add


@dataclasses.dataclass(frozen=True, slots=True)
class Functions(ports.Python):
    """Calls functions of the ``allowed`` modules, each in a separate thread."""

    allowed: Sequence[str]
    seconds: float
    masker: masking.Masker  # masks the output of functions

    @override
    async def call(self, function: str, args: Mapping[str, Json]) -> Json:
        module, _, name = function.partition(":")
        if module not in self.allowed:
            raise UsageError("python-not-allowed", _not_allowed(module), fix=_fix(module, self.allowed))
        value = await self._in_thread(function, lambda: _value(module, name, args))
        try:
            return normalise(value)
        except NotJson as error:
            raise AuthorError(
                "python-failed",
                f"what `{function}` returns cannot be kept: {error}",
                fix="return text, numbers, booleans, None, and lists and dicts of these",
            ) from None

    async def _in_thread(self, function: str, make: Callable[[], Any]) -> Any:
        def work() -> Any:
            _CALLED.append(self.masker)
            try:
                return make()
            finally:
                _CALLED.remove(self.masker)

        try:
            return await asyncio.wait_for(threads.called(work, function), self.seconds)
        except TimeoutError:
            raise AuthorError(
                "python-failed",
                f"`{function}` took longer than {self.seconds:g} s",
                fix="make it quicker, or give the node a longer `timeout`",
            ) from None


_CALLED: list[masking.Masker] = []  # maskers of the runs that are calling a function, one for each call


def is_calling() -> bool:
    return bool(_CALLED)


def masked(text: str) -> str:
    """Mask a function's output with the secrets of all runs that call one now, as a page may have shown them."""
    for masker in [*_CALLED]:
        text = masker.text(text)
    return text


def _value(module: str, name: str, args: Mapping[str, Json]) -> Any:
    """Return the function's value. Raises AuthorError if it cannot be called, or fails."""
    found = _find(module, name)
    function, signature = f"{module}:{name}", inspect.signature(found)
    try:
        signature.bind(**args)
    except TypeError as error:
        message = f"`args` does not fit `{function}`: {error}"
        raise AuthorError("python-failed", message, fix=f"it takes {signature}") from None
    try:
        return found(**args)
    except BaseException as error:  # noqa: BLE001 - whatever a function does is the function's failure
        fix = "look at the function, or at what it was given"
        raise AuthorError("python-failed", f"`{function}` failed", fix=fix, evidence=_evidence(error)) from None


def _find(module: str, name: str) -> Callable[..., Any]:
    """Return the function. Modules are searched among installed ones, then in the project's folder."""
    folder = settings.project_folder()
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        loaded = importlib.import_module(module)
    except BaseException as error:  # noqa: BLE001 - a module may do anything when it is imported
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            message = f"there is no Python module `{module}`"
            fix = "install it beside RunOps, or put it into the folder of pyproject.toml"
            raise AuthorError("python-not-found", message, fix=fix) from None
        message = f"the Python module `{module}` cannot be imported"
        raise AuthorError("python-not-found", message, fix="fix the module", evidence=_evidence(error)) from None
    found = getattr(loaded, name, None)
    home = str(getattr(found, "__module__", ""))
    if not inspect.isfunction(found) or not (home == module or home.startswith(f"{module}.")):
        functions = [
            each for each, value in vars(loaded).items() if inspect.isfunction(value) and not each.startswith("_")
        ]
        close = errors.near(name, functions)
        raise AuthorError(
            "python-not-found",
            f"the Python module `{module}` has no function `{name}` of its own",
            fix=f"did you mean `{module}:{close}`?" if close else "name a function that is defined there",
        )
    if inspect.iscoroutinefunction(found):
        raise AuthorError("python-not-found", f"`{module}:{name}` is an `async` function", fix="name a plain one")
    return found


def _evidence(error: BaseException) -> dict[str, Json]:
    frames = traceback.extract_tb(error.__traceback__)
    last = traceback.format_exception_only(error)[-1].strip()
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    return {"error": last, "place": place}
