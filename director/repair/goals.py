"""Makes the goal and the evidence of a build that looks for a fix where no candidate was proved. Pure."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from director.draft.goal import Goal, Policy
from director.repair import failure_kinds
from nodes.values import Json
from runtime.context import briefs
from runtime.display.text import cut, one_line
from runtime.language import workflow
from runtime.log import entries, history
from runtime.log.store import store as log_store
from runtime.observation import page_text

if TYPE_CHECKING:
    from director.repair import repair

ASKED = failure_kinds.PATCHED | {"unknown"}
WORDS = 4_000
LINE = 400


def is_open(outcome: repair.Outcome) -> bool:
    """Return whether a model could find more: a fix in the file is possible, none is proved, and no person refused a proof."""
    proved = outcome.proof is not None and (outcome.proof.verdict != "guess" or outcome.refused)
    return outcome.found.kind in ASKED and not proved and not outcome.works_now and not outcome.case.gone


def of(
    outcome: repair.Outcome,
    past: history.History,
    loaded: workflow.Loaded,
    store: log_store.StoreReader,
    *,
    policy: Policy,
    runs: int,
) -> Goal:
    assert past.header is not None
    declared = loaded.workflow.inputs
    inputs: Mapping[str, Json] = {name: value for name, value in past.header.inputs.items() if name in declared}
    path = outcome.case.failure.path
    file = loaded.path.absolute()
    return Goal(
        goal=f"Fix the step `{briefs.ours(path)}` of the workflow {loaded.workflow.name!r}, which fails.",
        url=_site(outcome.case.failure.asked_for),
        save=(store.files(outcome.case.run) / f"{file.stem}.fixed.yaml").absolute(),
        runs=runs,
        policy=policy,
        inputs=inputs,
        secrets=tuple(loaded.workflow.secrets),
        force=True,
        repairs=entries.Repairs(run=outcome.case.run, path=path, file=str(file), evidence=evidence(outcome)),
    )


def _site(url: str | None) -> str | None:
    """Return an address that the run opened, without query and fragment; None if it is not fit for a goal."""
    if url is None:
        return None
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.username is not None or not parts.hostname:
        return None
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def evidence(outcome: repair.Outcome) -> str:
    """Return the evidence of the failure: the step and its error in our words, page content as data."""
    failure, found, then = outcome.case.failure, outcome.found, outcome.case.then
    lines = [f"error: {_fact(failure.message)} ({failure.code})"]
    lines += [f"looked for: {_fact(str(failure.target))}"] if failure.target is not None else []
    lines.append(f"why {found.kind}: {_fact(found.why)}")
    lines += [f"tried in vain: {_fact(each)}" for each in outcome.tried]
    if outcome.proof is not None:
        lines += [f"only guessed, not proved: {_fact(each.what)}" for each in outcome.proof.repairs]
    if then is not None:
        lines.append(f"page then: {_fact(then.url)}")
        lines += [f"alert: {_fact(then.alert)}"] if then.alert else []
        lines += ["it showed:", cut(then.words, WORDS)] if then.words else []
    step = (
        f"A run failed at the step `{briefs.ours(failure.path)}` with {failure.code}; it was taken for: {found.kind}."
    )
    return f"{step} What is known of it:\n{page_text.fenced(chr(10).join(lines))}"


def _fact(text: str) -> str:
    return cut(one_line(text), LINE)
