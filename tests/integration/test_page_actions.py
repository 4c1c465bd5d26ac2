"""The tab as a node sees it: actions, readings, targets and rules on real pages."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from nodes.errors import SiteError
from nodes.rules import Rule
from nodes.targets import Target
from runtime.browser.elements import text_match
from runtime.browser.page.tab import Tab
from runtime.browser.port import MissingAnswer
from runtime.browser.session import Session
from tests import browsers, site

FORM = """<!doctype html><title>Order form</title>
<form method=post action=/sent>
  <label>Name <input name=name></label>
  <label>Note <textarea name=note></textarea></label>
  <label>Size <select name=size><option value=s>Small<option value=l>Large</select></label>
  <select multiple aria-label=Extras name=extras><option>Milk<option>Sugar<option>Salt</select>
  <label><input type=checkbox name=agree> I agree</label>
  <label><input type=radio name=pay value=card> Card</label>
  <label><input type=radio name=pay value=cash> Cash</label>
  <input placeholder="Search here" data-testid=search title=Finder>
  <button>Send</button> <button type=button disabled>Later</button>
</form>
<img alt=Logo width=10 height=10>"""

ORDERS = """<!doctype html><title>Orders</title><table><tbody>
<tr><td class=no>100</td><td>unpaid</td><td><button>Pay</button></td><td><a href=/orders/100>Show</a></td></tr>
<tr><td class=no>1007</td><td>paid</td><td><button>Pay</button></td></tr>
<tr><td class=no>12</td><td>34</td><td><i>a</i> <i>b</i></td></tr>
</tbody></table><p id=late></p>
<script>
for (const button of document.querySelectorAll('button'))
  button.onclick = () => { document.title = 'Paid ' + button.closest('tr').querySelector('.no').textContent; };
</script>"""


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of ``extract``."""

    css: str | None = None
    attribute: str | None = None
    nth: int | None = None


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves a site with a form and a table."""
    with site.serve() as served:
        served.page("/form", FORM)
        served.page("/orders", ORDERS)
        served.page("/orders/100", "<title>Order 100</title>")
        served.page("/sent", "<title>Sent</title>")
        yield served


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """One session for all tests here."""
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    """The session's tab, with ten seconds for each test."""
    driven.bound(10)
    return driven.page


async def test_a_form_is_filled_and_sent(tab: Tab, served: site.Site) -> None:
    """Fill, select (by label or value), check and click reach the site as a person's actions would."""
    served.requests.clear()
    assert await tab.goto(f"{served.origin}/form") == f"{served.origin}/form"
    await tab.fill(Target(label="Name"), "Ada")
    await tab.fill(Target(role="textbox", name="note"), "two\nlines")
    assert await tab.select(Target(label="Size"), ["Large"]) == ["l"]
    assert await tab.select(Target(label="Size"), ["s"]) == ["s"]
    assert await tab.select(Target(label="Extras"), ["Milk", "Salt"]) == ["Milk", "Salt"]
    await tab.check(Target(label="I agree"), True)
    await tab.check(Target(label="Cash"), True)
    assert await tab.value(Target(label="Note")) == "two\nlines"
    await tab.click(Target(role="button", name="Send"))
    await tab.wait_for(Rule(title="Sent"))
    (sent,) = served.arrived("/sent")
    assert sent.body == "name=Ada&note=two%0D%0Alines&size=s&extras=Milk&extras=Salt&agree=on&pay=cash"
    assert tab.url == f"{served.origin}/sent"
    assert await tab.title() == "Sent"


