"""Environment checks find each fault of folder, disk or settings, and the profile that fits a server."""

import errno
import itertools
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from runtime.cli import completion_files, installation, machine, scaffold
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
    check = machine.home(tmp_path / "a" / "b")
    assert (check.state, check.fix) == ("ok", None)
    assert "made by the first run" in check.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mkstemp", "fsync"])
def test_a_folder_that_cannot_be_written_is_wrong(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file cannot be created or cannot be synced, the check gives the reason and the setting, and leaves nothing."""

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    monkeypatch.setattr(machine.tempfile if name == "mkstemp" else os, name, fails)
    check = machine.home(tmp_path)
    assert check.state == "wrong"
    assert "read-only file system" in check.text
    assert "RUNOPS_HOME" in (check.fix or "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_working_locks_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that grants each lock is wrong."""
    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: None)
    check = machine.home(tmp_path)
    assert check.state == "wrong"
    assert "cannot be locked" in check.text


@pytest.mark.parametrize(
    ("kind", "state"), [("ext4", "ok"), ("nfs4", "note"), ("cifs", "note"), ("tmpfs", "note"), ("unknown", "ok")]
)
def test_the_file_system_is_reported(kind: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network or memory file system works, but the check notes it."""
    monkeypatch.setattr(machine, "file_system", lambda _: kind)
    check = machine.home(tmp_path)
    assert (check.state, kind in check.text) == (state, True)


def test_the_innermost_mount_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later of two mounts at one place counts; a path with only the same prefix is another."""
    here = str(tmp_path)
    mounts = [Mount("/", "root"), Mount(here, "below"), Mount(here, "over"), Mount(f"{here}/a", "a")]
    monkeypatch.setattr(machine.psutil, "disk_partitions", lambda all: mounts)
    assert machine.file_system(tmp_path) == "over"
    assert machine.file_system(tmp_path / "a" / "b") == "a"
    assert machine.file_system(tmp_path / "ab") == "over"
    assert machine.file_system(Path("/")) == "root"


@pytest.mark.parametrize(("free", "state"), [(5 * 10**9, "ok"), (5 * 10**8, "note"), (10**8, "wrong")])
def test_low_disk_space_is_reported(free: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place with the least space counts, and the fix names `prune`."""
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Disk(free if place == tmp_path else 10**12))
    check = machine.room(tmp_path)
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
        ("RUNOPS_DEMO_SHOP", "note", "if it is meant for RunOps, see which settings there are: runops config"),
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
    assert machine.home(denied).state == "ok"


@pytest.mark.parametrize(
    ("free", "limit", "used", "state"),
    [
        (8 * 10**9, "max\n", "5\n", "ok"),
        (8 * 10**9, "2000000000\n", "1500000000\n", "note"),
        (8 * 10**9, "2000000000\n", "1900000000\n", "wrong"),
        (8 * 10**8, "max\n", "5\n", "note"),
        (8 * 10**9, None, None, "ok"),
    ],
)
def test_little_memory_is_reported(
    free: int, limit: str | None, used: str | None, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least of what the machine has free and of what the limit of a container leaves counts."""
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: SimpleNamespace(available=free))
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    for name, text in (("memory.max", limit), ("memory.current", used)):
        if text is not None:
            (tmp_path / name).write_text(text)
    check = machine.memory()
    assert (check.state, check.fix is None) == (state, state == "ok")
    assert ("container" in check.text) == (used is not None and limit != "max\n")


def test_a_clock_that_is_behind_is_reported(tmp_path: Path) -> None:
    """A log from the future means that the clock is wrong now, or was; a few minutes are nothing."""
    logs = tmp_path / "conversations"
    logs.mkdir()
    (logs / "01A.jsonl").write_text("")
    for ahead, state in ((120, "ok"), (7200, "note")):
        os.utime(logs / "01A.jsonl", (time.time() + ahead, time.time() + ahead))
        check = machine.clock(tmp_path)
        assert (check.state, check.fix is None) == (state, state == "ok")
    assert machine.clock(tmp_path / "no" / "such").state == "ok"


def test_a_machine_without_fonts_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only files of fonts count."""
    monkeypatch.setattr(machine.sys, "platform", "linux")
    monkeypatch.setattr(machine, "FONTS", (str(tmp_path),))
    (tmp_path / "readme.txt").write_text("")
    check = machine.fonts()
    assert (check.state, "font" in (check.fix or "")) == ("note", True)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.ttf").write_text("")
    assert machine.fonts().state == "ok"


@pytest.mark.parametrize(("major", "state"), [(159, "ok"), (150, "ok"), (120, "note"), (190, "note"), (None, "ok")])
def test_a_browser_far_from_what_playwright_drives_is_reported(
    major: int | None, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version that the browser says is compared with that of the browser which Playwright would download."""
    monkeypatch.setattr(machine, "_made_for", lambda: 159)
    browser = tmp_path / "chromium"
    browser.write_text(f"#!/bin/sh\necho Chromium {major}.0.1.2\n" if major else "#!/bin/sh\nexit 3\n")
    browser.chmod(0o755)
    check = machine.playwright(browser)
    assert (check.state, "playwright install chromium" in (check.fix or "")) == (state, state == "note")


def test_the_browser_of_playwright_is_known() -> None:
    """The installed Playwright says for which Chromium it was made."""
    made_for = machine._made_for()
    assert made_for is not None
    assert 100 < made_for < 1000


def test_extras_are_listed_with_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extra is there if all that it needs is; the fix names what the others lack. The one of developers is left out."""
    needs = [
        "duckdb>=2",
        'here>=1; extra == "one"',
        "gone[x]<2 ; extra == 'two'",
        'here; extra == "two"',
        'x; extra == "dev"',
    ]
    monkeypatch.setattr(installation.metadata, "requires", lambda _: needs)
    monkeypatch.setattr(installation, "_is_installed", lambda name: name == "here")
    check = installation.extras()
    assert check.text == "installed: one; not installed: two"
    assert "pip install gone" in (check.fix or "")
    monkeypatch.undo()
    assert {"otp", "mail"} <= {*installation.extras().text.removeprefix("installed: ").replace(";", ",").split(", ")}


def test_completion_of_another_version_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script of the person's shell is looked for, and compared with the current one; for another shell nothing is said."""
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (check,) = installation.completion()
    assert (check.state, check.fix) == ("ok", "runops completion --install")
    file = completion_files.place("fish")
    file.parent.mkdir(parents=True)
    file.write_text("old")
    (check,) = installation.completion()
    assert (check.state, check.fix) == ("note", "runops completion --install")
    file.write_text(scaffold.template("completion_fish.txt"))
    (check,) = installation.completion()
    assert (check.state, check.fix) == ("ok", None)
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert installation.completion() == []


@pytest.mark.parametrize(
    ("name", "state"), [("utf-8", "ok"), ("UTF8", "ok"), ("latin-1", "note"), ("ANSI_X3.4-1968", "note")]
)
def test_a_terminal_that_lacks_characters_is_reported(name: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only UTF-8 has all."""
    monkeypatch.setattr(installation.sys, "stdout", SimpleNamespace(encoding=name))
    check = installation.encoding()
    assert (check.state, check.fix is None) == (state, state == "ok")


def test_what_ci_changes_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside CI nothing is said. In CI the defaults that differ are listed; `CI=false` counts as CI; a summary must be writable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("RUNOPS_LINGER", raising=False)
    assert installation.ci(settings.load(), {}) == []
    monkeypatch.setenv("CI", "true")
    config = settings.load()
    (check,) = installation.ci(config, {"CI": "true", "GITHUB_ACTIONS": "true"})
    assert (check.state, "GitHub Actions" in check.text, "linger = 0" in check.text) == ("ok", True, True)
    (check,) = installation.ci(config, {"CI": "false"})
    assert (check.state, check.fix) == ("note", "unset CI")
    (check,) = installation.ci(
        config, {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    )
    assert check.state == "ok"
    gone = str(tmp_path / "no" / "summary")
    (check,) = installation.ci(config, {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": gone})
    assert (check.state, gone in check.text, check.fix is not None) == ("note", True, True)
