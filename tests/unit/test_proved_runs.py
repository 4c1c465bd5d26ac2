"""What the runs of a draft prove: which of them count, and what the headline says of them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from director.builds import open as open_build
from director.draft import draft
from director.proving import draft_runs, tools
from director.session.state import SessionState
from director.tools import barrier
from director.tools.build_context import BuildContext
from nodes.values import Json
from runtime.language import callees, reader
from runtime.log import entries
from runtime.models.turns import turn
from runtime.runs import single_node
from tests import build_contexts
from tests.finishes import SITE, TEXT, Browsers, clicks, fails, finish, installed, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """What runs open here."""
    return installed(monkeypatch)


USED = TEXT.replace("- {id: told,", "- {id: used, type: group, use: used.yaml}\n  - {id: told,")
SUM = "version: 1\nnodes: [{id: sum, type: transform, expr: %d}]\n"


def using(folder: Path, text: str, **more: Any) -> BuildContext:
    """A build context whose draft may use the files of its folder."""
    (folder / ".runops").mkdir(parents=True)
    build = opened(folder, None, **more)
    build.state = SessionState(build.writer, callees.Texts({"used.yaml": SUM % 1}))
    open_build.furnish(build)
    (folder / "used.yaml").write_text(SUM % 1)
    build.state.write_draft(draft.Draft.of(text, build.state.files), reason="as given")
    return build


async def test_runs_of_another_draft_do_not_count(tmp_path: Path, browsers: Browsers) -> None:
    """Runs that were made before an edit prove nothing of what stands there now: all are made anew."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: '{{ false }}'")
    build = opened(tmp_path, text)
    toolsets = tools.toolsets(build)
    arguments: dict[str, Json] = {"done": True, "summary": "It pays.", "unproved": None, "reason": "done"}
    await build_contexts.call(build, "finish", toolsets, **arguments)
    build.state.write_draft(draft.Draft.of(TEXT), reason="it is paid now")
    accepted = await build_contexts.call(build, "finish", toolsets, **arguments)
    value: Any = accepted.value
    assert (value["proved"], browsers.opened) == ("full", 4)
    assert value["effects"][0]["what"] == "done in 2 of 2 runs"


