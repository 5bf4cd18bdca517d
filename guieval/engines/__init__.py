"""Engines answer requests: an HTTP server (``openai``), a Python agent (``local``) or an earlier run (``replay``).

Their contract is :class:`guieval.models.Engine`. This module has what they share with the runner: the ids of requests, which
identify the step in a server's log, a mock server and a replay. The engines themselves are imported when they are used,
because each needs its own packages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import quote, unquote

from guieval.journal.setup import SentRequest, Setup
from guieval.steps import StepKey, known_logprob

if TYPE_CHECKING:
    from guieval.models import Request

__all__ = [
    "Discovers",
    "EndpointStats",
    "ReportsServers",
    "ReportsSetup",
    "describe_endpoint",
    "mean_logprob",
    "parse_request_id",
    "request_id",
    "sent",
    "with_try",
    "without_try",
]

_TRY = re.compile(r"~[0-9a-f]{8}\.[0-9]+$")
_VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F))


@dataclass(frozen=True)
class EndpointStats:
    """The numbers of one server since the start: tries in flight, answered and failed, and whether it gets no work now.

    ``seconds`` is the total time of the answered tries, ``seconds_p95`` their 95th percentile (within 2 %). ``requests`` are
    all tries sent to it, ``retries`` those whose request had failed before, on any server. ``busy`` is the share of the time
    since the first request in which it had requests in flight, ``None`` before that. ``aside`` is the reason why it was put
    aside, if it was.
    """

    name: str
    in_flight: int
    answered: int
    failed: int
    seconds: float
    resting: bool = False
    requests: int = 0
    retries: int = 0
    seconds_p95: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    busy: float | None = None
    aside: str | None = None

    @staticmethod
    def counts(*of: object) -> dict[str, Any]:
        """What is added if several clients, or one at several times, saw a server: the sums over them, by field."""
        added = ("in_flight", "answered", "failed", "seconds", "requests", "retries", "prompt_tokens", "completion_tokens")
        return {name: sum(getattr(each, name) for each in of) for name in added}

    def to_json(self) -> dict[str, object]:
        """The numbers as JSON, with ``seconds_mean``."""
        return {**asdict(self), "seconds_mean": self.seconds_mean}

    @property
    def seconds_mean(self) -> float | None:
        """Mean time of an answered try, from sending it to its last byte."""
        return self.seconds / self.answered if self.answered else None


def describe_endpoint(stats: EndpointStats) -> str:
    """A server's numbers over a run, in one line."""
    parts = [f"{stats.requests:,} requests, {stats.answered:,} answered, {stats.failed:,} failed, {stats.retries:,} retries"]
    if stats.seconds_mean is not None and stats.seconds_p95 is not None:
        parts.append(f"{stats.seconds_mean:.2f} s mean, {stats.seconds_p95:.2f} s p95")
    if stats.completion_tokens:
        parts.append(f"{stats.prompt_tokens:,} tokens in, {stats.completion_tokens:,} out")
    if stats.busy is not None:
        parts.append(f"busy {100 * stats.busy:.0f} % of the time")
    if stats.aside is not None:
        parts.append(f"put aside, because {stats.aside}")
    elif stats.resting:
        parts.append("gone at the end")
    return f"{stats.name}: {'; '.join(parts)}"


@runtime_checkable
class ReportsServers(Protocol):
    """An engine that reports on its servers. Optional; :meth:`stats` and :meth:`waiting` may be called from another thread."""

    def stats(self) -> Sequence[EndpointStats]:
        """One entry for each server, as of now."""

    def waiting(self) -> str | None:
        """A text with the awaited servers and the seconds so far; ``None`` when it does not wait."""


@runtime_checkable
class Discovers(Protocol):
    """An engine that looks at its servers before it is used."""

    async def discover(self) -> object:
        """Ask them for what they serve; raises :class:`guieval.errors.EngineError`."""


@runtime_checkable
class ReportsSetup(Protocol):
    """An engine that knows who answers, and how. Optional; :meth:`setup` may be called from another thread."""

    def setup(self) -> Setup | None:
        """What is known by now, the same object until more is; ``None`` before the server was asked or the model loaded."""

    def note(self, request: Request) -> None:
        """Add to the set-up how this request is sent (:func:`sent`). Raises nothing: one that cannot be written fails later."""


def sent(request: Request, data: bytes, form: str) -> Setup:
    """A request as a set-up records it: how its images are encoded, and the digest of ``data``, its bytes with all images.

    ``form`` is where a server finds an image: ``base64``, ``file URL`` or ``memory``.
    """
    kinds = {
        f"{image.format} ({'original bytes' if image.path is not None else 're-encoded'}, {form})" for image in request.images
    }
    digest = SentRequest(id=request.request_id, sha256=sha256(data).hexdigest(), bytes=len(data))
    return Setup(images=" and ".join(sorted(kinds)) or None, request=digest)


def mean_logprob(tokens: Sequence[Any]) -> float | None:
    """The mean natural log-probability of a response's tokens; ``None`` without tokens, or if one has no valid value."""
    values = [value for value in map(known_logprob, tokens) if value is not None]
    return math.fsum(values) / len(values) if values and len(values) == len(tokens) else None


def request_id(key: StepKey, sample: int) -> str:
    """The id of one sample of one step: ``benchmark|subset|episode|step|sample``, with percent-encoded parts. The later stages
    of a composition add ``|stage`` to it.

    Visible ASCII only, so that it fits into an HTTP header. :func:`parse_request_id` is the inverse.
    """
    texts = (quote(part, safe="", errors="surrogatepass") for part in (key.benchmark, key.subset, key.episode_id))
    return "|".join((*texts, str(key.step_index), str(sample)))


def parse_request_id(text: str) -> tuple[StepKey, int]:
    """Step and sample of a request id, with or without a stage and the suffix of the try; ``ValueError`` for other texts."""
    parts = without_try(text).split("|")
    numbered = len(parts) in (5, 6) and parts[3].isdecimal() and parts[4].isdecimal()
    if not numbered or not all(map(str.isalpha, parts[5:])):
        raise ValueError(f"{text!r} is not a request id: expected benchmark|subset|episode|step|sample")
    benchmark, subset, episode = (unquote(part, errors="surrogatepass") for part in parts[:3])
    return StepKey(benchmark, subset, episode, int(parts[3])), int(parts[4])


def with_try(text: str, nonce: str, attempt: int) -> str:
    """The request id as sent: header-safe, and unique among all tries of all runs.

    vLLM uses the header as its own key of a running request: it refuses a duplicate with status 400, and older versions
    crash (vllm-project/vllm issue 10583, pull requests 11036 and 27987). Two runs over the same steps, or a retry after a
    time limit, would cause that. ``nonce`` is 8 hexadecimal digits.
    """
    return f"{quote(text, safe=_VISIBLE, errors='surrogatepass')}~{nonce}.{attempt}"


def without_try(text: str) -> str:
    """The runner's request id, from the one in a header."""
    return _TRY.sub("", text)
