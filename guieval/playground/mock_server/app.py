"""The mock server as an ASGI application: latency, faults and counts for every policy."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import time
from collections import Counter, deque
from collections.abc import Callable
from email.utils import formatdate
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias
from urllib.parse import quote

from guieval.data.files import read_text
from guieval.engines import parse_request_id, without_try
from guieval.playground.mock_server.answers import (
    Exchange,
    PolicyResponse,
    Receive,
    Scope,
    Send,
    as_json,
    body_of,
    completion_body,
    error_of,
)
from guieval.playground.mock_server.malformed import send_malformed
from guieval.playground.mock_server.native import error_body, model_of, refusal
from guieval.playground.mock_server.settings import MockSettings
from guieval.steps import StepKey

_HELD = 0.02
"""Seconds between two looks at whether a request is still held."""
_EPISODE_TAG = re.compile(rb"\[EP[0-9]+\]")
_IMAGE = b";base64,"
"""A request with a screenshot."""


class SeenRequest(NamedTuple):
    """A request as it arrived. Header names are lower case."""

    headers: dict[str, str]
    body: bytes


class Tag(NamedTuple):
    """The step of a request.

    ``text`` decides latency and faults, ``chain`` names the episode whose steps follow each other; ``name`` and ``key`` are
    of the step and sample, for the policies (``key`` is ``None`` when the request does not name them).
    """

    text: str
    chain: str
    name: str
    key: StepKey | None


Answers: TypeAlias = Callable[[Tag, bytes], PolicyResponse]
"""A policy: from the tag and the raw body to the response; ``LookupError`` if it has none."""


def uniform(*parts: object) -> float:
    """A number in [0, 1) that is a pure function of ``parts``: the 8-byte blake2b digest of their repr as a tuple, / 2**64."""
    return int.from_bytes(blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") / 2.0**64


def latency_of(seed: int, tag: str, k: int, mean: float, sigma: float) -> float:
    """Seconds to serve the k-th request of a tag: lognormal with the given mean, by Box-Muller (cosine)."""
    if mean == 0.0:
        return 0.0
    first, second = uniform(seed, tag, k, "a"), uniform(seed, tag, k, "b")
    z = math.sqrt(-2.0 * math.log(first or 2.0**-64)) * math.cos(2.0 * math.pi * second)
    return mean * math.exp(sigma * z - sigma * sigma / 2.0)


class MockApp:
    """The ASGI application.

    A request's tag is an ``[EP123]`` in its body if there is one, else its X-Request-Id without the try's suffix, else (of
    another client) the hash of a body with a screenshot; ``k`` is how many requests had the same tag before. A request
    without tag is a liveness probe: answered at once, not counted.
    A fault is, in this order, a refusal (key, model, length), the one ``first_faults`` has for k, ``hang_at``, an error (at
    once, before any waiting), and after the latency a hang or a malformed answer. ``faults_after`` holds back all but the
    refusals, and makes them depend on the order of arrival.
    """

    def __init__(self, settings: MockSettings, answers: Answers) -> None:
        self.settings = settings
        self.seen: deque[SeenRequest] = deque(maxlen=settings.keep)
        self.held: Callable[[Tag], bool] = lambda tag: False
        """Which requests wait for as long as this is true of them; a test stops a client's work at the point that it
        chooses."""
        self._waiting: set[Exchange] = set()
        self._answers = answers
        self._slots = asyncio.Semaphore(settings.concurrency) if settings.concurrency else None
        self._earlier: Counter[str] = Counter()
        self._chains: dict[str, float] = {}
        self._counts = dict.fromkeys(("requests", "served", "failed", "malformed", "hung", "gone", "bytes"), 0)
        self._in_flight = self._max_in_flight = self._serving = self._max_serving = 0
        self._latency_sum = 0.0
        self._first: float | None = None
        self._last: float | None = None
        self._log: IO[str] | None = settings.log.open("a", encoding="utf-8") if settings.log else None

    def stats(self) -> dict[str, Any]:
        """Counts since the start. Times are Unix seconds, ``latency_sum`` and ``longest_chain`` seconds of serving."""
        return {
            **self._counts,
            "in_flight": self._in_flight,
            "max_in_flight": self._max_in_flight,
            "max_serving": self._max_serving,
            "latency_sum": self._latency_sum,
            "longest_chain": max(self._chains.values(), default=0.0),
            "first_time": self._first,
            "last_time": self._last,
            "cpu_seconds": time.process_time(),
            "rss_bytes": _rss_bytes(),
        }

    def hang_up(self) -> None:
        """Close the connections of all requests that have no answer yet."""
        for exchange in self._waiting:
            if exchange.transport is not None:
                exchange.transport.abort()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send, await _body(receive) if scope["method"] == "POST" else b"")
        path = exchange.path
        if scope["method"] == "POST":
            self._waiting.add(exchange)
            try:
                await self._completion(exchange)
            finally:
                self._waiting.discard(exchange)
        elif path == "/stats":
            await exchange.answer(200, as_json(self.stats()))
        elif path in ("/health", "/v1/health"):
            await exchange.answer(200, b"{}")
        elif path.endswith("/models"):
            if not self._knows(exchange):
                await self._fail(exchange, 401)
                return
            models = [{"id": name, "object": "model", "owned_by": "guieval"} for name in self.settings.listed_models]
            await exchange.answer(200, as_json({"object": "list", "data": models}))
        elif path == "/version" and self.settings.engine_version is not None:
            await exchange.answer(200, as_json({"version": self.settings.engine_version}))
        else:
            await exchange.answer(404, error_of(f"there is nothing at {path!r}"))

    async def _completion(self, exchange: Exchange) -> None:
        body = exchange.body
        if self.seen.maxlen:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in exchange.headers.items()}
            self.seen.append(SeenRequest(headers, body))
        tag = _tag(exchange.headers.get(b"x-request-id", b""), body)
        if tag is None:
            await exchange.answer(200, completion_body(PolicyResponse("alive")))
            return
        arrival = time.time()
        self._first = self._first or arrival
        self._counts["requests"] += 1
        self._counts["bytes"] += len(body)
        k = self._earlier[tag.text]
        self._earlier[tag.text] += 1
        self._in_flight += 1
        self._max_in_flight = max(self._max_in_flight, self._in_flight)
        latency = latency_of(self.settings.seed, tag.text, k, self.settings.latency, self.settings.sigma)
        outcome: str | None = None

        def becomes(name: str) -> None:  # before anything is sent, so that a client's answer is already in the counts
            nonlocal outcome
            outcome = name
            self._counts[name] += 1
            self._in_flight -= name != "hung"

        try:
            await self._respond(exchange, tag, k, latency, becomes)
        finally:
            if outcome is None:
                becomes("gone")
            elif outcome == "hung":
                self._in_flight -= 1
            self._last = time.time()
            if self._log is not None:
                line = {"arrival": arrival, "end": self._last, "tag": tag.text, "k": k, "latency": latency}
                print(json.dumps({**line, "bytes": len(body), "outcome": outcome}), file=self._log, flush=True)

    async def _respond(self, exchange: Exchange, tag: Tag, k: int, latency: float, becomes: Callable[[str], None]) -> None:
        """Answer or not; ``becomes`` is called with the name of the request's count, unless its client has disconnected."""
        if refusal := self._refusal(exchange):
            becomes("failed")
            await self._fail(exchange, *refusal)
            return
        fault = self._fault(tag.text, k, exchange.body)
        if fault == "hang":
            becomes("hung")
            await exchange.disconnected()
            return
        if fault.isdecimal():
            becomes("failed")
            await self._fail(exchange, int(fault))
            return
        if not await self._serve(exchange, tag, latency):
            return
        try:
            answer = self._answers(tag, exchange.body)
        except LookupError as error:
            becomes("failed")
            await self._fail(exchange, 400, str(error.args[0]))
            return
        if fault:
            becomes("malformed")
            await send_malformed(exchange, fault, answer)
            return
        becomes("served")
        await exchange.answer(200, body_of(exchange, answer, self.settings.looks, self.settings.fingerprint))

    async def _serve(self, exchange: Exchange, tag: Tag, latency: float) -> bool:
        """Take a slot for the request's latency; false if the client disconnects in the meantime."""
        if self._slots is not None:
            await self._slots.acquire()
        self._serving += 1
        self._max_serving = max(self._max_serving, self._serving)
        try:
            wait = latency
            while wait > 0.0 or self.held(tag):
                try:
                    async with asyncio.timeout(wait or _HELD):
                        await exchange.disconnected()
                    return False
                except TimeoutError:
                    wait = 0.0
            self._latency_sum += latency
            self._chains[tag.chain] = self._chains.get(tag.chain, 0.0) + latency
            return True
        finally:
            self._serving -= 1
            if self._slots is not None:
                self._slots.release()

    def _knows(self, exchange: Exchange) -> bool:
        key = self.settings.api_key
        return key is None or exchange.key.removeprefix(b"Bearer ") == key.encode()

    def _refusal(self, exchange: Exchange) -> tuple[int, str] | None:
        """Status and message for a request that a server with these settings would refuse."""
        settings, body = self.settings, exchange.body
        if not self._knows(exchange):
            return 401, "Incorrect API key provided"
        if settings.check_model and (model := model_of(exchange.api, exchange.path, body)) not in settings.listed_models:
            return 404, f"The model `{model}` does not exist."
        if settings.longest_body is not None and len(body) > settings.longest_body:
            return 400, "This model's maximum context length is 4096 tokens; the prompt is longer"
        if exchange.api is not None and (reason := refusal(exchange.api, exchange.path, body, settings.refused_tools)):
            return 400, reason
        return None

    async def _fail(self, exchange: Exchange, status: int, message: str = "") -> None:
        message = message or f"the mock server fails with status {status}"
        if self.settings.echo_key:
            key = exchange.key or b"no key"
            quoted = quote(key.decode("latin-1"), safe="").encode()
            spellings = (key, base64.b64encode(key), base64.urlsafe_b64encode(key), quoted)
            message += f" ({', '.join(spelling.decode('latin-1') for spelling in spellings)})"
        waits = []
        if status in (429, 503):
            if self.settings.retry_after is not None:
                waits.append(self.settings.retry_after)
            if self.settings.retry_after_date is not None:
                waits.append(formatdate(time.time() + self.settings.retry_after_date, usegmt=True))
        body = error_of(message) if exchange.api is None else error_body(exchange.api, status, message)
        await exchange.answer(status, body, [(b"retry-after", wait.encode()) for wait in waits])

    def _fault(self, tag: str, k: int, body: bytes) -> str:
        """``hang``, a status, a malformed kind, or nothing."""
        settings = self.settings
        if self._counts["requests"] <= settings.faults_after:
            return ""
        if k < len(settings.first_faults):
            return settings.first_faults[k]
        if (tag, k) in settings.hang_at:
            return "hang"
        if settings.error_rate:
            about = (blake2b(body, digest_size=8).hexdigest(),) if settings.sticky_errors else (tag, k)
            if uniform(settings.seed, *about, "error") < settings.error_rate:
                return str(settings.error_status)
        if settings.hang_rate and uniform(settings.seed, tag, k, "hang") < settings.hang_rate:
            return "hang"
        if settings.malformed_rate and uniform(settings.seed, tag, k, "malformed") < settings.malformed_rate:
            kinds = settings.malformed_kinds
            return kinds[int(uniform(settings.seed, tag, k, "kind") * len(kinds))]
        return ""


async def _body(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    while True:
        message = await receive()
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


def _tag(header: bytes, body: bytes) -> Tag | None:
    name = without_try(header.decode("latin-1"))
    episode = _EPISODE_TAG.search(body)
    text = episode.group().decode() if episode else name
    try:
        key, sample = parse_request_id(name)
    except ValueError:
        text = text or (blake2b(body, digest_size=8).hexdigest() if _IMAGE in body else "")
        return Tag(text, text, name or text, None) if text else None
    chain = text if episode else f"{name.rsplit('|', name.count('|') - 2)[0]}|{sample}"
    return Tag(text, chain, name, key)


def _rss_bytes() -> int | None:
    try:
        pages = int(read_text(Path("/proc/self/statm")).split()[1])
    except OSError:
        return None
    import resource

    return pages * resource.getpagesize()
