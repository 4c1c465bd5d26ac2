"""What pytest loads of RunOps, in every session of an environment where it is installed: so it imports nothing until a test asks."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from runtime.pytest_plugin.running import RunWorkflow

_USED = pytest.StashKey[bool]()

PAGELESS = "_runops_pageless"  # attribute of a test's function, true if its workflow opens no page


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "collect the `tests` of workflow files"
    parser.getgroup("runops", "RunOps").addoption("--runops", action="store_true", default=False, help=about)
    parser.addini("runops", f"{about}, as --runops does", type="bool", default=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    config = parent.config
    if file_path.suffix not in (".yaml", ".yml") or not (config.getoption("runops") or config.getini("runops")):
        return None
    from runtime.pytest_plugin import collecting

    return collecting.collector(file_path, parent)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # The page is made when the workflow needs one. Only what a test names before is repeated for each `--browser`.
    names = metafunc.fixturenames
    pages = metafunc.config.pluginmanager.hasplugin("playwright") and not getattr(metafunc.function, PAGELESS, False)
    if pages and "run_workflow" in names and "browser_name" not in names:
        names.append("browser_name")


def pytest_collection_finish(session: pytest.Session) -> None:
    session.stash[_USED] = any("run_workflow" in getattr(item, "fixturenames", ()) for item in session.items)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    __tracebackhide__ = True  # an error of any fixture passes through here
    made = yield
    if fixturedef.argname == "playwright" and request.session.stash.get(_USED, False):
        from runtime.pytest_plugin import pages

        pages.prepare(made)
    return made


@pytest.fixture(scope="session")
def runops_inputs() -> Mapping[str, Any]:
    """Inputs of all workflows that have them: override it in a ``conftest.py``."""
    return {}


@pytest.fixture(scope="session")
def runops_secrets() -> Mapping[str, str]:
    """Secrets of all workflows, beside those of the environment and of ``.env``: override it in a ``conftest.py``."""
    return {}


@pytest.fixture
def run_workflow(
    request: pytest.FixtureRequest, runops_inputs: Mapping[str, Any], runops_secrets: Mapping[str, str]
) -> RunWorkflow:
    """Run a workflow file: on the ``page`` of the test if it has that or ``context``, else on a page of its own."""
    from runtime.pytest_plugin import running

    return running.RunWorkflow(request, runops_inputs, runops_secrets)
