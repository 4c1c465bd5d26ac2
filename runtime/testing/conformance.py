"""What every store must do, as tests. Whoever writes a store makes a class of its own from these, and pytest runs them all."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from nodes.errors import LogError, Replaced, RunHeld, UsageError
from runtime import holders, log, store

MANY = 6


def note(number: int = 0) -> log.Note:
    """An entry."""
    return log.Note(name="restored", data={"mode": "attached", "number": number})


def claimed(conversation: store.Conversation) -> log.AnyEntry:
    """Have the conversation say who owns it, as every owner does first."""
    return conversation.append(log.Note(name="claimed", data={**holders.me(), "epoch": conversation.epoch}))


def call(path: str = "pay") -> log.Call:
    """A call, which gets its id from the log."""
    return log.Call(path=path, node="transform", attempt=1, effect="effect", args={"a": [1, None]}, fingerprint="f")


class StoreConformance:
    """Tests of one kind of store: a subclass says how to come by an empty one, and by an owner elsewhere."""

    @pytest.fixture
    def kept(self, tmp_path: Path) -> store.Store:
        """An empty store; files may stand in ``tmp_path``."""
        raise NotImplementedError

    def seen_by_another(self, kept: store.Store) -> store.Store:
        """The same store, as another process sees it; by default the same object."""
        return kept

    def held_elsewhere(self, kept: store.Store, run: str) -> AbstractContextManager[object]:
        """A living owner elsewhere, who has claimed the ``run`` and said so in an entry, and who lives while the block runs, unless it is ended."""
        raise NotImplementedError

    # One owner.

    def test_a_new_conversation_is_empty_and_owned(self, kept: store.Store) -> None:
        """It has no entries, epoch 1, and is known by its id."""
        run = store.new_id()
        with contextlib.closing(kept.create(run)) as owned:
            assert (owned.id, owned.epoch, owned.taken_from) == (run, 1, None)
            reading = kept.read(run)
            assert (reading.id, reading.entries, reading.torn, reading.held) == (run, [], 0, True)
            assert kept.ids() == [run]

    def test_append_numbers_dates_and_names(self, kept: store.Store) -> None:
        """An appended entry has its line's number from 1, the time, and a call an id that no other has; so it is read back, also while it is held."""
        run = store.new_id()
        with contextlib.closing(kept.create(run)) as owned:
            written = [owned.append(each) for each in (note(1), call(), note(2), call("again"))]
            assert [entry.seq for entry in written] == [1, 2, 3, 4]
            assert all(entry.at for entry in written)
            assert len({entry.call for entry in written if isinstance(entry, log.Call) and entry.call}) == 2
            assert kept.read(run).entries == written
            owned.barrier()
            assert self.seen_by_another(kept).read(run).entries == written

    def test_a_barrier_may_come_at_any_time(self, kept: store.Store) -> None:
        """With nothing to bring to the disk, and twice in a row, it does nothing."""
        with contextlib.closing(kept.create(store.new_id())) as owned:
            owned.barrier()
            owned.append(note())
            owned.barrier()
            owned.barrier()

    def test_who_gave_it_up_writes_nothing_more(self, kept: store.Store) -> None:
        """After ``close`` an append is refused, and nothing of it is seen; a second ``close`` does nothing."""
        run = store.new_id()
        owned = kept.create(run)
        written = owned.append(note())
        owned.close()
        owned.close()
        with pytest.raises(LogError) as caught:
            owned.append(note())
        assert caught.value.code == "log-write-failed"
        reading = kept.read(run)
        assert (reading.entries, reading.held) == ([written], False)

    def test_what_cannot_be_a_line_is_refused_and_harms_nothing(self, kept: store.Store) -> None:
        """An entry with a text that UTF-8 cannot hold is refused when it is appended; the next one gets its number."""
        run = store.new_id()
        with contextlib.closing(kept.create(run)) as owned:
            with pytest.raises(ValueError, match="surrogates"):
                owned.append(log.Note(name="restored", data={"mode": "\ud800"}))
            assert owned.append(note()).seq == 1
        assert len(kept.read(run).entries) == 1

    # One owner after another.

    def test_claiming_goes_on_where_the_last_owner_ended(self, kept: store.Store) -> None:
        """Whoever claims gets all entries, a higher epoch, and the next number."""
        run = store.new_id()
        epochs: list[int] = []
        for number in range(3):
            owned, entries = (kept.create(run), list[log.AnyEntry]()) if number == 0 else kept.claim(run)
            with contextlib.closing(owned):
                assert len(entries) == number
                assert claimed(owned).seq == number + 1
                epochs.append(owned.epoch)
        assert epochs[0] == 1
        assert epochs == sorted(set(epochs))

    def test_one_owner_at_a_time(self, kept: store.Store) -> None:
        """A held conversation is refused to everybody else, by the process and since when; reading it is free; given up, it may be claimed."""
        run, other = store.new_id(), self.seen_by_another(kept)
        with contextlib.closing(kept.create(run)) as owned:
            said = claimed(owned)
            for attempt in (other.claim, other.create):
                with pytest.raises(RunHeld, match=f"{run} is held by process .* since {said.at}") as caught:
                    attempt(run)
                assert "--take-over" in (caught.value.mend or "")
            assert other.read(run).held
            owned.append(note())
        assert not other.read(run).held
        again, entries = other.claim(run)
        again.close()
        assert len(entries) == 2

    def test_of_many_who_claim_at_once_one_wins(self, kept: store.Store) -> None:
        """However many claim at once, one owns the conversation, and the others are told that it is held."""
        run = store.new_id()
        kept.create(run).close()
        ready, owners = threading.Barrier(MANY), list[store.Conversation]()

        def claim(_number: int) -> int:
            ready.wait()
            try:
                owners.append(self.seen_by_another(kept).claim(run)[0])
            except RunHeld:
                return 1
            return 0

        with ThreadPoolExecutor(MANY) as pool:
            refused = sum(pool.map(claim, range(MANY)))
        for owned in owners:
            owned.close()
        assert (len(owners), refused) == (1, MANY - 1)

    def test_a_living_owner_is_displaced_only_on_demand(self, kept: store.Store) -> None:
        """``take_over`` claims a held conversation with all its entries and a higher epoch, and tells whose it was; without it nothing is harmed."""
        run = store.new_id()
        kept.create(run).close()
        with self.held_elsewhere(kept, run):
            before = kept.read(run)
            with pytest.raises(RunHeld):
                kept.claim(run)
            assert before.held
            assert kept.read(run) == before
            holder = holders.last(before.entries)
            assert holder is not None
            owned, entries = kept.claim(run, take_over=True)
            with contextlib.closing(owned):
                assert entries == before.entries
                assert owned.epoch > holder.epoch
                assert owned.taken_from == holder
                assert owned.append(note()).seq == len(entries) + 1

    def test_nobody_needs_to_be_displaced(self, kept: store.Store) -> None:
        """``take_over`` of a conversation that nobody holds is a claim like any."""
        run = store.new_id()
        with contextlib.closing(kept.create(run)) as owned:
            claimed(owned)
        owned, entries = kept.claim(run, take_over=True)
        owned.close()
        assert (len(entries), owned.taken_from) == (1, None)

    # Many conversations.

    def test_an_unknown_conversation_is_the_askers_mistake(self, kept: store.Store) -> None:
        """What is not there, or is no id at all, is a usage error, and is not there afterwards."""
        for name in (store.new_id(), "../../etc/passwd", ""):
            for attempt in (kept.claim, kept.read):
                with pytest.raises(UsageError) as caught:
                    attempt(name)
                assert caught.value.code == "unknown-run"
        assert kept.ids() == []

    def test_a_conversation_that_began_is_not_made_anew(self, kept: store.Store) -> None:
        """Making one that has an entry is refused and loses nothing; one whose maker gave it up before its first entry is made anew."""
        run = store.new_id()
        kept.create(run).close()
        with contextlib.closing(kept.create(run)) as owned:
            written = owned.append(note())
        with pytest.raises(LogError) as caught:
            kept.create(run)
        assert caught.value.code == "run-exists"
        assert (kept.read(run).entries, kept.read(run).held) == ([written], False)

    def test_ids_are_sorted_and_conversations_are_apart(self, kept: store.Store) -> None:
        """Ids come oldest first, whatever the order of making; each conversation has its own entries, owner and numbers."""
        runs = sorted(store.new_id() for _ in range(4))
        for number, run in reversed(list(enumerate(runs))):
            with contextlib.closing(kept.create(run)) as owned:
                assert owned.append(note(number)).seq == 1
        assert kept.ids() == runs
        assert [_numbers(kept.read(run).entries) for run in runs] == [[0], [1], [2], [3]]

    def test_the_ends_of_a_log_are_those_of_all_of_it(self, kept: store.Store) -> None:
        """The first and the last entry are what a reading has there, at every moment of a log's life, for whoever asks; nothing at all before the first."""
        run, other = store.new_id(), self.seen_by_another(kept)
        with contextlib.closing(kept.create(run)) as owned:
            assert (kept.first(run), kept.last(run)) == (None, None)
            for entry in (note(1), call(), note(2)):
                written = owned.append(entry)
                owned.barrier()
                entries = kept.read(run).entries
                assert entries[-1] == written
                for each in (kept, other):
                    assert (each.first(run), each.last(run)) == (entries[0], entries[-1])
        assert (kept.first(run), kept.last(run)) == (entries[0], written)
        for name in (store.new_id(), "../../etc/passwd", ""):
            for attempt in (kept.first, kept.last):
                with pytest.raises(UsageError) as caught:
                    attempt(name)
                assert caught.value.code == "unknown-run"

    def test_what_is_new_is_the_rest_of_a_reading(self, kept: store.Store) -> None:
        """Behind any entry a reading has what the whole log has behind it, however long the lines are; behind the last one nothing, and later what came since."""
        run, other = store.new_id(), self.seen_by_another(kept)
        with contextlib.closing(kept.create(run)) as owned:
            for number in range(40):
                owned.append(log.Note(name="restored", data={"text": "x" * (number * number % 977)}))
            owned.barrier()
            for each in (kept, other):
                entries = each.read(run).entries
                for after in range(len(entries) + 2):
                    assert each.read(run, after).entries == entries[after:]
            written = owned.append(note(1))
            assert kept.read(run, written.seq - 1).entries == [written]

    def test_a_key_has_one_conversation(self, kept: store.Store) -> None:
        """A key gives the same id to whoever asks, also to many at once, other keys another; the id is as good as a new one."""
        ready = threading.Barrier(MANY)

        def ask(_number: int) -> str:
            ready.wait()
            return self.seen_by_another(kept).keyed("nightly")

        with ThreadPoolExecutor(MANY) as pool:
            found = set(pool.map(ask, range(MANY)))
        assert len({*found, kept.keyed("nightly")}) == 1
        assert kept.keyed("weekly") not in found
        assert kept.ids() == []
        kept.create(kept.keyed("nightly")).close()
        assert kept.ids() == sorted(found)

    # Large values and files.

    def test_blobs_are_named_by_what_is_in_them(self, kept: store.Store) -> None:
        """A blob reads back by its hash, in every conversation, and is kept once; one that nobody kept is missing by name."""
        run = store.new_id()
        data = b"\xff\x00 any bytes " * 50
        with contextlib.closing(kept.create(run)) as owned:
            blob = owned.put_blob(data, "orders")
            assert owned.put_blob(data, "again").sha256 == blob.sha256
            assert owned.put_blob(b"", "empty").bytes == 0
        assert self.seen_by_another(kept).blob(blob.sha256) == data
        assert (blob.bytes, blob.path) == (len(data), f"@state/{run}/orders")
        with pytest.raises(LogError) as caught:
            kept.blob("0" * 64)
        assert caught.value.code == "blob-missing"

    def test_private_files_have_a_folder_for_their_owner_only(self, kept: store.Store) -> None:
        """Each conversation has one of its own, it is there when asked for, and the same each time; files of a run stand elsewhere."""
        first, second = store.new_id(), store.new_id()
        folder = kept.private(first)
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o077 == 0
        assert kept.private(first) == folder
        assert len({folder, kept.private(second), kept.files(first), kept.files(second)}) == 4
        assert folder not in kept.files(first).parents

    def test_what_stands_in_files_is_told(self, kept: store.Store) -> None:
        """Everything that an owner wrote, and that a reader of the disk could see, stands in the files that are told."""
        run = store.new_id()
        with contextlib.closing(kept.create(run)) as owned:
            owned.append(log.Note(name="restored", data={"mode": "a needle in the log"}))
            blob = owned.put_blob(b"a needle in a blob", "value")
            told = kept.stands_in(run, [blob.sha256])
        assert _with_needles(told) == _with_needles(_all_files(kept.files(run).parent.parent))


