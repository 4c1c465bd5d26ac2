"""Edits of a draft change only what is meant, in any style of YAML; a refused edit says what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from director.draft import draft as drafts
from director.draft import lines
from nodes.errors import ModelError
from runtime.language.diagnostics import WorkflowInvalid
from tests import breadth

WIDE = settings(max_examples=breadth.of(20, 400))
"""Generated drafts are large, so examples are fewer."""

HEAD = "version: 1\nname: Sums  # of all\ninputs: # given\n  a: {type: integer, default: 1}\n\n  # the other\n  b:\n    type: integer\n    default: 2\n"

LEAVES = (
    "{{id: {id}, type: transform, expr: 1}}",
    "{{id: {id}, type: transform,\n    expr: [1,\n  2]}}",
    "id: {id}\ntype: transform\nexpr: 1",
    "id: {id}\ntype: transform # what it is\nexpr: |\n  one\n\n    two # no comment\n   \n  three",
    "id: {id}\ntype: transform\ndescription: >-\n  folded\n  text\nexpr: 'two\n\n  lines\tand a tab'",
    'id: {id}\ntype: transform\nexpr: "a\n  long \\\n  text # no comment"\n# in between\non_error: fail',
    "id: {id}\nx-kept: &{id} {{k: [1, 2]}}\nx-more: *{id}\ntype: transform\nexpr:\n- 1\n-   two: 3\n    four: 5",
    "id: {id}\ntype: transform\nexpr: 1\ndescription:",
    "id: {id}\ntype: transform\nexpr: |2\n    \n    far\n   \n  near",
)
"""Styles of a leaf, at the left margin."""

MORE = (
    "- {id: new, type: transform, expr: 1}",
    "- id: new\n  type: transform\n  expr: |\n    one\n     two",
    "# about it\n- id: new\n  type: group\n  nodes:\n  - {id: newer, type: transform, expr: 1} # behind\n    # below",
    "id: new\ntype: transform\nexpr: 1",
    "[{id: new, type: transform, expr: 1}, {id: newer, type: transform, expr: 1}]",
    "- {id: new, type: transform, expr: 1}\n\n- {id: newer, type: transform, expr: 1}\n",
)
"""Nodes to add."""


class Writer:
    """Writes a draft in random styles."""

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw
        self._number = 0

    def some(self, *choices: str) -> str:
        """One of the choices."""
        return self._draw(st.sampled_from(choices))

    def nodes(self, depth: int, *, flow: bool = False) -> list[str]:
        """Some nodes at the left margin, without their dashes."""
        return [self.node(depth, flow=flow) for _ in range(self._draw(st.integers(1, 3)))]

    def node(self, depth: int, *, flow: bool) -> str:
        """A node."""
        self._number += 1
        name = f"n{self._number}"
        kind = self.some("leaf", "leaf", "group", "brackets") if depth else "leaf"
        if kind == "leaf":
            return (LEAVES[0] if flow else self.some(*LEAVES)).format(id=name)
        if flow or kind == "brackets":
            inner = self.some(", ", ",\n      ", " , ").join(self.nodes(depth - 1, flow=True))
            if flow:
                return f"{{id: {name}, type: group, nodes: [{inner}]}}"
            return f"id: {name}\ntype: group\nnodes: [{inner}]{self.some('', ' # all')}"
        items = self.block(self.nodes(depth - 1))
        return f"id: {name}\ntype: group\nnodes:\n{textwrap.indent(items, self.some('', '  ', '    '))}"

    def block(self, nodes: Sequence[str]) -> str:
        """Nodes as a block list, with comments and empty lines."""
        written: list[str] = []
        spaced = self.some("", "\n", "mixed")
        for node in nodes:
            dash = self.some("- ", "- ", "-   ")
            item = dash + textwrap.indent(node, " " * len(dash), lambda _line: True)[len(dash) :]
            above = self.some("", "", "# above it\n", "# apart\n\n")
            last = node.rpartition("\n")[2]
            rolled_back = self.some("", "", " # behind", "  ") if "|" not in node and not last.endswith("]") else ""
            below = self.some("", "", f"\n{' ' * len(dash)}# below")
            between = spaced if spaced != "mixed" else self.some("", "\n", "\n\n")
            written.append((between if written else "") + above + item + rolled_back + below)
        return "\n".join(written)

    def text(self) -> str:
        """A whole file."""
        nodes = textwrap.indent(self.block(self.nodes(2)), self.some("", "  "))
        tail = self.some("\n", "", "\n\noutput: 1\n", "\noutput: 1", "\n# the end\n")
        text = f"{HEAD}nodes:\n{nodes}{tail}"
        return self.some("", "\ufeff") + text.replace("\n", self.some("\n", "\r\n"))


def drawn(data: st.DataObject) -> drafts.Draft:
    """A draft in a random style."""
    draft = drafts.Draft.of(Writer(data).text())
    # An edit adds the last line end.
    return draft if draft.text.endswith("\n") else drafts.Draft.of(draft.text).with_moved([ids(draft)[0]], "/")


def ids(draft: drafts.Draft) -> list[str]:
    """The ids in the order of the text."""
    return [each.id for each in draft.layout.nodes]


def places(draft: drafts.Draft) -> list[str | None]:
    """Each place where nodes can be added."""
    begins = [f"{each}/" for each, blocks in draft.layout.blocks.items() if blocks]
    return [None, "/", *ids(draft), *begins]


@WIDE
@given(st.data())
def test_adding_and_removing_nodes_restores_the_text(data: st.DataObject) -> None:
    """The text is the same byte for byte, for each place and YAML style: block or flow, with comments, CRLF or a byte order mark."""
    draft = drawn(data)
    after = data.draw(st.sampled_from(places(draft)))
    made = draft.with_nodes(data.draw(st.sampled_from(MORE)), after)
    new = [each for each in ids(made) if each not in ids(draft)]
    assert [each for each in ids(made) if each not in new] == ids(draft)
    back = made.without(new)
    if _unfolded(draft, made):
        assert back.loaded.document.data == draft.loaded.document.data
    else:
        assert back.text == draft.text


def _in_brackets(draft: drafts.Draft, path: Sequence[str | int]) -> bool:
    """Tells whether a node is in a flow list, which is rewritten as a block."""
    return lines.opening(draft.loaded.document, tuple(path[:-1])) == "["


def _unfolded(before: drafts.Draft, after: drafts.Draft) -> bool:
    """Tells whether a flow list became a block."""
    return after.text.count("[") < before.text.count("[")


@WIDE
@given(st.data())
def test_only_the_lines_of_a_node_change_with_it(data: st.DataObject) -> None:
    """An update keeps the lines above and below byte for byte, and restoring the node's text restores the data."""
    draft = drawn(data)
    node = data.draw(st.sampled_from(draft.layout.nodes))
    made = draft.with_updates(f"- id: {node.id}\n  type: transform\n  expr: 7", node.id)
    written = draft.loaded.document.source.text.splitlines(keepends=True)
    if not _in_brackets(draft, node.path):
        stop = node.line - 1 + len(draft.layout.text_of(node).splitlines())
        assert made.loaded.document.source.text.startswith("".join(written[: node.line - 1]))
        assert made.text.endswith("".join(written[stop:]))
    back = made.with_updates(draft.layout.text_of(node), None)
    assert back.loaded.document.data == draft.loaded.document.data


