"""Workflow files with one mistake each, and the expected report. ``«`` marks the reported place, and is not in the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

HEAD = """\
version: 1
inputs:
  base_url: {type: string, default: "http://127.0.0.1:8765"}
  count: {type: integer, default: 3}
secrets: [SHOP_PASSWORD]
nodes:
"""
"""The head to which the fragments below are appended."""


@dataclasses.dataclass(frozen=True)
class BadFile:
    """A file with a mistake."""

    name: str
    text: str | bytes
    """The text with ``«`` before the mistake; bytes where the place is the file itself."""
    code: str
    fix: str
    """Text that the fix, or the message at the place, must contain."""
    others: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Further files of the project by name; the mistake may be in one of them."""

    @property
    def files(self) -> dict[str, bytes]:
        """The content of each file of the project; ``bad.yaml`` is the one that is run."""
        main = self.text if isinstance(self.text, bytes) else self.text.replace("«", "").encode()
        return {"bad.yaml": main, **{name: text.replace("«", "").encode() for name, text in self.others.items()}}

    @property
    def place(self) -> str:
        """``file:line:column`` of the mark; without a mark the file alone."""
        for name, text in {"bad.yaml": self.text, **self.others}.items():
            if isinstance(text, str) and "«" in text:
                before = text[: text.index("«")]
                return f"{name}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        return "bad.yaml"


def whole(name: str, text: str | bytes, code: str, fix: str) -> BadFile:
    """A whole file."""
    return BadFile(name, text, code, fix)


def tested(name: str, tests: str, code: str, fix: str) -> BadFile:
    """A file with these tests."""
    return BadFile(name, f"{HEAD}  {GOTO}tests:\n{tests}\n", code, fix)


def nodes(name: str, fragment: str, code: str, fix: str) -> BadFile:
    """Nodes of a file that is otherwise valid."""
    lines = "".join(f"  {line}\n" for line in fragment.strip("\n").split("\n"))
    return BadFile(name, HEAD + lines, code, fix)


GOTO = '- {id: home, type: browser_action, action: goto, url: "{{ inputs.base_url }}"}\n'

TEXT = [
    whole("an empty file", "«", "empty-file", "version: 1"),
    whole("only comments", "«# nothing\n", "empty-file", "version: 1"),
    whole("binary", b"\x89PNG\r\n\x1a\n\x00\x00", "not-text", "version: 1"),
    whole("a list", "«- {id: a}\n", "not-a-workflow", "version: 1"),
    whole("a scalar", "«just text\n", "not-a-workflow", "version: 1"),
    whole("two documents", "version: 1\nnodes: []\n«---\nversion: 1\n", "several-documents", "---"),
    whole("a bracket that is not closed", "version: 1\nnodes: [{id: a\n«", "yaml-syntax", "expected"),
    whole("a tab for indentation", "version: 1\nnodes:\n«\t- {id: a}\n", "yaml-syntax", "tab"),
    whole("a colon in a plain text", "version: 1\nname: Pay«: all\nnodes: []\n", "yaml-syntax", "quotes"),
    whole("an unknown anchor", "version: 1\nname: «*nobody\n", "unknown-anchor", "quotes"),
    whole("an alias within itself", "version: 1\nx-a: &a [1, «*a]\n", "recursive-alias", "write out"),
    whole(
        "a tag",
        "version: 1\nx-a: «!!python/object:os.system x\nnodes: [{id: a, type: transform, expr: 1}]\n",
        "tag",
        "take it away",
    ),
    whole("too large", b"version: 1\nname: " + b"x" * 3_000_000, "file-too-large", "@FILE"),
    whole("too deep", "version: 1\nx-a: " + "[" * 63 + "«" + "[" * 137 + "]" * 200 + "\n", "too-deep", "use:"),
    whole(
        "an alias bomb",
        "version: 1\nx-a: &a [1,1,1,1,1,1,1,1,1,1]\n"
        + "".join(f"x-{b}: &{b} [" + ",".join([f"*{a}"] * 10) + "]\n" for a, b in ("ab", "bc", "cd"))
        + "x-e: [*d,*d,*d,*d,*d,*d,*d,«*d,*d,*d]\n",
        "too-many-values",
        "aliases",
    ),
    whole(
        "a duplicate key",
        "version: 1\nname: a\n«name: b\nnodes: [{id: a, type: transform, expr: 1}]\n",
        "duplicate-key",
        "line 2",
    ),
    whole(
        "a key that is a number",
        "version: 1\nx-a: {«1: a}\nnodes: [{id: a, type: transform, expr: 1}]\n",
        "key-not-text",
        "quotes",
    ),
]

