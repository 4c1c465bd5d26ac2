"""Targets for the element that a model points at: semantic first, verified, and as short as possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodes.errors import SiteError
from nodes.targets import Target
from runtime.browser.elements import targets
from runtime.browser.elements.facts import Area, Caption, Facts, Row

LINK = Caption("printers", ("div:has(> a:text-is(", "printers", "))"))
ROW = Row("row", ("Ada Okafor", "1001", "248.50"))


class Pointed:
    """An element on a page where targets match as ``places`` says; other targets match nothing."""

    def __init__(self, facts: Facts, places: dict[str, tuple[int, int]]) -> None:
        self.facts = facts
        self._places = places
        self.tried: list[str] = []

    async def places(self, target: Target) -> tuple[int, int]:
        """The matches that the test sets."""
        line = str(target)
        self.tried.append(line)
        return self._places.get(line, (0, -1))


def anything(_text: str) -> bool:
    """Accepts any text, as if none were a secret."""
    return True


CASES: list[tuple[str, Facts, str, str, dict[str, tuple[int, int]], str]] = [
    (
        "a unique name",
        Facts("button"),
        "button",
        "Pay",
        {'role=button name="Pay"': (1, 0)},
        'role=button name="Pay"',
    ),
    (
        "a link with a count, by its name without it",
        Facts(
            "a",
            parts=(
                Caption("Done", ("a:has(span:text-is(", "Done", "))")),
                Caption("9", ("a:has(b:text-is(", "9", "))")),
            ),
        ),
        "link",
        "Done 9",
        {'role=link name="Done"': (1, 0), 'role=link name="Done 9"': (1, 0)},
        'role=link name="Done"',
    ),
    (
        "a link with a count in brackets, by its name without it",
        Facts("a"),
        "link",
        "Inbox (3)",
        {'role=link name="Inbox"': (1, 0), 'role=link name="Inbox (3)"': (1, 0)},
        'role=link name="Inbox"',
    ),
    (
        "a link with a number of its own, by its name",
        Facts("a", parts=(Caption("1001", ("a:has(b:text-is(", "1001", "))")),)),
        "link",
        "Order 1001",
        {'role=link name="Order"': (1, 0), 'role=link name="Order 1001"': (1, 0)},
        'role=link name="Order 1001"',
    ),
    (
        "a select whose label contains its options, by its name",
        Facts("select", labels=("Action: Draft Open",)),
        "combobox",
        "Action:",
        {'label="Action:"': (1, 0), 'label="Action: Draft Open"': (1, 0)},
        'label="Action:"',
    ),
    (
        "a field without a label, by its form name",
        Facts("input", "number", name="lines-1-quantity", rows=(Row("row", ("Remove",)),)),
        "spinbutton",
        "",
        {
            'css=input[name="lines-1-quantity"]': (1, 0),
            'role=spinbutton within=role=row has_text="Remove"': (1, 0),
            "role=spinbutton nth=1": (1, 0),
        },
        'css=input[name="lines-1-quantity"]',
    ),
    (
        "a name contained in another",
        Facts("button"),
        "button",
        "Pay",
        {'role=button name="Pay"': (2, 0), 'role=button name="Pay" exact=true': (1, 0)},
        'role=button name="Pay" exact=true',
    ),
    (
        "a field by its label",
        Facts("input", "text", labels=("Name",)),
        "textbox",
        "Name",
        {'label="Name"': (1, 0), 'role=textbox name="Name"': (1, 0)},
        'label="Name"',
    ),
    (
        "identical in rows, by the number in the row",
        Facts("button", rows=(ROW,)),
        "button",
        "Pay",
        {
            'role=button name="Pay"': (3, 1),
            'role=button name="Pay" within role=row has_text="1001"': (1, 0),
            'role=button name="Pay" within role=row has_text="Ada Okafor"': (1, 0),
        },
        'role=button name="Pay" within role=row has_text="1001"',
    ),
    (
        "without a name, by its id for tests",
        Facts("span", test_id="go"),
        "clickable",
        "",
        {'test_id="go"': (1, 0)},
        'test_id="go"',
    ),
    (
        "with a long name, by how it begins",
        Facts("input", "radio"),
        "radio",
        "Process " * 6 + "of a worker that runs on this machine and does what it is told to do by the server",
        {'role=radio name="Process Process Process Process Process"': (1, 0)},
        'role=radio name="Process Process Process Process Process"',
    ),
    (
        "a card, by a text in it",
        Facts("div", inside=Area("div", css=("div.MuiCard-root",), texts=("printers", "3"), card=True)),
        "generic",
        "",
        {'css=div.MuiCard-root has_text="printers"': (1, 0), "css=div": (9, 3)},
        'css=div.MuiCard-root has_text="printers"',
    ),
    (
        "in a card whose classes a program made, by the way down to its name",
        Facts("input", "checkbox", areas=(Area("div", says=(LINK,)),)),
        "switch",
        "",
        {'role=switch within css=div:has(> a:text-is("printers"))': (1, 0), "role=switch": (2, 1)},
        'role=switch within css=div:has(> a:text-is("printers"))',
    ),
    (
        "in a frame",
        Facts("button", frames=("card",)),
        "button",
        "Pay",
        {'role=button name="Pay" frame=card': (1, 0)},
        'role=button name="Pay" frame=card',
    ),
    (
        "identical elements, by position",
        Facts("button"),
        "button",
        "Pay",
        {'role=button name="Pay"': (3, 2), 'role=button name="Pay" nth=2': (1, 0)},
        'role=button name="Pay" nth=2',
    ),
    (
        "without a role, by its text",
        Facts("div", text="More"),
        "generic",
        "",
        {'text="More"': (1, 0)},
        'text="More"',
    ),
]


@pytest.mark.parametrize(
    ("facts", "role", "name", "places", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_the_first_verified_target_is_chosen(
    facts: Facts, role: str, name: str, places: dict[str, tuple[int, int]], wanted: str
) -> None:
    """The chosen target matches the element, and no other."""
    found = await targets.target_of(Pointed(facts, places), role, name, anything)
    assert str(found) == wanted


async def test_a_target_of_another_element_is_rejected() -> None:
    """A single match is no proof if it is not the element that the model meant."""
    pointed = Pointed(Facts("button"), {'role=button name="Pay"': (1, -1)})
    with pytest.raises(SiteError) as raised:
        await targets.target_of(pointed, "button", "Pay", anything)
    assert raised.value.code == "no-target"
    assert pointed.tried


async def test_no_secret_is_in_a_target() -> None:
    """A name or row with a secret is skipped for the next kind of target."""
    usable: Callable[[str], bool] = lambda text: "s3cret" not in text  # noqa: E731
    facts = Facts("button", id="pay", rows=(Row("row", ("s3cret", "Ada")),))
    places: dict[str, Any] = {'role=button name="Pay s3cret"': (1, 0), "css=#pay": (1, 0)}
    pointed = Pointed(facts, places)
    found = await targets.target_of(pointed, "button", "Pay s3cret", usable)
    assert str(found) == "css=#pay"
    assert [each for each in pointed.tried if "s3cret" in each] == []


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("Nov 27 2026, 23:22:33", True),
        ("2026-11-27T10:00:00Z", True),
        ("27.11.2026", True),
        ("Friday, 27 November 2026", True),
        ("11/27/26, 3:04 PM", True),
        ("manual__2026-11-27T10:00:00", False),
        ("Invoice of 2026-11-27", False),
        ("INV-204", False),
        ("555-1234", False),
    ],
)
def test_a_time_alone_identifies_worse_than_words(text: str, time: bool) -> None:
    """A row is found by another text than a date or time, unless that is a part of a name."""
    said = [
        each.fields["has_text"]
        for each in targets.ways(Facts("tr", inside=Area("tr", texts=(text, "Ada"))), "row", "", anything)
        if "has_text" in each.fields
    ]
    assert (said[0] == text) == (not time) == (not targets.is_time(text))
