"""The settings of a run as typed keyword arguments of Python's functions: the names of the command line's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

_File: TypeAlias = str | Path
_OneOrMore: TypeAlias = str | Sequence[str]
_Values: TypeAlias = Mapping[str, Any]


class RunSettings(TypedDict, total=False):
    """Every setting of a run but its mode, as :mod:`guieval.settings` describes and checks them.

    A list has the name of its option and that of its field: ``base_url`` and ``base_urls``. A group takes its settings too.
    """

    model: str | _Values
    adapter: _File | None
    scaffold: _File | None
    bench: str
    bench_options: _Values
    environments: int
    environment_timeout: float
    max_steps: int | None
    allow_network: bool
    tries: int | None
    patch: str
    patch_budget: int | Literal["unlimited"] | None
    patch_model: str | None
    patch_base_url: _OneOrMore
    patch_base_urls: _OneOrMore
    patch_api_key_env: str
    mix: _Values
    mix_artifacts: _File | None
    artifacts: _File | None
    mix_decisions: _File | None
    decisions: _File | None
    protocol: str | None
    split: str | None
    subset: _OneOrMore
    sample_set: _File | None
    episodes: _File | None
    limit: int | None
    seed: int
    skip_damaged: bool
    decode_check: bool
    overlay: _File | None
    perturb: str | None
    perturb_strength: float
    perturb_placement: Literal["auto", "near", "far"]
    perturb_seed: int
    thinking: bool | None
    zoom: float | None
    options: _Values
    fixed_thoughts: _File | None
    sampling: _Values
    temperature: float
    max_tokens: int
    top_p: float
    sampling_seed: int
    samples: int
    repeats: int
    history: _Values
    server: _Values
    online: _Values
    resampling: _Values
    compact: bool
    engine: str
    model_path: _File | None
    vllm: _Values
    replay: _File | None
    data: _File | _Values | None
    base_url: _OneOrMore
    base_urls: _OneOrMore
    served_model: str | None
    grounder_base_url: _OneOrMore
    grounder_base_urls: _OneOrMore
    grounder_served_model: str | None
    grounder_api_key_env: str
    api_key_env: str
    insecure_tls: Literal["I accept unverified certificates"] | None
    proxy: str | None
    trust_env: bool
    concurrency: int | Literal["auto"] | None
    timeout: float
    attention: Literal["auto", "sdpa", "flash_attention_2", "flash_attention_3", "eager"]
    batch_size: int | None
    cache: Literal["dynamic", "static"]
    local_images: bool | None
    image_uuids: bool | None
    reuse_server: bool
    stream: bool
    max_attempts: int
    patience: float
    backoff: float
    max_backoff: float
    max_retry_after: float
    budget: float | None
    prices: _File | None
    track: _OneOrMore
    tracking: _Values
    project: str | None
    uri: str | None
    cluster: Literal["none", "ray"] | _Values
    cluster_address: str
    workers: int | None
    name: str | None
    tag: _OneOrMore
    tags: _OneOrMore
    note: str | None
