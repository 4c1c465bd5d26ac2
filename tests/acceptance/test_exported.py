"""Exported examples pass under plain pytest-playwright, without RunOps, and do the same on the site."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.browser.chromium import find
from tests import site
from tests.command import Project
from tests.shop_process import Shop

ROOT = Path(__file__).parents[2]
SECONDS = 180.0

# A loop with extracted rows; branches and a used file; a dialog; a popup and frames.
EXAMPLES = ("pay_orders", "triage_orders", "refund_order", "book_delivery")

ALONE = """
import sys

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("runtime", "nodes", "director", "workflows", "tests"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Blocked())
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
"""Pytest where nothing of RunOps can be imported."""

CONFTEST = """
import os
import pytest

@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return {**browser_type_launch_args, "executable_path": os.environ["CHROMIUM"]}
"""


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[tuple[Shop, Shop]]:
    """Two shops with the same orders."""
    with Shop.start(tmp_path / "one", orders=6) as one, Shop.start(tmp_path / "other", orders=6) as other:
        yield one, other


def plain_pytest(
    folder: Path, url: str, *names: str, password: str = "correct-horse"
) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ},
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CHROMIUM": str(find.find()),
        "SHOP_PASSWORD": password,
        "INPUT_BASE_URL": url,
    }
    options = ("-p", "pytest_playwright.pytest_playwright", "-p", "no:cacheprovider", "-s", "-q", "-rA")
    return subprocess.run(
        [sys.executable, "-I", "-c", ALONE, *options, "--rootdir", ".", *(f"test_{name}.py" for name in names)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def printed(text: str) -> list[Any]:
    """The JSON objects that the tests printed, in order."""
    found: list[Any] = []
    decoder = json.JSONDecoder()
    while (start := text.find("{\n")) >= 0:
        value, end = decoder.raw_decode(text[start:])
        found.append(value)
        text = text[start + end :]
    return found


def done(shop: Shop) -> list[tuple[str, str]]:
    """What happened in a shop, without the numbers of its drafts."""
    return sorted((each["kind"], each["subject"]) for each in shop.ledger())


@pytest.mark.drawn(0)
def test_exported_examples_do_what_the_workflows_do(tmp_path: Path, shops: tuple[Shop, Shop]) -> None:
    """The outputs and the effects on the site are those of runs; with a site that no longer does its part the tests fail."""
    one, other = shops
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    project = Project(tmp_path, SHOP_PASSWORD=one.password)
    files = [f"workflows/{name}.yaml" for name in EXAMPLES]
    ran = project.runops("run", *files, "--json", "-i", f"base_url={one.url}", seconds=SECONDS)
    assert ran.returncode == 0, ran.stderr

    exported = project.runops("export", "--pytest", *files, "--output", "plain")
    assert exported.returncode == 0, exported.stderr
    assert "  pay: `confirm`, which asks the site after a crash whether this happened" in exported.stderr
    plain = tmp_path / "plain"
    (plain / "conftest.py").write_text(CONFTEST)
    passed = plain_pytest(plain, other.url, *EXAMPLES)
    assert passed.returncode == 0, passed.stdout
    assert f"{len(EXAMPLES)} passed" in passed.stdout
    assert printed(passed.stdout) == [each["output"] for each in json.loads(ran.stdout)["runs"]]
    assert done(other) == done(one)
    assert len(other.ledger("payment")) == 5

    without = plain_pytest(plain, other.url, "pay_orders", password="")
    assert without.returncode == 1
    assert "\nset SHOP_PASSWORD in the environment\n" in without.stdout
    assert "Traceback" not in without.stdout

    # The shop refuses a payment, and a decision.
    for file in plain.glob("test_*.py"):
        file.write_text(file.read_text().replace("timeout=30_000", "timeout=1_000"))
    with Shop.start(tmp_path / "broken", orders=6) as broken:
        broken.switch("break", path="/orders/1001/pay", method="POST")
        broken.switch("break", path="/triage/1001", method="POST")
        failed = plain_pytest(plain, broken.url, "pay_orders", "triage_orders")
    assert failed.returncode == 1
    assert "2 failed" in failed.stdout, failed.stdout
    assert 'expect(containing(page.get_by_role("row"), order["number"])).to_contain_text(' in failed.stdout


PAGE = """<!doctype html><meta charset="utf-8"><title>Every step</title>
<h1>Every step</h1>
<script>const log = (text) => { const li = document.createElement('li'); li.textContent = text; document.querySelector('#log').append(li); };</script>
<label>Name <input id="name"></label> <label>Hidden <input hidden></label>
<label>Key <input id="key" onkeydown="log('key ' + event.key)"></label>
<label>Box <input type="checkbox"></label> <label>Many <select multiple><option value="a">Alpha</option><option>Beta</option><option>Gamma</option></select></label>
<label>File <input type="file" id="file" onchange="log('file ' + this.files[0].name)"></label>
<button onclick="chosen.click()">Choose</button><input type="file" id="chosen" hidden multiple onchange="log('chosen ' + this.files.length)">
<button onclick="log('asked ' + confirm('Delete 7 items?'))">Delete</button>
<button onclick="log('said ' + prompt('Your name?'))">Greet</button>
<button onclick="window.open('/popup')">Open</button>
<a download="data.txt" href="data:text/plain,12%20apples">Download</a>
<div id="drag" style="width:50px;height:50px;background:red" onmousedown="this.x=event.clientX" onmouseup="log('let go')">D</div>
<canvas width="100" height="50" onmousedown="log('down ' + event.offsetX)" onmouseup="log('up ' + event.offsetX)"></canvas>
<div id="area" tabindex="0" ondblclick="log('twice')" oncontextmenu="log('menu ' + event.shiftKey); return false" onmouseenter="log('over')" onclick="log('click ' + event.offsetX)" style="width:90px;height:30px">area</div>
<table><thead><tr><th>Item</th><th>Price</th></tr></thead><tbody>
<tr><td>Tea 1/2 (big)</td><td>1,234.50 €</td></tr><tr><td>Tea</td><td>−3</td></tr><tr hidden><td>Ghost</td><td>0</td></tr><tr><td>Café #5 &amp; co</td><td>5</td></tr></tbody></table>
<section><h2>Cards</h2><div class="card"><b>100</b> <i>paid</i></div><div class="card"><b>1007</b> <i>unpaid</i></div><div class="card"><b>7</b> <i title="extra">paid</i></div></section>
<p id="state"><input disabled value="5"></p>
<iframe name="inner" src="/inner"></iframe>
<div id="late"></div><script>setTimeout(() => { late.textContent = 'ready'; }, 600);</script>
<div id="gone">soon gone</div><script>setTimeout(() => gone.remove(), 400);</script>
<a href="/second?page=2">Second</a>
<ul id="log"></ul>
"""

STEPS = """version: 1
name: Every step
inputs: {base_url: {type: string}, name: {type: string, default: "Café #5 & co"}, number: {type: integer, default: 7}}
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/", verify: [{title: Every}]}
  - {id: wait, type: browser_action, action: wait, verify: [{text: ready, target: {css: "#late"}}, {hidden: {css: "#gone"}}, {visible: {role: heading, name: every step}}]}
  - {id: fill, type: browser_action, action: fill, target: {label: Name}, value: "{{ inputs.number }}", verify: [{value: "7", target: {label: Name}}]}
  - {id: paste, type: browser_action, action: type, target: {label: Key}, value: ab, effect: idempotent}
  - {id: keys, type: browser_action, action: press, target: {label: Key}, key: [Backspace, "c"], count: 2, effect: idempotent}
  - {id: box, type: browser_action, action: check, target: {label: Box}, checked: "{{ inputs.number > 3 }}", verify: [{checked: true, target: {label: Box}}]}
  - {id: many, type: browser_action, action: select, target: {label: Many}, value: [Alpha, Gamma]}
  - {id: file, type: browser_action, action: upload, target: {label: File, exact: true}, files: note.txt, effect: idempotent}
  - {id: ask, type: browser_action, action: click, target: {role: button, name: Delete}, effect: idempotent}
  - {id: sure, type: browser_action, action: dialog, answer: accept, text: 7 items, effect: idempotent}
  - {id: greet, type: browser_action, action: click, target: {role: button, name: Greet}, effect: idempotent}
  - {id: reply, type: browser_action, action: dialog, answer: accept, value: Ada, effect: idempotent}
  - {id: popup, type: browser_action, action: click, target: {role: button, name: Open}, opens: second, effect: idempotent}
  - {id: in_popup, type: browser_query, query: text, tab: second, target: {css: h1}}
  - {id: close, type: browser_action, action: close_tab, tab: second}
  - {id: got, type: browser_action, action: download, target: {role: link, name: Download}}
  - {id: upload_it, type: browser_action, action: upload, target: {role: button, name: Choose}, files: [note.txt, "{{ got }}"], effect: idempotent}
  - {id: hover, type: browser_action, action: hover, target: {css: "#area"}}
  - {id: at, type: browser_action, action: click, target: {css: "#area"}, at: {x: 5, y: 6}, effect: idempotent}
  - {id: twice, type: browser_action, action: dblclick, target: {css: "#area"}, at: {x: 8, y: 6}, effect: idempotent}
  - {id: menu, type: browser_action, action: click, target: {css: "#area"}, button: right, modifiers: [Shift], effect: idempotent}
  - {id: draw, type: browser_action, action: draw, target: {css: canvas}, path: [{x: 10, y: 10}, {x: 60, y: 20}], effect: idempotent}
  - {id: in_frame, type: browser_action, action: fill, target: {label: Inside, frame: inner}, value: there}
  - {id: from_frame, type: browser_query, query: value, target: {label: Inside, frame: "**/inner"}}
  - {id: nested, type: browser_query, query: text, target: {css: i, within: {css: li, has_text: "two", frame: "iframe[name=inner]"}}}
  - {id: prices, type: browser_query, query: table, target: {css: table}, columns: {item: item, price: {header: Price, type: number}}}
  - {id: whole, type: browser_query, query: table, target: {css: table}}
  - {id: cards, type: browser_query, query: extract, target: {css: .card}, fields: {number: {css: b, type: integer}, state: i, extra: {css: i, attribute: title, optional: true}, gone: {css: u, optional: true}}}
  - {id: row, type: browser_query, query: text, as: number, target: {css: "td:nth-child(2)", within: {role: row, has_text: "Tea 1/2 (big)"}}}
  - {id: named, type: browser_query, query: text, target: {css: "td + td", within: {role: row, has_text: "{{ inputs.name }}"}}}
  - {id: card, type: browser_query, query: text, target: {css: i, within: {css: .card, has_text: "{{ inputs.number }}"}}}
  - {id: paid, type: browser_query, query: count, target: {css: .card, has_text: paid}}
  - {id: rows, type: browser_query, query: count, target: {css: tbody tr}}
  - {id: last, type: browser_query, query: text, target: {css: .card, nth: -1}}
  - {id: any, type: browser_query, query: text, target: {any_of: [{css: .missing}, {css: h1}]}}
  - {id: there, type: browser_query, query: exists, target: {text: Ghost}}
  - {id: hidden, type: browser_query, query: exists, target: {text: Ghost}, hidden: true}
  - {id: href, type: browser_query, query: attribute, target: {role: link, name: Second}, attribute: href}
  - {id: shot, type: browser_action, action: screenshot}
  - {id: log, type: browser_query, query: extract, target: {css: "#log li"}, fields: {line: {}}}
  - {id: right, type: browser_query, query: assert, rules: [{count: 3, target: {css: "tbody tr"}}, {text: "1,234.50 €", target: {css: table}}, {enabled: false, target: {css: "#state input"}}, {text: Cards}, {expr: "{{ rows == 3 }}"}]}
  - {id: follow, type: browser_action, action: click, target: {role: link, name: Second}, effect: idempotent, verify: [{url: "**/second"}, {url: "**/second?page={{ 1 + 1 }}"}]}
  - {id: url, type: browser_query, query: url}
  - {id: back, type: browser_action, action: back}
  - {id: title, type: browser_query, query: title}
  - {id: list, type: browser_action, action: goto, url: "{{ inputs.base_url }}/list"}
  - {id: all, type: browser_query, query: extract, target: {css: li}, fields: {line: {}, link: {css: a, attribute: href, optional: true}}, next: {role: link, name: Next}, key: line}
output:
  all: "{{ all }}"
  keys: "{{ log | map(attribute='line') | list }}"
  said: ["{{ sure }}", "{{ reply }}", "{{ in_popup }}", "{{ many }}"]
  got: ["{{ got.name }}", "{{ got.size }}", "{{ got.sha256 }}", "{{ shot.name }}"]
  frames: ["{{ from_frame }}", "{{ nested }}"]
  tables: ["{{ prices }}", "{{ whole }}", "{{ cards }}"]
  found: ["{{ row }}", "{{ named }}", "{{ card }}", "{{ paid }}", "{{ rows }}", "{{ last }}", "{{ any }}", "{{ there }}", "{{ hidden }}", "{{ href }}"]
  title: "{{ title }}"
"""


def listed(request: site.Request) -> site.Answer:
    """Three pages of a list; each repeats the last row of the one before."""
    number = int(request.query.get("page", "1"))
    rows = "".join(f"<li>row {each}</li>" for each in range(2 * number, 2 * number + 3))
    more = f'<a href="/list?page={number + 1}">Next</a>' if number < 3 else ""
    return site.Answer(f"<!doctype html><ul>{rows}</ul>{more}", headers={"content-type": "text/html"})


@pytest.mark.drawn(0)
def test_every_step_does_the_same_in_plain_playwright(tmp_path: Path) -> None:
    """Actions, targets, rules and readings of a page with all of them have the same effect and values as in a run."""
    with site.serve() as served:
        served.page("/", PAGE, content_type="text/html")
        served.page("/popup", "<!doctype html><title>Popup</title><h1>In a popup</h1>")
        served.page("/second", "<!doctype html><title>Second</title><h1>Second</h1>")
        inner = "<!doctype html><label>Inside <input></label><ul><li>one <i>1</i></li><li>two <i>2</i></li></ul>"
        served.page("/inner", inner)
        served.answer("/list", listed)
        project = Project(tmp_path)
        project.write("note.txt", "note")
        project.write("steps.yaml", STEPS)
        ran = project.runops("run", "steps.yaml", "--json", "-i", f"base_url={served.origin}", seconds=SECONDS)
        assert ran.returncode == 0, ran.stderr
        exported = project.runops("export", "--pytest", "steps.yaml", "--output", "plain")
        assert exported.returncode == 0, exported.stderr
        plain = tmp_path / "plain"
        (plain / "conftest.py").write_text(CONFTEST)
        (plain / "note.txt").write_text("note")
        passed = plain_pytest(plain, served.origin, "steps")
        assert passed.returncode == 0, passed.stdout
    (output,) = (each["output"] for each in json.loads(ran.stdout)["runs"])
    assert printed(passed.stdout) == [output]
