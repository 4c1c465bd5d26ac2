"""Screenshots, frames and PDFs of a page. Secrets are painted over in screenshots; a page that shows one has no frame."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from playwright.async_api import CDPSession, Error, Frame, Page

from nodes.errors import AuthorError, SiteError
from nodes.targets import Target
from runtime.browser import isolated_world
from runtime.browser.page import drawn_text
from runtime.browser.page.access import ElementAccess
from runtime.browser.run_pages import lacks

MASK_COLOUR = "#000000"

FRAME_MILLISECONDS = 1000.0  # milliseconds that a page may take to tell if a password is typed
UNMARK_MILLISECONDS = 500.0  # milliseconds that a frame may take to remove the marks of a picture
TOGETHER = 1_000  # most characters of an element's text that are searched for a secret across several elements

# Texts that elements show themselves: their own text nodes, value or placeholder of a field, alternative text of an image.
# Includes open shadow roots.
_SHOWN = """() => {
  const shown = [];
  const walk = (root) => {
    for (const element of root.querySelectorAll('*')) {
      const own = Array.from(element.childNodes).filter((node) => node.nodeType === 3).map((node) => node.data).join('');
      const texts = [own, own.replace(/\\s+/g, ' '), element.getAttribute('placeholder'), element.getAttribute('alt')];
      if (element.type !== 'password' && typeof element.value === 'string') texts.push(element.value);
      if (element instanceof HTMLSelectElement) texts.push(...Array.from(element.selectedOptions, (each) => each.label));
      const text = texts.filter((each) => each && each.trim()).join('\\n');
      if (text) shown.push({element, text});
      if (element.shadowRoot) walk(element.shadowRoot);
    }
  };
  walk(document);
  return shown;
}"""

# Texts that elements show together with their descendants, each of which shows only a part. Leaves out marked elements.
_TOGETHER = f"""() => {{
  const shown = [], silent = 'script, style, noscript, template, [data-runops-hidden]';
  const pieces = (element) => {{
    const found = [];
    for (const node of element.childNodes) {{
      if (node.nodeType === 3) found.push(node.data);
      else if (node.nodeType === 1 && !node.matches(silent)) found.push(textOf(node));
    }}
    return found.filter((each) => each.trim());
  }};
  const texts = new Map();
  const textOf = (element) => {{
    if (!texts.has(element)) {{
      const found = pieces(element), text = found.join('');
      texts.set(element, text.length <= {TOGETHER} ? text : text.slice(0, {TOGETHER} + 1));
      if (found.length > 1 && text.length <= {TOGETHER}) {{
        shown.push({{element, text: `${{text}}\n${{text.replace(/\\s+/g, ' ')}}`}});
      }}
    }}
    return texts.get(element);
  }};
  const walk = (root) => {{
    for (const element of root.querySelectorAll('*')) {{
      if (!element.closest(silent)) textOf(element);
      if (element.shadowRoot) walk(element.shadowRoot);
    }}
  }};
  walk(document);
  return shown;
}}"""

_TEXTS = "(shown) => shown.map(({text}) => text)"

_READ = "() => (%s)((%s)())"

_KEPT = "() => { globalThis._runopsShown = (%s)(); return (%s)(globalThis._runopsShown); }"

_THEN = "(numbers) => (%s)(globalThis._runopsShown, numbers)"

_MARK = """(shown, numbers) => {
  for (const number of numbers) shown[number].element.setAttribute('data-runops-hidden', '');
}"""

# Marks the innermost of nested elements: it shows the whole secret.
_MARK_INNERMOST = """(shown, numbers) => {
  const found = numbers.map((number) => shown[number].element);
  for (const element of found) {
    if (!found.some((each) => each !== element && element.contains(each))) element.setAttribute('data-runops-hidden', '');
  }
}"""

_UNMARK = """() => {
  const walk = (root) => {
    for (const element of root.querySelectorAll('*')) {
      element.removeAttribute('data-runops-hidden');
      if (element.shadowRoot) walk(element.shadowRoot);
    }
  };
  walk(document);
}"""


# A filled password field shows the length of what was typed.
_PASSWORD = isolated_world.Script[bool](
    """() => {
  const walk = (root) => Array.from(root.querySelectorAll('*')).some(
    (each) => (each.localName === 'input' && each.type === 'password' && each.value !== '')
      || (each.shadowRoot !== null && walk(each.shadowRoot)));
  return walk(document);
}""",
    bool,
)

QUALITY = 60  # quality of a frame's JPEG, in percent


SMALL = 640  # most pixels of width and height of a small frame


class _Camera:
    """The protocol's two ways to a picture of one page."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page = page
        self._send: Callable[..., Awaitable[dict[str, Any]]] = session.send  # pyright: ignore[reportUnknownMemberType]
        self._cast: asyncio.Future[str] | None = None
        self._number = 0  # of the newest screencast heard of
        session.on("Page.screencastFrame", self._heard)

    async def still(self) -> str:
        """Return a picture, in base64, that the browser draws now."""
        answer = await self._send(
            "Page.captureScreenshot", {"format": "jpeg", "quality": QUALITY, "optimizeForSpeed": True}
        )
        return answer["data"]

    async def small(self) -> str:
        """Return what the screen shows, in base64, for a fifth of the time."""
        self._cast = asyncio.get_running_loop().create_future()
        try:
            settings = {"format": "jpeg", "quality": QUALITY, "maxWidth": SMALL, "maxHeight": SMALL}
            await self._send("Page.startScreencast", settings)
            return await self._cast
        finally:
            self._cast = None
            await self._send("Page.stopScreencast")

    def _heard(self, event: dict[str, Any]) -> None:
        # A late picture of an earlier screencast has its number.
        if event["sessionId"] > self._number:
            self._number = event["sessionId"]
            if self._cast is not None and not self._cast.done():
                self._cast.set_result(event["data"])


