"""Which model is asked, where, with which key: what the settings say, found fit before a run begins."""

from __future__ import annotations

import dataclasses
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from nodes.errors import SetupError, UsageError
from runtime.models.client import profiles
from runtime.secrets import sources
from runtime.settings import addresses, settings

if TYPE_CHECKING:
    from nodes.base import Node
    from runtime.language import workflow

Role = Literal["cognition", "agent", "director", "summary"]
"""What a model is used for."""

KEY = "RUNOPS_MODEL_KEY"
KEYS = (KEY, "OPENAI_API_KEY")
"""Where the key is looked for: the environment, else a ``.env`` file. Never in a file that is shared."""


MASKED_KEY = 16
"""Characters from which on a key is looked for in everything that is written: a shorter one may be a word like any other."""

HEADER = re.compile(r"[!-~]+")
"""What a key is made of. The client would show any other in its error."""

NO_KEY = "none"
"""What is sent as the key to a server on this machine, which asks for none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """Where requests go."""

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
        """The model that the node names itself."""
        return getattr(self.node, "model", None)

    @property
    def place(self) -> str:
        """File, line and column of the node."""
        mark = self.file.mark(self.node.id)
        return f"{self.file.path}:{mark.line}:{mark.column}" if mark is not None else str(self.file.path)


def asking(loaded: workflow.Loaded) -> Iterator[ModelUse]:
    """The nodes that ask a model, in a file and in those that it uses."""
    for file in loaded.files():
        for node in file.nodes():
            if node.asks is not None:
                yield ModelUse(node, node.asks, file)


def refuse_frozen(loaded: workflow.Loaded, chosen: settings.Settings) -> None:
    """Raise UsageError ``model-node-frozen`` where a file would ask a model and may not."""
    if chosen.model_calls != "none":
        return
    found = next(asking(loaded), None)
    if found is not None:
        raise UsageError(
            "model-node-frozen",
            f"{found.place}: the node `{found.node.id}` ({found.node.type}) asks a model, and this run may ask none",
            fix="run it with `--model-calls replay` and a cassette, or without `--frozen`",
            evidence={"node": found.node.id, "place": found.place},
        )


def is_set(role: Role, chosen: settings.Settings) -> bool:
    """Whether the settings name a model for the role."""
    return (getattr(chosen, f"model_{role}") or chosen.model) is not None


def model_for(role: Role, chosen: settings.Settings, named: str | None = None) -> str:
    """The model of a role; ``named`` is what a node says itself. Raises SetupError ``model-unset``."""
    model = named or getattr(chosen, f"model_{role}") or chosen.model
    if model is None:
        raise SetupError(
            "model-unset",
            "no model is set, and there is no default: names of models go stale",
            fix='set RUNOPS_MODEL, or write `model = "…"` into [tool.runops] of pyproject.toml; '
            "`runops doctor --model` lists what the provider has",
        )
    return model


def server(chosen: settings.Settings, source: sources.SecretSource) -> Server:
    """Where requests go.

    Raises UsageError ``bad-setting`` for an address that cannot be asked; SetupError ``model-key-missing`` where a server that is not on this machine
    is to be asked without a key, ``model-key-refused`` for a key that no header can hold.
    """
    base_url = _checked(chosen.model_base_url or profiles.OPENAI_URL)
    profile = profiles.PROFILES[chosen.model_profile] if chosen.model_profile is not None else profiles.of_url(base_url)
    key = next((value for value in source.find(KEYS).values() if value), "")
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


def _checked(address: str) -> str:
    """The address as it is asked. What the settings were given is found fit by now; what the provider's own clients read is not."""
    try:
        return addresses.checked(address)
    except addresses.BadAddress as wrong:
        raise settings.no_address(settings.URL, wrong) from None


def models_of(nodes: Iterable[ModelUse], chosen: settings.Settings) -> dict[str, ModelUse]:
    """Every model that the nodes ask, with the first node that does. Raises SetupError ``model-unset``."""
    found: dict[str, ModelUse] = {}
    for each in nodes:
        found.setdefault(model_for(each.role, chosen, each.model), each)
    return found