FILE = [
    whole("no version", "«name: a\nnodes: [{id: a, type: transform, expr: 1}]\n", "missing-field", "version"),
    whole("a later version", "version: «2\nnodes: [{id: a, type: transform, expr: 1}]\n", "unknown-version", "1"),
    whole("no nodes", "«version: 1\n", "missing-field", "nodes"),
    whole("an empty list of nodes", "version: 1\nnodes: «[]\n", "invalid", "at least one node"),
    whole("nodes are a map", "version: 1\nnodes: «{id: a}\n", "wrong-type", "list"),
    whole(
        "an unknown field of the file",
        "version: 1\n«nods: []\n" + "nodes: [{id: a, type: transform, expr: 1}]\n",
        "unknown-field",
        "nodes",
    ),
    whole(
        "an input of no type",
        "version: 1\ninputs: {a: {type: «sting}}\nnodes: [{id: a1, type: transform, expr: 1}]\n",
        "unknown-choice",
        "string",
    ),
    whole(
        "a default that does not fit",
        "version: 1\ninputs: {a: «{type: integer, default: many}}\nnodes: [{id: a1, type: transform, expr: 1}]\n",
        "invalid",
        "integer",
    ),
    whole(
        "an agent that may go anywhere",
        "version: 1\nnodes: [{id: a1, type: «agent, goal: Look around.}]\n",
        "agent-without-origins",
        "allowed_origins",
    ),
    whole(
        "an origin that is none",
        "version: 1\nallowed_origins: [«shop.test]\nnodes: [{id: a1, type: transform, expr: 1}]\n",
        "bad-origin",
        "https://",
    ),
]

