"""Runs that count as proof of a draft, and the headline made of them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import textwrap
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
from tests.fakes import FakePage
from tests.finishes import SITE, TEXT, Browsers, clicks, fails, finish, installed, left, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The browsers that runs open here."""
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
    """Runs made before an edit prove nothing about the edited draft: ``finish`` repeats them all."""
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
    """An action that ``run_draft`` performed with the same draft and inputs need not be repeated; one with other inputs makes up for no failed run."""
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
    """An edit of names, descriptions or comments keeps the proof of earlier runs; an edit of target, output, input or timeout discards it."""
    build = opened(tmp_path, TEXT, inputs={"number": "7"})
    await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert old in TEXT
    build.state.write_draft(draft.Draft.of(TEXT.replace(old, new)), reason="better")
    fit = draft_runs.prepared(build, draft_runs.as_saved(build), {"number": "7"})
    assert len(draft_runs.passed_before(build, fit).same) == same


async def test_a_run_counts_only_for_the_files_that_it_used(tmp_path: Path, browsers: Browsers) -> None:
    """An earlier run of the same text does not count once a file that the draft uses has changed."""
    text = USED.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    for name, edited in (("same", False), ("other", True)):
        build = using(tmp_path / name, text, inputs={"number": "7"})
        await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
        if edited:
            (tmp_path / name / "used.yaml").write_text(SUM % 2)
        fit = draft_runs.prepared(build, draft_runs.as_saved(build), {"number": "7"})
        assert [each.status for each in draft_runs.passed_before(build, fit).same] == ([] if edited else ["passed"])


async def test_a_run_counts_only_for_the_files_that_it_uploaded(tmp_path: Path, browsers: Browsers) -> None:
    """A run does not count once the file it uploaded was rewritten, even with the same modification time."""
    given = (
        "- {id: give, type: browser_action, action: upload, target: {label: File}, files: given.txt}\n  - {id: told,"
    )
    build = using(tmp_path, TEXT.replace("- {id: told,", given))
    file = tmp_path / "given.txt"
    file.write_text("one")
    await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    fit = draft_runs.prepared(build, draft_runs.as_saved(build), {})
    assert len(draft_runs.passed_before(build, fit).same) == 1
    then = file.stat()
    file.write_text("two")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert draft_runs.passed_before(build, fit).same == ()


async def test_an_empty_output_of_an_earlier_run_counts_as_empty(tmp_path: Path, browsers: Browsers) -> None:
    """An output that was empty in the earlier run too is always empty, and ``finish`` demands an explanation."""
    build = opened(tmp_path, TEXT.replace("{{ told }}", "{{ told[:0] }}"))
    await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    refused = await finish(build)
    assert refused.error is not None
    assert "`status`" in refused.text


async def test_a_file_that_changes_during_the_proof_invalidates_it(tmp_path: Path, browsers: Browsers) -> None:
    """A file that changes during ``finish`` invalidates the runs before the change; the next ``finish`` runs everything again."""
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


async def test_an_action_done_only_on_the_bench_is_no_full_proof(tmp_path: Path, browsers: Browsers) -> None:
    """An action done only on the bench, in no full run, is reported as that; it must be explained, and the proof is not full."""
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
    refused = await finish(build)
    assert refused.error is not None
    assert "Done on the bench and in no whole run: `pay`." in refused.text
    outcome = await finish(build, unproved="pay was tried alone")
    value: Any = outcome.value
    assert value["proved"] == "all but pay (never reached; done by itself on the bench, in no whole run)"
    other = await build_contexts.call(
        build, "run_draft", tools.toolsets(build), inputs='{"number": "7"}', reason="another"
    )
    assert "next:" not in other.text
    value = (await finish(build)).value
    assert (value["proved"], value["effects"][0]["what"]) == ("full", "done with number=7")
    build.state.write_draft(draft.Draft.of(text.replace("name: Pay}", "name: Pay all}")), reason="all")
    outcome = await finish(build, unproved="pay was tried alone, as it was before")
    value = outcome.value
    assert value["proved"] == "all but pay (never reached)"


BRANCHES = textwrap.dedent("""
    version: 1
    inputs: {title: {type: string, default: Jam}}
    nodes:
      - id: way
        type: route
        branches:
          - name: new
            when: "{{ inputs.title != 'Jam' }}"
            nodes:
              - {id: save, type: browser_action, action: click, target: {text: Save}}
              - {id: saved, type: browser_query, query: text, target: {test_id: status}}
          - name: old
            when: "{{ inputs.title == 'Jam' }}"
            nodes: [{id: look, type: browser_query, query: text, target: {test_id: status}}]
      - id: more
        type: group
        when: "{{ inputs.title == 'Cream' }}"
        nodes:
          - {id: first, type: browser_query, query: text, target: {test_id: status}}
          - {id: second, type: browser_query, query: text, target: {test_id: status}}
    output: {status: "{{ way }}"}
""")


