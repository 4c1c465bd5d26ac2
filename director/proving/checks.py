"""What the log of a run says of the checks of its actions: whether ``verify`` and ``confirm`` agreed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from director.effects import effects
from director.proving import proofs
from runtime.context import briefs
from runtime.display.text import cut
from runtime.language import workflow
from runtime.log import history

SAID_NOT_DONE = "done, and its `confirm` says that it is not"
COULD_NOT_TELL = "done, and its `confirm` could not tell"
AGREES = ", `confirm` agrees"
A_RULE = 80  # limit of a rule that is named, in characters
RESCUED = "its `verify` failed, and its `confirm` says that it is done"


def disagreed(loaded: workflow.Loaded, past: history.History) -> dict[str, str]:
    """Return statements about actions whose ``verify`` and ``confirm`` disagreed, by key, for any item."""
    found: dict[str, str] = {}
    for path, said in statements(past).items():
        found.setdefault(effects.key_of(loaded, path), said)
    return found


def agreed(loaded: workflow.Loaded, every: Sequence[proofs.Ran], key: str) -> str:
    """Return that the ``confirm`` of an action said *not done* before and *done* after it in each run that did it; else empty."""
    said = {
        (str(each["when"]), str(each["found"]))
        for ran in every
        if ran.past is not None and ran.became(key) == "done"
        for each in ran.past.confirms_tried
        if effects.key_of(loaded, str(each["path"])) == key
    }
    return AGREES if said == {("before", "not-done"), ("after", "done")} else ""


def statements(past: history.History) -> dict[str, str]:
    """Return the same by step path."""
    found = dict(_rescued(past))
    for each in past.confirms_tried:
        if each["when"] == "after" and each["found"] != "done":
            found[str(each["path"])] = SAID_NOT_DONE if each["found"] == "not-done" else COULD_NOT_TELL
    return found


def _rescued(past: history.History) -> Iterator[tuple[str, str]]:
    for path, attempts in past.attempts.items():
        last = attempts[-1].result
        if last is not None and last.status == "recovered" and (last.error or {}).get("code") == "verify-failed":
            rule = cut(str((last.error or {}).get("evidence", {}).get("rule", "")), A_RULE)
            yield path, RESCUED.replace("`verify`", f"`verify` ({rule})") if rule else RESCUED


def fixes(past: history.History) -> Iterator[str]:
    """Yield hints with the fixes of each ``confirm`` that failed in a part of the page that may be closed again."""
    said = {
        effects.static(briefs.ours(str(each["path"]))): str(each["fix"])
        for each in past.confirms_tried
        if "fix" in each
    }
    for key, fix in said.items():
        yield f"hint: in the `confirm` of `{key}`: {fix}"


def not_looked_at(loaded: workflow.Loaded, ran: Sequence[proofs.Ran]) -> list[str]:
    """Return the actions with a ``verify`` or ``confirm`` that none of these runs looked at, as none did the action."""
    return [
        f"{key} ({' and '.join(has)})"
        for leaf, key in effects.actions_of(loaded)
        if (has := [field for field in ("verify", "confirm") if getattr(leaf, field)])
        and not any(each.became(key) == "done" for each in ran)
    ]


def failed_before(past: history.History) -> list[str]:
    """Return the paths of actions before which a ``confirm`` ended with an error, though it could tell after them."""
    doubtful = statements(past)
    return [
        str(each["path"])
        for each in past.confirms_tried
        if (each["when"], each["found"]) == ("before", "unknown") and each["path"] not in doubtful
    ]
