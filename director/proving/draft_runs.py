"""Runs a whole draft: in a fresh browser, with the person's inputs, as a separate run started from the session."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime as dt
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from director.editing import limits, unused_values
from director.effects import effects
from director.proving import checks, guards, proofs, resets, short_values
from director.tools.toolbox import FINISH
from nodes.browser_action import files
from nodes.errors import ModelError, SetupError, UsageError
from nodes.values import Json
from runtime import events
from runtime.engine import evidence, run_state, tried_confirms
from runtime.language import callees, prepare, reader, workflow
from runtime.log import attempts, entries, history
from runtime.log.writer import value_of
from runtime.secrets import masking
from runtime.services import functions

if TYPE_CHECKING:
    from director.tools import build_context as build_contexts
    from director.tools.build_context import BuildContext

RUN_DRAFT = "run_draft"

WHOLE = (RUN_DRAFT, FINISH)
MOST_BEFORE = 50


def as_saved(build: BuildContext) -> workflow.Loaded:
    """Return the draft as the file that it will be saved as, so that the saved text is the proved one.

    Raises ModelError ``draft-missing``, and WorkflowInvalid if it is invalid there, such as for a path to another file.
    """
    draft = build.state.draft
    if draft is None:
        raise ModelError("draft-missing", "there is no draft yet", fix="begin it with `create_nodes`")
    place = build.goal.place.absolute()
    return reader.parse(draft.text, str(place), callees.Project(workflow.workspace(place.parent)))


def prepared(build: BuildContext, loaded: workflow.Loaded, inputs: Mapping[str, Json]) -> prepare.Prepared:
    """Return the prepared run of the draft.

    Raises UsageError for inputs that do not fit or contain a secret, ModelError ``origin-not-named``, SetupError ``secret-missing``.
    """
    functions.check(loaded, build.here.settings.python_modules)
    typed = loaded.check_inputs(inputs)
    _refuse_origins(build, loaded, typed)
    known = build.known()
    missing = [each for each in loaded.workflow.secrets if each not in known]
    if missing:
        raise SetupError(
            "secret-missing",
            f"not set: {', '.join(missing)}",
            fix="only the person can set it in the environment of the build: `ask_user`, or do without",
        )
    if masking.Masker(known).json(typed) != typed:
        raise UsageError(
            "secret-in-input",
            "an input holds a secret, and inputs are kept in the log",
            fix="read it as `{{ secrets.NAME }}` where it is typed",
        )
    return prepare.Prepared(loaded, typed, dict(known))


def _refuse_origins(build: BuildContext, loaded: workflow.Loaded, typed: Mapping[str, Json]) -> None:
    """Raise ModelError ``origin-not-named`` for inputs that lead to a site that neither the person nor the person's inputs name."""
    named = limits.granted(build.goal)
    if theirs := _theirs(build, loaded):
        named |= set(loaded.origins(theirs))
    wrong = [each for each in loaded.origins(typed) if each not in named]
    if wrong:
        raise ModelError(
            "origin-not-named",
            f"with these inputs the draft would open {', '.join(wrong)}, which the person has not named",
            fix=f"these may be opened: {', '.join(sorted(named))}",
        )


def _theirs(build: BuildContext, loaded: workflow.Loaded) -> dict[str, Json]:
    """Return the person's inputs; empty if they do not fit the draft."""
    with contextlib.suppress(UsageError):
        return loaded.check_inputs(declared(build, loaded))
    return {}


def declared(build: BuildContext, loaded: workflow.Loaded) -> dict[str, Json]:
    return {name: each for name, each in build.goal.inputs.items() if name in loaded.workflow.inputs}


def parsed_inputs(text: Json) -> dict[str, Json]:
    """Parse inputs written by a model. Raises ModelError ``tool-arguments``."""
    if text is None or not str(text).strip():
        return {}
    try:
        value: Json = json.loads(str(text))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelError("tool-arguments", "`inputs` is no JSON map", fix='write it like `{"number": "1007"}`, or null')
    return value


def has_goal_inputs(build: BuildContext, loaded: workflow.Loaded, call: entries.Call) -> bool:
    """Return whether a call of ``run_draft`` runs this draft with the person's inputs."""
    with contextlib.suppress(UsageError, ModelError):
        inputs = {**declared(build, loaded), **parsed_inputs(call.args.get("inputs"))}
        return loaded.check_inputs(inputs) == _theirs(build, loaded)
    return False


