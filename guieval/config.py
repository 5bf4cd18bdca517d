"""The configuration of a run: YAML file, ``--set`` overrides and command-line flags meet in one merge, checked once.

The resolved configuration is saved beside the results. Its *identity* fields decide what the numbers are; the others
(:data:`RUNTIME_FIELDS`) only say how they are obtained and may change on resume.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from guieval.errors import UsageError, first_problem, nearest

if TYPE_CHECKING:
    import yaml

RUNTIME_FIELDS = frozenset(
    {"data", "base_urls", "api_key_env", "concurrency", "timeout", "max_attempts", "served_model", "episodes", "overlay"}
    | {"insecure_tls", "model_path", "reuse_server", "cluster", "cluster_address", "workers"}
    | {"budget", "prices", "track", "tracking"}
    | {"local_images", "image_uuids"}
    | {"patch_base_urls", "patch_api_key_env"}
    | {"mix_artifacts"}
    | {"fixed_thoughts", "compact"}
)
"""Fields that may differ between a run and its resume: where things are and how hard to try, not what is measured.

What the files named by ``episodes`` and ``overlay`` hold, and the thoughts of the run named by ``fixed_thoughts``, is compared
by its fingerprint, and so are the artifacts named by ``mix_artifacts``.
"""

_SERVING_ONLY = frozenset(
    {"python", "command", "start-timeout", "stop-timeout", "tensor-parallel-size", "pipeline-parallel-size"}
    | {"data-parallel-size", "api-server-count", "gpu-memory-utilization", "max-num-seqs", "max-num-batched-tokens"}
    | {"enforce-eager", "swap-space", "cpu-offload-gb", "download-dir", "distributed-executor-backend", "uvicorn-log-level"}
)
"""Settings of a launched server that say how it is run; the others decide what it answers."""

_SECRET = re.compile(
    r"api[-_ ]?key|authorization|^(extra[-_])?headers$|(^|[-_])(password|passwd|secret|bearer|credentials?|cookies?)$"
    r"|^token$|(^|[-_])(hf|hub|api|auth|access|bearer)[-_]?token$",
    re.IGNORECASE,
)
"""Names under which keys are sent; others that end in the same words (``prompt_cache_key``, ``eos_token``) hold none."""

_SHORTEST_KEY = 16
"""Characters below which a key is a placeholder, e.g. ``localhost``, and may stand in a setting by chance."""

MOST_CONCURRENCY = 4096
"""Requests in flight above which a run is surely a mistake."""
NOT_OPTIONS = frozenset({"self", "root", "name", "data"})
"""What a loader is given anyway, so that no option of a benchmark can have this name."""


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse what a manifest could not give back: dates, binary data, NaN, keys that are no text."""
    try:
        same = json.loads(json.dumps(values, allow_nan=False)) == values
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise ValueError("must hold nothing but text, finite numbers, true, false, null, lists and groups of these")
    return values


