"""A site that records each order that reaches it and answers badly, and runs that send an order by every action: the record is the judge.

A ``Case`` is one run: the action that sends the order, the fault of the site at the first request, and the fields of the step. ``live`` runs
it in a shared browser and resumes it until it has passed or asks a person.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import itertools
import re
import threading
import uuid
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
from typing_extensions import override

from runtime import events
from runtime.browser import open as open_browser
from runtime.browser import playwright_errors, port
from runtime.browser.options import Mode
from runtime.browser.page.tab import Tab
from runtime.browser.session import Session
from runtime.log.store import file_store
from runtime.settings.settings import Settings
from runtime.workspace import run_index
from tests import agents, browsers, site
from tests.now import now
from tests.rig import Rig

_T = TypeVar("_T")
Fault = Literal["late", "slow", "lost", "refused", "error", "failed", "redirect"]
"""Handling of an order's first request: accepted, answered late; worked on for longer than a step waits, then accepted, answered; accepted, connection
closed; closed unaccepted; accepted, answered with 500; answered with 500 unaccepted; accepted, redirected to a late page."""

FAULTS: tuple[Fault, ...] = ("late", "slow", "lost", "refused", "error", "failed", "redirect")

UNTAKEN = frozenset({"refused", "failed"})

LATE_SECONDS = 5.0
"""The delay of a late answer: longer than any step waits."""

SLOW_SECONDS = 2.5
"""The time before an order is accepted: longer than a step waits for an answer, and then once more."""

FORM = "form id=f method=post enctype='multipart/form-data' action=/order/{ref}"
_SUBMIT = "f.requestSubmit()"


@dataclasses.dataclass(frozen=True)
class Action:
    """One way of sending an order."""

    html: str
    """The content of the page; ``{ref}`` is replaced by the order."""
    fields: str
    """The node's fields."""
    before: str = ""
    """Steps that come first."""
    verify: bool = True
    """True if the page shows afterwards that it is done."""
    of_agent: tuple[tuple[str, dict[str, Any]], ...] = ()
    """The tools by which an agent does it; none where it has none for it."""


def _in_form(html: str) -> str:
    return f"<{FORM}>{html}</form>"


