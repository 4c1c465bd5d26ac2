"""Scouting: looks and actions beside the workflow, in a real browser, each action a run of its own that is asked for, held, masked and logged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from director.conversation import reply
from director.scouting import scout, tools
from director.tools.build_context import BuildContext
from nodes.errors import ModelError
from nodes.values import Json
from runtime.browser import shared
from runtime.context import window
from runtime.log import entries
from runtime.messages.messages import Answer, Request
from runtime.models.client.errors import Failed
from runtime.models.turns import turn
from runtime.workspace import run_index
from tests import build_contexts, site, talks

pytestmark = pytest.mark.drawn(share=0.7, of="scouting")

SECRET = "correct-horse-battery"

PAGE = """<!doctype html><title>Stock</title><nav aria-label=Main><a href=/stock>Stock of the shop</a> <a href=/other>Other things</a> <a href=/broken>Broken</a></nav>
<h1>Stock</h1>
<label>Search <input name=q></label><label>Password <input type=password id=p></label>
<label>Size <select><option>S<option>M<option>L</select></label><label><input type=checkbox> Gift</label>
<button onclick="said.textContent='Sold: ' + document.querySelector('[name=q]').value">Sell</button>
<button onclick="said.textContent=confirm('Really?') ? 'Yes' : 'No'">Ask</button>
<button onclick="this.textContent='Gone'; fetch('/counted', {method: 'POST'})">Pay</button>
<button>{{ secrets.PASSWORD }}</button><div id=arm onclick="this.textContent='Hit'">Arm</div>
<a href=/other target=_blank>Other</a><a href="/stock?page=2">Next</a><a href=/broken>Broken</a>
<p id=said></p><p>correct-horse-battery</p>"""


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A small site."""
    with site.serve() as served:
        served.page("/stock", PAGE)
        served.page("/other", "<!doctype html><title>Other</title><p>Hello</p>")
        served.answer("/counted", lambda _request: site.Answer("ok"))
        served.answer("/broken", lambda _request: site.Answer("<!doctype html><h1>Oops</h1>", status=500))
        yield served


@pytest.fixture(scope="module")
async def shop(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BuildContext]:
    """One build for all of them, whose actions are all done."""
    made = build_contexts.opened(tmp_path_factory.mktemp("build"), f"{served.origin}/stock", known={"PASSWORD": SECRET})
    yield made
    await made.close()


async def call(shop: BuildContext, tool: str, /, **arguments: Json) -> turn.Outcome:
    """What a tool answers; what is not given is null, and the reason is one."""
    toolsets = tools.toolsets(shop)
    fields = next(each.tool for each in toolsets if each.tool.name == tool).parameters["properties"]
    given = {each: "to look around" if each == "reason" else None for each in fields}
    return await build_contexts.call(shop, tool, toolsets, **{**given, **arguments})


async def fresh(shop: BuildContext) -> str:
    """The page, loaded anew; what is told of it."""
    return (await call(shop, "debug_navigate", url="/stock")).text


def ref(told: str, line: str) -> str:
    """The ref on a line that begins so."""
    (found,) = [each for each in told.split("\n") if each.strip().startswith(line)]
    return found.partition("[ref=")[2].partition("]")[0]


async def act(shop: BuildContext, action: str, at: str | None = None, value: str | None = None) -> turn.Outcome:
    """An action on the page."""
    return await call(shop, "debug_action", action=action, ref=at, value=value)


def last_run(shop: BuildContext) -> Any:
    """What the last action's run has done."""
    run = list(shop.writer.history.runs_of.values())[-1][-1]
    return run_index.load_history(shop.here.reader, run)[0]


