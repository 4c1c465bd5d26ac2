"""A mail server on loopback for tests: accounts, folders and messages of RFC 3501, as much as a reader needs."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime as dt
import re
import socket
import socketserver
import ssl
import threading
from collections.abc import Generator
from email.message import EmailMessage
from pathlib import Path

from typing_extensions import override

CERTIFICATE = Path(__file__).parent / "untrusted.pem"
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@dataclasses.dataclass
class Kept:
    """A message in a folder."""

    uid: int
    arrived: dt.datetime
    data: bytes
    read: bool = False


class Mail:
    """One account. ``serve()`` runs its server on a free port until the block ends."""

    def __init__(self, user: str, password: str) -> None:
        self.user, self.password = user, password
        self.folders: dict[str, list[Kept]] = {"INBOX": [], "Archive": []}
        self.port = 0
        self.commands: list[str] = []
        self.connections: list[socket.socket] = []
        self.drops = 0
        """Connections that are closed at their next search."""

        self.broken_fetches = 0
        """Connections that are closed in place of the next message, its head or whole."""

        self.silent = False
        """True if no search is answered."""

    def deliver(
        self,
        text: str,
        *,
        subject: str = "Your code",
        sender: str = "The shop <codes@shop.test>",
        to: str = "zoe@home.test",
        html: str | None = None,
        ago: float = 0,
        zone: dt.tzinfo = dt.UTC,
        folder: str = "INBOX",
    ) -> Kept:
        """Put a message into a folder, which arrived ``ago`` seconds ago. Its own `Date` is always the same old one."""
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = sender, to, subject
        message["Date"] = "Thu, 01 Jan 2015 00:00:00 +0000"
        message.set_content(text)
        if html is not None:
            message.add_alternative(html, subtype="html")
        kept = Kept(
            sum(map(len, self.folders.values())) + 1,
            dt.datetime.now(zone) - dt.timedelta(seconds=ago),
            message.as_bytes().replace(b"\n", b"\r\n"),
        )
        self.folders[folder].append(kept)
        return kept


def moment(when: dt.datetime) -> str:
    return f"{when.day:2d}-{MONTHS[when.month - 1]}-{when.year} {when:%H:%M:%S %z}"


class Connection(socketserver.StreamRequestHandler):
    server: Server
    folder: list[Kept] | None = None
    known = False

    @override
    def handle(self) -> None:
        self.server.mail.connections.append(self.connection)
        if self.server.secure:
            try:
                self._encrypt()
            except (OSError, ssl.SSLError):
                return
        try:
            self._converse()
        finally:
            self.connection.close()  # the encrypted one, if it is by now

    def _converse(self) -> None:
        self.say("* OK ready")
        with contextlib.suppress(OSError, ssl.SSLError):
            while line := self.rfile.readline():
                tag, _, rest = line.decode().rstrip("\r\n").partition(" ")
                name, _, more = rest.partition(" ")
                if name == "UID":
                    name, _, more = more.partition(" ")
                self.server.mail.commands.append(re.sub(r" .*", "", name) + f" {more}".rstrip())
                if not self.answer(tag, name.upper(), more):
                    break

    def _encrypt(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        self.connection = context.wrap_socket(self.connection, server_side=True, do_handshake_on_connect=False)
        with contextlib.ExitStack() as stack:
            stack.callback(self.connection.close)
            self.connection.do_handshake()
            stack.pop_all()
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)

    def say(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())

    def answer(self, tag: str, name: str, more: str) -> bool:
        """Answer one command. Returns whether the connection stays."""
        if name not in ("CAPABILITY", "LOGIN", "STARTTLS", "LOGOUT", "AUTHENTICATE", "NOOP") and not self.known:
            self.say(f"{tag} NO sign in first")
            return True
        handler = getattr(self, f"do_{name.lower()}", None)
        if handler is None:
            self.say(f"{tag} BAD unknown command")
            return True
        return handler(tag, more) is not False

    def do_capability(self, tag: str, _more: str) -> None:
        self.say("* CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN", f"{tag} OK done")

    def do_starttls(self, tag: str, _more: str) -> None:
        self.say(f"{tag} OK begin")
        self._encrypt()

    def do_login(self, tag: str, more: str) -> None:
        self._enter(tag, [each.replace('\\"', '"') for each in re.findall(r'"((?:[^"\\]|\\.)*)"', more)])

    def do_authenticate(self, tag: str, _more: str) -> None:
        self.say("+ ")
        self._enter(tag, base64.b64decode(self.rfile.readline()).decode().split("\0")[1:])

    def _enter(self, tag: str, given: list[str]) -> None:
        self.known = given == [self.server.mail.user, self.server.mail.password]
        self.say(f"{tag} OK welcome" if self.known else f"{tag} NO [AUTHENTICATIONFAILED] Invalid credentials")

    def do_noop(self, tag: str, _more: str) -> None:
        self.say(f"{tag} OK done")

    def do_list(self, tag: str, _more: str) -> None:
        self.say(*(f'* LIST () "/" "{each}"' for each in self.server.mail.folders), f"{tag} OK done")

    def do_examine(self, tag: str, more: str, mode: str = "READ-ONLY") -> None:
        self.folder = self.server.mail.folders.get(more.strip('"'))
        if self.folder is None:
            self.say(f"{tag} NO there is no such folder")
            return
        self.writable = mode == "READ-WRITE"
        self.say(f"* {len(self.folder)} EXISTS", f"{tag} OK [{mode}] done")

    def do_select(self, tag: str, more: str) -> None:
        self.do_examine(tag, more, "READ-WRITE")

    def do_search(self, tag: str, more: str) -> bool:
        if self.server.mail.drops:
            self.server.mail.drops -= 1
            return False
        if self.server.mail.silent:
            return True
        day, month, year = re.findall(r"SINCE (\d+)-(\w+)-(\d+)", more)[0]
        first = dt.date(int(year), MONTHS.index(month) + 1, int(day))
        assert self.folder is not None
        found = [str(each.uid) for each in self.folder if each.arrived.date() >= first]
        self.say(f"* SEARCH {' '.join(found)}".rstrip(), f"{tag} OK done")
        return True

    def _chosen(self, more: str) -> list[tuple[int, Kept]]:
        wanted = {int(each) for each in more.partition(" ")[0].split(",")}
        assert self.folder is not None
        return [(number, each) for number, each in enumerate(self.folder, 1) if each.uid in wanted]

    def do_fetch(self, tag: str, more: str) -> bool:
        if self.server.mail.broken_fetches and "BODY" in more:
            self.server.mail.broken_fetches -= 1
            return False
        for number, each in self._chosen(more):
            if "INTERNALDATE" in more:
                self.say(f'* {number} FETCH (UID {each.uid} INTERNALDATE "{moment(each.arrived)}")')
                continue
            part = re.findall(r"BODY(?:\.PEEK)?\[(\w*)\]", more)[0]
            if "BODY[" in more and self.writable:
                each.read = True
            data = each.data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if part == "HEADER" else each.data
            self.wfile.write(f"* {number} FETCH (UID {each.uid} BODY[{part}] {{{len(data)}}}\r\n".encode() + data)
            self.say(")")
            # As servers do where another program has marked it meanwhile.
            self.say(f"* {number} FETCH (FLAGS ())")
        self.say(f"{tag} OK done")
        return True

    def do_store(self, tag: str, more: str) -> None:
        for _number, each in self._chosen(more):
            each.read = each.read or (self.writable and r"\Seen" in more)
        self.say(f"{tag} OK done" if self.writable else f"{tag} NO the folder is open for reading only")

    def do_logout(self, tag: str, _more: str) -> bool:
        self.say("* BYE", f"{tag} OK done")
        return False


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    mail: Mail
    secure: bool

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that hangs up."""


@contextlib.contextmanager
def serve(user: str = "zoe", password: str = "mail-password-1", *, secure: bool = False) -> Generator[Mail]:
    """An account whose server runs until the block ends; the certificate of a ``secure`` one is untrusted."""
    mail = Mail(user, password)
    with Server(("127.0.0.1", 0), Connection) as server:
        server.mail, server.secure, mail.port = mail, secure, server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield mail
        finally:
            server.shutdown()
            thread.join()
            for each in mail.connections:
                with contextlib.suppress(OSError):
                    each.close()
