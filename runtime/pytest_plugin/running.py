"""The fixture ``run_workflow``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from nodes.base import Leaf
from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime import events
from runtime.browser import lent, origins, playwright_internals
from runtime.cli import console, foreground_run
from runtime.language import prepare, reader, workflow
from runtime.pytest_plugin import pages
from runtime.runs import patches
from runtime.runs import start as start_run
from runtime.secrets import sources
from runtime.services import functions
from runtime.workspace import host


class RunWorkflow:
    """Runs workflow files for one test."""

    def __init__(self, request: pytest.FixtureRequest, inputs: Mapping[str, Json], secrets: Mapping[str, str]) -> None:
        """``inputs`` and ``secrets`` are given to every file that has them."""
        self._request = request
        self._inputs = inputs
        self._secrets = secrets

    def __call__(
        self,
        file: str | Path,
        inputs: Mapping[str, Json] | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        page: Any = None,
        check: bool = True,
    ) -> events.RunEnded:
        """Run a file and return how it ended. With ``check``, a run that did not pass fails the test with the text of ``runops run``.

        The file is searched in the current folder, then beside the test. ``page`` is by default that of the test.
        """
        __tracebackhide__ = True
        text = ""
        try:
            here = host.load()
            loaded = reader.load(self._found(Path(file)))
            ended = self.run(here, loaded, inputs or {}, secrets or {}, page)
            if not check or ended.status == "passed":
                return ended
            text = closing(here, ended)
        except RunOpsError as error:
            text = console.failure(error)
        # Outside of `except`: pytest shows the error that is being handled as well.
        pytest.fail(text, pytrace=False)

    def _found(self, file: Path) -> Path:
        beside = self._request.path.parent / file
        return beside if not file.exists() and beside.exists() else file

    def run(
        self,
        here: host.Host,
        loaded: workflow.Loaded,
        inputs: Mapping[str, Json],
        secrets: Mapping[str, str],
        page: Any = None,
    ) -> events.RunEnded:
        """Run a file that was read, and give the report of the test the id of the run. Raises the RunOpsError that prevents the start."""
        ended = self._run(here, loaded, inputs, secrets, page)
        self._request.node.user_properties.append(("runops_run", ended.run))
        return ended

    def _run(
        self,
        here: host.Host,
        loaded: workflow.Loaded,
        inputs: Mapping[str, Json],
        secrets: Mapping[str, str],
        page: Any,
    ) -> events.RunEnded:
        functions.check(loaded, here.settings.python_modules)
        usual = {name: value for name, value in self._inputs.items() if name in loaded.workflow.inputs}
        source = Layers({**self._secrets, **secrets}, here.secrets)
        try:
            prepared = prepare.prepare(loaded, {**usual, **inputs}, source)
        except UsageError as error:
            if error.code != "missing-input":
                raise
            raise error.replaced(fix="give it to the run, or to all workflows by the fixture `runops_inputs`") from None
        if not works_on_page(loaded):
            return _to_its_end(lambda heard: pages.work_apart(start_run.begin(prepared, here, heard)))
        options = start_run.browser_options(prepared)
        if page is None:
            page = pages.page_of(self._request, options)
        pages.demand_prepared(page)
        allowed = loaded.origins(prepared.inputs)
        if loaded.workflow.allowed_origins is None and not origins.is_blank(page.url):
            # The test brought the page there.
            allowed = [*allowed, origins.origin(page.url) or page.url]
        face = playwright_internals.async_page(page)
        browsers = lent.LentPage(face, options, allowed, secrets=bool(prepared.secrets))
        lending = start_run.Options(browsers=browsers)
        with pages.untraced(self._request, page) if prepared.secrets else contextlib.nullcontext():
            return _to_its_end(
                lambda heard: playwright_internals.work_in_loop_of(
                    page, start_run.begin(prepared, here, heard, options=lending)
                )
            )


def _to_its_end(carry_out: Callable[[events.Listener], events.RunEnded]) -> events.RunEnded:
    """Return how a run ended, also one that ended by a bug of ours: its log has the error, with secrets masked."""
    ended: list[events.RunEnded] = []

    def listen(event: events.Event) -> None:
        if isinstance(event, events.RunEnded):
            ended.append(event)

    try:
        return carry_out(listen)
    except Exception:
        if not ended:
            raise
        return ended[0]


class Layers(sources.SecretSource):
    """Secrets that a test gives, and below them those of the environment."""

    def __init__(self, given: Mapping[str, str], below: sources.SecretSource) -> None:
        self._given = given
        self._below = below

    @override
    def find(self, names: Iterable[str], beside: Path | None = None) -> dict[str, str]:
        wanted = [*names]
        given = {name: self._given[name] for name in wanted if self._given.get(name)}
        return {**self._below.find([name for name in wanted if name not in given], beside), **given}

    @override
    def how_to_set(self, name: str, beside: Path | None = None) -> str:
        return f"{self._below.how_to_set(name, beside)}; or give it to `run_workflow(…, secrets=…)`"


def works_on_page(loaded: workflow.Loaded) -> bool:
    """Return whether a run of the file may open a browser."""
    leaves = [node for file in loaded.files() for node in file.nodes() if isinstance(node, Leaf)]
    return any(each.touches_page or any(rule.kind != "expr" for rule in each.verify) for each in leaves)


def closing(here: host.Host, ended: events.RunEnded) -> str:
    return foreground_run.closing(ended, waits=patches.waits(here.reader, ended.run))
