"""Delegates that act: in their own tab, under the session's permission for side effects, at most once (row 002-10)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from director.conversation import delegate, reply
from director.draft.goal import Policy
from director.scouting import pages
from director.session import state_paths
from nodes.values import Json
from runtime.context import window
from runtime.language.agent_files import Agent
from runtime.log import entries
from runtime.messages.messages import Answer, Request
from runtime.testing import scripted_model
from runtime.testing.scripted_model import AskedFor, call, text
from tests import build_contexts, builds_rig, site, talks
from tests.builds_rig import Builds
from tests.chats import Chats, session_of, words_of

pytestmark = pytest.mark.drawn(share=0.3, of="delegates act")

PAGE = (
    """<!doctype html><title>Bills</title><h1>Bills</h1><p>Open: 12.50</p>
<button onclick="said.textContent='Paid'; fetch('/paid', {method: 'POST'})">Pay</button><p id=said></p>"""
    f"<p>{'Terms apply. ' * 30}</p>"
)

PAYER = "description: Pays bills.\nacts: true\ncontext: clean\nprompt: Pay the bill.\n"
TASK: dict[str, Json] = {"agent": "payer", "goal": "Pay.", "deliverable": "What it says.", "end": "It is paid."}
LOOKER = Agent(description="Looks.", tools=["session", "pages"])


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves a page with a bill to pay."""
    with site.serve() as served:
        served.page("/bills", PAGE)
        served.answer("/paid", lambda _request: site.Answer("ok"))
        yield served


def paid(served: site.Site) -> int:
    """How often the bill was paid."""
    return sum(each.path == "/paid" for each in served.requests)


def ref_of(shown: str) -> str:
    """The ref of the button."""
    found = re.search(r'button "Pay" \[ref=(\w+)', shown)
    assert found is not None, shown
    return found[1]


LOADS: dict[str, Json] = {"tab": None, "url": "/bills", "reason": "Begin."}


def clicks(shown: str) -> dict[str, Json]:
    """The arguments of a click on the button."""
    return {"tab": None, "action": "click", "ref": ref_of(shown), "value": None, "reason": "Pay."}


def acting(gate: threading.Event) -> scripted_model.Script:
    """A model that sends the payer, and a delegate that loads the page, clicks, and answers once the gate is open."""

    def answer(asked: AskedFor) -> scripted_model.Answer:
        if "You are a delegate" not in asked.instructions:
            return call("delegate", TASK) if not asked.outputs else text("It was paid.")
        outputs = list(asked.outputs.values())
        if not outputs:
            return call("debug_navigate", LOADS)
        return call("debug_action", clicks(outputs[0])) if len(outputs) == 1 else text("Paid.").held(gate)

    return answer


def test_002_10_an_agent_acts_in_a_talk(served: site.Site, tmp_path: Path) -> None:
    """In a chat of mode agent a delegate acts on the site of the session; what it did is shown below its call."""
    chats, before, gate = Chats(tmp_path), paid(served), threading.Event()
    gate.set()
    try:
        project = chats.answers(acting(gate))
        (project.folder / "agents").mkdir()
        project.write("agents/payer.yaml", PAYER)
        where = ("--url", f"{served.origin}/bills", "--effects", "allow")
        done = project.runops("chat", "--mode", "agent", *where, "-m", "Pay the bill.")
        assert (done.returncode, done.stdout) == (0, "It was paid.\n"), done.stderr
        assert paid(served) == before + 1
        assert "--  the delegate payer took 3 requests, " in done.stderr
        shown = project.here("show", session_of(done)).stdout
        assert "is       payer  clean (agent payer)  test-model  acts with " in shown
        assert "  tool     1_delegate/2_debug_action" in shown
    finally:
        chats.close()


