"""The tools that edit a draft: its first nodes, what they refuse and report, and edits that a crash does not repeat."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from director.builds import subject
from director.draft import draft as drafts
from director.draft import header
from director.draft.goal import Goal
from director.editing import due, lint, reference, tools
from director.tools.build_context import BuildContext
from nodes import registry
from nodes.errors import ModelError
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.messages import tokens
from tests import build_contexts

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
DOCUMENTS = {str(each.relative_to(ROOT)): each.read_text() for each in sorted((ROOT / "docs").glob("**/*.md"))}

LOOK = "- {id: look, type: browser_action, action: goto, url: '{{ inputs.base_url }}/admin/'}\n"


def build_of(folder: Path, text: str | None = None) -> BuildContext:
    """A build at a site with a path, an input and a secret."""
    return build_contexts.opened(
        folder,
        "http://127.0.0.1:8765/admin/?next=1",
        text,
        goal="Find the tea. Then tell its price.",
        inputs={"user": "admin", "many": 12},
        known={"SHOP_PASSWORD": "hunter-22"},
    )


async def answer_of(build: BuildContext, name: str, **arguments: object) -> str:
    """The text that an editing tool returns."""
    given = {"reason": f"because {len(build.state.history.versions('draft'))}", **arguments}
    return (await build_contexts.call(build, name, tools.toolsets(build), **given)).text


async def create(build: BuildContext, yaml: str, after: str | None = None, *, dry: bool | None = None) -> str:
    """The text that ``create_nodes`` returns."""
    return await answer_of(build, "create_nodes", yaml=yaml, after=after, dry_run=dry)


async def test_the_first_nodes_create_the_head_from_the_goal(tmp_path: Path) -> None:
    """The head has name, description, typed inputs and names of secrets from the goal. Only the base URL has a default and an allowed origin."""
    build = build_of(tmp_path)
    assert "draft-missing" in await answer_of(build, "update_node", id="x", yaml="id: x")
    answer = await create(build, LOOK)
    assert answer.startswith("version 1\n  1 look  browser_action goto")
    assert build.state.draft is not None
    file = build.state.draft.loaded.workflow
    assert (file.name, file.description) == ("Find the tea", "Find the tea. Then tell its price.")
    assert {name: (each.type, each.default) for name, each in file.inputs.items()} == {
        "base_url": ("string", "http://127.0.0.1:8765"),
        "user": ("string", None),
        "many": ("integer", None),
    }
    assert [name for name, each in file.inputs.items() if each.required] == ["user", "many"]
    assert file.secrets == ["SHOP_PASSWORD"]
    assert file.allowed_origins == ["{{ inputs.base_url }}"]


@pytest.mark.parametrize(
    "given",
    [
        "inputs:\n  most: {type: number, default: 100} # of all\noutput: {seen: '{{ sum }}'}\nnodes:\n- {id: sum, type: transform, expr: '{{ inputs.most }}'}\n",
        "nodes:\n  - id: sum\n    type: transform\n    expr: '{{ inputs.most }}'\ninputs: {most: {type: number, default: 100}}\noutput: {seen: '{{ sum }}'}\n",
        "{inputs: {most: {type: number, default: 100}}, output: {seen: '{{ sum }}'}, nodes: [{id: sum, type: transform, expr: '{{ inputs.most }}'}]}",
    ],
    ids=["above", "below", "in braces"],
)
async def test_the_first_nodes_may_come_with_inputs_and_output(tmp_path: Path, given: str) -> None:
    """`inputs` and `output` may come beside `nodes`; inputs of the goal stay. The error for a missing input explains this."""
    build = build_of(tmp_path)
    refused = await create(build, "- {id: sum, type: transform, expr: '{{ inputs.most }}'}")
    assert "`yaml` may be a map, `inputs: …` and `nodes: …`" in refused
    assert "`yaml` may be a map" in await answer_of(
        build, "update_node", id="workflow", yaml="inputs: {most: {type: number}}"
    )
    answer = await create(build, given)
    assert answer.startswith("version 1\n  1 sum")
    assert build.state.draft is not None
    file = build.state.draft.loaded.workflow
    assert list(file.inputs) == ["base_url", "user", "many", "most"]
    assert (file.inputs["most"].default, file.output) == (100, {"seen": "{{ sum }}"})
    # A draft has a head already, which only `update_node` changes.
    assert "this is a whole file" in await create(build, given)
    assert "`update_node` of `workflow` with `inputs: …`" in await create(
        build, "- {id: other, type: transform, expr: '{{ inputs.least }}'}"
    )


def test_any_goal_begins_a_valid_draft() -> None:
    """A goal that looks like YAML or a reference, or has no address, still gives a valid head."""
    goal = Goal(
        'Say "{{ x }}": *now*\n# and - more', None, Path("x.yaml"), inputs={"a": "{{ b }}", "n": None, "m": {"k": [1]}}
    )
    loaded = reader.parse(f"{header.begun(goal)}nodes: [{{id: a_, type: transform, expr: 1}}]\n", "x")
    assert loaded.workflow.inputs["a"].required
    assert (loaded.workflow.inputs["m"].type, loaded.workflow.inputs["m"].default) == ("map", None)
    assert loaded.workflow.description == 'Say "{{ x }}": *now* # and - more'


async def test_invalid_and_dry_edits_are_not_stored(tmp_path: Path) -> None:
    """All mistakes are reported together with their node and field; a dry run says whether the edit is valid."""
    build = build_of(tmp_path)
    answer = await create(build, f"{LOOK}- {{id: more, type: transform, expr: '{{{{ lok }}}}', exprr: 1}}")
    assert "2 mistakes" in answer
    assert "`more.expr`: `lok` is not defined" in answer
    assert "did you mean `look`?" in answer
    assert "nothing was given" in await create(build, "# nodes")
    assert "it would be valid" in await create(build, f"```yaml\n{LOOK}```", dry=True)
    assert build.state.draft is None


async def test_targets_are_due_where_the_open_page_is_plainly_theirs(tmp_path: Path) -> None:
    """New targets behind a `goto` of the open page, or behind what the bench has done, are due until the page may change; no others are."""
    build = build_of(
        tmp_path,
        "version: 1\ninputs: {base_url: {type: string, default: 'http://127.0.0.1:8765'}}\nallowed_origins: ['{{ inputs.base_url }}']\nnodes:\n"
        "- {id: open, type: browser_action, action: goto, url: '{{ inputs.base_url }}/a/?x=1'}\n"
        "- {id: user, type: browser_action, action: fill, target: {label: User}, value: x}\n"
        "- {id: rows, type: browser_query, query: count, target: {css: tr}}\n"
        "- {id: own, type: browser_query, query: text, target: {css: '{{ user }}'}}\n"
        "- {id: enter, type: browser_action, action: click, target: {role: button, name: Enter}}\n"
        "- {id: read, type: browser_query, query: text, target: {css: h1}}\n",
    )
    made = build.state.draft
    assert made is not None

    def found(marks: dict[str, str], bench: str | None, scout: str | None) -> dict[str, str]:
        return {
            node: where for node, (where, _target) in due.targets(None, made, build.goal, marks, bench, scout).items()
        }

    here, there = "http://127.0.0.1:8765/a", "http://127.0.0.1:8765/b"
    assert found({}, None, here) == {"user": "scout", "enter": "scout"}
    assert found({}, there, there) == {}
    done: dict[str, str] = dict.fromkeys(("open", "user", "rows", "own", "enter"), "done")
    assert found(done, there, None) == {"read": "bench"}
    assert found(done | {"user": "stale: edited"}, there, None) == {"user": "bench", "enter": "bench"}
    assert due.targets(made, made, build.goal, done, there, here) == {}


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("browser: {switches: [--no-sandbox]}", "browser-not-allowed"),
        ("browser: {proxy: {server: 'http://10.0.0.1:1'}}", "browser-not-allowed"),
        ("browser: {headers: {A: '{{ secrets.SHOP_PASSWORD }}'}}", "browser-not-allowed"),
        ("dismiss: [{target: {role: button, name: Pay}}]", "dismiss-not-allowed"),
        ("secrets: [SHOP_PASSWORD, OPENAI_API_KEY]", "secret-not-given"),
        ("allowed_origins: ['http://127.0.0.1:8765', 'https://evil.test']", "origin-not-granted"),
        ("inputs: {base_url: {type: string, default: 'https://evil.test'}}", "origin-not-granted"),
        ("inputs: {user: null}", "input-missing"),
        ("inputs: {many: {type: list}}", "input-type"),
        ("inputs: {site: {type: string}}", "input-not-given"),
        ("allowed_origins: ['{{ now() }}']", "expression-failed"),
    ],
)
async def test_a_draft_cannot_grant_itself_more_than_the_goal(tmp_path: Path, head: str, code: str) -> None:
    """Sites, secrets and browser switches outside the goal are refused, as are removed inputs. The draft stays as it was."""
    build = build_of(tmp_path)
    await create(build, LOOK)
    answer = await answer_of(build, "update_node", id="workflow", yaml=head)
    assert code in answer
    assert len(build.state.history.versions("draft")) == 1


async def test_without_allowed_origins_a_draft_opens_no_other_site(tmp_path: Path) -> None:
    """Without ``allowed_origins`` a node may still open only granted origins, and Python modules stay refused."""
    build = build_of(tmp_path)
    await create(build, LOOK)
    assert "allowed_origins gone" in await answer_of(build, "update_node", id="workflow", yaml="allowed_origins: null")
    answer = await create(build, "- {id: out, type: browser_action, action: goto, url: 'https://evil.test/'}")
    assert "origin-not-granted" in answer
    assert "python-not-allowed" in await create(build, "- {id: os, type: transform, python: 'os:getcwd'}")
    assert len(build.state.history.versions("draft")) == 2


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("mail.shop.test", True),
        ("MAIL.shop.test", True),
        ("imap.shop.test", True),
        ("{{ inputs.mail }}", True),
        ("mail.evil.test", False),
        ("{{ inputs.base_url }}", False),
        ("{{ inputs.mail ~ '.evil.test' }}", False),
        ("{{ 'mail.evil.test' }}", False),
    ],
)
async def test_a_draft_sends_no_password_to_a_server_of_its_own(tmp_path: Path, host: str, named: bool) -> None:
    """A draft reads mail only from a server that is in the goal or among the person's inputs; one that the file had before may stay."""
    build = build_contexts.opened(
        tmp_path,
        "http://127.0.0.1:8765/",
        goal="Sign in. The code comes by mail, from mail.shop.test.",
        inputs={"mail": "imap.shop.test"},
        known={"SHOP_PASSWORD": "hunter-22"},
    )
    await create(build, LOOK)
    node = (
        f'- {{id: code, type: browser_query, query: mail, host: "{host}", user: zoe, password: "{{{{ secrets.SHOP_PASSWORD }}}}", '
        "pattern: 'code is ([0-9]+)'}"
    )
    answer = await create(build, node)
    assert ("mail-not-named" in answer) is not named
    assert len(build.state.history.versions("draft")) == 1 + named


