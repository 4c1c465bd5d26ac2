"""The tools of an agent, its endings, and how uncertain actions are resolved: on a fake page, with a scripted model and the real client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.errors import OriginRefused, SiteError
from runtime.log import entries
from runtime.observation import page_text
from runtime.testing import responses, scripted_model
from tests.agent_rig import CONFIRM, PAY, VALUE, Bench, bench, code, done, flow
from tests.agents import LOOK, Obedient, click, fill
from tests.fakes import FakePage


async def test_calls_are_executed_and_the_finish_value_is_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is an engine action with the effect class it has in a file. The output of `finish` is the step's value."""
    model = Obedient(LOOK, fill("Note", "soon"), click("Gift"), click("Pay"), output={"number": "1007"})
    with bench(tmp_path, monkeypatch, model, flow(VALUE)) as on:
        ended = await on.rig.start()
        assert (ended.status, ended.output) == ("passed", {"number": "1007"})
        assert on.site.actions == [PAY]
        assert on.site.records == [{'label="Note"': "soon", 'label="Gift"': "True"}]
        assert on.effects() == {
            "look": "read",
            "fill": "idempotent",
            "check": "idempotent",
            "click": "effect",
            "finish": "read",
        }


async def test_an_output_that_does_not_match_is_returned_for_correction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`output-mismatch`: the model sees what does not match, and continues until the value matches."""
    last: list[str] = []

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        last[:] = asked.outputs.values()
        return scripted_model.call(
            "finish", done({"number": "1007"} if last else None) | ({} if last else {"output": None})
        )

    with bench(tmp_path, monkeypatch, model, flow(VALUE)) as on:
        ended = await on.rig.start()
        assert (ended.status, ended.output, on.errors()) == ("passed", {"number": "1007"}, ["output-mismatch"])
    assert "output-mismatch" in last[0]


async def test_a_finish_before_success_holds_continues_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that finishes too early sees which `success` rule fails, and then does its work."""
    model = Obedient(LOOK, ("finish", done()), click("Pay"))
    text = flow("    success: [{text: paid, target: {css: status}}]\n")
    with bench(tmp_path, monkeypatch, model, text) as on:

        async def paid(_target: str, _page: FakePage) -> None:
            on.site.texts["=css=status"] = "paid"

        on.site.on_click = paid
        ended = await on.rig.start()
        assert (ended.status, on.site.actions, on.errors()) == ("passed", [PAY], ["rule-failed"])
    assert "the work is not done" in model.told[1]


async def test_an_element_whose_name_has_changed_is_not_clicked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ref that names another element than the model saw is refused with `ref-gone`, and nothing is done."""
    model = Obedient(LOOK, click("Pay"), done=False)
    with bench(tmp_path, monkeypatch, model, flow()) as on:
        real = FakePage.look
        looks: list[int] = []

        async def look(self: FakePage, *given: Any) -> Any:
            looks.append(1)
            if len(looks) == 2:
                on.site.texts[""] = on.site.texts[""].replace('"Pay"', '"Delete all"')
            return await real(self, *given)

        monkeypatch.setattr(FakePage, "look", look)
        assert code(await on.rig.start()) == "agent-gave-up"
        assert (on.site.actions, on.errors()) == ([], ["ref-gone"])
    assert "Delete all" in model.told[1]


def test_a_clock_in_a_name_makes_no_other_element() -> None:
    """A button that counts down stays the same element a second later; a button of another order does not."""
    assert page_text.known_by("button", "Pay (00:59)") == page_text.known_by("button", "Pay (00:58)")
    assert page_text.known_by("button", "Send in 10 s") == page_text.known_by("button", "Send in 9 s")
    assert page_text.known_by("button", "Pay 1007") != page_text.known_by("button", "Pay 1008")
    assert page_text.known_by("button", "Pay") != page_text.known_by("link", "Pay")


async def test_an_agent_that_can_only_look_is_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With read-only tools the step has class *read*, and a call of another tool is refused as unknown."""
    model = Obedient(LOOK, click("Pay"), output={"number": "1007"})
    with bench(tmp_path, monkeypatch, model, flow("    tools: [look, read]\n" + VALUE), strict=False) as on:
        ended = await on.rig.start()
        assert (ended.status, on.site.actions, on.errors()) == ("passed", [], ["tool-unknown"])
        assert on.rig.history.attempts["work"][-1].call.effect == "read"


