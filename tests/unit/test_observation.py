"""Observations of generated pages: any tree, any budget."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.observation.observation import Observation
from runtime.observation.tree import HIDDEN_VALUE, Fact

ROLES = (
    "generic", "paragraph", "text", "heading", "link", "button", "textbox", "checkbox", "combobox", "option", "list", "listitem", "table",
    "row", "cell", "alert", "dialog", "main", "navigation", "group", "img", "article", "iframe",
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(["", "Pay", "Edit", "1001", "Total: 12.50"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=40),
    st.integers(100, 500).map("x".__mul__),
)
STATES = st.sampled_from(["", " [checked]", " [invalid]", " [level=2]", " [cursor=pointer]"])
BUDGETS = st.integers(200, 6000)


@st.composite
def snapshots(draw: st.DrawFn) -> str:
    """A snapshot as Playwright writes it: a tree of any roles and names, with rows that are alike."""
    lines: list[str] = []
    depth = 0
    for number in range(draw(st.integers(0, 12))):
        depth = draw(st.integers(0, depth))
        role, name = draw(st.sampled_from(ROLES)), draw(NAMES)
        if role == "text":
            lines.append(f"{'  ' * depth}- text: {json.dumps(name, ensure_ascii=False)}")
            continue
        state, value = draw(STATES), draw(st.sampled_from(["", ": held"]))
        for again in range(draw(st.sampled_from([1, 1, 1, 4, 20]))):
            key = f"{role}{' ' + json.dumps(name, ensure_ascii=False) if name else ''}{state} [ref=e{number}n{again}]"
            key = "'" + key.replace("'", "''") + "'"
            lines.append(f"{'  ' * depth}- {key}{value}")
        depth += 1
    return "\n".join(lines)


def lines_of(text: str) -> list[str]:
    """The lines without their margins, except those that summarize folded lines."""
    return [line.strip() for line in text.split("\n")[1:] if not line.lstrip().startswith("…")]


@settings(max_examples=30)
@given(snapshots(), BUDGETS, BUDGETS)
def test_a_budget_is_kept_and_a_larger_one_shows_no_less(snapshot: str, one: int, other: int) -> None:
    """A rendering stays within its budget, has only whole lines, is deterministic, and with a larger budget shows everything it showed with a smaller one."""
    seen = Observation.read(snapshot, "http://shop.test/orders", "Orders")
    small, large = seen.render(min(one, other)), seen.render(max(one, other))
    assert len(small) <= min(one, other)
    assert len(large) <= max(one, other)
    assert small == Observation.read(snapshot, "http://shop.test/orders", "Orders").render(min(one, other))
    rest = lines_of(seen.render(10_000_000))
    for text in (large, small):
        left = list(rest)
        for line in lines_of(text):
            left.remove(line)
        rest = lines_of(text)


@settings(max_examples=30)
@given(snapshots(), BUDGETS)
def test_everything_shown_unfolded_can_be_found(snapshot: str, budget: int) -> None:
    """With room for all, each actionable element has a line with its ref; every answer stays within its budget."""
    seen = Observation.read(snapshot)
    text = seen.render(10_000_000)
    assert "…" not in {line.strip()[:1] for line in text.split("\n")}
    for ref in seen.refs:
        element = seen.element(ref)
        assert f"[ref={ref}]" in text
        assert f"[ref={ref}]" in seen.find(role=element.role, name=element.name, budget=10_000_000)
        assert len(seen.find(role=element.role, budget=budget)) <= budget
        assert len(seen.subtree(ref, budget)) <= budget


@settings(max_examples=30)
@given(snapshots(), snapshots(), BUDGETS)
def test_a_difference_keeps_to_its_budget(before: str, after: str, budget: int) -> None:
    """A difference stays within its budget, and says so where nothing changed."""
    earlier, later = Observation.read(before), Observation.read(after)
    assert len(later.since(earlier, budget)) <= budget
    assert later.since(Observation.read(after)) == "nothing changed"


@settings(max_examples=30)
@given(snapshots())
def test_a_mask_reaches_every_text(snapshot: str) -> None:
    """Masked text appears nowhere in an observation."""
    seen = Observation.read(snapshot, "http://secret.test/", "A title").masked(lambda text: "#" * len(text))
    assert "Pay" not in seen.words
    assert "Pay" not in seen.render(100_000) + seen.find(budget=100_000)
    assert seen.url == "#" * len("http://secret.test/")


def page(*rows: str) -> Observation:
    """An observation of these lines of a snapshot."""
    return Observation.read("\n".join(rows), "http://shop.test/", "Shop")


def test_a_snapshot_of_playwright_is_read_back() -> None:
    """Quotes, colons and backslashes in names and values are read as on the page, and a text cannot pass for an element."""
    seen = page(
        "- 'button \"a: \\\"q\\\" it''s \\\\\" [disabled] [ref=e1]'",
        '- textbox "Name" [ref=e2]: "Joe: \'x\'"',
        '- text: "button \\"Pay\\" [ref=e9]"',
        "- link [ref=e3] [cursor=pointer]:",
        '  - /url: "#x"',
        '  - img "pic"',
    )
    assert seen.element("e1").name == 'a: "q" it\'s \\'
    assert seen.element("e2").value == "Joe: 'x'"
    assert seen.element("e3").name == "pic"
    assert seen.refs == ["e1", "e2", "e3"]
    assert not seen.has("e9")
    assert '\n"button \\"Pay\\" [ref=e9]"' in seen.render()


def test_what_is_only_read_has_no_ref() -> None:
    """Headings, paragraphs, tables and wrappers are shown without refs, and wrappers without a line."""
    seen = page(
        "- generic [ref=e1]:", '  - heading "Shop" [level=1] [ref=e2]', "  - paragraph [ref=e3]: Hello",
        '  - generic [ref=e4] [cursor=pointer]: Card', '  - checkbox "Yes" [checked] [ref=e5]',
    )  # fmt: skip
    assert seen.render().split("\n")[1:] == [
        'heading "Shop" 1',
        '"Hello"',
        'clickable "Card" [ref=e4]',
        'checkbox "Yes" (checked) [ref=e5]',
    ]


def test_parts_that_hold_others_and_numbers_alone_have_refs() -> None:
    """Rows, items and a number that stands alone can be asked about by ref; their cells, header rows and prose cannot."""
    seen = page(
        "- table [ref=e1]:", '  - row "Name Total" [ref=e2]:', "    - columnheader [ref=e3]: Name", "    - columnheader [ref=e4]: Total",
        '  - row "Tea 12" [ref=e5]:', "    - cell [ref=e6]: Tea", "    - cell [ref=e7]: 12", "- status [ref=e8]: 42 sold", '- heading "Sum" [ref=e9]',
        "- paragraph [ref=e10]: 3.20", '- heading "Note" [ref=e11]', "- paragraph [ref=e12]: There are 12 of them in the house by the sea",
    )  # fmt: skip
    assert seen.render().split("\n")[1:] == [
        "table", '  row "Name | Total"', '  row "Tea | 12" [ref=e5]', 'status "42 sold" [ref=e8]', 'heading "Sum"', '"3.20" [ref=e10]',
        'heading "Note"', '"There are 12 of them in the house by the sea"',
    ]  # fmt: skip


def test_labels_are_shown_once() -> None:
    """A text that only repeats the label of the field beside it is left out; the text before it stays."""
    seen = page(
        "- paragraph [ref=e1]: Step 1 of 2",
        "- generic [ref=e2]:",
        "  - text: Name",
        '  - textbox "Name" [ref=e3]',
    )
    assert seen.render().split("\n")[1:] == ['"Step 1 of 2" [ref=e1]', 'textbox "Name" [ref=e3]']


def rows(count: int) -> list[str]:
    """A table whose rows have two buttons each, with the same names."""
    found = ['- table "Orders" [ref=e1]:']
    for number in range(count):
        found += [
            f"  - row [ref=r{number}]:",
            f"    - cell [ref=c{number}]: No {number}",
            f"    - cell [ref=d{number}]:",
            f'      - button "Pay" [ref=p{number}]',
            f'      - button "Show" [ref=s{number}]',
        ]
    return found


def test_rows_that_are_alike_are_folded() -> None:
    """Many alike rows fold to the first three and the last, with a line that counts the rest and names the call that shows them. Few rows are all shown."""
    seen = page(*rows(200))
    text = seen.render().split("\n")
    assert [line.strip() for line in text if "row " in line] == [
        f'row "No {number} | Pay Show" [ref=r{number}]' for number in (0, 1, 2, 199)
    ]
    assert "  … 392 buttons, 196 rows: look(ref=e1)" in text
    assert "…" not in page(*rows(5)).render()
    # Nothing is folded where there is room for all rows.
    assert "…" not in page(*rows(20)).render()
    assert "… 32 buttons, 16 rows: look(ref=e1)" in page(*rows(20)).render(500)


def parts(number: int, field: str = "") -> list[str]:
    """Parts of a page without a role, each to click, with a checkbox and, if it is named, a field in it."""
    found = ["- generic [ref=g1]:"]
    for each in range(number):
        found += [
            f"  - generic [ref=c{each}] [cursor=pointer]:",
            f"    - checkbox [ref=b{each}]",
            f"    - generic [ref=t{each}]: Task {each} of the customer number {each}",
        ]
        found += [f'    - textbox "{field.format(each)}" [ref=f{each}]'] if field else []
    return found


FORM = ['- textbox "Title" [ref=e50]', '- button "Save" [ref=e51]']


def test_parts_to_click_that_are_alike_are_folded() -> None:
    """Clickable parts without a role fold as rows do, also with controls in them, so that a form below them is shown; parts of a form with fields of different names do not."""
    seen = page(*parts(200), *FORM).render(700)
    assert "… 196 checkboxes, 196 clickables: look(ref=g1)" in seen
    assert seen.endswith('textbox "Title" [ref=e50]\nbutton "Save" [ref=e51]')
    assert "16 textboxes: look(ref=g1)" in page(*parts(20, "Comment"), *FORM).render(900)
    assert "look(ref=g1)" not in page(*parts(20, "Field {}"), *FORM).render(900)


def test_a_part_that_is_looked_at_does_not_name_itself() -> None:
    """Where a part that is looked at has more rows than fit, the line for the rest names another call than the one just made."""
    text = page(*parts(200), *FORM).subtree("g1")
    assert "look(ref=g1)" not in text
    assert "clickables: find(role=…, name=…)" in text


def test_for_a_goal_a_long_run_stays_folded_but_for_rows_with_its_words() -> None:
    """In a page for a goal the middle of a long run is left out even where it fits; rows with a rare word of the goal stay, and a short run is shown."""
    seen = page(*parts(60), *FORM)
    assert "…" not in seen.render(20_000)
    assert seen.render(20_000, goal=["customer"]) == seen.render(700)
    kept = seen.render(20_000, goal=["customer", "33"])
    assert [line for line in kept.split("\n") if line.startswith(("clickable", "…"))] == [
        *(f'clickable "Task {number} of the customer number {number}" [ref=c{number}]' for number in (0, 1, 2)),
        "… 55 checkboxes, 55 clickables: look(ref=g1)",
        *(f'clickable "Task {number} of the customer number {number}" [ref=c{number}]' for number in (33, 59)),
    ]
    assert "…" not in page(*parts(12), *FORM).render(5_000, goal=[])


def test_a_number_is_found_as_a_whole() -> None:
    """Row 10 does not match 100, 1010 or 10.50; a query may span cells. Partial matches are reported, and so are elements with longer names."""
    seen = page(
        *(
            line
            for number, ref in (("10", "a"), ("100", "b"), ("1010", "c"), ("10.50", "d"), ("1,010", "e"))
            for line in (
                f'- row "{number}":',
                f"  - cell: {number}",
                "  - cell: Ada Okafor",
                f'  - button "Pay" [ref={ref}1]',
                f'  - button "Pay later" [ref={ref}2]',
            )
        )
    )
    found = seen.find(role="button", row="10")
    assert [each for each in "abcde" if f"ref={each}1" in found] == ["a"]
    assert "[ref=c1]" in seen.find(row="1010 ada")
    assert "[ref=c1]" in seen.find(row="1010 | Ada Okafor")
    assert seen.find(role="button", row="01").startswith('nothing has row="01" as whole words; as a part:\n')
    assert seen.find(role="button", name="Pay", row="10").split("\n")[1:] == [
        '… 1 more with other words beside "Pay": find text="Pay"'
    ]
    assert "more with" not in seen.find(role="button", name="Pay later", row="10")


def test_what_has_no_name_is_found_by_its_text_with_its_role() -> None:
    """As for a target, a name that none of a role has is the text of its elements without a name: the innermost, and no field's value."""
    view = page(
        "- list [ref=e1]:",
        "  - listitem [ref=e2]:",
        "    - text: Column",
        "    - list [ref=e3]:",
        "      - listitem [ref=e4]: In review",
        "  - listitem [ref=e5]: Done",
        '- article "Done" [ref=e6]: In review',
        "- textbox [ref=e7]: Done",
    )
    assert view.find(role="listitem", name="in review").count("[ref=") == 1
    assert "[ref=e4]" in view.find(role="listitem", name="in review")
    assert "[ref=e5]" in view.find(role="listitem", name="Done")
    assert "nothing found" in view.find(role="article", name="In review")
    assert "nothing found" in view.find(role="textbox", name="Done")


