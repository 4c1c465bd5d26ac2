"""Model answers that a resumed run may reuse: only those to an identical request."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

import pytest

from nodes.errors import UsageError
from runtime.runs import start
from runtime.system import crash_points
from runtime.system.crash_points import CrashPoint
from runtime.testing import responses, scripted_model
from runtime.workspace import host
from tests import models
from tests.rig import Killed, Rig

ASK = """
version: 1
name: Ask
nodes:
  - id: kind
    type: cognition
    instruction: Answer.
    input: "{INPUT}"
    output: string
    timeout: 20
output: "{{ kind }}"
"""


def reply(text: object) -> scripted_model.Answer:
    """An answer with this value."""
    return scripted_model.text({"value": text})


@contextlib.contextmanager
def dying_at(point: CrashPoint) -> Generator[None]:
    """The process dies when it first reaches the point."""

    def hook(name: CrashPoint) -> None:
        if name == point:
            crash_points.hook = None
            raise Killed

    crash_points.hook = hook
    try:
        with pytest.raises(Killed):
            yield
    finally:
        crash_points.hook = None


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Open at 2026-11-22T23:30?", "Open at 2026-11-22T10:30?"),
        ("cancel 0b7a1c1e-0000-4000-8000-00000000000a", "cancel 0b7a1c1e-0000-4000-8000-00000000000b"),
        ("order 1001", "order 1002"),
    ],
)
async def test_an_answer_is_reused_only_for_the_same_request(
    before: str, now: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resume with another input asks again, even where a cassette would treat the inputs as equal."""
    with responses.serve([reply("first"), reply("second")], strict=True) as server:
        rig = Rig(tmp_path, ASK.replace("{INPUT}", before), settings=models.asked_at(server, monkeypatch))
        with dying_at(CrashPoint.EXCHANGE_SYNCED):
            await rig.start()
        rig.die()
        ended = await rig.resume_changed(ASK.replace("{INPUT}", now))
        assert (ended.output, len(server.asked)) == ("second", 2)


async def test_a_masked_answer_is_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the logged answer masks a secret, a resume asks the model again."""
    echo = reply("your code is hunter2hunter2")
    with responses.serve([echo, echo], strict=True) as server:
        text = ASK.replace("{INPUT}", "x").replace("nodes:", "secrets: [TOKEN]\nnodes:", 1)
        chosen = models.asked_at(server, monkeypatch)
        rig = Rig(tmp_path, text, settings=chosen, secrets={"TOKEN": "hunter2hunter2"})
        with dying_at(CrashPoint.EXCHANGE_SYNCED):
            await rig.start()
        rig.die()
        await rig.resume()
        assert len(server.asked) == 2
    last = rig.history.attempts["kind"][-1]
    assert last.result is not None
    assert last.result.masked


async def test_answers_before_a_refused_request_are_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that failed on a later request asks only for the missing answer."""
    bad = scripted_model.server_error(400, "no such thing")
    with responses.serve([reply(1), bad, reply("good")]) as server:
        rig = Rig(tmp_path, ASK.replace("{INPUT}", "x"), settings=models.asked_at(server, monkeypatch))
        assert (await rig.start()).exit == 1
        assert ((await rig.resume()).output, len(server.asked)) == ("good", 3)


async def test_answers_that_never_matched_are_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step whose answers stayed invalid begins from the first request, since the same answers would fail again."""
    with responses.serve([reply(1), reply(2), reply(3), reply("good")], strict=True) as server:
        rig = Rig(tmp_path, ASK.replace("{INPUT}", "x"), settings=models.asked_at(server, monkeypatch))
        assert (await rig.start()).exit == 1
        assert (await rig.resume()).output == "good"
        assert len(server.asked[3].body["input"]) == 1


async def test_a_response_that_cannot_be_fetched_yet_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a gateway refuses the fetch after a crash, the run fails, the response is not cancelled, and the next resume has it."""
    slow = reply("one").in_background(polls=1, faults=[scripted_model.server_error(403, "not through here")])
    with responses.serve([slow, reply("two")]) as server:
        chosen = models.asked_at(server, monkeypatch, model_background=True)
        rig = Rig(tmp_path, ASK.replace("{INPUT}", "x"), settings=chosen)
        with dying_at(CrashPoint.SUBMISSION_SYNCED):
            await rig.start()
        rig.die()
        assert (await rig.resume()).exit == 3
        assert (await rig.resume()).output == "one"
        assert len(server.asked) == 1
        assert not [each for each in server.requests if each.path.endswith("/cancel")]
    assert [(row.status, row.usage is not None) for row in rig.history.ledger.rows] == [("ok", True)]


async def test_time_that_a_dead_process_waited_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without a result counts its wait until the resume, at most its timeout."""
    with responses.serve([reply("x"), reply("y")]) as server:
        rig = Rig(
            tmp_path, ASK.replace("{INPUT}", "x"), settings=models.asked_at(server, monkeypatch, model_timeout=0.05)
        )
        with dying_at(CrashPoint.ANSWER_CAME):
            await rig.start()
        rig.die()
        (row,) = rig.history.ledger.rows
        assert row.seconds == 0
        await rig.resume()
    first, *_more = rig.history.ledger.rows
    assert (first.status, 0 < first.seconds <= 0.05) == ("open", True)


async def test_token_calibration_survives_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash estimates still include what the server counted above them."""
    with responses.serve([reply(1), reply("x"), reply("x")], tokens=lambda text: 50 + len(text)) as server:
        long = "a word " * 400
        rig = Rig(tmp_path, ASK.replace("{INPUT}", long), settings=models.asked_at(server, monkeypatch))
        with dying_at(CrashPoint.EXCHANGE_SYNCED):
            await rig.start()
        rig.die()
        await rig.resume()
    first, second = rig.history.ledger.rows
    assert first.usage is not None
    assert second.estimate > second.raw
    assert second.estimate >= first.usage.input


async def test_a_run_is_recorded_from_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording a run that already has answers is refused before any request, since its cassette would be incomplete."""
    file = tmp_path / "ask.yaml"
    file.write_text(ASK.replace("{INPUT}", "x"), encoding="utf-8")
    with responses.serve([reply(1), scripted_model.quota(), reply("good")]) as server:
        chosen = models.asked_at(server, monkeypatch, home=tmp_path / ".runops")
        ended = await start.start(file, {}, host.of_command(chosen))
        assert ended.exit == 1
        with pytest.raises(UsageError) as refused:
            await start.resume_run(ended.run, host.of_command(chosen.model_copy(update={"model_calls": "record"})))
        assert (refused.value.code, len(server.asked)) == ("cassette-incomplete", 2)
        assert (await start.resume_run(ended.run, host.of_command(chosen))).output == "good"


async def test_a_slow_model_is_reported_as_model_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout of the attempt ends the request too, and the fix does not mention a page."""
    with responses.serve([scripted_model.hang()]) as server:
        text = ASK.replace("{INPUT}", "x").replace("timeout: 20", "timeout: 0.3")
        ended = await Rig(tmp_path, text, settings=models.asked_at(server, monkeypatch)).start()
    assert ended.error is not None
    assert ended.error["code"] == "model-timeout"
    assert "page" not in ended.error["fix"]
