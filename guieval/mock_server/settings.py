"""What the mock server is told to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

from guieval.errors import UsageError

if TYPE_CHECKING:
    pass

Policy: TypeAlias = Literal["centre", "random", "reference", "script", "fixed", "distribution"]
Malformed: TypeAlias = Literal["cut-json", "html", "null-content", "empty-choices", "cut-text"]
MALFORMED: tuple[Malformed, ...] = get_args(Malformed)
Hostile: TypeAlias = Literal["reset", "gzip", "gzip-bomb", "flood", "drip"]
HOSTILE: tuple[Hostile, ...] = get_args(Hostile)
"""What no healthy server does, so that it only happens when named: a connection reset in the middle of the body, an answer
compressed though none was asked for, 260 kB that unpack to 256 MiB, an answer of more than 9 MiB, and one that comes a byte
every 50 ms for 10 s."""


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
    check_model: bool = Field(False, description="refuse requests for any other model with status 404")
    api_key: str | None = Field(None, description="refuse whoever does not send this key with status 401")
    longest_body: int | None = Field(None, ge=1, description="bytes above which a request is too long a prompt: status 400")
    certificate: Path | None = Field(None, description="PEM file of a certificate and its key; the server then speaks https")

    policy: Policy = Field("centre", description="what is answered")
    model: str | None = Field(None, description="checkpoint whose native format replies are written in")
    adapter: str | None = Field(None, description="model family, where the checkpoint is not a shipped one")
    benchmark: str | None = Field(None, description="benchmark that policy 'reference' looks steps up in")
    data: Path | None = Field(None, description="that benchmark's data folder")
    accuracy: float = Field(1.0, ge=0, le=1, description="how often policy 'reference' is right")
    history_gain: float = Field(
        0.0, ge=-1, le=1, description="added to accuracy where all of a step's past is shown with the policy's own thoughts"
    )
    script: Path | None = Field(None, description="JSONL file for policies 'script' and 'distribution'")
    reply: str = Field("", description="what policy 'fixed' always answers")

    error_rate: float = Field(0.0, ge=0, le=1)
    error_status: int = Field(500, ge=300, le=599)
    sticky_errors: bool = Field(False, description="decide errors by the body's hash, so a retry fails as well")
    retry_after: str | None = Field(None, description="Retry-After header of responses with status 429 and 503")
    retry_after_date: float | None = Field(None, ge=0, description="the same as an HTTP date, so many seconds from the answer")
    echo_key: bool = Field(
        False, description="repeat the Authorization header in error messages, also encoded, as careless proxies do"
    )
    malformed_rate: float = Field(0.0, ge=0, le=1)
    malformed_kinds: tuple[Malformed | Hostile, ...] = Field(MALFORMED, min_length=1)
    hang_rate: float = Field(0.0, ge=0, le=1, description="requests that are never answered")
    hang_at: tuple[tuple[str, int], ...] = Field((), description="(tag, k) of single requests that are never answered")
    first_faults: tuple[str, ...] = Field(
        (), description="what happens to the first requests of every tag: a status, a malformed kind, 'hang' or '' for nothing"
    )
    faults_after: int = Field(0, ge=0, description="how many requests are answered before the first fault of any kind")
    log: Path | None = Field(None, description="JSONL file that gets one line a request")
    keep: int = Field(0, ge=0, description="how many of the last requests are kept, headers and body, for tests")

    def model_post_init(self, context: Any) -> None:
        """Refuse a fault that is none."""
        for fault in self.first_faults:
            known = fault in ("", "hang", *MALFORMED, *HOSTILE) or (fault.isdecimal() and 300 <= int(fault) <= 599)
            if not known:
                raise UsageError(
                    f"unknown fault {fault!r}: expected a status, 'hang', '' or one of {', '.join((*MALFORMED, *HOSTILE))}"
                )
