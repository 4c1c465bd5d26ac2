"""Tools that show pages to a model: an observation, its parts, elements, what a target matches, HTML, a picture; and that wait."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import struct
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from director.scouting import given, observer, relevance
from director.scouting.shown import by_tool
from nodes.errors import ModelError, RunOpsError, SiteError
from nodes.values import Json
from runtime.browser.elements import locators, targets
from runtime.browser.page.tab import Tab
from runtime.messages import messages
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.observation.lines import NAME_MOST, quoted
from runtime.observation.tree import ROWS
from runtime.system import files

if TYPE_CHECKING:
    from director.scouting.shown import Shown
    from director.tools.build_context import BuildContext, Where
    from runtime.observation.observation import Observation

WHOLE = observer.WHOLE

ANSWER = "answer it with `debug_action` dialog (accept or dismiss)"

TRIED = 8  # most elements that a tried target lists
WAIT_SECONDS, LONGEST_WAIT = 10, 60
QUIET = "quiet"  # what is waited for: no more requests

SIZE_AT = 16  # where a PNG says its width and height
BAD = 400  # least HTTP status that is reported: what looks like an empty list may be an error page


class Looking:
    def __init__(
        self, build: BuildContext, observer: observer.PageObserver, thread: str, mine: Sequence[str] | None = None
    ) -> None:
        """Make the tools of the model of ``thread``. ``mine`` are the scout tabs to which it is restricted; the first is its default."""
        self._build, self._observer, self._thread, self._mine = build, observer, thread, mine

    @property
    def shown(self) -> Shown:
        return self._observer.shown_to(self._thread)

    def place(self, tab: str | None, ref: Json = None, only: Where | None = None) -> tuple[Where, str | None]:
        ref = None if given.is_target(ref) else ref
        if self._mine is None:
            return self._observer.place(tab, self._thread, ref, only)
        shown = self._observer.place(tab, self._thread, ref, "scout")[1]
        name = tab or (shown if shown in self._mine else None) or self._mine[0]
        if name not in self._mine:
            raise ModelError(
                "page-unknown",
                f"`{name[:80]}` is no tab of yours",
                fix=f"yours: {', '.join(self._mine)}; null is the first",
            )
        session = self._observer.scout.session
        if session is None or name not in session.tabs.named:
            raise ModelError("page-unknown", "you have no page yet", fix="load one: `debug_navigate`")
        return "scout", name

    @contextlib.asynccontextmanager
    async def _page(self, tab: str | None, ref: Json = None, *, despite_dialog: bool = False) -> AsyncGenerator[Tab]:
        where, name = self.place(tab, ref)
        async with self._observer.alone(where):
            page = self._observer.page(where, name)
            if page.dialog is not None and not despite_dialog:
                fix = f"{ANSWER} first" if where == "scout" else "a `dialog` node of the draft answers it"
                raise SiteError("dialog-open", "the page shows a dialog", fix=fix)
            yield page

    async def inspect(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        """Return the lines that match an instruction, the part at a ref or its names in CSS, the changes since the model saw the page, or all; and a picture."""
        ref, instruction = arguments["ref"], str(arguments["instruction"] or "").strip()
        if arguments["dom"] and ref is None:
            fix = "give the ref of the part; `get_html` shows the whole page"
            raise ModelError("tool-arguments", "`dom` is about one part of the page", fix=fix)
        async with self._page(arguments["tab"], ref, despite_dialog=True) as page:
            if page.dialog is not None:
                return await self.report(
                    page, "the page shows a dialog, and nothing else can be seen", self._observer.mask(page.dialog)
                )
            earlier = self._observer.last_of(page)
            view = await self._observer.look_at(page)
            if ref is not None and not view.has(ref):
                raise self._observer.gone(page, str(ref))
            if arguments["dom"]:
                names = await page.names(await page.by_ref(str(ref)), view.has)
                return await self.report(page, "", self._observer.mask(names))
            ours, whole = "", False
            part = view if ref is None else view.part(str(ref))
            if instruction:
                theirs = relevance.select(part, instruction, known=self._observer.known(page, self._thread))
            elif ref is not None:
                theirs = view.subtree(str(ref), WHOLE)
            elif earlier is not None and self._observer.knows(page, self._thread):
                ours = "what changed since you saw it last; ask again for all of it"
                theirs = view.since(earlier, page_text.CHANGED)
                self._observer.forget(page, self._thread)
            else:
                theirs, whole = self._observer.whole(page, view, self._thread, WHOLE), True
            if not arguments["screenshot"]:
                return await self.report(page, ours, theirs, whole=whole)
            kept, picture = await self._picture(page, ref, part.refs, place)
            shown = await self.report(page, "\n".join(filter(None, (ours, kept))), theirs, whole=whole)
            return dataclasses.replace(shown, picture=picture)

    async def find(self, arguments: dict[str, Json], _place: turn.Place) -> turn.Outcome:
        role, name, row, text = (arguments[each] or None for each in ("role", "name", "row", "text"))
        if not (role or name or row or text):
            raise ModelError(
                "tool-arguments", "give at least one of role, name, row and text", fix="call it again, fixed"
            )
        async with self._page(arguments["tab"]) as page:
            view = await self._observer.look_at(page)
            theirs = view.find(role, name, row, text, WHOLE)
            ours = "" if page_text.refs_in(theirs) else f"in {self._observer.searched(page)}"
            return await self.report(page, ours, theirs)

    async def try_target(self, arguments: dict[str, Json], _place: turn.Place) -> turn.Outcome:
        """Report how many elements a target finds now, and which; near ones if none, and targets that find one alone if several."""
        wanted = given.target(str(arguments["target"]), self._build.masker)
        async with self._page(arguments["tab"]) as page:
            view = await self._observer.look_at(page)
            found = await page.matches(wanted, TRIED)
            error = await page.mismatch(found, wanted)
            mask = self._observer.masking()
            if error is not None and not found.count:
                code = f" ({error.code})" if error.code != "target-not-found" else ""
                theirs = [mask(given.unwaited(error)), *given.evidence(error, mask)]
                return await self.report(
                    page, f"it finds nothing now{code} in {self._observer.searched(page)}", "\n".join(theirs)
                )
            lines: list[str] = []
            for each in found.first:
                ref = each.ref if each.ref is not None and view.has(each.ref) else None
                element = view.element(ref) if ref is not None else None
                named = f"<{each.tag}> {each.text}".strip()
                if element is not None:
                    # A row or card has no name: it is known by what it says.
                    said = element.name or (element.row if element.role in ROWS else each.text)
                    named = f"{element.role} {quoted(said, NAME_MOST)}"
                states = f"{'visible' if each.visible else 'hidden'}, {'enabled' if each.enabled else 'disabled'}"
                lines.append(f"{mask(named)}{f' [ref={ref}]' if ref is not None else ''}: {states}")
            if found.count > len(lines):
                lines.append(f"… {found.count - len(lines)} more")
            if error is not None:
                lines += given.evidence(error, mask)
            ours = "it finds 1 element" if found.count == 1 else f"it finds {found.count} elements: an action needs 1"
            return await self.report(page, ours, "\n".join(lines))

    async def wait_for(self, arguments: dict[str, Json], _place: turn.Place) -> turn.Outcome:
        """Wait until a rule holds, or until no more requests are made, and report what came."""
        text, seconds = str(arguments["rule"]).strip(), arguments["seconds"]
        limit = min(LONGEST_WAIT, max(1, seconds)) if isinstance(seconds, int) else WAIT_SECONDS
        wanted = given.rule(text, self._build.masker) if text != QUIET else None
        async with self._page(arguments["tab"]) as page:
            earlier = self._observer.last_of(page)
            self._observer.bound(page, limit)
            began = time.monotonic()
            try:
                await (page.wait_for(wanted) if wanted is not None else page.quiet())
            except SiteError as error:
                mask, seen = self._observer.masking(), error.as_json()
                more, theirs, whole = await self.after(page, earlier)
                ours = f"it did not come within {limit} s ({error.code}) in {self._observer.searched(page)}"
                what = "\n".join([mask(given.unwaited(error)), *given.evidence(error, mask), theirs])
                outcome = await self.report(page, "\n".join(filter(None, [ours, more])), what, whole=whole)
                return dataclasses.replace(outcome, error={**seen, "message": mask(error.message), "evidence": {}})
            came = f"it came after {time.monotonic() - began:.1f} s"
            more, theirs, whole = await self.after(page, earlier)
            return await self.report(page, "\n".join(filter(None, [came, more])), theirs, whole=whole)

    async def get_html(self, arguments: dict[str, Json], _place: turn.Place) -> turn.Outcome:
        """Return the HTML of an element or of the page, with attributes; long ones are read on with ``read_state``."""
        ref, depth = arguments["ref"], arguments["depth"]
        async with self._page(arguments["tab"], ref) as page:
            await self._observer.look_at(page)
            if ref is None:
                located = page.page.locator(":root")
            elif given.is_target(ref):
                wanted = given.target(str(ref), self._build.masker)
                found = await page.matches(wanted, 0)
                if (error := await page.mismatch(found, wanted)) is not None:
                    mask = self._observer.masking()
                    return await self.missed(page, error, [mask(given.unwaited(error))])
                located = locators.locator(page.page, found.target)
            else:
                await self._observer.element(page, str(ref))
                located = await page.by_ref(str(ref))
            html = await page.html(located, depth if isinstance(depth, int) and depth >= 0 else None)
            return await self.report(page, "", self._observer.mask(html))

    async def missed(self, page: Tab, error: SiteError, lines: Sequence[str]) -> turn.Outcome:
        """Return the outcome for a target that does not find one element: the error, with what else there is."""
        mask, said = self._observer.masking(), error.as_json()
        outcome = await self.report(
            page,
            f"failed: {error.code} in {self._observer.searched(page)}; {error.fix}",
            "\n".join([*lines, *given.evidence(error, mask)]),
        )
        return dataclasses.replace(outcome, error={**said, "message": mask(error.message), "evidence": {}})

    async def _picture(
        self, page: Tab, ref: Json, refs: Sequence[str], place: turn.Place
    ) -> tuple[str, messages.Picture]:
        """Save a picture of the page or of the element at ``ref`` in the session's files; return a line about it, and the picture.

        Elements of ``refs`` bear them; secrets and password fields are painted over.
        """
        mask = self._observer.masking()
        target = None
        if ref is not None:
            async with self._observer.pointed_at(page, str(ref)) as (pointed, element):
                target = await targets.target_of(pointed, element.role, element.name, lambda text: mask(text) == text)
        page.calm()
        data = await page.numbered(target, refs, lambda text: mask(text) != text)
        name = f"{place.path.replace('/', '-')}.png"
        try:
            kept = await self._build.writer.put_file(name, data)
        except OSError as error:
            raise files.not_kept("a picture", Path(name), error) from None
        width, height = struct.unpack(">II", data[SIZE_AT : SIZE_AT + 8])
        picture = messages.Picture(base64.b64encode(data).decode(), width, height)
        return f"picture kept: {kept['path']} ({kept['size']:,} bytes)", picture

    async def report(self, page: Tab, ours: str, theirs: str, *, whole: bool = False) -> turn.Outcome:
        tab = self._observer.introduced(page, self._thread)
        self._observer.shown(page, theirs, self._thread, WHOLE if whole else 0)
        status = await self._observer.status(page)
        bad = f"the document was answered with HTTP status {status}" if status is not None and status >= BAD else ""
        text = "\n".join(filter(None, [tab, bad, page.diagnosis.sign_in_fix, ours, page_text.fenced(by_tool(theirs))]))
        return turn.Outcome(text, text)

    async def after(self, page: Tab, earlier: Observation | None) -> tuple[str, str, bool]:
        """Return the report on a page after an action: our text, the page's text, and whether that is all of the page."""
        if page.dialog is not None:
            asks = f"the page shows a dialog: {ANSWER} before anything else. It says:"
            return asks, self._observer.mask(page.dialog), False
        try:
            view = await self._observer.look_at(page)
        except RunOpsError as error:
            if error.code == "page-crashed":
                await self._observer.scout.demand_alive()
            return f"the page cannot be looked at now ({error.code})", "", False

        def whole(most: int) -> str:
            return self._observer.whole(page, view, self._thread, most)

        if earlier is None:
            return "", whole(WHOLE), True
        theirs, all_of_it = page_text.page_now(view, earlier, whole, WHOLE)
        return "", theirs, all_of_it
