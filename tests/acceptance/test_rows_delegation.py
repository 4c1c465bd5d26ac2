"""Row 5 of the five context strategies: delegation to subagents that start with the conversation or with their task alone."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing import scripted_model
from runtime.testing.scripted_model import Answer, AskedFor, Script, call, text
from tests.chats import Chats, session_of, typed, words_of
from tests.rows import agrees, last

PARALLEL = ("Say 1", "Say 2", "Fail")


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    """Chat sessions in a project."""
    made = Chats(tmp_path)
    yield made
    made.close()


def sent(task: str, context: str | None = "clean") -> Answer:
    """A call of `delegate` with the task."""
    return call("delegate", {"goal": task, "deliverable": "A line.", "end": "Once you know it.", "context": context})


def delegating() -> Script:
    """Answers of the model and its delegates. Delegates called in one turn are answered only after all of them have asked."""
    met, gate = set[str](), threading.Event()

    def answer(asked: AskedFor) -> Answer:
        newest = asked.newest.partition("\n\nDeliverable")[0]
        if (task := next((each for each in PARALLEL if newest.endswith(each)), None)) is not None:
            said = (
                scripted_model.refusal("I will not.") if task == "Fail" else text("One." if task == "Say 1" else "Two.")
            )
            if "Send three." not in str(begun):
                return said
            met.add(task)
            if len(met) == len(PARALLEL):
                gate.set()
            return said.held(gate)
        begun.append(newest)
        if "Send one that inherits" in newest:
            return sent("Say 1", "inherit")
        if "Send a clean one" in newest:
            return sent("Say 1")
        if "Send one" in newest:
            return sent("Say 1", None)
        if "Send three" in newest:
            first, second, third = (sent(each) for each in PARALLEL)
            return first + second + third
        return text("Done." if "the delegate" in newest else "I heard: the colour is blue.")

    begun: list[str] = []
    return answer


SETTINGS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "inherit": (("--delegate-inherit",), {}),
    "clean": (("--delegate-clean",), {}),
    "by_default": ((), {}),
    "by_setting": ((), {"RUNOPS_DELEGATE_CLEAN_CONTEXT": "true"}),
}
"""The default of a session at both values, by a flag and by the environment."""


@pytest.mark.drawn(share=0.15)
@pytest.mark.parametrize("name", SETTINGS)
def test_delegation(name: str, chats: Chats) -> None:
    """A delegate starts with its task or the conversation, by its call or the default. Delegates of one turn are concurrent; only answer, failure and cost return."""
    flags, more = SETTINGS[name]
    project = chats.answers(delegating(), **more)
    words = ("The colour is blue.", "Send one.", "Send a clean one.", "Send one that inherits.", "Send three.", "/cost")
    done = typed(project, "\n".join(words) + "\n", "chat", "--mode", "agent", *flags)
    assert done.returncode == 0, done.stderr
    agrees(chats, f"delegation-{name}", together=True)
    bodies = chats.bodies()
    described = next(each for each in bodies[0]["tools"] if each["name"] == "delegate")
    is_clean = name in ("clean", "by_setting")
    assert ("can be understood by itself" in described["description"]) == is_clean
    assert ("Self-contained" in str(described["parameters"])) == is_clean
    tasks = [words_of(body) for body in bodies if words_of(body)[-1].startswith("user: Say 1\n")]
    assert ["The colour is blue." in str(each) for each in tasks] == [not is_clean, False, True, False]
    assert [len(each) == 1 for each in tasks] == [is_clean, True, False, True]
    outputs = [each.removeprefix("output: ") for each in last(chats) if each.startswith("output: ")]
    cost = r"\(the delegate took 1 request, [\d,]+ tokens, \$[\d.]+\)"
    for number, answer in enumerate(("One.", "One.", "One.", "One.", "Two.")):
        assert re.fullmatch(rf"{answer}\n{cost}", outputs[number]), outputs[number]
    assert "model-refused" in outputs[5]
    assert re.search(cost, outputs[5])
    costs = dict(re.findall(r"^(\w+) +(\d+) requests?  ", done.stdout, re.MULTILINE))
    assert (costs["all"], costs["session"]) == ("15", "9")
    assert len(costs) == 2 + 6


def deep(asked: AskedFor) -> Answer:
    """Answers of a model whose delegate delegates, to one that would delegate again."""
    match asked.newest.partition("\n")[0]:
        case "Send one.":
            return sent("Send another one.")
        case "Send another one.":
            return sent("Send a third one.")
        case "Send a third one.":
            return sent("Say nothing.")
        case task:
            return text("I cannot send one." if "tool-unknown" in task else f"Heard: {task}")


def test_delegates_of_delegates_have_a_depth(chats: Chats) -> None:
    """A delegate of a delegate has no `delegate` tool, so its call is refused and it answers. All costs count towards the parents."""
    project = chats.answers(deep)
    done = typed(project, "Send one.\n/cost\n", "chat", "--mode", "agent")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Heard: Heard: I cannot send one.\n")
    agrees(chats, "delegation-depth")
    tools = [[each["name"] for each in body["tools"]] for body in chats.bodies()]
    assert ["delegate" in each for each in tools] == [True, True, False, False, True, True]
    assert not any(each == ["user: Say nothing."] for each in map(words_of, chats.bodies()))
    assert any("tool-unknown" in each for each in words_of(chats.bodies()[3]))
    # Two requests of its own, and two of its delegate.
    assert any("the delegate took 2 requests" in each for each in words_of(chats.bodies()[4]))
    assert any("the delegate took 4 requests" in each for each in words_of(chats.bodies()[5]))
    assert re.search(r"^all +6 requests", done.stdout, re.MULTILINE)


def looking(asked: AskedFor) -> Answer:
    """Answers of a model whose delegate observes three times before it answers."""
    if "Send one." in asked.newest:
        return sent("Look.")
    if asked.newest.startswith("Look.\n") or (len(asked.outputs) in (1, 2) and "the delegate" not in asked.newest):
        return call("get_workflow_summary", {})
    return text("Looked.")


@pytest.mark.parametrize("calls", [4, 40])
def test_a_delegate_spends_the_budget_of_its_parent(calls: int, chats: Chats) -> None:
    """A budget reached in a delegate stops all requests, and the session exits 5. With a larger budget it continues."""
    project = chats.answers(looking)
    words = ("Send one.", "/cost")
    done = typed(project, "\n".join(words) + "\n", "chat", "--mode", "agent", "--budget", f"calls={calls}")
    agrees(chats, f"delegation-budget_{calls}")
    if calls == 40:
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Looked.\nall ")
        assert len(chats.asked) == 6
        return
    assert (done.returncode, len(chats.asked), done.stdout) == (5, 4, "")
    again = re.search(r"runops (chat --resume \w+ --budget calls=\d+)", done.stderr)
    assert again is not None
    done = typed(project, "/cost\n", *again[1].split())
    assert done.returncode == 0, done.stderr
    assert "the delegate failed: the session has 0 left of its budget" in str(words_of(chats.bodies()[4]))
    assert re.search(r"^all +5 requests", done.stdout, re.MULTILINE)
    assert re.search(r"^1_delegate +3 requests", done.stdout, re.MULTILINE)


def test_a_delegate_that_is_interrupted_still_costs(chats: Chats) -> None:
    """After Ctrl-C during a delegate's second request its cost is listed under its name, and the parent learns that no answer came."""
    gate = threading.Event()

    def slow(asked: AskedFor) -> Answer:
        if "continue" in asked.newest:
            return text("It was interrupted.")
        said = looking(asked)
        return said.held(gate) if asked.outputs else said

    project = chats.answers(slow)
    with project.start("chat", "--mode", "agent", "-m", "Send one.") as process:
        assert chats.server is not None
        chats.server.wait(3)
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=60)
    gate.set()
    assert process.returncode == 130, err
    done = typed(project, "continue\n/cost\n", "chat", "--resume", re.findall(r"--resume (\w+)", err)[-1])
    assert done.returncode == 0, done.stderr
    assert session_of(done) in err
    shown = str(words_of(chats.bodies()[-1]))
    assert "delegate-interrupted" in shown
    assert re.search(r"the delegate was interrupted before it had an answer \(the delegate took \d request", shown)
    found = re.search(r"^1_delegate +(\d) requests?  ([\d,]+) tokens in", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    assert int(found[2].replace(",", "")) > 0
