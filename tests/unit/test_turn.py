"""A turn: one request, every call of its answer done in order, told and written down; and a conversation that continues after a crash."""

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
    """A tool that takes these fields, in the strict form."""
    schema: dict[str, Json] = {
        "type": "object",
        "properties": fields,
        "required": list[Json](fields),
        "additionalProperties": False,
    }
    return Tool(name, f"The tool {name}.", schema)


def seen(name: str, number: int) -> str:
    """What is told of a tool that only looks."""
    return f"{name}, call {number}: the page says {SECRET}"


class Tools:
    """Tools: ``look`` sees, ``click`` is an action that writes itself and fails for ``broken``, ``finish`` ends."""

    offered = (
        tool("look", ref={"type": ["string", "null"]}),
        tool("click", ref={"type": "string"}),
        tool("finish", done={"type": "boolean"}),
    )
    final = frozenset({"finish"})
    side_by_side = frozenset[str]()
    reads = frozenset({"look"})

    def __init__(self, writer: LogWriter, actions: list[str]) -> None:
        self.writer, self.actions = writer, actions
        self.taken: list[tuple[str, dict[str, Json]]] = []

    async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        """Do it, as a step of the engine would."""
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
        """What is said of an action that its result tells of."""
        assert result is not None
        if asked.name != "click":
            return "it is gone" if result.error else seen(asked.name, result.value["n"])
        return "it is broken" if result.error else f"{asked.name}: {result.status}"


def turns_of(talk: Any, toolset: turn.Tools, writer: LogWriter, call: log_entries.Call) -> turn.Turns:
    """The turns of an agent's step."""
    thread = log_entries.thread_of(call)
    around = window.RequestFrame((window.Part("rules", "Work."),), tuple(toolset.offered))
    frame = context_request.Frame(writer, thread, lambda: around, lambda: agent.LIMITS, max_output=500)
    return turn.Turns(talk, frame, toolset, writer, turn.TurnOptions(call.path, thread, "agent", call.fingerprint))


class Talk:
    """The exchanges of a thread, without a server: the script answers, and every request is held against the rules of the API."""

    def __init__(
        self, writer: LogWriter, call: log_entries.Call, script: Sequence[Answer], requests: list[Request]
    ) -> None:
        self.writer, self.call, self.script, self.requests = writer, call, script, requests

    def model(self) -> str:
        """Always the same."""
        return "m"

    def say(self, text: str, mode: log_entries.Mode | None = None) -> None:
        """As ``Exchanges`` does."""
        self.writer.said(log_entries.User(thread=self._thread, mode=mode), text, self.call.path)

    @property
    def _thread(self) -> str:
        return log_entries.thread_of(self.call)

    async def exchange(self, request: Request) -> Answer:
        """The script's next answer; written down, and the request kept."""
        demand_protocol(request)
        assert SECRET not in str(request.items)
        self.requests.append(request)
        said = len(
            [each for each in self.writer.history.thread(self._thread).said if not isinstance(each, log_entries.User)]
        )
        answer = self.script[said] if said < len(self.script) else calling("finish", "z", done=True)
        answer = models_requests.told_apart(answer, [self.writer.history.thread(self._thread).ids], self.writer.masker)
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
    """One answer that asks for all of it."""
    every = [call for each in asked for call in each.calls]
    return Answer(said, None, "m", calls=tuple(dataclasses.replace(each, id=f"c{n}") for n, each in enumerate(every)))


@dataclasses.dataclass
class Life:
    """One process of an agent's step, over a log."""

    script: Sequence[Answer]
    entries: Sequence[log_entries.AnyEntry] = ()
    """What the log holds of earlier processes."""
    requests: list[Request] = dataclasses.field(default_factory=list[Request])
    actions: list[str] = dataclasses.field(default_factory=list[str])
    error: str = ""
    toolset: Tools | None = None

    async def live(self) -> None:
        """Begin, or continue, until the work is done or given up; ``entries`` are then the whole log."""
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
    """The life with this model, to its end."""
    life = Life(script, entries)
    asyncio.run(life.live())
    return life