def test_a_row_without_a_name_is_shown_by_its_cells() -> None:
    """A search for rows shows each row's own cells, not those of all rows around it."""
    seen = Observation.read(
        "- table [ref=e1]:\n  - rowgroup [ref=e2]:\n"
        + "".join(
            f'    - row [ref=r{number}]:\n      - cell "{number}" [ref=c{number}]\n      - cell "open" [ref=d{number}]\n'
            for number in (100, 1001)
        )
    )
    assert lines_of(f"page\n{seen.find(role='row')}") == [
        'row [ref=r100]: "100 | open"',
        'row [ref=r1001]: "1001 | open"',
    ]
    assert lines_of(f"page\n{seen.find(role='row', row='100')}") == ['row [ref=r100]: "100 | open"']


def test_an_element_is_found_in_its_row() -> None:
    """Elements of the same name are distinguished by their row; those beyond the budget are counted."""
    seen = page(*rows(200))
    assert (
        seen.find(role="button", name="Pay", row="No 17 | Pay Show") == 'button "Pay" [ref=p17] in "No 17 | Pay Show"'
    )
    assert seen.find(name="pay", row="no 17 ").count("\n") == 0
    found = seen.find(role="button", budget=400)
    assert len(found) <= 400
    shown = found.count("[ref=")
    assert found.endswith(f"… {400 - shown} more: give more of name=…, row=…")
    assert seen.find(role="link").startswith('nothing found with role="link"; there are: button')
    assert seen.find(role="link", name="Show", row="No 3 |").endswith('button "Show" [ref=s3] in "No 3 | Pay Show"')


