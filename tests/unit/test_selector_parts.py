"""Selectors taken apart: steps, words, and what each word becomes with another value."""

from __future__ import annotations

import pytest

from runtime.browser.diagnosis import selector_parts


@pytest.mark.parametrize(
    ("way", "text", "steps"),
    [
        ("css", "#list > li.row a:nth-child(2)", ["#list", "> li.row", "a:nth-child(2)"]),
        ("css", "> li + li~li", ["> li", "+ li", "~li"]),
        ("css", "div:has(> a.x, b) [title='a > b'] i", ["div:has(> a.x, b)", "[title='a > b']", "i"]),
        ("css", r".sm\:flex .über", [r".sm\:flex", ".über"]),
        ("xpath", "//table[@id='a/b']//tr/td", ["//table[@id='a/b']", "//tr", "/td"]),
        ("xpath", ".//a[normalize-space()='x']/..", [".//a[normalize-space()='x']", "/.."]),
    ],
)
def test_the_steps_of_a_selector(way: selector_parts.Way, text: str, steps: list[str]) -> None:
    """A selector is split at its combinators or slashes, and not at those in quotes and brackets."""
    [selector] = selector_parts.take_apart(way, text)
    assert [selector.said(number) for number in range(len(selector.steps))] == steps
    assert selector.head(len(steps) - 1) == text


def test_the_alternatives_of_a_list() -> None:
    """A list of selectors is read one by one."""
    found = selector_parts.take_apart("css", "a[title='x, y'], :is(b, i) , #u")
    assert [each.text for each in found] == ["a[title='x, y']", ":is(b, i)", "#u"]


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("css", "a >> text=x"),
        ("css", "a ^ b"),
        ("css", ""),
        ("css", "a,"),
        ("xpath", "(//a)[2]"),
        ("xpath", "//a | //b"),
    ],
)
def test_an_unknown_form(way: selector_parts.Way, text: str) -> None:
    """What is not understood as a whole is left alone."""
    assert selector_parts.take_apart(way, text) == []


@pytest.mark.parametrize(
    ("way", "text", "value", "changed"),
    [
        ("css", "a#sve", "save", ["save#sve", "a#save"]),
        ("css", ".row", "a:b", ['[class~="a:b"]']),
        ("css", "#row", "1", ['[id="1"]']),
        ("css", "[name=q]", 'say "no"', ["""[name='say "no"']""", """[say "no"=q]"""]),
        ("css", "i:text-is('Sav')", "Save", ["Save:text-is('Sav')", 'i:text-is("Save")']),
        ("css", "i:has-text( 'Sav' )", "Save", ["Save:has-text( 'Sav' )", 'i:has-text( "Save" )']),
        ("xpath", "//a[@id='x']", "y", ["//y[@id='x']", '//a[@id="y"]']),
        ("xpath", "//*[contains(@class, 'x')]", "y", ['//*[contains(@class, "y")]']),
        ("xpath", "//a[text()='x']", "y", ["//y[text()='x']", '//a[text()="y"]']),
    ],
)
def test_a_word_with_another_value(way: selector_parts.Way, text: str, value: str, changed: list[str]) -> None:
    """Each word can be written with another value in its place, quoted or in brackets where the value needs that."""
    [selector] = selector_parts.take_apart(way, text)
    [step] = selector.steps
    assert [text[: each.start] + each.written(value) + text[each.end :] for each in step.words] == changed
