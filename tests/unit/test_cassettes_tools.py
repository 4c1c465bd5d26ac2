"""Cassettes of conversations with tools: calls are matched by order, and other differences miss with their place."""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from nodes.errors import AuthorError
from runtime.messages.messages import Answer, Item, Message, Request, Tool, ToolCall, ToolOutput
from runtime.models.cassettes.cassettes import Player, Recorder

TOOLS = (
    Tool(
        "look", "See the page.", {"type": "object", "properties": {"ref": {"type": "string", "description": "Where."}}}
    ),
    Tool("click", "Click it.", {"type": "object", "properties": {"ref": {"type": "string"}}}),
)
SHOWN = 'button "Pay" [ref={ref}]\nlink "Help"'


@dataclasses.dataclass
class Talk:
    """A conversation: the model looks, clicks two elements, and says so."""

    ref: str
    """The ref of the page's button in this run."""
    names: list[str] = dataclasses.field(default_factory=lambda: [f"call_{uuid.uuid4().hex}" for _each in range(3)])
    """The server's ids of the calls."""

    def exchanges(self) -> list[tuple[Request, Answer]]:
        """Each request with its answer."""
        look, click, other = (
            ToolCall(self.names[0], "look", "{}"),
            ToolCall(self.names[1], "click", json.dumps({"ref": self.ref})),
            ToolCall(self.names[2], "click", '{"ref": "e99"}'),
        )
        asked: list[Item] = [Message("user", "Pay.")]
        looked = [*asked, look, ToolOutput(look.id, SHOWN.format(ref=self.ref))]
        clicked = [*looked, click, other, ToolOutput(click.id, "done"), ToolOutput(other.id, "no such element")]
        return [
            (self.request(asked), Answer("", None, "m", calls=(look,))),
            (self.request(looked), Answer("I pay.", None, "m", calls=(click, other))),
            (self.request(clicked), Answer("Paid.", None, "m")),
        ]

    def request(self, items: list[Item]) -> Request:
        """The request after these items."""
        return Request("model-1", "Work.", tuple(items), None, 500, tools=TOOLS)

    def record(self, folder: Path) -> Path:
        """Records the conversation and returns its cassette."""
        recorder = Recorder(folder / "pay.yaml", folder / uuid.uuid4().hex, {})
        for number, (request, answer) in enumerate(self.exchanges()):
            recorder.take(number, "buy", request, answer)
        return recorder.publish(3)


def test_call_ids_and_refs_do_not_change_the_cassette(tmp_path: Path) -> None:
    """A second recording has the same bytes, without ids of the server."""
    first = Talk("e5")
    data = first.record(tmp_path).read_bytes()
    assert Talk("f2e41").record(tmp_path).read_bytes() == data
    assert [each for each in first.names if each in data.decode()] == []


def test_a_conversation_is_replayed_with_the_refs_of_its_run(tmp_path: Path) -> None:
    """The recorded calls are replayed in order, with the refs of this run and valid new call ids."""
    Talk("e5").record(tmp_path)
    player = Player.open(tmp_path / "pay.yaml")
    talk = Talk("f2e41", names=["call_1", "call_2", "call_3"])
    for number, (request, wanted) in enumerate(talk.exchanges()):
        found = player.answer(number, "buy", request)
        assert found == wanted


def described(request: Request) -> Request:
    """Changes the description of a tool."""
    return dataclasses.replace(request, tools=(TOOLS[0], dataclasses.replace(TOOLS[1], description="Press it.")))


def typed(request: Request) -> Request:
    """Changes the schema of a tool."""
    field = {"type": "string", "description": "What."}
    other = dataclasses.replace(TOOLS[0], parameters={"type": "object", "properties": {"ref": field}})
    return dataclasses.replace(request, tools=(other, TOOLS[1]))


def with_item(number: int, item: Callable[[Item], Item]) -> Callable[[Request], Request]:
    """Changes an item in the thread."""
    return lambda request: dataclasses.replace(
        request, items=(*request.items[:number], item(request.items[number]), *request.items[number + 1 :])
    )


MISSES: dict[str, tuple[Callable[[Request], Request], str, list[str]]] = {
    "description": (described, "tools.click.description", ['- "Click it."', '+ "Press it."']),
    "schema": (typed, "tools.look.parameters.properties.ref.description", ['- "Where."', '+ "What."']),
    "one tool less": (lambda asked: dataclasses.replace(asked, tools=TOOLS[:1]), "tools.click", ["+ (nothing)"]),
    "order of tools": (lambda asked: dataclasses.replace(asked, tools=TOOLS[::-1]), "tools", ["another order"]),
    "argument": (
        with_item(1, lambda item: dataclasses.replace(item, arguments='{"ref": null}')),
        "message 2",
        ["- {}", '+ {"ref": null}'],
    ),
    "tool of a call": (
        with_item(1, lambda item: dataclasses.replace(item, name="click")),
        "message 2",
        ["- call 1, look: {}", "+ call 1, click: {}"],
    ),
    "output": (
        with_item(2, lambda item: dataclasses.replace(item, text='button "Paid" [ref=e5]\nlink "Help"')),
        "message 3",
        ['- button "Pay" [ref=<ref 1>]', '+ button "Paid" [ref=<ref 1>]'],
    ),
    "order of outputs": (
        lambda asked: dataclasses.replace(asked, items=(*asked.items[:5], asked.items[6], asked.items[5])),
        "message 6, message 7",
        ["- output of call 2: done", "+ output of call 3: no such element"],
    ),
}


@pytest.mark.parametrize("name", MISSES)
def test_a_changed_request_misses_with_its_place(name: str, tmp_path: Path) -> None:
    """The miss names the tool or message, and shows both versions."""
    change, part, lines = MISSES[name]
    talk = Talk("e5")
    talk.record(tmp_path)
    with pytest.raises(AuthorError) as caught:
        Player.open(tmp_path / "pay.yaml").answer(2, "buy", change(talk.exchanges()[2][0]))
    assert caught.value.code == "cassette-miss"
    assert caught.value.evidence["differs"] == part
    assert [each for each in lines if each not in caught.value.evidence["difference"]] == []
