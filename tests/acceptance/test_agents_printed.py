"""The actions of an agent printed as nodes, where it ran in a loop or in a used file."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.testing import responses, scripted_model
from tests.agents import LOOK, Obedient, ask_at, click, fill
from tests.command import Project
from tests.site import Answer, Request, serve

FORM = """<!doctype html><title>Form</title><form method=post action="/done"><label>Name <input name=name></label><button>Send</button></form>"""

LOOP = """
version: 1
inputs: {site: {type: string}}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - id: each
    type: iterate
    over: [Ada, Grace]
    as: name
    nodes:
      - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/"}
      - {id: send, type: agent, goal: "Send the form for {{ name }}.", success: [{text: Thanks}]}
"""

PART = """
version: 1
run: manual
inputs: {site: {type: string}, name: {type: string}}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/"}
  - {id: send, type: agent, goal: "Send the form for {{ inputs.name }}.", success: [{text: Thanks}], output: {sent: string}}
output: "{{ send }}"
"""

USER = """
version: 1
inputs: {site: {type: string}}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - id: part
    type: group
    use: part.yaml
    with: {site: "{{ inputs.site }}", name: Ada}
output: "{{ part }}"
"""


BESIDE = """
version: 1
inputs: {site: {type: string}}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - {id: first, type: group, use: parts/greet.yaml}
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/"}
  - {id: send, type: agent, goal: Send the form., success: [{text: Thanks}]}
"""


def thanks(_request: Request) -> Answer:
    """The page that answers the form."""
    return Answer("<!doctype html><title>Done</title><h1>Thanks</h1>")


def filling(asked: scripted_model.AskedFor) -> scripted_model.Scripted:
    """A model that sends the form for the person named in its goal."""
    name = "Grace" if "Grace" in scripted_model.text_of(asked.items[0]) else "Ada"
    return Obedient(LOOK, fill("Name", name), click("Send"))(asked)


@pytest.mark.drawn(1, of="agents_printed")
def test_one_item_of_a_loop_is_printed_and_named(tmp_path: Path) -> None:
    """The printed file of one loop item is valid, runs, and states the path of that item. Every item then repeats its actions."""
    project = Project(tmp_path)
    with serve() as site, responses.serve(filling, strict=True) as server:
        site.page("/", FORM)
        site.answer("/done", thanks)
        ask_at(project, server)
        project.write("loop.yaml", LOOP)
        done = project.here("run", "loop.yaml", "--input", f"site={site.origin}")
        assert done.returncode == 0, done.stdout + done.stderr
        printed = project.here("show", "last", "--as-nodes", "each[2]/send")
        assert printed.returncode == 0, printed.stderr
        assert "the actions of one turn, each[2]/send" in printed.stdout
        project.write("nodes.yaml", printed.stdout)
        again = project.here("run", "nodes.yaml", "--frozen", "--input", f"site={site.origin}")
        assert again.returncode == 0, printed.stdout + again.stdout + again.stderr
        assert [each.body for each in site.arrived("/done")] == ["name=Ada", "name=Grace", "name=Grace", "name=Grace"]


@pytest.mark.drawn(1, of="agents_printed")
def test_for_an_agent_in_a_used_file_that_file_is_printed(tmp_path: Path) -> None:
    """The printed file replaces the used file, and the workflow that uses it runs without a model."""
    project = Project(tmp_path)
    model = Obedient(LOOK, fill("Name", "Ada"), click("Send"), output={"sent": "yes"})
    with serve() as site, responses.serve(model, strict=True) as server:
        site.page("/", FORM)
        site.answer("/done", thanks)
        ask_at(project, server)
        project.write("part.yaml", PART)
        project.write("user.yaml", USER)
        done = project.here("run", "user.yaml", "--input", f"site={site.origin}")
        assert done.returncode == 0, done.stdout + done.stderr
        printed = project.here("show", "last", "--as-nodes", "part/send")
        assert printed.returncode == 0, printed.stderr
        assert "This is the file that `part` uses" in printed.stdout
        project.write("part.yaml", printed.stdout)
        again = project.here("run", "user.yaml", "--frozen", "--input", f"site={site.origin}")
        assert again.returncode == 0, printed.stdout + again.stdout + again.stderr
        assert [each.body for each in site.arrived("/done")] == ["name=Ada"] * 2


@pytest.mark.drawn(1, of="agents_printed")
def test_a_printed_file_with_used_files_states_its_folder(tmp_path: Path) -> None:
    """The printed file states its folder, and runs from there: its paths are those of the original file."""
    project = Project(tmp_path)
    with serve() as site, responses.serve(filling, strict=True) as server:
        site.page("/", FORM)
        site.answer("/done", thanks)
        ask_at(project, server)
        (project.folder / "flows" / "parts").mkdir(parents=True)
        project.write("flows/parts/greet.yaml", "version: 1\nnodes: [{id: hello, type: transform, expr: hello}]")
        project.write("flows/beside.yaml", BESIDE)
        done = project.here("run", "flows/beside.yaml", "--input", f"site={site.origin}")
        assert done.returncode == 0, done.stdout + done.stderr
        printed = project.here("show", "last", "--as-nodes", "send")
        assert "save it in the folder of " in printed.stdout
        assert "flows/beside.yaml" in printed.stdout
        project.write("flows/nodes.yaml", printed.stdout)
        again = project.here("run", "flows/nodes.yaml", "--frozen", "--input", f"site={site.origin}")
        assert again.returncode == 0, printed.stdout + again.stdout + again.stderr
