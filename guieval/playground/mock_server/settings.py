"""The settings of the mock server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

from guieval.errors import UsageError

Policy: TypeAlias = Literal["centre", "random", "reference", "script", "fixed", "distribution"]
Sight: TypeAlias = Literal["nothing", "right", "shrunk", "unturned", "lossy"]
Malformed: TypeAlias = Literal["cut-json", "html", "null-content", "empty-choices", "cut-text"]
MALFORMED: tuple[Malformed, ...] = get_args(Malformed)
Hostile: TypeAlias = Literal["reset", "gzip", "gzip-bomb", "flood", "drip", "absurd-numbers", "twice"]
HOSTILE: tuple[Hostile, ...] = get_args(Hostile)
"""Faults of unhealthy servers, which occur only if named: a connection reset in the middle of the body, an answer compressed
although no compression was requested, 260 kB that unpack to 256 MiB, an answer of more than 9 MiB, one sent at a byte per 50 ms
for 10 s, one with impossible token counts and log-probabilities, and one that is sent twice."""


class MockSettings(BaseModel):
    """Behaviour of the server. Rates are probabilities, decided by a hash of (seed, tag, k), see :class:`MockApp`."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(0, ge=0, le=65535, description="port; 0 takes a free one")
    seed: int = Field(1, description="seed of everything that is random")
    latency: float = Field(0.0, ge=0, allow_inf_nan=False, description="mean seconds a request is served")
    sigma: float = Field(0.6, ge=0, allow_inf_nan=False, description="spread of the lognormal latency; 0 makes all alike")
    concurrency: int | None = Field(None, ge=1, description="requests served at once; the others wait in order of arrival")
    served_models: tuple[str, ...] = Field((), description="name that /v1/models lists (default: the model's, else mock)")
    check_model: bool = Field(False, description="refuse requests for any other model with status 404")
    api_key: str | None = Field(None, description="answer requests without this key with status 401")
    longest_body: int | None = Field(None, ge=1, description="bytes above which a request is too long a prompt: status 400")
    engine_version: str | None = Field("1.0", description="version that /version reports; null: there is no such page")
    fingerprint: str | None = Field(None, description="system_fingerprint of responses (chat completions)")
    certificate: Path | None = Field(None, description="PEM file of a certificate and its key; the server then speaks https")

    policy: Policy = Field("centre", description="what is answered: centre, random, reference, script, fixed or distribution")
    model: str | None = Field(None, description="checkpoint whose native format responses are written in")
    adapter: str | None = Field(None, description="model family, if the checkpoint is not a shipped one")
    benchmark: str | None = Field(None, description="policy reference: benchmark that is run")
    data: Path | None = Field(None, description="policy reference: data folder of that benchmark")
    accuracy: float = Field(
        1.0, ge=0, le=1, description="policy reference: how often it is right, on the same steps whatever the sampling seed"
    )
    history_gain: float = Field(
        0.0,
        ge=-1,
        le=1,
        description="policy reference: added to accuracy, times the share of the past that is the policy's own",
    )
    zoom: float | None = Field(
        None, gt=1, le=10, description="policy reference: factor of a run's --zoom, for right places on the enlarged part"
    )
    script: Path | None = Field(None, description='JSONL; policy script: {"key", "reply"}, distribution: {"key", "draws"}')
    reply: str = Field("", description="policy fixed: the response")
    sees: Sight = Field(
        "nothing",
        description="policy reference: how a picture is seen, by which places, prompt tokens and log-probabilities go: right, "
        "shrunk to --seen-pixels, unturned whatever its EXIF orientation says, or lossy (as a JPEG)",
    )
    seen_pixels: int = Field(602_112, ge=1, description="sees shrunk: most pixels of a picture")

    looks: int = Field(0, ge=0, description="screenshots that a model asks for before it acts (native computer-use APIs)")
    refused_tools: tuple[str, ...] = Field(
        (), description="types of tools that the model does not take: status 400 (native computer-use APIs)"
    )

    error_rate: float = Field(0.0, ge=0, le=1, description="share of requests that fail")
    error_status: int = Field(500, ge=300, le=599, description="HTTP status of requests that fail")
    sticky_errors: bool = Field(False, description="decide errors by the body's hash, so that a retry fails as well")
    retry_after: str | None = Field(None, description="Retry-After header of responses with status 429 and 503")
    retry_after_date: float | None = Field(None, ge=0, description="the same as an HTTP date, so many seconds from the answer")
    echo_key: bool = Field(
        False, description="repeat the Authorization header in error messages, also encoded, as careless proxies do"
    )
    malformed_rate: float = Field(0.0, ge=0, le=1, description="share of responses with a damaged body")
    malformed_kinds: tuple[Malformed | Hostile, ...] = Field(
        MALFORMED, min_length=1, description="how the body is damaged (default: as servers and proxies do)"
    )
    hang_rate: float = Field(0.0, ge=0, le=1, description="share of requests that are never answered")
    hang_at: tuple[tuple[str, int], ...] = Field((), description="(tag, k) of single requests that are never answered")
    first_faults: tuple[str, ...] = Field(
        (), description="outcome of each request's 1st, 2nd, ... attempt: a status, a malformed kind, hang or '' for none"
    )
    faults_after: int = Field(0, ge=0, description="requests that are answered before the first fault")
    log: Path | None = Field(None, description="JSONL file that gets one line per request")
    keep: int = Field(0, ge=0, description="how many of the last requests are kept, headers and body, for tests")

    @property
    def listed_models(self) -> tuple[str, ...]:
        return self.served_models or (self.model or "mock",)

    def model_post_init(self, context: Any) -> None:
        """Refuse an unknown fault."""
        for fault in self.first_faults:
            known = fault in ("", "hang", *MALFORMED, *HOSTILE) or (fault.isdecimal() and 300 <= int(fault) <= 599)
            if not known:
                raise UsageError(
                    f"unknown fault {fault!r}: expected a status, 'hang', '' or one of {', '.join((*MALFORMED, *HOSTILE))}"
                )
