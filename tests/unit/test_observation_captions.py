"""Captions, terms, headers and addresses in observations: an element is shown by the words that find it."""

from __future__ import annotations

from runtime.observation.marks import Mark
from runtime.observation.observation import Observation

INVOICE = """
- table [ref=e1]:
  - row [ref=e2]:
    - columnheader "Item" [ref=e3]
    - columnheader "2 Toggle sorting Pieces" [ref=e4]:
      - generic [ref=e5]:
        - generic [ref=e6]: "2"
        - link "Toggle sorting" [ref=e7] [cursor=pointer]:
          - /url: "?o=-1"
      - link "Pieces" [ref=e8] [cursor=pointer]:
        - /url: "?o=1"
  - row [ref=e9]:
    - cell [ref=e10]:
      - textbox [ref=e11]
    - cell [ref=e12]:
      - generic [ref=e13]:
        - spinbutton [ref=e14]: "3"
- table [ref=e20]:
  - row [ref=e21]:
    - cell "Discount code" [ref=e22]
    - cell [ref=e23]:
      - textbox [ref=e24]
- paragraph [ref=e30]:
  - text: Width
  - textbox [ref=e31]
  - text: Height
  - textbox [ref=e32]
- generic [ref=e40]:
  - textbox [ref=e41]
  - text: kg
  - textbox [ref=e42]
- paragraph [ref=e50]:
  - checkbox [ref=e51]
  - text: Remember me
- generic [ref=e60]:
  - term [ref=e61]: Decision
  - definition [ref=e62]: accepted
  - term [ref=e63]: Files
  - definition [ref=e64]:
    - link "letter.pdf" [ref=e65] [cursor=pointer]:
      - /url: /letter
"""


def read(*lines: str) -> Observation:
    """An observation of these lines of a snapshot."""
    return Observation.read("\n".join(lines), "http://shop.test/", "Shop")


def shown(seen: Observation) -> list[str]:
    """The rendered lines, without margins."""
    return [each.strip() for each in seen.render(20_000).split("\n")[1:]]


def test_a_field_without_a_name_is_shown_with_the_caption_beside_it() -> None:
    """The caption is the column, the cell to the left, or the text before the field, after it for a box. Text after another field is that field's unit."""
    lines = shown(read(INVOICE))
    assert [each for each in lines if " beside " in each] == [
        'textbox (unnamed) beside "Item" [ref=e11]',
        'spinbutton (unnamed) beside "Pieces" [ref=e14] = "3"',
        'textbox (unnamed) beside "Discount code" [ref=e24]',
        'textbox (unnamed) beside "Width" [ref=e31]',
        'textbox (unnamed) beside "Height" [ref=e32]',
        'checkbox (unnamed) beside "Remember me" [ref=e51]',
        'definition (unnamed) beside "Decision" [ref=e62] = "accepted"',
        'definition (unnamed) beside "Files" [ref=e64]',
    ]
    # A caption is not shown again.
    assert not {'"Width"', '"Height"', '"Remember me"', '"Decision"', '"Files"'} & {*lines}
    assert {"textbox (unnamed) [ref=e41]", '"kg"', "textbox (unnamed) [ref=e42]"} <= {*lines}


def test_an_element_is_found_by_its_caption() -> None:
    """A caption finds an element as a name does; text that is only readable is found with its ref."""
    seen = read(INVOICE)
    assert seen.find(name="Discount code") == 'textbox (unnamed) beside "Discount code" [ref=e24] in "Discount code | "'
    assert (
        seen.find(role="definition", name="Decision") == 'definition (unnamed) beside "Decision" [ref=e62] = "accepted"'
    )
    assert seen.find(text="kg") == 'text "kg" in generic [ref=e40]'
    assert read('- paragraph [ref=e1]: "Total 12.50"').find(text="12.50") == 'paragraph "Total 12.50" [ref=e1]'
    assert seen.element("e24").caption == "Discount code"


def test_a_header_is_shown_without_its_sort_links() -> None:
    """A column header leaves out its sort number and sort link; a header without such links stays as it is."""
    assert 'row "Item | Pieces"' in shown(read(INVOICE))
    plain = read(
        "- table [ref=e1]:",
        "  - row [ref=e2]:",
        '    - columnheader "Total 2" [ref=e3]: Total 2',
        '    - columnheader [ref=e4]: "3"',
    )
    assert 'row "Total 2 | 3"' in shown(plain)


def test_a_changed_definition_is_shown_with_its_term() -> None:
    """A changed definition is shown with its term."""
    after = read(INVOICE.replace("accepted", "refused"))
    assert after.since(read(INVOICE)).split("\n") == [
        'new: definition (unnamed) beside "Decision" [ref=e62] = "refused"',
        'gone: definition (unnamed) beside "Decision" [ref=e62] = "accepted"',
    ]


