"""`runops repair`: what a run failed of, a patch for review, and nothing changed before it is asked for."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Project
from tests.site import Answer, Request, Site, serve

PAGE = "<!doctype html><title>Till</title><form method=post action=/done><label>Amount <input name=amount></label><button>{}</button></form>"
FLOW = """\
version: 1
name: Take money
inputs: {{base: {{type: string, default: "{base}"}}}}
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{{{{ inputs.base }}}}/"}}
  - {{id: amount, type: browser_action, action: fill, target: {{label: Amount}}, value: "5"}}
  - id: book
    type: browser_action
    action: click
    target: {{role: button, name: Book payment}}   # the only one
    timeout: 0.5
    verify: [{{text: Booked}}]
"""


@pytest.fixture(scope="module")
def till() -> Iterator[Site]:
    """A site with one form, on which a button is called otherwise by now."""
    with serve() as site:
        site.page("/", PAGE.format("Book the payment"))

        def done(_request: Request) -> Answer:
            return Answer("<!doctype html><title>Done</title><p>Booked</p>")

        site.answer("/done", done)
        yield site


def test_a_fix_is_proposed_proved_applied_and_gone_on_with(till: Site, tmp_path: Path) -> None:
    """The action is held while the fix is proved; the patch is what `git apply` takes; the run's own log is not touched until it continues with the fixed file."""
    project = Project(tmp_path)
    file = project.write("flow.yaml", FLOW.format(base=till.origin).replace("\n", "\r\n"))
    text = file.read_bytes()
    assert project.here("run", "flow.yaml", "--quiet").returncode == 1
    run = project.runs()[-1]["id"]
    log = tmp_path / ".runops" / "conversations" / f"{run}.jsonl"
    before = log.read_bytes()

    repaired = project.here("repair", "flow.yaml", "--json", "--yes")
    told = json.loads(repaired.stdout)
    assert (repaired.returncode, told["exit"], told["kind"], told["path"]) == (6, 6, "drift", "book"), repaired.stderr
    assert (told["fix"]["verdict"], told["fix"]["reached"], told["fix"]["done"]) == ("held", "book", [])
    assert (file.read_bytes(), log.read_bytes()) == (text, before)
    assert till.arrived("/done") == [], "held actions are not done"
    assert f"runops repair flow.yaml --run {run} --apply" in repaired.stderr
    patch = Path(told["fix"]["kept"])
    assert patch.stat().st_mode & 0o777 == 0o600
    subprocess.run(
        ["git", "apply", "--check", str(patch)],
        cwd=tmp_path,
        check=True,
        env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PATH": "/usr/bin:/bin"},
    )
    copy = told["fix"]["run"]
    refused = project.here("resume", copy)
    assert (refused.returncode, "runops repair" in refused.stderr) == (2, True)

    forgotten = project.here("resume", run, "--allow-changed")
    assert forgotten.returncode == 1
    assert f"runops repair --run {run} --apply   (a fix of it is ready, and not applied)" in forgotten.stderr

    applied = project.here("repair", "flow.yaml", "--apply")
    assert applied.returncode == 0, applied.stderr
    assert f"runops resume {run} --allow-changed" in applied.stderr
    assert file.read_bytes() == text.replace(b"name: Book payment", b"name: Book the payment")
    twice = project.here("repair", "flow.yaml", "--apply")
    assert twice.returncode == 0, twice.stderr
    went_on = project.here("resume", "last", "--allow-changed", "--json")
    assert (went_on.returncode, json.loads(went_on.stdout)["run"]) == (0, run), went_on.stderr
    assert [each.body for each in till.arrived("/done")] == ["amount=5"]

    again = project.here("repair", "flow.yaml", "--run", run)
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing to repair" in again.stderr


def test_what_goes_on_is_told_of_the_file_as_it_is_now(till: Site, tmp_path: Path) -> None:
    """Of a step that the file has no more no fix is looked for; with a file that stands elsewhere no run continues, and it is said what does."""
    project = Project(tmp_path)
    text = FLOW.format(base=till.origin)
    file = project.write("flow.yaml", text)
    assert project.here("run", "flow.yaml", "--quiet").returncode == 1
    run = project.runs()[-1]["id"]
    file.write_text(text.replace("id: book", "id: pay"))
    gone = project.here("repair", "--yes")
    assert gone.returncode == 1, gone.stderr
    assert "it has changed since the run began" in gone.stderr
    assert "it has no step `book` any more" in gone.stderr
    assert "a model" not in gone.stderr
    file.rename(tmp_path / "moved.yaml").write_text(text)
    moved = project.shell("runops repair moved.yaml --yes > /dev/full")
    assert moved.returncode == 3, "where the result cannot be written"
    assert f"next: runops repair moved.yaml --run {run} --apply" in moved.stderr
    assert "  then   runops run moved.yaml " in moved.stderr
    applied = project.here("repair", "moved.yaml", "--run", run, "--apply")
    assert (applied.returncode, "again  runops run moved.yaml " in applied.stderr) == (0, True), applied.stderr
