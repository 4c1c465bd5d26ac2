"""The HTML page of runs in a real Chromium: every tab, filter and key; no request, no message, nothing without a name."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, async_playwright, expect

from runtime.browser.chromium import find
from runtime.report import page as report_page
from tests.report_pages import COSTS, ERROR, attempt, batch, case, png, run, shot, step

EVIL = "<img src=https://evil.test/x onerror=document.title='live'>"
FAILED = "each_order[#1004]/pay"
PICTURES = [png(each, 640, 400) for each in range(3)]
OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"
CONTRASTS = """() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = (colour) => {
    const [red, green, blue] = parts(colour).map((each) => each / 255).map((each) => each <= 0.04 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parts(colour)[3] !== 0) return colour;
    }
  };
  return [...document.querySelectorAll('.outcome, .dim, .about, .note, code, pre, a, button, h3, th, td, p')].filter((each) => each.textContent).map((each) => {
    const [one, other] = [light(getComputedStyle(each).color), light(ground(each))].sort((a, b) => b - a);
    return (one + 0.05) / (other + 0.05);
  });
}"""


def failed_run() -> dict[str, Any]:
    """A run that signs in, asks a model, pays eight orders and fails at the ninth."""
    thread = [
        {"kind": "user", "at": "", "text": f"Which?\n[page]\n{EVIL}\n[end of page]"},
        {
            "kind": "assistant",
            "at": "",
            "text": "The open ones.",
            "key": "k",
            "source": "model",
            "model": "example-model",
            "usage": {"input": 1200, "cached": 0, "output": 80, "reasoning": 0},
            "dollars": "0.0042",
        },
    ]
    orders = [f"each_order[#{number}]" for number in range(996, 1005)]
    steps = [
        step("sign_in", attempts=[], type="group"),
        step(
            "sign_in/user",
            parent="sign_in",
            attempts=[attempt("error", error=ERROR, at=0.5), attempt(attempt=2, at=1.0, action="fill")],
        ),
        step(
            "choose",
            type="cognition",
            costs=COSTS,
            value={"which": EVIL},
            attempts=[attempt(action=None, args={"instruction": "Choose the orders"}, thread=thread, at=1.5)],
        ),
        step("each_order", "error", attempts=[], type="iterate"),
    ]
    for number, order in enumerate(orders):
        status = "error" if order.endswith("1004]") else "ok"
        tried = attempt(status, at=2 + number / 2, error=ERROR if status == "error" else None)
        steps += [
            step(order, status, parent="each_order", attempts=[], type="item"),
            step(f"{order}/look", parent=order, attempts=[attempt(at=1.9 + number / 2)]),
        ]
        steps.append(step(f"{order}/pay", status, parent=order, attempts=[tried]))
    frames = [
        {"path": f"{orders[-2]}/pay", "at": "", "url": "http://shop.test/orders/1003", "no_screenshot": "too-fast"},
        {
            "path": f"{orders[-1]}/look",
            "at": "",
            "url": "http://shop.test/orders/1004",
            "screenshot": shot(PICTURES[0]),
            "along": FAILED,
        },
    ]
    kept = {
        "path": FAILED,
        "url": "http://shop.test/orders/1004",
        "title": "Order 1004",
        "screenshot": shot(PICTURES[1]),
        "frames": frames,
        "messages": [
            {"at": "", "kind": "request", "text": "GET /api failed", "url": "http://shop.test/api", "status": 500}
        ],
        "trace": {"name": "trace.zip", "path": "/home/trace.zip", "size": 9000, "sha256": "0"},
    }
    ended = {
        "files": [{"name": "trace-1.zip", "path": "/home/my trace-1.zip", "size": 9000, "sha256": "0"}],
        "state": "failed",
        "error": ERROR,
        "path": FAILED,
        "place": "pay.yaml:30:9",
        "next": "runops resume 01BAD",
        "costs": COSTS,
    }
    return run(*steps, run="01BAD", workflow="Pay the orders", evidence=[kept], **ended)


def forty() -> str:
    """The page of 40 cases, among them each outcome."""
    bad = failed_run()
    good = run(step("open"), step("ask", "tolerated"), run="01GOOD", workflow="Look")
    since = [{"path": FAILED, "what": "status", "before": "ok", "after": "error"}]
    cases = [
        case("Pay the orders", "failed", bad, green="01GREEN", since_green=since, error=ERROR),
        case(
            "Look",
            "flaky",
            {**good, "run": "01ONE", "state": "failed"},
            good,
            row="north",
            differed=[{"path": "open", "what": "page", "before": "/a", "after": "/b"}],
        ),
        case("Ask", "paused", {**good, "run": "01ASK", "state": "paused"}, seconds=7),
        case(EVIL, "failed", {**bad, "run": "01EVIL"}, error=ERROR),
        case("Never", "skipped"),
        case("Live", "passed", good, live=True, tags=["nightly"], notes=["Not retried: a model answered."]),
        *(case(f"Fine {number}", "passed", {**good, "seconds": 20.0 if number == 9 else 1.0}) for number in range(34)),
    ]
    runs = [bad, good, *({**bad, "run": name} for name in ("01EVIL", "01ONE", "01ASK"))]
    return report_page.of_batch(batch(*cases, runs=runs, pictures={shot(each)["sha256"]: each for each in PICTURES}))


class Reader:
    """A person with the page open, who sees its messages and requests."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page, self.file = page, file
        self.noise: list[str] = []
        page.on("console", lambda message: self.noise.append(message.text))
        page.on("pageerror", lambda error: self.noise.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                self.noise.append(asked.url)
                if asked.url.partition("#")[0] != file.as_uri() and not asked.url.startswith("data:")
                else None
            ),
        )

    async def open(self, place: str = "") -> None:
        await self.page.goto("about:blank")
        await self.page.goto(self.file.as_uri() + place)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    def cases(self) -> Locator:
        return self.page.locator(".list tbody tr")

    def selected(self) -> Locator:
        return self.page.get_by_role("treeitem", selected=True)

    async def check_names(self) -> None:
        """Check that everything that can be operated, and each picture, has a name."""
        seen = await self.page.locator("body").aria_snapshot()
        assert (
            re.findall(
                r"^ *- (?:button|link|treeitem|tab|textbox|searchbox|combobox|img|dialog)(?: \[[^\]]*\])*:?$",
                seen,
                re.MULTILINE,
            )
            == []
        )

    async def check_contrast(self) -> None:
        """Check that texts stand out from what is behind them, as WCAG's level AA wants."""
        assert min(await self.page.evaluate(CONTRASTS)) >= 4.5

    async def check_fits(self) -> None:
        assert await self.page.evaluate(OVERFLOW) <= 0


