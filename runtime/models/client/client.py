"""Wrapper of the ``openai`` client: takes a ``Request``, returns an ``Answer`` or raises ``Failed``.

One call here is one try. The client's own retries are off: they would pay for a request twice without a record of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, NoReturn

import httpx2
import openai
import pydantic
from openai.types import responses

from nodes.errors import ModelError, RunOpsError, SetupError
from nodes.values import Json
from runtime.display.text import cut
from runtime.messages import plain_schemas
from runtime.messages.messages import Answer, Item, Message, Request, Thought, Tool, ToolCall, ToolOutput
from runtime.models.client import parsing, profiles
from runtime.models.client.errors import Failed, retry_after
from runtime.secrets.masking import SHORTEST, Masker
from runtime.settings import addresses

Progress = Callable[[str], None]  # called with each piece of the answer's text, as it arrives
STALL_SECONDS = 60.0  # maximum pause within a streamed answer
CONNECT_SECONDS = 5.0  # time to connect
END_SECONDS = 1.0  # time for a stream to close after its last event
CANCEL_SECONDS = 5.0  # time for cancelling a background response
SEALED = "reasoning.encrypted_content"


@dataclasses.dataclass(frozen=True, slots=True)
class ClientOptions:
    store: bool = False  # true to let the server keep the response. Always sent: servers have different defaults
    previous: str | None = None
    known: int = 0  # number of the request's items that the stored response contains; only the others are sent
    sealed: bool = False  # true to ask for the model's reasoning in encrypted form, so that a later request can hold it
    patient: bool = False  # true if a stream may pause as long as the request may take


def trusted() -> ssl.SSLContext:
    """Return the trusted certificates. They are read only once, as that can take longer than a request to a server nearby."""
    return _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@functools.cache
def _trusted(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    # The arguments are only the key of the cache: httpx reads these variables itself.
    return httpx2.create_ssl_context()


class Client:
    """Requests to one server. ``close`` it at the end."""

    def __init__(self, base_url: str, key: str, profile: profiles.Profile) -> None:
        """Send nothing yet. ``profile`` has the server's capabilities. Raises ``BadAddress`` for an unusable address."""
        self.base_url = addresses.checked(base_url)
        self._key = key
        self._masker = Masker({"key": key} if len(key) >= SHORTEST else {})
        self._profile = profile
        http = openai.DefaultAsyncHttpxClient(verify=trusted())
        # A request ends with its own time limit; the library would end one without a sign after 10 minutes.
        limit = openai.Timeout(None, connect=CONNECT_SECONDS)
        self._client = openai.AsyncOpenAI(
            base_url=base_url, api_key=key, max_retries=0, timeout=limit, http_client=http
        )
        self._unsealed: set[str] = set()  # models that refuse to give their reasoning

    async def ask(
        self, request: Request, seconds: float, options: ClientOptions | None = None, progress: Progress | None = None
    ) -> Answer:
        """Return the answer, within ``seconds``. Raises Failed."""
        options = options or ClientOptions()
        heard = _Heard()
        body = self._body(request, options)
        async with self._failing(seconds, heard):
            if self._profile.streaming:
                pause = seconds if options.patient else STALL_SECONDS
                return await self._streamed(body, heard, progress, pause)
            return parsing.answer(_response(await self._create(body)))

    async def submit(self, request: Request, seconds: float, options: ClientOptions | None = None) -> str:
        """Start a request in the background, and return the id for fetching its answer. Raises Failed."""
        body = self._body(request, dataclasses.replace(options or ClientOptions(), store=True))
        async with self._failing(seconds, _Heard()):
            response = _response(await self._create({**body, "background": True}))
            return parsing.name(response) or _nonsense(response)

    async def fetch(self, response: str, seconds: float) -> Answer | None:
        """Return the answer of a background response; None while the server works on it. Raises Failed."""
        async with self._failing(seconds, _Heard()):
            found = _response(await self._client.responses.retrieve(response))
            if found.status in ("queued", "in_progress"):
                return None
            try:
                return parsing.answer(found)
            except Failed as failed:
                failed.over = True
                raise

    async def cancel(self, response: str) -> None:
        """Cancel a background response. Never raises, as no caller could act on it."""
        with contextlib.suppress(openai.OpenAIError, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._client.responses.cancel(response)

    async def models(self, seconds: float) -> dict[str, str | None]:
        """Return the models that the server lists, by name, each with its shutdown date, if any. Raises Failed, also for an empty list."""
        async with self._failing(seconds, _Heard()):
            # The client's own parser raises an AttributeError for an answer that is no object.
            raw = await self._client.models.with_raw_response.list()
            text = raw.http_response.text
            return dict(sorted((_listed(text) or _nonsense(text)).items()))

    async def close(self) -> None:
        await self._client.close()

    def _body(self, request: Request, options: ClientOptions) -> dict[str, Any]:
        items, instructions = list(request.items), request.instructions
        body: dict[str, Any] = {"model": request.model, "store": options.store, "max_output_tokens": request.max_output}
        if options.previous is not None:
            body["previous_response_id"] = options.previous
            items = items[options.known :]
        strict = request.strict and self._profile.schemas == "strict"
        if request.schema is not None:
            if self._profile.schemas == "none":
                instructions = f"{instructions}\n\n{in_words(request.schema)}"
            else:
                body["text"] = {
                    "format": {"type": "json_schema", "name": "answer", "schema": request.schema, "strict": strict}
                }
        if request.tools:
            body["tools"] = [_tool(each, strict) for each in request.tools]
        if instructions or request.brief:
            body["instructions"] = "\n\n".join(each for each in (instructions, request.brief) if each)
        body["input"] = [_item(each) for each in items]
        if options.sealed and self._profile.sealed and request.model not in self._unsealed:
            body["include"] = [SEALED]
        if request.state:
            body["input"].append({"role": "developer", "content": request.state})
        return body

    async def _create(self, body: dict[str, Any]) -> Any:
        """Send the request. A model that does not reason refuses to be asked for its reasoning: it is not asked again."""
        try:
            return await self._client.responses.create(**body)
        except openai.BadRequestError as error:
            if "include" not in body or not (error.param or "").startswith("include"):
                raise
            self._unsealed.add(body["model"])
            del body["include"]
            return await self._client.responses.create(**body)

    async def _streamed(self, body: dict[str, Any], heard: _Heard, progress: Progress | None, pause: float) -> Answer:
        """Stream the answer. Raises Failed if the stream ends before the response does, which the client itself does not report."""
        async with await self._create({**body, "stream": True}) as stream:
            events = aiter(stream)
            last = await _last(events, heard, progress, pause)
            with contextlib.suppress(TimeoutError, openai.OpenAIError):
                async with asyncio.timeout(END_SECONDS):
                    # A stream that is read to its end closes itself, and leaves nothing open.
                    async for _more in events:
                        pass
        if last.type == "error":
            message = self._plain(str(getattr(last, "message", None) or ""))
            raise parsing.failed(getattr(last, "code", None), message, heard.text, None)
        return parsing.answer(_response(last.response), heard.text)

    @contextlib.asynccontextmanager
    async def _failing(self, seconds: float, heard: _Heard) -> AsyncGenerator[None]:
        """Convert every error of the block to Failed, and end the block after ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            fix = "give it more time: `model_timeout` for one request, the node's `timeout` for all of them"
            message = f"the model did not answer within {seconds:.3g} s"
            raise self._failed(ModelError, "model-timeout", message, fix, again=True, partial=heard.text) from None
        except openai.APIStatusError as error:
            raise self._refused(error, heard) from None
        except openai.APIConnectionError as error:
            raise self._unreached(error, heard) from None
        except openai.APIError as error:
            # An `error` event that the client noticed itself, or a body that is not of the API's form.
            raise parsing.failed(error.code, self._plain(error.message), heard.text, None) from None
        except openai.OpenAIError as error:
            raise self._unusable(self._plain(str(error))) from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            # The client does not convert this error: an answer or event that is declared as JSON and is none.
            raise _broken(f"what the server sent is no JSON: {error}", heard) from None
        except UnicodeEncodeError:
            raise self._unusable("the key, or the address, has characters that no header can hold") from None
        except parsing.ODD as error:
            raise parsing.odd(error, heard.text) from None

    def _failed(self, of: type[RunOpsError], code: str, message: str, fix: str, **more: Any) -> Failed:
        """Build the failure; ``more`` are further fields of ``Failed``, and the ``evidence`` besides the address."""
        evidence: dict[str, Json] = {"server": self.base_url, **more.pop("evidence", {})}
        return Failed(of(code, message, fix=fix, evidence=evidence), **more)

    def _unusable(self, message: str) -> Failed:
        return self._failed(
            SetupError,
            "model-key-refused",
            f"the client cannot be used: {message}",
            "look at RUNOPS_MODEL_KEY and `model_base_url`",
            sent=False,
        )

    def _unreached(self, error: openai.APIConnectionError, heard: _Heard) -> Failed:
        cause = self._plain(str(error.__cause__ or error) or type(error.__cause__ or error).__name__)
        if heard.text:
            return _broken(f"the connection broke in the middle of the answer: {cause}", heard)
        return self._failed(
            ModelError,
            "model-unreachable",
            f"{self.base_url} does not answer: {cause}",
            "look at `model_base_url`, and whether the server runs; `runops doctor --model` asks it",
            again=True,
        )

    def _refused(self, error: openai.APIStatusError, heard: _Heard) -> Failed:
        """Convert an error status to an error with a fix for a person."""
        status, code, kind = error.status_code, parsing.word(error.code), parsing.word(error.type)
        headers: Mapping[str, str] = error.response.headers
        evidence: dict[str, Json] = {"status": status, **({"code": code} if code else {})}
        later: dict[str, Any] = {"again": True, "wait": retry_after(headers), "partial": heard.text}

        def refused(
            of: type[RunOpsError], name: str, said: str, fix: str, *, sent: bool = False, **more: Any
        ) -> Failed:
            message = f"{said}: {self._plain(error.message)}"
            return self._failed(of, name, message, fix, evidence=evidence, sent=sent, **more)

        match status:
            case 401 | 403:
                fix = "look at RUNOPS_MODEL_KEY (or OPENAI_API_KEY), and at what the key is allowed to do"
                return refused(SetupError, "model-key-refused", "the server refuses the key", fix)
            case 400 | 404 if code == "previous_response_not_found":
                fix = "the whole conversation is sent again; nothing is to be done"
                return refused(ModelError, "model-chain-lost", "the server has lost the response", fix)
            case _ if status == 404 or code == "model_not_found":
                fix = "set `model` to one that the server has; `runops doctor --model` lists them"
                fix += "" if code == "model_not_found" else ". Or fix `model_base_url`: it usually ends with /v1"
                return refused(SetupError, "model-unknown", "the server does not know the model, or the address", fix)
            case 429 if code in parsing.QUOTA_CODES or kind in parsing.QUOTA_CODES:
                fix = "look at the account's plan and bills: waiting does not fix this"
                return refused(ModelError, "model-quota", "the account has no quota left", fix)
            case 429:
                fix = "wait, ask for less at once, or for a higher limit"
                return refused(ModelError, "model-rate-limited", "the server has had too many requests", fix, **later)
            case _ if status in (408, 409, 425) or status >= 500:
                fix = "try again later; the provider's status page may say more"
                return refused(ModelError, "model-failed", f"the server failed with {status}", fix, sent=True, **later)
            case _:
                fix = "the message says what the server does not take; `runops doctor --model` finds out what it can"
                said = f"the server refuses the request with {status}"
                return refused(ModelError, "model-request-refused", said, fix)

    def _plain(self, message: str) -> str:
        """Return a server's message in one line, without the key in any form."""
        return self._masker.text(" ".join(self._masker.text(message).split()))


class _Heard(list[str]):
    """Pieces of an answer's text received so far."""

    @property
    def text(self) -> str:
        return "".join(self)


async def _last(events: AsyncIterator[Any], heard: _Heard, progress: Progress | None, pause: float) -> Any:
    """Return the event that ends the response, or the ``error`` that ends the stream. Raises Failed if neither comes, or none for ``pause`` seconds."""
    while True:
        try:
            async with asyncio.timeout(pause):
                event: Any = await anext(events)
        except StopAsyncIteration:
            raise _broken("the stream ended before the answer did", heard) from None
        except TimeoutError:
            raise _broken(f"the stream paused for {pause:g} s", heard) from None
        match getattr(event, "type", None):
            case "response.output_text.delta":
                # These pieces are only shown during the wait: the answer is parsed from the last event.
                piece = event.delta if isinstance(event.delta, str) else ""
                heard.append(piece)
                if progress is not None:
                    progress(piece)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "error":
                return event
            case _:
                pass


def _item(item: Item) -> dict[str, Json]:
    match item:
        case Message():
            return {"role": item.role, "content": item.text}
        case ToolCall():
            return {"type": "function_call", "call_id": item.id, "name": item.name, "arguments": item.arguments}
        case ToolOutput():
            return {"type": "function_call_output", "call_id": item.id, "output": _shown(item)}
        case Thought():
            # The summary is for people: the encrypted content has the whole thought.
            return {"type": "reasoning", "id": item.id, "summary": [], "encrypted_content": item.sealed}


def _shown(output: ToolOutput) -> Json:
    """Return the output of a call: its text, or a list of its text and its picture."""
    if output.picture is None:
        return output.text
    address = f"data:image/png;base64,{output.picture.data}"
    return [
        {"type": "input_text", "text": output.text},
        {"type": "input_image", "image_url": address, "detail": "high"},
    ]


def _tool(tool: Tool, strict: bool) -> dict[str, Json]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters if strict else plain_schemas.plain(tool.parameters),
        "strict": strict,
    }


