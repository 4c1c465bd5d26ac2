"""Cassettes of an agent with the command: recorded again byte for byte despite new call ids of the server, and replayed without a model."""

from __future__ import annotations

import dataclasses
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from runtime.testing import responses, scripted_model
from tests.agents import LOOK, Obedient, Ref, ask_at, click
from tests.command import Project
from tests.shop_flows import sign_in
from tests.shop_process import Shop

pytestmark = pytest.mark.drawn(share=0.5, of="cassettes agents")

PAY = (
    sign_in("Pay one order").replace("nodes:\n", 'allowed_origins: ["{{ inputs.base_url }}"]\nnodes:\n', 1)
    + """
  - id: buy
    type: agent
    goal: Pay the order of Priya Raman, and say its number and total.
    success: [{text: paid, target: {role: row, has_text: "Priya Raman"}}]
    output: {number: string, total: number}
output: "{{ buy }}"
"""
)
NUMBERS: dict[str, Any] = {"number": "1003", "total": 338.57}
ROW: dict[str, Any] = {"role": "button", "name": "Pay", "row": "Priya Raman", "text": None}


class Naming:
    """A model that pays the order, on a server whose call ids are new each time."""

    def __init__(self) -> None:
        self._model = Obedient(
            LOOK,
            ("find", ROW),
            click("Pay"),
            ("find", {**ROW, "role": "link", "name": None}),
            ("read", {"ref": Ref("1003")}),
            output=NUMBERS,
        )
        self.names: list[str] = []

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The next answer, with named calls."""
        answer = self._model(asked)
        assert isinstance(answer, scripted_model.Answer)
        self.names.append(f"call_{uuid.uuid4().hex}")
        parts = [
            {**each, "call_id": self.names[-1]} if each["type"] == "function_call" else each for each in answer.parts
        ]
        return dataclasses.replace(answer, parts=tuple(parts))


def in_shop(folder: Path, *more: str, cassette: bytes | None = None) -> tuple[Project, dict[str, Any]]:
    """The project and the result of its run, in a new shop in which the order was paid once."""
    (folder / "cassettes").mkdir(parents=True)
    project = Project(folder)
    project.write("pay.yaml", PAY)
    if cassette is not None:
        (folder / "cassettes" / "pay.json").write_bytes(cassette)
    with Shop.start(folder, orders=5, paid=0) as shop, responses.serve(model := Naming(), strict=True) as server:
        project.environment["SHOP_PASSWORD"] = shop.password
        if cassette is None:
            ask_at(project, server)
        done = project.runops("run", "pay.yaml", "--input", f"base_url={shop.url}", "--json", *more)
        assert done.returncode == 0, done.stdout + done.stderr
        assert [each["subject"] for each in shop.ledger("payment")] == ["1003"]
        assert len(server.asked) == (6 if cassette is None else 0)
    if cassette is None:
        assert not [each for each in model.names if each in (folder / "cassettes" / "pay.json").read_text()]
    (run,) = json.loads(done.stdout)["runs"]
    return project, run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The agent's cassette."""
    folder = tmp_path_factory.mktemp("recorded")
    in_shop(folder, "--model-calls", "record")
    return (folder / "cassettes" / "pay.json").read_bytes()


def test_an_agent_is_recorded_again_to_the_same_bytes(recorded: bytes, tmp_path: Path) -> None:
    """Another shop and port, other call ids and another browser yield the same cassette."""
    in_shop(tmp_path / "again", "--model-calls", "record")
    assert (tmp_path / "again" / "cassettes" / "pay.json").read_text() == recorded.decode()


def test_an_agent_is_replayed_without_a_model(recorded: bytes, tmp_path: Path) -> None:
    """The recorded answers pay the order once and yield the recorded output, and no model is asked."""
    _project, run = in_shop(tmp_path / "played", "--model-calls", "replay", cassette=recorded)
    assert run["output"] == NUMBERS
