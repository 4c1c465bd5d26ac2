"""Page logic without a browser: alternatives of targets, URL globs, Playwright's error messages, similar names."""

from __future__ import annotations

import pytest
from playwright.async_api import Error

from nodes.targets import Target
from runtime.browser import playwright_errors
from runtime.browser.diagnosis import nearest
from runtime.browser.elements import locators

CLICK = """Locator.click: Timeout 800ms exceeded.
Call log:
  - waiting for get_by_role("button", name="A")
    - locator resolved to <button>A</button>
  - attempting click action
"""


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("**/orders", "http://shop.test/orders", True),
        ("**/orders", "http://shop.test/a/orders", True),
        ("**/orders", "http://shop.test/orders/7", False),
        ("**/orders", "http://shop.test/orders?page=2#top", True),
        ("**/orders", "http://shop.test/login?next=/orders", False),
        ("**/orders?page=*", "http://shop.test/orders?page=2", True),
        ("**/orders?page=*", "http://shop.test/ordersXpage=2", False),
        ("**page=2", "http://shop.test/orders?sort=no&page=2", True),
        ("**/orders*sort=no&*", "http://shop.test/orders?sort=no&page=2#top", True),
        ("**next=/orders", "http://shop.test/login?next=/orders", True),
        ("**page=2", "http://shop.test/orders?page=20", False),
        ("**/orders#top", "http://shop.test/orders#top", True),
        ("http://shop.test/*", "http://shop.test/orders", True),
        ("http://shop.test/*", "http://shop.test/orders/7", False),
        ("http://shop.test/*/edit", "http://shop.test/7/edit", True),
        ("http://shop.test/**/edit", "http://shop.test/a/b/edit", True),
        ("http://shop.test/a.b", "http://shop.test/axb", False),
        ("http://shop.test/[a]", "http://shop.test/[a]", True),
        ("**", "about:blank", True),
        ("**/builds/*", "http://ci.test/#/builders/1/builds/23", True),
        ("**/builds/*", "http://ci.test/#!/builds/23?tab=log", True),
        ("http://ci.test/", "http://ci.test/#/builds/23", True),
        ("**/builds/*", "http://ci.test/#builds/23", False),
        ("**/orders", "http://shop.test/?lang=en#/orders?page=2", True),
        ("**/a=b/items", "http://shop.test/a=b/items?page=2", True),
    ],
)
def test_an_address_is_compared_with_a_glob(pattern: str, url: str, fits: bool) -> None:
    """``**`` matches anything, ``*`` anything but a slash; query and fragment count only where the glob names them, a fragment that is a route also where it fits."""
    assert locators.address_matches(pattern, url) is fits


def test_an_alternative_inherits_the_narrowing_fields() -> None:
    """An alternative inherits the fields beside ``any_of``, except those it sets itself."""
    row = Target(role="row", has_text="7")
    target = Target(
        any_of=[Target(role="button", name="Pay"), Target(css="a.pay", exact=False)], within=row, exact=True, nth=1
    )
    assert target.any_of is not None
    assert locators.alternative(target, target.any_of[0]) == Target(
        role="button", name="Pay", within=row, exact=True, nth=1
    )
    assert locators.alternative(target, target.any_of[1]) == Target(css="a.pay", within=row, exact=False, nth=1)


@pytest.mark.parametrize(
    ("target", "settled"),
    [
        (Target(css="a"), True),
        (Target(css="a", nth=-1), True),
        (Target(css="a", nth=-2), False),
        (Target(any_of=[Target(css="a"), Target(css="b")]), False),
        (Target(css="a", within=Target(any_of=[Target(css="a"), Target(css="b")])), False),
        (Target(css="a", within=Target(css="b", nth=-3)), False),
    ],
    ids=str,
)
def test_targets_that_must_be_settled_first(target: Target, settled: bool) -> None:
    """Alternatives, and positions before the last counted from the end, are unsettled at any depth."""
    assert locators.settled(target) is settled


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (CLICK, "not actionable"),
        ("Locator.click: Timeout 800ms exceeded.\nCall log:\n  - waiting for get_by_role()", "missing"),
        ('Locator.click: Error: strict mode violation: locator("a") resolved to 2 elements:\n 1) <a>', "ambiguous"),
        ('Locator.click: Unexpected token "" while parsing css selector "a[".', "bad target"),
        ("Page.click: Target crashed", "crashed"),
        ("Page.title: Target page, context or browser has been closed", "gone"),
        ("Page.evaluate: Execution context was destroyed, most likely because of a navigation.", "navigated"),
        ("Locator.fill: Error: Cannot type text into input[type=number]\nCall log:\n", "wrong element"),
        ("Locator.set_checked: Error: Not a checkbox or radio button", "wrong element"),
        ("something new", "other"),
    ],
)
def test_kinds_of_playwright_errors(message: str, kind: str) -> None:
    """The kind of an error follows from Playwright's message."""
    assert playwright_errors.kind_of(Error(message)) == kind


