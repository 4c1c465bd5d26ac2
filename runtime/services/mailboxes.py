"""Mailboxes, read by IMAP. Nothing in them changes unless a message is to be marked as read."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime as dt
import imaplib
import re
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from nodes import ports
from nodes.errors import AuthorError, RunOpsError, SetupError, SiteError, did_you_mean
from nodes.mail import Head, Letter, Mailbox, Seen, Wanted
from runtime.services import html_text, threads

if TYPE_CHECKING:
    from imap_tools.mailbox import BaseMailBox
    from imap_tools.message import MailMessage

ANSWER_SECONDS = 20.0  # seconds for one answer of a server
GOODBYE_SECONDS = 1.0  # seconds for the end of a connection
AT_ONCE = 100  # messages in one request
MOST = 500  # most messages of a folder that are looked at, the newest
LONGEST = 1 << 20  # characters of a message that are read

_ARRIVED = re.compile(rb'INTERNALDATE "[^"]*"')
_UID = re.compile(rb"\bUID (\d+)")

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Mailboxes(ports.Mail):
    began: str  # beginning of the run, ISO 8601
    left: Callable[[], float]  # seconds that the attempt still has

    @override
    @contextlib.asynccontextmanager
    async def open(self, mailbox: Mailbox, wanted: Wanted) -> AsyncGenerator[ports.Inbox]:
        since = wanted.since or dt.datetime.fromisoformat(self.began)
        # The times of a mailbox have whole seconds.
        reader = _Reader(mailbox, wanted, since.astimezone(dt.UTC).replace(microsecond=0), self.left)
        inbox = _Inbox(mailbox, reader, self.left)
        try:
            yield inbox
        finally:
            await inbox.close()


class _Inbox(ports.Inbox):
    """Calls the reader in a thread, within the attempt's time."""

    def __init__(self, mailbox: Mailbox, reader: _Reader, left: Callable[[], float]) -> None:
        self._mailbox, self._reader, self._left = mailbox, reader, left
        self._idle = True  # false while a thread uses the connection, also one for which nobody waits any more

    @property
    @override
    def seen(self) -> Seen:
        return self._reader.seen

    @override
    async def arrived(self) -> list[Letter]:
        return await self._asked(self._reader.arrived)

    @override
    async def mark_read(self, letter: Letter) -> None:
        await self._asked(lambda: self._reader.mark_read(letter.uid))

    async def close(self) -> None:
        with contextlib.suppress(Exception):  # nothing depends on a goodbye
            async with asyncio.timeout(GOODBYE_SECONDS):
                await threads.called(self._reader.close if self._idle else self._reader.cut, "mailbox")

    async def _asked(self, work: Callable[[], T]) -> T:
        def used() -> T:
            self._idle = False
            try:
                return work()
            finally:
                self._idle = True

        try:
            async with asyncio.timeout(self._left()):
                return await threads.called(used, "mailbox")
        except RunOpsError:
            raise
        except TimeoutError:
            raise _unreachable(self._mailbox, "it does not answer in time") from None
        except Exception as error:
            from imap_tools.errors import UnexpectedCommandStatusError

            if isinstance(error, OSError | imaplib.IMAP4.error | UnexpectedCommandStatusError):
                raise _unreachable(self._mailbox, _said(error), error) from None
            raise


class _Reader:
    """Blocking reads of one mailbox."""

    def __init__(self, mailbox: Mailbox, wanted: Wanted, since: dt.datetime, left: Callable[[], float]) -> None:
        self._mailbox, self._wanted, self._left = mailbox, wanted, left
        self._box: BaseMailBox | None = None
        self._read: set[str] = set()  # messages that were looked at
        self.seen = Seen(since)

    def arrived(self) -> list[Letter]:
        self._box = self._box or self._opened()
        try:
            return self._looked(self._box)
        except (OSError, imaplib.IMAP4.abort):
            # Servers close connections that wait for long.
            self.cut()
            self._box = self._opened()
            return self._looked(self._box)

    def mark_read(self, uid: str) -> None:
        box = self._box or self._opened()
        box.folder.set(self._mailbox.folder)  # pyright: ignore[reportUnknownMemberType] - not typed to the end
        # The library's own `flag` also expunges, which deletes what another program has marked.
        status, data = box.client.uid("STORE", uid, "+FLAGS", r"(\Seen)")
        if status != "OK":
            raise imaplib.IMAP4.error(b" ".join(each for each in data if isinstance(each, bytes)))

    def close(self) -> None:
        if self._box is not None:
            try:
                self._box.logout()  # pyright: ignore[reportUnknownMemberType] - not typed to the end
            finally:
                # After a goodbye without an answer the library leaves it open.
                self.cut()

    def cut(self) -> None:
        """End the connection without a word; a thread that waits for an answer has an error."""
        if self._box is not None:
            with contextlib.suppress(OSError):
                self._box.client.shutdown()

    def _opened(self) -> BaseMailBox:
        box = _connected(self._mailbox, max(1.0, min(ANSWER_SECONDS, self._left())))
        try:
            _sign_in(box, self._mailbox)
            _enter(box, self._mailbox)
        except BaseException:
            box.client.shutdown()
            raise
        return box

    def _looked(self, box: BaseMailBox) -> list[Letter]:
        import imap_tools

        box.client.noop()  # the server tells then what is new
        # It compares days only, in its own zone.
        day = imap_tools.AND(date_gte=(self.seen.since - dt.timedelta(days=1)).date())
        found = [each for each in box.uids(day, charset=None) if each not in self._read][-MOST:]
        times = {uid: moment for part in _parts(found) for uid, moment in _times(box, part)}
        later = [uid for uid, moment in times.items() if moment >= self.seen.since]
        fitting = [
            message.uid
            for message in (box.fetch(uid_list=later, mark_seen=False, headers_only=True) if later else ())
            if message.uid is not None and self._wanted.fits(_head(message))
        ]
        fitting.sort(key=lambda uid: (times[uid], int(uid)), reverse=True)
        letters = [_letter(uid, message) for uid in fitting for message in box.fetch(uid_list=[uid], mark_seen=False)]
        # Until here the connection may break, and all of it is looked at again.
        self._count(times, later=len(later), fitting=len(fitting))
        return letters

    def _count(self, times: Mapping[str, dt.datetime], *, later: int, fitting: int) -> None:
        self._read |= times.keys()
        for moment in times.values():
            if moment < self.seen.since:
                self.seen.older += 1
                self.seen.last_older = max(moment, self.seen.last_older or moment)
        self.seen.fitting += fitting
        self.seen.other += later - fitting