async def test_a_run_with_other_inputs_counts_for_what_only_it_reaches(tmp_path: Path, browsers: Browsers) -> None:
    """A run of the same draft with other inputs proves the actions and steps that it alone reaches, and they are told with these inputs."""
    build = opened(tmp_path, BRANCHES)
    await build_contexts.call(
        build, "run_draft", tools.toolsets(build), inputs='{"title": "Printer on ice"}', reason="new"
    )
    outcome = await finish(build)
    value: Any = outcome.value
    assert (outcome.error, value["proved"]) == (None, "all but more (executed in no run)")
    assert value["effects"][0]["what"] == "done with title=Printer on ice"
    assert value["not_executed"] == ["first", "second"]
    text, notes = left(build)
    assert "# save: done with title=Printer on ice" in text
    assert '- an earlier run of the same draft with title `"Printer on ice"`, ' in notes


async def test_what_was_passed_by_is_told_by_its_container(tmp_path: Path, browsers: Browsers) -> None:
    """Steps of a branch not taken, or of a group whose `when` is false, are told by its name, not one by one; an action still by its own."""
    build = opened(tmp_path, BRANCHES)
    whole = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="all")
    assert "not executed: way/new, more" in whole.text.split("\n")
    value: Any = (await finish(build, unproved="save: it is there")).value
    assert value["proved"] == "all but save (never reached), way/new (executed in no run), more (executed in no run)"
    assert "- executed in no run: `way/new`, `more`" in left(build)[1]


async def test_the_headline_hides_nothing_that_was_not_done(tmp_path: Path, browsers: Browsers) -> None:
    """The headline names leaves that no run reached, leaves that failed and were skipped in each, and fields always empty, though every action was done."""
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


async def test_a_list_of_one_page_says_that_leafing_was_never_tried(tmp_path: Path, browsers: Browsers) -> None:
    """The click that turns pages, in a loop that read one page in each run, is told as never tried; in a loop that never ran it was not executed."""
    loop = (
        "  - {id: %s, type: iterate, %s, nodes: [{id: %s, type: browser_query, query: text, target: {test_id: status}}, "
        "{id: %s, type: browser_action, action: click, target: {text: Next}, effect: read, when: '{{ false }}'}]}\n"
    )
    more = loop % ("pages", "until: '{{ true }}', max: 3", "row", "next")
    more += loop % ("others", "while: '{{ false }}', max: 3", "line", "more")
    clicks(browsers, lambda number: None)
    build = opened(tmp_path, TEXT.replace("output: {", f"{more}output: {{"))
    value: Any = (await finish(build)).value
    assert value["proved"] == (
        "all but next (leafing was never tried: each list had one page), others (executed in no run)"
    )


async def test_a_step_on_an_error_page_is_no_proof(tmp_path: Path, browsers: Browsers) -> None:
    """A run lists the steps done on error pages of the site; ``finish`` demands an explanation of them, and the headline names them."""
    browsers.site.status = 500
    build = opened(tmp_path)
    ran = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert "error pages of the site: open (the site answered 500), told (read on an error page, 500)" in ran.text
    refused = await finish(build)
    assert refused.error is not None
    assert "\n- `told`: read on an error page, 500\n" in refused.text
    value: Any = (await finish(build, unproved="told: the site is down")).value
    assert value["proved"] == "all but told (read on an error page, 500)"
    browsers.site.status = None
    later: Any = (await finish(build)).value
    assert later["proved"] == "full"


async def test_a_check_that_passes_before_the_action_proves_nothing(tmp_path: Path, browsers: Browsers) -> None:
    """A ``verify`` that already holds before its action in every run gives a hint in ``run_draft`` and a note with the action in ``finish``."""
    text = TEXT.replace("description: Pays it.", "verify: [{text: paid, target: {test_id: status}}]")
    browsers.site.texts['=test_id="status"'] = "paid"
    build = opened(tmp_path, text)
    ran = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert "hint: verify-held-before: pay. All rules of `verify` held just before the action" in ran.text
    outcome = await finish(opened(tmp_path / "a", text))
    assert "pay: done in 2 of 2 runs; verify-held-before: its `verify` does not prove it" in outcome.text
    plain = await finish(opened(tmp_path / "b", TEXT))
    assert "pay: done in 2 of 2 runs\n" in f"{plain.text}\n"


async def test_an_interrupted_proof_lists_its_runs(tmp_path: Path, browsers: Browsers) -> None:
    """A ``finish`` broken off by a crash is reported as interrupted, with its finished runs and the last run's step; the next ``finish`` proves anew."""

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
    found = tools.toolsets(build)[1].outcome_of_open_call(call)
    assert found is not None
    assert found.error is not None
    assert (found.error["code"], found.value) == ("interrupted", None)
    assert re.search(
        r"run 1 \(\w+\): passed; run 2 \(\w+\): \w+.* at pay, which may have happened", found.error["message"]
    )
    assert tools.toolsets(build)[0].outcome_of_open_call(call) is None
    assert (await finish(build)).error is None
    assert browsers.opened == 4


@pytest.mark.parametrize("moves", [True, False])
async def test_a_run_tells_where_an_action_led(tmp_path: Path, browsers: Browsers, moves: bool) -> None:
    """`run_draft` gives the path of the page right after an action that led to another address, and no path otherwise."""

    async def pay(_target: str, page: FakePage) -> None:
        if moves:
            page.address = "http://127.0.0.1:8765/runs/7?new=1"

    browsers.site.on_click = pay
    build = opened(tmp_path)
    ran = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    at = ", then at /runs/7?new=1" if moves else ""
    assert f"\nactions: pay: done in 1 of 1 run{at}\n" in ran.text
