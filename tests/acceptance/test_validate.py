"""`runops validate`, `schema` and `nodes` as processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nodes import budgets, registry
from tests.command import Project

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "workflows" / "pay_orders.yaml"
HEAVY = ("playwright", "openai", "duckdb")
TEN = """\
version: 1
nmae: Shop
inputs:
  base_url: {type: sting}
nodes:
  - {id: open, type: browser_action, action: goto, ulr: "http://shop.test"}
  - {id: user, type: browser_action, action: fil, target: {label: User}, value: 5}
  - {id: orders, type: browser_query, query: extract, target: {role: tabel}, fields: {no: td.no}}
  - {id: each, type: iterate, over: "{{ oders }}", as: order, nodes: [{id: pay, type: transform, expr: "{{ order | uper }}"}]}
  - {id: each, type: group, nodes: [{id: last, type: browser_query, query: url}]}
output: "{{ last }}"
"""
PLACES = ["2:1", "4:20", "6:52", "7:46", "7:81", "8:70", "9:41", "9:116", "10:10"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_valid_files_are_listed_on_stdout(project: Project) -> None:
    """Valid files print one line each and nothing else, with exit code 0; a file that is named twice prints one."""
    other = project.write("other.yaml", EXAMPLE.read_text())
    done = project.here("validate", str(EXAMPLE), "other.yaml", str(EXAMPLE))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ok  {EXAMPLE}\nok  {other.name}\n", "")


def test_a_folder_is_checked_as_run_takes_it(project: Project) -> None:
    """Its workflows count, also the wrong ones; other YAML files do not, nor does a folder without any."""
    for name, text in (("good", EXAMPLE.read_text()), ("wrong", TEN), ("other", "a: 1\n")):
        (project.folder / "flows" / "deep").mkdir(parents=True, exist_ok=True)
        project.write(f"flows/deep/{name}.yaml", text)
    done = project.here("validate", "flows")
    assert (done.returncode, done.stdout) == (2, "ok  flows/deep/good.yaml\n")
    assert done.stderr.splitlines()[-1] == "9 mistakes in 1 of 2 files"
    (project.folder / "empty").mkdir()
    assert "error[nothing-to-run]: there is no workflow to run in empty" in project.here("validate", "empty").stderr


def test_every_mistake_of_a_file_has_its_line_and_column(project: Project) -> None:
    """All mistakes are printed on stderr in file order, each with its line underlined, with exit code 2."""
    text = TEN.replace('output: "{{ last }}"', 'output: "{{ lats }}"')
    project.write("bad.yaml", text)
    done = project.here("validate", "bad.yaml", str(EXAMPLE))
    assert done.returncode == 2
    assert done.stdout == f"ok  {EXAMPLE}\n"
    places = [line.partition("--> bad.yaml:")[2] for line in done.stderr.splitlines() if "-->" in line]
    assert places == [*PLACES, "11:13"]
    assert done.stderr.splitlines()[-1] == "10 mistakes in 1 of 2 files"
    assert "did you mean `last`?" in done.stderr
    assert '11 | output: "{{ lats }}"\n   |             ^^^^\n' in done.stderr
    assert "\x1b" not in done.stderr


def test_json_is_one_object_on_stdout(project: Project) -> None:
    """`--json` gives places as numbers, and prints nothing on stderr."""
    project.write("bad.yaml", TEN)
    done = project.here("validate", "--json", "bad.yaml", str(EXAMPLE), "missing.yaml")
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (2, "")
    assert [each["valid"] for each in report["files"]] == [False, True, False]
    problems = report["files"][0]["problems"]
    assert [f"{each['line']}:{each['column']}" for each in problems] == PLACES
    assert all(each["end"] > each["column"] and each["code"] and each["message"] for each in problems)
    assert report["files"][2]["problems"][0]["code"] == "file-not-found"


def test_on_a_terminal_mistakes_are_coloured_unless_disabled(project: Project) -> None:
    """Mistakes are coloured on a terminal, but not under NO_COLOR."""
    project.write("bad.yaml", TEN)
    with project.terminal("validate", "bad.yaml") as terminal:
        terminal.wait()
        assert "\x1b[1;31m^^^^" in terminal.raw
    with project.terminal("validate", "bad.yaml", NO_COLOR="1") as terminal:
        terminal.wait()
        assert "^^^^" in terminal.raw
        assert "\x1b[1;31m" not in terminal.raw


@pytest.mark.parametrize("content", [b"\x00\x01", b"\xff\xfe\x00", b"", b"[" * 5000, b"a: &a [*a]", b"- " * 100_000])
def test_no_file_breaks_it(project: Project, content: bytes) -> None:
    """Any content that is no workflow is a mistake of the file: exit code 2, no traceback."""
    (project.folder / "odd.yaml").write_bytes(content)
    done = project.here("validate", "odd.yaml")
    assert done.returncode == 2
    assert "error[" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_of_an_invalid_file_reports_the_same(project: Project) -> None:
    """A run of a file with mistakes reports the same places, starts nothing and writes nothing."""
    project.write("bad.yaml", TEN)
    done = project.here("run", "bad.yaml")
    assert done.returncode == 2
    assert [line.partition("--> bad.yaml:")[2] for line in done.stderr.splitlines() if "-->" in line] == PLACES
    assert not (project.folder / ".runops").exists()


@pytest.mark.drawn(share=0.4)
@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["validate", str(EXAMPLE)], ["validate", "--help"], ["schema"], ["nodes", "show", "click"]],
)
def test_nothing_heavy_is_loaded(arguments: list[str]) -> None:
    """Help, validation, schema and manual load no browser driver, no model client and no database, though all are installed."""
    code = f"""
