"""The models of a run: selection, server, client, prices and budgets; or a cassette in their place."""

from __future__ import annotations

import contextlib
import decimal
import functools
import importlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nodes.budgets import Budget
from runtime.log.ledger import Ledger, plain
from runtime.messages import estimates
from runtime.messages.messages import Request, Usage
from runtime.models import budgets, selection
from runtime.models.client import profiles
from runtime.settings import prices
from runtime.settings.settings import Settings

if TYPE_CHECKING:
    from runtime.models.cassettes import cassettes
    from runtime.models.client import client as model_client


LONGEST = 3_600.0  # limit of a request of a session whose settings have no `model_timeout`, in seconds


class RunModels:
    """The models of one run. ``close`` it at the end."""

    def __init__(
        self,
        settings: Settings,
        server: selection.Server | None,
        budget: Budget | None,
        file: Path,
        private: Path,
        secrets: Mapping[str, str],
        masked: Mapping[str, str],
        origins: Sequence[str] = (),
        allowance: budgets.Allowance | None = None,
    ) -> None:
        """``server`` is None if only a cassette answers. Raises UsageError ``cassette-missing``, ``cassette-damaged``."""
        if server is not None:
            # This import takes half a second, which must not count as a step's time.
            importlib.import_module("runtime.models.client.client")
        self.player: cassettes.Player | None = None
        self.recorder: cassettes.Recorder | None = None
        if settings.model_calls in ("replay", "record"):
            from runtime.models.cassettes import cassettes  # most runs have none

            if settings.model_calls == "replay":
                self.player = cassettes.Player.open(file, secrets, origins)
            else:
                self.recorder = cassettes.Recorder(file, private, secrets, masked, origins)
        self.seconds = settings.model_timeout
        self._budget, self._allowance = budget, allowance
        self._settings = settings
        self._server = server
        self._provider = server.profile.name if server is not None else ""
        self._client: model_client.Client | None = None
        self._estimator = estimates.Calibrated()
        self._learnt = 0  # number of ledger rows that the estimator has learnt

    def limit(self, *, patient: bool) -> float:
        """Return the limit of one request in seconds, for one that is ``patient`` only what a person has set."""
        return LONGEST if patient and "model_timeout" not in self._settings.model_fields_set else self.seconds

    @property
    def background(self) -> bool:
        return self._settings.model_background and self._server is not None and self._server.profile.background

    @property
    def store(self) -> bool:
        return self._settings.model_store or self.background

    @property
    def chains(self) -> bool:
        """True if a thread continues from the response that the server has stored."""
        return self.store and self._server is not None and self._server.profile.chaining

    @property
    def sees(self) -> bool:
        """True if models are shown pictures: as the setting says, else as the provider's models mostly do."""
        said = self._settings.model_sees
        return said if said is not None else self._server is not None and self._server.profile.sees

    def reader(self, model: str) -> str:
        """Return the name of a model at its server, as a reader of encrypted reasoning; empty if a cassette answers."""
        return f"{model} at {self._server.base_url}" if self._server is not None else ""

    def max_output(self, who: Literal["session", "delegate"], least: int = 0) -> int:
        """Return the tokens that an answer may have: as the settings say, else as the provider needs, but at ``least``."""
        said: int | None = getattr(self._settings, f"{who}_max_output")
        profile = self._server.profile if self._server is not None else profiles.PROFILES["compatible"]
        return said or max(least, profile.max_output)

    def model(self, role: selection.Role, named: str | None, number: int) -> str:
        """Return the model for exchange ``number`` of the run. Raises SetupError ``model-unset``."""
        if self.player is not None and named is None and not selection.is_set(role, self._settings):
            return self.player.model(number)
        return selection.model_for(role, self._settings, named)

    def client(self) -> model_client.Client:
        if self._client is None:
            from runtime.models.client import client as model_client

            assert self._server is not None, "a run that asks a model has a server"
            self._client = model_client.Client(self._server.base_url, self._server.key, self._server.profile)
        return self._client

    def estimate(self, request: Request, raw: int, ledger: Ledger) -> int:
        """Estimate a request's input tokens from its count ``raw``, corrected by the model's usage in the whole run, before a crash too."""
        self._learn(ledger)
        return self._estimator.corrected(request.model, raw)

    def within(self, model: str, most: int, ledger: Ledger) -> int:
        """Return the largest count whose corrected estimate for the model is at most ``most``."""
        self._learn(ledger)
        return self._estimator.within(model, most)

    def _learn(self, ledger: Ledger) -> None:
        for row in ledger.rows[self._learnt :]:
            if row.source == "model" and row.usage is not None:
                self._estimator.take(row.asked, row.raw, row.usage.input)
        # The last row may still be incomplete.
        self._learnt = max(0, len(ledger.rows) - 1)

    def context_window(self, model: str) -> int | None:
        return prices.context_window(model, self._provider)

    def accounts(self, ledger: Ledger, asked: budgets.Requester) -> list[budgets.Account]:
        """Return the budgets of run, session and step that a request falls under."""
        return budgets.accounts(ledger, self._budget, asked, self.price, self._allowance)

    def afford(self, ledger: Ledger, asked: budgets.Requester, request: Request, estimate: int) -> float:
        """Return the seconds that all budgets leave for a request. Raises BudgetReached, UsageError ``price-unknown``."""
        needed = budgets.need(request, estimate, self.price)
        unknown = functools.partial(prices.unknown, request.model, self._provider)
        return budgets.afford(self.accounts(ledger, asked), needed, unknown)

    def left_seconds(self, ledger: Ledger, asked: budgets.Requester) -> float:
        """Return the seconds that all budgets leave to wait for an answer; infinite without a limit."""
        return min((each.left_seconds for each in self.accounts(ledger, asked)), default=math.inf)

    def share_left(self, ledger: Ledger, asked: budgets.Requester) -> float:
        """Return the smallest share left of any part of the budgets, from 0 to 1."""
        return min((each.share_left for each in self.accounts(ledger, asked)), default=1.0)

    def price(self, usage: Usage, model: str) -> decimal.Decimal | None:
        return prices.dollars(usage, model, self._settings.prices, self._provider)

    def dollars(self, usage: Usage | None, *names: str) -> str | None:
        """Return the cost as the log has it, by the first of ``names`` with a price: a deployment or its model; None if unknown."""
        if usage is None:
            return None
        cost = next((each for name in names if (each := self.price(usage, name)) is not None), None)
        return plain(cost) if cost is not None else None

    def finish(self, exchanges: int) -> str | None:
        """Publish the recorded cassette of a passed run; return a message, if any. Raises the errors of ``Recorder.publish``, LogError."""
        if self.recorder is not None and exchanges:
            return f"recorded in {self.recorder.publish(exchanges)}"
        return self.player.left_over(exchanges) if self.player is not None else None

    async def close(self) -> None:
        if self._client is not None:
            with contextlib.suppress(Exception):
                await self._client.close()
            self._client = None
