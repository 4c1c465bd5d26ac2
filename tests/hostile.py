"""Pages with random hostile texts and overridden browser functions, by a seed."""

from __future__ import annotations

import dataclasses
import json
import random
import re

from nodes.values import sound
from tests.site import Answer, Request, Site

PIECES = (
    "\ud83d",
    "\udc4d",
    "\udc4d\ud83d",
    "\U0001f44d",
    "\U0001d4b3",
    "\u202e",
    "\u2066",
    "\u200f",
    "\u05e9\u05dc\u05d5\u05dd",
    "\x1b[2J",
    "\x1b]0;owned\x07",
    "\x9b31m",
    "\x00",
    "\x07",
    "\ufffe",
    "\ufeff",
    "\r\n",
    "\u2028",
    "{{ secrets.X }}",
    "</script>",
    '"\\u005c',
    "plain",
    "é\u0301",
    "x" * 3000,
)
"""Texts that are each known to break some boundary."""

OVERRIDES = (
    "Array.prototype.push = () => { throw 1; };",
    "Map.prototype.get = () => undefined; Map.prototype.has = () => true; Set.prototype.add = null;",
    "Array.prototype[Symbol.iterator] = function* () { yield 7; };",
    "JSON.stringify = () => '{{'; JSON.parse = () => null;",
    "Object.keys = Object.entries = () => [1]; Object.assign = () => 1; Object.is = () => true;",
    "for (const each of ['replace', 'trim', 'split', 'slice', 'toString', 'charCodeAt']) String.prototype[each] = () => 'owned';",
    "document.querySelectorAll = document.querySelector = () => []; Document.prototype.querySelectorAll = () => ['owned'];",
    "Array.from = () => 3; Array.prototype.map = Array.prototype.filter = () => 'owned'; Array.isArray = () => false;",
    "window.setTimeout = () => 0; window.requestAnimationFrame = () => 0; window.Promise = null;",
    "window.Map = window.Set = window.WeakMap = function () { throw 1; };",
    "Element.prototype.checkVisibility = () => false; Element.prototype.getAttribute = () => 'owned'; Element.prototype.matches = () => false;",
    "Object.defineProperty(HTMLElement.prototype, 'innerText', {get: () => ({owned: 1})});",
    "Object.defineProperty(Node.prototype, 'textContent', {get: () => { throw 1; }, set() {}});",
    "Object.defineProperty(document, 'title', {get: () => ({owned: 1})}); Object.prototype.toJSON = () => 'owned';",
    "for (const each of ['v', 'o', 'a', 'h', 'value', 'error']) Object.defineProperty(Object.prototype, each, {get: () => 'owned', set() {}});",
    "RegExp.prototype.test = () => false; RegExp.prototype.exec = () => null; window.eval = () => 'owned';",
    "window.Element = window.HTMLElement = window.Node = window.Document = undefined;",
    "Object.defineProperty(window, 'performance', {get: () => { throw 1; }}); window.getComputedStyle = () => null;",
    "Storage.prototype.getItem = () => ({}); Object.defineProperty(window, 'sessionStorage', {get: () => { throw 1; }});",
    "window.atob = () => { throw 1; }; window.TextDecoder = null; Function.prototype.call = Function.prototype.apply = () => 'owned';",
)
"""Overrides by pages, all of them after they are built."""

CLOBBERS = (
    "<img name=title>",
    "<img name=body>",
    "<form name=createElement></form>",
    "<form name=querySelectorAll></form>",
    "<form name=getElementsByTagName></form>",
    "<form><input name=id><input name=getAttribute><input name=tagName><input name=children><input name=textContent></form>",
    "<img name=styleSheets>",
    "<form name=documentElement></form>",
)
"""Elements whose names shadow properties of a document."""

_WHITE = re.compile("[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")


def folded(text: str) -> str:
    """``text`` as a reading gives it: sound, white space folded as JavaScript does."""
    return _WHITE.sub(" ", sound(text).replace("\u200b", "").replace("\u00ad", "")).strip(" ")


@dataclasses.dataclass(frozen=True)
class Hostile:
    """One page."""

    text: str
    """The text that it shows wherever possible."""
    overrides: str
    clobbers: str

    @property
    def html(self) -> str:
        """The page."""
        said = json.dumps(self.text).replace("<", "\\u003c")
        overrides = "\n".join(f"try {{ {each} }} catch {{}}" for each in self.overrides.splitlines())
        return f"""<!doctype html><meta charset=utf-8><body><h1 role=alert></h1><p id=said></p><ul id=rows><li></li><li></li></ul>
<table id=grid><tr><th></th><th>Two</th></tr><tr><td></td><td>b</td></tr></table>
<input id=field><select id=list><option value=a>A</option><option value=b></option></select>
<button id=ask>ask</button> <button id=send>send</button> <a id=file href=/file>file</a> <output id=done></output> {self.clobbers}
<script>(() => {{
  const T = {said}, all = (css) => Array.from(Document.prototype.querySelectorAll.call(document, css));
  const one = (css) => all(css)[0];
  Object.getOwnPropertyDescriptor(Document.prototype, 'title').set.call(document, T);
  for (const each of all('h1, #said, li, th:first-child, td:first-child, [value=b]')) each.textContent = T;
  for (const each of all('#said, li, #field, #ask, #send')) {{ each.setAttribute('aria-label', T); each.setAttribute('data-said', T); each.title = T; }}
  one('#field').value = T; one('#list').name = T; one('#file').download = T;
  try {{ localStorage.setItem(T, T); sessionStorage.setItem(T, T); }} catch {{}}
  try {{ history.replaceState(T, '', '#' + T); }} catch {{}}
  console.error(T);
  const later = setTimeout, ask = alert, origin = location.origin, done = one('#done'), post = fetch;
  const say = Object.getOwnPropertyDescriptor(Node.prototype, 'textContent').set, call = Reflect.apply;
  one('#ask').onclick = () => later(() => ask(T));
  one('#send').onclick = () => {{ post(origin + '/sent', {{method: 'POST'}}); call(say, done, ['sent']); }};
{overrides}
}})();</script>"""


def draw(number: int) -> Hostile:
    """The page of this number: every override and every text occurs in some page, and every second page shadows nothing."""
    chance = random.Random(number)
    pieces = [PIECES[number % len(PIECES)], *chance.choices(PIECES, k=chance.randrange(4))]
    overrides = [OVERRIDES[number % len(OVERRIDES)], *chance.choices(OVERRIDES, k=chance.randrange(3))]
    clobbers = [CLOBBERS[number // 2 % len(CLOBBERS)]] if number % 2 else []
    return Hostile(f"a{''.join(pieces)}z", "\n".join(overrides), "".join(clobbers))


def serve(site: Site, page: Hostile) -> None:
    """Serve the page, its form handler and its file."""
    site.page("/", page.html, content_type="text/html; charset=utf-8")
    site.page("/plain", "<!doctype html><title>Plain</title><p id=calm>calm</p>")
    site.page("/file", "kept", content_type="application/octet-stream")

    def sent(_request: Request) -> Answer:
        return Answer("")

    site.answer("/sent", sent)
