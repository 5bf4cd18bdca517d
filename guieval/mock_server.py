"""A scripted server that speaks the OpenAI protocol, for trying guieval without a GPU, for its tests and for load runs.

It answers in any model family's own format, after latencies that are a pure function of (seed, step, try), with faults chosen
the same way, and counts what it saw. So two clients, or one client twice, meet exactly the same server. It knows no model:
replies are written by an adapter's ``render`` from a policy's action.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import socket
import threading
import time
from base64 import b64decode
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

from guieval.actions import (
    BUTTONS,
    DIRECTIONS,
    Action,
    ActionSpace,
    Click,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    Type,
    Wait,
)
from guieval.engines import parse_request_id, without_try
from guieval.errors import UsageError
from guieval.frames import Size
from guieval.steps import EpisodeKey, StepKey, StepTaskModel

if TYPE_CHECKING:
    from guieval.benchmark import ABCBenchmark
    from guieval.models import ABCModel

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

Policy: TypeAlias = Literal["centre", "random", "reference", "script", "fixed"]
Malformed: TypeAlias = Literal["cut-json", "html", "null-content", "empty-choices", "cut-text"]
MALFORMED: tuple[Malformed, ...] = get_args(Malformed)

DEFAULT_SIZE: Size = (1080, 2400)
"""(width, height) in pixels assumed of a screen that cannot be told from the request."""
THOUGHT = "The element that the next part of the task needs is on this screen, so I act on it."
_EPISODE_TAG = re.compile(rb"\[EP[0-9]+\]")
_PNG_URL = b"data:image/png;base64,"


class MockSettings(BaseModel):
    """What the server does. Rates are probabilities; each is decided by a hash of (seed, tag, k), see :class:`MockApp`."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    host: str = "127.0.0.1"
    port: int = Field(0, ge=0, le=65535, description="0 takes a free one")
    seed: int = 1
    latency: float = Field(0.0, ge=0, allow_inf_nan=False, description="mean seconds a request is served")
    sigma: float = Field(0.6, ge=0, allow_inf_nan=False, description="spread of the lognormal latency; 0 makes all alike")
    concurrency: int | None = Field(None, ge=1, description="requests served at once; the others wait in order of arrival")
    served_models: tuple[str, ...] = Field(("mock",), description="names that /v1/models lists")

    policy: Policy = Field("centre", description="what is answered")
    model: str | None = Field(None, description="checkpoint whose native format replies are written in")
    adapter: str | None = Field(None, description="model family, where the checkpoint is not a shipped one")
    benchmark: str | None = Field(None, description="benchmark that policy 'reference' looks steps up in")
    data: Path | None = Field(None, description="that benchmark's data folder")
    accuracy: float = Field(1.0, ge=0, le=1, description="how often policy 'reference' is right")
    script: Path | None = Field(None, description="JSONL file of {key, reply} for policy 'script'")
    reply: str = Field("", description="what policy 'fixed' always answers")

    error_rate: float = Field(0.0, ge=0, le=1)
    error_status: int = Field(500, ge=300, le=599)
    sticky_errors: bool = Field(False, description="decide errors by the body's hash, so a retry fails as well")
    retry_after: str | None = Field(None, description="Retry-After header of responses with status 429 and 503")
    echo_key: bool = Field(False, description="repeat the Authorization header in error messages, as careless proxies do")
    malformed_rate: float = Field(0.0, ge=0, le=1)
    malformed_kinds: tuple[Malformed, ...] = Field(MALFORMED, min_length=1)
    hang_rate: float = Field(0.0, ge=0, le=1, description="requests that are never answered")
    hang_at: tuple[tuple[str, int], ...] = Field((), description="(tag, k) of single requests that are never answered")
    first_faults: tuple[str, ...] = Field(
        (), description="what happens to the first requests of every tag: a status, a malformed kind, 'hang' or '' for nothing"
    )
    log: Path | None = Field(None, description="JSONL file that gets one line a request")
    keep: int = Field(0, ge=0, description="how many of the last requests are kept, headers and body, for tests")

    def model_post_init(self, context: Any) -> None:
        """Refuse a fault that is none."""
        for fault in self.first_faults:
            known = fault in ("", "hang", *MALFORMED) or (fault.isdecimal() and 300 <= int(fault) <= 599)
            if not known:
                raise UsageError(f"unknown fault {fault!r}: expected a status, 'hang', '' or one of {', '.join(MALFORMED)}")


