"""``propose_target``: turns an element that a model was shown into a target for a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from typing_extensions import override

from director.scouting import observer
from director.targeting import candidates, fields, proof
from director.tools.build_context import BuildContext
from director.tools.toolbox import PERHAPS, TEXT, OfBuild, Toolset, of, tool
from nodes.values import Json
from runtime.agents import secret_checks
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.observation.tree import ACTING

NAME = "propose_target"


def toolsets(build: BuildContext) -> Sequence[Toolset]:
    """Return the tools that propose targets."""
    return (Propose(build, PROPOSE),)


PROPOSE = tool(
    NAME,
    "Targets for an element, each proved: one now, after reload, with more rows; of a row, card, table or text there with `fields` for extract.",
    {
        "tab": of(PERHAPS, "As in inspect_tab."),
        "ref": TEXT,
        "anchor": of(PERHAPS, "Text of the row, card or part by which it is to be found."),
        "reason": TEXT,
    },
)


class Propose(OfBuild):
    """Proposes targets for an element, each proved on the page. It only observes."""

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        """Return the best target as YAML, the fields of its row, and other targets, with the proofs of each."""
        masker, sight = self._build.writer.masker, cast("observer.PageObserver", self._build.observer)
        where, name = sight.place(cast("str | None", arguments["tab"]))
        anchor = cast("str | None", arguments["anchor"]) or None

        def usable(text: str) -> bool:
            return secret_checks.refusal(text, masker) is None

        async with sight.pointed(where, name, str(arguments["ref"])) as (pointed, element):
            page = sight.page(where, name)
            holds = None
            if element.role not in ACTING:
                holds = fields.read(await pointed.asked(fields.FIELDS), usable)
            proved = await proof.of(page, pointed, element.role, element.name, usable, anchor)
        what, fits = candidates.kind(element.role, pointed.facts)
        ours, theirs = candidates.told(proved, fields.told(holds) if holds is not None else ())
        told = "\n".join([f"{what}; fits: {fits}", *ours, page_text.fenced("\n".join(theirs))])
        told = masker.text(told)
        return turn.Outcome(told, told)
