"""An order sent by any action to a site that answers badly arrives at most once, and with ``confirm`` exactly once."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
from typing_extensions import override

from director.bench import tools
from nodes.values import Json
from runtime.agents import page_tools
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.testing import responses, scripted_model
from tests import agents, breadth, browsers, build_contexts, models, sent, site

pytestmark = pytest.mark.drawn(share=0.35, of="sending")


@pytest.fixture(scope="module")
def orders() -> Iterator[sent.Orders]:
    """Serves the site."""
    with sent.serve() as orders:
        yield orders


@pytest.fixture(scope="module", autouse=True)
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """The browser that all runs share."""
    async with browsers.opened(tmp_path_factory.mktemp("kept"), mode="shared") as session:
        yield session


def chosen() -> list[sent.Case]:
    """Every action, and every fault with and without `confirm`; the whole matrix where breadth is whole."""
    if breadth.WHOLE:
        return sent.every()
    faults = itertools.cycle(itertools.product(sent.FAULTS, (False, True)))
    sampled = [sent.Case(action, *next(faults), retry=True) for action in sent.ACTIONS]
    return [*sampled, sent.Case("fetch", "slow", confirm=True, verify=True, retry=True)]


async def test_an_order_is_never_sent_twice(orders: sent.Orders, tmp_path: Path) -> None:
    """The site records no order twice, and with `confirm` each once, for every action and fault."""
    assert sent.wrong(await sent.live_all(chosen(), orders, tmp_path)) == {}


async def test_an_address_that_acts_is_requested_once(
    orders: sent.Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `goto` of class effect requests its address once, even where the machine is so slow that the old page seems to stay."""

    async def stays(_tab: Tab, _loading: object) -> bool:
        await asyncio.sleep(0.2)
        return True

    monkeypatch.setattr(Tab, "_stays", stays)
    cases = [sent.Case("goto", fault, confirm=True, verify=True) for fault in ("error", "lost", "refused", "redirect")]
    assert sent.wrong(await sent.live_all(cases, orders, tmp_path)) == {}


@pytest.mark.parametrize(("confirm", "reason"), [(True, "page-lost"), (False, "redo-unconfirmed")])
async def test_an_address_that_acts_is_not_restored(
    orders: sent.Orders, tmp_path: Path, confirm: bool, reason: str
) -> None:
    """In a new browser a run does not load the page of an address that acts, which would act again: it pauses."""
    case = sent.Case("goto", "error", confirm=confirm)
    rig = sent.begun(case, orders, tmp_path, f"{case.text}  - {{id: read, type: browser_query, query: text, target: {{css: p}}, timeout: 1}}\n")  # fmt: skip
    assert (await rig.start()).path == "read"
    rig.die()
    ended = await rig.resume()
    rig.die()
    assert ended.question is not None
    assert (ended.question["reason"], orders.taken[case.ref]) == (reason, 1)


@pytest.mark.drawn(0)
async def test_a_press_that_counts_as_not_begun_is_detected(orders: sent.Orders, tmp_path: Path) -> None:
    """When a silent call log counts as proof that Enter was not pressed, the order is sent twice and the record shows it."""
    case = sent.Case("press", "late", verify=True)
    with sent.without_proof():
        lived = await sent.live_all([case], orders, tmp_path)
    assert sent.wrong(lived)[str(case)][0].endswith(" orders")


def of_agents() -> list[sent.Case]:
    """Every action of an agent, and every fault with and without `confirm`; a sample where breadth is not whole."""
    actions = [name for name, action in sent.ACTIONS.items() if action.of_agent]
    if breadth.WHOLE:
        return [sent.Case(*each) for each in itertools.product(actions, sent.FAULTS, (False, True))]
    return [
        sent.Case("press", "redirect"),
        sent.Case("click", "failed", confirm=True),
        sent.Case("goto", "late", confirm=True),
    ]


class Honest(agents.Obedient):
    """A model that does not call its work done where its last call failed, as a click does on a machine that is too slow for it."""

    @override
    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        answer = super().__call__(asked)
        failed = self.told and re.search("^(failed|refused): ", self.told[-1], re.MULTILINE)
        ends = len(self.told) >= len(self.calls)
        return scripted_model.call("finish", {"done": False, "note": "it failed"}) if ends and failed else answer


