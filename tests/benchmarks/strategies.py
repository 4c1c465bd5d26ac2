"""Tokens of all requests in a session of 40 messages on the shop, by strategy, counted by a real tokenizer.

The session builds a workflow of 15 nodes. At 20 of the messages the model needs something agreed on, built or seen before: it answers from the
request, or calls the tool for it. Where neither has it, the measurement fails.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from director.conversation import reply
from director.draft import draft as drafts
from director.session import events
from director.session.state import SessionState
from director.subjects import files
from director.tools.toolbox import CHANGED, Toolset
from nodes.errors import RunOpsError
from nodes.values import Json
from runtime import version
from runtime.browser import open as open_browser
from runtime.browser import session
from runtime.browser.page import tab
from runtime.context import limits, summaries, window
from runtime.log import entries
from runtime.log import session as log_session
from runtime.log.writer import LogWriter
from runtime.messages.messages import Answer, Message, Request, Tool, ToolCall, ToolOutput, Usage
from runtime.models.client import client
from runtime.models.turns import turn
from runtime.observation import page_text
from runtime.secrets import masking
from runtime.settings import settings
from runtime.testing import memory_store
from tests import browsers, shop_process, talks
from tests.benchmarks import building
from tests.now import now

SHOWN = 5_000
"""Characters of an observation: the limit for an agent."""


DEADLINE = 60
"""Timeout of one observation in seconds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one session."""

    tokens: int
    """Tokens of all requests: instructions, tool schemas, the conversation, and the state beside it."""
    sent: int
    """Those of them that are sent: not the part of a conversation that the server has stored."""
    requests: int
    in_request: int
    """Number of needs that the request itself satisfied."""
    fetched: int
    """Number of needs that a tool satisfied."""
    summaries: int


CHAINED = "clean, stored"
"""The way ``clean`` with a server that stores requests, so that each continues the one before."""

WAYS: Mapping[str, window.Strategy] = {"injected": "injected", "clean": "clean", "hybrid": "hybrid", CHAINED: "clean"}


async def measure(folder: Path, words: int = building.WORDS) -> Mapping[str, Cost]:
    """The same session in each way, in its default settings; the first ``words`` of it."""
    folder.mkdir()
    found: dict[str, Cost] = {}
    with shop_process.Shop.start(folder) as shop:
        browser = await open_browser.open_browser(None, origins=[shop.url], private=folder, settings=browsers.Chosen())
        try:
            browser.bound(DEADLINE)
            await _sign_in(browser.page, shop)
            for way, strategy in WAYS.items():
                session_of = _Session(folder / way, strategy, browser, shop.url, stores=way == CHAINED)
                found[way] = await session_of.run(words)
        finally:
            await browser.close()
    return found


async def _sign_in(driven: tab.Tab, shop: shop_process.Shop) -> None:
    await driven.goto(f"{shop.url}/login")
    await driven.page.get_by_label("Username").fill("admin")
    await driven.page.get_by_label("Password").fill(shop.password)
    await driven.page.get_by_role("button", name="Sign in").click()
    await driven.page.wait_for_url("**/orders")


class _Session:
    """A session led by our model."""

    def __init__(
        self, folder: Path, strategy: window.Strategy, browser: session.Session, shop: str, *, stores: bool
    ) -> None:
        store = memory_store.MemoryStore(folder)
        header = entries.SessionHeader(purpose="chat", versions=version.versions())
        self._writer = LogWriter(now(store.create("s")), log_session.Session(), masking.Masker({}), store.reader)
        self._writer.scope("", "opened", "session", session=header)
        self._state = SessionState(self._writer)
        self._browser, self._shop = browser, shop
        self._requests: list[Request] = []
        self._known: list[int] = []
        self._steps: Iterator[building.Step] = iter(())
        self._needs: str | None = None
        self._in_request = self._fetched = self._calls = 0
        chosen = settings.Settings(model="m", model_base_url="http://127.0.0.1:9", window_strategy=strategy)
        self._talk = reply.Talk(
            self._state,
            _Building(self._state, browser.page),
            _Models(self._answer, self._requests, self._known, stores=stores),
            chosen,
            events.Listener(),
            lambda: limits.of_session(self._writer.history, self._writer, chosen),
            more=[_Toolset(_LOOK, self._look), _Toolset(_ADD, self._add)],
        )
        self._talk.mode = "agent"

    async def run(self, words: int) -> Cost:
        """Lead it, message by message. Fails where neither a request nor its tool has what is needed."""
        for number in range(1, words + 1):
            word, steps = building.word(number)
            self._steps = iter(steps)
            await self._talk.say(word)
        draft = self._state.draft
        assert draft is not None
        assert len(draft.loaded.workflow.nodes) == sum(number <= words for number in building.BUILT_AT)
        assert self._in_request + self._fetched == sum(number <= words for number in building.NEEDS)
        sums = sum(each.instructions.startswith(summaries.PROMPT[:30]) for each in self._requests)
        tokens = sum(map(_tokens, self._requests))
        sent = sum(map(_tokens, self._requests, self._known))
        return Cost(tokens, sent, len(self._requests), self._in_request, self._fetched, sums)

    async def _look(self, arguments: dict[str, Json]) -> str:
        self._browser.bound(DEADLINE)
        try:
            await self._browser.page.goto(f"{self._shop}{arguments['path']}")
            return page_text.fenced((await self._browser.page.look()).render(SHOWN))
        except RunOpsError as error:
            # Unrelated to the model of this session: with other pages other tokens are measured.
            raise AssertionError(f"{arguments['path']} could not be looked at: {error}") from None

    async def _add(self, arguments: dict[str, Json]) -> str:
        node, before = str(arguments["yaml"]), self._state.draft
        draft = before.with_nodes(node) if before is not None else drafts.Draft.begun(building.HEAD, node)
        self._state.write_draft(draft, reason=str(arguments["reason"]))
        return f"Added as {len(draft.loaded.workflow.nodes)}."

    def _answer(self, request: Request) -> Answer:
        """The next of the model's steps, under an id of its own."""
        return dataclasses.replace(self._step(request), id=f"resp_{len(self._requests)}")

    def _step(self, request: Request) -> Answer:
        if request.instructions.startswith(summaries.PROMPT[:30]):
            return talks.said(building.summary(each.text for each in request.items if isinstance(each, Message)))
        if self._needs is not None:
            output = request.items[-1]
            assert isinstance(output, ToolOutput)
            assert self._needs in output.text, f"{self._needs!r} is not told by the tool for it: {output.text}"
            self._needs = None
            self._fetched += 1
        for step in self._steps:
            match step:
                case building.Need(fact) if fact in _text(request):
                    self._in_request += 1
                case building.Need(fact, name, arguments):
                    self._needs = fact
                    return self._asks(name, arguments)
                case building.Do(name, arguments):
                    return self._asks(name, arguments)
                case building.Say(text):
                    return talks.said(text)
        raise AssertionError("each word ends with an answer")

    def _asks(self, name: str, arguments: dict[str, Json]) -> Answer:
        self._calls += 1
        call = ToolCall(f"call_{self._calls:024}", name, json.dumps(arguments))
        return Answer("", Usage(0, 0, 0, 0), "m", calls=(call,))