async def test_actions_are_runs_and_what_they_changed_is_told(shop: BuildContext, served: site.Site) -> None:
    """Each action is a step of a run of its own with the class that it would have in a file; told is the change, and not the page again."""
    seen = await fresh(shop)
    assert 'button "Sell"' in seen
    for action, line, value in (("fill", 'textbox "Search"', "tea"), ("select", 'combobox "Size"', "M")):
        outcome = await act(shop, action, ref(seen, line), value)
        assert outcome.error is None
        assert "button" not in outcome.text
    assert last_run(shop).header.parent == shop.writer.conversation.id
    sold = await act(shop, "click", ref(seen, 'button "Sell"'))
    assert "Sold: tea" in sold.text
    assert [each.call.effect for each in last_run(shop).all_attempts()] == ["effect"]
    gift = await act(shop, "click", ref(seen, "checkbox"))
    assert [each.call.action for each in last_run(shop).all_attempts()] == ["check"]
    assert "checked" in gift.text
    assert shop.writer.history.open_runs == {}


async def test_a_secret_is_typed_by_its_name_and_shown_nowhere(shop: BuildContext, served: site.Site) -> None:
    """The field has it, no log and no telling does; a page that calls a button like a reference makes nobody read one; elsewhere it is refused."""
    seen = await fresh(shop)
    typed = await act(shop, "fill", ref(seen, 'textbox "Password"'), "{{ secrets.PASSWORD }}")
    assert typed.error is None
    page = observer_of(shop).page("scout").page
    assert await page.locator("#p").input_value() == SECRET
    clicked = await act(shop, "click", ref(seen, 'button "{{ secrets'))
    assert clicked.error is None or "secret" not in clicked.error["code"]
    for refused in (
        await act(shop, "fill", ref(seen, 'textbox "Search"'), "{{ secrets.OTHER }}"),
        await act(shop, "press", None, "{{ secrets.PASSWORD }}"),
        await call(shop, "debug_navigate", url="/stock?p={{ secrets.PASSWORD }}"),
    ):
        assert refused.error is not None
    everything = [seen, typed.text, clicked.text, (await call(shop, "inspect_tab")).text]
    assert [each for each in everything if SECRET in each] == []
    written = [each for each in shop.here.settings.home.rglob("*") if each.is_file() and "private" not in each.parts]
    assert [each for each in written if SECRET.encode() in each.read_bytes()] == []


async def test_an_element_that_became_another_is_not_touched(shop: BuildContext, served: site.Site) -> None:
    """`ref-gone` for one that is called otherwise, is of a page that is left, or was never shown; told is what the page shows now."""
    before = sum(each.path == "/counted" for each in served.requests)
    seen = await fresh(shop)
    pay = ref(seen, 'button "Pay"')
    await act(shop, "click", pay)
    again = await act(shop, "click", pay)
    assert again.error is not None
    assert again.error["code"] == "ref-gone"
    await fresh(shop)
    for other in (pay, "e999"):
        outcome = await act(shop, "click", other)
        assert outcome.error is not None
        assert outcome.error["code"] == "ref-gone"
    assert sum(each.path == "/counted" for each in served.requests) == before + 1


async def test_an_element_that_a_script_changed_or_nobody_was_shown_is_not_touched(
    shop: BuildContext, served: site.Site
) -> None:
    """What keeps its ref and is called otherwise by now, and what has come since the last telling: the ref alone makes nobody touch it."""
    arm = ref(await fresh(shop), 'clickable "Arm"')
    tab = observer_of(shop).page("scout")
    await tab.page.evaluate("arm.textContent = 'Delete all'")
    renamed = await act(shop, "click", arm)
    await tab.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<button>New</button>')")
    view = await tab.look()
    unseen = await act(shop, "click", next(each for each in view.refs if view.element(each).name == "New"))
    for outcome, word in ((renamed, "Delete all"), (unseen, "New")):
        assert outcome.error is not None
        assert outcome.error["code"] == "ref-gone"
        assert word in outcome.text
    assert await tab.page.evaluate("arm.textContent") == "Delete all"


