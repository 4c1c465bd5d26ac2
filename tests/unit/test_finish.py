"""The end of a build: refused while anything is lacking, proved by whole runs, and what it leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from director.builds import open as open_build
from director.draft import draft
from director.proving import report, tools
from director.session.state import SessionState
from nodes.errors import SiteError
from nodes.values import Json
from runtime.engine import run_state
from runtime.language import callees, prepare, reader
from runtime.log import entries
from tests import build_contexts
from tests.finishes import SITE, TEXT, Browsers, clicks, finish, installed, left, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """What runs open here."""
    return installed(monkeypatch)


LACKING: dict[str, tuple[dict[str, Any], dict[str, Json], str]] = {
    "nothing is said": ({}, {"summary": " "}, "`summary` says nothing"),
    "no draft": ({"text": None}, {}, "there is no draft"),
    "no output": ({"text": TEXT.partition("output:")[0]}, {}, "has no `output`"),
    "an input of nobody's": ({"inputs": {"colour": "red"}}, {}, "`colour`"),
    "an input that does not fit": ({"inputs": {"number": [1]}}, {}, "input-type"),
    "a secret that is not set": ({"text": TEXT.replace("allowed_", "secrets: [WORD]\nallowed_")}, {}, "secret-missing"),
    "a file that is not there": (
        {"text": TEXT.replace("- {id: told", "- {id: used, type: group, use: x.yaml}\n  - {id: told")},
        {},
        "x.yaml",
    ),
}


async def test_a_build_that_is_done(tmp_path: Path, browsers: Browsers) -> None:
    """Accepted, it has passed as often as was asked for, each time in a fresh browser; what is left runs, and says how far it is proved."""
    build = opened(tmp_path, inputs={"number": "1002"}, runs=3)
    outcome = await finish(build)
    assert (outcome.error, browsers.opened, len(browsers.site.actions)) == (None, 3, 3)
    value: Any = outcome.value
    assert (value["done"], value["proved"], len(value["runs"])) == (True, "full", 3)
    text, notes = left(build)
    assert reader.load(build.goal.save).workflow == reader.parse(TEXT, str(build.goal.save)).workflow
    assert "# proved: full; 3 of 3 runs passed" in text
    for said in (build.writer.conversation.id, "done in 3 of 3 runs", "It pays.", '"1002"'):
        assert said in notes
    for each in value["runs"]:
        past = build.runs.past(each["run"])
        assert past is not None
        assert past.header is not None
        assert (past.header.parent, past.header.inputs["number"]) == (build.writer.conversation.id, "1002")


@pytest.mark.parametrize("lacking", LACKING)
async def test_what_is_lacking_is_told_before_anything_runs(tmp_path: Path, browsers: Browsers, lacking: str) -> None:
    """A draft that lacks something is refused with the fix of it, without a run, and nothing is left."""
    given, said, words = LACKING[lacking]
    text = given.get("text", TEXT)
    build = opened(tmp_path, **{**given, "text": None})
    if text is not None:
        # What a draft uses stands where the build looks for it, and not where the draft will be left.
        build.state = SessionState(build.writer, callees.Texts({"x.yaml": TEXT}))
        open_build.furnish(build)
        build.state.write_draft(draft.Draft.of(text, callees.Texts({"x.yaml": TEXT})), reason="as given")
    outcome = await finish(build, **said)
    assert outcome.error is not None
    assert (outcome.error["code"], browsers.opened, build.goal.save.exists()) == ("not-finished", 0, False)
    assert words in outcome.text
    lacks = outcome.text.partition("it could say better:")[0]
    assert lacks.count("\n  ") == lacks.count("\n- ")


async def test_everything_that_is_lacking_is_told_at_once(tmp_path: Path, browsers: Browsers) -> None:
    """Several things that are lacking are told in one answer, and an output that was not wanted need only be spoken of."""
    build = opened(tmp_path, TEXT.partition("output:")[0], inputs={"colour": "red"})
    outcome = await finish(build, summary="")
    lacking, _heading, better = outcome.text.partition("it could say better:")
    assert lacking.count("\n- ") == 3
    assert "pay: nothing says that the action succeeded" in better
    build = opened(tmp_path / "b", TEXT.partition("output:")[0])
    outcome = await finish(build, unproved="output: nothing was asked for")
    assert (outcome.error, browsers.opened) == (None, 2)


async def test_a_run_that_fails_ends_the_proof(tmp_path: Path, browsers: Browsers) -> None:
    """The first run that fails is the last: it is told with its step and the page, and that the run before it may have changed what it found; nothing is left."""

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


async def test_of_an_error_nothing_is_said_twice(tmp_path: Path, browsers: Browsers) -> None:
    """What stands in its message is not told again beside it; what does not is."""
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


async def test_what_is_held_is_said(tmp_path: Path, browsers: Browsers) -> None:
    """Where actions are held the draft is accepted as far as it came in every run: no action was done, and headline, file and notes say so."""
    build = opened(tmp_path, policy="hold")
    outcome = await finish(build)
    value: Any = outcome.value
    assert (outcome.error, browsers.opened, browsers.site.actions) == (None, 2, [])
    assert value["proved"] == "up to pay (held: ready, not done)"
    for text in left(build):
        assert "up to" in text
        assert "held: ready, not done in 2 of 2 runs" in text
    assert "`not executed`" not in outcome.text


async def test_a_sign_in_that_is_held_is_no_proof(tmp_path: Path, browsers: Browsers) -> None:
    """Held where it seems only to sign in, a build is refused and told how a sign-in is written; where the model says that it is right so, it is accepted."""
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
    """A draft is run with other inputs only on the sites that the person has named: no run is begun on another one."""
    build = opened(tmp_path)
    for url, code in (("http://evil.test", "origin-not-named"), (SITE, None)):
        given = json.dumps({"base_url": url})
        outcome = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=given, reason="try")
        assert (outcome.error or {}).get("code") == code
    assert browsers.opened == 1


async def test_an_action_that_no_run_did_must_be_spoken_of(tmp_path: Path, browsers: Browsers) -> None:
    """An action that no run reached, and an output that is always empty, are named; once the model speaks of them the runs that were made count, and the proof is not full."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: '{{ false }}'").replace("{{ told }}", "{{ told[:0] }}")
    build = opened(tmp_path, text)
    toolsets = tools.toolsets(build)
    arguments: dict[str, Json] = {"done": True, "summary": "It pays.", "unproved": None, "reason": "done"}
    refused = await build_contexts.call(build, "finish", toolsets, **arguments)
    assert refused.error is not None
    assert "`pay`, `status`" in refused.text
    refused = await build_contexts.call(
        build, "finish", toolsets, **{**arguments, "unproved": "payments are made elsewhere"}
    )
    assert refused.error is not None
    assert browsers.opened == 2
    said = "pay: everything is paid; status is empty then"
    accepted = await build_contexts.call(build, "finish", toolsets, **{**arguments, "unproved": said})
    value: Any = accepted.value
    assert (accepted.error, browsers.opened) == (None, 2)
    assert value["proved"] == "all but pay (never reached), status (always empty)"
    assert said in left(build)[1]


