"""Cassettes: a run's exchanges with its models, in a reviewable file next to the workflow, replayed in place of the models.

``cassettes/NAME.json`` holds requests in normal form and answers, without ids, time stamps and secrets. A second recording gives the same
bytes. A request that differs from the recorded one is a miss, and a miss is an error.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from nodes.errors import CassetteMiss, UsageError
from nodes.values import Json, normalise
from runtime.messages.messages import Answer, Request, ToolCall, Usage
from runtime.models.cassettes import differences, normal_form, texts
from runtime.secrets import masking, published
from runtime.system import files, regular_files

VERSION = 1
FORMAT = "runops_cassette"

LARGEST = 64 << 20


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class KeptUsage(_Kept):
    input: int
    cached: int
    output: int
    reasoning: int


class KeptMessage(_Kept):
    role: Literal["user", "assistant"]
    text: texts.Shown


class KeptCall(_Kept):
    call: str  # `call 1`, `call 2`: in the order of the thread
    tool: str
    arguments: texts.Shown


class KeptOutput(_Kept):
    output_of: str
    text: texts.Shown


class KeptTool(_Kept):
    name: str
    description: str
    parameters: dict[str, Json]


class KeptRequest(_Kept):
    """A request in normal form. Its dump, with aliases and without defaults, is ``Normal.request``."""

    model: str
    instructions: texts.Shown
    messages: list[KeptMessage | KeptCall | KeptOutput]
    schema_: dict[str, Json] | None
    max_output: int
    strict: bool
    tools: list[KeptTool] = []

    model_config = ConfigDict(alias_generator=lambda name: name.rstrip("_"))


class KeptAnswer(_Kept):
    """An answer, with the placeholders of its request."""

    model: str
    text: texts.Shown
    reasoning: list[texts.Shown] = []
    calls: list[KeptCall] = []
    usage: KeptUsage | None


class Exchange(_Kept):
    step: str
    request: KeptRequest
    answer: KeptAnswer

    def asked(self) -> dict[str, Json]:
        """Return the request in normal form."""
        return self.request.model_dump(by_alias=True, exclude_defaults=True)

    def answered(self, asked: normal_form.Normal) -> Answer:
        """Return the answer with the texts of the given request."""
        kept = self.answer
        return Answer(
            asked.undo(kept.text),
            Usage(**kept.usage.model_dump()) if kept.usage is not None else None,
            kept.model,
            reasoning=tuple(map(asked.undo, kept.reasoning)),
            calls=tuple(
                ToolCall(each.call.replace(" ", "_"), each.tool, asked.undo(each.arguments)) for each in kept.calls
            ),
        )


EXCHANGES: TypeAdapter[list[Exchange]] = TypeAdapter(list[Exchange])


def path_of(workflow: Path) -> Path:
    return workflow.parent / "cassettes" / f"{workflow.stem}.json"


def how_to_record(workflow: Path) -> str:
    return f"runops run {workflow} --model-calls record"


def exchange(step: str, asked: normal_form.Normal, answer: Answer) -> Json:
    """Return an exchange in the form of a cassette."""
    sound = [dataclasses.replace(each, arguments=normalise(each.arguments)) for each in answer.calls]
    found: dict[str, Json] = {
        "model": answer.model,
        "text": texts.shown(asked.apply(normalise(answer.text))),
        "reasoning": [texts.shown(asked.apply(normalise(each))) for each in answer.reasoning],
        "calls": [
            {"call": name, "tool": each.name, "arguments": texts.shown(each.arguments)}
            for name, each in asked.named(sound)
        ],
        "usage": dataclasses.asdict(answer.usage) if answer.usage is not None else None,
    }
    messages: list[dict[str, Json]] = asked.request["messages"]
    shown = {
        "instructions": texts.shown(asked.request["instructions"]),
        "messages": [
            {name: texts.shown(said) if name in ("text", "arguments") else said for name, said in each.items()}
            for each in messages
        ],
    }
    answered = {name: value for name, value in found.items() if value != []}
    return {"step": step, "request": asked.request | shown, "answer": answered}


def written(exchanges: Sequence[Json]) -> bytes:
    return (json.dumps({FORMAT: VERSION, "exchanges": exchanges}, ensure_ascii=False, indent=2) + "\n").encode()


class Recorder:
    """Records the exchanges of a run, and makes a cassette of them once the run has passed."""

    def __init__(
        self,
        workflow: Path,
        private: Path,
        known: Mapping[str, str],
        masked: Mapping[str, str] | None = None,
        origins: Sequence[str] = (),
    ) -> None:
        """``private`` is the run's folder, with earlier recordings. Values of ``masked`` are secrets without a placeholder."""
        self._workflow = workflow
        self._folder = private / "cassette"
        self._secrets = known
        self._masked = masked or {}
        self._origins = origins

    def take(self, number: int, step: str, request: Request, answer: Answer) -> None:
        """Record and sync exchange ``number`` of the run, counted from 0. Raises LogError where it cannot be written."""
        asked = normal_form.normal(request, self._secrets, self._origins)
        kept = json.dumps(exchange(step, asked, answer), ensure_ascii=False)
        path = self._kept(number)
        try:
            files.folder(self._folder)
            files.write(path, kept.encode())
        except OSError as error:
            raise files.not_written("what is recorded for the cassette", path, error) from None

    def demand(self, count: int) -> None:
        """Raise UsageError ``cassette-incomplete`` where one of the first ``count`` exchanges of the run was not recorded."""
        for number in range(count):
            if not self._kept(number).is_file():
                raise self._incomplete(number)

    def publish(self, count: int) -> Path:
        """Write the cassette of a passed run with ``count`` exchanges; an error leaves the previous one.

        Raises UsageError ``cassette-secret``, ``cassette-incomplete`` where the run began without recording, ``file-not-written``.
        """
        exchanges = [self._exchange(number) for number in range(count)]
        for each in exchanges:
            self._refuse_secrets(each)
        path, data = path_of(self._workflow), written(exchanges)
        try:
            if not path.is_file() or regular_files.read(path) != data:
                files.folder(path.parent, 0o777)
                published.publish(path, data)  # unlike a run's files, it belongs in the repository
        except OSError as error:
            raise UsageError(
                "file-not-written",
                f"the cassette {path} cannot be written: {error.strerror or error}",
                fix="look at the permissions of its folder",
            ) from None
        return path

    def _kept(self, number: int) -> Path:
        return self._folder / f"{number:06}.json"

    def _incomplete(self, number: int) -> UsageError:
        return UsageError(
            "cassette-incomplete",
            f"exchange {number + 1} of the run was not recorded, so there is no cassette of it",
            fix=f"record a whole run: {how_to_record(self._workflow)}",
        )

    def _exchange(self, number: int) -> Json:
        path = self._kept(number)
        try:
            return json.loads(regular_files.read(path))
        except FileNotFoundError:
            raise self._incomplete(number) from None
        except OSError as error:
            raise files.not_read("what was recorded for the cassette", path, error) from None

    def _refuse_secrets(self, kept: Json) -> None:
        # Check the file's text and the original texts: in the file, a text shown as lines has no line breaks.
        said = [
            json.dumps(kept, ensure_ascii=False, indent=2),
            json.dumps(kept, ensure_ascii=False),
            *texts.all_of(kept),
        ]
        for name, value in (*self._secrets.items(), *self._masked.items()):
            masker = masking.Masker({name: value})
            if any(masker.holds(each) for each in said):
                raise UsageError(
                    "cassette-secret",
                    f"the secret {name} is in the texts of step {kept['step']} and its model, so no cassette was written",
                    fix="leave the value out of what the model is sent, then record again",
                    evidence={"step": kept["step"], "secret": name},
                )


