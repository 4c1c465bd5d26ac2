"""Everything that a program gives to its runs: settings, store, and source of secrets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nodes.errors import UsageError
from runtime.browser.options import Mode
from runtime.log.store import file_store
from runtime.log.store import store as log_store
from runtime.secrets import sources
from runtime.settings.settings import Settings
from runtime.settings.settings import load as load_settings


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    settings: Settings
    store: log_store.Store
    secrets: sources.SecretSource
    usual_mode: Mode = "own"
    """Browser mode of a run if neither settings nor file name one: ``shared`` for many runs, in turn or at the same time."""

    def having(self, settings: Settings) -> Host:
        return dataclasses.replace(self, settings=settings)

    @property
    def reader(self) -> log_store.StoreReader:
        """The store's content, for readers that may block."""
        return self.store.reader

    @property
    def files(self) -> file_store.Files:
        """The store's content as files. Raises UsageError ``store-without-files``."""
        if not isinstance(self.store, file_store.FileStore):
            message = "this command works on the files of a folder, and the runs are in another store"
            raise UsageError("store-without-files", message, fix="use the tools of that store")
        return self.store.files


def given(
    settings: Settings | None,
    store: log_store.Store | None,
    secrets: sources.SecretSource | Mapping[str, str] | None,
    usual_mode: Mode,
) -> Host:
    """Build a host. The defaults are the default settings, a store in the folder that they name, and no secrets."""
    settings = settings or Settings()
    source = sources.Given(secrets or {}) if secrets is None or isinstance(secrets, Mapping) else secrets
    return Host(settings, store or file_store.FileStore(settings.home), source, usual_mode)


ENVIRONMENT = sources.ENVIRONMENT


def of_command(settings: Settings) -> Host:
    """Build the host of a command: the folder of its settings, and the secrets of its environment."""
    return Host(settings, file_store.FileStore(settings.home), ENVIRONMENT)


def load(**flags: Any) -> Host:
    """Build the host of a command whose settings are loaded with ``flags``: see ``settings.load``."""
    return of_command(load_settings(**flags))