async def test_the_head_is_edited_as_the_node_workflow(tmp_path: Path) -> None:
    """The answer lists what is new, changed and removed; inputs that the edit does not name stay."""
    build = build_of(tmp_path)
    await create(build, LOOK)
    answer = await answer_of(
        build, "update_node", id="workflow", yaml="output: '{{ look }}'\ninputs: {sort: {type: string, default: green}}"
    )
    assert "head: output new, inputs.sort new, inputs.base_url as it was" in answer
    assert build.state.draft is not None
    assert list(build.state.draft.loaded.workflow.inputs) == ["base_url", "user", "many", "sort"]


async def test_an_output_that_depends_on_no_run_is_told_by_the_edit_that_writes_it(tmp_path: Path) -> None:
    """An edit that writes an output which is a literal, or only an input, says that ``finish`` refuses it, once; one that reads the site is right."""
    build = build_of(tmp_path)
    said = "`{}` of the output is the same whatever a run finds, which `finish` refuses: yield what a query reads"
    assert said.format("done") in await create(
        build, f"output: {{done: saved, who: '{{{{ inputs.user }}}}'}}\nnodes:\n{LOOK}"
    )
    constant = "output: {done: saved, who: '{{ inputs.user }}'}"
    assert "the same whatever" not in await answer_of(build, "update_node", id="workflow", yaml=constant)
    read = await answer_of(
        build, "update_node", id="workflow", yaml="output: {at: '{{ look }}', who: '{{ inputs.user }}'}"
    )
    assert "the same whatever" not in read
    assert said.format("who") in await answer_of(
        build, "update_node", id="workflow", yaml="output: {who: '{{ inputs.user }}'}"
    )


