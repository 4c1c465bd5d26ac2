"""Workflow files that use others: how they are found, and mistakes in each file."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.language import callees, reader
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid

PART = """version: 1
inputs:
  user: {type: string}
  times: {type: integer, default: 1}
  note: {type: string, default: null}
secrets: [PASSWORD]
nodes:
  - {id: make, type: transform, expr: "{{ inputs.user }}"}
output: "{{ make }}"
"""
GOOD = "with: {user: me}, secrets: [PASSWORD]"


def use(more: str = GOOD, file: str = "parts/part.yaml", name: str = "part") -> str:
    """A node that uses a file."""
    return f"{{id: {name}, type: group, use: {file}{', ' if more else ''}{more}}}"


def flow(*nodes: str, more: str = "secrets: [PASSWORD, OTHER]") -> str:
    """A workflow file."""
    return f"version: 1\n{more}\nnodes:\n" + "".join(f"  - {node}\n" for node in nodes)


def mistakes(text: str, **texts: str) -> list[Diagnostic]:
    """The mistakes in ``shop/flow.yaml`` with this text, and in the files that it uses."""
    files = callees.Texts({f"parts/{name}.yaml": each for name, each in {"part": PART, **texts}.items()}, "shop")
    try:
        reader.parse(text, "shop/flow.yaml", files)
    except WorkflowInvalid as error:
        return list(error.diagnostics)
    return []


def places(found: list[Diagnostic]) -> list[tuple[str, str, int, int]]:
    """Code and place of each."""
    return [(each.code, each.file, each.mark.line, each.mark.column) for each in found if each.mark is not None]


def test_a_call_that_fits_is_valid() -> None:
    """A call with all inputs and secrets is valid, references and a default null included. Both files may have the same ids."""
    given = "with: {user: '{{ make }}', times: 2, note: null}, secrets: [PASSWORD]"
    assert mistakes(flow("{id: make, type: transform, expr: x}", use(given))) == []


@pytest.mark.parametrize(
    ("more", "code", "marked", "says"),
    [
        ("with: {usr: it, user: me}, secrets: [PASSWORD]", "unknown-input", "usr", "did you mean `user`?"),
        ("secrets: [PASSWORD]", "missing-input", "parts/part.yaml", "give it in `with:`"),
        ("with: {times: 2}, secrets: [PASSWORD]", "missing-input", "{times: 2}", "give it in `with:`"),
        ("with: {user: 5}, secrets: [PASSWORD]", "wrong-type", "5", "not converted"),
        ("with: {user: me, times: '2'}, secrets: [PASSWORD]", "wrong-type", "'2'", "not converted"),
        (
            "with: {user: me}, secrets: [PASSWORD, OTHER]",
            "unknown-secret",
            "OTHER",
            "only the secrets that it declares",
        ),
        ("with: {user: me}", "missing-secret", "parts/part.yaml", "write `secrets: [PASSWORD]`"),
        ("with: {user: me}, secrets: []", "missing-secret", "[]", "write `secrets: [PASSWORD]`"),
        ("with: {user: '{{ nobody }}'}, secrets: [PASSWORD]", "unknown-reference", "nobody", "in scope"),
        ("with: {user: '{{ secrets.PASSWORD }}'}, secrets: [PASSWORD]", "secret-not-allowed", "secrets", "credentials"),
    ],
)
def test_a_mistake_in_a_call_is_reported_at_the_call(more: str, code: str, marked: str, says: str) -> None:
    """Unknown, missing or wrongly typed inputs and secrets are reported in the calling file, with a fix."""
    (found,) = mistakes(flow(use(more)))
    assert found.mark is not None
    place = found.source[found.mark.column - 1 : found.mark.end - 1]
    assert (found.code, found.file, found.mark.line, place) == (code, "shop/flow.yaml", 4, marked)
    assert says in " ".join(found.help)


def test_a_secret_must_be_the_callers_too() -> None:
    """A file can pass on only secrets that it declares itself."""
    found = mistakes(flow(use(), more="secrets: []"))
    assert places(found) == [("unknown-secret", "shop/flow.yaml", 4, 79)]
    assert found[0].help == ("add it to the `secrets:` of this file",)


def test_mistakes_of_all_files_are_reported_together() -> None:
    """Mistakes of the first file come before those of the files it uses, and each file is reported once."""
    bad = PART.replace("inputs.user", "inputs.usr").replace("expr:", "exr:")
    text = flow(use(), use(name="again"), "{id: last, type: transform, expr: '{{ lst }}'}")
    part = "shop/parts/part.yaml"
    assert places(mistakes(text, part=bad)) == [
        ("unknown-reference", "shop/flow.yaml", 6, 43),
        ("unknown-field", part, 8, 33),
        ("unknown-input", part, 8, 49),
    ]
    assert places(mistakes(flow(use()), part="- 1\n")) == [("not-a-workflow", part, 1, 1)]


def test_a_file_that_is_used_twice_is_loaded_once() -> None:
    """The file is read once, and its uses share one object."""
    loaded = reader.parse(flow(use(), use(name="again")), "flow.yaml", callees.Texts({"parts/part.yaml": PART}))
    assert loaded.callees["part"] is loaded.callees["again"]
    assert [str(each.path) for each in loaded.files()] == ["flow.yaml", "parts/part.yaml"]
    assert loaded.texts() == {"parts/part.yaml": PART}


def test_a_cycle_of_files_is_refused() -> None:
    """The mistake names the whole cycle, at the `use` that closes it."""
    first = flow(use("", "second.yaml"), more="name: first")
    second = flow(use("", "../flow.yaml"), more="name: second")
    found = mistakes(flow(use("", "parts/first.yaml")), first=first, second=second)
    assert places(found) == [("use-cycle", "shop/parts/second.yaml", 4, 34)]
    circle = "shop/flow.yaml → shop/parts/first.yaml → shop/parts/second.yaml → shop/flow.yaml"
    assert found[0].message == f"the file would use itself: {circle}"


def test_the_depth_of_used_files_is_limited() -> None:
    """A chain above the limit is refused, even if its last files are already loaded for another use."""
    last = flow("{id: a, type: transform, expr: a}", more="name: n")
    chain = {f"f{n}": flow(use("", f"f{n + 1}.yaml"), more="name: n") for n in range(1, callees.DEEPEST)}
    chain[f"f{callees.DEEPEST}"] = last
    assert mistakes(flow(use("", "parts/f1.yaml")), **chain) == []
    chain["f0"] = flow(use("", "f1.yaml"), more="name: n")
    for uses in ([use("", "parts/f0.yaml")], [use("", "parts/f1.yaml", "b"), use("", "parts/f0.yaml")]):
        assert "use-too-deep" in [each.code for each in mistakes(flow(*uses), **chain)]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("use: parts/part.yaml, nodes: [{id: a, type: transform, expr: a}]", "has both"),
        ("description: nothing", "needs `nodes` or `use`"),
        ("nodes: [{id: a, type: transform, expr: a}], with: {user: me}", "`with` is for the file in `use`"),
        ("nodes: [{id: a, type: transform, expr: a}], secrets: [OTHER]", "`secrets` is for the file in `use`"),
    ],
)
def test_a_group_has_nodes_or_a_file(body: str, says: str) -> None:
    """A group has either `nodes` or `use`; `with` and `secrets` need `use`."""
    found = mistakes(flow(f"{{id: part, type: group, {body}}}"))
    assert any(says in each.message for each in found), found


def test_the_path_takes_no_reference() -> None:
    """The path of a used file must be known before the run."""
    assert [each.code for each in mistakes(flow(use(GOOD, "'{{ vars.part }}'")))] == ["no-reference-here"]


def test_a_file_works_in_its_callers_browser() -> None:
    """A `browser` in a used file is refused unless it equals that of its caller."""
    part = PART + "browser: {viewport: {width: 800, height: 600}}\n"
    found = mistakes(flow(use()), part=part)
    assert [(each.code, each.file) for each in found] == [("browser-differs", "shop/parts/part.yaml")]
    same = "secrets: [PASSWORD]\nbrowser: {viewport: {width: 800, height: 600}}"
    assert mistakes(flow(use(), more=same), part=part) == []


def test_a_file_dismisses_what_its_caller_dismisses() -> None:
    """A `dismiss` in a used file is refused unless it equals that of its caller."""
    part = PART + "dismiss: [{target: {text: Cookies}}]\n"
    found = mistakes(flow(use()), part=part)
    assert [(each.code, each.file) for each in found] == [("dismiss-differs", "shop/parts/part.yaml")]
    same = "secrets: [PASSWORD]\ndismiss: [{target: {text: Cookies}}]"
    assert mistakes(flow(use(), more=same), part=part) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a workflow in one folder, a part in another, and a file outside."""
    for folder in ("shop/.runops", "shop/flows", "shop/parts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "shop/parts/part.yaml").write_text(PART)
    (tmp_path / "outside.yaml").write_text(PART)
    (tmp_path / "shop/parts/link.yaml").symlink_to(tmp_path / "outside.yaml")
    (tmp_path / "shop/parts/inner.yaml").symlink_to(tmp_path / "shop/parts/part.yaml")
    return tmp_path / "shop"


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        ("../parts/part.yaml", None, ""),
        ("../parts/inner.yaml", None, ""),
        ("../../outside.yaml", "use-outside", "outside the project"),
        ("../parts/link.yaml", "use-outside", "outside the project"),
        ("/etc/hosts", "use-outside", "absolute"),
        ("~/part.yaml", "use-outside", "absolute"),
        ("../parts/prat.yaml", "use-not-found", "there is no file"),
        ("../.env", "use-not-yaml", "is no YAML file"),
        ("../parts/env.yaml", "use-not-yaml", "is no YAML file"),
        ("../parts", "use-not-found", "is a folder"),
        ("../parts/part.yaml/x", "use-not-read", "cannot be read"),
    ],
)
def test_a_file_is_used_only_from_inside_the_project(project: Path, path: str, code: str | None, says: str) -> None:
    """A path is relative to its file. Absolute paths, and paths and links out of the project, are refused.

    Mistakes are shown with their line, so only YAML files are read, whatever the name of a link.
    """
    (project / ".env").write_text("PASSWORD=hunter22\n")
    (project / "parts" / "env.yaml").symlink_to(project / ".env")
    file = project / "flows" / "flow.yaml"
    file.write_text(flow(use(GOOD, path)))
    if code is None:
        assert reader.load(file).callees["part"].text == PART
        return
    with pytest.raises(WorkflowInvalid) as caught:
        reader.load(file)
    assert "hunter22" not in caught.value.render(colour=False)
    (found,) = caught.value.diagnostics
    assert (found.code, found.mark and (found.mark.line, found.mark.column)) == (code, (4, 34))
    assert says in found.message
    if path.endswith("prat.yaml"):
        assert found.help[0] == "did you mean `part.yaml`?"


