"""`runops verify` and `runops build --reset`, as processes on the shop: what each run did is proved, and nothing is done twice."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runtime.testing import scripted_model
from tests import builds_rig, paying, resetting
from tests.builds_rig import Builds, use
from tests.command import Project
from tests.paying import finish
from tests.reports import check
from tests.shop_process import Shop

pytestmark = pytest.mark.drawn(share=0.2, of="verify")

PAY = f"""\
# Kept as it is.
version: 1
name: Pay
inputs:
  base_url: {{type: string}}
secrets: [SHOP_PASSWORD]
nodes:
{paying.SIGN_IN.replace("{{ inputs.user }}", "admin")}
{paying.ORDERS}
{paying.PAY}
output: {{paid: "{{{{ paying }}}}"}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop with two open orders."""
    with Shop.start(tmp_path / "shop", orders=3, paid=1) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, shop: Shop) -> Project:
    """A project with a workflow that pays every open order."""
    made = Project(tmp_path, SHOP_PASSWORD=shop.password)
    (tmp_path / ".runops").mkdir()
    made.write("pay.yaml", PAY)
    return made


def arguments(shop: Shop, *more: str) -> list[str]:
    """The command line of a verification."""
    return ["verify", "pay.yaml", "-i", f"base_url={shop.url}", *more]


def runs(project: Project) -> list[dict[str, Any]]:
    """All runs of the project, the newest first."""
    return json.loads(project.runops("runs", "--all", "--json").stdout)["runs"]


def test_each_run_does_the_action_again(project: Project, shop: Shop, tmp_path: Path) -> None:
    """With a reset each run pays the orders: the proof is full, is printed and written into the head, and the next one replaces it."""
    before = (tmp_path / "pay.yaml").read_text()
    done = project.runops(*arguments(shop, "--runs", "2", "--reset", resetting.command(shop, tmp_path)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "proved: full; 2 of 2 runs passed in fresh browsers, the site reset before each",
        "pay: done in 2 of 2 runs",
    ]
    assert resetting.paid_before(tmp_path) == [0, 2]
    assert len(shop.ledger("payment")) == 2
    for line in ("-- run 1/2", "-- run 2/2", "reset  ", "ok  paying", "passed  "):
        assert line in done.stderr
    text = (tmp_path / "pay.yaml").read_text()
    head = text.removesuffix(before).splitlines()
    assert text.endswith(before)
    assert head[0].startswith("# Verified by `runops verify`, sum ")
    assert head[1:3] == [f"# {each}" for each in done.stdout.splitlines()]
    every = runs(project)
    assert [each["state"] for each in every] == ["passed", "passed"]
    assert all(each["id"] in head[3] for each in every)
    again = project.runops(*arguments(shop, "--runs", "1", "--reset", resetting.command(shop, tmp_path), "--json"))
    result = json.loads(again.stdout)
    check("verify-ending", result)
    assert (result["exit"], result["proved"], result["written"], len(result["runs"])) == (0, "full", True, 1)
    assert result["runs"][0]["output"] == {"paid": result["runs"][0]["output"]["paid"]}
    text = (tmp_path / "pay.yaml").read_text()
    assert (text.endswith(before), text.count("# proved: ")) == (True, 1)
    assert "1 of 1 runs" in text
    for shown in (done.stdout, done.stderr, text):
        assert shop.password not in shown


def test_without_a_reset_one_run_is_enough_and_the_rest_is_said(project: Project, shop: Shop) -> None:
    """Without a reset the second run finds the orders paid: that is said with what would change it, and `--no-write` leaves the file."""
    before = (project.folder / "pay.yaml").read_bytes()
    done = project.runops(*arguments(shop, "--no-write"))
    assert done.returncode == 0, done.stderr
    assert "pay: done in 1 of 2 runs" in done.stdout
    assert "`--reset CMD` puts the site's data back before each run" in done.stderr
    assert (project.folder / "pay.yaml").read_bytes() == before
    done = project.runops(*arguments(shop, "--quiet"))
    assert done.returncode == 1
    assert "error[unproved]: the runs passed, and do not prove: pay, paid" in done.stderr
    assert "--reset CMD" in done.stderr
    assert (project.folder / "pay.yaml").read_bytes() == before
    done = project.runops(*arguments(shop, "--quiet", "--unproved", "pay", "--unproved", "paid"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "# proved: all but pay (never reached), paid (always empty); 2 of 2"
        in (project.folder / "pay.yaml").read_text()
    )


def test_a_held_action_is_prepared_and_not_done(project: Project, shop: Shop) -> None:
    """With `--effects hold` each run stops before the payment, which is no failure; nothing is paid, and the proof says how far it goes."""
    done = project.runops(*arguments(shop, "--effects", "hold", "--json"))
    result = json.loads(done.stdout)
    check("verify-ending", result)
    assert done.returncode == 0, done.stderr
    assert result["proved"].startswith("up to paying[#")
    assert [each["what"] for each in result["effects"]] == ["held: ready, not done in 2 of 2 runs"]
    assert shop.ledger("payment") == []


CONFIRM = """\
      confirm:
        settle: 0
        nodes:
          - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ number }}"}
          - {id: status, type: browser_query, query: text, target: {test_id: status}}
        done: "{{ status == 'paid' }}"
  collect:"""


def test_an_order_that_is_paid_stops_the_next_run(project: Project, shop: Shop) -> None:
    """With a fixed order and no reset the second run is stopped by `confirm` before it pays again, and the proof says so."""
    pay = PAY.replace("  collect:", CONFIRM).replace('over: "{{ open_ones }}"', 'over: ["1001"]')
    project.write("pay.yaml", pay)
    done = project.runops(*arguments(shop))
    assert done.returncode == 0, done.stderr
    said = "done in 1 of 2 runs; there already, and not done again in 1 of 2 runs"
    assert done.stdout.startswith(f"proved: all but pay ({said}); 1 of 2 runs passed in fresh browsers\n")
    assert "stopped before paying[#1001]/pay: `confirm` says that it is done already" in done.stderr
    assert len(shop.ledger("payment")) == 1


def test_a_confirm_that_is_always_true_is_found(project: Project, shop: Shop, tmp_path: Path) -> None:
    """With a reset a `confirm` that says *done* before the action fails the first run: exit code 1, and nothing is paid or written."""
    project.write("pay.yaml", PAY.replace("  collect:", CONFIRM.replace("status == 'paid'", "status != ''")))
    done = project.runops(*arguments(shop, "--reset", resetting.command(shop, tmp_path)))
    assert done.returncode == 1
    assert "`confirm` says that the click is done already" in done.stderr
    assert "correct `confirm`" in done.stderr
    assert shop.ledger("payment") == []
    assert "proved:" not in (tmp_path / "pay.yaml").read_text()


def test_the_first_failed_run_ends_it(project: Project, shop: Shop, tmp_path: Path) -> None:
    """The first run that fails is the last: its error and the commands that continue are shown, the file stays, and the exit code is 1."""
    project.write("pay.yaml", PAY.replace("name: Sign in}", "name: Log in}, timeout: 1"))
    before = (tmp_path / "pay.yaml").read_bytes()
    done = project.runops(*arguments(shop, "--runs", "3", "--reset", resetting.command(shop, tmp_path), "--json"))
    result = json.loads(done.stdout)
    check("verify-ending", result)
    assert (done.returncode, result["exit"], result["proved"], len(result["runs"])) == (1, 1, "not", 1), done.stderr
    (run,) = runs(project)
    assert f"again    runops resume {run['id']}" in done.stderr
    assert f"runops show {run['id']} --at sign_in/submit" in done.stderr
    assert "target-not-found" in done.stderr
    assert (tmp_path / "pay.yaml").read_bytes() == before
    assert resetting.paid_before(tmp_path) == [0]


BEFORE_ANY_RUN = {
    "an unknown input": (["-i", "colour=red"], 2, "unknown-input"),
    "no such file": (["--inputs", "none.json"], 2, "file-not-found"),
    "too many runs": (["--runs", "11"], 2, "usage"),
    "a failing reset": (["--reset", "echo away; exit 7"], 3, "reset-failed"),
    "a reset that takes too long": (["--reset", "sleep 60"], 3, "took more than 0.5 s"),
}


@pytest.mark.parametrize("case", BEFORE_ANY_RUN)
def test_a_mistake_begins_no_run(project: Project, shop: Shop, case: str) -> None:
    """A mistake of the command line or of the reset is named with a fix before any run begins, and never with a traceback."""
    more, code, words = BEFORE_ANY_RUN[case]
    project.environment["RUNOPS_RESET_TIMEOUT"] = "0.5"
    done = project.runops(*arguments(shop, *more))
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert runs(project) == []
    if case == "a failing reset":
        assert "away" in done.stderr
        printed = json.loads(project.runops(*arguments(shop, *more, "--json")).stdout)
        check("verify-ending", printed)
        assert (printed["error"]["code"], printed["runs"]) == ("reset-failed", [])


def test_a_reset_that_fails_later_ends_it(project: Project, shop: Shop, tmp_path: Path) -> None:
    """If the reset before the second run fails, the first run stays, nothing is proved, and the file is as it was."""
    before = (tmp_path / "pay.yaml").read_bytes()
    done = project.runops(*arguments(shop, "--reset", "[ ! -e once ] && touch once", "--json"))
    result = json.loads(done.stdout)
    check("verify-ending", result)
    assert (done.returncode, result["proved"], len(result["runs"])) == (3, "not", 1), done.stderr
    assert result["error"]["code"] == "reset-failed"
    assert (tmp_path / "pay.yaml").read_bytes() == before
    assert len(shop.ledger("payment")) == 2


def test_a_read_only_file_is_refused_first(project: Project, shop: Shop) -> None:
    """A file whose head cannot be written is refused before any run, with the flag that only prints."""
    (project.folder / "pay.yaml").chmod(0o444)
    done = project.runops(*arguments(shop))
    assert (done.returncode, runs(project)) == (2, [])
    assert "--no-write" in done.stderr


def test_a_file_that_changes_meanwhile_is_not_written(project: Project, shop: Shop, tmp_path: Path) -> None:
    """A file that is edited while it is verified stays as it was edited; exit code 2 says so."""
    done = project.runops(*arguments(shop, "--runs", "1", "--reset", "echo '# by hand' >> pay.yaml"))
    assert (done.returncode, "file-changed" in done.stderr) == (2, True), done.stderr
    assert (tmp_path / "pay.yaml").read_text() == f"{PAY}# by hand\n"


def test_a_kill_during_a_run_doubles_nothing(project: Project, shop: Shop, tmp_path: Path) -> None:
    """After a kill during a payment `resume` says that it may have happened and does not pay again; a new verification resets first."""
    shop.switch("hold", path="/orders/.*/pay", method="POST", moment="after")
    reset = resetting.command(shop, tmp_path)
    with project.start(*arguments(shop, "--runs", "2", "--reset", reset)) as process:
        assert shop.wait("held")
        process.kill()
        process.communicate(timeout=60)
    shop.clear()
    assert len(shop.ledger("payment")) == 1
    before = (tmp_path / "pay.yaml").read_text()
    assert before == PAY
    resumed = project.runops("resume", "last")
    assert resumed.returncode in (0, 4), resumed.stderr
    assert len({each["subject"] for each in shop.ledger("payment")}) == len(shop.ledger("payment"))
    if resumed.returncode == 4:
        assert "decide" in resumed.stderr
    done = project.runops(*arguments(shop, "--runs", "2", "--reset", reset))
    assert (done.returncode, "proved: full; 2 of 2" in done.stdout) == (0, True), done.stderr
    assert len(shop.ledger("payment")) == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_kill_during_a_reset_leaves_none_at_work(
    project: Project, shop: Shop, tmp_path: Path, number: signal.Signals
) -> None:
    """After Ctrl-C, or with the next command after a kill, no reset is at work any more, no run was begun, and the reset is run anew."""
    slow = "echo $$ > pid; sleep 60 & echo $! >> pid; wait"
    with project.start(*arguments(shop, "--reset", slow)) as process:
        until = time.monotonic() + 30
        while not (tmp_path / "pid").exists() or len((tmp_path / "pid").read_text().split()) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(number)
        process.communicate(timeout=60)
    pids = [int(each) for each in (tmp_path / "pid").read_text().split()]
    assert runs(project) == []
    if number == signal.SIGINT:
        assert process.returncode == 130
    else:
        assert psutil.pid_exists(pids[1])
        done = project.runops(*arguments(shop, "--runs", "1", "--reset", resetting.command(shop, tmp_path)))
        assert (done.returncode, resetting.paid_before(tmp_path)) == (0, [0]), done.stderr
    until = time.monotonic() + 10
    while any(psutil.pid_exists(each) and psutil.Process(each).status() != "zombie" for each in pids):
        assert time.monotonic() < until
        time.sleep(0.05)


# Builds


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    """A project with its own builds."""
    made = builds_rig.of(tmp_path)
    yield made
    made.close()


def flags(shop: Shop, *more: str) -> list[str]:
    """The options of the builds here."""
    goal = ["--url", f"{shop.url}/login", "--save", "pay.yaml", "-i", "user=admin", "--secret", "SHOP_PASSWORD"]
    return [*goal, "--effects", "allow", "--runs", "2", *more]


def test_a_build_with_a_reset_proves_the_order_in_each_run(builds: Builds, shop: Shop, tmp_path: Path) -> None:
    """A build whose site is reset pays in both runs, and is `proved: full` for it; no request to the model has the command."""
    reset = resetting.command(shop, tmp_path)
    said = list(paying.script(shop.url))
    done, result = builds.built(said, *flags(shop, "--reset", reset), goal=paying.GOAL, SHOP_PASSWORD=shop.password)
    assert (done.returncode, result["proved"]) == (0, "full"), done.stderr
    assert result["finish"]["effects"][0]["what"] == "done in 2 of 2 runs"
    assert resetting.paid_before(tmp_path) == [0, 2]
    outputs = [each["output"] for each in result["finish"]["runs"]]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 2
    assert "reset before each" in (tmp_path / "pay.yaml").read_text()
    assert f"reset  {reset}" in done.stderr
    asked = json.dumps(builds.bodies())
    assert "a reset puts the site's data back" in asked
    assert "reset.py" not in asked
    notes = [each for each in builds.session(result["session"]) if each["kind"] == "note"]
    notes = [each for each in notes if each["data"].get("what") == "finish" or each["name"] == "reset"]
    notes = [each for each in notes if each["name"] in ("reset", "child-started")]
    assert [each["name"] for each in notes] == ["reset", "child-started"] * 2
    assert all(each["data"]["reset"] is True for each in notes[1::2])
    shown = builds.project.runops("show", result["session"])
    assert shown.stdout.count("\nreset  ") == 2
    built = (tmp_path / "pay.yaml").read_text()
    verified = builds.project
    verified.environment["SHOP_PASSWORD"] = shop.password
    again = verified.runops("verify", "pay.yaml", "--reset", reset, "-i", "user=admin", "--frozen")
    assert again.returncode == 0, again.stderr
    text = (tmp_path / "pay.yaml").read_text()
    assert text != built
    assert "# how it was built and proved: pay.build.md\n" in text
    _same, resumed = builds.resumes([], SHOP_PASSWORD=shop.password)
    assert (resumed["status"], resumed["changed"]) == ("done", None), "the file is still the build's"


def test_a_build_killed_in_its_reset_resets_anew(builds: Builds, shop: Shop, tmp_path: Path) -> None:
    """A build killed during the reset of its proof knows the reset from its log, is told that no run was begun, and resets again."""
    reset = f"[ -e ready ] || {{ touch begun; sleep 60; }}; {resetting.command(shop, tmp_path)}"
    project = builds.answers(*paying.script(shop.url), SHOP_PASSWORD=shop.password)
    with project.start("build", paying.GOAL, *flags(shop, "--reset", reset), "--json") as process:
        until = time.monotonic() + 60
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        process.kill()
        process.communicate(timeout=60)
    (tmp_path / "ready").touch()
    done, result = builds.resumes([finish()], SHOP_PASSWORD=shop.password)
    assert (done.returncode, result["proved"]) == (0, "full"), done.stderr
    assert "no run of it was begun" in builds.outputs(0)[-1]
    assert "the site is reset before each run" in builds.outputs(0)[-1]
    assert resetting.paid_before(tmp_path)[-1] == 2
    assert len(shop.ledger("payment")) == 2


def test_a_talk_keeps_its_reset(builds: Builds, tmp_path: Path) -> None:
    """`runops chat --mode agent --reset` resets before its whole runs, and a resumed talk does so without the flag; a secret in it is refused."""
    node = "- {id: one, type: transform, expr: '{{ 1 }}'}"
    tries = use("run_draft", inputs=None, reason="to see")
    begin = use("create_nodes", yaml=node, after=None, dry_run=None, reason="the goal") + tries
    project = builds.answers(
        begin, scripted_model.text("It runs."), tries, scripted_model.text("It runs again."), WORD="tops3cret-word"
    )
    options = ["--mode", "agent", "--save", "one.yaml"]
    talk = project.runops("chat", *options, "--reset", "echo x >> resets", "-m", "Yield one.")
    assert talk.returncode == 0, talk.stderr
    assert (tmp_path / "resets").read_text() == "x\n"
    talk = project.runops("chat", "--resume", "last", "-m", "Once more.")
    assert talk.returncode == 0, talk.stderr
    assert (tmp_path / "resets").read_text() == "x\nx\n"
    assert "resets" not in json.dumps(builds.bodies())
    refused = project.runops("chat", *options, "--secret", "WORD", "--reset", "echo tops3cret-word", "-m", "x")
    assert (refused.returncode, "`--reset`: it contains a secret" in refused.stderr) == (2, True), refused.stderr
