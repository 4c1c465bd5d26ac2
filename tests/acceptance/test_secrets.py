"""A secret in use, on pages that show it in every possible form: nothing that the run wrote contains it."""

from __future__ import annotations

import base64
import hashlib
import json
import signal
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runtime.browser import shared
from runtime.browser.chromium import find
from runtime.browser.options import BrowserOptions
from runtime.runs import start
from runtime.secrets import masking
from runtime.settings import settings
from runtime.workspace import host
from tests import shop_flows
from tests.command import Project
from tests.shop_process import Shop
from tests.terminal import still_running

SECRET = 'tr0ub4dor & "3" ünd mehr'

SIGN_IN = shop_flows.sign_in("Mirror")

PLACES: dict[str, str] = {
    "title": "{id: title, type: browser_action, action: wait, verify: [{title: Nothing like it}], timeout: 1, on_error: continue}",
    "url": "{id: url, type: browser_query, query: url}",
    "message": "{id: message, type: browser_query, query: text, target: {test_id: message}}",
    "table": "{id: table, type: browser_query, query: extract, target: {css: '#mirror tbody tr'}, fields: {value: td.value}}",
    "error": "{id: failing, type: browser_query, query: assert, rules: [{text: All is well}], timeout: 1, on_error: continue}",
    "button": "{id: button, type: browser_action, action: click, target: {role: button, name: tr0ub4dor and more}, timeout: 1, on_error: continue}",
    "label": "{id: label, type: browser_action, action: fill, target: {label: tr0ub4dor and more}, value: x, timeout: 1, on_error: continue}",
    "value": "{id: value, type: browser_query, query: value, target: {css: '#filled'}}",
    "encoded": "{id: encoded, type: browser_query, query: extract, target: {css: dl}, fields: {base64: dd:nth-of-type(1), percent: dd:nth-of-type(2), json: dd:nth-of-type(3)}}",
}


def flow(*places: str, more: str = "") -> str:
    """A workflow that signs in, and reads the secret in these places."""
    looks = "".join(
        f"  - {{id: to_{place}, type: browser_action, action: goto, url: '{{{{ inputs.base_url }}}}/mirror/{place}'}}\n"
        f"  - {PLACES[place]}\n"
        for place in places
    )
    return SIGN_IN + looks + more


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop whose password is the secret."""
    with Shop.start(tmp_path_factory.mktemp("shop"), password=SECRET) as shop:
        yield shop


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project that knows the secret."""
    project = Project(tmp_path, SHOP_PASSWORD=SECRET, RUNOPS_LINGER="60")
    yield project
    for file in tmp_path.glob(".runops/private/*/browser.json"):
        state = json.loads(file.read_text())
        for pid in (state["chromium"], state["watcher"]):
            try:
                psutil.Process(pid).kill()
            except psutil.NoSuchProcess:
                continue


def writings(secret: str) -> list[bytes]:
    """The secret plain, URL-encoded, in base64 and JSON-escaped, encoded independently of the masking code."""
    texts = [
        secret,
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote_plus(secret),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        base64.b64encode(secret.encode()).decode().rstrip("=")[:-1],
    ]
    return [text.encode() for text in texts]


@pytest.mark.drawn(0)
def test_nothing_that_a_run_writes_has_the_secret(project: Project, shop: Shop) -> None:
    """Log, blobs, stdout, stderr, `show` and `runs` are clean after the secret appeared in titles, addresses, messages, cells, labels, fields, errors and encodings."""
    looks = ", ".join(f"{place}: '{{{{ {place} }}}}'" for place in ("url", "message", "table", "value", "encoded"))
    project.write("flow.yaml", flow(*PLACES, more=f"output: {{{looks}}}\n"))
    ran = project.runops("run", "flow.yaml", "-i", f"base_url={shop.url}", "--json")
    assert ran.returncode == 0, ran.stderr
    shown = [project.runops("show", "last", *more) for more in ([], ["--json"], ["--at", "message"])]
    written = [each.stdout + each.stderr for each in (ran, *shown)]
    files = [file for file in project.folder.rglob("*") if file.is_file() and "private" not in file.parts]
    assert len(files) >= 3
    for place, data in [
        ("the command", "".join(written).encode()),
        *((file.name, file.read_bytes()) for file in files),
    ]:
        assert not [writing for writing in writings(SECRET) if writing in data], place
    (data,) = json.loads(ran.stdout)["runs"]
    output = data["output"]
    assert output["message"] == f"You typed {masking.MASK}."
    assert [row["value"] for row in output["table"]] == [masking.MASK, f"before {masking.MASK} after"]
    assert masking.MASK in output["url"]
    assert data["tolerated"] == 4