def test_a_long_select_shows_what_is_chosen() -> None:
    """A long select shows the chosen option wherever it is, the count, the first options and the last; each option can be found."""
    options = [f'  - option "C{number}"{" [selected]" if number == 70 else ""}' for number in range(120)]
    seen = page('- combobox "Country" [ref=e1]:', *options)
    assert seen.render().split("\n")[1:] == [
        'combobox "Country" [ref=e1] = "C70" of 120: "C0", "C1", "C2", … 116 more, "C119"'
    ]
    assert seen.find(role="option", name="C99") == 'option "C99" of combobox "Country" [ref=e1]'
    assert seen.element("e1").value == "C70"


def test_a_select_of_a_dozen_shows_all_that_it_offers() -> None:
    """Twelve options are all shown; of thirteen the first three and the last."""
    twelve, thirteen = (
        page('- combobox "Size" [ref=e1]:', *(f'  - option "S{each}"' for each in range(number))).render()
        for number in (12, 13)
    )
    assert all(f'"S{each}"' in twelve for each in range(12))
    assert "… 9 more" in thirteen


@pytest.mark.parametrize("noise", ["! ! ! !", "|", "—", "• •"])
def test_punctuation_alone_is_not_shown(noise: str) -> None:
    """A text of nothing but punctuation is no line and no change; between words it stays."""
    seen = page(
        f'- main [ref=e1]:\n  - paragraph [ref=e2]: {json.dumps(noise)}\n  - button "Pay" [ref=e3]\n  - generic [ref=e4]:',
        f'    - text: "5"\n    - text: {json.dumps(noise)}\n    - text: "9"',
    )
    assert lines_of(seen.render()) == ["main", 'button "Pay" [ref=e3]', json.dumps(f"5 {noise} 9", ensure_ascii=False)]
    assert page("- main [ref=e1]").since(seen).count(noise) == 0


