"""The engine of a browser: what a file may ask of one, and where a Firefox is found."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pydantic
import pytest
from playwright.async_api import Error

from nodes.errors import SetupError, UsageError
from runtime.browser import open as open_browser
from runtime.browser.chromium import find as chromium
from runtime.browser.engines import find, worker
from runtime.browser.options import BrowserOptions
from runtime.browser.session import Session
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from tests import browsers

CREDENTIALS = {"username": "ada", "password": "x"}


@pytest.mark.parametrize(
    ("options", "lacking"),
    [
        ({"mode": "own"}, "mode `own`"),
        ({"switches": ["--lang=de"]}, "`switches`"),
        ({"http_credentials": CREDENTIALS}, "`http_credentials`"),
        ({"proxy": {"server": "http://proxy.test:3128"}}, "`proxy`"),
        ({"bypass_csp": True}, "`bypass_csp`"),
        ({"touch": True}, "`touch`"),
        ({"permissions": ["geolocation", "midi"]}, "permission `midi`"),
    ],
)
def test_options_of_chromium_are_refused_for_others(options: dict[str, Any], lacking: str) -> None:
    """An option that only Chromium keeps is refused with its name for another engine, and taken for Chromium."""
    BrowserOptions.model_validate(options)
    with pytest.raises(pydantic.ValidationError, match=f"webkit has no {lacking}: leave it out"):
        BrowserOptions.model_validate({"engine": "webkit", **options})


def test_an_option_of_a_device_is_named_as_such(tmp_path: Path) -> None:
    """What a device brings along is refused with its name and a fix that works, whether the file asks for the engine or a flag does."""
    given: dict[str, Any] = {"device": "iPhone 13"}
    with pytest.raises(pydantic.ValidationError) as refused:
        BrowserOptions.model_validate({"engine": "webkit", **given})
    said = "webkit has no `mobile` of the device `iPhone 13`"
    assert f"{said}: write `mobile: false` and `touch: false` beside it, or take the engine" in str(refused.value)
    asked = browsers.Chosen(browser_engine="webkit")
    with pytest.raises(UsageError) as usage:
        open_browser._mode(BrowserOptions.model_validate(given), asked, "own")
    assert said in usage.value.message
    assert usage.value.fix == "write `mobile: false` and `touch: false` beside it, or take the engine `chromium`"
    given |= {"mobile": False}
    with pytest.raises(
        pydantic.ValidationError, match=r"`touch` of the device `iPhone 13`: write `touch: false` beside"
    ):
        BrowserOptions.model_validate({"engine": "webkit", **given})
    given |= {"touch": False}
    BrowserOptions.model_validate({"engine": "webkit", **given})
    wanted, mode = open_browser._mode(BrowserOptions.model_validate(given), asked, "own")
    assert (wanted.viewport.width, mode) == (390, "shared")


def test_other_options_are_taken_for_each_engine() -> None:
    """Size, language, time, colours, place and headers belong to every engine."""
    options = BrowserOptions.model_validate(
        {
            "engine": "firefox",
            "mode": "shared",
            "device": "Desktop Firefox",
            "locale": "de-DE",
            "timezone": "Europe/Berlin",
            "color_scheme": "dark",
            "permissions": ["geolocation"],
            "headers": {"X-A": "b"},
        }
    )
    assert options.only_in_chromium() is None


FILE = """version: 1
browser: {engine: ENGINE}
secrets: [TOKEN]
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - {id: fill, type: browser_action, action: fill, target: {css: input}, value: "{{ secrets.TOKEN }}"}
  - ACTION
"""

ACTIONS = {
    "{id: file, type: browser_action, action: download, target: {css: a}}": "download",
    "{id: tap, type: browser_action, action: tap, target: {css: a}}": "tap",
    "{id: print, type: browser_action, action: pdf}": "PDF of a page",
    "{id: drop, type: browser_action, action: drag, files: a.txt, to: {css: a}}": "drop of files",
    "{id: see, type: browser_action, action: screenshot}": "picture in a run with secrets",
}


@pytest.mark.parametrize(("action", "what"), ACTIONS.items(), ids=ACTIONS.values())
def test_actions_of_chromium_are_refused_where_they_stand(action: str, what: str, tmp_path: Path) -> None:
    """A file for Firefox with an action that only Chromium has is invalid, at that action; for Chromium it is valid."""
    file = tmp_path / "flow.yaml"
    file.write_text(FILE.replace("ACTION", action).replace("ENGINE", "chromium"))
    reader.load(file)
    file.write_text(FILE.replace("ACTION", action).replace("ENGINE", "firefox"))
    with pytest.raises(WorkflowInvalid) as invalid:
        reader.load(file)
    (problem,) = invalid.value.diagnostics
    assert problem.mark is not None
    assert (problem.code, problem.mark.line) == ("engine-lacks", 7)
    assert problem.message == f"firefox has no {what}: only Chromium has it"


def test_a_drag_of_an_element_and_a_picture_without_secrets_are_valid(tmp_path: Path) -> None:
    """Only files are dropped by Chromium's protocol, and only secrets forbid a picture."""
    file = tmp_path / "flow.yaml"
    file.write_text(
        """version: 1
browser: {engine: firefox}
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - {id: drag, type: browser_action, action: drag, target: {css: i}, to: {css: a}}
  - {id: see, type: browser_action, action: screenshot}
"""
    )
    reader.load(file)


