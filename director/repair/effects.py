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
    """Requests each action once; with another element or value it is another action."""

    def __init__(self, policy: Policy, who: person.Person) -> None:
        """The caller has checked that ``allow`` is given for sites on this machine only."""
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
        """Return what is withheld in a run of ``loaded`` with these ``inputs``. ``page`` is the address of the page of the step ``at``.

        Raises Paused if a person must be asked, and none can be asked.
        """
        if self._policy == "allow":
            return run_state.withholds_nothing
        known = {path: requests.action(loaded, leaf, path, inputs or {}, {}) for leaf, path in actions}
        granted = [path for path, each in known.items() if await self._is_granted(each, page if path == at else None)]
        return grants.withheld(loaded, known, granted if self._policy == "ask" else ())

    async def _is_granted(self, action: requests.EffectRequest, page: str | None) -> bool:
        if self._policy != "ask":
            return False
        key = json.dumps([action.path, effects.core(action.leaf)], sort_keys=True)
        if key not in self._granted:
            lines = wording.lines_of(action, page or action.opened)
            asked = ["To prove the fix, this would be done on the site. May it be?", *lines, *wording.choices()]
            answer = await self._who.ask("\n".join(asked), grants.CHOICES)
            self.refused = self.refused or answer != grants.YES
            self._policy = "hold" if answer == grants.HOLD_ALL else self._policy
            self._granted[key] = answer == grants.YES
        return self._granted[key]


def after(loaded: workflow.Loaded, path: str) -> list[tuple[Leaf, str]]:
    """Return the actions that a run may reach from the step at ``path`` on: later ones, and all in the outermost container around it."""
    actions = effects.actions_of(loaded)
    found = loaded.find(path)
    if found is None:
        return actions
    around = [each for each in found.around if isinstance(each, Node)]
    first = around[0] if around else found.node
    within = {id(each) for each in (first, *single_node.leaves(first))}
    every = [leaf for leaf, _path in effects.leaves_of(loaded)]
    start = next((number for number, leaf in enumerate(every) if id(leaf) in within), 0)
    later = set(map(id, every[start:]))
    return [(leaf, path) for leaf, path in actions if id(leaf) in later]
