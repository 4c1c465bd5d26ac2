"""One-time codes: those of the standard, when they are made, and where they never stand."""

from __future__ import annotations

import base64
import sys
import urllib.parse
from pathlib import Path

import pytest
from typing_extensions import override

from nodes.errors import RunOpsError
from nodes.pages import ElementAction
from nodes.targets import Target
from runtime import events
from runtime.language import callees, reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.secrets import one_time
from runtime.secrets.masking import Masker
from tests.fakes import FakePage
from tests.rig import Rig
from tests.unit.test_resume import OPEN, flow

KEYS = {
    "SHA1": b"12345678901234567890",
    "SHA256": b"12345678901234567890123456789012",
    "SHA512": b"1234567890123456789012345678901234567890123456789012345678901234",
}
VECTORS = """
59          94287082 46119246 90693936
1111111109  07081804 68084774 25091201
1111111111  14050471 67062674 99943326
1234567890  89005924 91819424 93441116
2000000000  69279037 90698825 38618901
20000000000 65353130 77737706 47863826
"""
"""Appendix B of RFC 6238: the time, and the codes of the three algorithms."""

PLAIN = base64.b32encode(KEYS["SHA1"]).decode()


@pytest.mark.parametrize("line", VECTORS.split("\n")[1:-1])
def test_codes_of_the_standard(line: str) -> None:
    """The test vectors of RFC 6238 hold, for keys given as addresses with digits, algorithm and period."""
    moment, *codes = line.split()
    for (algorithm, key), code in zip(KEYS.items(), codes, strict=True):
        query = {
            "secret": base64.b32encode(key).decode().rstrip("="),
            "digits": "8",
            "algorithm": algorithm,
            "period": "30",
        }
        address = f"otpauth://totp/Shop:zoe?{urllib.parse.urlencode(query)}"
        assert one_time.code(address, float(moment)).text == code


@pytest.mark.parametrize(
    "form", [PLAIN, PLAIN.lower(), " ".join(PLAIN[i : i + 4] for i in range(0, 32, 4)), f" {PLAIN}\n"]
)
def test_forms_of_a_key(form: str) -> None:
    """A key in base32 counts with blanks and in any case; its code has six digits and is valid to the end of its period."""
    assert one_time.code(form, 59.0) == one_time.Code("287082", 1.0)
    assert one_time.code(form, 31.5).left == 28.5


def test_another_period() -> None:
    """The period of an address decides how long its code is valid."""
    assert one_time.code(f"otpauth://totp/x?secret={PLAIN}&period=60", 59.0) == one_time.Code(
        one_time.code(PLAIN, 29.0).text, 1.0
    )


