"""Targets and rules as plain Playwright: locators, and expectations that wait."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from nodes.rules import Rule
from nodes.targets import Target
from nodes.template import Template
from nodes.values import Json
from runtime.browser.elements import locators
from runtime.export import expressions
from runtime.export.code import Names
from runtime.export.layout import literal, quoted

BY_TEXT = {
    "label": "get_by_label",
    "placeholder": "get_by_placeholder",
    "text": "get_by_text",
    "alt": "get_by_alt_text",
    "title": "get_by_title",
}

_DOUBLE, _SINGLE = '"', "'"

SEEN = ".filter(visible=True)"


Reach = Callable[[Target, int], str]
"""Returns the code of an element, to which so many characters are added."""


class Locators:
    def __init__(self, names: Names) -> None:
        self._names = names

    def of(self, page: str, target: Target) -> list[str]:
        """Return the chain that finds the element: the page, and each call on the one before it."""
        chain = self._around(page, target)
        if target.any_of is not None:
            first, *others = ("".join(self.of(page, locators.alternative(target, each))) for each in target.any_of)
            return [first, *(f".or_({each})" for each in others), ".first"]
        chain.append(self._way(target))
        if target.has_text is not None:
            chain = self._containing(chain, target)
        return [*chain, *self._nth(target.nth)]

    def _around(self, page: str, target: Target) -> list[str]:
        if target.within is None:
            return [page, *(self._frame(each) for each in target.frames)]
        within = target.within if target.frame is None else target.within.model_copy(update={"frame": target.frame})
        return self.of(page, within)

    def _way(self, target: Target) -> str:
        exact = ", exact=True" if target.exact else ""
        if target.role is not None:
            name = f", name={self._text(target.name)}{exact}" if target.name is not None else ""
            return f".get_by_role({self._text(target.role)}{name})"
        if target.test_id is not None:
            return f".get_by_test_id({self._text(target.test_id)})"
        for way, method in BY_TEXT.items():
            if (text := getattr(target, way)) is not None:
                return f".{method}({self._text(text)}{exact})"
        if target.xpath is not None:
            return f".locator({self._prefixed('xpath=', target.xpath)})"
        css = target.css or ""
        # Playwright reads some texts as another of its selector languages.
        odd = css.startswith(("/", ".", "(")) and not re.match(r"\.[\w-]", css)
        return f".locator({self._prefixed('css=', css) if odd or '>>' in css else self._text(css)})"

    def _containing(self, chain: list[str], target: Target) -> list[str]:
        text = self._text(target.has_text)
        if target.exact:
            self._names.need("re")
            return [*chain, f".filter(has_text=re.compile({self._pattern(target.has_text or '', whole=True)}))"]
        if target.frames:
            return [*chain, f".filter(has_text={self._words(target.has_text)})"]
        return [f"{self._names.need('containing')}({''.join(chain)}, {text})"]

    def _nth(self, nth: Json) -> list[str]:
        if nth is None:
            return []
        return {0: [".first"], -1: [".last"]}.get(nth, [f".nth({self._text(nth)})"])

    def _frame(self, wanted: str) -> str:
        if isinstance(wanted, Template):
            return f".frame_locator({self._text(wanted)})"
        if wanted.startswith(("**", "/", "http://", "https://")):
            part = max(re.split(r"\*+", wanted), key=len)
            css = f'iframe[src*="{part}"]'
            return f".frame_locator({quoted(css)})"
        if re.fullmatch(r"[\w-]+", wanted) and wanted not in ("iframe", "frame"):
            css = f'[name="{wanted}"]'
            return f".frame_locator({quoted(css)})"
        return f".frame_locator({quoted(wanted)})"

    def _text(self, value: Json) -> str:
        return expressions.of(value, self._names)

    def _prefixed(self, prefix: str, text: str) -> str:
        return self._text(Template(f"{prefix}{text}") if isinstance(text, Template) else f"{prefix}{text}")

    def _words(self, text: Json) -> str:
        return f"{self._names.need('words')}({self._text(text)})"

    def _pattern(self, text: str, *, whole: bool) -> str:
        words = r"\s+".join(re.escape(each) for each in text.split())
        return f're.compile(r"^\\s*{words}\\s*$")' if whole else words

    # Rules.

    def rule(self, page: str, rule: Rule, seconds: float | None, reach: Reach) -> Iterator[str]:
        """Yield the statements that wait until the rule holds; ``reach`` returns the code of an element."""
        more = [] if seconds is None else [f"timeout={round(seconds * 1000):_}"]
        wanted = getattr(rule, rule.kind)
        match rule.kind:
            case "expr":
                yield f"assert {self._text(wanted)}"
            case "url":
                yield self._expects(page, "to_have_url", self._address(wanted), *more)
            case "title" if rule.exact:
                yield self._expects(page, "to_have_title", self._text(wanted), *more)
            case "title":
                yield self._expects(page, "to_have_title", self._words(wanted), *more)
            case "visible" | "hidden":
                check = f"to_be_{rule.kind}"
                yield self._expects(reach(wanted, len(f"expect().{check}()")), check, *more)
            case "text":
                text = self._text(wanted) if rule.exact else self._words(wanted)
                check = "to_have_text" if rule.exact else "to_contain_text"
                head = len(f"expect().{check}(")
                found = reach(rule.target, head) if rule.target is not None else f'{page}.locator("body")'
                yield self._expects(found, check, text, "use_inner_text=True", *more)
            case kind:
                assert rule.target is not None
                seen = len(SEEN) if kind == "count" else 0
                found = reach(rule.target, len(f"expect().not_to_be_{kind}()") + seen)
                yield self._state(found, kind, wanted, more)

    def _state(self, found: str, kind: str, wanted: Json, more: list[str]) -> str:
        if kind == "count":
            return self._expects(f"{found}{SEEN}", "to_have_count", self._text(wanted), *more)
        if kind == "value":
            return self._expects(found, "to_have_value", self._text(wanted), *more)
        if wanted is True or wanted is False:
            check = {"checked": "to_be_checked", "enabled": "to_be_enabled"}[kind]
            return self._expects(found, check if wanted else f"not_{check}", *more)
        return self._expects(found, f"to_be_{kind}", f"{kind}={self._text(wanted)}", *more)

    def _expects(self, found: str, check: str, *arguments: str) -> str:
        self._names.need("expect")
        return f"expect({found}).{check}({', '.join(arguments)})"

    def _address(self, glob: str) -> str:
        """Return the pattern of an address: ``**/orders`` without the query, unless the glob names a part of it."""
        self._names.need("re")
        query = locators.counts_query(glob)
        stars = {"**": ".*", "*": "[^/]*" if query else "[^/?#]*"}
        if isinstance(glob, Template):
            return self._address_of_template(glob, stars, query=query)
        start = glob.removeprefix("**")
        body = "".join(stars.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*)", start))
        begin = "^" if start == glob else ""
        end = "(#.*)?$" if query else r"([?#].*)?$"
        body = re.sub(r"\\([-:/=&#])", r"\1", body)
        mark = "'" if '"' in body else '"'
        return f"re.compile(r{mark}{begin}{body}{'$' if '#' in glob else end}{mark})"

    def _address_of_template(self, glob: str, stars: dict[str, str], *, query: bool) -> str:
        pieces = expressions.pieces_of(glob, self._names)
        body = ""
        for number, (text, is_code) in enumerate(pieces):
            if is_code:
                body += f"{{re.escape(str({text.replace(_DOUBLE, _SINGLE)}))}}"
                continue
            part = text.removeprefix("**") if not number else text
            fixed = "".join(stars.get(each, re.escape(each)) for each in re.split(r"(\*\*|\*)", part))
            body += re.sub(r"\\([-:/=&#])", r"\1", fixed).replace("{", "{{").replace("}", "}}")
        begin = "" if glob.startswith("**") else "^"
        end = "(#.*)?$" if query else "([?#].*)?$"
        return f're.compile(rf"{begin}{body}{end}")'


def variable_of(target: Target) -> str:
    """Return a name for a variable with the element: its role, else ``found``."""
    role = target.role or ""
    return role if re.fullmatch(r"[a-z]+", role) else "field" if target.label else "found"


__all__ = ["Locators", "literal", "variable_of"]
