"""Restrictions on drafts, but not on files: no origin or secret that the person has not named, nothing that reaches beyond the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from director.draft.draft import Draft
from director.draft.goal import GIVEN_BY_NAME, Goal, addresses
from nodes.browser_query.mail import Mail
from nodes.errors import RunOpsError, UsageError
from nodes.values import Json
from runtime.browser.options import BrowserOptions
from runtime.browser.origins import origin
from runtime.language.diagnostics import Diagnostic, WorkflowInvalid
from runtime.language.inputs import check
from runtime.services import functions

_NAMES = (
    "mode device viewport screen device_scale_factor locale timezone user_agent color_scheme reduced_motion geolocation "
    "java_script http_credentials mobile touch offline"
)
HARMLESS = frozenset(_NAMES.split())
"""Browser options allowed in a draft; the rest (switches, a proxy, certificates, headers, permissions) is written into the file by a person."""

MEANT = {"workflow": "the draft's head", "all": "all nodes", "recent": "the nodes that were written last"}
"""Names with a meaning in the tools of a build."""


def refused(made: Draft, before: Draft | None, goal: Goal, allowed: Sequence[str]) -> list[Diagnostic]:
    """Return what a valid draft must not contain, each at its place; what the draft had ``before`` may stay.

    Its nodes may call functions of the ``allowed`` Python modules.
    """
    found = [
        *_browser(made, before),
        *_dismiss(made, before),
        *_secrets(made, before, goal),
        *_mailboxes(made, before, goal),
        *_inputs(made, before, goal),
        *_names(made, before),
    ]
    try:
        functions.check(made.loaded, allowed)
    except WorkflowInvalid as error:
        found += error.diagnostics
    return found or _origins(made, before, goal)


def granted(goal: Goal) -> set[str]:
    """Return the origins that the person has named: with ``--url``, as an input, in the goal."""
    inputs = [each for each in goal.inputs.values() if isinstance(each, str)]
    named = [goal.url or "", *inputs, *addresses(goal.goal)]
    return {known for each in named if (known := origin(each.rstrip(".,;:!?")))}


def given(made: Draft, goal: Goal) -> dict[str, Json]:
    """Return the draft's inputs in a proof: the person's values, else the defaults. Raises UsageError."""
    declared = made.loaded.workflow.inputs
    values = {name: value for name, value in goal.inputs.items() if name in declared}
    known = {name: each for name, each in declared.items() if name in values or not each.required}
    return check(known, values)


def diagnostic(made: Draft, path: tuple[str | int, ...], code: str, message: str, fix: str) -> Diagnostic:
    document = made.loaded.document
    return document.source.diagnostic(code, message, document.mark(path), help=[fix])


def _browser(made: Draft, before: Draft | None) -> Iterator[Diagnostic]:
    wanted = made.loaded.workflow.browser or BrowserOptions()
    was = (before.loaded.workflow.browser if before is not None else None) or BrowserOptions()
    fix = f"leave it out; ask the person, who can write it into the file: it may say {', '.join(sorted(HARMLESS))}"
    for name in sorted(wanted.model_fields_set - HARMLESS):
        if getattr(wanted, name) != getattr(was, name):
            why = f"a draft does not set `{name}` of the browser"
            yield diagnostic(made, ("browser", name), "browser-not-allowed", why, fix)


def _dismiss(made: Draft, before: Draft | None) -> Iterator[Diagnostic]:
    """Refuse new overlays: their clicks happen in no step, so no approval would be asked for them."""
    if made.loaded.workflow.dismiss != (before.loaded.workflow.dismiss if before is not None else []):
        fix = "leave it as it was, and close the overlay by a step; the person can write `dismiss` into the file"
        yield diagnostic(made, ("dismiss",), "dismiss-not-allowed", "a draft does not change what is dismissed", fix)


def _secrets(made: Draft, before: Draft | None, goal: Goal) -> Iterator[Diagnostic]:
    was = before.loaded.workflow.secrets if before is not None else ()
    allowed = list(dict.fromkeys([*goal.secrets, *was]))
    fix = f"these may be used: {', '.join(allowed) or 'none'}; {GIVEN_BY_NAME}"
    for number, name in enumerate(made.loaded.workflow.secrets):
        if name not in allowed:
            why = f"the person has not given the secret `{name}`"
            yield diagnostic(made, ("secrets", number), "secret-not-given", why, fix)


def _mailboxes(made: Draft, before: Draft | None, goal: Goal) -> Iterator[Diagnostic]:
    """Refuse servers that the person has not named: they are sent a password, and no origin is checked for them."""
    was = {_server(node) for node in _mail_nodes(before)} if before is not None else set[tuple[object, ...]]()
    words = {each.strip(".,;:!?()`'\"").casefold() for each in goal.goal.split()}
    named = words | {each.casefold() for each in goal.inputs.values() if isinstance(each, str)}
    fix = "take the server from the goal or from an input of the person; else ask which one it is"
    for node in _mail_nodes(made):
        given = _GIVEN.fullmatch(node.host)
        known = given[1] in goal.inputs if given is not None else node.host.casefold() in named
        if not known and _server(node) not in was:
            why = f"the person has not named the mail server `{node.host}`"
            yield diagnostic(made, (*made.loaded.places[node.id], "host"), "mail-not-named", why, fix)


_GIVEN = re.compile(r"\{\{\s*inputs\.(\w+)\s*\}\}")


def _mail_nodes(made: Draft) -> Iterator[Mail]:
    yield from (node for node in made.loaded.nodes() if isinstance(node, Mail))


def _server(node: Mail) -> tuple[object, ...]:
    return node.host, node.port, node.encryption


def _inputs(made: Draft, before: Draft | None, goal: Goal) -> Iterator[Diagnostic]:
    """Yield the person's inputs that do not fit, and new inputs without a value: no run of the draft could begin."""
    declared = made.loaded.workflow.inputs
    was = before.loaded.workflow.inputs if before is not None else {}
    for name, value in goal.inputs.items():
        if name not in declared:
            why = f"the person gives the input `{name}`, and it is not declared any more"
            yield diagnostic(made, ("inputs",), "input-missing", why, "keep it: the draft is proved with it")
            continue
        try:
            check({name: declared[name]}, {name: value})
        except UsageError as error:
            yield diagnostic(made, ("inputs", name), error.code, error.message, "the person has given it so")
    for name, each in declared.items():
        if each.required and name not in goal.inputs and name not in was:
            why = f"the input `{name}` has no value: it has no default, and the person has given none"
            fix = "give it a `default`; or ask the person, who gives one with `-i`"
            yield diagnostic(made, ("inputs", name), "input-not-given", why, fix)


