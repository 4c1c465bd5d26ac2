"""Masking finds secrets in every encoding in which they may appear."""

from __future__ import annotations

import base64
import csv
import functools
import html
import html.entities
import io
import json
import quopri
import re
import unicodedata
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime.secrets.gate import Found, Gate
from runtime.secrets.masking import MASK, SHORTEST, WINDOW, Masker, Stream, is_word
from tests import breadth

secrets = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=SHORTEST, max_size=24).filter(
    lambda secret: secret not in MASK
)
around = st.text(st.characters(codec="utf-8"), max_size=12)


def as_csv(text: str) -> str:
    """A text as a cell of a CSV file."""
    out = io.StringIO()
    csv.writer(out).writerow([text])
    return out.getvalue()


def utf16(character: str) -> str:
    """A character as a JSON escape."""
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def named(character: str) -> str:
    """A character as a named HTML entity, or else as a numeric one."""
    name = html.entities.codepoint2name.get(ord(character))
    return f"&{name};" if name else f"&#{ord(character)};"


ESCAPES: dict[str, Callable[[str], str]] = {
    "plain": lambda each: each,
    "percent": lambda each: "".join(f"%{byte:02x}" for byte in each.encode()),
    "percent in capitals": lambda each: "".join(f"%{byte:02X}" for byte in each.encode()),
    "percent twice": lambda each: "".join(f"%25{byte:02x}" for byte in each.encode()),
    "form": urllib.parse.quote_plus,
    "decimal entity": lambda each: f"&#{ord(each)};",
    "entity without its end": lambda each: f"&#{ord(each):07};",
    "hexadecimal entity": lambda each: f"&#x{ord(each):X};",
    "named entity": named,
    "entity in an entity": lambda each: f"&amp;#{ord(each)};",
    "JSON": utf16,
    "JSON in JSON": lambda each: utf16(each).replace("\\", "\\\\"),
    "JSON in an address": lambda each: utf16(each).replace("\\", "%5C"),
    "an entity in JSON": lambda each: f"\\u0026#{ord(each)};",
    "script": lambda each: f"\\u{{{ord(each):x}}}",
    "byte of a script": lambda each: f"\\x{ord(each):02x}" if ord(each) < 256 else utf16(each),
    "style": lambda each: f"\\{ord(each):x} ",
    "style in six digits": lambda each: f"\\{ord(each):06x}",
    "quoted-printable": lambda each: "".join(f"={byte:02X}" for byte in each.encode()),
    "solidus of JSON": lambda each: "\\/" if each == "/" else each,
}


def escaped(secret: str, data: st.DataObject) -> str:
    """The secret with each character escaped in a drawn way."""
    ways = data.draw(st.lists(st.sampled_from(sorted(ESCAPES)), min_size=len(secret), max_size=len(secret)))
    return "".join(ESCAPES[way](each) for way, each in zip(ways, secret, strict=True))


def decodings(text: str) -> set[str]:
    """Every text that repeated decoding of escapes can give."""

    def numbered(found: re.Match[str]) -> str:
        number = int(next(filter(None, found.groups())), 16)
        return chr(number) if number < 0x110000 else found[0]

    decoders: list[Callable[[str], str]] = [
        urllib.parse.unquote,
        urllib.parse.unquote_plus,
        html.unescape,
        lambda text: re.sub(r"\\+u([0-9a-fA-F]{4})|\\+u\{([0-9a-fA-F]{1,6})\}|\\+x([0-9a-fA-F]{2})", numbered, text),
        lambda text: re.sub(r"\\([0-9a-fA-F]{1,6})\s?", numbered, text),
        lambda text: quopri.decodestring(text.encode(errors="surrogatepass")).decode(errors="replace"),
        lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    ]
    found, fresh = {text}, {text}
    for _time in range(3):
        fresh = {decode(each) for each in fresh for decode in decoders} - found
        found |= fresh
    return found


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
    "URL-encoded as a whole": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "HTML in numbers as a whole": lambda text: "".join(f"&#{ord(each)};" for each in text),
    "JSON-escaped as a whole": lambda text: "".join(map(utf16, text)),
}


@functools.cache
def masker_of(secret: str) -> Masker:
    """A cached masker, because compiling its patterns takes longer than using them."""
    return Masker({"SECRET": secret})