async def test_a_checkbox_can_be_unchecked(tab: Tab, served: site.Site) -> None:
    """``check`` sets the requested state, whatever it was."""
    await tab.goto(f"{served.origin}/form")
    for checked in (True, True, False, False):
        await tab.check(Target(label="I agree"), checked)
        assert await tab.holds(Rule(checked=checked, target=Target(label="I agree")))


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize(
    ("target", "found"),
    [
        (Target(role="button", name="send"), "Send"),
        (Target(role="button", name="Send", exact=True), "Send"),
        (Target(label="name"), ""),
        (Target(placeholder="search"), ""),
        (Target(test_id="search"), ""),
        (Target(title="Finder"), ""),
        (Target(alt="Logo"), ""),
        (Target(text="Cash"), "Cash"),
        (Target(css="form button", nth=0), "Send"),
        (Target(css="form button", nth=-2), "Send"),
        (Target(xpath="//button[2]"), "Later"),
        (Target(css="button", within=Target(css="form"), has_text="Send"), "Send"),
        (Target(any_of=[Target(css="#nowhere"), Target(role="button", name="Send"), Target(css="form")]), "Send"),
        (Target(any_of=[Target(css="#nowhere"), Target(css="button")], has_text="Later"), "Later"),
        (Target(css="button", has_text="Send", within=Target(any_of=[Target(css="main"), Target(css="form")])), "Send"),
    ],
    ids=str,
)
async def test_a_target_finds_its_element(target: Target, found: str, tab: Tab, served: site.Site) -> None:
    """Each way of finding, and each way to narrow it, finds the one element."""
    if tab.url != f"{served.origin}/form":
        await tab.goto(f"{served.origin}/form")
    assert await tab.text(target) == found
    assert await tab.count(target) == 1


async def test_settled_targets_cost_nothing(tab: Tab) -> None:
    """``locate`` returns the same target where there are no alternatives."""
    target = Target(role="button", name="Nowhere")
    assert await tab.locate(target) is target


async def test_the_first_choice_that_appears_is_taken(tab: Tab, driven: Session, served: site.Site) -> None:
    """Alternatives are tried repeatedly until one of them is present; ``locate`` returns that one."""
    await tab.goto(f"{served.origin}/orders")
    await tab.page.evaluate("void setTimeout(() => { document.getElementById('late').className = 'b'; }, 100)")
    found = await tab.locate(Target(any_of=[Target(css="p.a"), Target(css="p.b")], exact=True))
    assert found == Target(css="p.b", exact=True)


async def test_the_button_in_the_right_row(tab: Tab, served: site.Site) -> None:
    """``has_text`` matches whole words and separates cells: 100 is not 1007, and cells 12 and 34 are not 1234."""
    await tab.goto(f"{served.origin}/orders")
    await tab.click(Target(role="button", name="Pay", within=Target(role="row", has_text="100")))
    assert await tab.title() == "Paid 100"
    assert await tab.text(Target(role="row", has_text="1007")) == "1007 paid Pay"
    for text, count in (("1234", 0), ("12", 1), ("12 34", 1), ("paid", 1), ("unpaid", 1), ("a b", 1), ("pai", 0)):
        assert await tab.count(Target(role="row", has_text=text)) == count, text
    assert await tab.count(Target(css="td", has_text="100", exact=True)) == 1
    assert await tab.count(Target(css="tr", has_text="100", exact=True)) == 0


async def test_rows_are_read_at_once(tab: Tab, served: site.Site) -> None:
    """Each row gives the text or attribute of each field, None where missing, with white space folded."""
    await tab.goto(f"{served.origin}/orders")
    fields = [Field(".no"), Field("td", nth=1), Field("a", "href"), Field("td", nth=-1), Field()]
    rows = await tab.rows(Target(css="tbody tr"), fields, 1)
    assert rows == [
        ["100", "unpaid", "/orders/100", "Show", "100 unpaid Pay Show"],
        ["1007", "paid", None, "Pay", "1007 paid Pay"],
        ["12", "34", None, "a b", "12 34 a b"],
    ]
    assert await tab.rows(Target(css="#nowhere"), fields, 0) == []


