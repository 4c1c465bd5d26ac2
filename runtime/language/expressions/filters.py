"""Our own filters, and stricter versions of some of Jinja's. A filter's docstring is its documentation."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import hashlib
import html
import itertools
import json as json_codec
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import filters as jinja_filters

from nodes import csv_text
from nodes.parsing import read_number
from nodes.schema import regex as regexes
from nodes.template import kind_of
from nodes.values import Json, as_text, normalise
from runtime.language.expressions import limits
from runtime.language.expressions.limits import Unusable

if TYPE_CHECKING:
    from regex import Match

Filter = Callable[..., Any]

OWN: dict[str, Filter] = {}  # every filter of this module, by name


def own(function: Filter) -> Filter:
    """Register a filter under the function's name, without a trailing underscore."""
    OWN[function.__name__.rstrip("_")] = function
    return function


def text_of(value: Json, name: str) -> str:
    """Return the text of a text, number or boolean. Raises Unusable for null, lists and maps."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, list | tuple | Mapping):
        raise Unusable(f"`{name}` works on text, not on {kind_of(normalise(value))}")
    return as_text(value)


def _list(value: Json, name: str) -> list[Json]:
    if isinstance(value, list | tuple):
        return list(value)
    raise Unusable(f"`{name}` works on a list, not on {kind_of(normalise(value))}")


def _map(value: Json, name: str) -> Mapping[str, Json]:
    if isinstance(value, Mapping):
        return value
    raise Unusable(f"`{name}` works on a map, not on {kind_of(normalise(value))}")


# Text


@own
def regex(value: Json, pattern: str, group: int | str = 0) -> Json:
    """The first match of a pattern (Python's syntax) in a text, or one `group` of it by number or name; null without a match."""
    with _matched(pattern):
        found = next(_matches(value, pattern, "regex"), None)
        return found[group] if found else None


@own
def match(value: Json, pattern: str) -> Json:
    """The groups of the first match of a pattern in a text: a map if they have names, else a list; null without a match."""
    with _matched(pattern):
        found = next(_matches(value, pattern, "match"), None)
        return found and (found.groupdict() or list(found.groups()))


def is_match(value: Json, pattern: str) -> bool:
    """Return whether a pattern matches anywhere in a text."""
    with _matched(pattern):
        return next(_matches(value, pattern, "match"), None) is not None


@own
def regex_all(value: Json, pattern: str) -> Json:
    """All matches of a pattern, as a list of texts. If the pattern has several groups, it is a list of lists of texts."""
    with _matched(pattern):
        return limits.gathered(
            found.groups() if found.re.groups > 1 else found[found.re.groups]
            for found in _matches(value, pattern, "regex_all")
        )


@own
def regex_replace(value: Json, pattern: str, replacement: str, count: int = 0) -> Json:
    r"""The text with every match (or the first `count`) replaced; `\1` and `\g<name>` insert groups."""
    text = text_of(value, "regex_replace")
    pieces: list[str] = []
    end = length = 0
    with _matched(pattern):
        for found in itertools.islice(_matches(text, pattern, "regex_replace"), count or None):
            pieces += (text[end : found.start()], regexes.expanded(found, replacement))
            end = found.end()
            length = limits.check_text(length + len(pieces[-2]) + len(pieces[-1]))
    limits.check_text(length + len(text) - end)
    return "".join([*pieces, text[end:]])


def _matches(value: Json, pattern: str, name: str) -> Iterator[Match[str]]:
    return regexes.matches(text_of(pattern, name), text_of(value, name))


@contextlib.contextmanager
def _matched(pattern: str) -> Generator[None]:
    """Convert errors in a pattern, a group or a replacement to Unusable."""
    try:
        yield
    except regexes.PatternRefused as error:
        raise Unusable(str(error)) from None
    except IndexError as error:
        raise Unusable(f"{pattern!r}: {error}") from None


@own
def split(value: Json, separator: str | None = None, count: int = -1) -> Json:
    """The parts of a text between separators, by default between words; only the first `count` separators count, if given."""
    return limits.gathered(text_of(value, "split").split(separator, count))


@own
def slug(value: Json) -> Json:
    """The text as lower-case ASCII words joined by `-`: `Größe (cm)` is `grosse-cm`."""
    folded = unicodedata.normalize("NFKD", text_of(value, "slug").casefold())
    return "-".join(re.findall(r"[a-z0-9]+", "".join(mark for mark in folded if not unicodedata.combining(mark))))


@own
def sha256(value: Json) -> Json:
    """The SHA-256 of a text in UTF-8, or of any other value as compact JSON with sorted keys; 64 hexadecimal digits."""
    text = normalise(value)
    if not isinstance(text, str):
        text = json_codec.dumps(text, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@own
def string(value: Json) -> Json:
    """The value as text: text unchanged, everything else as JSON. Null has no text and is an error."""
    return as_text(normalise(value))


@own
def join(value: Json, separator: str = "", attribute: str | int | None = None) -> Json:
    """The items of a list as one text, with `separator` between them; for maps, their `attribute`."""
    items = _list(value, "join")
    if attribute is not None:
        items = [_item(each, attribute, "join") for each in items]
    texts = [as_text(normalise(each)) for each in items]
    limits.check_text(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _item(value: Json, key: str | int, name: str) -> Json:
    try:
        return value[key]
    except (LookupError, TypeError):
        raise Unusable(f"`{name}`: an item has no {key!r}") from None


@own
def replace(value: Json, old: str, new: str, count: int | None = None) -> Json:
    """The text with every `old` (or the first `count`) replaced by `new`."""
    text = text_of(value, "replace")
    limits.check_text(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return text.replace(old, new, -1 if count is None else count)


@own
def center(value: Json, width: int = 80) -> Json:
    """The text centred in `width` characters."""
    return text_of(value, "center").center(limits.check_text(width))


@own
def indent(value: Json, width: int | str = 4, first: bool = False, blank: bool = False) -> Json:
    """The text with every line but the first (unless `first`) indented by `width` spaces, empty lines only if `blank`."""
    text = text_of(value, "indent")
    margin = width if isinstance(width, str) else " " * limits.check_text(width)
    limits.check_text(len(text) + len(margin) * (text.count("\n") + 1))
    lines = text.split("\n")
    moved = [margin + line if line or blank else line for line in lines[1:]]
    return "\n".join([margin + lines[0] if first else lines[0], *moved])


@own
def wordwrap(value: Json, width: int = 79, break_long_words: bool = True, wrapstring: str = "\n") -> Json:
    """The text in lines of at most `width` characters."""
    text = text_of(value, "wordwrap")
    limits.check_text(len(text) * (1 + len(wrapstring)))
    environment = jinja2.Environment(autoescape=True)
    return jinja_filters.do_wordwrap(environment, text, max(1, width), break_long_words, wrapstring)


@own
def format_(value: Json, *args: Json, **named: Json) -> Json:
    """The text with `%s`, `%d`, `%05.2f` and the like replaced by the arguments, or `%(name)s` by named ones."""
    pattern = text_of(value, "format")
    widths = [int(digits) for digits in re.findall(r"\d+", re.sub(r"\([^)]*\)", "", pattern))]
    if "*" in pattern or any(width > 1000 for width in widths):
        raise Unusable("`format` takes widths up to 1000, written as digits")
    given = sum(len(as_text(normalise(each))) for each in (*args, *named.values()) if each is not None)
    limits.check_text(sum(widths) + len(pattern) * (1 + given))
    return pattern % (named or args)


@own
def escape(value: Json) -> Json:
    """The text with `&`, `<`, `>` and quotes as HTML entities."""
    return html.escape(text_of(value, "escape"))


OWN["e"] = escape


@own
def absolute(value: Json, base: str) -> Json:
    """The whole address of a link (`/orders/7`, `?page=2`) on a page with the address `base`; a whole address stays as it is."""
    return urllib.parse.urljoin(text_of(base, "absolute"), text_of(value, "absolute").strip())


# Numbers and dates


@own
def number(value: Json, mark: str = ".") -> Json:
    """The one number in a text, with the decimal mark `.` or `,`. With `,` the text `1.234,50 €` is 1234.5."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = text_of(value, "number")
    if mark not in (".", ","):
        raise Unusable("the decimal mark of `number` is `.` or `,`")
    if len(text) > 200:
        raise Unusable("`number` reads a text of at most 200 characters: take it apart with `regex` first")
    try:
        return read_number(text, mark)
    except ValueError as error:
        raise Unusable(str(error)) from None


@own
def int_(value: Json, default: Json = None, base: int = 10) -> Json:
    """The value as a whole number, cut towards zero. Anything but a number is an error, unless there is a `default`."""
    try:
        if isinstance(value, str):
            return int(value, base) if base != 10 or re.fullmatch(r"\s*[-+]?\d{1,400}\s*", value) else int(float(value))
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return _or_default(value, default, "int", "a whole number")


@own
def float_(value: Json, default: Json = None) -> Json:
    """The value as a number. Anything but a number is an error, unless there is a `default`."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return _or_default(value, default, "float", "a number")


def _or_default(value: Json, default: Json, name: str, wanted: str) -> Json:
    if default is None:
        raise Unusable(f"`{name}`: {limits.shown(value)} is not {wanted} (a default is possible: `{name}(0)`)")
    return default


@own
def round_(value: Json, precision: int = 0, method: str = "common") -> Json:
    """The number rounded to `precision` digits; `method` is `common`, `ceil` or `floor`."""
    if abs(precision) > 15:
        raise Unusable("`round` takes a precision up to 15")
    # `do_round` itself rejects other methods and other values.
    return jinja_filters.do_round(value, precision, method)  # type: ignore[arg-type]


DATE_ONLY = re.compile(r"(?:[^%]|%[-]?[aAbBdjmyYUWGgVue%])*")
DATE_PARTS = re.compile(r"(?:[^%]|%[-]?[aAbBdjmyYUWGgVuHIMSpfzZ%])*")


@own
def date(value: Json, format: str | None = None, parse: str | None = None) -> Json:
    """A date or time in another format. It is read as ISO 8601 or with the pattern `parse`, and written as ISO 8601 or with `format`.

    `"31.12.2026" | date(parse="%d.%m.%Y")` is `2026-12-31`; `now() | date("%d.%m.%Y")` writes the date as in Germany.
    """
    text = text_of(value, "date")
    for pattern in (format, parse):
        if pattern is not None and (len(pattern) > 200 or not DATE_PARTS.fullmatch(pattern)):
            raise Unusable(f"{limits.shown(pattern)} is not a pattern for dates: %Y %m %d %H %M %S and the like")
    try:
        moment = dt.datetime.strptime(text, parse) if parse else _iso(text)  # noqa: DTZ007 - a zone only where the text has one
    except ValueError:
        how = f"with the pattern {parse!r}" if parse else "as ISO 8601 (give a pattern: `date(parse='%d.%m.%Y')`)"
        raise Unusable(f"{limits.shown(text)} cannot be read {how}") from None
    if parse and isinstance(moment, dt.datetime) and DATE_ONLY.fullmatch(parse):
        moment = moment.date()
    return moment.strftime(format) if format else moment.isoformat()


def _iso(text: str) -> dt.date | dt.datetime:
    text = text.strip()
    return dt.date.fromisoformat(text) if len(text) <= 10 else dt.datetime.fromisoformat(text)


# Data


@own
def json(value: Json, indent: int | None = None) -> Json:
    """The value as JSON text; `indent` spreads it over several lines."""
    if indent is not None and not 0 <= indent <= 8:
        raise Unusable("`json` takes an indent from 0 to 8")
    limits.check_weight(value)
    return json_codec.dumps(normalise(value), ensure_ascii=False, indent=indent)


@own
def from_json(value: Json) -> Json:
    """The value of a JSON text."""
    text = text_of(value, "from_json")
    limits.check_text(len(text))

    def refuse(word: str) -> Json:
        raise ValueError(f"{word} is not JSON")

    try:
        return json_codec.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"`from_json`: {error}") from None


@own
def keys(value: Json) -> Json:
    """The keys of a map, in their order."""
    return list(_map(value, "keys"))


@own
def values(value: Json) -> Json:
    """The values of a map, in their order."""
    return list(_map(value, "values").values())


@own
def items(value: Json) -> Json:
    """The entries of a map as `[key, value]` lists, in their order."""
    return [[key, item] for key, item in _map(value, "items").items()]


@own
def zip_(value: Json, *others: Json) -> Json:
    """Lists combined item by item: a list of lists with one item of each. The lists must be equally long."""
    lists = [_list(each, "zip") for each in (value, *others)]
    if len({len(each) for each in lists}) > 1:
        raise Unusable(f"`zip` takes lists of one length, these have {', '.join(str(len(each)) for each in lists)}")
    return [list(each) for each in zip(*lists, strict=True)]


@own
def index(value: Json, item: Json) -> Json:
    """The position of an item in a list, or of a part in a text, from 0; null if it is not there."""
    if isinstance(value, str):
        found = value.find(text_of(item, "index"))
        return found if found >= 0 else None
    every = _list(value, "index")
    return every.index(item) if item in every else None


@own
def range_(value: Json, start: int = 0, step: int = 1) -> Json:
    """The whole numbers from `start` to before the value, as a list: `3 | range` is `[0, 1, 2]`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unusable(f"`range` works on a whole number, not on {kind_of(normalise(value))}")
    every = range(start, value, step)
    limits.check_items(len(every))
    return list(every)


@own
def chunk(value: Json, size: int) -> Json:
    """The list split into lists of `size` items, the last one shorter."""
    if size < 1:
        raise Unusable("`chunk` takes a size of at least 1")
    whole = _list(value, "chunk")
    return [whole[start : start + size] for start in range(0, len(whole), size)]


@own
def flatten(value: Json) -> Json:
    """The items of a list of lists as one list, in their order; one level deep."""
    return limits.gathered(item for inner in _list(value, "flatten") for item in _list(inner, "flatten"))


@own
def csv(value: Json, separator: str = ",") -> Json:
    """A list of maps as CSV text: a header with all keys in order of first appearance, null as an empty cell, lists and maps as JSON."""
    limits.check_weight(value)
    return _sheet(lambda mark: csv_text.written(normalise(value), mark), separator, "csv")


@own
def from_csv(value: Json, separator: str = ",") -> Json:
    """The rows of a CSV text as a list of maps; the first line has the keys. Every cell is text (`number` converts it)."""
    text = text_of(value, "from_csv")
    limits.check_text(len(text))
    return _sheet(lambda mark: csv_text.read(text, mark), separator, "from_csv")


def _sheet(make: Callable[[str], Json], separator: str, name: str) -> Json:
    if separator not in (",", ";", "\t", "|"):
        raise Unusable(f"the separator of `{name}` is a comma, a semicolon, a tab or `|`")
    try:
        return make(separator)
    except csv_text.NoSheet as error:
        raise Unusable(f"`{name}`: {error}") from None


@own
def batch(value: Json, size: int, fill: Json = None) -> Json:
    """Like `chunk`, but the last list is padded with `fill`, if given."""
    cut = chunk(value, limits.check_items(size))
    if fill is not None and cut:
        cut[-1] += [fill] * (size - len(cut[-1]))
    return cut


@own
def slice_(value: Json, count: int, fill: Json = None) -> Json:
    """The list split into `count` lists of nearly equal length; shorter ones are padded with `fill`, if given."""
    if count < 1:
        raise Unusable("`slice` takes a count of at least 1")
    limits.check_items(count)
    return list(jinja_filters.sync_do_slice(_list(value, "slice"), count, fill))


@own
@jinja2.pass_environment
def sum_(environment: jinja2.Environment, value: Json, attribute: str | int | None = None, start: Json = 0) -> Json:
    """The sum of a list of numbers, or of the `attribute` of its maps, added to `start`."""
    found = _list(value, "sum")
    if attribute is not None:
        found = [jinja_filters.make_attrgetter(environment, attribute)(each) for each in found]
    return functools.reduce(lambda left, right: limits.operate("+", left, right), found, start)


@own
@jinja2.pass_environment
def groupby(
    environment: jinja2.Environment,
    value: Json,
    attribute: str | int,
    default: Json = None,
    case_sensitive: bool = False,
) -> Json:
    """The list in groups by one `attribute`: a list of maps with `grouper`, the shared value, and `list`, the items."""
    groups = jinja_filters.sync_do_groupby(environment, _list(value, "groupby"), attribute, default, case_sensitive)
    return [{"grouper": grouper, "list": members} for grouper, members in groups]
