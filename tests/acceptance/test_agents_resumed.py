"""An agent whose process is killed: its conversation continues, and refs from before the crash are invalid."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

from runtime.testing import responses, scripted_model
from tests.agents import ask_at
from tests.command import Project
from tests.site import Answer, Request, serve

PAGE = """<!doctype html><title>Two</title><h1>Two buttons</h1>
<form method=post action="/first"><button>First</button></form><form method=post action="/second"><button>Second</button></form>"""

FLOW = """
version: 1
inputs: {site: {type: string}}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/"}
  - {id: work, type: agent, goal: Press the second button., success: [{text: Pressed}], output: {pressed: string}}
output: "{{ work }}"
"""

FIND: dict[str, Any] = {"role": "button", "name": "Second", "row": None, "text": None}


class Stubborn:
    """A model that clicks a ref from before its process was killed, and observes again only when that is refused."""

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.thinks = threading.Event()
        self.outputs: list[str] = []

    def __call__(self, asked: scripted_model.AskedFor) -> scripted_model.Scripted:
        """The answer to a request."""
        self.outputs = [*asked.outputs.values()]
        match len(self.outputs):
            case 0:
                return scripted_model.call("find", FIND)
            case 1:
                self.thinks.set()
                return scripted_model.call("click", {"ref": self._ref(0)}).held(self.gate)
            case 2:
                return scripted_model.call("find", FIND)
            case 3:
                return scripted_model.call("click", {"ref": self._ref(2)})
            case _:
                return scripted_model.call("finish", {"done": True, "note": "", "output": {"pressed": "second"}})

    def _ref(self, number: int) -> str:
        return self.outputs[number].partition("[ref=")[2].partition("]")[0]


def test_a_ref_from_before_the_crash_is_refused_and_the_conversation_continues(tmp_path: Path) -> None:
    """The browser survives and the same conversation continues. An old ref is refused with `ref-gone`, since a reattached browser assigns new refs."""
    pressed = list[str]()

    def press(request: Request) -> Answer:
        pressed.append(request.path)
        return Answer("<!doctype html><title>Done</title><p>Pressed</p>")

    project, gate = Project(tmp_path, RUNOPS_LINGER="60"), threading.Event()
    model = Stubborn(gate)
    with serve() as site, responses.serve(model, strict=True) as server:
        site.page("/", PAGE)
        site.answer("/first", press)
        site.answer("/second", press)
        ask_at(project, server)
        project.write("flow.yaml", FLOW)
        started = project.start("run", "flow.yaml", "-i", f"site={site.origin}", "--json")
        assert model.thinks.wait(60)
        started.send_signal(signal.SIGKILL)
        started.communicate()
        gate.set()
        done = project.runops("resume", "last", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["output"] == {"pressed": "second"}
    assert pressed == ["/second"]
    assert ["failed: ref-gone" in each for each in model.outputs] == [False, True, False, False]
    first, second = project.show()["steps"][-1]["attempts"]
    assert [first["status"], second["status"]] == ["interrupted", "ok"]
    calls = [each["action"] for one in (first, second) for each in one["thread"] if each["kind"] == "call"]
    assert calls == ["find", "click", "find", "click", "finish"]
    assert server.problems == []
