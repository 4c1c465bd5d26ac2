"""What a model of a session sees of pages, by the real command (rows 001-18, 001-20); pictures."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.messages import estimates
from runtime.testing import scripted_model
from runtime.testing.scripted_model import AskedFor, text
from tests import site
from tests.builds_rig import Builds, use

pytestmark = pytest.mark.drawn(share=0.5, of="conversations eyes")

PAGE = """<!doctype html><title>Bills</title><h1 class=big>Bills</h1><button class=pay onclick="said.textContent='Paid'">Pay</button><p id=said></p>
<label>Password <input type=password value=hunter2hunter2></label>""" + "".join(
    f"<p data-row={number}>Line {number} of the list of bills of this year</p>" for number in range(150)
)


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """Serves a page with bills."""
    with site.serve() as served:
        served.page("/bills", PAGE)
        yield served


def test_001_18_001_20_a_target_is_tried_awaited_and_used_and_html_is_read_by_range(
    served: site.Site, builds: Builds
) -> None:
    """A build tries a target, clicks by it, waits for what it shows, and reads long HTML on by range; no password is in any request or log."""
    why = "to see"
    pay = "{role: button, name: Pay}"
    steps = [
        use("debug_navigate", tab=None, url="/bills", reason=why),
        use("try_target", tab=None, target="css: .nothing", reason=why),
        use("try_target", tab=None, target=pay, reason=why),
        use("debug_action", tab=None, action="click", ref=pay, value=None, reason=why),
        use("wait_for", tab=None, rule="{text: Paid}", seconds=5, reason=why),
        use("get_html", tab=None, ref=None, depth=None, reason=why),
    ]

    def answer(asked: AskedFor) -> scripted_model.Answer:
        outputs = list(asked.outputs.values())
        if len(outputs) < len(steps):
            return steps[len(outputs)]
        if len(outputs) > len(steps):
            return text("Seen.")
        path = outputs[-1].rpartition("`read_state` ")[2].split()[0]
        return use("read_state", path=path, start=4000, end=5000)

    done = builds.build(answer, "--url", f"{served.origin}/bills", "--effects", "allow")
    assert done.returncode == 1, "the build stops: its model finishes nothing"
    outputs = builds.outputs()
    shown = "\n".join(outputs)
    for wanted in (
        "it finds nothing now",
        'button "Pay" [ref=',
        "it came after",
        '<h1 class="big">Bills</h1>',
        "data-row=",
    ):
        assert wanted in shown, wanted
    assert "data-row" in outputs[-1]
    everything = [str(each) for each in builds.bodies()]
    everything += [each.read_text() for each in (builds.folder / ".runops").rglob("*.jsonl")]
    assert [each for each in everything if "hunter2" in each] == []


def logs_of(builds: Builds) -> dict[str, str]:
    """The logs of all sessions and runs, by id."""
    folder = builds.folder / ".runops" / "conversations"
    return {each.stem: each.read_text() for each in folder.glob("*.jsonl")}


def pictures(body: dict[str, Any]) -> list[bytes]:
    """The pictures in a request; the fake server has checked their form."""
    outputs = [each["output"] for each in body["input"] if each.get("type") == "function_call_output"]
    parts = [part for each in outputs if isinstance(each, list) for part in each if part["type"] == "input_image"]
    return [base64.b64decode(each["image_url"].partition(",")[2]) for each in parts]


def test_001_20_a_model_that_sees_is_shown_the_picture_while_it_is_recent(served: site.Site, builds: Builds) -> None:
    """The picture goes with the output of its call, and is a file; older ones are words with a pointer, and counted while they are sent. What a session resumes with is the same."""
    why = "to see"
    shoot = use("inspect_tab", tab=None, ref=None, instruction=None, screenshot=True, reason=why)
    html = use("get_html", tab=None, ref=None, depth=None, reason=why)
    steps = [
        use("debug_navigate", tab=None, url="/bills", reason=why),
        shoot,
        shoot,
        *[html] * 6,
        text("Seen."),
        text("Seen."),
    ]
    window: dict[str, Any] = {"RUNOPS_WINDOW_RECENT_OUTPUTS": "4000", "RUNOPS_WINDOW_CHECKPOINT_AT": "0"}
    builds.build(steps, "--url", f"{served.origin}/bills", **window)
    bodies = builds.bodies()
    assert [len(pictures(each)) for each in bodies[:4]] == [0, 0, 1, 2]
    assert pictures(bodies[-1]) == [], "the pictures are not recent any more"
    assert any("the picture is left out here" in each for each in builds.outputs())
    (first, *_) = pictures(bodies[2])
    assert first.startswith(b"\x89PNG")
    kept = [each.read_bytes() for each in (builds.folder / ".runops" / "files").rglob("*.png")]
    assert first in kept
    ((session, log),) = [(name, each) for name, each in logs_of(builds).items() if "tool_result" in each]
    assert "iVBORw0" not in log, "the log names the picture and does not hold it"
    found = [json.loads(each) for each in log.splitlines()]
    (one, _other) = [each for each in found if each.get("kind") == "tool_result" and "picture" in each]
    assert one["tokens"] > estimates.of_picture(one["picture"]["width"], one["picture"]["height"]) > 1_000
    page = builds.project.runops("show", session, "--html").stdout
    assert page.count(f'src="data:image/png;base64,{base64.b64encode(first).decode()}"') >= 1
    load = use("debug_navigate", tab=None, url="/bills", reason=why)
    builds.resumes([load, shoot, text("So."), text("So.")], **window)
    assert [len(pictures(each)) for each in builds.bodies()[:3]] == [0, 0, 1]


def test_a_single_action_on_a_page_is_counted_and_stands_with_its_call(served: site.Site, builds: Builds) -> None:
    """`@state/run` lists no single actions; `@state/calls` has the run of each below its call, and not the reading in hand."""
    read = [use("read_state", path=each, start=None, end=None) for each in ("@state/run", "@state/calls")]
    load = use("debug_navigate", tab=None, url="/bills", reason="r")
    builds.build([load, read[0] + read[1], text("So."), text("So.")], "--url", f"{served.origin}/bills")
    runs, calls = builds.outputs()[-2:]
    assert "… (1 single action: `@state/calls`, of delegates and scouts `@state/delegate`)" in runs
    assert "an action of the scout" not in runs
    assert re.search(r"debug_navigate {.*}  ok.*\n    did: `@state/run/\w{26}`\n    gave `@state/line/", calls), calls
    assert "read_state of `@state/run`\n" in calls


def test_001_20_a_model_that_does_not_see_is_told_so(served: site.Site, builds: Builds) -> None:
    """With `model_sees` off, and where the provider's models mostly do not see, no picture is sent; the file is there."""
    steps = [
        use("debug_navigate", tab=None, url="/bills", reason="r"),
        use("inspect_tab", tab=None, ref=None, instruction=None, screenshot=True, reason="r"),
        text("Seen."),
        text("Seen."),
    ]
    builds.build(steps, "--url", f"{served.origin}/bills", RUNOPS_MODEL_SEES="false")
    assert [pictures(each) for each in builds.bodies()] == [[]] * 4
    assert any("you are shown no pictures" in each for each in builds.outputs())
    assert [*(builds.folder / ".runops" / "files").rglob("*.png")]
