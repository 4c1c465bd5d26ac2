"""`runops try`: one node by itself, with pinned values for what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Project
from tests.site import Answer, Site, serve

pytestmark = pytest.mark.drawn(share=0.4, of="try")

MAIN = """\
version: 1
name: Main
inputs:
  base: {type: string}
  factor: {type: integer, default: 3}
secrets: [NOT_SET]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/orders"}
  - {id: secret, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.NOT_SET }}"}
  - {id: first, type: transform, expr: "{{ inputs.factor }}"}
  - {id: keep, type: context, set: {total: "{{ first }}"}}
  - id: choose
    type: route
    branches: [{name: yes_, when: "{{ first > 1 }}", nodes: [{id: taken, type: transform, expr: 1}]}]
  - id: each
    type: iterate
    over: "{{ [first, 2] }}"
    as: item
    nodes:
      - id: sum
        type: transform
        expr: "{{ [item, loop.index, vars.total, inputs.factor, first | default(9), run.taken.choose] }}"
      - {id: double, type: transform, expr: "{{ sum[0] * 2 }}"}
  - {id: part, type: group, use: parts/square.yaml, with: {side: "{{ first }}"}}
  - {id: count, type: browser_query, query: text, target: {css: "#count"}}
  - {id: pay, type: browser_action, action: click, target: {role: button, name: "Pay {{ first }}"}, timeout: 5}
  - id: both
    type: group
    nodes:
      - {id: note, type: browser_action, action: fill, target: {label: Note}, value: hello}
      - {id: send, type: browser_action, action: click, target: {role: button, name: Send}}
"""
SQUARE = """\
version: 1
run: manual
inputs: {side: {type: integer}}
nodes: [{id: area, type: transform, expr: "{{ inputs.side * inputs.side }}"}]
output: "{{ area }}"
"""
PAGE = """<!doctype html><title>Orders</title><p id=count>3 orders</p>
<form method=post action=/paid><label>Note <input name=note></label><button>Pay 7</button><button>Send</button></form>"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serve() as served:
        served.page("/orders", PAGE)
        served.answer("/paid", lambda _request: Answer("<!doctype html><title>Paid</title>"))
        yield served


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a workflow and a file that it uses."""
    project = Project(tmp_path)
    project.write("main.yaml", MAIN)
    (tmp_path / "parts").mkdir()
    project.write("parts/square.yaml", SQUARE)
    return project


def test_what_a_node_reads_is_listed_as_options(project: Project) -> None:
    """Unpinned items, loops, variables, branches and inputs are each listed once as options to type, without defaults. Exit code 2, nothing runs."""
    done = project.here("try", "main.yaml", "sum")
    assert done.returncode == 2
    assert "add --set item=… --set loop.index=… --set vars.total=… --set run.taken.choose=…\n" in done.stderr
    done = project.here("try", "main.yaml", "each", "--json")
    assert json.loads(done.stdout)["error"]["evidence"]["pin"] == [
        "--set first=…", "--set vars.total=…", "--set run.taken.choose=…",
    ]  # fmt: skip
    assert not (project.folder / ".runops").exists()


def test_a_node_reads_its_pinned_values(project: Project) -> None:
    """Pins are parsed as in a file or read from one, and the value is JSON on stdout. `show` knows the trial, and `resume` refuses it."""
    project.write("item.json", '{"no": 1}')
    pins = [
        "--set",
        "item=@item.json",
        "--set",
        "loop.index=4",
        "--set",
        "vars.total=1.5",
        "--set",
        "run.taken.choose=no",
    ]
    done = project.here("try", "main.yaml", "sum", *pins, "-i", "factor=5", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [{"no": 1}, 4, 1.5, 5, 9, "no"]
    shown = project.show("last", "--at", "sum")
    assert [step["status"] for step in shown["steps"]] == ["ok"]
    failed = project.here("try", "main.yaml", "double", "--set", "sum=5")
    assert failed.returncode == 1
    assert "again" in failed.stderr
    assert "runops try main.yaml double --set sum=5" in failed.stderr
    shown = project.here("show", "last")
    assert f"again  runops try {project.folder}/main.yaml double …" in shown.stdout
    assert project.show()["trial"]["pins"] == {"sum": 5}
    refused = project.here("resume", "last")
    assert refused.returncode == 2
    assert "error[trial]" in refused.stderr
    assert "runops try" in refused.stderr


def test_containers_and_used_files_run_their_nodes(project: Project) -> None:
    """A loop runs its items, a group runs the file it uses. A node of that file is found by its path and takes the file's inputs."""
    pins = ["--set", "first=1", "--set", "vars.total=2", "--set", "run.taken.choose=x", "--quiet"]
    assert json.loads(project.here("try", "main.yaml", "each", *pins).stdout) == [2, 4]
    assert json.loads(project.here("try", "main.yaml", "part", "--set", "first=6", "-q").stdout) == 36
    assert json.loads(project.here("try", "main.yaml", "part/area", "-i", "side=5", "-q").stdout) == 25


