"""Node types of another package: installed beside RunOps they are like built-in ones, and a broken one is named in an error."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.command import RUNOPS, Project
from tests.site import serve

ROOT = Path(__file__).parents[2]
ACME = ROOT / "tests" / "plugins" / "acme"
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
CLOCK = """<!doctype html><title>Clock</title><p id=clock></p><script>
let second = 57
const tick = setInterval(() => {
  clock.textContent = "12:00:" + String(++second % 60).padStart(2, "0")
  if (second === 60) clearInterval(tick)  // a slow machine may look late
}, 100)
</script>"""
FLOW = """\
version: 1
inputs: {site: {type: string}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/clock"}
  - id: noon
    type: acme.labelled
    label: "at {{ open }}"
    nodes:
      - {id: wait, type: acme.full_minute, target: {css: "#clock"}, timeout: 60}
output: "{{ noon }}"
"""


@pytest.fixture(scope="module")
def site_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, built and installed into a folder."""
    folder = tmp_path_factory.mktemp("acme")
    source, target = folder / "source", folder / "installed"
    shutil.copytree(ACME, source, ignore=shutil.ignore_patterns("__pycache__"))
    command = ["pip", "install", "--offline", "--no-index", "--no-build-isolation", "--no-deps", "--quiet"]
    program = [RUNOPS.with_name("uv"), *command, "--python", sys.executable, "--target", target, source]
    subprocess.run(program, check=True, timeout=120, capture_output=True)
    return target


@pytest.fixture
def project(tmp_path: Path, site_packages: Path) -> Project:
    """A project with the package on its path."""
    return Project(tmp_path, PYTHONPATH=str(site_packages))


def test_its_types_are_like_built_in_ones(project: Project) -> None:
    """Types of a package are listed, described by docstring and in the JSON Schema. A workflow runs a container and a leaf of it on a real page."""
    listed = json.loads(project.runops("nodes", "--json").stdout)["nodes"]
    assert {"acme.full_minute", "acme.labelled", "group"} <= {each["name"] for each in listed}
    shown = project.runops("nodes", "show", "acme.full_minute")
    assert shown.returncode == 0, shown.stderr
    assert "Waits until a clock on the page shows a full minute." in shown.stdout
    assert "The clock." in shown.stdout
    schema = json.loads(project.runops("schema").stdout)
    assert {"acme.full_minute", "acme.labelled"} <= set(schema["$defs"]["Node"]["properties"]["type"]["enum"])
    project.write("noon.yaml", FLOW)
    with serve() as site:
        site.page("/clock", CLOCK)
        done = project.runops("run", "noon.yaml", "-i", f"site={site.origin}")
        assert done.returncode == 0, done.stderr
        assert yaml.safe_load(done.stdout) == {"label": f"at {site.origin}/clock", "value": "12:00:00"}
    assert [step["path"] for step in project.show()["steps"]] == ["open", "noon", "noon/wait"]


def test_mistakes_in_its_nodes_have_their_places(project: Project) -> None:
    """Mistakes in fields, references and nested nodes of such a type have line, column and suggestion, as for built-in ones."""
    wrong = (
        FLOW.replace("label: ", "lable: ").replace("acme.full_minute", "acme.ful_minute").replace("{{ noon", "{{ wait")
    )
    project.write("wrong.yaml", wrong)
    done = project.runops("validate", "wrong.yaml")
    assert done.returncode == 2
    places = re.findall(r"--> wrong\.yaml:(\d+:\d+)", done.stderr)
    assert places == ["7:5", "9:26"]
    assert "did you mean `label`?" in done.stderr
    assert "did you mean `acme.full_minute`?" in done.stderr


def test_without_the_package_its_type_is_unknown(tmp_path: Path) -> None:
    """Without the package a file that uses its type is invalid, at the place of the type."""
    project = Project(tmp_path)
    project.write("noon.yaml", FLOW)
    done = project.runops("validate", "noon.yaml")
    assert done.returncode == 2
    assert "--> noon.yaml:6:11" in done.stderr


@pytest.mark.drawn(share=0.5)
@pytest.mark.parametrize(
    ("entry", "module", "said"),
    [
        ("acme.x = broken:X", "import nothing_that_is_there", "No module named 'nothing_that_is_there'"),
        ("acme.x = broken:X", "raise SystemExit(5)", "SystemExit"),
        ("acme.x = broken:X", "", "has no attribute 'X'"),
        ("acme.x = broken:X", "X = 5", "neither a `Leaf` nor a `Container`"),
        ("acme.x = broken:X", "class X(Leaf):\n    type: Literal['acme.x'] = 'acme.x'", "has no `run`"),
        ("acme.x = broken:X", "class X(Leaf):\n    async def run(self, ctx): ...", 'Literal["acme.x"]'),
        ("acmex = broken:X", "X = 5", "needs a dot"),
        ("acme.labelled = broken:X", "X = 5", "acme-nodes 1.2"),
    ],
)
def test_a_broken_package_is_named(project: Project, tmp_path: Path, entry: str, module: str, said: str) -> None:
    """A broken package exits 3 with one error: the package, its entry point and a fix. No traceback appears."""
    broken = tmp_path / "broken"
    info = broken / "broken-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[runops.nodes]\n{entry}\n")
    (broken / "broken.py").write_text(f"from typing import Literal\nfrom nodes.base import Leaf\n{module}\n")
    project.environment["PYTHONPATH"] += f":{broken}"
    project.write("noon.yaml", FLOW)
    for arguments in (["run", "noon.yaml", "--json"], ["validate", "noon.yaml"], ["nodes"]):
        done = project.runops(*arguments)
        assert done.returncode == 3, done.stderr
        assert done.stderr.count("error[node-type-broken]") == 1
        assert said in done.stderr
        assert "broken 0.1" in done.stderr
        assert entry.partition(" ")[0] in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / ".runops").exists()


def test_the_guide_shows_the_installed_example() -> None:
    """The class and entry point in CONTRIBUTING.md equal those of the example package, so that the guide is tested."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    (table,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert code == (ACME / "acme_clock.py").read_text()
    shown = tomllib.loads(table)["project"]["entry-points"]["runops.nodes"]
    offered = tomllib.loads((ACME / "pyproject.toml").read_text())["project"]["entry-points"]["runops.nodes"]
    assert shown.items() <= offered.items()
