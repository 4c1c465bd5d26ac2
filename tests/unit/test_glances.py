"""The page of a failed run, as far as it fits into a report for a model."""

from __future__ import annotations

from director.proving import report

PAGE = 'page "Bills" http://shop.test/bills\nnavigation\n  link "Orders" [ref=e3]\nmain\n  heading "Bills" 1\n  alert "The bill was not paid"'


def test_a_page_that_fits_is_whole() -> None:
    """A page within the limit is unchanged."""
    assert report.glance(PAGE, len(PAGE)) == PAGE


def test_of_a_longer_page_the_main_part_comes_first() -> None:
    """What stands around the main part is left out first; lines stay whole, and the rest is counted."""
    assert report.glance(PAGE, len(PAGE) - 1) == (
        'page "Bills" http://shop.test/bills\n…\nmain\n  heading "Bills" 1\n  alert "The bill was not paid"'
    )
    assert report.glance(PAGE, 70) == 'page "Bills" http://shop.test/bills\n…\nmain\n  heading "Bills" 1\n… 1 more line'
