"""The command with Firefox: a workflow from sign-in to output, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import firefox, site
from tests.command import Project

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver, pytest.mark.drawn(share=0.25, of="firefox command")]

FLOW = """version: 1
inputs: {base_url: {type: string}}
nodes:
  - {id: sign_in, type: browser_action, action: goto, url: "{{ inputs.base_url }}/sign-in"}
  - {id: name, type: browser_action, action: fill, target: {label: Name}, value: Ada}
  - {id: send, type: browser_action, action: click, target: {role: button, name: Send}, verify: [{text: Hello Ada}]}
  - {id: ask, type: browser_action, action: click, target: {role: button, name: Delete}}
  - {id: sure, type: browser_action, action: dialog, answer: accept}
  - {id: more, type: browser_action, action: click, target: {role: link, name: More}, opens: more}
  - {id: said, type: browser_query, query: text, tab: more, target: {css: h1, frame: inner}}
  - {id: keep, type: browser_action, action: save_session, name: site}
output: "{{ said }}"
"""

AGAIN = """version: 1
browser: {engine: firefox}
inputs: {base_url: {type: string}}
nodes:
  - {id: signed, type: browser_action, action: load_session, name: site}
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/me"}
  - {id: who, type: browser_query, query: text, target: {css: h1}}
output: "{{ who }}"
"""

FORM = """<!doctype html><title>Sign in</title><form action=/hello><label>Name <input name=name></label><button>Send</button></form>"""
HELLO = """<!doctype html><title>Hello</title><p>Hello %s</p>
<button onclick="confirm('Delete?') && document.title.length">Delete</button> <a href=/more target=_blank>More</a>"""


@pytest.fixture
def served() -> Iterator[site.Site]:
    with site.serve() as served:
        served.page("/sign-in", FORM, set_cookie="who=ada; Path=/; Max-Age=3600")
        served.answer("/hello", lambda request: site.Answer(HELLO % request.query["name"]))
        served.page("/more", "<!doctype html><title>More</title><iframe name=inner src=/inner></iframe>")
        served.page("/inner", "<!doctype html><h1>Inside</h1>")
        served.answer("/me", lambda request: site.Answer(f"<h1>{request.headers.get('cookie', 'nobody')}</h1>"))
        yield served


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    project.environment.pop("RUNOPS_BROWSER", None)
    if firefox.PROGRAM is not None:
        project.environment["RUNOPS_BROWSER"] = firefox.PROGRAM
    return project


@pytest.mark.drawn(0)
@firefox.needed
def test_a_workflow_runs_in_firefox(project: Project, served: site.Site) -> None:
    """A run with `--engine firefox` fills, clicks, answers a dialog, reads a frame of a new tab, and saves a sign-in that a later run loads."""
    project.write("flow.yaml", FLOW)
    project.write("again.yaml", AGAIN)
    done = project.runops("run", "flow.yaml", "--engine", "firefox", "-i", f"base_url={served.origin}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "Inside"
    assert "Firefox/" in served.arrived("/sign-in")[0].headers["user-agent"]
    again = project.runops("run", "again.yaml", "-i", f"base_url={served.origin}")
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() == "who=ada"


@firefox.needed
def test_a_document_of_another_origin_is_refused_there(project: Project, served: site.Site) -> None:
    """A redirect to an origin that the file does not allow ends the run with `origin-refused`, and nothing is sent there."""
    with site.serve() as other:
        served.redirect("/away", f"{other.origin}/")
        project.write(
            "flow.yaml",
            AGAIN.replace("- {id: signed, type: browser_action, action: load_session, name: site}", "").replace(
                "/me", "/away"
            ),
        )
        done = project.runops("run", "flow.yaml", "-i", f"base_url={served.origin}")
        assert (done.returncode, "code     origin-refused" in done.stderr) == (1, True), done.stderr
        assert other.requests == []


def test_a_missing_browser_is_named_with_its_fix(project: Project, tmp_path: Path) -> None:
    """Without a browser of the engine a run ends with `browser-not-found` and the command that installs one."""
    project.environment |= {"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "none"), "RUNOPS_BROWSER": ""}
    project.write("flow.yaml", AGAIN.replace("firefox", "webkit"))
    done = project.runops("run", "flow.yaml", "-i", "base_url=http://127.0.0.1:9")
    assert done.returncode == 3
    assert "no browser of the engine webkit was found" in done.stderr
    assert "runops install webkit" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_firefox_for_chromium_is_named_with_its_fix(project: Project) -> None:
    """A `RUNOPS_BROWSER` that is a Firefox ends a run in Chromium with the engine to ask for."""
    project.environment["RUNOPS_BROWSER"] = "firefox"
    project.write("flow.yaml", AGAIN.replace("browser: {engine: firefox}\n", ""))
    done = project.runops("run", "flow.yaml", "-i", "base_url=http://127.0.0.1:9")
    assert done.returncode == 3
    assert "--engine firefox" in done.stderr
