"""The pytest plugin, in sessions of pytest as a process: each costs seconds, so each shows many properties."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from runtime.browser.chromium import find
from tests import pages
from tests.command import Project
from tests.pages import ROOT
from tests.shop_process import Shop

CANARY = "canary-4711-password"

CONFTEST = """\
import os

import pytest


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return {**browser_type_launch_args, "executable_path": os.environ["CHROMIUM"]}


@pytest.fixture(scope="session")
def runops_inputs():
    return {"base_url": os.environ["SHOP"]}
"""

READS = """\
version: 1
inputs: {base_url: {type: string}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}
  - {id: seen, type: browser_query, query: text, target: {role: heading}}
output: {seen: "{{ seen }}"}
"""

CONTINUES = """\
version: 1
nodes:
  - id: seen
    type: browser_query
    query: text
    target: {role: heading}
output: "{{ seen }}"
"""

FAILS = """\
version: 1
inputs: {base_url: {type: string}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
  - {id: pay, type: browser_action, action: click, target: {role: button, name: Sign im}, timeout: 1}
"""

TYPES = """\
version: 1
inputs: {base_url: {type: string}}
secrets: [SHOP_PASSWORD]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
  - {id: user, type: browser_action, action: fill, target: {label: Username}, value: "{{ secrets.SHOP_PASSWORD }}"}
  - {id: seen, type: browser_query, query: value, target: {label: Username}}
  - {id: pay, type: browser_action, action: click, target: {role: button, name: "{{ seen }}"}, timeout: 1}
output: "{{ seen }}"
"""

SENDS = """\
version: 1
inputs: {base_url: {type: string}}
secrets: [SHOP_PASSWORD]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
  - {id: user, type: browser_action, action: fill, target: {label: Username}, value: admin}
  - {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
  - {id: send, type: browser_action, action: click, target: {role: button, name: Sign in}}
"""

LEAVES = """\
version: 1
inputs: {base_url: {type: string}, elsewhere: {type: string}}
allowed_origins: ["{{ inputs.base_url }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}
  - {id: leave, type: browser_action, action: goto, url: "{{ inputs.elsewhere }}/orders"}
"""

PHONE = """\
version: 1
browser: {viewport: {width: 400, height: 300}}
inputs: {base_url: {type: string}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
  - {id: seen, type: browser_query, query: title}
output: "{{ seen }}"
"""

COUNTS = """\
version: 1
inputs: {words: {type: list}}
nodes:
  - {id: count, type: transform, expr: "{{ inputs.words | length }}"}
output: "{{ count }}"
"""

TESTS = """\
import os
from concurrent import futures
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

SHOP = os.environ["SHOP"]


def test_shares_the_page(page: Page, run_workflow):
    page.goto(f"{SHOP}/login")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("correct-horse")
    page.get_by_role("button", name="Sign in").click()
    heard = []
    page.on("request", lambda request: heard.append(request.url))
    ended = run_workflow("flows/reads.yaml")
    assert ended.output == {"seen": "Orders"}
    assert f"{SHOP}/orders" in heard
    assert page.url == f"{SHOP}/orders"
    assert run_workflow("flows/continues.yaml").output == "Orders"
    assert page.evaluate("confirm('Really?')") is False, "Playwright dismisses again what nobody listens to"
    page.goto(SHOP.replace("127.0.0.1", "localhost") + "/login")
    assert len(page.context.pages) == 1


def test_works_on_pages_of_another_playwright(run_workflow):
    def work():
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"])
            page = browser.new_page()
            page.goto(f"{SHOP}/login")
            with pytest.raises(pytest.fail.Exception, match="page-too-early"):
                run_workflow("flows/continues.yaml", page=page)
            assert run_workflow("flows/reads.yaml", page=browser.new_page()).output == {"seen": "Sign in"}
            browser.close()

    with futures.ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()


def test_shares_the_context(context, run_workflow):
    context.request.post(f"{SHOP}/login", form={"username": "admin", "password": "correct-horse"})
    assert run_workflow("flows/reads.yaml").output == {"seen": "Orders"}


def test_fails(run_workflow):
    run_workflow("flows/fails.yaml")


def test_fails_unchecked(run_workflow):
    ended = run_workflow("flows/fails.yaml", check=False)
    assert (ended.status, ended.error["code"]) == ("failed", "target-not-found")


def test_hides(page: Page, run_workflow):
    ended = run_workflow("flows/types.yaml", secrets={"SHOP_PASSWORD": os.environ["CANARY"]}, check=False)
    assert ended == "something else"


def test_hides_what_is_sent(page: Page, run_workflow):
    page.goto(SHOP)
    run_workflow("flows/sends.yaml", secrets={"SHOP_PASSWORD": os.environ["CANARY"]})
    page.goto(SHOP + "/prices")


def test_hides_when_it_fails(run_workflow):
    run_workflow("flows/types.yaml", secrets={"SHOP_PASSWORD": os.environ["CANARY"]})


def test_lacks_a_secret(run_workflow):
    run_workflow("flows/types.yaml")


def test_is_guarded(page: Page, run_workflow):
    elsewhere = SHOP.replace("127.0.0.1", "localhost")
    ended = run_workflow("flows/leaves.yaml", {"elsewhere": elsewhere}, check=False)
    assert ended.error["code"] == "origin-refused"
    page.goto(elsewhere + "/login")


def test_has_the_options_of_the_file(run_workflow):
    assert run_workflow("flows/phone.yaml").status == "passed"


def test_has_other_options(page: Page, run_workflow):
    run_workflow("flows/phone.yaml")


@pytest.mark.browser_context_args(viewport={"width": 400, "height": 300})
def test_has_the_same_options(page: Page, run_workflow):
    run_workflow("flows/phone.yaml")


def test_needs_no_page(run_workflow):
    assert run_workflow(Path("flows/counts.yaml"), {"words": ["a", "b"]}).output == 2


def test_is_mistaken(run_workflow):
    run_workflow("flows/counts.yaml", {"word": []})
"""


class Pytest:
    """A folder with tests and workflows, and pytest in it."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        (folder / "flows").mkdir()
        (folder / "pytest.ini").write_text("[pytest]\n")
        self._environment = {
            **Project(folder).environment,
            "CHROMIUM": str(find.find()),
            "CANARY": CANARY,
            **environment,
        }

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / "flows" / f"{name}.yaml").write_text(text)

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run pytest, and return its exit code and all that it printed."""
        command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(
            command, check=False, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stdout + done.stderr


def part(output: str, test: str) -> str:
    """What pytest printed about a test that failed."""
    return re.split(rf"\n_+ {re.escape(test)}(?:\[chromium\])? _+\n", output)[1].split("\n____")[0]


def test_workflows_run_on_the_pages_of_tests(tmp_path: Path) -> None:
    """A workflow works on the page of its test, and leaves it as a test needs it; a failure shows our text, and no secret is shown."""
    with Shop.start(tmp_path / "shop", orders=3, paid=0) as shop:
        tests = Pytest(tmp_path, SHOP=shop.url)
        tests.write(
            reads=READS,
            continues=CONTINUES,
            fails=FAILS,
            types=TYPES,
            sends=SENDS,
            leaves=LEAVES,
            phone=PHONE,
            counts=COUNTS,
        )
        (tmp_path / "conftest.py").write_text(CONFTEST)
        (tmp_path / "test_shop.py").write_text(TESTS)
        for block in pages.blocks(ROOT / "docs/pytest.md"):
            if block.file:
                file = tmp_path / "page" / block.file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text.replace("http://127.0.0.1:8765", shop.url))
        code, output = tests.run("-n", "2", "--tracing", "on", "-rA")
    assert "PASSED page/test_orders.py::test_an_open_order_can_be_paid" in output, output
    passed = set(re.findall(r"PASSED test_shop\.py::(\w+)", output))
    failed = {"test_fails", "test_hides", "test_hides_when_it_fails", "test_lacks_a_secret", "test_has_other_options"}
    failed |= {"test_is_mistaken"}
    assert set(re.findall(r"FAILED test_shop\.py::(\w+)", output)) == failed, output
    assert passed == set(re.findall(r"def (test_\w+)", TESTS)) - failed
    assert code == 1
    text = part(output, "test_fails")
    assert re.search(r"FAILED pay   .*\n", text), text
    assert "code     target-not-found" in text
    assert "at       flows/fails.yaml:5:5" in text
    assert re.search(r"look     runops show \w+ --at pay", text)
    assert "Traceback" not in text
    assert ".py" not in text.split("Captured")[0]
    assert "page-lacks" in part(output, "test_has_other_options")
    assert "secret-missing" in part(output, "test_lacks_a_secret")
    assert "did you mean `words`?" in part(output, "test_is_mistaken")
    assert "During handling" not in output
    assert "[hidden]" in part(output, "test_hides_when_it_fails")
    assert CANARY not in output
    assert len([*(tmp_path / ".runops" / "conversations").iterdir()]) == 15
    traces = [*(tmp_path / "test-results").rglob("*.zip")]
    assert len(traces) >= 8
    for trace in traces:
        with zipfile.ZipFile(trace) as content:
            assert not any(CANARY.encode() in content.read(name) for name in content.namelist()), trace


COUNTED = """\
version: 1
inputs: {words: {type: list}, least: {type: integer, default: 0}}
nodes:
  - {id: count, type: transform, expr: "{{ inputs.words | length }}", verify: [{expr: "{{ inputs.words | length >= inputs.least }}"}]}
output: "{{ count }}"
tests:
  - name: counts two words
    inputs: {words: [a, b]}
    expect: {output: 2}
  - name: counts wrongly
    inputs: {words: [a, b]}
    expect: {output: 3}
  - name: fails as it should
    inputs: {words: [], least: 1}
    expect: {status: failed, error: verify-failed}
  - name: fails otherwise
    inputs: {words: [], least: 1}
    expect: {status: failed, error: timeout}
  - {name: fails, inputs: {words: [], least: 1}}
  - {name: lacks an input}
"""

VISITED = """\
version: 1
inputs: {base_url: {type: string, default: "http://127.0.0.1:9"}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
  - {id: seen, type: browser_query, query: title}
output: "{{ seen }}"
tests:
  - name: shows the page
    expect: {output: Sign in – Corner Shop}
"""

INVALID = """\
version: 1
inputs: {words: {type: list}}
nodes:
  - {id: count, type: transform, expr: "{{ inputs.words | length }}"}
tests:
  - {name: one, inputs: {word: []}}
"""


@pytest.mark.drawn(1, of="pytest")
def test_tests_of_workflow_files_are_collected_when_asked(tmp_path: Path) -> None:
    """Each is an item with the name, the place and the expectation of the file; a file with mistakes shows them at their place."""
    with Shop.start(tmp_path / "shop", orders=1, paid=0) as shop:
        tests = Pytest(tmp_path, SHOP=shop.url)
        tests.write(counted=COUNTED, visited=VISITED, invalid=INVALID, none=COUNTS, other="tests: [1]\n")
        (tmp_path / "conftest.py").write_text(CONFTEST)
        code, output = tests.run("--runops", "--continue-on-collection-errors", "-rA", "--junitxml=out.xml")
    ids = {*re.findall(r"^PASSED (flows/.*?)$", output, re.MULTILINE)}
    assert ids == {
        "flows/counted.yaml::counts two words",
        "flows/counted.yaml::fails as it should",
        "flows/visited.yaml::shows the page[chromium]",
    }, output
    assert code == 1
    text = part(output, "counts wrongly")
    assert "another output" in text
    assert re.search(r"expected output  3\n  seen output +2\n", text)
    assert "expected error  timeout" in part(output, "fails otherwise")
    assert re.search(r"FAILED count .*\n(.*\n)*  at +flows/counted.yaml:4:5", part(output, "fails"))
    assert "error[missing-input]" in part(output, "lacks an input")
    assert "error[unknown-input]: the workflow has no input `word`\n --> flows/invalid.yaml:6:26" in output
    assert "Traceback" not in output
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "out.xml").iter("testcase")}
    assert [each.get("name") for each in cases["counts wrongly"].iter("property")] == ["runops_run"]
    assert cases["counts wrongly"].get("classname") == "flows.counted.yaml"


@pytest.mark.drawn(1, of="pytest")
def test_a_session_that_does_not_ask_pays_nothing(tmp_path: Path) -> None:
    """Without the flag no workflow is collected, and nothing of RunOps is imported but the plugin itself; a test is selected by its name."""
    tests = Pytest(tmp_path, SHOP="http://127.0.0.1:9")
    tests.write(counted=COUNTED, invalid=INVALID)
    (tmp_path / "test_alone.py").write_text(ALONE)
    code, output = tests.run("-q")
    assert (code, "1 passed" in output) == (0, True), output
    tests.write(invalid=COUNTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nrunops = true\n")
    code, output = tests.run("-p", "no:playwright", "-v", "flows/counted.yaml::counts two words")
    assert (code, "flows/counted.yaml::counts two words PASSED" in output) == (0, True), output
    tests.write(visited=VISITED)
    code, output = tests.run("-p", "no:playwright", "-k", "shows")
    assert "error[extra-missing]" in output


ALONE = """\
import sys


def test_alone():
    loaded = {name for name in sys.modules if name.partition(".")[0] in ("runtime", "nodes", "director", "pydantic")}
    assert loaded == {"runtime", "runtime.pytest_plugin", "runtime.pytest_plugin.plugin"}
"""
