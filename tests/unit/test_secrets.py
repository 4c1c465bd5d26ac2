"""Secrets: every form in which one may be written is found, and masked."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
import unicodedata
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime.secrets import MASK, SHORTEST, Masker, Stream

secrets = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=SHORTEST, max_size=24).filter(
    lambda secret: secret not in MASK
)
around = st.text(st.characters(codec="utf-8"), max_size=12)


def as_csv(text: str) -> str:
    """A text as a cell of a CSV file."""
    out = io.StringIO()
    csv.writer(out).writerow([text])
    return out.getvalue()


WRITINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "URL-encoded": lambda text: urllib.parse.quote(text, safe=""),
    "URL-encoded as a path": urllib.parse.quote,
    "URL-encoded as a form": urllib.parse.quote_plus,
    "URL-encoded by a script": lambda text: urllib.parse.quote(text, safe="!~*'()"),
    "URL-encoded by a browser's form": lambda text: urllib.parse.quote_plus(text, safe="*").replace("~", "%7E"),
    "an address that a browser was given": lambda text: urllib.parse.quote(text, safe="%!$&()*+,-./:;=?@[]^_`{|}~\\"),
    "an address in an address": lambda text: urllib.parse.quote(urllib.parse.quote(text, safe="")),
    "JSON-escaped": json.dumps,
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False),
    "HTML-escaped": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "URL-safe base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "HTML-escaped in numbers": lambda text: "".join(f"&#{ord(each)};" if not each.isalnum() else each for each in text),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "JSON in UTF-8 in JSON": lambda text: json.dumps(json.dumps(text, ensure_ascii=False), ensure_ascii=False),
    "Markdown": lambda text: re.sub(r"([\\`*_\[\]<>#|!~])", r"\\\1", text),
    "quoted by Python": repr,
    "a cell of CSV": as_csv,
    "a text of SQL": lambda text: text.replace("'", "''"),
}


@pytest.mark.parametrize("writing", WRITINGS)
@settings(max_examples=25)
@given(secret=secrets, before=around, after=around)
def test_every_writing_is_found_and_masked(writing: str, secret: str, before: str, after: str) -> None:
    """However the text around a secret is encoded, the scanner finds the secret, and after masking finds it no more."""
    written = WRITINGS[writing](before + secret + after)
    masker = Masker({"SECRET": secret})
    assert masker.touches(written.encode())
    masked = masker.text(written)
    assert MASK in masked
    assert not masker.touches(masked.encode())


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("two  spaces and a tab\t", "two spaces and a tab"),
        ("a/b:c*d?e", "a_b_c_d_e"),
        ("pa\u0308sswort", unicodedata.normalize("NFC", "pa\u0308sswort")),
        ("p\u00e4sswort", unicodedata.normalize("NFD", "p\u00e4sswort")),
        ("correct#\\horse", r"correct\#\\horse"),
        ("correct-horse", "CORRECT-HORSE"),
        ("correct-horse", "Correct-Horse"),
    ],
)
def test_what_pages_and_file_names_make_of_a_secret_is_masked(secret: str, shown: str) -> None:
    """Folded white space, characters that no file name has, and letters composed or in parts, all of them capitals, or each escaped by itself: it is still the secret."""
    masker = Masker({"SECRET": secret})
    assert masker.text(f"before {shown} after") == f"before {MASK} after"
    assert masker.touches(shown.encode())


@given(secret=secrets, before=around, after=around)
def test_half_a_secret_is_masked_where_the_text_was_cut(secret: str, before: str, after: str) -> None:
    """Wherever a text is cut short in a secret, none of it is left but three characters, and what follows stays."""
    masker = Masker({"SECRET": secret})
    for end in range(4, len(secret)):
        masked = masker.text(f"{before}{secret[:end]}…{after}")
        assert f"{secret[:end]}…" not in masked or secret[:end] in MASK
        assert MASK in masked


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


@settings(max_examples=80)
@given(writing=st.sampled_from(sorted(WRITINGS)), secret=secrets, before=around, after=around, size=st.integers(1, 9))
@example(writing="an address in an address", secret="?!?!?!?!", before="", after="", size=1)
def test_a_text_that_comes_in_pieces_is_masked_as_a_whole_one(
    writing: str, secret: str, before: str, after: str, size: int
) -> None:
    """Wherever it is cut, what is handed on is the whole text masked; and of a long one without escapes only the length of the secret is held back."""
    masker, heard = Masker({"S": secret}), list[str]()
    stream = Stream(masker, heard.append)
    text = f"{before}{WRITINGS[writing](secret)}{after}"
    for start in range(0, len(text), size):
        stream.take(text[start : start + size])
    stream.end()
    assert secret not in "".join(heard)
    assert "".join(heard) == masker.text(text)
    plain = "\N{BLACK STAR}" * 400
    assert len(plain) - len(masker.split(plain)[0]) < 16 * len(secret.encode()) + 16
