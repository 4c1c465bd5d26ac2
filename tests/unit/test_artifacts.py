"""Files of a run: their names, owners, readable paths, and log entries."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from nodes.errors import AuthorError, LogError
from runtime.log import entries, history
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.log.writer import LogWriter
from runtime.secrets import masking
from runtime.services import artifacts


class Keeper:
    """The log and folder of a run, with steps that store files."""

    def __init__(self, project: Path, masker: masking.Masker | None = None) -> None:
        (project / "pyproject.toml").touch()
        (project / "flows").mkdir()
        self.folder = project / "flows"
        self.store = file_store.Files(project / ".runops")
        self.writer = LogWriter(
            self.store.create(log_store.new_id()), history.History(), masker or masking.Masker({}), self.store
        )

    def step(self, path: str) -> artifacts.Artifacts:
        """The artifacts of an attempt of the step at ``path``."""
        return artifacts.Artifacts(self.writer, self.folder, path)

    async def done(self, path: str, *names: str, status: entries.Status = "ok") -> list[str]:
        """The step stores a file under each name and ends. Returns the names that the files got."""
        one = self.step(path)
        for name in names:
            await one.keep(name, f"{path} {name}".encode())
        call = entries.Call(path=path, node="transform", attempt=1, effect="read", fingerprint="")
        self.writer.result(self.writer.call(call), status, files=one.kept or None)
        return [str(each["name"]) for each in one.kept]


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    """A run in its own project."""
    return Keeper(tmp_path)


async def test_a_file_is_stored_unchanged(keeper: Keeper, tmp_path: Path) -> None:
    """Bytes and files are stored privately with size, hash and type; a run without files has no folder."""
    assert not keeper.writer.artifacts.exists()
    assert len(keeper.writer.files()) == 1
    large = tmp_path / "large.bin"
    large.write_bytes(b"0123456789" * 300_000)
    one = keeper.step("a")
    for name, data, kind in (
        ("Report.CSV", b"a,b\n", "text/csv"),
        ("empty", b"", "application/octet-stream"),
        ("copy.pdf", large, "application/pdf"),
    ):
        kept = await one.keep(name, data)
        content = data if isinstance(data, bytes) else data.read_bytes()
        file = Path(kept["path"])
        assert file == keeper.store.home / "files" / keeper.writer.conversation.id / name
        assert file.read_bytes() == content
        assert kept["name"] == name
        assert kept["type"] == kind
        assert (kept["size"], kept["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file in keeper.writer.files()
    assert stat.S_IMODE(keeper.writer.artifacts.stat().st_mode) == 0o700


async def test_names_belong_to_steps(keeper: Keeper) -> None:
    """A name used by another step gets a number, ignoring case. A repeated step keeps its names, also after a failure or crash."""
    assert await keeper.done("a", "x.csv") == ["x.csv"]
    assert await keeper.done("b", "x.csv") == ["x-2.csv"]
    assert await keeper.done("each[2]/c", "X.csv", "x.csv") == ["X-3.csv", "x-4.csv"]
    assert await keeper.done("b", "x.csv", status="error") == ["x-2.csv"]
    assert await keeper.done("a", "x.csv") == ["x.csv"]
    # After a crash between file and result no step owns the file.
    await keeper.step("d").keep("y", b"torn away")
    assert await keeper.done("e", "y") == ["y"]
    assert (keeper.writer.artifacts / "y").read_bytes() == b"e y"
    assert [each["name"] for each in keeper.writer.history.files] == ["x.csv", "x-2.csv", "X-3.csv", "x-4.csv", "y"]


@pytest.mark.parametrize(
    ("wanted", "safe"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("a\\b:c*d.txt", "a_b_c_d.txt"),
        (".bashrc", "bashrc"),
        ("tail. .", "tail"),
        ("", "file"),
        ("...", "file"),
        ("\0evil\u202egpj.exe\n", "_evil_gpj.exe_"),
        ("Ü" * 200 + ".pdf", "Ü" * 58 + ".pdf"),
        ("x." + "y" * 300, "x." + "y" * 118),
    ],
)
def test_names_are_made_safe(wanted: str, safe: str) -> None:
    """A name cannot leave the folder, hide, deceive or be too long, and keeps its extension."""
    assert artifacts.safe_name(wanted) == safe


async def test_a_secret_is_in_no_name(tmp_path: Path) -> None:
    """A secret in a name is masked before the file is created."""
    keeper = Keeper(tmp_path, masking.Masker({"KEY": "hunter22"}))
    assert await keeper.done("a", "for hunter22.txt") == ["for [hidden].txt"]


async def test_readable_files_of_a_workflow(keeper: Keeper, tmp_path: Path) -> None:
    """A workflow reads files of its project, relative or absolute, and its run's own files; links out of it are refused."""
    beside = keeper.folder / "in.csv"
    above = tmp_path / "data.csv"
    for file in (beside, above):
        file.write_text("x")
    one = keeper.step("a")
    own = await one.keep("mine.txt", b"")
    for path, found in (("in.csv", beside), ("../data.csv", above), (str(above), above), (own["path"], own["path"])):
        assert one.find(path).samefile(found)
    private = keeper.store.private(keeper.writer.conversation.id) / "state.json"
    private.touch()
    (keeper.folder / "link").symlink_to(private)
    (keeper.folder / "out").symlink_to("/etc")
    for path in ("/etc/hosts", "../../x", "link", "out/hosts", str(private), str(keeper.writer.files()[0])):
        with pytest.raises(AuthorError) as refused:
            one.find(path)
        assert refused.value.code == "file-outside", path
        assert refused.value.fix


