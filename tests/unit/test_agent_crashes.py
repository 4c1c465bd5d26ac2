"""An agent after a crash: whether its browser survives, how far it came, and how its actions are resolved."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Literal

import pytest

from nodes.pointer import PLAIN, Stroke
from runtime.log.store import file_store
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from runtime.testing import scripted_model
from runtime.workspace import run_index
from tests.agent_rig import CONFIRM, PAY, VALUE, Bench, bench, done, flow
from tests.agents import LOOK
from tests.fakes import FakePage
from tests.now import now
from tests.rig import Killed

Moment = Literal["asked", "looked", "opened", "finished", "reported"]
"""When the process dies: before a tool ran, before, in or after the action, or after the model saw the result."""

Site = Literal["done", "not-done", "fails", "none"]
"""The answer of the agent's `confirm`; ``fails``: it cannot tell; ``none``: there is no `confirm`."""

FINISH = done({"number": "1007"})


class Careless:
    """Looks, clicks, looks and finishes; where it sees that the site denies the click, it clicks again."""

    def __init__(self, output: bool) -> None:
        self._end = FINISH if output else done()

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """Returns the next answer."""
        if "goal was reached" in " ".join(scripted_model.text_of(item) for item in asked.items):
            return scripted_model.call("finish", self._end)
        results = asked.outputs
        calls = [each for each in asked.items if each.get("type") == "function_call"]
        denied = [n for n, each in enumerate(calls) if "goal-denied" in results[each["call_id"]]]
        calls = calls[max(denied) + 1 :] if denied else calls
        clicked = [n for n, each in enumerate(calls) if each["name"] == "click" and "done" in results[each["call_id"]]]
        if clicked:
            return (
                scripted_model.call(*LOOK) if clicked == [len(calls) - 1] else scripted_model.call("finish", self._end)
            )
        latest = results[calls[-1]["call_id"]] if calls else ""
        return scripted_model.call("click", {"ref": "e1"}) if "[ref=e1]" in latest else scripted_model.call(*LOOK)


class Dying(FakePage):
    """A page on which the process can die, with or without its browser."""

    moment: Moment | None = None
    looks = 0

    def dies_at(self, moment: Moment) -> None:
        """Dies once, if this is the moment."""
        if Dying.moment == moment:
            Dying.moment = None
            raise Killed

    async def look(self, target: Any = None, *, settle: float = 2.0) -> Any:
        Dying.looks += 1
        moments: dict[int, Moment] = {1: "asked", 2: "looked", 3: "finished"}
        self.dies_at(moments.get(Dying.looks, "reported"))
        return await super().look(target)

    def pointed(self, ref: str) -> Any:
        self.dies_at("looked")
        return super().pointed(ref)

    async def click(self, target: Any, how: Stroke = PLAIN) -> None:
        await super().click(target, how)
        self.dies_at("opened")


async def killed(on: Bench, moment: Moment, *, survives: bool) -> None:
    """Starts the run, which dies at that moment."""
    on.site.page, Dying.moment, Dying.looks = Dying, moment, 0
    with pytest.raises(Killed):
        await on.rig.start()
    assert len(on.site.actions) == (moment in ("opened", "finished", "reported"))
    on.rig.die(browser_survives=survives)


def says(on: Bench, site: Site) -> None:
    """Sets the answer of the site."""
    on.site.texts["css=paid"] = "yes" if site == "done" else "no"
    on.rig.missing = {"css=paid"} if site == "fails" else set()
    if on.rig.survivor is not None:
        on.rig.survivor.missing |= on.rig.missing


def takes_clicks(on: Bench) -> None:
    """From now on the site records clicks."""

    async def take(_target: str, _page: FakePage) -> None:
        on.site.texts["css=paid"] = "yes"

    on.site.on_click = take


def expected(moment: Moment, survives: bool, site: Site) -> Literal["resumes", "afresh", "done", "asks"]:
    """The promise: the conversation resumes, a new one begins, the work is done, or a person is asked."""
    if site == "fails":
        return "asks"
    if survives and moment != "opened":
        return "resumes"
    if moment in ("asked", "looked"):
        return "afresh"
    return {"done": "done", "not-done": "afresh", "none": "asks"}[site]  # type: ignore[return-value]


