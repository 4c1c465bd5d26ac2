"""A person answers, decides and resumes runs in the session, and changes the plan."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runtime.testing.scripted_model import call, text
from tests import shop_flows
from tests.chats import Chats, typed, words_of
from tests.shop_process import Shop

pytestmark = pytest.mark.drawn(share=0.22, of="conversations talk")

ASKS = """\
version: 1
name: Ask
inputs:
  above: {type: number, default: 0}
nodes:
  - {id: first, type: transform, expr: "{{ inputs.above + 1 }}"}
  - id: person
    type: context
    ask:
      go: {question: Shall it go on?, type: boolean}
output: "{{ person.go }}"
"""

PAY = (
    shop_flows.sign_in("Pay one order")
    + """
  - id: pay
    type: browser_action
    action: click
    target: {role: button, name: Pay}
    verify: [{text: paid, target: {css: "#orders tbody tr"}}]
output: done
"""
)

TASKS = [
    {"task_id": name, "description": told, "status": "pending", "notes": None, "node_ids": []}
    for name, told in (("look", "Look at the prices"), ("sum", "Add up the prices"))
]
PLAN = {
    "overall_goal": "Prices",
    "current_phase": "Work",
    "phases": [{"phase_name": "Work", "status": "pending", "tasks": TASKS}],
    "blockers": [],
    "notes": None,
}


def test_004_5_a_paused_run_is_answered_in_the_session(chats: Chats) -> None:
    """A plain yes answers it, the run continues, the model is told, and a wrong answer is refused before anything is written."""
    project = chats.answers(text("It passed."))
    project.write("ask.yaml", ASKS)
    paused = typed(project, "/run above=300\n", "chat", "ask.yaml")
    assert paused.returncode == 4, paused.stderr
    refused = typed(project, "/answer perhaps\n", "chat", "--resume", "last")
    assert refused.returncode == 2
    assert "bad-answer" in refused.stderr
    done = typed(project, "/answer yes\nWhat came of it?\n", "chat", "--resume", "last")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "It passed.\n"
    assert project.runs()[0]["state"] == "passed"
    (body,) = chats.bodies()
    assert "/answer yes" in json.dumps(body["input"])
    again = typed(project, "/answer yes\n", "chat", "--resume", "last")
    assert again.returncode == 2
    assert "nothing-to-answer" in again.stderr


@pytest.mark.parametrize(("file", "said"), [("ask.yaml", "waits for a person"), ("prices.yaml", "has failed")])
def test_bug_7_run_mode_has_the_step_at_which_the_run_stands(chats: Chats, file: str, said: str) -> None:
    """004-16: the request has RUN_DIRECTIVE and NODE_BRIEF of that step, and nothing says that the model is a step of it."""
    project = chats.answers(text("There."))
    project.write("ask.yaml", ASKS)
    typed(project, "/run\n/mode run\nWhere does it stand?\n", "chat", file)
    (body,) = chats.bodies()
    sent = json.dumps(body, ensure_ascii=False)
    assert f"The run {said} at the step of NODE_BRIEF." in sent
    assert f"NODE_BRIEF\\nStep: {'person (context)' if file == 'ask.yaml' else 'total (transform)'}" in sent
    assert "You work for one step" not in sent


def test_bug_7_run_mode_has_the_answers_of_the_person(chats: Chats) -> None:
    """004-16: USER_INPUT has what was answered, where the run failed behind it; a run that passed stands at no step."""
    project = chats.answers(text("There."), text("Passed."))
    project.write(
        "ask.yaml", ASKS.replace("output: ", '  - {id: late, type: transform, expr: "{{ person.go + [1] }}"}\noutput: ')
    )
    typed(project, "/run\n", "chat", "ask.yaml")
    done = typed(project, "/answer yes\n/mode run\nWhere?\n", "chat", "--resume", "last")
    assert done.returncode in (0, 1), done.stderr
    sent = json.dumps(chats.bodies()[-1], ensure_ascii=False)
    assert "NODE_BRIEF\\nStep: late (transform)" in sent
    assert "USER_INPUT\\n- person.go: true" in sent
    typed(project, "/mode run\n/run prices.yaml prices='1 2'\nWhere?\n", "chat", "prices.yaml")
    assert "The run has passed. It stands at no step." in json.dumps(chats.bodies()[-1])


def test_bug_10_a_resumed_build_says_that_its_browser_is_gone(chats: Chats) -> None:
    """Before anything was opened there is none yet; after a resume nothing says "yet"."""
    project = chats.answers(text("One."), text("Two."))
    for more in (("--mode", "agent", "--strategy", "injected"), ("--resume", "last")):
        done = typed(project, "Go.\n", "chat", *more)
        assert done.returncode == 0, done.stderr
    first, second = (json.dumps(each) for each in chats.bodies())
    assert "No browser is open yet." in first
    assert "No browser is open now." in second
    assert "open yet" not in second


def test_004_5_the_question_of_the_session_is_answered_in_it(chats: Chats) -> None:
    """The call that asked has the answer as its output, and the model continues."""
    project = chats.answers(
        call("ask_user", {"question": "Which shop?", "choices": ["Hats", "Tea"]}), text("Tea it is.")
    )
    paused = typed(project, "Go.\n", "chat", "--mode", "agent")
    assert paused.returncode == 4, paused.stderr
    done = typed(project, "/answer tea\n", "chat", "--resume", "last")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Tea it is.\n"


def test_004_5_decide_says_what_is_to_be_decided(chats: Chats) -> None:
    """A run without an uncertain action has nothing to decide, and a verdict is one of three."""
    project = chats.answers()
    project.write("ask.yaml", ASKS)
    typed(project, "/run\n", "chat", "ask.yaml")
    for said, code in (("/decide perhaps", "usage"), ("/decide done", "nothing-to-decide")):
        done = typed(project, f"{said}\n", "chat", "--resume", "last")
        assert done.returncode == 2
        assert code in done.stderr


def test_004_5_an_action_of_unknown_outcome_is_decided_in_the_session(chats: Chats, tmp_path: Path) -> None:
    """Killed in a payment, the resumed session names the run; `/resume` asks, `/decide done` continues, and nothing is paid twice."""
    project = chats.answers(text("You decided that it is paid."))
    project.environment |= {"SHOP_PASSWORD": "correct-horse", "RUNOPS_LINGER": "0"}
    project.write("pay.yaml", PAY)
    folder = tmp_path / "shop"
    folder.mkdir()
    with Shop.start(folder, orders=1, paid=0) as shop:
        shop.switch("hold", path="/orders/1001/pay", method="POST", moment="after")
        with project.start("chat", "pay.yaml", "-m", f"/run base_url={shop.url}") as process:
            shop.wait("held", path="/orders/1001/pay")
            process.kill()
        shop.clear()
        asked = typed(project, "/resume\n", "chat", "--resume", "last")
        assert asked.returncode == 4, asked.stderr
        assert "here  /decide VERDICT   (VERDICT: done, not-done or skip)" in asked.stderr
        done = typed(project, "/decide done\nWhat came of it?\n", "chat", "--resume", "last")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "You decided that it is paid.\n"
        assert [each["state"] for each in project.runs()] == ["passed"]
        assert len(shop.ledger("payment")) == 1
    *_before, last = [each for each in chats.bodies()[-1]["input"] if each.get("name") == "run_workflow"]
    assert json.loads(last["arguments"])["begun_by"] == "/decide done"


def test_001_6_a_person_changes_the_plan(chats: Chats) -> None:
    """A change is a version that the model is shown; the only task with a part is meant; ``exit`` ends unpaid (003-17)."""
    project = chats.answers(call("update_plan", {"plan": PLAN, "reason": "begun"}), text("Planned."), text("Seen."))
    said = (
        "Plan it.\n/plan done look\n/plan add Check the sum\n/plan drop add up\n/plan drop nothing\nSee?\nexit\nnever\n"
    )
    done = typed(project, said, "chat", "prices.yaml", "--mode", "agent")
    assert done.returncode == 0, done.stderr
    assert "task-unknown" in done.stderr
    body = chats.bodies()[-1]
    shown = "\n".join(words_of(body))
    assert "/plan done look: the person changed the plan (version 2): look is completed" in shown
    assert "task_3 is new: Check the sum" in shown
    assert "sum is dropped" in shown
    assert "never" not in shown


def test_004_5_the_model_proposes_and_a_yes_does_it(chats: Chats) -> None:
    """A proposal does nothing by itself; a plain yes right after it does, and is no message; another word is one."""
    propose = call("propose_command", {"command": "/answer yes", "reason": "it was said"})
    project = chats.answers(propose, text("Shall I?"), text("It went on."), propose, text("Shall I?"), text("Well."))
    project.write("ask.yaml", ASKS)
    done = typed(project, "/run\nGo on?\n", "chat", "ask.yaml")
    assert "here  /answer go=…" in done.stderr
    assert "here  /answer yes   (proposed: `yes` does it)" in done.stderr
    assert project.runs()[0]["state"] == "paused"
    again = typed(project, "yes\nSo?\n", "chat", "--resume", "last")
    assert again.returncode == 0, again.stderr
    assert "model  Shall I?" in again.stderr
    assert re.search(r"of Ask: paused at person \(.*\)\nhere  /answer go=…\n", again.stderr)
    assert again.stdout == "It went on.\n"
    assert project.runs()[0]["state"] == "passed"
    assert "user: yes" not in words_of(chats.bodies()[-1])
    more = typed(project, "/run\nGo on?\nno\n", "chat", "--resume", "last")
    assert more.returncode == 0, more.stderr
    assert sorted(each["state"] for each in project.runs()) == ["passed", "paused"]
    assert "user: no" in words_of(chats.bodies()[-1])


def test_a_yes_agrees_only_to_a_proposal_that_was_shown(chats: Chats) -> None:
    """With --quiet no proposal is shown, so a yes to the model's question is a message. A resumed talk shows it again."""
    propose = call("propose_command", {"command": "/answer yes", "reason": "it was said"})
    project = chats.answers(propose, text("Do you like tea?"), text("Good."), propose, text("Shall I?"))
    project.write("ask.yaml", ASKS)
    typed(project, "/run\nGo on?\nyes\n", "chat", "ask.yaml", "--quiet")
    assert project.runs()[0]["state"] == "paused"
    assert "user: yes" in words_of(chats.bodies()[-1])
    typed(project, "Go on?\n", "chat", "--resume", "last")
    done = typed(project, "yes\n", "chat", "--resume", "last")
    assert "here  /answer yes   (proposed: `yes` does it)" in done.stderr
    assert project.runs()[0]["state"] == "passed"


