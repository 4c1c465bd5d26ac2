"""Whole builds on the demo shop by scripted models: from a goal to a workflow that runs without a model, and the obstacles between."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.testing import scripted_model
from tests import builds_rig, paying
from tests.builds_rig import Builds, use
from tests.paying import execute, finish
from tests.shop_process import Shop

pytestmark = pytest.mark.drawn(1, of="build_shop")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One shop that builds only read."""
    with Shop.start(tmp_path_factory.mktemp("shop"), orders=3, paid=1) as running:
        yield running


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    """A project with its own builds."""
    made = builds_rig.of(tmp_path)
    yield made
    made.close()


def flags(shop: Shop, effects: str = "allow", runs: int = 1) -> list[str]:
    """The options that every build here gets."""
    goal = ["--url", f"{shop.url}/login", "--save", "pay.yaml", "-i", "user=admin", "--secret", "SHOP_PASSWORD"]
    return [*goal, "--effects", effects, "--runs", str(runs)]


def logs(folder: Path) -> str:
    """The text of all conversation files of a project."""
    kept = folder / ".runops"
    files = [each for each in kept.rglob("*") if each.is_file() and "private" not in each.parts]
    return "\n".join(each.read_bytes().decode("utf-8", "replace") for each in files)


def test_a_sentence_becomes_a_workflow_that_runs_without_a_model(builds: Builds, tmp_path: Path) -> None:
    """A build proves as many runs as requested, saves the workflow with its notes, and lists its session. The workflow passes on another shop."""
    with Shop.start(tmp_path, orders=3, paid=1) as shop:
        said = list(paying.script(shop.url))
        done, result = builds.built(said, *flags(shop, runs=2), goal=paying.GOAL, SHOP_PASSWORD=shop.password)
        assert (done.returncode, result["status"], result["proved"]) == (0, "done", "full"), done.stderr
        assert [each["status"] for each in shop.orders()] == ["paid"] * 3
        assert len(shop.ledger("payment")) == 2
    assert result["finish"]["effects"][0]["what"] == "done in 1 of 2 runs"
    assert result["output"] == result["finish"]["output"]
    outputs = [each["output"] for each in result["finish"]["runs"]]
    assert len(outputs) == 2
    assert len(outputs[0]) == 2
    assert f"  gives    {json.dumps(outputs[0], ensure_ascii=False)} (run 1)" in done.stderr.splitlines()
    assert "  run      runops run pay.yaml --frozen -i user=admin" in done.stderr.splitlines()
    assert (tmp_path / "pay.build.md").read_text().count("passed in") == 2
    for text in ((tmp_path / "pay.yaml").read_text(), done.stdout, done.stderr, logs(tmp_path)):
        assert shop.password not in text
    again, same = builds.resumes([], SHOP_PASSWORD=shop.password)
    assert (again.returncode, same["file"], builds.asked) == (0, result["file"], [])
    project = builds.project
    listed = json.loads(project.runops("runs", "--sessions", "--json").stdout)["sessions"]
    assert [(each["purpose"], each["mode"], each["begins"]) for each in listed] == [("build", "agent", paying.GOAL)]
    shown = project.runops("show", result["session"]).stdout
    assert "  ended  done, proved: full\n" in shown
    assert f"  run    runops run {result['file']} --frozen -i user=admin\n" in shown
    asked = project.runops("query", "SELECT about FROM sessions", "--json").stdout
    assert paying.GOAL in asked
    assert "  again  " not in shown, "one that is done looks otherwise than one that was interrupted"
    assert "kept     bench" not in shown, "what nodes yielded stands with the call that ran them"
    built = json.loads(project.runops("show", result["session"], "--json").stdout)["build"]
    assert (built["finish"]["proved"], built["goal"]["goal"]) == ("full", paying.GOAL)
    window = json.loads(project.runops("show", result["session"], "--window", "--json").stdout)
    assert {each["name"]: each["tokens"] for each in window["sections"]}["tools"] > 2000
    (tmp_path / "fresh").mkdir()
    with Shop.start(tmp_path / "fresh", orders=4, paid=1) as shop:
        project.environment["SHOP_PASSWORD"] = shop.password
        done = project.runops("run", "pay.yaml", "--frozen", "-i", "user=admin", "-i", f"base_url={shop.url}")
        assert done.returncode == 0, done.stderr
        assert [each["status"] for each in shop.orders()] == ["paid"] * 4


