"""What an agent may do and is told, how it ends, and what is found out about its actions: on a fake page, with a model behind the real client."""

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


async def test_what_it_asks_for_is_done_and_its_value_is_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is an action of the engine's own, with the class that it would have in a file; the value is that of `finish`."""
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


async def test_a_value_that_does_not_fit_is_told_and_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`output-mismatch`: the model is told what does not fit, and the work continues until it does."""
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


async def test_a_goal_that_the_page_does_not_show_is_told_and_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model says that it is done before it has done anything; it is told which rule does not hold, and then does its work."""
    model = Obedient(LOOK, ("finish", done()), click("Pay"))
    text = flow("    success: [{text: paid, target: {css: status}}]\n")
    with bench(tmp_path, monkeypatch, model, text) as on:

        async def paid(_target: str, _page: FakePage) -> None:
            on.site.texts["=css=status"] = "paid"

        on.site.on_click = paid
        ended = await on.rig.start()
        assert (ended.status, on.site.actions, on.errors()) == ("passed", [PAY], ["rule-failed"])
    assert "the work is not done" in model.told[1]


async def test_an_element_that_is_called_otherwise_by_now_is_not_clicked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script may give a button another meaning, or a frame another document in which the ref is another element's: the model is told, and nothing is done."""
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
    """A button that counts down is the same one a second later; one of another order is not."""
    assert page_text.known_by("button", "Pay (00:59)") == page_text.known_by("button", "Pay (00:58)")
    assert page_text.known_by("button", "Send in 10 s") == page_text.known_by("button", "Send in 9 s")
    assert page_text.known_by("button", "Pay 1007") != page_text.known_by("button", "Pay 1008")
    assert page_text.known_by("button", "Pay") != page_text.known_by("link", "Pay")


async def test_an_agent_that_can_only_look_is_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tools that leave the site as it is, the step has class *read*, and an action that it asks for all the same is none of its tools."""
    model = Obedient(LOOK, click("Pay"), output={"number": "1007"})
    with bench(tmp_path, monkeypatch, model, flow("    tools: [look, read]\n" + VALUE), strict=False) as on:
        ended = await on.rig.start()
        assert (ended.status, on.site.actions, on.errors()) == ("passed", [], ["tool-unknown"])
        assert on.rig.history.attempts["work"][-1].call.effect == "read"


async def test_turns_that_are_used_up_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`agent-turns`, after as many requests as `max_turns` says; the model was told of the last one."""
    model = Obedient(*[LOOK] * 9)
    with bench(tmp_path, monkeypatch, model, flow("    max_turns: 3\n")) as on:
        ended = await on.rig.start()
        assert (code(ended), ended.costs and ended.costs["requests"]) == ("agent-turns", 3)
        attempt = on.rig.history.attempts["work"][-1]
        told = [
            each.text
            for each in on.rig.store.read(on.rig.id).entries
            if isinstance(each, entries.ToolResult) and each.thread == entries.model_thread(attempt.call.call)
        ]
    assert [(each or "").partition("\n")[0] for each in told] == [
        "turn 1 of 3",
        "turn 2 of 3",
        "turn 3 of 3, the last one",
    ]


async def test_a_model_that_only_talks_is_told_once_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`agent-silent` after two answers without a call; after the first one it is told to call a tool."""
    heard: list[str] = []

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        heard.append(asked.newest)
        return scripted_model.text("I would rather talk.")

    with bench(tmp_path, monkeypatch, model, flow()) as on:
        ended = await on.rig.start()
    assert code(ended) == "agent-silent"
    assert ["Call a tool" in each for each in heard] == [False, True]


async def test_a_silence_between_calls_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only answers in a row without a call are too many."""
    said = [
        scripted_model.text("Well."),
        scripted_model.call("look", LOOK[1]),
        scripted_model.text("Hm."),
        scripted_model.call("finish", done()),
    ]
    with responses.serve(said, strict=True) as server:
        assert (await Bench(tmp_path, monkeypatch, server, flow()).rig.start()).status == "passed"


