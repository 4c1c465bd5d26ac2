"""The project's one app: a small company's incoming invoices."""

from __future__ import annotations

from pathlib import Path

from django.apps import AppConfig


class Billing(AppConfig):
    """Vendors, their invoices, the lines of these. Its tables are called `billing_…`."""

    name = "tests.django_admin"
    label = "billing"
    verbose_name = "Billing"
    # A package without __init__.py may be spread over several folders: Django wants to be told which one.
    path = str(Path(__file__).parent)
