"""One turn is a request, then every call of its answer in order, each with a logged output. A conversation continues after a crash."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.errors import ModelError
from nodes.values import Json
from runtime.agents import agent
from runtime.context import request as context_request
from runtime.context import window
from runtime.log import entries as log_entries
from runtime.log import history
from runtime.log.writer import LogWriter
from runtime.messages import messages
from runtime.messages.messages import Answer, Message, Request, Tool, ToolCall, ToolOutput
from runtime.models import requests as models_requests
from runtime.models.client import client
from runtime.models.turns import turn
from runtime.secrets import masking
from runtime.testing import memory_store
from runtime.testing.responses import rules
from tests import breadth

SECRET = "tops3cret-word"


def tool(name: str, **fields: Json) -> Tool:
    """A tool with these fields and a strict schema."""
    schema: dict[str, Json] = {
        "type": "object",
        "properties": fields,
        "required": list[Json](fields),
        "additionalProperties": False,
    }
    return Tool(name, f"The tool {name}.", schema)


def seen(name: str, number: int) -> str:
    """The output of a tool that only reads."""
    return f"{name}, call {number}: the page says {SECRET}"


class Tools:
    """``look`` reads; ``click`` is an action that logs itself and fails for ``broken``; ``finish`` ends."""

    offered = (
        tool("look", ref={"type": ["string", "null"]}),
        tool("click", ref={"type": "string"}),
        tool("finish", done={"type": "boolean"}),
    )
    final = frozenset({"finish"})
    side_by_side = frozenset[str]()
    lenient = frozenset[str]()

    def __init__(self, writer: LogWriter, actions: list[str]) -> None:
        self.writer, self.actions = writer, actions
        self.taken: list[tuple[str, dict[str, Json]]] = []

    def needs(self, asked: ToolCall, earlier: turn.Done) -> bool:
        return earlier.error is not None and "look" not in (asked.name, earlier.asked.name)

    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        """Executes the call as a step of the engine would."""
        self.taken.append((asked.name, arguments))
        if asked.name == "look" and arguments.get("ref") == "gone":
            return turn.Outcome("it is gone", error=ModelError("gone", "it is gone").as_json())
        if asked.name != "click":
            return turn.Outcome(seen(asked.name, place.number), {"n": place.number})
        call = log_entries.Call(
            thread=place.thread, path=place.path, node="browser_action", action="click", asked=asked.id,
            attempt=1, effect="effect", args=arguments, fingerprint="f",
        )  # fmt: skip
        call = await self.writer.announce(call)
        if arguments["ref"] == "broken":
            error = ModelError("broken", "it is broken").as_json()
            self.writer.result(call, "error", error=error)
            return turn.Outcome("it is broken", error=error, written=True)
        self.actions.append(str(arguments["ref"]))
        self.writer.result(call, "ok", value="clicked")
        return turn.Outcome(self.render_done(asked, self.writer.history.attempt_of(call).result), written=True)

    def render_done(self, asked: ToolCall, result: log_entries.Result | None) -> str:
        """The output for a call with this result."""
        assert result is not None
        if asked.name != "click":
            return "it is gone" if result.error else seen(asked.name, result.value["n"])
        return "it is broken" if result.error else f"{asked.name}: {result.status}"


def turns_of(talk: Any, toolset: turn.Tools, writer: LogWriter, call: log_entries.Call) -> turn.Turns:
    """The turns of an agent step."""
    thread = log_entries.thread_of(call)
    around = window.RequestFrame((window.Part("rules", "Work."),), tuple(toolset.offered))
    frame = context_request.Frame(writer, thread, lambda: around, lambda: agent.LIMITS, max_output=500)
    return turn.Turns(talk, frame, toolset, writer, turn.TurnOptions(call.path, thread, "agent", call.fingerprint))


class Talk:
    """The exchanges of a thread, without a server: a script answers, and every request is checked against the API's rules."""

    def __init__(
        self, writer: LogWriter, call: log_entries.Call, script: Sequence[Answer], requests: list[Request]
    ) -> None:
        self.writer, self.call, self.script, self.requests = writer, call, script, requests

    def model(self) -> str:
        """Always the same model."""
        return "m"

    def say(self, text: str, mode: log_entries.Mode | None = None) -> None:
        """Logs a user message as ``Exchanges`` does."""
        self.writer.said(log_entries.User(thread=self._thread, mode=mode), text, self.call.path)

    @property
    def _thread(self) -> str:
        return log_entries.thread_of(self.call)

    async def exchange(self, request: Request) -> Answer:
        """Logs and returns the script's next answer, and records the request."""
        demand_protocol(request)
        assert SECRET not in str(request.items)
        self.requests.append(request)
        said = len(
            [each for each in self.writer.history.thread(self._thread).said if not isinstance(each, log_entries.User)]
        )
        answer = self.script[said] if said < len(self.script) else calling("finish", "z", done=True)
        answer = models_requests.with_unique_ids(
            answer, [self.writer.history.thread(self._thread).ids], self.writer.masker
        )
        entry = log_entries.Assistant(thread=self._thread, key=request.key, source="model", model="m")
        self.writer.said(entry, answer.text, self.call.path, answer.calls)
        await self.writer.barrier()
        return answer


