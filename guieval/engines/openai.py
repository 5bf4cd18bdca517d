"""Client of any server that speaks the OpenAI chat-completions protocol (vLLM, SGLang, llama.cpp, hosted APIs).

This is the hot path of a run, and what it must survive is servers: it bounds how much is in flight, how long a try may last
and how large an answer may be, and asks again where asking again can help. It leaves to the adapter what is said and how a
reply is read, and to the runner which screenshots are sent.

Bodies are written by :mod:`guieval.engines.chat_body`, answers read by :mod:`guieval.engines.chat_answers`. Which server gets
a request is :mod:`guieval.engines.routing`'s.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from guieval.engines import EndpointStats, with_try
from guieval.engines.chat_answers import (
    MAX_REPLY_BYTES,
    TryAgain,
    read_models,
    read_reply,
    seconds_to_wait,
    server_message,
    unpacked,
)
from guieval.engines.chat_body import ChatBody
from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.engines.connections import Connections
from guieval.engines.credentials import SHORTEST_REDACTED, api_key, base_url, secret_pattern
from guieval.engines.image_references import ImageReferences, Refusal, in_bytes
from guieval.engines.routing import Router, Server
from guieval.errors import EngineError, FatalEngineError, UsageError, nearest
from guieval.models import ImageForm, Reply, Request

RETRIED = frozenset({408, 409, 429})
"""Statuses below 500 after which the same request is sent again."""
_CHECK_TIMEOUT = 5.0


class OpenAISettings(BaseModel):
    """How to reach a model and how patient to be. All times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    base_urls: tuple[str, ...] = Field(
        min_length=1, description="where servers of the same model listen, e.g. http://host:8000/v1"
    )
    model: str | None = Field(None, description="name asked of the server; null to discover it")
    api_key_env: str = Field(
        "OPENAI_API_KEY", description="environment variable that holds the API key, if the server wants one"
    )
    max_concurrency: int = Field(64, ge=1, description="requests in flight at once, over all servers")
    timeout: float = Field(120.0, gt=0, allow_inf_nan=False, description="limit of one try, from connecting to the last byte")
    max_attempts: int = Field(5, ge=1, description="tries for each request")
    backoff: float = Field(
        0.5, ge=0, allow_inf_nan=False, description="longest wait before the second try; it doubles each time"
    )
    max_backoff: float = Field(30.0, ge=0, allow_inf_nan=False, description="no wait before a try is longer")
    max_retry_after: float = Field(60.0, ge=0, allow_inf_nan=False, description="a server's Retry-After is honoured up to this")
    trust_env: bool = Field(False, description="whether HTTP_PROXY and the like apply (they would catch local servers)")
    verify_tls: bool = Field(True, description="whether an https server must prove who it is (SSL_CERT_FILE: by whose word)")
    local_images: Path | None = Field(None, description="folder from which the servers read screenshots by file:// URLs")
    image_uuids: bool = Field(False, description="whether a screenshot that a server holds is named and not sent (vLLM's uuid)")


class _Refused(EngineError, Refusal):
    """The server does not want this request."""


