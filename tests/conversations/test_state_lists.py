"""The model finds the past by itself: what the person said and decided, versions of the plan, pauses of runs, what a delegate did."""

from __future__ import annotations

import json
import re
import threading

import pytest

from runtime.testing.scripted_model import Answer, AskedFor, call, text, text_of
from tests.chats import Chats, log_of, session_of, typed, until
from tests.command import TIMEOUT
from tests.rows import PLAN

pytestmark = pytest.mark.drawn(share=0.4, of="state lists")

ASKS = """\
version: 1
name: Asks
nodes:
  - id: leave
    type: context
    ask:
      pay: {question: "Pay 259.38?", type: boolean}
output: "{{ leave.pay }}"
"""


def reads(*paths: str) -> Answer:
    """The answer of a model that reads each of these paths."""
    return sum((call("read_state", {"path": each, "start": None, "end": None}) for each in paths), Answer())


def outputs(chats: Chats, number: int) -> list[str]:
    """The newest outputs of tools."""
    items = chats.bodies()[-1]["input"]
    return [text_of(each) for each in items if each.get("type") == "function_call_output"][-number:]


def test_what_was_said_typed_and_answered_is_found_word_for_word(chats: Chats) -> None:
    """`@state` lists the paths, an unknown path names it; `@state/said` has each word with line, time and what came of it, in order."""

    def script(asked: AskedFor) -> Answer:
        if "and now?" not in asked.newest or len(asked.outputs) > 4:
            return text("Yes.")
        run = next(json.loads(each["arguments"])["run"] for each in asked.items if each.get("name") == "run_workflow")
        return reads(
            "@state",
            "@state/said",
            "@state/plan",
            "@state/plan/2",
            f"@state/run/{run}",
            f"@state/run/{run}/leave",
            "@state/goal",
            "@state/nothing",
        )

    project = chats.answers(script)
    note = '      note: {question: "What for?", default: rent}\n'
    project.write("asks.yaml", ASKS.replace("output:", f"{note}output:"))
    said = "Mind  the\tgap\n/plan add Pay it\n/plan done Pay it\n/goal Pay rent --save rent.yaml\n/window min_recent 3\n/mode run\n/run\n/answer pay=yes\n"
    session = session_of(typed(project, said, "chat", "asks.yaml"))
    done = typed(project, "and now?\n", "chat", "--resume", session)
    assert done.returncode == 0, done.stderr
    assert "note     the session was resumed, 20" in project.here("show", session).stdout
    paths, told, plan, second, run, step, goal, unknown = outputs(chats, 8)
    for each in ("@state/said", "@state/run", "@state/plan", "@state/delegate"):
        assert f"`{each}`" in paths
    assert "`@state` lists the paths" in unknown
    (began,) = [each["id"] for each in project.runs()]
    words = [
        "  the session began in mode chat; strategy, where no flag says another: hybrid",
        "Mind  the\tgap\n",
        "/plan add Pay it\n",
        "→ `@state/plan/1` by the person: /plan add Pay it",
        "/plan done Pay it\n",
        "→ `@state/plan/2` by the person: /plan done Pay it",
        "/goal Pay rent --save rent.yaml\n",
        "→ `@state/goal/1` by the person: /goal Pay rent --save rent.yaml",
        "/window min_recent 3\n",
        "/mode run\n",
        "/run",
        f"→ `@state/run/{began}`",
        "/answer pay=yes\n",
        "  the session was resumed; strategy, where no flag says another: hybrid",
        "and now?",
    ]
    places = [told.index(each) for each in words]
    assert places == sorted(places), told
    assert "`@state/plan/1`  20" in plan
    assert "by the person: /plan done Pay it" in plan
    assert "version 2, 20" in second
    assert "Pay it" in second
    assert "by the person: /goal Pay rent --save rent.yaml" in goal
    assert "type=boolean" in step
    assert re.search(r"note=\(question=What for\? +type=string +default=rent\)", step)
    for each in (run, step):
        assert "Pay 259.38?" in each
        assert 'a person answered: {"pay": true, "note": "rent"}' in each