async def test_a_dialog_is_told_and_answered(shop: BuildContext, served: site.Site) -> None:
    """It stands in the way of everything else, in words that say how to answer it."""
    seen = await fresh(shop)
    asked = await act(shop, "click", ref(seen, 'button "Ask"'))
    assert "Really?" in asked.text
    assert "debug_action" in asked.text
    blocked = await act(shop, "fill", ref(seen, 'textbox "Search"'), "x")
    assert blocked.error is not None
    assert blocked.error["code"] == "dialog-open"
    answered = await act(shop, "dialog", None, "accept")
    assert "Yes" in answered.text


async def test_tabs_open_and_close_by_name(shop: BuildContext, served: site.Site) -> None:
    """A tab that a click opens gets a name; one that is asked for has its own; a closed one is not offered any more."""
    seen = await fresh(shop)
    opened = await act(shop, "click", ref(seen, 'link "Other"'))
    assert "a tab opened, called tab2" in opened.text
    assert "Hello" in (await call(shop, "inspect_tab", tab="tab2")).text
    more = await call(shop, "debug_open_tab", name="third", url="/stock?page=2")
    assert 'button "Sell"' in more.text
    assert [each.name for each in observer_of(shop).tabs()] == ["main", "tab2", "third"]
    assert [each.name for each in observer_of(shop).tabs() if each.current] == ["third"]
    for name in ("tab2", "third"):
        closed = await call(shop, "debug_close_tab", name=name)
        assert closed.error is None
    gone = await call(shop, "inspect_tab", tab="tab2")
    assert gone.error is not None
    assert "main" in str(gone.error["fix"])


async def test_a_page_is_shown_once_and_then_what_changed(shop: BuildContext, served: site.Site) -> None:
    """The second look tells the change alone, the one behind it all; another query is another page; an instruction picks what it is about."""
    await call(shop, "debug_navigate", url="/other")
    await fresh(shop)
    first = await call(shop, "inspect_tab")
    assert "nothing changed" in first.text
    assert 'button "Sell"' not in first.text
    whole = (await call(shop, "inspect_tab")).text
    assert 'button "Sell"' in whole
    second = (await call(shop, "debug_navigate", url="/stock?page=2")).text
    assert 'button "Sell"' in second
    # The frame of the site is told once; what is in it is found by its ref.
    assert 'link "Other things"' in whole
    assert 'link "Other things"' not in second
    frame = await call(shop, "inspect_tab", ref=ref(second, 'navigation "Main"'))
    other = await act(shop, "click", ref(frame.text, 'link "Other things"'))
    assert "Hello" in other.text
    await call(shop, "debug_navigate", url="/stock?page=2")
    assert 'button "Sell"' in (await call(shop, "find", role="button", name="Sell")).text
    named = await call(shop, "inspect_tab", instruction="the size")
    assert 'combobox "Size"' in named.text


async def test_test_ids_are_shown_as_targets_have_them(shop: BuildContext, served: site.Site) -> None:
    """In what the Director is shown, on a value and on a part of a text, also in a shadow root and in a frame; what is told so finds the element."""
    inner = "<p>Seats <b data-testid=seats>4</b></p>"
    served.page(
        "/marked",
        "<!doctype html><title>Marked</title><dl><dt>Status<dd><span data-testid=status>open</span></dl>"
        "<p>Draft <i data-testid=draft>17</i></p><div id=h></div><p hidden data-testid=hidden>x</p><p data-testid=twice>a</p><p data-testid=twice>b</p>"
        f'<script>h.attachShadow({{mode: "open"}}).innerHTML = "{inner}"</script><iframe src=/framed></iframe>',
    )
    served.page("/framed", "<!doctype html><p data-testid=note>Note</p>")
    told = (await call(shop, "debug_navigate", url="/marked")).text
    assert 'beside "Status"' in told
    for mark in ("{test_id: status}", "{test_id: draft}", "{test_id: seats}", "{test_id: note}"):
        assert told.count(mark) == 1
    assert "hidden" not in told
    assert "twice" not in told
    assert "test_id" not in (await observer_of(shop).page("scout").look()).render()