async def test_an_agent_never_sends_an_order_twice(
    orders: sent.Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unanswered action of an agent is not reported as failed to its model: `confirm` or a person decides."""
    monkeypatch.setattr(page_tools, "ACTION_SECONDS", sent.SECONDS)

    async def lived(case: sent.Case) -> sent.Lived:
        with responses.serve(Honest(agents.LOOK, *case.tools)) as server:
            rig = sent.begun(case, orders, tmp_path / str(case), case.of_agent, models.asked_at(server, monkeypatch))
            return await sent.lived(rig, case, orders)

    assert sent.wrong(await sent.side_by_side(of_agents(), lived)) == {}


def of_benches() -> list[sent.Case]:
    """Every action on the bench, and every fault with and without `confirm`; a sample where breadth is not whole."""
    if breadth.WHOLE:
        cases = itertools.product(sent.ACTIONS, sent.FAULTS, (False, True))
        return [sent.Case(*each, retry=True) for each in cases]
    return [sent.Case("press", "late", retry=True), sent.Case("click", "slow", confirm=True, retry=True)]


async def test_a_bench_sends_nothing_twice(orders: sent.Orders, tmp_path: Path) -> None:
    """A node on the bench sends its order once despite `retry`, and reports an unknown outcome; with `confirm` the order arrives."""

    async def tried(case: sent.Case) -> None:
        await try_on_a_bench(case, orders, tmp_path / str(case))

    await sent.side_by_side(of_benches(), tried)


async def try_on_a_bench(case: sent.Case, orders: sent.Orders, folder: Path) -> None:
    """Sends the order of a case by `execute_nodes`, and once more where the site says that it did not arrive."""
    folder.mkdir()
    orders.offer(case)
    text = case.text.replace("{{ inputs.base }}", orders.site.origin).replace("inputs: {base: {type: string}}\n", "")
    build = build_contexts.opened(folder, orders.site.origin, text)
    (folder / "paper.txt").write_text("a paper")
    given: dict[str, Json] = {"nodes": "open..send", "mode": None, "from": None, "item": None, "reason": "to see"}
    try:
        seen = (await build_contexts.call(build, "execute_nodes", [tools.Execute(build, tools.EXECUTE)], **given)).text
        if case.fault == "slow":
            await orders.finished(case.ref)
        if case.confirm and not orders.taken[case.ref]:
            # An order that the site did not receive may be sent again.
            seen += (
                await build_contexts.call(build, "execute_nodes", [tools.Execute(build, tools.EXECUTE)], **given)
            ).text
    finally:
        await build.close()
    assert orders.taken[case.ref] <= 1, seen
    if case.confirm:
        assert orders.taken[case.ref] == 1, seen
    elif case.fault not in ("error", "failed"):
        assert re.search("it is unknown whether|it may have happened|^all done", seen) is not None


async def processes(session: Session) -> dict[str, list[int]]:
    """The process ids of the browser, by type."""
    connection = browsers.connection(session)
    found: dict[str, list[int]] = {"renderer": [], "network": []}
    for each in (await connection.send("SystemInfo.getProcessInfo"))["processInfo"]:
        found.setdefault(each["type"].partition(".")[0], []).append(each["id"])
    return found


@pytest.mark.drawn(1)
@pytest.mark.parametrize("which", ["renderer", "network"])
@pytest.mark.parametrize("action", ["click", "fetch"])
async def test_a_browser_process_dies_during_a_request(
    which: str, action: str, orders: sent.Orders, tmp_path: Path
) -> None:
    """An order lost with the renderer or network process is not taken as done: `confirm` is asked, and it is sent again once."""
    case = sent.Case(action, "late", confirm=True)
    orders.offer(case)
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()

    def swallow(_request: site.Request) -> site.Answer:
        """Drops the first request, and answers those after the browser process was killed."""
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
    # If the confirming tab crashed too, the call stays open and a person is asked.
    if ended.status == "paused":
        assert (ended.question or {})["reason"] == "outcome-unknown"
    else:
        assert (ended.error or {}).get("code") in ("answer-lost", "page-crashed"), (ended, orders.taken[case.ref])
    last = await sent.resumed(rig, [])
    assert (last.status, orders.taken[case.ref]) == ("passed", 1)