NODES = [
    nodes("an unknown node type", "- {id: a, type: «browser_acton, action: goto, url: x}", "unknown-choice", "browser_action"),
    nodes("no type", "- «{id: a, action: goto}", "missing-field", "type"),
    nodes("no id", "- «{type: transform, expr: 1}", "missing-field", "id"),
    nodes("an id with a blank", "- {id: «my step, type: transform, expr: 1}", "bad-name", "letters"),
    nodes("an id that is a word of the language", "- {id: «loop, type: transform, expr: 1}", "reserved-name", "another id"),
    nodes("a node that is a text", "- «goto", "wrong-type", "node"),
    nodes("an unknown action", "- {id: a, type: browser_action, action: «clik, target: {label: A}}", "unknown-choice", "click"),
    nodes("an unknown query", "- {id: a, type: browser_query, query: «extrat, target: {css: tr}, fields: {no: td}}", "unknown-choice", "extract"),
    nodes("an unknown field", "- {id: a, type: browser_action, action: click, «tagret: {label: A}}", "unknown-field", "target"),
    nodes("a field of another action", "- {id: a, type: browser_action, action: click, target: {label: A}, «url: x}", "unknown-field", "goto"),
    nodes("a field that is missing", "- «{id: a, type: browser_action, action: fill, target: {label: A}}", "missing-field", "value"),
    nodes("a number where a text is wanted", "- {id: a, type: browser_action, action: fill, target: {label: «5}, value: x}", "wrong-type", "quotes"),
    nodes("a text where a number is wanted", "- {id: a, type: transform, expr: 1, timeout: «5s}", "wrong-type", "number"),
    nodes("a number out of bounds", "- {id: a, type: transform, expr: 1, timeout: «-1}", "out-of-bounds", "0"),
    nodes("an unknown role", "- {id: a, type: browser_action, action: click, target: {role: «buton}}", "unknown-choice", "button"),
    nodes("a target without a way", "- {id: a, type: browser_action, action: click, target: «{nth: 1}}", "invalid", "role"),
    nodes("a target with two ways", "- {id: a, type: browser_action, action: click, target: «{css: a, label: B}}", "invalid", "css"),
    nodes("a name without a role", "- {id: a, type: browser_action, action: click, target: «{css: a, name: B}}", "invalid", "role"),
    nodes("a rule of two kinds", "- {id: a, type: browser_action, action: wait, verify: [«{url: x, title: y}]}", "invalid", "exactly one"),
    nodes("a rule without its target", "- {id: a, type: browser_action, action: wait, verify: [«{count: 3}]}", "invalid", "target"),
    nodes("an effect class that is none", "- {id: a, type: transform, expr: 1, effect: «reads}", "unknown-choice", "read"),
    nodes("`after_crash: confirm` without a confirm", "- {id: a, type: transform, expr: 1, after_crash: «confirm}", "missing-field", "confirm"),
    nodes("an action in a confirm", "- id: a\n  type: browser_action\n  action: click\n  target: {label: A}\n  confirm: {nodes: [{id: b, type: browser_action, action: «click, target: {label: B}}], done: \"{{ true }}\"}", "not-in-confirm", "goto"),
    nodes("a transform of two kinds", "- «{id: a, type: transform, expr: 1, fields: {b: 2}}", "invalid", "exactly one"),
    nodes("a `wait` for nothing", "- «{id: a, type: browser_action, action: wait}", "invalid", "verify"),
    nodes("two nodes of one id", GOTO + "- {id: «home, type: transform, expr: 1}", "duplicate-id", "line 7"),
    nodes("an item named as a node", "- {id: a, type: transform, expr: [1]}\n- {id: b, type: iterate, over: \"{{ a }}\", as: «a, nodes: [{id: c, type: transform, expr: 1}]}", "name-collision", "another name"),
    nodes("two branches of one name", "- {id: r, type: route, branches: [{name: x, when: true, nodes: [{id: a, type: transform, expr: 1}]}, {name: «x, when: true, nodes: [{id: b, type: transform, expr: 1}]}]}", "duplicate-branch", ""),
    tested("two tests of one name", "- {name: a}\n- {name: «a}", "duplicate-test", ""),
    tested("a test with an unknown input", "- {name: a, inputs: {«cuont: 1}}", "unknown-input", "`count`"),
    tested("a test with an input of another type", "- {name: a, inputs: {count: «three}}", "wrong-type", "a whole number"),
    tested("a reference in a test", '- {name: a, inputs: {count: «"{{ 1 }}"}}', "no-reference-here", "the value itself"),
    tested("a test that passes with an error", "- {name: a, expect: «{error: timeout}}", "invalid", "status: failed"),
    tested("a test that fails with an output", "- {name: a, expect: «{status: failed, output: 1}}", "invalid", "leave one"),
    tested("a test whose name cannot be selected", "- {name: «'a::b'}", "invalid", "brackets"),
    nodes("an empty block", "- {id: g, type: group, nodes: «[]}", "invalid", "node"),
]  # fmt: skip

