"""Mailboxes and their messages, as nodes see them."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Literal

Encryption = Literal["tls", "starttls", "none"]

PORTS: dict[Encryption, int] = {"tls": 993, "starttls": 143, "none": 143}
"""The usual port of each way to connect."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mailbox:
    """A folder of a mail account."""

    host: str
    port: int
    user: str
    password: str = dataclasses.field(repr=False)
    folder: str
    encryption: Encryption

    def __str__(self) -> str:
        return f"the mailbox {self.folder} at {self.host}:{self.port}"


@dataclasses.dataclass(frozen=True, slots=True)
class Head:
    """What a message says before its text."""

    senders: str
    """Address and name, as written."""
    recipients: str
    """Those of `To` and `Cc`."""
    subject: str


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages are looked for: parts of their heads, in any capitals; an empty part fits all."""

    sender: str = ""
    recipient: str = ""
    subject: str = ""
    since: dt.datetime | None = None
    """The earliest time of arrival; None: the beginning of the run."""

    def fits(self, head: Head) -> bool:
        pairs = ((self.sender, head.senders), (self.recipient, head.recipients), (self.subject, head.subject))
        return all(part.casefold() in whole.casefold() for part, whole in pairs)


@dataclasses.dataclass(frozen=True, slots=True)
class Letter:
    """A message, its HTML parts as text."""

    uid: str
    subject: str
    text: str


@dataclasses.dataclass(slots=True)
class Seen:
    """What a mailbox was seen to hold: for the error if the wanted message does not come."""

    since: dt.datetime
    """The time from which messages count."""
    older: int = 0
    """Messages that arrived before that, on the same day or the day before."""
    last_older: dt.datetime | None = None
    other: int = 0
    """Later messages whose heads do not fit."""
    fitting: int = 0
    """Later messages whose heads fit."""
