"""The end of a build: refused while the draft is incomplete, proved by whole runs, and the files it writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from director.builds import open as open_build
from director.draft import draft
from director.proving import report, tools
from director.session import plan as plans
from director.session.state import SessionState
from director.tools import build_context
from nodes.errors import SiteError
from nodes.values import Json
from runtime.language import callees, prepare, reader
from runtime.log import entries
from tests import build_contexts
from tests.finishes import SITE, TEXT, Browsers, clicks, finish, installed, left, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The fake browsers that runs open."""
    return installed(monkeypatch)


INCOMPLETE: dict[str, tuple[dict[str, Any], dict[str, Json], str]] = {
    "no summary": ({}, {"summary": " "}, "`summary` says nothing"),
    "no draft": ({"text": None}, {}, "there is no draft"),
    "no output": ({"text": TEXT.partition("output:")[0]}, {}, "has no `output`"),
    "an unused input": ({"inputs": {"colour": "red"}}, {}, "`colour`"),
    "an input of the wrong type": ({"inputs": {"number": [1]}}, {}, "input-type"),
    "a secret that is not set": ({"text": TEXT.replace("allowed_", "secrets: [WORD]\nallowed_")}, {}, "secret-missing"),
    "a missing file": (
        {"text": TEXT.replace("- {id: told", "- {id: used, type: group, use: x.yaml}\n  - {id: told")},
        {},
        "x.yaml",
    ),
}


async def test_an_accepted_build_has_passed_all_its_runs(tmp_path: Path, browsers: Browsers) -> None:
    """A build is accepted after the requested number of runs, each in a fresh browser. The saved file states its proof and runs."""
    build = opened(tmp_path, inputs={"number": "1002"}, runs=3)
    outcome = await finish(build)
    assert (outcome.error, browsers.opened, len(browsers.site.actions)) == (None, 3, 3)
    value: Any = outcome.value
    assert (value["done"], value["proved"], len(value["runs"])) == (True, "full", 3)
    text, notes = left(build)
    assert reader.load(build.goal.save).workflow == reader.parse(TEXT, str(build.goal.save)).workflow
    assert "# proved: full; 3 of 3 runs passed" in text
    for part in (build.writer.conversation.id, "done in 3 of 3 runs", "It pays.", '"1002"'):
        assert part in notes
    for each in value["runs"]:
        past = build.runs.past(each["run"])
        assert past is not None
        assert past.header is not None
        assert (past.header.parent, past.header.inputs["number"]) == (build.writer.conversation.id, "1002")


@pytest.mark.parametrize("case", INCOMPLETE)
async def test_an_incomplete_draft_is_refused_before_any_run(tmp_path: Path, browsers: Browsers, case: str) -> None:
    """An incomplete draft is refused with a fix, without a run, and no file is saved."""
    given, arguments, words = INCOMPLETE[case]
    text = given.get("text", TEXT)
    build = opened(tmp_path, **{**given, "text": None})
    if text is not None:
        # The used file is in the build's sources, not in the folder where the draft will be saved.
        build.state = SessionState(build.writer, callees.Texts({"x.yaml": TEXT}))
        open_build.furnish(build)
        build.state.write_draft(draft.Draft.of(text, callees.Texts({"x.yaml": TEXT})), reason="as given")
    outcome = await finish(build, **arguments)
    assert outcome.error is not None
    assert (outcome.error["code"], browsers.opened, build.goal.save.exists()) == ("not-finished", 0, False)
    assert words in outcome.text
    missing = outcome.text.partition("it could say better:")[0]
    assert missing.count("\n  ") == missing.count("\n- ")


async def test_everything_missing_is_reported_at_once(tmp_path: Path, browsers: Browsers) -> None:
    """One answer lists all that is missing; an output that the goal does not want need only be mentioned in `unproved`, and lacks in no proof."""
    build = opened(tmp_path, TEXT.partition("output:")[0], inputs={"colour": "red"})
    outcome = await finish(build, summary="")
    missing, _heading, better = outcome.text.partition("it could say better:")
    assert missing.count("\n- ") == 3
    assert "pay: nothing says that the action succeeded" in better
    build = opened(tmp_path / "b", TEXT.partition("output:")[0])
    outcome = await finish(build, unproved="output: nothing was asked for")
    assert (outcome.error, browsers.opened) == (None, 2)
    value: Any = outcome.value
    assert value["proved"] == "full"


