"""`context` with `ask`: the run pauses with its questions, and resumes with the answers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import UsageError
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.log.store import file_store
from runtime.runs import answers
from runtime.settings import settings
from runtime.workspace import host, run_index
from tests.fakes import FakePage
from tests.now import now
from tests.rig import Killed, Rig

ASK = """
- {id: name, type: transform, expr: Ada}
- id: who
  type: context
  set: {fixed: "{{ name }}"}
  ask:
    approver: "Who approves, {{ name }}?"
    count: {question: How many?, type: integer, choices: [1, 2, 3], default: 2}
- {id: go, type: browser_action, action: click, target: {css: go}, effect: idempotent}
"""
OUTPUT = "{vars: '{{ vars }}', who: '{{ who }}'}"


def flow(nodes: str = ASK, more: str = "") -> str:
    """A workflow file with these nodes."""
    return f"version: 1\nname: test\n{more}\noutput: {OUTPUT}\nnodes:\n" + nodes.replace("\n", "\n  ").rstrip() + "\n"


def answer(rig: Rig, **given: str) -> None:
    """Answers as the command does."""
    chosen = settings.Settings(home=rig.home)
    known, missing = answers.read_all(answers.asked(rig.history, rig.id), given)
    assert not missing
    now(answers.write(host.of_command(chosen), rig.id, known))


async def test_a_question_pauses_the_run(tmp_path: Path) -> None:
    """The run pauses with exit 4, its questions as data and references resolved, and no open call."""
    rig = Rig(tmp_path, flow())
    ended = await rig.start()
    assert ended.question is not None
    assert (ended.status, ended.exit, ended.path, ended.question["reason"]) == ("paused", 4, "who", "question")
    assert ended.question["evidence"]["questions"] == {
        "approver": {"question": "Who approves, Ada?", "type": "string"},
        "count": {"question": "How many?", "type": "integer", "choices": [1, 2, 3], "default": 2},
    }
    assert rig.calls("who") == []
    assert rig.history.open_calls() == []


@pytest.mark.parametrize("given", [{}, {"count": "3"}])
async def test_answers_become_variables(tmp_path: Path, given: dict[str, str]) -> None:
    """Answers and `set` are the node's value and variables; a default fills in, and a crash does not repeat the question."""
    rig = Rig(tmp_path, flow())
    await rig.start()
    rig.die()
    answer(rig, approver="Grace", **given)

    async def kill(_target: str, _page: FakePage) -> None:
        raise Killed

    rig.site.before_click = kill
    with pytest.raises(Killed):
        await rig.resume()
    rig.die()
    rig.site.before_click = None
    ended = await rig.resume()
    expected = {"fixed": "Ada", "approver": "Grace", "count": int(given.get("count", 2))}
    assert (ended.status, ended.output) == ("passed", {"vars": expected, "who": expected})


async def test_an_answer_must_be_valid(tmp_path: Path) -> None:
    """A wrong type, an unknown choice or an unknown question is refused by name, and the log stays unchanged."""
    rig = Rig(tmp_path, flow())
    await rig.start()
    rig.die()
    before = rig.store.conversation_file(rig.id).read_bytes()
    questions = answers.asked(rig.history, rig.id)
    for given, code in (({"count": "4"}, "bad-answer"), ({"cuont": "1"}, "unknown-answer")):
        with pytest.raises(UsageError) as raised:
            answers.read_all(questions, given)
        assert raised.value.code == code
        assert raised.value.fix
    assert answers.read_all(questions, {})[1] == ["approver"]
    for kind, text in (("integer", "1.5"), ("number", "x"), ("boolean", "1")):
        with pytest.raises(UsageError, match="`n` must be"):
            answers.read("n", {"question": "?", "type": kind}, text)
    assert answers.read("n", {"question": "?", "type": "boolean"}, "true") is True
    assert answers.read("n", {"question": "?", "type": "string"}, "12") == "12"
    assert rig.store.conversation_file(rig.id).read_bytes() == before


