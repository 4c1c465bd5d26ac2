"""`runops repair`: the cause of a failed run, a patch for review, and no change before `--apply`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Project
from tests.site import Answer, Request, Site, serve

pytestmark = pytest.mark.drawn(share=0.5, of="repair")

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
    """A site with one form, whose button has been renamed."""
    with serve() as site:
        site.page("/", PAGE.format("Book the payment"))

        def done(_request: Request) -> Answer:
            return Answer("<!doctype html><title>Done</title><p>Booked</p>")

        site.answer("/done", done)
        yield site


def test_a_fix_is_proposed_proved_applied_and_resumed(till: Site, tmp_path: Path) -> None:
    """The action is withheld during the proof, and `git apply` accepts the patch. The run's log changes only at the resume with the fixed file."""
    project = Project(tmp_path)
    file = project.write("flow.yaml", FLOW.format(base=till.origin).replace("\n", "\r\n"))
    text = file.read_bytes()
    assert project.here("run", "flow.yaml", "--quiet").returncode == 1
    run = project.runs()[-1]["id"]
    log = tmp_path / ".runops" / "conversations" / f"{run}.jsonl"
    before = log.read_bytes()

    repaired = project.here("repair", "flow.yaml", "--json", "--yes")
    data = json.loads(repaired.stdout)
    assert (repaired.returncode, data["exit"], data["kind"], data["path"]) == (6, 6, "drift", "book"), repaired.stderr
    assert (data["fix"]["verdict"], data["fix"]["reached"], data["fix"]["done"]) == ("held", "book", [])
    assert (file.read_bytes(), log.read_bytes()) == (text, before)
    assert till.arrived("/done") == [], "held actions are not done"
    assert f"runops repair flow.yaml --run {run} --apply" in repaired.stderr
    patch = Path(data["fix"]["kept"])
    assert patch.stat().st_mode & 0o777 == 0o600
    subprocess.run(
        ["git", "apply", "--check", str(patch)],
        cwd=tmp_path,
        check=True,
        env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PATH": "/usr/bin:/bin"},
    )
    copy = data["fix"]["run"]
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
    resumed = project.here("resume", "last", "--allow-changed", "--json")
    assert (resumed.returncode, json.loads(resumed.stdout)["run"]) == (0, run), resumed.stderr
    assert [each.body for each in till.arrived("/done")] == ["amount=5"]

    again = project.here("repair", "flow.yaml", "--run", run)
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing to repair" in again.stderr


def test_the_suggested_commands_fit_the_current_file(till: Site, tmp_path: Path) -> None:
    """A step that the file no longer has gets no fix. A run whose file has moved cannot resume, and the new `run` command is printed."""
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