@WIDE
@given(st.data())
def test_moving_a_node_and_back_restores_the_data(data: st.DataObject) -> None:
    """No node changes and no comment is lost; only empty lines may differ."""
    draft = drawn(data)
    node = data.draw(st.sampled_from(ids(draft)))
    path = draft.loaded.places[node]
    inside = [each for each, place in draft.loaded.places.items() if place[: len(path)] == path]
    after = data.draw(st.sampled_from([each for each in places(draft) if (each or "").rstrip("/") not in inside]))
    siblings = [each for each, place in draft.loaded.places.items() if place[:-1] == path[:-1]]
    if len(siblings) == 1 and _block(draft, after) != path[:-1]:
        with pytest.raises(ModelError, match="would be empty"):
            draft.with_moved([node], after)
        return
    made = draft.with_moved([node], after)
    assert sorted(ids(made)) == sorted(ids(draft))
    number = siblings.index(node)
    home = siblings[number - 1] if number else _begin(draft, node)
    assume(home in places(made))
    back = made.with_moved([node], home)
    assert back.loaded.document.data == draft.loaded.document.data
    if "[" not in draft.text:
        assert words_of(made) == words_of(back) == words_of(draft)


def words_of(draft: drafts.Draft) -> list[list[str]]:
    """The words of each line, sorted, without empty lines."""
    return sorted(filter(None, map(str.split, draft.text.removeprefix("\ufeff").splitlines())))