import sys
from runtime.cli.main import main
exit_code = main({arguments!r})
loaded = sorted({{name.partition('.')[0] for name in sys.modules}} & {{*{HEAVY!r}}})
print("exit", exit_code, "loaded", loaded, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "exit 0 loaded []"


ASKING = """\
version: 1
nodes:
  - {id: open, type: cognition, instruction: Sort it., output: string, model: "our-\\e[31mmodel"}
  - {id: bound, type: cognition, instruction: Sort it., output: string, budget: {calls: 3, money: $0.5}}
  - {id: far, type: group, use: lib/used.yaml}
"""
USED = """\
version: 1
nodes:
  - {id: inner, type: cognition, instruction: Sort it., output: string}
"""


def test_nodes_that_ask_a_model_are_listed_below_their_file_with_their_budgets(project: Project) -> None:
    """Nodes that ask a model are listed with their budgets, also those of used files, and defaults are marked. No key, model or browser is needed."""
    project.environment["RUNOPS_BROWSER"] = "/nowhere"
    (project.folder / "lib").mkdir()
    project.write("lib/used.yaml", USED)
    project.write("asking.yaml", ASKING)
    done = project.here("validate", "asking.yaml", str(EXAMPLE))
    assert (done.returncode, done.stderr) == (0, "")
    default = str(budgets.default())
    assert done.stdout.splitlines() == [
        "ok  asking.yaml",
        f"    open  cognition  model our-\\x1b[31mmodel  budget {default} (default)",
        "    bound  cognition  budget money=0.50usd,calls=3",
        f"    inner  cognition  budget {default} (default)  lib/used.yaml:3:5",
        f"ok  {EXAMPLE}",
    ]
    asking, example = json.loads(project.here("validate", "asking.yaml", str(EXAMPLE), "--json").stdout)["files"]
    models = [(each["node"], each["budget"], each["default"], each["place"]) for each in asking["models"]]
    assert models == [
        ("open", default, True, "asking.yaml:3:5"),
        ("bound", "money=0.50usd,calls=3", False, "asking.yaml:4:5"),
        ("inner", default, True, "lib/used.yaml:3:5"),
    ]
    assert example["models"] == []


def test_the_schema_is_written_to_stdout_or_a_file(project: Project) -> None:
    """The schema goes to stdout, or to a file with `--output`. An unwritable path is reported."""
    shown = project.here("schema")
    written = project.here("schema", "--output", "runops.schema.json")
    assert (shown.returncode, written.returncode, written.stdout) == (0, 0, "")
    assert json.loads((project.folder / "runops.schema.json").read_text()) == json.loads(shown.stdout)
    refused = project.here("schema", "--output", "nowhere/schema.json")
    assert refused.returncode == 2
    assert "cannot be written" in refused.stderr


def test_the_node_types_are_listed_and_explained(project: Project) -> None:
    """Every node type and kind is listed and can be looked up. A misspelt one gets a suggestion."""
    listed = project.here("nodes").stdout.splitlines()
    kinds = {name: each.variants for name, each in registry.node_types().items()}
    assert [line.split()[0] for line in listed if not line.startswith(" ")] == list(kinds)
    assert {word for line in listed if line.startswith(" ") for word in line.split()} == {
        name for each in kinds.values() for name in each
    }
    for names, word in [
        (["browser_action.fill"], "secrets"),
        (["browser_query", "extract"], "optional"),
        (["iterate"], "over"),
        (["browser_query"], "Counts the elements"),
        (["target"], "within"),
        (["step"], "after_crash"),
    ]:
        shown = project.here("nodes", "show", *names)
        assert shown.returncode == 0
        assert word in shown.stdout
    missing = project.here("nodes", "show", "itterate")
    assert missing.returncode == 2
    assert "`iterate`" in missing.stderr


def test_a_kind_of_node_is_explained_without_the_common_fields(project: Project) -> None:
    """The fields of every step are listed once, under their own name, in text and in JSON."""
    node = json.loads(project.here("nodes", "show", "fill", "--json").stdout)["node"]
    own = {each["name"] for each in node["fields"]}
    assert {"type", "action", "target", "value"} <= own
    step = json.loads(project.here("nodes", "show", node["around"], "--json").stdout)["node"]
    assert not own & {each["name"] for each in step["fields"]}
    actions = project.here("nodes", "show", "browser_action").stdout
    assert actions.count("retry") == 0


def test_a_hint_is_no_mistake(project: Project) -> None:
    """A hint is shown with its line on stderr and apart from the problems in JSON. The file is valid, with exit code 0."""
    project.write(
        "flow.yaml",
        "version: 1\nnodes:\n"
        "  - {id: open, type: browser_action, action: goto, url: 'http://shop.test/'}\n"
        "  - {id: pay, type: browser_action, action: click, target: {css: b}, confirm: {nodes: [{id: at, type: browser_query, query: url}], done: true}}\n"
        "  - {id: total, type: browser_query, query: title}\n",
    )
    done = project.here("validate", "flow.yaml")
    assert (done.returncode, done.stdout) == (0, "ok  flow.yaml\n")
    assert done.stderr.startswith("hint[effect-without-goto]: `total` reads the page to which `pay` leads")
    assert "--> flow.yaml:5:10" in done.stderr
    report = json.loads(project.here("validate", "flow.yaml", "--json").stdout)
    (file,) = report["files"]
    assert (report["valid"], file["problems"]) == (True, [])
    assert [(each["code"], each["line"]) for each in file["hints"]] == [("effect-without-goto", 5)]