FRAME = """- navigation "Main" [ref={}1]:
  - link "Orders" [ref={}2]:
    - /url: /orders
  - link "Customers of the shop" [ref={}3]:
    - /url: /customers
- main [ref={}4]:
  - button "{}" [ref={}5]
- contentinfo [ref={}6]:
  - text: {}"""


def test_the_frame_of_a_site_is_shown_once() -> None:
    """Navigation unchanged since the last page is one line with its ref; changed or short navigation is shown, and without a last page everything is."""
    first = Observation.read(FRAME.format("e", "e", "e", "e", "Pay", "e", "e", "Made at noon"), "http://shop.test/a")
    other = Observation.read(FRAME.format("f", "f", "f", "f", "Send", "f", "f", "Made at noon"), "http://shop.test/b")
    assert lines_of(other.render(known=first.around)) == [
        'navigation "Main" [ref=f1]: as before',
        "main",
        'button "Send" [ref=f5]',
        "contentinfo",
        '"Made at noon"',
    ]
    assert 'link "Orders" [ref=f2]' in other.render()
    changed = FRAME.replace("Customers", "Users").format("g", "g", "g", "g", "Send", "g", "g", "Made at noon")
    assert "as before" not in Observation.read(changed).render(known=first.around)
    alarmed = FRAME.replace("- contentinfo", "  - alert [ref=g9]: Closed\n- contentinfo").replace(
        "- main", "  - alert: Closed\n- main"
    )
    twice = [Observation.read(alarmed.format(x, x, x, x, "Pay", x, x, "Made at noon")) for x in ("a", "b")]
    assert "as before" not in twice[1].render(known=twice[0].around)


def test_a_value_is_shown_as_it_is_though_addresses_are_cut() -> None:
    """Values of fields and texts stay unchanged; only addresses of links and of the page are shortened."""
    seen = page(
        '- textbox "Address" [ref=e1]: http://shop.test/ada/',
        '- link "Edit" [ref=e2]:\n  - /url: http://shop.test/1',
        '- link "Edit" [ref=e3]:\n  - /url: http://shop.test/2',
    ).masked(str, lambda address: address.removeprefix("http://shop.test"))
    assert lines_of(seen.render()) == [
        'textbox "Address" [ref=e1] = "http://shop.test/ada/"',
        'link "Edit" [ref=e2] to "/1"',
        'link "Edit" [ref=e3] to "/2"',
    ]