async def test_a_model_that_gives_up_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`agent-gave-up`, with the model's own words; rules of `success` are not looked at."""
    model = Obedient(LOOK, done=False)
    with bench(tmp_path, monkeypatch, model, flow("    success: [{text: paid, target: {css: status}}]\n")) as on:
        ended = await on.rig.start()
    assert (code(ended), on.errors()) == ("agent-gave-up", [])
    assert ended.error is not None
    assert "as I was told" in str(ended.error["message"])


async def test_the_same_call_failing_three_times_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`agent-stuck` at the third failure, though other calls went right between them."""
    gone = ("click", {"ref": "e99"})
    model = Obedient(gone, LOOK, gone, LOOK, gone, LOOK)
    with bench(tmp_path, monkeypatch, model, flow()) as on:
        ended = await on.rig.start()
        assert (code(ended), on.errors()) == ("agent-stuck", ["ref-gone"] * 3)
        assert on.site.actions == []


async def test_a_dialog_must_be_answered_before_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is told what the dialog says; a look is refused while it is open, and `dialog` answers it, as a side effect."""
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


async def test_a_page_that_leaves_while_it_is_looked_at_is_told_as_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site leads elsewhere behind a click, and Chromium's own page is there by the time of the look: the model is told that it was refused, and is back on the page where it worked."""
    model = Obedient(LOOK, click("Pay"))
    with bench(tmp_path, monkeypatch, model, flow()) as on:
        real, left = FakePage.look, list[str]()

        async def look(self: FakePage, *given: Any) -> Any:
            if on.site.actions and not left:
                left.append(self.address)
                self.visited += [self.address, self.address]
                self.address = "chrome-error://chromewebdata/"
                self.browser.refused = OriginRefused("origin-refused", "elsewhere is not allowed", phase="after")
            return await real(self, *given)

        monkeypatch.setattr(FakePage, "look", look)
        assert (await on.rig.start()).status == "passed"
    assert "origin-refused" in model.told[1].partition("[page]")[0]
    assert "chrome-error" not in model.told[1]


async def test_it_stays_in_its_tab_until_it_goes_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of a tab that opened, in our own words; `tab` goes there, and to one that is not open it does not."""
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


# An action of which nobody knows what became.


def lost(on: Bench, *, then: str | None = None) -> None:
    """The first click reaches the site, and its answer is lost; what the site says is paid once another one has come."""
    tries: list[str] = []

    async def lose(target: str, _page: FakePage) -> None:
        tries.append(target)
        if len(tries) == 1:
            raise SiteError("answer-lost", "nobody knows", phase="after")
        if then is not None:
            on.site.texts["css=paid"] = then

    on.site.on_click = lose


class Closing:
    """Pays; where it is told that the goal is reached, it tries to pay once more, looks, and finishes."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The next answer."""
        said = " ".join(scripted_model.text_of(item) for item in asked.items)
        outputs = list(asked.outputs.values())
        if "goal was reached" not in said:
            return Obedient(LOOK, click("Pay"), output={"number": "1007"})(asked)
        since = said.partition("goal was reached")[2]
        self.told = outputs
        if "turn" not in since:
            return scripted_model.call("look", LOOK[1])
        if "goal-reached" not in since:
            return scripted_model.call("click", {"ref": "e1"})
        return scripted_model.call("finish", done({"number": "1007"}))


async def test_a_goal_that_the_site_says_is_reached_is_asked_for_its_value_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The action's answer is lost, `confirm` says done: the conversation gives its value, a look works, another action is refused."""
    model = Closing()
    with bench(tmp_path, monkeypatch, model, flow(VALUE + CONFIRM)) as on:
        lost(on)
        on.site.texts["css=paid"] = "yes"
        ended = await on.rig.start()
        assert (ended.status, ended.output) == ("passed", {"number": "1007"})
        assert (on.site.actions, on.errors()) == ([PAY], ["goal-reached"])
        assert on.rig.calls("work") == ["interrupted done", "ok"]


