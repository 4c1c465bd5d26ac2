"""Names and texts of files, pages and people with terminal control characters, as the command prints them."""

import json
import re
from pathlib import Path

import pytest

from tests.command import Project

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NAME = "a\x1b]0;owned\x07\x1b[2J\u202elmay\nok  forged\u2066.yaml"
SHOWN = r"a\x1b]0;owned\x07\x1b[2J\u202elmay\x0aok  forged\u2066.yaml"
TEXT = "\x1b[31mred\x1b[2J\x9b5A \u202eright to left\r\nnext"
GOOD = f"""
version: 1
name: {json.dumps("Say " + TEXT)}
inputs:
  text: {{type: string, default: {json.dumps(TEXT)}}}
nodes:
  - {{id: say, type: transform, expr: "{{{{ inputs.text }}}}"}}
output: {{said: "{{{{ say }}}}"}}
"""
FAILS = GOOD.replace("inputs.text }}", "inputs.text | number }}")
BAD = 'version: 1\nname: Bad\nnodes:\n  - {id: say, type: transform, expr: "{{ \u202enowhere.\u2066x }}"}\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder of three files with hostile names: one that passes, one that fails, one that is no workflow."""
    folder = tmp_path / "project"
    (folder / "all").mkdir(parents=True)
    project = Project(folder)
    project.write(f"all/good {NAME}", GOOD)
    project.write(f"all/fails {NAME}", FAILS)
    project.write(f"bad {NAME}", BAD)
    return project


def asked(project: Project) -> list[tuple[str, ...]]:
    """Every command that prints these names or their runs."""
    run = project.here("query", "SELECT run FROM runs WHERE state = 'failed'", "--json").stdout
    failed = str(json.loads(run)["rows"][0]["run"])
    return [
        ("validate", f"all/good {NAME}", f"bad {NAME}"),
        ("validate", f"missing {NAME}"),
        ("run", f"all/good {NAME}"),
        ("run", f"bad {NAME}"),
        ("run", f"all/good {NAME}", "-i", f"text={TEXT}"),
        ("run", f"all/good {NAME}", "-i", f"{NAME}=x"),
        ("run", f"all/good {NAME}", "--inputs", NAME),
        ("resume", failed),
        ("resume", NAME),
        ("show", failed),
        ("show", failed, "--at", "say"),
        ("show", NAME),
        ("runs",),
        ("query", "SELECT * FROM runs"),
        ("query", "SELECT * FROM calls", "--csv"),
        ("query", f"SELECT '{TEXT}' AS text, * FROM runs"),
        ("query", NAME),
        ("try", f"all/good {NAME}", "say"),
        ("diff", failed, failed),
        (NAME,),
        ("schema", "--output", f"no folder/{NAME}"),
    ]


def test_no_name_and_no_text_reaches_the_terminal_raw(project: Project) -> None:
    """No command prints a raw control character to either stream. Names stay on one line, and JSON keeps their value."""
    folder = project.here("run", "all")
    assert folder.returncode == 1
    assert f"all/good {SHOWN}" in folder.stderr
    assert not [line for line in folder.stderr.splitlines() if line.startswith("ok  forged")]
    checked = project.here("validate", f"all/good {NAME}")
    assert checked.stdout.startswith(f"ok  all/good {SHOWN}\n")
    raw: dict[tuple[str, ...], str] = {}
    for arguments in asked(project):
        for more in ((), ("--json",)) if "--csv" not in arguments else ((),):
            done = project.here(*arguments, *more)
            assert done.returncode != 70
            for text in (done.stdout, done.stderr):
                if (found := OBEYED.search(text.replace("\r\n", "\n"))) is not None:
                    raw[(*arguments, *more)] = text[max(found.start() - 40, 0) : found.end() + 20]
                assert not [line for line in text.splitlines() if line.startswith("ok  forged")], (arguments, text)
    assert raw == {}
    (run,) = json.loads(project.here("run", f"all/good {NAME}", "--json").stdout)["runs"]
    assert (run["file"], run["output"]) == (f"all/good {NAME}", {"said": TEXT})


def test_a_live_tree_draws_names_and_texts_as_escapes(project: Project) -> None:
    """On a terminal only the tree itself erases, colours or redirects text."""
    with project.terminal("run", "all") as terminal:
        assert terminal.wait() == 1
        for obeyed in ("\x1b[31mred", "\x1b[2J\x9b", "\u202e", "\u2066", "\x1b]0;"):
            assert obeyed not in terminal.everything
