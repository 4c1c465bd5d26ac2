"""What all tests share."""

import hypothesis
import pytest

# A busy machine is no defect of the code: the tests of speed have their own place, tests/benchmarks.
hypothesis.settings.register_profile("runops", deadline=None)
hypothesis.settings.load_profile("runops")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run the async tests as RunOps itself runs: on asyncio."""
    return "asyncio"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests with fixtures of pytest-playwright last, else in the order that they have.

    Those fixtures keep an event loop running in this thread until the session ends, and no async test can start
    another one beside it.
    """
    items.sort(key=lambda item: isinstance(item, pytest.Function) and "playwright" in item.fixturenames)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how to repeat the order of a run that failed, also where `-q` hides the header with its seed."""
    if terminalreporter.stats.keys() & {"failed", "error"} and config.pluginmanager.has_plugin("randomly"):
        terminalreporter.write_line(f"same order again:  pytest --randomly-seed={config.option.randomly_seed}")
