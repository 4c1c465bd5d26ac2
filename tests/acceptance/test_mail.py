"""A site that sends its code by mail, signed in to by the command."""

from __future__ import annotations

import signal
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import imap
from tests.command import Project
from tests.site import Answer, Request, Site, serve

pytestmark = pytest.mark.drawn(share=0.1, of="mail")

OLD, CODE = "481516", "234215"

FLOW = r"""
version: 1
inputs: {base: {type: string}, port: {type: integer}}
secrets: [MAIL_USER, MAIL_PASSWORD]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/code"}
  - id: code
    type: browser_query
    query: mail
    host: 127.0.0.1
    port: "{{ inputs.port }}"
    encryption: none
    user: "{{ secrets.MAIL_USER }}"
    password: "{{ secrets.MAIL_PASSWORD }}"
    subject: your code
    pattern: 'code is (\d+)'
    timeout: 20
  - {id: fill, type: browser_action, action: fill, target: {label: Code}, value: "{{ code }}"}
  - {id: send, type: browser_action, action: click, target: {role: button, name: Send}, effect: idempotent}
  - {id: seen, type: browser_query, query: text, target: {css: h1}}
output: "{{ seen }}"
"""

FORM = "<!doctype html><title>Code</title><form method=post action=/in><label>Code <input name=code></label><button>Send</button></form>"


@pytest.fixture
def mail() -> Iterator[imap.Mail]:
    with imap.serve("zoe@home.test") as served:
        served.deliver(f"Your code is {OLD}.", ago=300)
        yield served


@pytest.fixture
def codes() -> list[str]:
    """The codes that the site was sent."""
    return []


@pytest.fixture
def site(mail: imap.Mail, codes: list[str]) -> Iterator[Site]:
    timers: list[threading.Timer] = []

    def ask(_request: Request) -> Answer:
        html = f"<p>Hello,</p><p>your code is <b>{CODE}</b></p>"
        timers.append(threading.Timer(1, lambda: mail.deliver("This needs HTML.", html=html)))
        timers[-1].start()
        return Answer(FORM)

    def sign_in(request: Request) -> Answer:
        codes.append(urllib.parse.parse_qs(request.body)["code"][0])
        return Answer(f"<!doctype html><title>In</title><h1>Welcome, {codes[-1]}</h1>")

    with serve() as served:
        served.answer("/code", ask)
        served.answer("/in", sign_in)
        yield served
    for each in timers:
        each.join()


def test_a_code_comes_by_mail(site: Site, mail: imap.Mail, codes: list[str], tmp_path: Path) -> None:
    """The code that comes after the page asks for it is typed, not the old one; no output and no file of the run has it."""
    project = Project(tmp_path, MAIL_USER=mail.user, MAIL_PASSWORD=mail.password)
    project.write("flow.yaml", FLOW)
    done = project.runops("run", "flow.yaml", "-i", f"base={site.origin}", "-i", f"port={mail.port}")
    assert done.returncode == 0, done.stderr
    assert codes == [CODE]
    assert "Welcome" in done.stdout
    assert CODE not in done.stdout + done.stderr
    kept = [file for file in (tmp_path / ".runops").rglob("*") if file.is_file() and "private" not in file.parts]
    assert kept
    assert [file for file in kept if CODE in file.read_bytes().decode(errors="replace")] == []
    assert not any(each.read for each in mail.folders["INBOX"])


def test_a_wrong_password(site: Site, mail: imap.Mail, tmp_path: Path) -> None:
    """A refused password stops the run with exit code 3 and the fix; the password is nowhere."""
    project = Project(tmp_path, MAIL_USER=mail.user, MAIL_PASSWORD="not-the-password")
    project.write("flow.yaml", FLOW)
    done = project.runops("run", "flow.yaml", "-i", f"base={site.origin}", "-i", f"port={mail.port}")
    assert done.returncode == 3, done.stderr
    assert "mail-login-refused" in done.stderr
    assert "correct the secrets" in done.stderr
    assert "not-the-password" not in done.stdout + done.stderr + project.here("show", "last", "--at", "code").stdout


def test_no_mail(site: Site, mail: imap.Mail, tmp_path: Path) -> None:
    """Without a message in time the run fails with what came instead, in numbers; the old code is not shown."""
    project = Project(tmp_path, MAIL_USER=mail.user, MAIL_PASSWORD=mail.password)
    project.write(
        "flow.yaml", FLOW.replace("subject: your code", "from: bank.test").replace("timeout: 20", "timeout: 5")
    )
    done = project.runops("run", "flow.yaml", "-i", f"base={site.origin}", "-i", f"port={mail.port}")
    assert done.returncode == 1, done.stderr
    assert "mail-not-found" in done.stderr
    assert "none has that sender" in done.stderr
    assert OLD not in done.stdout + done.stderr


def test_a_server_that_is_not_there(site: Site, tmp_path: Path) -> None:
    """A server that cannot be reached is an error that names it, and fails before the next step."""
    project = Project(tmp_path, MAIL_USER="zoe@home.test", MAIL_PASSWORD="mail-password-1")
    project.write("flow.yaml", FLOW)
    done = project.runops("run", "flow.yaml", "-i", f"base={site.origin}", "-i", "port=1")
    assert done.returncode == 1, done.stderr
    assert "mail-unreachable" in done.stderr
    assert "127.0.0.1:1" in done.stderr
    assert not site.arrived("/in")


def test_an_interrupted_wait(site: Site, mail: imap.Mail, codes: list[str], tmp_path: Path) -> None:
    """Ctrl-C ends the wait at once, also while the server owes an answer; resumed, the run takes the code that came since it began."""
    project = Project(tmp_path, MAIL_USER=mail.user, MAIL_PASSWORD=mail.password)
    project.write("flow.yaml", FLOW)
    mail.silent = True
    started = project.start("run", "flow.yaml", "-i", f"base={site.origin}", "-i", f"port={mail.port}")
    deadline = time.monotonic() + 30
    while not any(each.startswith("SEARCH") for each in mail.commands) and time.monotonic() < deadline:
        time.sleep(0.1)
    began = time.monotonic()
    started.send_signal(signal.SIGINT)
    _out, said = started.communicate(timeout=30)
    assert started.returncode == 130, said
    assert time.monotonic() - began < 10
    mail.silent = False
    done = project.runops("resume", "last")
    assert done.returncode == 0, done.stderr
    assert codes == [CODE]
