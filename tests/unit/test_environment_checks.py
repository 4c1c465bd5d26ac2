"""Environment checks find each fault of folder, disk or settings, and the profile that fits a server."""

import errno
import itertools
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from runtime.cli.commands import doctor
from runtime.models.client import probing, profiles
from runtime.settings import settings
from runtime.system import locks
from runtime.workspace import host


class Disk(NamedTuple):
    free: int


class Mount(NamedTuple):
    mountpoint: str
    fstype: str


def test_a_missing_home_is_checked_at_its_parent(tmp_path: Path) -> None:
    """The check neither creates the folder nor leaves a file in its parent."""
    check = doctor.home(tmp_path / "a" / "b")
    assert (check.state, check.fix) == ("ok", None)
    assert "made by the first run" in check.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mkstemp", "fsync"])
def test_a_folder_that_cannot_be_written_is_wrong(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file cannot be created or cannot be synced, the check gives the reason and the setting, and leaves nothing."""

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    monkeypatch.setattr(doctor.tempfile if name == "mkstemp" else os, name, fails)
    check = doctor.home(tmp_path)
    assert check.state == "wrong"
    assert "read-only file system" in check.text
    assert "RUNOPS_HOME" in (check.fix or "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_working_locks_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that grants each lock is wrong."""
    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: None)
    check = doctor.home(tmp_path)
    assert check.state == "wrong"
    assert "cannot be locked" in check.text


@pytest.mark.parametrize(
    ("kind", "state"), [("ext4", "ok"), ("nfs4", "note"), ("cifs", "note"), ("tmpfs", "note"), ("unknown", "ok")]
)
def test_the_file_system_is_reported(kind: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network or memory file system works, but the check notes it."""
    monkeypatch.setattr(doctor, "file_system", lambda _: kind)
    check = doctor.home(tmp_path)
    assert (check.state, kind in check.text) == (state, True)


def test_the_innermost_mount_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later of two mounts at one place counts; a path with only the same prefix is another."""
    here = str(tmp_path)
    mounts = [Mount("/", "root"), Mount(here, "below"), Mount(here, "over"), Mount(f"{here}/a", "a")]
    monkeypatch.setattr(doctor.psutil, "disk_partitions", lambda all: mounts)
    assert doctor.file_system(tmp_path) == "over"
    assert doctor.file_system(tmp_path / "a" / "b") == "a"
    assert doctor.file_system(tmp_path / "ab") == "over"
    assert doctor.file_system(Path("/")) == "root"


@pytest.mark.parametrize(("free", "state"), [(5 * 10**9, "ok"), (5 * 10**8, "note"), (10**8, "wrong")])
def test_low_disk_space_is_reported(free: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place with the least space counts, and the fix names `prune`."""
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Disk(free if place == tmp_path else 10**12))
    check = doctor.room(tmp_path)
    assert check.state == state
    assert ("runops prune" in (check.fix or "")) == (state != "ok")


def test_variables_that_are_no_setting_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt setting is wrong, with the intended one; any other name with our prefix is a note; known and foreign ones are not reported."""
    monkeypatch.chdir(tmp_path)
    names = ["RUNOPS_HOME", "RUNOPS_MODEL_KEY", "RUNOPS_TRACEBACK", "RUNOPS_DEMO_SHOP", "HOEM", "RUNOPS_HAEDED"]
    monkeypatch.setattr(os, "environ", dict.fromkeys(names, "1"))
    (tmp_path / ".env").write_text("\n# ours\n\nRUNOPS_LINGR=3\n")
    checks = doctor.misspelt()
    assert [(each.text.split()[0], each.state, each.fix) for each in checks] == [
        ("RUNOPS_HAEDED", "wrong", "did you mean RUNOPS_HEADED?"),
        ("RUNOPS_LINGR", "wrong", "did you mean RUNOPS_LINGER?"),
        ("RUNOPS_DEMO_SHOP", "note", None),
    ]
    assert f"{tmp_path / '.env'}:4" in checks[1].text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["none is set"]),
        ({"model": "m"}, ["m for everything", "a key is set"]),
        ({"model": "m", "model_agent": "n"}, ["m for cognition, director, summary; n for agent", "a key is set"]),
        ({"model_summary": "n"}, ["n for summary", "a key is set"]),
        ({"model": "m", "model_profile": "vllm"}, ["m for everything", "profile vllm (as set)"]),
    ],
)
def test_models_are_listed_by_their_roles(
    given: dict[str, str], expected: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Roles with the same model share an entry, and the key is never shown."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNOPS_MODEL_KEY", "key-that-nobody-may-see")
    checks = doctor.models(host.of_command(settings.Settings(**given, home=tmp_path)))  # type: ignore[arg-type]
    assert len(checks) == len(expected)
    assert all(part in check.text for part, check in zip(expected, checks, strict=True))
    assert "nobody-may-see" not in repr(checks)


def every_finding() -> list[list[probing.Found]]:
    """Each combination of probed levels, unknown ones included."""
    names = list(probing.LEVELS)
    combined = itertools.product(*((*probing.LEVELS[name], None) for name in names))
    return [[probing.Found(name, level, "") for name, level in zip(names, each, strict=True)] for each in combined]


@pytest.mark.parametrize("used", profiles.PROFILES.values(), ids=lambda each: each.name)
def test_the_fitting_profile_promises_only_what_the_server_has(used: profiles.Profile) -> None:
    """The most capable profile that promises no more than was found is chosen, preferring the current one."""

    def fits(profile: profiles.Profile, found: list[probing.Found]) -> bool:
        return all(probing.promised_rank(profile, each.name) <= each.rank for each in found)

    def worth(profile: profiles.Profile) -> int:
        return sum(probing.promised_rank(profile, name) for name in probing.LEVELS)

    for found in every_finding():
        best = probing.fitting(found, used)
        assert fits(best, found)
        assert worth(best) == max(worth(each) for each in profiles.PROFILES.values() if fits(each, found))
        assert best == used or not (fits(used, found) and worth(used) == worth(best))


def test_a_home_below_an_unreadable_folder_is_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the existence of the folder cannot be checked, the folder above is checked."""
    denied = tmp_path / "closed" / "runs"
    exists = Path.exists

    def refuses(path: Path) -> bool:
        if path == denied:
            raise PermissionError(errno.EACCES, "permission denied")
        return exists(path)

    monkeypatch.setattr(Path, "exists", refuses)
    assert doctor.home(denied).state == "ok"
