"""What pytest loads of RunOps, in every session of an environment where it is installed: so it imports nothing until a test asks."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from runtime.pytest_plugin.running import RunWorkflow

_USED = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # The page is made when the workflow needs one. Only what a test names before is repeated for each `--browser`.
    if "run_workflow" in metafunc.fixturenames and "browser_name" not in metafunc.fixturenames:
        metafunc.fixturenames.append("browser_name")


def pytest_collection_finish(session: pytest.Session) -> None:
    session.stash[_USED] = any("run_workflow" in getattr(item, "fixturenames", ()) for item in session.items)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
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
    """Run a workflow file: on the ``page`` of the test if it has one, else on a page of its own."""
    from runtime.pytest_plugin import running

    return running.RunWorkflow(request, runops_inputs, runops_secrets)
