"""Checks of what is installed beside RunOps, and of what surrounds a command: extras, completion, the terminal, CI."""

from __future__ import annotations

import locale
import os
import re
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from runtime.cli import completion_files, scaffold
from runtime.cli.machine import Check
from runtime.settings import reference, settings
from runtime.system import regular_files

EXTRA = re.compile(r"""^(?P<name>[\w.-]+).*;.*extra == ["'](?P<extra>[\w-]+)["']""")
OF_DEVELOPERS = "dev"
NO = frozenset({"false", "no", "off", "0"})


def extras() -> Check:
    """Tell which extras are there, and how the others come."""
    lacks: dict[str, list[str]] = {}
    for each in metadata.requires("runops") or ():
        if (need := EXTRA.match(each)) is not None and need["extra"] != OF_DEVELOPERS:
            lacks.setdefault(need["extra"], []).extend([] if _is_installed(need["name"]) else [need["name"]])
    there = [name for name, packages in lacks.items() if not packages]
    missing = [name for name in lacks if name not in there]
    text = "; ".join(
        f"{what}: {', '.join(names)}" for what, names in (("installed", there), ("not installed", missing)) if names
    )
    packages = dict.fromkeys(each for name in missing for each in lacks[name])
    # By their own names: `runops` on PyPI is another project.
    fix = f"for what needs them: pip install {' '.join(packages)}" if packages else None
    return Check("extras", "ok", text, fix)


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _writable(file: Path) -> bool:
    return os.access(file if file.exists() else file.parent, os.W_OK)


def completion() -> list[Check]:
    """Tell whether the person's shell completes `runops`, if it is one that can."""
    shell = completion_files.own()
    if shell is None:
        return []
    file = completion_files.place(shell)
    if not file.is_file():
        return [Check("completion", "ok", f"not installed for {shell}", "runops completion --install")]
    if regular_files.read_text(file, "replace") != scaffold.template(f"completion_{shell}.txt"):
        return [Check("completion", "note", f"{file} is of another version", "runops completion --install")]
    return [Check("completion", "ok", f"installed for {shell}")]


def encoding() -> Check:
    """Tell whether every character can be printed."""
    name = (getattr(sys.stdout, "encoding", None) or locale.getencoding()).lower()
    if name.replace("-", "") == "utf8":
        return Check("encoding", "ok", name)
    text = f"{name}: characters that it lacks are printed as \\u2026"
    return Check("encoding", "note", text, "export LC_ALL=C.UTF-8 (and unset PYTHONIOENCODING)")


def ci(config: settings.Settings, environ: Mapping[str, str]) -> list[Check]:
    """Tell what is other in CI, if this is CI."""
    given = environ.get("CI", "")
    github = environ.get("GITHUB_ACTIONS") == "true"
    if not given and not github:
        return []
    where = "GitHub Actions" if github else "GitLab" if environ.get("GITLAB_CI") else f"CI is {given}"
    values = {name: getattr(config, name) for name in settings.Settings.model_fields}
    changed = [f"{name} = {reference.as_json(value)}" for name, value in values.items() if reference.in_ci(name, value)]
    text = f"{where}; other defaults: {', '.join(changed) or 'none'}"
    if given.lower() in NO:
        return [Check("ci", "note", f"{text}: any text in CI counts as set", "unset CI")]
    summary = environ.get("GITHUB_STEP_SUMMARY")
    if github and summary and not _writable(Path(summary)):
        fix = "give the container that file: mount its folder, and pass the variable"
        return [Check("ci", "note", f"{text}; the summary of the step, {summary}, cannot be written", fix)]
    return [Check("ci", "ok", text)]