REFERENCES = [
    nodes("an unknown name", '- {id: a, type: transform, expr: "{{ «hom }}"}\n' + GOTO, "unknown-reference", ""),
    nodes("a near miss", GOTO + '- {id: a, type: transform, expr: "{{ «hoem }}"}', "unknown-reference", "`home`"),
    nodes("a later node", '- {id: a, type: transform, expr: "{{ «home }}"}\n' + GOTO, "later-reference", "line 8"),
    nodes("an unknown input", '- {id: a, type: transform, expr: "{{ inputs.«baseurl }}"}', "unknown-input", "`base_url`"),
    nodes("an undeclared secret", '- {id: a, type: browser_action, action: fill, target: {label: A}, value: "{{ secrets.«SHOP_PASWORD }}"}', "unknown-secret", "`SHOP_PASSWORD`"),
    nodes("a secret in an address", '- {id: a, type: browser_action, action: goto, url: "http://x.test/{{ «secrets.SHOP_PASSWORD }}"}', "secret-not-allowed", "fill"),
    nodes("a secret in a transform", '- {id: a, type: transform, expr: "{{ «secrets.SHOP_PASSWORD }}"}', "secret-not-allowed", "fill"),
    nodes("a secret in a condition", '- {id: a, type: transform, expr: 1, when: "{{ «secrets.SHOP_PASSWORD == \'\' }}"}', "secret-not-allowed", "fill"),
    nodes("a value that may not be there", '- {id: a, type: transform, expr: 1, when: "{{ inputs.count > 2 }}"}\n- {id: b, type: transform, expr: "{{ «a }}"}', "unguarded-reference", "default"),
    nodes("a value of another branch", '- {id: r, type: route, branches: [{name: x, when: true, nodes: [{id: a, type: transform, expr: 1}]}, {name: y, when: true, nodes: [{id: b, type: transform, expr: "{{ «a }}"}]}]}', "unknown-reference", "branch"),
    nodes("a value of a loop's inside", '- {id: l, type: iterate, over: [1], as: n, nodes: [{id: a, type: transform, expr: 1}]}\n- {id: b, type: transform, expr: "{{ «a }}"}', "unknown-reference", "loop"),
    nodes("`loop` outside a loop", '- {id: a, type: transform, expr: "{{ «loop.index }}"}', "unknown-reference", "iterate"),
    nodes("a word that `loop` has not", '- {id: l, type: iterate, over: [1], as: n, nodes: [{id: a, type: transform, expr: "{{ loop.«idx }}"}]}', "unknown-reference", "index"),
    nodes("a variable that nothing sets", '- {id: a, type: transform, expr: "{{ vars.«total }}"}', "unknown-variable", "context"),
    nodes("a variable that is set later", '- {id: a, type: transform, expr: "{{ vars.«total }}"}\n- {id: b, type: context, set: {total: 1}}', "later-reference", "line 8"),
    nodes("the error of a node that ends the run", GOTO + '- {id: a, type: transform, expr: "{{ run.errors.«home.code }}"}', "unknown-reference", "on_error"),
    nodes("an unknown filter", '- {id: a, type: transform, expr: "{{ inputs.count | «uper }}"}', "unknown-filter", "`upper`"),
    nodes("an unknown test", '- {id: a, type: transform, expr: "{{ inputs.count is «evn }}"}', "unknown-test", "even"),
    nodes("too much for a filter", '- {id: a, type: transform, expr: "{{ inputs.base_url | «upper(1) }}"}', "wrong-arguments", "upper"),
    nodes("a call of what is no function", '- {id: a, type: transform, expr: "{{ «open(\'/etc/passwd\') }}"}', "no-such-function", ""),
    nodes("an expression that is not one", '- {id: a, type: transform, expr: "{{ inputs«. }}"}', "expression-syntax", "name"),
    nodes("an expression that is not closed", '- {id: a, type: transform, expr: "«{{ inputs.count"}', "expression-syntax", "}}"),
    nodes("a statement", '- {id: a, type: transform, expr: "{{ 1 }}«{% if x %}"}', "statement", "iterate"),
    nodes("an `if` without `else`", '- {id: a, type: transform, expr: "{{ «1 if inputs.count }}"}', "if-without-else", "else"),
    nodes("a private attribute", '- {id: a, type: transform, expr: "{{ inputs.«__class__ }}"}', "unknown-input", "declared"),
    nodes("a condition that is a text", '- {id: a, type: transform, expr: 1, when: «always}', "wrong-type", "true"),
]  # fmt: skip


def used(name: str, call: str, callee: str, code: str, fix: str) -> BadFile:
    """A group that uses ``part.yaml``; the mistake is in one of the two."""
    text = HEAD + "".join(f"  {line}\n" for line in call.strip("\n").split("\n"))
    return BadFile(name, text, code, fix, {"part.yaml": callee})


PART = """\
version: 1
inputs: {user: {type: string}, times: {type: integer, default: 1}}
secrets: [SHOP_PASSWORD]
nodes:
  - {id: a, type: transform, expr: 1}
"""
CALL = "- {id: p, type: group, use: part.yaml, with: {user: admin}, secrets: [SHOP_PASSWORD]}"

