"""Which files a command line of files and folders means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodes.errors import UsageError
from runtime.runs import collect

FLOW = "version: 1\nnodes: [{id: a, type: transform, expr: 1}]\n"


def put(folder: Path, **files: str) -> None:
    """Write files; ``__`` in a name is a slash, and each is YAML."""
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def names(*paths: Path, under: Path) -> list[str]:
    """The files that are found, as seen from a folder, those that cannot be used with an exclamation mark."""
    return [
        f"{each.file.relative_to(under)}{'' if each.loaded is not None else '!'}" for each in collect.collect([*paths])
    ]


def test_a_folder_yields_its_workflows_sorted_and_nothing_else(tmp_path: Path) -> None:
    """Files below it too, in the order of their paths; no hidden folder, none of installed packages, no YAML that is no workflow."""
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


def test_a_folder_that_may_not_be_looked_into_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be listed or entered is told as what cannot be run, and the rest of the folder stands beside it."""
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
    """A mistake in a file is shown with its line, so that `.env` is not even read when it is named."""
    for name in (".env", ".env.local"):
        (tmp_path / name).write_text("PASSWORD=hunter22\n")
        (found,) = collect.collect([tmp_path / name])
        assert found.error is not None
        assert found.error.code == "file-not-read"
        assert "hunter22" not in str(found.error.as_json())


def test_a_workflow_with_mistakes_is_found_with_them(tmp_path: Path) -> None:
    """What means to be a workflow is never passed over, also where it is not even YAML; other YAML that cannot be read is nobody's business."""
    put(tmp_path, wrong="version: 1\nnodes: [{id: a, type: nope}]\n", torn="version: 1\nnodes: [\n", other="a: [\n")
    assert names(tmp_path, under=tmp_path) == ["torn.yaml!", "wrong.yaml!"]


def test_parts_of_other_workflows_are_not_run_by_themselves(tmp_path: Path) -> None:
    """Not what another file there uses, itself or through a third, and not what says `run: manual`; unless it is named."""
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


def test_a_file_that_is_named_is_there_whatever_it_holds(tmp_path: Path) -> None:
    """Also one that is no workflow or is not there; in the order of the command line, and each once, however it is named."""
    put(tmp_path, a=FLOW, other="a: 1\n", sub__b=FLOW)
    named = [tmp_path / name for name in ("other.yaml", "sub/../a.yaml", "sub", "a.yaml", "none.yaml", "sub/b.yaml")]
    found = collect.collect(named)
    assert [each.file.name for each in found] == ["other.yaml", "a.yaml", "b.yaml", "none.yaml"]
    assert [each.error.code if each.error else None for each in found] == [
        "workflow-invalid", None, None, "file-not-found",
    ]  # fmt: skip


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is closed to us may hold a workflow: that is never passed over in silence."""
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