async def run(
    build: BuildContext, call: entries.Call, loaded: workflow.Loaded, fit: prepare.Prepared, holds: run_state.Withholds
) -> proofs.Ran:
    """Run the draft once, from start to end. Raises RunOpsError only if it could not begin.

    The bench changes only with the goal's inputs: values from other inputs would displace valid ones. A ``run_draft`` with these also
    leaves its page there. The person's reset is run first: SetupError ``reset-failed``.
    """
    own = dict(fit.inputs) == _theirs(build, loaded)
    reset = await _reset(build, call, forgets=own)
    watch: run_state.Watch | None = None
    stage: build_contexts.Stage | None = None
    more: dict[str, Any] = {}
    if own:
        if call.action == RUN_DRAFT:
            stage = build.bench.stage(fit, call)
            watch, more = stage.watch, {"browsers": await stage.opened()}
        else:
            watch = build.bench.onlooker(fit, call)
    ended = await build.runs.follow(
        call,
        lambda listener, options: build.carrier.begin(
            fit,
            listener=listener,
            options=dataclasses.replace(options, holds=holds, watch=watch, proves=True, **more),
        ),
        reset=reset,
    )
    ran = of_ended(ended, loaded, await asyncio.to_thread(build.runs.past, ended.run), reset=reset)
    ran = dataclasses.replace(ran, aside=not own)
    ran = dataclasses.replace(ran, short=_short(build, loaded, ran.past)) if own and ran.past is not None else ran
    return dataclasses.replace(ran, page=await stage.left(ended)) if stage is not None else ran


def of_ended(
    ended: events.RunEnded, loaded: workflow.Loaded, past: history.History | None, *, reset: bool
) -> proofs.Ran:
    """Return what a run that ended proves; ``past`` is its log, None if that cannot be read."""
    reason = (ended.question or {}).get("reason") if ended.status == "paused" else None
    withheld = str(ended.path) if reason == "held" else None
    already = str(ended.path) if reason == tried_confirms.DONE_ALREADY else None
    ran = proofs.Ran(
        run=ended.run,
        status=ended.status,
        outcomes={},
        withheld=withheld,
        already=already,
        path=ended.path if withheld is None and already is None else None,
        error=(ended.error or ended.question) if withheld is None else None,
        output=ended.output,
        seconds=round(ended.seconds, 1),
        reset=reset,
    )
    return _with_log(ran, loaded, past) if past is not None else ran


async def _reset(build: BuildContext, call: entries.Call, *, forgets: bool) -> bool:
    """Put the site's data back if the person has said how; return whether it was done. What it said is logged.

    ``forgets``: the bench gives up what it has, which is of the data before.

    Raises SetupError ``reset-failed``.
    """
    reset = resets.of(build.here, build.goal.place.parent)
    if reset is None:
        return False
    if forgets:
        await build.bench.forget("the site was reset before a whole run")
    mask = build.masker.text
    build.listener.waiting("the reset")
    done = await reset.carry_out(mask)
    build.writer.noted("reset", {"call": call.call, **done.as_logged()}, entries.SESSION_THREAD)
    build.listener.reset(done.describe(mask(reset.command)))
    done.check("only the person can fix it: `ask_user`")
    return True


def _with_log(ran: proofs.Ran, loaded: workflow.Loaded, past: history.History) -> proofs.Ran:
    return dataclasses.replace(
        ran,
        outcomes=proofs.outcomes_of(loaded, past),
        moot=proofs.moot(loaded, past),
        on_errors=proofs.on_errors(loaded, past),
        disagreed=checks.disagreed(loaded, past),
        passed=guards.passed_by(loaded, past),
        past=past,
    )


def _pasts(build: BuildContext, tools: Collection[str]) -> Iterator[tuple[str, history.History]]:
    """Yield the last ``MOST_BEFORE`` runs that calls of these tools began in this session, with their logs, oldest first."""
    session = build.writer.history
    runs = [run for call, runs in session.runs_of.items() if session.actions[call].call.action in tools for run in runs]
    for run_id in runs[-MOST_BEFORE:]:
        if (past := build.runs.past(run_id)) is not None:
            yield run_id, past


class Earlier(NamedTuple):
    """Passed runs of a draft, oldest first."""

    same: tuple[proofs.Ran, ...]
    others: tuple[proofs.Ran, ...]  # those with other inputs


def passed_before(build: BuildContext, fit: prepare.Prepared) -> Earlier:
    """Return this session's passed runs with this draft and its files; the proof need not repeat their actions.

    With a reset only those before which it was made.
    """
    found: list[proofs.Ran] = []
    made = build.writer.history.reset_runs
    for run_id, past in _pasts(build, WHOLE):
        if build.resets and run_id not in made:
            continue
        if past.status == "passed" and _same_draft(build, fit, past):
            root = past.scopes[""].committed
            output = value_of(root, build.here.reader) if root is not None else None
            ran = proofs.Ran(
                run_id, "passed", {}, output=output, reset=run_id in made, given=_other_inputs(build, fit, past)
            )
            found.append(_with_log(ran, fit.loaded, past))
    return Earlier(tuple(each for each in found if not each.given), tuple(each for each in found if each.given))


def counts(build: BuildContext, fit: prepare.Prepared, past: history.History) -> bool:
    """Return whether a run counts for this draft: the same but for names, descriptions and layout, with the same inputs.

    The files that it uses or uploaded must be unchanged.
    """
    return not _other_inputs(build, fit, past) and _same_draft(build, fit, past)


def _other_inputs(build: BuildContext, fit: prepare.Prepared, past: history.History) -> dict[str, Json]:
    known: Mapping[str, Json] = build.writer.masker.json(dict(fit.inputs))
    given = past.header.inputs if past.header is not None else {}
    return {name: given.get(name) for name in {**known, **given} if name not in known or known[name] != given.get(name)}