def _no_secrets(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse a setting that is a secret by its name, unseen: the manifest holds all settings, and the journal some."""
    if (name := _secret_name(values)) is not None:
        raise PydanticCustomError("secret", "{name}", {"name": name})
    return values


def _secret_name(value: Any) -> str | None:
    """Where in nested settings the first secret stands, as ``a.b``."""
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = [(str(place), item) for place, item in enumerate(value)]
    for name, item in items:
        if isinstance(value, dict) and _SECRET.search(name):
            return name
        if (inner := _secret_name(item)) is not None:
            return f"{name}.{inner}"
    return None


def _no_reserved(values: dict[str, Any]) -> dict[str, Any]:
    if taken := sorted(NOT_OPTIONS & values.keys()):
        raise ValueError(f"{taken[0]!r} is no option of a benchmark (--data gives its folder)")
    return values


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _number_or_auto(value: Any) -> Any:
    if value is None or value == "auto":
        return value
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_CONCURRENCY:
        raise ValueError(f"expected a number from 1 to {MOST_CONCURRENCY}, or auto")
    return number


def _number_or_unlimited(value: Any) -> Any:
    if value is None or value == "unlimited":
        return value
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError("expected a whole number from 0, or unlimited")
    return number


_Text: TypeAlias = Annotated[str, Field(min_length=1)]
_PlainValues: TypeAlias = Annotated[dict[str, Any], AfterValidator(_plain)]
_Values: TypeAlias = Annotated[_PlainValues, AfterValidator(_no_secrets)]


class RunConfig(BaseModel):
    """Everything one run depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: _Text = Field(description="checkpoint name (`guieval models`)")
    adapter: _Text | None = Field(None, description="model family, or a Python file, that serves an unlisted checkpoint")
    bench: _Text = Field(description="benchmark name (`guieval benchmarks`)")
    bench_options: Annotated[_Values, AfterValidator(_no_reserved)] = Field(
        default_factory=dict, description="options of that benchmark's loader"
    )
    mode: _Text = Field("offline", description="offline, soeval or sop")
    patch: _Text = Field("none", description="patches of mismatches in mode sop: none, thought-free, off-policy or on-policy")
    patch_budget: Annotated[int | Literal["unlimited"] | None, BeforeValidator(_number_or_unlimited)] = Field(
        None, description="mismatches of an episode that are patched, or unlimited; 1 when not given (UI-S1 paper, Table 9)"
    )
    patch_model: _Text | None = Field(None, description="who writes the thoughts of off-policy patches, as its server calls it")
    patch_base_urls: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = Field(
        (), description="OpenAI-compatible endpoints of that auxiliary model"
    )
    patch_api_key_env: str = Field(
        "PATCH_API_KEY", pattern=r"^[A-Za-z_]\w*$", description="environment variable that holds their key; never stored"
    )
    mix: _Values = Field(
        default_factory=dict,
        description="a mixed history (mode offline): start, end, shape, mean, kappa, over, seed, repeat, pick (docs/mixing.md)",
    )
    mix_artifacts: _Text | None = Field(None, description="run or rollout whose exact answers a mixed history holds")
    protocol: _Text | None = Field(None, description="scoring protocol; the benchmark's own when not given")
    split: _Text | None = Field(None, description="split to run, or all; test where the data has one, when not given")
    subset: Annotated[tuple[_Text, ...], BeforeValidator(_one_or_more)] = Field((), description="run these subsets only")
    sample_set: _Text | None = Field(None, description="run the steps of this named set (`guieval sample-sets`)")
    episodes: _Text | None = Field(None, description="file that lists the episodes, or the steps, to run")
    limit: int | None = Field(None, ge=1, description="run a seeded sample of this many whole episodes")
    seed: int = Field(0, ge=0, description="seed of that sample")
    skip_damaged: bool = Field(False, description="leave out episodes that cannot be read, and say so")
    overlay: _Text | None = Field(None, description="JSONL file of further accepted actions")
    thinking: bool | None = Field(None, description="thinking on or off; the checkpoint's default when not given")
    options: _Values = Field(default_factory=dict, description="options of the model's adapter over the checkpoint's own")
    fixed_thoughts: _Text | None = Field(None, description="run directory whose thoughts the model is made to think")
    sampling: _Values = Field(default_factory=dict, description="request parameters over the checkpoint's own")
    samples: int = Field(1, ge=1, le=1024, description="answers to each step; figures of one answer are of the first")
    resampling: _Values = Field(default_factory=dict, description="request parameters of further samples over the first's")
    compact: bool = Field(False, description="keep the journal small: packed, equal answers to a step once")
    engine: Literal["auto", "openai", "local", "replay", "vllm", "vllm-inprocess", "transformers"] = Field(
        "auto", description="who answers"
    )
    model_path: _Text | None = Field(None, description="folder or Hugging Face id of the weights (engines that load them)")
    vllm: _PlainValues = Field(
        default_factory=dict, description="arguments of vLLM's server over the checkpoint's (engine: vllm)"
    )
    replay: _Text | None = Field(None, description="run directory whose journal answers (engine: replay)")

    data: _Text | None = Field(None, description="the benchmark's data folder")
    base_urls: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = Field(
        (), description="OpenAI-compatible endpoints, e.g. http://127.0.0.1:8000/v1"
    )
    served_model: _Text | None = Field(None, description="model name to ask the server for; found out when not given")
    api_key_env: str = Field(
        "OPENAI_API_KEY", pattern=r"^[A-Za-z_]\w*$", description="environment variable that holds the key; never stored"
    )
    insecure_tls: Literal["I accept unverified certificates"] | None = Field(
        None, description="these words let an https server be asked that does not prove who it is"
    )
    concurrency: Annotated[int | Literal["auto"] | None, BeforeValidator(_number_or_auto)] = Field(
        None, description="requests in flight, or auto to find out (64; engine vllm: auto; local agents: CPU cores)"
    )
    timeout: float = Field(120.0, gt=0, allow_inf_nan=False, description="seconds one try of a request may take")
    local_images: bool | None = Field(
        None, description="screenshots by file:// URL, for the server shares this disk (engine vllm: unless false)"
    )
    image_uuids: bool | None = Field(
        None, description="name screenshots that the server holds, by vLLM's uuid (engine vllm: unless false)"
    )
    reuse_server: bool = Field(False, description="use a vLLM server left running, and leave it running (engine: vllm)")
    max_attempts: int = Field(5, ge=1, le=100, description="tries of a request before it counts as a failure")
    budget: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="no further step once the estimated cost comes to this, in the price's currency",
    )
    prices: _Text | None = Field(None, description="YAML file of prices per million tokens; those shipped when not given")
    track: Annotated[tuple[_Text, ...], BeforeValidator(_one_or_more)] = Field(
        (), description="told of the run as it goes: wandb, mlflow, trackio"
    )
    tracking: _Values = Field(default_factory=dict, description="what these are told it by: project, name, uri")
    cluster: Literal["none", "ray"] = Field("none", description="run on the machines of a Ray cluster")
    cluster_address: _Text = Field("auto", description="that cluster: auto, local (this machine alone) or HOST:PORT")
    workers: int | None = Field(None, ge=1, le=10_000, description="workers on the cluster (one a machine; by GPUs for vLLM)")

    def identity(self) -> dict[str, Any]:
        """The fields that decide what the numbers are, as JSON-able values."""
        values = {name: value for name, value in self.model_dump(mode="json").items() if name not in RUNTIME_FIELDS}
        if self.engine == "vllm":  # a server started elsewhere may finish what one of ours began
            values["engine"] = "openai"
        values.pop("options")  # what they come to is part of the checkpoint
        patching = {name: values.pop(name) for name in ("patch", "patch_budget", "patch_model")}
        if self.patch != "none" and self.patch_budget != 0:  # a run without patches is what it was before there were any
            values |= {**patching, "patch_budget": 1 if self.patch_budget is None else self.patch_budget}
        if not self.mix:  # likewise
            del values["mix"]
        named = {name.replace("_", "-"): value for name, value in self.vllm.items()}
        return {**values, "vllm": {name: value for name, value in named.items() if name not in _SERVING_ONLY}}


