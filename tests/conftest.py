"""Fixtures and hooks of all tests."""

import gc
import os
import random
from collections.abc import Iterator

import hypothesis
import pytest

from tests import breadth, light

# A slow machine is no defect of the code: speed is measured in tests/benchmarks.
hypothesis.settings.register_profile(
    "runops", deadline=None, derandomize=not breadth.WHOLE, max_examples=breadth.of(30, 100)
)
hypothesis.settings.load_profile("runops")

# Collected items live until the end, and scanning them repeatedly takes as long as collecting them.
gc.disable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run the async tests as RunOps itself runs: on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """Seed of random tests: always the same, but in `make test-all` that of the test order."""
    return pytestconfig.option.randomly_seed if breadth.WHOLE else 1


@pytest.fixture
def chance(request: pytest.FixtureRequest, seed: int) -> random.Random:
    """Random numbers of one test."""
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture(scope="module", autouse=True)
def browser_of_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make runs light.

    Modules about the parts around documents, or about finding a browser, have the mark ``full_browser`` and drive the browser of real runs. Those
    about starting and ending everything also have the mark ``own_driver``, and load a driver for each run, as a real run does.
    """
    marks = {each.name for each in request.node.iter_markers()}
    driver = "own_driver" not in marks and "unit" not in request.path.parts
    with light.runs(shell="full_browser" not in marks, driver=driver):
        yield


@pytest.fixture(scope="module", autouse=True)
def environment_as_before() -> Iterator[None]:
    """Fail in the module whose tests leave an environment variable changed: later tests, in any order, would read it."""
    before = _environment()
    yield
    after = _environment()
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    assert not changed, f"left changed in the environment: {', '.join(sorted(changed))}"


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect surplus cases, and put the tests with fixtures of pytest-playwright last, otherwise in their order.

    Those fixtures keep an event loop running in this thread until the session ends, and no async test can start another one beside it.
    """
    if out := breadth.left_out(items):
        gone = set(out)
        config.hook.pytest_deselected(items=out)
        items[:] = [each for each in items if each not in gone]
    items.sort(key=lambda item: isinstance(item, pytest.Function) and "playwright" in item.fixturenames)


def pytest_collection_finish() -> None:
    """Collect garbage again, rarely, and treat everything from collection as old."""
    gc.freeze()
    gc.unfreeze()
    gc.set_threshold(20_000, 50, 50)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how to repeat the order of a failed run, also where `-q` hides the header with its seed."""
    if terminalreporter.stats.keys() & {"failed", "error"} and config.pluginmanager.has_plugin("randomly"):
        terminalreporter.write_line(f"same order again:  pytest --randomly-seed={config.option.randomly_seed}")
