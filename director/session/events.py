"""Events that a working session reports to its listener."""

from __future__ import annotations

from nodes.errors import RunOpsError
from runtime import events
from runtime.context import window


class Listener:
    """Ignores all events; subclasses show them. Called in order, in the session's process. Methods must not raise or block."""

    def asked(self, model: str, report: window.Report) -> None: ...

    def fills(self, report: window.Report, overflow: window.Overflow) -> None:
        """The window is nearly full: its oldest part will soon be left out or summed up. Called again only after it has shrunk."""

    def summed(self, rung: window.Reduction, report: window.Report) -> None:
        """The older part was summed up, or this failed; ``report`` is that of the request that follows."""

    def text(self, part: str) -> None: ...

    def replied(self, text: str) -> None:
        """The model has answered, and works on: a message came meanwhile."""

    def waiting(self, what: str) -> None: ...

    def called(self, path: str, name: str, arguments: str) -> None:
        """The model has called a tool; the ``path`` of a subagent's call is below that of the subagent."""

    def done(self, path: str, text: str, *, failed: bool) -> None: ...

    def spent(self, path: str, text: str) -> None:
        """A subagent has ended; ``text`` says what it took."""

    def failed(self, error: RunOpsError) -> None: ...

    def ran(self, event: events.Event) -> None:
        """An event of a run that a tool has started: its steps as they begin and end."""

    def reset(self, text: str) -> None:
        """The site's data were put back, or this failed."""

    def changed(self, of: str, name: str) -> None: ...