def outputs(request: Request) -> list[str]:
    """What the model was told of its calls, in order."""
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
    """Whatever a model asks for, each call has one entry, one result and one thing told, in order; the API takes every request, and none holds a secret."""
    life = lived(*script)
    asked = [
        each.id for entry in life.entries if isinstance(entry, log_entries.Assistant) for each in entry.calls or ()
    ]
    begun = {entry.call: entry.asked for entry in life.entries if isinstance(entry, log_entries.Call) and entry.asked}
    ended = [
        begun[entry.call] for entry in life.entries if isinstance(entry, log_entries.Result) and entry.call in begun
    ]
    told = [entry.asked for entry in life.entries if isinstance(entry, log_entries.ToolResult)]
    assert [*begun.values()] == ended == told == asked
    assert len(set(asked)) == len(asked)
    assert SECRET not in str(life.entries)
    assert life.error in ("", "agent-stuck")


@settings(max_examples=breadth.of(30, 60))
@given(SCRIPTS, st.data())
def test_a_conversation_goes_on_wherever_its_process_died(script: list[Answer], data: st.DataObject) -> None:
    """Cut after any entry, it asks what the first process would have asked, pays no answer again, and does no action again that has its result."""
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
        # Nobody knows what became of the last one: it is not done again, and the model is told so.
        assert turn.INTERRUPTED in [each.text for each in again.entries if isinstance(each, log_entries.ToolResult)]
        missing = int(actions[-1].args["ref"] != "broken")
        assert done == whole.actions[: len(done)]
        # Nor is what was asked for along with it.
        rest = whole.actions[len(done) + missing :]
        assert again.actions == rest[len(rest) - len(again.actions) :]


def test_a_model_is_told_what_it_did_wrong() -> None:
    """An unknown tool, arguments that are no object or do not fit, and a secret are told in words that say what is wrong; no tool sees them."""
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
    """What is nested deeper than any tool takes ends no step, also where a secret could stand in it with escapes: the model is told, and continues."""
    for opened, closed in (("[", "]"), ('{"k": ', "}")):
        deep = f'{{"ref": "e1", "why": {opened * depth}"{inner}"{closed * depth}}}'
        life = lived(Answer("", None, "m", calls=(ToolCall("a", "click", deep),)), calling("finish", "b", done=True))
        (refused,) = outputs(life.requests[-1])
        assert "tool-arguments" in refused or "secret-refused" in refused
        assert len(refused) < 1000
        assert life.actions == []


@pytest.mark.parametrize("odd", ["NaN", "1e999", '"\\ud800"', "9" * 5000, '"\\u0000"', '"a", "ref": "b"'])
def test_odd_arguments_leave_a_log_that_can_be_read(odd: str) -> None:
    """Numbers that are none, halves of characters, and fields that are given twice are taken or refused, and the next request holds what the log has."""
    life = lived(
        Answer("", None, "m", calls=(ToolCall("a", "click", f'{{"ref": {odd}}}'),)), calling("finish", "b", done=True)
    )
    assert len(life.requests) == 2
    for entry in life.entries:
        assert type(entry).model_validate_json(entry.model_dump_json().encode("utf-8", "strict"))


def test_what_may_be_null_may_be_left_out() -> None:
    """Models of lesser servers leave out what they have nothing to say for: the tool is given null."""
    life = lived(Answer("", None, "m", calls=(ToolCall("a", "look", ""),)))
    assert life.toolset is not None
    assert life.toolset.taken[0] == ("look", {"ref": None})


def test_calls_behind_the_end_are_not_done() -> None:
    """The calls of an answer are done in order, and none behind the one that ends the work."""
    life = lived(calls(calling("click", ref="e1"), calling("finish", done=True), calling("click", ref="e2")))
    assert life.actions == ["e1"]
    told = [each.text for each in life.entries if isinstance(each, log_entries.ToolResult)]
    assert "not done: an earlier call of the same answer ended the work" in str(told[2])
    assert len(life.requests) == 1


def test_what_only_looks_stops_nothing_and_is_not_stopped() -> None:
    """A look that fails leaves the rest of the answer to be done; behind an action that failed the looks are done, and no action."""
    looks = calls(calling("look", ref="gone"), calling("click", ref="e1"))
    fails = calls(calling("click", ref="broken"), calling("look", ref=None), calling("click", ref="e2"))
    ends = calls(calling("finish", done=True), calling("look", ref=None))
    life = lived(looks, fails, ends)
    assert life.actions == ["e1"]
    told = [str(each.text) for each in life.entries if isinstance(each, log_entries.ToolResult)]
    assert told[:3] == ["it is gone", "click: ok", "it is broken"]
    assert told[3].startswith("look, call 4")
    assert "not done: an earlier call of the same answer failed" in told[4]
    assert "not done: an earlier call of the same answer ended the work" in told[6]


