"""Files that a draft may use: found from the draft's future path, in its project, and only workflows."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from director.draft.goal import Goal
from director.editing import tools
from director.session import open as open_session
from director.session.state import SessionState
from director.tools.build_context import BuildContext
from runtime import version
from runtime.log import entries
from runtime.log.session import Session
from runtime.log.store import file_store
from runtime.log.writer import LogWriter
from runtime.secrets import masking
from tests import build_contexts
from tests.now import now

pytestmark = pytest.mark.anyio

PART = "version: 1\ninputs: {n: {type: integer}}\nnodes:\n  - {id: twice, type: transform, expr: '{{ inputs.n * 2 }}'}\noutput: '{{ twice }}'\n"

USING = "{{id: part, type: group, use: {}, with: {{n: 4}}}}"


def opened(folder: Path, save: str = "flows/built.yaml") -> BuildContext:
    """A build context in a project, whose draft will be saved in ``save``."""
    (folder / ".runops").mkdir()
    (folder / "flows/parts").mkdir(parents=True)
    (folder / "flows/parts/twice.yaml").write_text(PART)
    return build_contexts.opened(folder, save=save)


async def create(build: BuildContext, use: str) -> str:
    """The tool's answer to a draft that uses this file."""
    given = {"yaml": USING.format(use), "after": None, "dry_run": None, "reason": "use what is there"}
    return (await build_contexts.call(build, "create_nodes", tools.toolsets(build), **given)).text


async def test_a_draft_uses_files_from_its_future_folder(tmp_path: Path) -> None:
    """Paths start at the folder where the draft will be saved, even before it is saved, and a full run uses the same files."""
    build = opened(tmp_path)
    assert "version 1" in await create(build, "parts/twice.yaml")
    with_output = "output: '{{ part }}'"
    await build_contexts.call(build, "update_node", id="workflow", yaml=with_output, reason="yield it")
    ran = await build_contexts.call(build, "run_draft", inputs=None, reason="try")
    assert ran.error is None, ran.text
    assert "\n8\n" in ran.text
    assert "use-not-found" in await create(opened_beside(tmp_path / "b"), "flows/parts/twice.yaml")


def opened_beside(folder: Path) -> BuildContext:
    """A build context in a separate project."""
    folder.mkdir()
    return opened(folder)


async def test_a_file_that_is_no_workflow_is_not_shown(tmp_path: Path) -> None:
    """A file that is no valid workflow is refused by name without its content; a file outside the project is not read."""
    project = tmp_path / "project"
    project.mkdir()
    build = opened(project)
    for text in ("password: hunter2\n", "version: 1\nnodes: [{id: a, type: hunter2}]\n", "hunter2: [\n"):
        (project / "flows/keys.yaml").write_text(text)
        answer = await create(build, "keys.yaml")
        assert "keys.yaml is no valid workflow" in answer
        assert "use-not-valid" in answer
        assert "hunter2" not in answer
    (tmp_path / "outside.yaml").write_text(PART)
    assert "use-outside" in await create(build, "../../outside.yaml")
    assert build.state.draft is None


def test_the_session_of_a_build_knows_its_files(tmp_path: Path) -> None:
    """A build finds files from the save path in its log, a repair from the repaired file, another session from its own folder."""
    (tmp_path / ".runops").mkdir()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.yaml").write_text(f"{PART}# {name}\n")
    goal = Goal("Do it.", None, tmp_path / "a/built.yaml")
    repairs = entries.Repairs(run="x", path="y", file=str(tmp_path / "b/there.yaml"), evidence="")
    for build, where in (
        (goal.as_logged(), "# a"),
        (goal.as_logged().model_copy(update={"repairs": repairs}), "# b"),
        (None, "# a"),
    ):
        with contextlib.chdir(tmp_path / "a"):
            files = SessionState(_writer(tmp_path, build)).files
            assert where in str(files.read("part.yaml"))


def _writer(folder: Path, build: entries.Build | None) -> LogWriter[Session]:
    header = entries.SessionHeader(purpose="build" if build else "chat", versions=version.versions(), build=build)
    return now(open_session.begin(file_store.FileStore(folder / ".runops"), header, masking.Masker({})))
