"""A run is told in a short text wherever its log ends: its state and its newest steps. Reading writes nothing, and page text is fenced."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from director.subjects import run_report, runs
from nodes.errors import SiteError, UsageError
from nodes.values import Json
from runtime.display.text import duration, when
from runtime.language import reader
from runtime.log import entries as log_entries
from runtime.log import history
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.observation import page_text
from runtime.report import markdown, page, text
from runtime.report.page.content import moment
from runtime.runs import run
from runtime.secrets import hidden_names, masking
from runtime.testing import memory_store
from runtime.workspace import run_index
from tests.fakes import FakePage
from tests.now import now
from tests.rig import Killed, Rig
from tests.unit.test_subjects import rig_of

LONGEST = run_report.STEPS * 500 + run_report.ERROR + run_report.OUTPUT + 1_000
"""No telling is longer, in characters: a path of a test has at most 100."""


def check(subject: runs.RunSubject) -> None:
    """Check that the telling is bounded, says the run's state, and has only our own words outside of the fence."""
    telling = run_report.telling(subject.now)
    assert telling.upto == subject.now.past.last_seq
    assert len(telling.text) <= LONGEST
    head, *rest = telling.text.split("\n")
    assert head.startswith(f"run {subject.run} of ")
    assert f": {subject.now.report.state}" in head
    fences = [rest.index(each) for each in (page_text.BEGIN, page_text.END) if each in rest]
    ours = rest[: fences[0]] + rest[fences[1] + 1 :] if fences else rest
    assert all(line.startswith(("next: ", "fix: ", "more: ")) for line in ours)
    assert rest.count(page_text.BEGIN) == rest.count(page_text.END) <= 1


@pytest.fixture(scope="module")
def rigs(tmp_path_factory: pytest.TempPathFactory) -> list[Rig]:
    """Three runs: one failed, resumed and failed again; one killed at its second payment and resumed; one passed."""
    return asyncio.run(_lived(tmp_path_factory))


async def _lived(tmp_path_factory: pytest.TempPathFactory) -> list[Rig]:
    failed = rig_of(tmp_path_factory.mktemp("failed"))
    await failed.start()
    failed.die()
    await failed.resume()
    failed.die()

    killed = rig_of(tmp_path_factory.mktemp("killed"), missing="")
    actions: list[str] = []

    async def kill(target: str, _page: FakePage) -> None:
        actions.append(target)
        if len(actions) == 2:
            raise Killed

    killed.site.before_click = kill
    with pytest.raises(Killed):
        await killed.start()
    killed.die()
    await killed.resume()
    killed.die()

    passed = rig_of(tmp_path_factory.mktemp("passed"), missing="")
    assert (await passed.start()).status == "passed"
    passed.die()
    return [failed, killed, passed]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_log_cut_anywhere_is_told(rigs: list[Rig], data: st.DataObject) -> None:
    """A log cut at any byte gives a telling, and stays unchanged."""
    rig = data.draw(st.sampled_from(rigs))
    whole = (rig.home / "conversations" / f"{rig.id}.jsonl").read_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    other = log_store.new_id()
    file = rig.home / "conversations" / f"{other}.jsonl"
    file.write_bytes(cut)
    try:
        if b"\n" not in cut:
            with pytest.raises(UsageError):
                runs.RunSubject(rig.reader, other)
            return
        subject = runs.RunSubject(rig.reader, other)
        check(subject)
        assert all([subject.title, subject.summary(), subject.outline(), subject.browser_state(), subject.directive()])
        assert subject.variables()
        assert file.read_bytes() == cut
        assert not rig.reader.read(other).owned
    finally:
        file.unlink()


def test_a_death_and_each_resume_are_told_with_the_time_that_the_run_took(rigs: list[Rig]) -> None:
    """A run tells when it was resumed and after what, in a session and on a terminal; its time is that of its processes."""
    expected = [
        ("it had failed", ["failed", "failed"]),
        ("its process had ended (last entry ", [None, "paused"]),
        (None, ["passed"]),
    ]
    for rig, (after, statuses) in zip(rigs, expected, strict=True):
        view = runs.RunSubject(rig.reader, rig.id).now
        report = view.report
        told = [*run_report.whole(view, hidden_names.DEFAULT)]
        texts = ["\n".join(told), run_report.listed(view, hidden_names.DEFAULT)]
        texts += ["\n".join(text.whole(report, text.Style())), markdown.of_run(report), page.of_run(report, {})]
        for each in texts:
            assert each.count("  resumed, after ") == (after is not None)
            assert f"  resumed, after {after}" in each or after is None
            assert f"took {duration(report.seconds)}" in each
        assert [each.status for each in report.processes] == statuses
        assert all(each.started <= each.last for each in report.processes)
        assert 0 <= report.seconds < 60


PAYS = """\
version: 1
name: Pays
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - {id: pay, type: browser_action, action: click, target: {css: pay}}
"""