def test_calls_behind_one_that_failed_are_not_done() -> None:
    """A model that asks for three things at once counts on each: where the second fails the form is not sent half-filled; it may ask again."""
    once = calls(calling("click", ref="e1"), calling("click", ref="broken"), calling("click", ref="send"))
    life = lived(once, calling("click", "again", ref="send"), calling("finish", "end", done=True))
    assert life.actions == ["e1", "send"]
    told = [each.text for each in life.entries if isinstance(each, log_entries.ToolResult)]
    assert told[:2] == ["click: ok", "it is broken"]
    assert "not done: an earlier call of the same answer failed" in str(told[2])
    assert told[3] == "click: ok"


def test_the_same_failing_call_ends_the_work() -> None:
    """Three times the same call with the same failure ends it, with others in between, and nothing behind the third is done."""
    fails = calling("click", ref="broken")
    life = lived(fails, calling("look"), fails, calls(fails, calling("click", ref="e1")))
    assert life.error == "agent-stuck"
    assert life.actions == []
    assert len(life.requests) == 4


def test_a_call_that_goes_right_is_counted_anew() -> None:
    """A call that fails, goes right and fails is not the same failing call."""
    writer_fails = {"left": [True, True, False, True, True]}

    class Moody(Tools):
        async def take(self, asked: ToolCall, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
            if asked.name == "look" and writer_fails["left"].pop(0):
                return turn.Outcome("no", error={"code": "no", "message": "no"})
            return await super().take(asked, arguments, place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "Kit", Moody)
        life = lived(*[calling("look")] * 5)
    assert life.error == ""
    assert len(life.requests) == 6


def test_what_a_tool_says_is_masked_before_it_is_told() -> None:
    """A secret in what a tool says reaches neither the log nor the model, and both have the same text."""
    life = lived(calling("look"))
    [told] = [each.text for each in life.entries if isinstance(each, log_entries.ToolResult)][:1]
    assert outputs(life.requests[-1]) == [told]
    assert SECRET not in str(told)
    assert masking.MASK in str(told)


def test_a_model_that_only_talks_is_heard() -> None:
    """An answer without calls is part of the thread, also an empty one, and what it is told then comes behind it."""
    life = lived(Answer("", None, "m"), Answer("Hm.", None, "m"))
    assert [each.text for each in life.requests[-1].items if isinstance(each, Message)] == [
        "Reach the goal.", "(nothing)", "Call a tool.", "Hm.", "Call a tool.",
    ]  # fmt: skip


def begun(asked: Answer) -> tuple[list[log_entries.AnyEntry], log_entries.Call]:
    """The log of a life that died just behind the beginning of the one call that ``asked`` asks for, and that beginning."""
    whole = lived(asked).entries
    at, call = next((at, each) for at, each in enumerate(whole) if isinstance(each, log_entries.Call) and each.asked)
    return [*whole[: at + 1]], call


def test_an_interrupted_action_is_not_done_again() -> None:
    """Of an action of which only the beginning is known the model is told to look; it is done by nobody, and its result says that it was interrupted."""
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


def test_an_interrupted_look_is_taken_again() -> None:
    """What only looks is done anew, as its second attempt, and the model is told what there is to see."""
    there, look = begun(calling("look", ref="e1"))
    again = lived(calling("look", ref="e1"), entries=there)
    assert again.toolset is not None
    assert again.toolset.taken[0] == ("look", {"ref": "e1"})
    assert outputs(again.requests[0]) == [seen("look", 1).replace(SECRET, masking.MASK)]
    tried = [each for each in again.entries if isinstance(each, log_entries.Call) and each.asked == "a"]
    assert [(each.path, each.attempt) for each in tried] == [(look.path, 1), (look.path, 2)]


def test_calls_that_a_server_names_alike_are_told_apart() -> None:
    """Servers that count the calls of each answer from 1 name many alike, and some put a secret into a name: each call has an id of its own, and its own output."""
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
