"""Reads the failed step from a run's log."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from director.effects import effects
from director.repair import candidates, failure_kinds
from nodes.base import Leaf
from nodes.browser_query import rows
from nodes.errors import UsageError
from nodes.rules import Rule
from nodes.targets import Target
from nodes.values import Json
from runtime.engine import evidence
from runtime.language import workflow
from runtime.log import history
from runtime.log.store import store as log_store
from runtime.log.writer import value_of
from runtime.system import regular_files

Field = tuple[str | int, ...]
"""Path of a target in a node: ``("target",)``, ``("verify", 0, "target")``."""

_WHOLE = re.compile(r"\{\{(.*)\}\}", re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    run: str
    failure: failure_kinds.Failure
    then: failure_kinds.PageGlance | None
    found: workflow.Found | None  # from the current file; None if it no longer has the step
    args: Mapping[str, Json]  # the step's arguments, references resolved
    field: Field  # path of the target that found nothing

    @property
    def gone(self) -> bool:
        return bool(self.failure.path) and self.found is None

    @property
    def leaf(self) -> Leaf | None:
        return self.found.node if self.found is not None and isinstance(self.found.node, Leaf) else None

    @property
    def raw(self) -> Target | None:
        value: Any = self.leaf
        for step in self.field:
            if value is None:
                return None
            value = value[step] if isinstance(step, int) else getattr(value, step, None)
        return value if isinstance(value, Target) else None

    @property
    def target(self) -> Target | None:
        """The target with references resolved, if the file still has it."""
        return self.failure.target if self.raw is not None else None

    @property
    def rules(self) -> list[Rule]:
        found = [_parsed(Rule, each) for each in self.args.get("verify") or ()]
        return [each for each in found if each is not None]

    @property
    def types_secret(self) -> bool:
        """True if the step types a value that is, or may contain, a secret."""
        if self.leaf is None or self.found is None or self.failure.action not in ("fill", "type"):
            return False
        written = [each for each in effects.texts(effects.core(self.leaf)) if each in self.found.file.templates]
        secret = any(use.root == "secrets" for each in written for use in self.found.file.templates[each].names)
        return secret or "{{ secrets." in str(self.args.get("value"))

    @property
    def column(self) -> tuple[str, bool, list[candidates.Score]] | None:
        """The column whose header is missing: its name, True if it is numeric, and the free headers, likeliest first."""
        read: Mapping[str, rows.ColumnOf] = getattr(self.leaf, "columns", None) or {}
        known, header = self.failure.evidence.get("headers"), str(self.failure.evidence.get("header"))
        name = next((name for name, each in read.items() if str(each.header) == header), None)
        if name is None or not isinstance(known, list):
            return None
        taken = {str(each.header).casefold() for each in read.values()}
        free = [str(each) for each in known if str(each).casefold() not in taken]
        meant = candidates.Meant(header, "", "", "columnheader", "")
        seen = [candidates.Seen(each, "columnheader", each) for each in free]
        return name, read[name].type != "text", candidates.ranked(meant, seen)

    def refills(self) -> Callable[[str], str]:
        """Return a function that replaces values in a text by the references that yielded them in the step."""
        known: dict[str, str] = {}
        if self.leaf is not None:
            raw = self.leaf.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
            _pairs(raw, self.args, known)
        texts = sorted(known, key=len, reverse=True)

        def refill(text: str) -> str:
            for each in texts:
                text = re.sub(rf"(?<!\w){re.escape(each)}(?!\w)", lambda _found, said=known[each]: said, text)
            return text

        return refill


def _pairs(raw: Json, filled: Json, known: dict[str, str]) -> None:
    if isinstance(raw, dict) and isinstance(filled, dict):
        for name, each in raw.items():
            if name in filled:
                _pairs(each, filled[name], known)
    elif isinstance(raw, list) and isinstance(filled, list):
        for one, other in zip(raw, filled, strict=False):
            _pairs(one, other, known)
    elif isinstance(raw, str) and isinstance(filled, str | int) and not isinstance(filled, bool):
        said = _WHOLE.fullmatch(raw.strip())
        # A single letter would match everywhere.
        if said is not None and "}}" not in said[1] and "secrets" not in said[1] and len(str(filled)) > 1:
            known.setdefault(str(filled), raw.strip())


def read(run: str, past: history.History, store: log_store.StoreReader, loaded: workflow.Loaded) -> Case:
    """Return the failure with which the run ended. Raises UsageError ``not-failed`` if it did not fail."""
    ending = past.ending
    if ending is None or ending.status != "failed":
        state = f"is {ending.status}" if ending is not None else "died"
        raise UsageError(
            "not-failed",
            f"run {run} has not failed: it {state}",
            fix=f"continue with `runops resume {run}`",
        )
    error: dict[str, Json] = ending.data.get("error") or {}
    path = str(ending.data.get("path") or "")
    found = loaded.find(path) if path else None
    leaf = found.node if found is not None and isinstance(found.node, Leaf) else None
    last = past.last(path)
    args: dict[str, Json] = (value_of(last.call, store) or {}) if last is not None else {}
    field, target = _target(args, error)
    failure = failure_kinds.Failure(
        path=path,
        code=str(error.get("code")),
        who=str(error.get("who")),
        message=str(error.get("message", "")),
        evidence=error.get("evidence") or {},
        target=target,
        action=(last.call.action or "") if last is not None else "",
        seconds=leaf.page_seconds if leaf is not None else 10.0,
        asked_for=_asked_for(past, store, path),
        signed_in=_signed_in(past, store, path),
    )
    shown = evidence.of(past, path)
    then = failure_kinds.PageGlance.of(shown, _page_text(shown)) if shown is not None else None
    return Case(run, failure, then, found, args, field)


def _target(args: Mapping[str, Json], error: Mapping[str, Json]) -> tuple[Field, Target | None]:
    """Return the target that failed: the step's, or that of the failed rule."""
    evidence: Mapping[str, Json] = error.get("evidence") or {}
    if error.get("code") in failure_kinds.RULES:
        for name in ("verify", "rules"):
            for number, each in enumerate(args.get(name) or ()):
                rule = _parsed(Rule, each)
                for part in ("visible", "hidden", "target") if str(rule) == evidence.get("rule") else ():
                    if (target := getattr(rule, part)) is not None:
                        return (name, number, part), target
        return ("verify",), None
    return ("target",), _parsed(Target, args.get("target"))