def _names(made: Draft, before: Draft | None) -> Iterator[Diagnostic]:
    was = before.loaded.places if before is not None else {}
    for name, meaning in MEANT.items():
        if name in made.loaded.places and name not in was:
            why = f"to the tools `{name}` means {meaning}, so no node of a draft may have this id"
            fix = "choose another id, which says what the node does"
            yield diagnostic(made, (*made.loaded.places[name], "id"), "reserved-name", why, fix)


def _origins(made: Draft, before: Draft | None, goal: Goal) -> list[Diagnostic]:
    try:
        wanted = made.loaded.origins(given(made, goal))
    except RunOpsError as error:
        fix = error.fix or "write origins, or inputs that are addresses"
        return [diagnostic(made, ("allowed_origins",), error.code, error.message, fix)]
    allowed = granted(goal)
    if before is not None:
        allowed |= set(before.loaded.origins(given(before, goal)))
    may = f"these may be opened: {', '.join(sorted(allowed))}; " if allowed else ""
    fix = f"{may}ask the person, who can add it with `--url` or as an input"
    return [
        diagnostic(
            made,
            ("allowed_origins",),
            "origin-not-granted",
            f"the draft would open {each}, which the person has not named",
            fix,
        )
        for each in wanted
        if each not in allowed
    ]