async def test_a_pipe_is_never_sent(keeper: Keeper, tmp_path: Path) -> None:
    """A named pipe is refused, since Playwright would wait for its other end."""
    os.mkfifo(tmp_path / "flows" / "photo.png")
    with pytest.raises(AuthorError, match=r"photo\.png cannot be read: it is a named pipe") as refused:
        keeper.step("a").find("photo.png")
    assert refused.value.code == "file-not-read"
    assert refused.value.fix is not None


async def test_a_hidden_file_is_never_sent(keeper: Keeper, tmp_path: Path) -> None:
    """Files and folders with a leading dot contain secrets and repositories; each path to them is refused."""
    for folder in (tmp_path / ".git", keeper.folder / ".ssh", tmp_path / ".runops-old"):
        folder.mkdir()
        (folder / "config").write_text("token")
    for env in (tmp_path / ".env", keeper.folder / ".env", keeper.folder / ".env.local"):
        env.write_text("SHOP_PASSWORD=hunter22")
    (keeper.folder / "plain.txt").symlink_to(keeper.folder / ".env")
    (keeper.folder / ".dotted").symlink_to(tmp_path / "pyproject.toml")
    paths = [".env", "../.env", str(tmp_path / ".env"), ".env.local", "./x/../.env", "plain.txt", ".dotted"]
    for path in (*paths, ".ssh/config", "../.git/config", "../.runops-old/config"):
        with pytest.raises(AuthorError) as refused:
            keeper.step("a").find(path)
        assert refused.value.code == "file-hidden", path
        assert "hunter22" not in str(refused.value.as_json())


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        ("im.csv", "did you mean `in.csv`?"),
        ("sub/../im.csv", "did you mean `sub/../in.csv`?"),
        ("other.pdf", "paths are relative to the folder of the workflow file"),
        ("nowhere/in.csv", "paths are relative to the folder of the workflow file"),
        (".", "name the file in it"),
        ("a\0b", "paths are relative to the folder of the workflow file"),
        ("n" * 300, "paths are relative to the folder of the workflow file"),
    ],
)
def test_a_missing_file(keeper: Keeper, path: str, fix: str) -> None:
    """A missing path is an error of the author, with the nearest name if there is one."""
    (keeper.folder / "in.csv").touch()
    (keeper.folder / "sub").mkdir()
    with pytest.raises(AuthorError) as refused:
        keeper.step("a").find(path)
    assert refused.value.code == "file-not-found"
    assert (refused.value.fix or "").startswith(fix)


async def test_a_full_disk_stops_the_run(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be written is an error for the operator, and leaves no partial file."""

    def full(*_anything: object) -> None:
        raise OSError(28, "No space left on device")

    await keeper.step("a").keep("w", b"data")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(LogError) as stopped:
        await keeper.step("a").keep("x", b"data")
    assert stopped.value.code == "file-write-failed"
    assert "No space left" in stopped.value.message
    assert [each.name for each in keeper.writer.artifacts.iterdir()] == ["w"]