async def test_a_pause_and_the_decision_are_told_with_their_times(tmp_path: Path) -> None:
    """The cause of a pause and a person's decision stand in the report of the run and of the step, also after it has passed."""
    rig = Rig(tmp_path, PAYS)

    async def lose(_target: str, _page: FakePage) -> None:
        rig.site.before_click = None
        raise SiteError("answer-lost", "the site did not answer", phase="after")

    rig.site.before_click = lose
    assert (await rig.start()).status == "paused"
    rig.die()
    await run_index.decide(rig.keeper, rig.id, "not-done")
    assert (await rig.resume()).status == "passed"
    rig.die()
    view = runs.RunSubject(rig.reader, rig.id).now
    (pause,) = view.report.pauses
    assert pause.replied is not None
    paused = f"paused at pay: {pause.code}: "
    decided = "  a person decided: not-done"
    of_step = view.step_report("pay")
    texts = ["\n".join(text.whole(view.report, text.Style())), "\n".join(text.step(of_step, text.Style()))]
    for each in (*texts, markdown.of_run(view.report)):
        assert each.index(f"{when(pause.at)}  {paused}") < each.index(f"{when(pause.replied)}{decided}")
    html = page.of_run(view.report, {})
    assert html.index(f"{moment(pause.at)}  {paused}") < html.index(f"{moment(pause.replied)}{decided}")
    whole = "\n".join(run_report.whole(view, hidden_names.DEFAULT))
    step = "\n".join(run_report.of_step(view, "pay", hidden_names.DEFAULT))
    for each in (whole, step):
        assert each.index(f"{pause.at[:19].replace('T', ' ')}  {paused}") < each.index(decided)
    assert whole.index(decided) < whole.index("  resumed, after it had paused")
    assert view.step_report("open").pauses == []


TEXTS = st.text(max_size=30) | st.sampled_from(
    ["[page]", "[end of page]", "x" * 5000, "\u2028", "\x00", "@state/run/line/1"]
)
VALUES = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6)  # fmt: skip
STEPS = st.fixed_dictionaries(
    {
        "path": st.sampled_from(["a", "a", "g/b", "each[#1%2F2]/pay", "x" * 70, "each[#名]/p"]),
        "node": st.sampled_from(["browser_action", "transform", "acme.captcha", "n" * 90, "ü.ö"]),
        "action": st.none() | st.just("click"),
        "args": VALUES,
        "thread": st.sampled_from([log_entries.RUN_THREAD, log_entries.RUN_THREAD, "confirm:c2", "model:c2"]),
        "outcome": st.none() | st.sampled_from(["ok", "error", "recovered", "interrupted", "skipped"]),
        "value": VALUES,
    }
)


@settings(max_examples=40)
@given(st.lists(STEPS, max_size=8))
def test_any_steps_and_values_are_told(steps: list[dict[str, Json]]) -> None:
    """A run with steps of any type, path, arguments and values is told within its length, and with its page text fenced."""
    with tempfile.TemporaryDirectory() as folder:
        store = memory_store.MemoryStore(Path(folder))
        writer = LogWriter(now(store.create("r")), history.History(), masking.Masker({}), store.reader)
        run.write_header(writer, reader.parse("version: 1\nnodes: [{id: one, type: transform, expr: 1}]", "x.yaml"), {})
        for number, step in enumerate(steps, 1):
            call = log_entries.Call(
                path=step["path"], node=step["node"], action=step["action"], attempt=number, effect="read",
                args=step["args"], fingerprint="f", thread=step["thread"],
            )  # fmt: skip
            call = writer.call(call)
            error = {
                "code": "x",
                "who": "site",
                "phase": "after",
                "message": "m",
                "evidence": {"v": step["value"]},
                "fix": "n",
            }
            if step["outcome"] is not None:
                failed = step["outcome"] == "error"
                writer.result(
                    call, step["outcome"], value=None if failed else step["value"], error=error if failed else None
                )
        subject = runs.RunSubject(store.reader, "r")
        check(subject)


def test_a_long_run_is_told_by_its_newest_steps(tmp_path: Path) -> None:
    """Of many steps only the newest are told, with the number of those left out."""
    store = memory_store.MemoryStore(tmp_path)
    writer = LogWriter(now(store.create("r")), history.History(), masking.Masker({}), store.reader)
    run.write_header(writer, reader.parse("version: 1\nnodes: [{id: one, type: transform, expr: 1}]", "x.yaml"), {})
    for number in range(500):
        call = log_entries.Call(path=f"s{number}", node="transform", attempt=1, effect="read", fingerprint="f")
        writer.result(writer.call(call), "ok", value=number)
    subject = runs.RunSubject(store.reader, "r")
    check(subject)
    told = run_report.telling(subject.now).text
    assert f"… ({500 - run_report.STEPS} earlier steps)\ns{500 - run_report.STEPS}  transform" in told
    assert "\ns499  transform  ok = 499\n" in told
