"""`runops show RUN --html`: the page of one run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command import Project
from tests.report_pages import Page

FLOW = """
version: 1
name: Share
inputs: {{key: {{type: string, default: k-4711}}}}
nodes:
  - {{id: whole, type: transform, expr: "{{{{ {whole} }}}}"}}
  - {{id: share, type: transform, expr: "{{{{ 100 // whole }}}}"}}
"""

LOOK = """
version: 1
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{page}"}}
  - {{id: shown, type: browser_query, query: assert, rules: [{{visible: {{text: Open}}}}], timeout: 1}}
"""


def test_the_page_of_a_failed_run_says_what_changed_since_it_passed(tmp_path: Path) -> None:
    """It has the steps, the error and its place, and the differences from the last run of that file with the same inputs that passed."""
    project = Project(tmp_path)
    project.write("share.yaml", FLOW.format(whole=4))
    assert project.here("run", "share.yaml", "--quiet").returncode == 0
    (green,) = project.runs()
    shown = project.here("show", green["id"], "--html").stdout
    assert "since_green" not in Page(shown).data["cases"][0]
    assert project.here("run", "share.yaml", "--quiet", "-i", "key=other").returncode == 0
    project.write("share.yaml", FLOW.format(whole=0))
    assert project.here("run", "share.yaml", "--quiet").returncode == 1
    (case,) = Page(project.here("show", "last", "--html").stdout).data["cases"]
    assert (case["status"], case["path"], case["error"]["code"]) == ("failed", "share", "expression-failed")
    assert case["place"].endswith("share.yaml:7:5")
    assert case["green"] == green["id"]
    assert ("whole", "value", {"json": 4}, {"json": 0}) in [
        (each.get("path"), each["what"], each["before"], each["after"]) for each in case["since_green"]
    ]


def test_a_copied_run_has_its_files_where_it_is(tmp_path: Path) -> None:
    """Of a `.runops` that was moved elsewhere, as an artifact of a job is, all paths of evidence exist, and the page has the picture."""
    job, here = Project(tmp_path / "job"), Project(tmp_path / "here")
    for each in (job, here):
        each.folder.mkdir()
    page = "data:text/html,<p>closed"
    job.write("look.yaml", LOOK.format(page=page))
    assert job.here("run", "look.yaml", "--quiet", "--trace", "on-failure").returncode == 1
    (job.folder / ".runops").rename(here.folder / ".runops")
    (evidence,) = json.loads(here.here("show", "last", "--json").stdout)["evidence"]
    kept = [evidence[name]["path"] for name in ("screenshot", "observation", "trace")]
    assert [Path(each).is_file() for each in kept] == [True] * 3, kept
    assert all(each.startswith(str(here.folder)) for each in kept)
    assert str(job.folder) not in here.here("show", "last", "--at", "shown").stdout
    assert Page(here.here("show", "last", "--html").stdout).data["pictures"]
