"""Missing and damaged files beside the log: each has a defined outcome and a named place, and other runs are unaffected."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nodes.errors import LogError
from runtime.browser import own
from runtime.browser.chromium import launch
from runtime.engine import checkpoints
from runtime.log import entries
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from tests.orders import ACTIONS, SHOWS, Order, as_was
from tests.rig import Killed


async def dead(home: Path) -> Order:
    """An order that died after the site had performed its second action."""
    order = Order(home)

    async def die(target: str, _page: object) -> None:
        order.site.texts[SHOWS[target]] = "yes"
        if target == "css=pay":
            raise Killed

    order.site.on_click = die
    with pytest.raises(Killed):
        await order.begin()
    order.die()
    return Order(home, order)


def files_of(order: Order) -> dict[Path, bytes]:
    """The files of the order alone, with their contents."""
    found = [each for each in order.home.rglob(f"*{order.id}*/**/*") if each.is_file()]
    return {each: each.read_bytes() for each in [order.store.conversation_file(order.id), *found]}


def flip(file: Path) -> None:
    """Changes one byte in the middle."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x01
    file.write_bytes(data)


def unreadable(file: Path) -> None:
    """Replaces the file by a folder, which no user can read as a file."""
    file.unlink()
    file.mkdir()


def checkpoint_of(order: Order) -> Path:
    """The file of its last checkpoint."""
    checkpoint = order.history.checkpoint
    assert checkpoint is not None
    return order.store.private(order.id) / checkpoint.file


def blob_of(order: Order) -> Path:
    """The file of the large value that later steps need."""
    result = order.history.attempts["words"][-1].result
    assert result is not None
    assert result.blob is not None
    return order.store.blob_file(result.blob.sha256)


@pytest.mark.parametrize(
    ("hurt", "message"),
    [
        (Path.unlink, "a value of the run is missing"),
        (flip, "a value of the run was changed"),
        (unreadable, "a value of the run cannot be read"),
    ],
    ids=["missing", "changed", "unreadable"],
)
async def test_a_damaged_large_value_stops_the_run(tmp_path: Path, hurt: Callable[[Path], None], message: str) -> None:
    """The run stops with the name of the file before any action, and continues once the file is restored."""
    order = await dead(tmp_path)
    file = blob_of(order)
    before = file.read_bytes()
    hurt(file)
    ended = await order.resume()
    assert ended.error is not None
    assert (ended.exit, ended.error["code"], order.site.actions) == (2, "blob-missing", ACTIONS)
    assert ended.error["message"].startswith(message)
    assert str(file) in ended.error["message"]
    order.die()
    if file.is_dir():
        file.rmdir()
    file.write_bytes(before)
    assert await order.pay() == "passed"
    assert (as_was(order), order.site.actions) == ("passed", ACTIONS)


def no_folder(file: Path) -> None:
    """Removes the private folder of the run."""
    shutil.rmtree(file.parent)


@pytest.mark.parametrize(
    ("hurt", "reason"),
    [
        (Path.unlink, "is missing"),
        (flip, "is not what was written"),
        (unreadable, "cannot be read"),
        (no_folder, "is missing"),
        (lambda file: file.write_bytes(b""), "is not what was written"),
    ],
    ids=["missing", "changed", "unreadable", "no-folder", "empty"],
)
async def test_without_its_checkpoint_a_run_restarts_from_its_beginning(
    tmp_path: Path, hurt: Callable[[Path], None], reason: str
) -> None:
    """With a missing or damaged checkpoint the run restarts in a blank browser, says so, and repeats no action."""
    order = await dead(tmp_path)
    file = checkpoint_of(order)
    hurt(file)
    assert await order.pay() == "passed"
    assert (as_was(order), order.site.actions) == ("passed", ACTIONS)
    messages = [str(getattr(each, "text", "")) for each in order.told]
    assert [each for each in messages if f"the last checkpoint's file {reason}" in each and str(file) in each]


async def test_a_checkpoint_without_a_hash_is_read(tmp_path: Path) -> None:
    """A log whose checkpoints have no hash can be resumed."""
    checkpoint = entries.Checkpoint(file="checkpoint-1.json", urls=[], after=1)
    store, run = file_store.Files(tmp_path), log_store.new_id()
    with pytest.raises(checkpoints.Unusable, match="is missing"):
        checkpoints.content(checkpoint, store, run)
    (store.private(run) / checkpoint.file).write_bytes(b"anything")
    assert checkpoints.content(checkpoint, store, run) == b"anything"


def flip_log(order: Order) -> None:
    """Changes a byte in the middle of the log."""
    flip(order.store.conversation_file(order.id))


@pytest.mark.parametrize(
    "hurt",
    [
        flip_log,
        lambda order: flip(checkpoint_of(order)),
        lambda order: (order.store.private(order.id) / own.STATE).write_text("{"),
        lambda order: no_folder(checkpoint_of(order)),
    ],
    ids=["log", "checkpoint", "browser", "private"],
)
async def test_other_runs_are_unaffected(tmp_path: Path, hurt: Callable[[Order], None]) -> None:
    """Resuming or refusing a damaged run changes no byte of another run, which continues normally."""
    order, beside = await dead(tmp_path), await dead(tmp_path)
    before = files_of(beside)
    assert len(before) > 3
    hurt(order)
    try:
        await order.resume()
    except LogError as error:
        assert error.code == "log-damaged"  # noqa: PT017 - only one of them is refused
    order.die()
    assert files_of(beside) == before
    assert beside.id in order.store.ids()
    assert await beside.pay() == "passed"
    assert (as_was(beside), beside.site.actions) == ("passed", ACTIONS)


def alive(*folders: Path) -> launch.Alive:
    """A Chromium that ended long ago."""
    return launch.Alive("", [str(each) for each in folders], 1, "then", 1, "then", 1, "", "another boot")


async def test_a_damaged_note_removes_only_browser_folders(tmp_path: Path) -> None:
    """Only folders created for a browser are removed, whatever its note says."""
    mine, profile = tmp_path / "mine", tmp_path / "profile-x"
    for each in (mine, profile):
        (each / "kept").mkdir(parents=True)
    alive(mine, profile).remove_folders()
    assert (mine / "kept").exists()
    assert not profile.exists()
