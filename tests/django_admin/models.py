"""What the admin administers."""

from __future__ import annotations

from django.db import models
from typing_extensions import override


class Vendor(models.Model):
    """Somebody who sends invoices."""

    class Country(models.TextChoices):
        """Where a vendor sits."""

        GERMANY = "DE", "Germany"
        FRANCE = "FR", "France"
        IRELAND = "IE", "Ireland"
        PORTUGAL = "PT", "Portugal"

    name = models.CharField(max_length=100, unique=True)
    country = models.CharField(max_length=2, choices=Country.choices)
    email = models.EmailField(blank=True)

    class Meta:
        """What lists are sorted by."""

        ordering = ("name",)

    @override
    def __str__(self) -> str:
        return str(self.name)


class Invoice(models.Model):
    """One invoice; what it comes to is the sum of its lines."""

    class Status(models.TextChoices):
        """How far the invoice has come."""

        DRAFT = "draft", "Draft"
        OPEN = "open", "Open"
        OVERDUE = "overdue", "Overdue"
        PAID = "paid", "Paid"

    number = models.CharField(max_length=20, unique=True)
    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="invoices")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.DRAFT)
    issued = models.DateField()
    document = models.FileField(upload_to="invoices", blank=True)

    class Meta:
        """What lists are sorted by."""

        ordering = ("-issued", "number")

    @override
    def __str__(self) -> str:
        return str(self.number)


class Line(models.Model):
    """One position of an invoice."""

    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="lines")
    description = models.CharField(max_length=200)
    quantity = models.PositiveIntegerField()
    unit_price = models.DecimalField(max_digits=10, decimal_places=2)

    @override
    def __str__(self) -> str:
        return str(self.description)
