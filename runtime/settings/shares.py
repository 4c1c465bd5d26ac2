"""Shares of a request with a hard limit: ``system=10,state=40,conversation=43,summary=33``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

FORM = "system=10,state=40,conversation=43,summary=33"


class Shares(BaseModel):
    """Percentages: each part gets what it needs, up to its share. The conversation also gets what the others leave."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: int = Field(default=10, ge=0, le=100)  # of the limit: instructions and tools
    state: int = Field(default=40, ge=0, le=100)  # of the limit: state and knowledge
    conversation: int = Field(default=43, ge=1, le=100)  # of the limit
    summary: int = Field(default=33, ge=0, le=100)  # of the conversation's share, at the most

    @model_validator(mode="after")
    def _fit(self) -> Shares:
        if self.free < 0:
            raise ValueError(f"system, state and conversation are {100 - self.free} % together, and may be 100")
        return self

    @property
    def free(self) -> int:
        """Percentage that stays free, for what a server counts otherwise."""
        return 100 - self.system - self.state - self.conversation


def known(value: Any) -> Any:
    """Read the text form; a share that it does not name has its default. Raises ValueError."""
    if not isinstance(value, str):
        return value
    found: dict[str, int] = {}
    for part in value.split(","):
        name, sign, number = (each.strip() for each in part.partition("="))
        if name not in Shares.model_fields or not sign or not number.isdecimal() or len(number) > 3:
            raise ValueError(f"`{part.strip()[:40]}` is no share: write some of {FORM}")
        if name in found:
            raise ValueError(f"`{name}` is named twice")
        found[name] = int(number)
    return found


Known = Annotated[Shares, BeforeValidator(known)]