async def test_rows_are_waited_for(tab: Tab, served: site.Site) -> None:
    """Rows are read once at least the requested number is present."""
    await tab.goto(f"{served.origin}/orders")
    more = "document.querySelector('tbody').insertAdjacentHTML('beforeend', '<tr><td class=no>9')"
    await tab.page.evaluate(f"void setTimeout(() => {more}, 100)")
    assert [row for (row,) in await tab.rows(Target(css="tbody tr"), [Field(".no")], 4)] == ["100", "1007", "12", "9"]


HOLDS = [
    (Rule(url="**/orders"), True),
    (Rule(url="http://*/orders"), True),
    (Rule(url="http://*"), False),
    (Rule(url="**/order?"), False),
    (Rule(title="Orders"), True),
    (Rule(title="Order"), False),
    (Rule(title="orders"), False),
    (Rule(title="Orders", exact=True), True),
    (Rule(text="unpaid"), True),
    (Rule(text="1007 paid"), True),
    (Rule(text="pai"), False),
    (Rule(text="Paid"), False),
    (Rule(text="paid", target=Target(css="tr", nth=0)), False),
    (Rule(text="paid", target=Target(css="tr", nth=1)), True),
    (Rule(text="1007 paid Pay", exact=True, target=Target(css="tr", nth=1)), True),
    (Rule(text="1007 paid", exact=True, target=Target(css="tr", nth=1)), False),
    (Rule(text="paid", target=Target(css="#nowhere")), False),
    (Rule(visible=Target(css="tr", nth=0)), True),
    (Rule(visible=Target(css="#late")), False),
    (Rule(visible=Target(css="script")), False),
    (Rule(visible=Target(css="tr")), False),
    (Rule(hidden=Target(css="script")), True),
    (Rule(hidden=Target(css="#nowhere")), True),
    (Rule(hidden=Target(css="tr")), False),
    (Rule(hidden=Target(any_of=[Target(css="#nowhere"), Target(css="#gone")])), True),
    (Rule(count=3, target=Target(css="tr")), True),
    (Rule(count=0, target=Target(css="#nowhere")), True),
    (Rule(count=2, target=Target(css="tr")), False),
    (Rule(count=3, target=Target(any_of=[Target(css="#nowhere"), Target(css="tr")])), True),
    (Rule(enabled=True, target=Target(role="button", nth=0)), True),
    (Rule(expr=True), True),
    (Rule(expr=False), False),
]


async def test_a_rule_is_checked(tab: Tab, served: site.Site) -> None:
    """Every kind of rule is checked against the current page; one that cannot be checked does not hold."""
    await tab.goto(f"{served.origin}/orders")
    assert [(rule, await tab.holds(rule)) for rule, _holds in HOLDS] == HOLDS


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize(
    ("rule", "script"),
    [
        (Rule(url="**/orders#done"), "location.hash = 'done'"),
        (Rule(title="Done"), "document.title = 'Done'"),
        (Rule(text="Thanks"), "late.textContent = 'Thanks'"),
        (Rule(text="Thanks", target=Target(css="#late")), "late.textContent = 'Thanks'"),
        (Rule(visible=Target(css="#late")), "late.textContent = 'Thanks'"),
        (Rule(hidden=Target(role="table")), "document.querySelector('table').style.display = 'none'"),
        (Rule(count=4, target=Target(css="p")), "late.insertAdjacentHTML('afterend', '<p><p><p>')"),
        (Rule(enabled=False, target=Target(css="button", nth=0)), "document.querySelector('button').disabled = true"),
        (Rule(value="x", target=Target(css="input")), "late.innerHTML = '<input value=x>'"),
        (Rule(checked=True, target=Target(role="switch")), "late.innerHTML = '<b role=switch aria-checked=true>x'"),
        (Rule(title="Order 100"), "location.href = '/orders/100'"),
    ],
    ids=str,
)
async def test_a_rule_is_waited_for(rule: Rule, script: str, tab: Tab, served: site.Site) -> None:
    """Every kind of rule is checked again until it holds, across a change of the document too."""
    await tab.goto("about:blank")
    await tab.goto(f"{served.origin}/orders")
    assert not await tab.holds(rule)
    waiting = asyncio.ensure_future(tab.wait_for(rule))
    await tab.page.evaluate("(script) => void setTimeout(() => eval(script), 50)", script)
    await waiting
    assert await tab.holds(rule)


