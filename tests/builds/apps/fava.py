"""Fava on the ledger of a household: two years with 400 transactions, and two accounts for restaurants."""

from __future__ import annotations

import csv
import random
import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

GOAL = Goal(
    name="fava",
    site="app",
    goal="Tell me how much was spent on the given account in the given year in total, and the date, the payee and the amount of the largest posting on it in that year.",
    inputs={"account": "Expenses:Food:Restaurants", "year": 2024},
    writes=False,
)
SECRETS: dict[str, str] = {}

_YEARS = (2024, 2025)
_MONTHLY = (
    ("Income:Salary", "Harbour Works", "Salary", -3120, 24),
    ("Expenses:Home:Rent", "Keller Homes", "Rent", 985, 1),
    ("Expenses:Home:Electricity", "City Power", "Electricity", 64, 5),
)
"""Account, payee, narration, amount and day in each month."""
_OFTEN = (
    ("Expenses:Food:Groceries", ("Green Basket", "Corner Market", "Mill Bakery"), "Groceries", (6, 92), 129),
    ("Expenses:Food:Restaurants", ("Blue Anchor", "Casa Lupo", "Noodle House", "The Old Mill"), "Dinner", (14, 88), 70),
    ("Expenses:Work:Restaurants", ("Casa Lupo", "Blue Anchor", "Station Grill"), "Lunch with customers", (35, 190), 34),
    ("Expenses:Transport:Train", ("National Rail", "Coast Line"), "Ticket", (4, 79), 50),
    ("Expenses:Health:Pharmacy", ("Linden Pharmacy",), "Medicine", (5, 48), 20),
    ("Expenses:Leisure:Books", ("Paper Lantern", "Second Shelf"), "Books", (8, 54), 24),
)
"""Account, payees, narration, the range of the amounts, and how many there are in all."""


def install(home: Path) -> None:
    programs.python_packages(home, "fava==1.30.16", "beancount==3.2.3")


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    reset(home, port)
    command = [str(home / "venv" / "bin" / "fava"), "--host", "127.0.0.1", "--port", str(port), str(_ledger(home))]
    process = programs.started(command, home / "log")
    programs.until_it_answers(f"http://127.0.0.1:{port}/")
    return [process]


def reset(home: Path, port: int) -> None:
    wanted = "\n\n".join(_entries()) + "\n"
    if not _ledger(home).exists() or _ledger(home).read_text() != wanted:
        part = home / "ledger.part"
        part.write_text(wanted)
        part.replace(_ledger(home))


def state(home: Path, port: int) -> Json:
    query = "select date, payee, narration, account, number order by date, account"
    text = programs.ran([str(home / "venv" / "bin" / "bean-query"), "-f", "csv", str(_ledger(home)), query])
    return [{name: value.strip() for name, value in row.items()} for row in csv.DictReader(text.splitlines())]


def judged(before: Json, after: Json, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    if before != after:
        yield "it changed the ledger, which it was only to read"
    year = f"{inputs['year']}-"
    postings = [each for each in before if each["account"] == inputs["account"] and each["date"].startswith(year)]
    largest = max(postings, key=lambda each: Decimal(each["number"]))
    said = programs.texts(output)
    numbers = {Decimal(each.replace(",", "")) for text in said for each in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}
    total = sum(Decimal(each["number"]) for each in postings)
    for name, number in (("total", total), ("largest posting", Decimal(largest["number"]))):
        if number not in numbers:
            yield f"the {name} is {number}, and it says {output}"
    if wrong := {each["date"] for each in postings if any(each["date"] in text for text in said)} - {largest["date"]}:
        yield f"it also says the dates of other postings: {sorted(wrong)}"
    for name in ("date", "payee"):
        if not any(largest[name] in each for each in said):
            yield f"the {name} of the largest posting is {largest[name]}, and it says {output}"


def _ledger(home: Path) -> Path:
    return home / "household.beancount"


def _entries() -> list[str]:
    """The directives of the ledger, the same in each call."""
    drawn = random.Random(8)
    days = [date(_YEARS[0], 1, 2) + timedelta(each) for each in range(728)]
    rows = [
        (date(year, month, day), payee, narration, account, Decimal(amount))
        for account, payee, narration, amount, day in _MONTHLY
        for year in _YEARS
        for month in range(1, 13)
    ]
    rows.append((date(_YEARS[0], 9, 17), "Noodle House", "Refund", "Expenses:Food:Restaurants", Decimal("-46.20")))
    for account, payees, narration, (least, most), count in _OFTEN:
        for _ in range(count):
            amount = Decimal(drawn.randrange(least * 100, most * 100)) / 100
            rows.append((drawn.choice(days), drawn.choice(payees), narration, account, amount))
    accounts = sorted({"Assets:Bank:Checking", *(row[3] for row in rows)})
    opened = "\n".join(f"{_YEARS[0]}-01-01 open {each} EUR" for each in accounts)
    return [
        'option "title" "Household"\noption "operating_currency" "EUR"',
        opened,
        *(
            f'{day} * "{payee}" "{narration}"\n  {account}  {amount:.2f} EUR\n  Assets:Bank:Checking'
            for day, payee, narration, account, amount in sorted(rows)
        ),
    ]
