"""Options of the browser: what each mode supports, and which documents may load."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import hypothesis
import pydantic
import pytest
from hypothesis import strategies

from runtime.browser import options, origins
from runtime.browser.chromium import launch
from runtime.browser.devtools import user_agent
from runtime.browser.options import BrowserOptions


def test_every_field_is_described() -> None:
    """Each field has its docstring as description."""
    for model in (BrowserOptions, options.Viewport, options.Geolocation, options.HttpCredentials, options.Proxy):
        assert all(field.description for field in model.model_fields.values()), model


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("iphone 13", "`iphone 13` is no known device; did you mean `iPhone 13`"),
        ("Pixel7", "did you mean `Pixel 7`"),
        ("toaster", "did you mean `iPhone 15` or `Pixel 7`?"),
    ],
)
def test_an_unknown_device_names_the_nearest(name: str, message: str) -> None:
    """The error names the devices that are called most like it, else two that everybody knows."""
    with pytest.raises(pydantic.ValidationError, match=re.escape(message)):
        BrowserOptions(device=name)


def test_a_device_fills_in_what_the_file_leaves_out() -> None:
    """A device sets size, scale, user agent, phone layout and touch; an option that the file has stays, also one that equals the default."""
    whole = BrowserOptions(device="Pixel 7").resolved()
    assert (whole.viewport.width, whole.screen and whole.screen.height) == (412, 915)
    assert (whole.device_scale_factor, whole.mobile, whole.touch) == (2.625, True, True)
    assert "Pixel 7" in (whole.user_agent or "")
    given = {"device": "Pixel 7", "touch": False, "viewport": {"width": 1280, "height": 720}, "locale": "de-DE"}
    mixed = BrowserOptions.model_validate(given).resolved()
    assert (mixed.touch, mixed.viewport.width, mixed.locale, mixed.mobile) == (False, 1280, "de-DE", True)
    assert BrowserOptions().resolved() == BrowserOptions()


@pytest.mark.parametrize(
    ("agent", "platform", "version", "architecture"),
    [
        ("Mozilla/5.0 (Linux; Android 14; Pixel 7)", "Android", "14", "arm"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 15_0 like Mac OS X)", "iOS", "15_0", "arm"),
        ("Mozilla/5.0 (iPad; CPU OS 12_2 like Mac OS X)", "iOS", "12_2", "arm"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", "macOS", "10_15_7", "x86"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64)", "Windows", "10.0", "x86"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "Linux", "", "x86"),
        ("Tester/1.0", "Windows", "", "x86"),
    ],
)
def test_hints_fit_the_user_agent(agent: str, platform: str, version: str, architecture: str) -> None:
    """Client hints name the platform of the user agent, and sites receive the same."""
    hints = user_agent.hints(agent, mobile=True)
    assert (hints["platform"], hints["platformVersion"], hints["architecture"]) == (platform, version, architecture)
    sent = user_agent.headers(BrowserOptions(user_agent=agent, mobile=True))
    assert sent == {"sec-ch-ua-mobile": "?1", "sec-ch-ua-platform": f'"{platform}"'}
    assert user_agent.headers(BrowserOptions()) == {}


@pytest.mark.parametrize(
    "given",
    [
        {"timezone": "Mars/Olympus"},
        {"locale": "not a locale"},
        {"viewport": {"width": 0, "height": 1}},
        {"permissions": ["everything"]},
        {"switches": ["lang=de"]},
        {"user_agent": "two\nlines"},
        {"geolocation": {"latitude": 91, "longitude": 0}},
        {"wiewport": None},
    ],
)
def test_invalid_values_are_refused(given: dict[str, Any]) -> None:
    """A value that no browser accepts is refused when the file is read."""
    with pytest.raises(pydantic.ValidationError):
        BrowserOptions.model_validate(given)


def test_reading_options_needs_no_browser() -> None:
    """``runops validate`` loads neither Playwright nor the WebSocket library."""
    program = "import sys, runtime.browser.options; print({'playwright', 'websockets'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://shop.test/a?b#c", "http://shop.test"),
        ("HTTP://Shop.TEST:80/", "http://shop.test"),
        ("https://shop.test:443", "https://shop.test"),
        ("https://shop.test:444/", "https://shop.test:444"),
        ("http://user:word@shop.test/", "http://shop.test"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://bücher.test/", "http://xn--bcher-kva.test"),
        ("ftp://shop.test/", None),
        ("about:blank", None),
        ("http://", None),
        ("http://shop.test:99999/", None),
        ("no address", None),
        ("", None),
    ],
)
def test_the_origin_of_an_address(url: str, expected: str | None) -> None:
    """An origin is scheme, host and port as browsers compare them; only web addresses have one."""
    assert origins.origin(url) == expected


@pytest.mark.parametrize(
    ("url", "loads"),
    [
        ("http://shop.test/pay", True),
        ("https://shop.test/", False),
        ("http://shop.test.evil/", False),
        ("http://shop.test@evil.test/", False),
        ("http://evil.test/?http://shop.test", False),
        ("http://sub.shop.test/", False),
        ("http://shop.test:81/", False),
        ("about:blank", True),
        ("about:srcdoc", True),
        ("data:text/html,x", True),
        ("blob:http://shop.test/1-2", True),
        ("blob:http://evil.test/1-2", False),
        ("blob:null/1-2", True),
        ("file:///etc/passwd", False),
        ("chrome://version", False),
        ("view-source:http://shop.test/", False),
        ("filesystem:http://shop.test/x", False),
        ("", False),
    ],
)
def test_which_documents_may_load(url: str, loads: bool) -> None:
    """Documents of the allowed origin and those created by the browser may load, but none that only look similar."""
    assert origins.Allowed(["http://shop.test/orders"]).document(url) is loads


@hypothesis.example(" ?", "http://")
@hypothesis.given(strategies.text(max_size=40), strategies.sampled_from(["http://", "https://", "", "blob:"]))
def test_no_address_breaks_the_comparison(text: str, scheme: str) -> None:
    """Any address has an origin or none, and is allowed or refused, without an error."""
    found = origins.origin(scheme + text)
    assert found is None or origins.origin(found) == found
    assert origins.Allowed(["http://shop.test"]).document(f"{scheme}{text}") in (True, False)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://shop.test/a/b?token=1#c", "http://shop.test/a/b"),
        ("http://ada:word@shop.test:81/a", "http://shop.test:81/a"),
    ],
)
def test_the_shown_part_of_an_address(url: str, shown: str) -> None:
    """The shown address has no query, fragment, user name or password."""
    assert origins.without_query(url) == shown


def test_switches_of_the_workflow_are_merged_with_ours(tmp_path: Any) -> None:
    """The last switch of a name, the only one that Chromium uses, includes ours."""
    command = launch.switches(
        tmp_path, headed=False, sandbox=True, further=["--disable-features=Mine", "--blink-settings=a=1", "--lang=de"]
    )
    features = [each for each in command if each.startswith("--disable-features=")]
    assert features[-1].endswith(",Mine")
    assert "MediaRouter" in features[-1]
    blink = [each for each in command if each.startswith("--blink-settings=")]
    assert blink[-1].startswith("--blink-settings=primaryHoverType=2")
    assert "--lang=de" in command
    assert "--no-sandbox" not in command
