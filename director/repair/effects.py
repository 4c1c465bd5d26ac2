"""Policy for side effects while a fix is proved: all, none, or those that a person allows."""

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
    """Requests each action once: one with another element or another effect is another action."""

    def __init__(self, policy: Policy, who: person.Person) -> None:
        """Nobody is asked yet. ``allow`` is for sites on this machine only, which the caller has checked."""
        self._policy = policy
        self._who = who
        self._granted: dict[str, bool] = {}
        self.refused = False

    async def demand(
        self,
        loaded: workflow.Loaded,
        actions: Sequence[tuple[Leaf, str]],
        *,
        inputs: Mapping[str, Json] | None = None,
        at: str = "",
        page: str | None = None,
    ) -> run_state.Withholds:
        """Return what is withheld in a run of ``loaded``. ``inputs`` are those of the run, ``page`` is that of the step ``at``.

        Raises Paused if a person must be asked, and nobody is there.
        """
        if self._policy == "allow":
            return run_state.withholds_nothing
        if self._policy == "ask":
            for leaf, path in actions:
                await self._ask(
                    requests.action(loaded, leaf, path, inputs or {}, {}), path, page if path == at else None
                )

        def holds(leaf: Leaf, path: str) -> bool:
            if not effects.changes(leaf):
                return False
            found = loaded.find(path)
            # The leaf about to act has its references resolved; the request has the text of the file.
            own = found.node if found is not None and isinstance(found.node, Leaf) else leaf
            return not self._granted.get(_key(own, effects.key_of(loaded, path)), False)

        return holds

    async def _ask(self, action: requests.EffectRequest, path: str, page: str | None) -> None:
        key = _key(action.leaf, path)
        if key in self._granted or self._policy != "ask":
            return
        lines = wording.told(action, page or action.opened)
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
    """Return the actions of a file that a run may reach from the step at ``path`` on: later ones, and all of the loops and blocks around it."""
    actions = effects.actions_of(loaded)
    found = loaded.find(path)
    if found is None:
        return actions
    around = [each for each in found.around if isinstance(each, Node)]
    first = around[0] if around else found.node
    within = {id(each) for each in (first, *single_node.leaves(first))}
    order = [id(each) for each, _path in effects.leaves_of(loaded)]
    start = next((number for number, each in enumerate(order) if each in within), 0)
    later = set(order[start:])
    return [(leaf, where) for leaf, where in actions if id(leaf) in later]