def _block(draft: drafts.Draft, after: str | None) -> object:
    """The list that a place refers to."""
    name = after or "/"
    if name == "/":
        return ("nodes",)
    return draft.loaded.places[name][:-1] if name[-1] != "/" else next(iter(draft.layout.blocks[name[:-1]].values()))


def _begin(draft: drafts.Draft, node: str) -> str:
    block = draft.loaded.places[node][:-1]
    owner = next((each for each, blocks in draft.layout.blocks.items() if block in blocks.values()), "")
    return f"{owner}/"


@WIDE
@given(st.data())
def test_changing_the_head_and_back_restores_the_text(data: st.DataObject) -> None:
    """Adding and removing keys, or replacing and restoring values, keeps all else byte for byte."""
    draft = drawn(data)
    made = draft.with_head(
        "inputs: {c: {type: string, default: x}}\nallowed_origins: ['http://a.test']\nx-note: mine\n"
    )
    assert set(made.loaded.workflow.inputs) == {"a", "b", "c"}
    back = made.with_head("inputs: {c: null}\nallowed_origins: null\nx-note: null\n")
    assert back.text == draft.text
    renamed = draft.with_head("name: Products\ninputs:\n  a: {type: integer, default: 7}\n")
    assert renamed.loaded.workflow.inputs["a"].default == 7
    assert renamed.with_head("name: Sums  # of all\ninputs:\n  a: {type: integer, default: 1}\n").text == draft.text


def test_a_node_takes_its_comments_along() -> None:
    """Comments directly above, beside and indented below a node move with it; separate ones stay."""
    draft = drafts.Draft.of(
        "version: 1\nnodes:\n  - {id: a, type: transform, expr: 1}\n\n  # apart\n\n  # about b\n  # and more\n  - id: b # b!\n    type: transform\n"
        "    expr: 1 # one\n    # still b\n\n  - id: g\n    type: group\n    nodes:\n      - {id: c, type: transform, expr: 1}\n  # the end\n"
    )
    made = draft.with_moved(["b"], "c")
    lines = made.text.splitlines()
    assert lines[2:7] == ["  - {id: a, type: transform, expr: 1}", "", "  # apart", "", "  - id: g"]
    assert lines[10:] == [
        "      # about b",
        "      # and more",
        "      - id: b # b!",
        "        type: transform",
        "        expr: 1 # one",
        "        # still b",
        "  # the end",
    ]
    assert "b!" not in draft.without(["b"]).text
    assert "about b" not in draft.without(["b"]).text
    assert "# apart" in draft.without(["b"]).text
    assert draft.with_updates("id: b\ntype: transform\nexpr: 2").text == draft.text.replace(
        "- id: b # b!\n    type: transform\n    expr: 1 # one\n    # still b",
        "- id: b\n    type: transform\n    expr: 2",
    )


def test_trailing_blank_lines_of_a_block_scalar_are_kept() -> None:
    """An edit that would change the blank lines of a block scalar is refused; others are done."""
    draft = drafts.Draft.of(
        "version: 1\nnodes:\n- id: a\n  type: transform\n  expr: |+\n    kept\n\n\n- {id: b, type: transform, expr: 1}\n"
    )
    with pytest.raises(ModelError, match="would say something else"):
        draft.with_nodes("- {id: c, type: transform, expr: 1}", "a")
    assert draft.with_nodes("- {id: c, type: transform, expr: 1}", "b").without(["c"]).text == draft.text


def test_a_comment_after_a_flow_list_stays_a_comment() -> None:
    """If a flow list becomes a block, its comment stays with the key, outside any block scalar."""
    draft = drafts.Draft.of(
        "version: 1\nnodes:\n- id: g\n  type: group\n  nodes: [{id: a, type: transform, expr: 1}] # all\n"
        "- id: b\n  type: transform\n  expr: |\n    one\n     \n    two\n- {id: c, type: transform, expr: 1}\n"
    )
    made = draft.with_moved(["b"], "a")
    assert made.loaded.document.data["nodes"][0]["nodes"][1]["expr"] == "one\n \ntwo\n"
    assert "  nodes:  # all\n" in made.text


