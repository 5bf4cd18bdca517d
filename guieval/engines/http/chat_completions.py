"""Client of any server that speaks the OpenAI chat-completions protocol (vLLM, SGLang, llama.cpp, hosted APIs).

This is the hot path of a run, and it must survive faulty servers: it limits the duration of a try and the size of an answer,
and retries if that can help. The adapter writes the messages and parses the response, and the runner chooses the screenshots
and limits the requests in flight.

:mod:`guieval.engines.http.chat_body` writes bodies, :mod:`guieval.engines.http.chat_answers` reads answers, and
:mod:`guieval.engines.http.routing` chooses the server of a request.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from guieval.engines import EndpointStats, sent, with_try
from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.engines.http.addresses import base_url, check_environment_proxies, proxy_url
from guieval.engines.http.chat_answers import (
    GATEWAY,
    MAX_REPLY_BYTES,
    TryAgain,
    answers_another_request,
    asked_wait,
    out_of_credit,
    read_models,
    response_in,
    server_message,
    whole_answer,
)
from guieval.engines.http.chat_body import ChatBody
from guieval.engines.http.connections import Connections, HttpResponse
from guieval.engines.http.event_stream import MAX_STREAM_BYTES
from guieval.engines.http.image_references import ImageReferences, Refusal, in_bytes
from guieval.engines.http.patience import Patience
from guieval.engines.http.refusals import IN_A_ROW, Refusals
from guieval.engines.http.routing import RoutedServer, Router
from guieval.engines.http.stated import ServedModel, facts_of_server, first_of, page_of
from guieval.engines.http.statuses import RefusedRequest, error_of
from guieval.engines.usage_reports import usage_in
from guieval.errors import EngineError, FatalEngineError, Halted, UsageError, nearest, one_line
from guieval.journal.setup import MOST_LISTED, EngineFacts, Setup
from guieval.models import ImageForm, Request, Response
from guieval.secrets import Redaction, api_key
from guieval.settings import Server as ServerSettings

_CHECK_TIMEOUT = 5.0
_PROBE_BYTES = 65_536


class OpenAIEngine:
    """Answers requests over HTTP.

    With several base URLs :class:`guieval.engines.http.routing.Router` chooses the server of each try. A try whose server
    is unreachable moves at once to another server that is up, and is not counted; nor is a try that its server refused. A
    server that refuses everything is put aside if another is left. When all servers are unreachable, all requests wait until
    one is back (:class:`guieval.engines.http.patience.Patience`), and the failed tries are not counted. ``sleep`` waits
    between tries, ``pace`` receives the result of each try. The servers read screenshots from ``folder``, if there is one, by
    file:// URLs; no message shows the keys in the variables ``other_keys``. Raises :class:`UsageError` for an invalid base URL
    or key.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        folder: Path | None = None,
        other_keys: Sequence[str] = (),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        pace: AdaptiveConcurrency | None = None,
    ) -> None:
        self.settings = settings
        self.model = settings.served_model
        self.folder = folder
        self._listed: dict[str, list[ServedModel]] = {}
        self._facts: dict[str, EngineFacts] = {}
        self._setup: Setup | None = None
        self.images: ImageForm = "base64" if folder is None else "file"
        self._references: dict[str, ImageReferences] = {}
        self._key = api_key(settings.api_key_env)
        self._redaction = Redaction.of_variables(settings.api_key_env, *other_keys)
        if settings.trust_env:
            check_environment_proxies()
        through: dict[str, Any] = {"trust_env": settings.trust_env, "verify_tls": settings.insecure_tls is None}
        proxy = None if settings.proxy is None else proxy_url(settings.proxy)
        self._router = Router(
            [
                RoutedServer(Connections(url, proxy=proxy, query=query, **through))
                for url, query in dict.fromkeys(base_url(text, self._redaction) for text in settings.base_urls)
            ],
            self._is_well,
            backoff=settings.backoff,
            max_backoff=settings.max_backoff,
        )
        self._patience = Patience(self._router, self._is_well, settings.patience, sleep=sleep)
        self._sleep = sleep
        self._pace = pace
        self._refusals = Refusals()
        self._random = random.Random()
        self._nonce = secrets.token_hex(4)

    def __repr__(self) -> str:
        return f"OpenAIEngine(model={self.model!r}, base_urls={[server.url for server in self._router.servers]!r})"

    async def generate(self, request: Request) -> Response:
        """Request one chat completion.

        Raises :class:`EngineError` when the request is refused or every try failed, and :class:`FatalEngineError` when no
        request can succeed: a wrong key, an unknown model, a wrong path, an invalid certificate, a refusal that all requests
        so far received (:class:`guieval.engines.http.refusals.Refusals`), or an address that never answered;
        :class:`guieval.errors.ServersAway` when no server came back in time.
        """
        if self.model is None:
            raise FatalEngineError("the model name is unknown: give one, or call discover() to ask the server")
        try:
            body = self._body(request, self.model)
        except UsageError as error:
            raise FatalEngineError(str(error)) from None
        except ValueError as error:
            raise EngineError(f"the request {request.request_id!r} cannot be written: {error}") from None
        number = self._refusals.begun()
        try:
            reply, attempts = await self._answer(body, request)
        except RefusedRequest as refusal:
            if not self._refusals.refused(number, refusal.status, refusal.text):
                raise
            raise FatalEngineError(
                f"{refusal}; at least {IN_A_ROW} requests in a row got this answer and no other, so no more are sent",
                attempts=refusal.attempts,
            ) from None
        else:
            self._refusals.answered()
        finally:
            self._refusals.over(number)
        return self._finished(reply, attempts)

    async def discover(self, candidates: Sequence[str] = ()) -> str:
        """Find the model's name, unless it was given: the only served model, else the first of ``candidates`` that is served.

        Several servers must agree. Raises :class:`UsageError` with the served models when none fits, and
        :class:`EngineError` when no server answers. If the name was given, servers need not list any model.
        """
        while (failed := await self._list_models()) is not None:
            server, error = failed
            if not await self._patience.outlasts(server, str(error)):
                raise error
        if self.settings.served_model is not None:
            return self.settings.served_model
        lists = [[model.name for model in models] for models in self._listed.values()]
        served = [name for name in lists[0] if all(name in names for names in lists)]
        chosen = served[0] if len(served) == 1 else first_of(candidates, served)
        if chosen is None:
            listing = "; ".join(
                f"{url} serves {', '.join(repr(one_line(name)) for name in names) or 'no model'}"
                for url, names in zip(self._listed, lists, strict=True)
            )
            listing = one_line(listing, 800)  # a server may list any number of names of any length
            if len(served) < 2:
                raise UsageError(f"there is no model to ask: {listing}")
            wanted = " or ".join(map(repr, candidates))
            hint = nearest(candidates[0], served) if candidates else ""
            raise UsageError(f"{f'no {wanted} there{hint}' if wanted else 'the model must be named'}: {listing}")
        self.model = chosen
        return chosen

    def setup(self) -> Setup | None:
        """The requested model, and what the servers say of themselves (:class:`guieval.engines.ReportsSetup`)."""
        if self._setup is None and self.model is not None and (engines := tuple(self._engines(self.model))):
            self._setup = Setup(model=self.model, named=self.settings.served_model is not None, engines=engines)
        return self._setup

    def note(self, request: Request) -> None:
        """Add how this request is sent, from its first try on (:class:`guieval.engines.ReportsSetup`)."""
        if (setup := self.setup()) is not None:
            with suppress(UsageError, ValueError):
                form = "file URL" if self.images == "file" else "base64"
                self._setup = setup.joined(sent(request, self._bytes(request, setup.model), form))

    def stats(self) -> list[EndpointStats]:
        return self._router.stats()

    async def close(self) -> None:
        """Close all idle connections; those in use close when their try ends."""
        await self._patience.close()
        await self._router.close()

    def waiting(self) -> str | None:
        """The current wait for servers (:class:`guieval.engines.ReportsServers`)."""
        return self._patience.waiting

    def _body(self, request: Request, model: str) -> Any:
        """The body that :meth:`_ask` sends, made once for all tries of a request."""
        return ChatBody(request, model, stream=self.settings.stream)

    def _bytes(self, request: Request, model: str) -> bytes:
        return ChatBody(request, model, stream=self.settings.stream).written(in_bytes(request.images))

    def _engines(self, model: str) -> Iterator[EngineFacts]:
        """What each server said, with the checkpoint from which it loaded the ``model``."""
        for url, models in self._listed.items():
            root = next((each.root for each in models if each.name == model), None)
            yield self._facts[url].model_copy(update={"url": url, "root": root})

    async def _ask(self, server: RoutedServer, body: Any, request: Request, name: str) -> Response:
        """Send a request to one server once; raises :class:`TryAgain` or :class:`EngineError`."""
        return response_in(await self._try(server, "POST", "/chat/completions", body, name))

    async def _answer(self, body: Any, request: Request) -> tuple[Response, int]:
        """Try until there is an answer; return it with the number of tries that count.

        A try that has to be paid always counts, so no request is paid more often than there are attempts.
        """
        attempt = sent = spared = broken = paid = 0
        server = None
        refusals: dict[RoutedServer, EngineError] = {}
        key = request.task.episode_key
        while True:
            await self._patience.over()
            server = self._router.pick(key, avoid=server, refused=refusals)
            sent += 1
            billed = len(request.bill.others)
            try:
                reply = await self._once(server, body, request, sent)
                for refuser, refusal in refusals.items():
                    self._router.contradicted(refuser, str(refusal))
                return reply, attempt + 1
            except TryAgain as failure:
                paid += len(request.bill.others) > billed
                if paid == self.settings.max_attempts:
                    raise self._no_answer(self._in_short(str(failure))) from None
                request.bill.check()
                elsewhere = spared < len(self._router.servers) and self._router.another_is_up(server)
                if elsewhere and (failure.gone or (failure.may_be_last and not await self._is_well(server))):
                    self._router.gone(server)
                    spared += 1
                    if quiet := self._router.quiet_for():  # the others are up, but sent a Retry-After
                        await self._sleep(self._wait(1, quiet))
                    continue
                reason, retry_after = self._in_short(str(failure)), failure.retry_after
                if failure.may_be_away and not self._router.another_is_up(server):
                    if await self._patience.outlasts(server, reason):
                        if self._pace is not None:
                            self._pace.interrupted()
                        broken += not failure.unsent
                        if broken > self.settings.max_attempts:
                            raise EngineError(f"the server went away at all {broken} attempts: {reason}") from None
                        continue
                    retry_after = None if retry_after is None else 0.0  # probing the server has waited that long
                attempt += 1
                if self._pace is not None and (failure.busy or failure.slow):
                    self._pace.overloaded()
                if attempt == self.settings.max_attempts and failure.unsent and not self._patience.reached:
                    raise FatalEngineError(str(self._no_answer(reason)), attempts=attempt) from None
            except Halted as halted:
                halted.attempts = attempt + 1
                raise
            except EngineError as error:
                error.attempts = attempt + 1
                refusals[server] = error
                self._after_refusal(server, refusals)
                continue
            if attempt == self.settings.max_attempts:
                raise self._no_answer(reason)
            if len(self._router.servers) > 1:  # one server's Retry-After does not delay a request to another
                retry_after = self._router.quiet_for() or None
            await self._sleep(self._wait(attempt, retry_after))

    def _after_refusal(self, server: RoutedServer, refusals: Mapping[RoutedServer, EngineError]) -> None:
        """Return if another server may answer a request that these refused (``server`` was the last); else raise a refusal."""
        error = refusals[server]
        if isinstance(error, FatalEngineError):
            if not self._router.put_aside(server, str(error)):
                raise error
            if not self._router.another_is_left(*refusals):  # the servers that are left refuse only this request
                raise next(refusal for refusal in refusals.values() if not isinstance(refusal, FatalEngineError))
        elif not self._router.another_is_up(*refusals):  # it may be the server's fault, so the others are tried first
            raise error

    async def _once(self, server: RoutedServer, body: Any, request: Request, number: int) -> Response:
        """Send a request to one server, and report the result to the router and the concurrency limit."""
        self._router.sent(server, again=number > 1)
        started = time.monotonic()
        try:
            name = with_try(request.request_id, self._nonce, number)
            reply = await self._ask(server, body, request, name)
        except Refusal as failure:
            if failure.usage is not None:
                request.bill.add(failure.usage)
                self._router.paid(server, failure.usage)
            if not isinstance(failure, TryAgain):
                self._router.refused(server)
                raise
            quiet = min(failure.retry_after or 0.0, self.settings.max_retry_after)
            self._router.failed(server, gone=failure.gone, busy=failure.busy, quiet=quiet)
            raise
        except Halted:
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

    async def _list_models(self) -> tuple[RoutedServer, EngineError] | None:
        """Ask every server for its models; return the first that did not answer, if none did.

        To discover the name, the answer of one server is enough: the others are logged, and get no work until they answer.
        """
        for attempt in range(1, self.settings.max_attempts + 1):
            servers = self._router.left
            several = len(servers) > 1
            answers = await asyncio.gather(*(self._models(server, attempt, several=several) for server in servers))
            failed: dict[RoutedServer, TryAgain] = {}
            for server, answer in zip(servers, answers, strict=True):
                await server.connections.close()  # a caller may discover in one event loop and generate in another
                if isinstance(answer, list):
                    self._listed[server.url] = answer
                elif isinstance(answer, TryAgain):
                    failed[server] = answer
                elif not self._router.put_aside(server, str(answer)):
                    answer.attempts = attempt
                    raise answer
            if self._listed or not failed:
                for server, failure in failed.items():
                    self._router.done_without(server, self._in_short(str(failure)))
                return None
            first, failure = next(iter(failed.items()))
            if attempt < self.settings.max_attempts:
                waits = [failure.retry_after for failure in failed.values() if failure.retry_after is not None]
                await self._sleep(self._wait(attempt, min(waits) if len(waits) == len(failed) else None))
        return first, self._no_answer(self._in_short(str(failure)))

    async def _models(self, server: RoutedServer, attempt: int, *, several: bool) -> list[ServedModel] | TryAgain | EngineError:
        """The models that a server lists, or the error; an empty list on errors if the model name was given.

        Hosted servers need not list any. With ``several`` servers the first attempt waits less than a request would.
        """
        named = self.settings.served_model is not None
        patience = min(_CHECK_TIMEOUT, self.settings.timeout) if named or (several and attempt == 1) else None
        try:
            async with asyncio.timeout(patience):
                name = with_try("discover", self._nonce, attempt)
                listed = read_models(await self._try(server, "GET", "/models", None, name))
        except TimeoutError:
            failure: TryAgain | EngineError = TryAgain(f"{server.url}/models did not answer within {patience:g} s", slow=True)
        except (TryAgain, EngineError) as error:
            failure = error
        else:
            hide = self._redaction.response
            models = [ServedModel(hide(each.name), each.root and hide(each.root), each.owner) for each in listed]
            path = page_of(models)
            page = None if path is None else await self._looked(server, server.url.removesuffix("/v1") + path)
            described = page.data if page is not None and page.status == 200 else b""
            self._facts[server.url] = facts_of_server(models, server.headers, described, hide)
            return models
        if named:
            self._facts[server.url] = EngineFacts()
            return []
        return failure

    async def _looked(self, server: RoutedServer, url: str) -> HttpResponse | None:
        """A small page of a server; ``None`` if it does not answer soon."""
        headers = self._access(server)
        try:
            async with asyncio.timeout(min(_CHECK_TIMEOUT, self.settings.timeout)):
                return await server.connections.exchange("GET", url + server.connections.query, headers, None, _PROBE_BYTES)
        except (TimeoutError, TryAgain, FatalEngineError):
            return None

    async def _is_well(self, server: RoutedServer) -> bool:
        """Whether an unreachable server answers again: neither /health (vLLM) nor /models gets a gateway's error.

        A server may have neither page; the next request will show. Both are checked: a gateway may answer /health by itself,
        and a server whose engine is dead or loading may still list its models.
        """
        for url in (server.url.removesuffix("/v1") + "/health", server.url + "/models"):
            if (answer := await self._looked(server, url)) is None:
                return False
            if answer.status in GATEWAY:
                wait = asked_wait(answer.headers) or 0.0
                self._router.quiet(server, min(wait, self.settings.max_retry_after))
                return False
        return True

    def _no_answer(self, reason: str) -> EngineError:
        most = self.settings.max_attempts
        tries = "1 try" if most == 1 else f"{most} tries"
        return EngineError(f"no usable answer after {tries}; at last {reason}", attempts=most)

    def _finished(self, reply: Response, attempts: int) -> Response:
        hide = self._redaction.response
        reply = replace(
            reply,
            finish_reason=reply.finish_reason and hide(reply.finish_reason),
            model=reply.model and hide(reply.model),
            fingerprint=reply.fingerprint and hide(reply.fingerprint),
            attempts=attempts,
        )
        setup = self.setup() if reply.fingerprint else None
        if setup is not None and reply.fingerprint not in setup.fingerprints and len(setup.fingerprints) < MOST_LISTED:
            self._setup = setup.model_copy(update={"fingerprints": (*setup.fingerprints, reply.fingerprint)})
        text, reasoning = hide(reply.written), reply.reasoning and hide(reply.reasoning)
        if (text, reasoning) == (reply.written, reply.reasoning):
            return reply
        return replace(reply, text=text, calls=(), reasoning=reasoning, key_removed=True)

    def _wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds before the next try: full jitter, on top of a Retry-After."""
        longest = min(self.settings.max_backoff, self.settings.backoff * 2.0 ** min(attempt - 1, 60))
        jitter = self._random.uniform(0.0, longest)
        if retry_after is None:
            return jitter
        # all refused requests get the same number, so without jitter they would all return at once
        return min(retry_after, self.settings.max_retry_after) + min(jitter, 1.0)

    def _in_short(self, text: str) -> str:
        return one_line(self._redaction.message(text))  # redact before cutting, else a part of the key could remain

    async def _try(self, server: RoutedServer, method: str, path: str, body: ChatBody | None, name: str) -> bytes:
        """As :meth:`_send`, but sent again if the server refuses only the reference to a screenshot."""
        if body is None:
            return await self._send(server, method, path, None, name)
        if server.url not in self._references:
            self._references[server.url] = ImageReferences(server.url, self.folder, uuids=bool(self.settings.image_uuids))
        references = self._references[server.url]
        if body.in_bytes or not references.offered:
            return await self._send(server, method, path, body.written(in_bytes(body.images)), name)
        try:
            return await references.sent(body.images, lambda shown: self._send(server, method, path, body.written(shown), name))
        except Refusal as refusal:
            if isinstance(refusal, TryAgain) and refusal.gone:
                references.gone()
            # the next try must not fail because of references; a busy server has not read them
            body.in_bytes = refusal.status not in (429, 503)
            raise

    async def _send(self, server: RoutedServer, method: str, path: str, body: bytes | None, name: str) -> bytes:
        """Send once and return the body of a 2xx answer; raises :class:`TryAgain` or :class:`EngineError`."""
        streamed = self.settings.stream and body is not None
        most = MAX_STREAM_BYTES if streamed else MAX_REPLY_BYTES
        accept = "text/event-stream" if streamed else "application/json"
        headers = {"Accept": accept, "Accept-Encoding": "identity", "X-Request-Id": name}
        if body is not None:
            headers["Content-Type"] = "application/json"
        headers |= self._access(server)
        url = server.url + path

        def check(data: bytes) -> None:
            if answers_another_request(data, name):
                failure = TryAgain(f"{url} sent the answer to another request")
                failure.usage = usage_in(data)
                raise failure

        try:
            async with asyncio.timeout(self.settings.timeout):
                answer = await server.connections.exchange(method, url + server.connections.query, headers, body, most, check)
        except TimeoutError:
            raise TryAgain(f"{url} did not answer within {self.settings.timeout:g} s", slow=True) from None
        status = answer.status
        self._patience.answered(server, by_gateway=status in GATEWAY)
        data = whole_answer(url, status, answer.headers, answer.data, most)
        if 200 <= status < 300:
            server.headers = answer.headers
            return data
        raise self._refusal(url, status, answer.headers, data)

    def _access(self, server: RoutedServer) -> dict[str, str]:
        """The headers that hold the key; Azure reads it from one of its own, and Bearer tokens from the other."""
        if not self._key:
            return {}
        azure = (urlsplit(server.url).hostname or "").endswith(".azure.com")
        return {"Authorization": f"Bearer {self._key}"} | ({"api-key": self._key} if azure else {})

    def _refusal(self, url: str, status: int, headers: Mapping[str, str], data: bytes) -> TryAgain | EngineError:
        """The error that an answer with another status than 2xx means."""
        message = self._in_short(server_message(data))
        if out_of_credit(data):
            return FatalEngineError(f"{url} says that the account is used up (status {status}): {message}")
        error = self._error(url, status, headers, message)
        if isinstance(error, Refusal):
            error.status, error.text, error.usage = status, message, usage_in(data)
        return error

    def _error(self, url: str, status: int, headers: Mapping[str, str], message: str) -> TryAgain | EngineError:
        return error_of(url, status, headers, message, self.settings, model=self.model, has_key=bool(self._key))
