"""An order on the fake site that writes everything a run can write: large values, checkpoints, a file, a signed-in state, and two actions."""

from __future__ import annotations

from pathlib import Path

from runtime.runs import run
from tests.rig import Rig

ORDER = """
version: 1
name: Order
nodes:
  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}
  - {id: words, type: transform, expr: "{{ 'so many words ' * 400 }}"}
  - id: unit
    type: group
    nodes:
      - {id: name, type: browser_action, action: fill, target: {label: Name}, value: "{{ words | length }}"}
      - {id: add, type: browser_action, action: click, target: {css: add}, confirm: {settle: 0, nodes: [{id: in_cart, type: browser_query, query: text, target: {css: cart}}], done: "{{ in_cart == 'yes' }}"}}
  - {id: picture, type: browser_action, action: screenshot}
  - {id: again, type: browser_action, action: goto, url: "http://shop.test/cart"}
  - {id: session, type: browser_action, action: save_session, name: shop}
  - {id: pay, type: browser_action, action: click, target: {css: pay}, confirm: {settle: 0, nodes: [{id: paid, type: browser_query, query: text, target: {css: paid}}], done: "{{ paid == 'yes' }}"}}
  - {id: third, type: browser_action, action: goto, url: "http://shop.test/paid"}
  - {id: mark, type: browser_query, query: text, target: {css: paid}}
  - {id: end, type: browser_query, query: text, target: {css: paid}}
output: ["{{ picture.name }}", "{{ end }}", "{{ words | length }}"]
"""
OUTPUT = ["picture.png", "yes", 5600]
ACTIONS = ["css=add", "css=pay"]
SHOWS = {"css=add": "css=cart", "css=pay": "css=paid"}


class Order(Rig):
    """An order on the fake site."""

    def __init__(self, home: Path, before: Order | None = None, text: str = ORDER) -> None:
        super().__init__(home, text)
        if before is not None:
            self.id, self.site = before.id, before.site
        self.site.on_click = self.answer

    async def answer(self, target: str, _page: object) -> None:
        """The display of the site after an action."""
        self.site.texts[SHOWS[target]] = "yes"

    async def begin(self) -> str:
        """Run it to its end; its outcome: passed, or the code of the error."""
        self.open_writer = await self.newly_begun()
        run.write_header(self.open_writer, self.loaded, {})
        ended = await self._run(self.open_writer).begin()
        assert ended.exit == (2 if ended.error else 0), ended
        return ended.status if ended.error is None else str(ended.error["code"])

    async def pay(self) -> str:
        """Resume it to its end; the outcome."""
        ended = await self.resume()
        assert ended.exit == (2 if ended.error else 0), ended
        return ended.status if ended.error is None else str(ended.error["code"])

    @property
    def begun(self) -> bool:
        """True if its first line exists."""
        return self.reader.has(self.id) and self.reader.first(self.id) is not None


def as_was(order: Order) -> str:
    """``passed``, for a finished order with the right output."""
    root = order.history.scopes[""].committed
    assert root is not None
    assert root.value == OUTPUT
    return "passed"
