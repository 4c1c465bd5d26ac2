"""Workflows as plain Playwright tests: they read as if a person had written them, do the same, and say what they leave out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodes import registry
from nodes.base import Leaf
from runtime.cli import app
from runtime.export import actions, leaves, pytest_file, queries
from runtime.language import callees, reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.language.workflow import Loaded, below
from tests import exported, pages
from tests.rig import Rig

ROOT = Path(__file__).parents[2]

HEAD = "version: 1\nname: Test\n"


def export(text: str, **files: str) -> pytest_file.Exported:
    return pytest_file.export(reader.parse(HEAD + text, "shop.yaml", callees.Texts(files)))


def steps(text: str) -> str:
    return exported.steps_of(export(text).text)


SIGN_IN = """
inputs:
  base_url: {type: string, default: "http://shop.test"}
  order: {type: string}
secrets: [SHOP_PASSWORD]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base_url }}/login"}
  - {id: pass, type: browser_action, action: fill, target: {label: Password}, value: "{{ secrets.SHOP_PASSWORD }}"}
  - id: submit
    type: browser_action
    action: click
    target: {role: button, name: Sign in}
    timeout: 5
    verify: [{url: "**/orders"}, {text: Welcome, target: {css: h1}}]
  - {id: total, type: browser_query, query: text, as: number, target: {css: td, within: {role: row, has_text: "{{ inputs.order }}"}}}
output: {total: "{{ total }}"}
"""

AS_PYTHON = """
    base_url = setting("base_url", "http://shop.test")
    order = required("order", "string")
    shop_password = secret("SHOP_PASSWORD")

    page.goto(f"{base_url}/login")
    page.get_by_label("Password").fill(shop_password)
    page.get_by_role("button", name="Sign in").click(timeout=5_000)
    expect(page).to_have_url(re.compile(r"/orders([?#].*)?$"), timeout=5_000)
    expect(page.locator("h1")).to_contain_text(
        words("Welcome"), use_inner_text=True, timeout=5_000
    )
    row = containing(page.get_by_role("row"), order)
    total = number(text_of(row.locator("td")))

    output = {"total": total}
    print(json.dumps(output, ensure_ascii=False, indent=2))
"""


def test_steps_become_statements() -> None:
    """Inputs and secrets come from the environment; a rule becomes an expectation that waits as long as the step may take."""
    assert steps(SIGN_IN) == AS_PYTHON.removeprefix("\n")


BLOCKS = """
inputs: {numbers: {type: list, default: [1, 2, 3, 10]}}
nodes:
  - id: each
    type: iterate
    description: Looks at each number.
    over: "{{ inputs.numbers }}"
    as: number
    collect: {number: "{{ number }}", kind: "{{ kind }}", at: "{{ loop.index }}"}
    nodes:
      - id: kind
        type: route
        branches:
          - {name: big, when: "{{ number > 5 }}", nodes: [{id: big, type: transform, expr: "big"}]}
        otherwise: [{id: small, type: transform, expr: "small {{ number }}"}]
  - {id: extra, type: transform, expr: "{{ 1 // 0 }}", on_error: continue}
  - id: safe
    type: handle
    try: [{id: bad, type: transform, expr: "{{ 1 // 0 }}"}]
    catch: [{id: instead, type: transform, expr: 7}]
output: {each: "{{ each }}", extra: "{{ extra | default('none') }}", failed: "{{ run.errors.extra is defined }}", safe: "{{ safe }}"}
"""

BLOCKS_AS_PYTHON = """
    numbers = setting("numbers", [1, 2, 3, 10])

    # Looks at each number.
    each_ = []
    for index, number in enumerate(numbers, start=1):
        if number > 5:
            kind = "big"
        else:
            kind = f"small {number}"

        each_.append({"number": number, "kind": kind, "at": index})

    extra = None
    extra_error = None
    try:
        extra = 1 // 0
    except FAILURES as error:
        extra_error = {"code": type(error).__name__, "message": str(error)}

    try:
        safe = 1 // 0
    except FAILURES:
        safe = 7

    output = {
        "each": each_,
        "extra": "none" if extra is None else extra,
        "failed": extra_error is not None,
        "safe": safe,
    }
    print(json.dumps(output, ensure_ascii=False, indent=2))
"""


def test_blocks_become_blocks() -> None:
    """A loop, a route, a tolerated error and a handle become the statements of Python for them."""
    assert steps(BLOCKS) == BLOCKS_AS_PYTHON.removeprefix("\n")


SAME = {
    "blocks": BLOCKS,
    "names of Python": """
