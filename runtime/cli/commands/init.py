"""``runops init``: the files of a new project."""

from __future__ import annotations

import json
import os
import shlex
import urllib.request
from importlib import metadata
from pathlib import Path
from typing import Annotated

from nodes.errors import SetupError
from nodes.values import Json
from runtime.browser.chromium import find
from runtime.cli import console, flags, scaffold
from runtime.display import escapes
from runtime.system import regular_files

WORKFLOWS = Path("workflows")
EXAMPLE = WORKFLOWS / "example.yaml"
GITHUB = Path(".github/workflows/runops.yml")
GITLAB = Path(".gitlab-ci.yml")
IGNORED = (".runops/", ".env", "venv/", "report*.html", "report*.json", "report*.xml")
RUN = "runops run workflows/ "  # how the command of a job begins


def init(
    folder: Annotated[Path, flags.argument("FOLDER", "The project; by default the current folder.")] = Path(),
    github: Annotated[bool, flags.option("--github", "Also a workflow of GitHub Actions that runs them.")] = False,
    gitlab: Annotated[bool, flags.option("--gitlab", "Also a GitLab job that runs them.")] = False,
    force: Annotated[bool, flags.option("--force", "Write over files that are there.")] = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Make the files of a project: a workflow that passes, its schema for editors, `.env.example`, and lines of `.gitignore`.

    Files for CI go to the root of the git repository, where its server reads them, and run the workflows of FOLDER. A file that is there stays as it is, without `--force`, so the command can be given again at any time. An existing `.gitlab-ci.yml` is
    never changed: the job to add is printed.
    """
    renew = f"of another version; renew it: runops schema -o {folder / WORKFLOWS / scaffold.SCHEMA}"
    done = [
        scaffold.put(folder / EXAMPLE, scaffold.template("example.yaml"), force=force),
        scaffold.put(folder / WORKFLOWS / scaffold.SCHEMA, scaffold.schema_text(), force=force, differs=renew),
        scaffold.put(folder / ".env.example", scaffold.template("env.txt"), force=force),
        scaffold.add_lines(folder / ".gitignore", IGNORED),
    ]
    to_add: str | None = None
    root = _root(folder)
    if (github or gitlab) and root != folder:
        # The jobs run there, so that is where secrets and reports are.
        done.append(scaffold.add_lines(root / ".gitignore", IGNORED))
    target = f"{(folder.resolve() / WORKFLOWS).relative_to(root.resolve()).as_posix()}/"
    if github:
        other = f"does not run {target}: add `runops run {shlex.quote(target)}` to its job"
        differs = "" if _runs(root / GITHUB, target) else other
        done.append(scaffold.put(root / GITHUB, _job("github.yaml", target), force=force, differs=differs))
    if gitlab:
        job = _job("gitlab.yaml", target)
        done.append(scaffold.put(root / GITLAB, job))
        to_add = job if done[-1].state == "kept" and not _runs(root / GITLAB, target) else None
    following = _next(folder, root if github or gitlab else None)
    if as_json:
        files: list[Json] = [{"file": str(each.file), "state": each.state, "note": each.note} for each in done]
        console.result(console.as_json(files=files, add=to_add, next=[*following]))
        return
    rows = [[each.state, escapes.line(str(each.file)), escapes.line(each.note)] for each in done]
    console.result("\n".join(console.table(rows)))
    if to_add is not None:
        console.result(f"\nto add to {escapes.line(str(root / GITLAB))}:\n\n{to_add.rstrip()}")
    console.say("\n".join(["next", *(f"  {escapes.line(each)}" for each in following)]))


def _root(folder: Path) -> Path:
    """Return the root of the git repository that the folder is in, as seen from the current folder; else the folder."""
    here = folder.resolve()
    found = next((each for each in (here, *here.parents) if (each / ".git").exists()), here)
    return folder if found == here else Path(os.path.relpath(found))


def _job(template: str, target: str) -> str:
    """Return a file for CI whose job runs the workflows of the folder ``target``."""
    text = scaffold.template(template)
    (command,) = [line.partition(RUN)[1:] for line in text.splitlines() if RUN in line]
    plain = f"runops run {shlex.quote(target)} {command[1]}"
    # A name that a shell must not split could also end a plain scalar of YAML, as `a: b` or `a #b` do.
    return text.replace("".join(command), plain if target in plain.split() else json.dumps(plain, ensure_ascii=False))


def _runs(file: Path, target: str) -> bool:
    if not file.is_file():
        return False
    text = regular_files.read_text(file, errors="replace")
    return "runops run" in text and target in text


def _next(folder: Path, root: Path | None) -> list[str]:
    """Return the commands to type now; ``root`` has the files for CI, if there are any."""
    commands = [] if folder.resolve() == Path.cwd() else [f"cd {shlex.quote(str(folder))}"]
    try:
        find.find()
    except SetupError:
        commands.append("runops install")
    commands += [f"runops run {EXAMPLE}", "runops new NAME --url URL"]
    if root is None:
        return [*commands, "runops init --github"]
    vendor = Path(os.path.relpath(root.resolve(), folder.resolve()), "vendor")
    return commands if [*root.glob("vendor/runops-*.whl")] else [*commands, _vendor(vendor)]


def _vendor(vendor: Path) -> str:
    """Return the command that puts the wheel of this RunOps into the folder ``vendor``, from where a job installs it.

    The package called ``runops`` on PyPI is another project, so a job must not install by that name.
    """
    found = metadata.distribution("runops").read_text("direct_url.json")
    origin: dict[str, Json] = json.loads(found) if found is not None else {}
    url = str(origin.get("url", "CHECKOUT"))
    if "vcs_info" in origin:
        info: dict[str, Json] = origin["vcs_info"]
        url = f"{info['vcs']}+{url}@{info['commit_id']}"
    path = urllib.request.url2pathname(url.removeprefix("file://")) if url.startswith("file:") else url
    if path.endswith(".whl"):
        return f"mkdir -p {vendor} && cp {shlex.quote(path)} {vendor}/"
    return f"pip wheel --no-deps -w {vendor} {shlex.quote(path)}"
