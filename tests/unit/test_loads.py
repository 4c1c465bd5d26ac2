"""Addresses that differ only in their fragment: when they keep the document, and when they load a new one."""

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
    """The load of the last attempt of each `goto` of the run."""
    last = {path: attempts[-1] for path, attempts in rig.history.attempts.items()}
    return {
        path: each.result.page.load if each.result is not None and each.result.page is not None else None
        for path, each in last.items()
        if each.call.action == "goto"
    }


async def test_a_fragment_keeps_the_document_unless_load_is_always(tmp_path: Path) -> None:
    """The first `goto` of a run loads a document, later ones that change only the fragment keep it; `load: always` loads another."""
    rig = Rig(tmp_path, flow(goto("first", "a"), goto("second", "b"), goto("third", "c", ", load: always")))
    await rig.start()
    assert loaded(rig) == {"first": "new", "second": "same", "third": "new"}


async def test_the_first_goto_after_a_resume_loads_a_new_document(tmp_path: Path) -> None:
    """Scripts of the surviving page have the last process's state, so the first `goto` reloads; the second keeps the document again."""
    rig = Rig(tmp_path, flow(goto("first", "a"), pay(", after_crash: skip"), goto("second", "b"), goto("third", "c")))

    rig.site.on_click = kill
    with pytest.raises(Killed):
        await rig.start()
    rig.die(browser_survives=True)
    assert (await rig.resume()).status == "passed"
    assert loaded(rig) == {"first": "new", "second": "new", "third": "same"}


async def test_the_first_goto_after_a_failed_step_loads_a_new_document(tmp_path: Path) -> None:
    """A failed step may have left the page in any state, so the next `goto` reloads; the one after it keeps the document."""
    look = "{id: look, type: browser_query, query: text, target: {css: gone}, on_error: continue}"
    text = flow(goto("first", "a"), look, goto("second", "b"), goto("third", "c"))
    rig = Rig(tmp_path, text, missing={"css=gone"})
    assert (await rig.start()).status == "passed"
    assert loaded(rig) == {"first": "new", "second": "new", "third": "same"}


async def test_filled_fields_are_dropped_on_a_page_with_a_fragment(tmp_path: Path) -> None:
    """Fields filled again for a side effect that had happened are not sent with the next one, even if the address has a fragment."""
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
