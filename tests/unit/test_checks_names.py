"""Names: which references a place may read, and when they need a guard."""

import textwrap

import pytest

from runtime.language import reader
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid

HEAD = """\
version: 1
inputs: {flag: {type: boolean, default: true}, kind: {type: string, default: a}}
secrets: [TOKEN]
nodes:
"""


def problems(nodes: str, tail: str = "") -> list[Diagnostic]:
    """The mistakes in a file with these nodes."""
    try:
        reader.parse(HEAD + textwrap.indent(textwrap.dedent(nodes), "  ") + tail, "flow.yaml")
    except WorkflowInvalid as error:
        return list(error.diagnostics)
    return []


def codes(nodes: str, tail: str = "") -> list[str]:
    """The codes of the mistakes in a file with these nodes."""
    return [each.code for each in problems(nodes, tail)]


def makes(name: str, expr: str, **more: str) -> str:
    """A node that computes a value."""
    extra = "".join(f", {key}: {value!r}" for key, value in more.items())
    return f'- {{id: {name}, type: transform, expr: "{expr}"{extra}}}\n'


MAYBE = makes("maybe", "1", when="{{ inputs.flag }}")
FLAKY = "- {id: flaky, type: browser_query, query: url, on_error: continue}\n"
ROUTE = """\
- id: choice
  type: route
  branches:
    - {name: one, when: "{{ inputs.kind == 'a' }}", nodes: [{id: in_one, type: transform, expr: 1}, {id: also, type: transform, expr: "{{ in_one }}"}]}
    - {name: two, when: "{{ inputs.kind == 'b' }}", nodes: [{id: in_two, type: transform, expr: 2}]}
  otherwise: [{id: in_none, type: transform, expr: 3}]
"""
LOOP = """\
- id: each
  type: iterate
  over: [1, 2]
  as: item
  nodes:
    - {id: inside, type: transform, expr: "{{ item }}"}
    - {id: next, type: transform, expr: "{{ inside + loop.index + item_loop.length }}"}
"""
GROUP = """\
- id: block
  type: group
  when: "{{ inputs.flag }}"
  nodes:
    - {id: deep, type: transform, expr: 1}
    - {id: deeper, type: transform, expr: "{{ deep }}"}
"""