def test_a_test_id_is_shown_where_only_it_finds_the_element() -> None:
    """Unnamed values, fields, texts and parts of texts show their test id, named elements and table cells do not; it is masked like everything else."""
    snapshot = [
        *INVOICE.split("\n"),
        "- paragraph [ref=e70]: Draft 17 of Ada",
        '- button "Save" [ref=e71]',
        "- generic [ref=e72]:",
        "  - text: Came",
        '  - link "List" [ref=e73]',
    ]
    given = (
        (("e62",), "decision", "accepted"),
        (("e64", "e60"), "files", "letter.pdf"),
        (("e24", "e23"), "the code", ""),
        ((None, "e70"), "draft", "17"),
        (("e99", "e70"), "who", "Ada"),
        (("e71",), "save", "Save"),
        ((None, "e72"), "came", "Came"),
        (("e10", "e9"), "cell", ""),
        ((None, "e73"), "listed", "List"),
        ((None, None), "gone", "gone"),
    )
    seen = Observation.read("\n".join(snapshot), seen=[Mark(refs, "test_id", *each) for refs, *each in given])
    assert [each for each in shown(seen) if "test_id" in each] == [
        'textbox beside "Discount code" [ref=e24] {test_id: "the code"}',
        'definition beside "Decision" [ref=e62] = "accepted" {test_id: decision}',
        'definition beside "Files" [ref=e64] {test_id: files}',
        'text "Draft 17 of Ada" {test_id: draft} = "17" {test_id: who} = "Ada"',
        'text "Came" {test_id: came}',
    ]
    assert "draft" not in seen.masked(lambda text: text.replace("draft", "•")).render(20_000)


def test_a_button_shows_its_words_beside_another_name() -> None:
    """A button whose words differ from its name shows both, in one element or several; words that are its name are said once."""
    seen = read(
        '- button "submit" [disabled] [ref=e1]:\n  - generic [ref=e2]: Update',
        '- button "Log In" [ref=e3]: Log in',
        '- button "Save all" [ref=e4]:\n  - generic [ref=e5]: Save\n  - generic [ref=e6]: all',
    )
    assert shown(seen) == [
        'button "submit" (disabled) [ref=e1] "Update"',
        'button "Log In" [ref=e3] "Log in"',
        'button "Save all" [ref=e4]',
    ]
    assert seen.find(role="button", name="submit") == 'button "submit" (disabled) [ref=e1] "Update"'


def test_find_shows_what_the_document_calls_an_element() -> None:
    """`find` shows the test id, id or name attribute of each element it lists, also of named ones, in rows and around texts; masked."""
    table = "- table [ref=e1]:\n  - row [ref=e2]:\n    - cell [ref=e3]:\n      - generic [ref=e4]: Success"
    seen = Observation.read(
        f'{table}\n- button "Save" [ref=e5]\n- textbox [ref=e6]\n- generic [ref=e7]:\n  - text: Draft\n  - link "List" [ref=e8]',
        seen=[
            Mark(("e4",), "test_id", "state-badge", "Success"),
            Mark(("e5",), "css", "#save", ""),
            Mark(("e6",), "test_id", "amount", ""),
            Mark(("e7",), "test_id", "kind", "Draft List"),
        ],
    )
    assert (
        seen.find(text="Success").splitlines()[-1] == 'generic "Success" [ref=e4] {test_id: state-badge} in "Success"'
    )
    assert seen.find(role="button") == 'button "Save" [ref=e5] {css: "#save"}'
    assert seen.find(role="textbox") == "textbox [ref=e6] {test_id: amount}"
    assert seen.find(text="Draft", role="text") == 'text "Draft" in generic [ref=e7] {test_id: kind}'
    assert "state" not in seen.masked(lambda text: text.replace("state", "•")).find(text="Success")


def test_links_of_one_name_are_distinguished_by_their_address() -> None:
    """Links with the same or no meaningful name show their address; links with a unique name or in a distinguishing row do not."""
    row = '  - row [ref=r{0}]:\n    - cell [ref=c{0}]: No {0}\n    - cell [ref=d{0}]:\n      - link "Open" [ref=o{0}] [cursor=pointer]:\n        - /url: /orders/{0}'
    seen = read(
        '- link "Edit" [ref=e1] [cursor=pointer]:', "  - /url: /street", '- link "Edit" [ref=e2] [cursor=pointer]:', "  - /url: /name",
        "- link [ref=e3] [cursor=pointer]:", "  - /url: /cart", '- link "»" [ref=e4] [cursor=pointer]:', "  - /url: ?p=2",
        '- link "Help" [ref=e5] [cursor=pointer]:', "  - /url: /help", "- table [ref=t]:", *map(row.format, range(2)),
    )  # fmt: skip
    assert [each for each in shown(seen) if each.startswith("link")] == [
        'link "Edit" [ref=e1] to "/street"', 'link "Edit" [ref=e2] to "/name"', 'link (unnamed) [ref=e3] to "/cart"', 'link "»" [ref=e4] to "?p=2"',
        'link "Help" [ref=e5]', 'link "Open" [ref=o0]', 'link "Open" [ref=o1]',
    ]  # fmt: skip


