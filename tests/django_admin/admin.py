"""The admin itself: Django's own pages, set up as a company would for its invoices."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.contrib.admin.filters import ChoicesFieldListFilter
from django.db.models import Count, DecimalField, F, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.formats import number_format
from typing_extensions import override

from tests.django_admin.models import Invoice, Line, Vendor

PAGE_SIZE = 10


class Dropdown(ChoicesFieldListFilter):
    """A filter that is chosen in a drop-down list and takes effect at once; Django's own are lists of links."""

    template = "billing/dropdown_filter.html"


class Lines(admin.TabularInline):
    """The lines of an invoice, on its own page."""

    model = Line
    extra = 1


@admin.register(Vendor)
class VendorAdmin(admin.ModelAdmin):
    """Vendors: searched by name, filtered by country."""

    list_display = ("name", "country", "email", "invoices")
    list_filter = (("country", Dropdown),)
    search_fields = ("name",)
    list_per_page = PAGE_SIZE

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Vendor]:
        return super().get_queryset(request).annotate(invoice_count=Count("invoices"))

    def invoices(self, vendor: Any) -> int:
        """How many invoices the vendor has sent."""
        return vendor.invoice_count


@admin.register(Invoice)
class InvoiceAdmin(admin.ModelAdmin):
    """Invoices: searched by number and vendor, filtered by status and vendor, with their lines below each."""

    list_display = ("number", "vendor", "status", "issued", "lines", "total")
    list_filter = ("status", "vendor")
    search_fields = ("number", "vendor__name")
    list_select_related = ("vendor",)
    list_per_page = PAGE_SIZE
    inlines = (Lines,)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Invoice]:
        money = DecimalField(max_digits=12, decimal_places=2)
        amount = Sum(F("lines__quantity") * F("lines__unit_price"), output_field=money)
        return (
            super()
            .get_queryset(request)
            .annotate(line_count=Count("lines"), amount=Coalesce(amount, Decimal(0), output_field=money))
        )

    def lines(self, invoice: Any) -> int:
        """How many lines the invoice has."""
        return invoice.line_count

    def total(self, invoice: Any) -> str:
        """What the invoice comes to, as in `1,234.50`."""
        return number_format(invoice.amount, decimal_pos=2)