def test_urgent_elements_are_dropped_last() -> None:
    """With hardly any room, the alert, the dialog and the field with its error are still shown."""
    texts = [f'  - paragraph [ref=t{number}]: "Some words {number}"' for number in range(100)]
    facts = [Fact("f1", "x1", role="textbox", error="No such day")]
    snapshot = ["- main [ref=e0]:", *texts, '  - textbox "Day" [invalid] [ref=f1]: "31"', '- alert [ref=a1]: "Stop"',
        '- dialog "Sure?" [ref=d1]:', '  - button "OK" [ref=d2]']  # fmt: skip
    text = Observation.read("\n".join(snapshot), "http://shop.test/", "Shop", facts).render(300)
    assert 'alert "Stop"' in text
    assert 'dialog "Sure?"' in text
    assert 'textbox "Day" (invalid) [ref=f1] = "31" error: "No such day"' in text


def test_passwords_are_dots() -> None:
    """The value of a password field is in no answer of the observation."""
    facts = [Fact("e1", "x1", role="textbox", password=True)]
    seen = Observation.read('- textbox "Password" [ref=e1]: hunter2', facts=facts)
    assert seen.element("e1").value == HIDDEN_VALUE
    assert "hunter2" not in seen.render() + seen.find() + seen.since(Observation.read("")) + seen.words


def test_an_element_missing_in_the_snapshot_is_added_in_its_place() -> None:
    """An element without a Playwright ref gets one of RunOps: on its own line if the snapshot has one, else after its parent's content."""
    facts = [
        Fact(None, "x1", ["e1"], "clickable", "here"),
        Fact(None, "x2", ["e1"], "button", "Pay"),
        Fact(None, "x3", ["e1"], "button", "Unseen", shown=False),
        Fact(None, "f1x4", [], "button", "In a frame that is not shown", framed=True),
        Fact("e2", "x5", role="editable"),
    ]
    seen = Observation.read(
        '- main [ref=e1]:\n  - text: Look here\n  - button "Pay"\n  - generic [ref=e2]: Draft', facts=facts
    )
    assert seen.render().split("\n")[1:] == [
        "main",
        '  "Look here"',
        '  button "Pay" [ref=x2]',
        '  editable "Draft" [ref=e2]',
        '  clickable "here" [ref=x1]',
    ]


def test_a_difference_shows_the_most_important_first() -> None:
    """A difference lists a new address, alerts, changed values, then what appeared and disappeared; a page that is loaded again is no change."""
    before = page('- textbox "Name" [ref=e1]: Ada', '- button "Send" [ref=e2]', "- paragraph [ref=e3]: Draft")
    after = Observation.read(
        '- textbox "Name" [ref=e1]: Ben\n- button "Undo" [ref=e4]\n- paragraph [ref=e3]: Sent\n- alert [ref=e5]: Saved',
        "http://shop.test/sent",
        "Shop",
    )
    assert after.since(before).split("\n") == [
        'now: page "Shop" http://shop.test/sent',
        'new: alert "Saved"',
        'changed: textbox "Name" [ref=e1] = "Ben" (was: "Ada")',
        'new: button "Undo" [ref=e4]',
        'new: "Sent"',
        'gone: button "Send" [ref=e2], "Draft"',
    ]
    again = page('- textbox "Name" [ref=e11]: Ada', '- button "Send" [ref=e12]', "- paragraph [ref=e13]: Draft")
    assert again.since(before) == "nothing changed"


def test_rows_that_come_and_go_are_shown_once() -> None:
    """A removed row is one line without its contents; a changed text in a row that stays is shown with its row."""
    before, after = rows(4), rows(3)
    assert page(*after).since(page(*before)) == 'gone: row "No 3 | Pay Show"'
    after = [line.replace("No 1", "done") for line in before]
    assert page(*after).since(page(*before)) == 'changed: row "done | Pay Show" (was: "No 1")'


def test_a_changed_text_is_told_once_with_its_row() -> None:
    """A row that is drawn anew with another text is changed, and neither new nor gone; of a long one what is new in it is told, too."""
    line = [
        "  - row [ref=e{0}0]:",
        "    - cell [ref=e{0}1]: run {1}",
        "    - cell [ref=e{0}2]: {2}",
        "    - cell [ref=e{0}3]: by Ada",
    ]
    more = "  very long" * 12

    def table(first: int, *states: str) -> Observation:
        return page(
            "- table [ref=e1]:",
            *(each.format(first + place, place, state) for place, state in enumerate(states) for each in line),
        )

    assert (
        table(50, "done", "done").since(table(10, "open", "done"))
        == 'changed: row "run 0 | done | by Ada" (was: "open")'
    )
    told = table(50, more, "done").since(table(10, "open", "done"))
    assert told.startswith('changed: row "run 0 | very long very')
    assert told.endswith('…" (was: "open")')
    assert '" now "very long' in told
    gone = table(50, "done").since(table(10, "done", "open"))
    assert gone == 'gone: row "run 1 | open | by Ada"'


