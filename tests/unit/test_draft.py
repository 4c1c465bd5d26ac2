"""The draft of a session: nodes are read by position, id and type, and added as YAML that the parser checks, all or nothing."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from director.draft import draft as drafts
from director.draft import layout
from nodes.errors import ModelError
from runtime.language import yaml_text
from runtime.language.diagnostics import WorkflowInvalid
from tests.sessions import SHOP

ONE = "- {id: one, type: transform, expr: 1}\n"
HEAD = "version: 1\nname: Sums\n"


def begun() -> drafts.Draft:
    """A draft with the node ``one``."""
    return drafts.Draft.begun(HEAD, ONE)


def ids(draft: drafts.Draft) -> list[str]:
    """The ids in the order of the text."""
    return [each.id for each in draft.layout.nodes]


def test_the_outline_is_a_tree_in_the_order_of_the_text() -> None:
    """Each node has position, id, type and kind, indented below its container; blocks other than ``nodes`` are named."""
    assert drafts.Draft.of(SHOP).outline().splitlines() == [
        "  1 sign_in  group",
        "  2   open_login  browser_action goto",
        "  3   pass  browser_action fill",
        "  4 orders  browser_query extract",
        "  5 each_order  iterate",
        "  6   pay  browser_action click",
        "  7     confirm/status  browser_query text",
    ]


@pytest.mark.parametrize(
    ("which", "kind", "wanted"),
    [
        ("all", None, "sign_in open_login pass orders each_order pay status"),
        ("2-4", None, "open_login pass orders"),
        ("6", None, "pay"),
        ("1,6-40", None, "sign_in pay status"),
        ("pay", None, "pay"),
        ("pay, orders", None, "orders pay"),
        ("all", "browser_query", "orders status"),
        ("1-3", "iterate", ""),
        ("recent", None, "pass orders"),
    ],
)
def test_nodes_are_chosen_by_position_id_and_type(which: str, kind: str | None, wanted: str) -> None:
    """Selected nodes come in the order of the text, whatever the order of the selection."""
    found = drafts.Draft.of(SHOP).layout.selected(which, kind, ["orders", "pass"])
    assert [each.id for each in found] == wanted.split()


def test_without_recent_edits_the_last_nodes_are_recent() -> None:
    """In a file without edits, `recent` selects the last ten nodes."""
    text = "\n".join(f"  - {{id: n{number}, type: transform, expr: {number}}}" for number in range(12))
    found = drafts.Draft.of(f"version: 1\nname: Many\nnodes:\n{text}\n").layout.selected("recent")
    assert [each.id for each in found] == [f"n{number}" for number in range(2, 12)]


@pytest.mark.parametrize("which", ["all", "1-3", "recent"])
def test_a_type_without_nodes_is_no_error(which: str) -> None:
    """The answer says that there is none, and which types there are."""
    said = drafts.Draft.of(SHOP).layout.read(which, "sql")
    assert said.startswith("(no node of type `sql` is among them; the workflow has 7 (")
    assert "browser_query 2" in said


@pytest.mark.parametrize(
    ("which", "fix"),
    [
        ("payy", "did you mean `pay`?"),
        ("40", "the positions are 1 to 7"),
        ("x y", "say positions"),
    ],
)
def test_an_invalid_selection_is_refused_with_a_near_miss(which: str, fix: str) -> None:
    """The fix names the nearest valid selection, or what exists."""
    with pytest.raises(ModelError) as caught:
        drafts.Draft.of(SHOP).layout.selected(which)
    assert caught.value.code == "node-unknown"
    assert fix in (caught.value.fix or "")


def test_nodes_are_shown_once_in_their_original_text() -> None:
    """A node inside another selected node is not repeated, and nested text begins at the left margin."""
    found = drafts.Draft.of(SHOP).layout
    assert found.render(found.selected("2-3")).splitlines() == [
        "# 2  line 11",
        '- {id: open_login, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}',
        "# 3  line 12",
        '- {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}',
    ]
    whole = found.render(found.selected("5-7"))
    assert whole.count("id: pay") == 1
    assert whole.splitlines()[1:4] == ["- id: each_order", "  type: iterate", '  over: "{{ orders }}"']


def test_nodes_are_added_at_the_end_or_after_a_node() -> None:
    """Nodes go to any depth, into block and flow lists; existing text stays unchanged, comments included."""
    draft = begun().with_nodes(
        "id: two\ntype: group\nnodes:\n  - id: three # third\n    type: transform\n    expr: 3 # stays"
    )
    draft = draft.with_nodes("- {id: four, type: transform, expr: 4}", after="three")
    draft = draft.with_nodes(
        "id: each\ntype: iterate\nover: '{{ [1] }}'\nas: item\nnodes: [{id: a, type: transform, expr: 1}, {id: b, type: transform, expr: 2}]",
        after="one",
    )
    draft = draft.with_nodes("nodes: [{id: c, type: transform, expr: 3}]", after="a")
    assert ids(draft) == ["one", "each", "a", "c", "b", "two", "three", "four"]
    assert "expr: 3 # stays" in draft.text
    assert draft.text.startswith(f"{HEAD}\nnodes:\n  {ONE}")
    assert [each.depth for each in draft.layout.nodes] == [0, 0, 1, 1, 1, 0, 1, 1]


def test_comments_stay_where_they_are() -> None:
    """A trailing comment stays on its line, a leading one above its node. New nodes adopt the blank lines between nodes."""
    draft = drafts.Draft.of(
        f"{HEAD}nodes:\n- {{id: one, type: transform, expr: 1}} # first\n\n"
        "- id: two\n  type: transform\n  expr: 2 # second\n\n# about three\n- id: three\n  type: transform\n  expr: 3\n  description:\n# the end\n"
    )
    more = [(f"n{number}", f"{{id: n{number}, type: transform, expr: 0}}") for number in range(3)]
    for after, (_name, text) in zip(("one", "two", "three"), more, strict=True):
        draft = draft.with_nodes(text, after)
    assert ids(draft) == ["one", "n0", "two", "n1", "three", "n2"]
    lines = draft.text.splitlines()[3:]
    assert lines == [
        "- {id: one, type: transform, expr: 1} # first",
        "",
        f"- {more[0][1]}",
        "",
        "- id: two",
        "  type: transform",
        "  expr: 2 # second",
        "",
        f"- {more[1][1]}",
        "",
        "# about three",
        "- id: three",
        "  type: transform",
        "  expr: 3",
        "  description:",
        "",
        f"- {more[2][1]}",
        "# the end",
    ]
    assert draft.layout.text_of(draft.layout.nodes[2]) == "- id: two\n  type: transform\n  expr: 2 # second"


def test_a_draft_grows_to_fifteen_nodes() -> None:
    """Nodes are added one by one, and the text after the nodes stays after them."""
    draft = drafts.Draft.of(f"{HEAD}nodes:\n{ONE}output: '{{{{ one }}}}'  # the sum\n")
    for number in range(2, 16):
        draft = draft.with_nodes(f"- id: n{number}\n  type: transform\n  expr: {number}\n")
    assert len(ids(draft)) == 15
    assert draft.text.endswith("output: '{{ one }}'  # the sum\n")


@pytest.mark.parametrize(
    ("nodes", "code", "place"),
    [
        ("- {id: one, type: transform, expr: 2}", "duplicate-id", "draft.yaml"),
        ("- {id: two, type: transfrom, expr: 2}", "unknown-choice", "draft.yaml"),
        ("- {id: two, type: transform, expr: '{{ thre }}'}", "unknown-reference", "draft.yaml"),
        ("- {id: two", "yaml-syntax", "yaml"),
        ("just words", "not-a-list", "yaml"),
        ("[]", "not-a-list", "yaml"),
    ],
)
def test_invalid_nodes_are_not_added(nodes: str, code: str, place: str) -> None:
    """The mistakes are those of the parser, placed in the draft, or in the given text if it is no node list."""
    draft = begun()
    with pytest.raises(WorkflowInvalid) as caught:
        draft.with_nodes(nodes)
    assert [(each.code, each.file) for each in caught.value.diagnostics] == [(code, place)]
    assert caught.value.diagnostics[0].mark is not None
    assert ids(draft) == ["one"]


def test_an_unknown_node_to_add_after_is_refused_with_a_near_miss() -> None:
    """The error suggests the nearest id, and adds nothing elsewhere."""
    with pytest.raises(ModelError) as caught:
        begun().with_nodes(ONE.replace("one", "two"), after="onee")
    assert (caught.value.code, caught.value.fix) == ("node-unknown", "did you mean `one`?")


BLOCKS = st.recursive(
    st.just("leaf"), lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=8
)  # fmt: skip


def _written(tree: object, names: list[str], *, lines: bool) -> str:
    names.append(name := f"n{len(names)}")
    if isinstance(tree, str):
        return f"- {{id: {name}, type: transform, expr: 1}}" if lines else f"- id: {name}\n  type: transform\n  expr: 1"
    assert isinstance(tree, list)
    inner = "\n".join(_written(each, names, lines=not lines) for each in tree)
    return f"- id: {name}\n  type: group\n  nodes:\n{textwrap.indent(inner, '    ')}"


@given(st.lists(BLOCKS, min_size=1, max_size=3), st.data())
def test_added_nodes_are_found_as_written(trees: list[object], data: st.DataObject) -> None:
    """After any addition the old nodes keep their order, and the new ones read as the same data."""
    names: list[str] = []
    draft = begun()
    for tree in trees:
        before = ids(draft)
        first = len(names)
        text = _written(tree, names, lines=data.draw(st.booleans()))
        after = data.draw(st.none() | st.sampled_from(before))
        draft = draft.with_nodes(text, after)
        new = names[first:]
        assert [each for each in ids(draft) if each not in new] == before
        written = draft.layout.text_of(next(each for each in draft.layout.nodes if each.id == new[0]))
        assert yaml_text.read("a", written).data == yaml_text.read("b", text).data


def test_an_invalid_file_has_an_outline() -> None:
    """Nodes without a valid id or type have a position too."""
    document = yaml_text.read(
        "x", "version: 1\nnodes:\n  - {id: a, type: browser_actoin, action: goto}\n  - {type: group}\n"
    )
    assert layout.Layout(document).outline() == "  1 a  browser_action goto\n  2 ?  group"
