"""What all tests share."""

import gc
import os
import random
from collections.abc import Iterator

import hypothesis
import pytest

from tests import breadth, light

# A busy machine is no defect of the code: the tests of speed have their own place, tests/benchmarks.
hypothesis.settings.register_profile(
    "runops", deadline=None, derandomize=not breadth.WHOLE, max_examples=breadth.of(50, 100)
)
hypothesis.settings.load_profile("runops")

# What is collected stays, and scanning it repeatedly takes as long as collecting it.
gc.disable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run the async tests as RunOps itself runs: on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """Number by which tests draw: always the same one, but for `make test-all`, where it is that of the order."""
    return pytestconfig.option.randomly_seed if breadth.WHOLE else 1


@pytest.fixture
def chance(request: pytest.FixtureRequest, seed: int) -> random.Random:
    """Random numbers of one test."""
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture(scope="module", autouse=True)
def browser_of_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have runs be light.

    Modules that are about what stands around documents, or about which browser is found, have the mark ``full_browser`` and drive what a person's
    run finds. Those that are about how all of it starts and ends have the mark ``own_driver``, too, and load a driver for each run, as that does.
    """
    marks = {each.name for each in request.node.iter_markers()}
    driver = "own_driver" not in marks and "unit" not in request.path.parts
    with light.runs(shell="full_browser" not in marks, driver=driver):
        yield


@pytest.fixture(scope="module", autouse=True)
def environment_as_before() -> Iterator[None]:
    """Find the module whose tests leave a variable of the environment behind: the tests that come after it, in whatever order, would read it."""
    before = _environment()
    yield
    after = _environment()
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    assert not changed, f"left changed in the environment: {', '.join(sorted(changed))}"


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is too many, and put the tests with fixtures of pytest-playwright last, else in the order that they have.

    Those fixtures keep an event loop running in this thread until the session ends, and no async test can start
    another one beside it.
    """
    if out := breadth.left_out(items):
        gone = set(out)
        config.hook.pytest_deselected(items=out)
        items[:] = [each for each in items if each not in gone]
    items.sort(key=lambda item: isinstance(item, pytest.Function) and "playwright" in item.fixturenames)


def pytest_collection_finish() -> None:
    """Scan garbage again, seldom, and count all that was collected as old."""
    gc.freeze()
    gc.unfreeze()
    gc.set_threshold(20_000, 50, 50)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how to repeat the order of a run that failed, also where `-q` hides the header with its seed."""
    if terminalreporter.stats.keys() & {"failed", "error"} and config.pluginmanager.has_plugin("randomly"):
        terminalreporter.write_line(f"same order again:  pytest --randomly-seed={config.option.randomly_seed}")