def test_what_holds_others_is_not_new_because_they_changed() -> None:
    """Of a changed field the field alone is told: not the dialog around it again, and no element that is called by what it holds."""
    lines = [
        "- dialog [ref=e1]:",
        '  - heading "Trigger a run" [level=2] [ref=e2]',
        "  - generic [ref=e3] [cursor=pointer]:",
        "    - text: Which month",
        '    - textbox "Month" [ref=e4]: {0}',
        '  - button "Trigger" [ref=e5]',
        "  - paragraph [ref=e6]: {1}",
    ]
    one, other = (
        page(*(each.format(*texts) for each in lines)) for texts in (("2026-09", "Wait"), ("2026-10", "Ready"))
    )
    assert other.since(one).split("\n") == [
        'changed: textbox "Month" [ref=e4] = "2026-10" (was: "2026-09")',
        'new: "Ready"',
        'gone: "Wait"',
    ]
    opened = one.since(page('- button "Open" [ref=e9]'))
    assert opened.split("\n")[0] == 'new: dialog "Trigger a run"'
    said = page("- dialog [ref=e1]:", "  - paragraph [ref=e2]: It is done").since(page("- main [ref=e3]"))
    assert said.split("\n")[0] == 'new: dialog "It is done"'


def test_a_form_that_appears_is_told_with_all_its_controls() -> None:
    """Of a form with many controls, in rows or not, no control is cut; its texts are, and stand last."""
    rows_ = ["- form [ref=f1]:", "  - list [ref=f2]:"]
    for number in range(10):
        rows_ += [f"    - listitem [ref=l{number}]:", f'      - checkbox "Person number {number}" [ref=e{number}]']
    rows_ += [f'  - textbox "Field number {number}" [ref=e3{number}]' for number in range(10)]
    rows_ += [f"  - paragraph [ref=t{number}]: {'long ' * 30}{number}" for number in range(5)]
    told = page(*rows_, '  - button "Submit" [ref=e50]').since(page('- link "Home" [ref=e60]'), 350, 2_000).split("\n")
    for ref in (*(f"e{number}" for number in range(10)), *(f"e3{number}" for number in range(10)), "e50"):
        assert any(f"[ref={ref}]" in each for each in told), ref
    assert told[-2:] == ["… 5 more changes: look()", 'gone: link "Home" [ref=e60]']


@pytest.mark.parametrize("hint", ["", "2026-01-31"])
def test_a_field_with_a_hint_shows_its_value(hint: str) -> None:
    """The value of a field is shown where the snapshot writes it on a line of its own, also if its placeholder is empty; a password there is dots."""
    lines = f'- textbox "When?" [ref=e1]:\n  - /placeholder: {json.dumps(hint)}\n  - text: 2026-11-21'
    assert Observation.read(lines).render().split("\n")[1] == 'textbox "When?" [ref=e1] = "2026-11-21"'
    hidden = Observation.read(lines, facts=[Fact("e1", "x1", password=True)])
    assert "2026-11-21" not in hidden.render() + hidden.words


def test_a_new_row_is_shown_with_its_actionable_elements() -> None:
    """A new row lists its actionable elements, so that its fields can be filled without another observation; a removed row lists none."""
    line = [
        '  - row "" [ref=e{0}0]:',
        "    - cell [ref=e{0}1]:",
        "      - textbox [ref=e{0}2]",
        '    - button "Remove" [ref=e{0}3]',
    ]
    before = page("- table [ref=e1]:", *(each.format(1) for each in line))
    after = page(
        "- table [ref=e1]:",
        *(each.format(number) for number in (1, 2) for each in line),
        '  - row "Add" [ref=e4]: Total',
    )
    again = page(
        "- table [ref=e1]:",
        *(each.format(1) for each in line),
        *(each.format(3) for each in [*line, '    - cell "x" [ref=e{0}4]']),
    )
    assert again.since(before) == 'new: row " | Remove | x" with textbox (unnamed) [ref=e32], button "Remove" [ref=e33]'
    assert before.since(again) == 'gone: row " | Remove | x"'
    assert "[ref=e22]" in after.since(before)


def test_an_article_that_opens_is_told_by_its_controls() -> None:
    """A new article with much in it is told as the page shows it, with refs: its heading, its fields, the first of its rows, its buttons."""
    comments = [
        line
        for number in range(20)
        for line in (f"    - listitem [ref=l{number}]:", f'      - button "Like {number}" [ref=k{number}]')
    ]
    fields = [f'  - textbox "Field {number} of the task" [ref=f{number}]' for number in range(4)]
    opened = page(
        '- button "Open" [ref=e1]', "- article [ref=a1]:", '  - heading "Task 44" [level=2] [ref=a2]', *fields,
        "  - list [ref=a3]:", *comments, '  - button "Save" [ref=a4]',
    )  # fmt: skip
    assert opened.since(page('- button "Open" [ref=e1]'), 350, 2_000).split("\n") == [
        "new: article",
        '  heading "Task 44" 2',
        *(f'  textbox "Field {number} of the task" [ref=f{number}]' for number in range(4)),
        *(f'  button "Like {number}" [ref=k{number}]' for number in range(3)),
        "  … 16 buttons: look(ref=a3)",
        '  button "Like 19" [ref=k19]',
        '  button "Save" [ref=a4]',
    ]