class Player:
    def __init__(
        self, workflow: Path, exchanges: Sequence[Exchange], known: Mapping[str, str], origins: Sequence[str]
    ) -> None:
        self._workflow = workflow
        self._exchanges = exchanges
        self._secrets = known
        self._origins = origins

    @classmethod
    def open(cls, workflow: Path, known: Mapping[str, str] | None = None, origins: Sequence[str] = ()) -> Player:
        """Open the cassette of a workflow file. Raises UsageError ``cassette-missing``, ``cassette-damaged``, ``cassette-too-new``."""
        return cls(workflow, _read(path_of(workflow), how_to_record(workflow)), known or {}, origins)

    def model(self, number: int) -> str:
        """Return the recorded model of exchange ``number`` of the run; after the end, that of the last one."""
        return self._exchanges[min(number, len(self._exchanges) - 1)].request.model if self._exchanges else ""

    def answer(self, number: int, step: str, request: Request) -> Answer:
        """Return the answer to exchange ``number`` of the run, counted from 0. Raises CassetteMiss ``cassette-miss`` with the difference."""
        asked = normal_form.normal(request, self._secrets, self._origins)
        kept = self._exchanges[number] if number < len(self._exchanges) else None
        if kept is not None and kept.step == step and normal_form.same(kept.asked(), asked.request):
            return kept.answered(asked)
        raise self._miss(number, step, asked.request, kept)

    def left_over(self, count: int) -> str | None:
        """Return a message where the cassette has more than the ``count`` exchanges of a passed run."""
        more = len(self._exchanges) - count
        if more <= 0:
            return None
        have = "exchange that the run did not have" if more == 1 else "exchanges that the run did not have"
        return f"the cassette has {more} more {have}, the first of step {self._exchanges[count].step}; record it again: {how_to_record(self._workflow)}"

    def _miss(self, number: int, step: str, asked: dict[str, Json], kept: Exchange | None) -> CassetteMiss:
        found = differences.Difference(("end",), f"the cassette has only {len(self._exchanges)} exchanges")
        if kept is not None:
            found = differences.between(kept.step, kept.asked(), step, asked)
        evidence: dict[str, Json] = {
            "cassette": str(path_of(self._workflow)),
            "exchange": number + 1,
            "differs": ", ".join(found.parts),
            "difference": found.text,
        }
        places = [
            index + 1
            for index, each in enumerate(self._exchanges)
            if each.step == step and normal_form.same(each.asked(), asked)
        ]
        if places:
            evidence["order"] = f"the very same request is exchange {places[0]} of the cassette: the order has changed"
        return CassetteMiss(
            "cassette-miss",
            f"step {step} asks its model what the cassette does not have: {found.summary}",
            fix=f"if it is meant to ask that, record the cassette again: {how_to_record(self._workflow)}",
            evidence=evidence,
        )