class SeenRequest(NamedTuple):
    """A request as it arrived. Header names are lower case."""

    headers: dict[str, str]
    body: bytes


class Tag(NamedTuple):
    """What a request asks about.

    ``text`` decides latency and faults, ``chain`` names the episode whose steps follow each other; ``name`` and ``key`` are
    of the step and sample, for the policies (``key`` is ``None`` when the request does not say).
    """

    text: str
    chain: str
    name: str
    key: StepKey | None


class Answer(NamedTuple):
    """What a policy says."""

    text: str
    reasoning: str | None = None


Answers: TypeAlias = Callable[[Tag, bytes], Answer]
"""A policy at work: from the tag and the raw body to the reply; ``LookupError`` when it has none."""


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

    A request's tag is an ``[EP123]`` in its body where there is one, else its X-Request-Id without the try's suffix; ``k`` is
    how many requests had the same tag before. A request without tag is a liveness probe: answered at once, not counted.
    A fault is, in this order, the one ``first_faults`` has for k, ``hang_at``, an error (at once, before any waiting), and
    after the latency a hang or a malformed answer.
    """

    def __init__(self, settings: MockSettings, answers: Answers) -> None:
        self.settings = settings
        self.seen: deque[SeenRequest] = deque(maxlen=settings.keep)
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

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"].rstrip("/")
        if scope["method"] == "POST":
            await self._completion(scope, receive, send)
        elif path == "/stats":
            await _send(send, 200, _json(self.stats()))
        elif path in ("/health", "/v1/health"):
            await _send(send, 200, b"{}")
        elif path.endswith("/models"):
            models = [{"id": name, "object": "model", "owned_by": "guieval"} for name in self.settings.served_models]
            await _send(send, 200, _json({"object": "list", "data": models}))
        else:
            await _send(send, 404, _error(f"there is nothing at {path!r}"))

    async def _completion(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self.seen.maxlen:
            self.seen.append(
                SeenRequest({name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}, body)
            )
        tag = _tag(headers.get(b"x-request-id", b""), body)
        if tag is None:
            await _send(send, 200, _completion_body(Answer("alive")))
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
        outcome = "gone"
        try:
            outcome = await self._respond(tag, k, latency, body, headers, receive, send)
        finally:
            if outcome != "hung":  # counted when it began
                self._counts[outcome] += 1
            self._in_flight -= 1
            self._last = time.time()
            if self._log is not None:
                line = {"arrival": arrival, "end": self._last, "tag": tag.text, "k": k, "latency": latency}
                print(json.dumps({**line, "bytes": len(body), "outcome": outcome}), file=self._log, flush=True)

    async def _respond(
        self, tag: Tag, k: int, latency: float, body: bytes, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> str:
        """Answer or not; returns the name of the count the request belongs to."""
        fault = self._fault(tag.text, k, body)
        if fault == "hang":
            self._counts["hung"] += 1
            await _disconnected(receive)
            return "hung"
        if fault.isdecimal():
            return await self._fail(int(fault), headers, send)
        if not await self._serve(tag, latency, receive):
            return "gone"
        try:
            answer = self._answers(tag, body)
        except LookupError as error:
            await _send(send, 400, _error(str(error.args[0])))
            return "failed"
        if fault:
            await _send_malformed(send, fault, answer)
            return "malformed"
        await _send(send, 200, _completion_body(answer))
        return "served"

    async def _serve(self, tag: Tag, latency: float, receive: Receive) -> bool:
        """Take a slot for the request's latency; false when the client leaves meanwhile."""
        if self._slots is not None:
            await self._slots.acquire()
        self._serving += 1
        self._max_serving = max(self._max_serving, self._serving)
        try:
            if latency > 0.0:
                try:
                    async with asyncio.timeout(latency):
                        await _disconnected(receive)
                    return False
                except TimeoutError:
                    pass
            self._latency_sum += latency
            self._chains[tag.chain] = self._chains.get(tag.chain, 0.0) + latency
            return True
        finally:
            self._serving -= 1
            if self._slots is not None:
                self._slots.release()

    async def _fail(self, status: int, headers: dict[bytes, bytes], send: Send) -> str:
        message = f"the mock server fails with status {status}"
        if self.settings.echo_key:
            message += f" ({headers.get(b'authorization', b'no key').decode('latin-1')})"
        extra = []
        if self.settings.retry_after is not None and status in (429, 503):
            extra.append((b"retry-after", self.settings.retry_after.encode()))
        await _send(send, status, _error(message), extra)
        return "failed"

    def _fault(self, tag: str, k: int, body: bytes) -> str:
        """``hang``, a status, a malformed kind, or nothing."""
        settings = self.settings
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


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _tag(header: bytes, body: bytes) -> Tag | None:
    name = without_try(header.decode("latin-1"))
    found = _EPISODE_TAG.search(body)
    text = found.group().decode() if found else name
    try:
        key, sample = parse_request_id(name)
    except ValueError:
        return Tag(text, text, name or text, None) if text else None
    chain = text if found else f"{name.rpartition('|')[0].rpartition('|')[0]}|{sample}"
    return Tag(text, chain, name, key)