@pytest.mark.parametrize("name", ["workflow", "all", "recent"])
async def test_ids_that_the_tools_reserve_are_refused(tmp_path: Path, name: str) -> None:
    """A reserved id is refused with a fix. In a file that has one, `workflow` is the head, and `id` null edits the node."""
    build = build_of(tmp_path)
    node = f"- {{id: {name}, type: transform, expr: 1}}\n"
    answer = await create(build, LOOK + node)
    assert "reserved-name" in answer
    assert f"`{name}.id`: " in answer
    assert "choose another id" in answer
    head = "version: 1\ninputs: {user: {type: string, default: a}, many: {type: integer, default: 1}}\nnodes:\n"
    build = build_of(tmp_path / "there", head + node)
    assert "head: output new" in await answer_of(build, "update_node", id="workflow", yaml="output: 7")
    assert "1 nodes in all" in await answer_of(build, "update_node", id=None, yaml=node.replace("1", "2"))


async def test_an_edit_reports_its_changes_briefly(tmp_path: Path) -> None:
    """The answer lists new, changed, moved and removed nodes with their positions. A description counts as a change, a comment does not."""
    build = build_of(tmp_path)
    await create(build, LOOK)
    described = LOOK.replace("action: goto", "action: goto, description: The list.")
    assert "  1 look" in await answer_of(build, "update_node", id="look", yaml=described)
    assert "only layout" in await answer_of(build, "update_node", id="look", yaml=f"# here\n{described}")
    await create(build, "- {id: two, type: transform, expr: 2}\n- {id: three, type: transform, expr: 3}")
    assert "  1 three  transform\n3 nodes" in await answer_of(build, "move_nodes", ids=["three"], after="/")
    answer = await answer_of(build, "update_node", id="two", yaml="{id: zwei, type: transform, expr: admin}")
    assert "  3 zwei  transform\ngone: two\n3 nodes in all\nhint: zwei: it has `admin` literally" in answer


