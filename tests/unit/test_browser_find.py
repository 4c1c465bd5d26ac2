"""The browser that is found, and the error if there is none."""

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
    """The environment of a machine without a browser."""
    (tmp_path / "bin").mkdir()
    return {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path / "home"),
        "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "cache"),
    }


def test_the_setting_comes_first_then_the_variable(machine: dict[str, str], tmp_path: Path) -> None:
    """A browser set by path or name is used, whatever else exists."""
    executable(tmp_path / "bin" / "chromium")
    named, other = executable(tmp_path / "my-chrome"), executable(tmp_path / "bin" / "other-chrome")
    machine["RUNOPS_BROWSER"] = "other-chrome"
    assert find.find(None, machine) == other
    assert find.find(named, machine) == named


def test_a_configured_browser_must_exist(machine: dict[str, str], tmp_path: Path) -> None:
    """A configured browser that cannot run is an error; no other one replaces it."""
    executable(tmp_path / "bin" / "chromium")
    with pytest.raises(SetupError, match="/nowhere/chrome, the browser that is set, cannot be run") as missing:
        find.find("/nowhere/chrome", machine)
    assert missing.value.exit == 3


def test_playwrights_download_comes_before_the_path(machine: dict[str, str], tmp_path: Path) -> None:
    """The newest complete Chromium precedes the headless shell, and that precedes PATH."""
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
    """Chrome and Chromium have several names."""
    path = executable(tmp_path / "bin" / name)
    assert find.find(None, machine) == path


def test_the_default_cache_is_playwrights(machine: dict[str, str], tmp_path: Path) -> None:
    """Without the variable the download is in the user's cache."""
    del machine["PLAYWRIGHT_BROWSERS_PATH"]
    machine["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    expected = download(tmp_path / "xdg" / "ms-playwright", "chromium-1", "chrome-linux/chrome")
    if find.sys.platform == "linux":
        assert find.find(None, machine) == expected


def test_without_a_browser_the_error_names_the_install_command(machine: dict[str, str]) -> None:
    """The error is a setup error with exit 3."""
    with pytest.raises(SetupError) as missing:
        find.find(None, machine)
    assert missing.value.message == "no browser was found: neither Chrome nor Chromium"
    assert missing.value.fix == "type: runops install"
    assert (missing.value.code, missing.value.exit) == ("browser-not-found", 3)