class _Client(talks.Client):
    """A client of a server that may have stored a part of each request."""

    def __init__(self, answers: talks.Model, requests: list[Request], known: list[int]) -> None:
        super().__init__(answers, requests)
        self._known = known

    @override
    async def ask(
        self, request: Request, seconds: float, options: client.ClientOptions, progress: Callable[[str], None]
    ) -> Answer:
        self._known.append(options.known)
        return await super().ask(request, seconds, options, progress)


class _Models(talks.Supply):
    """Models of a server that stores requests, or does not."""

    def __init__(self, answers: talks.Model, requests: list[Request], known: list[int], *, stores: bool) -> None:
        super().__init__(answers, requests)
        self.asks = _Client(answers, requests, known)
        self._stores = stores

    @property
    @override
    def store(self) -> bool:
        return self._stores

    @property
    @override
    def chains(self) -> bool:
        return self._stores


class _Building(files.DraftSubject):
    """The draft, and the browser for observations."""

    def __init__(self, state: SessionState, driven: tab.Tab) -> None:
        super().__init__(state)
        self._page = driven

    @override
    def browser_state(self) -> str:
        return f"- main {self._page.page.url}"


def _object(*names: str) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {name: {"type": ["string", "null"]} for name in names},
        "required": list[Json](names),
        "additionalProperties": False,
    }


_LOOK = Tool("look", "Opens a page of the shop, and says what stands on it.", _object("path"))
_ADD = Tool("add_node", "Adds a node at the end of the workflow.", _object("yaml", "reason"))


class _Toolset(Toolset):
    """A tool of one session, in addition to the common ones."""

    def __init__(self, offered: Tool, do: Callable[[dict[str, Json]], Awaitable[str]]) -> None:
        super().__init__(offered, CHANGED)
        self.do = do

    @override
    async def take(self, arguments: dict[str, Json], place: turn.Place) -> turn.Outcome:
        text = await self.do(arguments)
        return turn.Outcome(text, text)


# The text of a request and its size.


def _text(request: Request) -> str:
    """All text of the request."""
    return "\n".join([request.instructions, *map(_said, request.items), request.state])


def _said(item: object) -> str:
    match item:
        case ToolCall(_, name, arguments):
            return f"{name} {' '.join(str(each) for each in json.loads(arguments).values())}"
        case Message() | ToolOutput():
            return item.text
        case _:
            raise AssertionError("a request has words, calls and outputs")


def _tokens(request: Request, known: int = 0) -> int:
    """Tokens of a request, without so many items that the server knows."""
    texts = [request.instructions, request.state]
    for item in request.items[known:]:
        match item:
            case ToolCall():
                texts += [item.id, item.name, item.arguments]
            case Message() | ToolOutput():
                texts.append(item.text)
            case _:
                raise AssertionError("its model has no reasoning")
    texts += [json.dumps([each.name, each.description, each.parameters]) for each in request.tools]
    return sum(map(_real, texts))


@functools.cache
def _encoding() -> Any:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        import bpe_openai  # it opens its tables with a deprecated call

        return bpe_openai.get_encoding("o200k_base")


@functools.lru_cache(maxsize=1 << 14)
def _real(text: str) -> int:
    """Tokens of a text, as OpenAI's models read it."""
    return len(_encoding().encode_ordinary(text))
