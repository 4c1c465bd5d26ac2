"""Secrets: every form in which one may be written is found, and masked."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.secrets import MASK, SHORTEST, Masker

secrets = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=SHORTEST, max_size=24).filter(
    lambda secret: secret not in MASK
)
around = st.text(st.characters(codec="utf-8"), max_size=12)

WRITINGS = {
    "plain": lambda text: text,
    "URL-encoded": lambda text: urllib.parse.quote(text, safe=""),
    "URL-encoded as a path": urllib.parse.quote,
    "URL-encoded as a form": urllib.parse.quote_plus,
    "JSON-escaped": json.dumps,
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False),
    "HTML-escaped": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "URL-safe base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
}


@pytest.mark.parametrize("writing", WRITINGS)
@given(secret=secrets, before=around, after=around)
def test_every_writing_is_found_and_masked(writing: str, secret: str, before: str, after: str) -> None:
    """However the text around a secret is encoded, the scanner finds the secret, and after masking finds it no more."""
    written = WRITINGS[writing](before + secret + after)
    masker = Masker({"SECRET": secret})
    assert masker.touches(written.encode())
    masked = masker.text(written)
    assert MASK in masked
    assert not masker.touches(masked.encode())


@given(
    value=st.recursive(
        st.none() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_value_without_a_secret_is_not_touched(value: object) -> None:
    """Masking returns the very object where nothing in it is a secret."""
    assert Masker({"SECRET": "\U0001f511 no value has this"}).json(value) is value


def test_keys_and_numbers_are_masked_too() -> None:
    """A secret that stands as a map's key or as a number is masked like any other."""
    masker = Masker({"PIN": "8472913"})
    assert masker.json({"pin 8472913": [8472913, 84729130.5, "x8472913"]}) == {f"pin {MASK}": [MASK, MASK, f"x{MASK}"]}


def test_nothing_is_masked_without_secrets() -> None:
    """A masker without secrets, or with an empty one, leaves everything as it is."""
    for masker in (Masker({}), Masker({"EMPTY": ""})):
        assert masker.idle
        assert masker.text("anything") == "anything"
        assert not masker.touches(b"anything")