def test_002_10_an_agent_acts_once_although_the_session_is_killed(served: site.Site, tmp_path: Path) -> None:
    """Killed after the action of its delegate, the build resumes: the parent hears how many actions may have happened, and nothing is paid twice."""
    builds, before, gate = builds_rig.of(tmp_path), paid(served), threading.Event()
    try:
        project = builds.answers(acting(gate))
        (project.folder / "agents").mkdir()
        project.write("agents/payer.yaml", PAYER)
        goal = ("Pay the bill", "--url", f"{served.origin}/bills", "--effects", "allow")
        with project.start("build", *goal) as process:
            assert builds.server is not None
            builds.server.wait(4)
            process.kill()
            process.wait()
        assert paid(served) == before + 1
        assert "Pay the bill." in builds.bodies()[1]["instructions"]
        assert "own tab" in builds.bodies()[1]["instructions"]
        gate.set()
        (path,) = {f"@state/delegate/{each}" for each in re.findall(r'"thread":"delegate:(c\d+)"', _log(builds))}
        read = [
            call("read_state", {"path": each, "start": None, "end": None})
            for each in ("@state/delegate", path, "@state/run", "@state/calls")
        ]
        done, _ending = builds.resumes([sum(read[1:], read[0]), text("It was paid."), text("So it is.")])
        assert done.returncode == 1, "the build stops: its model finishes nothing"
        (output,) = [each for each in words_of(builds.bodies()[0]) if each.startswith("output: ")]
        assert f"`{path}` tells what it did" in output
        given = [each for each in words_of(builds.bodies()[1]) if each.startswith("output: ")]
        listed, told, runs, calls = given[-4:]
        assert f"    sent: `{path}`" in calls
        assert f"`{path}`  1_delegate payer" in listed
        for each in (
            "goal: Pay.",
            "debug_navigate",
            "/bills",
            "debug_action",
            "  ok",
            "interrupted",
            "cost: 3 requests",
        ):
            assert each in told
        assert re.search(r"did: `@state/run/\w{26}`", told)
        assert "single actions: `@state/calls`, of delegates and scouts `@state/delegate`" in runs
        assert "an action of the scout" not in runs
        assert (
            "the delegate payer was interrupted before it had an answer (the delegate payer took 3 requests" in output
        )
        assert "it did 1 action on the site, or may have: look there first" in output
        assert paid(served) == before + 1
        (ran,) = builds.project.show(_session(builds))["delegates"]
        assert (ran["agent"], ran["acts"], ran["status"]) == ("payer", True, "interrupted")
        assert {"debug_navigate", "debug_action", "inspect_tab", "find", "read_state"} <= set(ran["tools"])
    finally:
        gate.set()
        builds.close()


def _log(builds: Builds) -> str:
    return (builds.folder / ".runops" / "conversations" / f"{_session(builds)}.jsonl").read_text()


def _session(builds: Builds) -> str:
    logs = (builds.folder / ".runops" / "conversations").glob("*.jsonl")
    return next(each.stem for each in logs if '"session":{' in each.read_text().split("\n")[0])


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("policy", "said"), [("allow", "Paid"), ("hold", "held"), ("ask", "delegate-unasked")])
async def test_002_10_an_agent_acts_under_the_sessions_permission(
    policy: Policy, said: str, served: site.Site, tmp_path: Path
) -> None:
    """An action is done, held, or refused without a person, as for the session; its call is logged in the delegate's thread, its tab closed."""
    build = build_contexts.opened(tmp_path, f"{served.origin}/bills", policy=policy)

    def answer(request: Request) -> Answer:
        outputs = talks.outputs(request)
        if not any("Pay." in each for each in talks.messages(request)):
            return talks.said(outputs[-1]) if outputs else talks.asks(("delegate", TASK))
        if not outputs:
            return talks.asks(("debug_navigate", LOADS))
        return talks.asks(("debug_action", clicks(outputs[0]))) if len(outputs) == 1 else talks.said(outputs[-1])

    payer = Agent(description="Pays.", acts=True, context="clean")
    before = paid(served)
    try:
        heard = await _talk(build, answer, payer=payer).say("Go.")
        assert said in heard
        assert paid(served) == before + (policy == "allow")
        calls = [each.call for each in build.writer.history.actions.values()]
        threads = {each.action: each.thread for each in calls}
        (sent,) = [each for each in calls if each.action == "delegate"]
        assert threads["debug_action"] == entries.delegate_thread(sent.call)
        assert [each.name for each in build.observer.tabs()] == ["main"]
    finally:
        await build.close()


async def test_the_question_for_an_action_names_the_delegate(served: site.Site, tmp_path: Path) -> None:
    """What a delegate wants to do is asked for in its name.

    The list of what it did has question, answer and permission below the call, and where a long output is in whole.
    """
    who = build_contexts.Answering("yes")
    build = build_contexts.opened(tmp_path, f"{served.origin}/bills", policy="ask", who=who)

    def answer(request: Request) -> Answer:
        outputs = talks.outputs(request)
        if not any("Pay." in each for each in talks.messages(request)):
            return talks.said(outputs[-1]) if outputs else talks.asks(("delegate", TASK))
        if not outputs:
            return talks.asks(("debug_navigate", LOADS))
        return talks.asks(("debug_action", clicks(outputs[0]))) if len(outputs) == 1 else talks.said("Done.")

    before = paid(served)
    try:
        await _talk(build, answer, payer=Agent(description="Pays.", acts=True, context="clean")).say("Go.")
        assert paid(served) == before + 1
        (question,) = who.asked
        assert question.startswith("The delegate payer wants to do what changes the site.")
        assert "this once (out of its order, it is asked for each time)" in question
        assert "whenever it comes up again" not in question
        texts, (sent,) = build.writer, build.writer.history.delegates
        listed = str(state_paths.of_session(build.state, f"@state/delegate/{sent}", texts))
        course = ("debug_action {", question.split("\n")[-1], "answered: yes", "permission for click ", "  did: ")
        places = [listed.find(each, listed.index(course[0])) for each in course]
        assert -1 not in places
        assert places == sorted(places)
        assert "a person answered: yes" in listed
        path = re.search(r"gave: .*… \(`(@state/line/\d+)`\)", listed)
        assert path is not None, listed
        assert "Terms apply. Terms apply." in str(state_paths.of_session(build.state, path[1], texts))
    finally:
        await build.close()


