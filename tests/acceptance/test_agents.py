"""Agents in runs of the real command, with a scripted model: their effects on a site, their outcomes, and the nodes printed from them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from runtime.testing import responses, scripted_model
from tests import hasty
from tests.agents import LOOK, Obedient, Ref, ask_at, click, fill
from tests.command import Project
from tests.shop_flows import sign_in
from tests.shop_process import Shop
from tests.site import Answer, Request, Site, serve

PAY = (
    sign_in("Pay one order").replace("nodes:\n", 'allowed_origins: ["{{ inputs.base_url }}"]\nnodes:\n', 1)
    + """
  - id: buy
    type: agent
    goal: Pay the order of Priya Raman, and say its number and total.
    success: [{text: paid, target: {role: row, has_text: "Priya Raman"}}]
    output: {number: string, total: number, why: string}
    confirm:
      settle: 0
      nodes:
        - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}
        - {id: paid, type: browser_query, query: text, target: {role: row, has_text: "Priya Raman"}}
      done: "{{ 'unpaid' not in paid }}"
output: "{{ buy }}"
"""
)
FORM = """<!doctype html><title>Form</title><h1>Form</h1>
<form method=post action="/done">
<label>Name <input name=name></label>
<label>Size <select name=size><option>small<option>large</select></label>
<label><input type=checkbox name=gift> Gift</label>
<label><input type=checkbox name=news checked> News</label>
<fieldset><legend>Pay</legend><label><input type=radio name=pay value=cash> Cash</label><label><input type=radio name=pay value=card> Card</label></fieldset>
<button type=button onclick="kind.value = confirm('Express?') ? 'express' : 'normal'">Ask</button>
<input type=hidden id=kind name=kind>
<button>Send</button></form>
<p id=quiet onclick="void 0" role=button tabindex=0>Nothing</p>
<a href="/help" target=_blank>Help</a>"""
FILL = """
version: 1
inputs: {site: {type: string}}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/"}
  - id: work
    type: agent
    goal: Send the form.
    success: [{text: Thanks}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder)


@contextlib.contextmanager
def form() -> Generator[Site]:
    """A form, and the page that answers it."""
    with serve() as site:
        site.page("/", FORM)
        site.page("/help", "<!doctype html><title>Help</title><h1>Help</h1><p>Cards are welcome.</p>")

        def done(_request: Request) -> Answer:
            return Answer("<!doctype html><title>Done</title><h1>Thanks</h1>")

        site.answer("/done", done)
        yield site


@pytest.fixture
def site() -> Generator[Site]:
    """The form."""
    with form() as site:
        yield site


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The only run in the output of ``--json``."""
    (run,) = json.loads(done.stdout)["runs"]
    return run


def as_nodes(project: Project, step: str) -> str:
    """The actions of the last run's agent, as a valid workflow file."""
    printed = project.here("show", "last", "--as-nodes", step)
    assert printed.returncode == 0, printed.stderr
    project.write("nodes.yaml", printed.stdout)
    found = project.here("validate", "nodes.yaml")
    assert found.returncode == 0, f"{printed.stdout}\n{found.stdout}{found.stderr}"
    return printed.stdout


