"""Completion of command lines, in the shells that people use."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.cli import completing, completion_files
from tests.command import RUNOPS, Project

FLOW = "version: 1\nname: Greet\nnodes:\n  - {id: a, type: transform, expr: 1}\n"

COMPACT = (",", ":")  # as in a log

ZSH = """
compdef() { : }
_describe() { print -l -- ${(P)@[-1]} }
_files() { print -- files $* }
"""
"""Stands for zsh's own completion, which needs a terminal."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a run, workflows in a folder with a blank, and a file whose name is a command."""
    tmp_path = tmp_path / "project"
    (tmp_path / "my flows").mkdir(parents=True)
    project = Project(tmp_path, PATH=f"{RUNOPS.parent}:{os.environ['PATH']}")
    for name in ("my flows/a b.yaml", "greet.yml", "x$(touch pwned).yaml", "notes.txt"):
        project.write(name, FLOW)
    assert project.here("run", "greet.yml", "--quiet").returncode == 0
    for shell in completion_files.SHELLS:
        (tmp_path.parent / shell).write_text(project.here("completion", shell).stdout)
    return project


def typed(project: Project, shell: str, words: list[str]) -> list[str]:
    """What a real shell offers at the end of these words."""
    line = shlex.join(words)
    script = {
        "bash": f"source ../bash; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _runops\n"
        'printf "%s\\n" "${COMPREPLY[@]}"',
        "zsh": f"{ZSH}\nsource ../zsh; words=({line}); CURRENT={len(words)}; _runops",
        "fish": f"source ../fish; complete -C {shlex.quote(line.removesuffix(chr(39) * 2))}",
    }[shell]
    done = subprocess.run(
        [shell, *(["-f"] if shell == "zsh" else []), "-c", script],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    separator = ":" if shell == "zsh" else "\t"
    return sorted(each.partition(separator)[0] for each in done.stdout.splitlines() if each)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_offers_what_may_come(shell: str, project: Project) -> None:
    """Commands, options, their values, settings, runs and files are offered where they belong, and no name of a file is executed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (run,) = [each["id"] for each in project.runs()]
    assert typed(project, shell, ["runops", "resu"]) == ["resume"]
    assert typed(project, shell, ["runops", "run", "--headl"]) == ["--headless"]
    assert typed(project, shell, ["runops", "run", "--engine", "w"]) == ["webkit"]
    assert typed(project, shell, ["runops", "resume", ""]) == [run, "last"]
    assert typed(project, shell, ["runops", "decide", "last", "no"]) == ["not-done"]
    assert typed(project, shell, ["runops", "config", "linge"]) == ["linger"]
    if shell == "zsh":
        assert typed(project, shell, ["runops", "run", ""]) == ["files -g *.(yaml|yml)(-.)"]
        assert typed(project, shell, ["runops", "run", "--junit", ""]) == ["files"]
    else:
        end = "/" if shell == "fish" else ""
        folders = [f"my flows{end}"]
        assert typed(project, shell, ["runops", "run", ""]) == [
            *([".runops"] if shell == "bash" else []),
            "greet.yml",
            *folders,
            "x$(touch pwned).yaml",
        ]
        assert "notes.txt" in typed(project, shell, ["runops", "run", "--junit", ""])
    assert not (project.folder / "pwned").exists()


def offered(*words: str) -> list[str]:
    return [value for value, _ in completing.candidates([*words])]


def test_the_place_on_the_line_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of options are not counted as arguments; `--option=value` is completed whole, and in bash's three words."""
    monkeypatch.chdir(tmp_path)
    assert offered("try", "--url", "x", "flow.yaml", "") == []
    assert offered("try", "--url", "x", "") == [":workflows"]
    assert offered("run", "--headed", "") == [":workflows"]
    assert offered("run", "a.yaml", "b.yaml", "") == [":workflows"]
    assert offered("run", "--engine=w") == ["--engine=webkit"]
    assert offered("run", "--engine", "=") == offered("run", "--engine", "") == ["chromium", "firefox", "webkit"]
    assert offered("run", "--engine", "=", "f") == ["firefox"]
    assert offered("run", "--budget", "") == []
    assert offered("init", "") == [":folders"]
    assert offered("sign-ins", "ex") == ["export"]
    assert offered("no-such-command", "") == []
    assert offered("--v") == ["--version"]
    assert {"run", "build", "demo-site"} <= {*offered("")}


@pytest.mark.parametrize("place", ["environment", ".env", "pyproject.toml", "above"])
def test_runs_come_from_the_home_of_the_project(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home is found where the settings name it; names in logs cannot control the terminal, and a damaged log hinders nothing."""
    monkeypatch.delenv("RUNOPS_HOME", raising=False)
    here = tmp_path / "deep"
    here.mkdir()
    monkeypatch.chdir(here)
    home = tmp_path / (".runops" if place == "above" else "kept")
    logs = home / "conversations"
    logs.mkdir(parents=True)
    match place:
        case "environment":
            monkeypatch.setenv("RUNOPS_HOME", str(home))
        case ".env":
            (here / ".env").write_text(f"A=1\nexport RUNOPS_HOME='{home}'\n")
        case "pyproject.toml":
            (tmp_path / "pyproject.toml").write_text("[tool.runops]\nhome = 'kept'\n")
        case _:
            pass
    head = {"v": 1, "at": "2026-01-02T03:04:05Z", "thread": "run", "run": {"workflow": "A\x1b[2J\n'b'"}}
    (logs / "01A.jsonl").write_text(f"{json.dumps(head, separators=COMPACT)}\n")
    (logs / "01B.jsonl").write_text(f"{json.dumps({**head, 'thread': 'session'}, separators=COMPACT)}\n")
    (logs / "01C.jsonl").write_bytes(b"\xff\x00 no log")
    assert [*completing.candidates(["show", ""])] == [
        ("last", "the last run"),
        ("01A", "2026-01-02 03:04  A[2J'b'"),
        ("01B", "2026-01-02 03:04  A[2J'b'"),
    ]
    assert offered("resume", "") == ["last", "01A"]
    assert offered("chat", "--resume", "0") == ["01B"]


def test_an_answer_imports_little() -> None:
    """At a prompt no command, no library of commands and no settings are imported, whatever is completed."""
    code = (
        "import sys; from runtime.cli.main import main\n"
        "for line in ('re', 'run --', 'resume ', 'config l', 'run '): main(line.split(' '))\n"
        "print([each for each in ('typer', 'pydantic', 'dotenv', 'runtime.cli.app', 'importlib.metadata') if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "_RUNOPS_COMPLETE": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", completion_files.SHELLS)
def test_a_script_is_installed_where_the_shell_looks(shell: str, tmp_path: Path) -> None:
    """`--install` writes the script of the person's shell to one file below their home, and names the line to add where one is needed."""
    home = tmp_path / "home"
    project = Project(tmp_path, HOME=str(home), SHELL=f"/bin/{shell}")
    printed = project.here("completion").stdout
    for state in ("created", "kept"):
        done = project.here("completion", "--install")
        assert done.returncode == 0
        (file,) = [each for each in home.rglob("*") if each.is_file()]
        assert done.stdout == f"{state}  {file}\n"
        assert file.read_text() == printed
    assert ("compinit" in done.stderr) == (shell == "zsh")


def test_an_unknown_shell_is_refused(tmp_path: Path) -> None:
    """Without a name, the shell must be one of the three."""
    done = Project(tmp_path, SHELL="/bin/tcsh").here("completion")
    assert (done.returncode, "name one: runops completion bash" in done.stderr) == (2, True)
