"""Observations of pages with dialogs: what a modal one keeps from reach is one line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from nodes.targets import Target
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from tests import browsers, site

pytestmark = pytest.mark.drawn(share=0.4, of="modal dialogs")

BEHIND = (
    "<main id=behind><h1>Runs</h1>"
    + "".join(f"<p><button>Run {number}</button> <a href=/r{number}>Log {number}</a></p>" for number in range(12))
    + "<button id=open onclick=\"document.body.insertAdjacentHTML('beforeend', made()); after()\">New run</button></main>"
)
FORM = "<h2>Start a run</h2><label>Month <input value=2026-09></label><label><input type=checkbox>Refunds</label><button>Start</button>"
FULL = "position:fixed;inset:0"
KINDS = {
    "native": (f"<dialog id=d>{FORM}</dialog>", "d.showModal()"),
    "hidden": (
        f"<div style='{FULL};background:#0006'></div><div style='{FULL};pointer-events:auto'><section role=dialog style='margin:99px;background:#fff'>{FORM}</section></div>",
        "document.body.style.pointerEvents = 'none'; behind.setAttribute('aria-hidden', 'true')",
    ),
    "no role": (f"<div style='{FULL};background:#0006'></div><div style='{FULL}'><div style='margin:99px;background:#fff'>{FORM}</div></div>", ""),
    "overlay beside": (
        f"<div style='{FULL};background:#0006'></div><div role=dialog aria-modal=true style='position:absolute;top:60px;left:300px;background:#fff'>{FORM}</div>",
        "",
    ),
}  # fmt: skip
BESIDE = f"<div role=dialog aria-label=Chat style='position:fixed;right:9px;bottom:9px;background:#fff'>{FORM}</div>"


def page(made: str, after: str) -> str:
    return f"{BEHIND}<script>const made = () => `{made}`; const after = () => {{ {after} }};</script>"


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    with site.serve() as own:
        yield own


@pytest.fixture(scope="module")
async def driven(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    async with browsers.opened(tmp_path_factory.mktemp("private"), served.origin, seconds=60) as browser:
        yield browser


@pytest.fixture
async def tab(driven: Session) -> Tab:
    driven.bound(60)
    return driven.page


async def opened(tab: Tab, served: site.Site, made: str, after: str) -> tuple[str, str]:
    """Open the dialog with a click; return the page and the changes."""
    served.page("/modal", page(made, after))
    await tab.goto(f"{served.origin}/modal")
    before = await tab.look()
    await tab.click(Target(role="button", name="New run"))
    seen = await tab.look()
    return seen.render(3_000), seen.since(before, 800, 2_000)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_behind_a_modal_dialog_is_one_line(kind: str, tab: Tab, served: site.Site) -> None:
    """A modal dialog is shown whole and first, what it keeps from reach in one line at the end, and that is told as no change."""
    shown, changed = await opened(tab, served, *KINDS[kind])
    lines = shown.split("\n")[1:]
    assert "Run 3" not in shown
    assert [each for each in lines if "behind the dialog: 13 buttons, 12 links" in each] == lines[-1:]
    for each in ('"Start a run"', 'textbox "Month" [ref=', 'checkbox "Refunds" [ref=', 'button "Start" [ref='):
        assert each in shown
        assert each in changed
    assert "gone: " not in changed
    assert "Run 3" not in changed


async def test_what_is_behind_can_be_looked_at(tab: Tab, served: site.Site) -> None:
    """The line of what is behind a dialog names a way to see it: its ref, else to find an element in it."""
    served.page("/modal", page(*KINDS["native"]))
    await tab.goto(f"{served.origin}/modal")
    await tab.click(Target(role="button", name="New run"))
    seen = await tab.look()
    ref = seen.render().split("look(ref=")[1].split(")")[0]
    assert 'button "Run 3" [ref=' in seen.subtree(ref)
    assert 'button "Run 3" [ref=' in seen.find(role="button", name="Run 3")


async def test_a_dialog_that_is_not_modal_hides_nothing(tab: Tab, served: site.Site) -> None:
    """Beside a dialog that leaves the page within reach the page is shown as ever; a page that lies in one fixed layer is as well."""
    shown, changed = await opened(tab, served, BESIDE, "")
    assert 'button "Run 3" [ref=' in shown
    assert "behind the dialog" not in shown + changed
    for beside in ("", BESIDE):
        served.page(
            "/modal",
            f"<div style='{FULL};overflow:auto'>{BEHIND}<p style='margin:999px'></p><button>Far</button>{FORM}{beside}</div>",
        )
        await tab.goto(f"{served.origin}/modal")
        seen = (await tab.look()).render()
        assert 'button "Run 3" [ref=' in seen
        assert 'button "Far" [ref=' in seen


async def test_what_lies_over_a_modal_dialog_is_shown(tab: Tab, served: site.Site) -> None:
    """Choices and messages that stand in front of a modal dialog, but not in it, are shown with it."""
    over = "<div style='position:absolute;top:9px;left:400px;z-index:9'><div role=option tabindex=0>parquet</div></div><div role=alert>Check the month</div>"
    shown, _changed = await opened(tab, served, KINDS["no role"][0] + over, "")
    assert 'option "parquet" [ref=' in shown
    assert 'alert "Check the month"' in shown
    assert "Run 3" not in shown


async def test_a_closed_dialog_leaves_the_page_as_it_was(tab: Tab, served: site.Site) -> None:
    """When a modal dialog closes, what was behind it is told as neither new nor gone."""
    made, after = KINDS["native"]
    served.page("/modal", page(made, after))
    await tab.goto(f"{served.origin}/modal")
    await tab.click(Target(role="button", name="New run"))
    before = await tab.look()
    await tab.page.keyboard.press("Escape")
    changed = (await tab.look()).since(before)
    assert "new: " not in changed
    assert changed.startswith("gone: ")