def test_an_edit_that_would_change_other_data_is_refused() -> None:
    """A move that would bind an alias to another anchor is refused."""
    draft = drafts.Draft.of(
        "version: 1\nnodes:\n- {id: a, x-k: &k 1, type: transform, expr: 1}\n- {id: b, x-k: &k 2, type: transform, expr: 1}\n"
        "- {id: c, type: transform, expr: *k}\n"
    )
    with pytest.raises(ModelError, match="would say something else"):
        draft.with_moved(["a"], "b")


SMALL = """\
version: 1
nodes:
  - {id: a, type: transform, expr: 1}
  - id: g
    type: group
    nodes:
      - {id: b, type: transform, expr: "{{ a }}"}
  - id: h
    type: handle
    try: [{id: t, type: transform, expr: 1}]
    catch:
      - {id: c, type: transform, expr: 1}
"""


def test_mistakes_are_reported_with_node_and_field() -> None:
    """The error lists mistakes in the given text and those it causes elsewhere, each with its resulting line."""
    draft = drafts.Draft.of(SMALL)
    with pytest.raises(WorkflowInvalid) as caught:
        draft.with_updates("# the first\n- id: z\n  type: transform\n  expr: '{{ bb }}'\n  exprr: 2\n", "a")
    found = [(each.code, each.message.split(":")[0], each.source.strip()) for each in caught.value.diagnostics]
    assert found == [
        ("unknown-reference", "`z.expr`", "expr: '{{ bb }}'"),
        ("unknown-field", "`z.exprr`", "exprr: 2"),
        ("unknown-reference", "`b.expr`", '- {id: b, type: transform, expr: "{{ a }}"}'),
    ]


def test_several_nodes_are_updated_together() -> None:
    """Each node replaces the one with its id, and all are checked together; one mistake changes nothing."""
    draft = drafts.Draft.of(SMALL)
    both = "- {id: a, type: context, set: {n: 1}}\n- {id: b, type: transform, expr: '{{ vars.n }}'}\n"
    made = draft.with_updates(both)
    assert [each.kind for each in made.layout.nodes[:3]] == ["context", "group", "transform"]
    with pytest.raises(WorkflowInvalid):
        draft.with_updates(both.replace("vars.n", "vars.m"))


def test_nodes_can_be_added_at_the_beginning_of_a_block() -> None:
    """A place names container and block as in the outline, or the container alone for its first block."""
    made = drafts.Draft.of(SMALL)
    for number, after in enumerate(["h/catch", "h/", "g/", "/"]):
        made = made.with_nodes(f"- {{id: n{number}, type: transform, expr: 1}}", after)
    assert ids(made) == ["n3", "a", "g", "n2", "b", "h", "n1", "t", "n0", "c"]


@pytest.mark.parametrize(
    ("number", "edit", "code", "fix"),
    [
        (1, lambda draft: draft.with_nodes("- {id: x, type: transform, expr: 1}", "h/finally"), "block-unknown", "it has `h/try`, `h/catch`"),
        (2, lambda draft: draft.with_nodes("- {id: x, type: transform, expr: 1}", "aa"), "node-unknown", "did you mean `a`?"),
        (3, lambda draft: draft.with_moved(["g"], "b"), "move-unclear", "a node that stays"),
        (4, lambda draft: draft.with_moved(["g"], "g/"), "move-unclear", "a node that stays"),
        (5, lambda draft: draft.with_moved(["b"], "a"), "block-empty", "delete `g` as a whole"),
        (6, lambda draft: draft.without(["a", "b"]), "block-empty", "delete `g` as a whole"),
        (7, lambda draft: draft.without(["a", "g", "b", "h"]), "block-empty", "add the new nodes first"),
        (8, lambda draft: draft.with_updates("- {id: a, type: transform, expr: 1}\n- {id: y, type: transform, expr: 1}", "a"), "update-unclear", "`create_nodes`"),
        (9, lambda draft: draft.with_updates("- {id: b, type: transform, expr: 1}\n- {id: g, type: transform, expr: 1}"), "update-unclear", "only one of them"),
        (10, lambda draft: draft.with_head("nodes: []"), "update-unclear", "`create_nodes`"),
    ],
)  # fmt: skip
def test_a_refused_edit_says_what_to_do(number: int, edit: object, code: str, fix: str) -> None:
    """Nothing is changed, and the fix names the call or place that works."""
    assert number
    assert callable(edit)
    with pytest.raises(ModelError) as caught:
        edit(drafts.Draft.of(SMALL))
    assert caught.value.code == code
    assert fix in (caught.value.fix or "")
