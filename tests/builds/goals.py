"""The goals of the recorded builds, in one sentence each, written before anything was built."""

from __future__ import annotations

from tests.builds.apps.app import APPS, of
from tests.builds.goal import Goal

GOALS = {
    each.name: each
    for each in (
        Goal(
            "shop-open-orders",
            "shop",
            "Sign in as admin and give me the numbers of all orders that are still open, over all pages, and the sum of their totals.",
            secrets=("SHOP_PASSWORD",),
        ),
        Goal(
            "shop-triage",
            "shop",
            "Sign in as admin and decide on every order in the triage queue: escalate it when the card comes from another country than it ships to, hold it when its total is 250 or more, approve it otherwise; give me the numbers of the orders, by what was decided on them.",
            secrets=("SHOP_PASSWORD",),
        ),
        Goal(
            "django-overdue",
            "django",
            "Sign in as admin and list every overdue invoice with its number, its vendor and the date on which it was issued.",
            path="/admin/",
            secrets=("ADMIN_PASSWORD",),
        ),
        Goal(
            "django-vendor",
            "django",
            "Sign in as admin and make sure that there is a vendor with the given name, country and email: add it where it is missing, and change nothing where it is there; tell me which of the two it was.",
            path="/admin/",
            secrets=("ADMIN_PASSWORD",),
            inputs={"name": "Tannhäuser & Sons", "country": "Ireland", "email": "post@tannhaeuser.example"},
            again=True,
        ),
        Goal(
            "datasette-customers",
            "datasette",
            "Give me name and city of all customers of the given country who owe more than 100, sorted by what they owe, the most first.",
            inputs={"country": "Portugal"},
        ),
        Goal(
            "radicale-calendar",
            "radicale",
            "Log in as the given user with the password and make sure that there is a calendar with the given title, without ever making a second one of that title; give me its address.",
            secrets=("CALENDAR_PASSWORD",),
            inputs={"user": "ada", "title": "Deliveries"},
            again=True,
        ),
        *(of(name).GOAL for name in APPS),
    )
}
"""By their names, in the order in which they were written."""