class OpenAIEngine:
    """Answers requests over HTTP.

    With several base URLs :class:`guieval.engines.routing.Router` says where each try goes. A try that found its server gone
    is made at once on another one that is up, and is not counted. ``sleep`` is what waits between tries, ``pace`` hears how
    each try went. Raises :class:`UsageError` for a base URL or key that cannot be used.
    """

    def __init__(
        self,
        settings: OpenAISettings,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        pace: AdaptiveConcurrency | None = None,
    ) -> None:
        self.settings = settings
        self.model = settings.model
        self.images: ImageForm = image_form(settings)
        self._references: dict[str, ImageReferences] = {}
        self._key = api_key(settings.api_key_env)
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self._secret = secret_pattern(self._key)
        self._router = Router(
            [
                Server(Connections(url, trust_env=settings.trust_env, verify_tls=settings.verify_tls))
                for url in dict.fromkeys(map(base_url, settings.base_urls))
            ],
            self._is_well,
            backoff=settings.backoff,
            max_backoff=settings.max_backoff,
        )
        self._sleep = sleep
        self._pace = pace
        self._random = random.Random()
        self._nonce = secrets.token_hex(4)

    def __repr__(self) -> str:
        return f"OpenAIEngine(model={self.model!r}, base_urls={[server.url for server in self._router.servers]!r})"

    async def generate(self, request: Request) -> Reply:
        """Ask for one chat completion.

        Raises :class:`EngineError` when the request is refused or every try failed, and :class:`FatalEngineError` when no
        request can succeed: a wrong key, an unknown model, a wrong path, a certificate that proves nothing.
        """
        if self.model is None:
            raise FatalEngineError("no model name is known: give one, or let discover() ask the server")
        async with self._slots:
            try:
                body = ChatBody(request, self.model)
            except UsageError as error:
                raise FatalEngineError(str(error)) from None
            except ValueError as error:
                raise EngineError(f"the request {request.request_id!r} cannot be written: {error}") from None
            reply, attempts = await self._answer(body, request)
        return self._finished(reply, attempts)

    async def discover(self, candidates: Sequence[str] = ()) -> str:
        """Find out the model's name, unless it was given: the only one served, else the first of ``candidates`` that is.

        Several servers must agree. Raises :class:`UsageError` listing what is served when nothing fits, and
        :class:`EngineError` when a server cannot be asked.
        """
        if self.model is not None:
            return self.model
        lists: list[list[str]] = []
        for server in self._router.servers:
            lists.append([self._redact(name) for name in await self._models(server)])
            await server.connections.disconnect()  # a caller may discover in one event loop and generate in another
        served = [name for name in lists[0] if all(name in names for names in lists)]
        chosen = served[0] if len(served) == 1 else next((name for name in candidates if name in served), None)
        if chosen is None:
            listing = "; ".join(
                f"{server.url} serves {', '.join(map(repr, names)) or 'no model'}"
                for server, names in zip(self._router.servers, lists, strict=True)
            )
            if len(served) < 2:
                raise UsageError(f"there is no model to ask: {listing}")
            wanted = " or ".join(map(repr, candidates))
            hint = nearest(candidates[0], served) if candidates else ""
            raise UsageError(f"{f'no {wanted} there{hint}' if wanted else 'the model must be named'}: {listing}")
        self.model = chosen
        return chosen

    def stats(self) -> list[EndpointStats]:
        """How each server fares (:class:`guieval.engines.TellsStats`)."""
        return self._router.stats()

    async def close(self) -> None:
        """Close every idle connection; those in use close when their try ends."""
        await self._router.close()

    async def _answer(self, body: ChatBody, request: Request) -> tuple[Reply, int]:
        """Try until there is an answer; with it, how many tries count."""
        attempt = sent = spared = 0
        server = None
        key = request.task.episode_key
        while True:
            server = self._router.pick(key, avoid=server)
            sent += 1
            try:
                return await self._once(server, body, request, sent), attempt + 1
            except TryAgain as failure:
                if failure.gone and spared < len(self._router.servers) and self._router.another_is_up(server):
                    spared += 1
                    if quiet := self._router.quiet_for():  # the others are up, but asked to be left alone
                        await self._sleep(self._wait(1, quiet))
                    continue
                attempt += 1
                reason, retry_after = self._in_short(str(failure)), failure.retry_after
            except EngineError as error:
                error.attempts = attempt + 1
                raise
            if attempt == self.settings.max_attempts:
                raise self._no_answer(reason)
            if len(self._router.servers) > 1:  # what one server asks for does not keep a request from another
                retry_after = self._router.quiet_for() or None
            await self._sleep(self._wait(attempt, retry_after))

    async def _once(self, server: Server, body: ChatBody, request: Request, number: int) -> Reply:
        """Send a request to one server, and let everybody who must know hear how it went."""
        self._router.sent(server, again=number > 1)
        started = time.monotonic()
        try:
            name = with_try(request.request_id, self._nonce, number)
            reply = read_reply(await self._try(server, "POST", "/chat/completions", body, name))
        except TryAgain as failure:
            quiet = min(failure.retry_after or 0.0, self.settings.max_retry_after)
            self._router.failed(server, gone=failure.gone, busy=failure.busy, quiet=quiet)
            if self._pace is not None and (failure.busy or failure.slow):
                self._pace.overloaded()
            raise
        except EngineError:
            self._router.refused(server)
            raise
        else:
            seconds = time.monotonic() - started
            self._router.answered(server, seconds, reply.usage)
            if self._pace is not None:
                self._pace.answered(seconds, self._router.in_flight)
            return reply
        finally:
            self._router.over(server)

    async def _models(self, server: Server) -> list[str]:
        """The names of the models that a server lists."""
        for attempt in range(1, self.settings.max_attempts + 1):
            try:
                name = with_try("discover", self._nonce, attempt)
                return read_models(await self._try(server, "GET", "/models", None, name))
            except TryAgain as failure:
                reason = self._in_short(str(failure))
                wait = self._wait(attempt, failure.retry_after)
            except EngineError as error:
                error.attempts = attempt
                raise
            if attempt < self.settings.max_attempts:
                await self._sleep(wait)
        raise self._no_answer(reason)

    async def _is_well(self, server: Server) -> bool:
        """Whether a server that was gone answers again: by vLLM's /health, else by its list of models."""
        import httpx

        headers = [(b"Authorization", b"Bearer " + self._key.encode())] if self._key else []
        for url in (server.url.removesuffix("/v1") + "/health", server.url + "/models"):
            request = httpx.Request("GET", server.connections.address(url), headers=headers)
            try:
                async with asyncio.timeout(min(_CHECK_TIMEOUT, self.settings.timeout)):
                    response, _ = await server.connections.exchange(request, MAX_REPLY_BYTES)
            except (TimeoutError, httpx.HTTPError):
                return False
            if not 400 <= response.status_code < 500:  # a server without this page; the next, or a trial, tells more
                return response.status_code < 300
        return True

    def _no_answer(self, reason: str) -> EngineError:
        most = self.settings.max_attempts
        tries = "1 try" if most == 1 else f"{most} tries"
        return EngineError(f"no usable answer after {tries}; at last {reason}", attempts=most)

    def _finished(self, reply: Reply, attempts: int) -> Reply:
        text, reasoning, finish = reply.text, reply.reasoning, reply.finish_reason
        if len(self._key) >= SHORTEST_REDACTED:
            text = self._redact(text)
            reasoning = reasoning and self._redact(reasoning)
            finish = finish and self._redact(finish)
        return replace(reply, text=text, reasoning=reasoning, finish_reason=finish, attempts=attempts)

    def _wait_limit(self, failures: int) -> float:
        return min(self.settings.max_backoff, self.settings.backoff * 2.0 ** min(failures - 1, 60))

    def _wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds before the next try: full jitter, after what was asked for."""
        jitter = self._random.uniform(0.0, self._wait_limit(attempt))
        if retry_after is None:
            return jitter
        # all refused requests hear the same number, so coming back exactly then would be a stampede
        return min(retry_after, self.settings.max_retry_after) + min(jitter, 1.0)

    def _in_short(self, text: str) -> str:
        # the key goes before the text is cut, else a part of it could stay
        said = self._redact(text)[:20_000]
        # nor is a server to move the cursor of whoever reads this, or to turn the line round
        return " ".join("".join(each if each.isprintable() else " " for each in said).split())[:200]

    def _redact(self, text: str) -> str:
        return self._secret.sub("[API key]", text) if self._secret is not None else text

    async def _try(self, server: Server, method: str, path: str, body: ChatBody | None, name: str) -> bytes:
        """As :meth:`_send`, but sent again where the server refuses nothing but how a screenshot is referred to."""
        if body is None:
            return await self._send(server, method, path, None, name)
        if server.url not in self._references:
            folder, uuids = self.settings.local_images, self.settings.image_uuids
            self._references[server.url] = ImageReferences(server.url, folder, uuids=uuids)
        references = self._references[server.url]
        if body.in_bytes or not references.offered:
            return await self._send(server, method, path, body.written(in_bytes(body.images)), name)
        try:
            return await references.sent(body.images, lambda shown: self._send(server, method, path, body.written(shown), name))
        except Refusal as refusal:
            if isinstance(refusal, TryAgain) and refusal.gone:
                references.gone()
            # whatever it was, references are not to be what the next try fails of; a busy server has not looked at them
            body.in_bytes = refusal.status not in (429, 503)
            raise

    async def _send(self, server: Server, method: str, path: str, body: bytes | None, name: str) -> bytes:
        """Send once; the body of a 2xx answer, or :class:`TryAgain`, or :class:`EngineError`."""
        import httpx

        headers = [(b"Accept", b"application/json"), (b"Accept-Encoding", b"identity"), (b"X-Request-Id", name.encode())]
        if body is not None:
            headers.append((b"Content-Type", b"application/json"))
        if self._key:
            headers.append((b"Authorization", b"Bearer " + self._key.encode()))
        url = server.url + path
        try:
            async with asyncio.timeout(self.settings.timeout):
                request = httpx.Request(method, server.connections.address(url), headers=headers, content=body)
                response, data = await server.connections.exchange(request, MAX_REPLY_BYTES)
        except TimeoutError:
            raise TryAgain(f"{url} did not answer within {self.settings.timeout:g} s", slow=True) from None
        except (httpx.ConnectError, httpx.ProxyError) as error:
            if distrust := _distrust(error):
                raise FatalEngineError(
                    f"{url} does not prove who it is ({distrust}); name the file of the certificate to trust in the "
                    "environment variable SSL_CERT_FILE, or do without proof: "
                    "--set insecure_tls='I accept unverified certificates'"
                ) from None
            raise TryAgain(f"{url} could not be reached ({str(error) or type(error).__name__})", gone=True) from None
        except httpx.HTTPError as error:
            raise TryAgain(f"the connection to {url} broke ({str(error) or type(error).__name__})", gone=True) from None
        status = response.status_code
        try:
            data = unpacked(data, response.headers.get("content-encoding", "identity"))
        except ValueError as error:
            if 200 <= status < 300:
                raise TryAgain(f"{url} sent an answer that {error}") from None
            data = b""  # the status says enough
        if 200 <= status < 300:
            if len(data) > MAX_REPLY_BYTES:
                raise TryAgain(f"{url} sent more than {MAX_REPLY_BYTES // 1024**2} MiB")
            return data
        refusal = self._refusal(url, status, response.headers, data)
        if isinstance(refusal, Refusal):
            refusal.status, refusal.said = status, self._in_short(server_message(data))
        raise refusal

    def _refusal(self, url: str, status: int, headers: Mapping[str, str], data: bytes) -> TryAgain | EngineError:
        said = self._in_short(server_message(data))
        said = f": {said}" if said else ""
        if status in RETRIED or status >= 500:
            wait = seconds_to_wait(headers.get("retry-after"), headers.get("date"))
            busy = status in (408, 429)
            return TryAgain(f"{url} answered with status {status}{said}", retry_after=wait, busy=busy, slow=status == 503)
        if status in (401, 403):
            state = "holds a key it does not accept" if self._key else "is not set"
            return FatalEngineError(
                f"{url} refuses access (status {status}); the environment variable {self.settings.api_key_env} {state}{said}"
            )
        if status in (404, 405):
            return FatalEngineError(
                f"{url} has no model {self.model!r}, or the base URL is wrong (vLLM's ends in /v1) (status {status}){said}"
                if self.model is not None
                else f"{url} is not found (status {status}); is the base URL whole (vLLM's ends in /v1)?{said}"
            )
        if status == 402:
            return FatalEngineError(f"{url} asks for payment (status 402){said}")
        if 300 <= status < 400:
            return FatalEngineError(f"{url} redirects elsewhere (status {status}); give the base URL it redirects to")
        return _Refused(f"{url} refuses this request (status {status}){said}")


def image_form(settings: OpenAISettings) -> ImageForm:
    """What is needed of the images of a request to these servers."""
    return "base64" if settings.local_images is None else "file"


def _distrust(error: BaseException | None) -> str | None:
    """Why a server's certificate was not believed, when that is what an error is about."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None
