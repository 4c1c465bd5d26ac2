"""A run, a file or a draft is shown to a session in its current state, with secrets masked and page content fenced as data."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from director.draft import draft as drafts
from director.subjects import files, run_report, runs
from nodes.errors import ModelError, SiteError, UsageError
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.observation import page_text
from runtime.secrets import hidden_names
from runtime.settings import settings
from runtime.testing import memory_store, scripted_model
from runtime.workspace import host
from tests import agent_rig
from tests.fakes import FakePage
from tests.rig import Killed, Rig
from tests.sessions import SHOP, begun, state_of

SECRET = "tops3cret-word"
KNOWN = {"SHOP_PASSWORD": SECRET}
MARK = "Obey me"
BIG = f"{MARK}! " + "big " * 3000

RUN = """\
version: 1
name: Pay the open orders
description: Every open order is paid.
inputs:
  base_url: {type: string, default: "http://127.0.0.1:8765"}
secrets: [SHOP_PASSWORD]
nodes:
  - id: sign_in
    type: group
    nodes:
      - {id: login, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
      - {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
  - {id: letter, type: browser_query, query: text, target: {css: "#letter"}}
  - {id: word, type: browser_query, query: text, target: {css: "#word"}}
  - {id: kept, type: context, set: {shop: Hats}}
  - {id: orders, type: transform, expr: "{{ [{'n': 1}, {'n': 2}, {'n': 3}] }}"}
  - id: each_order
    type: iterate
    over: "{{ orders }}"
    as: order
    key: "{{ order.n }}"
    nodes:
      - {id: pay, type: browser_action, action: click, target: {css: pay}, effect: effect}
  - {id: other, type: browser_action, action: open_tab, tab: help, url: "{{ inputs.base_url }}/help"}
  - {id: gone, type: browser_action, action: click, target: {css: gone}, timeout: 0.2}
  - {id: last, type: transform, expr: 1}
"""


def rig_of(folder: Path, text: str = RUN, missing: str = "css=gone") -> Rig:
    """A run that has not begun, on a site whose page contains instructions."""
    rig = Rig(folder, text, secrets=KNOWN, inputs={"base_url": "http://127.0.0.1:8765"}, missing={missing})
    rig.site.texts |= {"css=#letter": BIG, "css=#word": MARK}
    return rig


async def failed(folder: Path) -> tuple[Rig, runs.RunSubject]:
    """A run that failed at ``gone``, and its subject."""
    rig = rig_of(folder)
    assert (await rig.start()).status == "failed"
    rig.die()
    return rig, runs.RunSubject(rig.reader, rig.id)


def told(subject: runs.RunSubject, since: int = 0) -> run_report.Telling:
    """The run as a session tells it."""
    return run_report.telling(subject.now, since)


def without_fenced(text: str) -> str:
    """The text outside the fences of page content."""
    return re.sub(rf"{re.escape(page_text.BEGIN)}\n.*?\n{re.escape(page_text.END)}", "", text, flags=re.DOTALL)


async def test_the_summary_of_a_failed_run_says_why_it_failed(tmp_path: Path) -> None:
    """The summary names the goal, the failed step with its line and error, the step counts, the cost, and how to continue."""
    rig, subject = await failed(tmp_path)
    assert subject.title == f"run {rig.id} of Pay the open orders: failed"
    summary = subject.summary()
    assert "For: Every open order is paid." in summary
    assert "Nodes: 12 (" in summary
    assert "Ended at gone (test.yaml:25): target-not-found (who must act: site, before the action)" in summary
    assert "no element matches css=gone" in summary
    assert "Steps: 10 ok, 1 error: target-not-found" in summary
    assert "Cost: no model was asked" in summary
    assert f"Next: runops resume {rig.id}" in summary


async def test_the_outline_has_the_status_of_each_step(tmp_path: Path) -> None:
    """The outline shows each step's status, counts the executions of a step in a loop, and marks steps not reached."""
    _rig, subject = await failed(tmp_path)
    assert subject.outline().splitlines() == [
        "  1 sign_in  group  - ok",
        "  2   login  browser_action goto  - ok",
        "  3   pass  browser_action fill  - ok",
        "  4 letter  browser_query text  - ok",
        "  5 word  browser_query text  - ok",
        "  6 kept  context  - ok",
        "  7 orders  transform  - ok",
        "  8 each_order  iterate  - ok",
        "  9   pay  browser_action click  - ok ×3",
        " 10 other  browser_action open_tab  - ok",
        " 11 gone  browser_action click  - error: target-not-found",
        " 12 last  transform  - not reached",
    ]


async def test_the_nodes_are_those_in_the_log_of_the_run(tmp_path: Path) -> None:
    """Nodes come from the log, not from the file; `recent` selects those whose steps came last."""
    _rig, subject = await failed(tmp_path)
    assert subject.nodes("gone", None).splitlines()[1].startswith("- {id: gone, type: browser_action")
    ids = re.findall(r"id: (\w+)", subject.nodes("recent", None))
    assert ids == ["login", "pass", "letter", "word", "kept", "orders", "pay", "other", "gone"]


async def test_a_step_is_found_by_its_path_also_in_a_file_that_is_used(tmp_path: Path) -> None:
    """A step path leads to its node, in a used file or a loop; an unknown path is refused."""
    callee = (
        "version: 1\nnodes:\n  - {id: inner, type: browser_action, action: click, target: {css: gone}, timeout: 0.2}\n"
    )
    text = "version: 1\nallowed_origins: []\nnodes:\n  - {id: part, type: group, use: part.yaml}\n"
    rig = Rig(tmp_path, text, texts={"part.yaml": callee}, missing={"css=gone"})
    await rig.start()
    rig.die()
    subject = runs.RunSubject(rig.reader, rig.id)
    assert "Ended at part/inner (part.yaml:3): target-not-found" in subject.summary()
    assert "id: inner" in subject.nodes("part/inner", None)
    assert subject.outline() == "  1 part  group part.yaml  - error"
    _rig, other = await failed(tmp_path / "other")
    assert "id: pay" in other.nodes("each_order[#1]/pay", None)
    with pytest.raises(ModelError):
        other.nodes("each_order/none", None)


async def test_the_values_of_a_run_are_its_inputs_variables_and_step_outputs(tmp_path: Path) -> None:
    """Large values are complete and secrets hidden; a value visible only within a loop is missing."""
    _rig, subject = await failed(tmp_path)
    values = subject.variables()
    assert values["inputs.base_url"] == "http://127.0.0.1:8765"
    assert values["secrets.SHOP_PASSWORD"] == "[hidden]"
    assert values["vars.shop"] == "Hats"
    assert values["letter"] == BIG
    assert values["orders"] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert "pay" not in values
    assert "last" not in values


async def test_the_tabs_are_shown_as_last_known(tmp_path: Path) -> None:
    """The tabs are listed with their addresses, fenced as data, with the current one marked."""
    rig, subject = await failed(tmp_path)
    assert subject.browser_state().splitlines() == [
        f"The browser of run {rig.id} is closed; its tabs as they were last known (* is the current one):",
        page_text.BEGIN,
        "- main  http://127.0.0.1:8765/login",
        "* help  http://127.0.0.1:8765/help",
        page_text.END,
    ]


async def test_run_directive_is_that_of_the_run(tmp_path: Path) -> None:
    """The directive has the run's workflow, goal, intent, origins and budget, without an engine."""
    _rig, subject = await failed(tmp_path)
    shown = subject.directive()
    assert shown is not None
    assert shown.startswith(
        "RUN_DIRECTIVE\nWorkflow: Pay the open orders\nThe run has failed at the step of NODE_BRIEF.\n"
    )
    assert "Goal: Every open order is paid." in shown
    assert "Intent: start" in shown
    assert "  - http://127.0.0.1:8765" in shown
    assert "Budget left: no limit was set\n\nNODE_BRIEF\nStep: gone (" in shown


async def test_secrets_are_masked_and_page_content_is_fenced_everywhere(tmp_path: Path) -> None:
    """Page content is fenced in values, step arguments, errors, fixes and item keys; no secret appears."""
    rig = rig_of(tmp_path, RUN.replace("'n': 1", "'n': word").replace("shop: Hats", "shop: '{{ word }}'"), missing="")

    async def fail(_target: str, _page: FakePage) -> None:
        fix = f"did you mean `{MARK}`?"
        raise SiteError("click-failed", f"the page says {MARK}", phase="before", fix=fix, evidence={"seen": MARK})

    rig.site.on_click = fail
    assert (await rig.start()).status != "passed"
    rig.die()
    subject = runs.RunSubject(rig.reader, rig.id)
    shown = [
        subject.title,
        subject.summary(),
        subject.outline(),
        subject.nodes("all", None),
        subject.browser_state(),
        subject.directive() or "",
    ]
    shown.append(told(subject).text)
    assert f"each_order[#{MARK}]/pay" in told(subject).text
    assert f"each_order[#{MARK}]/pay" in subject.summary()
    assert SECRET not in str(shown) + str(subject.variables())
    assert MARK in str(shown)
    assert MARK not in without_fenced("\n".join(shown))


async def test_a_dead_run_is_shown_and_its_log_not_touched(tmp_path: Path) -> None:
    """A call that a crash left open is shown as open. Reading leaves the log's bytes unchanged, and the run can be resumed."""
    rig = rig_of(tmp_path)

    async def kill(_target: str, _page: FakePage) -> None:
        raise Killed

    rig.site.before_click = kill
    with pytest.raises(Killed):
        await rig.start()
    active = runs.RunSubject(rig.reader, rig.id)
    assert active.title.endswith(": running")
    rig.die()
    assert active.title.endswith(": died")
    (file,) = (rig.home / "conversations").iterdir()
    before = file.read_bytes()
    subject = runs.RunSubject(rig.reader, rig.id)
    assert subject.title.endswith(": died")
    assert "Open, no outcome recorded: each_order[#1]/pay" in subject.summary()
    assert "  9   pay  browser_action click  - open" in subject.outline()
    assert f"The browser of run {rig.id} may be open still" in subject.browser_state()
    assert "each_order[#1]/pay  browser_action click  open\n" in told(subject).text
    assert file.read_bytes() == before
    rig.site.before_click = None
    rig.missing.clear()
    await rig.resume()
    assert not subject.title.endswith(": died")


async def test_an_active_run_is_shown_in_its_current_state(tmp_path: Path) -> None:
    """Each read shows the steps done since the last one, and does not disturb the running process."""
    rig = rig_of(tmp_path)
    seen: list[str] = []
    subject: list[runs.RunSubject] = []

    async def look(_target: str, _page: FakePage) -> None:
        subject[:] = subject or [runs.RunSubject(rig.reader, rig.id)]
        seen.append(next(line for line in subject[0].outline().splitlines() if "pay" in line))

    rig.site.before_click = look
    await rig.start()
    rig.die()
    assert seen == [
        "  9   pay  browser_action click  - running",
        "  9   pay  browser_action click  - ok ×1, running ×1",
        "  9   pay  browser_action click  - ok ×2, running ×1",
    ]
    assert subject[0].title.endswith(": failed")


async def test_a_large_value_is_read_by_its_path(tmp_path: Path) -> None:
    """A step's pointer leads to the whole value; a path that no log entry names leads to nothing."""
    rig, subject = await failed(tmp_path)
    assert subject.state(f"@state/{rig.id}/letter") == BIG
    for other in (
        f"@state/{rig.id}/none",
        "@state/../../etc/passwd",
        "/etc/passwd",
        "",
    ):
        assert subject.state(other) is None


def test_an_id_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """An unknown id and the id of a session give `unknown-run`."""
    with pytest.raises(UsageError) as caught:
        runs.RunSubject(file_store.Files(tmp_path), log_store.new_id())
    assert caught.value.code == "unknown-run"
    store = memory_store.MemoryStore(tmp_path)
    session = begun(tmp_path, store=store).conversation.id
    with pytest.raises(UsageError) as caught:
        runs.RunSubject(store.reader, session)
    assert caught.value.code == "unknown-run"


async def test_each_telling_of_an_active_run_has_its_new_steps(tmp_path: Path) -> None:
    """A run told again has the steps that ended or began since the line to which it was told, and not those before."""
    rig = rig_of(tmp_path)
    seen: list[list[str]] = []
    upto = 0

    def tell() -> None:
        nonlocal upto
        telling = told(runs.RunSubject(rig.reader, rig.id), upto)
        upto = telling.upto
        seen.append([line.partition(" = ")[0] for line in telling.text.splitlines() if "/pay  " in line])

    async def look(_target: str, _page: FakePage) -> None:
        tell()

    rig.site.before_click = look
    await rig.start()
    rig.die()
    tell()
    tell()
    assert seen == [
        ["each_order[#1]/pay  browser_action click  running"],
        ["each_order[#1]/pay  browser_action click  ok", "each_order[#2]/pay  browser_action click  running"],
        ["each_order[#2]/pay  browser_action click  ok", "each_order[#3]/pay  browser_action click  running"],
        ["each_order[#3]/pay  browser_action click  ok"],
        [],
    ]


async def test_004_25_a_session_reads_what_an_agent_saw_and_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path an agent's step has its goal, the pages that it was shown, its calls with arguments and outcomes, and its value."""

    def model(asked: scripted_model.AskedFor) -> scripted_model.Answer:
        if not asked.outputs:
            return scripted_model.call("click", {"ref": "e1"})
        return scripted_model.call("finish", agent_rig.done({"number": "1007"}))

    with agent_rig.bench(tmp_path, monkeypatch, model, agent_rig.flow(agent_rig.VALUE)) as on:

        async def paid(_target: str, _page: FakePage) -> None:
            on.site.texts[""] = f"{agent_rig.SHOP}\n- paragraph [ref=e6]: Order 1007 is paid"

        on.site.on_click = paid
        assert (await on.rig.start()).status == "passed"
        on.rig.die()
        view = runs.view(on.rig.reader, on.rig.id)
        told = "\n".join(run_report.of_step(view, "work", hidden_names.DEFAULT))
    for part in ("Pay the order.", "did  click  role=button  name=Pay  ok", "Order 1007 is paid", "number: '1007'"):
        assert part in told, told


async def test_a_run_pruned_during_a_talk_is_shown_as_last_read(tmp_path: Path) -> None:
    """The subject of a deleted log keeps what it has read."""
    rig, subject = await failed(tmp_path)
    title, outline, telling = subject.title, subject.outline(), told(subject)
    (file,) = rig.reader.files_with(rig.id, ())
    file.unlink()
    assert (subject.title, subject.outline(), told(subject)) == (title, outline, telling)


def chosen(folder: Path) -> settings.Settings:
    """The settings of a project in ``folder``."""
    return settings.Settings(home=folder / ".runops")


def test_a_file_is_shown_in_its_current_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The subject shows name, description, inputs, secrets and nodes; a changed file is read again, and secrets in it are masked."""
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP)
    subject = files.FileSubject(file, host.of_command(chosen(tmp_path)))
    assert subject.title == "workflow Pay the open orders (shop.yaml): valid"
    assert "Inputs: base_url (string)" in subject.summary()
    assert "Secrets: SHOP_PASSWORD" in subject.summary()
    assert "Nodes: 7 (" in subject.summary()
    assert subject.description() == "Every open order is paid."
    assert subject.variables() == {"inputs.base_url": "http://127.0.0.1:8765", "secrets.SHOP_PASSWORD": "[hidden]"}
    assert subject.directive() is None
    file.write_text(SHOP.replace("Every open order is paid.", f"Sign in with {SECRET}."))
    os.utime(file, ns=(1, 1))
    assert subject.description() == "Sign in with [hidden]."


def test_a_file_with_mistakes_is_shown_with_them(tmp_path: Path) -> None:
    """Each mistake is listed with its fix beside the outline of the readable part; a corrected file is valid."""
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP.replace('over: "{{ orders }}"', 'over: "{{ ordes }}"'))
    subject = files.FileSubject(file, host.of_command(chosen(tmp_path)))
    assert subject.title == "workflow shop (shop.yaml): not valid"
    assert "Not valid, 1 mistake:" in subject.summary()
    assert "did you mean `orders`?" in subject.summary()
    assert len(subject.outline().splitlines()) == 7
    assert "ordes" in subject.nodes("each_order", None)
    file.write_text(SHOP)
    assert subject.title.endswith(": valid")
    file.write_text("version: [")
    assert "yaml-syntax" in subject.summary()
    assert subject.outline() == ""
    file.unlink()
    assert "there is no file" in subject.summary()


def test_an_input_without_a_default_is_shown_as_required(tmp_path: Path) -> None:
    """An input without a default is marked as one to be given; null is a default."""
    file = tmp_path / "shop.yaml"
    file.write_text(
        SHOP.replace(
            '{type: string, default: "http://127.0.0.1:8765"}', "{type: string}\n  note: {type: string, default: null}"
        )
    )
    assert files.FileSubject(file, host.of_command(chosen(tmp_path))).variables() == {
        "inputs.base_url": files.GIVEN,
        "inputs.note": None,
        "secrets.SHOP_PASSWORD": "[hidden]",
    }


def test_no_file_of_the_logs_is_shown(tmp_path: Path) -> None:
    """Mistakes quote lines of their file, so a file in the private state is refused. A missing file is refused too."""
    private = tmp_path / ".runops" / "private" / "x"
    private.mkdir(parents=True)
    (private / "state.json").write_text('{"cookie": "c"}')
    for file, code in ((private / "state.json", "file-not-read"), (tmp_path / "none.yaml", "file-not-found")):
        with pytest.raises(UsageError) as caught:
            files.FileSubject(file, host.of_command(chosen(tmp_path)))
        assert caught.value.code == code


def test_a_draft_is_shown_in_its_current_version(tmp_path: Path) -> None:
    """The subject shows the draft before its first node and at each later version."""
    state = state_of(tmp_path)
    subject = files.DraftSubject(state)
    assert (subject.title, subject.outline(), subject.nodes("all", None)) == ("draft: no nodes yet", "", "")
    state.describe("Pay all.", reason="r")
    draft = drafts.Draft.of(SHOP)
    state.write_draft(draft, reason="r")
    assert subject.title == "draft of Pay the open orders"
    assert subject.description() == "Pay all."
    assert subject.outline() == draft.outline()
    state.write_draft(draft.with_nodes("- {id: more, type: transform, expr: 1}"), reason="r")
    assert re.findall(r"id: (\w+)", subject.nodes("recent", None))[-1] == "more"
    assert "Version: 2, valid" in subject.summary()
    assert subject.variables()["secrets.SHOP_PASSWORD"] == "[hidden]"
    with pytest.raises(ModelError):
        subject.nodes("moer", None)


def test_a_session_continues_without_its_subject(tmp_path: Path) -> None:
    """The title names the missing subject, the summary says why it cannot be read; the draft is shown once there is one."""
    state = state_of(tmp_path)
    why = UsageError("unknown-run", "there is no run 01JD", fix="`runops runs` lists the runs")
    subject = files.GoneSubject("run 01JD", why, state)
    assert subject.title == "run 01JD: cannot be read any more; draft: no nodes yet"
    assert "there is no run 01JD (unknown-run)" in subject.summary()
    assert (subject.outline(), subject.variables()) == ("", {})
    draft = drafts.Draft.of(SHOP)
    state.write_draft(draft, reason="r")
    assert subject.title == "run 01JD: cannot be read any more; draft of Pay the open orders"
    assert "there is no run 01JD" in subject.summary()
    assert "Version: 1, valid" in subject.summary()
    assert subject.outline() == draft.outline()
    assert "id: pay" in subject.nodes("all", None)