ACTIONS: dict[str, Action] = {
    "click": Action(
        _in_form("<button>Send</button>"),
        "action: click, target: {role: button, name: Send}",
        of_agent=(agents.click("Send"),),
    ),
    "press": Action(
        _in_form("<label>Item <input></label>"),
        "action: press, key: Enter, target: {label: Item}",
        of_agent=(("press", {"ref": agents.Ref("Item"), "key": "Enter"}),),
    ),
    "type": Action(_in_form("<label>Item <input></label>"), 'action: type, value: "tea\\n", target: {label: Item}'),
    "dblclick": Action(
        _in_form(f"<button type=button ondblclick={_SUBMIT}>Send</button>"),
        "action: dblclick, target: {role: button, name: Send}",
    ),
    "check": Action(
        _in_form(f"<label><input type=checkbox onchange={_SUBMIT}> Send</label>"),
        "action: check, target: {label: Send}, effect: effect",
        of_agent=(agents.click("Send"),),
    ),
    "select": Action(
        _in_form(f"<label>Item <select onchange={_SUBMIT}><option>none<option>tea</select></label>"),
        "action: select, value: tea, target: {label: Item}, effect: effect",
        of_agent=(("select", {"ref": agents.Ref("Item"), "options": ["tea"]}),),
    ),
    "fill": Action(
        _in_form(f"<label>Item <input oninput={_SUBMIT}></label>"),
        "action: fill, value: tea, target: {label: Item}, effect: effect",
        of_agent=(agents.fill("Item", "tea"),),
    ),
    "hover": Action(
        _in_form(f"<p id=over onmouseenter={_SUBMIT}>Over</p>"),
        "action: hover, target: {css: '#over'}, effect: effect",
    ),
    "upload": Action(
        _in_form(f"<label>File <input type=file name=file onchange={_SUBMIT}></label>"),
        "action: upload, files: paper.txt, target: {label: File}",
    ),
    "drag": Action(
        _in_form(f"<p id=here>From here</p><br><p id=there onmouseup={_SUBMIT}>To there</p>"),
        "action: drag, target: {css: '#here'}, to: {css: '#there'}",
    ),
    "draw": Action(
        _in_form(f"<canvas id=sheet width=80 height=40 onmouseup={_SUBMIT}></canvas>"),
        "action: draw, target: {css: '#sheet'}, path: [{x: 2, y: 2}, {x: '50%', y: '50%'}]",
    ),
    "paste": Action(
        _in_form(f"<label>Item <input oninput={_SUBMIT}></label>"),
        "action: paste, value: tea, target: {label: Item}",
    ),
    "dialog": Action(
        _in_form(f"<button type=button onclick=\"confirm('Sure?') && {_SUBMIT}\">Ask</button>"),
        "action: dialog, answer: accept",
        before="  - {id: ask, type: browser_action, action: click, target: {role: button, name: Ask}, effect: idempotent}\n",
        of_agent=(agents.click("Ask"), ("dialog", {"accept": True, "text": None})),
    ),
    "goto": Action(
        "",
        'action: goto, url: "{{ inputs.base }}/order/{ref}", effect: effect',
        of_agent=(("goto", {"url": "/order/{ref}"}),),
    ),
    "reload": Action(
        _in_form("<input type=hidden name=once value={once}><button>Prepare</button>"),
        "action: reload, effect: effect",
        before="  - {id: prepare, type: browser_action, action: click, target: {role: button, name: Prepare}, effect: idempotent, verify: [{title: Prepared}]}\n",
    ),
    "download": Action(
        f"<{FORM}><input type=hidden name=as value=file><button>Get</button></form>",
        "action: download, target: {role: button, name: Get}, effect: effect",
        verify=False,
    ),
    "fetch": Action(
        "<button onclick=\"fetch('/order/{ref}', {method: 'POST'}).then((a) => a.ok && (document.title = 'Done'))\">Send</button>",
        "action: click, target: {role: button, name: Send}",
        of_agent=(agents.click("Send"),),
    ),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One run."""

    action: str
    fault: Fault
    confirm: bool = False
    verify: bool = False
    retry: bool = False

    def __str__(self) -> str:
        given = [name for name in ("confirm", "verify", "retry") if getattr(self, name)]
        return "-".join([self.action, self.fault, *given])

    @property
    def ref(self) -> str:
        """The name of its order."""
        return f"o-{self}"

    @property
    def page(self) -> str:
        """The page from which it is sent."""
        html = ACTIONS[self.action].html.replace("{ref}", self.ref).replace("{once}", uuid.uuid4().hex)
        return f"<!doctype html><title>Form</title>{html}"

    @property
    def tools(self) -> list[tuple[str, dict[str, Any]]]:
        """The tool calls of its agent."""
        return [
            (
                name,
                {
                    key: value.replace("{ref}", self.ref) if isinstance(value, str) else value
                    for key, value in given.items()
                },
            )
            for name, given in ACTIONS[self.action].of_agent
        ]

    @property
    def of_agent(self) -> str:
        """A workflow whose agent sends it."""
        confirm = f", {CONFIRM}" if self.confirm else ""
        return (
            'version: 1\nname: Send\ninputs: {base: {type: string}}\nallowed_origins: ["{{ inputs.base }}"]\nnodes:\n'
            '  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/form/REF"}\n'
            f"  - {{id: send, type: agent, goal: Send the order., effect: effect, timeout: 30{confirm}}}\n"
        ).replace("REF", self.ref)

    @property
    def text(self) -> str:
        """The workflow."""
        action = ACTIONS[self.action]
        more = ["retry: {attempts: 2, delay: 0.05}"] if self.retry else []
        if self.verify:
            more.append('verify: [{title: "Done"}]')
        if self.confirm:
            more.append(CONFIRM)
        node = ", ".join(["id: send", "type: browser_action", f"timeout: {SECONDS:g}", action.fields, *more])
        return (
            (
                "version: 1\nname: Send\ninputs: {base: {type: string}}\nnodes:\n"
                '  - {id: open, type: browser_action, action: goto, url: "{{ inputs.base }}/form/REF"}\n'
                f"{action.before}  - {{{node}}}\n"
            )
            .replace("REF", self.ref)
            .replace("{ref}", self.ref)
        )


CONFIRM = (
    "confirm: {settle: 0.1, done: '{{ count > 0 }}', nodes: ["
    "{id: look, type: browser_action, action: goto, url: '{{ inputs.base }}/taken/REF'}, "
    "{id: count, type: browser_query, query: text, target: {test_id: count}, as: number}]}"
)

SECONDS = 1.0
"""Timeout of a step."""


def every() -> list[Case]:
    """The whole matrix."""
    options = itertools.product((False, True), repeat=3)
    return [
        Case(action, fault, confirm, verify, retry)
        for (confirm, verify, retry), action, fault in itertools.product(options, ACTIONS, FAULTS)
        if ACTIONS[action].verify or not verify
    ]


class Orders:
    """The site: orders accepted, and misbehaviour left."""

    def __init__(self, served: site.Site) -> None:
        self.site = served
        self.taken: collections.Counter[str] = collections.Counter()
        self._at_work: collections.Counter[str] = collections.Counter()
        """The number of requests of each order that are neither accepted nor refused yet."""
        self._settled = threading.Condition()
        self.over = threading.Event()
        """Late answers come now."""
        self._faults: dict[str, Fault] = {}
        self._prepared: set[str] = set()
        self._page("/favicon.ico", lambda: "")

    def offer(self, case: Case) -> None:
        """Serve a case's pages."""
        ref = case.ref
        self._faults[ref], self.taken[ref] = case.fault, 0
        self._page(f"/form/{ref}", lambda: case.page)
        self._page(f"/taken/{ref}", lambda: f"<title>Taken</title><p data-testid=count>{self.taken[ref]}</p>")
        self.site.answer(f"/order/{ref}", lambda request: self._ordered(ref, request))
        self.site.answer(f"/done/{ref}", lambda _request: self._late())

    async def finished(self, ref: str) -> None:
        """Wait until every request received is accepted or refused."""

        def settled() -> bool:
            with self._settled:
                return self._settled.wait_for(lambda: not self._at_work[ref], 10 * SLOW_SECONDS)

        assert await asyncio.to_thread(settled)

    def _page(self, path: str, body: Callable[[], str]) -> None:
        # Each request has its own connection: on a reused one Chromium repeats an unanswered request.
        self.site.answer(path, lambda _request: site.Answer(body(), headers={"connection": "close"}))

    def _late(self) -> site.Answer:
        self.over.wait(LATE_SECONDS)
        return self._done

    @property
    def _done(self) -> site.Answer:
        return site.Answer("<!doctype html><title>Done</title>", headers={"connection": "close"})

    def _ordered(self, ref: str, request: site.Request) -> site.Answer:
        # A form sent once prepares the page; the same one again, by a reload, is the order.
        once = re.search(r'name="once"\s+(\w+)', request.body)
        if once is not None and once[1] not in self._prepared:
            self._prepared.add(once[1])
            return site.Answer("<!doctype html><title>Prepared</title>", headers={"connection": "close"})
        fault = self._faults.pop(ref, None)
        with self._settled:
            self._at_work[ref] += 1
        if fault == "slow":
            self.over.wait(SLOW_SECONDS)
        with self._settled:
            self.taken[ref] += fault not in UNTAKEN
            self._at_work[ref] -= 1
            self._settled.notify_all()
        match fault:
            case "late":
                self.over.wait(LATE_SECONDS)
            case "lost" | "refused":
                return site.Answer(drop=True)
            case "error" | "failed":
                return site.Answer("<!doctype html><title>Error</title>", 500, {"connection": "close"})
            case "redirect":
                return site.Answer("", 303, {"location": f"/done/{ref}", "connection": "close"})
            case "slow" | None:
                pass
        if 'name="as"' in request.body:
            return site.Answer("a file", headers={"content-disposition": "attachment; filename=a.txt"})
        return self._done


@contextlib.contextmanager
def serve() -> Generator[Orders]:
    """The site, until the block ends."""
    with site.serve() as served:
        orders = Orders(served)
        try:
            yield orders
        finally:
            orders.over.set()


class Live(Rig):
    """A rig with a real browser."""

    mode: Mode = "shared"
    session: Session | None = None
    """The browser that it opened last."""

    @override
    async def open(self) -> port.Browser:
        chosen = browsers.Chosen(browser_mode=self.mode)
        origins = [str(self.inputs["base"])]
        private = self.home / "private"
        self.session = await open_browser.open_browser(None, origins=origins, private=private, settings=chosen)
        return self.session


MOST_RESUMES = 12
"""A step may fail before its action, as often as the machine is slow."""


@dataclasses.dataclass(frozen=True)
class Lived:
    """The outcome of a case."""

    case: Case
    statuses: list[str]
    """The status of the run, and of each resume."""
    taken: int
    why: str
    """Its message at the end."""

    def wrong(self) -> Iterator[str]:
        """The broken promises."""
        if self.taken > 1:
            yield f"{self.taken} orders"
        if self.case.confirm and (self.statuses[-1], self.taken) != ("passed", 1):
            yield f"with `confirm` {self.statuses}, {self.taken} orders: {self.why}"
        # Any answer counts, also from a failing server; a request that a script sends after a click is awaited where
        # `verify` or `confirm` needs it.
        believed = self.case.fault in ("error", "failed") or self.case.action == "fetch"
        if self.statuses[-1] == "passed" and not self.taken and not (believed and not self.case.verify):
            yield "passed, and there is no order"


@contextlib.contextmanager
def without_proof() -> Generator[None]:
    """Control: an engine that treats an action as not begun unless Playwright's call log says that it was performed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            playwright_errors, "only_waited", lambda error: not re.search(r"performing .* action", error.message)
        )
        do = Tab._do
        patched.setattr(Tab, "_do", lambda tab, *given, **more: do(tab, *given, **{**more, "sends": False}))
        yield


def wrong(lived: Iterable[Lived]) -> dict[str, list[str]]:
    """The cases with broken promises, and these."""
    return {str(each.case): found for each in lived if (found := list(each.wrong()))}


async def side_by_side(cases: Iterable[Case], live: Callable[[Case], Awaitable[_T]], at_once: int = 9) -> list[_T]:
    """Run cases, so many concurrently: they mostly wait."""
    room, one_drag = asyncio.Semaphore(at_once), asyncio.Semaphore()

    async def one(case: Case) -> _T:
        # Chromium does the drags of one browser one after the other, and each of them more slowly.
        async with one_drag if case.action == "drag" else contextlib.nullcontext(), room:
            return await live(case)

    return await asyncio.gather(*map(one, cases))


async def live_all(cases: Iterable[Case], orders: Orders, folder: Path) -> list[Lived]:
    """Run cases concurrently, and resume each while useful."""
    return await side_by_side(cases, lambda case: live(case, orders, folder / str(case)))


def begun(case: Case, orders: Orders, folder: Path, text: str, settings: Settings | None = None) -> Live:
    """The rig of a case, with its pages served."""
    orders.offer(case)
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "paper.txt").write_text("a paper")
    return Live(
        folder / "kept", text, file=str(project / "test.yaml"), inputs={"base": orders.site.origin}, settings=settings
    )


async def live(case: Case, orders: Orders, folder: Path) -> Lived:
    """Run a case, and resume it while useful."""
    return await lived(begun(case, orders, folder, case.text), case, orders)


async def lived(rig: Live, case: Case, orders: Orders) -> Lived:
    """Run what was begun, and resume it while useful."""
    ended = await rig.start()
    statuses = [ended.status]
    if case.fault == "slow":
        await orders.finished(case.ref)
    if ended.status == "failed" or (ended.status == "paused" and case.confirm):
        ended = await resumed(rig, statuses)
    if (ended.question or {}).get("evidence", {}).get("unanswered") and case.confirm and not orders.taken[case.ref]:
        # The silence of the site proves nothing: a person looks at the site and decides.
        rig.die()
        now(run_index.decide(file_store.FileStore(rig.home), rig.id, "not-done"))
        ended = await resumed(rig, statuses)
    rig.die()
    await orders.finished(case.ref)
    return Lived(case, list(statuses), orders.taken[case.ref], str(ended.error or ended.question or ""))


async def resumed(rig: Rig, statuses: list[str]) -> events.RunEnded:
    """Resume while useful; its end, with each status added to ``statuses``."""
    while True:
        rig.die()
        ended = await rig.resume()
        statuses.append(ended.status)
        if ended.status != "failed" or len(statuses) > MOST_RESUMES:
            return ended
