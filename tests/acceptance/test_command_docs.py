"""The page about the command agrees with the command."""

import subprocess
import sys

from tests.command import Project
from tests.shop_process import ROOT

CHECK = [sys.executable, str(ROOT / "scripts" / "command_docs.py"), "--check"]


def test_every_command_is_documented_with_its_real_help() -> None:
    """docs/command.md contains each command of the table with the help text that it prints."""
    done = subprocess.run(CHECK, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_has_the_help_of_a_real_terminal(tmp_path) -> None:
    """The help in the page is that of the command as a process, on a terminal of 80 columns."""
    page = (ROOT / "docs" / "command.md").read_text()
    for arguments in ([], ["run"]):
        printed = Project(tmp_path, COLUMNS="80").runops(*arguments, "--help").stdout
        assert f"```text\n{printed.strip()}\n```" in page