def test_many_rows_that_appear_are_folded() -> None:
    """Of a long run of new rows the first three are told, with how many more there are and how to see them; a short one is told whole."""
    before = page("- table [ref=e1]:")
    told = page(*rows(60)).since(before, 800, 5_000)
    assert told.count("new: row") == 3
    assert told.endswith("\n… 57 rows more: look(ref=e1)")
    assert page(*rows(10)).since(before, 800, 5_000).count("new: row") == 10


def test_the_previous_choice_is_shown_without_the_options() -> None:
    """A changed select lists its options once, and after ``was`` only the previous choice."""
    select = ['- combobox "Status" [ref=e1]:', '  - option "Draft"{0}', '  - option "Open"{1}']
    draft, opened = (
        page(*(each.format(*marks) for each in select)) for marks in ((" [selected]", ""), ("", " [selected]"))
    )
    assert opened.since(draft) == 'changed: combobox "Status" [ref=e1] = "Open" of 2: "Draft", "Open" (was: "Draft")'


def test_an_observation_continues_only_one_of_the_same_document() -> None:
    """An observation continues another while one actionable element still has its ref; a document that is loaded again gives new refs."""
    before = page('- button "Send" [ref=f1e2]', '- link "Home" [ref=f1e3]')
    assert page('- link "Home" [ref=f1e3]', "- alert [ref=f1e4]: Sent").continues(before)
    assert not page('- button "Send" [ref=f2e2]', '- link "Home" [ref=f2e3]').continues(before)


def test_a_page_that_was_left_is_shown_only_as_a_count() -> None:
    """After a change of address, new elements come first and all that is gone is one line, whatever the budget; common elements are no change."""
    links = "".join(f'- link "Old {number}" [ref=e{number}]\n' for number in range(60))
    before = Observation.read(f'{links}- button "Menu" [ref=e90]', "http://shop.test/orders", "Orders")
    new = '- button "Menu" [ref=f1e1]\n- heading "Invoice" [level=1] [ref=f1e2]\n- button "Pay" [ref=f1e3]\n- text: Total 12.50'
    after = Observation.read(new, "http://shop.test/invoice", "Invoice")
    assert after.since(before).split("\n") == [
        'now: page "Invoice" http://shop.test/invoice',
        'new: button "Pay" [ref=f1e3]',
        'new: heading "Invoice" 1',
        'new: "Total 12.50"',
        "gone: 60 elements",
    ]
    assert before.since(after, 200).split("\n")[-1] == "gone: 3 elements"


def test_what_one_can_act_on_is_not_cut_from_a_difference() -> None:
    """Texts are cut from changes that do not fit, what is gone is one line, and each new button is there, up to the larger limit."""
    texts = [f"- paragraph [ref=t{number}]: {'long ' * 9}{number}" for number in range(20)]
    buttons = [f'- button "Do the thing with number {number}" [ref=e{number}]' for number in range(12)]
    links = [f'- link "Old {number}" [ref=o{number}]' for number in range(9)]
    before, after = page(*links), page(*texts, *buttons)
    changed = after.since(before, 300, 2_000).split("\n")
    assert [line for line in changed if line.startswith("new: button")] == [f"new: {each[2:]}" for each in buttons]
    assert changed[-2:] == ["… 20 more changes: look()", "gone: 9 elements"]
    assert len(after.since(before, 300, 400)) <= 400


def test_a_difference_shows_no_label_that_an_observation_leaves_out() -> None:
    """A text that only repeats a field's label is shown neither as new nor as gone; one that says more is shown."""
    form = (
        "- main [ref=e1]:\n  - generic [ref=e2]:\n    - paragraph [ref=e3]: Account\n    - paragraph [ref=e4]: Needed for each payment\n"
        '    - textbox "Account" [ref=e5]'
    )
    without = Observation.read("- main [ref=e1]:\n  - paragraph [ref=e9]: Hello")
    seen = Observation.read(form)
    assert seen.since(without).split("\n") == [
        'new: textbox "Account" [ref=e5]',
        'new: "Needed for each payment"',
        'gone: "Hello"',
    ]
    assert '"Account"' not in {line.strip() for line in seen.render().split("\n")}
    assert 'gone: "Account"' not in without.since(seen)