class FencingConformance(StoreConformance):
    """The same for a store whose owners are not ended when another one claims: they find out when they next write."""

    @pytest.fixture
    def kept(self, tmp_path: Path) -> store.Store:
        """An empty store in which claims expire."""
        raise NotImplementedError

    def let_expire(self, kept: store.Store) -> None:
        """Let so much time pass that every claim that is not renewed has expired."""
        raise NotImplementedError

    def test_a_claim_says_how_long_it_lasts(self, kept: store.Store) -> None:
        """The lease is known to the owner, so that it can be renewed in time."""
        with contextlib.closing(kept.create(store.new_id())) as owned:
            assert owned.lease is not None
            assert owned.lease > 0

    def test_a_claim_that_expired_is_free(self, kept: store.Store) -> None:
        """Once the lease has run out nobody holds the conversation, and a later claim has all entries and a higher epoch."""
        run = store.new_id()
        owned = kept.create(run)
        claimed(owned)
        self.let_expire(kept)
        assert not kept.read(run).held
        later, entries = kept.claim(run)
        assert (len(entries), later.taken_from) == (1, None)
        assert later.epoch > owned.epoch
        assert kept.read(run).held
        later.close()

    def test_a_claim_that_is_renewed_lasts(self, kept: store.Store) -> None:
        """Who renews after the lease ran out, and before anybody else came, holds the conversation again."""
        run = store.new_id()
        owned = kept.create(run)
        self.let_expire(kept)
        owned.renew()
        with pytest.raises(RunHeld):
            kept.claim(run)
        owned.append(note())
        owned.close()

    def test_who_was_replaced_writes_nothing_more(self, kept: store.Store) -> None:
        """From a later claim on, whether the earlier one had expired or was taken over, its owner is told so at each write, and nothing of it is seen."""
        for take_over in (False, True):
            run = store.new_id()
            owned = kept.create(run)
            owned.append(note())
            if not take_over:
                self.let_expire(kept)
            later, entries = kept.claim(run, take_over=take_over)
            said = claimed(later)
            writes = (
                lambda owned=owned: owned.append(note()),
                owned.barrier,
                lambda owned=owned: owned.put_blob(b"late", "late"),
                owned.renew,
            )
            for write in writes:
                with pytest.raises(Replaced, match=f"{run} is held by process .* since {said.at}") as caught:
                    write()
                assert (caught.value.code, caught.value.exit) == ("replaced", 75)
            assert kept.read(run).entries == [*entries, said]
            with pytest.raises(LogError):
                kept.blob(log.blob_of(b"late", "late").sha256)
            later.close()

    def test_who_was_replaced_gives_nothing_up(self, kept: store.Store) -> None:
        """The ``close`` of an earlier owner leaves the conversation with the later one."""
        run = store.new_id()
        owned = kept.create(run)
        later, _entries = kept.claim(run, take_over=True)
        owned.close()
        assert kept.read(run).held
        later.append(note())
        later.close()


def _numbers(entries: Iterable[log.AnyEntry]) -> list[object]:
    return [entry.data["number"] for entry in entries if isinstance(entry, log.Note)]


def _all_files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


def _with_needles(files: Iterable[Path]) -> set[Path]:
    return {each for each in files if b"a needle in" in each.read_bytes()}
