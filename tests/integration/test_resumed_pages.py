"""Workflows on sites that are hard to resume, killed with their browser at moments that once failed: all end as an unkilled run does.

``python -m tests.resumes`` and ``make crash`` kill each of them at every moment.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.resumes import bench, cases

pytestmark = pytest.mark.anyio

Moment = tuple[str, cases.Shape, str]


KILLS: list[Moment] = [
    ("list", "flat", "call pages[3]/next"),
    ("list-trusting", "flat", "call names"),
    ("list-trusting", "group", "call group_1/pages[3]/next"),
    ("search", "flat", "result found"),
    ("search", "flat", "result looked_up"),
    ("shop", "flat", "site after order tea to The Office"),
    ("shop", "group", "site after order tea to The Office"),
    ("shop-receipt", "flat", "result order"),
    ("notes", "group", "site after rename alpha to beta"),
    ("notes", "group", "site after file 7"),
    ("canvas", "flat", "site after save trigger+timer"),
    ("registry", "group", "site after register alpha"),
    ("files", "group", "site after upload report.txt: new"),
    ("files-question", "flat", "site before upload report.txt: new"),
    ("job", "flat", "call parts"),
    ("payments", "group", "site after pay bill-25"),
    ("payments-asked", "flat", "site after pay bill-25"),
    ("desk", "group", "site before ticket Rain"),
    ("app", "flat", "call open_list"),
]


@pytest.fixture(scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[bench.Bench]:
    """One browser for all kills."""
    async with bench.opened(tmp_path_factory.mktemp("resumes"), jobs=4) as opened:
        yield opened


@pytest.fixture(scope="module")
async def kills(place: bench.Bench, request: pytest.FixtureRequest) -> dict[Moment, asyncio.Task[bench.Done]]:
    """All selected kills of this module, run in parallel because each mostly waits."""
    items: list[Any] = [
        each for each in request.session.items if isinstance(each, pytest.Function) and each.path == request.path
    ]
    wanted: list[Moment] = [each.callspec.params["moment"] for each in items if hasattr(each, "callspec")]
    return {
        (name, shape, at): asyncio.create_task(place.one(cases.BY_NAME[name], shape, bench.Kill(at)))
        for name, shape, at in wanted
    }


@pytest.mark.drawn(4)
@pytest.mark.parametrize("moment", KILLS, ids=str)
async def test_a_resumed_run_ends_as_an_unkilled_one(
    kills: dict[Moment, asyncio.Task[bench.Done]], moment: Moment
) -> None:
    """After a kill with its browser a run has the output and effects of an unkilled one, or pauses by name."""
    done = await kills[moment]
    assert done.report.verdict in ("equal", "paused", "named"), str(done.report)


@pytest.mark.drawn(0)
async def test_an_effect_that_happens_twice_is_detected(place: bench.Bench) -> None:
    """A workflow whose `confirm` wrongly denies its action registers twice, and the verdict is wrong."""
    honest = cases.BY_NAME["registry"]
    liar = dataclasses.replace(honest, fill={'done: "{{ there == 1 }}"': 'done: "{{ false }}"'})
    done = await place.one(liar, "group", bench.Kill("site after register alpha"))
    assert done.report.verdict == "wrong"
    assert "doubled: register" in done.report.why


@pytest.mark.drawn(0)
async def test_a_shorter_list_is_detected(place: bench.Bench) -> None:
    """Rows missing at the end give the verdict wrong, although the run passed."""
    longer = dataclasses.replace(cases.BY_NAME["list"], output={"count": 48, "names": []})
    assert (await place.alone(longer, "flat")).report.verdict == "wrong"