async def test_an_edit_that_a_crash_interrupted_is_not_done_twice(tmp_path: Path) -> None:
    """The same edit with the same reason returns the same answer and makes no second version."""
    build = build_of(tmp_path)
    first = await answer_of(build, "create_nodes", yaml=LOOK, after=None, dry_run=None, reason="to begin")
    assert await answer_of(build, "create_nodes", yaml=LOOK, after=None, dry_run=None, reason="to begin") == first
    more = {"yaml": "- {id: more, type: transform, expr: 1}", "after": "look", "dry_run": None, "reason": "for more"}
    second = await answer_of(build, "create_nodes", **more)
    assert await answer_of(build, "create_nodes", **more) == second
    gone = await answer_of(build, "delete_nodes", ids=["more"], reason="no more")
    assert "gone: more" in gone
    assert await answer_of(build, "delete_nodes", ids=["more"], reason="no more") == gone
    assert len(build.state.history.versions("draft")) == 3


async def test_no_secret_is_stored_in_a_draft(tmp_path: Path) -> None:
    """An edit that contains the value of a secret is refused, and the answer does not show it."""
    build = build_of(tmp_path)
    answer = await create(build, f"{LOOK}- {{id: pass, type: transform, expr: hunter-22}}")
    assert "secret-refused" in answer
    assert build.state.draft is None
    wrong = await create(build, f"{LOOK}- {{id: pass, type: transform, exprr: hunter-22}}")
    assert "draft-invalid" in wrong
    assert "hunter-22" not in wrong