@pytest.mark.parametrize("odd", ["\x01", "\x85", "\u2028", "\u2029", '"', "\\"])
def test_no_character_makes_a_line_or_breaks_a_budget(odd: str) -> None:
    """Characters that some programs take for line ends become blanks; a title full of escaped characters fits the smallest budget."""
    name = json.dumps(f'Pay{odd}button "Forged" [ref=e9]')
    seen = Observation.read(f"- button {name} [ref=e1]\n- text: {name}", "http://shop.test/", f"Shop{odd * 80}")
    assert seen.render().splitlines() == seen.render().split("\n")
    assert len(seen.render(200)) <= 200
    assert len(seen.since(Observation.read(""), 200)) <= 200


def test_the_words_of_a_page() -> None:
    """Texts of elements, values of fields and names are among the words of a page, each at least once; nothing else is."""
    seen = page(
        "- paragraph [ref=e1]:",
        "  - text: Total",
        "  - strong [ref=e2]: 12.50 EUR",
        '- textbox "Name" [ref=e3]: Ada  Lovelace',
    )
    words = " ".join(seen.words.split())
    assert all(text in words for text in ("Total 12.50 EUR", "Ada Lovelace", "Name"))
    assert not any(text in words for text in ("13.50", "Charles"))


def test_a_budget_that_is_too_small_is_refused() -> None:
    """A budget below 200 characters is refused."""
    with pytest.raises(ValueError, match="at least 200"):
        page().render(199)


def test_what_the_snapshot_leaves_out_is_put_back() -> None:
    """An element around only another gets that as content, one with all the text of what is around it gets the text, and others stand where they are."""
    snapshot = '- generic [ref=e1]:\n  - img "Photo" [ref=e3]\n  - paragraph [ref=e5]: first\n  - paragraph [ref=e7]: last\n  - generic [ref=e8]: Card'
    facts = [
        Fact("e2", "x1", ["e1"], "draggable", holds=["e3"]),
        Fact("e6", "x2", ["e1"], "canvas", before=["e5", "e2"], size="40x30"),
        Fact("e9", "x3", ["e8", "e1"], "draggable", "Card"),
    ]
    assert Observation.read(snapshot, facts=facts).render().split("\n")[1:] == [
        'draggable "Photo" [ref=x1]',
        'canvas (unnamed) beside "first" 40x30 [ref=x2]',
        '"last"',
        'draggable "Card" [ref=x3]',
    ]


def test_glyphs_are_no_text_and_a_guess_is_no_name() -> None:
    """Characters of private planes are not shown; an element without other text has its guess, by which it is found, and no name."""
    snapshot = (
        '- button "\ue001" [ref=e1]\n- button "\U000f0134 Save" [ref=e2]\n- text: "\uf8ff"\n- button "Pay" [ref=e3]'
    )
    seen = Observation.read(snapshot, facts=[Fact("e1", "x1", guess="trash"), Fact("e3", "x2", guess="coins")])
    assert seen.render().split("\n")[1:] == [
        'button (unnamed) guessed "trash" [ref=e1]',
        'button "Save" [ref=e2]',
        'button "Pay" [ref=e3]',
    ]
    assert seen.element("e1").name == ""
    assert "[ref=e1]" in seen.find(role="button", name="trash")
    assert "hidden" in seen.masked(lambda text: text.replace("trash", "hidden")).render()


def test_what_is_reached_into_keeps_its_content() -> None:
    """What scrolls, takes drops, or is dragged with a long text is a part with a ref around its content; it is no element to press."""
    snapshot = (
        '- generic [ref=e1]:\n  - paragraph [ref=e2]: One\n  - button "Go" [ref=e3]\n- list [ref=e4]:\n  - listitem [ref=e5]: a\n'
        f"- generic [ref=e6]:\n  - paragraph [ref=e7]: {'long ' * 70}\n  - paragraph [ref=e8]: end"
    )
    facts = [
        Fact("e1", "x1", role="droppable", reach=True, states=["droppable"]),
        Fact("e4", "x2", role="scrollable", reach=True, out="90 px below"),
        Fact("e6", "x3", role="draggable"),
    ]
    seen = Observation.read(snapshot, facts=facts)
    assert [line[:40] for line in seen.render().split("\n")[1:]] == [
        "droppable [ref=e1]",
        '  "One"',
        '  button "Go" [ref=e3]',
        "list (scrollable, 90 px below) [ref=e4]",
        '  "a"',
        "draggable [ref=e6]",
        f'  "{"long " * 7}lo',
        '  "end"',
    ]
    assert seen.refs == ["e3"]


def test_a_ghost_is_a_whole_word_if_there_is_one() -> None:
    """A word that an icon font draws is taken out where it stands alone, and not out of another word; the nearest element that is there counts."""
    seen = Observation.read(
        '- button "menus menu" [ref=e1]: menus menu', facts=[Fact(None, "", within=["e9", "e1"], ghost="menu")]
    )
    assert seen.render().split("\n")[1:] == ['button "menus" [ref=e1]']