def demand_protocol(request: Request) -> None:
    """Raises where the API would refuse the thread."""
    items = rules.items_of([client._item(each) for each in request.items])
    rules.check_thread(items, set())
    assert not messages.is_models(request.items[-1])


def calling(name: str, id_: str = "a", /, **arguments: Json) -> Answer:
    """An answer that calls one tool."""
    return Answer("", None, "m", calls=(ToolCall(id_, name, json.dumps(arguments)),))


def calls(*asked: Answer, said: str = "") -> Answer:
    """One answer with all of these calls."""
    every = [call for each in asked for call in each.calls]
    return Answer(said, None, "m", calls=tuple(dataclasses.replace(each, id=f"c{n}") for n, each in enumerate(every)))


@dataclasses.dataclass
class Life:
    """One process of an agent step, over a log."""

    script: Sequence[Answer]
    entries: Sequence[log_entries.AnyEntry] = ()
    """Log entries of earlier processes."""
    requests: list[Request] = dataclasses.field(default_factory=list[Request])
    actions: list[str] = dataclasses.field(default_factory=list[str])
    error: str = ""
    toolset: Tools | None = None

    async def live(self) -> None:
        """Begins or continues until the work is done or given up; ``entries`` is then the whole log."""
        with tempfile.TemporaryDirectory() as folder:
            store = memory_store.MemoryStore(Path(folder))
            conversation = await store.create("r")
            before = [conversation.append(each) for each in self.entries]
            writer = LogWriter(conversation, history.History(before), masking.Masker({"S": SECRET}), store.reader)
            first = next((each for each in before if isinstance(each, log_entries.Call)), None)
            call = log_entries.Call(
                path="do", node="agent", attempt=2 if first else 1, effect="effect", fingerprint="f"
            )
            call = await writer.announce(call.model_copy(update={"again": first.call if first else None}))
            self.toolset = Tools(writer, self.actions)
            talk = cast(Any, Talk(writer, call, self.script, self.requests))
            turns = turns_of(talk, self.toolset, writer, call)
            try:
                await self._work(turns)
            except ModelError as error:
                self.error = error.code
            self.entries = store.reader.read("r").entries

    async def _work(self, turns: turn.Turns) -> None:
        assert self.toolset is not None
        if not turns.begun:
            turns.say("Reach the goal.")
        while True:
            latest = await turns.turn()
            if latest.final(self.toolset) is not None:
                return
            if not latest.answer.calls:
                turns.say("Call a tool.")


def lived(*script: Answer, entries: Sequence[log_entries.AnyEntry] = ()) -> Life:
    """A life with this script, run to its end."""
    life = Life(script, entries)
    asyncio.run(life.live())
    return life


def outputs(request: Request) -> list[str]:
    """The outputs of the model's calls in a request, in order."""
    return [each.text for each in request.items if isinstance(each, ToolOutput)]