def _parts(uids: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(uids), AT_ONCE):
        yield uids[begin : begin + AT_ONCE]


def _times(box: BaseMailBox, uids: Sequence[str]) -> Iterator[tuple[str, dt.datetime]]:
    """Yield the time of arrival of each message, which is the server's; the `Date` of a message is its sender's."""
    for item in box.client.uid("FETCH", ",".join(uids), "(INTERNALDATE)")[1]:
        if isinstance(item, bytes) and (uid := _UID.search(item)) and (said := _ARRIVED.search(item)):
            local = imaplib.Internaldate2tuple(said[0])
            if local is not None:
                yield uid[1].decode(), dt.datetime.fromtimestamp(time.mktime(local), dt.UTC)


def _head(message: MailMessage) -> Head:
    named = (message.from_values, *message.to_values, *message.cc_values)
    sender, *others = (f"{each.name} <{each.email}>" if each is not None else "" for each in named)
    return Head(sender, ", ".join(others), message.subject)


def _letter(uid: str, message: MailMessage) -> Letter:
    text = f"{message.text}\n{html_text.read(message.html[:LONGEST])}" if message.html else message.text
    return Letter(uid, message.subject, text[:LONGEST])


def _connected(mailbox: Mailbox, seconds: float) -> BaseMailBox:
    try:
        import imap_tools  # an extra, which few runs need
    except ImportError:
        raise SetupError(
            "extra-missing",
            "`query: mail` needs the package imap-tools, which is not installed",
            fix="type: pip install imap-tools",
        ) from None
    host = mailbox.host.strip("[]")
    match mailbox.encryption:
        case "tls":
            context = ssl.create_default_context()
            return imap_tools.MailBox(host, mailbox.port, timeout=seconds, ssl_context=context)
        case "starttls":
            context = ssl.create_default_context()
            return imap_tools.MailBoxStartTls(host, mailbox.port, timeout=seconds, ssl_context=context)
        case "none":
            return imap_tools.MailBoxUnencrypted(host, mailbox.port, timeout=seconds)


def _sign_in(box: BaseMailBox, mailbox: Mailbox) -> None:
    """Sign in. Raises SetupError ``mail-login-refused``."""
    from imap_tools.errors import MailboxLoginError

    plain = f"{mailbox.user}{mailbox.password}".isascii()
    try:
        (box.login if plain else box.login_utf8)(mailbox.user, mailbox.password, None)
    except imaplib.IMAP4.abort:
        raise
    except (MailboxLoginError, imaplib.IMAP4.error) as error:
        raise SetupError(
            "mail-login-refused",
            f"the mail server {mailbox.host}:{mailbox.port} refuses the user or the password",
            fix="correct the secrets; many providers want a password of its own for programs, and IMAP switched on",
            evidence={"server": _said(error)},
        ) from None


def _enter(box: BaseMailBox, mailbox: Mailbox) -> None:
    """Open the folder for reading only. Raises AuthorError ``mail-folder-unknown``."""
    from imap_tools.errors import MailboxFolderSelectError

    try:
        box.folder.set(mailbox.folder, readonly=True)  # pyright: ignore[reportUnknownMemberType] - not typed to the end
    except MailboxFolderSelectError as error:
        names = sorted(each.name for each in box.folder.list())
        raise AuthorError(
            "mail-folder-unknown",
            f"the mailbox at {mailbox.host}:{mailbox.port} has no folder `{mailbox.folder}`",
            fix=did_you_mean(mailbox.folder, names, "name one of `folders`"),
            evidence={"server": _said(error), "folders": list(names[:20])},
        ) from None


def _said(error: Exception) -> str:
    """Return what the server, or the system, says."""
    from imap_tools.errors import UnexpectedCommandStatusError

    if isinstance(error, UnexpectedCommandStatusError):
        _status, data = error.command_result  # pyright: ignore[reportUnknownMemberType] - not typed to the end
        return " ".join(each.decode(errors="replace") for each in data if isinstance(each, bytes))
    said = error.args[0] if error.args and isinstance(error.args[0], bytes) else str(error)
    return said.decode(errors="replace") if isinstance(said, bytes) else said or type(error).__name__


def _unreachable(mailbox: Mailbox, why: str, error: Exception | None = None) -> SiteError:
    fix = "check `host`, `port` and `encryption`, and whether this machine may connect to it"
    if isinstance(error, ssl.SSLError):
        fix = "check `host`, `port` and `encryption`; a certificate of your own authority goes into SSL_CERT_FILE"
    return SiteError(
        "mail-unreachable",
        f"the mailbox at {mailbox.host}:{mailbox.port} cannot be read: {why}",
        fix=fix,
        evidence={"host": mailbox.host, "port": mailbox.port, "encryption": mailbox.encryption},
    )
