"""An order that is sent by any action to a site that answers badly: it never arrives twice, and with ``confirm`` exactly once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from runtime.browser.session import Session
from tests import breadth, browsers, sent


@pytest.fixture(scope="module")
def orders() -> Iterator[sent.Orders]:
    """The site."""
    with sent.serve() as orders:
        yield orders


@pytest.fixture(scope="module", autouse=True)
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """The browser that all runs share, kept between them."""
    async with browsers.opened(tmp_path_factory.mktemp("kept"), mode="shared") as session:
        yield session


def chosen() -> list[sent.Case]:
    """Each action, each fault with and without `confirm`; all of the matrix where all is tried."""
    if breadth.WHOLE:
        return sent.every()
    faults = [(fault, confirm) for fault in sent.FAULTS for confirm in (False, True)]
    return [sent.Case(action, *faults[number % len(faults)], retry=True) for number, action in enumerate(sent.ACTIONS)]


async def test_an_order_is_never_sent_twice(orders: sent.Orders, tmp_path: Path) -> None:
    """The site's own record has no order twice, and with `confirm` each once, whatever action sent it and however the site answered."""
    assert sent.wrong(await sent.live_all(chosen(), orders, tmp_path)) == {}


async def test_a_press_that_counts_as_not_begun_is_found_out(orders: sent.Orders, tmp_path: Path) -> None:
    """Where the silence of a call log counts as proof, Enter in a form that is answered late sends the order twice, and the record shows it."""
    case = sent.Case("press", "late", verify=True)
    with sent.without_proof():
        lived = await sent.live_all([case], orders, tmp_path)
    assert sent.wrong(lived)[str(case)][0].endswith(" orders")
