"""What the runs of a build have done on the site, as it is listed for a person who cleans up."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from director.cli.builds import outcome
from director.draft import draft as drafts
from director.proving import performed, proofs
from runtime.language import reader
from tests import build_contexts
from tests.finishes import TEXT, Browsers, clicks, fails, finish, installed, left, opened

pytestmark = pytest.mark.anyio

BENCH: dict[str, Any] = {"mode": None, "from": None, "item": None, "reason": "To see it."}
DRAFT: dict[str, Any] = {"inputs": None, "reason": "The whole."}


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The fake browsers that runs open."""
    return installed(monkeypatch)


async def test_every_action_of_every_tool_is_listed_with_its_inputs(tmp_path: Path, browsers: Browsers) -> None:
    """Notes and terminal list each action of whole runs and proofs, with the inputs that decide it, and how often."""
    build = opened(tmp_path, inputs={"number": "1002"})
    await build_contexts.call(build, "run_draft", **DRAFT)
    await build_contexts.call(build, "run_draft", **{**DRAFT, "inputs": '{"number": "1001"}'})
    done = await finish(build)
    value: Any = done.value
    ours = 'pay: click button "Pay", with number=1002; done 3 times: run_draft 1, finish 2'
    theirs = 'pay: click button "Pay", with number=1001; done once: run_draft'
    assert [each["what"] for each in value["left"]] == [ours, theirs]
    _text, notes = left(build)
    assert "## Done on the site while it was built" in notes
    assert "number=1002; done 3 times: run\\_draft 1, finish 2" in notes
    shown = outcome.closing(*closing(value))
    assert f"  left     {ours}" in shown
    assert theirs in shown


def closing(value: dict[str, Any]) -> Any:
    """The arguments that show the end of a build to a person."""
    from runtime.report import endings

    record = endings.BuildRecord.model_construct(status="done", proved="full", changed=None, costs=None)
    return record, value, "again", "apply"


async def test_what_a_reset_undid_is_not_left(tmp_path: Path, browsers: Browsers) -> None:
    """An action before the last reset counts as undone, and a person is shown only what stays on the site."""
    build = opened(tmp_path, inputs={"number": "1002"}, reset="true")
    await build_contexts.call(build, "run_draft", **{**DRAFT, "inputs": '{"number": "1001"}'})
    value: Any = (await finish(build)).value
    assert [each["what"] for each in value["left"]] == [
        'pay: click button "Pay", with number=1001; done once: run_draft; a later reset undid it',
        'pay: click button "Pay", with number=1002; done 2 times: finish 2; a later reset undid 1',
    ]
    shown = outcome.closing(*closing(value))
    assert "number=1002" in shown
    assert "number=1001" not in shown


@pytest.mark.parametrize("phase", ["before", "after"])
async def test_an_action_that_may_have_happened_is_listed_as_such(
    tmp_path: Path, browsers: Browsers, phase: str
) -> None:
    """An action that failed before it did anything is not listed; one that failed after it may have happened."""
    if phase == "before":
        clicks(browsers, fails)
        build = opened(tmp_path)
    else:
        build = opened(tmp_path, TEXT.replace("description: Pays it.", "verify: [{text: never}], timeout: 1"))
    await build_contexts.call(build, "run_draft", **DRAFT)
    found = [each.describe() for each in performed.of_build(build)]
    assert found == (
        []
        if phase == "before"
        else ['pay: click button "Pay", with number=1001; done once: run_draft; 1 may not have happened']
    )


async def test_a_build_that_gives_up_lists_what_it_did(tmp_path: Path, browsers: Browsers) -> None:
    """The notes of an unfinished draft list what was done on the site, too."""
    build = opened(tmp_path)
    await build_contexts.call(build, "run_draft", **DRAFT)
    value: Any = (await finish(build, done=False)).value
    assert [each["step"] for each in value["left"]] == ["pay"]
    assert "done once: run\\_draft" in Path(value["notes"]).read_text()


