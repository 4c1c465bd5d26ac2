"""Workflow files operate a real Django admin; SQL on Django's database checks their results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import Project
from tests.django_process import DjangoAdmin

WORKFLOWS = Path(__file__).parent.parent / "django_admin"
RUN_TIMEOUT = 120

ENTERED = """
    SELECT invoice.number, vendor.name AS vendor, vendor.country, invoice.status, invoice.issued, invoice.document
    FROM billing_invoice AS invoice JOIN billing_vendor AS vendor ON vendor.id = invoice.vendor_id
    WHERE invoice.number = 'INV-2026-0099'
"""

LINES = """
    SELECT line.description, line.quantity, line.unit_price
    FROM billing_line AS line JOIN billing_invoice AS invoice ON invoice.id = line.invoice_id
    WHERE invoice.number = 'INV-2026-0099' ORDER BY line.id
"""

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


@pytest.fixture
def own_admin(tmp_path: Path) -> Iterator[DjangoAdmin]:
    """An admin that a test changes."""
    folder = tmp_path / "django"
    folder.mkdir()
    with DjangoAdmin.start(folder) as admin:
        yield admin


def run(workflow: Path, admin: DjangoAdmin, folder: Path, **inputs: Any) -> Any:
    """The output of a workflow that the command runs as a process."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in inputs.items()}
    given = [f"--input={name}={value}" for name, value in {"base_url": admin.url, **texts}.items()]
    project = Project(folder, RUNOPS_HOME=str(folder / ".runops"), DJANGO_PASSWORD=admin.password)
    ended = project.runops("run", str(workflow), "--json", *given, seconds=RUN_TIMEOUT)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["runs"][0]["output"]


@pytest.mark.drawn(1)
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
    """The rows that a workflow reads from all pages equal those of the database, in its order, with numbers as numbers."""
    rows = run(WORKFLOWS / "invoices.yaml", admin, tmp_path, status=status, search=search)

    assert rows == admin.sql(INVOICES, {"status": status, "search": search})
    assert len(rows) == count


@pytest.mark.drawn(1, of="django_admin")
def test_a_workflow_yields_the_vendors_that_a_drop_down_list_and_a_search_leave(
    admin: DjangoAdmin, tmp_path: Path
) -> None:
    """Selecting an option that loads another page, then searching, gives the vendors that the database finds."""
    rows = run(WORKFLOWS / "vendors.yaml", admin, tmp_path, country="Germany", search="er")

    assert rows == admin.sql(VENDORS)
    assert len(rows) == 5


@pytest.mark.drawn(1, of="django_admin")
def test_a_workflow_enters_an_invoice_of_a_vendor_that_it_adds_in_a_popup_window(
    own_admin: DjangoAdmin, tmp_path: Path
) -> None:
    """The database has the new vendor from the popup, the inline lines and the uploaded document, each once."""
    # The file must be in the workflow's project.
    project = tmp_path / "project"
    shutil.copytree(WORKFLOWS, project, ignore=shutil.ignore_patterns("*.py", "__pycache__", "templates"))
    (project / "scan.pdf").write_bytes(b"%PDF-1.4 an invoice\n" * 500)
    lines = [
        {"description": "Paper A4, 80 g", "quantity": 30, "unit_price": 4.25},
        {"description": "Toner <black>", "quantity": 2, "unit_price": 61.9},
        {"description": "Freight", "quantity": 1, "unit_price": 12},
    ]

    row = run(
        project / "create_invoice.yaml",
        own_admin,
        project,
        number="INV-2026-0099",
        vendor="Nova & Söhne",
        issued="2026-02-28",
        document="scan.pdf",
        lines=lines,
    )

    assert row == {"number": "INV-2026-0099", "vendor": "Nova & Söhne", "lines": 3, "total": 263.3}
    (entered,) = own_admin.sql(ENTERED)
    document = own_admin.folder / "media" / str(entered.pop("document"))
    assert entered == {
        "number": "INV-2026-0099",
        "vendor": "Nova & Söhne",
        "country": "PT",
        "status": "open",
        "issued": "2026-02-28",
    }
    assert own_admin.sql(LINES) == lines
    assert document.read_bytes() == (project / "scan.pdf").read_bytes()
    assert own_admin.sql("SELECT count(*) AS vendors FROM billing_vendor") == [{"vendors": 15}]


@pytest.mark.drawn(1, of="django_admin")
def test_a_workflow_deletes_the_rows_that_it_selects_and_no_others(own_admin: DjangoAdmin, tmp_path: Path) -> None:
    """All invoices of a status are deleted, over two list and confirmation pages; the others are unchanged."""
    wanted = own_admin.sql("SELECT number FROM billing_invoice WHERE status = 'open' ORDER BY issued DESC, number")
    others = own_admin.sql("SELECT * FROM billing_invoice WHERE status <> 'open' ORDER BY id")

    output = run(WORKFLOWS / "delete_invoices.yaml", own_admin, tmp_path, status="open")

    assert output == {"deleted": [row["number"] for row in wanted]}
    assert len(wanted) == 17
    assert own_admin.sql("SELECT * FROM billing_invoice ORDER BY id") == others
    assert own_admin.sql(
        "SELECT count(*) AS stray FROM billing_line WHERE invoice_id NOT IN (SELECT id FROM billing_invoice)"
    ) == [{"stray": 0}]