def test_a_yes_answers_no_later_question_of_a_run_that_moved_on(chats: Chats) -> None:
    """The proposal was for the first question; answered elsewhere, the run waits at another one, which stays unanswered."""
    propose = call("propose_command", {"command": "/answer yes", "reason": "it was said"})
    project = chats.answers(propose, text("Shall I?"), text("It moved on."))
    further = (
        "  - id: second\n    type: context\n    ask:\n      sure: {question: Delete it all?, type: boolean}\noutput: "
    )
    project.write("ask.yaml", ASKS.replace("output: ", further))
    typed(project, "/run\nGo on?\n", "chat", "ask.yaml")
    run = project.runs()[0]["id"]
    project.runops("answer", run, "go=yes")
    project.runops("resume", run)
    done = typed(project, "yes\n", "chat", "--resume", "last")
    assert done.stdout == "It moved on.\n"
    assert "proposed: `yes`" not in done.stderr
    assert project.runs()[0]["state"] == "paused"


def test_only_words_about_the_run_are_proposed(chats: Chats) -> None:
    """Another command is refused, with those that can be proposed."""
    project = chats.answers(call("propose_command", {"command": "/run", "reason": "r"}), text("No."), text("Yes?"))
    typed(project, "Go.\nyes\n", "chat", "prices.yaml")
    assert "`/run` cannot be proposed (tool-arguments)" in json.dumps(chats.bodies()[1])
    assert project.runs() == []


def test_004_14_each_mode_says_that_messages_may_be_of_another_one(chats: Chats) -> None:
    """The instructions of each mode name it, and say so."""
    project = chats.answers(text("A."), text("B."), text("C."))
    typed(project, "One.\n/mode agent\nTwo.\n/mode run\nThree.\n", "chat", "prices.yaml")
    for mode, body in zip(("chat", "agent", "run"), chats.bodies(), strict=True):
        assert body["instructions"].startswith(f"Mode: {mode}. ")
        assert "Earlier messages may come from another mode." in body["instructions"]