def test_done_too_early_is_refused_with_all_that_is_missing(builds: Builds, shop: Shop) -> None:
    """A premature `finish` lists what is missing, and the build continues. A withheld action is no failure, and the file records it."""

    def said(asked: scripted_model.AskedFor) -> scripted_model.Answer:
        return said_in_turn[asked.number - 1]

    *begin, middle, _end = paying.script(shop.url)
    said_in_turn = [begin[1], finish(), begin[2], middle, finish()]
    done, result = builds.built(said, *flags(shop, "hold"), SHOP_PASSWORD=shop.password)
    assert (done.returncode, result["status"]) == (0, "done"), done.stderr
    early = builds.outputs(2)[-1]
    assert early.startswith("not done; missing:")
    assert "`output`" in early
    assert result["proved"].startswith("up to paying[#100]/pay (held")
    assert [each["what"] for each in result["finish"]["effects"]] == ["held: ready, not done in 1 of 1 run"]
    assert shop.ledger("payment") == []
    assert "(held: ready, not done)" in (builds.folder / "pay.yaml").read_text()
    proof = builds.folder / ".runops" / "conversations" / f"{result['finish']['runs'][0]['run']}.jsonl"
    before = proof.read_bytes()
    for refused in ("decide", proof.stem, "done"), ("answer", proof.stem, "x=1"):
        said_so = builds.project.runops(*refused)
        assert (said_so.returncode, "before an action that was held" in said_so.stderr) == (2, True), said_so.stderr
    assert "no answer continues with this run" in builds.project.runops("show", proof.stem).stdout
    assert proof.read_bytes() == before
    assert builds.project.runops("resume", proof.stem).returncode == 4
    assert shop.ledger("payment") == []


def test_a_site_that_changes_during_a_build_is_reported_and_the_build_continues(builds: Builds, shop: Shop) -> None:
    """A node fails with the new page when the shop signs the user out. It passes from a fresh browser, and the build succeeds."""
    go = '- {id: again, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders", verify: [{url: "**/orders"}], timeout: 3}'

    def said(asked: scripted_model.AskedFor) -> scripted_model.Answer:
        match asked.number:
            case 1:
                return list(paying.script(shop.url))[1]
            case 2:
                shop.switch("logout", path="/orders")
                return use("create_nodes", yaml=go, after=None, dry_run=None, reason="on") + execute("again")
            case 3:
                head = use("update_node", id="workflow", yaml='output: "{{ again }}"', reason="the goal")
                return head + use(
                    "execute_nodes", nodes="all", mode=None, item=None, reason="signed out", **{"from": "fresh"}
                )
            case _:
                return finish()

    done, result = builds.built(said, *flags(shop), SHOP_PASSWORD=shop.password)
    assert (done.returncode, result["status"]) == (0, "done"), done.stderr
    failed = builds.outputs(2)[-1]
    assert "Sign in" in failed
    assert "/login" in failed


def test_a_build_without_progress_leaves_its_draft(builds: Builds, shop: Shop) -> None:
    """The same call three times ends the build with 1 and the reason. The draft is saved to a file marked as unfinished."""
    sign_in = list(paying.script(shop.url))[1]
    wrong = use("get_node_type", type="nothing")
    done, result = builds.built([sign_in, wrong, wrong, wrong], *flags(shop), SHOP_PASSWORD=shop.password)
    assert (done.returncode, result["status"], result["error"]["code"]) == (1, "failed", "agent-stuck"), done.stderr
    assert f"runops build --resume {result['session']}" in done.stderr
    assert "NOT FINISHED" in Path(result["error"]["evidence"]["draft"]).read_text()


def test_an_action_that_ctrl_c_interrupted_is_reported_and_not_repeated(builds: Builds, tmp_path: Path) -> None:
    """After Ctrl-C during an unanswered payment, the person and the resumed build learn that it may have happened. The shop is paid once."""
    with Shop.start(tmp_path, orders=1, paid=0) as shop:
        shop.switch("hold", path="/orders/.*/pay", method="POST", moment="after")
        _look, sign_in, orders, paying_it, _end = paying.script(shop.url)
        first = scripted_model.Answer((*paying_it.parts[:2],)) + execute("paying")
        project = builds.answers(sign_in, orders, first, SHOP_PASSWORD=shop.password)
        with project.start("build", paying.GOAL, *flags(shop), "--json") as process:
            assert shop.wait("held")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, json.loads(out)["status"]) == (130, "interrupted"), err
        assert "  left  paying[#1001]/pay: click button" in err
        assert "done once: execute_nodes; 1 may not have happened" in err
        assert len(shop.ledger("payment")) == 1
        shop.clear()
        last = finish(unproved="pay and output: the order was paid before")
        done, result = builds.resumes([last], SHOP_PASSWORD=shop.password)
        assert (done.returncode, result["status"]) == (0, "done"), done.stderr
        assert len(shop.ledger("payment")) == 1
    assert "paying[#1001]/pay: open: it may have happened" in builds.outputs(0)[-1]


def test_a_resumed_build_closes_the_browser_that_a_killed_one_left(builds: Builds, tmp_path: Path) -> None:
    """A resumed build closes the browser that a killed build left: its proof starts from the beginning."""

    def browsers() -> list[object]:
        active = json.loads(builds.project.runops("ps", "--json").stdout)["alive"]
        return [each["browser"] for each in active if each["browser"] is not None]

    go = '- {id: there, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}'
    with Shop.start(tmp_path, orders=1, paid=0) as shop:
        shop.switch("hold", path="/orders")
        goal = ("--url", shop.url, "--save", "go.yaml")
        project = builds.answers(
            use("create_nodes", yaml=go, after=None, dry_run=None, reason="on")
            + finish(unproved="output: none is wanted")
        )
        with project.start("build", "Go there", *goal) as process:
            assert shop.wait("held")
            process.kill()
            process.communicate(timeout=60)
        assert len(browsers()) == 1
        shop.clear()
        done, _result = builds.resumes([finish(done=False)])
    assert (done.returncode, browsers()) == (1, []), done.stderr
