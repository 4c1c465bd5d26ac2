"""`runops repair` where no candidate is proved: a model fixes the file in a build, and the result is a patch for review."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.observation import page_text
from runtime.testing import scripted_model
from tests import builds_rig
from tests.builds_rig import Builds, use
from tests.chats import words_of
from tests.paying import execute, finish
from tests.site import Site, serve

FLOW = """\
version: 1
name: Read the total
inputs: {{base: {{type: string, default: "{base}"}}}}
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{{{{ inputs.base }}}}/"}}
  - {{id: look, type: group, use: parts/head.yaml}}
  - id: total
    type: browser_query
    query: text
    target: {{css: p}}   # stands at the end
    verify: [{{visible: {{css: "#total"}}}}]
    timeout: 0.2
output: "{{{{ total }}}}"
"""
PART = (
    "version: 1\nnodes: [{id: head, type: browser_query, query: text, target: {role: heading}}]\noutput: '{{ head }}'\n"
)
PAGE = "<!doctype html><title>Till</title><h1>Till</h1><p {}>5</p>"
YAML = "{id: total, type: browser_query, query: text, target: {css: p.sum}, timeout: 0.2}"


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Builds, str]]:
    """A project with a failed run: its `verify` names an id that resembles nothing on the page. The workflow uses another file."""
    builds = builds_rig.of(tmp_path_factory.mktemp("till"))
    with serve() as site:
        _serve(site)
        (builds.folder / "flows/parts").mkdir(parents=True)
        builds.project.write("flows/parts/head.yaml", PART)
        builds.project.write("flows/flow.yaml", FLOW.format(base=site.origin).replace("\n", "\r\n"))
        assert builds.project.runops("run", "flows/flow.yaml", "--quiet").returncode == 1
        yield builds, builds.project.runs()[-1]["id"]
    builds.close()


def _serve(site: Site) -> None:
    site.page("/", PAGE.format("class=sum"))


def patched() -> scripted_model.Answer:
    """The model updates the step to the current class, and finishes."""
    return use("update_node", id="total", yaml=YAML, reason="it is called so now") + finish(summary="reads the sum")


def test_a_model_fixes_a_step_without_a_proved_candidate(failed: tuple[Builds, str]) -> None:
    """The failure reaches the model as fenced data, and a finish without changes is refused. A used-up budget exits 5; the resume leaves a patch."""
    builds, run = failed
    file = builds.folder / "flows/flow.yaml"
    before = file.read_bytes()
    stopped = builds.answers(finish()).runops("repair", "--run", run, "--runs", "1", "--budget", "calls=1")
    assert stopped.returncode == 5, stopped.stderr
    assert "drift  total" in stopped.stderr
    first = next(each for each in words_of(builds.asked[0].body) if each.startswith("user: "))
    ours, fence, page = first.partition(page_text.BEGIN)
    assert "Fix the step `total`" in ours
    assert fence
    assert "verify-failed" in page
    assert page.index('heading "Till"') < page.index('"5"') < page.index(page_text.END)
    assert "runops build --resume" in stopped.stderr.splitlines()[-1]

    ended, value = builds.resumes([patched()], "--budget", "calls=9")
    assert "there is nothing to review" in builds.outputs(0)[0]
    assert (ended.returncode, value["status"], value["finish"]["fix"]["verdict"]) == (6, "done", "proved"), ended.stderr
    assert file.read_bytes() == before
    patch = Path(value["finish"]["fix"]["kept"]).read_text()
    assert [line for line in patch.splitlines() if line.startswith("+") and "p.sum" in line] != []
    assert f"runops repair --run {run} --apply" in ended.stderr


@pytest.mark.drawn(0)
def test_a_fix_is_applied_only_on_request(failed: tuple[Builds, str]) -> None:
    """`repair` exits 6 and leaves the file. `--apply` writes the patch, and the file then passes. The step is tried at the state where the run failed."""
    builds, run = failed
    file = builds.folder / "flows/flow.yaml"
    before = file.read_bytes()
    done = builds.answers(execute("total"), patched()).runops("repair", "--run", run, "--runs", "1", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["status"], report["fix"]["verdict"]) == (6, "fix-ready", "proved"), done.stderr
    assert report["build"]["status"] == "done"
    [tried] = builds.outputs()
    assert "0 of 1 nodes ran" in tried
    assert "began on the state kept after `open`" in tried
    assert 'heading "Till"' in tried
    assert file.read_bytes() == before
    assert builds.project.runops("repair", "--run", run, "--apply").returncode == 0
    try:
        assert b"p.sum" in file.read_bytes()
        assert file.read_bytes().count(b"\r\n") == file.read_bytes().count(b"\n")
        assert "5" in builds.project.runops("run", "flows/flow.yaml", "--frozen").stdout
    finally:
        file.write_bytes(before)


@pytest.mark.drawn(0)
def test_a_model_that_finds_no_fix_leaves_the_diagnosis(failed: tuple[Builds, str]) -> None:
    """A model that finds no fix exits 1 with the diagnosis and its cost. `--no-model` sends no request."""
    builds, run = failed
    gave_up = builds.answers(finish(done=False, summary="The total is gone.")).runops("repair", "--run", run, "--json")
    data = json.loads(gave_up.stdout)
    assert (gave_up.returncode, data["kind"], data["fix"], data["build"]["status"]) == (1, "drift", None, "given-up")
    assert "found no fix: The total is gone." in gave_up.stderr
    assert "  cost   1 request  " in gave_up.stderr
    assert "  fix    none was found: " in gave_up.stderr
    alone = builds.answers().runops("repair", "--run", run, "--no-model", "--json")
    assert (alone.returncode, json.loads(alone.stdout)["build"], builds.asked) == (1, None, []), alone.stderr
