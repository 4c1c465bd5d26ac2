"""`runops config`: the settings that hold, and where each comes from."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from runtime.cli import command_table
from runtime.settings import reference, settings
from scripts import setting_docs
from tests.command import Project
from tests.shop_process import ROOT


def rows_of(project: Project) -> dict[str, dict[str, Any]]:
    done = project.here("config", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return {each["name"]: each for each in json.loads(done.stdout)["settings"]}


def test_each_setting_has_its_value_and_its_place(tmp_path: Path) -> None:
    """Variables, lines of files and defaults are told apart; CI changes a default. Every setting has a sentence of documentation."""
    project = Project(tmp_path, RUNOPS_STEP_TIMEOUT="7", CI="true")
    del project.environment["RUNOPS_LINGER"]
    project.write(".env", "# mine\nRUNOPS_HEADED=true\n")
    project.write("pyproject.toml", "[tool.runops]\nbudget = 'money=1usd'\nprices.m = {input = 1, output = 2.5}\n")
    rows = rows_of(project)
    shown = {name: (each["value"], each["origin"]) for name, each in rows.items()}
    assert shown["step_timeout"] == (7, "RUNOPS_STEP_TIMEOUT")
    assert shown["headed"] == (True, ".env:2")
    assert shown["budget"] == ("money=1.00usd", "pyproject.toml:2")
    assert shown["prices"] == ({"m": {"input": 1.0, "output": 2.5}}, "pyproject.toml:3")
    assert shown["linger"] == (0, "default in CI")
    assert shown["home"] == (str(tmp_path / ".runops"), "default")
    assert {*rows} == {*settings.Settings.model_fields, "model_key"}
    assert all(each["text"].endswith(".") and each["takes"] for each in rows.values())
    assert project.here("config", "RUNOPS_LINGER", "--origin").stdout == "linger  default in CI  0\n"
    assert project.here("config", "step-timeout").stdout == "7\n"


def test_nothing_secret_is_shown(tmp_path: Path) -> None:
    """Keys, passwords in addresses and commands of a shell are in no form of the output, whichever variable has them."""
    secrets = {
        "RUNOPS_MODEL_KEY": "canary-1",
        "OPENAI_BASE_URL": "http://user:canary-2@models.test/v1?key=canary-3",
        "RUNOPS_BROWSER_URL": "ws://browser.test/devtools?token=canary-4",
        "RUNOPS_RESET": "curl -H 'Authorization: canary-5' http://shop.test",
    }
    project = Project(tmp_path, **secrets)
    for arguments in ((), ("--origin",), ("--json",), *((name,) for name in ("model_key", "browser_url", "reset"))):
        done = project.here("config", *arguments)
        assert done.returncode == 0
        assert "canary" not in done.stdout + done.stderr
    rows = rows_of(project)
    assert {rows[name]["value"] for name in ("model_key", "reset")} == {"(set, and not shown)"}
    assert rows["browser_url"]["value"] == "ws://browser.test"


def test_a_name_that_is_no_setting_is_refused(tmp_path: Path) -> None:
    """The nearest setting is proposed, and a variable with our prefix that is no setting is listed."""
    project = Project(tmp_path, RUNOPS_SHOP_PASSWORD="x")
    done = project.here("config", "lingr")
    assert (done.returncode, "did you mean `linger`?" in done.stderr) == (2, True)
    done = project.here("config")
    assert done.stderr.startswith("RUNOPS_SHOP_PASSWORD is no setting, and has no effect")


def test_flags_of_settings_exist() -> None:
    """Each flag that a setting names is an option of some command, and a command's option with the name of a setting is one."""
    group = typer.main.get_command
    options: set[str] = set()
    for command in command_table.every():
        app = typer.Typer()
        app.command()(command.load())
        options |= {name for each in group(app).params for name in each.opts}
    assert {*settings.FLAGS.values()} <= options
    same = {each.name for each in reference.every() if f"--{each.name.replace('_', '-')}" in options}
    assert same - {*settings.FLAGS} - {"model", "browser"} == set()  # these two options are for other settings


def test_the_tables_in_the_docs_are_those_of_the_model() -> None:
    """Every setting is in the docs, with the words of its model."""
    check = [sys.executable, str(ROOT / "scripts" / "setting_docs.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("change", ["a setting that no page has", "other words"])
def test_a_table_that_differs_is_found(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting without a page, and a page with other words than its model, fail the check."""
    known = reference.every()
    other = reference.Setting("brand_new", "text", None, "Something.") if "no page" in change else None
    changed = [*known, other] if other else [reference.Setting("home", "path", None, "A folder."), *known[1:]]
    monkeypatch.setattr(setting_docs.reference, "every", lambda: changed)
    assert any(("brand_new" if other else "docs/command.md") in each for each in setting_docs.problems())