def merge(
    file: Path | None, overrides: Sequence[str], flags: Mapping[str, Any], *, base: Mapping[str, Any] | None = None
) -> RunConfig:
    """Build a configuration: ``base`` (or the defaults), the YAML ``file``, ``key.sub=value`` overrides, ``flags`` not None.

    Raises :class:`UsageError` naming the field, its value and what was expected.
    """
    import yaml

    values: dict[str, Any] = dict(base or {})
    if file is not None:
        try:
            loaded = yaml.load(file.read_text(encoding="utf-8"), yaml_loader())
        except OSError as error:
            raise UsageError(f"the configuration file {str(file)!r} cannot be read: {error.strerror}") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: e.g. the 45th of a month, or no UTF-8
            raise UsageError(f"the configuration file {str(file)!r} is not YAML: {' '.join(str(error).split())}") from None
        if not isinstance(loaded, dict):
            raise UsageError(f"the configuration file {str(file)!r} must hold `name: value` lines")
        values.update(loaded)
    override(values, overrides)
    values.update({name: value for name, value in flags.items() if value is not None})
    return parse(values)


def override(values: dict[str, Any], overrides: Sequence[str]) -> None:
    """Put ``key.sub=value`` settings into nested ``values``; :class:`UsageError` for what is none."""
    import yaml

    for given in overrides:
        key, separator, text = given.partition("=")
        path = key.split(".")
        if not separator or not all(path):
            raise UsageError(f"--set needs key=value, got {given!r}")
        try:
            value = yaml.load(text, yaml_loader())
        except (yaml.YAMLError, ValueError, RecursionError):
            value = text
        _assign(values, path, value, given)


def yaml_loader() -> type[yaml.SafeLoader]:
    """YAML's safe loader, but ``1e-3`` is a number, as in YAML 1.2 and everywhere else."""
    import re

    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789"))
    return Loader


def _assign(values: dict[str, Any], path: list[str], value: Any, given: str) -> None:
    for part in path[:-1]:
        inner = values.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UsageError(f"--set {given!r}: {part!r} is not a group of settings")
        values[part] = values = dict(inner)
    values[path[-1]] = value


def parse(values: Mapping[str, Any]) -> RunConfig:
    """Validate merged values; :class:`UsageError` with the nearest field name for an unknown one."""
    for name in values:
        if name not in RunConfig.model_fields:
            raise UsageError(f"unknown setting {name!r}{nearest(str(name), RunConfig.model_fields)}")
    try:
        config = RunConfig.model_validate(dict(values))
    except ValidationError as error:
        problem = first_problem(error)
        field = problem.field
        if problem.kind == "missing":
            raise UsageError(f"the setting {field!r} is required (--{field.replace('_', '-')})") from None
        if field in ("api_key_env", "patch_api_key_env"):  # whoever takes it for the key must not find the key in a log
            raise UsageError(f"setting {field!r} must be the name of an environment variable, not a key") from None
        if problem.path[0] in ("base_urls", "patch_base_urls"):  # it may hold a password
            raise UsageError(f"setting {problem.path[0]!r} must be a list of URLs like http://localhost:8000/v1") from None
        if problem.kind == "secret":
            raise UsageError(
                f"{field}.{problem.said} cannot be given as a setting, for it is a secret and a run's files hold its settings; "
                "a key belongs in the environment, in the variable that --api-key-env names"
            ) from None
        raise UsageError(f"setting {field!r} is {problem.value!r}: {problem.said}") from None
    _refuse_the_key(config)
    if config.compact and config.cluster != "none":
        raise UsageError("a compact journal is written on one machine: leave out compact, or --cluster")
    return config


def _refuse_the_key(config: RunConfig) -> None:
    """Raise :class:`UsageError` where a setting holds the key that the environment holds, whatever it is called."""
    for variable in dict.fromkeys((config.api_key_env, config.patch_api_key_env)):
        key = os.environ.get(variable, "").strip()
        if len(key) < _SHORTEST_KEY:
            continue
        for name, value in config.model_dump(mode="json").items():
            if json.dumps(key)[1:-1] in json.dumps(value):
                raise UsageError(
                    f"setting {name!r} holds the key that the environment variable {variable} holds; leave it out, for a "
                    "run's files hold its settings"
                )