inputs: {open: {type: integer, default: 3}, list: {type: list, default: [1]}, total: {type: integer, default: 4}}
nodes:
  - {id: class, type: transform, expr: "{{ inputs.open + 1 }}"}
  - {id: len, type: transform, expr: "{{ inputs.list | length }}"}
  - {id: page, type: transform, expr: "{{ class * 2 }}"}
  - {id: number, type: transform, expr: "{{ '5' | number }}"}
  - {id: total, type: transform, expr: "{{ inputs.total }}"}
  - {id: camelCase, type: transform, expr: 1}
  - {id: camel_case, type: transform, expr: 2}
  - {id: json, type: transform, expr: "{{ [1] | json }}"}
  - {id: l, type: transform, expr: 5}
output: ["{{ class }}", "{{ len }}", "{{ page }}", "{{ number }}", "{{ total }}", "{{ camelCase }}", "{{ camel_case }}", "{{ json }}", "{{ l }}"]
""",
    "loops in loops": """
nodes:
  - id: outer
    type: iterate
    over: [[1, 2], [3], []]
    as: part
    key: "{{ part | length }}"
    nodes:
      - id: inner
        type: iterate
        over: "{{ part }}"
        as: one
        collect: ["{{ one }}", "{{ loop.index }}", "{{ part_loop.index }}", "{{ loop.last }}", "{{ part_loop.key }}", "{{ loop.length }}"]
        nodes: [{id: twice, type: transform, expr: "{{ one * 2 }}"}]
output: "{{ outer }}"
""",
    "repeated by a condition": """
nodes:
  - {id: begin, type: context, set: {left: 3}}
  - id: down
    type: iterate
    while: "{{ vars.left > 0 }}"
    max: 3
    nodes:
      - {id: less, type: context, set: {left: "{{ vars.left - 1 }}"}}
      - {id: seen, type: transform, expr: "{{ vars.left }}"}
  - id: up
    type: iterate
    until: "{{ grown >= 3 }}"
    max: 5
    as: round
    nodes: [{id: grown, type: transform, expr: "{{ round }}"}]
  - id: guarded
    type: iterate
    while: "{{ more is undefined or more < 2 }}"
    max: 9
    as: turn
    nodes: [{id: more, type: transform, expr: "{{ turn }}"}]
output: {down: "{{ down }}", up: "{{ up }}", guarded: "{{ guarded }}", left: "{{ vars.left }}"}
""",
    "conditions": """
inputs: {with: {type: boolean, default: false}}
nodes:
  - {id: maybe, type: transform, expr: "there", when: "{{ inputs.with }}"}
  - id: part
    type: group
    when: "{{ not inputs.with }}"
    value: "{{ inside }}!"
    nodes: [{id: inside, type: transform, expr: "in"}]
  - id: way
    type: route
    branches:
      - {name: first, when: "{{ inputs.with }}", nodes: [{id: a, type: transform, expr: 1}]}
      - {name: second, when: "{{ maybe is undefined }}", nodes: [{id: b, type: transform, expr: 2}]}
  - id: nobody
    type: route
    branches: [{name: never, when: "{{ inputs.with }}", nodes: [{id: c, type: transform, expr: 3}]}]
output: {maybe: "{{ maybe | default('no') }}", part: "{{ part | default('-') }}", inside: "{{ inside | default('-') }}",
         way: "{{ way }}", taken: "{{ run.taken.way }}", nobody: "{{ run.taken.nobody is none }}", a: "{{ a | default(0) }}"}
""",
    "errors": """
nodes:
  - {id: empty, type: transform, expr: []}
  - id: each
    type: iterate
    over: [1, 0, 2]
    as: by
    each_error: continue
    nodes: [{id: share, type: transform, expr: "{{ 10 // by }}"}]
  - id: kept
    type: handle
    try: [{id: bad, type: transform, expr: "{{ empty[3] }}"}]
    catch: [{id: caught, type: transform, expr: "{{ error.message is defined }}"}]
    finally: [{id: at_end, type: context, set: {done: true}}]
  - {id: zero, type: context, set: {n: 1}}
  - id: retried
    type: handle
    attempts: 3
    try: [{id: count, type: context, set: {n: "{{ vars.n + 1 }}"}}, {id: third, type: transform, expr: "{{ 6 // (vars.n - 2) if vars.n < 3 else 1 }}"}]
    catch: [{id: never, type: transform, expr: "no"}]
  - id: nested
    type: handle
    try: [{id: wrong, type: transform, expr: "{{ 1 // 0 }}"}]
    catch:
      - id: inner
        type: handle
        try: [{id: wrong_too, type: transform, expr: "{{ empty[0] }}"}]
        catch: [{id: inner_code, type: transform, expr: "{{ error.message is defined }}"}]
      - {id: more, type: transform, expr: "{{ 1 // 0 }}", on_error: continue}
      - {id: after, type: transform, expr: "{{ error.message is defined and run.errors.more is defined and inner }}"}
  - id: unread
    type: handle
    try: [{id: fails, type: transform, expr: "{{ empty[1] }}"}, {id: not_reached, type: transform, expr: 1}]
    catch: [{id: reached, type: transform, expr: 2}]
