"""The addresses by which a report says where a node led."""

from __future__ import annotations

import pytest

from director.bench import report

LONG = "https://shop.example/orders?query=" + "a" * 200


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("https://shop.example/login", "https://shop.example/orders", "https://shop.example/login -> /orders"),
        ("https://shop.example/a", "https://pay.example/b", "https://shop.example/a -> https://pay.example/b"),
        ("about:blank", "https://shop.example/a", "about:blank -> https://shop.example/a"),
        (LONG, "https://shop.example/a", f"{LONG[:119]}… -> /a"),
    ],
)
def test_where_a_node_led(old: str, new: str, told: str) -> None:
    """The new address lacks the origin that it shares with the old one, and neither is longer than 120 characters."""
    assert report.led(old, new) == told


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [("/q?a=x%20y%2C", "/q?a=x+y,", True), ("/q?a=x", "/q?a=y", False), ("/q", "/q#part", False)],
)
def test_an_address_that_is_only_written_otherwise_is_the_same(old: str, new: str, same: bool) -> None:
    """Two addresses are alike if they differ in the encoding of characters alone."""
    assert report.alike(old, new) is same
