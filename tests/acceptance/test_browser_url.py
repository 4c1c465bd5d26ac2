"""`--browser-url`: runs in a browser that somebody else has open, by the command."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import open_browser, shop_flows, site
from tests.command import TIMEOUT, Project

# A driver that is loaded in place of the run's own would outlive its killed engine.
pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver, pytest.mark.drawn(share=0.5, of="browser url")]

FLOW = """
version: 1
name: Two pages
inputs: {base_url: {type: string}}
nodes:
  - {id: sign_in, type: browser_action, action: goto, url: "{{ inputs.base_url }}/sign-in"}
  - {id: first, type: browser_action, action: goto, url: "{{ inputs.base_url }}/first"}
  - {id: wait, type: transform, python: "waiting:until_told", timeout: 600}
  - {id: said, type: browser_query, query: text, target: {css: h1}}
output: "{{ said }} {{ wait }}"
"""

PASSWORD = "hunter2-hunter2"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose own browser cannot be started, with a workflow that waits on a page for a signal file."""
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder)
    project.environment["RUNOPS_BROWSER"] = str(tmp_path / "no-browser")
    project.write("waiting.py", shop_flows.WAITING)
    project.write("pyproject.toml", '[tool.runops]\npython_modules = ["waiting"]\n')
    project.write("flow.yaml", FLOW)
    return project


@pytest.fixture
def served() -> Iterator[site.Site]:
    """A site that shows its page to those who have signed in."""
    with site.serve() as served:
        served.page("/sign-in", "<h1>Welcome</h1>", set_cookie="who=ada")
        served.answer("/first", lambda request: site.Answer(f"<h1>{request.headers.get('cookie', 'nobody')}</h1>"))
        yield served


def tabs(browser: open_browser.Opened) -> list[str]:
    """The addresses of the tabs of the whole browser."""
    with urllib.request.urlopen(f"{browser.url}/json/list", timeout=10) as answer:
        return [each["url"] for each in json.load(answer) if each["type"] == "page"]


def wait_for(file: Path) -> None:
    """Wait until the workflow is where it waits."""
    until = time.monotonic() + TIMEOUT
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_killed_run_continues_there(project: Project, served: site.Site, tmp_path: Path) -> None:
    """A killed run leaves nothing in the browser; its resume continues from the last checkpoint, signed in, and leaves the browser open."""
    with open_browser.opened(tmp_path / "profile") as browser:
        before = tabs(browser)
        with project.start(
            "run", "flow.yaml", "-i", f"base_url={served.origin}", "--browser-url", browser.url
        ) as process:
            wait_for(project.folder / "begun")
            assert served.origin + "/first" in tabs(browser)
            process.kill()
        until = time.monotonic() + TIMEOUT
        while tabs(browser) != before:
            assert time.monotonic() < until
            time.sleep(0.05)
        (project.folder / "go").touch()
        project.environment["RUNOPS_BROWSER_URL"] = browser.socket
        resumed = project.runops("resume", "last")
        assert (resumed.returncode, resumed.stdout) == (0, "who=ada told\n"), resumed.stderr
        # The second one had the cookie of the checkpoint.
        assert [each.headers.get("cookie") for each in served.arrived("/sign-in")] in ([None], [None, "who=ada"])
        assert tabs(browser) == before
        assert browser.process.poll() is None


@pytest.mark.parametrize("form", [("--browser-url", "{}"), ("--browser-url={}",), ()])
def test_a_browser_that_does_not_answer(form: tuple[str, ...], project: Project) -> None:
    """Exit code 3 with the fix; the password in the address stands neither in what is printed nor in the log."""
    url = f"http://ada:{PASSWORD}@127.0.0.1:9/{PASSWORD}?token={PASSWORD}"
    if not form:
        project.environment["RUNOPS_BROWSER_URL"] = url
    given = [each.format(url) for each in form]
    for more in ((), ("--json",)):
        ended = project.here("run", "flow.yaml", "-i", "base_url=http://127.0.0.1:9", *given, *more)
        assert ended.returncode == 3, ended.stderr
        assert "the browser at http://127.0.0.1:9 cannot be used: nothing answers there" in ended.stderr
        assert "--remote-debugging-port" in ended.stderr
        assert PASSWORD not in ended.stdout + ended.stderr
    logs = [file.read_text() for file in (project.folder / ".runops").rglob("*") if file.is_file()]
    assert any("browser-not-reached" in each for each in logs)
    assert not any(PASSWORD in each for each in logs)


@pytest.mark.parametrize(
    "url", [f"ada:{PASSWORD}@host", f"ftp://ada:{PASSWORD}@host/", f"http://ada:{PASSWORD}@ho st:1/"]
)
def test_an_address_that_is_none(url: str, project: Project) -> None:
    """An address that no browser has is refused as a setting, without being shown."""
    ended = project.here("run", "flow.yaml", "--browser-url", url)
    assert ended.returncode == 2
    assert "--browser-url is no address of a server" in ended.stderr
    assert "ws://HOST:PORT" in ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr


def test_the_password_stays_out_of_the_next_command(project: Project) -> None:
    """An error before the run begins repeats the command, of the address only host and port."""
    project.write("flow.yaml", FLOW.replace("inputs:", "secrets: [MISSING]\ninputs:"))
    url = f"https://ada:{PASSWORD}@far.test:444/{PASSWORD}"
    for given in (["--browser-url", url], [f"--browser-url={url}"]):
        ended = project.here("run", "flow.yaml", "-i", "base_url=http://127.0.0.1:9", *given)
        assert ended.returncode == 3
        assert "https://far.test:444" in ended.stderr
        assert PASSWORD not in ended.stderr