@pytest.mark.parametrize("writing", WRITINGS)
@settings(max_examples=breadth.of(1, 25))
@given(secret=secrets, before=around, after=around)
@example(secret="p\u00e4ss/W%rd&", before="a ", after=" z")
@example(secret="jdoe-42@'sh\"op\\", before="\\", after="%")
def test_every_encoding_is_found_and_masked(writing: str, secret: str, before: str, after: str) -> None:
    """A secret in any encoding of its text is found, and no longer after masking."""
    written = WRITINGS[writing](before + secret + after)
    masker = masker_of(secret)
    assert masker.found(written.encode())
    masked = masker.text(written)
    assert MASK in masked
    assert not masker.found(masked.encode())


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("two  spaces and a tab\t", "two spaces and a tab"),
        ("a/b:c*d?e", "a_b_c_d_e"),
        ("pa\u0308sswort", unicodedata.normalize("NFC", "pa\u0308sswort")),
        ("p\u00e4sswort", unicodedata.normalize("NFD", "p\u00e4sswort")),
        ("correct#\\horse", r"correct\#\\horse"),
    ],
)
def test_altered_secrets_in_pages_and_file_names_are_masked(secret: str, shown: str) -> None:
    """Folded white space, replaced file-name characters, other Unicode normal forms and escapes do not hide a secret."""
    masker = Masker({"SECRET": secret})
    assert masker.text(f"before {shown} after") == f"before {MASK} after"
    assert masker.found(shown.encode())


@settings(max_examples=breadth.of(4, 400))
@given(secret=secrets, before=around, after=around, data=st.data())
def test_a_secret_is_masked_however_each_of_its_characters_is_escaped(
    secret: str, before: str, after: str, data: st.DataObject
) -> None:
    """Any mixture of escapes in one secret is masked, and no decoding of the masked text contains it."""
    written = f"{before} {escaped(secret, data)} {after}"
    masker = Masker({"SECRET": secret})
    assert masker.found(written.encode())
    masked = masker.text(written)
    assert MASK in masked
    assert not any(secret in each for each in decodings(masked))
    assert masker.text(masked) == masked


@settings(max_examples=breadth.of(4, 100))
@given(secret=secrets.filter(lambda secret: not is_word(secret)), data=st.data())
def test_a_secret_is_masked_in_any_capitals(secret: str, data: st.DataObject) -> None:
    """A secret that is no single word is masked in any capitalisation, escaped too."""
    chosen = data.draw(st.lists(st.booleans(), min_size=len(secret), max_size=len(secret)))
    other = "".join(
        each.swapcase() if swap and len(each.swapcase()) == 1 else each
        for swap, each in zip(chosen, secret, strict=True)
    )
    masker = Masker({"SECRET": secret})
    for written in (other, secret.upper(), secret.lower(), secret.title(), escaped(other, data)):
        assert MASK in masker.text(f"before {written} after")


@pytest.mark.parametrize(
    ("secret", "shown", "masked"),
    [
        ("Zebra-crossing", "zEBRA-cROSSING", True),
        ("Zebra-crossing", "%5aebra-crossing", True),
        ("Zebra-crossing", "%7AEBRA%2dCROSSING", True),
        ("Zebra-crossing", "&#90;EBRA&#x2D;crossing", True),
        ("salt&pepper", "Salt&amp;Pepper", True),
        ("Zebra-crossing", r"\u005aebra\u{2d}crossing", True),
        ("Zebra-crossing", r"\5a ebra\-crossing", True),
        ("Zebra-crossing", "=5Aebra=2Dcrossing", True),
        ("xkQfWqzR", "XKQFWQZR", True),
        ("correcthorsebatterystaple", "CorrectHorseBatteryStaple", True),
        ("password", "Password", False),
        ("password", "PASSWORD", False),
        ("password", "%70assword", True),
        ("hidden", "Hidden", False),
    ],
)
def test_other_capitals_are_masked_unless_the_secret_is_a_word(secret: str, shown: str, masked: bool) -> None:
    """Other capitals of a secret are masked, escaped or not, except for a secret that is a single word."""
    assert Masker({"SECRET": secret}).text(f"a {shown}, b") == (f"a {MASK}, b" if masked else f"a {shown}, b")


@pytest.mark.parametrize(
    ("shown", "leak"),
    [
        ("jdoe-42@shop", True),
        ("jdoe%2D42%40shop", True),
        ("%6adoe-42&#64;shop", True),
        (r"\u006adoe\u002d42@shop", True),
        ("JDOE-42@SHOP", False),
        ("Jdoe-42@Shop", False),
    ],
)
def test_a_file_leaks_a_secret_only_in_its_own_capitals(tmp_path: Path, shown: str, leak: bool) -> None:
    """A file that contains the secret in its own capitals leaks, however escaped; in other capitals it does not."""
    file = tmp_path / "report.csv"
    file.write_text(f"name\n{shown}\n")
    assert (Gate(Masker({"SECRET": "jdoe-42@shop"})).file(file) is not None) is leak


