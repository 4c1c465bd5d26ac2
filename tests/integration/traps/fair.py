"""The site with the traps: a page for each, and a ledger of the submitted forms."""

from __future__ import annotations

import math
import time
import urllib.parse
from pathlib import Path

from tests import site

PAGES = Path(__file__).parent / "pages"

DEBTS = 14
PAGE_SIZE = 5
OWED = [100 + number for number in range(DEBTS)]
"""The debts when their first page is opened."""

PIECES = [place * 7 % 11 for place in range(60)]
"""The stock of each part, as its page computes it."""


class Fair:
    """One trap on a separate site; every delay in it is ``delay`` milliseconds."""

    def __init__(self, served: site.Site, trap: str, delay: int) -> None:
        self._served = served
        self._page = (PAGES / f"{trap}.html").read_text().replace("DELAY", str(delay))
        self._delay = delay
        self._debts = list(range(DEBTS))
        served.answer("/", self._debts_of_a_page if trap == "repeated_rows" else lambda _: site.Answer(self._page))
        served.page("/quote", "<!doctype html><title>Quote</title><p>A better price is 95.</p>" + ACCEPT_95)
        served.page("/send", "<!doctype html><title>Sent</title><p>Sent.</p>")
        served.answer("/state", self._state)

    @property
    def ledger(self) -> list[dict[str, list[str]]]:
        """The forms that were sent, in order: each field with its values."""
        posts = [request for request in self._served.requests if request.method == "POST"]
        return [urllib.parse.parse_qs(post.body, keep_blank_values=True) for post in posts]

    def _debts_of_a_page(self, request: site.Request) -> site.Answer:
        number = int(request.query.get("page", "1"))
        shown = self._debts[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
        rows = "".join(f"<tr><td class=number>D-{each}</td><td class=owed>{100 + each}</td></tr>" for each in shown)
        last = number == math.ceil(len(self._debts) / PAGE_SIZE)
        pager = "The last page" if last else f"<a href='/?page={number + 1}'>Next</a>"
        # Each page view adds a debt at the beginning, which shifts the others.
        self._debts.insert(0, len(self._debts))
        time.sleep(self._delay / 4000)
        return site.Answer(self._page.replace("PAGER", pager).replace("ROWS", rows))

    def _state(self, _request: site.Request) -> site.Answer:
        state = "confirmed" if self.ledger else "open"
        return site.Answer(f"<!doctype html><title>Order 1007</title><p data-testid=state>{state}</p>")


ACCEPT_95 = (
    '<form method="post" action="/send"><input type="hidden" name="price" value="95"><button>Accept</button></form>'
)