CELLS = [
    (moment, survives, site)
    for moment, survives, site in itertools.product(
        ("asked", "looked", "opened", "finished", "reported"), (True, False), ("done", "not-done", "fails", "none")
    )
]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("output", [True, False], ids=["value", "no value"])
@pytest.mark.parametrize(("moment", "survives", "site"), CELLS)
async def test_after_a_crash_an_action_is_repeated_only_if_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: Moment, survives: bool, site: Site, output: bool
) -> None:
    """The conversation resumes, begins afresh, ends or asks a person. A second click happens only if the site denies the first."""
    text = flow((VALUE if output else "") + ("" if site == "none" else CONFIRM))
    with bench(tmp_path, monkeypatch, Careless(output), text) as on:
        await killed(on, moment, survives=survives)
        says(on, site)
        takes_clicks(on)
        outcome = expected(moment, survives, site)
        before = len(on.site.actions)
        ended = await on.rig.resume()
        if outcome == "asks":
            assert ended.status == "paused"
            assert ended.question is not None
            assert (ended.question["path"], on.site.actions) == ("work", [PAY])
            return
        assert (ended.status, ended.output) == ("passed", {"number": "1007"} if output else None)
        denied = before if site == "not-done" else 0
        clicks = {"resumes": 1 + denied, "done": before, "afresh": before + 1}[outcome]
        assert on.site.actions == [PAY] * clicks
        first, *later = on.rig.history.attempts["work"]
        assert first.result is not None
        if outcome == "resumes":
            assert [each.call.again for each in later] == [first.call.call]
        elif outcome == "afresh":
            assert [each.call.again for each in later] == [None]
        else:
            assert on.rig.calls("work") == (["interrupted done", "ok"] if output else on.rig.calls("work")[:1])


@pytest.mark.drawn(4)
@pytest.mark.parametrize("output", [True, False], ids=["value", "no value"])
@pytest.mark.parametrize("verdict", ["done", "not-done", "skip"])
@pytest.mark.parametrize("site", ["fails", "none"])
@pytest.mark.parametrize(
    ("moment", "survives"), [("opened", True), ("opened", False), ("finished", False), ("reported", False)]
)
async def test_the_verdict_of_a_person_about_an_agent_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: Moment,
    survives: bool,
    site: Site,
    verdict: run_index.Verdict,
    output: bool,
) -> None:
    """`done` performs nothing more and asks only for a needed value. `not-done` begins afresh. `skip` gives no value."""
    text = flow((VALUE if output else "") + ("" if site == "none" else CONFIRM))
    with bench(tmp_path, monkeypatch, Careless(output), text) as on:
        await killed(on, moment, survives=survives)
        says(on, site)
        assert (await on.rig.resume()).status == "paused"
        on.rig.die()
        now(run_index.decide(file_store.FileStore(on.rig.home), on.rig.id, verdict))
        on.rig.missing = set()
        takes_clicks(on)
        asked = on.requests
        ended = await on.rig.resume()
        value = {"number": "1007"} if output and verdict != "skip" else None
        assert (ended.status, ended.output) == ("passed", value)
        assert on.site.actions == [PAY] * (2 if verdict == "not-done" else 1)
        if verdict == "skip" or (verdict == "done" and not output):
            assert on.requests == asked


@pytest.mark.parametrize("survives", [True, False])
async def test_a_goal_that_the_surviving_page_shows_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: bool
) -> None:
    """If `success` newly holds on a surviving page after a crash in an action, the goal is reached; a new page proves nothing."""
    text = flow(VALUE + "    success: [{text: paid, target: {css: status}}]\n")
    with bench(tmp_path, monkeypatch, Careless(True), text) as on:
        await killed(on, "opened", survives=survives)
        on.site.texts["=css=status"] = "paid"
        ended = await on.rig.resume()
        assert (ended.status, on.site.actions) == ("passed" if survives else "paused", [PAY])


@pytest.mark.parametrize("survives", [True, False])
@pytest.mark.parametrize("moment", ["opened", "finished"])
async def test_an_agent_whose_actions_may_be_repeated_begins_afresh_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: Moment, survives: bool
) -> None:
    """With `effect: idempotent` no question is asked after a crash, and actions may be repeated."""
    with bench(tmp_path, monkeypatch, Careless(True), flow(VALUE + "    effect: idempotent\n")) as on:
        await killed(on, moment, survives=survives)
        ended = await on.rig.resume()
        assert (ended.status, ended.output) == ("passed", {"number": "1007"})
        assert on.effects()["click"] == "idempotent"
        assert on.site.actions == [PAY] * (1 if survives and moment == "finished" else 2)


@pytest.mark.parametrize("survives", [True, False])
async def test_a_conversation_resumes_only_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: bool
) -> None:
    """An agent begins afresh in a new browser, even as the first step, where no state was restored."""
    first, _open, rest = flow(VALUE).partition(
        '  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}\n'
    )
    with bench(tmp_path, monkeypatch, Careless(True), first + rest) as on:
        await killed(on, "looked", survives=survives)
        ended = await on.rig.resume()
        assert (ended.status, ended.output, on.site.actions) == ("passed", {"number": "1007"}, [PAY])
        died, later = on.rig.history.attempts["work"]
        assert later.call.again == (died.call.call if survives else None)


async def test_a_crash_after_a_verdict_asks_no_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the log has the action as done and the browser survives, only the value is asked for."""
    with bench(tmp_path, monkeypatch, Careless(True), flow(VALUE + CONFIRM)) as on:
        await killed(on, "opened", survives=True)
        says(on, "done")

        def die(point: CrashPoint) -> None:
            if point == CrashPoint.RECONCILED:
                raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(crash_points, "hook", die)
            with pytest.raises(Killed):
                await on.rig.resume()
        on.rig.die(browser_survives=True)
        ended = await on.rig.resume()
        assert (ended.status, ended.output, on.site.actions) == ("passed", {"number": "1007"}, [PAY])
