"""Page errors: a stable code, what was seen, and whether the action may have happened."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from nodes.errors import AuthorError, RunOpsError, SiteError
from nodes.pages import ElementAction
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser import deadline, own
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = pytest.mark.drawn(share=0.25, of="page errors")

PAGE = """<!doctype html><title>Shop</title><style>
@keyframes away { to { transform: translateX(400px); } }
</style>
<label>User name <input></label>
<label>Amount <input type=number></label>
<label>Fixed <input readonly value=old></label>
<label>Size <select><option>Small</select></label>
<p data-testid=order-total>7</p>
<button>Return to shop</button>
<button disabled>Off</button>
<button style="display: none">Hidden</button>
<button style="animation: away 1s infinite alternate linear">Moving</button>
<div style="position: relative"><button>Covered</button><div id=cover style="position: absolute; inset: 0">over</div></div>
<button onclick="for (;;);">Endless</button>
<table><tr><td>1001 open</td><td><button>Pay</button></td></tr><tr><td>1002 open</td><td><button>Pay</button></td></tr></table>"""

SECRET = "hunter2-hunter2"


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of ``extract``."""

    css: str | None = None
    attribute: str | None = None
    nth: int | None = None


@pytest.fixture(scope="module")
def shop() -> Iterator[site.Site]:
    """Serves a site with one page."""
    with site.serve() as served:
        served.page("/", PAGE)
        yield served


