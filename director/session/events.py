"""Events that a working session reports to its listener."""

from __future__ import annotations

from nodes.errors import RunOpsError
from runtime import events
from runtime.context import window


class Listener:
    """Called in order, in the session's process; this one ignores all. Methods must not raise, and must return at once."""

    def asked(self, model: str, report: window.Report) -> None: ...

    def fills(self, report: window.Report, overflow: window.Overflow) -> None:
        """The context is so full that its oldest part will soon be omitted or summed up. Reported again only after it has shrunk."""

    def text(self, part: str) -> None: ...

    def waiting(self, what: str) -> None: ...

    def called(self, path: str, name: str, arguments: str) -> None:
        """The model has called a tool; ``path`` is that of the call, below a delegate's path if it is one's."""

    def done(self, path: str, text: str, *, failed: bool) -> None: ...

    def failed(self, error: RunOpsError) -> None: ...

    def ran(self, event: events.Event) -> None:
        """An event of a run that a tool has started: its steps as they begin and end."""

    def changed(self, of: str, name: str) -> None: ...