class TestScope:
    @pytest.mark.parametrize(
        ("nodes", "code", "message"),
        [
            (makes("a", "{{ b }}") + makes("b", "1"), "later-reference", "runs later, in line 6"),
            (makes("a", "{{ a }}"), "later-reference", "it is this node itself"),
            (makes("a", "1", when="{{ a == 1 }}"), "later-reference", "it is this node itself"),
            (LOOP.replace("{{ item }}", "{{ each }}"), "later-reference", "before its block has ended"),
            (LOOP + makes("a", "{{ inside }}"), "unknown-reference", "only inside the loop `each`"),
            (LOOP + makes("a", "{{ item }}"), "unknown-reference", "only inside the loop `each`"),
            (LOOP + makes("a", "{{ loop.index }}"), "unknown-reference", "only inside an `iterate`"),
            (LOOP.replace("loop.index +", "loop.idx +"), "unknown-reference", "`loop` has no `idx`"),
            (LOOP.replace("item_loop.length", "item_loop.len"), "unknown-reference", "`item_loop` has no `len`"),
            (ROUTE.replace("expr: 2", 'expr: "{{ in_one }}"'), "unknown-reference", "another branch of `choice`"),
            (makes("a", "{{ inputs.flga }}"), "unknown-input", "no input `flga`"),
            (makes("a", "{{ flag }}"), "unknown-reference", "`flag` is not defined here"),
            (makes("a", "{{ error.code }}"), "unknown-reference", "only inside a `catch`"),
            (makes("a", "{{ run.bla }}"), "unknown-reference", "`run` has no `bla`"),
            (makes("a", "{{ run.errors.b }}"), "unknown-reference", "no node `b`"),
            (makes("a", "1") + makes("b", "{{ run.errors.a }}"), "unknown-reference", "has no `on_error: continue`"),
            (makes("a", "1") + makes("b", "{{ run.taken.a }}"), "unknown-reference", "knows `route` nodes"),
            (makes("a", "{{ secrets.TOKEN }}"), "secret-not-allowed", "`expr` takes no secrets"),
            (makes("a", "1", when="{{ secrets.TOKEN == 1 }}"), "secret-not-allowed", "`when` takes no secrets"),
        ],
    )  # fmt: skip
    def test_an_invalid_reference_says_why(self, nodes: str, code: str, message: str) -> None:
        """Names that are not yet, no longer or never defined have different errors."""
        (found,) = problems(nodes)
        assert found.code == code
        assert message in found.message

    @pytest.mark.parametrize(
        ("name", "near"),
        [("{{ inputs.flga }}", "`flag`"), ("{{ flag }}", "`inputs.flag`"), ("{{ vals.x }}", "`vars`"), ("{{ inptus.flag }}", "`inputs`")],
    )  # fmt: skip
    def test_a_near_miss_is_named(self, name: str, near: str) -> None:
        """A misspelt name is answered with the nearest one."""
        (found,) = problems(makes("a", name))
        assert f"did you mean {near}?" in found.help

    def test_names_in_scope_can_be_read(self) -> None:
        """Earlier nodes, nodes of ended groups, items, loops and the value of a loop are in scope."""
        nodes = (
            makes("a", "{{ inputs.flag }} {{ run.id }} {{ inputs }}")
            + GROUP.replace('  when: "{{ inputs.flag }}"\n', "")
            + LOOP
        )
        assert codes(nodes + makes("z", "{{ a }} {{ deep }} {{ block }} {{ each }}"), 'output: "{{ z }}"\n') == []

    def test_inner_loops_see_outer_ones(self) -> None:
        """The item of an outer loop is in scope in the inner one."""
        nodes = """\
            - id: outer
              type: iterate
              over: [[1]]
              as: row
              nodes:
                - id: inner
                  type: iterate
                  over: "{{ row }}"
                  as: cell
                  key: "{{ cell }}"
                  nodes: [{id: both, type: transform, expr: "{{ row_loop.index }} {{ cell_loop.index }} {{ row | length }}"}]
            """
        assert codes(nodes) == []

    @pytest.mark.parametrize(
        ("nodes", "code"),
        [
            (makes("a", "1") + makes("a", "2"), "duplicate-id"),
            (LOOP + makes("inside", "2"), "duplicate-id"),
            (LOOP.replace("as: item", "as: inside"), "name-collision"),
            (LOOP.replace("id: inside", "id: item_loop").replace("inside +", ""), "name-collision"),
            (makes("vars", "1"), "reserved-name"),
            (makes("loop", "1"), "reserved-name"),
            (makes("now", "1"), "reserved-name"),
            (makes("none", "1"), "reserved-name"),
            (ROUTE.replace("name: two", "name: one"), "duplicate-branch"),
            (ROUTE.replace("name: two", "name: otherwise"), "reserved-name"),
        ],
    )
    def test_one_namespace_has_each_name_once(self, nodes: str, code: str) -> None:
        """Ids, items and reserved words share one namespace."""
        assert code in codes(nodes)

    def test_a_nested_loop_needs_its_own_item_name(self) -> None:
        """The same `as` in a nested loop is refused; in consecutive loops it is valid."""
        inner = (
            LOOP.replace("id: each", "id: again")
            .replace("id: inside", "id: b")
            .replace("inside +", "b +")
            .replace("id: next", "id: c")
        )
        assert codes(LOOP + inner) == []
        assert codes(LOOP + textwrap.indent(inner, "    ")) == ["name-collision"]


