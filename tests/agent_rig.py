"""A run with an agent on a fake page, asking a model behind the real client: for tests of permitted actions and of crashes."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

import pytest

from nodes.values import Json
from runtime import events
from runtime.browser.elements.facts import Facts
from runtime.log import entries as log_entries
from runtime.log import threads
from runtime.testing import responses, scripted_model
from tests import models
from tests.rig import Rig

SHOP = """\
- heading "Orders" [level=1]
- button "Pay" [ref=e1]
- button "Cancel" [ref=e2]
- textbox "Note" [ref=e3]
- checkbox "Gift" [ref=e4]
- paragraph [ref=e5]: Order 1007"""

FACTS = {
    "e3": Facts(tag="input", type="text", labels=("Note",)),
    "e4": Facts(tag="input", type="checkbox", labels=("Gift",), checked=False),
    "e5": Facts(tag="p", text="Order 1007"),
}

PAY = 'role=button name="Pay"'


def flow(agent: str = "", *, rest: str = "") -> str:
    """A file with one agent; ``agent`` is more of its YAML."""
    return f"""
version: 1
name: test
allowed_origins: ["http://shop.test"]
nodes:
  - {{id: open, type: browser_action, action: goto, url: "http://shop.test/"}}
  - id: work
    type: agent
    goal: Pay the order.
{agent}{rest}
output: "{{{{ work }}}}"
"""


CONFIRM = """\
    confirm:
      settle: 0
      nodes: [{id: asked, type: browser_query, query: text, target: {css: paid}}]
      done: "{{ asked == 'yes' }}"
"""

VALUE = "    output: {number: string}\n"


class Bench:
    """A rig whose agent asks a model of the test."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, server: responses.Server, text: str) -> None:
        self._server = server
        self.rig = Rig(folder, text, settings=models.asked_at(server, patch))
        self.site = self.rig.site
        self.site.texts[""] = SHOP
        self.site.facts |= FACTS

    @property
    def requests(self) -> int:
        """The number of requests to the model."""
        return len(self._server.asked)

    def errors(self, step: str = "work") -> list[str]:
        """The error codes of the agent's last conversation, in order."""
        attempt = self.rig.history.attempts[step][-1]
        thread = self.rig.history.thread(log_entries.model_thread(attempt.call.again or attempt.call.call))
        calls = [done for each in thread.said if isinstance(each, threads.Exchange) for done in each.done.values()]
        errors = [done.result.error for done in calls if done.result is not None]
        return [str(error["code"]) for error in errors if error]

    def effects(self) -> dict[str, str]:
        """The effect class of each call that is in no file, by its action."""
        entries = self.rig.store.read(self.rig.id).entries
        return {str(each.action): each.effect for each in entries if isinstance(each, log_entries.Call) and each.asked}


@contextlib.contextmanager
def bench(
    folder: Path, patch: pytest.MonkeyPatch, model: scripted_model.Script, text: str, *, strict: bool = True
) -> Generator[Bench]:
    """A rig with its own server."""
    with responses.serve(model, strict=strict) as server:
        yield Bench(folder, patch, server, text)
        assert server.problems == []


def code(ended: events.RunEnded) -> str | None:
    """The error code of the run."""
    return None if ended.error is None else str(ended.error["code"])


def done(value: Json = None) -> dict[str, Json]:
    """The arguments of a ``finish`` that reports the goal as reached."""
    return {"done": True, "note": "", **({} if value is None else {"output": value})}