def _read(path: Path, record: str) -> list[Exchange]:
    try:
        with regular_files.opened(path) as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise UsageError("cassette-missing", f"there is no cassette {path}", fix=f"record it: {record}") from None
    except OSError as error:
        raise UsageError(
            "file-not-read",
            f"the cassette {path} cannot be read: {error.strerror or error}",
            fix=regular_files.fix(error),
        ) from None
    if len(data) > LARGEST:
        raise _damaged(str(path), f"it has more than {LARGEST >> 20} MiB", record)
    try:
        whole = json.loads(data)
    except json.JSONDecodeError as error:
        raise _damaged(f"{path}:{error.lineno}", f"{error.msg}, at column {error.colno}", record) from None
    except (RecursionError, ValueError) as error:
        raise _damaged(str(path), str(error), record) from None
    said: dict[str, Json] = whole if isinstance(whole, dict) else {}
    version = said.get(FORMAT)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _damaged(str(path), f"`{FORMAT}` does not say its version", record)
    if version > VERSION:
        raise UsageError(
            "cassette-too-new",
            f"{path} is a cassette of version {version}, and this RunOps reads {VERSION}",
            fix=f"use a later RunOps, or record it again: {record}",
        )
    try:
        return EXCHANGES.validate_python(said.get("exchanges"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(each) for each in ("exchanges", *first["loc"]))
        raise _damaged(str(path), f"{place}: {first['msg']}", record) from None


def _damaged(where: str, what: str, record: str) -> UsageError:
    return UsageError(
        "cassette-damaged",
        f"{where}: the cassette cannot be used: {what}",
        fix=f"take it back from version control, or record it again: {record}",
    )
