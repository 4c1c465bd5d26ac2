"""What a session keeps beside what is said: the plan, the description, the draft, variables. Each is a version in the log, with its reason."""

from __future__ import annotations

from nodes.values import Json
from runtime import journal, log, sessions


class Desk:
    """Reads and writes what a session keeps."""

    def __init__(self, pen: journal.Journal[sessions.Session]) -> None:
        """``pen`` is the session's."""
        self._pen = pen

    @property
    def history(self) -> sessions.Session:
        """The session's fold."""
        return self._pen.history

    def value(self, of: str, name: str = "") -> Json:
        """What is kept now; None where nothing is."""
        found = self._pen.history.latest(of, name)
        return self._pen.value_of(found) if found is not None else None

    def keep(self, version: log.Version, value: Json) -> log.Version:
        """Write a further version: its number follows from those before."""
        number = len(self._pen.history.versions(version.of, version.name)) + 1
        path = "/".join(filter(None, (version.of, version.name, str(number))))
        return self._pen.version(version.model_copy(update={"number": number}), value, path)