async def test_used_up_turns_end_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `max_turns` requests the step fails with `agent-turns`; tool results announce the last turn."""
    model = Obedient(*[LOOK] * 9)
    with bench(tmp_path, monkeypatch, model, flow("    max_turns: 3\n")) as on:
        ended = await on.rig.start()
        assert (code(ended), ended.costs and ended.costs["requests"]) == ("agent-turns", 3)
        attempt = on.rig.history.attempts["work"][-1]
        reports = [
            each.text
            for each in on.rig.store.read(on.rig.id).entries
            if isinstance(each, entries.ToolResult) and each.thread == entries.model_thread(attempt.call.call)
        ]
    assert [(each or "").partition("\n")[0] for each in reports] == [
        "turn 1 of 3",
        "turn 2 of 3",
        "turn 3 of 3, the last one",
    ]


async def test_a_model_that_only_talks_is_reminded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first answer without a call gets the request to call a tool; a second one fails with `agent-silent`."""
    messages: list[str] = []

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        messages.append(asked.newest)
        return scripted_model.text("I would rather talk.")

    with bench(tmp_path, monkeypatch, model, flow()) as on:
        ended = await on.rig.start()
    assert code(ended) == "agent-silent"
    assert ["Call a tool" in each for each in messages] == [False, True]


async def test_an_answer_without_a_call_is_forgiven_after_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only consecutive answers without a call end the agent."""
    script = [
        scripted_model.text("Well."),
        scripted_model.call("look", LOOK[1]),
        scripted_model.text("Hm."),
        scripted_model.call("finish", done()),
    ]
    with responses.serve(script, strict=True) as server:
        assert (await Bench(tmp_path, monkeypatch, server, flow()).rig.start()).status == "passed"


async def test_a_model_that_gives_up_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`agent-gave-up` has the model's own words, and `success` is not checked."""
    model = Obedient(LOOK, done=False)
    with bench(tmp_path, monkeypatch, model, flow("    success: [{text: paid, target: {css: status}}]\n")) as on:
        ended = await on.rig.start()
    assert (code(ended), on.errors()) == ("agent-gave-up", [])
    assert ended.error is not None
    assert "as I was told" in str(ended.error["message"])


async def test_the_same_call_failing_three_times_ends_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third failure of a call ends the agent with `agent-stuck`, though other calls succeed in between."""
    gone = ("click", {"ref": "e99"})
    model = Obedient(gone, LOOK, gone, LOOK, gone, LOOK)
    with bench(tmp_path, monkeypatch, model, flow()) as on:
        ended = await on.rig.start()
        assert (code(ended), on.errors()) == ("agent-stuck", ["ref-gone"] * 3)
        assert on.site.actions == []


async def test_a_dialog_must_be_answered_before_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model sees the text of the dialog. `look` is refused while it is open, and `dialog` answers it as a side effect."""
    model = Obedient(
        ("dialog", {"accept": True, "text": None}), LOOK, click("Pay"), LOOK, ("dialog", {"accept": True, "text": None})
    )
    with bench(tmp_path, monkeypatch, model, flow()) as on:

        async def ask(_target: str, page: FakePage) -> None:
            page.dialog = "Really pay?"

        on.site.on_click = ask
        assert (await on.rig.start()).status == "passed"
        assert on.site.actions == [PAY, "accept Really pay?"]
        assert on.errors() == ["no-dialog", "dialog-open"]
        assert on.effects()["dialog"] == "effect"
    assert "Really pay?" in model.told[2].partition("[page]")[2]


