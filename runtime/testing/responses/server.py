"""A fake Responses server that runs beside a test, with a record of all requests."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping

from runtime.testing import scripted_model
from runtime.testing.responses import shapes
from runtime.testing.responses.api import Api
from runtime.testing.responses.profile import OPENAI, Profile
from runtime.testing.responses.record import Received, Record
from runtime.testing.responses.wire import HOST, Wire

KEY = "key-of-the-fake-server"
"""The key that it accepts by default."""


class Server:
    """A fake Responses server that runs from its creation until ``close``. ``serve`` makes one for a ``with`` block."""

    def __init__(
        self,
        model: scripted_model.Model,
        *,
        key: str = KEY,
        models: tuple[str, ...] | None = None,
        ending: Mapping[str, str] | None = None,
        profile: Profile = OPENAI,
        tokens: shapes.Tokens = shapes.four_bytes,
        clock: Callable[[], float] = time.monotonic,
        port: int = 0,
    ) -> None:
        """``models`` None: any; ``ending`` maps some to shutdown dates; ``clock`` times background responses; ``port`` 0: a free one."""
        self.key = key
        self._record = Record()
        self._api = Api(model, profile=profile, models=models, ending=ending, tokens=tokens, clock=clock)
        self._wire = Wire(port, self._api, key, self._record)
        self._thread = threading.Thread(target=self._wire.serve, name="fake-responses")
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://{HOST}:{self._wire.server_address[1]}/v1"

    @property
    def problems(self) -> list[str]:
        """Violations by clients, and requests that the script could not answer, in order."""
        return self._api.problems

    @property
    def requests(self) -> list[Received]:
        """Every request, in the order of arrival."""
        return self._record.requests

    @property
    def asked(self) -> list[Received]:
        """The requests to the model: no polls, no cancelling, no list of models."""
        return self._record.asking()

    def wait(self, count: int, timeout: float = 30.0) -> list[Received]:
        """Return the requests to the model once so many of them have their answers chosen. Raises TimeoutError after ``timeout`` seconds."""
        if not self._record.wait(count, timeout):
            raise TimeoutError(f"{len(self.asked)} of {count} requests came within {timeout:g} s")
        return self.asked

    def forget(self) -> None:
        """Lose all responses, as a server that restarts may: continuing or fetching one gives "not found"."""
        self._api.forget()

    def close(self) -> None:
        """End every connection and every thread. A waiting client finds its connection closed."""
        self._wire.shutdown()
        self._thread.join()
        self._wire.hang_up()
        self._wire.server_close()


@contextlib.contextmanager
def serve(
    model: scripted_model.Model | Iterable[scripted_model.Scripted] | scripted_model.Script,
    *,
    strict: bool = False,
    key: str = KEY,
    models: tuple[str, ...] | None = None,
    ending: Mapping[str, str] | None = None,
    profile: Profile = OPENAI,
    tokens: shapes.Tokens = shapes.four_bytes,
    clock: Callable[[], float] = time.monotonic,
    port: int = 0,
) -> Generator[Server]:
    """Run a server for the block. ``strict``: raises AssertionError at its end if there were problems. The rest is as for ``Server``."""
    script = model if isinstance(model, scripted_model.Model) else scripted_model.Model(model)
    server = Server(
        script, key=key, models=models, ending=ending, profile=profile, tokens=tokens, clock=clock, port=port
    )
    try:
        yield server
    finally:
        server.close()
    if strict and server.problems:
        raise AssertionError("the fake server saw what must not be:\n" + "\n".join(server.problems))
