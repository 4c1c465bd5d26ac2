"""Workflow files work a real Django admin; what they yield is judged by SQL on Django's own database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.django_process import DjangoAdmin

WORKFLOWS = Path(__file__).parent.parent / "django_admin"
RUNOPS = Path(sys.executable).with_name("runops")
RUN_TIMEOUT = 120

INVOICES = """
    SELECT invoice.number, vendor.name AS vendor, invoice.status, invoice.issued, count(line.id) AS lines,
        round(coalesce(sum(line.quantity * line.unit_price), 0), 2) AS total
    FROM billing_invoice AS invoice
    JOIN billing_vendor AS vendor ON vendor.id = invoice.vendor_id
    LEFT JOIN billing_line AS line ON line.invoice_id = invoice.id
    WHERE (:status = '' OR invoice.status = lower(:status))
        AND (instr(vendor.name, :search) OR instr(invoice.number, :search))
    GROUP BY invoice.id
    ORDER BY invoice.issued DESC, invoice.number
"""

VENDORS = """
    SELECT vendor.name, 'Germany' AS country, vendor.email, count(invoice.id) AS invoices
    FROM billing_vendor AS vendor
    LEFT JOIN billing_invoice AS invoice ON invoice.vendor_id = vendor.id
    WHERE vendor.country = 'DE' AND instr(vendor.name, 'er')
    GROUP BY vendor.id
    ORDER BY vendor.name
"""


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DjangoAdmin]:
    """An admin that the tests only read."""
    with DjangoAdmin.start(tmp_path_factory.mktemp("django")) as admin:
        yield admin


def run(workflow: str, admin: DjangoAdmin, folder: Path, **inputs: str) -> Any:
    """The output of a workflow that the command has run as a process."""
    given = [f"--input={name}={value}" for name, value in {"base_url": admin.url, **inputs}.items()]
    ended = subprocess.run(
        [RUNOPS, "run", WORKFLOWS / workflow, "--json", *given],
        cwd=folder,
        env={**os.environ, "RUNOPS_HOME": str(folder / ".runops"), "DJANGO_PASSWORD": admin.password},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["output"]


@pytest.mark.parametrize(
    ("status", "search", "count"),
    [
        pytest.param("", "", 45, id="all, on five pages"),
        pytest.param("Open", "", 17, id="one status, on two pages"),
        pytest.param("Overdue", "Müller", 2, id="a status and a search, on one page"),
        pytest.param("Paid", "nobody", 0, id="none"),
    ],
)
def test_a_workflow_yields_every_invoice_that_a_filter_and_a_search_leave(
    admin: DjangoAdmin, tmp_path: Path, status: str, search: str, count: int
) -> None:
    """What a workflow reads from all pages is what the database holds: the same rows, in its order, numbers as numbers."""
    rows = run("invoices.yaml", admin, tmp_path, status=status, search=search)

    assert rows == admin.sql(INVOICES, {"status": status, "search": search})
    assert len(rows) == count


def test_a_workflow_yields_the_vendors_that_a_drop_down_list_and_a_search_leave(
    admin: DjangoAdmin, tmp_path: Path
) -> None:
    """Choosing an option that loads another page, then searching there, leaves the vendors that the database finds."""
    rows = run("vendors.yaml", admin, tmp_path, country="Germany", search="er")

    assert rows == admin.sql(VENDORS)
    assert len(rows) == 5