output: {unread: "{{ unread }}", nested: "{{ nested }}", each: "{{ each }}", failed: "{{ run.failures.each | map(attribute='index') | list }}", kept: "{{ kept }}", done: "{{ vars.done }}",
         retried: "{{ retried }}"}
""",
}


SAME["nodes at the end that may not run"] = """
nodes:
  - id: each
    type: iterate
    over: [1, 2, 3]
    as: one
    nodes:
      - {id: first, type: transform, expr: "first"}
      - {id: second, type: transform, expr: "{{ one }}", when: "{{ one > 1 }}"}
      - {id: third, type: transform, expr: "{{ 10 // (one - 3) }}", on_error: continue}
  - id: none
    type: group
    nodes: [{id: never, type: transform, expr: 1, when: "{{ each | length > 5 }}"}]
  - id: maybe
    type: iterate
    over: [1]
    as: two
    nodes: [{id: not_now, type: transform, expr: 1, when: "{{ two > 5 }}"}]
output: {each: "{{ each }}", group: "{{ none_ }}", maybe: "{{ maybe }}"}
""".replace("id: none\n", "id: none_\n")

SAME["variables that last"] = """
nodes:
  - id: each
    type: iterate
    over: [1, 2, 3]
    as: one
    nodes:
      - {id: grow, type: context, when: "{{ one != 2 }}", set: {sum: "{{ (vars.sum | default(0)) + one }}"}}
      - {id: seen, type: transform, expr: "{{ vars.sum | default(-1) }}"}