WORDS: list[tuple[str, str, bool]] = [
    ("paid", "it is paid.", True),
    ("paid", "unpaid", False),
    ("100", "1007", False),
    ("100", "1,100.00", True),
    ("(paid)", "un(paid)already", True),
    ("a  b", "a\u00a0\n b", True),
    ("a.c", "abc", False),
    ("$5", "US$5", True),
    ("5 €", "5 €", True),
    ("Zoë", "Zoës", False),
    ("Zo", "Zoë", False),
    ("Zoe", "Zoe\u0301", False),
    ("ein", "größe-ein", True),
    ("öl", "Möl", False),
    ("中文", "这是中文网", True),
    ("100", "合計100円", True),
    ("100", "合計1007円", False),
    ("결제", "결제완료", True),
    ("ชำระ", "การชำระเงิน", True),
    ("snake", "snake_case", False),
    ("co-op", "co\u00ad-op", True),
    ("", "anything", True),
    ("🙂", "a🙂b", True),
    ("a/b", "x a/b y", True),
    ("[x]", "[x]", True),
    ("\\d", "5", False),
]


async def test_whole_words_in_every_script(tab: Tab) -> None:
    """Word boundaries work beyond ASCII, and do not exist in scripts without spaces between words."""
    compare = f"(cases) => {{ {text_match.SEEN} return cases.map(([pattern, text]) => new RegExp(pattern, 'v').test(folded(text))); }}"
    cases = [[text_match.pattern(text), served] for text, served, _holds in WORDS]
    found: list[bool] = await tab.page.evaluate(compare, cases)
    assert dict(zip([each[:2] for each in WORDS], found, strict=True)) == {each[:2]: each[2] for each in WORDS}


async def test_facts_count_documents_and_pending_input(tab: Tab, driven: Session, served: site.Site) -> None:
    """A new document counts and clears pending input, a fragment change does neither, and a finished effect clears pending input."""
    await tab.goto(f"{served.origin}/form")
    before = driven.facts()
    assert not before.pending_input
    await tab.fill(Target(label="Name"), "Ada")
    await tab.page.evaluate("location.hash = 'x'; history.pushState({}, '', '/form?y')")
    await tab.wait_for(Rule(url="**/form?y"))
    assert driven.facts() == dataclasses.replace(before, pending_input=True)
    driven.effect_finished()
    assert driven.facts() == before
    await tab.check(Target(label="I agree"), True)
    await tab.goto(f"{served.origin}/orders")
    assert driven.facts() == dataclasses.replace(before, documents=before.documents + 1)
    await tab.click(Target(role="link", name="Show"))
    await tab.wait_for(Rule(title="Order 100"))
    assert driven.facts() == dataclasses.replace(before, documents=before.documents + 2)


async def test_facts_have_the_status_of_an_error_page(tab: Tab, driven: Session, served: site.Site) -> None:
    """The status is that of the document shown, if it is an error, and after a redirect that of the last one."""
    served.answer("/broken", lambda _request: site.Answer("<title>Broken</title><a href='/none'>Go</a>", 500))
    served.answer("/none", lambda _request: site.Answer(status=204))
    served.redirect("/gone", "/broken")
    await tab.goto(f"{served.origin}/nowhere")
    assert driven.facts().status == 404
    await tab.goto(f"{served.origin}/orders")
    assert driven.facts().status is None
    await tab.goto(f"{served.origin}/gone")
    assert driven.facts().status == 500
    await tab.click(Target(role="link", name="Go"))
    await browsers.until(lambda: bool(served.arrived("/none")))
    await tab.page.evaluate("location.hash = 'x'")
    assert driven.facts().status == 500
    await tab.page.evaluate("void fetch('/nowhere')")
    await tab.goto(f"{served.origin}/orders")
    assert driven.facts().status is None


