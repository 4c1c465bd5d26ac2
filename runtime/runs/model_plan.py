"""Detects if a run asks models, and checks everything needed for that before the run begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nodes import budgets as node_budgets
from runtime.models import selection
from runtime.settings.settings import Settings
from runtime.workspace import host

if TYPE_CHECKING:
    from runtime.language import workflow
    from runtime.models import budgets, run_models


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    settings: Settings
    asks: bool
    budget: node_budgets.Budget | None
    server: selection.Server | None  # none where no model is asked, or only a cassette
    file: Path
    allowance: budgets.Allowance | None = None  # the parent session's allowance for this run

    @property
    def budget_text(self) -> str | None:
        return None if self.budget is None else str(self.budget)

    @property
    def masked(self) -> Mapping[str, str]:
        key = self.server.key if self.server is not None else ""
        return {selection.KEY: key} if len(key) >= selection.MASKED_KEY else {}

    def refuse_late_recording(self, exchanges: int, private: Path) -> None:
        """Raise UsageError ``cassette-incomplete`` if earlier exchanges of a run to be recorded were not recorded, before new ones are paid."""
        if self.asks and self.settings.model_calls == "record":
            from runtime.models.cassettes import cassettes

            cassettes.Recorder(self.file, private, {}, {}).demand(exchanges)

    def supply(
        self, private: Path, secrets: Mapping[str, str], origins: Sequence[str] = ()
    ) -> run_models.RunModels | None:
        """Return the models of the run with this private folder and these secrets; it may load ``origins``. None if no node asks one.

        Raises UsageError ``cassette-missing``, ``cassette-damaged``.
        """
        if not self.asks:
            return None
        from runtime.models import run_models  # most runs ask no model

        return run_models.RunModels(
            self.settings, self.server, self.budget, self.file, private, secrets, self.masked, origins, self.allowance
        )


def plan(
    loaded: workflow.Loaded,
    given: host.Host,
    begun_with: str | None = None,
    allowance: budgets.Allowance | None = None,
) -> Plan:
    """Plan the model requests of ``loaded``; a resumed run keeps the budget ``begun_with``, unless the settings give one.

    ``allowance`` is the parent session's allowance for the run. Raises UsageError ``model-node-frozen``, ``price-unknown``,
    ``cassette-missing``, ``cassette-damaged``; SetupError ``model-unset``, ``model-key-missing``.
    """
    settings = given.settings
    selection.refuse_frozen(loaded, settings)
    budget = settings.budget or (node_budgets.parse(begun_with) if begun_with is not None else None)
    nodes = list(selection.asking(loaded))
    server = None
    if nodes and settings.model_calls == "replay":
        from runtime.models.cassettes import cassettes

        cassettes.Player.open(loaded.path)
    elif nodes:
        models = selection.models_of(nodes, settings)
        server = selection.server(settings, given.secrets)
        for model, asking in models.items():
            limits = [budget, allowance.budget if allowance is not None else None, asking.node.allowance]
            if any(each is not None and each.money is not None for each in limits):
                from runtime.settings import prices

                prices.require([model], settings.prices, server.profile.name)
    return Plan(settings, bool(nodes), budget, server, loaded.path, allowance)
