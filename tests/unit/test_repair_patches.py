"""Patches of a workflow's text, which change nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from director.repair import patch_files, patches
from nodes.errors import UsageError
from nodes.targets import Target
from runtime.language import reader

HEAD = "version: 1  # one\nname: Pay\ninputs: {order: {type: string, default: a}}\nnodes:\n  # first\n"
FLOW = HEAD + (
    '  - {id: open, type: browser_action, action: goto, url: "http://shop.test/"}\n'
    '  - {id: pay, type: browser_action, action: click, target: {role: button, name: "Pay", within: {role: row, has_text: "{{ inputs.order }}"}}}  # the action\n'
    "  # last\n"
)
BLOCK = HEAD + (
    "  - id: open\n    type: browser_action\n    action: goto\n    url: http://shop.test/\n"
    "  - id: pay\n    type: browser_action   # a click\n    action: click\n"
    '    target:\n      role: button\n      name: Pay\n      within: {role: row, has_text: "{{ inputs.order }}"}\n'
    "    # not twice\n    timeout: 3\n"
)
WITHIN = Target(role="row", has_text="{{ inputs.order }}")
PAY = Target(role="button", name="Pay", within=WITHIN)
TARGETS = [
    Target(role="button", name="Settle", within=WITHIN),
    Target(role="link", name="Pay: now #1", within=WITHIN),
    Target(test_id="pay", within=Target(role="listitem", has_text="{{ inputs.order }}")),
    Target(css='button[name="pay"]'),
    Target(label="on"),
]


@pytest.mark.parametrize("text", [FLOW, BLOCK])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_target_is_replaced_and_nothing_else(text: str, target: Target, newline: str) -> None:
    """The file has the new target, and every other line is unchanged, comments and line ends too."""
    before = text.replace("\n", newline)
    loaded = reader.parse(before, "w.yaml")
    after = patches.with_target(loaded, "pay", ("target",), PAY, target)
    node = reader.parse(after, "w.yaml").index["pay"][0]
    assert node.model_dump(exclude={"target"}) == loaded.index["pay"][0].model_dump(exclude={"target"})
    assert vars(node)["target"] == target
    start = before.index("target:")
    assert after[:start] == before[:start]
    assert after.splitlines()[-1] == before.splitlines()[-1]
    assert after.count("#") - str(target).count("#") == before.count("#")
    assert ("\r\n" in after) == (newline == "\r\n")
    assert "\n" not in after.replace("\r\n", "") or newline == "\n"


@pytest.mark.parametrize("column", ["Amount", "{header: Amount, type: number}"])
def test_a_header_is_replaced_and_nothing_else(column: str) -> None:
    """However a column is written, its header is replaced and its type stays."""
    before = f"{HEAD}  - {{id: all, type: browser_query, query: table, target: {{css: table}}, columns: {{a: {column}}}}}  # x\n"
    after = patches.with_column(reader.parse(before, "w.yaml"), "all", "a", "Total, net")
    assert after == before.replace("Amount", '"Total, net"')
    assert vars(reader.parse(after, "w.yaml").index["all"][0])["columns"]["a"].header == "Total, net"


@given(
    st.text(min_size=1, max_size=20).filter(
        lambda text: text.strip() and text.isprintable() and "{{" not in text and "{%" not in text and "{#" not in text
    )
)
def test_any_name_of_an_element_is_read_back_unchanged(name: str) -> None:
    """A name that looks like YAML or a number is read back as a name."""
    loaded = reader.parse(BLOCK, "w.yaml")
    after = patches.with_target(loaded, "pay", ("target",), PAY, Target(role="button", name=name, within=WITHIN))
    node = reader.parse(after, "w.yaml").index["pay"][0]
    assert vars(node)["target"].name == name


@pytest.mark.parametrize("text", [FLOW, BLOCK, BLOCK.replace("    timeout: 3\n", "")])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_more_time_and_a_step_before(text: str, newline: str) -> None:
    """A timeout is replaced or added; a node is inserted before the one that needs it, in the same block."""
    loaded = reader.parse(text.replace("\n", newline), "w.yaml")
    slower = reader.parse(patches.with_timeout(loaded, "pay", 25.0), "w.yaml")
    assert vars(slower.index["pay"][0])["timeout"] == 25.0
    fields = {"id": "close", "type": "browser_action", "action": "click", "target": {"role": "button", "name": "×"}}
    longer = reader.parse(patches.with_node_before(loaded, "pay", fields), "w.yaml")
    assert list(longer.index) == ["open", "close", "pay"]
    assert longer.text.count("\r\n") == longer.text.count("\n") * (newline == "\r\n")


@pytest.mark.parametrize("mark", ["", patch_files.MARK])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_apply_writes_what_git_apply_writes(tmp_path: Path, mark: str, newline: str) -> None:
    """`--apply` writes the same file as `git apply`, and leaves a file alone that has changed meanwhile."""
    ours = tmp_path / "ours"
    ours.mkdir()
    file = ours / "w.yaml"
    file.write_bytes((mark + BLOCK.replace("\n", newline)).encode())
    file.chmod(0o640)
    loaded = reader.load(file)
    patch = patch_files.Patch.of(file, patches.with_timeout(loaded, "pay", 9.0))
    git = shutil.copytree(ours, tmp_path / "git")
    (git / "p.patch").write_bytes(patch.unified("w.yaml").encode())
    subprocess.run(
        ["git", "apply", "--unsafe-paths", "p.patch"],
        cwd=git,
        check=True,
        env={"GIT_CEILING_DIRECTORIES": str(git.parent), "PATH": "/usr/bin:/bin"},
    )
    patch.check()
    patch.apply()
    assert file.read_bytes() == (git / "w.yaml").read_bytes()
    assert file.read_bytes().decode().startswith(f"{mark}version")
    assert file.stat().st_mode & 0o777 == 0o640
    patch_files.apply([patch])
    assert file.read_bytes() == (git / "w.yaml").read_bytes(), "what stands there already is applied"
    file.write_bytes(file.read_bytes() + b"# mine")
    with pytest.raises(UsageError) as refused:
        patch_files.apply([patch])
    assert refused.value.code == "file-changed"


def test_a_read_only_file_stays_and_a_link_is_followed(tmp_path: Path) -> None:
    """A read-only file is not written, not even by root; a link stays a link, and its target is written."""
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_text(FLOW)
    real.chmod(0o444)
    link.symlink_to(real)
    other = tmp_path / "other.yaml"
    other.write_text(FLOW)
    change = patch_files.Patch.of(link, BLOCK)
    with pytest.raises(UsageError) as refused:
        patch_files.apply([patch_files.Patch.of(other, BLOCK), change])
    assert other.read_text() == FLOW, "all of it, or nothing"
    assert (refused.value.code, str(link) in refused.value.message, real.read_text()) == (
        "file-not-written",
        True,
        FLOW,
    )
    real.chmod(0o640)
    patch_files.apply([change])
    assert (link.is_symlink(), real.read_text(), real.stat().st_mode & 0o777) == (True, BLOCK, 0o640)
