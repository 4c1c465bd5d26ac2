"""What a session tells whoever watches it, while it is at work."""

from __future__ import annotations

from nodes.errors import RunOpsError
from runtime import events
from runtime.context import window


class Listener:
    """Told in order, in the session's own process; this one lets it pass. It must not raise, and takes no time."""

    def asked(self, model: str, report: window.Report) -> None:
        """A request is about to be sent."""

    def fills(self, report: window.Report, overflow: window.Overflow) -> None:
        """So much was said that the oldest of it soon gives way, by being left out or summed up; told again only after it was less."""

    def text(self, part: str) -> None:
        """A further piece of the answer's text, as it comes."""

    def waiting(self, what: str) -> None:
        """What is waited for."""

    def called(self, path: str, name: str, arguments: str) -> None:
        """The model has asked for a tool; ``path`` is that of the call, below a delegate's where it is one's."""

    def done(self, path: str, told: str, *, failed: bool) -> None:
        """A call is over, and the model is told this."""

    def failed(self, error: RunOpsError) -> None:
        """A request brought no answer, or the session cannot go on with this word."""

    def ran(self, event: events.Event) -> None:
        """Something happens in a run that a tool has started: its steps as they begin and end."""

    def changed(self, of: str, name: str) -> None:
        """Something that is kept has a further version."""
