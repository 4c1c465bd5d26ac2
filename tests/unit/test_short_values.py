"""A value that the bench read whole and a whole run in part is said to the model: the run may read it too early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from director.editing import unused_values
from director.proving import short_values
from nodes.values import Json
from runtime.language import reader
from tests import build_contexts
from tests.finishes import TEXT, Browsers, finish, installed, opened

pytestmark = pytest.mark.anyio

WHOLE = '{ "month": "2026-09", "recipient": "audit@example. org", "row_limit": 500 }'
PART = WHOLE[:31]
HINT = f"hint: `told` has 31 of the {len(WHOLE)} characters that the bench read: is it read too early (`rest: true` on the action before it)?"


@pytest.fixture
def browsers(monkeypatch: pytest.MonkeyPatch) -> Browsers:
    """The fake browsers that runs open."""
    return installed(monkeypatch)


@pytest.mark.parametrize(
    ("run", "bench", "lists", "found"),
    [
        (PART, WHOLE, False, 31),
        (f"{WHOLE[4:35]}\n", WHOLE, False, 30),
        ("", WHOLE, False, 0),
        (WHOLE, WHOLE, False, None),
        (WHOLE, PART, False, None),
        ("another text", WHOLE, False, None),
        ("1", "12", False, None),
        ([1, 2], [1, 2, 3], True, 2),
        ([1, 2], [1, 2, 3], False, None),
        ([2, 3], [1, 2, 3], True, None),
        (None, WHOLE, True, None),
    ],
)
def test_a_part_of_what_the_bench_read(run: Json, bench: Json, lists: bool, found: int | None) -> None:
    """Only a proper part of a longer text, or the first items of a longer list where lists may be compared, is reported."""
    said = list(short_values.hints({"told": run}, {"told": bench}, lists=lists))
    assert [int(each.split()[3]) for each in said] == ([] if found is None else [found])


def test_only_what_the_output_reads_counts() -> None:
    """Nodes that read are found through those that compute, and others are not."""
    text = TEXT.replace('{status: "{{ told }}"}', '{status: "{{ short }}"}').replace(
        "output:",
        '  - {id: other, type: browser_query, query: text, target: {test_id: other}}\n  - {id: short, type: transform, expr: "{{ told | trim }}"}\noutput:',
    )
    assert unused_values.read_for_output(reader.parse(text, "draft.yaml")) == {"told"}


async def test_a_text_cut_in_a_whole_run_is_a_hint(tmp_path: Path, browsers: Browsers) -> None:
    """`run_draft` says it with the run, and `finish` in front of what it accepts or refuses; a run that reads the whole is told nothing."""
    build = opened(tmp_path, runs=1)
    bench: dict[str, Any] = {"nodes": "open,told", "mode": None, "from": None, "item": None, "reason": "to see"}
    draft: dict[str, Any] = {"inputs": None, "reason": "The whole."}
    browsers.site.texts['test_id="status"'] = WHOLE
    assert (await build_contexts.call(build, "execute_nodes", **bench)).error is None
    assert "hint: `told`" not in (await build_contexts.call(build, "run_draft", **draft)).text
    browsers.site.texts['test_id="status"'] = PART
    assert f"\n{HINT}\n" in (await build_contexts.call(build, "run_draft", **draft)).text
    other = {**draft, "inputs": '{"number": "1002"}'}
    assert "hint: `told`" not in (await build_contexts.call(build, "run_draft", **other)).text
    done = await finish(build)
    assert done.error is None
    assert done.text.startswith(f"{HINT}\naccepted; proved: full")