@pytest.mark.parametrize(
    ("reason", "evidence"),
    [
        ("outcome-unknown", {"call": "1"}),
        ("outcome-unknown", {"call": "1", "resume_asks": True}),
        ("question", {"questions": {"note": {"question": "Which?", "type": "string"}}}),
    ],
)
def test_a_printed_command_answers_nothing_by_itself(tmp_path: Path, reason: str, evidence: dict[str, Any]) -> None:
    """Pasted into a shell as it is printed, it is no verdict and no answer: the shell or `runops` refuses it."""
    typed = tmp_path / "typed"
    (tmp_path / "runops").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {typed}\n')
    (tmp_path / "runops").chmod(0o755)
    line = answers.how("RUN", reason, evidence)
    subprocess.run(["bash", "-c", line], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False, capture_output=True)
    words = typed.read_text().splitlines() if typed.exists() else []
    if words[:1] == ["decide"]:
        assert not {"done", "not-done", "skip"} & set(words)
    elif words:
        name, _sign, text = words[2].partition("=")
        with pytest.raises(UsageError, match="holds no answer yet"):
            answers.read(name, evidence["questions"][name], text)


async def test_no_answer_contains_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that contains a secret is refused, and not written."""
    monkeypatch.setenv("TOKEN", "correct-horse")
    rig = Rig(tmp_path, flow(more="secrets: [TOKEN]"), secrets={"TOKEN": "correct-horse"})
    await rig.start()
    rig.die()
    with pytest.raises(UsageError) as raised:
        answer(rig, approver="it is correct-horse")
    assert raised.value.code == "secret-in-answer"
    assert "correct-horse" not in rig.store.conversation_file(rig.id).read_text()


@pytest.mark.parametrize("offer", ["choices: ['{{ seen }}', other]", "default: '{{ seen }}'"])
async def test_no_question_offers_a_secret(tmp_path: Path, offer: str) -> None:
    """A choice or default with a secret fails the run, since its mask is no answer; a secret in the question is only masked."""
    seen = "\n- {id: seen, type: browser_query, query: text, target: {css: p}}\n"
    asks = f"- {{id: who, type: context, ask: {{it: {{question: 'What is {{{{ seen }}}}?', {offer}}}}}}}\n"
    for nodes, status in ((seen + asks, "failed"), (seen + asks.replace(offer, "type: string"), "paused")):
        rig = Rig(tmp_path / status, flow(nodes, "secrets: [TOKEN]"), secrets={"TOKEN": "correct-horse"})
        rig.site.texts = {"css=p": "correct-horse"}
        ended = await rig.start()
        assert ended.status == status
        assert "correct-horse" not in rig.store.conversation_file(rig.id).read_text()
        if status == "failed":
            assert ended.error is not None
            assert ended.error["code"] == "secret-in-question"


async def test_a_question_is_answered_and_a_decision_decided(tmp_path: Path) -> None:
    """`decide` does not answer a question, and a question takes only one answer."""
    rig = Rig(tmp_path, flow())
    await rig.start()
    rig.die()
    with pytest.raises(UsageError, match="waits for an answer"):
        now(run_index.decide(file_store.FileStore(tmp_path), rig.id, "done"))
    answer(rig, approver="Grace")
    with pytest.raises(UsageError, match="answered already"):
        answers.asked(rig.history, rig.id)


async def test_each_iteration_asks_its_own_question(tmp_path: Path) -> None:
    """In a loop each item has its own answer."""
    nodes = """
- {id: name, type: transform, expr: Ada}
- id: who
  type: iterate
  over: [a, b]
  as: o
  nodes:
    - {id: each, type: context, ask: {yes: {question: "{{ o }}?", type: boolean}}}
    - {id: said, type: transform, expr: "{{ vars.yes }}"}
"""
    rig = Rig(tmp_path, flow(nodes))
    for text in ("true", "false"):
        await (rig.start() if text == "true" else rig.resume())
        rig.die()
        answer(rig, yes=text)
    assert (await rig.resume()).output == {"vars": {"yes": False}, "who": [True, False]}


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ("{id: a, type: context}", "invalid"),
        ("{id: a, type: context, set: {x: 1}, ask: {x: Which?}}", "invalid"),
        ("{id: a, type: context, ask: {x: {question: Which?, type: list}}}", "unknown-choice"),
        ("{id: a, type: context, ask: {x: '{{ y }}'}}", "unknown-reference"),
    ],
)
def test_invalid_questions_are_refused(node: str, code: str) -> None:
    """A node needs `set` or `ask`, a name is in only one, answers have four types, and references must be known."""
    with pytest.raises(WorkflowInvalid) as raised:
        reader.parse(f"version: 1\nnodes: [{node}]\n", "flow.yaml")
    assert [each.code for each in raised.value.diagnostics] == [code]
