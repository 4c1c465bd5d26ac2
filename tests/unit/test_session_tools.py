"""The session tools have small strict schemas, the same in every mode. They cut long outputs with a pointer, explain refusals, and read nothing unlogged."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typing_extensions import override

from director.conversation import session_tools
from director.draft import draft as drafts
from director.session import events, state_paths
from director.session import plan as plans
from director.session.state import SessionState
from director.session.subject import Subject
from director.subjects import files
from director.tools import toolbox
from director.tools.toolbox import LONGEST, READ, Toolset
from nodes.errors import LogError, ModelError
from nodes.values import Json
from runtime.log import entries, session
from runtime.log.writer import LogWriter
from runtime.messages import estimates
from runtime.messages.messages import ToolCall
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.testing import memory_store
from runtime.testing.responses import schemas
from tests.sessions import SHOP, begun

NAMES = [
    "get_workflow_summary", "get_workflow_nodes", "get_workflow_variables", "get_current_plan", "get_workflow_description",
    "get_browser_state", "read_state", "update_plan", "patch_plan_task", "update_workflow_description",
    "get_workflow_variable", "set_variable", "clear_variable", "clear_all_variables",
    "propose_command",
]  # fmt: skip
PLAN: dict[str, Json] = {
    "overall_goal": "Pay all",
    "current_phase": "Build",
    "phases": [
        {
            "phase_name": "Build",
            "status": "in_progress",
            "tasks": [
                {"task_id": "t1", "description": "Loop", "status": "pending", "notes": None, "node_ids": ["pay"]}
            ],
        }
    ],
    "blockers": [],
    "notes": None,
}
REASON = "because"


class Heard(events.Listener):
    """Records the events it receives."""

    def __init__(self) -> None:
        self.events: list[str] = []

    @override
    def called(self, path: str, name: str, arguments: str) -> None:
        self.events.append(f"called {path} {name}")

    @override
    def done(self, path: str, text: str, *, failed: bool) -> None:
        self.events.append(f"{'failed' if failed else 'done'} {path}")

    @override
    def changed(self, of: str, name: str) -> None:
        self.events.append(f"changed {of} {name}".strip())


@dataclasses.dataclass
class Bench:
    """A session with its tools; calls are written to the log as a turn writes them."""

    writer: LogWriter[session.Session]
    state: SessionState
    box: session_tools.Toolbox
    heard: Heard
    count: int = 0

    async def call(self, name: str, /, **arguments: Json) -> turn.Outcome:
        """Calls a tool as a model does; the arguments must fit its schema."""
        self.count += 1
        tool = next(each for each in self.box.offered if each.name == name)
        jsonschema.Draft202012Validator(tool.parameters).validate(arguments)
        asked = ToolCall(f"a{self.count}", name, json.dumps(arguments))
        thread, path = entries.SESSION_THREAD, f"{self.count}_{name}"
        self.writer.said(entries.Assistant(thread=thread, key="k", source="model", model="m"), "", "", (asked,))
        outcome = await self.box.take(asked, arguments, turn.Place(self.count, path, thread))
        call = entries.Call(
            path=path, node="session", action=name, asked=asked.id, attempt=1, effect="read", args=arguments, fingerprint="",
            thread=thread,
        )  # fmt: skip
        call = self.writer.call(call)
        self.writer.result(call, "error" if outcome.error else "ok", value=outcome.value, error=outcome.error)
        result = self.state.history.actions[call.call].result
        assert result is not None
        # After a crash the model sees the same output as without one.
        assert self.box.render_done(asked, result) == outcome.text
        self.writer.said(entries.ToolResult(thread=thread, asked=asked.id), outcome.text, path)
        return outcome

    async def output(self, name: str, /, **arguments: Json) -> str:
        """Calls a tool that must succeed, and returns its text."""
        outcome = await self.call(name, **arguments)
        assert outcome.error is None, outcome.text
        return outcome.text

    async def refused(self, name: str, /, **arguments: Json) -> tuple[str, str]:
        """Calls a tool that must fail, and returns the error code and the text."""
        outcome = await self.call(name, **arguments)
        assert outcome.error is not None, outcome.text
        return str(outcome.error["code"]), outcome.text

    def mode(self, mode: entries.Mode) -> None:
        """Continues in this mode."""
        self.state.keep(entries.Version(of="mode", number=0, reason="r", by="person"), mode)


def bench(folder: Path, mode: entries.Mode = "agent", about: Subject | None = None) -> Bench:
    """The tools of a session that has the shop draft."""
    writer = begun(folder)
    state, heard = SessionState(writer), Heard()
    state.write_draft(drafts.Draft.of(SHOP), reason="r")
    made = Bench(writer, state, session_tools.Toolbox(state, about or files.DraftSubject(state), heard), heard)
    made.mode(mode)
    return made


def test_the_tools_have_their_names_and_small_strict_schemas(tmp_path: Path) -> None:
    """Every schema is strict; every tool that changes something, or proposes to, takes a reason; all schemas together stay small."""
    offered = bench(tmp_path).box.offered
    assert [each.name for each in offered] == NAMES
    for each in offered:
        schemas.check(each.parameters)
        changes = each.name.startswith(("update_", "patch_", "set_", "clear_", "propose_"))
        assert ("reason" in each.parameters["properties"]) == changes
        assert each.description
    assert estimates.of_tools(offered) < 1_900


@pytest.mark.parametrize("mode", ["chat", "agent", "run"])
def test_the_tools_are_the_same_in_every_mode(tmp_path: Path, mode: entries.Mode) -> None:
    """The offered tools do not depend on the mode."""
    assert bench(tmp_path, mode).box.offered == bench(tmp_path, "agent").box.offered


CHANGES: dict[str, dict[str, Json]] = {
    "update_plan": {"plan": PLAN, "reason": REASON},
    "patch_plan_task": {"task_id": "t1", "status": "completed", "notes": None, "reason": REASON},
    "update_workflow_description": {"description": "Pay.", "reason": REASON},
    "set_variable": {"name": "n", "value": "1", "reason": REASON},
    "clear_variable": {"name": "n", "reason": REASON},
    "clear_all_variables": {"reason": REASON},
}
LOOKS: dict[str, dict[str, Json]] = {
    "get_workflow_summary": {},
    "get_workflow_nodes": {"which": "all", "type": None},
    "get_workflow_variables": {"key": None, "run": None},
    "get_current_plan": {},
    "get_workflow_description": {},
    "get_browser_state": {},
}


@pytest.mark.parametrize(
    ("mode", "allowed"), [("chat", {"set_variable"}), ("run", set[str]()), ("agent", set(CHANGES))]
)
async def test_a_mode_refuses_what_it_does_not_allow(tmp_path: Path, mode: entries.Mode, allowed: set[str]) -> None:
    """Reading works in every mode. A refused change names the mode and how to allow it, and writes nothing."""
    made = bench(tmp_path, mode)
    for name, arguments in LOOKS.items():
        await made.output(name, **arguments)
    for name, arguments in CHANGES.items():
        if name in allowed:
            await made.output(name, **arguments)
            continue
        code, message = await made.refused(name, **arguments)
        assert code == "tool-not-in-mode"
        assert f"`{name}` cannot be used in mode {mode}" in message
        assert "`/mode agent`" in message
    assert (made.state.plan is not None) == (mode == "agent")
    assert "n" not in made.state.variables.names() or mode == "chat"


async def test_the_workflow_is_read_in_parts(tmp_path: Path) -> None:
    """Tools give the summary with outline, nodes by position and type, description, and browser state; an unknown node gets a suggestion."""
    made = bench(tmp_path)
    summary = await made.output("get_workflow_summary")
    assert "Nodes: 7 (" in summary
    assert "  6   pay  browser_action click" in summary
    nodes = await made.output("get_workflow_nodes", which="1-10", type="browser_query")
    assert re.findall(r"^- id: (\w+)|^- \{id: (\w+)", nodes, re.MULTILINE) == [("orders", ""), ("", "status")]
    assert await made.output("get_workflow_description") == "(there is none yet)"
    assert await made.output("get_browser_state") == "No browser belongs to it: only a run has one."
    code, output = await made.refused("get_workflow_nodes", which="payy", type=None)
    assert (code, "did you mean `pay`?" in output) == ("node-unknown", True)


async def test_the_plan_is_written_and_one_task_of_it_changed(tmp_path: Path) -> None:
    """Each plan change is a version with its reason and notifies the listener; a plan is taken as far as it is one."""
    made = bench(tmp_path)
    assert await made.output("get_current_plan") == "(there is no plan yet)"
    assert (await made.refused("patch_plan_task", **CHANGES["patch_plan_task"]))[0] == "plan-missing"
    assert await made.output("update_plan", **CHANGES["update_plan"]) == "kept as version 1"
    output = await made.output("patch_plan_task", task_id="t1", status="completed", notes="two orders", reason="done")
    assert output == "kept as version 2: t1 is completed; all tasks are completed"
    assert "  [x] t1  Loop  (pay) - two orders" in await made.output("get_current_plan")
    assert [(each.number, each.reason, each.by) for each in made.state.history.versions("plan")] == [
        (1, REASON, "model"),
        (2, "done", "model"),
    ]
    assert made.heard.events.count("changed plan") == 2
    code, output = await made.refused("patch_plan_task", task_id="tt1", status=None, notes=None, reason="r")
    assert (code, "did you mean `t1`?" in output) == ("task-unknown", True)
    odd: Any = {**PLAN, "current_phase": "Biuld"}
    assert await made.output("update_plan", plan=odd, reason="r") == ("kept as version 3; the current phase is `Build`")
    bad: Any = {**PLAN, "overall_goal": "x" * (plans.A_TEXT + 1)}
    code, output = await made.refused("update_plan", plan=bad, reason="r")
    assert (code, "overall_goal" in output) == ("plan-invalid", True)


async def test_variables_are_stored_shown_and_cleared(tmp_path: Path) -> None:
    """A value is given as JSON; the list of all is shortened, a single one is shown whole, and a cleared one is unknown."""
    made = bench(tmp_path)
    await made.output("set_variable", name="rows", value='[{"n": 1}, {"n": 2}]', reason=REASON)
    assert made.state.variables.get("rows") == [{"n": 1}, {"n": 2}]
    every = await made.output("get_workflow_variables", key=None, run=None)
    assert 'rows = [{"n": 1}, {"n": 2}]' in every
    assert 'inputs.base_url = "http://127.0.0.1:8765"' in every
    assert 'secrets.SHOP_PASSWORD = "[hidden]"' in every
    assert every.startswith(page_text.BEGIN)
    assert '"n": 2' in await made.output("get_workflow_variables", key="rows", run=None)
    assert '"n": 2' in await made.output("get_workflow_variable", key="rows")
    assert "base_url" in await made.output("get_workflow_variables", key="inputs", run=None)
    for name, more in (("get_workflow_variables", {"run": None}), ("get_workflow_variable", {})):
        code, output = await made.refused(name, key="row", **more)
        assert (code, "did you mean `rows`?" in output) == ("variable-unknown", True)
    code, output = await made.refused("set_variable", name="x", value="tea", reason=REASON)
    assert (code, '`"tea"`' in output) == ("variable-invalid", True)
    assert await made.output("clear_variable", name="rows", reason=REASON) == "the variable `rows` is cleared"
    assert (await made.refused("clear_variable", name="row", reason=REASON))[0] == "variable-unknown"
    code, output = await made.refused("clear_variable", name="inputs.base_url", reason=REASON)
    assert (code, "cannot be cleared" in output) == ("variable-fixed", True)
    assert (await made.refused("get_workflow_variable", key="rows"))[0] == "variable-unknown"
    for name in ("a", "b"):
        await made.output("set_variable", name=name, value="1", reason=REASON)
    assert await made.output("clear_all_variables", reason=REASON) == "cleared: the variables a, b"
    assert await made.output("clear_all_variables", reason=f"{REASON} again") == "there is nothing to clear"
    assert made.state.variables.names() == []


async def test_a_change_without_a_reason_is_refused(tmp_path: Path) -> None:
    """A blank reason is refused, and nothing changes."""
    made = bench(tmp_path)
    code, _message = await made.refused("update_workflow_description", description="Pay.", reason=" ")
    assert code == "reason-missing"
    assert made.state.description == ""


async def test_a_long_output_is_cut_and_the_rest_read_by_its_path(tmp_path: Path) -> None:
    """A long output is cut to its bound, and `read_state` reads all of it in parts. Each part is fenced as data."""
    made = bench(tmp_path)
    long = "".join(f"line {number}\n" for number in range(3000))
    made.state.variables.set("letter", long, reason=REASON)
    output = await made.output("get_workflow_variable", key="letter")
    assert len(output) <= LONGEST
    assert output.count(page_text.BEGIN) == output.count(page_text.END) == 1
    found = re.search(r"`read_state` (\S+) from (\d+)\)$", output)
    assert found is not None
    read, start = output.partition("\n…")[0].removesuffix(f"\n{page_text.END}"), int(found[2])
    while True:
        part = await made.output("read_state", path=found[1], start=start, end=None)
        assert len(part) <= state_paths.AT_ONCE + 200
        head, _, text = part.partition(f"\n{page_text.BEGIN}\n")
        read += text.removesuffix(f"\n{page_text.END}")
        more = re.search(r"read on from (\d+)\)", head)
        if more is None:
            break
        assert text.removesuffix(f"\n{page_text.END}").endswith("\n"), "a part ends with a line"
        start = int(more[1])
    assert long in read
    part = await made.output("read_state", path=found[1], start=7, end=13)
    assert (
        part
        == f"(characters 7 to 13 of {len(long) + len(page_text.fenced(''))}; read on from 13)\n{page_text.fenced('line 0')}"
    )


async def test_an_earlier_output_is_read_by_its_line(tmp_path: Path) -> None:
    """A pointer to a log line with a tool output leads to that output."""
    made = bench(tmp_path)
    output = await made.output("get_browser_state")
    line = made.state.history.last_seq
    assert output in await made.output("read_state", path=f"@state/line/{line}", start=None, end=None)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "@state/plan/1",
        "@state/delegate/c1",
        "@state/line/0",
        "@state/line/1",
        "@state/line/99999",
        "@state/line/x",
        "@state/../x",
        "@state/line/²",
    ],
)
async def test_nothing_is_read_that_no_log_names(tmp_path: Path, path: str) -> None:
    """A path that neither the log of the session nor that of its subject names is refused."""
    code, message = await bench(tmp_path).refused("read_state", path=path, start=None, end=None)
    assert code == "state-unknown"
    assert "`@state` lists the paths" in message


async def test_no_blob_of_another_conversation_is_read(tmp_path: Path) -> None:
    """A blob of another session in the same store is unknown to this one."""
    store = memory_store.MemoryStore(tmp_path)
    other = SessionState(begun(tmp_path, store=store))
    version = other.variables.set("rows", "x" * 9000, reason="r")
    assert version.blob is not None
    writer = begun(tmp_path, store=store)
    state = SessionState(writer)
    made = Bench(writer, state, session_tools.Toolbox(state, files.DraftSubject(state), Heard()), Heard())
    assert (await made.refused("read_state", path=version.blob.path, start=None, end=None))[0] == "state-unknown"


class Slow(Toolset):
    """A tool added from outside the session, which may run in parallel."""

    side_by_side = True

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(toolbox.tool("slow", f"Fails with {error}.", {}), READ)
        self.error = error

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        if self.error is not None:
            raise self.error
        return turn.Outcome(place.path, {"path": place.path})


async def test_other_tools_are_offered_after_the_sessions_own(tmp_path: Path) -> None:
    """Added tools come last and say themselves whether they run in parallel. Their errors become outputs; a log error is raised."""
    writer = begun(tmp_path)
    state, heard = SessionState(writer), Heard()
    slow = Slow()
    box = session_tools.Toolbox(state, files.DraftSubject(state), heard, [slow])
    assert [each.name for each in box.offered] == [*NAMES, "slow"]
    assert box.side_by_side == {"slow"}
    readers = {each for each in NAMES if each.startswith(("get_", "propose_")) or each == "read_state"}
    assert box.reads == {*readers, "slow"}
    asked, place = ToolCall("a", "slow", "{}"), turn.Place(1, "1_slow", entries.SESSION_THREAD)
    assert (await box.take(asked, {}, place)).text == "1_slow"
    slow.error = ModelError("broken", "it broke", fix="do without")
    outcome = await box.take(asked, {}, place)
    assert (outcome.text, (outcome.error or {})["code"]) == ("it broke (broken). do without", "broken")
    assert heard.events == ["called 1_slow slow", "done 1_slow", "called 1_slow slow", "failed 1_slow"]
    slow.error = LogError("log-write-failed", "the disk is full")
    with pytest.raises(LogError):
        await box.take(asked, {}, place)
