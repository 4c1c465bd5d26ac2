"""What a model of a session sees of pages, by the real command (rows 001-18, 001-20)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.testing.scripted_model import text
from tests import site
from tests.builds_rig import Builds, use

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
    done = builds.build(
        [
            use("debug_navigate", tab=None, url="/bills", reason=why),
            use("try_target", tab=None, target="css: .nothing", reason=why)
            + use("try_target", tab=None, target=pay, reason=why),
            use("debug_action", tab=None, action="click", ref=pay, value=None, reason=why),
            use("wait_for", tab=None, rule="{text: Paid}", seconds=5, reason=why),
            use("get_html", tab=None, ref=None, depth=None, reason=why),
            lambda asked: use(
                "read_state",
                path=next(iter(reversed(asked.outputs.values()))).rpartition("`read_state` ")[2].split()[0],
                start=4000,
                end=5000,
            ),
            text("Seen."),
            text("Seen."),
        ],
        "--url",
        f"{served.origin}/bills",
        "--effects",
        "allow",
    )
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