def test_a_step_is_found_in_its_own_file() -> None:
    """A step path is resolved through used files; a block of a container is not confused with a group of the same name."""
    inner = flow("{id: pay, type: transform, expr: x}", more="on_redo: redo")
    part = flow(use("", "inner.yaml", "try"), "{id: pay, type: transform, expr: y}", more="name: part")
    handle = "{id: h, type: group, nodes: [{id: pay, type: transform, expr: z}]}"
    texts = {"parts/part.yaml": part, "parts/inner.yaml": inner}
    loaded = reader.parse(flow(use("", name="part"), handle, use("", name="try")), "flow.yaml", callees.Texts(texts))
    found = {path: loaded.find(path) for path in ("part/try/pay", "part/pay", "h/try/pay", "h/pay", "part/nobody")}
    assert [each and (each.file.path.name, each.user, each.place) for each in found.values()] == [
        ("inner.yaml", "part/try", "parts/inner.yaml:4:5"),
        ("part.yaml", "part", "parts/part.yaml:5:5"),
        ("flow.yaml", "", "flow.yaml:5:34"),
        ("flow.yaml", "", "flow.yaml:5:34"),
        None,
    ]
    innermost = found["part/try/pay"]
    assert innermost is not None
    assert [getattr(each, "id", "file") for each in innermost.around] == ["file", "part", "file", "try", "file"]


def test_without_a_list_the_addresses_of_used_files_count_too() -> None:
    """Without `allowed_origins`, addresses in used files and those passed to them count. With it, only the list counts."""
    inner = flow("{id: open, type: browser_action, action: goto, url: 'https://bank.test/x'}", more="name: inner")
    part = flow(use("", "inner.yaml"), more="inputs: {at: {type: string}}")
    texts = callees.Texts({"part.yaml": part, "inner.yaml": inner})
    caller = use("with: {at: 'https://shop.test/y'}", "part.yaml")
    assert reader.parse(flow(caller), "flow.yaml", texts).origins({}) == ["https://shop.test", "https://bank.test"]
    own = flow(caller, more="allowed_origins: ['https://shop.test']")
    assert reader.parse(own, "flow.yaml", texts).origins({}) == ["https://shop.test"]
