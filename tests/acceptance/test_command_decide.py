"""A run that only a person can reconcile: killed in the middle of a payment, with no way to ask the shop."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Project
from tests.shop_process import Shop
from tests.terminal import processes_of, still_running

PAY_ONE = """
version: 1
name: Pay one order
inputs:
  base_url: {type: string}
secrets: [SHOP_PASSWORD]
allowed_origins: ["{{ inputs.base_url }}"]
nodes:
  - {id: login, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
  - {id: user, type: browser_action, action: fill, target: {label: Username}, value: admin}
  - {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
  - id: submit
    type: browser_action
    action: click
    target: {role: button, name: Sign in}
    effect: idempotent
    verify: [{url: "**/orders"}]
  - {id: order, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/1001"}
  - id: pay
    type: browser_action
    action: click
    target: {role: button, name: Pay}
    verify: [{text: "paid", target: {test_id: status}}]
output: done
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "shop"
    folder.mkdir()
    with Shop.start(folder, orders=3, paid=0) as shop:
        yield shop


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose workflow pays one order without a `confirm`. Its browser ends with it."""
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, SHOP_PASSWORD="correct-horse", RUNOPS_LINGER="0")
    project.write("pay.yaml", PAY_ONE)
    return project


def test_a_person_decides_an_unknown_outcome(project: Project, shop: Shop) -> None:
    """A run killed between action and response asks (4) on `resume`. `show` and `--json` have the question, `decide` continues, and one payment is made."""
    shop.switch("hold", path="/orders/1001/pay", method="POST", moment="after")
    with project.start("run", "pay.yaml", "-i", f"base_url={shop.url}") as process:
        shop.wait("held", path="/orders/1001/pay")
        below = processes_of(process.pid, project.folder)
        process.kill()
    assert still_running(below) == []
    shop.clear()

    asked = project.runops("resume", "last", "--json")
    assert asked.returncode == 4
    question = json.loads(asked.stdout)
    assert (question["status"], question["question"]["path"]) == ("paused", "pay")
    answer = f"runops decide {question['run']} VERDICT   (VERDICT: done, not-done or skip)"
    assert answer in asked.stderr
    assert "PAUSED pay" in asked.stderr
    shown = project.here("show", "last")
    assert answer in shown.stdout
    assert "interrupted  pay" in shown.stdout
    assert "redo  pay" not in shown.stdout

    again = project.runops("resume", "last")
    assert (again.returncode, answer in again.stderr) == (4, True)

    # What is printed, pasted as it is, decides nothing.
    for pasted in (answer, answer.partition("   ")[0]):
        assert project.shell(pasted).returncode == 2
    refused = project.here("decide", "last", "VERDICT")
    assert (refused.returncode, "'VERDICT' is not one of" in refused.stderr) == (2, True)

    done = project.runops("decide", "last", "done")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert len(shop.ledger("payment")) == 1
    refused = project.here("decide", "last", "done")
    assert refused.returncode == 2
    assert "nothing-to-decide" in refused.stderr

    # Resuming passed steps opens no browser: none is installed.
    project.environment["RUNOPS_BROWSER"] = str(project.folder / "no-browser")
    shop.clear()
    over = project.here("resume", "last")
    assert (over.returncode, over.stdout) == (0, "done\n")
    assert len(shop.ledger("payment")) == 1


PAY_SLOWLY = PAY_ONE.replace(
    """    verify: [{text: "paid", target: {test_id: status}}]
""",
    """    timeout: 1
    confirm:
      settle: 0.2
      nodes:
        - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/1001"}
        - {id: status, type: browser_query, query: text, target: {test_id: status}}
      done: "{{ status == 'paid' }}"
""",
)


@pytest.mark.drawn(0)
def test_resume_asks_a_slow_site_again_and_believes_only_that_it_happened(project: Project, shop: Shop) -> None:
    """While the site is busy its *not done* never repeats the payment, however often the run is resumed. Once the payment shows, `resume` alone continues."""
    project.write("pay.yaml", PAY_SLOWLY)
    shop.switch("hold", path="/orders/1001/pay", method="POST")
    ended = project.runops("run", "pay.yaml", "-i", f"base_url={shop.url}")
    assert (ended.returncode, shop.ledger("payment")) == (4, [])
    assert "(asks the site again), or runops decide" in ended.stderr
    assert "because  " in ended.stderr

    for _ in range(2):
        asked = project.runops("resume", "last", "--json")
        question = json.loads(asked.stdout)["question"]
        assert (asked.returncode, shop.ledger("payment")) == (4, [])
        assert (question["reason"], question["path"]) == ("outcome-unknown", "pay")
        assert "the site has not answered" in question["message"]
        assert question["evidence"]["error"]["code"] == "timeout"
    assert len(shop.held()) == 1

    shop.clear()
    shop.wait("ledger", kind="payment")
    done = project.runops("resume", "last")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "`confirm` says so" in done.stderr
    assert len(shop.ledger("payment")) == 1


@pytest.mark.drawn(0)
def test_a_person_may_decide_while_a_slow_site_cannot(project: Project, shop: Shop) -> None:
    """`decide not-done` is trusted where the site's *not done* is not, and the payment is made once."""
    project.write("pay.yaml", PAY_SLOWLY)
    shop.switch("hold", path="/orders/1001/pay", method="POST")
    assert project.runops("run", "pay.yaml", "-i", f"base_url={shop.url}").returncode == 4
    shop.release(go_on=False)
    assert project.runops("resume", "last").returncode == 4
    done = project.runops("decide", "last", "not-done")
    assert (done.returncode, done.stdout, len(shop.ledger("payment"))) == (0, "done\n", 1)


def test_a_container_that_failed_shows_why(project: Project) -> None:
    """`show` and `show --at` print the error of a loop whose key fails, although the loop has no attempt."""
    loop = (
        "{id: each, type: iterate, over: [{x: 1}], as: o, key: '{{ o.y }}', nodes: [{id: b, type: transform, expr: 1}]}"
    )
    project.write("flow.yaml", f"version: 1\nname: t\nnodes:\n  - {loop}\n")
    assert project.here("run", "flow.yaml").returncode == 1
    for more in ([], ["--at", "each"]):
        shown = project.here("show", "last", *more).stdout
        assert "undefined-value: `o` has no `y`" in shown