def test_an_address_that_is_shown_is_no_change_of_the_link() -> None:
    """If a second link of the same name appears, only that one is new."""
    one = ['- link "Edit" [ref=e1] [cursor=pointer]:', "  - /url: /street"]
    two = [*one, '- link "Edit" [ref=e2] [cursor=pointer]:', "  - /url: /name"]
    assert read(*two).since(read(*one)) == 'new: link "Edit" [ref=e2] to "/name"'


def listed(number: int) -> Observation:
    """A list with that many items, and a select with that many options."""
    rows = [
        f'  - listitem [ref=i{each}]:\n    - button "Take" [ref=b{each}]\n    - text: No {each}'
        for each in range(number)
    ]
    options = [f'  - option "C{each}"' for each in range(number)]
    return read("- list [ref=e1]:", *rows, '- combobox "Country" [ref=e2]:', *options)


def test_a_few_alike_items_are_not_folded() -> None:
    """Fewer than four items are never hidden together: with room for all but the last line, only what does not fit is missing."""
    for number, few in ((6, True), (7, True), (8, False)):
        seen = listed(number)
        items = seen.render(len(seen.render(20_000)) - 1).count("item ")
        assert (items > 4) == few, number
    for number, few in ((12, True), (13, False)):
        assert ("more" in listed(number).render(20_000)) != few, number


def test_values_and_texts_are_shown_whole() -> None:
    """Fields, chosen options, cells and names show values of up to 100 characters in full."""
    long = "x" * 100
    seen = read(
        f'- textbox "Note" [ref=e1]: {long}', '- combobox "Kind" [ref=e2]:', f'  - option "{long}" [selected]',
        "- table [ref=e3]:", "  - row [ref=e4]:", f"    - cell [ref=e5]: {long}", f'- button "{long}" [ref=e6]',
    )  # fmt: skip
    assert seen.render().count(long) >= 4
    assert seen.element("e1").value == long


def test_texts_of_separate_elements_are_told_apart() -> None:
    """Texts in elements of their own are separated as cells are; those of one sentence, and punctuation, are not."""
    seen = read(
        "- generic [ref=e1]:", "  - generic [ref=e2]:", "    - generic [ref=e3]: Type", "    - generic [ref=e4]: Process",
        "  - generic [ref=e5]:", "    - generic [ref=e6]: Limit", '    - generic [ref=e7]: "3"', '- button "End" [ref=e8]',
        "- paragraph [ref=e9]:", "  - text: You have", '  - strong [ref=e10]: "3"', "  - text: letters", '- button "End" [ref=e11]',
        "- generic [ref=e12]: Home", "- generic [ref=e13]: /", "- generic [ref=e14]: Shop",
    )  # fmt: skip
    assert [each for each in shown(seen) if each.startswith('"')] == [
        '"Type | Process | Limit | 3"', '"You have 3 letters"', '"Home / Shop"',
    ]  # fmt: skip


def test_a_card_that_labels_its_box_is_told_once() -> None:
    """The text of a card that is the name of its only box stands in the box's line alone; a card that says more has a line."""
    card = '- generic [ref=c{0}]:\n  - paragraph [ref=p{0}]: Kind {0}\n  - paragraph [ref=q{0}]: {1}\n  - radio "Kind {0} On this machine" [ref=r{0}] [cursor=pointer]'
    same = [card.format(number, "On this machine") for number in range(3)]
    assert shown(read(*same)) == [f'radio "Kind {number} On this machine" [ref=r{number}]' for number in range(3)]
    more = shown(read(*(card.format(number, "Elsewhere") for number in range(3))))
    assert more[:2] == [
        'card "Kind 0 Elsewhere Kind 0 On this machine" [ref=c0]',
        'radio "Kind 0 On this machine" [ref=r0]',
    ]


def test_what_no_target_finds_by_a_name_says_so() -> None:
    """Fields, boxes, buttons and links without a name are marked, but for one with a target: by its test id, its id or its name attribute."""
    roles = ("textbox", "switch", "button", "link")
    seen = read(*(f"- {role} [ref=e{number}]" for number, role in enumerate(roles)), '- button "Pay" [ref=e9]')
    assert shown(seen) == [
        *(f"{role} (unnamed) [ref=e{number}]" for number, role in enumerate(roles)),
        'button "Pay" [ref=e9]',
    ]
    marked = Observation.read(
        '- textbox [ref=e1]\n- textbox [ref=e2]\n- textbox "Email" [ref=e3]',
        seen=[
            Mark(("e1",), "test_id", "amount", ""),
            Mark(("e2",), "css", "#card", ""),
            Mark(("e3",), "css", "#email", ""),
        ],
    )
    assert shown(marked) == [
        "textbox [ref=e1] {test_id: amount}",
        'textbox [ref=e2] {css: "#card"}',
        'textbox "Email" [ref=e3]',
    ]
