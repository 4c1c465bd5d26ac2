"""Codes from a mailbox: which message is taken, what of it, and what the errors say."""

from __future__ import annotations

import datetime as dt
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.browser_query import mail as mail_node
from nodes.values import Json
from runtime.language import callees, reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.services import html_text
from tests import imap
from tests.rig import Rig

CODE = r"\b[0-9]{6}\b"
DAY = 86_400.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often: the tests need not wait."""
    monkeypatch.setattr(mail_node, "LOOK_SECONDS", 0.05)


@pytest.fixture
def mail() -> Iterator[imap.Mail]:
    with imap.serve() as served:
        yield served


def flow(more: str = "", pattern: str = CODE, *, timeout: int = 30) -> str:
    return f"""\
version: 1
inputs: {{port: {{type: integer}}}}
secrets: [USER, PASSWORD]
nodes:
  - id: code
    type: browser_query
    query: mail
    host: 127.0.0.1
    port: "{{{{ inputs.port }}}}"
    encryption: none
    user: "{{{{ secrets.USER }}}}"
    password: "{{{{ secrets.PASSWORD }}}}"
    pattern: '{pattern}'
    timeout: {timeout}
    {more or "{}"}
output: "{{{{ code }}}}"
""".replace("    {}\n", "")


def rig(home: Path, mail: imap.Mail, more: str = "", *, pattern: str = CODE, timeout: int = 30, **secrets: str) -> Rig:
    known = {"USER": mail.user * 3, "PASSWORD": mail.password, **secrets}
    mail.user = known["USER"] if "USER" not in secrets else mail.user
    return Rig(home, flow(more, pattern, timeout=timeout), inputs={"port": mail.port}, secrets=known)


async def value(one: Rig) -> Json:
    """The value that the node gave to the next one."""
    ended = await one.start()
    assert ended.status == "passed", ended.error
    return ended.output


async def error(one: Rig) -> dict[str, Any]:
    ended = await one.start()
    assert ended.error is not None, ended.output
    return ended.error


async def test_an_old_code_is_never_taken(mail: imap.Mail, tmp_path: Path) -> None:
    """A message counts by the time at which it arrived, to the second, also on the same day and in another zone; its `Date` does not count."""
    mail.deliver("Your code is 111111.", ago=5)
    mail.deliver("Your code is 222222.", ago=5, zone=dt.timezone(dt.timedelta(hours=13)))
    mail.deliver("Your code is 333333.", ago=3 * DAY)
    west = dt.timezone(dt.timedelta(hours=-11))
    mail.deliver("Your code is 555555.", ago=4, zone=west)
    one = rig(tmp_path, mail, "secret: false")
    late = threading.Timer(0.4, lambda: mail.deliver("Your code is 444444.", ago=-30, zone=west))
    late.start()
    assert await value(one) == "444444"
    late.join()


async def test_the_newest_of_several(mail: imap.Mail, tmp_path: Path) -> None:
    """Of several messages the newest is taken whose text has a match, wherever it stands in the folder."""
    mail.deliver("Your code is 111111.", ago=-10)
    mail.deliver("Your code is 222222.", ago=-20)
    mail.deliver("Your code is 333333.", ago=-15)
    mail.deliver("No code here.", ago=-30)
    assert await value(rig(tmp_path, mail, "secret: false")) == "222222"


async def test_a_message_that_comes_later(mail: imap.Mail, tmp_path: Path) -> None:
    """The mailbox is looked into until the message is there, on one connection."""
    one = rig(tmp_path, mail, "secret: false")
    late = threading.Timer(0.4, lambda: mail.deliver("Your code is 123456.", ago=-30))
    late.start()
    assert await value(one) == "123456"
    late.join()
    assert len(mail.connections) == 1
    assert mail.commands.count("NOOP") > 1


async def test_since(mail: imap.Mail, tmp_path: Path) -> None:
    """`since` takes older messages in, and leaves newer ones out."""
    mail.deliver("Your code is 111111.", ago=90)
    mail.deliver("Your code is 222222.", ago=40)
    earlier = (dt.datetime.now(dt.UTC) - dt.timedelta(seconds=60)).isoformat()
    assert await value(rig(tmp_path / "a", mail, f'secret: false\n    since: "{earlier}"')) == "222222"
    mail.deliver("Your code is 333333.", ago=-5)
    later = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=60)).isoformat()
    ended = await error(rig(tmp_path / "b", mail, f'since: "{later}"', timeout=1))
    assert ended["code"] == "mail-not-found"


@pytest.mark.parametrize(
    "more", ["from: CODES@shop", 'from: "the SHOP"', "to: +second@", "subject: Größe", "folder: Archive"]
)
async def test_filters(mail: imap.Mail, tmp_path: Path, more: str) -> None:
    """Sender, recipient and subject fit in part, in any capitals, also where a message has them encoded; a folder has its own messages."""
    mail.folders["Archive"].append(mail.deliver("123456", subject="Ihre Größe", to="zoe+second@home.test", ago=-30))
    mail.deliver("654321", sender="Other <a@b.test>", subject="x", to="zoe@home.test", ago=-40)
    assert await value(rig(tmp_path, mail, f"secret: false\n    {more}")) == "123456"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (CODE, "123456"),
        (r"code: (\w+)", "AB"),
        (r"(?P<code>[0-9]{6}) for (?P<who>\w+)", {"code": "123456", "who": "zoe"}),
        (r"(?:is|was) ([0-9]+)", "123456"),
    ],
)
async def test_what_of_the_message(mail: imap.Mail, tmp_path: Path, pattern: str, expected: Json) -> None:
    """The value is the match, its one group, or a map of its named groups."""
    mail.deliver("It is 123456 for zoe\ncode: AB", ago=-30)
    assert await value(rig(tmp_path, mail, "secret: false", pattern=pattern)) == expected


async def test_subject_and_html(mail: imap.Mail, tmp_path: Path) -> None:
    """The subject is searched first, then the text, then HTML as it is shown."""
    html = (
        "<style>.a999999{}</style><p>Your <b>code</b></p><table><tr><td>7<i>7</i>7</td></tr></table><p>888&#56;88</p>"
    )
    mail.deliver("See the other part.", html=html, ago=-30)
    assert await value(rig(tmp_path / "a", mail, "secret: false")) == "888888"
    mail.deliver("Not 222222.", subject="123456 is your code", ago=-40)
    assert await value(rig(tmp_path / "b", mail, "secret: false")) == "123456"


def test_html_as_text() -> None:
    """Words stay whole within a line, blocks and cells are lines, scripts and styles are not text."""
    page = "<html><head><title>T</title><style>x{}</style><body><p>One <b>wo</b>rd</p><script>1</script><td>2</td><td>3 &amp;\xa0 4</td><br>end"
    assert html_text.read(page) == "One word\n2\n3 & 4\nend"


async def test_nothing_changes(mail: imap.Mail, tmp_path: Path) -> None:
    """No message is marked as read, unless `mark_read` says so: then the one that was taken."""
    mail.deliver("No code.", ago=-30)
    kept = mail.deliver("123456", ago=-30)
    await value(rig(tmp_path / "a", mail))
    assert not any("SELECT" in each or "STORE" in each for each in mail.commands)
    assert not kept.read
    await value(rig(tmp_path / "b", mail, "mark_read: true"))
    assert [each.read for each in mail.folders["INBOX"]] == [False, True]
    assert "EXPUNGE" not in mail.commands


async def test_a_code_is_masked(mail: imap.Mail, tmp_path: Path) -> None:
    """The step hands on the code itself, and the log of the run never has it; with `secret: false` it has."""
    mail.deliver("Your code is 918273.", ago=-30)
    for secret in (True, False):
        home = tmp_path / str(secret)
        one = rig(home, mail, f"secret: {str(secret).lower()}")
        one.text = one.text.replace("output:", "  - {id: twice, type: transform, expr: '{{ code | length }}'}\noutput:")
        one.__post_init__()
        ended = await one.start()
        result = one.history.attempts["twice"][-1].result
        assert result is not None
        assert result.value == 6
        logged = [file for file in home.rglob("*") if file.is_file() and b"918273" in file.read_bytes()]
        assert (ended.output == "918273") is not secret
        assert bool(logged) is not secret


async def test_a_resumed_run_reads_it_anew(mail: imap.Mail, tmp_path: Path) -> None:
    """A masked code that a later step still needs is read from the mailbox again: the newest since the run began."""
    mail.deliver("Your code is 111111.", ago=600)
    mail.deliver("Your code is 918273.", ago=-30)
    one = rig(tmp_path, mail)
    one.text = one.text.replace(
        "output:",
        "  - {id: go, type: browser_action, action: fill, target: {css: input}, value: '{{ code }}'}\noutput:",
    )
    one.__post_init__()
    one.missing.add("css=input")
    ended = await one.start()
    assert ended.error is not None
    one.missing.clear()
    ended = await one.resume()
    assert ended.status == "passed", ended.error
    assert one.calls("code") == ["ok", "ok"]
    assert one.browser is not None
    assert one.browser.tabs.get(None).filled == {"css=input": "918273"}


async def test_a_connection_that_is_closed(mail: imap.Mail, tmp_path: Path) -> None:
    """A server that closes the connection while the run waits is asked again."""
    one = rig(tmp_path, mail, "secret: false")
    timers = [
        threading.Timer(0.2, lambda: setattr(mail, "drops", 1)),
        threading.Timer(0.7, lambda: mail.deliver("123456", ago=-30)),
    ]
    for each in timers:
        each.start()
    assert await value(one) == "123456"
    assert len(mail.connections) == 2


async def test_a_connection_that_is_closed_at_once(mail: imap.Mail, tmp_path: Path) -> None:
    """A server that closes the connection during the first look is asked again."""
    one = rig(tmp_path, mail, "secret: false")
    mail.deliver("123456", ago=-30)
    mail.drops = 1
    assert await value(one) == "123456"
    assert len(mail.connections) == 2


async def test_a_connection_that_is_closed_before_a_message_is_read(mail: imap.Mail, tmp_path: Path) -> None:
    """A message that could not be read to the end is read again on the next connection, and counts once."""
    mail.deliver("No code.", ago=-30)
    one = rig(tmp_path / "a", mail, timeout=1)
    mail.broken_fetches = 1
    evidence = (await error(one))["evidence"]
    assert evidence["messages that fit"] == 1
    mail.deliver("123456", ago=-30)
    mail.broken_fetches = 1
    assert await value(rig(tmp_path / "b", mail, "secret: false")) == "123456"
    assert len(mail.connections) == 4


async def test_a_wrong_password(mail: imap.Mail, tmp_path: Path) -> None:
    """A refused password is an error with its fix, at once; neither log nor error has the password."""
    began = time.monotonic()
    one = rig(tmp_path, mail, PASSWORD="wrong-password-7")
    ended = await error(one)
    assert ended["code"] == "mail-login-refused"
    assert "secrets" in ended["fix"]
    assert "Invalid credentials" in ended["evidence"]["server"]
    assert time.monotonic() - began < 3
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"wrong-password-7" in file.read_bytes()]


async def test_letters_beyond_ascii(mail: imap.Mail, tmp_path: Path) -> None:
    """A password may have letters beyond ASCII, quotes and backslashes."""
    mail.deliver("123456", ago=-30)
    for password in ("schlüssel-wörter", 'with "quotes" in it'):
        mail.password = password
        assert await value(rig(tmp_path / password[:3], mail, "secret: false", PASSWORD=password)) == "123456"


async def test_an_unreachable_server(mail: imap.Mail, tmp_path: Path) -> None:
    """A port where nobody listens, a name that is unknown and a server that does not answer are told apart from a missing message."""
    with socket.socket() as free, socket.socket() as silent:
        free.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        one = rig(tmp_path / "a", mail)
        one.inputs = {"port": free.getsockname()[1]}
        ended = await error(one)
        assert ended["code"] == "mail-unreachable"
        assert "refused" in ended["message"]
        assert "host" in ended["fix"]
        one = rig(tmp_path / "b", mail, timeout=1)
        one.inputs = {"port": silent.getsockname()[1]}
        assert (await error(one))["code"] == "mail-unreachable"


async def test_a_certificate_that_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate must be trusted, in both ways of encryption, and then both read the mailbox."""
    for secure, way in ((True, "tls"), (False, "starttls")):
        with imap.serve(secure=secure) as mail:
            mail.deliver("123456", ago=-30)
            one = rig(tmp_path / way, mail, "secret: false")
            one.text = one.text.replace("encryption: none", f"encryption: {way}")
            one.__post_init__()
            ended = await error(one)
            assert ended["code"] == "mail-unreachable"
            assert "SSL_CERT_FILE" in ended["fix"]
            assert not any("LOGIN" in each for each in mail.commands)
            with monkeypatch.context() as patched:
                patched.setenv("SSL_CERT_FILE", str(imap.CERTIFICATE))
                again = Rig(tmp_path / f"{way}-2", one.text, inputs=one.inputs, secrets=one.secrets)
                assert await value(again) == "123456"