async def test_a_secret_is_not_listed(tmp_path: Path, browsers: Browsers) -> None:
    """What an action typed is listed with the names of its secrets, not their values."""
    typed = '{id: type, type: browser_action, action: type, target: {label: No}, value: "{{ secrets.WORD }}", effect: effect}'
    text = TEXT.replace("allowed_", "secrets: [WORD]\nallowed_").replace("- {id: told", f"- {typed}\n  - {{id: told")
    build = opened(tmp_path, text, known={"WORD": "sesame-5678"})
    value: Any = (await finish(build)).value
    shown = value["left"][1]["what"]
    assert shown.startswith("type: ")
    assert "{{ secrets.WORD }}" in shown
    assert "sesame" not in str(value) + left(build)[1]


NODES = """
  - {id: enter, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.WORD }}"}
  - {id: sign_in, type: browser_action, action: click, target: {text: Sign in}, effect: idempotent}
  - {id: pause, type: browser_action, action: uncheck, target: {role: switch}}
  - {id: close, type: browser_action, action: click, target: {text: Close}, effect: idempotent}
  - {id: name, type: browser_action, action: fill, target: {label: Name}, value: Ann}
  - {id: more, type: browser_action, action: click, target: {text: More}, effect: read}
"""


async def test_what_changes_the_site_without_counting_as_an_effect_is_listed(
    tmp_path: Path, browsers: Browsers
) -> None:
    """A proof lists a switch and a click declared idempotent, as such; not what only signs in, types, or leads further."""
    text = "version: 1\nsecrets: [WORD]\nnodes:\n" + NODES
    listed = proofs.repeatable(reader.parse(text, "t.yaml"), [proofs.Ran("r", "passed", {"pause": "done"})])
    assert [(each.key, each.describe()) for each in listed] == [
        ("pause", "done in 1 of 1 run; idempotent"),
        ("close", "never reached; idempotent"),
    ]
    build = opened(tmp_path, TEXT.replace("action: click", "action: uncheck"))
    value: Any = (await finish(build, unproved="`status`")).value
    assert [each["what"] for each in value["effects"]] == ["done in 2 of 2 runs; idempotent"]
    assert "# pay: done in 2 of 2 runs; idempotent" in left(build)[0]
    assert [each["what"] for each in value["left"]] == [
        'pay: uncheck button "Pay", with number=1001; done 2 times: finish 2'
    ]
    signs_in = TEXT.replace("allowed_", "secrets: [WORD]\nallowed_").replace(
        "  - {id: pay", f"{NODES[1:]}  - {{id: pay"
    )
    build = opened(tmp_path / "signs_in", textwrap.dedent(signs_in), known={"WORD": "sesame-5678"})
    await build_contexts.call(build, "run_draft", **DRAFT)
    assert [each.step for each in performed.of_build(build)] == ["pause", "close", "pay"]


async def test_a_tick_in_a_form_is_left_only_with_what_sends_it(tmp_path: Path, browsers: Browsers) -> None:
    """A check mark before the action that sends its form is not listed: the form was not sent, or the action is. A switch is."""
    ticks = """- {id: gift, type: browser_action, action: check, target: {label: Gift}}
  - {id: alerts, type: browser_action, action: check, target: {role: switch, name: Alerts}}
  - {id: note, type: browser_action, action: fill, target: {label: Note}, value: soon}
  - {id: pay"""
    build = opened(tmp_path, TEXT.replace("- {id: pay", ticks))
    clicks(browsers, fails)
    await build_contexts.call(build, "run_draft", **DRAFT)
    assert [each.step for each in performed.of_build(build)] == ["alerts"]


async def test_the_notes_give_each_reason_of_a_change_once(tmp_path: Path, browsers: Browsers) -> None:
    """Versions of the draft with the same reason share one line of the decisions."""
    build = opened(tmp_path)
    for number, reason in enumerate(("next step", "pays\n each", "next  step")):
        build.state.write_draft(drafts.Draft.of(TEXT.replace("Pays it.", f"Pays it {number}.")), reason=reason)
    await finish(build)
    said = left(build)[1].partition("## Decisions\n\n")[2].partition("\n\n")[0]
    assert said.split("\n") == ["- version 1: as given", "- versions 2, 4: next step", "- version 3: pays each"]