output: ["{{ each }}", "{{ vars.sum | default(-1) }}"]
"""


@pytest.mark.parametrize("name", SAME)
async def test_an_exported_workflow_has_the_same_output(tmp_path: Path, name: str) -> None:
    """Loops, conditions, branches and caught errors give the same values in Python as in a run, whatever things are called."""
    loaded = reader.parse(HEAD + SAME[name], "shop.yaml")
    run = await Rig(tmp_path, HEAD + SAME[name], inputs=loaded.check_inputs({})).start()
    assert run.status == "passed"
    found = export(SAME[name])
    assert exported.output_of(found.text, "test_shop") == run.output


EVERYTHING = ROOT / "tests" / "unit" / "golden" / "everything.yaml"
GOLDEN = EVERYTHING.with_suffix(".txt")


def test_every_action_has_its_statements() -> None:
    """A workflow with all actions and queries gives the file of the golden text (`RUNOPS_GOLDEN=1` writes it anew)."""
    text = pytest_file.export(reader.load(EVERYTHING)).text
    if os.environ.get("RUNOPS_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_each_step_is_carried_over_or_has_a_reason() -> None:
    """There is no action or query that the export does not know: it has statements, or a reason why not."""
    known = [*actions.ACTIONS, *queries.QUERIES]
    for kind in registry.BUILT_IN:
        for model in kind.models:
            label = kind.label(model)
            if issubclass(model, Leaf) and model not in known:
                assert label.split()[-1] in leaves.WHY, label


def of_docs() -> dict[str, Loaded]:
    """The whole workflows of the manual, by a name of each."""
    found: dict[str, Loaded] = {}
    for page in pages.PAGES:
        for number, block in enumerate(pages.blocks(page)):
            if block.language == "yaml" and "version: 1" in block.text:
                try:
                    name = f"{page.stem}_{number}"
                    found[name] = reader.parse(block.text, f"{name}.yaml", callees.Texts({}))
                except WorkflowInvalid:
                    continue  # it shows a mistake, or needs a file of the page
    return found


@pytest.fixture(scope="module")
def every() -> dict[str, pytest_file.Exported]:
    """All examples and workflows of the manual, exported."""
    files = [*(ROOT / "workflows").rglob("*.yaml"), EVERYTHING]
    ours = {"loop": IN_A_LOOP, **SAME, **LEFT_OUT}
    loaded = {each.stem: reader.load(each) for each in files} | of_docs()
    loaded |= {f"ours_{number}": reader.parse(HEAD + text, "shop.yaml") for number, text in enumerate(ours.values())}
    assert len(loaded) > 40
    return {name: pytest_file.export(each) for name, each in loaded.items()}


def ruff(folder: Path, *command: str) -> None:
    """Fail if Ruff, with its default rules, would change a file in the folder."""
    arguments = [*command, "--isolated", "--no-cache", "."]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_exported_files_please_linter_and_formatter(every: dict[str, pytest_file.Exported], tmp_path: Path) -> None:
    """Every example and every workflow of the manual exports to code that Ruff, with its default rules, would not change."""
    for name, each in every.items():
        (tmp_path / f"{name}_{each.name}").write_text(each.text)
    ruff(tmp_path, "check")
    ruff(tmp_path, "format", "--check")


def test_workflows_of_all_kinds_export_to_code(tmp_path: Path) -> None:
    """The workflows that builds made, and those of a hundred small tasks, export to code that compiles and passes the linter."""
    found = [each for folder in ("docs", "tests/miniwob") for each in sorted((ROOT / folder).rglob("*.yaml"))]
    assert len(found) > 120
    for number, each in enumerate(found):
        exported_file = pytest_file.export(reader.load(each))
        compile(exported_file.text, str(each), "exec")
        (tmp_path / f"{number}_{exported_file.name}").write_text(exported_file.text)
    ruff(tmp_path, "check")


def test_what_is_left_out_is_said_at_its_place(every: dict[str, pytest_file.Exported]) -> None:
    """Each thing that is listed as left out of a step is also a comment in the file, with its reason."""
    for name, each in every.items():
        compile(each.text, name, "exec")
        said = " ".join(line.strip().removeprefix("# ") for line in each.text.splitlines())
        for lost in each.lost:
            if lost.place and lost.place != "browser":
                assert lost.what in said.partition('"""')[2].partition('"""')[2], (name, lost)


def test_each_step_that_is_not_carried_over_is_listed() -> None:
    """In every example and every workflow of the manual, each step without statements is in the list of what is left out."""
    known = {*actions.ACTIONS, *queries.QUERIES}
    for loaded in [*(reader.load(each) for each in (ROOT / "workflows").rglob("*.yaml")), *of_docs().values()]:
        listed = {each.place.rpartition("/")[2] for each in pytest_file.export(loaded).lost}
        for file in loaded.files():
            for top in file.workflow.nodes:
                for node in (top, *below(top)):
                    assert not isinstance(node, Leaf) or type(node) in known or node.id in listed, node.id


LEFT_OUT = {
    "a value that is read later": """
nodes:
  - {id: kind, type: cognition, instruction: What is it?, output: string}
output: "{{ kind }}"
""",
    "an action": """
allowed_origins: ["http://shop.test"]
nodes:
  - {id: do, type: agent, goal: Pay., tools: [click], success: [{visible: {css: .paid}}]}
""",
    "SQL": """
nodes:
  - {id: rows, type: transform, sql: "SELECT 1 AS a"}
output: "{{ rows }}"
""",
    "a filter": """
nodes:
  - {id: day, type: transform, expr: "{{ '31.12.2026' | date(parse='%d.%m.%Y') }}"}
output: "{{ day }}"
""",
    "the list of a loop": """
nodes:
  - {id: each, type: iterate, over: "{{ 'a b' | from_csv }}", as: one, nodes: [{id: same, type: transform, expr: "{{ one }}"}]}
output: "{{ each }}"
""",
    "a condition": """
nodes:
  - {id: some, type: transform, expr: 1, when: "{{ ('a' | slug) == 'a' }}"}
output: "{{ some | default(0) }}"
""",
    "a question to a person": """
nodes:
  - {id: ask, type: context, ask: {name: Who?}}