@pytest.fixture(scope="module")
async def chromium() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find.find())
        yield browser
        await browser.close()


async def test_every_tab_filter_and_key(chromium: Browser, tmp_path: Path) -> None:
    """A person finds, by keys alone or by the mouse, what failed and why. The page asks for nothing, says nothing on its console, and names everything."""
    file = tmp_path / "report.html"
    file.write_text(forty())
    context = await chromium.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="light", permissions=["clipboard-read", "clipboard-write"]
    )
    reader = Reader(await context.new_page(), file)
    await filters(reader)
    await steps(reader)
    await tabs(reader)
    await themes_and_help(reader)
    await narrow(reader)
    assert reader.noise == []
    assert await reader.page.title() != "live"
    await context.close()


async def filters(reader: Reader) -> None:
    page = reader.page
    await reader.open()
    await expect(reader.cases()).to_have_count(40)
    await reader.check_names()
    await reader.check_contrast()
    await reader.press("/")
    await page.keyboard.type("nearest orders")
    await expect(page.get_by_text("No case matches.")).to_be_visible()
    await reader.press("Escape", "/")
    await page.keyboard.type("NORTH")
    await expect(reader.cases()).to_have_count(1)
    await reader.press("Escape", "/")
    await page.keyboard.type("nightly")
    await expect(reader.cases()).to_have_count(1)
    await reader.press("Escape")
    await expect(reader.cases()).to_have_count(40)
    await page.get_by_role("button", name="failed 2").click()
    await page.get_by_role("button", name="flaky 1").click()
    await expect(reader.cases()).to_have_count(3)
    await expect(page).to_have_url(re.compile("#cases\\?status=failed%2Cflaky$"))
    await page.reload()
    await expect(reader.cases()).to_have_count(3)
    await page.get_by_role("button", name="all 40").click()
    await page.get_by_role("button", name="live model 1").click()
    await expect(reader.cases()).to_have_count(1)
    await reader.press("Escape")
    await page.get_by_role("combobox", name="Order").select_option("longest first")
    await expect(reader.cases().first).to_contain_text("Fine 9")
    await page.get_by_role("combobox", name="Order").select_option("in order")
    await page.get_by_role("combobox", name="Order").blur()


