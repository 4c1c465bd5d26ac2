"""A secret in every channel of a run, and a search for it that knows nothing of our masking: it decodes what it finds."""

from __future__ import annotations

import base64
import contextlib
import gzip
import html
import io
import json
import quopri
import re
import sys
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.secrets.gate import Gate
from runtime.secrets.masking import Masker
from runtime.testing import responses, scripted_model
from tests.command import Project
from tests.site import Answer, Request, Site, serve

CANARY = 'Tr0ub4dor & "3"/x'
"""The secret that the flow types; it looks different in each notation."""

AS_NAME = "Tr0ub4dor & _3__x"
"""As file systems allow it."""

FORM = "<!doctype html><title>In</title><form method=post action=/in><label>Key <input name=key></label><button>Sign in</button></form>"

SHOWN = """<!doctype html><title>For {html}</title>
<style>h2::after {{content: "{css}"}}</style>
<h1>You typed {html}</h1><h2>Styled</h2><p title="{html}" data-key='{html}'>In two: <b>{first}</b><i>{last}</i></p>
<label>Said <input value="{html}" placeholder="{html}"></label><input type=password value="{html}">
<textarea aria-label="{html}">{html}</textarea><img alt="{html}" src="/none.png"><canvas width=300 height=40></canvas>
<svg width=300 height=40><text y=20>{html}</text></svg><div id=host></div><iframe srcdoc="&lt;p&gt;{twice}&lt;/p&gt;"></iframe>
<table><tr><th>Key</th></tr><tr><td>{html}</td></tr></table><button onclick="alert({script})">Tell</button>
<a href="/file" download>File</a><a href="/later?key={url}">Later {html}</a><p id=encoded>{base64} {url}</p>
<script>
  const key = {json};
  document.querySelector('canvas').getContext('2d').fillText(key, 0, 20);
  document.querySelector('#host').attachShadow({{mode: 'closed'}}).innerHTML = '<p>{html}</p>';
  localStorage.setItem('key', key);
  document.cookie = 'key=' + encodeURIComponent(key);
  console.error('key', key);
  fetch('/missing?key=' + encodeURIComponent(key), {{method: 'POST', headers: {{'x-key': encodeURIComponent(key)}}, body: key}});
  setTimeout(() => {{ throw new Error('no ' + key); }});
</script>"""

PASSES = """\
version: 1
name: Canaries
inputs: {base: {type: string}, note: {type: string, default: none}}
secrets: [KEY]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/"}
  - {id: key, type: browser_action, action: fill, target: {label: Key}, value: "{{ secrets.KEY }}"}
  - {id: send, type: browser_action, action: click, target: {role: button, name: Sign in}, effect: idempotent, verify: [{url: "**/done?*"}]}
  - {id: address, type: browser_query, query: url}
  - {id: title, type: browser_query, query: title}
  - {id: said, type: browser_query, query: text, target: {css: h1}}
  - {id: attribute, type: browser_query, query: attribute, target: {css: "p[title]"}, attribute: title}
  - {id: value, type: browser_query, query: value, target: {label: Said}}
  - {id: rows, type: browser_query, query: extract, target: {css: "tr:has(td)"}, fields: {key: td}}
  - {id: encoded, type: browser_query, query: text, target: {css: "#encoded"}}
  - {id: picture, type: browser_action, action: screenshot, save_as: page.png}
  - {id: file, type: browser_action, action: download, target: {role: link, name: File}}
  - {id: missing, type: browser_action, action: click, target: {role: button, name: "{{ said }}!"}, timeout: 0.5, on_error: continue}
  - {id: named, type: transform, expr: text, save_as: "{{ said }}.txt"}
  - {id: long, type: transform, expr: "{{ [said] * 400 }}"}
  - {id: prints, type: transform, python: "canary_rules:prints", args: {text: "{{ said }}"}}
  - {id: raises, type: transform, python: "canary_rules:raises", args: {text: "{{ said }}"}, on_error: continue}
  - {id: part, type: group, use: parts/part.yaml, with: {text: "{{ said }}"}}
  - {id: each, type: iterate, over: "{{ rows }}", as: row, nodes: [{id: one, type: transform, expr: "{{ row.key }}"}]}
  - {id: kept, type: context, set: {of_page: "{{ said }}"}}
  - {id: refused, type: cognition, instruction: What is on the page?, input: "{{ said }}", output: string, on_error: continue}
  - {id: model, type: cognition, instruction: What was typed?, input: nothing, output: string}
  - {id: tell, type: browser_action, action: click, target: {role: button, name: Tell}, on_error: continue}
  - {id: alert, type: browser_action, action: dialog, answer: accept, on_error: continue}
output: {all: "{{ [address, title, said, attribute, value, rows, encoded, file, named, prints, part, vars, model] }}", errors: "{{ run.errors }}"}
"""

