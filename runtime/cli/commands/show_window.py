"""What a model would be sent of a conversation. This package knows of runs, and nothing of what is said about them: whoever talks about them tells."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

from nodes.errors import SetupError
from runtime.context import report as context_report
from runtime.workspace import host

GROUP = "runops.windows"
"""The entry-point group in which a package offers this. The value of its entry is the import path of a function (host, conversation) -> report."""

Reporter = Callable[[host.Host, str], context_report.Report]


def report(here: host.Host, conversation: str) -> context_report.Report:
    """What the next request of a session would hold, and of a run that of a chat about it; nothing is written or sent.

    Raises SetupError ``window-not-offered`` where no installed package tells it, and what that one raises.
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
