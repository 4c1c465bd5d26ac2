"""The fake API without HTTP: its state, and the answers to its operations."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal

from nodes.values import Json
from runtime.testing import scripted_model
from runtime.testing.responses import rules, shapes
from runtime.testing.responses.rules import ApiError, Profile
from runtime.testing.scripted_model import Answer, AskedFor, Broken, Failure, Item


@dataclasses.dataclass(slots=True)
class Made:
    """A request with its scripted answer, and its response as stored."""

    answer: Answer | Broken | Failure  # the script's answer
    asked: AskedFor
    begun: dict[str, Any]  # the response at its beginning
    ended: dict[str, Any]  # the response at its end
    since: float  # time of creation by the server's clock
    state: Literal["queued", "in_progress", "cancelled", "ended"] = "ended"
    polls: int = 0  # number of polls so far

    @property
    def now(self) -> dict[str, Any]:
        return self.ended if self.state == "ended" else {**self.begun, "status": self.state}

    def look(self, now: float) -> None:
        if self.state in ("cancelled", "ended") or not isinstance(self.answer, Answer):
            return
        self.polls += 1
        done = self.polls > self.answer.polls and now - self.since >= self.answer.seconds
        open_gate = self.answer.gate is None or self.answer.gate.is_set()
        self.state = "ended" if done and open_gate else "in_progress"


@dataclasses.dataclass
class Api:
    model: scripted_model.Model
    profile: Profile
    models: tuple[str, ...] | None  # the known names; None for any
    ending: Mapping[str, str]  # shutdown dates of some models
    tokens: shapes.Tokens
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.problems = list[str]()
        self._lock = threading.RLock()
        self._stored = dict[str, Made]()
        self._forgotten = set[str]()
        self._sealed = dict[str, list[rules.Sealed]]()  # by the id of the call that they lead to
        self._faults = dict[str, list[Failure]]()
        self._asked = 0
        self._made = 0

    def create(self, body: Json) -> Made:
        with self._lock:
            read = rules.check_fields(body, self.profile)
            self._check_model(read["model"])
            rules.check_format(read, self.profile)
            thread = self._before(read.get("previous_response_id")) + rules.items_of(read.get("input"))
            rules.check_thread(thread, self._stored_items())
            rules.check_sealed(thread, read["model"], self._sealed)
            self._asked += 1
            asked = AskedFor(self._asked, read, tuple(thread))
            return self._make(asked, self._answer(asked))

    def _answer(self, asked: AskedFor) -> Answer | Broken | Failure:
        try:
            return self.model.answer(asked)
        except scripted_model.ScriptError as error:
            self.problems.append(str(error))
            said = f"The scripted model cannot answer: {error}."
            raise ApiError(said, "script", status=500, violation=False, kind="server_error") from error

    def _make(self, asked: AskedFor, answer: Answer | Broken | Failure) -> Made:
        said = (answer.before or Answer()) if isinstance(answer, Broken) else answer
        if isinstance(said, Failure):
            return Made(answer, asked, {}, {}, self.clock())
        self._made += 1
        keeps = self.profile.keeps and asked.body.get("store") is not False
        begun = shapes.beginning(self._made, asked.body, keeps=keeps)
        sealed = rules.SEALED in (asked.body.get("include") or ())
        read = shapes.asked_text(asked.body, asked.items)
        ended = shapes.ended(begun, said, read, self.tokens, sealed=sealed)
        self._check_limit(asked, ended)
        if sealed:
            self._note_sealed(ended)
        made = Made(answer, asked, begun, ended, self.clock())
        if keeps and isinstance(answer, Answer):
            if begun["background"]:
                made.state = "queued"
                self._faults[begun["id"]] = list(answer.poll_faults)
            self._stored[begun["id"]] = made
        return made

    def _note_sealed(self, ended: dict[str, Any]) -> None:
        led = list[rules.Sealed]()
        for item in ended["output"]:
            if item["type"] == "reasoning":
                led.append(rules.Sealed(item["id"], item["encrypted_content"], ended["model"]))
            else:
                if item["type"] == "function_call":
                    self._sealed[item["call_id"]] = led
                led = []

    def _check_limit(self, asked: AskedFor, ended: dict[str, Any]) -> None:
        limit: int | None = asked.body.get("max_output_tokens")
        used: int = ended["usage"]["output_tokens"] if ended["usage"] else 0
        if limit is not None and used > limit:
            self.problems.append(
                f"the answer to request {asked.number} has {used} tokens, and the request allowed {limit}: no server sends that"
            )

    def _check_model(self, name: str) -> None:
        if self.models is not None and name not in self.models:
            said, status = f"The requested model '{name}' does not exist.", self.profile.unknown_model
            raise ApiError(said, "model_not_found", "model", status, violation=False)

    def _before(self, previous: str | None) -> list[Item]:
        if previous is None:
            return []
        stored = self._stored.get(previous)
        if stored is None:
            raise ApiError(
                f"Previous response with id '{previous}' not found.",
                "previous_response_not_found",
                "previous_response_id",
                violation=previous not in self._forgotten,
            )
        if stored.state != "ended":
            raise ApiError(f"Previous response '{previous}' is not completed.", param="previous_response_id")
        return [*stored.asked.items, *stored.ended["output"]]

    def _stored_items(self) -> set[str]:
        return {item["id"] for stored in self._stored.values() for item in stored.ended["output"]}

    def retrieve(self, name: str) -> dict[str, Any] | Failure:
        with self._lock:
            stored = self._find(name)
            if faults := self._faults.get(name):
                return faults.pop(0)
            stored.look(self.clock())
            return stored.now

    def again(self, name: str) -> Made:
        with self._lock:
            stored = self._find(name)
            if stored.state == "cancelled":
                raise ApiError(f"Response with id '{name}' was cancelled.", violation=False)
            return stored

    def end(self, name: str) -> None:
        """End a background response that was streamed to its end."""
        with self._lock:
            stored = self._stored.get(name)
            if stored is not None and stored.state != "cancelled":
                stored.state = "ended"

    def cancel(self, name: str) -> dict[str, Any]:
        with self._lock:
            stored = self._find(name)
            if not stored.begun["background"]:
                raise ApiError("Cannot cancel a synchronous response.")
            if stored.state in ("queued", "in_progress"):
                stored.state = "cancelled"
            return stored.now

    def delete(self, name: str) -> dict[str, Any]:
        with self._lock:
            self._find(name)
            del self._stored[name]
            return {"id": name, "object": "response", "deleted": True}

    def forget(self) -> None:
        """Lose all responses, as a server may at a restart. Continuing or fetching one of them is then no violation by the client."""
        with self._lock:
            self._forgotten |= self._stored.keys()
            self._stored.clear()

    def list_models(self) -> dict[str, Any]:
        names = self.models if self.models is not None else ("scripted",)
        return {"object": "list", "data": [shapes.model(name, self.ending.get(name)) for name in names]}

    def _find(self, name: str) -> Made:
        if name not in self._stored:
            violation = name not in self._forgotten and self.profile.keeps
            raise ApiError(f"Response with id '{name}' not found.", status=404, violation=violation)
        return self._stored[name]