def test_a_node_on_a_page(project: Project, site: Site) -> None:
    """A query reads the page, and a click is announced and performed. `--dry-run` withholds it and reports the ready target. A missing target names the nearest."""
    where = ["--url", f"{site.origin}/orders", "-i", f"base={site.origin}"]
    assert json.loads(project.here("try", "main.yaml", "count", *where).stdout) == "3 orders"
    dry = project.here("try", "main.yaml", "pay", "--set", "first=7", *where, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    withheld = json.loads(dry.stdout)
    assert (withheld["held"], withheld["effect"], withheld["page"]) == ("pay", "effect", f"{site.origin}/orders")
    assert withheld["args"]["target"] == {"role": "button", "name": "Pay 7"}
    assert "error" not in dry.stderr
    group = project.here("try", "main.yaml", "both", *where, "--dry-run")
    assert json.loads(group.stdout)["held"] == "both/send"
    assert site.arrived("/paid") == []
    missing = project.here("try", "main.yaml", "pay", "--set", "first=8", *where, "--dry-run")
    assert missing.returncode == 1
    assert "Pay 7" in missing.stderr
    done = project.here("try", "main.yaml", "pay", "--set", "first=7", *where)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "done on the real site: pay (not with --dry-run)"
    assert len(site.arrived("/paid")) == 1
    assert [run["state"] for run in project.runs()] == ["passed", "passed", "passed", "failed", "passed"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sun"], "unknown-node", "did you mean `sum`?"),
        (["part/aera"], "unknown-node", "did you mean `area`?"),
        (["double", "--set", "smu=1"], "unknown-pin", "did you mean `sum`?"),
        (["double", "--set", "inputs.factor=1"], "unknown-pin", "-i NAME=VALUE"),
        (["double", "--set", "secrets.NOT_SET=1"], "unknown-pin", "environment"),
        (["double", "--set", "sum=1", "--set", "sum.x=1"], "bad-input", "once"),
        (["double", "--set", "sum..x=1"], "bad-input", "names nothing"),
        (["sum", "--set", "vars=5"], "bad-input", "`--set vars.NAME=…`"),
        (["sum", "--set", "run.taken=5"], "bad-input", "`--set run.taken.NAME=…`"),
        (["sum", "--set", "run.id.x=5"], "unknown-pin", "`run.errors.ID`"),
        (["count", "-i", "base=http://shop.test", "--url", "file:///etc/hosts"], "bad-input", "http://"),
        (["part", "-i", "side=5", "--set", "first=1"], "unknown-input", "base"),
        (["part/area", "-i", "side=x"], "input-type", "whole number"),
        (["pay", "--set", "first=1"], "no-page", "--url"),
        (["open"], "not-pinned", "-i base=…"),
    ],
)
def test_an_impossible_trial_is_reported(project: Project, arguments: list[str], code: str, said: str) -> None:
    """A bad argument exits 2 with its code and a fix, without a traceback, and nothing runs."""
    done = project.here("try", "main.yaml", *arguments)
    assert done.returncode == 2, done.stderr
    assert f"error[{code}]" in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project.folder / ".runops").exists()


