"""The page of a failed run, as far as it fits into a report for a model."""

from __future__ import annotations

from director.proving import report
from director.scouting import relevance
from nodes.values import Json

PAGE = 'page "Bills" http://shop.test/bills\nnavigation "Parts of the shop"\n  link "Orders" [ref=e3]\nmain\n  heading "Bills" 1\n  alert "The bill was not paid"'
LONG = "\n".join(
    [
        'page "Bills" http://shop.test/bills',
        "navigation",
        *(f'  link "Part {number} of the site" [ref=n{number}]' for number in range(30)),
        "main",
        *(f'  row "Bill {number} | open" [ref=r{number}]\n    button "Pay" [ref=p{number}]' for number in range(30)),
        'dialog "Pay by card"',
        *(f'  textbox "Field {number} of the card" [ref=d{number}]' for number in range(10, 20)),
        '  button "Pay now" [ref=d2]',
        'alert "The card has expired"',
    ]
)
ERROR: dict[str, Json] = {
    "message": 'no element matches role=button name="Refund" within role=row has_text="21"  (waited 10 s)'
}


def test_a_page_that_fits_is_whole() -> None:
    """A page within the limit is unchanged."""
    assert relevance.glance(PAGE, len(PAGE), []) == PAGE


def test_of_a_longer_page_messages_and_the_main_part_come_first() -> None:
    """What is around the main part is left out first, and messages last; lines stay whole, gaps are marked, and the rest is counted."""
    around = "\n".join(f'  link "Part {number} of the site" [ref=n{number}]' for number in range(10))
    page = PAGE.replace("main", f"{around}\nmain")
    assert relevance.glance(page, 150, []) == (
        'page "Bills" http://shop.test/bills\n…\nmain\n  heading "Bills" 1\n  alert "The bill was not paid"\n… 12 more lines'
    )
    assert relevance.glance(page, 125, []).split("\n")[1:] == [
        "…", "main", "…", '  alert "The bill was not paid"', "… 13 more lines",
    ]  # fmt: skip


def test_the_place_of_a_failure_is_shown() -> None:
    """An open dialog with its controls, messages and the row that the failed step sought are shown with what is near them, wherever they are on the page."""
    seen = relevance.glance(LONG, 1_000, report.sought(ERROR))
    assert len(seen) <= 1_000
    for line in LONG.split("\n")[-13:]:
        assert f"\n{line}\n" in seen
    assert '\n  row "Bill 21 | open" [ref=r21]\n    button "Pay" [ref=p21]\n  row "Bill 22 | open" [ref=r22]\n' in seen
    assert "Part 3 of the site" not in seen