FAILS = """\
version: 1
name: Canaries that fail
inputs: {base: {type: string}}
secrets: [KEY]
nodes:
  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/"}
  - {id: key, type: browser_action, action: fill, target: {label: Key}, value: "{{ secrets.KEY }}"}
  - {id: send, type: browser_action, action: click, target: {role: button, name: Sign in}, effect: idempotent, verify: [{url: "**/done?*"}]}
  - {id: said, type: browser_query, query: text, target: {css: h1}}
  - {id: wrong, type: browser_query, query: assert, rules: [{text: "not {{ said }}", target: {css: h1}}], timeout: 0.5}
"""

PART = 'version: 1\nrun: manual\ninputs: {text: {type: string}}\nnodes: [{id: same, type: transform, expr: "{{ inputs.text }}"}]\noutput: "{{ same }}"\n'

RULES = """
def prints(text):
    print("printed", text)
    return text.upper() + text

def raises(text):
    raise ValueError(text)
"""

RUN = ["run", "passes.yaml", "fails.yaml", "--json"]

REPORTS: dict[str, list[str]] = {
    "out/report.xml": ["--junit", "out/report.xml"],
    "out/report.html": ["--html", "out/report.html"],
    "out/report.json": ["--report", "out/report.json"],
    "out/events.jsonl": ["--events", "out/events.jsonl"],
    "out/summary.md": ["--annotations", "on"],
    "files/": ["--trace", "on", "--video"],
}
"""Files that `runops run` writes with these flags: a new channel is one line here."""

ENVIRONMENT = {"GITHUB_STEP_SUMMARY": "out/summary.md"}
"""Variables with which it writes more."""

AFTERWARDS: dict[str, list[str]] = {
    "text": ["show", "last"],
    "step": ["show", "last", "--at", "said"],
    "json": ["show", "last", "--json"],
    "markdown": ["show", "last", "--markdown"],
    "html": ["show", "last", "--html"],
    "lists": ["runs", "--all", "--json"],
    "rows": ["query", "SELECT * FROM calls", "--csv"],
    "refused": ["run", "passes.yaml", "-i", "base=x", "-i", f"note={CANARY}", "--json"],
    "differences": ["diff", "last", "last", "--json"],
    "merged": ["report", "merge", "out/report.json", "--html", "out/merged.html", "--junit", "out/merged.xml"],
    "exported": ["export", "--pytest", "passes.yaml"],
}
"""Commands that print what was logged: a new one is one line here."""


def _forms(secret: str) -> dict[str, str]:
    escaped = html.escape(secret)
    return {
        "html": escaped,
        "twice": html.escape(escaped),
        "css": secret.replace('"', '\\"'),
        "json": json.dumps(secret),
        "script": html.escape(json.dumps(secret)),
        "url": urllib.parse.quote(secret, safe=""),
        "base64": base64.b64encode(f"key:{secret}".encode()).decode(),
        "first": html.escape(secret[:5]),
        "last": html.escape(secret[5:]),
    }


@contextlib.contextmanager
def mirror() -> Generator[Site]:
    """A site that shows the value that was sent to it everywhere, as text, in headers, addresses and names of files."""
    typed = [""]
    with serve() as site:
        site.page("/", FORM)

        def signed_in(request: Request) -> Answer:
            typed[0] = urllib.parse.parse_qs(request.body)["key"][0]
            quoted = urllib.parse.quote(typed[0], safe="")
            return Answer(
                "", 302, {"location": f"/done?key={quoted}#{quoted}", "x-key": quoted, "set-cookie": f"k={quoted}"}
            )

        def file(_request: Request) -> Answer:
            name = urllib.parse.quote(f"of {typed[0]}.txt", safe="")
            headers = {"content-type": "text/plain", "content-disposition": f"attachment; filename*=UTF-8''{name}"}
            return Answer("nothing of interest", headers=headers)

        site.answer("/in", signed_in)
        site.answer("/done", lambda _request: Answer(SHOWN.format(**_forms(typed[0]))))
        site.answer("/file", file)
        yield site