WAYS = """
  - {id: to_table, type: browser_action, action: goto, url: "{{ inputs.base_url }}/mirror/table"}
  - {id: rows, type: browser_query, query: extract, target: {css: '#mirror tbody tr'}, fields: {name: td.name, value: td.value}}
  - {id: seen, type: transform, expr: "{{ rows[1].value }}"}
  - {id: raised, type: transform, python: "shop_rules:fails", args: {text: "{{ seen }}"}, on_error: continue}
  - {id: cast, type: transform, sql: "SELECT value::INTEGER AS n FROM rows", on_error: continue}
  - {id: limit, type: transform, sql: "SELECT $x::DATE AS n", params: {x: "{{ seen }}"}, on_error: continue}
  - {id: pattern, type: transform, expr: "{{ 'x' | regex('(' ~ seen) }}", on_error: continue}
  - {id: number, type: transform, expr: "{{ seen | number }}", on_error: continue}
  - {id: parsed, type: transform, expr: "{{ seen | from_json }}", on_error: continue}
  - {id: dated, type: transform, expr: "{{ seen | date }}", on_error: continue}
  - {id: by_key, type: transform, expr: "{{ {'a': 1}[seen] }}", on_error: continue}
  - {id: untrue, type: browser_query, query: assert, rules: [{expr: "{{ seen == 'x' }}"}], on_error: continue}
  - {id: upload, type: browser_action, action: upload, target: {css: '#no'}, files: "{{ seen }}", timeout: 1, on_error: continue}
  - {id: no_such, type: browser_action, action: click, target: {role: row, name: "{{ seen }}!", within: {css: '#mirror'}}, timeout: 1, on_error: continue}
  - {id: named, type: transform, expr: text, save_as: "{{ seen }}.txt"}
  - {id: kept, type: context, set: {of_page: "{{ seen }}"}}
  - {id: part, type: group, use: part.yaml, with: {text: "{{ seen }}"}}
  - {id: misfit, type: group, use: part.yaml, with: {text: "{{ rows }}"}, on_error: continue}
  - id: each
    type: iterate
    over: "{{ rows }}"
    as: row
    each_error: continue
    nodes:
      - {id: not_so, type: browser_query, query: assert, rules: [{text: "{{ row.value }}?", target: {css: '#mirror'}}], timeout: 0.5}
  - {id: keyed, type: iterate, over: "{{ rows }}", as: one, key: "{{ one.value }}", nodes: [{id: k, type: transform, expr: 1}], on_error: continue}
  - id: caught
    type: handle
    try: [{id: tried, type: browser_query, query: assert, rules: [{text: "All well", target: {css: '#mirror'}}], timeout: 0.5}]
    catch: [{id: told, type: transform, expr: "{{ [error.message, error] }}"}]
  - {id: going, type: browser_action, action: goto, url: "http://other.test/?q={{ seen | urlencode }}", on_error: continue}
  - {id: to_dialog, type: browser_action, action: goto, url: "{{ inputs.base_url }}/mirror/dialog", on_error: continue}
  - {id: held_up, type: browser_query, query: title, timeout: 1, on_error: continue}
  - {id: other, type: browser_action, action: dialog, answer: accept, text: Something else, timeout: 1, on_error: continue}
  - {id: said, type: browser_action, action: dialog, answer: accept}
  - {id: last, type: transform, expr: "{{ seen }}"}
output: {all: "{{ [rows, seen, vars, part, caught, said, named, last] }}", errors: "{{ run.errors }}", failures: "{{ run.failures }}"}
"""

MASKLESS = {"misfit", "keyed", "parsed"}
"""Steps whose errors do not quote the value."""

PART = """
version: 1
inputs: {text: {type: string}}
nodes: [{id: same, type: transform, expr: "{{ inputs.text }}"}]
output: "{{ same }}"
"""

RULES = """
def fails(text):
    print(text)
    return int(text)
"""