async def test_no_message_in_time(mail: imap.Mail, tmp_path: Path) -> None:
    """The error says what came instead: nothing, messages of others, or messages without the pattern. It quotes none of them."""
    cases = {
        "no message came": [{"text": "secret words 111111", "ago": 60}],
        "none has that sender": [{"text": "secret words 111111", "sender": "a@b.test", "ago": -30}],
        "the pattern is in none": [{"text": "secret words", "ago": -30}],
    }
    for number, (said, messages) in enumerate(cases.items()):
        mail.folders["INBOX"].clear()
        for each in messages:
            mail.deliver(**each)  # type: ignore[arg-type]
        one = rig(tmp_path / str(number), mail, "from: shop.test", timeout=1)
        ended = await error(one)
        assert ended["code"] == "mail-not-found"
        assert said in ended["message"]
        found = [ended["evidence"][name] for name in ("earlier messages", "other messages", "messages that fit")]
        assert found == [int(index == number) for index in range(3)]
        assert "secret words" not in str(ended)
        assert "111111" not in str(ended)


async def test_an_unknown_folder(mail: imap.Mail, tmp_path: Path) -> None:
    """A folder that is not there is an error that names the closest one."""
    ended = await error(rig(tmp_path, mail, "folder: Archiv"))
    assert (ended["code"], ended["fix"]) == ("mail-folder-unknown", "did you mean `Archive`?")


