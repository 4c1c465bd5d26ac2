"""Runs stand in a conversation where they happened: each is one call with its output, told apart, and readable for ever."""

from __future__ import annotations

import json
import re

import pytest

from runtime.context import background
from runtime.testing.scripted_model import Answer, AskedFor, Failure, call, text, text_of
from tests.chats import Chats, session_of, typed, words_of
from tests.command import Project
from tests.site import serve

pytestmark = pytest.mark.drawn(share=0.25, of="conversations runs")

TWO = """\
version: 1
name: Two runs
inputs:
  n: {type: number, default: 0}
nodes:
  - {id: a, type: transform, expr: "{{ inputs.n * 11 }}"}
output: "{{ a }}"
"""

AGENT = """\
version: 1
name: Pay
inputs: {site: {type: string}}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/"}
  - {id: work, type: agent, goal: Pay the order., success: [{text: is paid}], output: {number: string}}
output: "{{ work }}"
"""

TALK = "/run -i n=1\nwhat came of it?\n/run -i n=2\nand now?\n"


def two_runs(chats: Chats, *flags: str, said: str = TALK, **settings: str) -> tuple[Project, str]:
    """A project in which the workflow ran twice in one session, and that session."""
    project = chats.answers(text("Eleven."), text("Twenty-two."), **settings)
    project.write("tworuns.yaml", TWO)
    done = typed(project, said, "chat", "tworuns.yaml", *flags)
    assert done.returncode == 0, done.stderr
    return project, session_of(done)


def test_a_run_is_kept_as_it_was_typed(chats: Chats) -> None:
    """What the model is told of `/run FILE NAME=VALUE` has no `-i` that was not typed."""
    two_runs(chats, said="/run tworuns.yaml n=1\nwhat came of it?\n")
    (begun,) = [each for each in chats.bodies()[0]["input"] if each.get("type") == "function_call"]
    assert json.loads(begun["arguments"])["begun_by"] == "/run tworuns.yaml n=1"


def test_bug_1_two_runs_stand_where_they_happened(chats: Chats) -> None:
    """004-23: each run is one call with its own output at its moment, tagged with its run; a new run changes nothing in front of it."""
    project, _session = two_runs(chats)
    first, second = [[each for each in body["input"] if each.get("role") != "developer"] for body in chats.bodies()]
    runs = [each["id"] for each in project.runs()]
    assert second[: len(first)] == first
    kinds = [each.get("type", "message") for each in second]
    a_run, a_word = ["function_call", "function_call_output"], "message"
    assert kinds == [*a_run, a_word, a_word, *a_run, a_word]
    for asked, output, run, n in ((second[0], second[1], runs[0], 1), (second[4], second[5], runs[1], 2)):
        assert asked["name"] == "run_workflow"
        assert json.loads(asked["arguments"]) == {"run": run, "begun_by": f"/run -i n={n}"}
        assert output["call_id"] == asked["call_id"]
        told = text_of(output)
        assert told.startswith(f"run {run} of Two runs: passed\n")
        assert f"inputs.n = {n}\na  transform  ok = {n * 11}\noutput = {n * 11}\n" in told
        assert f"@state/run/{run}" in told
    assert text_of(second[2]) == "what came of it?"
    assert text_of(second[3]) == "Eleven."
    assert text_of(second[6]) == "and now?"


def test_bug_1_a_run_does_not_break_a_chain(chats: Chats) -> None:
    """With chaining the request after a run continues the response before it, and sends only the run and the question."""
    two_runs(chats, "--strategy", "clean", RUNOPS_MODEL_STORE="true")
    first, second = chats.bodies()
    assert "previous_response_id" not in first
    assert second["previous_response_id"]
    assert [each.split()[0] for each in words_of(second)] == ["call", "output:", "user:"]


def test_a_single_run_stands_after_what_was_said_before_it(chats: Chats) -> None:
    """Bug 1: a run after a talk does not stand in front of it."""
    project = chats.answers(text("Nothing yet."), text("Eleven."))
    project.write("tworuns.yaml", TWO)
    typed(project, "what is it?\n/run -i n=1\nand now?\n", "chat", "tworuns.yaml")
    said = [each for each in words_of(chats.bodies()[-1]) if not each.startswith("developer: ")]
    assert [each.split()[0] for each in said] == ["user:", "assistant:", "call", "output:", "user:"]


def test_bug_10_no_absolute_path_is_told(chats: Chats) -> None:
    """Bug 10: a model is told a workflow as the person named it, never by its absolute path."""
    project = chats.answers(text("Eleven."))
    file = project.write("tworuns.yaml", TWO)
    typed(project, f"/run {file} -i n=1\nand now?\n", "chat", "tworuns.yaml")
    body = json.dumps(chats.bodies()[-1])
    assert str(chats.folder) not in body
    assert "/run tworuns.yaml -i n=1" in body