def test_the_reference_knows_every_type_and_stays_short() -> None:
    """Each type and topic has a valid example and stays within its limit. An unknown name is answered with the nearest one."""
    names = [
        *registry.node_types(),
        "browser_action.select",
        "targets",
        "rules",
        "references",
        "workflow",
        "step",
        "browser",
    ]
    for name in names:
        assert 100 < len(reference.render(name)) <= reference.LONGEST, name
    for each in reference.CARD.values():
        assert not mistakes_in(each), each
    assert set(reference.CARD) == set(registry.node_types())
    assert tokens.count(reference.card()) <= 585
    assert "`scroll: until_end`" in reference.card()
    assert "sql: select no from orders where contains(name, 'x')" in reference.card()
    with pytest.raises(ModelError, match="no node type") as caught:
        reference.render("browser_actoin")
    assert caught.value.fix == "did you mean `browser_action`?"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("confirm", ["confirm: {nodes:"]),
        ("browser_query", ["For an HTML table use `table`", "1 by default", "`exists` yields true or false"]),
        ("workflow", ["an input:\n  type (string, number", "default (any value)", "output: {orders:"]),
        ("input", ["type (string, number"]),
        ("references", ["selectattr", "regex(pattern"]),
    ],
)
def test_a_reference_page_contains_all_that_a_node_needs(name: str, words: list[str]) -> None:
    """A page includes what would be asked for next and stays within its limit. It leaves out what the instructions say of every action."""
    text = reference.render(name)
    assert [each for each in words if each not in text] == []
    assert len(text) <= reference.LONGEST
    assert "confirm: {nodes:" not in reference.render("browser_action.click")


def mistakes_in(example: str) -> list[str]:
    """The mistakes of an example in its own file, apart from references to other names."""
    numbers = iter(range(10))
    nodes = re.sub(r"…(?= \])", lambda _: f"{{id: in{next(numbers)}, type: transform, expr: 1}}", example)
    try:
        reader.parse(
            f"version: 1\nallowed_origins: ['http://a.test']\nsecrets: [SHOP_PASSWORD]\nnodes:\n{nodes}\n", "x"
        )
    except WorkflowInvalid as error:
        return [each.render() for each in error.diagnostics if each.code not in ("unknown-reference", "unknown-input")]
    return []


LINTED = """\
version: 1
inputs:
  base_url: {type: string, default: "http://127.0.0.1:8765"}
  user: {type: string, default: admin}
  no: {type: integer, default: 1007}
nodes:
  - {id: path, type: browser_action, action: goto, url: "{{ inputs.base_url }}/admin/"}
  - {id: host, type: browser_action, action: goto, url: "http://127.0.0.1:8765/x/admin"}
  - {id: whole, type: browser_action, action: fill, target: {label: User}, value: admin}
  - {id: inside, type: browser_query, query: exists, target: {text: "Signed in as admin."}}
  - {id: part, type: browser_query, query: exists, target: {text: "administrator"}}
  - {id: right, type: browser_query, query: exists, target: {text: "{{ inputs.user }}"}}
  - {id: said, type: browser_query, query: exists, target: {text: "See http://a.test/?q=admin"}}
  - {id: asked, type: transform, expr: "{{ 'admin' == inputs.user }}"}
  - {id: number, type: browser_action, action: fill, target: {label: Order}, value: "1007"}
  - {id: third, type: browser_action, action: click, target: {css: "tr:nth-child(3) a"}, effect: idempotent}
  - id: rows
    type: group
    nodes:
      - {id: buy, type: browser_action, action: click, target: {role: button, name: Buy}}
      - {id: column, type: browser_query, query: exists, target: {css: "tr:has(td:nth-child(2) a)"}}
      - {id: deep, type: browser_query, query: exists, target: {role: cell, within: {xpath: "//tr[2]"}}}
"""