@pytest.mark.parametrize("shown", ["chrome-error://chromewebdata/", "about:neterror?e=blockedByPolicy"])
async def test_a_page_that_leaves_the_allowed_origins_is_reported_as_refused(
    shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a click leads to a refused origin, the model sees `origin-refused`, not the browser's error page, and returns to its page."""
    model = Obedient(LOOK, click("Pay"))
    with bench(tmp_path, monkeypatch, model, flow()) as on:
        real, left = FakePage.look, list[str]()

        async def look(self: FakePage, *given: Any) -> Any:
            if on.site.actions and not left:
                left.append(self.address)
                self.visited += [self.address, self.address]
                self.address = shown
                self.browser.refused = OriginRefused("origin-refused", "elsewhere is not allowed", phase="after")
            return await real(self, *given)

        monkeypatch.setattr(FakePage, "look", look)
        assert (await on.rig.start()).status == "passed"
    assert "origin-refused" in model.told[1].partition("[page]")[0]
    assert shown not in model.told[1]


async def test_an_agent_stays_in_its_tab_until_it_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model sees the name of a tab that opened. `tab` switches there; for a tab that is not open it is refused."""
    model = Obedient(LOOK, click("Pay"), ("tab", {"name": "tab9"}), ("tab", {"name": "tab2"}), click("Cancel"))
    with bench(tmp_path, monkeypatch, model, flow()) as on:
        where: list[str] = []

        async def opens(_target: str, page: FakePage) -> None:
            tabs = page.browser.tabs
            where.append(next(name for name, each in tabs.open_ones.items() if each is page))
            if "tab2" not in tabs.open_ones:
                tabs.add("tab2")
                tabs.unnamed.append("tab2")

        on.site.on_click = opens
        assert (await on.rig.start()).status == "passed"
        assert (where, on.errors()) == (["main", "tab2"], ["tab-closed"])
    assert "a tab opened, called tab2" in model.told[1].partition("[page]")[0]


# Actions whose outcome is unknown.


def lost(on: Bench, *, then: str | None = None) -> None:
    """The first click reaches the site but its answer is lost; after another click the site says `then`."""
    tries: list[str] = []

    async def lose(target: str, _page: FakePage) -> None:
        tries.append(target)
        if len(tries) == 1:
            raise SiteError("answer-lost", "nobody knows", phase="after")
        if then is not None:
            on.site.texts["css=paid"] = then

    on.site.on_click = lose


class Closing:
    """Clicks Pay; where it sees that the goal is reached, it tries to pay again, looks, and finishes."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The next answer."""
        thread = " ".join(scripted_model.text_of(item) for item in asked.items)
        outputs = list(asked.outputs.values())
        if "goal was reached" not in thread:
            return Obedient(LOOK, click("Pay"), output={"number": "1007"})(asked)
        since = thread.partition("goal was reached")[2]
        self.told = outputs
        if "turn" not in since:
            return scripted_model.call("look", LOOK[1])
        if "goal-reached" not in since:
            return scripted_model.call("click", {"ref": "e1"})
        return scripted_model.call("finish", done({"number": "1007"}))


async def test_a_confirmed_goal_only_asks_for_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `confirm` says done after a lost answer, the conversation only returns its value: `look` works, another action is refused."""
    model = Closing()
    with bench(tmp_path, monkeypatch, model, flow(VALUE + CONFIRM)) as on:
        lost(on)
        on.site.texts["css=paid"] = "yes"
        ended = await on.rig.start()
        assert (ended.status, ended.output) == ("passed", {"number": "1007"})
        assert (on.site.actions, on.errors()) == ([PAY], ["goal-reached"])
        assert on.rig.calls("work") == ["interrupted done", "ok"]


async def test_after_a_confirmed_goal_only_side_effects_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the way to the value a field may still be filled, but no side effect happens."""

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        thread = " ".join(scripted_model.text_of(item) for item in asked.items)
        if "goal was reached" not in thread:
            return Obedient(LOOK, click("Pay"))(asked)
        return Obedient(LOOK, fill("Note", "1007"), output={"number": "1007"})(asked)

    with bench(tmp_path, monkeypatch, model, flow(VALUE + CONFIRM)) as on:
        lost(on)
        on.site.texts["css=paid"] = "yes"
        ended = await on.rig.start()
        assert (ended.status, on.errors(), on.site.actions) == ("passed", [], [PAY])
        assert "fill" in on.effects()


async def test_a_confirmed_goal_without_a_value_ends_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `confirm` says done and no value is needed, the step is recovered without another model request."""
    with bench(tmp_path, monkeypatch, Obedient(LOOK, click("Pay")), flow(CONFIRM)) as on:
        lost(on)
        on.site.texts["css=paid"] = "yes"
        ended = await on.rig.start()
        assert (ended.status, ended.output, on.rig.calls("work")) == ("passed", None, ["recovered"])
        assert on.site.actions == [PAY]
        assert ended.costs is not None
        assert ended.costs["requests"] == 2


async def test_a_denied_goal_is_an_error_and_a_retry_begins_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If `confirm` says not done, the attempt fails with the lost answer, and the next one performs the action."""
    text = flow(CONFIRM + "    retry: {attempts: 2, delay: 0}\n")
    with bench(tmp_path, monkeypatch, Obedient(LOOK, click("Pay")), text) as on:
        lost(on, then="yes")
        ended = await on.rig.start()
        assert (ended.status, on.rig.calls("work")) == ("passed", ["error not-done", "ok"])
        assert on.site.actions == [PAY, PAY]


@pytest.mark.parametrize("clicks", [1, 2])
async def test_a_finish_that_confirm_denies_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clicks: int
) -> None:
    """If `confirm` denies `finish`, the model sees that and may continue. The step passes once the site has the action, and fails otherwise."""
    given = [LOOK, click("Pay"), ("finish", done()), click("Pay")][: 2 * clicks]
    with bench(tmp_path, monkeypatch, Obedient(*given), flow(CONFIRM)) as on:

        async def take_the_second(_target: str, _page: FakePage) -> None:
            on.site.texts["css=paid"] = "no" if len(on.site.actions) == 1 else "yes"

        on.site.on_click = take_the_second
        ended = await on.rig.start()
        assert on.site.actions == [PAY] * clicks
        assert set(on.errors()) == {"goal-denied"}
        assert (ended.status, code(ended) if clicks == 1 else None) == (
            ("failed", "agent-stuck") if clicks == 1 else ("passed", None)
        )


