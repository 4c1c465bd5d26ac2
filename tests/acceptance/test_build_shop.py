"""Whole builds on the shop, by script: from a sentence to a workflow that runs without a model, and what stands in the way."""

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

pytestmark = pytest.mark.drawn(4, of="build_shop")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One shop of which builds only read."""
    with Shop.start(tmp_path_factory.mktemp("shop"), orders=3, paid=1) as running:
        yield running


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    """A project of its own."""
    made = builds_rig.of(tmp_path)
    yield made
    made.close()


def flags(shop: Shop, effects: str = "allow", runs: int = 1) -> list[str]:
    """What every build here is given."""
    goal = ["--url", f"{shop.url}/login", "--save", "pay.yaml", "-i", "user=admin", "--secret", "SHOP_PASSWORD"]
    return [*goal, "--effects", effects, "--runs", str(runs)]


def logs(folder: Path) -> str:
    """Everything that the conversations of a project hold."""
    kept = folder / ".runops"
    files = [each for each in kept.rglob("*") if each.is_file() and "private" not in each.parts]
    return "\n".join(each.read_bytes().decode("utf-8", "replace") for each in files)


def test_a_sentence_becomes_a_workflow_that_runs_without_a_model(builds: Builds, tmp_path: Path) -> None:
    """It is proved as often as was asked for, saved with its notes, and passes by itself on another shop; its session is shown as any other."""
    with Shop.start(tmp_path, orders=3, paid=1) as shop:
        said = list(paying.script(shop.url))
        done, told = builds.built(said, *flags(shop, runs=2), goal=paying.GOAL, SHOP_PASSWORD=shop.password)
        assert (done.returncode, told["status"], told["proved"]) == (0, "done", "full"), done.stderr
        assert [each["status"] for each in shop.orders()] == ["paid"] * 3
        assert len(shop.ledger("payment")) == 2
    assert told["finish"]["effects"][0]["what"] == "done in 1 of 2 runs"
    assert told["output"] == told["finish"]["output"]
    outputs = [each["output"] for each in told["finish"]["runs"]]
    assert len(outputs) == 2
    assert len(outputs[0]) == 2
    assert f"  gives    {json.dumps(outputs[0], ensure_ascii=False)} (run 1)" in done.stderr.splitlines()
    assert "  run      runops run pay.yaml --frozen -i user=admin" in done.stderr.splitlines()
    assert (tmp_path / "pay.build.md").read_text().count("passed in") == 2
    for text in ((tmp_path / "pay.yaml").read_text(), done.stdout, done.stderr, logs(tmp_path)):
        assert shop.password not in text
    again, same = builds.goes_on([], SHOP_PASSWORD=shop.password)
    assert (again.returncode, same["file"], builds.asked) == (0, told["file"], [])
    project = builds.project
    listed = json.loads(project.runops("runs", "--sessions", "--json").stdout)["sessions"]
    assert [(each["purpose"], each["mode"], each["begins"]) for each in listed] == [("build", "agent", paying.GOAL)]
    shown = project.runops("show", told["session"]).stdout
    assert "  ended  done, proved: full\n" in shown
    assert f"  run    runops run {told['file']} --frozen -i user=admin\n" in shown
    asked = project.runops("query", "SELECT about FROM sessions", "--json").stdout
    assert paying.GOAL in asked
    assert "  again  " not in shown, "one that is done looks otherwise than one that was interrupted"
    assert "kept     bench" not in shown, "what nodes yielded stands with the call that ran them"
    built = json.loads(project.runops("show", told["session"], "--json").stdout)["build"]
    assert (built["finish"]["proved"], built["goal"]["goal"]) == ("full", paying.GOAL)
    window = json.loads(project.runops("show", told["session"], "--window", "--json").stdout)
    assert {each["name"]: each["tokens"] for each in window["sections"]}["tools"] > 2000
    (tmp_path / "fresh").mkdir()
    with Shop.start(tmp_path / "fresh", orders=4, paid=1) as shop:
        project.environment["SHOP_PASSWORD"] = shop.password
        done = project.runops("run", "pay.yaml", "--frozen", "-i", "user=admin", "-i", f"base_url={shop.url}")
        assert done.returncode == 0, done.stderr
        assert [each["status"] for each in shop.orders()] == ["paid"] * 4


def test_done_too_early_is_refused_with_all_that_is_missing(builds: Builds, shop: Shop) -> None:
    """The model is told, and continues; what is held is no failure, and the file says so."""

    def said(asked: scripted_model.AskedFor) -> scripted_model.Answer:
        return said_in_turn[asked.number - 1]

    *begin, middle, _end = paying.script(shop.url)
    said_in_turn = [begin[1], finish(), begin[2], middle, finish()]
    done, told = builds.built(said, *flags(shop, "hold"), SHOP_PASSWORD=shop.password)
    assert (done.returncode, told["status"]) == (0, "done"), done.stderr
    early = builds.outputs(2)[-1]
    assert early.startswith("not done; missing:")
    assert "`output`" in early
    assert told["proved"].startswith("up to paying[#100]/pay (held")
    assert [each["what"] for each in told["finish"]["effects"]] == ["held: ready, not done in 1 of 1 run"]
    assert shop.ledger("payment") == []
    assert "(held: ready, not done)" in (builds.folder / "pay.yaml").read_text()
    proof = builds.folder / ".runops" / "conversations" / f"{told['finish']['runs'][0]['run']}.jsonl"
    before = proof.read_bytes()
    for refused in ("decide", proof.stem, "done"), ("answer", proof.stem, "x=1"):
        said_so = builds.project.runops(*refused)
        assert (said_so.returncode, "before an action that was held" in said_so.stderr) == (2, True), said_so.stderr
    assert "no answer continues with this run" in builds.project.runops("show", proof.stem).stdout
    assert proof.read_bytes() == before
    assert builds.project.runops("resume", proof.stem).returncode == 4
    assert shop.ledger("payment") == []


def test_a_site_that_changes_in_the_middle_is_told_and_gone_on_from(builds: Builds, shop: Shop) -> None:
    """Signed out behind its back, a node fails with what the page shows then; from a fresh browser the same passes, and the build ends well."""
    go = '- {id: again, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders", verify: [{url: "**/orders"}], timeout: 3}'

    def said(asked: scripted_model.AskedFor) -> scripted_model.Answer:
        match asked.number:
            case 1:
                return list(paying.script(shop.url))[1]
            case 2:
                shop.switch("logout", path="/orders")
                return use("create_nodes", yaml=go, after=None, dry_run=None, reason="on") + execute("again")
            case 3:
                head = use("update_node", id="workflow", yaml='output: "{{ again }}"', reason="the wish")
                return head + use(
                    "execute_nodes", nodes="all", mode=None, item=None, reason="signed out", **{"from": "fresh"}
                )
            case _:
                return finish()

    done, told = builds.built(said, *flags(shop), SHOP_PASSWORD=shop.password)
    assert (done.returncode, told["status"]) == (0, "done"), done.stderr
    failed = builds.outputs(2)[-1]
    assert "Sign in" in failed
    assert "/login" in failed


def test_a_build_that_gets_nowhere_leaves_its_draft(builds: Builds, shop: Shop) -> None:
    """The same call three times ends it with 1 and the reason; what there is stands in a file that says what it is."""
    sign_in = list(paying.script(shop.url))[1]
    wrong = use("get_node_type", type="nothing")
    done, told = builds.built([sign_in, wrong, wrong, wrong], *flags(shop), SHOP_PASSWORD=shop.password)
    assert (done.returncode, told["status"], told["error"]["code"]) == (1, "failed", "agent-stuck"), done.stderr
    assert f"runops build --resume {told['session']}" in done.stderr
    assert "NOT FINISHED" in Path(told["error"]["evidence"]["draft"]).read_text()


def test_an_action_that_ctrl_c_broke_off_is_told_and_not_done_again(builds: Builds, tmp_path: Path) -> None:
    """The shop was paid, and its answer did not come: whoever continues is told that it may have happened, and it happened once."""
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
        assert len(shop.ledger("payment")) == 1
        shop.clear()
        last = finish(unproved="pay and output: the order was paid before")
        done, told = builds.goes_on([last], SHOP_PASSWORD=shop.password)
        assert (done.returncode, told["status"]) == (0, "done"), done.stderr
        assert len(shop.ledger("payment")) == 1
    assert "paying[#1001]/pay: open: it may have happened" in builds.outputs(0)[-1]


def test_a_build_that_goes_on_ends_the_browser_that_a_killed_one_left(builds: Builds, tmp_path: Path) -> None:
    """A run of the draft is begun anew, whatever the one did that died with the build: nobody continues in its browser."""

    def browsers() -> list[object]:
        active = json.loads(builds.project.runops("ps", "--json").stdout)["alive"]
        return [each["browser"] for each in active if each["browser"] is not None]

    go = '- {id: there, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}'
    with Shop.start(tmp_path, orders=1, paid=0) as shop:
        shop.switch("hold", path="/orders")
        goal = ("--url", shop.url, "--save", "go.yaml")
        project = builds.answers(
            use("create_nodes", yaml=go, after=None, dry_run=None, reason="on")
            + use("run_draft", inputs=None, reason="to see")
        )
        with project.start("build", "Go there", *goal) as process:
            assert shop.wait("held")
            process.kill()
            process.communicate(timeout=60)
        assert len(browsers()) == 1
        shop.clear()
        done, _told = builds.goes_on([finish(done=False)])
    assert (done.returncode, browsers()) == (1, []), done.stderr
