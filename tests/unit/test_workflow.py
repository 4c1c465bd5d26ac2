"""Workflow files: valid ones, mistakes with their position, and the properties of a loaded file."""

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes import registry
from nodes.browser_action import Goto
from nodes.errors import UsageError
from nodes.template import Template
from runtime.language import reader, schema, yaml_text
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid
from tests import breadth

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "workflows").glob("*.yaml"))
FILE = """\
version: 1
name: Shop
inputs:
  base_url: {type: string, default: "http://127.0.0.1:8765"}
  count: {type: integer, default: 3}
  tags: {type: list, default: []}
  who: {type: string}
secrets: [SHOP_PASSWORD]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/orders"}
  - {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
  - id: orders
    type: browser_query
    query: extract
    target: {css: "#orders tbody tr"}
    fields: {number: "td.no", total: {css: "td.total", type: number}}
  - id: each
    type: iterate
    over: "{{ orders }}"
    as: order
    nodes:
      - id: pay
        type: browser_action
        action: click
        target: {role: button, name: Pay, within: {role: row, has_text: "{{ order.number }}"}}
        confirm:
          nodes: [{id: status, type: browser_query, query: text, target: {test_id: status}}]
          done: "{{ status == 'paid' }}"
output: {paid: "{{ each | length }}"}
"""


def problems(text: str) -> list[Diagnostic]:
    """The mistakes in a text."""
    try:
        reader.parse(text, "flow.yaml")
    except WorkflowInvalid as error:
        return list(error.diagnostics)
    return []


def codes_and_lines(text: str) -> list[tuple[str, int]]:
    """The code and line of each mistake."""
    return [(each.code, each.mark.line if each.mark else 0) for each in problems(text)]


def one(node: str) -> Diagnostic:
    """The one mistake in a node."""
    (found,) = problems(f"version: 1\nnodes:\n  - {node}\n")
    return found


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_the_examples_are_valid(file: Path) -> None:
    """Every example workflow is valid."""
    assert reader.load(file).workflow.nodes


class TestTenMistakes:
    TEXT = """\
version: 1
nmae: Shop
inputs:
  base_url: {type: sting}
nodes:
  - {id: open, type: browser_action, action: goto, ulr: "http://shop.test"}
  - {id: user, type: browser_action, action: fil, target: {label: User}, value: 5}
  - {id: orders, type: browser_query, query: extract, target: {role: tabel}, fields: {no: td.no}}
  - {id: each, type: iterate, over: "{{ oders }}", as: order, nodes: [{id: pay, type: transform, expr: "{{ order | uper }}"}]}
  - {id: each, type: group}
output: "{{ pay }}"
"""

    def test_all_are_reported_with_line_and_column(self) -> None:
        """Mistakes of every kind, several in one line, are reported together, in file order, each once."""
        found = [(each.code, each.mark.line, each.mark.column) for each in problems(self.TEXT) if each.mark]
        assert found == [
            ("unknown-field", 2, 1),
            ("unknown-choice", 4, 20),
            ("unknown-field", 6, 52),
            ("unknown-choice", 7, 46),
            ("wrong-type", 7, 81),
            ("unknown-choice", 8, 70),
            ("unknown-reference", 9, 41),
            ("unknown-filter", 9, 116),
            ("missing-field", 10, 5),
            ("duplicate-id", 10, 10),
            ("unknown-reference", 11, 13),
        ]

    def test_each_has_a_fix(self) -> None:
        """Each mistake with a near miss names it."""
        repairs = [" ".join(each.help) for each in problems(self.TEXT)]
        for wanted, fix in zip(
            ["`name`", "`string`", "`url`", "`fill`", "quotes", "`table`", "`orders`", "`upper`", "", "line 9", ""],
            repairs,
            strict=True,
        ):
            assert wanted in fix