async def test_the_frame_of_a_site_is_told_once(served: site.Site, tmp_path: Path) -> None:
    """Also behind a page that has none, in another tab, and for an instruction that is about something else; one that asks for it, or for all of the page again, is told of it."""
    made = build_contexts.opened(tmp_path, f"{served.origin}/stock")
    frame = 'link "Stock of the shop"'
    assert frame in await fresh(made)
    await call(made, "debug_navigate", url="/other")
    back = await fresh(made)
    assert frame not in back
    assert 'navigation "Main" [ref=' in back
    opened = (await call(made, "debug_open_tab", name="second", url=f"{served.origin}/stock")).text
    assert frame not in opened
    assert frame not in (await call(made, "inspect_tab", instruction="the gift box")).text
    assert frame in (await call(made, "inspect_tab", instruction="stock of what")).text
    await call(made, "inspect_tab")
    assert frame in (await call(made, "inspect_tab")).text
    await made.close()


async def test_an_error_in_a_tab_that_opens_is_told_first(shop: BuildContext, served: site.Site) -> None:
    """The page that opened it is shown, and the status of the other one before it."""
    served.page("/opens", "<!doctype html><title>Opens</title><a href=/broken target=_blank>Broken</a>")
    told = (await call(shop, "debug_navigate", url="/opens")).text
    clicked = await act(shop, "click", ref(told, 'link "Broken"'))
    assert clicked.text.startswith("the document in tab")
    first = clicked.text.split("\n")[0]
    assert first.endswith(" was answered with HTTP status 500")
    await call(shop, "debug_close_tab", name=first.split()[3])


async def test_an_error_page_is_no_empty_page(shop: BuildContext, served: site.Site) -> None:
    """The status of its document is told; an origin that is not allowed is not loaded at all."""
    broken = await call(shop, "debug_navigate", url="/broken")
    assert broken.text.count("500") == 1, broken.text
    assert "HTTP status 500" in broken.text
    with site.serve() as other:
        elsewhere = await call(shop, "debug_navigate", url=f"{other.origin}/")
        assert elsewhere.error is not None
        assert elsewhere.error["code"] == "origin-refused"
        assert other.requests == []


async def test_a_picture_is_kept_with_secrets_painted_over(shop: BuildContext, served: site.Site) -> None:
    """It stands among the session's files."""
    seen = await fresh(shop)
    whole = await call(shop, "screenshot")
    part = await call(shop, "screenshot", ref=ref(seen, 'button "Sell"'))
    assert isinstance(whole.value, dict)
    assert isinstance(part.value, dict)
    assert Path(whole.value["path"]).read_bytes()[:4] == b"\x89PNG"
    assert Path(whole.value["path"]).parent == shop.writer.artifacts
    assert 0 < part.value["size"] < whole.value["size"]


async def test_held_actions_are_ready_and_not_done(served: site.Site, tmp_path: Path) -> None:
    """Under `hold` a click is found ready, told as held and no failure; each click is asked for under `ask`, and around one that is refused no way is shown."""
    held = build_contexts.opened(tmp_path / "held", f"{served.origin}/stock", policy="hold")
    who = build_contexts.Answering("yes", "no", "no")
    asking = build_contexts.opened(tmp_path / "asking", f"{served.origin}/stock", policy="ask", who=who)
    try:
        before = sum(each.path == "/counted" for each in served.requests)
        seen = await fresh(held)
        outcome = await act(held, "click", ref(seen, 'button "Pay"'))
        assert outcome.error is None
        assert "held" in outcome.text
        assert sum(each.path == "/counted" for each in served.requests) == before
        link = await act(held, "click", ref(seen, 'link "Next"'))
        assert f"leads to {served.origin}/stock?page=2" in link.text
        seen = await fresh(asking)
        assert "done" in (await act(asking, "click", ref(seen, 'button "Pay"'))).text
        assert sum(each.path == "/counted" for each in served.requests) == before + 1
        seen = await fresh(asking)
        assert "held" in (await act(asking, "click", ref(seen, 'button "Pay"'))).text
        assert sum(each.path == "/counted" for each in served.requests) == before + 1
        refused = await act(asking, "click", ref(seen, 'link "Next"'))
        assert "the person does not want it" in refused.text
        assert "debug_navigate" not in refused.text
        assert len(who.asked) == 3
    finally:
        await held.close()
        await asking.close()


