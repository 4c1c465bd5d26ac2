"""Guard on origins: no document loads from an origin that the workflow does not allow.

It uses the DevTools domain ``Fetch`` on our own connection to the browser. Once started, it sees every document request of
every tab, frame and popup, and every redirect, before it is sent. Playwright's ``route`` would miss redirects and turn the
cache off.

If the connection is lost, Chromium continues unguarded; so the owner of the browser ends it at once (``on_lost``).
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
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
    """Origins that one browser context may load, and the first refusal there."""

    def __init__(
        self, allowed: Iterable[str], credentials: Sequence[Credentials] = (), hints: Mapping[str, str] | None = None
    ) -> None:
        """``hints``: values for the headers of these names, in the documents' requests that have them."""
        self.hints = hints or {}
        self._every = origins.Allowed(allowed)
        self.allowed = self._every
        self._credentials = credentials
        self.changed: Callable[[], None] = lambda: None
        """Called after other origins are allowed than before."""
        self._refused: OriginRefused | None = None
        self._answered: set[str] = set()

    @property
    def signs_in(self) -> bool:
        """True if there are credentials for sites that ask for them."""
        return any(not each.of_proxy for each in self._credentials)

    def check(self, url: str, kind: str) -> bool:
        """Return True if a document may load from ``url``; otherwise keep the first refusal for ``refusal``."""
        if self.allowed.document(url):
            return True
        if self._refused is None:
            self._refused = refused(url, self.allowed, kind)
        return False

    def confine(self, allowed: Sequence[str] | None, file: str) -> None:
        """Allow only these of the original origins, because ``file`` allows no others; None allows all of them again."""
        some = origins.Allowed((each for each in allowed or () if each in self._every), file)
        self.allowed = self._every if allowed is None else some
        self.changed()

    def allow(self, allowed: Iterable[str]) -> None:
        """Allow these origins and no others from now on. Only the code that opened the browser may call it."""
        self._every = self.allowed = origins.Allowed(allowed)
        self.changed()

    def credentials(self, request: str, challenge: Params) -> Credentials | None:
        """Return the credentials for a site or proxy that asks; None if none match, or they were already sent."""
        # A site asks again only if the answer was wrong, and there is no better one.
        if request in self._answered:
            return None
        of_proxy = challenge.get("source") == "Proxy"
        for known in self._credentials:
            if known.of_proxy == of_proxy and (of_proxy or challenge["origin"] in self.allowed):
                self._answered.add(request)
                return known
        return None

    def refusal(self) -> OriginRefused | None:
        error, self._refused = self._refused, None
        return error


def refused(url: str, allowed: origins.Allowed, kind: str, phase: Phase = "after") -> OriginRefused:
    origin = origins.origin(url) or f"{url.partition(':')[0]}:"
    address = origins.without_query(url)
    evidence: dict[str, Json] = {"address": address, "origin": origin, "allowed": list(allowed), "kind": kind}
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


_NO_HINTS: Mapping[str, str] = {}