async def test_hints_are_errors_only_for_secrets(tmp_path: Path) -> None:
    """Literal inputs and addresses, positional targets and effects without checks are hints, those of effects first; only a literal secret is an error. Three are shown, the rest has a path."""
    build = build_contexts.opened(tmp_path, text=LINTED)
    assert build.state.draft is not None
    found = lint.hints(build.state.draft, build.goal, {"KEY": "Signed in"})
    assert sorted((each.node, each.code) for each in found) == [
        ("buy", "effect-without-confirm"),
        ("buy", "effect-without-verify"),
        ("deep", "positional-target"),
        ("host", "literal-address"),
        ("inside", "literal-secret"),
        ("number", "literal-input"),
        ("rows", "no-description"),
        ("third", "positional-target"),
        ("whole", "literal-input"),
    ]
    assert [each.code for each in found if each.level == "error"] == ["literal-secret"]
    assert [each.code for each in found[1:3]] == ["effect-without-verify", "effect-without-confirm"]
    shown = lint.shown(found)
    assert shown == [*map(str, found[:3]), "… 6 more: `read_state` @state/hints"]
    assert subject.BuildSubject(build).state("@state/hints") == "\n".join(
        map(str, lint.hints(build.state.draft, build.goal, build.known()))
    )


DECIDED = """\
version: 1
inputs:
  base_url: {type: string, default: "http://127.0.0.1:8765"}
  user: {type: string, default: admin}
  number: {type: string, default: "1002"}
  other: {type: string, default: "1002"}
secrets: [KEY]
allowed_origins: ["{{ inputs.base_url }}"]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
  - {id: name, type: browser_action, action: fill, target: {label: User}, value: "{{ inputs.user }}"}
  - {id: word, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.KEY }}"}
  - {id: sign_in, type: browser_action, action: click, target: {role: button, name: Sign in}, effect: idempotent}
  - {id: search, type: browser_action, action: fill, target: {label: Order}, value: "{{ inputs.number }}"}
  - {id: pay, type: browser_action, action: click, target: {role: button, name: Pay}}
"""


@pytest.mark.parametrize(("given", "reported"), [("1002", ["number"]), ("1003", [])])
async def test_an_input_that_decides_on_an_action_should_have_no_default(
    tmp_path: Path, given: str, reported: list[str]
) -> None:
    """A goal value as the default of an input that an action depends on is reported. Addresses, sign-in users and other inputs are not."""
    inputs = {"user": "admin", "number": given, "other": "1002"}
    build = build_contexts.opened(tmp_path, "http://127.0.0.1:8765", DECIDED, inputs=inputs)
    assert build.state.draft is not None
    found = [(each.node, each.text.split("`")[1]) for each in lint.defaults(build.state.draft, build.goal)]
    assert found == [("pay", name) for name in reported]
    without = drafts.Draft.of(DECIDED.replace('number: {type: string, default: "1002"}', "number: {type: string}"))
    assert lint.defaults(without, build.goal) == []


PAGED = """\
version: 1
nodes:
  - {id: opens, type: browser_action, action: click, target: {text: Next}, verify: [{url: "**_next=*"}]}
  - id: pages
    type: iterate
    until: "{{ rows | length == 0 }}"
    max: 3
    nodes:
      - {id: rows, type: browser_query, query: table, target: {role: table}}
      - {id: next, type: browser_action, action: click, target: {text: Next}}
      - {id: seen, type: browser_query, query: exists, target: {text: x}}
      - {id: more, type: browser_action, action: click, target: {text: More}}
  - {id: pay, type: browser_action, action: click, target: {text: Pay}}
  - {id: press, type: browser_action, action: press, key: Enter, effect: effect}
"""