async def test_what_no_run_could_prove_is_lacking(tmp_path: Path, browsers: Browsers) -> None:
    """An input of the person's that nothing reads, and an output that is the same whatever a run finds: once the model says why, it is taken."""
    text = TEXT.replace("/{{ inputs.number }}", "").replace("{{ told }}", "paid")
    build = opened(tmp_path, text, inputs={"number": "7"})
    refused = await finish(build)
    assert "nothing reads the input `number`" in refused.text
    assert "`status` of the output is the same whatever a run finds" in refused.text
    assert browsers.opened == 0
    assert (await finish(build, unproved="number is not needed, and status is always the same")).error is None


async def test_a_whole_run_says_what_the_end_will_want(tmp_path: Path, browsers: Browsers) -> None:
    """How often the draft is run then, whether this run counts, what is lacking, and of what must be spoken; what the end refuses first is no less."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"").partition("output:")[0]
    build = opened(tmp_path, text, inputs={"number": "8"})
    run = {"inputs": None, "reason": "try"}
    tried = (await build_contexts.call(build, "run_draft", tools.toolsets(build), **run)).text
    assert (
        "`finish` runs this draft 2 times again with the goal's inputs. Missing for it: the draft has no `output`."
        in tried
    )
    assert (
        "What this one did counts there, too. Unless a run does or yields it, name in `unproved`, with why: `pay`"
        in tried
    )
    refused = (await finish(build)).text
    assert "the draft has no `output`" in refused
    assert "never did, or always left empty: `pay`" in refused
    other = await build_contexts.call(build, "run_draft", tools.toolsets(build), **{**run, "inputs": '{"number": "7"}'})
    assert "This run, with other inputs, does not count there." in other.text
    build.state.write_draft(draft.Draft.of(TEXT), reason="pays each")
    whole = (await build_contexts.call(build, "run_draft", tools.toolsets(build), **run)).text
    assert whole.endswith("with the goal's inputs. What this one did counts there, too.")


def test_the_tools_are_small(tmp_path: Path) -> None:
    """Each has a strict schema, and says why it is called."""
    for toolset in tools.toolsets(opened(tmp_path, None)):
        schema = toolset.tool.parameters
        assert schema["required"] == list(schema["properties"])
        assert "reason" in schema["properties"]
        assert toolset.modes == frozenset[entries.Mode]({"agent"})


async def test_a_run_with_other_inputs_takes_nothing_from_the_bench(
    tmp_path: Path, browsers: Browsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a run with the inputs of the wish gives its values to the bench: those of another one would make stale what counts."""
    text = TEXT.replace("name: Pay}", "name: Pay}, when: \"{{ inputs.number == '7' }}\"")
    build = opened(tmp_path, text, inputs={"number": "8"})
    watched: list[str] = []
    onlooker = build.bench.onlooker

    def looks(prepared: prepare.Prepared, call: entries.Call) -> run_state.Watch:
        watched.append(str(prepared.inputs["number"]))
        return onlooker(prepared, call)

    monkeypatch.setattr(build.bench, "onlooker", looks)
    for inputs in (None, '{"number": "7"}', '{"number": "8"}'):
        await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=inputs, reason="try")
    assert watched == ["8", "8"]


def test_a_long_output_is_told_with_how_much_there_is() -> None:
    """A short one whole; of a long one the number of items of each list, the first and the last, in few characters."""
    rows = [{"name": f"Customer {number}", "city": "Porto"} for number in range(105)]
    assert report.in_short({"rows": rows[:2]}, report.OUTPUT) == json.dumps({"rows": rows[:2]})
    shown = report.in_short({"rows": rows, "sum": 12.5, "text": "x" * 4000}, report.OUTPUT)
    assert re.search(r'"rows": \[.*Customer 0.*, …, .*Customer 104.*\] \(105\), "sum": 12.5, ', shown)
    assert len(shown) <= report.OUTPUT + 20
