"""Where a shell finds the completion of a command."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Literal

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = ("bash", "zsh", "fish")
RC: dict[Shell, str] = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/config.fish"}
LOADERS = ("/usr/share/bash-completion/bash_completion", "/etc/profile.d/bash_completion.sh")
"""Files of bash-completion, which loads what is in ``place``."""


def own() -> Shell | None:
    """Return the person's shell."""
    name = Path(os.environ.get("SHELL", "")).name
    return next((each for each in SHELLS if each == name), None)


def place(shell: Shell) -> Path:
    """Return the file that the shell loads."""
    home = Path.home()
    match shell:
        case "bash":
            return _folder("XDG_DATA_HOME", home / ".local/share") / "bash-completion/completions/runops"
        case "zsh":
            return home / ".zfunc/_runops"
        case "fish":
            return _folder("XDG_CONFIG_HOME", home / ".config") / "fish/completions/runops.fish"


def line_to_add(shell: Shell) -> str | None:
    """Return the line that a file of the person needs, so that the shell looks there; None if it does so by itself."""
    match shell:
        case "bash" if any(Path(each).is_file() for each in LOADERS):
            return None
        case "bash":
            return f"source {shlex.quote(str(place(shell)))}"
        case "zsh":
            return "fpath+=(~/.zfunc); autoload -Uz compinit; compinit"
        case "fish":
            return None


def _folder(variable: str, usual: Path) -> Path:
    given = os.environ.get(variable)
    return Path(given) if given else usual
