"""The page of notes next to a workflow: goal, decisions, proof, cost. For people, in Markdown.

Text of the site or a model is marked as such: it is in code blocks, or on one line, where it cannot be a heading, a link or the end of a
block.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.effects import effects, grants
from nodes.base import Leaf
from nodes.values import Json
from runtime.context import briefs
from runtime.display import costs
from runtime.display.text import one_line
from runtime.language import inputs
from runtime.log import ledger, session
from runtime.report import markdown

if TYPE_CHECKING:
    from director.proving.finish import Proof
    from director.tools.build_context import BuildContext

A_LINE, A_BLOCK, MOST = 300, 1_500, 60
"""Characters of a line and of a block, and items of a list, at most."""

_MARKS = re.compile(r"([\\`*_\[\]<>#|!~])")


def page(
    build: BuildContext,
    file: Path,
    summary: str,
    next_command: str,
    *,
    unproved: str = "",
    proof: Proof | None = None,
    better: Sequence[str] = (),
    failure: tuple[str, dict[str, Json]] | None = None,
) -> str:
    """Return the whole page, secrets masked. ``proof`` is that of a draft that was accepted."""
    parts = [
        _head(build, file, proof.headline if proof is not None else "not"),
        _section("What was wanted", _wanted(build)),
        _section("What came of it", _came(summary, unproved)),
        _section("Where it fails", _fails(failure)) if failure is not None else "",
        _section("Outline", _outline(build)),
        _section("Decisions", _decisions(build)),
        _section("Targets, and why", _targets(build)),
        _section("How it was proved", _proved(proof)),
        _section("What could be better", [f"- {_line(each)}" for each in better[:MOST]]),
        _section("Questions and answers", _questions(build)),
        _section("Actions: who allowed them, and what counts as none", _grants(build)),
        _section("What it cost", _cost(build)),
        _section("Go on", [markdown.fenced(next_command, "console")]),
    ]
    return build.writer.masker.text("\n\n".join(filter(None, parts)) + "\n")


def run_command(file: Path, needed: Mapping[str, Json]) -> str:
    """Return the command that runs the workflow without a model; ``needed`` are its required inputs."""
    try:
        file = file.absolute().relative_to(Path.cwd())
    except ValueError:
        file = file.absolute()
    return f"runops run {shlex.quote(str(file))} --frozen{inputs.typed(needed)}"


def _section(title: str, lines: Iterator[str] | Sequence[str]) -> str:
    text = "\n".join(lines)
    return f"## {title}\n\n{text}" if text else ""


def _head(build: BuildContext, file: Path, headline: str) -> str:
    draft = build.state.draft
    name = draft.loaded.workflow.name if draft is not None else file.stem
    return "\n".join(
        [
            f"# Build of {_line(name)}",
            "",
            f"- workflow: {_code(file.name)}",
            f"- session: {_code(build.writer.conversation.id)}, begun {build.writer.history.started}",
            f"- proved: {_line(headline)}",
        ]
    )


def _wanted(build: BuildContext) -> Iterator[str]:
    goal = build.goal
    yield markdown.fenced(goal.goal.strip() or "(nothing was said)", "text")
    yield ""
    if goal.url is not None:
        yield f"- site: {_code(goal.url)}"
    for name, value in goal.inputs.items():
        yield f"- input {_code(name)}: {_code(json.dumps(value, ensure_ascii=False))}"
    if goal.secrets:
        yield f"- secrets: {', '.join(map(_code, goal.secrets))}"
    yield f"- side effects: {goal.policy}; runs of proof: {goal.runs}"
    if agreed := build.state.description:
        yield f"- as it was agreed: {_line(agreed)}"


def _came(summary: str, unproved: str) -> Iterator[str]:
    yield _line(summary, A_BLOCK) or "(nothing was said)"
    if unproved:
        yield ""
        yield f"Left unproved or empty, and why: {_line(unproved, A_BLOCK)}"


def _fails(failure: tuple[str, dict[str, Json]]) -> Iterator[str]:
    path, error = failure
    yield f"- step: {_code(briefs.ours(path) or 'none')}"
    yield f"- error: {_code(str(error.get('code')))}"
    yield ""
    yield markdown.fenced(_cut(str(error.get("message") or ""), A_BLOCK), "text")
    if fix := str(error.get("fix") or ""):
        yield markdown.fenced(_cut(f"fix: {fix}", A_BLOCK), "text")


def _outline(build: BuildContext) -> Iterator[str]:
    draft = build.state.draft
    if draft is not None:
        yield markdown.fenced(draft.outline(), "text")
        for node in draft.loaded.nodes():
            if node.description:
                yield f"- {_code(node.id)}: {_line(node.description)}"


def _decisions(build: BuildContext) -> Iterator[str]:
    kept = build.writer.history.versions("draft")
    for each in kept[-MOST:]:
        yield f"- version {each.number}: {_line(each.reason)}"
    if len(kept) > MOST:
        yield f"- (and {len(kept) - MOST} before these)"
    plan = build.state.plan
    if plan is not None:
        told = [each for each in plan.tasks() if each.notes]
        for each in told[:MOST]:
            yield f"- {_line(each.description)}: {_line(each.notes)}"
        if plan.notes:
            yield f"- {_line(plan.notes)}"


def _targets(build: BuildContext) -> Iterator[str]:
    for action in list(_calls(build, "propose_target"))[-MOST:]:
        given: dict[str, Json] = build.writer.value_of(action.call) or {}
        yield f"- {_line(str(given.get('reason') or ''))}"
        value = build.writer.value_of(action.result) if action.result is not None else None
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield _indented(markdown.fenced(_cut(text, A_BLOCK // 2), "text"))


def _proved(proof: Proof | None) -> Iterator[str]:
    if proof is None:
        yield "- the whole draft was not run for a proof"
        return
    for each in proof.before:
        yield f"- an earlier run of the same draft: {_code(each.run)} {each.status}"
    for number, ran in enumerate(proof.runs, 1):
        held = f", held at {_code(briefs.ours(ran.held))}" if ran.held is not None else ""
        at = f" at {_code(briefs.ours(ran.path))}" if ran.path else ""
        yield f"- run {number}: {_code(ran.run)} {ran.status}{at}{held} in {ran.seconds} s, in a browser of its own"
    for each in proof.effects:
        yield f"- {_code(each.key)} ({_line(each.said)}): {each.words()}"
    if not_executed := proof.not_executed:
        yield f"- executed in no run: {', '.join(map(_code, not_executed))}"
    passed = next((each for each in reversed(proof.runs) if each.status == "passed"), None)
    if passed is not None:
        yield "- output of the last run:"
        whole = json.dumps(passed.output, ensure_ascii=False)
        shown = _cut(whole, A_BLOCK)
        yield _indented(markdown.fenced(shown, "json" if shown == whole else "text"))


def _questions(build: BuildContext) -> Iterator[str]:
    places = {str(each.get("place")) for each in grants.answers(build.writer)}
    for each in build.writer.history.questions:
        if each.place not in places:
            yield f"- {_line(each.question)}"
            yield f"  - {_line(each.answer) if each.answer is not None else '(not answered)'}"


def _grants(build: BuildContext) -> Iterator[str]:
    for each in grants.answers(build.writer):
        yield f"- {_code(str(each.get('path')))}: {_line(str(each.get('what')))}: {_line(str(each.get('answer') or 'not answered'))}"
    draft = build.state.draft
    for node in draft.loaded.nodes() if draft is not None else ():
        if not isinstance(node, Leaf) or effects.changes(node):
            continue
        if effects.changes(node.model_copy(update={"effect": None})):
            yield f"- {_code(node.id)} counts as no action: the draft says that it is {node.effect}"
        elif getattr(node, "action", None) == "download" and getattr(node, "target", None) is not None:
            yield f"- {_code(node.id)} counts as no action: its click is to give a file, and nothing else"


def _cost(build: BuildContext) -> Iterator[str]:
    book = build.writer.history.ledger
    own = book.totals()
    yield f"- the build itself: {costs.told(own)}" if own is not None else "- the build itself: nothing"
    runs = list(book.totals_by_run().values())
    if runs:
        yield f"- the runs that it started: {costs.told(ledger.together(runs))}"


def _calls(build: BuildContext, name: str) -> Iterator[session.SideEffect]:
    for each in build.writer.history.actions.values():
        if each.call.action == name and each.result is not None and each.result.error is None:
            yield each


def _line(text: str, most: int = A_LINE) -> str:
    """Return a quoted text on one line, without active Markdown."""
    return _MARKS.sub(r"\\\1", _cut(one_line(" ".join(text.split())), most))


def _code(text: str) -> str:
    text = _cut(one_line(text), A_LINE).replace("`", "'")
    return f"`{text}`" if text else "``"


def _indented(block: str) -> str:
    return "\n".join(f"  {line}" for line in block.split("\n"))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