async def test_clicks_that_only_open(tmp_path: Path) -> None:
    """A click may be `effect: read`; in a loop, one before a read needs no rule."""
    build = build_contexts.opened(tmp_path, text=PAGED)
    assert build.state.draft is not None
    found = {(each.node, each.code): each.fix for each in lint.hints(build.state.draft, build.goal)}
    verifies = {node: fix for (node, code), fix in found.items() if code == "effect-without-verify"}
    assert set(verifies) == {"pay", "press"}
    assert "`effect: read` where it only opens a page" in verifies["pay"]
    assert "`effect: read`" not in verifies["press"]


def test_an_effect_class_is_explained_the_same_everywhere() -> None:
    """The model is told `effect` in the words of the documents. Documented clicks that open a tab have `effect: read`."""
    card = reference.render("step").replace("`", "")
    (row,) = [each for each in DOCUMENTS["docs/nodes/README.md"].split("\n") if each.startswith("| `effect` |")]
    assert row.split(" | ")[2].rstrip(" |").rstrip(".").replace("`", "") in card
    opening = [
        line for text in DOCUMENTS.values() for line in text.split("\n") if "opens: " in line and "action: " in line
    ]
    assert opening
    assert [line for line in opening if "effect: read" not in line] == []
    assert not re.search(r"only opens (or|a page|something)[^.;`]*`effect: idempotent`", "".join(DOCUMENTS.values()))


CONFIRM = """\
- id: {id}
  type: browser_action
  action: click
  target: {{css: "#{id}"}}
  confirm:
    nodes:
      - {{id: look, type: browser_action, action: goto, url: "{{{{ inputs.base_url }}}}/x"}}
      - {{id: paid, type: browser_query, query: text, target: {{css: p}}}}
    done: "{{{{ paid == 'is paid' and paid is defined }}}}"
"""


ROWS = "type: browser_query, query: extract, target: {css: tr}, fields: {x: td}"
FILL = "type: browser_action, action: fill"


async def test_ids_in_a_confirm_are_those_of_the_confirm(tmp_path: Path) -> None:
    """An id in a ``confirm`` that another node has is renamed there, with its references, and that is told; so it is when the node is written anew. It has no position to run it by."""
    build = build_of(tmp_path)
    assert "\n      confirm/look  " in await create(build, CONFIRM.format(id="pay"))
    answer = await create(build, CONFIRM.format(id="send"))
    assert "`look` is called `send_look`: another node has that id\n`paid` is called `send_paid`" in answer
    assert build.state.draft is not None
    assert "done: \"{{ send_paid == 'is paid' and send_paid is defined }}\"" in build.state.draft.text
    again = await answer_of(build, "update_node", id="pay", yaml=CONFIRM.format(id="pay").replace("/x", "/y"))
    assert "is called" not in again
    twice = CONFIRM.format(id="other").replace("id: look", "id: paid")
    assert "duplicate-id" in await create(build, twice)


