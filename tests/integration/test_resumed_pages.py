"""Workflows on a site that is hard to come back to, killed with their browser at moments that once went wrong: what they end with is what every run of them must.

``python -m tests.resumes`` kills each of them at every moment, and ``make crash`` does so too.
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


def open_case(name: str, shape: cases.Shape, at: str, why: str) -> Any:
    """A kill after which the run does not end as it must yet."""
    return pytest.param((name, shape, at), marks=pytest.mark.xfail(reason=why))


FORM = "the answer to a form is restored as another page"
CONSUMED = "what led to a finished effect is done again, and cannot be"

KILLS: list[Any] = [
    open_case("list", "flat", "call pages[3]/next", FORM),
    open_case("list-trusting", "flat", "call names", FORM),
    open_case("list-trusting", "group", "call group_1/pages[3]/next", FORM),
    open_case("search", "flat", "result found", FORM),
    open_case("search", "flat", "result looked_up", FORM),
    open_case("shop", "flat", "site after order tea to The Office", CONSUMED),
    open_case("shop", "group", "site after order tea to The Office", CONSUMED),
    open_case(
        "shop-receipt", "flat", "result order", "the page that an effect leads to is not loaded for the next read"
    ),
    open_case("notes", "group", "site after rename alpha to beta", CONSUMED),
    open_case("notes", "group", "site after file 7", CONSUMED),
    open_case("canvas", "flat", "site after save trigger+timer", "a kept `when` contradicts what is read again"),
    open_case("registry", "group", "site after register alpha", "what the effect rested on is read again"),
    ("files", "group", "site after upload report.txt: new"),
    open_case(
        "files-question",
        "flat",
        "site before upload report.txt: new",
        "the question before a finished effect is open again",
    ),
    open_case("job", "flat", "call parts", "a `verify` is not waited for on the page that is restored"),
    open_case("payments", "group", "site after pay bill-25", "`confirm` takes no `iterate`"),
    open_case("payments-asked", "flat", "site after pay bill-25", "after a person's `done` another page is read"),
    ("desk", "group", "site before ticket Rain"),
    open_case("app", "flat", "call open_list", "state that a checkpoint does not hold is not missed"),
]


@pytest.fixture(scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[bench.Bench]:
    """One browser for all kills."""
    async with bench.opened(tmp_path_factory.mktemp("resumes"), jobs=4) as opened:
        yield opened


@pytest.fixture(scope="module")
async def kills(place: bench.Bench, request: pytest.FixtureRequest) -> dict[Moment, asyncio.Task[bench.Done]]:
    """All kills of this module that were asked for, side by side: each waits more than it works."""
    items: list[Any] = [
        each for each in request.session.items if isinstance(each, pytest.Function) and each.path == request.path
    ]
    wanted: list[Moment] = [each.callspec.params["moment"] for each in items if hasattr(each, "callspec")]
    return {
        (name, shape, at): asyncio.create_task(place.one(cases.BY_NAME[name], shape, bench.Kill(at)))
        for name, shape, at in wanted
    }


@pytest.mark.parametrize("moment", KILLS, ids=str)
async def test_a_resumed_run_ends_as_every_run_of_it(
    kills: dict[Moment, asyncio.Task[bench.Done]], moment: Moment
) -> None:
    """Killed with its browser, a run ends with the output and the effects of one that nobody killed, or pauses by name."""
    done = await kills[moment]
    assert done.report.verdict in ("equal", "paused", "named"), str(done.report)


async def test_an_effect_that_happens_twice_is_found_out(place: bench.Bench) -> None:
    """A workflow whose `confirm` denies what has happened registers twice, and the site's record says so."""
    honest = cases.BY_NAME["registry"]
    liar = dataclasses.replace(honest, fill={'done: "{{ there == 1 }}"': 'done: "{{ false }}"'})
    done = await place.one(liar, "group", bench.Kill("site after register alpha"))
    assert done.report.verdict == "wrong"
    assert "doubled: register" in done.report.why


async def test_a_shorter_list_is_found_out(place: bench.Bench) -> None:
    """Rows that are missing at the end are a difference, though the run passed."""
    longer = dataclasses.replace(cases.BY_NAME["list"], output={"count": 48, "names": []})
    assert (await place.alone(longer, "flat")).report.verdict == "wrong"
