"""What came to a fake server, and what became of it."""

from __future__ import annotations

import dataclasses
import threading
from urllib.parse import urlsplit

from nodes.values import Json


@dataclasses.dataclass(slots=True)
class Received:
    """A request that came, and what became of it."""

    number: int
    """1 for the first one."""
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
    """Of a request to the model: its whole input, with that of the responses it follows."""
    status: int | None = None
    """Of the answer; None: none was given."""
    sent: bytes = b""
    """The body of the answer, as far as it was sent."""
    complete: bool = False
    """Whether all of the answer was sent."""
    decided: bool = False
    """Whether it is known what it is answered with: the script's next answer is for the next request."""
    gone: threading.Event = dataclasses.field(default_factory=threading.Event)
    """Set once the client has closed the connection before the answer was complete."""

    @property
    def asks(self) -> bool:
        """Whether it is a request to the model, and none about an earlier one."""
        return self.method == "POST" and urlsplit(self.path).path.rstrip("/").endswith("/responses")


class Record:
    """The requests to a server, in the order in which they came. It may be used from several threads."""

    def __init__(self) -> None:
        self.requests = list[Received]()
        self._changed = threading.Condition()

    def came(self, received: Received) -> None:
        """A request is here."""
        with self._changed:
            received.number = len(self.requests) + 1
            self.requests.append(received)

    def decided(self, received: Received) -> None:
        """It is known what a request is answered with."""
        with self._changed:
            received.decided = True
            self._changed.notify_all()

    def asking(self) -> list[Received]:
        """The requests to the model."""
        with self._changed:
            return [each for each in self.requests if each.asks]

    def wait(self, count: int, timeout: float) -> bool:
        """Wait until so many requests to the model are decided; whether they were within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: sum(each.decided for each in self.asking()) >= count, timeout)