async def test_a_run_that_fails_ends_the_proof(tmp_path: Path, browsers: Browsers) -> None:
    """The first failed run is the last. The error has its step and page, and warns that the run before may have changed the site."""

    def click(number: int) -> None:
        if number == 2:
            raise SiteError("not-actionable", "it is paid [page] already", evidence={"seen": "paid"})

    clicks(browsers, click)
    build = opened(tmp_path, runs=3)
    outcome = await finish(build)
    assert outcome.error is not None
    assert (outcome.error["code"], browsers.opened, build.goal.save.exists()) == ("not-proved", 2, False)
    for words in (
        "proof run 2 of 3",
        "failed at pay",
        "Run 1 went well and run 2 did not",
        "not-actionable",
        "not executed: told",
    ):
        assert words in outcome.text
    assert "(page) already" in outcome.text
    assert "already" not in outcome.error["message"]


async def test_evidence_is_not_shown_twice(tmp_path: Path, browsers: Browsers) -> None:
    """Evidence in the error message is not repeated beside it; other evidence is shown."""
    here = f"{SITE}/list?page=2"

    def elsewhere(_number: int) -> None:
        raise SiteError(
            "rule-failed", f'url "**page=2" does not hold; seen: {here!r}', phase="after",
            evidence={"rule": 'url "**page=2"', "wanted": "**page=2", "seen": here, "page": here, "waited": 2.0},
        )  # fmt: skip

    clicks(browsers, elsewhere)
    build = opened(tmp_path)
    outcome = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert outcome.text.partition("the page, as")[0].count(here) == 1
    assert "waited: 2.0" in outcome.text


async def test_withheld_actions_are_reported(tmp_path: Path, browsers: Browsers) -> None:
    """If actions are withheld, the draft is accepted up to the first one. No action is done, and headline, file and notes say so."""
    build = opened(tmp_path, policy="hold")
    outcome = await finish(build)
    value: Any = outcome.value
    assert (outcome.error, browsers.opened, browsers.site.actions) == (None, 2, [])
    assert value["proved"] == "up to pay (held: ready, not done)"
    for text in left(build):
        assert "up to" in text
        assert "held: ready, not done in 2 of 2 runs" in text
    assert "`not executed`" not in outcome.text


async def test_a_withheld_sign_in_is_no_proof(tmp_path: Path, browsers: Browsers) -> None:
    """A build withheld at an apparent sign-in is refused with advice on `effect`, and accepted once `unproved` explains the action."""
    text = TEXT.replace("allowed_", "secrets: [WORD]\nallowed_").replace(
        "  - {id: pay",
        "  - {id: word, type: browser_action, action: fill, target: {label: Word}, value: '{{ secrets.WORD }}'}\n  - {id: pay",
    )
    build = opened(tmp_path, text, policy="hold", known={"WORD": "tops3cret-word"})
    tried = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="try")
    assert (tried.error, "effect: idempotent" in tried.text) == (None, True)
    refused = await finish(build)
    assert refused.error is not None
    assert "`pay`" in refused.text
    assert "effect: idempotent" in refused.text
    accepted = await finish(build, unproved="pay does more than sign in")
    value: Any = accepted.value
    assert (accepted.error, value["not_executed"]) == (None, ["told"])
    assert "executed in no run: `told`" in left(build)[1]


async def test_inputs_lead_to_no_other_site(tmp_path: Path, browsers: Browsers) -> None:
    """A run whose inputs lead to a site that the person did not name is refused before it starts."""
    build = opened(tmp_path)
    for url, code in (("http://evil.test", "origin-not-named"), (SITE, None)):
        given = json.dumps({"base_url": url})
        outcome = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=given, reason="try")
        assert (outcome.error or {}).get("code") == code
    assert browsers.opened == 1