def test_a_saved_session_is_loaded(project: Project) -> None:
    """`--session` opens the page with a saved sign-in. An unknown session is an error with a fix, before anything runs."""
    login = (
        "version: 1\ninputs: {base: {type: string}}\nnodes:\n"
        '  - {id: sign_in, type: browser_action, action: goto, url: "{{ inputs.base }}/login"}\n'
        "  - {id: keep, type: browser_action, action: save_session, name: shop}\n"
    )
    project.write("login.yaml", login)
    with serve() as site:
        site.page("/login", "<!doctype html><title>In</title>", set_cookie="who=admin; Path=/")
        site.answer("/orders", lambda request: Answer(f"<p id=count>{request.headers.get('cookie')}</p>"))
        base = ["-i", f"base={site.origin}"]
        assert project.here("run", "login.yaml", *base).returncode == 0
        arguments = ["try", "main.yaml", "count", *base, "--url", f"{site.origin}/orders"]
        assert json.loads(project.here(*arguments, "--session", "shop").stdout) == "who=admin"
        missing = project.here(*arguments, "--session", "shp")
        assert (missing.returncode, "save_session" in missing.stderr) == (2, True)
    assert project.here(*arguments, "--session", "../shop").returncode == 2


def test_a_secret_that_a_trial_does_not_read_is_hidden_too(project: Project) -> None:
    """Every secret of the file is hidden in a trial's output. An argument that contains one is refused, because trials are kept."""
    project.environment["NOT_SET"] = "hunter22-secret"
    with serve() as site:
        site.page("/orders", "<!doctype html><p id=count>it is hunter22-secret</p>")
        arguments = ["try", "main.yaml", "count", "-i", f"base={site.origin}", "--url"]
        done = project.here(*arguments, f"{site.origin}/orders", "--json")
        assert json.loads(done.stdout)["output"] == "it is [hidden]"
        refused = [
            project.here(*arguments, f"{site.origin}/hunter22-secret"),
            project.here("try", "main.yaml", "first", "-i", "factor=1", "--set", "loop.key=hunter22-secret", "--json"),
        ]
    for each in refused:
        assert (each.returncode, "error[secret-in-input]" in each.stderr) == (2, True), each.stderr
    written = [each.stdout + each.stderr for each in (done, *refused)]
    written += [file.read_text() for file in project.folder.rglob(".runops/*/*.jsonl")]
    assert len(written) == 4
    assert not [each for each in written if "hunter22" in each]


def test_only_the_secrets_that_a_node_reads_are_needed(project: Project, site: Site) -> None:
    """A trial exits 3 without the secret that its node types. Other nodes run without it."""
    done = project.here("try", "main.yaml", "secret", "--url", f"{site.origin}/orders", "-i", f"base={site.origin}")
    assert done.returncode == 3
    assert "error[secret-missing]" in done.stderr
    assert "NOT_SET" in done.stderr


def test_a_trial_is_marked_and_diff_passes_it_over(tmp_path: Path) -> None:
    """`runops runs` marks it, and `last` of `diff` is the newest whole run: a trial has nothing to be compared with."""
    project = Project(tmp_path)
    project.write("one.yaml", "version: 1\nname: One\nnodes: [{id: one, type: transform, expr: 1}]\n")
    for command in (["run", "one.yaml"], ["run", "one.yaml"], ["try", "one.yaml", "one"]):
        assert project.runops(*command).returncode == 0
    _head, *lines = project.runops("runs").stdout.splitlines()
    assert [line.endswith("  try: One") for line in lines] == [False, False, True]
    assert [each["trial"] for each in json.loads(project.runops("runs", "--json").stdout)["runs"]] == [
        False,
        False,
        True,
    ]
    done = project.runops("diff", "last", "--json")
    assert (done.returncode, json.loads(done.stdout)["after"]) == (0, project.runs()[1]["id"]), done.stderr
