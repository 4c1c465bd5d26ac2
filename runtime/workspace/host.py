"""What the program that carries runs gives them: settings, the store that keeps them, and where secrets come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nodes.errors import UsageError
from runtime.browser.options import Mode
from runtime.log.store import file_store, store
from runtime.secrets import sources
from runtime.settings import settings
from runtime.settings.settings import Settings


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """What is given to every run. Nothing of it is looked up behind the program's back."""

    settings: settings.Settings
    store: store.Store
    secrets: sources.SecretSource
    usual_mode: Mode = "own"
    """The browser of a run for which neither the settings nor its file name one: ``shared`` where many runs follow each other, or go on side by side."""

    def having(self, chosen: settings.Settings) -> Host:
        """The same with other settings."""
        return dataclasses.replace(self, settings=chosen)

    @property
    def kept(self) -> store.Kept:
        """What the store keeps, for readers that may block."""
        return self.store.kept

    @property
    def files(self) -> file_store.Files:
        """The same, where it is files. Raises UsageError ``store-without-files``."""
        if not isinstance(self.store, file_store.FileStore):
            raise UsageError(
                "store-without-files",
                "this command works on the files of a folder, and the runs are kept elsewhere",
                fix="use the tools of the place that keeps them",
            )
        return self.store.files


def given(
    settings: settings.Settings | None,
    kept: store.Store | None,
    secrets: sources.SecretSource | Mapping[str, str] | None,
    usual_mode: Mode,
) -> Host:
    """What a program gives; settings by default the usual ones, a store the folder that they name, secrets none."""
    chosen = settings if settings is not None else Settings()
    source = sources.Given(secrets or {}) if secrets is None or isinstance(secrets, Mapping) else secrets
    return Host(chosen, kept if kept is not None else file_store.FileStore(chosen.home), source, usual_mode)


ENVIRONMENT = sources.Environment()
"""The secrets of a command; what it has read of them stays known, so that a report of a bug can be masked."""


def of_command(chosen: settings.Settings) -> Host:
    """What a command has: the folder of its settings, and the secrets of its environment."""
    return Host(chosen, file_store.FileStore(chosen.home), ENVIRONMENT)


def load(**flags: Any) -> Host:
    """The same, its settings with ``flags``: ``settings.load``."""
    return of_command(settings.load(**flags))