async def test_a_fresh_tab_leaves_the_session_alone(tab: Tab, driven: Session, served: site.Site) -> None:
    """A fresh tab shares the cookies, is not counted, leaves the current tab alone, and is closed afterwards."""
    await tab.goto(served.page("/cookie", "<title>Cookie</title>", set_cookie="who=ada"))
    before = driven.facts()
    async with driven.fresh_page() as fresh:
        assert fresh is not tab
        await fresh.goto(f"{served.origin}/form")
        await fresh.fill(Target(label="Name"), "Ada")
        assert "who=ada" in served.arrived("/form")[-1].headers["cookie"]
        assert driven.facts() == before
        assert driven.page.url == f"{served.origin}/cookie"
    assert len(tab.page.context.pages) == 1


async def test_a_popup_is_captured_but_not_current(tab: Tab, driven: Session, served: site.Site) -> None:
    """An unexpected tab is in the checkpoint once it has no opener; the current tab stays."""
    await tab.goto(f"{served.origin}/orders")
    before = driven.facts().documents
    await tab.page.evaluate("void window.open('/orders/100')")
    await browsers.until(lambda: driven.facts().documents == before + 1)
    assert driven.page is tab
    with pytest.raises(SiteError, match="tied to the tab that opened it"):
        await driven.capture()
    await tab.page.context.pages[1].evaluate("opener = null")
    assert (await driven.capture()).urls == [f"{served.origin}/orders", f"{served.origin}/orders/100"]
    await tab.page.context.pages[1].close()
    assert driven.facts().documents == before + 1


LOST: list[tuple[str, dict[str, Any], str | None]] = [
    ("a form that is not answered", {"script": "document.forms[0].submit()"}, "POST /dropped"),
    ("a request that is not answered", {"script": "fetch('/dropped?card=1', {method: 'PUT'})"}, "PUT /dropped"),
    ("a page that is not answered", {"script": "location.href = '/dropped?card=1'"}, "GET /dropped"),
    ("a reading that is not answered", {"script": "fetch('/dropped')"}, None),
    (
        "a request that the page gives up",
        {"script": "fetch('/slow', {method: 'POST', signal: AbortSignal.timeout(1)})"},
        None,
    ),
]


@pytest.mark.parametrize(
    ("script", "lost"), [(how["script"], lost) for _name, how, lost in LOST], ids=[each[0] for each in LOST]
)
async def test_a_lost_answer_is_noticed(
    script: str, lost: str | None, tab: Tab, driven: Session, served: site.Site
) -> None:
    """An action's unanswered request is reported without its query; unanswered readings and aborted requests are not."""
    served.answer("/dropped", lambda _request: site.Answer(drop=True))
    served.answer("/slow", lambda _request: site.Answer("late"))
    await tab.goto(served.page("/risky", "<form method=post action=/dropped></form><button>Go</button>"))
    await tab.page.evaluate(
        "(script) => { const done = () => { document.title = 'Over'; };"
        " document.querySelector('button').onclick = () => Promise.resolve(eval(script)).then(done, done); }",
        script,
    )
    await tab.click(Target(role="button", name="Go"))
    if lost is None:
        await tab.wait_for(Rule(title="Over"))
        assert await driven.lost_answer() is None
    else:
        await browsers.until_async(driven.lost_answer)
        method, path = lost.split()
        assert await driven.lost_answer() == MissingAnswer(f"{method} {served.origin}{path}", "lost")
    await tab.goto(f"{served.origin}/form")
    assert await driven.lost_answer() is None
