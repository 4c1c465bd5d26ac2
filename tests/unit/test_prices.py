"""Token prices: the project's own, those of known providers, and unknown ones."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.errors import UsageError
from runtime.messages.messages import Usage
from runtime.settings import prices, settings
from tests.pages import ROOT

OWN = {
    "mine": prices.Price.model_validate({"input": 0.25, "cached": 0.05, "output": 2.0}),
    "plain": prices.Price.model_validate({"input": 1, "output": 3}),
}


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_money_is_exact(read: int, cached: int, output: int) -> None:
    """Each kind of token costs the project's price to the last digit; cached tokens beyond the input count as the input."""
    cents = prices.dollars(Usage(read, cached, output, 0), "mine", OWN, "compatible")
    from_cache = min(read, cached)
    assert cents is not None
    assert cents * 100_000_000 == (read - from_cache) * 25 + from_cache * 5 + output * 200


def test_cached_tokens_cost_the_same_by_default() -> None:
    """A price without `cached` applies to all input."""
    assert prices.dollars(Usage(1_000_000, 400_000, 0, 0), "plain", OWN, "openai") == 1


@pytest.mark.parametrize("provider", sorted(prices.PRICED))
def test_known_providers_have_prices(provider: str) -> None:
    """Each priced provider has a price for a known model; it grows with the tokens, and cached tokens are cheaper."""
    model = "openai/gpt-5-mini" if provider == "openrouter" else "gpt-5-mini"
    plain = prices.dollars(Usage(1000, 0, 500, 0), model, {}, provider)
    cached = prices.dollars(Usage(1000, 900, 500, 0), model, {}, provider)
    more = prices.dollars(Usage(1000, 0, 600, 100), model, {}, provider)
    assert plain
    assert cached
    assert more
    assert cached < plain < more


def test_an_edition_has_the_price_of_its_model() -> None:
    """A name that ends in a date has the price of the name without it, unless it has its own; another suffix has none."""
    usage = Usage(1000, 0, 10, 0)
    both = {**OWN, "mine-2026-08-07": prices.Price.model_validate({"input": 9, "output": 9})}
    assert prices.dollars(usage, "mine-2026-08-07", both, "compatible") == Decimal("0.00909")
    assert prices.dollars(usage, "mine-2026-08-07", OWN, "compatible") == prices.dollars(
        usage, "mine", OWN, "compatible"
    )
    assert prices.dollars(usage, "mine-mini", OWN, "compatible") is None
    assert prices.dollars(usage, "gpt-5-mini-2025-08-07", {}, "openai") == prices.dollars(
        usage, "gpt-5-mini", {}, "openai"
    )


def test_a_price_of_your_own_comes_first() -> None:
    """The project's price wins over the known one."""
    own = {"gpt-5-mini": prices.Price.model_validate({"input": 0, "output": 0})}
    assert prices.dollars(Usage(1000, 0, 10, 0), "gpt-5-mini", own, "openai") == 0


@pytest.mark.parametrize("provider", ["vllm", "ollama", "compatible"])
def test_no_price_is_guessed(provider: str) -> None:
    """Models of an unknown server have no price except the project's, whatever they are called."""
    assert not prices.known("gpt-5-mini", {}, provider)
    assert prices.known("mine", OWN, provider)
    assert not prices.known("no-such-model", OWN, "openai")


def test_an_unknown_price_is_reported_with_the_lines_to_add() -> None:
    """The error names the first model without a price, and the lines to add to pyproject.toml."""
    with pytest.raises(UsageError) as caught:
        prices.require(["mine", "llama3.1:8b", "other"], OWN, "ollama")
    assert (caught.value.code, caught.value.exit) == ("price-unknown", 2)
    assert "`llama3.1:8b`" in caught.value.message
    assert "[tool.runops.prices]" in str(caught.value.fix)
    prices.require(["mine", "plain"], OWN, "ollama")


def test_the_lines_to_add_are_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines in the error are read back as the price of that model."""
    monkeypatch.chdir(tmp_path)
    lines = prices.unknown("a/b:8b", "ollama").evidence["write"]
    (tmp_path / "pyproject.toml").write_text(lines)
    assert prices.known("a/b:8b", settings.load().prices, "ollama")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("m = {inptu = 1, output = 2}", "`m.inptu`"),
        ("m = {input = 1}", "`m.output`: field required"),
        ('m = {input = "x", output = 2}', "`m.input`"),
        ("m = {input = true, output = 2}", "`m.input`"),
        ("m = {input = -1, output = 2}", "`m.input`"),
        ("m = {input = 1, output = nan}", "`m.output`"),
        ("m = 3", "`m`"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, named: str) -> None:
    """An invalid price is ``bad-setting``, with the model and the field."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.runops.prices]\n{text}\n")
    with pytest.raises(UsageError) as caught:
        settings.load()
    assert caught.value.code == "bad-setting"
    assert named in caught.value.message


def test_prices_come_from_a_variable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment variable may have the prices as JSON; invalid JSON is a bad setting."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNOPS_PRICES", '{"m": {"input": 0.1, "output": 2}}')
    assert settings.load().prices["m"].input == Decimal("0.1")
    monkeypatch.setenv("RUNOPS_PRICES", "{m")
    with pytest.raises(UsageError, match="no JSON"):
        settings.load()


def test_nothing_is_downloaded() -> None:
    """A price needs no socket and leaves no thread, and the price package is loaded only when needed."""
    program = """
import socket, sys, threading
def refuse(*given, **more):
    raise AssertionError("a socket was opened")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from runtime.settings import prices
from runtime.messages.messages import Usage
assert prices.dollars(Usage(1000, 0, 500, 0), "gpt-5-mini", {}, "vllm") is None
assert "genai_prices" not in sys.modules, "half a second for nothing"
assert prices.dollars(Usage(1000, 0, 500, 0), "gpt-5-mini", {}, "openai")
assert prices.dollars(Usage(1000, 0, 500, 0), "no-such-model", {}, "openai") is None
print(threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("1", "", 0)