def _same_draft(build: BuildContext, fit: prepare.Prepared, past: history.History) -> bool:
    header, masker = past.header, build.writer.masker
    if header is None or header.trial is not None:
        return False
    wanted = {path: _hash(masker.text(text)) for path, text in fit.loaded.texts().items()}
    if header.text.sha256 != _hash(masker.text(fit.loaded.text)):
        was = build.state.draft_with(header.text.sha256)
        if was is None or workflow.does(was.loaded) != workflow.does(fit.loaded):
            return False
    same = {path: each.sha256 for path, each in header.callees.items()} == wanted
    return same and not _uploads_changed(build, fit, past)


def _hash(text: str) -> str:
    return entries.blob_of(text.encode(), "").sha256


def _uploads_changed(build: BuildContext, fit: prepare.Prepared, past: history.History) -> bool:
    """Return whether a file that the run uploaded, but did not make itself, is gone or was written since the run began."""
    began = dt.datetime.fromisoformat(past.started).timestamp()
    own: set[str] = set()
    uploaded: set[str] = set()
    for attempt in past.all_attempts():
        own |= {str(each["path"]) for each in (attempt.result and attempt.result.files) or ()}
        if attempt.call.action == "upload":
            given: Json = value_of(attempt.call, build.here.reader)["files"]
            uploaded |= set(map(files.to_path, given if isinstance(given, list) else [given]))
    return any(_changed(fit.loaded.path.parent / path, began) for path in uploaded - own)


def _changed(file: Path, since: float) -> bool:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return True
    # Copying a file can preserve its modification time, but not its change time.
    return max(found.st_mtime, found.st_ctime) > since


def differs(build: BuildContext, ran: proofs.Ran) -> str:
    """Return how the address at which a run failed differs in shape from the one that the step had on the bench; else empty."""
    kept = evidence.of(ran.past, ran.path) if ran.past is not None and ran.path is not None else None
    here = str((kept or {}).get("url") or "")
    if not here or ran.path is None or ran.error is None:
        return ""
    after = ran.error.get("phase") == "after"
    there = build.bench.address(ran.path, after=after)
    if there is None or _shape(there.url) == _shape(here):
        return ""
    how = ", to which the address changed by itself a while later," if there.by_itself else ""
    return (
        f"on the bench the page {'after' if after else 'before'} this step was {there.url}{how} and here it is {here}: "
        "a run does not wait as long as you do between calls"
    )


def _shape(url: str) -> str:
    """Return an address without what differs from time to time: numbers, query and fragment."""
    return re.sub(r"\d+", "0", re.split(r"[?#]", url)[0])


def done_alone(build: BuildContext, loaded: workflow.Loaded) -> set[str]:
    """Return the keys of the actions that nodes, as they now are in the draft, did on the bench."""
    return {effects.key_of(loaded, each.call.path) for each in _alone(build, loaded) if each.acted}


def _alone(build: BuildContext, loaded: workflow.Loaded) -> list[attempts.Attempt]:
    """Return what nodes, as they now are in the draft, did on the bench, in order."""
    pasts = [past for _run, past in _pasts(build, ("execute_nodes",))]
    return [each for past in pasts for each in past.all_attempts() if each.settled and _is_of(loaded, each)]


def _is_of(loaded: workflow.Loaded, each: attempts.Attempt) -> bool:
    place = loaded.find(each.call.path)
    return place is not None and place.fingerprint == each.call.fingerprint


def _short(build: BuildContext, loaded: workflow.Loaded, past: history.History) -> tuple[str, ...]:
    """Return the hints about what a run read for the output, in part only."""
    wanted, alone = unused_values.read_for_output(loaded), _alone(build, loaded)

    def values(found: Iterable[attempts.Attempt]) -> dict[str, Json]:
        """Return the values by key, without those in loops: the items may be others."""
        return {
            effects.key_of(loaded, each.call.path): value_of(each.result, build.here.reader)
            for each in found
            if each.call.node == "browser_query"
            and each.result is not None
            and "[" not in each.call.path
            and effects.key_of(loaded, each.call.path).rpartition("/")[2] in wanted
        }

    read = values(each for each in past.all_attempts() if each.settled)
    # Lists may be shorter because of what a run or the bench has done.
    lists = not effects.actions_of(loaded) or (bool(build.resets) and not any(each.acted for each in alone))
    return tuple(short_values.hints(read, values(alone), lists=lists))


def last_failure(build: BuildContext) -> tuple[str, dict[str, Json]] | None:
    """Return the step that ended the session's last finished run, and its error; None if that passed, or there is none."""
    runs = [each for runs in build.writer.history.runs_of.values() for each in runs]
    for run_id in reversed(runs):
        past = build.runs.past(run_id)
        if past is None or past.ending is None:
            continue
        error = past.ending.data.get("error")
        return (str(past.ending.data.get("path") or ""), error) if isinstance(error, dict) else None
    return None
