"""Files of a build: the workflow, its notes and an unfinished draft, and files that a build must not touch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from director.draft import output_files
from director.proving import tools
from runtime.language import reader
from tests import build_contexts
from tests.finishes import TEXT, Browsers, clicks, fails, finish, installed, left, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The browsers that runs open here."""
    return installed(monkeypatch)


async def test_no_head_claims_a_proof_for_another_text(tmp_path: Path, browsers: Browsers) -> None:
    """A fix removes the claim of proof from the head and changes nothing else; a changed or missing file is detected."""
    build = opened(tmp_path, runs=1)
    await finish(build)
    file, session = build.goal.save, build.writer.conversation.id
    text = file.read_text()
    assert output_files.changed(file, session) is None
    patched = output_files.patched(text, "R1")
    assert [(was, now) for was, now in zip(text.splitlines(), patched.splitlines(), strict=True) if was != now] == [
        (
            "# proved: full; 1 of 1 runs passed in fresh browsers",
            "# proved: of the text before it was changed by a fix of run R1",
        )
    ]
    assert output_files.patched(TEXT, "R1") == TEXT
    file.write_text(patched)
    assert "it has changed since" in str(output_files.changed(file, session))
    assert not output_files.may_write(file, session)
    file.unlink()
    assert "not there" in str(output_files.changed(file, session))


async def test_a_file_is_left_as_it_was_written(tmp_path: Path, browsers: Browsers) -> None:
    """A byte order mark and foreign line ends stay, and the file is still a workflow."""
    written = "\ufeff" + TEXT.replace("\n", "\r\n")
    build = opened(tmp_path, written, runs=1)
    assert (await finish(build)).error is None
    saved = build.goal.save.read_bytes().decode()
    assert saved.startswith("\ufeff# Built by")
    assert saved.endswith(written.removeprefix("\ufeff"))
    assert "\n" not in saved.replace("\r\n", "")
    assert reader.load(build.goal.save).workflow.name == "Pays"


async def test_a_build_that_gives_up_leaves_its_draft(tmp_path: Path, browsers: Browsers) -> None:
    """A build that fails leaves its draft, the failing step and the reason in a file that says that it is not finished."""
    clicks(browsers, fails)
    build = opened(tmp_path)
    failed = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert failed.error is not None
    outcome = await finish(build, done=False, summary="There is no button.")
    value: Any = outcome.value
    assert (outcome.error, value["done"], value["failing"]) == (None, False, "pay")
    text, notes = left(build)
    assert "NOT FINISHED: it fails at pay (not-actionable)" in text
    assert "There is no button." in notes
    assert reader.load(build.goal.save).workflow.name == "Pays"
    empty = await finish(opened(tmp_path / "b", None), done=False, summary="No.")
    assert (empty.error, empty.value["file"]) == (None, None)


async def test_a_foreign_file_is_not_overwritten(tmp_path: Path, browsers: Browsers) -> None:
    """A foreign file stays: the build is refused before it runs, a partial draft is saved beside it, and only ``--force`` overwrites it."""
    build = opened(tmp_path)
    build.goal.save.write_text("mine")
    output_files.notes_of(build.goal.save).write_text("mine, too")
    refused = await finish(build)
    assert (refused.error is not None, browsers.opened) == (True, 0)
    partial = await finish(build, done=False)
    value: Any = partial.value
    assert Path(value["file"]).name == "built.partial.yaml"
    assert left(build) == ("mine", "mine, too")
    forced = opened(tmp_path / "b", force=True)
    forced.goal.save.write_text("old")
    assert (await finish(forced)).error is None
    assert "proved: full" in forced.goal.save.read_text()


@pytest.mark.parametrize("proved", [True, False])
async def test_an_unfinished_draft_replaces_nothing(tmp_path: Path, browsers: Browsers, proved: bool) -> None:
    """Even with ``--force``, an unfinished draft overwrites neither a foreign file nor the build's own proved one. It is saved beside it, and the text says so."""
    build = opened(tmp_path, force=True)
    build.goal.save.write_text("mine")
    if proved:
        assert (await finish(build)).error is None
    before = build.goal.save.read_bytes()
    partial = await finish(build, done=False, summary="It cannot be.")
    value: Any = partial.value
    assert (Path(value["file"]).name, build.goal.save.read_bytes()) == ("built.partial.yaml", before)
    assert value["stays"] == str(build.goal.save)
    assert f"{build.goal.save} is as it was" in partial.text
    assert "NOT FINISHED" in Path(value["file"]).read_text()


async def test_nothing_that_is_left_holds_a_secret(tmp_path: Path, browsers: Browsers) -> None:
    """A secret that a page shows is neither in the workflow, nor in the notes, nor in the output."""
    browsers.site.texts['test_id="status"'] = "it is tops3cret-word"
    text = TEXT.replace("allowed_", "secrets: [WORD]\nallowed_")
    build = opened(tmp_path, text, known={"WORD": "tops3cret-word"})
    outcome = await finish(build, summary="The word is tops3cret-word.")
    assert outcome.error is None
    for each in (*left(build), outcome.text, json.dumps(outcome.value)):
        assert "tops3cret" not in each


