"""What of the actions that change the site is done while a fix is proved: all, none, or those of which a person says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from director.effects import effects, grants, requests, wording
from director.session import person
from nodes.base import Leaf, Node
from nodes.values import Json
from runtime.engine import run_state
from runtime.language import workflow
from runtime.runs import single_node

if TYPE_CHECKING:
    from director.draft.goal import Policy


class Effects:
    """Asks for each action once, as it is: one that finds another element, or does something else, is another action."""

    def __init__(self, policy: Policy, who: person.Person) -> None:
        """Nobody is asked yet. ``allow`` is for sites on this machine only: whoever makes this has seen to that."""
        self._policy = policy
        self._who = who
        self._granted: dict[str, bool] = {}
        self.refused = False
        """Whether a person has said no to any."""

    async def demand(
        self,
        loaded: workflow.Loaded,
        actions: Sequence[tuple[Leaf, str]],
        *,
        inputs: Mapping[str, Json] | None = None,
        at: str = "",
        page: str | None = None,
    ) -> run_state.Withholds:
        """What is held of a run of ``loaded``. ``inputs`` are those of the run, ``page`` is where the step ``at`` works.

        Raises Paused where a person would have to be asked, and nobody is there.
        """
        if self._policy == "allow":
            return run_state.withholds_nothing
        if self._policy == "ask":
            rests = requests.Rests(inputs or {})
            for leaf, path in actions:
                await self._ask(requests.action(loaded, leaf, path, rests, ""), path, page if path == at else None)

        def holds(leaf: Leaf, path: str) -> bool:
            if not effects.changes(leaf):
                return False
            found = loaded.find(path)
            # The leaf that is about to act has its values; what was asked for is as the file says it.
            own = found.node if found is not None and isinstance(found.node, Leaf) else leaf
            return not self._granted.get(_key(own, effects.key_of(loaded, path)), False)

        return holds

    async def _ask(self, action: requests.EffectRequest, path: str, page: str | None) -> None:
        key = _key(action.leaf, path)
        if key in self._granted or self._policy != "ask":
            return
        lines = wording.told(action, page or action.way.opened)
        asked = "\n".join(["To prove the fix, this would be done on the site. May it be?", *lines, *wording.CHOICES])
        said = await self._who.ask(asked, grants.CHOICES)
        if said != grants.YES:
            self.refused = True
        if said == grants.HOLD_ALL:
            self._policy = "hold"
            self._granted.clear()
            return
        self._granted[key] = said == grants.YES


def _key(leaf: Leaf, path: str) -> str:
    return json.dumps([path, effects.core(leaf)], sort_keys=True)


def after(loaded: workflow.Loaded, path: str) -> list[tuple[Leaf, str]]:
    """The actions of a file that a run may come to from the step at ``path`` on: those behind it, and all of the loops and blocks around it."""
    actions = effects.actions_of(loaded)
    found = loaded.find(path)
    if found is None:
        return actions
    order = [each for each, _path in effects.leaves_of(loaded)]
    around = [each for each in found.around if isinstance(each, Node)]
    first = around[0] if around else found.node
    start = next(
        (
            number
            for number, each in enumerate(order)
            if each is first or any(each is leaf for leaf in single_node.leaves(first))
        ),
        0,
    )
    behind = order[start:]
    return [(leaf, where) for leaf, where in actions if any(leaf is each for each in behind)]