@pytest.mark.parametrize(
    "shown",
    [
        "jdoe-42@shop",
        r"\u006adoe\u002d42@shop",
        "".join("%" + "25" * 14 + f"{ord(each):02x}" for each in "jdoe-42@shop"),
    ],
)
def test_a_leak_is_found_anywhere_in_a_large_file(shown: str, tmp_path: Path) -> None:
    """A file is read in windows, and a secret across their border is found."""
    gate, file = Gate(Masker({"SECRET": "jdoe-42@shop"})), tmp_path / "large.txt"
    assert gate.file(_with_text(file, "jdoe-42")) is None
    for place in (
        *range(WINDOW - len(shown) - 1, WINDOW + 2, max(1, len(shown) // 9)),
        WINDOW * 3 - 5,
    ):
        assert gate.file(_with_text(file, shown, place)) == Found(("SECRET",)), place


def _with_text(file: Path, text: str, place: int = 0) -> Path:
    """A file of four windows with this text in it."""
    file.write_bytes((b"%" * place + text.encode()).ljust(4 * WINDOW, b"x"))
    return file


@pytest.mark.parametrize("escape", ["plain", "percent", "decimal entity", "JSON"])
def test_a_long_secret_is_masked_in_every_escape(escape: str) -> None:
    """A secret of more than a thousand characters is masked up to its last character."""
    secret = "aB3/dE5+" * 200
    written = "".join(map(ESCAPES[escape], secret))
    assert Masker({"KEY": secret}).text(f"a: {written} z") == f"a: {MASK} z"


@settings(max_examples=breadth.of(4, 100))
@given(secret=secrets, text=st.text(max_size=40), data=st.data())
@example(secret="hidden", text="a hidden [hidden]", data=None)
def test_masking_is_idempotent(secret: str, text: str, data: st.DataObject | None) -> None:
    """Masking a masked text changes nothing, even if the mask itself contains the secret."""
    masker = Masker({"SECRET": secret})
    masked = masker.text(f"{text} {escaped(secret, data) if data else secret}{text}")
    assert masker.text(masked) == masked


@settings(max_examples=breadth.of(4, 100))
@given(secret=secrets, before=around, data=st.data())
def test_half_an_escaped_secret_is_masked_where_the_text_was_cut(secret: str, before: str, data: st.DataObject) -> None:
    """A text cut within an escaped secret shows at most three of its characters, and no partial escape."""
    ways = [ESCAPES[data.draw(st.sampled_from(sorted(ESCAPES)))](each) for each in secret]
    written, whole = "".join(ways), len("".join(ways[:4]))
    end = data.draw(st.integers(whole, len(written)))
    masked = Masker({"SECRET": secret}).text(f"{before}|{written[:end]}…")
    assert masked.endswith(f"{MASK}…")


@settings(max_examples=breadth.of(4, 100))
@given(secret=secrets, before=around, after=around)
def test_half_a_secret_is_masked_where_the_text_was_cut(secret: str, before: str, after: str) -> None:
    """A text cut within a secret shows at most three of its characters, and the text after it stays."""
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
    """Masking a value without secrets returns the same object."""
    assert Masker({"SECRET": "\U0001f511 no value has this"}).json(value) is value


def test_keys_and_numbers_are_masked_too() -> None:
    """A secret in a map's key or a number is masked."""
    masker = Masker({"PIN": "8472913"})
    assert masker.json({"pin 8472913": [8472913, 84729130.5, "x8472913"]}) == {f"pin {MASK}": [MASK, MASK, f"x{MASK}"]}


def test_nothing_is_masked_without_secrets() -> None:
    """A masker without secrets, or with an empty one, changes nothing."""
    for masker in (Masker({}), Masker({"EMPTY": ""})):
        assert masker.idle
        assert masker.text("anything") == "anything"
        assert not masker.found(b"anything")


@settings(max_examples=breadth.of(3, 150))
@given(writing=st.sampled_from(sorted(WRITINGS)), secret=secrets, before=around, after=around, size=st.integers(1, 9))
@example(writing="an address in an address", secret="?!?!?!?!", before="", after="", size=1)
def test_a_stream_is_masked_as_the_whole_text(writing: str, secret: str, before: str, after: str, size: int) -> None:
    """A text cut anywhere is masked as a whole. Of a long text without escapes only the secret's length is withheld."""
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
