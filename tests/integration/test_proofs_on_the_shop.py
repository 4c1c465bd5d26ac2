"""Builds finished on a real shop in real browsers: the shop's ledger agrees with the reported proof."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from director.draft import draft, output_files
from director.proving import tools
from director.tools.build_context import BuildContext
from nodes.values import Json
from runtime.models.turns import turn
from runtime.runs import start
from runtime.settings import settings
from runtime.workspace import host
from tests import build_contexts, shop_flows
from tests.shop_process import Shop

pytestmark = [pytest.mark.anyio, pytest.mark.drawn(share=0.34, of="proofs on the shop")]

INPUTS = 'base_url: {{type: string, default: "{url}"}}, number: {{type: string, default: "{number}"}}'

PAY = """
  - {{id: order, type: browser_action, action: goto, url: "{{{{ inputs.base_url }}}}/orders/{{{{ inputs.number }}}}"}}
  - {{id: before, type: browser_query, query: text, target: {{test_id: status}}}}
  - id: pay
    type: browser_action
    action: click
    {when}target: {{role: button, name: Pay}}
    timeout: 6
    verify: [{{text: paid, target: {{test_id: status}}}}]
  - {{id: after, type: browser_query, query: text, target: {{test_id: status}}}}
output: {{status: "{{{{ after }}}}"}}
"""

ARGUMENTS: dict[str, Json] = {"done": True, "summary": "Pays an order.", "unproved": None, "reason": "It is ready."}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop with five unpaid orders."""
    with Shop.start(tmp_path_factory.mktemp("shop"), orders=5, paid=0) as build:
        yield build


def opened(folder: Path, site: Shop, number: str, *, guarded: bool, **more: Any) -> BuildContext:
    """A build context whose draft pays that order; ``guarded``: unless it is paid."""
    head = shop_flows.sign_in("Pay an order", INPUTS.format(url=site.url, number=number))
    when = "when: \"{{ before != 'paid' }}\"\n    " if guarded else ""
    known = {"SHOP_PASSWORD": site.password}
    return build_contexts.opened(folder, site.url, head + PAY.format(when=when), known=known, **more)


async def finished(build: BuildContext) -> turn.Outcome:
    """The outcome of ``finish``."""
    try:
        return await build_contexts.call(build, "finish", tools.toolsets(build), **ARGUMENTS)
    finally:
        await build.close()


async def test_a_proved_effect_was_done_once(tmp_path: Path, site: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two proof runs pay the order once, and outcome and notes say so. The saved file runs without a model."""
    build = opened(tmp_path, site, "1001", guarded=True)
    outcome = await finished(build)
    value: Any = outcome.value
    assert (outcome.error, value["proved"], value["output"]) == (None, "full", {"status": "paid"})
    assert [each["what"] for each in value["effects"]] == ["done in 1 of 2 runs"]
    assert len(site.ledger("payment", "1001")) == 1
    assert "done in 1 of 2 runs" in output_files.notes_of(build.goal.save).read_text()
    monkeypatch.setenv("SHOP_PASSWORD", site.password)
    chosen = settings.load(home=tmp_path / "runs", model_calls="none")
    ended = await start.start(Path(value["file"]), {}, host.of_command(chosen))
    assert (ended.status, len(site.ledger("payment", "1001"))) == ("passed", 1)


async def test_a_withheld_effect_was_not_done(tmp_path: Path, site: Shop) -> None:
    """Under `hold` the shop sees no payment, and the build is proved up to that node."""
    outcome = await finished(opened(tmp_path, site, "1002", guarded=False, policy="hold", runs=1))
    value: Any = outcome.value
    assert (outcome.error, value["proved"]) == (None, "up to pay (held: ready, not done)")
    assert site.ledger("payment", "1002") == []


CONFIRM = """
    confirm:
      settle: 0
      nodes:
        - {id: look, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ inputs.number }}"}
        - {id: status, type: browser_query, query: text, target: {test_id: status}}
      done: "{{ status == 'paid' }}"
"""


def confirming(build: BuildContext) -> BuildContext:
    """The same, with a `confirm` on the payment."""
    written = build.state.draft
    assert written is not None
    head, after, rest = written.text.partition("  - {id: after,")
    build.state.write_draft(draft.Draft.of(f"{head.rstrip()}{CONFIRM}{after}{rest}"), reason="with a confirm")
    return build


async def test_a_confirm_is_tried_before_a_held_action(tmp_path: Path, site: Shop) -> None:
    """Under `hold` the shop is asked before the payment in each run, and sees none."""
    build = confirming(opened(tmp_path, site, "1002", guarded=False, policy="hold", runs=1))
    value: Any = (await finished(build)).value
    past = build.runs.past(value["runs"][0]["run"])
    assert value["proved"] == "up to pay (held: ready, not done)"
    assert past is not None
    assert [(each["when"], each["found"]) for each in past.confirms_tried] == [("before", "not-done")]
    assert site.ledger("payment", "1002") == []


async def test_a_confirm_keeps_a_proof_from_paying_twice(tmp_path: Path, site: Shop) -> None:
    """Without a reset and without a guard the first run pays, the second is stopped by `confirm`, and the shop has one payment."""
    outcome = await finished(confirming(opened(tmp_path, site, "1004", guarded=False)))
    value: Any = outcome.value
    assert outcome.error is None, outcome.text
    said = "done in 1 of 2 runs; there already, and not done again in 1 of 2 runs"
    assert value["proved"] == f"all but pay ({said})"
    assert len(site.ledger("payment", "1004")) == 1


async def test_a_draft_that_passes_once_only_is_refused(tmp_path: Path, site: Shop) -> None:
    """A draft that its own first run prevents from passing again is refused with the page and a hint; no file is saved."""
    build = opened(tmp_path, site, "1003", guarded=False)
    outcome = await finished(build)
    assert outcome.error is not None
    assert (outcome.error["code"], build.goal.save.exists()) == ("not-proved", False)
    for words in (
        "proof run 2 of 2",
        "failed at pay",
        "Run 1 went well",
        f"{site.url}/orders/1003",
        "not executed: after",
    ):
        assert words in outcome.text
    assert site.password not in outcome.text
    assert len(site.ledger("payment", "1003")) == 1