@contextlib.contextmanager
def project(folder: Path) -> Generator[tuple[Project, Site]]:
    """A project with the workflows, a model that says back what it is told, and the site."""

    def answer(_asked: object) -> scripted_model.Answer:
        return scripted_model.text({"value": f"it was {CANARY}"})

    with mirror() as site, responses.serve(answer) as model:
        made = Project(folder, KEY=CANARY, RUNOPS_MODEL="test-model", RUNOPS_MODEL_BASE_URL=model.url)
        made.environment |= {"RUNOPS_MODEL_KEY": model.key, "RUNOPS_MODEL_PROFILE": "openai", "RUNOPS_LINGER": "0"}
        made.environment |= ENVIRONMENT
        made.write("passes.yaml", PASSES)
        made.write("fails.yaml", FAILS)
        (folder / "parts").mkdir()
        made.write("parts/part.yaml", PART)
        made.write("canary_rules.py", RULES)
        made.write("pyproject.toml", '[tool.runops]\npython_modules = ["canary_rules"]\n')
        yield made, site


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file that may be handed on, and its name: all but those in the private folder of the home."""
    for file in sorted(folder.rglob("*")):
        place = file.relative_to(folder)
        if place.parts[:2] != (".runops", "private"):
            yield f"the name of {place}", str(place).replace(AS_NAME, CANARY).encode()
            if file.is_file():
                yield str(place), file.read_bytes()


_ESCAPES = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)


def _unescaped(data: bytes) -> bytes:
    def plain(found: re.Match[str]) -> str:
        return chr(int(found[1] or found[2], 16)) if found[1] or found[2] else found[3]

    return _ESCAPES.sub(plain, data.decode(errors="replace")).encode(errors="replace")


DECODINGS: dict[str, Callable[[bytes], bytes]] = {
    "percent": urllib.parse.unquote_to_bytes,
    "form": lambda data: urllib.parse.unquote_to_bytes(data.replace(b"+", b" ")),
    "html": lambda data: html.unescape(data.decode(errors="replace")).encode(),
    "escapes": _unescaped,
    "mail": quopri.decodestring,
    "quotes": lambda data: data.replace(b'""', b'"'),
}


def _parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for each in archive.namelist():
                yield each, archive.read(each)
    with contextlib.suppress(OSError, EOFError, zlib.error):
        yield "gzip", gzip.decompress(data)
    for number, found in enumerate(re.finditer(rb"[A-Za-z0-9+/_-]{16,}", data)):
        text = found[0].replace(b"-", b"+").replace(b"_", b"/")
        for skipped in range(4):
            whole = text[skipped : skipped + (len(text) - skipped) // 4 * 4]
            yield f"base64 {number}", base64.b64decode(whole)


def where(data: bytes, secret: str = CANARY, depth: int = 2) -> str | None:
    """In which notation ``data`` has the secret; None if it has not."""
    plain = secret.encode()
    for form in ("utf-8", "utf-16-le", "utf-16-be"):
        if secret.encode(form) in data:
            return form
    once = {name: decode(data) for name, decode in DECODINGS.items()} if b"\0" not in data[:1000] else {}
    for name, decoded in once.items():
        if plain in decoded:
            return name
        for again, decode in DECODINGS.items():
            if decoded != data and plain in decode(decoded):
                return f"{again} in {name}"
    for name, part in _parts(data) if depth else ():
        if (inner := where(part, secret, depth - 1)) is not None:
            return f"{inner} in {name}"
    return None


def found(things: Iterator[tuple[str, bytes]], *secrets: str) -> dict[str, str]:
    """In which of the things a secret is, and in which notation."""
    places = {
        name: next(filter(None, (where(data, each) for each in secrets or (CANARY,))), None) for name, data in things
    }
    return {name: place for name, place in places.items() if place is not None}


class Protections:
    """Masks by the module that asks for them. Those of modules in ``off`` are switched off; ``acted`` are those that hid something."""

    def __init__(self, patch: pytest.MonkeyPatch, *off: str) -> None:
        self.acted: set[str] = set()
        self._off = off
        patch.setattr(Masker, "text", self._kept(Masker.text))
        patch.setattr(Masker, "json", self._kept(Masker.json))

    def _kept(self, mask: Callable[[Masker, Any], Any]) -> Callable[[Masker, Any], Any]:
        def masked(masker: Masker, value: Any) -> Any:
            shown = mask(masker, value)
            if shown == value:
                return value
            asked = self._asked()
            self.acted.add(asked)
            return value if asked.startswith(self._off) else shown

        return masked

    @staticmethod
    def _asked() -> str:
        frame = sys._getframe(2)
        while frame.f_globals["__name__"].startswith(("runtime.secrets.", __name__)):
            assert frame.f_back is not None
            frame = frame.f_back
        return frame.f_globals["__name__"]


def without_the_gate(patch: pytest.MonkeyPatch) -> None:
    """Switch the gate off."""
    patch.setattr(Gate, "data", lambda _self, _data: None)
    patch.setattr(Gate, "file", lambda _self, _path: None)