class Pictures(ElementAccess):
    _camera: _Camera | None = None

    async def frame(self, hide: Callable[[str], bool] | None, *, small: bool = False) -> bytes:
        """Return a picture (JPEG) of the part of the page in view, and leave the page untouched.

        ``hide`` is None if the run has no secrets; ``small`` then returns what the screen shows at that moment, which may be an instant old.
        Raises AuthorError ``secret-on-page`` if the page shows or may show a secret, or a filled password field: nothing is painted over,
        since that would change the page.
        """
        self._run.demand_chromium("picture after a step")
        await self._demand_no_secret(hide)
        if self._camera is None or self._camera.page is not self.page:
            self._camera = _Camera(self.page, await self.page.context.new_cdp_session(self.page))
        picture = await (self._camera.small() if small else self._camera.still())
        # The page may have shown one between the first look and the picture.
        await self._demand_no_secret(hide)
        return base64.b64decode(picture)

    async def _demand_no_secret(self, hide: Callable[[str], bool] | None) -> None:
        for frame in self.page.frames:
            with _unless_detached(frame):
                if await _PASSWORD.on(frame, milliseconds=FRAME_MILLISECONDS):
                    raise self._secret_shown()
        if hide is not None and await self._shows(hide, canvases=True):
            raise self._secret_shown()

    async def screenshot(
        self, target: Target | None, *, full_page: bool, hide: Callable[[str], bool], canvases: bool = False
    ) -> bytes:
        """``canvases``: paint over every canvas, since it may show what an earlier document was given."""
        found = None
        self._demand_safe()
        if target is not None:
            target, found = await self._found(target)
        masked: Sequence[Frame] = ()
        try:
            async with self._asking(target):
                masked = self.page.frames
                await self._mark(hide, canvases=canvases or self._secret_typed)
                options: dict[str, Any] = {
                    "timeout": self._deadline.milliseconds(),
                    "animations": "disabled",
                    # What a password field shows is nobody's to see, even as dots.
                    "mask": [frame.locator(f"[{drawn_text.MARK}], input[type=password]") for frame in masked],
                    "mask_color": MASK_COLOUR,
                }
                if found is not None:
                    return await found.screenshot(**options)
                return await self.page.screenshot(**options, full_page=full_page)
        finally:
            for frame in masked:
                await _unmark(frame)

    def _demand_safe(self) -> None:
        """Refuse a picture in a browser that does not tell every text it draws, if the run has a secret."""
        if not self._run.pictures:
            why = "it does not tell every text that it draws, so a secret could stay in the picture"
            raise lacks(self._run.engine, "picture in a run with secrets", why)

    async def _mark(self, hide: Callable[[str], bool], *, canvases: bool) -> None:
        """Mark each element that shows a secret. Raises AuthorError ``secret-on-page`` if one is shown where no element covers it."""
        secret: list[Frame] = []
        for frame in self.page.frames:
            for shown, then in ((_SHOWN, _MARK), (_TOGETHER, _MARK_INNERMOST)):
                if await _showing(frame, shown, hide, then):
                    secret.append(frame)
        if not self._tells_drawn:
            return
        if not await drawn_text.mark(self.page, hide, canvases=canvases, secret=secret):
            raise self._secret_shown()

    def _secret_shown(self) -> AuthorError:
        return AuthorError(
            "secret-on-page",
            "the page shows a secret of the workflow where no element can be painted over",
            fix="take the picture before the secret is filled in or shown",
            evidence={"page": self.page.url},
        )

    async def shows(self, hide: Callable[[str], bool]) -> bool:
        return await self._read(None, lambda: self._shows(hide, canvases=self._secret_typed))

    async def _shows(self, hide: Callable[[str], bool], *, canvases: bool) -> bool:
        for frame in self.page.frames:
            for shown in (_SHOWN, _TOGETHER):
                if await _showing(frame, shown, hide):
                    return True
        return self._tells_drawn and await drawn_text.shown(self.page, hide, canvases=canvases)

    @property
    def _tells_drawn(self) -> bool:
        """True if the browser tells the texts that it draws without an element."""
        return self._run.engine == "chromium"

    async def pdf(self, landscape: bool) -> bytes:
        self._run.demand_chromium("PDF of a page")
        return await self._read(None, lambda: self.page.pdf(format="A4", landscape=landscape, print_background=True))


async def _showing(frame: Frame, shown: str, hide: Callable[[str], bool], then: str | None = None) -> bool:
    """Return True if one of these texts of the frame must be hidden; run ``then`` on those elements, even if the page changed since."""
    # A reading keeps nothing in the page: a screenshot may be marking elements meanwhile.
    source = _READ % (_TEXTS, shown) if then is None else _KEPT % (shown, _TEXTS)
    try:
        texts = await isolated_world.Script[list[str]](source, list[str]).on(frame)
        numbers = [number for number, text in enumerate(texts) if hide(text)]
        if numbers and then is not None:
            await isolated_world.Script[None](_THEN % then, None).on(frame, numbers)
        return bool(numbers)
    except Error:
        if frame.is_detached():
            return False
        raise


@contextlib.contextmanager
def _unless_detached(frame: Frame) -> Generator[None]:
    """Ignore errors of a frame that went away: it is not in a picture."""
    try:
        yield
    except Error:
        if not frame.is_detached():
            raise


async def _unmark(frame: Frame) -> None:
    """Remove the marks if the frame answers soon: a mark that stays hides more of the next picture, not less."""
    with contextlib.suppress(Error, SiteError):
        await isolated_world.Script[None](_UNMARK, None).on(frame, milliseconds=UNMARK_MILLISECONDS)