async def test_in_closing_what_no_one_counts_is_still_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused are side effects; a field may still be filled on the way to the value."""

    def model(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        said = " ".join(scripted_model.text_of(item) for item in asked.items)
        if "goal was reached" not in said:
            return Obedient(LOOK, click("Pay"))(asked)
        return Obedient(LOOK, fill("Note", "1007"), output={"number": "1007"})(asked)

    with bench(tmp_path, monkeypatch, model, flow(VALUE + CONFIRM)) as on:
        lost(on)
        on.site.texts["css=paid"] = "yes"
        ended = await on.rig.start()
        assert (ended.status, on.errors(), on.site.actions) == ("passed", [], [PAY])
        assert "fill" in on.effects()


async def test_a_goal_without_a_value_is_over_once_the_site_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`confirm` says done, and nothing is wanted: the step is recovered, and no model is asked again."""
    with bench(tmp_path, monkeypatch, Obedient(LOOK, click("Pay")), flow(CONFIRM)) as on:
        lost(on)
        on.site.texts["css=paid"] = "yes"
        ended = await on.rig.start()
        assert (ended.status, ended.output, on.rig.calls("work")) == ("passed", None, ["recovered"])
        assert on.site.actions == [PAY]
        assert ended.costs is not None
        assert ended.costs["requests"] == 2


async def test_a_goal_that_the_site_denies_is_an_error_and_a_retry_begins_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`confirm` says not done, twice: the attempt has failed with the lost answer, and the next one does the action."""
    text = flow(CONFIRM + "    retry: {attempts: 2, delay: 0}\n")
    with bench(tmp_path, monkeypatch, Obedient(LOOK, click("Pay")), text) as on:
        lost(on, then="yes")
        ended = await on.rig.start()
        assert (ended.status, on.rig.calls("work")) == ("passed", ["error not-done", "ok"])
        assert on.site.actions == [PAY, PAY]


@pytest.mark.parametrize("clicks", [1, 2])
async def test_a_model_is_not_believed_where_the_site_does_not_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clicks: int
) -> None:
    """It says that it is done, and `confirm` says that nothing came: it is told so and continues, and ends once the site has it; else the step fails."""
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
async def test_an_agent_that_did_nothing_is_not_held_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    """Where it only looked, `confirm` is not asked: there is nothing that could be missing."""
    with bench(tmp_path, monkeypatch, Obedient(*([LOOK] if looks else [])), flow(CONFIRM)) as on:
        ended = await on.rig.start()
        assert (ended.status, on.errors(), on.rig.calls("work/confirm/asked")) == ("passed", [], [])


async def test_a_goal_that_the_site_denies_fails_where_no_attempt_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `retry` the run fails with the lost answer."""
    with bench(tmp_path, monkeypatch, Obedient(LOOK, click("Pay")), flow(CONFIRM)) as on:
        lost(on)
        ended = await on.rig.start()
        assert (code(ended), on.rig.calls("work"), on.site.actions) == ("answer-lost", ["error not-done"], [PAY])


@pytest.mark.parametrize("confirm", ["", CONFIRM])
async def test_where_nobody_knows_a_person_is_asked_about_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confirm: str
) -> None:
    """Without a `confirm`, or where it fails, the run pauses at the agent's own path, and the question lists its actions."""
    with bench(tmp_path, monkeypatch, Obedient(LOOK, click("Pay")), flow(confirm)) as on:
        lost(on)
        on.rig.missing = {"css=paid"}
        ended = await on.rig.start()
        assert (ended.status, on.site.actions) == ("paused", [PAY])
        assert ended.question is not None
        evidence: Any = ended.question["evidence"]
        assert (ended.question["path"], [each["action"] for each in evidence["actions"]]) == ("work", ["click"])
