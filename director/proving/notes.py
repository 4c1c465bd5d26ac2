"""Renders the page of notes next to a workflow: goal, decisions, proof, cost, in Markdown (``notes.md``).

Text of the site or a model cannot become a heading, a link or the end of a block: it is put in a code block or on one line. The template
does so with every value, unless a filter says otherwise.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from director.effects import effects, grants, wording
from director.proving import performed, report
from nodes.base import Leaf
from nodes.browser_query.parts import InParts
from nodes.values import Json
from runtime.context import briefs
from runtime.display import costs
from runtime.display.text import one_line
from runtime.language import inputs, workflow
from runtime.log import entries, ledger
from runtime.report import markdown

if TYPE_CHECKING:
    from director.proving.finish import Proof
    from director.tools.build_context import BuildContext

A_LINE, A_BLOCK, MOST = 300, 1_500, 60  # characters of a line and of a block, and items of a list, at most

_MARKS = re.compile(r"([\\`*_\[\]<>#|!~])")


def page(
    build: BuildContext,
    file: Path,
    summary: str,
    next_command: str,
    *,
    done: Sequence[performed.Performed] = (),
    unproved: str = "",
    proof: Proof | None = None,
    better: Sequence[str] = (),
    failure: tuple[str, dict[str, Json]] | None = None,
) -> str:
    """Return the page, secrets masked. Only an accepted draft has a ``proof``; ``done`` is what the build did on the site."""
    history, draft, plan = build.writer.history, build.state.draft, build.state.plan
    granted = list(grants.answers(build.writer))
    places = {str(each.get("place")) for each in granted}
    own, runs = history.ledger.totals(), list(history.ledger.totals_by_run().values())
    passed = [each for each in proof.runs if each.status == "passed"] if proof is not None else []
    text = _template().render(
        most=MOST,
        name=draft.loaded.workflow.name if draft is not None else file.stem,
        file=file,
        session=build.writer.conversation.id,
        begun=history.started,
        goal=build.goal,
        agreed=build.state.description,
        summary=summary,
        unproved=unproved,
        failure={"path": briefs.ours(failure[0]), "error": failure[1]} if failure is not None else None,
        draft=draft,
        nodes=draft.loaded.nodes() if draft is not None else [],
        decisions=_decisions(history.versions("draft")),
        tasks=[each for each in plan.tasks() if each.notes] if plan is not None else [],
        plan_notes=plan.notes if plan is not None else "",
        targets=list(_targets(build)),
        proof=proof,
        performed=performed.told(done, MOST),
        passed=passed[-1:],
        better=better,
        questions=[each for each in history.questions if each.place not in places],
        grants=granted,
        no_actions=list(_no_actions(draft.loaded)) if draft is not None else [],
        cost=costs.render(own) if own is not None else "",
        cost_of_runs=costs.render(ledger.together(runs)) if runs else "",
        next_command=next_command,
    )
    return build.writer.masker.text(text)


def run_command(file: Path, needed: Mapping[str, Json]) -> str:
    """Return the command that runs the workflow without a model; ``needed`` are its required inputs."""
    try:
        file = file.absolute().relative_to(Path.cwd())
    except ValueError:
        file = file.absolute()
    return f"runops run {shlex.quote(str(file))} --frozen{inputs.typed(needed)}"


def _decisions(versions: Sequence[entries.Version]) -> list[tuple[str, str]]:
    """Return each reason for a change of the draft once, with the versions that it was given for."""
    found: dict[str, list[str]] = {}
    for each in versions:
        found.setdefault(" ".join(each.reason.split()), []).append(str(each.number))
    return [(f"version{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}", why) for why, numbers in found.items()]


def _targets(build: BuildContext) -> Iterator[tuple[str, str]]:
    """Yield the reason and the result of each proposed target."""
    for each in build.writer.history.actions.values():
        if each.call.action == "propose_target" and each.result is not None and each.result.error is None:
            given: dict[str, Json] = build.writer.value_of(each.call) or {}
            value = build.writer.value_of(each.result)
            yield str(given.get("reason") or ""), value if isinstance(value, str) else _json(value)


def _no_actions(loaded: workflow.Loaded) -> Iterator[tuple[str, str]]:
    """Yield, with the reason, the leaves that would count as side effects but for what the draft says of them, and downloads by a click."""
    for node in loaded.nodes():
        if not isinstance(node, Leaf) or effects.changes(node):
            continue
        if effects.changes(node.model_copy(update={"effect": None})):
            yield node.id, f"the draft says that it is {node.effect}"
        elif isinstance(node, InParts) and node.next is not None:
            yield node.id, f"the draft says that {wording.element(node.next)}, which it clicks, leads through a list"
        elif getattr(node, "action", None) == "download" and getattr(node, "target", None) is not None:
            yield node.id, "its click is to give a file, and nothing else"


class _Safe(str):
    """A text that may be inserted as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("director", "proving"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        finalize=_line,
    )
    filters: dict[str, Any] = environment.filters
    filters |= {"json": _json, "code": _code, "codes": _codes, "path": briefs.ours, "line": _line, "block": _block}
    return environment.get_template("notes.md")


def _line(value: object, most: int = A_LINE) -> _Safe:
    """Return a value on one line, without active Markdown; what a filter has made safe stays."""
    if isinstance(value, _Safe):
        return value
    return _Safe(_MARKS.sub(r"\\\1", report.cut(one_line(" ".join(str(value).split())), most)))


def _code(text: object) -> _Safe:
    return _Safe(markdown.code(report.cut(str(text), A_LINE)) or "``")


def _codes(texts: Sequence[str]) -> _Safe:
    return _Safe(", ".join(map(_code, texts)))


def _block(text: str, language: str, most: int | None = A_BLOCK, indent: str = "") -> _Safe:
    """Return a code block of at most ``most`` characters."""
    return _Safe(textwrap.indent(markdown.fenced(report.cut(text, most or len(text)), language), indent))


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