@pytest.mark.parametrize(
    ("node", "written", "said"),
    [
        (f"{ROWS}, key: x", ROWS, "`a`: `key` is left out: `key` goes with `scroll` or `next`"),
        (f"{ROWS}, key: x, scroll: true", "scroll: until_end", "`a`: `scroll: true` is read as `scroll: until_end`"),
        (f"{FILL}, target: {{css: b}}, text: c", "value: c", "`a`: `text: c` is read as `value: c`"),
        (f"{FILL}, selector: '#b', value: 8", 'target: {css: "#b"}, value: "8"', "`value: 8` is read as `value: \"8\"`"),
        ("type: goto, address: /x", 'type: browser_action, url: "/x", action: goto', "`a`: `action: goto` is added"),
        ("action: goto, url: /x", "type: browser_action", "`a`: `type: browser_action` is added"),
        (f"{FILL}, target: '#b', value: c, timeout: 1 min", "timeout: 60", '`a`: `timeout: "1 min"` is read as `timeout: 60`'),
        (f"{FILL}, target: {{css: b}}, value: c, timeout: 12h", "timeout: 43200", '`timeout: "12h"` is read as `timeout: 43200`'),
        (f"{FILL}, target: {{css: b}}, value: c, verify: {{enabled: {{css: d}}}}", "verify: [{enabled: true, target: {css: d}}]", "`enabled: {css: d}` is read as `enabled: true`"),
        (f"{FILL}, target: {{css: b}}, value: c, timeout: 30000", "timeout: 30", "`timeout: 30`: it is in seconds"),
        (f"{FILL}, target: {{css: b}}, value: c, retry: 2", "retry: {attempts: 2}", "`retry: 2` is read as `retry: {attempts: 2}`"),
        (
            f"{FILL}, target: {{css: b}}, value: c, verify: {{exists: {{selector: d}}}}",
            "verify: [{visible: {css: d}}]",
            "`a`: `selector: d` is read as `css: d`",
        ),
    ],
)  # fmt: skip
async def test_what_is_written_by_habit_is_read_as_what_it_can_only_mean(
    node: str, written: str, said: str, tmp_path: Path
) -> None:
    """A node with a word, type or unit of other tools is stored in the words of the language, and a line says what was made of it; so is an edit."""
    build = build_of(tmp_path)
    assert said in await create(build, f"- {{id: a, {node}}}\n")
    assert build.state.draft is not None
    assert written in build.state.draft.text.replace("\n    ", ", ")
    assert said in await answer_of(build, "update_node", id="a", yaml=f"{{id: a, {node}}}")


async def test_what_can_mean_several_things_is_refused_as_given(tmp_path: Path) -> None:
    """If a reading leaves a mistake, the nodes are refused as they were given; a right text stays as it is written."""
    build = build_of(tmp_path)
    answer = await create(build, f"- {{id: a, {FILL}, selector: b, value: c, pace: slow}}\n")
    assert "`selector` is not a field" in answer
    assert "`pace` is not a field" in answer
    right = f"- {{id: a, {FILL}, target: {{css: b}},  value: c}}  # as it is\n"
    assert "is read as" not in await create(build, right)
    assert build.state.draft is not None
    assert right in build.state.draft.text
    assert "`start_url` is not a field" in await answer_of(build, "update_node", id="workflow", yaml="start_url: /x")
    head = await answer_of(build, "update_node", id="workflow", yaml="timeout: 20s")
    assert '`timeout: "20s"` is read as `timeout: 20`' in head


async def test_fields_called_id_and_type_are_no_node(tmp_path: Path) -> None:
    """Fields of a query and values of the file that are called ``id`` and ``type`` stay as they are, whatever nodes are called."""
    build = build_of(tmp_path)
    fields = "fields: {id: now, type: 'td:nth-child(3)'}"
    nodes = CONFIRM.format(id="pay").replace(
        "query: text, target: {css: p}", f"query: extract, target: {{css: tr}}, {fields}"
    )
    nodes += "- {id: each, type: iterate, over: [{id: run, type: a}], as: it, nodes: [{id: one, type: transform, expr: 1}]}\n"
    answer = await create(build, nodes)
    assert "is called" not in answer
    assert build.state.draft is not None
    assert fields in build.state.draft.text
    assert "over: [{id: run, type: a}]" in build.state.draft.text


async def test_a_word_of_the_language_as_an_id_is_renamed(tmp_path: Path) -> None:
    """A node with a reserved id is called otherwise, its references too, and that is told; what the language has under the word stays."""
    build = build_of(tmp_path)
    nodes = """- {id: run, type: group, value: "{{ {'id': 1, 'total': 2} }}", nodes: [{id: now, type: transform, expr: 1}]}\n- {id: sum, type: transform, expr: "{{ run.total ~ run.id ~ now() }}"}\n"""
    answer = await create(build, nodes)
    assert "`run` is called `run_step`: that is a word of the language\n`now` is called `now_step`" in answer
    assert build.state.draft is not None
    assert "{{ run_step.total ~ run.id ~ now() }}" in build.state.draft.text