async def test_a_run_of_just_this_draft_counts_for_its_actions(tmp_path: Path, browsers: Browsers) -> None:
    """What ``run_draft`` did with the same draft and inputs need not be done again to be proved; with other inputs it was another thing."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    for number, proved in (("7", "full"), ("8", None)):
        build = opened(tmp_path / number, text, inputs={"number": "7"})
        await build_contexts.call(
            build, "run_draft", tools.toolsets(build), inputs=json.dumps({"number": number}), reason="try"
        )
        build.state.write_draft(draft.Draft.of(text), reason="the same")
        if proved is None:
            clicks(browsers, fails)
        outcome = await finish(build)
        value: Any = outcome.value
        assert (value or {}).get("proved") == proved


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("description: Pays it.", "description: Pays the order.", True),
        ("name: Pays\n", "name: Pays one\n# by hand\n", True),
        (", description: Pays it.}", "}", True),
        ("name: Pay}", "name: Buy}", False),
        ("{{ told }}", "{{ told | upper }}", False),
        ('default: "1001"', 'default: "1002"', False),
        ("id: told,", "id: told, timeout: 3,", False),
    ],
    ids=["described", "named", "not described", "target", "output", "input", "timeout"],
)
async def test_a_run_counts_for_a_draft_that_does_the_same(
    old: str, new: str, same: bool, tmp_path: Path, browsers: Browsers
) -> None:
    """What only says of the draft what it is for takes no proof from it; whatever it does otherwise takes every one."""
    build = opened(tmp_path, TEXT, inputs={"number": "7"})
    await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert old in TEXT
    build.state.write_draft(draft.Draft.of(TEXT.replace(old, new)), reason="better")
    fit = draft_runs.prepared(build, draft_runs.as_saved(build), {"number": "7"})
    assert len(draft_runs.passed_before(build, fit)) == same


async def test_a_run_counts_only_for_the_files_that_it_used(tmp_path: Path, browsers: Browsers) -> None:
    """Once a file says something else that the draft uses, an earlier run of the same text was one of something else."""
    text = USED.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    for name, edited in (("same", False), ("other", True)):
        build = using(tmp_path / name, text, inputs={"number": "7"})
        await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
        if edited:
            (tmp_path / name / "used.yaml").write_text(SUM % 2)
        fit = draft_runs.prepared(build, draft_runs.as_saved(build), {"number": "7"})
        assert [each.status for each in draft_runs.passed_before(build, fit)] == ([] if edited else ["passed"])


async def test_a_run_counts_only_for_the_files_that_it_gave_to_the_site(tmp_path: Path, browsers: Browsers) -> None:
    """One that was written since is another one, also where the time stands there at which the old one was written."""
    given = (
        "- {id: give, type: browser_action, action: upload, target: {label: File}, files: given.txt}\n  - {id: told,"
    )
    build = using(tmp_path, TEXT.replace("- {id: told,", given))
    file = tmp_path / "given.txt"
    file.write_text("one")
    await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    fit = draft_runs.prepared(build, draft_runs.as_saved(build), {})
    assert len(draft_runs.passed_before(build, fit)) == 1
    then = file.stat()
    file.write_text("two")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert draft_runs.passed_before(build, fit) == []


async def test_what_an_earlier_run_yielded_counts_as_what_it_was(tmp_path: Path, browsers: Browsers) -> None:
    """Where that was empty, too, the output is always empty, and must be spoken of."""
    build = opened(tmp_path, TEXT.replace("{{ told }}", "{{ told[:0] }}"))
    await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    refused = await finish(build)
    assert refused.error is not None
    assert "`status`" in refused.text


async def test_a_file_that_changes_during_the_proof_makes_it_none(tmp_path: Path, browsers: Browsers) -> None:
    """What is proved is what stands there at the end: the runs before the change prove nothing, and the next ``finish`` runs anew."""
    build = using(tmp_path, USED)

    def click(number: int) -> None:
        if number == 2:
            (tmp_path / "used.yaml").write_text(SUM % 2)

    clicks(browsers, click)
    refused = await finish(build)
    assert (refused.error or {}).get("code") == "not-proved"
    assert "was changed while it was proved" in refused.text
    assert not build.goal.save.exists()
    assert (await finish(build)).error is None
    assert browsers.opened == 4


async def test_what_was_done_on_the_bench_alone_proves_no_whole(tmp_path: Path, browsers: Browsers) -> None:
    """An action that only the bench did is told as that: it must be spoken of like any other that no whole run did, and the proof is not full."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    build = opened(tmp_path, text)
    loaded = reader.parse(text, "draft.yaml")
    alone = single_node.Trial(loaded, loaded.index["pay"][0], {}, url=SITE)
    fit = alone.prepare({"number": "7"}, build.here.secrets)

    async def work(call: entries.Call) -> turn.Outcome:
        await build.runs.follow(
            call,
            lambda heard, options: build.carrier.begin(
                fit, listener=heard, options=dataclasses.replace(options, part=alone)
            ),
        )
        return turn.Outcome("done", "done")

    await barrier.done(
        build.writer, "execute_nodes", {}, turn.Place(1, "1_execute_nodes", entries.SESSION_THREAD, "a"), work
    )
    assert len(browsers.site.actions) == 1
    whole = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="all")
    assert "next: done on the bench and in no whole run: `pay`." in whole.text
    other = await build_contexts.call(
        build, "run_draft", tools.toolsets(build), inputs='{"number": "7"}', reason="another"
    )
    assert "next:" not in other.text
    refused = await finish(build)
    assert refused.error is not None
    assert "Done on the bench and in no whole run: `pay`." in refused.text
    outcome = await finish(build, unproved="pay was tried alone")
    value: Any = outcome.value
    assert value["proved"] == "all but pay (never reached; done by itself on the bench, in no whole run)"
    build.state.write_draft(draft.Draft.of(text.replace("name: Pay}", "name: Pay all}")), reason="all")
    outcome = await finish(build, unproved="pay was tried alone, as it was before")
    value = outcome.value
    assert value["proved"] == "all but pay (never reached)"


