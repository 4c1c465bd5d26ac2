"""The required results of a built workflow, judged by the site's own data and never by its output alone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from nodes.values import Json
from tests.builds.sites import CUSTOMERS
from tests.django_process import DjangoAdmin
from tests.shop_process import Shop
from workflows.shop import triage


def judged(name: str, site: object, output: Json, inputs: Mapping[str, Json], before: Json) -> list[str]:
    """The deviations after a run; ``before`` is the ``state`` before it."""
    return list(_JUDGES[name](site, output, inputs, before))


def state(name: str, site: object) -> Json:
    """The data of the site that a run may change."""
    match site:
        case Shop():
            return {"orders": site.orders(), "ledger": [each for each in site.ledger() if each["kind"] not in _SEEN]}
        case DjangoAdmin():
            return {
                "vendors": site.sql("select name, country, email from billing_vendor order by name"),
                "invoices": site.sql("select * from billing_invoice order by id"),
            }
        case Path() if name == "radicale-calendar":
            return [list(each) for each in _calendars(site)]
        case _:
            return None


_SEEN = ("sign_in", "sign_out")


def _texts(value: Json) -> list[str]:
    """Every text and number in a value."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _open_orders(site: Any, output: Json, _inputs: Mapping[str, Json], before: Json) -> Iterator[str]:
    unpaid = [each for each in site.orders() if each["status"] != "paid"]
    said = _texts(output)
    numbers, known = {each["number"] for each in unpaid}, {each["number"] for each in site.orders()}
    found = known & set(said)
    if found != numbers:
        yield f"the open orders are {sorted(numbers)}, and it says {sorted(found)}"
    total = sum((Decimal(each["total"]) for each in unpaid), Decimal())
    if not any(_number(each) == total for each in said):
        yield f"the sum is {total}, and it says {said}"
    yield from _unchanged(before, state("shop-open-orders", site))


def _triage(site: Any, output: Json, _inputs: Mapping[str, Json], before: Json) -> Iterator[str]:
    rows = site.ledger("decision")
    queue = _wanted(site)
    decided = {each["subject"]: each["detail"]["decision"] for each in rows}
    if len(rows) != len(decided):
        yield f"an order was decided twice: {[each['subject'] for each in rows]}"
    for number, wanted in queue.items():
        if wanted != decided.get(number):
            yield f"order {number}: {wanted} was right, and it did {decided.get(number)}"
    if set(decided) != set(queue):
        yield f"decided were {sorted(decided)}, waiting were {sorted(queue)}"
    missing = set(queue) - set(_texts(output))
    if missing and len(before["ledger"]) == 0:
        yield f"its output lacks {sorted(missing)}"


def _wanted(site: Any) -> dict[str, str]:
    """The decision for each order of the queue, by its number: every order of a fresh shop is in it."""
    wanted: dict[str, str] = {}
    for order in site.orders():
        place = int(order["number"])
        # As in the shop itself: for every fourth order the card is from another country.
        suspicious = triage.COUNTRIES[place % 5] != triage.COUNTRIES[(place + (place % 4 == 3)) % 5]
        large = Decimal(order["total"]) >= 250
        wanted[order["number"]] = "escalate" if suspicious else "hold" if large else "approve"
    return wanted


def _overdue(site: Any, output: Json, _inputs: Mapping[str, Json], before: Json) -> Iterator[str]:
    rows = site.sql(
        "select i.number, v.name, i.issued from billing_invoice i join billing_vendor v on v.id = i.vendor_id where i.status = 'overdue'"
    )
    said = _texts(output)
    for row in rows:
        if row["number"] not in said:
            yield f"the overdue invoice {row['number']} is missing"
        if row["name"] not in said:
            yield f"the vendor {row['name']} is missing"
    others = {each["number"] for each in site.sql("select number from billing_invoice where status <> 'overdue'")}
    if wrong := others & set(said):
        yield f"these are not overdue: {sorted(wrong)}"
    years = {row["issued"][:4] for row in rows}
    if not all(any(year in each for each in said) for year in years):
        yield "the dates are missing"
    yield from _unchanged(before, state("django-overdue", site))


def _vendor(site: Any, output: Json, inputs: Mapping[str, Json], before: Json) -> Iterator[str]:
    rows = [
        each for each in site.sql("select name, country, email from billing_vendor") if each["name"] == inputs["name"]
    ]
    if rows != [{"name": inputs["name"], "country": "IE", "email": inputs["email"]}]:
        yield f"the vendor stands there as {rows}"
    now = state("django-vendor", site)
    there = any(each["name"] == inputs["name"] for each in before["vendors"])
    if len(now["vendors"]) != len(before["vendors"]) + (not there):
        yield f"there were {len(before['vendors'])} vendors, and there are {len(now['vendors'])}"
    if output in (None, "", [], {}):
        yield "it does not say which of the two it was"


def _customers(_site: Any, output: Json, inputs: Mapping[str, Json], _before: Json) -> Iterator[str]:
    wanted = sorted(
        (
            (owes, name, city)
            for _id, name, city, country, owes in CUSTOMERS
            if country == inputs["country"] and owes > 100
        ),
        key=lambda each: -each[0],
    )
    said = [each for each in _texts(output) if each.startswith("Customer ")]
    by_name = {name: owes for owes, name, _city in wanted}
    if sorted(said) != sorted(by_name):
        yield f"these {len(by_name)} were wanted, and it says {len(said)}: {said[:3]} …"
    elif [by_name[each] for each in said] != [owes for owes, _name, _city in wanted]:
        yield "they are not sorted by what they owe"
    if wanted[0][2] not in _texts(output):
        yield "the cities are missing"


def _calendar(site: Any, output: Json, inputs: Mapping[str, Json], before: Json) -> Iterator[str]:
    calendars = [href for href, title in _calendars(site) if title == inputs["title"]]
    if len(calendars) != 1:
        yield f"there are {len(calendars)} calendars of that title"
    elif not any(calendars[0] in each for each in _texts(output)):
        yield f"its address holds {calendars[0]}, and it says {output}"
    if len(_calendars(site)) > len(before) + 1:
        yield "it made more than one"


def _calendars(folder: Any) -> list[tuple[str, str]]:
    """Name and title of every calendar."""
    found: list[tuple[str, str]] = []
    for props in sorted(folder.glob("collection-root/*/*/.Radicale.props")):
        with contextlib.suppress(ValueError):
            data = json.loads(props.read_text())
            if data.get("tag") == "VCALENDAR":
                found.append((props.parent.name, data.get("D:displayname", "")))
    return found


def _unchanged(before: Json, now: Json) -> Iterator[str]:
    if before != now:
        yield "it changed what it was only to read"


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", "").removesuffix(" EUR"))
    except ArithmeticError:
        return None


_JUDGES = {
    "shop-open-orders": _open_orders,
    "shop-triage": _triage,
    "django-overdue": _overdue,
    "django-vendor": _vendor,
    "datasette-customers": _customers,
    "radicale-calendar": _calendar,
}