output: "{{ vars.name }}"
""",
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_and_needed_never_passes(name: str) -> None:
    """A test that needs something that was left out is skipped, with a reason that names it."""
    found = export(LEFT_OUT[name])
    assert len(found.lost) > 1
    with pytest.raises(pytest.skip.Exception, match="left out"):
        exported.output_of(found.text, "test_shop")


def test_a_reading_that_nothing_needs_is_only_named() -> None:
    """An observation whose value nothing reads takes no test away."""
    found = export(
        "nodes:\n  - {id: look, type: browser_query, query: observation}\n  - {id: a, type: transform, expr: 1}\noutput: 1\n"
    )
    assert "# Left out: look (it is RunOps' own view of a page)." in found.text
    assert exported.output_of(found.text, "test_shop") == 1


IN_A_LOOP = """
inputs: {names: {type: list, default: [a]}}
nodes:
  - id: each
    type: iterate
    over: "{{ inputs.names }}"
    as: name
    nodes:
      - {id: all, type: browser_query, query: extract, target: {css: "li.{{ name }}"}, fields: {a: "b.{{ name }}"}, next: {text: Next}, key: a}
"""


def test_a_function_in_a_loop_binds_what_it_reads() -> None:
    """The function that reads a page of a list keeps the item of its turn."""
    assert "        def read(name=name, rows=rows):\n            return [\n" in export(IN_A_LOOP).text


USED = """version: 1
inputs: {class: {type: string}, n: {type: integer, default: 2}}
nodes: [{id: total, type: transform, expr: "{{ inputs.n * 2 }}"}]
output: "{{ inputs.class }} {{ total }}"
"""


def test_a_used_file_is_a_function() -> None:
    """A file that several groups use is one function, whatever a variable with its name is called."""
    group = "{type: group, use: sum.yaml, with: {class: a}"
    found = export(
        "nodes:\n"
        f"  - {group}, id: sum}}\n"
        f"  - {{type: group, use: sum.yaml, with: {{class: b, n: 5}}, id: other}}\n"
        'output: ["{{ sum }}", "{{ other }}"]\n',
        **{"sum.yaml": USED},
    )
    assert found.text.count("def sum") == 1
    assert exported.output_of(found.text, "test_shop") == ["a 4", "b 10"]


def test_a_used_file_has_names_and_a_folder_of_its_own(tmp_path: Path) -> None:
    """Its function takes the folder for files if it keeps some; names that Python does not take are written otherwise."""
    used = """version: 1
name: '"Quoted" name'
inputs: {page: {type: string, default: x}}
nodes: [{id: kept, type: transform, expr: "{{ inputs.page }}", save_as: a.txt}]
output: "{{ kept.name }}{{ inputs.page }}"
"""
    found = export(
        'nodes:\n  - {type: group, use: 1 odd name.yaml, id: odd}\noutput: "{{ odd }}"\n',
        **{"1 odd name.yaml": used},
    )
    assert "def _1_odd_name(page: Page, tmp_path: Path, *, page_=" in found.text
    assert exported.output_of(found.text, "test_shop", tmp_path) == "a.txtx"


@pytest.fixture
def runops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(HEAD + "nodes: [{id: a, type: transform, expr: 1}]\noutput: 1\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = app.run(["export", *arguments])
        printed, said = capsys.readouterr()
        return code, printed, said

    return run


def test_the_command_writes_files(runops: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """Of one file it prints the test; with --output it writes files, and never over others unless told; stderr lists what is lost."""
    code, printed, said = runops("--pytest", "one.yaml")
    assert code == 0
    assert "def test_one(page: Page) -> None:" in printed
    assert "one.yaml: 2 things left out" in said
    code, printed, said = runops("--pytest", "one.yaml", "two.yaml", "-o", "tests")
    assert (code, printed) == (0, "")
    assert sorted(each.name for each in (tmp_path / "tests").iterdir()) == ["test_one.py", "test_two.py"]
    (tmp_path / "tests" / "test_one.py").write_text("mine")
    code, _printed, said = runops("--pytest", "one.yaml", "-o", "tests")
    assert code == 2
    assert "error[file-exists]" in said
    assert (tmp_path / "tests" / "test_one.py").read_text() == "mine"
    assert runops("--pytest", "one.yaml", "-o", "tests/test_one.py", "--force")[0] == 0
    assert "def test_one" in (tmp_path / "tests" / "test_one.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["one.yaml"], "add `--pytest`"),
        (["--pytest", "one.yaml", "two.yaml"], "--output FOLDER"),
        (["--pytest", "one.yaml", "two.yaml", "-o", "x.py"], "--output FOLDER"),
        (["--pytest", "none.yaml"], "none.yaml"),
    ],
)
def test_a_mistyped_export_says_what_to_type(
    runops: Callable[..., tuple[int, str, str]], arguments: list[str], says: str
) -> None:
    code, _printed, said = runops(*arguments)
    assert code == 2
    assert says in said
