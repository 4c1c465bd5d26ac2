"""The workflow files that a command line of files and folders selects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodes.errors import UsageError
from runtime.runs import collect

FLOW = "version: 1\nnodes: [{id: a, type: transform, expr: 1}]\n"


def put(folder: Path, **files: str) -> None:
    """Writes YAML files; ``__`` in a name is a slash."""
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def names(*paths: Path, under: Path) -> list[str]:
    """The files found, relative to a folder; invalid ones have an exclamation mark."""
    return [
        f"{each.file.relative_to(under)}{'' if each.loaded is not None else '!'}" for each in collect.collect([*paths])
    ]


def test_a_folder_yields_its_workflows_sorted_and_nothing_else(tmp_path: Path) -> None:
    """Workflows in subfolders come in path order; hidden folders, installed packages and other YAML are skipped."""
    put(tmp_path, b=FLOW, a__z=FLOW, a__b__c=FLOW, version="version: 1\n", list="[version, nodes]", other="nodes: 3\n")
    put(tmp_path, node_modules__x=FLOW, env__x=FLOW)
    (tmp_path / "env/pyvenv.cfg").touch()
    for name in (".hidden/x.yaml", "a/.x.yaml", ".venv/x.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(FLOW)
    (tmp_path / "c.yml").write_text(FLOW)
    (tmp_path / "d.txt").write_text(FLOW)
    (tmp_path / "many.yaml").write_text("version: 1\nkind: x\n---\nnodes: 2\n")
    assert names(tmp_path, under=tmp_path) == ["a/b/c.yaml", "a/z.yaml", "b.yaml", "c.yml", "many.yaml!"]


def test_an_unreadable_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be listed or entered is reported as an error beside the other workflows."""
    put(tmp_path, a=FLOW, locked__b=FLOW)
    may, list_folder = Path.is_file, os.scandir

    def is_file(file: Path) -> bool:
        if file.parent.name == "locked":
            raise PermissionError(13, "Permission denied", str(file))
        return may(file)

    def scandir(folder: str) -> object:
        if str(folder).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(folder))
        return list_folder(folder)

    monkeypatch.setattr(Path, "is_file", is_file)
    monkeypatch.setattr(os, "scandir", scandir)
    assert names(tmp_path, under=tmp_path) == ["a.yaml", "locked!"]


def test_a_file_of_secrets_is_no_workflow(tmp_path: Path) -> None:
    """Mistakes are shown with their line, so `.env` is not read even if it is named."""
    for name in (".env", ".env.local"):
        (tmp_path / name).write_text("PASSWORD=hunter22\n")
        (found,) = collect.collect([tmp_path / name])
        assert found.error is not None
        assert found.error.code == "file-not-read"
        assert "hunter22" not in str(found.error.as_json())


def test_a_workflow_with_mistakes_is_found_with_them(tmp_path: Path) -> None:
    """An invalid workflow is never skipped, even if its YAML is broken; other broken YAML is."""
    put(tmp_path, wrong="version: 1\nnodes: [{id: a, type: nope}]\n", torn="version: 1\nnodes: [\n", other="a: [\n")
    assert names(tmp_path, under=tmp_path) == ["torn.yaml!", "wrong.yaml!"]


def test_a_workflow_without_a_head_is_found_with_its_mistake(tmp_path: Path) -> None:
    """A file with steps that lacks `version` or `nodes`, or misspells one, is an error: a check must not vanish from a job."""
    steps = "[{id: a, type: transform, expr: 1}]"
    put(tmp_path, none=f"nodes: {steps}\n", typo=f"verison: 1\nnodes: {steps}\n", short=f"version: 1\nnode: {steps}\n")
    put(tmp_path, other="version: 3\nservices: [{type: http}]\n", kinds="version: 1\nrules: [{type: [a]}, 2]\n")
    assert names(tmp_path, under=tmp_path) == ["none.yaml!", "short.yaml!", "typo.yaml!"]


def test_parts_of_other_workflows_are_not_run_by_themselves(tmp_path: Path) -> None:
    """Files that others use, directly or not, and those with `run: manual` run only if named."""
    uses = "version: 1\nnodes: [{id: a, type: group, use: %s}]\n"
    put(
        tmp_path,
        a__main=uses % "../part.yaml",
        part=uses % "deep/inner.yaml",
        deep__inner=FLOW,
        by_hand=f"run: manual\n{FLOW}",
    )
    put(tmp_path, z=FLOW)
    (tmp_path / "pyproject.toml").touch()
    assert names(tmp_path, under=tmp_path) == ["a/main.yaml", "z.yaml"]
    assert names(tmp_path / "by_hand.yaml", tmp_path / "part.yaml", tmp_path, under=tmp_path) == [
        "by_hand.yaml", "part.yaml", "a/main.yaml", "z.yaml",
    ]  # fmt: skip
    assert names(tmp_path / "deep", under=tmp_path) == ["deep/inner.yaml"]


def test_a_named_file_is_always_listed(tmp_path: Path) -> None:
    """Named files come once, in the order of the command line, even if missing or no workflow."""
    put(tmp_path, a=FLOW, other="a: 1\n", sub__b=FLOW)
    named = [tmp_path / name for name in ("other.yaml", "sub/../a.yaml", "sub", "a.yaml", "none.yaml", "sub/b.yaml")]
    found = collect.collect(named)
    assert [each.file.name for each in found] == ["other.yaml", "a.yaml", "b.yaml", "none.yaml"]
    assert [each.error.code if each.error else None for each in found] == [
        "workflow-invalid", None, None, "file-not-found",
    ]  # fmt: skip


def test_a_closed_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be read may contain a workflow, so it is reported as an error."""
    put(tmp_path, a=FLOW, closed__b=FLOW)
    walk = collect.os.walk

    def closed(folder: Path, onerror: object = None) -> object:
        for here, folders, files in walk(folder):
            folders[:] = [each for each in folders if each != "closed"]
            yield here, folders, files
        assert callable(onerror)
        onerror(PermissionError(13, "Permission denied", str(folder / "closed")))

    monkeypatch.setattr(collect.os, "walk", closed)
    found = collect.collect([tmp_path])
    assert [each.error.code if each.error else None for each in found] == [None, "file-not-read"]


def test_nothing_to_run_is_an_error(tmp_path: Path) -> None:
    """A job that runs nothing must not pass."""
    put(tmp_path, other="a: 1\n")
    with pytest.raises(UsageError) as caught:
        collect.collect([tmp_path])
    assert (caught.value.code, caught.value.exit) == ("nothing-to-run", 2)
    assert str(tmp_path) in caught.value.message
