"""Only regular files are opened, and nothing else is waited for."""

import ast
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.system import regular_files
from tests import modules


def test_a_regular_file_is_read_and_written(tmp_path: Path) -> None:
    """A file is read as bytes, in part or as text with uniform line ends, also through a link, and overwritten."""
    file, link = tmp_path / "file", tmp_path / "link"
    regular_files.write(file, b"one\r\ntwo\n")
    link.symlink_to(file)
    assert regular_files.read(link) == b"one\r\ntwo\n"
    assert regular_files.read(file, 3) == b"one"
    assert regular_files.read_text(file) == "one\ntwo\n"
    regular_files.write(file, b"new")
    with regular_files.opened(file) as read:
        assert (read.name, read.read()) == (str(file), b"new")


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT])
@pytest.mark.parametrize("kind", ["named pipe", "socket", "device"])
def test_nothing_else_blocks(kind: str, flags: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, a socket and a device are refused by their kind for each way to open them, and no handle stays open."""
    monkeypatch.chdir(tmp_path)
    odd = Path("odd")
    if kind == "named pipe":
        os.mkfifo(odd)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(odd))
    else:
        odd.symlink_to("/dev/zero")
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(regular_files.NotRegular, match=f"it is a {kind}, not a regular file") as raised:
        regular_files.descriptor(odd, flags)
    assert regular_files.fix(raised.value) is not None
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_folder_and_a_missing_file_raise_the_usual_errors(tmp_path: Path) -> None:
    """A folder and a missing file raise the usual errors."""
    with pytest.raises(IsADirectoryError):
        regular_files.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        regular_files.read(tmp_path / "missing")


OTHERS = {
    "runtime/system/regular_files.py": "the one place",
    "runtime/system/processes.py": "reads what the kernel says under /proc",
    "runtime/system/locks.py": "the same",
    "runtime/sql/worker.py": "the same",
    "runtime/messages/tokens.py": "reads a file of this package",
    "runtime/language/reference.py": "writes the pages of this repository",
    "director/session/prompt.py": "reads a file of this package",
    "runtime/report/page/__init__.py": "the same",
    "runtime/cli/scaffold.py": "the same",
    "runtime/cli/completing.py": "the same",
    "runtime/cli/machine.py": "reads what the kernel says, and a file of Playwright",
    "runtime/cli/commands/init.py": "reads what pip noted of this package",
    "runtime/display/stream.py": "opens the device that swallows all",
    "runtime/browser/chromium/watcher.py": "the same, and a log that it makes itself",
    "runtime/browser/page/downloads.py": "opens a count of downloads, and no file",
    "runtime/cli/main.py": "opens the device that swallows all",
    "runtime/system/files.py": "makes files of its own, and syncs folders",
    "runtime/testing/store_suite.py": "reads what a test has written",
}
"""The modules that may open a path directly, and why."""


def test_every_file_is_opened_in_one_place() -> None:
    """No other module opens a path directly, because the path may lead to a pipe."""
    found = modules.places(opens)
    assert {file: seen for file, seen in found.items() if file not in OTHERS} == {}
    assert found.keys() >= OTHERS.keys()


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        "io.open(path)",
        "os.open(path, os.O_RDONLY)",
        "path.open('rb')",
        "path.open(mode='w')",
        "path.open()",
        "path.read_text()",
        "to_thread(path.read_bytes)",
        "path.write_text(text)",
        "path.write_bytes(data)",
        "fileinput.input(path)",
        "dotenv.dotenv_values(path)",
        "np.loadtxt and shutil.copyfile(path, other)",
    ],
)
def test_every_way_to_open_a_path_is_known(line: str) -> None:
    """The check detects each of these ways to open a path."""
    assert list(opens(ast.parse(line)))


def opens(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The places of a module that open a path."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                yield node.lineno, "open"
            case ast.Attribute(attr="read_text" | "read_bytes" | "write_text" | "write_bytes" as name) if not (
                isinstance(node.value, ast.Name) and node.value.id == "regular_files"
            ):
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os" | "io"), attr="open")):
                yield node.lineno, "open"
            case ast.Call(func=ast.Attribute(attr="open"), args=[], keywords=keywords) if not keywords or any(
                each.arg == "mode" for each in keywords
            ):
                yield node.lineno, "open"
            case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(value=str(mode)), *_]) if set(
                mode
            ) <= set("rwaxbt+"):
                yield node.lineno, "open"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="fileinput" | "shutil"), attr=name)) if name in (
                "input",
                "copyfile",
                "copy",
                "copy2",
                "move",
            ):
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr="dotenv_values"), args=[_, *_]):
                yield node.lineno, "dotenv_values"
            case _:
                pass