@pytest.mark.parametrize(("goal", "begins"), [("Pay.", True), ("Pay at http://127.0.0.1:1/bills.", False)])
async def test_a_delegate_is_told_where_to_begin_once(goal: str, begins: bool, tmp_path: Path) -> None:
    """The goal's site is named to a delegate whose task does not name it."""
    build = build_contexts.opened(tmp_path, "http://127.0.0.1:1/bills")
    sent = entries.Call(
        thread=entries.SESSION_THREAD,
        path="1_delegate",
        node="delegate",
        attempt=1,
        effect="effect",
        args={"goal": goal},
        fingerprint="",
    )
    try:
        notes = pages.Pages(build).tabs(build.writer.call(sent)).notes
        assert notes == ("Begin at http://127.0.0.1:1/bills." if begins else "")
    finally:
        await build.close()


async def test_002_10_an_agent_that_looks_sees_the_sessions_pages_and_acts_on_none(
    served: site.Site, tmp_path: Path
) -> None:
    """With `pages` and without `acts` it looks at the tabs of the session, and is offered nothing that acts."""
    build = build_contexts.opened(tmp_path, f"{served.origin}/bills", policy="allow")
    offered: list[str] = []

    def answer(request: Request) -> Answer:
        outputs = talks.outputs(request)
        if not any("Look." in each for each in talks.messages(request)):
            sends = ("delegate", {**TASK, "agent": "looker", "goal": "Look.", "context": "clean"})
            return (
                talks.asks(("debug_navigate", LOADS)),
                talks.asks(sends),
                talks.said(outputs[-1] if outputs else ""),
            )[len(outputs)]
        offered.extend(each.name for each in request.tools)
        looks = ("find", {"tab": None, "role": None, "name": None, "row": None, "text": "Open"})
        return talks.said(outputs[0]) if outputs else talks.asks(looks)

    try:
        assert "Open: 12.50" in str(await _talk(build, answer, looker=LOOKER).say("Go."))
        assert {"inspect_tab", "find"} <= set(offered)
        assert not {"debug_navigate", "debug_action", "create_nodes"} & set(offered)
    finally:
        await build.close()


async def test_002_10_an_agent_with_nodes_edits_the_draft(tmp_path: Path) -> None:
    """Two delegates of one answer write nodes and try them one after the other: both are in the draft, with their values."""
    build = build_contexts.opened(tmp_path, policy="hold")
    made = "- {id: %s, type: transform, expr: '{{ %s }}'}"

    def answer(request: Request) -> Answer:
        outputs, words = talks.outputs(request), " ".join(talks.messages(request))
        number = next((each for each in ("1", "2") if f"Write {each}." in words), None)
        if number is None:
            sends = [("delegate", {**TASK, "agent": "writer", "goal": f"Write {each}."}) for each in ("1", "2")]
            return talks.asks(*sends) if not outputs else talks.said(" ".join(outputs))
        writes = {"yaml": made % (f"n{number}", number), "after": None, "dry_run": None, "reason": "asked"}
        tries = dict.fromkeys(_fields(request, "execute_nodes")) | {"reason": "asked", "nodes": f"n{number}"}
        steps = (talks.asks(("create_nodes", writes)), talks.asks(("execute_nodes", tries)), talks.said("It is there."))
        return steps[len(outputs)]

    writer = Agent(description="Writes.", acts=True, context="clean", tools=["nodes"])
    try:
        heard = await _talk(build, answer, writer=writer).say("Go.")
        assert str(heard).count("It is there.") == 2, heard
        assert build.state.draft is not None
        assert sorted(build.state.draft.loaded.places) == ["n1", "n2"]
        assert build.bench.values() == {"n1": 1, "n2": 2}
    finally:
        await build.close()


def _fields(request: Request, name: str) -> list[str]:
    return list(next(each for each in request.tools if each.name == name).parameters["properties"])


def _talk(build: build_contexts.BuildContext, answer: talks.Model, **agents: Agent) -> reply.Talk:
    """A talk whose model is this function, with these agents."""
    from director.builds import open as open_build

    chosen, models = talks.CHOSEN, talks.Supply(answer, [])
    delegates = delegate.Delegates(agents=agents, pages=pages.Pages(build))
    tools = open_build.toolsets(build)
    return reply.Talk(
        build.state, talks.About(), models, chosen, build.listener, window.Limits, tools, delegates=delegates
    )