@pytest.fixture(scope="module")
async def driven(shop: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here, which may also go to a dead site."""
    origins = (shop.origin, "http://127.0.0.1:8124")
    async with browsers.opened(tmp_path_factory.mktemp("private"), *origins) as browser:
        yield browser


@pytest.fixture
def longer_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allows the diagnosis as long as a slow machine needs."""
    monkeypatch.setattr(deadline, "GRACE_SECONDS", 10.0)


@pytest.fixture
async def tab(driven: Session, shop: site.Site) -> AsyncIterator[Tab]:
    """A tab on the page, with a short deadline."""
    driven.bound(10)
    async with driven.fresh_page() as fresh:
        await fresh.goto(f"{shop.origin}/")
        driven.bound(1)
        yield fresh


async def failure(action: Awaitable[object]) -> RunOpsError:
    """The error of an action that must fail."""
    with pytest.raises(RunOpsError) as raised:
        await action
    return raised.value


@pytest.mark.usefixtures("longer_grace")
async def test_a_missing_target(tab: Tab, shop: site.Site) -> None:
    """The error names the target, the wait, the page, and the most similar element."""
    error = await failure(tab.click(Target(role="button", name="Return to shopp")))
    assert (error.code, error.phase) == ("target-not-found", "before")
    waited = error.evidence["waited"]
    assert error.message == f'no element matches role=button name="Return to shopp"  (waited {waited:g} s)'
    assert 0.3 <= waited <= 10
    assert (error.evidence["page"], error.evidence["title"]) == (f"{shop.origin}/", "Shop")
    assert error.evidence["nearest"][0] == 'role=button name="Return to shop"'
    assert len(error.evidence["nearest"]) <= 5


@pytest.mark.usefixtures("longer_grace")
@pytest.mark.drawn(share=0.3)
@pytest.mark.parametrize(
    ("target", "named", "nearest"),
    [
        (Target(label="Username"), 'label="Username"', 'role=textbox name="User name"'),
        (Target(test_id="order-totals"), 'test_id="order-totals"', 'test_id="order-total"'),
        (
            Target(role="button", name="Pay", within=Target(role="row", has_text="1003")),
            'role=row has_text="1003"',
            'role=row name="1001 open Pay"',
        ),
        (
            Target(role="button", name="Settle", within=Target(role="row", has_text="1001")),
            'role=button name="Settle" within role=row has_text="1001"',
            'role=button name="Pay"',
        ),
        (Target(any_of=[Target(css="#a"), Target(css="#b")]), "any_of=css=#a | css=#b", None),
        (Target(css="button", nth=-20), "css=button nth=-20", None),
    ],
    ids=str,
)
async def test_the_missing_part_is_named(target: Target, named: str, nearest: str | None, tab: Tab) -> None:
    """A missing row is named instead of the button in it. The nearest candidates have the same kind or the same place."""
    error = await failure(tab.text(target))
    assert error.code == "target-not-found"
    assert error.message.startswith(f"no element matches {named}")
    assert nearest in [*error.evidence["nearest"], None]


ROW = Target(role="row", has_text="1003")


async def test_what_is_missing_around_a_count_of_nothing(tab: Tab) -> None:
    """Of a target that finds nothing the row or the frame that is missing is named, and nothing if only the element itself is."""
    pay = Target(role="button", name="Pay")
    assert await tab.missing_part(pay.model_copy(update={"within": ROW})) == 'within role=row has_text="1003"'
    there = Target(role="row", has_text="1001")
    assert await tab.missing_part(Target(role="button", name="Settle", within=there)) is None
    assert await tab.missing_part(pay.model_copy(update={"frame": "checkout"})) == "frame checkout"


async def test_a_rule_names_the_missing_row(tab: Tab) -> None:
    """A rule about an element in a row that is not there names the row."""
    error = await failure(tab.wait_for(Rule(visible=Target(role="button", name="Pay", within=ROW))))
    assert 'no element matches role=row has_text="1003"' in error.message
    assert error.evidence["nearest"][0].startswith("role=row")


@pytest.mark.usefixtures("longer_grace")
@pytest.mark.parametrize("target", [Target(text="Return to shopp"), Target(css="#title")], ids=str)
async def test_fields_come_first_where_text_is_typed(target: Target, tab: Tab) -> None:
    """If `fill` finds no element, the fields of the page are the nearest, before any button that is spelled alike."""
    nearest = (await failure(tab.fill(target, "x"))).evidence["nearest"]
    fields = ["textbox", "spinbutton", "textbox"]
    assert [each.split(" ")[0].removeprefix("role=") for each in nearest[:3]] == fields
    assert ('role=button name="Return to shop"' in nearest) == (target.text is not None)


async def test_an_ambiguous_target(driven: Session, tab: Tab) -> None:
    """An ambiguous target fails at once, before the action, with at most five candidates that each find one element."""
    driven.bound(10)
    error = await failure(tab.click(Target(role="button", name="Pay")))
    assert (error.code, error.phase, error.evidence["count"]) == ("target-ambiguous", "before", 2)
    lines = error.evidence["candidates"]
    assert lines == [f'role=button name="Pay" within role=row has_text="{each} open"' for each in ("1001", "1002")]
    for number in ("1001", "1002"):
        row = Target(role="row", has_text=f"{number} open")
        assert await tab.count(Target(role="button", name="Pay", within=row)) == 1
    assert "take one of the candidates" in (error.fix or "")
    # A hidden one is no candidate.
    many = await failure(tab.fill(Target(css="button"), "x"))
    assert (many.evidence["count"], len(many.evidence["candidates"])) == (7, 5)


async def test_candidates_that_only_the_whole_text_distinguishes(tab: Tab) -> None:
    """If one match has exactly the target's text, the fix is `exact: true`; each candidate finds one element."""
    await tab.page.evaluate("document.body.innerHTML = '<button>Send</button><button>Send all</button>'")
    error = await failure(tab.click(Target(role="button", name="Send")))
    assert error.fix == "add `exact: true`: one of them has just this text"
    assert error.evidence["candidates"] == ['role=button name="Send" exact=true', 'role=button name="Send all"']


async def run_soon(tab: Tab, script: str) -> None:
    """Makes the page run a script soon."""
    await tab.page.evaluate("(script) => void setTimeout(() => eval(script), 50)", script)


OBSTACLES: dict[str, Callable[[Tab], Awaitable[object]]] = {
    "disabled": lambda tab: tab.click(Target(role="button", name="Off")),
    "hidden": lambda tab: tab.click(Target(css="button", has_text="Hidden")),
    "moving": lambda tab: tab.click(Target(role="button", name="Moving")),
    "covered": lambda tab: tab.click(Target(role="button", name="Covered")),
    "read-only": lambda tab: tab.fill(Target(label="Fixed"), SECRET),
    "wrong value": lambda tab: tab.fill(Target(label="Amount"), SECRET),
    "wrong element": lambda tab: tab.fill(Target(role="button", name="Return"), SECRET),
    "no such option": lambda tab: tab.select(Target(label="Size"), [SECRET]),
}


@pytest.mark.usefixtures("longer_grace")
@pytest.mark.drawn(share=0.3)
@pytest.mark.parametrize("problem", OBSTACLES)
async def test_an_element_that_cannot_take_the_action(problem: str, driven: Session, tab: Tab) -> None:
    """The obstacle is named, nothing was done, and the text to be typed is not in the error."""
    driven.bound(4)
    error = await failure(OBSTACLES[problem](tab))
    assert (error.code, error.phase) == ("target-not-actionable", "before")
    assert error.evidence["problem"] == problem
    if problem == "covered":
        assert error.evidence["element"].startswith('<div id="cover"')
        assert error.message.endswith(f"it is covered by {error.evidence['element']}")
        assert "`at: {x: 5, y: 5}`" in (error.fix or "")
    assert SECRET not in json.dumps(error.as_json())


async def test_what_never_rests_takes_a_key(driven: Session, tab: Tab) -> None:
    """A click on a moving element fails, and the key that the error names does what the click would have done."""
    await tab.page.evaluate(
        "document.querySelector('button[style*=animation]').onclick = () => { document.title = 'Clicked'; }"
    )
    moving = Target(role="button", name="Moving")
    error = await failure(tab.click(moving))
    assert (error.evidence["problem"], "`press` with `key: Enter`" in (error.fix or "")) == ("moving", True)
    driven.bound(5)
    await tab.press(["Enter"], moving)
    assert await tab.title() == "Clicked"


@pytest.mark.usefixtures("longer_grace")
@pytest.mark.drawn(share=0.3)
@pytest.mark.parametrize(
    ("target", "action", "code"),
    [
        (Target(role="button", name="Return"), "click", None),
        (Target(label="User name"), "fill", None),
        (Target(label="Size"), "select", None),
        (Target(role="button", name="Off"), "click", "target-not-actionable"),
        (Target(css="button", has_text="Hidden"), "click", "target-not-actionable"),
        (Target(role="button", name="Off"), "select", "target-not-actionable"),
        (Target(role="button", name="Pay"), "click", "target-ambiguous"),
        (Target(label="Nowhere"), "fill", "target-not-found"),
        (Target(label="Nowhere"), "check", "target-not-found"),
    ],
    ids=str,
)
async def test_readiness_is_proved_without_the_action(
    target: Target, action: ElementAction, code: str | None, driven: Session, tab: Tab
) -> None:
    """``ready`` fails as the action would, and leaves the page unchanged."""
    driven.bound(10 if code is None else 2)
    await tab.page.evaluate("document.addEventListener('click', () => { document.title = 'Clicked'; }, true)")
    if code is None:
        await tab.ready(target, action)
    else:
        error = await failure(tab.ready(target, action))
        assert (error.code, error.phase) == (code, "before")
    assert await tab.title() == "Shop"


async def test_a_reading_that_times_out_names_its_target(driven: Session, tab: Tab) -> None:
    """Each reading of a missing element ends with `target-not-found`, not with a timeout of the page."""
    nowhere = Target(label="Nowhere")
    readings = [tab.text(nowhere), tab.value(nowhere), tab.attribute(nowhere, "id"), tab.state(nowhere)]
    codes: list[str] = []
    for reading in readings:
        # Longer than the deadline of a single attempt, so only the reading's own error is in time.
        driven.bound(1.2)
        codes.append((await failure(reading)).code)
    assert codes == ["target-not-found"] * 4


async def test_a_click_that_may_have_happened(driven: Session, tab: Tab) -> None:
    """When the page hangs after the mouse was pressed, the click may have happened: the phase is ``after``."""
    driven.bound(1)
    error = await failure(tab.click(Target(role="button", name="Endless")))
    assert error.phase == "after"
    silent = await failure(tab.title())
    assert (silent.code, silent.phase) == ("timeout", "before")


async def crash(driven: Session, tab: Tab) -> None:
    """Crashes the page."""
    connection = browsers.connection(driven)
    target = await own.target_id(tab.page.context, tab.page)
    attached = await connection.send("Target.attachToTarget", {"targetId": target, "flatten": True})
    async with tab.page.expect_event("crash"):
        connection.post("Page.crash", {}, attached["sessionId"])


async def test_a_page_that_crashes_after_a_click(driven: Session, tab: Tab) -> None:
    """Requests of a crashed page are unknown, so its answer counts as lost."""
    driven.bound(10)
    await tab.click(Target(role="button", name="Return to shop"))
    await crash(driven, tab)
    missing = await driven.missing_answer(every=False)
    assert missing is not None
    assert (missing.how, missing.request) == ("lost", "what the page had sent")


async def test_a_page_that_crashes(driven: Session, tab: Tab) -> None:
    """Every action on a crashed page gives `page-crashed`."""
    driven.bound(10)
    await crash(driven, tab)
    for action in (tab.click(Target(css="button")), tab.title()):
        error = await failure(action)
        assert error.code == "page-crashed"


async def test_a_dead_site(driven: Session, tab: Tab, shop: site.Site) -> None:
    """A refused connection has phase `before`. A dropped or late answer has phase `after`, because the site may have received the request."""
    driven.bound(10)
    refused = await failure(tab.goto("http://127.0.0.1:8124/"))
    assert (refused.code, refused.phase) == ("navigation-failed", "before")
    assert refused.evidence == {"url": "http://127.0.0.1:8124/", "seen": "ERR_CONNECTION_REFUSED"}
    shop.answer("/dropped", lambda _request: site.Answer(drop=True))
    dropped = await failure(tab.goto(f"{shop.origin}/dropped"))
    assert (dropped.code, dropped.phase, dropped.evidence["seen"]) == (
        "navigation-failed",
        "after",
        "ERR_EMPTY_RESPONSE",
    )
    answered = threading.Event()

    def late(_request: site.Request) -> site.Answer:
        answered.wait(30)
        return site.Answer("late")

    shop.answer("/late", late)
    driven.bound(2)
    slow = await failure(tab.goto(f"{shop.origin}/late"))
    assert (slow.code, slow.phase) == ("timeout", "after")
    # A page that waits for an answer runs no script, and a screenshot of it keeps to the step's deadline.
    async with asyncio.timeout(20):
        unseen = await failure(tab.screenshot(None, full_page=False, hide=lambda text: "never" in text))
    assert (unseen.code, unseen.phase) == ("timeout", "before")
    answered.set()


@pytest.mark.parametrize("target", [Target(css="a["), Target(xpath="//a[")], ids=str)
async def test_a_target_with_invalid_syntax(target: Target, tab: Tab) -> None:
    """Invalid CSS or XPath is an author error, reported at once."""
    for action in (tab.click(target), tab.count(target), tab.rows(target, [Field()], 1)):
        error = await failure(action)
        assert isinstance(error, AuthorError)
        assert error.code == "bad-target"


async def test_rows_that_do_not_fit(tab: Tab) -> None:
    """Too few rows, an ambiguous field and invalid CSS are each named in the error."""
    few = await failure(tab.rows(Target(css="tr"), [Field("td", nth=0)], 3))
    assert few.code == "target-not-found"
    assert few.message.startswith("only 2 of at least 3 elements match css=tr")
    twice = await failure(tab.rows(Target(css="tr"), [Field("button"), Field("td")], 1))
    assert (twice.code, twice.evidence) == ("field-ambiguous", {"css": "td", "row": 1, "count": 2})
    wrong = await failure(tab.rows(Target(css="tr"), [Field("td[")], 1))
    assert (wrong.code, isinstance(wrong, AuthorError)) == ("bad-target", True)


async def test_a_rule_that_does_not_hold(tab: Tab, shop: site.Site) -> None:
    """The error has the wanted and the seen value; a missing target gets its neighbours, an ambiguous one its candidates."""
    title = await failure(tab.wait_for(Rule(title="Basket")))
    assert title.message == "title \"Basket\" does not hold; seen: 'Shop'"
    waited = title.evidence.pop("waited")
    assert title.evidence == {"rule": 'title "Basket"', "wanted": "Basket", "seen": "Shop", "page": f"{shop.origin}/"}
    assert 0.3 <= waited <= 10
    missing = await failure(tab.wait_for(Rule(visible=Target(role="button", name="Return to shopp"))))
    assert missing.code == "rule-failed"
    assert missing.evidence["nearest"][0] == 'role=button name="Return to shop"'
    twice = await failure(tab.wait_for(Rule(text="open", target=Target(css="tr"))))
    assert twice.code == "target-ambiguous"
    count = await failure(tab.wait_for(Rule(count=3, target=Target(css="tr"))))
    assert (count.code, count.evidence["wanted"], count.evidence["seen"]) == ("rule-failed", 3, 2)


async def test_an_ended_browser(shop: site.Site, tmp_path: Path) -> None:
    """Every action and a capture fail on a browser that has ended; closing it is no error."""
    async with browsers.opened(tmp_path, shop.origin) as browser:
        await browser.page.goto(f"{shop.origin}/")
        await browsers.connection(browser).send("Browser.close")
        await browsers.until(browser.page.page.is_closed)
        for action in (
            browser.page.click(Target(css="button")),
            browser.page.goto(f"{shop.origin}/"),
            browser.page.value(Target(css="input")),
            browser.page.holds(Rule(title="Shop")),
            browser.page.rows(Target(css="tr"), [Field()], 1),
            browser.capture(),
        ):
            error = await failure(action)
            assert error.code in ("page-crashed", "guard-lost", "checkpoint-failed")
            assert isinstance(error, SiteError | RunOpsError)
