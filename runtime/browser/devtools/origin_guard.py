"""The guard on origins: no document loads from an origin that the workflow does not allow.

It stands inside Chromium's network stack by the DevTools protocol's ``Fetch`` domain, on a connection of our own to the browser itself:
from its first answer on it sees every document request of every tab, frame and popup, and every hop of a redirect, before it is sent.
Playwright's ``route`` would miss redirects and turn the cache off.

When the connection is lost Chromium goes on without the guard; so whoever owns the browser ends it at once (``on_lost``).
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from nodes.errors import InternalError, OriginRefused, Phase
from nodes.values import Json
from runtime.browser import origins
from runtime.browser.devtools import connection as devtools_connection

Params = devtools_connection.Params


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """Name and password for HTTP authentication: for allowed sites, or for the proxy."""

    username: str
    password: str
    of_proxy: bool = False


class GuardedTarget:
    """What the guard allows one browser context, and what it refused there."""

    def __init__(self, allowed: Iterable[str], credentials: Sequence[Credentials] = ()) -> None:
        self._every = origins.Allowed(allowed)
        self.allowed = self._every
        self._credentials = credentials
        self._refused: OriginRefused | None = None
        self._answered: set[str] = set()

    def check(self, url: str, kind: str) -> bool:
        """Whether a document may load from ``url``; what is refused is kept for ``refusal``, the first of several."""
        if self.allowed.document(url):
            return True
        if self._refused is None:
            self._refused = refused(url, self.allowed, kind)
        return False

    def confine(self, allowed: Sequence[str] | None, file: str) -> None:
        """Allow only these of the origins that it was made with, because ``file`` allows no others; None for all of them again."""
        some = origins.Allowed((each for each in allowed or () if each in self._every), file)
        self.allowed = self._every if allowed is None else some

    def allow(self, allowed: Iterable[str]) -> None:
        """From now on allow these origins, and no others: whoever opened the browser says so."""
        self._every = self.allowed = origins.Allowed(allowed)

    def credentials(self, request: str, challenge: Params) -> Credentials | None:
        """What to answer a site or a proxy that asks for a name and a password; None where nothing is known, or was answered already."""
        # A request is asked again when the answer was wrong: then there is nothing better to say.
        if request in self._answered:
            return None
        of_proxy = challenge.get("source") == "Proxy"
        for known in self._credentials:
            if known.of_proxy == of_proxy and (of_proxy or challenge["origin"] in self.allowed):
                self._answered.add(request)
                return known
        return None

    def refusal(self) -> OriginRefused | None:
        """What was refused since this was last asked."""
        error, self._refused = self._refused, None
        return error


def refused(url: str, allowed: origins.Allowed, kind: str, phase: Phase = "after") -> OriginRefused:
    """The error for a document from an origin that is not allowed."""
    origin = origins.origin(url) or f"{url.partition(':')[0]}:"
    listed = list(allowed)
    evidence: dict[str, Json] = {
        "address": origins.without_query(url),
        "origin": origin,
        "allowed": listed,
        "kind": kind,
    }
    if allowed.file is not None:
        evidence["file"] = allowed.file
    return OriginRefused(
        "origin-refused",
        f"a document from {origin} is not allowed {f'in {allowed.file}' if allowed.file else 'here'} ({kind})",
        fix=f"if it belongs to the work, add {origin} to allowed_origins"
        + (f" of {allowed.file} and of the files that use it" if allowed.file else ""),
        phase=phase,
        evidence=evidence,
    )


class Guard:
    """The guard of one Chromium."""

    def __init__(self, connection: devtools_connection.Connection, on_lost: Callable[[], None]) -> None:
        self._connection = connection
        self._wards: dict[str, GuardedTarget] = {}
        self._everywhere: GuardedTarget | None = None
        self._targets: dict[str, Params] = {}
        self._contexts: dict[str, str] = {}
        """Browser context of frames that are no targets of their own."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost = False
        self._on_lost = on_lost
        self._headers: dict[str, str] = {}

    async def start(self, headers: dict[str, str] | None = None) -> None:
        """From the return of this on no document loads unseen; and where no ward is known, none loads at all.

        ``headers`` go with every request that passes by here.
        """
        self._headers = headers or {}
        connection = self._connection
        connection.on_gone = self._gone
        connection.on("Fetch.requestPaused", self._paused)
        connection.on("Fetch.authRequired", self._asked)
        connection.on("Target.targetCreated", self._target)
        connection.on("Target.targetInfoChanged", self._target)
        connection.on("Target.targetDestroyed", self._target_gone)
        connection.post("Target.setDiscoverTargets", {"discover": True})
        await self._enable({"requestStage": "Request", "resourceType": "Document"})

    async def _enable(self, pattern: Params) -> None:
        await self._connection.send("Fetch.enable", {"patterns": [pattern], "handleAuthRequests": True})

    async def guarded(
        self, allowed: Iterable[str], credentials: Sequence[Credentials] = (), context: str | None = None
    ) -> GuardedTarget:
        """Let documents of these origins load in one browser context, or in all where none is named."""
        guarded = GuardedTarget(allowed, credentials)
        if credentials:
            # Anything may be asked for a password, so from now on everything passes by here.
            await self._enable({"requestStage": "Request"})
        if context is None:
            self._everywhere = guarded
        else:
            self._wards[context] = guarded
        return guarded

    def dismiss(self, context: str) -> None:
        """A browser context is closed."""
        self._wards.pop(context, None)
        self._contexts = {frame: known for frame, known in self._contexts.items() if known != context}

    @property
    def lost(self) -> bool:
        """Whether the connection was lost: documents are no longer guarded."""
        return self._lost

    def _gone(self) -> None:
        self._lost = True
        self._on_lost()

    def _target(self, params: Params, _session: str) -> None:
        info = params["targetInfo"]
        self._targets[info["targetId"]] = info

    def _target_gone(self, params: Params, _session: str) -> None:
        self._targets.pop(params["targetId"], None)

    def _paused(self, params: Params, _session: str) -> None:
        if params.get("resourceType") != "Document":
            self._let(params)
        elif self._everywhere is not None:
            self._judge(params, self._everywhere)
        else:
            self._spawn(self._judge_later(params))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _judge_later(self, params: Params) -> None:
        self._judge(params, await self._guarded_of(params["frameId"]))

    def _judge(self, params: Params, guarded: GuardedTarget | None) -> None:
        if guarded is not None and guarded.check(params["request"]["url"], self._kind(params)):
            self._let(params)
        else:
            failure = {"requestId": params["requestId"], "errorReason": "BlockedByClient"}
            self._connection.post("Fetch.failRequest", failure)

    def _let(self, params: Params) -> None:
        answer: Params = {"requestId": params["requestId"]}
        if self._headers:
            names = {name.lower() for name in self._headers}
            sent = {name: value for name, value in params["request"]["headers"].items() if name.lower() not in names}
            answer["headers"] = [{"name": name, "value": value} for name, value in (sent | self._headers).items()]
        self._connection.post("Fetch.continueRequest", answer)

    def _kind(self, params: Params) -> str:
        if params.get("redirectedRequestId"):
            return "redirect"
        target = self._targets.get(params["frameId"])
        if target is None or target["type"] != "page":
            return "sub frame"
        is_new = target.get("openerId") is not None and origins.is_blank(target["url"])
        return "popup" if is_new else "main frame"

    async def _guarded_of(self, frame: str) -> GuardedTarget | None:
        return self._everywhere or self._wards.get(await self.context_of_frame(frame))

    async def context_of_frame(self, frame: str) -> str:
        """The browser context that a frame belongs to; empty where nobody knows it (any more)."""
        target = self._targets.get(frame)
        if target is not None:
            return str(target.get("browserContextId", ""))
        if frame not in self._contexts:
            # Only frames that are there now are kept.
            self._contexts = await self._map_frames()
        return self._contexts.get(frame, "")

    async def _map_frames(self) -> dict[str, str]:
        """Ask every tab and foreign frame for the frames in it: the protocol names a frame, but not where it stands."""
        found: dict[str, str] = {}
        for target in list(self._targets.values()):
            if target["type"] not in ("page", "iframe"):
                continue
            try:
                found.update(dict.fromkeys(await self._frames(target), str(target.get("browserContextId", ""))))
            except devtools_connection.Refused:
                continue
            except devtools_connection.Disconnected:
                break
        return found

    async def _frames(self, target: Params) -> list[str]:
        attach = {"targetId": target["targetId"], "flatten": True}
        session = (await self._connection.send("Target.attachToTarget", attach))["sessionId"]
        found: list[str] = []
        trees = [(await self._connection.send("Page.getFrameTree", session=session))["frameTree"]]
        while trees:
            tree = trees.pop()
            found.append(tree["frame"]["id"])
            trees.extend(tree.get("childFrames", ()))
        self._connection.post("Target.detachFromTarget", {"sessionId": session})
        return found

    def _asked(self, params: Params, _session: str) -> None:
        self._spawn(self._answer(params))

    async def _answer(self, params: Params) -> None:
        guarded = await self._guarded_of(params["frameId"])
        known = guarded.credentials(params["requestId"], params["authChallenge"]) if guarded is not None else None
        # Left to itself Chromium would ask a person. The site's answer to who has no password is shown instead.
        answer: Params = {"response": "CancelAuth"}
        if known is not None:
            answer = {"response": "ProvideCredentials", "username": known.username, "password": known.password}
        said: Params = {"requestId": params["requestId"], "authChallengeResponse": answer}
        self._connection.post("Fetch.continueWithAuth", said)

    async def tabs(self, context: str | None) -> frozenset[str]:
        """The tabs that are there now in one browser context, or in all where none is named; none where the connection is lost.

        A tab counts from the moment on at which something opens it. Playwright tells of it later, once it has been set up.
        """
        try:
            # Whatever has happened before this is answered is told of before the answer.
            await self._connection.send("Browser.getVersion")
        except devtools_connection.Disconnected:
            return frozenset()
        return frozenset(
            tab
            for tab, info in self._targets.items()
            # What Chromium loads ahead is called a page as well.
            if info["type"] == "page" and not info.get("subtype") and context in (None, info.get("browserContextId"))
        )

    async def network_process(self) -> int | None:
        """The process id of Chromium's network process; None where nobody can say. One that is about to die may keep it from being told."""
        try:
            # It answers the first itself, if it lives: one that has died stays in the list until Chromium needs another one.
            await self._connection.send("Storage.getCookies")
            info = await self._connection.send("SystemInfo.getProcessInfo")
        except (devtools_connection.Disconnected, devtools_connection.Refused):
            return None
        return max((each["id"] for each in info["processInfo"] if each["type"].startswith("network.")), default=None)

    def context_of(self, tab: str) -> str:
        """The browser context of a tab."""
        return str(self._targets[tab]["browserContextId"])

    async def close(self) -> None:
        """Stop guarding; the browser is to be ended, or given to its next owner."""
        for task in self._tasks:
            task.cancel()
        await self._connection.close()


def lost() -> InternalError:
    """Documents are not guarded any more: nothing further is done."""
    return InternalError(
        "guard-lost",
        "the guard on origins lost its connection to the browser, so the browser was ended",
        fix="go on with `runops resume`",
    )
