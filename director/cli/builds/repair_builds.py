"""Runs a build in the foreground that fixes a run for which no candidate was proved."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from director.cli import session_options
from director.cli.builds import foreground, options
from director.proving import repair_builds
from director.repair import goals
from director.session import open as open_session
from director.session import settings
from director.session.state import SessionState
from nodes.errors import SetupError, UsageError
from runtime import version
from runtime.language import workflow
from runtime.log import entries, history, session
from runtime.log.store import store
from runtime.log.writer import LogWriter
from runtime.models import selection
from runtime.secrets import masking, sources
from runtime.workspace import host

if TYPE_CHECKING:
    from director.draft.goal import Policy
    from director.repair import repair

HOW = "a model can look further: set one (RUNOPS_MODEL; `runops doctor --model`), and repair again"
"""Hint if a model could find a fix, and none is set."""


@dataclasses.dataclass(frozen=True, slots=True)
class RepairBuild:
    """The request on the command line, with its settings."""

    here: host.Host
    """With the budget of models."""
    policy: Policy
    runs: int = 2
    model: str | None = None
    none: bool = False
    """True if no model may be asked."""
    yes: bool = False
    quiet: bool = False

    def hindered(self, outcome: repair.Outcome, loaded: workflow.Loaded) -> str | None:
        """Explain why no model is asked though one could find more; None if one is, and if there is nothing to find."""
        if not goals.is_open(outcome) or self.none:
            return None
        try:
            selection.model_for("director", self.here.settings)
        except SetupError:
            return HOW
        if self.here.settings.model_calls != "live":
            return f"no model is asked: `model_calls` is `{self.here.settings.model_calls}`"
        found = loaded.find(outcome.case.failure.path)
        if found is not None and found.user:
            return f"no model is asked: the step stands in {found.file.path}, which the workflow uses, and a build fixes the file alone that was run"
        return None

    def asks(self, outcome: repair.Outcome, loaded: workflow.Loaded) -> bool:
        """Return whether a model is asked."""
        return goals.is_open(outcome) and not self.none and self.hindered(outcome, loaded) is None

    def carry_out(
        self, outcome: repair.Outcome, past: history.History, loaded: workflow.Loaded, kept: store.Kept
    ) -> foreground.Came:
        """Run a build that fixes it, to its end. Raises SetupError and UsageError if it cannot begin; nothing is written then."""
        chosen = options.chosen_for(self.here.settings)
        here = self.here.having(chosen)
        models = session_options.Models.of(here)
        models.check(chosen.budget)
        # Actions that a person has refused once are not requested again.
        policy = "hold" if outcome.refused else self.policy
        goal = goals.of(outcome, past, loaded, kept, policy=policy, runs=self.runs)
        known = sources.read(here.secrets, goal.secrets, goal.place.parent)
        masker = masking.Masker({**known, **models.masked()})
        text = repair_builds.text_of(goal.place)
        if masker.text(text) != text:
            raise UsageError(
                "secret-refused",
                f"a secret stands in {loaded.path} itself: it is told to no model",
                fix="write `{{ secrets.NAME }}` in its place, or repair with `--no-model`",
            )
        header = entries.SessionHeader(
            purpose="build",
            versions=version.versions(),
            budget=str(chosen.budget) if chosen.budget is not None else None,
            build=entries.Build.model_validate(masker.json(goal.as_logged().model_dump(mode="json"))),
        )

        async def opened() -> LogWriter[session.Session]:
            writer = await open_session.begin(here.store, header, masker)
            async with store.release_on_error(writer.conversation):
                given = settings.given(chosen, {"model_director": self.model})
                settings.keep(SessionState(writer), given)
            return writer

        return foreground.follow(opened(), here, models, asks=not self.yes, quiet=self.quiet)
