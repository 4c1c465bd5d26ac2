"""An address that differs only behind `#`: when it leaves the document as it is, and when a new one is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.errors import SiteError
from tests.fakes import FakePage
from tests.rig import Killed, Rig
from tests.unit.test_handle import action, click, handle
from tests.unit.test_resume import flow, kill, pay

APP = "http://shop.test/app"


def goto(name: str, view: str, more: str = "") -> str:
    """Load a view of the application."""
    return f"{{id: {name}, type: browser_action, action: goto, url: '{APP}#{view}'{more}}}"


def loaded(rig: Rig) -> dict[str, str | None]:
    """For each `goto` of the run what its last attempt loaded."""
    last = {path: attempts[-1] for path, attempts in rig.history.attempts.items()}
    return {
        path: each.result.page.load if each.result is not None and each.result.page is not None else None
        for path, each in last.items()
        if each.call.action == "goto"
    }


async def test_a_view_of_the_same_document_is_no_new_one_unless_it_is_asked_for(tmp_path: Path) -> None:
    """The first `goto` of a run loads a document, the next ones behind `#` leave it; `load: always` loads another."""
    rig = Rig(tmp_path, flow(goto("first", "a"), goto("second", "b"), goto("third", "c", ", load: always")))
    await rig.start()
    assert loaded(rig) == {"first": "new", "second": "same", "third": "new"}


async def test_the_first_goto_after_a_resume_loads_a_new_document(tmp_path: Path) -> None:
    """What scripts of the surviving page hold was the last process's; the second `goto` leaves the document again."""
    rig = Rig(tmp_path, flow(goto("first", "a"), pay(", after_crash: skip"), goto("second", "b"), goto("third", "c")))

    rig.site.on_click = kill
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=True)
    assert (await rig.resume()).status == "passed"
    assert loaded(rig) == {"first": "new", "second": "new", "third": "same"}


async def test_the_first_goto_after_a_failed_step_loads_a_new_document(tmp_path: Path) -> None:
    """Nobody knows how a step that failed left the page; after one that was passed over, the document stays."""
    look = "{id: look, type: browser_query, query: text, target: {css: gone}, on_error: continue}"
    text = flow(goto("first", "a"), look, goto("second", "b"), goto("third", "c"))
    rig = Rig(tmp_path, text, missing={"css=gone"})
    assert (await rig.start()).status == "passed"
    assert loaded(rig) == {"first": "new", "second": "new", "third": "same"}


async def test_what_was_typed_is_dropped_from_a_page_behind_a_fragment(tmp_path: Path) -> None:
    """A block runs again, and its side effect had happened: what was typed again for it does not go out with the next one, whatever the page's address."""
    fill = "{id: name, type: browser_action, action: fill, target: {label: Name}, value: A}"
    other = click("other", ", effect: idempotent")
    rig = Rig(tmp_path, flow(handle([goto("first", "a"), fill, action("send"), other], ", attempts: 2")))
    rig.site.texts["css=send_done"] = "yes"

    async def failing_once(target: str, page: FakePage) -> None:
        if target == "css=other":
            page.browser.site.before_click = None
            raise SiteError("target-not-found", "there is no such element")

    rig.site.before_click = failing_once
    assert (await rig.start()).status == "passed"
    assert rig.site.actions == ["css=send", "css=other"]
    assert rig.site.records == [{'label="Name"': "A"}, {}]
