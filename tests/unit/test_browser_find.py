"""Which browser is found, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.errors import SetupError
from runtime.browser.chromium import find


def executable(path: Path) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def download(cache: Path, folder: str, inside: str, *, complete: bool = True) -> Path:
    """A browser as Playwright's installer leaves it."""
    path = executable(cache / folder / inside)
    if complete:
        (cache / folder / "INSTALLATION_COMPLETE").touch()
    return path


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without any browser."""
    (tmp_path / "bin").mkdir()
    return {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path / "home"),
        "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "cache"),
    }


def test_the_setting_comes_first_then_the_variable(machine: dict[str, str], tmp_path: Path) -> None:
    """What is named is taken, by path or by name, whatever else there is."""
    executable(tmp_path / "bin" / "chromium")
    named, other = executable(tmp_path / "my-chrome"), executable(tmp_path / "bin" / "other-chrome")
    machine["RUNOPS_BROWSER"] = "other-chrome"
    assert find.find(None, machine) == other
    assert find.find(named, machine) == named


def test_what_is_named_must_be_there(machine: dict[str, str], tmp_path: Path) -> None:
    """A browser that is named and cannot be run is an error, never silently another one."""
    executable(tmp_path / "bin" / "chromium")
    with pytest.raises(SetupError, match="/nowhere/chrome, the browser that is set, cannot be run") as missing:
        find.find("/nowhere/chrome", machine)
    assert missing.value.exit == 3


def test_playwrights_download_comes_before_the_path(machine: dict[str, str], tmp_path: Path) -> None:
    """The newest full Chromium is taken, then the headless shell, then what is on PATH; what was cut off does not count."""
    cache = tmp_path / "cache"
    on_path = executable(tmp_path / "bin" / "chromium")
    assert find.find(None, machine) == on_path
    shell = download(cache, "chromium_headless_shell-1300", "chrome-headless-shell-linux64/chrome-headless-shell")
    assert find.find(None, machine) == shell
    older = download(cache, "chromium-999", "chrome-linux/chrome")
    assert find.find(None, machine) == older
    newer = download(cache, "chromium-1000", "chrome-linux64/chrome")
    download(cache, "chromium-1001", "chrome-linux64/chrome", complete=False)
    download(cache, "firefox-2000", "firefox/firefox")
    download(cache, "chromium-2000", "chrome-linux64/chrome_crashpad_handler")
    assert find.find(None, machine) == newer
    mac = download(cache, "chromium-3000", "chrome-mac/Chromium.app/Contents/MacOS/Chromium")
    assert find.find(None, machine) == mac


@pytest.mark.parametrize("name", ["google-chrome", "chrome", "chromium", "chromium-browser"])
def test_every_name_on_path_is_known(name: str, machine: dict[str, str], tmp_path: Path) -> None:
    """Chrome and Chromium go by several names."""
    path = executable(tmp_path / "bin" / name)
    assert find.find(None, machine) == path


def test_the_cache_is_looked_for_where_playwright_puts_it(machine: dict[str, str], tmp_path: Path) -> None:
    """Without a variable the download stands in the user's cache."""
    del machine["PLAYWRIGHT_BROWSERS_PATH"]
    machine["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    expected = download(tmp_path / "xdg" / "ms-playwright", "chromium-1", "chrome-linux/chrome")
    if find.sys.platform == "linux":
        assert find.find(None, machine) == expected


def test_none_is_one_sentence_and_the_command(machine: dict[str, str]) -> None:
    """Without any browser the error is the setup's, and names the command that brings one."""
    with pytest.raises(SetupError) as missing:
        find.find(None, machine)
    assert missing.value.message == "no browser was found: neither Chrome nor Chromium"
    assert missing.value.fix == "type: runops install"
    assert (missing.value.code, missing.value.exit) == ("browser-not-found", 3)
