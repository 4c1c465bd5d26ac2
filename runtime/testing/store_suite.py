"""Conformance tests for stores. The author of a store subclasses these classes, and pytest runs all their tests."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from nodes.errors import LogError, Replaced, RunHeld, UsageError
from runtime.log import entries as log_entries
from runtime.log.store import owners as store_owners
from runtime.log.store import store as log_store

MANY = 6


def note(number: int = 0) -> log_entries.Note:
    return log_entries.Note(name="restored", data={"mode": "attached", "number": number})


async def claimed(conversation: log_store.Conversation) -> log_entries.AnyEntry:
    """Write the entry that names the owner, as every owner does first."""
    said = conversation.append(
        log_entries.Note(name="claimed", data={**store_owners.me(), "epoch": conversation.epoch})
    )
    await conversation.barrier()
    return said


@contextlib.asynccontextmanager
async def begun(store: log_store.Store) -> AsyncGenerator[tuple[str, log_store.Conversation]]:
    """Yield the id of a new conversation, and the conversation, owned for the block."""
    owned = await store.create(log_store.new_id())
    async with contextlib.aclosing(owned):
        yield owned.id, owned


def call(path: str = "pay") -> log_entries.Call:
    """Return a call, which gets its id from the log."""
    return log_entries.Call(
        path=path, node="transform", attempt=1, effect="effect", args={"a": [1, None]}, fingerprint="f"
    )


class StoreConformance:
    """Tests of one kind of store. A subclass supplies an empty store, and an owner in another process."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> log_store.Store:
        """Return an empty store; files may be in ``tmp_path``."""
        raise NotImplementedError

    def seen_by_another(self, store: log_store.Store) -> log_store.Store:
        """Return the same store, as another process sees it; by default the same object."""
        return store

    def held_elsewhere(self, store: log_store.Store, run: str) -> AbstractAsyncContextManager[object]:
        """Run another owner for the block: it has claimed ``run`` with an entry, and exists until the block ends or it is ended."""
        raise NotImplementedError

    # One owner.

    async def test_a_new_conversation_is_empty_and_owned(self, store: log_store.Store) -> None:
        """It has no entries, epoch 1, and is known by its id."""
        async with begun(store) as (run, owned):
            assert (owned.id, owned.epoch, owned.taken_from) == (run, 1, None)
            reading = store.reader.read(run)
            assert (reading.id, reading.entries, reading.torn, reading.owned) == (run, [], 0, True)
            assert store.reader.ids() == [run]

    async def test_append_numbers_dates_and_names(self, store: log_store.Store) -> None:
        """An appended entry gets its line's number from 1 and the time; a call gets a unique id. It reads back the same, even while owned."""
        async with begun(store) as (run, owned):
            written = [owned.append(each) for each in (note(1), call(), note(2), call("again"))]
            assert [entry.seq for entry in written] == [1, 2, 3, 4]
            assert all(entry.at for entry in written)
            assert len({entry.call for entry in written if isinstance(entry, log_entries.Call) and entry.call}) == 2
            await owned.barrier()
            for each in (store, self.seen_by_another(store)):
                assert (await each.read(run)).entries == each.reader.read(run).entries == written

    async def test_a_barrier_may_come_at_any_time(self, store: log_store.Store) -> None:
        async with begun(store) as (_run, owned):
            await owned.barrier()
            owned.append(note())
            await owned.barrier()
            await owned.barrier()

    async def test_a_barrier_is_not_broken_off(self, store: log_store.Store) -> None:
        """A task cancelled during a barrier continues to its next await, and is cancelled there: everything is kept."""
        async with begun(store) as (run, owned):
            went_on: list[str] = []

            async def write() -> None:
                owned.append(note())
                await owned.barrier()
                went_on.append("to what follows")
                await asyncio.sleep(3600)

            task = asyncio.create_task(write())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait((task,))
            assert task.cancelled()
            assert went_on == ["to what follows"]
            assert len(store.reader.read(run).entries) == 1

    async def test_who_gave_it_up_writes_nothing_more(self, store: log_store.Store) -> None:
        """Writes before ``aclose`` are kept; an append after it is refused and invisible; a second ``aclose`` does nothing."""
        run = log_store.new_id()
        owned = await store.create(run)
        blob = owned.put_blob(b"a large value", "value")
        written = owned.append(note())
        await owned.aclose()
        await owned.aclose()
        with pytest.raises(LogError) as caught:
            owned.append(note())
        assert caught.value.code == "log-write-failed"
        assert self.seen_by_another(store).reader.blob(blob.sha256) == b"a large value"
        reading = store.reader.read(run)
        assert (reading.entries, reading.owned) == ([written], False)

    async def test_what_cannot_be_a_line_is_refused_and_harms_nothing(self, store: log_store.Store) -> None:
        """Appending an entry that UTF-8 cannot encode is refused; the next one gets its number."""
        async with begun(store) as (run, owned):
            with pytest.raises(ValueError, match="surrogates"):
                owned.append(log_entries.Note(name="restored", data={"mode": "\ud800"}))
            assert owned.append(note()).seq == 1
        assert len(store.reader.read(run).entries) == 1

    # One owner after another.

    async def test_claiming_goes_on_where_the_last_owner_ended(self, store: log_store.Store) -> None:
        """A claim returns all entries, a higher epoch, and continues with the next number."""
        run = log_store.new_id()
        epochs: list[int] = []
        for number in range(3):
            owned, entries = await store.claim(run) if number else (await store.create(run), [])
            async with contextlib.aclosing(owned):
                assert len(entries) == number
                assert (await claimed(owned)).seq == number + 1
                epochs.append(owned.epoch)
        assert epochs[0] == 1
        assert epochs == sorted(set(epochs))

    async def test_one_owner_at_a_time(self, store: log_store.Store) -> None:
        """Others can read an owned conversation, but claim it only once it is released: the error names process and time."""
        other = self.seen_by_another(store)
        async with begun(store) as (run, owned):
            said = await claimed(owned)
            for attempt in (other.claim, other.create):
                with pytest.raises(RunHeld, match=f"{run} is held by process .* since {said.at}") as caught:
                    await attempt(run)
                assert "--take-over" in (caught.value.fix or "")
            assert other.reader.read(run).owned
            owned.append(note())
        assert not other.reader.read(run).owned
        again, entries = await other.claim(run)
        await again.aclose()
        assert len(entries) == 2

    async def test_of_many_who_claim_at_once_one_wins(self, store: log_store.Store) -> None:
        run = log_store.new_id()
        await (await store.create(run)).aclose()
        claims = (self.seen_by_another(store).claim(run) for _each in range(MANY))
        came = await asyncio.gather(*claims, return_exceptions=True)
        owners = [each[0] for each in came if not isinstance(each, BaseException)]
        for owned in owners:
            await owned.aclose()
        assert (len(owners), sum(isinstance(each, RunHeld) for each in came)) == (1, MANY - 1)

    async def test_a_living_owner_is_displaced_only_on_demand(self, store: log_store.Store) -> None:
        """``take_over`` claims an owned conversation with all entries and a higher epoch, and names its owner. Without it nothing changes."""
        run = log_store.new_id()
        await (await store.create(run)).aclose()
        async with self.held_elsewhere(store, run):
            before = store.reader.read(run)
            with pytest.raises(RunHeld):
                await store.claim(run)
            assert before.owned
            assert store.reader.read(run) == before
            holder = store_owners.last(before.entries)
            assert holder is not None
            owned, entries = await store.claim(run, take_over=True)
            async with contextlib.aclosing(owned):
                assert entries == before.entries
                assert owned.epoch > holder.epoch
                assert owned.taken_from == holder
                assert owned.append(note()).seq == len(entries) + 1

    async def test_nobody_needs_to_be_displaced(self, store: log_store.Store) -> None:
        """``take_over`` of a conversation without an owner is an ordinary claim."""
        async with begun(store) as (run, owned):
            await claimed(owned)
        owned, entries = await store.claim(run, take_over=True)
        await owned.aclose()
        assert (len(entries), owned.taken_from) == (1, None)

    # Many conversations.

    async def test_an_unknown_conversation_is_the_askers_mistake(self, store: log_store.Store) -> None:
        """An unknown or invalid id is a usage error, and does not exist afterwards."""
        for name in (log_store.new_id(), "../../etc/passwd", ""):
            for attempt in (store.claim, store.read, store.reader.first, store.reader.last):
                with pytest.raises(UsageError) as caught:
                    await cast(Any, attempt(name))
                assert caught.value.code == "unknown-run"
        assert store.reader.ids() == []

    async def test_a_conversation_that_began_is_not_made_anew(self, store: log_store.Store) -> None:
        """Creating one that has an entry is refused and loses nothing; one released before its first entry is created again."""
        run = log_store.new_id()
        await (await store.create(run)).aclose()
        async with contextlib.aclosing(await store.create(run)) as owned:
            written = owned.append(note())
        with pytest.raises(LogError) as caught:
            await store.create(run)
        assert caught.value.code == "run-exists"
        assert (store.reader.read(run).entries, store.reader.read(run).owned) == ([written], False)

    async def test_ids_are_sorted_and_conversations_are_apart(self, store: log_store.Store) -> None:
        """Ids come oldest first, whatever the order of creation; each conversation has its own entries, owner and numbers."""
        runs = sorted(log_store.new_id() for _ in range(4))
        for number, run in reversed(list(enumerate(runs))):
            async with contextlib.aclosing(await store.create(run)) as owned:
                assert owned.append(note(number)).seq == 1
        assert store.reader.ids() == runs
        assert [_numbers(store.reader.read(run).entries) for run in runs] == [[0], [1], [2], [3]]

    async def test_the_ends_of_a_log_are_those_of_all_of_it(self, store: log_store.Store) -> None:
        """The first and the last entry equal those of a reading, at any time and for every reader; None before the first entry."""
        other = self.seen_by_another(store)
        async with begun(store) as (run, owned):
            assert (store.reader.first(run), store.reader.last(run)) == (None, None)
            for entry in (note(1), call(), note(2)):
                written = owned.append(entry)
                await owned.barrier()
                entries = store.reader.read(run).entries
                assert entries[-1] == written
                for each in (store, other):
                    assert (each.reader.first(run), each.reader.last(run)) == (entries[0], entries[-1])
        assert (store.reader.first(run), store.reader.last(run)) == (entries[0], written)

    async def test_a_list_is_told_page_by_page(self, store: log_store.Store) -> None:
        """Summaries come newest first, each with its state. A page begins after any id, for any state, up to the limit."""
        runs = sorted(log_store.new_id() for _ in range(5))
        states = ("passed", "failed", "died", "passed", "running")
        open_ones: list[log_store.Conversation] = []
        for run, state in zip(runs, states, strict=True):
            owned = await store.create(run)
            owned.append(note())
            if state in ("passed", "failed"):
                owned.append(log_entries.Note(name="ended", data={"status": state, "exit": 0}))
            await owned.barrier()
            await (_nothing() if state == "running" else owned.aclose())
            open_ones.append(owned)
        listed = await store.summaries()
        assert [(each.id, each.state) for each in listed] == list(zip(runs, states, strict=True))[::-1]
        for each in listed:
            entries = store.reader.read(each.id).entries
            assert (each.first, each.last) == (entries[0], entries[-1])
        for before in (None, *runs, "0" * 26, "Z" * 26):
            for limit in (None, 1, 2, 9):
                for state in (None, *sorted({*states})):
                    expected = [
                        each for each in listed if (before is None or each.id < before) and state in (None, each.state)
                    ]
                    wanted = cast(log_store.State | None, state)
                    for other in (store, self.seen_by_another(store)):
                        assert await other.summaries(before, limit, wanted) == expected[:limit]
        await open_ones[-1].aclose()

    async def test_what_is_new_is_the_rest_of_a_reading(self, store: log_store.Store) -> None:
        """After any entry a reading has the rest of the log, however long the lines are. After the last one it has only newer entries."""
        other = self.seen_by_another(store)
        async with begun(store) as (run, owned):
            for number in range(40):
                owned.append(log_entries.Note(name="restored", data={"text": "x" * (number * number % 977)}))
            await owned.barrier()
            for each in (store, other):
                entries = each.reader.read(run).entries
                for after in range(len(entries) + 2):
                    assert each.reader.read(run, after).entries == entries[after:]
                    assert (await each.read(run, after)).entries == entries[after:]
            written = owned.append(note(1))
            await owned.barrier()
            assert store.reader.read(run, written.seq - 1).entries == [written]

    async def test_a_key_has_one_conversation(self, store: log_store.Store) -> None:
        """A key gives every caller the same id, also many at once; another key gives another id. A conversation can be created by it."""
        found = {*await asyncio.gather(*(self.seen_by_another(store).keyed("nightly") for _each in range(MANY)))}
        assert found == {await store.keyed("nightly")}
        assert await store.keyed("weekly") not in found
        assert store.reader.ids() == []
        await (await store.create(await store.keyed("nightly"))).aclose()
        assert store.reader.ids() == sorted(found)

    # Large values and files.

    async def test_blobs_are_named_by_what_is_in_them(self, store: log_store.Store) -> None:
        """A blob reads back by its hash, in every conversation, and is stored once; an unknown hash raises ``blob-missing``."""
        run = log_store.new_id()
        data = b"\xff\x00 any bytes " * 50
        async with contextlib.aclosing(await store.create(run)) as owned:
            blob = owned.put_blob(data, "orders")
            assert owned.put_blob(data, "again").sha256 == blob.sha256
            assert owned.put_blob(b"", "empty").bytes == 0
            assert store.reader.blob(blob.sha256) == data
            await owned.barrier()
            assert self.seen_by_another(store).reader.blob(blob.sha256) == data
        assert (blob.bytes, blob.path) == (len(data), f"@state/{run}/orders")
        with pytest.raises(LogError) as caught:
            store.reader.blob("0" * 64)
        assert caught.value.code == "blob-missing"

    async def test_files_are_kept_by_name(self, store: log_store.Store, tmp_path: Path) -> None:
        """Bytes, or a file's content, read back by name. A new file replaces the old; private ones are separate; dropped ones are gone."""
        source, run = tmp_path / "source", log_store.new_id()
        source.write_bytes(b"from a file")
        async with contextlib.aclosing(await store.create(run)) as owned:
            assert store.reader.file_names(run) == []
            first = await owned.put_file("a.txt", b"first")
            assert (first.name, first.size, first.sha256) == ("a.txt", 5, hashlib.sha256(b"first").hexdigest())
            await owned.put_file("a.txt", source)
            await owned.put_file("b.txt", b"")
            await owned.put_file("state.json", b"{}", private=True)
            await owned.put_file("a.txt", b"private", private=True)
            for each in (store.reader, self.seen_by_another(store).reader):
                assert each.file_names(run) == ["a.txt", "b.txt"]
                assert each.file_names(run, private=True) == ["a.txt", "state.json"]
                assert [each.get_file(run, name) for name in ("a.txt", "b.txt")] == [b"from a file", b""]
                assert each.get_file(run, "a.txt", private=True) == b"private"
            await owned.drop_file("a.txt", private=True)
            await owned.drop_file("never", private=True)
        assert store.reader.get_file(run, "a.txt") == b"from a file"
        assert store.reader.file_names(run, private=True) == ["state.json"]
        for name, private in (("a.txt", True), ("state.json", False), ("never", False)):
            with pytest.raises(FileNotFoundError):
                store.reader.get_file(run, name, private=private)
        assert store.reader.file_names(log_store.new_id()) == []

    async def test_private_files_have_a_folder_for_their_owner_only(self, store: log_store.Store) -> None:
        """Each conversation has its own private folder, which exists and stays the same; files of a run are elsewhere."""
        first, second = log_store.new_id(), log_store.new_id()
        folder = store.reader.private(first)
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o077 == 0
        assert store.reader.private(first) == folder
        assert len({folder, store.reader.private(second), store.reader.files(first), store.reader.files(second)}) == 4
        assert folder not in store.reader.files(first).parents

    async def test_what_stands_in_files_is_told(self, store: log_store.Store) -> None:
        """The listed files are those that contain what an owner wrote to the disk."""
        async with begun(store) as (run, owned):
            owned.append(log_entries.Note(name="restored", data={"mode": "a needle in the log"}))
            blob = owned.put_blob(b"a needle in a blob", "value")
            await owned.barrier()
            listed = store.reader.files_with(run, [blob.sha256])
        assert _with_needles(listed) == _with_needles(_all_files(store.reader.files(run).parent.parent))