@pytest.mark.drawn(0)
def test_no_value_or_error_from_a_page_shows_the_secret(project: Project, shop: Shop) -> None:
    """Functions, SQL, filters, files, tabs, used files, loops, handlers and dialogs that read it from a page expose it in no value, error or output."""
    project.write("pyproject.toml", '[tool.runops]\npython_modules = ["shop_rules"]\n')
    project.write("shop_rules.py", RULES)
    project.write("part.yaml", PART)
    project.write("flow.yaml", SIGN_IN + WAYS.lstrip("\n"))
    ran = project.runops("run", "flow.yaml", "-i", f"base_url={shop.url}", "--json", "--junit", "report.xml")
    assert ran.returncode == 0, ran.stderr
    asked = project.runops("query", "SELECT * FROM calls", "--csv")
    shown = [project.runops("show", "last", *more) for more in ([], ["--json"], ["--at", "caught/try/tried"])]
    files = [file for file in project.folder.rglob("*") if file.is_file() and "private" not in file.parts]
    output = "".join(each.stdout + each.stderr for each in (ran, asked, *shown))
    parts = [b"tr0ub4", b"nd mehr"]
    for place, data in [("the command", output.encode()), *((str(file), file.read_bytes()) for file in files)]:
        assert not [writing for writing in [*parts, *writings(SECRET)] if writing in data], place
    (run,) = json.loads(ran.stdout)["runs"]
    errors: dict[str, Any] = run["output"]["errors"]
    assert {name for name, error in errors.items() if masking.MASK not in json.dumps(error)} == MASKLESS
    assert run["output"]["all"][-1] == f"before {masking.MASK} after"
    assert len(run["output"]["failures"]["each"]) == 2


@pytest.fixture(scope="module")
async def kept_browser() -> AsyncIterator[None]:
    """One browser of mode *shared* for all runs that this module starts in its own process."""
    session = await shared.open_shared(find.find(), BrowserOptions(), origins=(), headed=False)
    yield
    await session.close()


@pytest.mark.drawn(1)
@pytest.mark.usefixtures("kept_browser")
@pytest.mark.parametrize("place", PLACES)
async def test_without_masking_the_scan_finds_it_in_each_place(
    place: str, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With masking disabled, the final scan finds the secret from each place, and fails the run with `secret-leaked`."""
    monkeypatch.setattr(masking.Masker, "json", lambda _self, value: value)
    monkeypatch.setattr(masking.Masker, "text", lambda _self, text: text)
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    file = tmp_path / "flow.yaml"
    file.write_text(flow(place))
    ended = await start.start(
        file, {"base_url": shop.url}, host.of_command(settings.load(home=tmp_path / "home", browser_mode="shared"))
    )
    assert ended.error is not None
    assert (ended.status, ended.error["code"]) == ("failed", "secret-leaked")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("chromium", ["survives", "gone"])
def test_a_kill_after_the_secret_was_read(project: Project, tmp_path: Path, chromium: str) -> None:
    """After a kill and a resume the next step gets the true value, or the run stops with `value-masked`. The mask is never a value."""
    use = '  - {id: use, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders/{{ message | sha256 }}"}\n'
    with Shop.start(tmp_path, password=SECRET) as shop:
        project.write("flow.yaml", flow("message", more=use))
        shop.switch("hold", "/orders/\\w+", method="GET")
        engine = project.start("run", "flow.yaml", "-i", f"base_url={shop.url}")
        shop.wait("held")
        state: dict[str, Any] = json.loads(next(project.folder.glob(".runops/private/*/browser.json")).read_text())
        engine.send_signal(signal.SIGKILL)
        engine.communicate()
        if chromium == "gone":
            browser = psutil.Process(state["chromium"])
            browser.kill()
            assert still_running([browser]) == []
        shop.clear()
        resumed = project.runops("resume", "last", "--json")
        said = json.loads(resumed.stdout)
        true = hashlib.sha256(f"You typed {SECRET}.".encode()).hexdigest()
        used = [line for line in shop.log.splitlines() if "GET /orders/" in line]
        assert all(true in line for line in used)
        if resumed.returncode == 0:
            assert len(used) == 2
        else:
            assert (resumed.returncode, said["error"]["code"]) == (1, "value-masked")
            assert "`message`" in said["error"]["message"]