class Guard:
    def __init__(
        self, connection: devtools_connection.Wire, on_lost: Callable[[], None], *, everything: bool = True
    ) -> None:
        """``everything``: no document loads in a context without a guarded target. False if others use the browser too."""
        self._connection = connection
        self._everything = everything
        self._allowed: dict[str, GuardedTarget] = {}
        self._everywhere: GuardedTarget | None = None
        self._targets: dict[str, Params] = {}
        self._contexts: dict[str, str] = {}  # browser context of frames that are not targets themselves
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost = False
        self._on_lost = on_lost
        self._headers: dict[str, str] = {}

    async def start(self, headers: dict[str, str] | None = None) -> None:
        """Start to guard: no document loads unseen. ``headers`` go with all requests."""
        self._headers = headers or {}
        connection = self._connection
        connection.on_gone = self._gone
        connection.on("Fetch.requestPaused", self._paused)
        connection.on("Fetch.authRequired", self._auth_required)
        connection.on("Target.targetCreated", self._target)
        connection.on("Target.targetInfoChanged", self._target)
        connection.on("Target.targetDestroyed", self._target_gone)
        connection.post("Target.setDiscoverTargets", {"discover": True})
        await self._enable({"requestStage": "Request", "resourceType": "Document"})

    async def _enable(self, pattern: Params) -> None:
        await self._connection.send("Fetch.enable", {"patterns": [pattern], "handleAuthRequests": True})

    async def guarded(
        self,
        allowed: Iterable[str],
        credentials: Sequence[Credentials] = (),
        hints: Mapping[str, str] | None = None,
        context: str | None = None,
    ) -> GuardedTarget:
        """Let documents of these origins load in one browser context, or in all of them without ``context``."""
        guarded = GuardedTarget(allowed, credentials, hints)
        if credentials:
            # Any request may be challenged for a password, so from now on all of them pass the guard.
            await self._enable({"requestStage": "Request"})
        if context is None:
            self._everywhere = guarded
        else:
            self._allowed[context] = guarded
        return guarded

    def dismiss(self, context: str) -> None:
        self._allowed.pop(context, None)
        self._contexts = {frame: known for frame, known in self._contexts.items() if known != context}

    def _gone(self) -> None:
        self.lost = True
        self._on_lost()

    def _target(self, params: Params, _session: str) -> None:
        info = params["targetInfo"]
        self._targets[info["targetId"]] = info

    def _target_gone(self, params: Params, _session: str) -> None:
        self._targets.pop(params["targetId"], None)

    def _paused(self, params: Params, _session: str) -> None:
        if params.get("resourceType") != "Document":
            self._continue(params)
        elif self._everywhere is not None:
            self._decide(params, self._everywhere)
        else:
            self._spawn(self._decide_later(params))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _decide_later(self, params: Params) -> None:
        self._decide(params, await self._guarded_of(params["frameId"]))

    def _decide(self, params: Params, guarded: GuardedTarget | None) -> None:
        loads = not self._everything if guarded is None else guarded.check(params["request"]["url"], self._kind(params))
        if loads:
            self._continue(params, guarded.hints if guarded is not None else {})
        else:
            failure = {"requestId": params["requestId"], "errorReason": "BlockedByClient"}
            self._connection.post("Fetch.failRequest", failure)

    def _continue(self, params: Params, hints: Mapping[str, str] = _NO_HINTS) -> None:
        answer: Params = {"requestId": params["requestId"]}
        if self._headers or hints:
            names = {name.lower() for name in self._headers}
            given = {name: value for name, value in params["request"]["headers"].items() if name.lower() not in names}
            # A tab that opens by itself sends its first request before it is set up.
            sent = {name: hints.get(name.lower(), value) for name, value in given.items()}
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
        return self._everywhere or self._allowed.get(await self.context_of_frame(frame))

    async def context_of_frame(self, frame: str) -> str:
        """Return the browser context of a frame; empty if it is unknown."""
        target = self._targets.get(frame)
        if target is not None:
            return str(target.get("browserContextId", ""))
        if frame not in self._contexts:
            # This keeps only the frames that exist now.
            self._contexts = await self._map_frames()
        return self._contexts.get(frame, "")

    async def _map_frames(self) -> dict[str, str]:
        """Ask our tabs and foreign frames for their frames: the protocol does not report the tab of a frame."""
        found: dict[str, str] = {}
        for target in list(self._targets.values()):
            if target["type"] not in ("page", "iframe") or not self._may_ask(target):
                continue
            try:
                found.update(dict.fromkeys(await self._frames(target), str(target.get("browserContextId", ""))))
            except devtools_connection.Refused:
                continue
            except devtools_connection.Disconnected:
                break
        return found

    def _may_ask(self, target: Params) -> bool:
        """Return False for the tabs of others, which may wait in a dialog for a person."""
        return self._everything or target.get("browserContextId") in self._allowed

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

    def _auth_required(self, params: Params, _session: str) -> None:
        self._spawn(self._answer(params))

    async def _answer(self, params: Params) -> None:
        guarded = await self._guarded_of(params["frameId"])
        known = guarded.credentials(params["requestId"], params["authChallenge"]) if guarded is not None else None
        # By default Chromium would ask a person. Show the site's answer to a request without a password instead.
        answer: Params = {"response": "CancelAuth" if guarded is not None or self._everything else "Default"}
        if known is not None:
            answer = {"response": "ProvideCredentials", "username": known.username, "password": known.password}
        said: Params = {"requestId": params["requestId"], "authChallengeResponse": answer}
        self._connection.post("Fetch.continueWithAuth", said)

    async def tabs(self, context: str | None) -> frozenset[str]:
        """Return the present tabs in one browser context, or in all without ``context``, before Playwright reports them."""
        try:
            # Once this is answered, all earlier events have arrived.
            await self._connection.send("Browser.getVersion")
        except devtools_connection.Disconnected:
            return frozenset()
        return frozenset(
            tab
            for tab, info in self._targets.items()
            # Chromium also calls preloaded documents a page.
            if info["type"] == "page" and not info.get("subtype") and context in (None, info.get("browserContextId"))
        )

    async def network_process(self) -> int | None:
        """Return the process id of Chromium's network process; None if unknown. If that process is dying, the answer may not come."""
        try:
            # The network process answers this first command itself: a dead one stays listed until Chromium needs another.
            ours = next(iter(self._allowed), None)
            await self._connection.send("Storage.getCookies", {"browserContextId": ours} if ours else None)
            info = await self._connection.send("SystemInfo.getProcessInfo")
        except (devtools_connection.Disconnected, devtools_connection.Refused):
            return None
        return max((each["id"] for each in info["processInfo"] if each["type"].startswith("network.")), default=None)

    def context_of(self, tab: str) -> str:
        return str(self._targets[tab]["browserContextId"])

    async def close(self) -> None:
        """Stop guarding; the caller ends the browser or hands it to its next owner."""
        for task in self._tasks:
            task.cancel()
        await self._connection.close()


def lost() -> InternalError:
    return InternalError(
        "guard-lost",
        "the guard on origins lost its connection to the browser, so the browser was ended",
        fix="continue with `runops resume`",
    )