def _parsed(model: Any, value: Json) -> Any:
    try:
        return model.model_validate(value) if isinstance(value, dict) else None
    except ValidationError:
        return None


def _asked_for(past: history.History, store: log_store.StoreReader, path: str) -> str | None:
    """Return the last address that the run opened, up to the step at ``path``."""
    opened: list[dict[str, Json]] = [
        value_of(each.call, store) or {}
        for each in past.all_attempts()
        if each.call.action in effects.OPENS and (each.settled or each.call.path == path)
    ]
    urls = [str(args["url"]) for args in opened if isinstance(args.get("url"), str)]
    return urls[-1] if urls else None


def _signed_in(past: history.History, store: log_store.StoreReader, path: str) -> bool:
    """Return whether a secret was typed, or a signed-in state loaded, before the step at ``path``."""
    calls = [each.call for each in past.all_attempts() if each.settled and each.call.path != path]
    return any(
        call.action == "load_session"
        or (call.action in ("fill", "type") and "{{ secrets." in str(value_of(call, store)))
        for call in calls
    )


def _page_text(shown: Mapping[str, Json]) -> str:
    kept: Mapping[str, Json] = shown.get("observation") or {}
    try:
        return regular_files.read_text(Path(str(kept["path"])))
    except (KeyError, OSError, UnicodeDecodeError):
        return ""