async def steps(reader: Reader) -> None:
    page = reader.page
    await reader.press("j", "j", "k", "Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("failed.*Pay the orders"))
    await expect(reader.selected()).to_contain_text("pay")
    panel = page.get_by_role("region", name="Step")
    for text in (
        "Pay now",
        "target-not-found",
        "Add note",
        "look at the page",
        "http://shop.test/orders/1004",
        "ok→error",
    ):
        await expect(panel).to_contain_text(text)
    assert await panel.get_by_text(f"after {FAILED} as well").count() == 1
    for name in ("Before", "When it failed"):
        picture = panel.get_by_role("img", name=name)
        await picture.scroll_into_view_if_needed()
        await expect(picture).to_have_js_property("naturalWidth", 640)
    await panel.get_by_role("button", name="When it failed: http://shop.test/orders/1004: enlarge").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await reader.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await reader.check_names()
    await page.get_by_role("button", name="Copy runops resume 01BAD").click()
    await expect(page.get_by_role("status")).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == "runops resume 01BAD"
    await expect(panel.get_by_text(f"runops show 01BAD --at '{FAILED}'")).to_be_visible()
    rows = page.get_by_role("treeitem")
    before = await rows.count()
    await reader.press("ArrowLeft", "ArrowLeft", "ArrowUp")
    await expect(reader.selected()).to_contain_text("8 iterations")
    await reader.press("Enter")
    await expect(rows).to_have_count(before - 2 + 8)
    await reader.press("ArrowRight", "ArrowRight", "j")
    await expect(reader.selected()).to_contain_text("look")
    place = "#case/flows%2Fpay_the_orders.yaml/1/steps/each_order%5B%23996%5D%2Flook"
    await expect(page).to_have_url(reader.file.as_uri() + place)
    await reader.open(place)
    await expect(panel.get_by_role("heading", level=2)).to_have_text("each_order[#996]/look")
    await reader.press("f")
    await expect(panel.get_by_role("heading", level=2)).to_have_text(FAILED)
    await rows.filter(has_text="user").click()
    await expect(panel).to_contain_text("Attempt 2 of 2")
    await panel.get_by_text("Attempt 1 of 2").click()
    await expect(panel.get_by_text("look at the page")).to_be_visible()


async def tabs(reader: Reader) -> None:
    page = reader.page
    panel = page.get_by_role("tabpanel")
    await reader.press("2")
    await expect(page.get_by_role("tab", selected=True)).to_have_text("Timeline")
    assert await panel.locator(".bar").count() > 10
    await reader.check_names()
    await page.get_by_role("tab", name="Timeline").click()
    await reader.press("ArrowRight")
    await expect(page.get_by_role("tab", name="Conversation")).to_be_focused()
    for text in ("Choose the orders", "The open ones.", "1,200 tokens in  80 out", "$0.0042", EVIL):
        await expect(panel).to_contain_text(text)
    await reader.check_contrast()
    await reader.press("4")
    for text in (
        "GET /api failed",
        "500",
        "playwright show-trace /home/trace.zip",
        "After each_order[#1004]/look",
        "the page went to another address before",
        "playwright show-trace '/home/my trace-1.zip'",
    ):
        await expect(panel).to_contain_text(text)
    await reader.check_names()
    await reader.press("5")
    await expect(panel).to_contain_text("Since the last run that passed, 01GREEN")
    await reader.press("2")
    await panel.get_by_role("treeitem").filter(has_text="choose").click()
    await expect(page.get_by_role("tab", selected=True)).to_have_text("Steps")
    await page.get_by_text("About this run").click()
    await expect(page.get_by_text("day=1")).to_be_visible()
    await reader.press("f", "f")
    await expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"flaky.*Look"))
    await page.get_by_role("link", name=re.compile("Run 1.*failed")).click()
    await expect(page.get_by_text("01ONE", exact=True)).to_be_visible()
    await page.get_by_role("tab", name="Differences").click()
    await expect(panel).to_contain_text("/a")
    await reader.press("Escape")
    await expect(page.get_by_role("link", name="Look", exact=True)).to_be_focused()
    await reader.press("f", "ArrowRight")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Ask")
    await page.get_by_role("link", name="Next case").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(EVIL)
    await page.get_by_role("link", name="Next case").click()
    await expect(page.get_by_text("No run was begun.")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(EVIL)


async def themes_and_help(reader: Reader) -> None:
    page = reader.page
    await reader.open()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(ground)
    await reader.press("t", "t")
    dark = await page.evaluate(ground)
    assert dark != light
    await reader.check_contrast()
    await page.get_by_role("button", name="Theme").click()
    assert await page.evaluate(ground) == light
    await page.emulate_media(color_scheme="dark")
    assert await page.evaluate(ground) == dark
    await reader.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_contain_text("next failure")
    await reader.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.emulate_media(media="print", color_scheme="dark")
    assert await page.evaluate(ground) == light
    await expect(page.get_by_role("searchbox")).to_be_hidden()
    await page.emulate_media(media="screen", color_scheme="light")


async def narrow(reader: Reader) -> None:
    """On a phone, and where a person has enlarged the page, nothing is beside the edge."""
    page = reader.page
    await page.set_viewport_size({"width": 360, "height": 700})
    await reader.open()
    await reader.check_fits()
    await page.get_by_role("link", name="Pay the orders").click()
    tree = page.get_by_role("tree")
    for key in "12345":
        await reader.press(key)
        await reader.check_fits()
    await reader.press("1")
    await tree.get_by_role("treeitem").filter(has_text="choose").click()
    await expect(tree).to_be_hidden()
    await reader.check_fits()
    await page.get_by_role("button", name="Back to the steps").click()
    await expect(tree).to_be_visible()


async def test_without_scripts_the_page_is_a_table(chromium: Browser, tmp_path: Path) -> None:
    """A viewer that runs no script shows each case with its outcome and its error."""
    file = tmp_path / "report.html"
    file.write_text(forty())
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(file.as_uri())
    await expect(page.locator("tbody tr")).to_have_count(40)
    await expect(page.locator("tbody tr").first).to_contain_text("no element matches")
    await context.close()
