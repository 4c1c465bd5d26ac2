"""What a run has of models: which, where, how, and what they may cost; or a cassette in their place."""

from __future__ import annotations

import contextlib
import decimal
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nodes.budgets import Budget
from runtime.log.ledger import Ledger, plain
from runtime.messages import estimates
from runtime.messages.messages import Request, Usage
from runtime.models import budgets, selection
from runtime.settings import prices, settings

if TYPE_CHECKING:
    from runtime.models.cassettes import cassettes
    from runtime.models.client import client as model_client


class RunModels:
    """The models of one run. ``close`` it at the end."""

    def __init__(
        self,
        chosen: settings.Settings,
        server: selection.Server | None,
        budget: Budget | None,
        file: Path,
        private: Path,
        secrets: Mapping[str, str],
        masked: Mapping[str, str],
        origins: Sequence[str] = (),
        allowance: budgets.Allowance | None = None,
    ) -> None:
        """``server`` is None where only a cassette answers; ``budget`` is the run's; ``file`` is the workflow's, ``private`` the run's folder.

        ``secrets`` are the run's by name, ``masked`` is what nothing may show besides; ``origins`` are those that it may load; ``allowance`` is
        that of the session that follows the run.

        Raises UsageError ``cassette-missing``, ``cassette-damaged``.
        """
        if server is not None:
            # Half a second, which no step that asks should have to count as its own.
            importlib.import_module("runtime.models.client.client")
        self.player: cassettes.Player | None = None
        self.recorder: cassettes.Recorder | None = None
        if chosen.model_calls in ("replay", "record"):
            from runtime.models.cassettes import cassettes  # most runs have none

            if chosen.model_calls == "replay":
                self.player = cassettes.Player.open(file, secrets, origins)
            else:
                self.recorder = cassettes.Recorder(file, private, secrets, masked, origins)
        self.seconds = chosen.model_timeout
        self._budget, self._allowance = budget, allowance
        self._chosen = chosen
        self._server = server
        self._provider = server.profile.name if server is not None else ""
        self._client: model_client.Client | None = None
        self._estimator = estimates.Calibrated()
        self._learnt = 0
        """How many rows of the ledger the estimator knows."""

    @property
    def background(self) -> bool:
        """Whether requests are worked on in the background."""
        return self._chosen.model_background and self._server is not None and self._server.profile.background

    @property
    def store(self) -> bool:
        """Whether the server may keep what it is sent."""
        return self._chosen.model_store or self.background

    @property
    def chains(self) -> bool:
        """Whether a conversation goes on from the response that the server has kept."""
        return self.store and self._server is not None and self._server.profile.chaining

    def model(self, role: selection.Role, named: str | None, number: int) -> str:
        """The model that exchange ``number`` of the run asks. Raises SetupError ``model-unset``."""
        if self.player is not None and named is None and not selection.is_set(role, self._chosen):
            return self.player.model(number)
        return selection.model_for(role, self._chosen, named)

    def client(self) -> model_client.Client:
        """The client, made when a model is first asked."""
        if self._client is None:
            from runtime.models.client import client as model_client

            assert self._server is not None, "a run that asks a model has a server"
            self._client = model_client.Client(self._server.base_url, self._server.key, self._server.profile)
        return self._client

    def estimate(self, request: Request, raw: int, ledger: Ledger) -> int:
        """Tokens of the request's input before it is sent, by all that the run has learnt of the model, before a crash too; ``raw`` are those by the list alone."""
        self._learn(ledger)
        return self._estimator.corrected(request.model, raw)

    def within(self, model: str, most: int, ledger: Ledger) -> int:
        """Tokens by the list alone that are no more than ``most`` for the model, by all that the run has learnt of it."""
        self._learn(ledger)
        return self._estimator.within(model, most)

    def _learn(self, ledger: Ledger) -> None:
        for row in ledger.rows[self._learnt :]:
            if row.source == "model" and row.usage is not None:
                self._estimator.take(row.asked, row.raw, row.usage.input)
        # The last one may still be on its way.
        self._learnt = max(0, len(ledger.rows) - 1)

    def context_window(self, model: str) -> int | None:
        """Tokens that the model has for input and output together; None where nobody knows."""
        return prices.context_window(model, self._provider)

    def afford(self, ledger: Ledger, asked: budgets.Requester, request: Request, estimate: int) -> float:
        """Seconds that the budgets of the run and of the step leave for a request. Raises BudgetReached, UsageError ``price-unknown``."""
        own = self._chosen.prices
        return budgets.afford(ledger, self._budget, asked, request, estimate, own, self._provider, self._allowance)

    def left_seconds(self, ledger: Ledger, asked: budgets.Requester) -> float:
        """Seconds that the budgets of the run and of the step leave to wait for an answer; infinite without a limit."""
        return budgets.left_seconds(ledger, self._budget, asked, self._allowance)

    def share_left(self, ledger: Ledger, asked: budgets.Requester) -> float:
        """What is left of the budgets of the run and of the step, from 0 to 1, by the part of which the least is left."""
        found = budgets.accounts(ledger, self._budget, asked, self.price, self._allowance)
        return min((each.share_left for each in found), default=1.0)

    def price(self, usage: Usage, model: str) -> decimal.Decimal | None:
        """Dollars that a usage of a model costs; None where nobody knows."""
        return prices.dollars(usage, model, self._chosen.prices, self._provider)

    def dollars(self, usage: Usage | None, *names: str) -> str | None:
        """What it cost, as the log holds it, by the first of the model's names that has a price; None where nobody knows.

        A model may be asked for by the name of a deployment, and answer by its own.
        """
        if usage is None:
            return None
        costs = (prices.dollars(usage, name, self._chosen.prices, self._provider) for name in names)
        cost = next((each for each in costs if each is not None), None)
        return plain(cost) if cost is not None else None

    def finish(self, exchanges: int) -> str | None:
        """The run has passed, with so many exchanges: what was recorded becomes the cassette. What is to be said of it, if anything.

        Raises UsageError ``cassette-secret``, ``cassette-incomplete``, ``file-not-written``, LogError.
        """
        if self.recorder is not None and exchanges:
            return f"recorded in {self.recorder.publish(exchanges)}"
        return self.player.left_over(exchanges) if self.player is not None else None

    async def close(self) -> None:
        """End the connections."""
        if self._client is not None:
            with contextlib.suppress(Exception):
                await self._client.close()
            self._client = None