def test_004_23_show_has_each_run_where_it_happened(chats: Chats) -> None:
    """`runops show` and `/save` show each run with its values between the words around it."""
    project, session = two_runs(chats, said=f"{TALK}/save talk.md\n")
    shown = project.here("show", session).stdout
    saved = (project.folder / "talk.md").read_text()
    for told in (shown, saved):
        order = ["/run -i n=1", "ok = 11", "what came of it?", "Eleven.", "/run -i n=2", "ok = 22", "and now?"]
        places = [told.index(each) for each in order]
        assert places == sorted(places)
        assert "[page]" not in told


def test_a_chat_about_a_run_begins_with_it(chats: Chats) -> None:
    """004-1: a chat about a run named on the command line has that run as a call at its beginning, once, also after a resume."""
    project = chats.answers(text("It failed."), text("At n/a."))
    project.runops("run", "prices.yaml", "--quiet")
    done = project.runops("chat", "last", "-m", "what?")
    project.runops("chat", "--resume", session_of(done), "-m", "where?")
    first, second = [[each for each in words_of(body) if not each.startswith("developer: ")] for body in chats.bodies()]
    assert [each.partition(":")[0] for each in second] == ["call run_workflow", "output", "user", "assistant", "user"]
    assert second[: len(first)] == first
    assert "failed at total (expression-failed)" in second[1]
    assert "total  transform  error: expression-failed" in second[1]


def reads(*paths: str) -> Answer:
    """The answer of a model that reads each of these paths."""
    return sum((call("read_state", {"path": each, "start": None, "end": None}) for each in paths), Answer())


def outputs(chats: Chats) -> list[str]:
    """The outputs of the tools in the newest request, without those of runs."""
    items = chats.bodies()[-1]["input"]
    told = {each["call_id"] for each in items if each.get("name") == "run_workflow"}
    return [
        text_of(each) for each in items if each.get("type") == "function_call_output" and each["call_id"] not in told
    ]


def test_004_23_runs_are_told_apart_and_stay_readable(chats: Chats) -> None:
    """Each run of the session can be read by its id: its values, report, steps, the file it ran, and what differs from the run before."""

    def script(asked: AskedFor) -> Answer:
        if "and now?" not in asked.newest:
            return text("Yes.")
        first, second = (
            json.loads(each["arguments"])["run"] for each in asked.items if each.get("name") == "run_workflow"
        )
        values = [call("get_workflow_variables", {"key": None, "run": each}) for each in (first, second)]
        one = call("get_workflow_variables", {"key": "a", "run": first})
        paths = [
            "@state/run",
            f"@state/run/{first}",
            f"@state/run/{first}/a",
            f"@state/run/{first}/workflow",
            f"@state/run/{second}/changes",
        ]
        return sum([*values, one], Answer()) + reads(*paths)

    project = chats.answers(script)
    project.write("tworuns.yaml", TWO)
    said = "/run -i n=1\nwhat came of it?\n"
    session = session_of(typed(project, said, "chat", "tworuns.yaml"))
    project.write("tworuns.yaml", TWO.replace("* 11", "* 12"))
    typed(project, "/run -i n=2\nand now?\n", "chat", "--resume", session)
    first, second, one, runs, report, step, file, changes = outputs(chats)
    assert "inputs.n = 1\na = 11" in first
    assert "inputs.n = 2\na = 24" in second
    assert "\n11\n" in one
    assert re.search(
        r"of Two runs: passed  started \S+  last entry \S+  took \S+ s  inputs {\"n\": 1}  begun by /run -i n=1\n"
        r".*inputs {\"n\": 2}",
        runs,
    )
    assert re.search(r"\d\d:\d\d:\d\d  a  transform  ok = 11\noutput = 11\n", report)
    assert "a  ok\n  attempt 1  ok" in step
    assert "value\n    11" in step
    assert "* 11" in file
    assert '-  - {id: a, type: transform, expr: "{{ inputs.n * 11 }}"}' in changes
    assert '+  - {id: a, type: transform, expr: "{{ inputs.n * 12 }}"}' in changes
    assert "inputs.n: 1 → 2\na: 11 → 24" in changes