@pytest.mark.parametrize(
    ("node", "code", "message", "help"),
    [
        ("{id: a, type: brwser_action, action: goto, url: x}", "unknown-choice", "there is no type `brwser_action`", "`browser_action`"),
        ("{id: a, type: nothing_like_it}", "unknown-choice", "is not a node type", "browser_action, browser_query"),
        ("{id: a, type: browser_action}", "missing-field", "needs `action`", "goto, back"),
        ("{id: a, type: group, nodes: []}", "invalid", "a block needs at least one node", ""),
        ("{id: a-b, type: browser_query, query: url}", "bad-name", "`a-b` is no name", "letters"),
        ("{id: if, type: browser_query, query: url}", "reserved-name", "`if` is a word of the language", ""),
        ("{id: inputs, type: browser_query, query: url}", "reserved-name", "`inputs` is a word", ""),
        ("{id: a, type: browser_action, action: click, target: {css: x}, url: y}", "unknown-field", "`url`", "`browser_action goto`"),
        ("{id: a, type: browser_query, query: text, target: {css: x}, as: int}", "unknown-choice", "cannot be `int`", "`integer`"),
        ("{id: a, type: browser_query, query: text, target: {css: 5}}", "wrong-type", "`css` must be text, and is a number", '"5"'),
        ("{id: a, type: browser_query, query: text, target: {css: x}, timeout: '5'}", "wrong-type", "must be a number", "without quotes"),
        ("{id: a, type: browser_query, query: url, when: yes}", "wrong-type", "must be true or false, and is text", "without quotes"),
        ("{id: a, type: browser_query, query: url, timeout: 0}", "out-of-bounds", "`timeout` must be greater than 0", ""),
        ("{id: a, type: browser_query, query: text, target: {css: x, role: row}}", "invalid", "one way of finding", ""),
        ("{id: a, type: browser_query, query: text, target: x}", "wrong-type", "`target` must be a map, and is text", ""),
        ("{id: a, type: browser_query, query: url, verify: {url: x}}", "wrong-type", "`verify` must be a list, and is a map", "`-`"),
        ("{id: a, type: browser_query, query: url, verify: [{}]}", "invalid", "a rule is exactly one of", ""),
        ("{id: a, type: browser_query, query: url, description: }", None, "", ""),
        ("{id: a, type: transform, expr: '{{ x'}", "expression-syntax", "never closed", ""),
        ("{id: a, type: browser_query, query: url, retry: {on: ['{{ x }}']}}", "no-reference-here", "takes no references", ""),
        ("{id: a, type: browser_query, query: url, after_crash: confirm}", "missing-field", "needs a `confirm`", ""),
        ("{id: a, type: transform, expr: '{{ vars.x }}'}", "unknown-variable", "nothing sets the variable `x`", "context"),
        ("{id: a, type: iterate, over: 5, as: x, nodes: [{id: b, type: transform, expr: 1}]}", "wrong-type", "must be a list", ""),
        ("{id: a, type: iterate, over: [], as_: x, nodes: [{id: b, type: transform, expr: '{{ x }}'}]}", "unknown-field", "`as_`", "`as`"),
        ("{id: a, type: browser_query, query: url, <<: {}}", "unknown-field", "`<<`", "merge keys"),
        ("just text", "wrong-type", "must be a node", ""),
        ("[]", "wrong-type", "must be a node", ""),
        ("{id: a, type: browser_query, query: url, x-note: [1], x-: 2}", None, "", ""),
    ],
)  # fmt: skip
def test_each_mistake_has_its_words(node: str, code: str | None, message: str, help: str) -> None:
    """One mistake gives one report that names the problem and the fix; a valid node gives none."""
    found = problems(f"version: 1\nnodes:\n  - {node}\n")
    if not message:
        assert found == []
        return
    if code is not None:
        assert [each.code for each in found] == [code]
    assert message in found[0].message
    assert help in " ".join(found[0].help)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[]", "not-a-workflow"),
        ("nodes: [{id: a, type: browser_query, query: url}]", "missing-field"),
        ("version: 2\nnodes: [{id: a, type: browser_query, query: url}]", "unknown-version"),
        ("version: 1\nnodes: {}", "wrong-type"),
        ("version: 1\nnodes: []", "invalid"),
        ("version: 1\nsecrets: {A: b}\nnodes: [{id: a, type: browser_query, query: url}]", "wrong-type"),
        ("version: 1\nallowed_origins: [shop]\nnodes: [{id: a, type: browser_query, query: url}]", "bad-origin"),
        ("version: 1\nallowed_origins: ['http://a.test/x']\nnodes: [{id: a, type: browser_query, query: url}]", "bad-origin"),
        ("version: 1\nallowed_origins: ['{{ a }}']\nnodes: [{id: a, type: browser_query, query: url}]", "unknown-reference"),
        ("version: 1\nbrowser: onw\nnodes: [{id: a, type: browser_query, query: url}]", "unknown-choice"),
        ("version: 1\ninputs: {a: {type: integer, default: x}}\nnodes: [{id: a, type: browser_query, query: url}]", "invalid"),
    ],
)  # fmt: skip
def test_mistakes_of_the_file_itself(text: str, code: str) -> None:
    """The top-level fields are checked like those of nodes."""
    assert [each.code for each in problems(text)] == [code]


