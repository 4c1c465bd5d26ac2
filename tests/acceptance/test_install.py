"""`runops install`, on machines with and without a browser; the installers are stand-ins on PATH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.command import RUNOPS

pytestmark = [pytest.mark.full_browser, pytest.mark.own_driver, pytest.mark.drawn(share=0.34, of="install")]


def program(folder: Path, name: str, text: str) -> Path:
    """An executable script."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def install(tmp_path: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`runops install` with an empty home, only ``tmp_path/bin`` on PATH, and no reachable host for Playwright's download.

    ``more`` are further variables of its environment.
    """
    environment = {
        "HOME": str(tmp_path),
        "PATH": str(tmp_path / "bin"),
        "PLAYWRIGHT_DOWNLOAD_HOST": "http://127.0.0.1:9",
        "LANG": "C.UTF-8",
        **more,
    }
    return subprocess.run(
        [RUNOPS, "install", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_an_installed_browser_is_enough(tmp_path: Path) -> None:
    """With a Chromium on PATH nothing is installed, and its path is printed."""
    browser = program(tmp_path / "bin", "chromium", "echo Chromium 1")
    done = install(tmp_path)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(browser), "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may install packages")
def test_the_system_package_is_the_fallback(tmp_path: Path) -> None:
    """When the download fails and apt-get exists, root gets the system's Chromium."""
    browser = tmp_path / "bin" / "chromium"
    makes = f"printf '#!/bin/sh\\necho Chromium 1\\n' > {browser}; /bin/chmod 755 {browser}"
    program(tmp_path / "bin", "apt-get", f'echo "apt-get $*"; if [ "$1" = install ]; then {makes}; fi')
    done = install(tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, str(browser))
    assert "apt-get update" in done.stderr
    assert "apt-get install -y chromium" in done.stderr


@pytest.mark.parametrize(("engine", "browser"), [("firefox", "nowhere/firefox"), ("chromium", "nowhere/chromium")])
def test_a_browser_that_is_set_and_cannot_be_run(engine: str, browser: str, tmp_path: Path) -> None:
    """With one that is set and cannot be run nothing is installed, since no run would use it: the error names it."""
    program(tmp_path / "bin", "apt-get", f"touch {tmp_path}/asked")
    done = install(tmp_path, engine, RUNOPS_BROWSER=browser)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{browser}, the browser that is set, cannot be run" in done.stderr
    assert f"unset it and type: runops install{' firefox' if engine == 'firefox' else ''}" in done.stderr
    assert "trying" not in done.stderr
    assert not (tmp_path / "asked").exists()


def test_without_any_installer_the_last_line_is_the_fix(tmp_path: Path) -> None:
    """When nothing can be installed the command exits 3 without a traceback, and ends with the one command to type."""
    program(tmp_path / "bin", "apt-get", "exit 100")
    done = install(tmp_path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].endswith("apt-get install -y chromium")