def talk(shop: BuildContext, model: talks.Model, requests: list[Request]) -> reply.Talk:
    """A talk whose model is this function, and may send scouts."""
    chosen, models = talks.CHOSEN, talks.Supply(model, requests)
    limits = window.Limits
    return reply.Talk(shop.state, talks.About(), models, chosen, shop.listener, limits, [scout.Scouting(shop)])


def told_last(request: Request) -> str:
    """What the model was told of its last call."""
    return talks.outputs(request)[-1] if talks.outputs(request) else ""


async def test_scouts_work_side_by_side_in_tabs_of_their_own(shop: BuildContext, served: site.Site) -> None:
    """Each looks, types and clicks in its own tab; only their reports come back; their tabs are closed, and every action is a run of the build."""
    words = {"Sell tea.": "tea", "Sell salt.": "salt"}

    def model(request: Request) -> Answer | Exception:
        task = next((each for each in words if any(each in said for said in talks.messages(request))), None)
        told = told_last(request)
        if task is None:
            sends = [("send_scout", {"task": each, "url": "/stock", "reason": "Look."}) for each in words]
            return talks.said("Both sold.") if told else talks.asks(*sends)
        match len(talks.outputs(request)):
            case 0:
                return talks.asks(("debug_navigate", {"tab": None, "url": "/stock", "reason": "Begin."}))
            case 1:
                at = ref(told, 'textbox "Search"')
                typed = {"tab": None, "action": "fill", "ref": at, "value": words[task], "reason": "Type."}
                sold = {**typed, "action": "click", "ref": ref(told, 'button "Sell"'), "value": None}
                return talks.asks(("debug_action", typed), ("debug_action", sold))
            case 3:
                return talks.asks(("inspect_tab", {"tab": "main", "instruction": None, "ref": None, "reason": "Peep."}))
            case _:
                pass
        seen = next(each for each in talks.outputs(request) if "Sold: " in each)
        assert "page-unknown" in told
        return talks.said(f"It says {seen.partition('Sold: ')[2].split()[0]}")

    await fresh(shop)
    requests: list[Request] = []
    assert await talk(shop, model, requests).say("Sell both.") == "Both sold."
    reports = talks.outputs(requests[-1])
    assert [each.split("\n")[0].strip('"') for each in reports] == ["It says tea", "It says salt"]
    assert all("the scout took 4 requests" in each for each in reports)
    assert [each.name for each in observer_of(shop).tabs()] == ["main"]
    calls = [each.call for each in shop.writer.history.actions.values() if "send_scout/" in each.call.path]
    assert {each.thread for each in calls if each.action == "debug_action"} == {
        entries.delegate_thread(each.call.call)
        for each in shop.writer.history.actions.values()
        if each.call.action == "send_scout"
    }
    assert shop.writer.history.open_runs == {}


async def test_a_scout_leaves_what_a_person_must_be_asked(served: site.Site, tmp_path: Path) -> None:
    """Nobody is there: the click is not done, the scout is told so and reports; the build continues, and does not wait for an answer."""
    asking = build_contexts.opened(tmp_path, f"{served.origin}/stock", policy="ask")

    def model(request: Request) -> Answer | Exception:
        told = told_last(request)
        if not any("Pay." in each for each in talks.messages(request)):
            return (
                talks.said(told) if told else talks.asks(("send_scout", {"task": "Pay.", "url": None, "reason": "x"}))
            )
        if not told:
            return talks.asks(("debug_navigate", {"tab": None, "url": "/stock", "reason": "Begin."}))
        if 'button "Pay"' not in told:
            return talks.said(f"Not done: {told}")
        click = {"tab": None, "action": "click", "ref": ref(told, 'button "Pay"'), "value": None, "reason": "Pay."}
        return talks.asks(("debug_action", click))

    try:
        before = sum(each.path == "/counted" for each in served.requests)
        assert "scout-unasked" in await talk(asking, model, []).say("Look.")
        assert sum(each.path == "/counted" for each in served.requests) == before
    finally:
        await asking.close()


