"""An order that is sent by any action to a site that answers badly: it never arrives twice, and with ``confirm`` exactly once."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from director.bench import tools
from nodes.values import Json
from runtime.agents import page_tools
from runtime.browser.session import Session
from runtime.testing import responses
from tests import agents, breadth, browsers, build_contexts, models, sent, site


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
    faults = itertools.cycle(itertools.product(sent.FAULTS, (False, True)))
    sampled = [sent.Case(action, *next(faults), retry=True) for action in sent.ACTIONS]
    return [*sampled, sent.Case("fetch", "slow", confirm=True, verify=True, retry=True)]


async def test_an_order_is_never_sent_twice(orders: sent.Orders, tmp_path: Path) -> None:
    """The site's own record has no order twice, and with `confirm` each once, whatever action sent it and however the site answered."""
    assert sent.wrong(await sent.live_all(chosen(), orders, tmp_path)) == {}


@pytest.mark.drawn(0)
async def test_a_press_that_counts_as_not_begun_is_found_out(orders: sent.Orders, tmp_path: Path) -> None:
    """Where the silence of a call log counts as proof, Enter in a form that is answered late sends the order twice, and the record shows it."""
    case = sent.Case("press", "late", verify=True)
    with sent.without_proof():
        lived = await sent.live_all([case], orders, tmp_path)
    assert sent.wrong(lived)[str(case)][0].endswith(" orders")


def of_agents() -> list[sent.Case]:
    """Each of an agent's actions, each fault with and without `confirm`; all of them where all is tried."""
    actions = [name for name, action in sent.ACTIONS.items() if action.of_agent]
    if breadth.WHOLE:
        return [sent.Case(*each) for each in itertools.product(actions, sent.FAULTS, (False, True))]
    return [
        sent.Case("press", "redirect"),
        sent.Case("click", "failed", confirm=True),
        sent.Case("goto", "late", confirm=True),
    ]


async def test_what_an_agent_sends_is_never_sent_twice(
    orders: sent.Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an agent's own action is not answered its model is not told that it failed: `confirm` is asked, or a person; nor is it believed against `confirm`."""
    monkeypatch.setattr(page_tools, "ACTION_SECONDS", sent.SECONDS)

    async def lived(case: sent.Case) -> sent.Lived:
        with responses.serve(agents.Obedient(agents.LOOK, *case.tools)) as server:
            rig = sent.begun(case, orders, tmp_path / str(case), case.of_agent, models.asked_at(server, monkeypatch))
            return await sent.lived(rig, case, orders)

    assert sent.wrong(await sent.side_by_side(of_agents(), lived)) == {}


def of_benches() -> list[sent.Case]:
    """Each action on the bench, each fault with and without `confirm`; all of them where all is tried."""
    if breadth.WHOLE:
        cases = itertools.product(sent.ACTIONS, sent.FAULTS, (False, True))
        return [sent.Case(*each, retry=True) for each in cases]
    return [sent.Case("press", "late", retry=True), sent.Case("click", "slow", confirm=True, retry=True)]


async def test_a_bench_tries_nothing_twice(orders: sent.Orders, tmp_path: Path) -> None:
    """A node that is tried on the bench is sent once, in spite of its `retry`, and its model hears where nobody knows; with `confirm` it arrives."""

    async def tried(case: sent.Case) -> None:
        await try_on_a_bench(case, orders, tmp_path / str(case))

    await sent.side_by_side(of_benches(), tried)


async def try_on_a_bench(case: sent.Case, orders: sent.Orders, folder: Path) -> None:
    """Send the order of a case by `execute_nodes`; once more where the site says that it did not come."""
    folder.mkdir()
    orders.offer(case)
    text = case.text.replace("{{ inputs.base }}", orders.site.origin).replace("inputs: {base: {type: string}}\n", "")
    build = build_contexts.opened(folder, orders.site.origin, text)
    (folder / "paper.txt").write_text("a paper")
    given: dict[str, Json] = {"nodes": "open..send", "mode": None, "from": None, "item": None, "reason": "to see"}
    try:
        told = (await build_contexts.call(build, "execute_nodes", [tools.Execute(build, tools.EXECUTE)], **given)).text
        if case.fault == "slow":
            await orders.finished(case.ref)
        if case.confirm and not orders.taken[case.ref]:
            # What the site says did not come may be tried again.
            told += (
                await build_contexts.call(build, "execute_nodes", [tools.Execute(build, tools.EXECUTE)], **given)
            ).text
    finally:
        await build.close()
    assert orders.taken[case.ref] <= 1, told
    if case.confirm:
        assert orders.taken[case.ref] == 1, told
    elif case.fault not in ("error", "failed"):
        assert re.search("it is unknown whether|it may have happened|^all done", told) is not None


async def processes(session: Session) -> dict[str, list[int]]:
    """The processes of the browser, by what they are for."""
    connection = session._guard._connection
    found: dict[str, list[int]] = {"renderer": [], "network": []}
    for each in (await connection.send("SystemInfo.getProcessInfo"))["processInfo"]:
        found.setdefault(each["type"].partition(".")[0], []).append(each["id"])
    return found


@pytest.mark.drawn(1)
@pytest.mark.parametrize("which", ["renderer", "network"])
@pytest.mark.parametrize("action", ["click", "fetch"])
async def test_a_process_of_the_browser_dies_with_a_request_on_its_way(
    which: str, action: str, orders: sent.Orders, tmp_path: Path
) -> None:
    """An order that went down with the renderer or the network process is no finished one: `confirm` is asked, and it is sent again, once."""
    case = sent.Case(action, "late", confirm=True)
    orders.offer(case)
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()

    def swallow(_request: site.Request) -> site.Answer:
        """Take nothing of the first, and answer after its browser was hurt."""
        if not arrived.is_set():
            loop.call_soon_threadsafe(arrived.set)
            orders.over.wait(sent.LATE_SECONDS)
            return site.Answer(drop=True)
        orders.taken[case.ref] += 1
        return site.Answer("<!doctype html><title>Done</title>")

    orders.site.answer(f"/order/{case.ref}", swallow)
    tmp_path.joinpath("home").mkdir()
    rig = sent.Live(tmp_path / "home", case.text, inputs={"base": orders.site.origin})
    rig.mode = "own"
    running = asyncio.ensure_future(rig.start())
    async with asyncio.timeout(60):
        await arrived.wait()
    assert rig.session is not None
    for process in (await processes(rig.session))[which]:
        psutil.Process(process).kill()
    ended = await running
    # Where the tab in which the site is asked went down, too, the call stays open and a person is asked.
    if ended.status == "paused":
        assert (ended.question or {})["reason"] == "outcome-unknown"
    else:
        assert (ended.error or {}).get("code") in ("answer-lost", "page-crashed"), (ended, orders.taken[case.ref])
    last = await sent.resumed(rig, [])
    assert (last.status, orders.taken[case.ref]) == ("passed", 1)