@dataclasses.dataclass
class Kind:
    """A kind of browser of Playwright's, with the place of its build."""

    name: str
    executable_path: str


def executable(path: Path) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def found(kind: Kind, named: Path | None, environ: dict[str, str]) -> Path | None:
    return find.find(kind, named, environ)  # type: ignore[arg-type]


def test_the_firefox_that_is_set_comes_first_then_playwrights_then_the_path(tmp_path: Path) -> None:
    """A set Firefox is started, else Playwright's build, else Firefox on PATH; a set Chromium is none."""
    environ = {"PATH": str(tmp_path / "bin"), "RUNOPS_BROWSER": "chromium"}
    missing = Kind("firefox", str(tmp_path / "none"))
    on_path = executable(tmp_path / "bin" / "firefox-esr")
    executable(tmp_path / "bin" / "chromium")
    assert found(missing, None, environ) == on_path
    build = Kind("firefox", str(executable(tmp_path / "cache" / "firefox")))
    assert found(build, None, environ) is None
    mine = executable(tmp_path / "my-firefox")
    assert found(build, mine, environ) == mine
    assert found(build, None, {**environ, "RUNOPS_BROWSER": "firefox-esr"}) == on_path


def test_a_missing_browser_has_a_fix(tmp_path: Path) -> None:
    """Without a build of Playwright's a WebKit is missing, whatever is on PATH; so is a set Firefox that cannot be run."""
    environ = {"PATH": str(executable(tmp_path / "bin" / "firefox").parent)}
    with pytest.raises(SetupError) as webkit:
        found(Kind("webkit", str(tmp_path / "none")), None, environ)
    assert (webkit.value.code, webkit.value.fix) == ("browser-not-found", "type: runops install webkit")
    with pytest.raises(SetupError, match="nowhere/firefox, the browser that is set, cannot be run"):
        found(Kind("firefox", str(tmp_path / "none")), tmp_path / "nowhere/firefox", environ)


@dataclasses.dataclass
class Failing:
    """A browser and its driver, in which the step ``fails`` of opening a session fails; it keeps what is open."""

    fails: str
    addresses: list[str] = dataclasses.field(default_factory=list)
    open: set[str] = dataclasses.field(default_factory=set)
    """What was opened and not closed."""

    @property
    def request(self) -> Failing:
        return self

    def step(self, name: str) -> Part:
        if name == self.fails:
            raise asyncio.CancelledError if name == "page 2" else Error("it broke")
        self.open.add(name)
        return Part(name, self)

    async def new_context(self, *, proxy: dict[str, str] | None = None, **_options: object) -> Part:
        if proxy is None:
            return self.step("fetching")
        self.addresses.append(proxy["server"])
        return self.step("context")


@dataclasses.dataclass
class Part:
    """A context or a page of it."""

    name: str
    owner: Failing
    made: int = 0
    pages: tuple[Part, ...] = ()

    def on(self, event: str, handler: object) -> None:
        """Nothing happens here."""

    async def route(self, url: object, handler: object) -> None:
        """Nothing is requested."""

    async def new_page(self) -> Part:
        self.made += 1
        return self.owner.step(f"page {self.made}")

    async def close(self) -> None:
        self.owner.open.discard(self.name)
        if self.name == "context":
            self.owner.open -= {"page 1", "page 2"}

    dispose = close


@pytest.mark.parametrize("fails", ["context", "page 1", "probe", "fetching", "page 2", "tabs"])
async def test_a_session_that_cannot_be_opened_leaves_nothing(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever opening fails or is interrupted, the shared browser keeps no context, and no proxy listens; the caller leaves by itself."""
    browser, left = Failing(fails), list[str]()

    async def leave() -> None:
        left.append("left")

    async def probed(*_given: object) -> None:
        browser.step("probe")
        browser.open.discard("probe")

    async def begun(*_given: object) -> None:
        browser.step("tabs")

    monkeypatch.setattr(worker, "probe", probed)
    monkeypatch.setattr(Session, "begin_with", begun)
    shared: Any = browser
    one = worker.Worker("firefox", shared, shared, leave, pictures=True)
    with pytest.raises((Error, asyncio.CancelledError)):
        await one.session(BrowserOptions(engine="firefox"), [], leave)
    assert not browser.open
    assert not left
    host, _, port = browser.addresses[0].removeprefix("http://").partition(":")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))


def test_a_firefox_is_not_started_as_a_chromium(tmp_path: Path) -> None:
    """A set Firefox in a run for Chromium is an error that names the engine to ask for."""
    mine = executable(tmp_path / "firefox")
    with pytest.raises(SetupError) as refused:
        chromium.find(mine, {"PATH": ""})
    assert "--engine firefox" in str(refused.value.fix)
