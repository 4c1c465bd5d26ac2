"""HTTP authentication: the answers that ask for it, and the line that says how a workflow signs in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from playwright.async_api import Error
from typing_extensions import override

from nodes.rules import Rule
from nodes.values import Json
from runtime.browser import deadline, http_sign_in
from runtime.browser.diagnosis import diagnosis
from runtime.browser.elements import rules


@pytest.mark.parametrize(
    ("status", "challenge", "asks"),
    [
        (401, 'Basic realm="Syncthing"', True),
        (401, "basic", True),
        (401, 'Bearer realm="x", Digest realm="y", nonce="z"', True),
        (401, "Negotiate\nBasic", True),
        (401, 'Bearer realm="basic"', False),
        (401, "Basically", False),
        (401, None, False),
        (403, "Basic", False),
    ],
)
def test_an_answer_asks_if_it_names_a_scheme_that_takes_a_password(
    status: int, challenge: str | None, asks: bool
) -> None:
    """A 401 asks with Basic or Digest, in any place of the header; without one, or with another status, it does not."""
    headers = {} if challenge is None else {"www-authenticate": challenge}
    assert http_sign_in.asked(status, headers) == asks


@pytest.mark.parametrize(
    ("secrets", "name", "end"), [([], "NAME", ""), (["PW"], "PW", ""), (["USER", "PW"], "NAME", "; secrets: USER, PW")]
)
def test_the_line_has_what_to_write_with_the_names_of_the_secrets(secrets: list[str], name: str, end: str) -> None:
    """A single secret is filled in; of several the names are listed. What the site has refused is to be corrected."""
    written = f'`browser: {{http_credentials: {{username: ada, password: "{{{{ secrets.{name} }}}}"}}}}`'
    line = http_sign_in.fix(secrets, given=False)
    assert f"write {written} in the head of the workflow" in line
    assert line.endswith(f"workflow{end}")
    assert "\n" not in line
    assert "correct them" in http_sign_in.fix(secrets, given=True)


class Quiet(diagnosis.Diagnosis):
    """The diagnosis of a page without signs."""

    @override
    async def says(self) -> dict[str, Json]:
        return {}


def diagnosed() -> diagnosis.Diagnosis:
    """A diagnosis on a page of the site, in a browser without credentials."""
    run: Any = SimpleNamespace(
        deadline=deadline.Deadline(),
        refusal=lambda: None,
        answers=SimpleNamespace(reached=False),
        sign_in_fix=lambda: http_sign_in.fix(["PW"], given=False),
    )
    page: Any = SimpleNamespace(url="http://site.test/list")
    settle: Any = None
    return Quiet(page, run, settle)


@pytest.mark.anyio
async def test_an_error_of_such_a_page_has_the_line_as_its_fix() -> None:
    """An address that the browser cannot load for lack of a password, and a rule that does not hold on the site's answer, have the line; others do not."""
    line, here = http_sign_in.fix(["PW"], given=False), diagnosed()
    for name, wanted in (("ERR_INVALID_AUTH_CREDENTIALS", True), ("ERR_CONNECTION_RESET", False)):
        failed = await here.not_loaded(Error(f"Page.goto: net::{name} at http://site.test/list"), "http://site.test/")
        assert (failed.fix == line) == wanted
    rule, look = Rule(url="**/home"), rules.RuleCheck(False, "**/home", "http://site.test/list")
    assert (await here.rule_failed(rule, look)).fix != line
    here.asked_credentials = True
    assert (await here.rule_failed(rule, look)).fix == line
