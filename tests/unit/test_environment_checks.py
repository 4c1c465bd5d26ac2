"""Whether a machine is fit: each way in which a folder, a disk or a setting can fail is found, and which profile fits a server."""

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


def test_a_folder_that_is_not_there_is_looked_at_where_it_will_be(tmp_path: Path) -> None:
    """It is not made, and nothing is left in the folder above."""
    check = doctor.home(tmp_path / "a" / "b")
    assert (check.state, check.fix) == ("ok", None)
    assert "made by the first run" in check.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mkstemp", "fsync"])
def test_a_folder_that_cannot_be_written_is_wrong(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether no file can be made or it cannot be brought to the disk: with the reason, what to set, and nothing left."""

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    monkeypatch.setattr(doctor.tempfile if name == "mkstemp" else os, name, fails)
    check = doctor.home(tmp_path)
    assert check.state == "wrong"
    assert "read-only file system" in check.text
    assert "RUNOPS_HOME" in (check.fix or "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_locks_nobody_sees_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that says yes to every lock."""
    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: None)
    check = doctor.home(tmp_path)
    assert check.state == "wrong"
    assert "cannot be locked" in check.text


@pytest.mark.parametrize(
    ("kind", "state"), [("ext4", "ok"), ("nfs4", "note"), ("cifs", "note"), ("tmpfs", "note"), ("unknown", "ok")]
)
def test_what_the_folder_is_on_is_told(kind: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that machines share, or that ends with this one, works, and one should know."""
    monkeypatch.setattr(doctor, "file_system", lambda _: kind)
    check = doctor.home(tmp_path)
    assert (check.state, kind in check.text) == (state, True)


def test_of_nested_mounts_the_innermost_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of two at one place the later one; a folder whose name only begins alike is another."""
    here = str(tmp_path)
    mounts = [Mount("/", "root"), Mount(here, "below"), Mount(here, "over"), Mount(f"{here}/a", "a")]
    monkeypatch.setattr(doctor.psutil, "disk_partitions", lambda all: mounts)
    assert doctor.file_system(tmp_path) == "over"
    assert doctor.file_system(tmp_path / "a" / "b") == "a"
    assert doctor.file_system(tmp_path / "ab") == "over"
    assert doctor.file_system(Path("/")) == "root"


@pytest.mark.parametrize(("free", "state"), [(5 * 10**9, "ok"), (5 * 10**8, "note"), (10**8, "wrong")])
def test_little_room_is_told_before_it_is_none(
    free: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least of the places counts, and `prune` is named."""
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Disk(free if place == tmp_path else 10**12))
    check = doctor.room(tmp_path)
    assert check.state == state
    assert ("runops prune" in (check.fix or "")) == (state != "ok")


def test_only_what_looks_like_a_setting_is_called_misspelt() -> None:
    """Settings, what else is read, secrets of workflows and other programs' variables are left alone."""
    environ = dict.fromkeys(
        ["RUNOPS_HOME", "RUNOPS_MODEL_KEY", "RUNOPS_TRACEBACK", "RUNOPS_DEMO_SHOP", "HOEM", "RUNOPS_HAEDED"], "1"
    )
    assert [check.text.split()[0] for check in doctor.misspelt(environ)] == ["RUNOPS_HAEDED"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ["none is set"]),
        ({"model": "m"}, ["m for everything", "a key is set"]),
        ({"model": "m", "model_agent": "n"}, ["m for cognition, director, summary; n for agent", "a key is set"]),
        ({"model_summary": "n"}, ["n for summary", "a key is set"]),
        ({"model": "m", "model_profile": "vllm"}, ["m for everything", "profile vllm (as set)"]),
    ],
)
def test_models_are_told_by_what_they_are_for(
    given: dict[str, str], told: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Roles that share a model stand together; the key itself is never told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNOPS_MODEL_KEY", "key-that-nobody-may-see")
    checks = doctor.models(host.of_command(settings.Settings(**given, home=tmp_path)))  # type: ignore[arg-type]
    assert len(checks) == len(told)
    assert all(part in check.text for part, check in zip(told, checks, strict=True))
    assert "nobody-may-see" not in repr(checks)


def every_finding() -> list[list[probing.Found]]:
    """Every combination of levels, unknown ones among them."""
    names = list(probing.LEVELS)
    combined = itertools.product(*((*probing.LEVELS[name], None) for name in names))
    return [[probing.Found(name, level, "") for name, level in zip(names, each, strict=True)] for each in combined]


@pytest.mark.parametrize("used", profiles.PROFILES.values(), ids=lambda each: each.name)
def test_the_profile_that_fits_says_nothing_that_the_server_lacks(used: profiles.Profile) -> None:
    """Whatever was found; no known profile that says no more than was found uses more of it; and one that is as good is kept."""

    def fits(profile: profiles.Profile, found: list[probing.Found]) -> bool:
        return all(probing.promised_rank(profile, each.name) <= each.rank for each in found)

    def worth(profile: profiles.Profile) -> int:
        return sum(probing.promised_rank(profile, name) for name in probing.LEVELS)

    for found in every_finding():
        best = probing.fitting(found, used)
        assert fits(best, found)
        assert worth(best) == max(worth(each) for each in profiles.PROFILES.values() if fits(each, found))
        assert best == used or not (fits(used, found) and worth(used) == worth(best))


def test_a_folder_below_one_that_nobody_may_look_into_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is there cannot be told: the folder above is looked at."""
    asked = tmp_path / "closed" / "runs"
    there = Path.exists

    def refuses(path: Path) -> bool:
        if path == asked:
            raise PermissionError(errno.EACCES, "permission denied")
        return there(path)

    monkeypatch.setattr(Path, "exists", refuses)
    assert doctor.home(asked).state == "ok"
