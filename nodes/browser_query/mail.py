"""``query: mail``: waits for a message in a mailbox, and takes a code from it."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from nodes.base import Leaf
from nodes.errors import AuthorError, SiteError
from nodes.mail import PORTS, Encryption, Letter, Mailbox, Seen, Wanted
from nodes.part import EffectClass
from nodes.schema import regex
from nodes.template import OPENING, Ref, SecretText, Text, Unfit, to_integer
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext

LOOK_SECONDS = 2.0  # seconds between two looks into a mailbox
MAIL_SECONDS = 120.0  # default time limit: messages travel slowly
HIGHEST = 65_535  # highest port
LAST_SECONDS = 0.5  # seconds kept for the error, before the attempt is ended from outside
SHORTEST_MASKED = 6  # fewest characters of a value that is masked: shorter ones are found in innocent texts


def _pattern(pattern: str) -> str:
    if OPENING not in pattern:
        _compiled(pattern)
    return pattern


def _compiled(pattern: str) -> None:
    """Raise ValueError for a pattern that cannot be used."""
    if not pattern or any(mark < " " and mark not in "\n\t" for mark in pattern):
        raise ValueError(r"is empty or has a control character: write a backslash, as in `\b`, in single quotes")
    groups = regex.compiled(pattern)
    if groups.groups > 1 and not groups.groupindex:
        raise ValueError("has several groups: name those that are wanted, as in `(?P<code>[0-9]{6})`, or write `(?:…)`")


def _moment(text: str) -> dt.datetime:
    """Return the time. Raises ValueError."""
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def _since(text: str) -> str:
    if OPENING not in text:
        try:
            _moment(text)
        except ValueError:
            raise ValueError(_NO_MOMENT) from None
    return text


_NO_MOMENT = "`since` is a time with its zone, such as `2026-01-31T09:00:00Z`; `now()` gives one"


def _named(host: str) -> None:
    """Raise ValueError for a name that no server can have."""
    try:
        host.encode("idna")
    except UnicodeError:
        raise ValueError(_NO_HOST) from None
    if not host:
        raise ValueError(_NO_HOST)


def _host(host: str) -> str:
    if OPENING not in host:
        _named(host)
    return host


_NO_HOST = (
    "`host` is the name or address of a server, such as `imap.shop.test`; parts of a name have 1 to 63 characters"
)


def to_port(value: Json) -> int:
    port = to_integer(value)
    if not 1 <= port <= HIGHEST:
        raise Unfit(f"is {port}, and a port is a number from 1 to {HIGHEST}")
    return port


def on_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Mail(Leaf):
    r"""Waits for a message in a mailbox (IMAP), and takes a code from it. It needs no page, and the extra ``mail``.

    Only messages that arrived since the beginning of the run count, so an old code is never taken; of several the newest is. Value: what
    ``pattern`` matches, or its group, as text; a map if it has named groups.
    """

    effect_default: ClassVar[EffectClass] = "read"
    usual_seconds: ClassVar[float] = MAIL_SECONDS

    type: Literal["browser_query"] = "browser_query"
    query: Literal["mail"]
    """Take a code from a mailbox."""
    host: Annotated[Text, AfterValidator(_host)]
    """Name or address of the IMAP server."""
    port: Annotated[int, Field(ge=1, le=HIGHEST), Ref(to_port)] | None = None
    """Its port; 993 by default, 143 with ``starttls`` and ``none``."""
    user: SecretText
    """Name of the account; may be a secret."""
    password: SecretText
    """Its password, or that of an application; a secret."""
    encryption: Encryption = "tls"
    """How to connect; ``none`` only to a server on this machine."""
    folder: Text = "INBOX"
    """The folder."""
    from_: Text = Field(default="", alias="from")
    """Part of the sender, in any capitals."""
    to: Text = ""
    """Part of a recipient: one mailbox may have many addresses."""
    subject: Text = ""
    """Part of the subject."""
    pattern: Annotated[Text, AfterValidator(_pattern)]
    r"""Regular expression for the code, such as ``'\b[0-9]{6}\b'`` or ``'code: (\w+)'``; searched in the subject and then in the text, HTML as text."""
    since: Annotated[Text, AfterValidator(_since)] | None = None
    """The earliest time of arrival, such as that of a `now()` before the step that asks for the code. By default the beginning of the run."""
    mark_read: bool = False
    """True to mark the message as read; otherwise nothing in the mailbox changes."""
    secret: bool = True
    """``false`` if the value is no secret, such as an order number. Otherwise texts of six characters and more are masked in what is logged and shown."""

    @model_validator(mode="after")
    def _encrypted(self) -> Mail:
        if self.encryption == "none" and OPENING not in self.host and not on_this_machine(self.host):
            raise ValueError(_PLAIN)
        return self

    def summary(self) -> str:
        parts = {"from": self.from_, "to": self.to, "subject": self.subject}
        return " ".join(["mail in", self.folder, *(f'{name}="{part}"' for name, part in parts.items() if part)])

    async def run(self, ctx: LeafContext) -> Json:
        """Look into the mailbox until a message has the code."""
        box, wanted = self._mailbox(), self._wanted()
        await ctx.act()
        async with ctx.mail.open(box, wanted) as inbox:
            while True:
                for letter in await inbox.arrived():
                    value = self._value(letter)
                    if value is not None:
                        if self.secret:
                            self._hide(ctx, value)
                        if self.mark_read:
                            await inbox.mark_read(letter)
                        return value
                if ctx.left < LOOK_SECONDS + LAST_SECONDS:
                    raise self._missing(box, inbox.seen)
                await asyncio.sleep(LOOK_SECONDS)

    def _mailbox(self) -> Mailbox:
        try:
            _named(self.host)
        except ValueError:
            message = f"`host` is {self.host!r}, which no server can be called"
            raise AuthorError("value-mismatch", message, fix=_NO_HOST) from None
        if self.encryption == "none" and not on_this_machine(self.host):
            raise AuthorError("mail-not-encrypted", _PLAIN, fix="take `encryption` away, or write `starttls`")
        port = self.port or PORTS[self.encryption]
        return Mailbox(self.host, port, self.user, self.password, self.folder, self.encryption)

    def _wanted(self) -> Wanted:
        try:
            _compiled(self.pattern)
        except ValueError as error:
            raise AuthorError("value-mismatch", f"`pattern` {error}", fix="correct the pattern") from None
        try:
            since = _moment(self.since) if self.since is not None else None
        except ValueError:
            message = f"`since` is {self.since!r}, which is no time with a zone"
            raise AuthorError("value-mismatch", message, fix=_NO_MOMENT) from None
        return Wanted(self.from_, self.to, self.subject, since)

    def _value(self, letter: Letter) -> Json:
        """Return what the pattern finds; None if it finds nothing."""
        text = f"{letter.subject}\n{letter.text}"[: regex.LONGEST_TEXT]
        try:
            found = next(regex.matches(self.pattern, text), None)
        except regex.PatternRefused:
            message = "`pattern` takes too long on a message"
            raise AuthorError("value-mismatch", message, fix="make it simpler: no `.*` within a repetition") from None
        if found is None:
            return None
        if found.re.groupindex:
            return dict(found.groupdict())
        return found[found.re.groups]

    def _hide(self, ctx: LeafContext, value: Json) -> None:
        for each in value.values() if isinstance(value, dict) else [value]:
            if isinstance(each, str) and len(each) >= SHORTEST_MASKED:
                ctx.hide(each)

    def _missing(self, box: Mailbox, seen: Seen) -> SiteError:
        if seen.fitting:
            message, fix = (
                "the pattern is in none of the messages that came",
                "look at the message, and correct `pattern`",
            )
        elif seen.other:
            message = "messages came, and none has that sender, recipient and subject"
            fix = "look at the message, and correct `from`, `to` and `subject`"
        else:
            message = "no message came"
            fix = "look whether the site sends one, and to this mailbox and folder; a slow one needs a longer `timeout`"
        evidence: dict[str, Json] = {
            "mailbox": f"{box.folder} at {box.host}:{box.port}",
            "since": seen.since.isoformat(timespec="seconds"),
            "messages that fit": seen.fitting,
            "other messages": seen.other,
            "earlier messages": seen.older,
        }
        if seen.last_older is not None:
            evidence["last of them"] = seen.last_older.isoformat(timespec="seconds")
        return SiteError("mail-not-found", f"{message} (waited {self.seconds:g} s)", fix=fix, evidence=evidence)


_PLAIN = "without encryption a password may only go to a server on this machine (`localhost`, `127.0.0.1`)"
