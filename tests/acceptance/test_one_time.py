"""A site with a second factor, signed in to by the command."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyotp.totp import TOTP

from tests.command import Project
from tests.site import Answer, Request, Site, serve

KEY = "JBSW Y3DP EHPK 3PXP JBSW Y3DP"

FLOW = """\
version: 1
inputs: {base: {type: string}}
secrets: [SHOP_OTP]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/code"}
  - {id: code, type: browser_action, action: fill, target: {label: Code}, value: "{{ totp(secrets.SHOP_OTP) }}"}
  - {id: send, type: browser_action, action: click, target: {role: button, name: Send}, effect: idempotent}
  - {id: seen, type: browser_query, query: text, target: {css: h1}}
output: "{{ seen }}"
"""

FORM = "<!doctype html><title>Code</title><form method=post action=/in><label>Code <input name=code></label><button>Send</button></form>"


@pytest.fixture
def codes() -> list[str]:
    """The codes that the site was sent."""
    return []


@pytest.fixture
def site(codes: list[str]) -> Iterator[Site]:
    def sign_in(request: Request) -> Answer:
        code = urllib.parse.parse_qs(request.body)["code"][0]
        codes.append(code)
        right = TOTP(KEY.replace(" ", "")).verify(code)
        return Answer(f"<!doctype html><title>In</title><h1>{'Welcome' if right else 'Wrong'}, {code}</h1>")

    with serve() as served:
        served.page("/code", FORM)
        served.answer("/in", sign_in)
        yield served


def test_a_site_asks_for_a_code(site: Site, codes: list[str], tmp_path: Path) -> None:
    """The site accepts the code of the key, which no output and no file of the run has: a page that repeats it is masked."""
    project = Project(tmp_path, SHOP_OTP=KEY)
    project.write("flow.yaml", FLOW)
    done = project.runops("run", "flow.yaml", "-i", f"base={site.origin}")
    assert done.returncode == 0, done.stderr
    (code,) = codes
    assert "Welcome" in done.stdout
    assert code not in done.stdout + done.stderr
    assert "SHOP_OTP" in project.here("show", "last", "--at", "code").stdout
    kept = [file for file in (tmp_path / ".runops").rglob("*") if file.is_file() and "private" not in file.parts]
    assert kept
    assert [file for file in kept if code in file.read_bytes().decode(errors="replace")] == []


def test_a_key_that_is_none(site: Site, tmp_path: Path) -> None:
    """A key that cannot be read stops the run before anything is typed; the error has the fix and not the key."""
    project = Project(tmp_path, SHOP_OTP="hunter-2222")
    project.write("flow.yaml", FLOW)
    done = project.runops("run", "flow.yaml", "-i", f"base={site.origin}")
    assert done.returncode == 3
    assert "error[otp-secret]" in done.stderr or "otp-secret" in done.stderr
    assert "hunter-2222" not in done.stderr
