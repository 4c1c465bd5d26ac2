"""Selection of model, server and key from the settings, checked before a run begins."""

from __future__ import annotations

import dataclasses
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from nodes.errors import SetupError, UsageError
from runtime.models.client import profiles
from runtime.secrets import sources
from runtime.settings import addresses
from runtime.settings.settings import Settings, no_client_address

if TYPE_CHECKING:
    from nodes.base import Node
    from runtime.language import workflow

Role = Literal["cognition", "agent", "director", "summary"]

KEY = "RUNOPS_MODEL_KEY"
KEYS = (KEY, "OPENAI_API_KEY")
"""Names of the key in the environment, else in a ``.env`` file. It is never read from a file that may be shared."""


MASKED_KEY = 16  # minimum length of a key to be masked everywhere: a shorter one may be an ordinary word

HEADER = re.compile(r"[!-~]+")  # characters allowed in a key. For others, the client's error would show the key

NO_KEY = "none"  # the key sent to a server on this machine, which needs none


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    base_url: str
    profile: profiles.Profile
    key: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ModelUse:
    """A node of a file that asks a model."""

    node: Node
    role: Role
    file: workflow.Loaded

    @property
    def model(self) -> str | None:
        return getattr(self.node, "model", None)

    @property
    def place(self) -> str:
        mark = self.file.mark(self.node.id)
        return f"{self.file.path}:{mark.line}:{mark.column}" if mark is not None else str(self.file.path)


def asking(loaded: workflow.Loaded) -> Iterator[ModelUse]:
    for file in loaded.files():
        for node in file.nodes():
            if node.asks is not None:
                yield ModelUse(node, node.asks, file)


def refuse_frozen(loaded: workflow.Loaded, settings: Settings) -> None:
    """Raise UsageError ``model-node-frozen`` if a node asks a model and the run may ask none."""
    if settings.model_calls != "none":
        return
    found = next(asking(loaded), None)
    if found is not None:
        raise UsageError(
            "model-node-frozen",
            f"{found.place}: the node `{found.node.id}` ({found.node.type}) asks a model, and this run may ask none",
            fix="run it with `--model-calls replay` and a cassette, or without `--frozen`",
            evidence={"node": found.node.id, "place": found.place},
        )


def is_set(role: Role, settings: Settings) -> bool:
    return (getattr(settings, f"model_{role}") or settings.model) is not None


def model_for(role: Role, settings: Settings, named: str | None = None) -> str:
    """Return the model of a role; ``named`` is the node's own choice. Raises SetupError ``model-unset``."""
    model = named or getattr(settings, f"model_{role}") or settings.model
    if model is None:
        raise SetupError(
            "model-unset",
            "no model is set, and there is no default: names of models go stale",
            fix='set RUNOPS_MODEL, or write `model = "…"` into [tool.runops] of pyproject.toml; '
            "`runops doctor --model` lists what the provider has",
        )
    return model


def server(settings: Settings, source: sources.SecretSource) -> Server:
    """Return the server. Raises UsageError ``bad-setting``, SetupError ``model-key-missing`` and ``model-key-refused``."""
    try:
        # Our own settings are validated already, the variables of the provider's clients are not.
        base_url = addresses.checked(settings.model_base_url or profiles.OPENAI_URL)
    except addresses.BadAddress as wrong:
        raise no_client_address(wrong) from None
    profile = (
        profiles.PROFILES[settings.model_profile] if settings.model_profile is not None else profiles.of_url(base_url)
    )
    key = next((value for value in sources.find(source, KEYS).values() if value), "")
    if not key:
        if urllib.parse.urlsplit(base_url).hostname not in profiles.LOOPBACK:
            raise SetupError(
                "model-key-missing",
                f"a model is asked at {base_url}, and there is no key",
                fix=f"set {KEY} (or OPENAI_API_KEY) in the environment or in .env",
            )
        key = NO_KEY
    if not HEADER.fullmatch(key):
        raise SetupError(
            "model-key-refused",
            "the key holds blanks, ends of lines or letters beyond ASCII, and no header can hold it",
            fix=f"set {KEY} (or OPENAI_API_KEY) to the key alone, as the provider shows it",
        )
    return Server(base_url, profile, key)


def models_of(nodes: Iterable[ModelUse], settings: Settings) -> dict[str, ModelUse]:
    """Return every model that the nodes ask, with the first node that does. Raises SetupError ``model-unset``."""
    found: dict[str, ModelUse] = {}
    for each in nodes:
        found.setdefault(model_for(each.role, settings, each.model), each)
    return found
