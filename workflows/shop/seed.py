"""The orders of a new shop, the same ones every time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

CUSTOMERS = (
    "Ada Okafor", "Brennan & Daughters", "Chiara Rossi", "Dmitri Volkov", "Elif Öztürk", "Frank O'Brien",
    "Greta Lindqvist", "Hana Suzuki", "Ibrahim Diallo", "Joana Ferreira", "Klaus Weber", "Lucía Gómez", "Mei-Ling Chen",
    "Nadia Haddad", "Oskar Nowak", "Priya Raman", "Quentin Leroy", "Rosa Jiménez", "Søren Dahl", "Tomás Novák",
    "Uma Patel", "Zoë Müller",
)  # fmt: skip
FIRST_DAY, DAYS = date(2026, 3, 1), 92
MONTHS = {3: "March", 4: "April", 5: "May"}


@dataclass(frozen=True)
class SeedOrder:
    """An order as it is in a new shop."""

    number: str
    customer: str
    ordered: str
    """Day and month. No year: as a number in the row it could be taken for an order number."""
    cents: int
    paid: bool


def seed_orders(count: int, paid: int | None = None) -> list[SeedOrder]:
    """Return `count` orders: 100, then 1001, 1002 and so on; a single order is 1001.

    Order 100 is left over from an older numbering: a search for "100" that ignores where a number ends finds 1001, too.
    `paid` of the orders, spread over the list, are paid from the start; by default every fourth.
    """
    numbers = ["100", *(str(1000 + place) for place in range(1, count))] if count > 1 else ["1001"][:count]
    settled = count // 4 if paid is None else min(paid, count)
    return [
        SeedOrder(
            number=number,
            customer=CUSTOMERS[place * 5 % len(CUSTOMERS)],
            ordered=_day(place * DAYS // count),
            cents=_cents(place),
            # The last order of each equal stretch is paid, so order 100 stays open unless all are paid.
            paid=(place + 1) * settled // count > place * settled // count,
        )
        for place, number in enumerate(numbers)
    ]


def _day(days: int) -> str:
    day = FIRST_DAY + timedelta(days)
    return f"{day.day} {MONTHS[day.month]}"


def _cents(place: int) -> int:
    """Return cents between 101.00 and 499.99, so that no total contains an order number."""
    return 10_100 + place * 7_919 % 39_900
