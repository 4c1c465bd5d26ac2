"""A secret in every channel: nothing that a command writes or prints has it, also if the masks before the gate are switched off."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests import canaries
from tests.command import Project

PROTECTIONS: Mapping[str, bool] = {
    "": True,
    "runtime.log.writer": True,
    "runtime.engine.attempt": True,
    "runtime.services.artifacts": True,
    "runtime.engine.evidence": False,
    "runtime.engine.leaf_context": False,
    "runtime.observation.tree": False,
    "runtime.observation.observation": False,
    "runtime.models.requests": False,
    "runtime.services.functions": False,
    "runtime.language.prepare": False,
    "runtime.runs.run": False,
    "runtime.batch.reports.composing": False,
    "runtime.batch.reports.event_lines": False,
    "runtime.browser.page_messages": False,
    "runtime.browser.page.screenshots": False,
    "runtime.browser.page.drawn_text": False,
    "runtime.display.stream": False,
    "runtime.engine.run_state": False,
    "runtime.engine.trace_file": False,
    "runtime.cli.app": False,
}
"""The modules whose masks hide the canary, the first for all of them; true if no other mask follows, so that a run ends with `secret-leaked`."""


def arguments(origin: str) -> list[str]:
    return [*canaries.RUN, *itertools.chain.from_iterable(canaries.REPORTS.values()), "-i", f"base={origin}"]


def printed(name: str, ended: subprocess.CompletedProcess[str]) -> Iterator[tuple[str, bytes]]:
    yield f"the output of {name}", ended.stdout.encode()
    yield f"what {name} says", ended.stderr.encode()


def refused(ended: subprocess.CompletedProcess[str]) -> set[str | None]:
    """The codes of the errors in the output of the command, and of its runs."""
    said = json.loads(ended.stdout)
    return {(each["error"] or {}).get("code") for each in (said, *said.get("runs", ())) if "error" in each}


def test_nothing_that_a_command_writes_or_prints_has_the_secret(tmp_path: Path) -> None:
    """Logs, values, files, reports and every form of `show` are clean after pages, models, functions and errors had the secret."""
    with canaries.project(tmp_path) as (project, site):
        ran = project.runops(*arguments(site.origin), "-j", "2")
    assert ran.returncode == 1, ran.stderr
    assert [each["status"] for each in json.loads(ran.stdout)["runs"]] == ["passed", "failed"]
    things = [*printed("run", ran)]
    for name, command in canaries.AFTERWARDS.items():
        things += printed(name, project.here(*command))
    secrets = canaries.CANARY, project.environment["RUNOPS_MODEL_KEY"]
    assert canaries.found(itertools.chain(things, canaries.files(tmp_path)), *secrets) == {}
    kinds = {Path(name).suffix for name, _data in canaries.files(tmp_path)}
    assert {".jsonl", ".png", ".txt", ".xml", ".html", ".json", ".md", ".zip", ".webm"} <= kinds


def run(project: Project, origin: str, folder: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """Run the workflows in this process. Return how that ended, and where the secret is found."""
    ran = project.here(*arguments(origin))
    return ran, canaries.found(itertools.chain(printed("run", ran), canaries.files(folder)))


@pytest.mark.drawn(0)
@pytest.mark.parametrize("module", PROTECTIONS)
def test_the_gate_holds_what_a_missing_mask_lets_through(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the masks of a module, or without any, no file that may be handed on and no output has the secret; all masks are known."""
    with canaries.project(tmp_path) as (project, site):
        protections = canaries.Protections(monkeypatch, module)
        ran, found = run(project, site.origin, tmp_path)
    assert found == {}
    assert protections.acted <= {*PROTECTIONS}
    leaked = {file.suffix for file in tmp_path.glob(".runops/private/*/leaked/*")}
    if not module:
        assert refused(ran) == {"secret-published"}
        assert leaked == {"", ".txt", ".zip"}, "values, files and traces"
    else:
        assert ("secret-leaked" in refused(ran)) is PROTECTIONS[module]


@pytest.mark.drawn(0)
def test_without_masks_and_gate_the_secret_is_found_in_every_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search of these tests finds the secret in logs, values, files, reports and both streams, if nothing protects them."""
    with canaries.project(tmp_path) as (project, site):
        canaries.Protections(monkeypatch, "")
        canaries.without_the_gate(monkeypatch)
        _ran, found = run(project, site.origin, tmp_path)
    places = ("conversations/", "blobs/", "files/", "the output", "what run says", "the name", *canaries.REPORTS)
    assert [each for each in places if not any(each in name for name in found)] == []
