"""Secrets that equal ordinary words of the file (`password`, `secret`): such a word is no secret as an id, key, type or label."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Project
from tests.site import Answer, Request, Site, serve

FORM = "<!doctype html><title>In</title><form method=post action=/in><label>password <input name=password></label><button>Sign in</button></form>"

FLOW = """\
version: 1
name: password
inputs: {{base: {{type: string, default: "{base}"}}}}
secrets: [WORD]
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{{{{ inputs.base }}}}/"}}
  - id: password   # the password
    type: browser_action
    action: fill
    target: {{label: password}}
    value: {value}
  - {{id: send, type: browser_action, action: click, target: {{role: button, name: Sign in}}, effect: idempotent, verify: [{{title: Done}}]}}
  - {{id: said, type: browser_query, query: text, target: {{css: p}}}}
  - {{id: secret, type: browser_action, action: click, target: {{role: button, name: "{button}"}}, timeout: 0.5}}
output: {{password: "{{{{ said }}}}", secret: true}}
"""


@pytest.fixture
def site() -> Iterator[Site]:
    """A site that shows the value sent to it."""
    with serve() as site:
        site.page("/", FORM)

        def answer(request: Request) -> Answer:
            said = request.body.partition("=")[2]
            return Answer(f"<!doctype html><title>Done</title><p>You sent {said}.</p><button>Leave</button>")

        site.answer("/in", answer)
        yield site


@pytest.mark.drawn(1)
@pytest.mark.parametrize("word", ["password", "secret"])
def test_a_word_of_the_file_is_no_secret_but_page_text_is_masked(word: str, site: Site, tmp_path: Path) -> None:
    """A failed run resumes after the step whose id equals the secret, and page text with the word is masked in the log."""
    project = Project(tmp_path, WORD=word)
    file = project.write(
        "flow.yaml", FLOW.format(base=site.origin, value='"{{ secrets.WORD }}"', button="Not yet there")
    )
    failed = project.here("run", "flow.yaml", "--json")
    assert json.loads(failed.stdout)["runs"][0]["error"]["code"] == "target-not-found", failed.stderr
    file.write_text(file.read_text().replace("Not yet there", "Leave"))
    resumed = project.here("resume", "last", "--allow-changed", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["output"] == {"password": "You sent [hidden].", "secret": True}
    assert {each.body for each in site.arrived("/in")} == {f"password={word}"}
    log = next((tmp_path / ".runops" / "conversations").glob("*.jsonl")).read_text()
    assert '"path":"password"' in log
    assert "You sent [hidden]." in log
    assert f"You sent {word}" not in log


def test_a_secret_typed_literally_is_refused_by_name_and_place(site: Site, tmp_path: Path) -> None:
    """A field that takes secrets and has the literal word as its value is refused, and nothing starts."""
    project = Project(tmp_path, WORD="password")
    project.write("flow.yaml", FLOW.format(base=site.origin, value="password", button="Leave"))
    refused = project.here("run", "flow.yaml")
    assert refused.returncode == 2
    assert "flow.yaml:11:12: the value of the secret WORD is in the workflow file itself" in refused.stderr
    assert "write `{{ secrets.WORD }}` in its place" in refused.stderr
    assert site.arrived("/") == []