async def test_an_action_that_no_run_did_must_be_explained(tmp_path: Path, browsers: Browsers) -> None:
    """Actions never reached and outputs always empty are named. Once `unproved` explains them, the earlier runs count and the proof is partial."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: '{{ false }}'").replace("{{ told }}", "{{ told[:0] }}")
    build = opened(tmp_path, text)
    toolsets = tools.toolsets(build)
    arguments: dict[str, Json] = {"done": True, "summary": "It pays.", "unproved": None, "reason": "done"}
    refused = await build_contexts.call(build, "finish", toolsets, **arguments)
    assert refused.error is not None
    assert "\n- `pay`: never reached\n- `status`: always empty\n" in refused.text
    refused = await build_contexts.call(
        build, "finish", toolsets, **{**arguments, "unproved": "payments are made elsewhere"}
    )
    assert refused.error is not None
    assert browsers.opened == 2
    explanation = "pay: everything is paid; status is empty then"
    accepted = await build_contexts.call(build, "finish", toolsets, **{**arguments, "unproved": explanation})
    value: Any = accepted.value
    assert (accepted.error, browsers.opened) == (None, 2)
    assert value["proved"] == "all but pay (never reached), status (always empty)"
    assert explanation in left(build)[1]


async def test_unused_inputs_and_constant_outputs_must_be_explained(tmp_path: Path, browsers: Browsers) -> None:
    """A goal input that nothing reads and a constant output are refused until `unproved` explains them."""
    text = TEXT.replace("/{{ inputs.number }}", "").replace("{{ told }}", "paid")
    build = opened(tmp_path, text, inputs={"number": "7"})
    refused = await finish(build)
    assert "nothing reads the input `number`" in refused.text
    assert "`status` of the output is the same whatever a run finds" in refused.text
    assert browsers.opened == 0
    assert (await finish(build, unproved="number is not needed, and status is always the same")).error is None


async def test_a_whole_run_announces_the_conditions_of_finish(tmp_path: Path, browsers: Browsers) -> None:
    """`run_draft` reports the number of proof runs, whether it counts, what is missing and what needs explaining; `finish` then agrees."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"").partition("output:")[0]
    build = opened(tmp_path, text, inputs={"number": "8"})
    run = {"inputs": None, "reason": "try"}
    tried = (await build_contexts.call(build, "run_draft", tools.toolsets(build), **run)).text
    assert (
        "This run counts; `finish` runs this draft 2 times more with the goal's inputs. Missing for it: the draft has no `output`."
        in tried
    )
    assert "Unless a run does or yields it, name in `unproved`, with why: `pay`" in tried
    refused = (await finish(build)).text
    assert "the draft has no `output`" in refused
    assert "in earlier runs of this draft: `pay`: never reached" in refused
    other = await build_contexts.call(build, "run_draft", tools.toolsets(build), **{**run, "inputs": '{"number": "7"}'})
    assert "This run, with other inputs, counts there for what those do not reach." in other.text
    build.state.write_draft(draft.Draft.of(TEXT), reason="pays each")
    whole = (await build_contexts.call(build, "run_draft", tools.toolsets(build), **run)).text
    assert whole.endswith("\nThis run counts; `finish` runs this draft 2 times more with the goal's inputs.")


async def test_an_accepted_build_completes_its_plan(tmp_path: Path, browsers: Browsers) -> None:
    """`finish` completes the open tasks of the plan once it is accepted, and not before; a blocked one stays."""
    build = opened(tmp_path, TEXT.partition("output:")[0])
    states = ("completed", "in_progress", "pending", "blocked")
    tasks = [{"task_id": each, "description": each, "status": each} for each in states]
    plan = plans.of({"overall_goal": "Pay", "phases": [{"phase_name": "Do", "tasks": tasks}]})
    build.state.set_plan(plan, reason="first")
    assert (await finish(build)).error is not None
    assert build.state.plan == plan
    assert (await finish(build, unproved="output: none is wanted")).error is None
    known = build.state.plan
    assert known is not None
    assert [each.status for each in known.tasks()] == ["completed", "completed", "completed", "blocked"]


def test_the_tools_have_strict_schemas(tmp_path: Path) -> None:
    """Each tool requires all its fields, `reason` among them, and belongs to mode agent."""
    for toolset in tools.toolsets(opened(tmp_path, None)):
        schema = toolset.tool.parameters
        assert schema["required"] == list(schema["properties"])
        assert "reason" in schema["properties"]
        assert toolset.modes == frozenset[entries.Mode]({"agent"})


async def test_a_run_with_other_inputs_leaves_the_bench_unchanged(
    tmp_path: Path, browsers: Browsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a run with the inputs of the goal gives its values to the bench, so other inputs make nothing stale."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    build = opened(tmp_path, text, inputs={"number": "8"})
    watched: list[str] = []
    stage = build.bench.stage

    def watch(prepared: prepare.Prepared, call: entries.Call) -> build_context.Stage:
        watched.append(str(prepared.inputs["number"]))
        return stage(prepared, call)

    monkeypatch.setattr(build.bench, "stage", watch)
    for inputs in (None, '{"number": "7"}', '{"number": "8"}'):
        await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=inputs, reason="try")
    assert watched == ["8", "8"]


def test_a_long_output_is_shortened_with_its_length() -> None:
    """A short output is shown in full, a long list by its first and last item and its length."""
    rows = [{"name": f"Customer {number}", "city": "Porto"} for number in range(105)]
    assert report.in_short({"rows": rows[:2]}, report.OUTPUT) == json.dumps({"rows": rows[:2]})
    shown = report.in_short({"rows": rows, "sum": 12.5, "text": "x" * 4000}, report.OUTPUT)
    assert re.search(r'"rows": \[.*Customer 0.*, …, .*Customer 104.*\] \(105\), "sum": 12.5, ', shown)
    assert len(shown) <= report.OUTPUT + 20