class TestGuards:
    @pytest.mark.parametrize(
        ("before", "name", "why"),
        [
            (MAYBE, "maybe", "its `when` may be false"),
            (GROUP, "deep", "its `when` may be false"),
            (GROUP, "block", "its `when` may be false"),
            (FLAKY, "flaky", "`on_error: continue`"),
            (GROUP.replace('when: "{{ inputs.flag }}"', "on_error: continue"), "deep", "`on_error: continue`"),
            (ROUTE, "in_one", "the branch `one` of `choice`"),
            (ROUTE, "in_none", "the branch `otherwise` of `choice`"),
            (FLAKY, "run.errors.flaky", "only if `flaky` failed"),
            (
                ROUTE.replace("type: route", 'type: route\n  when: "{{ inputs.flag }}"'),
                "run.taken.choice",
                "its `when`",
            ),
            ("- {id: c, type: context, set: {v: 1}, when: '{{ inputs.flag }}'}\n", "vars.v", "its `when`"),
            (LOOP + "    - {id: c, type: context, set: {v: 1}}\n", "vars.v", "may have no item"),
        ],
    )
    def test_a_node_that_may_not_have_run_needs_a_guard(self, before: str, name: str, why: str) -> None:
        """The mistake names the reason, and each form of guard fixes it."""
        (found,) = problems(before + makes("reader", f"{{{{ {name} }}}}"))
        assert found.code == "unguarded-reference"
        assert why in found.message
        for guarded in [
            makes("reader", f"{{{{ {name} | default(0) }}}}"),
            makes("reader", f"{{{{ {name} if {name} is defined else 0 }}}}"),
            makes("reader", f"{{{{ {name} is defined and {name} }}}}"),
            makes("reader", f"{{{{ {name} }}}}", when=f"{{{{ {name} is defined }}}}"),
            makes("reader", f"{{{{ {name} }}}}", when=f"{{{{ inputs.flag and {name} is defined }}}}"),
            f'- id: g\n  type: group\n  when: "{{{{ {name} is defined }}}}"\n  nodes:\n'
            + textwrap.indent(makes("reader", f"{{{{ {name} }}}}"), "    "),
        ]:
            assert codes(before + guarded) == []

    @pytest.mark.parametrize(
        ("before", "name", "when"),
        [
            (MAYBE, "maybe", "{{ inputs.flag }}"),
            (MAYBE, "maybe", "{{inputs.flag and inputs.kind=='a'}}"),
            (makes("maybe", "1", when="{{ inputs.flag and inputs.kind == 'a' }}"), "maybe", "{{ inputs.kind=='a' and inputs.flag }}"),
            (GROUP, "deep", "{{ inputs.flag }}"),
            (GROUP, "deep", "{{ deeper is defined }}"),
            (GROUP, "deep", "{{ block is defined }}"),
            (ROUTE, "in_two", "{{ run.taken.choice == 'two' }}"),
            (ROUTE, "in_two", "{{ 'two' == run.taken.choice }}"),
            (ROUTE, "in_none", "{{ run.taken.choice == 'otherwise' }}"),
            (ROUTE, "in_one", "{{ inputs.kind == 'a' }}"),
            (ROUTE, "in_one", "{{ also is defined }}"),
            (FLAKY, "flaky", "{{ run.errors.flaky is not defined }}"),
            (FLAKY, "flaky", "{{ run.errors.flaky is undefined }}"),
        ],
    )  # fmt: skip
    def test_a_when_that_implies_it_is_a_guard(self, before: str, name: str, when: str) -> None:
        """A `when` with the same condition, the taken branch, or a neighbour that ran is a guard."""
        assert codes(before + makes("reader", f"{{{{ {name} }}}}", when=when)) == []

    @pytest.mark.parametrize(
        ("before", "name", "when"),
        [
            (MAYBE, "maybe", "{{ not inputs.flag }}"),
            (MAYBE, "maybe", "{{ inputs.flag or inputs.kind == 'a' }}"),
            (makes("maybe", "1", when="{{ inputs.flag and inputs.kind == 'a' }}"), "maybe", "{{ inputs.flag }}"),
            (makes("maybe", "1", when="{{ now() > 'x' }}"), "maybe", "{{ now() > 'x' }}"),
            (ROUTE, "in_two", "{{ inputs.kind == 'b' }}"),
            (ROUTE, "in_two", "{{ run.taken.choice == 'one' }}"),
            (ROUTE, "in_two", "{{ run.taken.choice != 'two' }}"),
            (ROUTE, "in_two", "{{ in_one is defined }}"),
            (FLAKY, "flaky", "{{ run.errors.flaky is defined }}"),
            (GROUP, "deep", "{{ deep is not defined }}"),
        ],
    )  # fmt: skip
    def test_a_when_that_does_not_imply_it_is_no_guard(self, before: str, name: str, when: str) -> None:
        """A condition that may be true without the node having run is no guard."""
        assert codes(before + makes("reader", f"{{{{ {name} }}}}", when=when)) == ["unguarded-reference"]

    def test_inside_the_same_block_no_guard_is_needed(self) -> None:
        """Nodes in the same branch or group need no guard."""
        assert codes(GROUP + ROUTE) == []

    def test_a_branch_implies_that_earlier_ones_were_not_taken(self) -> None:
        """If an earlier branch handles the missing value, a later branch may read it."""
        route = """\
            - id: choice
              type: route
              branches: [{name: none, when: "{{ maybe is not defined }}", nodes: [{id: a, type: transform, expr: 1}]}]
              otherwise: [{id: b, type: transform, expr: "{{ maybe }}"}]
            """
        assert codes(MAYBE + textwrap.dedent(route)) == []
        assert codes(MAYBE + textwrap.dedent(route).replace("is not defined", "is defined")) == ["unguarded-reference"]

    def test_one_missing_guard_in_a_when_is_one_report(self) -> None:
        """If a condition reads an unguarded value, the fields it guards are not reported again."""
        assert codes(MAYBE + makes("reader", "{{ maybe }} {{ maybe }}", when="{{ maybe > 1 }}")) == [
            "unguarded-reference"
        ]