@pytest.mark.parametrize(
    ("log", "waited"),
    [
        ("", True),
        ("      - waiting for element to be visible, enabled and stable\n      - element is not stable", True),
        ("    2 × retrying click action\n      - waiting 20ms\n      - scrolling into view if needed", True),
        ("      - done scrolling\n  - <p>performing click action</p> intercepts pointer events", True),
        ('  - fill("performing click action")', True),
        ("    - performing click action", False),
        ("      2 × performing click action", False),
        ("    - performing click action\n      - <p></p> intercepts pointer events\n      - waiting 20ms", False),
        ("      - click action done\n      - waiting for scheduled navigations to finish", False),
        ('  - elementHandle.press("Enter")', False),
        ('  - elementHandle.type("a")\n  - element was detached from the DOM, retrying', False),
        ('  - fill("a\nb")\n  - element is not editable', False),
        ("  - something new", False),
    ],
)
def test_a_call_log_that_only_waited(log: str, waited: bool) -> None:
    """A call log proves that nothing was sent only if all its lines are waits; quoted page text or values do not count."""
    assert playwright_errors.only_waited(Error(CLICK + log)) is waited


@pytest.mark.parametrize(
    ("head", "log", "waited"),
    [
        ("Timeout 9ms exceeded.", "  - waiting for element to be visible, enabled and editable", False),
        ("Timeout 9ms exceeded.", "  - waiting for element to be visible and enabled", False),
        (
            "Timeout 9ms exceeded.",
            "  - waiting for element to be visible and enabled\n  - element is not enabled",
            True,
        ),
        ("Element is not a <select> element", "  - waiting for element to be visible and enabled", True),
        ("Target page, context or browser has been closed", "", False),
    ],
)
def test_a_step_that_waits_and_acts_at_once(head: str, log: str, waited: bool) -> None:
    """The first line of `fill` and `select` proves nothing as the last one, unless the element was refused; nor does a missing call log."""
    assert (
        playwright_errors.only_waited(Error(f"Locator.fill: {head}" + (f"\nCall log:\n{log}\n" if log else "")))
        is waited
    )


@pytest.mark.parametrize(
    ("lines", "problem", "element"),
    [
        (["- element is not visible"], "hidden", "<button>A</button>"),
        (["- element is not visible", "- element is not enabled"], "disabled", "<button>A</button>"),
        (
            ["- element is not stable", '- <div id="cover">x</div> intercepts pointer events'],
            "covered",
            '<div id="cover">x</div>',
        ),
        (["- element was detached from the DOM, retrying"], "detached", "<button>A</button>"),
        ([], "busy", "<button>A</button>"),
    ],
)
def test_the_last_obstacle_counts(lines: list[str], problem: str, element: str) -> None:
    """The reported obstacle is the last one in the call log."""
    found = playwright_errors.obstacle(Error(CLICK + "".join(f"    {line}\n" for line in lines)))
    assert (found[0], found[2]) == (problem, element)


SNAPSHOT = """- heading "Shop" [level=1]
- textbox "User name": hunter2
- heading "Sign in"
- button "Sign in" [disabled]
- link "Say \\"hi\\"":
  - /url: /hi
- text: Sign out
- paragraph: nothing
- 'button "Odd: one"'
- button "\ue5cc"
- button "\ue5cc Next"
"""


def test_a_snapshot_is_read_by_role_and_name() -> None:
    """Roles and names are read from a snapshot; field values are not, nor the pictures of icon fonts."""
    assert nearest.parse(SNAPSHOT) == [
        ("heading", "Shop"),
        ("textbox", "User name"),
        ("heading", "Sign in"),
        ("button", "Sign in"),
        ("link", 'Say "hi"'),
        ("button", "Odd: one"),
        ("button", "Next"),
    ]


@pytest.mark.parametrize(
    ("target", "best"),
    [
        (Target(role="button", name="Signin"), ['role=button name="Sign in"']),
        (Target(label="Username"), ['role=textbox name="User name"']),
        (Target(role="button", name="Nothing like it"), []),
        (Target(role="link"), ['role=link name="Say "hi""']),
        (Target(css="#x"), []),
    ],
    ids=str,
)
def test_the_most_similar_name_comes_first(target: Target, best: list[str]) -> None:
    """Similar names come first, of the wanted role before others; without similarity the list is empty."""
    assert nearest.ranked(target, nearest.parse(SNAPSHOT))[: len(best) or None] == best