ARGUMENTS = st.sampled_from(
    [
        '{"ref": "e1"}',
        '{"ref": "e2"}',
        '{"ref": "broken"}',
        '{"done": true}',
        '{"done": 1}',
        "{}",
        "",
        "[1]",
        "{no",
        "null",
        json.dumps({"ref": SECRET}),
        "NaN",
        '{"ref": "\\ud800"}',
        '{"ref": "tops3cret\\u002dword"}',
        "[" * 2000,
    ]
)
NAMES = ["look", "click", "click", "finish", "nope", f"no {SECRET}"]
ANSWERS = st.builds(
    lambda text, asked: Answer(text, None, "m", calls=tuple(asked)),
    st.sampled_from(["", "I think.", SECRET]),
    st.lists(
        st.builds(ToolCall, st.sampled_from([*"abcz", SECRET]), st.sampled_from(NAMES), ARGUMENTS),
        max_size=3,
    ),
)
SCRIPTS = st.lists(ANSWERS, max_size=5)


@settings(max_examples=breadth.of(30, 60))
@given(SCRIPTS)
def test_every_call_is_answered_once_and_every_request_keeps_the_protocol(script: list[Answer]) -> None:
    """Each call has one entry, one result and one output, in order. Every request keeps the protocol, and no secret is logged."""
    life = lived(*script)
    asked = [
        each.id for entry in life.entries if isinstance(entry, log_entries.Assistant) for each in entry.calls or ()
    ]
    begun = {entry.call: entry.asked for entry in life.entries if isinstance(entry, log_entries.Call) and entry.asked}
    ended = [
        begun[entry.call] for entry in life.entries if isinstance(entry, log_entries.Result) and entry.call in begun
    ]
    shown = [entry.asked for entry in life.entries if isinstance(entry, log_entries.ToolResult)]
    assert [*begun.values()] == ended == shown == asked
    assert len(set(asked)) == len(asked)
    assert SECRET not in str(life.entries)
    assert life.error in ("", "agent-stuck")


@settings(max_examples=breadth.of(30, 60))
@given(SCRIPTS, st.data())
def test_a_conversation_resumes_wherever_its_process_died(script: list[Answer], data: st.DataObject) -> None:
    """After a cut at any entry the conversation sends the remaining requests, pays no answer twice, and repeats no action that has its result."""
    whole = lived(*script)
    there = whole.entries[: data.draw(st.integers(1, len(whole.entries)))]
    again = lived(*script, entries=there)
    answered = sum(isinstance(each, log_entries.Assistant) for each in there)
    over = {each.call for each in there if isinstance(each, log_entries.Result)}
    actions = [each for each in there if isinstance(each, log_entries.Call) and each.node == "browser_action"]
    done = [each.args["ref"] for each in actions if each.call in over and each.args["ref"] != "broken"]
    if all(each.call in over for each in actions):
        assert [each.key for each in again.requests] == [each.key for each in whole.requests[answered:]]
        assert done + again.actions == whole.actions
        assert again.error == whole.error
    else:
        # The outcome of the last action is unknown: it is not repeated, and the model sees that it was interrupted.
        assert turn.INTERRUPTED in [each.text for each in again.entries if isinstance(each, log_entries.ToolResult)]
        missing = int(actions[-1].args["ref"] != "broken")
        assert done == whole.actions[: len(done)]
        # The calls of the same answer are not repeated either.
        rest = whole.actions[len(done) + missing :]
        assert again.actions == rest[len(rest) - len(again.actions) :]


def test_a_model_sees_what_it_did_wrong() -> None:
    """Unknown tools, arguments that do not fit, and secrets are refused with the reason; no tool is called."""
    life = lived(
        calling("fly", "a"),
        calling("click", "b", ref=3),
        Answer("", None, "m", calls=(ToolCall("c", "click", "{no"),)),
        calling("click", "d", ref=SECRET),
        Answer("", None, "m", calls=(ToolCall("e", "click", '{"ref": "tops3cret\\u002dword"}'),)),
        calling("click", "f", ref="e1", why="because"),
    )
    unknown, unfit, broken, secret, escaped, more = outputs(life.requests[-1])
    assert "no tool `fly`" in unknown
    assert "look, click, finish" in unknown
    assert "ref: 3 is not of type 'string'" in unfit
    assert "no JSON object" in broken
    assert "secret-refused" in secret
    assert "secret-refused" in escaped
    assert "'why' was unexpected" in more
    assert life.actions == []
    assert [each.error["code"] for each in life.entries if isinstance(each, log_entries.Result) and each.error] == [
        "tool-unknown", "tool-arguments", "tool-arguments", "secret-refused", "secret-refused", "tool-arguments",
    ]  # fmt: skip