@pytest.mark.parametrize("looks", [True, False])
async def test_an_agent_without_actions_needs_no_confirm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    """An agent that at most looked finishes without `confirm`, since no action can be missing."""
    with bench(tmp_path, monkeypatch, Obedient(*([LOOK] if looks else [])), flow(CONFIRM)) as on:
        ended = await on.rig.start()
        assert (ended.status, on.errors(), on.rig.calls("work/confirm/asked")) == ("passed", [], [])


async def test_a_denied_goal_fails_where_no_attempt_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `retry` the run fails with the lost answer."""
    with bench(tmp_path, monkeypatch, Obedient(LOOK, click("Pay")), flow(CONFIRM)) as on:
        lost(on)
        ended = await on.rig.start()
        assert (code(ended), on.rig.calls("work"), on.site.actions) == ("answer-lost", ["error not-done"], [PAY])


@pytest.mark.parametrize("confirm", ["", CONFIRM])
async def test_an_unknown_outcome_asks_a_person_about_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confirm: str
) -> None:
    """Without a working `confirm` the run pauses at the agent's path, and the question lists its actions."""
    with bench(tmp_path, monkeypatch, Obedient(LOOK, click("Pay")), flow(confirm)) as on:
        lost(on)
        on.rig.missing = {"css=paid"}
        ended = await on.rig.start()
        assert (ended.status, on.site.actions) == ("paused", [PAY])
        assert ended.question is not None
        evidence: Any = ended.question["evidence"]
        assert (ended.question["path"], [each["action"] for each in evidence["actions"]]) == ("work", ["click"])
