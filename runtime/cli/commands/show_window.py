"""The next request of a conversation to a model, reported by another package: this one knows nothing of conversations about runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

from nodes.errors import SetupError
from runtime.context import report as context_report
from runtime.workspace import host

GROUP = "runops.windows"
"""The entry-point group for reporters. The value of an entry is the import path of a function (host, conversation) -> report."""

Reporter = Callable[[host.Host, str], context_report.Report]


def report(here: host.Host, conversation: str) -> context_report.Report:
    """Report the next request of a session, or of a chat about a run; nothing is written or sent.

    Raises SetupError ``window-not-offered`` if no installed package has a reporter, and the reporter's errors.
    """
    for entry in metadata.entry_points(group=GROUP):
        try:
            reporter: Reporter = entry.load()
        except (ImportError, AttributeError) as error:
            raise SetupError(
                "window-not-offered",
                f"what tells the windows of conversations cannot be loaded: {error}",
                fix="install RunOps anew, or fix the package that offers it",
            ) from error
        return reporter(here, conversation)
    raise SetupError(
        "window-not-offered",
        "no installed package tells the windows of conversations",
        fix="install RunOps anew: the Director tells them",
    )