@pytest.mark.drawn(share=0.3, of="agents")
def test_an_agent_pays_an_order_and_its_nodes_pay_it_again(project: Project, tmp_path: Path) -> None:
    """The agent pays the order once in one shop. Its printed nodes pay it once in another, without a model and with the same output."""
    row: dict[str, Any] = {"role": "button", "name": "Pay", "row": "Priya Raman", "text": None}
    numbers: dict[str, Any] = {"number": "1003", "total": 338.57, "why": "{{ it was }} open"}
    model = Obedient(
        LOOK,
        ("find", row),
        click("Pay"),
        ("find", {**row, "role": "link", "name": None}),
        ("read", {"ref": Ref("1003")}),
        output=numbers,
    )
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Shop.start(tmp_path / "one", orders=5, paid=0) as shop, responses.serve(model, strict=True) as server:
        project.environment["SHOP_PASSWORD"] = shop.password
        ask_at(project, server)
        project.write("pay.yaml", PAY)
        done = project.here("run", "pay.yaml", "--input", f"base_url={shop.url}", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert result_of(done)["output"] == numbers
        assert [each["subject"] for each in shop.ledger("payment")] == ["1003"]
    shown = project.here("show", "last", "--at", "buy").stdout
    assert "did  click  role=button  name=Pay  within=(role=row  has_text=1003)  ok" in shown
    assert [
        each["action"] for each in project.show()["steps"][-1]["attempts"][0]["thread"] if each["kind"] == "call"
    ] == ["look", "find", "click", "find", "read", "finish"]
    printed = as_nodes(project, "buy")
    assert "agent" not in printed.partition("\n")[2]
    with Shop.start(tmp_path / "two", orders=5, paid=0) as shop:
        again = project.here("run", "nodes.yaml", "--frozen", "--input", f"base_url={shop.url}", "--json")
        assert again.returncode == 0, again.stdout + again.stderr
        assert result_of(again)["output"] == numbers
        assert [each["subject"] for each in shop.ledger("payment")] == ["1003"]


@pytest.mark.drawn(share=0.3, of="agents")
def test_every_action_of_an_agent_is_printed_as_a_node_that_does_the_same(project: Project, site: Site) -> None:
    """Fields, lists, boxes, a dialog and tabs: the site receives the same form from the agent and from its printed nodes."""
    model = Obedient(
        LOOK,
        fill("Name", "Ada {{ x }} {% y"),
        ("select", {"ref": Ref("Size"), "options": ["large"]}),
        click("Gift"),
        click("News"),
        click("Card"),
        click("Nothing"),
        ("click", {"ref": "e9999"}),
        click("Ask"),
        ("dialog", {"accept": True, "text": None}),
        click("Help"),
        ("tab", {"name": "tab2"}),
        LOOK,
        ("tab", {"name": "main"}),
        ("press", {"key": "Tab", "ref": None}),
        click("Send"),
    )
    with responses.serve(model, strict=True) as server:
        ask_at(project, server)
        project.write("fill.yaml", FILL)
        done = project.here("run", "fill.yaml", "--input", f"site={site.origin}")
        assert done.returncode == 0, done.stdout + done.stderr + "\n".join(model.told)
    printed = as_nodes(project, "work")
    again = project.here("run", "nodes.yaml", "--frozen", "--input", f"site={site.origin}")
    assert again.returncode == 0, printed + again.stdout + again.stderr
    bodies = [each.body for each in site.arrived("/done")]
    assert len(bodies) == 2
    assert bodies[0] == bodies[1] == "name=Ada+%7B%7B+x+%7D%7D+%7B%25+y&size=large&gift=on&pay=card&kind=express"
    assert "opens: tab2" in printed
    assert "action: switch_tab, tab: tab2" in printed
    assert "# left out, because nothing changed:" in printed
    assert "e9999" not in printed


ORDER = """<!doctype html><title>Order</title><h1>Order</h1><p id=who></p>
<a href="#" onclick="window.open('/customer'); return false">New customer</a>
<form method=post action="/ordered"><input type=hidden id=customer name=customer>
<label>Note <input name=note></label><button>Order</button></form>"""
CUSTOMER = """<!doctype html><title>Customer</title><h1>Customer</h1><label>Called <input id=called></label>
<button onclick="fetch('/keep').then(() => { opener.customer.value = opener.who.textContent = called.value; window.close(); })">Keep</button>"""
WITH_CUSTOMER = """
version: 1
inputs:
  site: {type: string}
  customer: {type: string, default: Ada Okafor}
allowed_origins: ["{{ inputs.site }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.site }}/"}
  - id: work
    type: agent
    goal: Order for the new customer {{ inputs.customer }}.
    success: [{text: Thanks}]
"""


@pytest.mark.drawn(share=0.3, of="agents")
def test_nodes_wait_for_a_window_that_closes_itself_and_work_with_other_inputs(project: Project) -> None:
    """A printed node waits for a window that closes itself late. Text equal to an input is printed as that input, so another value works."""

    def kept(_request: Request) -> Answer:
        time.sleep(0.7)
        return Answer("kept")

    with serve() as site:
        site.page("/", ORDER)
        site.page("/customer", CUSTOMER)
        site.answer("/keep", kept)
        site.answer("/ordered", lambda _request: Answer("<!doctype html><title>Done</title><h1>Thanks</h1>"))
        model = Obedient(
            LOOK,
            click("New customer"),
            ("tab", {"name": "tab2"}),
            fill("Called", "Ada Okafor"),
            click("Keep"),
            fill("Note", "For Ada Okafor."),
            click("Order"),
        )
        with responses.serve(model, strict=True) as server:
            ask_at(project, server)
            project.write("order.yaml", WITH_CUSTOMER)
            done = project.here("run", "order.yaml", "--input", f"site={site.origin}")
            assert done.returncode == 0, done.stdout + done.stderr + "\n".join(model.told)
        printed = as_nodes(project, "work")
        assert "Ada" not in printed.partition("nodes:")[2]
        again = project.here("run", "nodes.yaml", "--input", f"site={site.origin}", "--input", "customer=Priya Raman")
        assert again.returncode == 0, printed + again.stdout + again.stderr
        assert [each.body for each in site.arrived("/ordered")] == [
            f"customer={name}&note=For+{name}." for name in ("Ada+Okafor", "Priya+Raman")
        ]


@dataclasses.dataclass(frozen=True)
class End:
    """An agent's failure to reach its goal."""

    name: str
    model: Any
    code: str
    requests: int


SAYS = scripted_model.text("I would rather talk.")
ENDS = [
    End("gives up", Obedient(LOOK, done=False), "agent-gave-up", 2),
    End("only talks", [SAYS, SAYS], "agent-silent", 2),
    End("fails the same way three times", Obedient(*[("click", {"ref": "e9999"})] * 9), "agent-stuck", 3),
    End("says too early that it is done", Obedient(), "agent-stuck", 3),
    End("has no more turns", Obedient(*[LOOK] * 99), "agent-turns", 5),
]


@pytest.mark.drawn(share=0.4)
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
def test_an_agent_that_does_not_reach_its_goal_ends_with_a_code(project: Project, site: Site, end: End) -> None:
    """The run exits 1 with a code for the reason, after exactly the expected requests. The form was not sent."""
    with responses.serve(end.model, strict=True) as server:
        ask_at(project, server)
        project.environment[hasty.VARIABLE] = "0.5"
        project.write("fill.yaml", f"{FILL}    max_turns: 5\n")
        done = project.here("run", "fill.yaml", "--input", f"site={site.origin}", "--json")
        assert (done.returncode, result_of(done)["error"]["code"]) == (1, end.code)
        assert len(server.asked) == end.requests
    assert site.arrived("/done") == []


@pytest.mark.drawn(share=0.3, of="agents")
def test_a_step_that_is_no_agent_cannot_be_printed_as_nodes(project: Project, site: Site) -> None:
    """`--as-nodes` of a step that is no agent exits 2 with `not-an-agent`."""
    with responses.serve(Obedient(done=False), strict=True) as server:
        ask_at(project, server)
        project.write("fill.yaml", FILL)
        project.here("run", "fill.yaml", "--input", f"site={site.origin}")
    refused = project.here("show", "last", "--as-nodes", "open")
    assert refused.returncode == 2
    assert "not-an-agent" in refused.stderr


@pytest.mark.drawn(share=0.3, of="agents")
def test_a_cassette_of_an_agent_replays_at_any_address(project: Project) -> None:
    """A cassette recorded at one address replays at another, and the site receives the same form. The model navigates by paths from `/`."""
    model = Obedient(LOOK, ("goto", {"url": "/help"}), ("goto", {"url": "/"}), LOOK, fill("Name", "Ada"), click("Send"))
    project.write("fill.yaml", FILL)
    with form() as site, responses.serve(model, strict=True) as server:
        ask_at(project, server)
        done = project.here("run", "fill.yaml", "--model-calls", "record", "--input", f"site={site.origin}")
        assert done.returncode == 0, done.stdout + done.stderr
        sent = [each.body for each in site.arrived("/done")]
    with form() as site:
        done = project.here("run", "fill.yaml", "--model-calls", "replay", "--input", f"site={site.origin}")
        assert done.returncode == 0, done.stdout + done.stderr
        assert [each.body for each in site.arrived("/done")] == sent
        assert len(site.arrived("/help")) == 1