@pytest.mark.parametrize(
    "secret",
    [
        "not base32!",
        "otpauth://totp/x",
        f"otpauth://hotp/x?secret={PLAIN}&counter=1",
        f"otpauth://totp/x?secret={PLAIN}&digits=many",
        f"otpauth://totp/x?secret={PLAIN}&period=1",
        f"otpauth://totp/x?secret={PLAIN}&algorithm=ROT13",
    ],
)
def test_no_key(secret: str) -> None:
    """What is no key for codes by time is refused, and the error does not show it."""
    with pytest.raises(RunOpsError) as refused:
        one_time.code(secret, 59.0)
    assert refused.value.code == "otp-secret"
    assert secret not in str(refused.value.as_json())


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the error names the command that installs it."""
    monkeypatch.setitem(sys.modules, "pyotp", None)
    with pytest.raises(RunOpsError) as refused:
        one_time.code(PLAIN, 59.0)
    assert (refused.value.code, refused.value.exit) == ("extra-missing", 3)
    assert "pip install pyotp" in str(refused.value.fix)


def test_a_code_is_masked_and_not_searched_for(tmp_path: Path) -> None:
    """A code is masked in texts; a file with the same digits is no leak, and one with a secret still is."""
    masker = Masker({"KEY": "hunter-22"}).passing("287082")
    assert "287082" not in masker.text("your code: 287082")
    assert masker.knowing({"B": "other-33"}).text("287082 other-33").count("2") == 0
    file = tmp_path / "file"
    file.write_text("287082")
    assert masker.found(file.read_bytes()) == ()
    file.write_text("hunter-22")
    assert masker.found(file.read_bytes())


FILL = "{{id: code, type: browser_action, action: fill, target: {{label: Code}}, value: '{}'}}"
HEAD = "secrets: [OTP, PIN]"


class Moments:
    """A clock that tests set, and that sleeping moves."""

    now = 1_000_000_019.5
    slept: list[float]


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Moments:
    moments = Moments()
    moments.slept = []

    async def sleep(seconds: float) -> None:
        moments.slept.append(seconds)
        moments.now += seconds

    monkeypatch.setattr("runtime.engine.rendering.time.time", lambda: moments.now)
    monkeypatch.setattr("runtime.engine.attempt.asyncio.sleep", sleep)
    return moments


async def test_a_code_is_made_when_the_field_is_ready(tmp_path: Path, moments: Moments) -> None:
    """A field that comes late gets the code of that moment, other parts of the text stay, and neither code is in the log."""
    rig = Rig(
        tmp_path,
        flow(OPEN, FILL.format("{{ secrets.PIN }}-{{ totp(secrets.OTP) }}"), more=HEAD),
        secrets={"OTP": PLAIN, "PIN": "pin-4711"},
    )
    early = one_time.code(PLAIN, moments.now).text

    class LatePage(FakePage):
        @override
        async def ready(self, target: Target, action: ElementAction) -> None:
            moments.now = 1_000_000_333.0
            await super().ready(target, action)

    rig.site.page = LatePage
    ended = await rig.start()
    assert ended.status == "passed", ended.error
    assert rig.browser is not None
    typed = rig.browser.page.filled['label="Code"']
    late_code = one_time.code(PLAIN, moments.now).text
    assert typed == f"pin-4711-{late_code}"
    log = (tmp_path / "conversations" / f"{rig.id}.jsonl").read_text()
    assert early not in log
    assert late_code not in log
    assert "{{ secrets.PIN }}-{{ totp(secrets.OTP) }}" in log


async def test_a_code_that_is_nearly_over_is_not_used(tmp_path: Path, moments: Moments) -> None:
    """With less than two seconds left the next code is waited for, and the step says so."""
    moments.now = 1_000_000_019.0
    assert one_time.code(PLAIN, moments.now).left == 1.0
    rig = Rig(
        tmp_path,
        flow(OPEN, FILL.format("{{ totp(secrets.OTP) }}"), more=HEAD),
        secrets={"OTP": PLAIN, "PIN": "pin-4711"},
    )
    ended = await rig.start()
    assert ended.status == "passed", ended.error
    assert moments.slept == [1.0]
    assert rig.browser is not None
    assert rig.browser.page.filled['label="Code"'] == one_time.code(PLAIN, 1_000_000_020.0).text
    assert "the next one-time code" in [each.what for each in rig.told if isinstance(each, events.StepWaiting)]


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ("{id: a, type: transform, expr: '{{ totp(secrets.OTP) }}'}", "secret-not-allowed"),
        (FILL.format("{{ totp(inputs.key) }}"), "wrong-arguments"),
        (FILL.format("{{ totp() }}"), "wrong-arguments"),
        (FILL.format("{{ totp(secrets.OTP, 1) }}"), "wrong-arguments"),
        (FILL.format('{{ totp("JBSWY3DP") }}'), "wrong-arguments"),
        (FILL.format("{{ totp(secrets.OTHER) }}"), "unknown-secret"),
        (FILL.format("{{ totp }}"), "not-a-value"),
    ],
)
def test_where_codes_are_refused(node: str, code: str) -> None:
    """`totp` takes one declared secret, in fields that take secrets."""
    with pytest.raises(WorkflowInvalid) as refused:
        reader.parse(
            flow(OPEN, node, more=f"{HEAD}\ninputs: {{key: {{type: string}}}}"), "flow.yaml", callees.Texts({})
        )
    assert [each.code for each in refused.value.diagnostics] == [code]