class FencingConformance(StoreConformance):
    """Further tests for stores in which a claim does not end the earlier owner: it learns of it at its next write."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> log_store.Store:
        """Return an empty store whose claims expire."""
        raise NotImplementedError

    def let_expire(self, store: log_store.Store) -> None:
        """Let so much time pass that every claim expires."""
        raise NotImplementedError

    async def test_a_claim_says_how_long_it_lasts(self, store: log_store.Store) -> None:
        async with begun(store) as (_run, owned):
            assert owned.lease is not None
            assert owned.lease > 0

    async def test_a_claim_that_expired_is_free(self, store: log_store.Store) -> None:
        """Once the lease has expired there is no owner, and a later claim has all entries and a higher epoch."""
        run = log_store.new_id()
        owned = await store.create(run)
        await claimed(owned)
        self.let_expire(store)
        assert not store.reader.read(run).owned
        later, entries = await store.claim(run)
        assert (len(entries), later.taken_from) == (1, None)
        assert later.epoch > owned.epoch
        assert store.reader.read(run).owned
        await later.aclose()

    async def test_a_claim_that_is_renewed_lasts(self, store: log_store.Store) -> None:
        """An owner that renews its expired lease before another claim owns the conversation again."""
        run = log_store.new_id()
        owned = await store.create(run)
        self.let_expire(store)
        await owned.renew()
        with pytest.raises(RunHeld):
            await store.claim(run)
        owned.append(note())
        await owned.aclose()

    async def test_who_was_replaced_writes_nothing_more(self, store: log_store.Store) -> None:
        """After a later claim, the earlier owner's next barrier or renewal raises Replaced, and its writes stay invisible."""
        for take_over in (False, True):
            run = log_store.new_id()
            owned = await store.create(run)
            owned.append(note())
            await owned.barrier()
            if not take_over:
                self.let_expire(store)
            later, entries = await store.claim(run, take_over=take_over)
            said = await claimed(later)
            for write in (lambda: None, partial(owned.append, note()), partial(owned.put_blob, b"late", "late")):
                with pytest.raises(Replaced, match=f"{run} is held by process .* since {said.at}") as caught:
                    await _write_synced(owned, write)
                assert (caught.value.code, caught.value.exit) == ("replaced", 75)
            for refused in (owned.renew(), owned.put_file("late", b"late"), owned.drop_file("late")):
                with pytest.raises(Replaced):
                    await refused
            assert store.reader.file_names(run) == []
            assert store.reader.read(run).entries == [*entries, said]
            with pytest.raises(LogError):
                store.reader.blob(log_entries.blob_of(b"late", "late").sha256)
            await later.aclose()

    async def test_who_was_replaced_gives_nothing_up(self, store: log_store.Store) -> None:
        """The ``aclose`` of an earlier owner leaves the conversation with the later one."""
        run = log_store.new_id()
        owned = await store.create(run)
        later, _entries = await store.claim(run, take_over=True)
        await owned.aclose()
        assert store.reader.read(run).owned
        later.append(note())
        await later.aclose()


async def _nothing() -> None:
    pass


async def _write_synced(owned: log_store.Conversation, write: Callable[[], object]) -> None:
    write()
    await owned.barrier()


def _numbers(entries: Iterable[log_entries.AnyEntry]) -> list[object]:
    return [entry.data["number"] for entry in entries if isinstance(entry, log_entries.Note)]


def _all_files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


def _with_needles(files: Iterable[Path]) -> set[Path]:
    return {each for each in files if b"a needle in" in each.read_bytes()}