def test_what_ended_work_and_what_asked_for_a_summary_is_found_as_typed(chats: Chats) -> None:
    """`@state/said` has `/stop`, and `/compress` with what it is to keep, as they were typed; `@state/summaries` what came of it.

    `@state/calls` has each call with arguments and outcome, and its output can be read at the line that it names.
    """
    gate = threading.Event()

    def script(asked: AskedFor) -> Answer:
        if asked.newest == "Count the stock.":
            return text("never").held(gate)
        given = [text_of(each) for each in asked.items if each.get("type") == "function_call_output"]
        if len(given) == 3:
            return reads("@state/calls")
        if len(given) == 4:
            return reads(*re.findall(r"gave `(@state/line/\d+)`", given[-1]), "@state/said", "@state/cost")
        if given or "and now?" not in asked.newest:
            return text("Yes.")
        kept = {"name": "depot", "value": '"north"', "reason": "it is asked for"}
        return reads("@state/said", "@state/summaries") + call("set_variable", kept)

    project = chats.answers(script)
    assert chats.server is not None
    with project.start("chat", "prices.yaml", "--json-lines", asks=True) as process:
        assert process.stdin is not None
        process.stdin.write('{"say": "Count the stock."}\n')
        process.stdin.flush()
        chats.server.wait(1)
        rest = ("/stop", "/compress the name of the depot", "and now?")
        process.stdin.write("".join(f'{{"say": "{each}"}}\n' for each in rest))
        process.stdin.flush()
        until(lambda: "work-stopped" in log_of(project).read_text())
        gate.set()
        _out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, err
    told, summed, _kept, calls, line, after, spent = outputs(chats, 7)
    words = ["Count the stock.\n", "/stop\n", "/compress the name of the depot\n", "and now?"]
    places = [told.index(each) for each in words]
    assert places == sorted(places), told
    assert re.search(
        r"\S+ \S+  /compress the name of the depot  of the lines up to \d+  `@state/line/\d+`: Yes\.", summed
    )
    assert calls.count("read_state of `@state/said`, `@state/summaries`\n") == 1
    assert re.search(
        r"""\S+ \S+  set_variable {.+}  ok  [\d.]+ s\n    gave `@state/line/\d+`: depot = "north\"""", calls
    )
    assert 'depot = "north"' in line
    assert re.search(r"""→ \S+ \S+  variable depot = "north\" by the model: it is asked for""", after)
    assert re.search(
        r"^all +\d+ requests  .+ tokens in .+\nsession +\d+ requests .+\nsummary +1 request ", spent, re.MULTILINE
    )
    for form in ((), ("--markdown",), ("--html",)):
        shown = project.here("show", log_of(project).stem, *form).stdout
        places = [shown.index(each.strip()) for each in words]
        assert places == sorted(places), shown


def test_what_was_left_out_and_who_proposed_a_command_is_found(chats: Chats) -> None:
    """After `/stop` the calls that were not begun have their names; an agreed proposal has what was typed, and the model's reason."""
    plan = call("update_plan", {"plan": PLAN, "reason": "it is new"})

    def script(asked: AskedFor) -> Answer:
        called = {each.get("name") for each in asked.items}
        if "read_state" in called:
            return text("So.")
        if "ask_user" in called:
            return reads("@state/said", "@state/answers")
        if "Count it." in asked.newest:
            return call("ask_user", {"question": "Which?", "choices": ["Tea", "Hats"]}) + plan
        if "propose_command" in called:
            return text("Shall I say yes?")
        return call("propose_command", {"command": "/answer yes", "reason": "you said that you want tea"})

    project = chats.answers(script)
    project.write("asks.yaml", ASKS)
    done = typed(project, "/run\nGo on?\nyes\n", "chat", "asks.yaml", "--mode", "agent")
    assert done.returncode == 0, done.stderr
    with project.terminal("chat", "--resume", "last") as screen:
        screen.wait_for(lambda: screen.text.endswith(">"))
        screen.press("Count it.\r")
        screen.wait_for(lambda: "Which?" in screen.text)
        screen.press("/stop\r")
        screen.wait_for(lambda: "--  stopped" in screen.text and screen.text.endswith(">"))
        screen.press("and now?\r")
        screen.wait_for(lambda: "So." in screen.text and screen.text.endswith(">"))
        screen.press("\x04")
        assert screen.wait() == 0
    told, answers = outputs(chats, 2)
    assert "  /answer yes\n    (typed: yes; proposed by the model: you said that you want tea)" in told
    last = r"stopped after the call ask_user {\"question\": \"Which\?\", .+}  \S.*"
    ended = re.search(rf"line \d+  \S+ \S+  /stop\n    → {last}\n    → left out: update_plan {{.+\n", told)
    assert ended is not None, told
    assert told.index("Count it.") < ended.start() < told.index("and now?")
    assert re.search(r"`@state/line/\d+`  \S+ \S+  Shall I say yes\?", answers)
