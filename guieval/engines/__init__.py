"""Engines answer requests: an HTTP server (``openai``), a Python agent (``local``) or an earlier run (``replay``).

Their contract is :class:`guieval.models.Engine`. Here is only what they and the runner share: how a request is named, so that
a server's log, a mock server and a replay can tell which step is asked. The engines themselves are imported where they are
used, because each brings its own packages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol, runtime_checkable
from urllib.parse import quote, unquote

from guieval.steps import StepKey

__all__ = ["EndpointStats", "TellsStats", "describe_endpoint", "parse_request_id", "request_id", "with_try", "without_try"]

_TRY = re.compile(r"~[0-9a-f]{8}\.[0-9]+$")
_VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F))


@dataclass(frozen=True)
class EndpointStats:
    """How one server fares: tries in flight, answered and failed since the start, and whether it is left alone for a while.

    ``seconds`` is the time that the answered tries took together, ``seconds_p95`` what 95 % of them are not above (within
    2 %). ``requests`` are all tries sent to it, ``retries`` those of them whose request had failed before, there or elsewhere.
    ``busy`` is the share of the time since the first request in which it had any, ``None`` before that.
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

    def to_json(self) -> dict[str, object]:
        """The figures as JSON, with the mean."""
        return {**asdict(self), "seconds_mean": self.seconds_mean}

    @property
    def seconds_mean(self) -> float | None:
        """Mean time of an answered try, from sending it to its last byte."""
        return self.seconds / self.answered if self.answered else None


def describe_endpoint(stats: EndpointStats) -> str:
    """How a server fared over a run, in one line."""
    parts = [f"{stats.requests:,} requests, {stats.answered:,} answered, {stats.failed:,} failed, {stats.retries:,} retries"]
    if stats.seconds_mean is not None and stats.seconds_p95 is not None:
        parts.append(f"{stats.seconds_mean:.2f} s mean, {stats.seconds_p95:.2f} s p95")
    if stats.completion_tokens:
        parts.append(f"{stats.prompt_tokens:,} tokens in, {stats.completion_tokens:,} out")
    if stats.busy is not None:
        parts.append(f"busy {100 * stats.busy:.0f} % of the time")
    if stats.resting:
        parts.append("gone at the end")
    return f"{stats.name}: {'; '.join(parts)}"


@runtime_checkable
class TellsStats(Protocol):
    """An engine that can tell how its servers fare. Optional; :meth:`stats` may be called from another thread."""

    def stats(self) -> Sequence[EndpointStats]:
        """One entry for each server, as of now."""


def request_id(key: StepKey, sample: int) -> str:
    """The name of one sample of one step: ``benchmark|subset|episode|step|sample``, each part percent-encoded.

    Visible ASCII only, so it can stand in an HTTP header. :func:`parse_request_id` is the inverse.
    """
    texts = (quote(part, safe="", errors="surrogatepass") for part in (key.benchmark, key.subset, key.episode_id))
    return "|".join((*texts, str(key.step_index), str(sample)))


def parse_request_id(text: str) -> tuple[StepKey, int]:
    """Step and sample that a request id names, with or without the try's suffix; ``ValueError`` when it names none."""
    parts = without_try(text).split("|")
    if len(parts) != 5 or not (parts[3].isdecimal() and parts[4].isdecimal()):
        raise ValueError(f"{text!r} is no request id: expected benchmark|subset|episode|step|sample")
    benchmark, subset, episode = (unquote(part, errors="surrogatepass") for part in parts[:3])
    return StepKey(benchmark, subset, episode, int(parts[3])), int(parts[4])


def with_try(text: str, nonce: str, attempt: int) -> str:
    """A request id as it is sent: header-safe, and unlike that of every other try of every other run.

    vLLM takes the header for its own key of a running request: it refuses a second one, with status 400, and older versions
    break (vllm-project/vllm issue 10583, pull requests 11036 and 27987). Two runs over the same steps, or a try that follows
    one cut off by its time limit, would hit that. ``nonce`` is 8 hexadecimal digits.
    """
    return f"{quote(text, safe=_VISIBLE, errors='surrogatepass')}~{nonce}.{attempt}"


def without_try(text: str) -> str:
    """A request id as the runner wrote it, from the one in a header."""
    return _TRY.sub("", text)