async def test_a_missing_extra(mail: imap.Mail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the run ends with the command that installs it."""
    monkeypatch.setitem(sys.modules, "imap_tools", None)
    ended = await error(rig(tmp_path, mail))
    assert ended["code"] == "extra-missing"
    assert "pip install imap-tools" in ended["fix"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("host: mail.shop.test", "without encryption"),
        ("host: mail..test", "name or address of a server"),
        (f"host: {'m' * 64}.test", "name or address of a server"),
        ('host: ""', "name or address of a server"),
        ("since: yesterday", "is a time with its zone"),
        ('since: "2026-01-31T09:00:00"', "is a time with its zone"),
        ("pattern: '('", "is not a pattern"),
        ('pattern: "\\b[0-9]+"', "single quotes"),
        ("pattern: '(a)(b)'", "name those that are wanted"),
        ("tab: other", "tab"),
    ],
)
def test_mistakes_in_the_file(more: str, said: str) -> None:
    """A pattern, a time or a host that cannot be right is found before a run."""
    name = more.partition(":")[0]
    lines = [line for line in flow().splitlines() if not line.strip().startswith(f"{name}:")]
    lines.insert(next(index for index, line in enumerate(lines) if "query: mail" in line), f"    {more}")
    with pytest.raises(WorkflowInvalid) as raised:
        reader.parse("\n".join(lines), "test.yaml", callees.Texts({}))
    assert said in str([each.message for each in raised.value.diagnostics])


@pytest.mark.parametrize("host", ["mail..test", ".test", "m" * 64, ""])
async def test_a_host_that_no_server_can_be_called(host: str, mail: imap.Mail, tmp_path: Path) -> None:
    """A name that only the run knows, and that no server can have, is the author's mistake and says what a name looks like."""
    one = rig(tmp_path, mail)
    one.text = one.text.replace("host: 127.0.0.1", f"host: \"{{{{ '{host}' ~ '' }}}}\"")
    one.text = one.text.replace("encryption: none", "encryption: tls")
    one.__post_init__()
    ended = await error(one)
    assert ended["code"] == "value-mismatch"
    assert "name or address of a server" in ended["fix"]


async def test_a_host_that_is_filled_in(mail: imap.Mail, tmp_path: Path) -> None:
    """A host that only the run knows gets no password without encryption, unless it is this machine."""
    one = rig(tmp_path, mail)
    one.text = one.text.replace("host: 127.0.0.1", "host: \"{{ 'mail.' ~ 'shop.test' }}\"")
    one.__post_init__()
    ended = await error(one)
    assert ended["code"] == "mail-not-encrypted"
