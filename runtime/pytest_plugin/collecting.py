"""The ``tests`` of workflow files as tests of pytest: each is an item ``FILE::NAME`` that uses the fixture ``run_workflow``."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from nodes.errors import RunOpsError
from runtime import events
from runtime.cli import console
from runtime.display import facts
from runtime.display.text import value_text
from runtime.language import reader, workflow
from runtime.language.examples import Expected, WorkflowTest
from runtime.pytest_plugin import running
from runtime.pytest_plugin.plugin import PAGELESS
from runtime.runs import collect
from runtime.system import regular_files
from runtime.workspace import host


def collector(file: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the collector of a workflow file; None for another YAML file, and for a workflow without tests."""
    try:
        with regular_files.opened(file) as stream:
            content = stream.read()
    except OSError:
        return None
    if b"tests:" not in content or not collect.is_workflow(content):
        return None
    return WorkflowFile.from_parent(parent, path=file)  # pyright: ignore[reportUnknownMemberType]


class WorkflowFile(pytest.Module):
    """Stands for a Python module whose functions are the tests, so that items have fixtures, parameters and marks as any test has."""

    @override
    def _getobj(self) -> types.ModuleType:
        return types.ModuleType(self.path.stem)

    @override
    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        text = ""
        try:
            loaded = reader.load(_shown(self.path))
        except RunOpsError as error:
            text = console.failure(error)
        else:
            for number, each in enumerate(loaded.workflow.tests):
                function = _function(loaded, number, each)
                # An item looks its function up there.
                setattr(self.obj, each.name, function)
                yield from self._genfunctions(each.name, function)  # pyright: ignore[reportUnknownMemberType]
            return
        raise self.CollectError(text)


def _shown(file: Path) -> Path:
    """Return the path as messages show it: from the current folder, if it is below."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def _function(loaded: workflow.Loaded, number: int, test: WorkflowTest) -> Callable[..., None]:
    def check(run_workflow: running.RunWorkflow) -> None:
        run_test(run_workflow, loaded, test)

    mark = loaded.document.mark(("tests", number))
    # Pytest asks the code of a function where it stands.
    check.__code__ = check.__code__.replace(
        co_filename=str(loaded.path.absolute()), co_firstlineno=mark.line if mark is not None else 1, co_name=test.name
    )
    check.__doc__ = loaded.workflow.description
    vars(check)[PAGELESS] = not running.works_on_page(loaded)
    return check


def run_test(run_workflow: Any, loaded: workflow.Loaded, test: WorkflowTest) -> None:
    """Run one test, and fail it with our text if the run does not end as expected."""
    text: str | None = None
    try:
        here = host.load()
        ended = run_workflow.run(here, loaded, test.inputs, {})
        if (problem := unmet(test.expect, ended)) is not None:
            text = "\n".join(filter(None, [problem, running.closing(here, ended)]))
    except RunOpsError as error:
        text = console.failure(error)
    if text is not None:
        pytest.fail(text, pytrace=False)


def unmet(expected: Expected, ended: events.RunEnded) -> str | None:
    """Return how a run ended otherwise than expected; empty if its own outcome says enough, None if it ended as expected."""
    code = (ended.error or {}).get("code") or (ended.question or {}).get("reason")
    pairs = {
        "status": (expected.status, ended.status),
        "error": (expected.error, code if expected.error is not None else None),
        "output": (expected.output, ended.output) if "output" in expected.model_fields_set else (None, None),
    }
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if not wrong:
        return None
    if expected.status == "passed" != ended.status:
        return ""
    shown = {
        f"{word} {name}": facts.shortened(value_text(value))
        for name, pair in wrong.items()
        for word, value in zip(("expected", "seen"), pair, strict=True)
    }
    return "\n".join([f"the run did not end as expected: another {' and '.join(wrong)}", *facts.facts({}, shown)])