async def test_the_headline_hides_nothing_that_was_not_done(tmp_path: Path, browsers: Browsers) -> None:
    """Leaves that no run came to, or that failed in each and were passed over, and fields that stay empty, are named in it, though every action was done."""
    more = (
        "  - {id: ask, type: browser_action, action: click, target: {text: Gone}, effect: read, on_error: continue}\n"
        "  - {id: each, type: iterate, over: '{{ told[:0] | list }}', as: it, nodes: [{id: look, type: browser_query, query: text, target: {test_id: status}}]}\n"
        "  - {id: later, type: browser_query, query: text, target: {test_id: status}, when: '{{ false }}'}\n"
    )
    clicks(browsers, lambda number: fails(number) if number % 2 == 0 else None)
    text = TEXT.replace("output: {", f"{more}output: {{rest: '{{{{ told[:0] }}}}', ")
    build = opened(tmp_path, text)
    outcome = await finish(build, unproved="rest: there is none")
    value: Any = outcome.value
    assert outcome.error is None
    assert value["proved"] == (
        "all but ask (tried without success), look (executed in no run), later (executed in no run), rest (always empty)"
    )
    assert "done in 2 of 2 runs" in outcome.text


async def test_what_comes_from_an_error_page_is_no_proof(tmp_path: Path, browsers: Browsers) -> None:
    """Where the site answers with an error, a whole run says which steps were there, the end wants a word of them, and the headline names them."""
    browsers.site.status = 500
    build = opened(tmp_path)
    ran = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert "error pages of the site: open (the site answered 500), told (read on an error page, 500)" in ran.text
    refused = await finish(build)
    assert refused.error is not None
    assert "did on an error page of the site: `told`" in refused.text
    assert "On error pages: told: read on an error page, 500." in refused.text
    value: Any = (await finish(build, unproved="told: the site is down")).value
    assert value["proved"] == "all but told (read on an error page, 500)"
    browsers.site.status = None
    later: Any = (await finish(build)).value
    assert later["proved"] == "full"


async def test_a_check_that_held_before_the_action_tells_nothing(tmp_path: Path, browsers: Browsers) -> None:
    """Where the ``verify`` of an action holds before it in every run, it would hold without it, too: a hint of `run_draft`, and said with the action when it ends."""
    text = TEXT.replace("description: Pays it.", "verify: [{text: paid, target: {test_id: status}}]")
    browsers.site.texts['=test_id="status"'] = "paid"
    build = opened(tmp_path, text)
    ran = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert "hint: verify-held-before: pay. All rules of `verify` held just before the action" in ran.text
    outcome = await finish(opened(tmp_path / "a", text))
    assert "pay: done in 2 of 2 runs; verify-held-before: its `verify` does not prove it" in outcome.text
    told = await finish(opened(tmp_path / "b", TEXT))
    assert "pay: done in 2 of 2 runs\n" in f"{told.text}\n"


async def test_an_interrupted_proof_says_what_ran(tmp_path: Path, browsers: Browsers) -> None:
    """A ``finish`` that a crash broke off tells which of its runs were over and at which step the last one was, is told as interrupted, and proves anew."""

    class Died(BaseException):
        pass

    def click(number: int) -> None:
        if number == 2:
            raise Died

    clicks(browsers, click)
    build = opened(tmp_path)
    with pytest.raises(Died):
        await finish(build)
    call = next(each.call for each in build.writer.history.open_calls())
    found = tools.toolsets(build)[1].find_out(call)
    assert found is not None
    assert found.error is not None
    assert (found.error["code"], found.value) == ("interrupted", None)
    assert re.search(
        r"run 1 \(\w+\): passed; run 2 \(\w+\): \w+.* at pay, which may have happened", found.error["message"]
    )
    assert tools.toolsets(build)[0].find_out(call) is None
    assert (await finish(build)).error is None
    assert browsers.opened == 4