async def _send(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = (), kind: bytes = b"application/json"
) -> None:
    fields = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def _send_malformed(send: Send, kind: str, answer: Answer) -> None:
    match kind:
        case "cut-json":
            await _send(send, 200, _completion_body(answer)[:150])
        case "html":
            await _send(send, 200, b"<html><body><h1>Bad gateway</h1></body></html>", kind=b"text/html")
        case "null-content":
            await _send(send, 200, _completion_body(Answer(answer.text, answer.text), content=None))
        case "empty-choices":
            await _send(send, 200, _json({"id": "mock", "object": "chat.completion", "choices": []}))
        case _:
            await _send(send, 200, _completion_body(Answer(answer.text[: len(answer.text) // 2])))


_SAME = object()


def _completion_body(answer: Answer, content: object = _SAME) -> bytes:
    message = {"role": "assistant", "content": answer.text if content is _SAME else content}
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3000, "completion_tokens": 60, "total_tokens": 3060}
    return _json({"id": "mock", "object": "chat.completion", "model": "mock", "choices": [choice], "usage": usage})


def _error(message: str) -> bytes:
    return _json({"error": {"message": message, "type": "mock_error"}})


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _rss_bytes() -> int | None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    import resource

    return pages * resource.getpagesize()


def policy_answers(settings: MockSettings, *, model: ABCModel | None = None, benchmark: ABCBenchmark | None = None) -> Answers:
    """The policy that ``settings`` name, ready to answer.

    ``model`` and ``benchmark`` take the place of those to load by name. Raises :class:`UsageError` when one that the policy
    needs is neither given nor named, or when the script cannot be read.
    """
    if settings.policy == "fixed":
        fixed = Answer(settings.reply)
        return lambda tag, body: fixed
    if settings.policy == "script":
        return _scripted(settings)
    if model is None:
        from guieval.registry import load_model

        if settings.model is None:
            raise UsageError(f"the mock server's policy {settings.policy!r} needs a model, whose format it answers in")
        model = load_model(settings.model, adapter=settings.adapter)
    if settings.policy == "reference":
        return _from_reference(settings, model, benchmark or _load_benchmark(settings))
    lookup = benchmark if benchmark is not None or settings.benchmark is None else _load_benchmark(settings)
    return _without_reference(settings, model, lookup)


def _load_benchmark(settings: MockSettings) -> ABCBenchmark:
    from guieval.registry import load_benchmark

    if settings.benchmark is None:
        raise UsageError("the mock server's policy 'reference' needs a benchmark, whose labels it answers")
    return load_benchmark(settings.benchmark, settings.data)


def _step_finder(benchmark: ABCBenchmark) -> Callable[[StepKey], StepTaskModel]:
    refs = {ref.key: ref for ref in benchmark.index()}

    @lru_cache(maxsize=512)
    def episode(key: EpisodeKey) -> tuple[StepTaskModel, ...]:
        return benchmark.load(refs[key]).steps

    def find(key: StepKey) -> StepTaskModel:
        episode_key = EpisodeKey(*key[:3])
        if episode_key not in refs or key.step_index >= refs[episode_key].length:
            raise LookupError(f"step {key} is not in benchmark {benchmark.name!r}")
        return episode(episode_key)[key.step_index]

    return find


def _from_reference(settings: MockSettings, model: ABCModel, benchmark: ABCBenchmark) -> Answers:
    find = _step_finder(benchmark)

    def answer(tag: Tag, body: bytes) -> Answer:
        if tag.key is None:
            raise LookupError(f"the request {tag.name!r} names no step, so it has no reference")
        task = find(tag.key)
        right = next((action for action in (task.action, *task.alternatives) if action in model.action_space), None)
        if right is None or uniform(settings.seed, tag.name, "accuracy") >= settings.accuracy:
            return Answer(
                model.render(task, wrong_action(task, model.action_space, uniform(settings.seed, tag.name, "wrong")), THOUGHT)
            )
        return Answer(model.render(task, right, THOUGHT))

    return answer


def _without_reference(settings: MockSettings, model: ABCModel, benchmark: ABCBenchmark | None) -> Answers:
    find = _step_finder(benchmark) if benchmark is not None else None

    def task_of(tag: Tag, body: bytes) -> StepTaskModel:
        if find is not None and tag.key is not None:
            return find(tag.key)
        return _blank_task(_screen_size(body))

    @lru_cache(maxsize=256)
    def centre(size: Size) -> Answer:
        return Answer(model.render(_blank_task(size), Click(point=Point(500.0, 500.0)), THOUGHT))

    def answer(tag: Tag, body: bytes) -> Answer:
        task = task_of(tag, body)
        if settings.policy == "centre":
            return centre(task.screenshot_size)
        action = random_action(model.action_space, random.Random(repr((settings.seed, tag.name))))
        return Answer(model.render(task, action, THOUGHT))

    return answer


def _scripted(settings: MockSettings) -> Answers:
    if settings.script is None:
        raise UsageError("the mock server's policy 'script' needs a script file")
    replies: dict[str, Answer] = {}
    try:
        lines = settings.script.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"the script {str(settings.script)!r} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = _ScriptLine.model_validate_json(line)
        except ValueError:
            raise UsageError(f"{settings.script}, line {number}: expected {{key, reply}} with text in both") from None
        replies[entry.key] = Answer(entry.reply, entry.reasoning)

    def answer(tag: Tag, body: bytes) -> Answer:
        names = [tag.name, tag.name.rpartition("|")[0], *([str(tag.key)] if tag.key else []), tag.text, "*"]
        for name in names:
            if name in replies:
                return replies[name]
        raise LookupError(f"the script has no reply for {tag.name!r}")

    return answer


class _ScriptLine(BaseModel):
    """``key`` is a request id with or without the sample, a step key as messages print it, an episode tag, or ``*``."""

    model_config = ConfigDict(extra="forbid")

    key: str
    reply: str
    reasoning: str | None = None


def _screen_size(body: bytes) -> Size:
    """(width, height) of the last PNG in a request, from its header; :data:`DEFAULT_SIZE` when there is none."""
    place = body.rfind(_PNG_URL)
    if place < 0:
        return DEFAULT_SIZE
    start = place + len(_PNG_URL)
    try:
        head = b64decode(body[start : start + 32], validate=True)  # signature, length, IHDR, width, height
    except ValueError:
        return DEFAULT_SIZE
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    return (width, height) if width and height else DEFAULT_SIZE


def _blank_task(size: Size) -> StepTaskModel:
    return StepTaskModel(
        benchmark="mock",
        dataset="mock",
        episode_id="0",
        step_index=0,
        episode_length=1,
        setting="high",
        instruction="",
        low_level_instruction=None,
        screenshot="",
        screenshot_size=size,
        action=Wait(),
    )


def random_action(space: ActionSpace, source: random.Random) -> Action:
    """An action of ``space``, each type equally likely."""
    point = Point(round(source.uniform(0.0, 1000.0), 1), round(source.uniform(0.0, 1000.0), 1))
    match source.choice(sorted(space.types)):
        case "CLICK":
            return Click(point=point)
        case "LONG_PRESS":
            return LongPress(point=point)
        case "SCROLL":
            return Scroll(point=point, direction=source.choice(DIRECTIONS))
        case "TYPE":
            return Type(text=source.choice(("hello", "weather tomorrow", "coffee near me")))
        case "OPEN":
            return Open(app=source.choice(("Settings", "Chrome", "Clock")))
        case "PRESS":
            return Press(button=source.choice([button for button in BUTTONS if button in space.buttons]))
        case "WAIT":
            return Wait()
        case _:
            return Stop(status=source.choice(sorted(space.statuses)))


def wrong_action(task: StepTaskModel, space: ActionSpace, draw: float) -> Action:
    """An action of ``space`` that no rule should count as right for ``task``; ``draw`` in [0, 1) chooses which.

    Below a half it is one of another type, else one of the right type with another target where that is possible. Types that
    some protocols let stand for each other (a click for a long press or for opening an app) do not count as other types.
    """
    right = (task.action, *task.alternatives)
    types = {action.type for action in right}
    if types & {"CLICK", "LONG_PRESS", "OPEN"}:
        types |= {"CLICK", "LONG_PRESS", "OPEN"}
    others: list[Action] = [
        Press(button="BACK"),
        Scroll(point=Point(500.0, 500.0), direction="up"),
        Wait(),
        Type(text=_NO_TEXT),
    ]
    others += [Click(point=_far_point(task)), Stop()]
    other_type = [action for action in others if action.type not in types and action in space]
    other_target = [action for action in _other_targets(task, right) if action in space]
    first, second = (other_type, other_target) if draw < 0.5 else (other_target, other_type)
    options = first or second
    if not options:
        raise LookupError(f"the model's format can say nothing wrong about step {task.key}")
    return options[int(draw * 2.0 % 1.0 * len(options))]


_NO_TEXT = "zqxj vwkq"


def _other_targets(task: StepTaskModel, right: tuple[Action, ...]) -> list[Action]:
    match task.action:
        case Click():
            return [Click(point=_far_point(task))]
        case LongPress():
            return [LongPress(point=_far_point(task))]
        case Scroll(point=point):
            good = {action.direction for action in right if isinstance(action, Scroll)}
            return [Scroll(point=point, direction=direction) for direction in DIRECTIONS if direction not in good]
        case Type(text=text) if text.strip():
            return [Type(text=_NO_TEXT)]
        case Open():
            return [Open(app=_NO_TEXT)]
        case Press():
            pressed = {action.button for action in right if isinstance(action, Press)}
            return [Press(button=button) for button in BUTTONS if button not in pressed]
        case _:
            return []


def _far_point(task: StepTaskModel) -> Point:
    """The point of a coarse grid that shares the fewest boxes with the right points, and of those the farthest from them."""
    right = [action.point for action in (task.action, *task.alternatives) if isinstance(action, Click | LongPress | Scroll)]
    boxes = task.boxes.array
    target = boxes[[any(x1 <= p.x <= x2 and y1 <= p.y <= y2 for p in right) for x1, y1, x2, y2 in boxes.tolist()]]

    def merit(point: Point) -> tuple[int, float]:
        inside = (target[:, 0] <= point.x) & (point.x <= target[:, 2]) & (target[:, 1] <= point.y) & (point.y <= target[:, 3])
        return -int(inside.sum()), min((math.dist(point, p) for p in right), default=0.0)

    return max((Point(x, y) for x in (20.0, 260.0, 500.0, 740.0, 980.0) for y in (20.0, 260.0, 500.0, 740.0, 980.0)), key=merit)


class MockServer:
    """The server in a thread of its own, for tests and demos; a context manager, plain or asynchronous.

    ``base_url`` ends in ``/v1``. Raises :class:`UsageError` when the port is taken.
    """

    def __init__(
        self,
        settings: MockSettings | None = None,
        *,
        model: ABCModel | None = None,
        benchmark: ABCBenchmark | None = None,
        answers: Answers | None = None,
    ) -> None:
        settings = settings if settings is not None else MockSettings()
        self.app = MockApp(settings, answers or policy_answers(settings, model=model, benchmark=benchmark))
        self._socket = _listen(settings)
        self._server = _uvicorn_server(self.app)
        self._thread = threading.Thread(target=self._run, name="guieval-mock-server", daemon=True)

    @property
    def base_url(self) -> str:
        """Where clients find it."""
        return _url(self._socket)

    @property
    def requests(self) -> tuple[SeenRequest, ...]:
        """The last ``settings.keep`` requests, oldest first."""
        return tuple(self.app.seen)

    def stats(self) -> dict[str, Any]:
        """What GET /stats answers."""
        return self.app.stats()

    def start(self) -> None:
        """Start serving; requests sent from now on are answered."""
        self._thread.start()

    def stop(self) -> None:
        """Stop at once, requests in flight included."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join()
        self._socket.close()
        self.app.close()

    def __enter__(self) -> MockServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> MockServer:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


def serve(settings: MockSettings) -> None:
    """Serve until interrupted; prints the base URL first. Raises :class:`UsageError` when the port is taken."""
    app = MockApp(settings, policy_answers(settings))
    listener = _listen(settings)
    server = _uvicorn_server(app)
    print(f"mock server at {_url(listener)}", flush=True)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # uvicorn has shut down and raises the signal it caught once more
    finally:
        listener.close()
        app.close()


def _listen(settings: MockSettings) -> socket.socket:
    try:
        return socket.create_server((settings.host, settings.port), backlog=2048)
    except OSError as error:
        raise UsageError(f"the mock server cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}/v1"


def _uvicorn_server(app: MockApp) -> Any:
    import uvicorn

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=600,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
