"""A `confirm` that finds what it asks for by the search of the site."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from director.proving import tools
from tests import build_contexts, site

pytestmark = [pytest.mark.anyio, pytest.mark.drawn(share=0.5, of="confirm search")]

FORM = (
    "<!doctype html><title>Orders</title><form action=/found><input name=q aria-label=Search><button>Go</button></form>"
)

DRAFT = """
version: 1
name: Order
nodes:
  - {{id: open, type: browser_action, action: goto, url: "{0}/new"}}
  - id: order
    type: browser_action
    action: click
    target: {{role: button, name: Order}}
    verify: [{{text: thanks}}]
    confirm:
      nodes:
        - {{id: look, type: browser_action, action: goto, url: "{0}/orders"}}
        - {{id: words, type: browser_action, action: fill, target: {{label: Search}}, value: tea, effect: read}}
        - {{id: search, type: browser_action, action: press, key: Enter, target: {{label: Search}}, effect: read}}
        - {{id: found, type: browser_query, query: text, target: {{test_id: found}}}}
      done: "{{{{ found == 'tea' }}}}"
output: {{page: "{{{{ order }}}}"}}
"""


@pytest.mark.parametrize(("finds", "agrees"), [(True, True), (False, False)])
async def test_a_confirm_may_search(finds: bool, agrees: bool, tmp_path: Path) -> None:
    """Fields and keys with `effect: read` work in a `confirm`: typed before and after the action, they tell whether the site has it, and leave the run's page as it is."""
    ordered: list[str] = []

    def thanks(_request: site.Request) -> site.Answer:
        ordered.append("tea")
        return site.Answer("<!doctype html><title>Thanks</title>thanks")

    def found(request: site.Request) -> site.Answer:
        there = "tea" if finds and ordered and request.query["q"] == "tea" else "nothing"
        return site.Answer(f"<!doctype html><title>Found</title><p data-testid=found>{there}</p>")

    with site.serve() as shop:
        shop.page("/new", "<!doctype html><title>New</title><form action=/thanks><button>Order</button></form>")
        shop.page("/orders", FORM)
        shop.answer("/thanks", thanks)
        shop.answer("/found", found)
        build = build_contexts.opened(tmp_path, shop.origin, DRAFT.format(shop.origin))
        try:
            ran = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="r")
        finally:
            await build.close()
    assert ordered == ["tea"]
    assert ran.error is None
    assert ("in doubt" not in ran.text) == agrees
    assert "/thanks" in ran.text


LATE = """<!doctype html><title>Orders</title><p id=note>Loading</p><script>
fetch('/orders.json').then((answer) => answer.json()).then((names) => { note.textContent = names.join(' ') || 'nothing'; });
</script>"""

SEEN = f"""{DRAFT.partition("        - {{id: words")[0]}        - {{{{id: found, type: browser_query, query: {{1}}, target: {{{{text: tea, exact: true}}}}}}}}
      done: "{{{{{{{{ found not in (0, []) }}}}}}}}"
output: {{{{page: "{{{{{{{{ order }}}}}}}}"}}}}
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize("query", ["exists", "count", "extract, min: 0, fields: {n: {}}"])
async def test_a_confirm_reads_a_page_that_is_drawn(query: str, tmp_path: Path) -> None:
    """What is read at once in a `confirm`, as whether an element is there, is read when the page has its answers: otherwise an action would be done twice."""
    ordered: list[str] = []

    def orders(_request: site.Request) -> site.Answer:
        time.sleep(1.0)
        return site.Answer(json.dumps(ordered), headers={"Content-Type": "application/json"})

    def thanks(_request: site.Request) -> site.Answer:
        ordered.append("tea")
        return site.Answer("<!doctype html><title>Thanks</title>thanks")

    with site.serve() as shop:
        shop.page("/new", "<!doctype html><title>New</title><form action=/thanks><button>Order</button></form>")
        shop.page("/orders", LATE)
        shop.answer("/thanks", thanks)
        shop.answer("/orders.json", orders)
        build = build_contexts.opened(tmp_path, shop.origin, SEEN.format(shop.origin, query))
        try:
            ran = await build_contexts.call(build, "run_draft", tools.toolsets(build), inputs=None, reason="r")
        finally:
            await build.close()
    assert ordered == ["tea"]
    assert ran.error is None, ran.text
    assert "`confirm` agrees" in ran.text