@pytest.mark.parametrize("inner", ["\\n", ""])
@pytest.mark.parametrize("depth", [100, 400, 700, 3000])
def test_arguments_of_any_depth_are_refused_in_words(depth: int, inner: str) -> None:
    """Arguments nested too deeply are refused, also with escaped text inside; the step continues."""
    for opened, closed in (("[", "]"), ('{"k": ', "}")):
        deep = f'{{"ref": "e1", "why": {opened * depth}"{inner}"{closed * depth}}}'
        life = lived(Answer("", None, "m", calls=(ToolCall("a", "click", deep),)), calling("finish", "b", done=True))
        (refused,) = outputs(life.requests[-1])
        assert "tool-arguments" in refused or "secret-refused" in refused
        assert len(refused) < 1000
        assert life.actions == []


@pytest.mark.parametrize("odd", ["NaN", "1e999", '"\\ud800"', "9" * 5000, '"\\u0000"', '"a", "ref": "b"'])
def test_odd_arguments_leave_a_log_that_can_be_read(odd: str) -> None:
    """Invalid numbers, lone surrogates and repeated fields are taken or refused, and the log stays readable."""
    life = lived(
        Answer("", None, "m", calls=(ToolCall("a", "click", f'{{"ref": {odd}}}'),)), calling("finish", "b", done=True)
    )
    assert len(life.requests) == 2
    for entry in life.entries:
        assert type(entry).model_validate_json(entry.model_dump_json().encode("utf-8", "strict"))


def test_a_nullable_argument_may_be_left_out() -> None:
    """A missing nullable argument reaches the tool as null."""
    life = lived(Answer("", None, "m", calls=(ToolCall("a", "look", ""),)))
    assert life.toolset is not None
    assert life.toolset.taken[0] == ("look", {"ref": None})


def test_calls_after_the_end_are_not_executed() -> None:
    """Calls after the one that ends the work are not executed, and their outputs say so."""
    life = lived(calls(calling("click", ref="e1"), calling("finish", done=True), calling("click", ref="e2")))
    assert life.actions == ["e1"]
    shown = [each.text for each in life.entries if isinstance(each, log_entries.ToolResult)]
    assert "not done: an earlier call of the same answer ended the work" in str(shown[2])
    assert len(life.requests) == 1


def test_reads_stop_nothing_and_are_not_stopped() -> None:
    """A failed read does not stop the rest of the answer. After a failed action reads are executed, and actions are not."""
    looks = calls(calling("look", ref="gone"), calling("click", ref="e1"))
    fails = calls(calling("click", ref="broken"), calling("look", ref=None), calling("click", ref="e2"))
    ends = calls(calling("finish", done=True), calling("look", ref=None))
    life = lived(looks, fails, ends)
    assert life.actions == ["e1"]
    shown = [str(each.text) for each in life.entries if isinstance(each, log_entries.ToolResult)]
    assert shown[:3] == ["it is gone", "click: ok", "it is broken"]
    assert shown[3].startswith("look, call 4")
    assert "not done: an earlier call of the same answer failed" in shown[4]
    assert "not done: an earlier call of the same answer ended the work" in shown[6]


def test_actions_after_a_failed_one_are_not_executed() -> None:
    """After a failed action the remaining actions of the same answer are not executed; the model may ask for them again."""
    once = calls(calling("click", ref="e1"), calling("click", ref="broken"), calling("click", ref="send"))
    life = lived(once, calling("click", "again", ref="send"), calling("finish", "end", done=True))
    assert life.actions == ["e1", "send"]
    shown = [each.text for each in life.entries if isinstance(each, log_entries.ToolResult)]
    assert shown[:2] == ["click: ok", "it is broken"]
    assert "not done: an earlier call of the same answer failed" in str(shown[2])
    assert shown[3] == "click: ok"


