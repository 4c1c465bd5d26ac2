"""What stands in the database at the beginning: 14 vendors and 45 invoices, the same every time."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from django.contrib.auth.models import User

from tests.django_admin.models import Invoice, Line, Vendor

USER = "admin"

# Names as they are found in the wild: with markup, quotes, accents, and one inside another.
VENDORS = [
    ("Acme", "IE"),
    ("Acme Paper", "IE"),
    ("Åkerblom & Söner", "DE"),
    ("Bäckerei Müller", "DE"),
    ("Café Étoile", "FR"),
    ("Docks <West>", "PT"),
    ("Fjord, Inc.", "DE"),
    ('Garage "Le Pont"', "FR"),
    ("Hänsel und Gretel", "DE"),
    ("Irmãos Costa", "PT"),
    ("Müller Logistik", "DE"),
    ("O'Brien's Prints", "IE"),
    ("Stadtwerke", "DE"),
    ("Zürcher Möbel", "DE"),
]

INVOICES = 45
STATUSES = ("open", "paid", "overdue", "open", "draft", "paid", "open", "overdue")
GOODS = ("Paper A4, 80 g", "Toner", "Freight", "Desk lamp", "Catering", "Repair")


def fill(password: str) -> None:
    """Write it all, and a superuser who signs in with `password`."""
    User.objects.create_superuser(USER, "admin@example.com", password)
    vendors = [
        Vendor(name=name, country=country, email=f"office@vendor{index}.example")
        for index, (name, country) in enumerate(VENDORS, start=1)
    ]
    for vendor in vendors:
        vendor.save()
    for index in range(INVOICES):
        invoice = Invoice(
            number=f"INV-2026-{index + 1:04}",
            vendor=vendors[index * 5 % len(vendors)],
            status=STATUSES[index % len(STATUSES)],
            # Two share each day, and they reach over a whole year: Django shortens the names of some months.
            issued=dt.date(2025, 7, 28) + dt.timedelta(days=index // 2 * 16),
        )
        invoice.save()
        # From none to three lines: totals are zero, small, and large enough for a thousands separator.
        for position in range(index, index + index % 4):
            Line(
                invoice=invoice,
                description=GOODS[position % len(GOODS)],
                quantity=1 + (index * 6 + position) % 40,
                unit_price=Decimal(199 + 1373 * (position % 11)) / 100,
            ).save()