async def test_what_a_scout_did_that_has_no_answer_is_told(served: site.Site, tmp_path: Path) -> None:
    """Whoever sends another one would have it done a second time: where it fails, and where it is interrupted."""
    allowing = build_contexts.opened(tmp_path, f"{served.origin}/stock", policy="allow")

    def model(request: Request) -> Answer | Exception:
        told = told_last(request)
        if not any("Pay." in each for each in talks.messages(request)):
            sends = ("send_scout", {"task": "Pay.", "url": None, "reason": "x"})
            return talks.said(told) if told else talks.asks(sends)
        if not told:
            return talks.asks(("debug_navigate", {"tab": None, "url": "/stock", "reason": "Begin."}))
        if len(talks.outputs(request)) > 1:
            return Failed(ModelError("model-refused", "it will not", fix="Ask otherwise."))
        click = {"tab": None, "action": "click", "ref": ref(told, 'button "Pay"'), "value": None, "reason": "Pay."}
        return talks.asks(("debug_action", click))

    try:
        before = sum(each.path == "/counted" for each in served.requests)
        told = await talk(allowing, model, []).say("Look.")
        assert sum(each.path == "/counted" for each in served.requests) == before + 1
        assert "it did 1 action on the site, or may have: look there first; Ask otherwise." in told
        (sent,) = (each.call for each in allowing.writer.history.actions.values() if each.call.action == "send_scout")
        found = scout.Scouting(allowing).find_out(sent)
        assert found is not None
        assert found.error is not None
        assert found.error["fix"].startswith("it did 1 action on the site, or may have: look there first; ")
    finally:
        await allowing.close()


def test_a_browser_that_ended_is_opened_anew(served: site.Site, tmp_path: Path) -> None:
    """A look, an action, and an address behind its end: the first two are told that it has ended, the last loads its page in another one."""

    async def scouting() -> None:
        shop = build_contexts.opened(tmp_path, f"{served.origin}/stock")
        try:
            for tool, more in (("inspect_tab", {}), ("debug_action", {"action": "press", "value": "Tab"})):
                await fresh(shop)
                (place,) = shared._places[asyncio.get_running_loop()].values()
                psutil.Process(place.starting.result().chromium.alive.chromium).kill()
                told = await call(shop, tool, **more)
                assert told.error is not None
                assert told.error["code"] == "scout-ended"
                assert 'button "Sell"' in await fresh(shop)
        finally:
            await shop.close()

    # Its browser is none that other tests use.
    asyncio.run(scouting())


async def test_what_a_crash_left_is_told(shop: BuildContext) -> None:
    """An action whose run was begun is told as done where its log says so, and else as what may have happened or was not begun."""
    await act(shop, "hover", ref(await fresh(shop), 'button "Sell"'))
    done = [each.call for each in shop.writer.history.actions.values() if each.call.action == "debug_action"][-1]
    action = next(each for each in tools.toolsets(shop) if each.tool.name == "debug_action")
    known, unknown = (action.find_out(each) for each in (done, done.model_copy(update={"call": "nobody"})))
    assert known is not None
    assert "done, before" in known.text
    assert unknown is not None
    assert unknown.error is not None
    assert unknown.error["code"] == "scout-interrupted"


def observer_of(shop: BuildContext) -> Any:
    """The eyes, with all that they can."""
    return shop.observer