def test_the_same_failing_call_ends_the_work() -> None:
    """The third identical failure of the same call ends the work, others in between or not, and later calls are not executed."""
    fails = calling("click", ref="broken")
    life = lived(fails, calling("look"), fails, calls(fails, calling("click", ref="e1")))
    assert life.error == "agent-stuck"
    assert life.actions == []
    assert len(life.requests) == 4


def test_a_successful_call_resets_the_failure_count() -> None:
    """A success between failures of the same call resets the count."""
    fails = [True, True, False, True, True]

    class Moody(Tools):
        async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
            if asked.name == "look" and fails.pop(0):
                return turn.Outcome("no", error={"code": "no", "message": "no"})
            return await super().take(asked, arguments, place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "Tools", Moody)
        life = lived(*[calling("look")] * 5)
    assert life.error == ""
    assert (len(life.requests), fails) == (6, [])


def test_a_tool_output_is_masked_before_it_is_shown() -> None:
    """Log and model get the same masked text."""
    life = lived(calling("look"))
    [shown] = [each.text for each in life.entries if isinstance(each, log_entries.ToolResult)][:1]
    assert outputs(life.requests[-1]) == [shown]
    assert SECRET not in str(shown)
    assert masking.MASK in str(shown)


def test_an_answer_without_calls_is_part_of_the_thread() -> None:
    """An answer without calls, even an empty one, stays in the thread, followed by the reply to it."""
    life = lived(Answer("", None, "m"), Answer("Hm.", None, "m"))
    assert [each.text for each in life.requests[-1].items if isinstance(each, Message)] == [
        "Reach the goal.", "(nothing)", "Call a tool.", "Hm.", "Call a tool.",
    ]  # fmt: skip


def begun(asked: Answer) -> tuple[list[log_entries.AnyEntry], log_entries.Call]:
    """The log up to the beginning of the one call that ``asked`` makes, and that entry."""
    whole = lived(asked).entries
    at, call = next((at, each) for at, each in enumerate(whole) if isinstance(each, log_entries.Call) and each.asked)
    return [*whole[: at + 1]], call


def test_an_interrupted_action_is_not_repeated() -> None:
    """An action that was begun and has no result is not repeated; its result is `interrupted`, and the model sees that."""
    there, action = begun(calling("click", ref="e1"))
    again = lived(calling("click", ref="e1"), entries=there)
    assert again.actions == []
    assert outputs(again.requests[0]) == [turn.INTERRUPTED]
    assert [each.call for each in again.entries if isinstance(each, log_entries.Call) and each.asked == "a"] == [
        action.call
    ]
    assert [
        each.status for each in again.entries if isinstance(each, log_entries.Result) and each.call == action.call
    ] == ["interrupted"]


def test_an_interrupted_read_is_repeated() -> None:
    """An interrupted read is repeated as a second attempt, and the model sees its output."""
    there, look = begun(calling("look", ref="e1"))
    again = lived(calling("look", ref="e1"), entries=there)
    assert again.toolset is not None
    assert again.toolset.taken[0] == ("look", {"ref": "e1"})
    assert outputs(again.requests[0]) == [seen("look", 1).replace(SECRET, masking.MASK)]
    tried = [each for each in again.entries if isinstance(each, log_entries.Call) and each.asked == "a"]
    assert [(each.path, each.attempt) for each in tried] == [(look.path, 1), (look.path, 2)]


def test_calls_with_repeated_ids_get_distinct_ids() -> None:
    """Calls whose ids repeat or contain a secret get distinct ids, each with its own output."""
    life = lived(
        Answer("", None, "m", calls=(ToolCall("1", "look", "{}"), ToolCall("1", "click", '{"ref": "e1"}'))),
        Answer("", None, "m", calls=(ToolCall("1", "click", '{"ref": "e2"}'), ToolCall(SECRET, "look", "{}"))),
    )
    ids = [each.id for each in life.requests[-1].items if isinstance(each, ToolCall)]
    assert ids[0] == "1"
    assert len(set(ids)) == 4
    assert SECRET not in ids
    assert [each.id for each in life.requests[-1].items if isinstance(each, ToolOutput)] == ids
    assert life.actions == ["e1", "e2"]