async def test_page_text_breaks_out_of_no_note(tmp_path: Path, browsers: Browsers) -> None:
    """Text of a page or a model is no heading, no link and no end of a block in the notes."""
    evil = "ok\n```\n# Proved by nobody\n[x](http://evil.test) <script>"
    browsers.site.texts['test_id="status"'] = evil
    build = opened(tmp_path)
    outcome = await finish(build, summary=evil)
    assert outcome.error is None
    notes = left(build)[1]
    assert "\n# Proved by nobody" not in notes
    came = notes.partition("## What came of it")[2].partition("##")[0]
    for marks in ("[x](", "<script", "```"):
        assert marks not in came.replace("\\<", "")


TEXTS = st.text(st.sampled_from("a: {}\n\r#é\ufeff'"), max_size=40)


@hypothesis.given(TEXTS, st.sampled_from(["", "\ufeff"]), st.sampled_from(["\n", "\r\n"]), st.lists(TEXTS, max_size=3))
def test_a_head_changes_nothing_of_a_file(rest: str, mark: str, end: str, lines: list[str]) -> None:
    """A head is comments only: the text after it keeps each byte, its byte order mark and its line ends."""
    text = mark + rest.lstrip("\ufeff").replace("\n", end)
    written = output_files.workflow("S1", text, lines)
    assert written.startswith(mark)
    assert written.endswith(text.removeprefix(mark))
    head = written.removeprefix(mark).removesuffix(text.removeprefix(mark))
    assert all(each.startswith("#") for each in re.split(r"\r\n|\n|\r", head) if each)


@hypothesis.given(
    TEXTS.filter(lambda each: not each.startswith("\ufeff")), st.integers(0, 1000), st.sampled_from("xé# ")
)
def test_an_edited_file_is_somebody_elses(
    tmp_path_factory: pytest.TempPathFactory, text: str, at: int, more: str
) -> None:
    """A build may overwrite only the exact file that it left, not one with one character more, nor another build's file."""
    file = tmp_path_factory.getbasetemp() / "left.yaml"
    written = output_files.workflow("S1", text, ["proved: full"])
    output_files.write(file, written)
    assert output_files.may_write(file, "S1")
    assert not output_files.may_write(file, "S2")
    at %= len(written) + 1
    file.write_bytes(f"{written[:at]}{more}{written[at:]}".encode())
    assert not output_files.may_write(file, "S1")


def test_a_dangling_link_is_not_overwritten(tmp_path: Path) -> None:
    """A dangling link is neither followed nor overwritten."""
    file = tmp_path / "x.yaml"
    file.symlink_to(tmp_path / "gone.yaml")
    assert not output_files.may_write(file, "S1")
    assert output_files.partial_name(file, "S1") == tmp_path / "x.partial.yaml"


def test_an_unfinished_draft_does_not_replace_a_proved_one(tmp_path: Path) -> None:
    """A proved file stays when a further message to its build leads to nothing."""
    file = tmp_path / "x.yaml"
    output_files.write(file, output_files.workflow("S1", "version: 1\n", ["NOT FINISHED: `a` fails"]))
    assert output_files.partial_name(file, "S1") == file
    output_files.write(file, output_files.workflow("S1", "version: 1\n", ["proved: full"]))
    assert output_files.may_write(file, "S1")
    assert output_files.partial_name(file, "S1") == tmp_path / "x.partial.yaml"


@hypothesis.given(TEXTS, st.sampled_from(["", "\ufeff"]), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_a_proof_replaces_the_one_before(rest: str, mark: str, end: str, built: bool, edited: bool) -> None:
    """A proof of `runops verify` takes the place of an earlier one, also of a build's; the rest of the file keeps each byte."""
    text = mark + rest.replace("\ufeff", "").replace("\n", end)
    before = (
        output_files.workflow("S1", text, ["proved: not", "how it was built and proved: x.build.md"]) if built else text
    )
    before += "# more" if edited else ""
    once = output_files.verified(before, ["proved: full; 2 of 2 runs", "pay: done in 2 of 2 runs"], ["R1", "R2"])
    assert output_files.without_head(once) == output_files.without_head(before)
    assert once.startswith(mark)
    assert once.count("# proved: ") == 1 + rest.count("# proved: ")
    assert ("session S1" in once, "x.build.md" in once) == (built, built)
    twice = output_files.verified(once, ["proved: full; 3 of 3 runs"], ["R3"])
    assert "R1" not in twice
    assert twice == output_files.verified(before, ["proved: full; 3 of 3 runs"], ["R3"])
    assert "of the text before it was changed" in output_files.patched(once, "R9")


@pytest.mark.parametrize("edited", [False, True])
def test_a_verified_file_is_the_builds_only_if_it_was(tmp_path: Path, edited: bool) -> None:
    """A build may overwrite its file after a verification, unless somebody had edited it before."""
    file = tmp_path / "x.yaml"
    text = output_files.workflow("S1", "version: 1\n", ["proved: full", "how it was built and proved: x.build.md"])
    file.write_text(text + ("# by hand\n" if edited else ""))
    output_files.overwrite(file, output_files.verified(file.read_text(), ["proved: full"], ["R1"]))
    assert output_files.may_write(file, "S1") is not edited
    assert not output_files.may_write(file, "S2")


def test_a_file_is_overwritten_with_its_mode(tmp_path: Path) -> None:
    """A file that is overwritten keeps its mode, and a link to it stays a link."""
    file, link = tmp_path / "x.yaml", tmp_path / "link.yaml"
    file.write_text("a")
    file.chmod(0o640)
    link.symlink_to(file)
    output_files.overwrite(link, "b")
    assert (link.is_symlink(), file.read_text(), file.stat().st_mode & 0o777) == (True, "b", 0o640)
