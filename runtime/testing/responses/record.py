"""The requests that a fake server received, and their answers."""

from __future__ import annotations

import dataclasses
import threading
from urllib.parse import urlsplit

from nodes.values import Json


@dataclasses.dataclass(slots=True)
class Received:
    """A request, and its answer."""

    number: int
    """Counted from 1."""
    method: str
    path: str
    """With its query."""
    headers: dict[str, str]
    """By name in lower case."""
    raw: bytes
    """The whole request, byte for byte."""
    body: Json = None
    """None where there is none, or it is no JSON."""
    items: tuple[dict[str, Json], ...] = ()
    """The whole input of a request to the model, including that of the responses it continues."""
    status: int | None = None
    """Status of the answer; None: there was none."""
    sent: bytes = b""
    """The body of the answer, as far as it was sent."""
    complete: bool = False
    """True if all of the answer was sent."""
    decided: bool = False
    """True once its answer is chosen: the script's next answer is for the next request."""
    gone: threading.Event = dataclasses.field(default_factory=threading.Event)
    """Set once the client has closed the connection before the answer was complete."""

    @property
    def asks(self) -> bool:
        """True for a request to the model, and not about an earlier one."""
        return self.method == "POST" and urlsplit(self.path).path.rstrip("/").endswith("/responses")


class Record:
    """The requests to a server, in the order of arrival. It may be used from several threads."""

    def __init__(self) -> None:
        self.requests = list[Received]()
        self._changed = threading.Condition()

    def came(self, received: Received) -> None:
        """Add a request."""
        with self._changed:
            received.number = len(self.requests) + 1
            self.requests.append(received)

    def decided(self, received: Received) -> None:
        """Note that the answer to a request is chosen."""
        with self._changed:
            received.decided = True
            self._changed.notify_all()

    def asking(self) -> list[Received]:
        """Return the requests to the model."""
        with self._changed:
            return [each for each in self.requests if each.asks]

    def wait(self, count: int, timeout: float) -> bool:
        """Wait until so many requests to the model are decided; return False after ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: sum(each.decided for each in self.asking()) >= count, timeout)