def in_words(schema: Mapping[str, Json]) -> str:
    """Return a schema as part of a prompt, for servers that accept none."""
    return (
        f"Answer with JSON that fits this JSON Schema, and with nothing else:\n{json.dumps(schema, ensure_ascii=False)}"
    )


class _Named(pydantic.BaseModel):
    id: str
    shutdown_date: str | None = None


class _Listed(pydantic.BaseModel):
    data: list[_Named]


def _listed(text: str) -> dict[str, str | None]:
    """Parse a list of models; empty if the text is no such list."""
    try:
        return {each.id: each.shutdown_date for each in _Listed.model_validate_json(text).data}
    except pydantic.ValidationError:
        return {}


def _response(found: object) -> responses.Response:
    if not isinstance(found, responses.Response):
        _nonsense(found)
    return found


def _nonsense(found: object) -> NoReturn:
    seen = cut(" ".join(str(found).split()), 200)
    error = SetupError(
        "model-unknown",
        f"the server answers with something that is no response: {seen}",
        fix="look at `model_base_url`: it usually ends with /v1",
    )
    raise Failed(error)


def _broken(message: str, heard: _Heard) -> Failed:
    error = ModelError(
        "model-stream-broken",
        message,
        fix="try again later; a proxy between here and the server may cut long answers",
        evidence={"text": heard.text[-500:]} if heard.text else None,
    )
    return Failed(error, again=True, partial=heard.text)