class TestVariables:
    def test_a_variable_is_read_after_it_was_set(self) -> None:
        """A variable set earlier, also before a loop, is defined."""
        setter = "- {id: s, type: context, set: {v: 1}}\n"
        assert codes(setter + makes("a", "{{ vars.v }}") + LOOP.replace("{{ item }}", "{{ vars.v }}")) == []

    def test_a_variable_that_is_set_only_later_is_a_mistake(self) -> None:
        """A guard does not help, since the variable can never have a value there."""
        setter = "- {id: s, type: context, set: {v: 1}}\n"
        assert codes(makes("a", "{{ vars.v | default(0) }}") + setter) == ["later-reference"]

    def test_a_variable_that_is_set_later_in_a_loop_needs_a_guard(self) -> None:
        """The variable has a value only from the second iteration on."""
        setter = "    - {id: s, type: context, set: {v: 1}}\n"
        assert codes(LOOP.replace("{{ item }}", "{{ vars.v }}") + setter) == ["unguarded-reference"]
        assert codes(LOOP.replace("{{ item }}", "{{ vars.v | default(0) }}") + setter) == []

    def test_one_certain_setter_is_enough(self) -> None:
        """One setter that always runs is enough."""
        setters = (
            "- {id: s, type: context, set: {v: 1}}\n- {id: t, type: context, set: {v: 2}, when: '{{ inputs.flag }}'}\n"
        )
        assert codes(setters + makes("a", "{{ vars.v }}")) == []


class TestConfirm:
    CLICK = """\
        - id: pay
          type: browser_action
          action: click
          target: {css: button}
          confirm:
            nodes:
              - {id: look, type: browser_action, action: goto, url: "http://shop.test/{{ before }}"}
              - {id: status, type: browser_query, query: text, target: {css: b}}
              - {id: plain, type: transform, expr: "{{ status }}"}
            done: "{{ plain == 'paid' }}"
        """

    def test_confirm_sees_earlier_values_and_its_own_nodes(self) -> None:
        """`confirm` reads earlier values and its own earlier nodes."""
        assert codes(makes("before", "1") + textwrap.dedent(self.CLICK)) == []

    def test_nodes_of_confirm_are_visible_only_inside(self) -> None:
        """They run only after a crash, so no other node may read them."""
        (found,) = problems(makes("before", "1") + textwrap.dedent(self.CLICK) + makes("after", "{{ status }}"))
        assert "only inside the `confirm` of `pay`" in found.message

    def test_confirm_does_not_see_its_node(self) -> None:
        """After a crash the node has no value."""
        nodes = makes("before", "1") + textwrap.dedent(self.CLICK).replace("plain ==", "pay ==")
        assert codes(nodes) == ["later-reference"]

    @pytest.mark.parametrize(
        "node",
        [
            "{id: x, type: browser_action, action: click, target: {css: a}}",
            "{id: x, type: browser_action, action: fill, target: {css: a}, value: b}",
            "{id: x, type: context, set: {a: 1}}",
            "{id: x, type: group, nodes: [{id: y, type: context, set: {a: 1}}]}",
        ],
    )
    def test_confirm_only_reads(self, node: str) -> None:
        """Nodes that change the site or the run are refused in `confirm`."""
        nodes = makes("before", "1") + textwrap.dedent(self.CLICK).replace(
            "{id: plain,", f"{node}\n      - {{id: plain,"
        )
        assert codes(nodes) == ["not-in-confirm"]


def test_browser_options_see_inputs_and_secrets_only() -> None:
    """Browser options are evaluated before the run."""
    tail = "browser: {headers: {A: '{{ secrets.TOKEN }}', B: '{{ inputs.kind }}', C: '{{ a }}'}}\n"
    (found,) = problems(makes("a", "1"), tail)
    assert found.message == "`a` is not known before the run"