USED = [
    used("a file that is not there", CALL.replace("use: part", "use: «prat"), PART, "use-not-found", "part.yaml"),
    used("a file outside the project", CALL.replace("use: part", "use: «../part"), PART, "use-outside", "project"),
    used("an absolute path", CALL.replace("use: part", "use: «/etc/part"), PART, "use-outside", "this file's folder"),
    used(
        "files that use one another",
        CALL,
        PART.replace("{id: a, type: transform, expr: 1}", "{id: a, type: group, use: «bad.yaml}"),
        "use-cycle",
        "bad.yaml",
    ),
    used("a mistake in the used file", CALL, PART.replace("expr: 1", 'expr: "{{ «usr }}"'), "unknown-reference", ""),
    used("a syntax mistake in the used file", CALL, PART + "  - {id: b\n«", "yaml-syntax", "expected"),
    used("an input that is not given", CALL.replace("with: {user", "with: «{times").replace("admin", "1"), PART, "missing-input", "user"),
    used("an input that the used file has not", CALL.replace("{user: admin", "{user: admin, «tmies: 2"), PART, "unknown-input", "times"),
    used("an input of another type", CALL.replace("{user: admin", "{user: admin, times: «many"), PART, "wrong-type", "whole number"),
    used("a secret that is not handed on", CALL.replace("use: part", "use: «part").replace(", secrets: [SHOP_PASSWORD]", ""), PART, "missing-secret", "SHOP_PASSWORD"),
    used("a secret that the caller has not", CALL.replace("[SHOP", "[«OTHER_PASSWORD, SHOP"), PART, "unknown-secret", "SHOP_PASSWORD"),
    used("a value of the used file's inside", CALL + '\n- {id: b, type: transform, expr: "{{ «a }}"}', PART, "unknown-reference", ""),
    used("nodes and a file", CALL.replace("- {id", "- «{id").replace(", with", ", nodes: [{id: b, type: transform, expr: 1}], with"), PART, "invalid", "`nodes` or `use`"),
]  # fmt: skip

CONTAINERS = [
    nodes("a loop of two kinds", '- {id: a, type: iterate, over: [1], while: «true, max: 3, nodes: [{id: b, type: transform, expr: 1}]}', "conflicting-fields", "over"),
    nodes("a loop without an end", '- {id: a, type: iterate, until: «true, nodes: [{id: b, type: transform, expr: 1}]}', "missing-field", "max"),
    nodes("a handle that handles nothing", '- «{id: a, type: handle, try: [{id: b, type: transform, expr: 1}]}', "invalid", "catch"),
    nodes("`error` outside a catch", '- {id: a, type: handle, try: [{id: b, type: transform, expr: "{{ «error.code }}"}], finally: [{id: c, type: transform, expr: 1}]}', "unknown-reference", "catch"),
    nodes("a value of a try that may have failed", '- {id: a, type: handle, try: [{id: b, type: transform, expr: 1}], catch: [{id: c, type: transform, expr: 1}]}\n- {id: d, type: transform, expr: "{{ «b }}"}', "unguarded-reference", "default"),
    nodes("a tab that nothing opens", '- {id: a, type: browser_action, action: click, target: {css: a}, opens: vendor}\n- {id: b, type: browser_action, action: switch_tab, tab: «vendro}', "unknown-tab", "vendor"),
    nodes("a dialog without its answer", '- «{id: a, type: browser_action, action: dialog}', "missing-field", "answer"),
    nodes("a download of nothing", '- «{id: a, type: browser_action, action: download}', "invalid", "url"),
    nodes("a reference in SQL", '- {id: a, type: transform, sql: «"SELECT {{ inputs.count }}"}', "no-reference-here", "params"),
    nodes("a Python module that is not allowed", '- {id: a, type: transform, python: «"os:system", args: {command: id}}', "python-not-allowed", "python_modules"),
    nodes("a question and nothing else", '- {id: a, type: context, ask: «{}}', "out-of-bounds", "empty"),
]  # fmt: skip

ALL = [*TEXT, *FILE, *NODES, *REFERENCES, *USED, *CONTAINERS]
