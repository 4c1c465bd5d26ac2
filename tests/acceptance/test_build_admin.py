"""A whole build on a Django admin with a scripted model, judged by SQL on Django's own database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import builds_rig
from tests.builds_rig import plan, use
from tests.django_process import DjangoAdmin
from tests.paying import execute, finish

SIGN_IN = """
- id: sign_in
  type: group
  description: Signs in to the administration.
  nodes:
    - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/admin/"}
    - {id: user, type: browser_action, action: fill, target: {label: "Username:"}, value: admin}
    - {id: pass, type: browser_action, action: fill, target: {label: "Password:"}, value: "{{ secrets.DJANGO_PASSWORD }}"}
    - {id: submit, type: browser_action, action: click, target: {role: button, name: Log in}, effect: idempotent, verify: [{title: Site administration}]}
"""

VENDORS = """
- id: vendors
  type: group
  description: Lists the vendors of the country.
  nodes:
    - {id: to_list, type: browser_action, action: goto, url: "{{ inputs.base_url }}/admin/billing/vendor/"}
    - {id: country, type: browser_action, action: select, target: {label: By country}, value: "{{ inputs.country }}", verify: [{url: "**/vendor/?country__exact=*"}]}
    - {id: rows, type: browser_query, query: extract, target: {css: "#result_list tbody tr"}, fields: {name: .field-name, email: .field-email}}
"""

WANTED = "SELECT name, email FROM billing_vendor WHERE country = 'DE' ORDER BY name"


@pytest.mark.drawn(0)
def test_the_output_of_a_build_on_the_admin_equals_its_database(tmp_path: Path) -> None:
    """A build in five answers yields a file whose output, without a model, equals the rows that SQL finds."""
    builds = builds_rig.of(tmp_path)
    secret = {"DJANGO_PASSWORD": "correct-horse"}
    (tmp_path / "admin").mkdir()
    with DjangoAdmin.start(tmp_path / "admin") as admin:
        head = use("update_node", id="workflow", yaml='output: "{{ rows }}"', reason="the goal")
        said = [
            plan() + use("debug_navigate", tab="admin", url=f"{admin.url}/admin/", reason="to see it"),
            use("create_nodes", yaml=SIGN_IN, after=None, dry_run=None, reason="first") + execute("sign_in"),
            use("create_nodes", yaml=VENDORS, after=None, dry_run=None, reason="the list") + execute("vendors") + head,
            finish(summary="Lists the vendors of a country with their addresses."),
        ]
        flags = ["--url", f"{admin.url}/admin/", "-i", "country=Germany", "--secret", "DJANGO_PASSWORD", "--runs", "1"]
        goal = "List the vendors of a country"
        done, result = builds.built(said, *flags, "--effects", "hold", goal=goal, **secret)
        builds.close()
        assert (done.returncode, result["proved"]) == (0, "full"), done.stderr
        wanted = admin.sql(WANTED)
        assert wanted
        project = builds.project
        project.environment |= secret
        ran = project.runops("run", "list-the-vendors-of-a-country.yaml", "--frozen", "--json", "-i", "country=Germany")
        assert ran.returncode == 0, ran.stderr
        assert sorted(json.loads(ran.stdout)["runs"][0]["output"], key=lambda row: row["name"]) == wanted