def test_a_misspelt_field_hides_nothing_and_makes_nothing_up() -> None:
    """The content of a misspelt field is declared and checked all the same, without follow-up mistakes and without a check of its type."""
    text = FILE.replace("as: order", "ass: order").replace("inputs:", "input:").replace("name: Pay,", "nam: 5,")
    assert [each.code for each in problems(text)] == ["unknown-field"] * 3


class TestLoaded:
    def test_it_knows_the_line_of_a_node_and_its_fields(self) -> None:
        """A loaded file knows the line of each node and field, so that run errors can name it."""
        loaded = reader.parse(FILE, "flow.yaml")
        marks = [loaded.mark("pay"), loaded.mark("pay", "target", "within", "has_text"), loaded.mark("pay", "timeout")]
        assert [each.line for each in marks if each] == [22, 25, 22]
        assert loaded.mark("nobody") is None

    def test_the_index_has_every_node_with_its_parents(self) -> None:
        """Nodes in blocks and in `confirm` are found by their ids, with their parents."""
        index = reader.parse(FILE, "flow.yaml").index
        assert list(index) == ["open", "pass", "orders", "each", "pay", "status"]
        assert [each.id for each in index["status"][1]] == ["each", "pay"]
        assert isinstance(index["open"][0], Goto)

    def test_every_template_of_the_models_is_compiled(self) -> None:
        """Every reference in the file is compiled."""
        loaded = reader.parse(FILE, "flow.yaml")
        assert set(loaded.templates) == set(re.findall(r'"([^"]*\{\{[^"]*)"', FILE))

    def test_references_in_lists_are_compiled(self) -> None:
        """References in a list of options or of `over` are compiled item by item."""
        nodes = [
            {"id": "a", "type": "browser_action", "action": "select", "target": {"css": "x"}, "value": ["{{ run.id }}", "b"]},
            {"id": "b", "type": "iterate", "over": [1, {"x": ["{{ run.id }}"]}], "as": "item", "nodes": [{"id": "c", "type": "transform", "expr": 1}]},
        ]  # fmt: skip
        loaded = reader.parse(yaml.safe_dump({"version": 1, "nodes": nodes}), "flow.yaml")
        select, loop = loaded.workflow.nodes
        assert isinstance(select.value[0], Template)
        assert isinstance(loop.over[1]["x"][0], Template)
        assert "{{ run.id }}" in loaded.templates

    def test_a_file_without_a_name_is_called_by_its_own(self) -> None:
        """A workflow without a name gets the name of its file."""
        text = "version: 1\nnodes: [{id: a, type: browser_query, query: url}]"
        assert reader.parse(text, "some/pay_orders.yaml").workflow.name == "pay_orders"

    def test_layout_and_descriptions_do_not_change_a_fingerprint(self) -> None:
        """Comments, field order, quotes, defaults and descriptions leave fingerprints unchanged; anything else changes exactly those affected."""
        plain = reader.parse(FILE, "flow.yaml").fingerprints
        moved = FILE.replace("type: browser_action, action: goto", "action: 'goto', timeout: , type: browser_action")
        moved = moved.replace(
            "  - id: orders", "  # the orders\n  - description: Reads them\n    on_error: fail\n    id: orders"
        )
        assert reader.parse(moved, "flow.yaml").fingerprints == plain
        for old, new, changed in [
            ("/orders", "/order", "open"),
            ("Pay,", "Buy,", "pay"),
            ("== 'paid'", "!= 'paid'", {"pay"}),
            ('over: "{{ orders }}"', 'over: "{{ orders[:1] }}"', "each"),
            ("test_id: status", "test_id: state", {"pay", "status"}),
        ]:
            now = reader.parse(FILE.replace(old, new), "flow.yaml").fingerprints
            assert {each for each in now if now[each] != plain[each]} == (
                {changed} if isinstance(changed, str) else changed
            )

    def test_a_missing_file_gets_a_suggestion(self, tmp_path: Path) -> None:
        """A misspelt file name is refused with the right one."""
        (tmp_path / "pay_orders.yaml").write_text(FILE)
        with pytest.raises(UsageError, match="there is no file") as caught:
            reader.load(tmp_path / "pay_order.yaml")
        assert "pay_orders.yaml" in (caught.value.fix or "")

    def test_a_file_name_that_is_not_utf8_is_refused(self, tmp_path: Path) -> None:
        """A file or folder name that is not UTF-8 is refused, because no log can contain it."""
        for name in (b"p\xff.yaml", b"\xff/p.yaml"):
            file = tmp_path / os.fsdecode(name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(FILE)
            with pytest.raises(UsageError, match="not in UTF-8") as caught:
                reader.load(file)
            assert caught.value.message.encode()


class TestInputs:
    @pytest.mark.parametrize(
        ("given", "value"),
        [
            ({"who": "a"}, {"base_url": "http://127.0.0.1:8765", "count": 3, "tags": [], "who": "a"}),
            ({"who": "7", "count": "12"}, {"count": 12, "who": "7"}),
            ({"who": "", "tags": '["a", 1]'}, {"tags": ["a", 1], "who": ""}),
            ({"who": "a", "count": 5, "tags": [None]}, {"count": 5, "tags": [None]}),
        ],
    )
    def test_text_becomes_the_declared_type(self, given: dict[str, Any], value: dict[str, Any]) -> None:
        """A text input becomes its declared type, and a missing one gets its default."""
        checked = reader.parse(FILE, "flow.yaml").check_inputs(given)
        assert {**checked, **value} == checked

    @pytest.mark.parametrize(
        ("given", "code", "fix"),
        [
            ({}, "missing-input", "-i who=…"),
            ({"who": "a", "cuont": "1"}, "unknown-input", "`count`"),
            ({"who": "a", "zzz": "1"}, "unknown-input", "who (string, needed)"),
            ({"who": "a", "count": "many"}, "input-type", "-i count=12"),
            ({"who": "a", "count": "1.5"}, "input-type", ""),
            ({"who": "a", "count": True}, "input-type", ""),
            ({"who": 5}, "input-type", ""),
            ({"who": "a", "tags": "a,b"}, "input-type", ""),
            ({"who": "a", "tags": '{"a": 1}'}, "input-type", ""),
            ({"who": "a", "tags": [float("nan")]}, "input-type", ""),
        ],
    )
    def test_a_wrong_input_gets_a_fix(self, given: dict[str, Any], code: str, fix: str) -> None:
        """A missing, unknown or wrong input is a usage error with what to write instead."""
        with pytest.raises(UsageError) as caught:
            reader.parse(FILE, "flow.yaml").check_inputs(given)
        assert caught.value.code == code
        assert caught.value.exit == 2
        assert fix in (caught.value.fix or "")


class TestOrigins:
    def test_without_a_list_they_are_those_of_gotos_and_inputs(self) -> None:
        """Without a list the origins are those of literal goto URLs, references after the origin included, and of inputs that are URLs."""
        text = FILE.replace(
            "  - {id: pass",
            '  - {id: far, type: browser_action, action: goto, url: "https://Far.test:443/{{ orders2 }}"}\n  - {id: pass',
        )
        text = text.replace("nodes:\n", "nodes:\n  - {id: orders2, type: transform, expr: 1}\n", 1)
        loaded = reader.parse(text, "flow.yaml")
        assert loaded.origins({"base_url": "http://Shop.test:80/x", "who": "me", "count": 3}) == [
            "https://far.test",
            "http://shop.test",
        ]

    def test_a_list_is_taken_as_it_is(self) -> None:
        """A list of origins is used alone with input references filled in; an entry that is then no origin is a usage error."""
        loaded = reader.parse('allowed_origins: ["https://a.test", "{{ inputs.base_url }}"]\n' + FILE, "flow.yaml")
        assert loaded.origins({"base_url": "http://b.test/app"}) == ["https://a.test", "http://b.test"]
        with pytest.raises(UsageError, match="no origin"):
            loaded.origins({"base_url": "b"})


# Arbitrary content

words = st.sampled_from(
    ["id", "type", "action", "query", "nodes", "when", "target", "over", "as", "key", "branches", "otherwise", "fields", "set", "verify", "confirm", "done",
     "group", "iterate", "route", "browser_action", "browser_query", "transform", "context", "goto", "click", "fill", "extract", "text", "css", "role", "within",
     "{{ a }}", "{{ inputs.a }}", "{{ vars.x", "{{ run.errors.a | default('') }}", "{% if %}", "version", "inputs", "secrets", "output", "any_of", "x-a", "as_",
     "allowed_origins", "browser", "own", "http://a.test", "default", "timeout", "retry", "on_error", "continue", "1", "a", "b", "loop", ""]
)  # fmt: skip
near_the_language = st.recursive(
    words | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=25,
)


class TestNeverAnInternalError:
    @given(near_the_language)
    def test_on_any_structure(self, data: Any) -> None:
        """Any YAML structure is a workflow or has mistakes."""
        text = yaml.safe_dump(data, allow_unicode=True)
        for each in problems(text):
            assert each.render()

    @given(
        st.lists(st.dictionaries(words, near_the_language, max_size=6), max_size=4),
        near_the_language,
        near_the_language,
    )
    def test_on_structures_that_begin_like_workflows(self, nodes: Any, inputs: Any, output: Any) -> None:
        """A structure that begins like a workflow has mistakes with positions, or none."""
        data = {"version": 1, "inputs": inputs, "nodes": nodes, "output": output}
        for each in problems(yaml.safe_dump(data)):
            assert each.mark is not None

    @given(st.data())
    def test_on_mixtures_of_an_example(self, data: st.DataObject) -> None:
        """A valid file whose values are replaced at random has mistakes with positions, or none."""
        mixed = yaml.safe_load(FILE)
        for _ in range(data.draw(st.integers(1, 4))):
            owner, key = data.draw(st.sampled_from(list(places(mixed))))
            owner[key] = data.draw(near_the_language | st.sampled_from([copy.deepcopy(o[k]) for o, k in places(mixed)]))
        for each in problems(yaml.safe_dump(mixed)):
            assert each.mark is not None


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every place in a structure, as its container and key."""
    found: list[tuple[Any, Any]] = []
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        found += [(data, key), *places(value)]
    return found


AUTHORS_OWN = ("inputs", "fields", "output")
"""Maps whose keys the author chooses."""

FREE = ("name", "default", "label", "has_text", "css", "test_id", "number", "url")
"""Texts that may also be maps, or are quoted."""


def changes() -> list[tuple[str, int, str]]:
    """Single mistakes: the changed file, the line, and a description."""
    document = yaml_text.read("flow.yaml", FILE)
    found: list[tuple[str, int, str]] = []
    for path, mark in document.keys.items():
        if {*path[-2:-1]} & {*AUTHORS_OWN} or "default" in path:
            continue
        key = FILE[mark.start : mark.stop]
        found += [
            (FILE[: mark.start] + wrong + FILE[mark.stop :], mark.line, f"key {path} -> {wrong}")
            for wrong in (f"{key}q", f"zz{key}zz")
        ]
    for path, mark in document.values.items():
        bare = FILE[mark.start] not in '"{[' and not {*path[-1:]} & {*FREE}
        if path and bare and mark.stop - mark.start < 30 and path != ("nodes", 1, "value"):
            changed = FILE[: mark.start] + "{not: right}" + FILE[mark.stop :]
            found.append((changed, mark.line, f"value {path} -> map"))
    for match in re.finditer(r"\{\{ (\w+)", FILE):
        line = FILE.count("\n", 0, match.start()) + 1
        found.append((FILE[: match.start(1)] + "nobody" + FILE[match.end(1) :], line, f"name {match[1]} -> nobody"))
        found.append((FILE[: match.start()] + "{{ |" + FILE[match.start() + 2 :], line, f"expression at {match[1]}"))
    return found


@settings(max_examples=breadth.of(150, 300))
@given(st.sampled_from(changes()))
def test_a_change_is_reported_on_its_line(change: tuple[str, int, str]) -> None:
    """A single mistake in a valid file is reported on its line, or at the node of a field that is then missing."""
    text, line, what = change
    lines = [each[1] for each in codes_and_lines(text)]
    assert line in lines, f"{what}: {codes_and_lines(text)}"


# The schema, checked by a small validator, which saves a dependency

SCHEMA = schema.workflow_schema()


def fits(value: Any, rule: Any) -> bool:
    """True if the value fits the schema, as far as this validator goes."""
    if rule is True or rule == {}:
        return True
    if "$ref" in rule and not fits(value, SCHEMA["$defs"][rule["$ref"].rpartition("/")[2]]):
        return False
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    if "type" in rule and (
        not isinstance(value, kinds[rule["type"]]) or (isinstance(value, bool) and rule["type"] != "boolean")
    ):
        return False
    checks = [
        "const" not in rule or value == rule["const"],
        "enum" not in rule or value in rule["enum"],
        all(fits(value, each) for each in rule.get("allOf", [])),
        "anyOf" not in rule or any(fits(value, each) for each in rule["anyOf"]),
        "if" not in rule or not fits(value, rule["if"]) or fits(value, rule["then"]),
    ]
    if isinstance(value, str):
        checks.append("pattern" not in rule or re.search(rule["pattern"], value) is not None)
    if isinstance(value, list):
        checks += [len(value) >= rule.get("minItems", 0), all(fits(each, rule.get("items", True)) for each in value)]
    if isinstance(value, dict):
        checks += [each in value for each in rule.get("required", [])]
        checks.append(len(value) >= rule.get("minProperties", 0))
        for key, item in value.items():
            patterns = [each for pattern, each in rule.get("patternProperties", {}).items() if re.search(pattern, key)]
            if key in rule.get("properties", {}):
                checks.append(fits(item, rule["properties"][key]))
            checks += [fits(item, each) for each in patterns]
            if key not in rule.get("properties", {}) and not patterns:
                extra = rule.get("additionalProperties", True)
                checks.append(extra is not False and fits(item, extra))
    return all(checks)


class TestSchema:
    @pytest.mark.parametrize("text", [FILE, *(each.read_text(encoding="utf-8") for each in EXAMPLES)])
    def test_it_accepts_valid_files(self, text: str) -> None:
        """The examples fit the schema, custom fields included."""
        data = yaml_text.read("flow.yaml", text).data
        data["nodes"][0]["x-note"] = "mine"
        assert fits(data, SCHEMA)

    @given(st.sampled_from([each for each in changes() if each[2].startswith("key")]))
    def test_it_refuses_unknown_and_missing_fields(self, change: tuple[str, int, str]) -> None:
        """A misspelt field anywhere in a file does not fit the schema."""
        assert not fits(yaml_text.read("flow.yaml", change[0]).data, SCHEMA)

    def test_every_node_and_field_is_in_it(self) -> None:
        """Each model has a definition, and each of its fields a description."""
        written = json.dumps(SCHEMA)
        for kind in registry.node_types().values():
            assert f'"{kind.name}"' in written
            for model in kind.models:
                definition = SCHEMA["$defs"][model.__name__]
                for name, field in model.model_fields.items():
                    assert "description" in definition["properties"][field.alias or name] or name == "type"

    def test_every_reference_in_it_resolves(self) -> None:
        """No `$ref` is dangling."""
        for name in re.findall(r'"#/\$defs/([^"]+)"', json.dumps(SCHEMA)):
            assert name in SCHEMA["$defs"]
