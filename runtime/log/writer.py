"""Writes log entries: masks secrets, moves large values to blobs, appends the line, updates the history."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic

import pydantic_core
from typing_extensions import TypeVar, override

from nodes.errors import RunOpsError
from nodes.values import Json, sound, sound_json
from runtime.log import entries, leaks
from runtime.log import history as history_module
from runtime.log.store import store as log_store
from runtime.log.threads import Fold
from runtime.messages import estimates
from runtime.messages.messages import Item, Message, Picture, Thought, ToolCall, ToolOutput
from runtime.secrets import masking
from runtime.system.crash_points import CrashPoint, crash_point

LARGE = 4096  # maximum bytes of JSON of a value in the log; a larger one is stored in a blob
NOTHING = "(nothing)"  # replacement for an empty text in a request: servers accept no empty message


class Texts:
    """Reads texts and values of entries, from their blobs if they are stored there. Raises LogError ``blob-missing``."""

    def __init__(self, store: log_store.StoreReader) -> None:
        self.store = store

    def text_of(self, entry: entries.Said) -> str:
        return self._text(entry.text, entry.blob)

    def calls_of(self, entry: entries.Assistant) -> tuple[ToolCall, ...]:
        return tuple(ToolCall(each.id, each.name, self._text(each.arguments, each.blob)) for each in entry.calls or ())

    def thoughts_of(self, entry: entries.Assistant) -> tuple[Thought, ...]:
        return tuple(
            Thought(each.id, self._plain(each.sealed, each.blob), each.tokens, each.before, each.reader)
            for each in entry.thoughts or ()
        )

    def picture_of(self, entry: entries.ToolResult) -> Picture | None:
        shown = entry.picture
        if shown is None:
            return None
        return Picture(base64.b64encode(self.store.blob(shown.blob.sha256)).decode(), shown.width, shown.height)

    def items_of(self, entry: entries.Said) -> tuple[Item, ...]:
        """Return the items of an entry in a request that holds all of it."""
        if isinstance(entry, entries.ToolResult):
            return items_of(entry, self.text_of(entry), picture=self.picture_of(entry))
        if isinstance(entry, entries.Assistant):
            return items_of(entry, self.text_of(entry), self.calls_of(entry), self.thoughts_of(entry))
        return items_of(entry, self.text_of(entry))

    def _text(self, text: str | None, blob: entries.Blob | None) -> str:
        return self._plain(text, blob)

    def _plain(self, text: str | None, blob: entries.Blob | None) -> str:
        return str(json.loads(self.store.blob(blob.sha256))) if blob is not None else text or ""

    def value_of(self, entry: entries.Result | entries.Scope | entries.Call | entries.Version) -> Json:
        return value_of(entry, self.store)


Folded_co = TypeVar("Folded_co", bound=Fold, default=history_module.History, covariant=True)


class LogWriter(Texts, Generic[Folded_co]):
    def __init__(
        self,
        conversation: log_store.Conversation,
        history: Folded_co,
        masker: masking.Masker,
        store: log_store.StoreReader,
    ) -> None:
        """``history`` is the fold of the conversation so far; ``store`` has its large values."""
        super().__init__(store)
        self.conversation = conversation
        self._history = history
        self.masker = masker
        self.blobs: set[str] = set()  # hashes of the blobs that were written
        self.synced = 0  # last line that is known to be synced

    @override
    def _text(self, text: str | None, blob: entries.Blob | None) -> str:
        # A secret may have been written before it was known to be one, so texts are masked again.
        return self.masker.text(super()._text(text, blob))

    @override
    def thoughts_of(self, entry: entries.Assistant) -> tuple[Thought, ...]:
        return self.without_secrets(super().thoughts_of(entry))

    def without_secrets(self, thoughts: Sequence[Thought]) -> tuple[Thought, ...]:
        """Leave out thoughts in which a secret can be read, because a mask would damage them.

        What a provider has encrypted with its own key holds no secret in any spelling that can be searched for, so none is left out then.
        """
        return tuple(each for each in thoughts if not self.masker.holds(f"{each.id} {each.sealed}"))

    @property
    def history(self) -> Folded_co:
        return self._history

    def call(self, call: entries.Call) -> entries.Call:
        fields = self._value(call.args, call.path)
        update = {"args": fields.get("value"), "blob": fields.get("blob"), "matched": self._masked(call.matched)}
        return self._append(call.model_copy(update=update))

    async def announce(self, call: entries.Call) -> entries.Call:
        """Write the call of a side effect; it is synced when this returns."""
        crash_point(CrashPoint.BEFORE_CALL)
        written = self.call(call)
        crash_point(CrashPoint.CALL_APPENDED)
        await self.barrier()
        crash_point(CrashPoint.CALL_SYNCED)
        return written

    def result(
        self, call: entries.Call, status: entries.Status, *, value: Json = None, **fields: Any
    ) -> entries.Result:
        if fields.get("error") is not None:
            fields["error"] = self._masked(fields["error"])
        result = entries.Result(
            thread=call.thread, call=call.call, status=status, **fields, **self._value(value, call.path)
        )
        if call.effect != "effect":
            return self._append(result)
        over = status in ("ok", "error")
        if over:
            crash_point(CrashPoint.EFFECT_DONE)
        written = self._append(result)
        crash_point(CrashPoint.RESULT_APPENDED if over else CrashPoint.CLOSED)
        return written

    def scope(self, path: str, event: Any, node: str, *, value: Json = None, **fields: Any) -> entries.Scope:
        written = self._append(entries.Scope(path=path, event=event, node=node, **fields, **self._value(value, path)))
        crash_point(CrashPoint(event))
        return written

    def checkpoint(
        self, file: str, urls: list[str], after: int, sha256: str, verified: dict[str, Json] | None = None
    ) -> entries.Checkpoint:
        shown = self._masked(urls)
        if self.masker.json(verified) != verified:
            # A rule with a mask in it never holds.
            verified = None
        written = self._append(entries.Checkpoint(file=file, urls=shown, after=after, sha256=sha256, verified=verified))
        crash_point(CrashPoint.CHECKPOINT_APPENDED)
        return written

    def note(self, name: entries.NoteName, **data: Json) -> entries.Note:
        return self.noted(name, data, entries.RUN_THREAD)

    def noted(self, name: entries.NoteName, data: dict[str, Json], thread: str) -> entries.Note:
        written = self._append(entries.Note(thread=thread, name=name, data=self._masked(data)))
        crash_point(CrashPoint(name))
        return written

    def said(
        self,
        entry: entries.Said | entries.Reasoning | entries.Arrived,
        text: str,
        path: str,
        calls: Sequence[ToolCall] = (),
        thoughts: Sequence[Thought] = (),
        picture: Picture | None = None,
    ) -> None:
        """Write a message to or from a model: ``entry`` with ``text`` and the ``calls`` that it asks for, masked, large ones in blobs.

        ``thoughts`` are written unchanged; they must be ``without_secrets``.
        """
        text = sound(text)
        masked = self.masker.text(text)
        fields: dict[str, Any] = {"text": masked}
        if isinstance(entry, entries.Event) and entry.what is not None:
            entry = entry.model_copy(update={"what": self.masker.text(sound(entry.what))})
        if isinstance(entry, entries.Said):
            value = self._value(text, path)
            fields = {"text": value.get("value"), "blob": value.get("blob")}
            if isinstance(entry, entries.Assistant):
                asked = [self._asked(each, path) for each in calls]
                fields["calls"] = asked or None
                fields["thoughts"] = [self._thought(each, path) for each in thoughts] or None
                fields["masked"] = value.get("masked") or (True if any(each.masked for each in asked) else None)
            # Later requests hold the written text: a mask may have more tokens than the text that it hides.
            hidden = [dataclasses.replace(each, arguments=self._arguments(each)) for each in calls]
            items = items_of(entry, masked, hidden, thoughts, picture)
            if picture is not None:
                blob = self._blob(base64.b64decode(picture.data), f"{path}.png")
                fields["picture"] = entries.PictureEntry(blob=blob, width=picture.width, height=picture.height)
            fields["tokens"] = sum(map(estimates.of_item, items))
            fields["chars"] = sum(map(chars_of, items))
        written = self._append(entry.model_copy(update=fields))
        crash_point(CrashPoint(written.kind.replace("_", "-")))

    def _arguments(self, call: ToolCall) -> str:
        return masking.masked_json(self.masker, sound(call.arguments))

    def _asked(self, call: ToolCall, path: str) -> entries.ToolCallEntry:
        arguments = self._arguments(call)
        value = self._value(arguments, path)
        masked = True if arguments != call.arguments else None
        return entries.ToolCallEntry(
            id=call.id, name=call.name, arguments=value.get("value"), blob=value.get("blob"), masked=masked
        )

    def _thought(self, thought: Thought, path: str) -> entries.ThoughtEntry:
        data = pydantic_core.to_json(thought.sealed)
        blob = self._blob(data, path) if len(data) > LARGE else None
        return entries.ThoughtEntry(
            id=thought.id,
            before=thought.before,
            tokens=thought.tokens,
            reader=thought.reader,
            sealed=thought.sealed if blob is None else None,
            blob=blob,
        )

    def version(self, entry: entries.Version, value: Json, path: str) -> entries.Version:
        written = self._append(entry.model_copy(update=self._value(value, path)))
        crash_point(CrashPoint.VERSION)
        return written

    def copy(self, entry: entries.AnyEntry) -> entries.AnyEntry:
        """Copy an entry of another conversation, with its large values. Raises LogError ``blob-missing``."""
        for blob in _blobs_of(entry):
            if blob.sha256 not in self.blobs:
                self._blob(self.store.blob(blob.sha256), blob.path)
        written = self._append(entry)
        crash_point(CrashPoint.COPIED)
        return written

    async def put_file(self, name: str, data: bytes | Path) -> dict[str, Json]:
        """Keep a file of the run and return its description for the log. Raises OSError."""
        kept = await self.conversation.put_file(name, data)
        return {"name": kept.name, "path": kept.place, "size": kept.size, "sha256": kept.sha256}

    async def barrier(self) -> None:
        written = self.history.last_seq
        await self.conversation.barrier()
        self.synced = max(self.synced, written)

    def error(self, error: RunOpsError) -> dict[str, Json]:
        return self._masked(error.as_json())

    def files(self) -> list[Path]:
        kept = self.artifacts
        return [
            *self.store.files_with(self.conversation.id, sorted(self.blobs)),
            *(sorted(each for each in kept.iterdir() if each.is_file()) if kept.is_dir() else ()),
        ]

    @property
    def artifacts(self) -> Path:
        return self.store.files(self.conversation.id)

    def put_text(self, text: str, path: str) -> entries.Blob:
        """Keep the text of a workflow file as a blob. An ordinary word that equals a secret is not masked in it."""
        return self._blob(self.masker.but_words.text(sound(text)).encode(), path)

    def _append(self, entry: Any) -> Any:
        written = self.conversation.append(entry)
        self.history.add(written)
        return written

    def _masked(self, value: Json) -> Json:
        """Return ``value`` as a file can hold it: secrets masked, no unpaired surrogates."""
        value = sound_json(value)
        if not isinstance(value, dict):
            return self.masker.json(value)
        plain = self.masker.but_words
        return {key: (plain if key in leaks.AUTHORED else self.masker).json(item) for key, item in value.items()}

    def _value(self, value: Json, path: str) -> dict[str, Any]:
        if value is None or value is True or value is False:
            return {"value": value}
        value = sound_json(value)
        masked = self.masker.json(value)
        fields: dict[str, Any] = {} if masked is value or masked == value else {"masked": True}
        if isinstance(masked, str | list | dict) and len(masked) > 0:
            small = isinstance(masked, str) and len(masked) < LARGE // 6
            data = b"" if small else pydantic_core.to_json(masked)
            if len(data) > LARGE:
                return {**fields, "blob": self._blob(data, path)}
        return {**fields, "value": masked}

    def _blob(self, data: bytes, path: str) -> entries.Blob:
        blob = self.conversation.put_blob(data, path)
        self.blobs.add(blob.sha256)
        crash_point(CrashPoint.BLOB)
        return blob


def items_of(
    entry: entries.Said,
    text: str,
    calls: Sequence[ToolCall] = (),
    thoughts: Sequence[Thought] = (),
    picture: Picture | None = None,
) -> tuple[Item, ...]:
    """Return the items of an entry with this text, these calls, thoughts and picture, in a request that holds all of it."""
    if isinstance(entry, entries.ToolResult):
        return (ToolOutput(entry.asked, text or NOTHING, picture),)
    if isinstance(entry, entries.Event) and entry.asked is not None:
        arguments = json.dumps({"run": entry.run, "begun_by": entry.what}, ensure_ascii=False)
        return (ToolCall(entry.asked, entries.RUN_TOOL, arguments), ToolOutput(entry.asked, text or NOTHING))
    if isinstance(entry, entries.Assistant):
        return items_of_answer(text, calls, thoughts)
    return (Message("assistant" if isinstance(entry, entries.ModelError) else "user", text or NOTHING),)


def items_of_answer(text: str, calls: Sequence[ToolCall], thoughts: Sequence[Thought]) -> tuple[Item, ...]:
    said: tuple[Item, ...] = (Message("assistant", text or NOTHING),) if text or not calls else ()
    items: list[Item] = [*(each for each in thoughts if not each.before), *said]
    for number, call in enumerate(calls, 1):
        items += [*(each for each in thoughts if each.before == number), call]
    return tuple(items)


def chars_of(item: Item) -> int:
    if isinstance(item, Thought):
        # It is no text: only its tokens count.
        return 0
    if isinstance(item, ToolOutput) and item.picture is not None:
        return len(item.text) + estimates.A_TOKEN * estimates.of_picture(item.picture.width, item.picture.height)
    return len(item.name) + len(item.arguments) if isinstance(item, ToolCall) else len(item.text)


def _blobs_of(entry: entries.AnyEntry) -> list[entries.Blob]:
    parts = [*(entry.calls or ()), *(entry.thoughts or ())] if isinstance(entry, entries.Assistant) else []
    named: list[entries.Blob | None] = [getattr(entry, "blob", None), *(each.blob for each in parts)]
    if isinstance(entry, entries.ToolResult) and entry.picture is not None:
        named.append(entry.picture.blob)
    return [each for each in named if each is not None]


def value_of(
    entry: entries.Result | entries.Scope | entries.Call | entries.Version, store: log_store.StoreReader
) -> Json:
    if entry.blob is not None:
        return json.loads(store.blob(entry.blob.sha256))
    return entry.args if isinstance(entry, entries.Call) else entry.value