def test_a_pruned_or_damaged_run_says_so(chats: Chats) -> None:
    """Of a run without a readable log the conversation still tells what came of it, the list says so, and its paths name the reason."""

    def script(asked: AskedFor) -> Answer:
        if "and now?" not in asked.newest:
            return text("Yes.")
        first, second = (
            json.loads(each["arguments"])["run"] for each in asked.items if each.get("name") == "run_workflow"
        )
        return reads("@state/run", f"@state/run/{first}", f"@state/run/{second}/a", "@state/run/01NONE")

    project = chats.answers(script)
    project.write("tworuns.yaml", TWO)
    session = session_of(typed(project, "/run -i n=1\n/run -i n=2\nso?\n", "chat", "tworuns.yaml"))
    first, second = (project.folder / ".runops" / "conversations" / f"{each['id']}.jsonl" for each in project.runs())
    first.unlink()
    second.write_bytes(second.read_bytes().replace(b'"event":"committed"', b'"event":"commutted"'))
    typed(project, "and now?\n", "chat", "--resume", session)
    runs, gone, damaged, none = outputs(chats)
    assert f"run {first.stem}: the log of run {first.stem} is not there any more" in runs
    assert f"run {second.stem}: the log of run {second.stem} cannot be read: log-damaged" in runs
    assert "is not there any more (run-unreadable)" in gone
    assert "cannot be read: log-damaged (run-unreadable)" in damaged
    assert "this session has no run 01NONE (run-unknown)" in none
    told = [each for each in words_of(chats.bodies()[-1]) if each.startswith("output: run ")]
    assert ["output = 11" in told[0], "output = 22" in told[1]] == [True, True]


A = text({"value": "a"})

SORT = """\
version: 1
name: Sort
nodes:
  - {id: one, type: cognition, instruction: Sort it., input: tea, output: [a, b]}
  - {id: two, type: cognition, instruction: Sort it., input: rice, output: [a, b], conversation: none}
output: "{{ one }}{{ two }}"
"""
"""A workflow that asks a model twice, once without the conversation."""


def test_004_4_a_model_node_has_the_conversation_behind_it(chats: Chats) -> None:
    """A model node of a run from a session has what was said there, marked as background; with `conversation: none` it has not."""
    project = chats.answers(text("I remember MARZIPAN."), A, A, text("Both a."))
    project.write("sort.yaml", SORT)
    done = typed(project, "remember MARZIPAN\n/run\nand now?\n", "chat", "sort.yaml")
    assert done.returncode == 0, done.stderr
    _first, one, two, last = (words_of(body) for body in chats.bodies())
    assert [each.split("\n")[0] for each in one[1:3]] == ["user: remember MARZIPAN", "assistant: I remember MARZIPAN."]
    assert (one[0].startswith(f"user: {background.BEGIN}"), one[3], one[-1]) == (
        True,
        f"user: {background.END}",
        "user: tea",
    )
    assert two == ["user: rice"]
    # What the run was given is not part of the session's own thread.
    assert not any(background.BEGIN in each for each in last)


def test_a_resumed_run_has_the_same_conversation(chats: Chats) -> None:
    """The conversation of a run is that of its beginning, also after a resume, wherever it is resumed; a run of no session has none."""
    project = chats.answers(
        text("I remember MARZIPAN."),
        Failure(400, "not now", kind="invalid_request_error"),
        text("It failed."),
        A,
        A,
        A,
        A,
    )
    project.write("sort.yaml", SORT)
    done = typed(project, "remember MARZIPAN\n/run\nwhat now?\n", "chat", "sort.yaml")
    assert done.returncode == 0, done.stderr
    resumed = project.runops("resume", "last", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    project.runops("run", "sort.yaml", "--quiet")
    asked = [words_of(body) for body in chats.bodies() if "Sort it." in body["instructions"]]
    failed, again, second, *alone = asked
    assert failed == again
    assert any("MARZIPAN" in each for each in again)
    assert [second, *alone] == [["user: rice"], ["user: tea"], ["user: rice"]]


def test_004_25_what_the_model_of_a_run_saw_and_did_is_read_by_the_path_of_its_step(chats: Chats) -> None:
    """An agent's step has its goal, the page that it was shown, its calls with arguments and outcomes, and its value."""

    def script(asked: AskedFor) -> Answer:
        if not any(each["name"] == "read_state" for each in asked.body["tools"]):
            if not asked.outputs:
                return call("find", {"role": "button", "name": "Pay", "row": None, "text": None})
            if len(asked.outputs) == 1:
                (found,) = asked.outputs.values()
                return call("click", {"ref": found.partition("[ref=")[2].partition("]")[0]})
            return call("finish", {"done": True, "note": "", "output": {"number": "1007"}})
        if asked.outputs.keys() <= {"run_1"}:
            (run,) = [
                json.loads(each["arguments"])["run"] for each in asked.items if each.get("name") == "run_workflow"
            ]
            return reads(f"@state/run/{run}/work")
        return text("It paid.")

    project = chats.answers(script)
    with serve() as site:
        site.page(
            "/", "<!doctype html><title>Shop</title><h1>Order 1007</h1><form action=/paid><button>Pay</button></form>"
        )
        site.page("/paid", "<!doctype html><title>Paid</title><p>Order 1007 is paid</p>")
        project.write("pay.yaml", AGENT)
        done = typed(project, f"/run site={site.origin}\nWhat did it do?\n", "chat", "pay.yaml")
    assert done.returncode == 0, done.stderr
    (told,) = outputs(chats)
    for part in ("Pay the order.", "did  click  role=button  name=Pay  ok", "Order 1007 is paid", "number: '1007'"):
        assert part in told, told
