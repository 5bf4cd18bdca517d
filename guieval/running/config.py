"""The configuration of a run: YAML file, ``--set`` overrides and command-line flags meet in one merge, checked once.

The resolved configuration is saved beside the results. Its *identity* fields decide what the numbers are; the others
(:data:`RUNTIME_FIELDS`) only say how they are obtained and may change on resume.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from guieval.data.files import read_text
from guieval.data.selection import Choice
from guieval.data.yaml_text import AliasError, read_yaml
from guieval.errors import UsageError, first_problem, nearest
from guieval.models.sampling import UNKNOWN_SAMPLING, check_sampling, request_parameters
from guieval.redaction import looks_secret
from guieval.registry import config_folder

RUNTIME_FIELDS = frozenset(
    {"data", "base_urls", "api_key_env", "concurrency", "timeout", "max_attempts", "patience", "served_model", "episodes"}
    | {"stream", "overlay", "insecure_tls", "proxy", "trust_env", "model_path", "reuse_server", "cluster", "cluster_address"}
    | {"workers", "budget", "prices", "track", "tracking"}
    | {"local_images", "image_uuids"}
    | {"patch_base_urls", "patch_api_key_env"}
    | {"mix_artifacts"}
    | {"fixed_thoughts", "compact", "decode_check"}
    | {"environments", "environment_timeout"}
)
"""Fields that may differ between a run and its resume: where things are and how hard to try, not what is measured.

What the files named by ``episodes`` and ``overlay`` hold, and the thoughts of the run named by ``fixed_thoughts``, is compared
by its fingerprint, and so are the artifacts named by ``mix_artifacts``.
"""

PANELS = {
    "What to run": "bench mode data split subset sample_set episodes limit seed skip_damaged decode_check overlay protocol "
    "allow_network",
    "Model": "model adapter scaffold thinking",
    "Server": "base_urls engine served_model reuse_server replay api_key_env concurrency timeout max_attempts patience budget "
    "prices cluster workers cluster_address",
    "History and patches": "patch patch_budget patch_model patch_base_urls fixed_thoughts",
    "Sampling": "samples",
    "Output": "track",
}
"""Fields that have an option of their own on the command line, by the panel of its help; ``--set`` sets every field."""

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

MOST_CONCURRENCY = 4096
"""Requests in flight above which a run is surely a mistake."""
NOT_OPTIONS = {
    "self": "--bench names it",
    "root": "--data gives its folder",
    "name": "--bench names it",
    "data": "--data gives its folder",
    "allow_network": "--allow-network allows it",
}
"""Arguments that every loader gets, so that no option of a benchmark can have these names, and how each is given."""


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse what a manifest could not give back: dates, binary data, NaN, keys that are not text."""
    try:
        same = json.loads(json.dumps(values, allow_nan=False)) == values
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise ValueError("may hold only text, finite numbers, true, false, null, lists and groups of these")
    return values


def _no_secrets(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse a setting that is a secret by its name, unseen: the manifest holds all settings, and the journal some."""
    if (name := _secret_name(values)) is not None:
        raise PydanticCustomError("secret", "{name}", {"name": name})
    return values


def _secret_name(value: Any) -> str | None:
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
    if taken := sorted(NOT_OPTIONS.keys() & values.keys()):
        raise ValueError(f"{taken[0]!r} is not an option of a benchmark ({NOT_OPTIONS[taken[0]]})")
    return values


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _number_or(word: str, least: int, most: float, expected: str) -> BeforeValidator:
    """Take a whole number from ``least`` to ``most``, as a number or as text, or ``word``."""

    def check(value: Any) -> Any:
        if value is None or value == word:
            return value
        with suppress(ValueError):
            if least <= (number := int(str(value))) <= most:
                return number
        raise ValueError(f"expected {expected}, or {word}")

    return BeforeValidator(check)


_OrAuto = _number_or("auto", 1, MOST_CONCURRENCY, f"a number from 1 to {MOST_CONCURRENCY}")
_OrUnlimited = _number_or("unlimited", 0, inf, "a whole number from 0")
_Text: TypeAlias = Annotated[str, Field(min_length=1)]
_File: TypeAlias = _Text
"""A path: the option that sets it refuses an empty one, as an unset shell variable gives it."""
_PlainValues: TypeAlias = Annotated[dict[str, Any], AfterValidator(_plain)]
_Values: TypeAlias = Annotated[_PlainValues, AfterValidator(_no_secrets)]
_Sampling: TypeAlias = Annotated[_Values, AfterValidator(check_sampling)]


class RunConfig(BaseModel):
    """Everything one run depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: _Text = Field(description="checkpoint name (`guieval models`)")
    adapter: _Text | None = Field(None, description="model family, or Python file of an adapter, for an unlisted checkpoint")
    scaffold: _Text | None = Field(
        None,
        description="prompt, history, sampling ...: a name (`guieval scaffolds`) or a YAML file; default: the model's own",
    )
    bench: _Text = Field(description="benchmark name (`guieval benchmarks`)")
    bench_options: Annotated[_Values, AfterValidator(_no_reserved)] = Field(
        default_factory=dict, description="options of that benchmark's loader"
    )
    mode: _Text = Field("offline", description="mode of evaluation: offline, soeval, sop or online")
    environments: int = Field(4, ge=1, le=1024, description="environments to act in at once (mode online)")
    environment_timeout: float = Field(
        120.0, gt=0, allow_inf_nan=False, description="seconds that one call of an environment may take (mode online)"
    )
    max_steps: int | None = Field(None, ge=1, le=1000, description="most steps of a task, below the task's own (mode online)")
    allow_network: bool = Field(False, description="let pages of the environment reach other hosts (mode online)")
    patch: _Text = Field("none", description="patches of mismatches in mode sop: none, thought-free, off-policy or on-policy")
    patch_budget: Annotated[int | Literal["unlimited"] | None, _OrUnlimited] = Field(
        None, description="mismatches of an episode that are patched, or unlimited; 1 when not given (UI-S1 paper, Table 9)"
    )
    patch_model: _Text | None = Field(
        None, description="auxiliary model that writes the thoughts of off-policy patches, by the name its server uses"
    )
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
    mix_artifacts: _File | None = Field(None, description="run or rollout whose exact answers a mixed history holds")
    protocol: _Text | None = Field(None, description="scoring protocol; the benchmark's own when not given")
    split: _Text | None = Field(None, description="split to run, or all; when not given, test where the data has one, else all")
    subset: Annotated[tuple[_Text, ...], BeforeValidator(_one_or_more)] = Field((), description="run these subsets only")
    sample_set: _Text | None = Field(None, description="run only the steps of this named set (`guieval sample-sets`)")
    episodes: _File | None = Field(None, description="file that lists the episodes, or the steps, to run")
    limit: int | None = Field(None, ge=1, description="run a seeded sample of this many whole episodes")
    seed: int = Field(0, ge=0, description="seed of that sample")
    skip_damaged: bool = Field(
        False, description="leave out episodes that cannot be read, or whose screenshots cannot, and report them"
    )
    decode_check: bool = Field(True, description="check that each screenshot can be unpacked before it is sent")
    overlay: _File | None = Field(None, description="JSONL file of further accepted actions")
    thinking: bool | None = Field(None, description="thinking on or off; the checkpoint's default when not given")
    options: _Values = Field(default_factory=dict, description="options of the model's adapter over the checkpoint's own")
    fixed_thoughts: _File | None = Field(None, description="earlier run whose recorded thoughts the model is given")
    sampling: _Sampling = Field(default_factory=dict, description="request parameters over the checkpoint's own")
    samples: int = Field(
        1, ge=1, le=1024, description="answers to each step, for pass@n and votes; other metrics are of the first"
    )
    resampling: _Sampling = Field(default_factory=dict, description="request parameters of further samples over the first's")
    compact: bool = Field(False, description="keep the journal small: packed, equal answers to a step once")
    engine: Literal[
        "auto", "openai", "openai-responses", "anthropic", "gemini", "local", "replay", "vllm", "vllm-inprocess", "transformers"
    ] = Field("auto", description="engine that answers; vllm starts a server for the run, with the arguments in vllm")
    model_path: _Text | None = Field(None, description="folder or Hugging Face id of the weights (engines that load them)")
    vllm: _PlainValues = Field(
        default_factory=dict, description="arguments of vLLM's server over the checkpoint's (engine: vllm)"
    )
    replay: _File | None = Field(None, description="earlier run whose journal answers (engine: replay)")

    data: _File | None = Field(None, description="the benchmark's data folder")
    base_urls: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = Field(
        (), description="OpenAI-compatible endpoints, e.g. http://127.0.0.1:8000/v1"
    )
    served_model: _Text | None = Field(None, description="model name to ask the server for; found out when not given")
    api_key_env: str = Field(
        "OPENAI_API_KEY",
        pattern=r"^[A-Za-z_]\w*$",
        description="environment variable that holds the key; never stored (engines of other makers: their own variable)",
    )
    insecure_tls: Literal["I accept unverified certificates"] | None = Field(
        None, description="these exact words accept an https server whose certificate cannot be verified"
    )
    proxy: _Text | None = Field(
        None, description="proxy for requests to servers, e.g. http://proxy:3128; one with a password: trust_env"
    )
    trust_env: bool = Field(False, description="whether requests go through HTTP_PROXY, HTTPS_PROXY and NO_PROXY")
    concurrency: Annotated[int | Literal["auto"] | None, _OrAuto] = Field(
        None, description="requests in flight, or auto to find out (default 64; engine vllm: auto; local agents: CPU cores)"
    )
    timeout: float = Field(120.0, gt=0, allow_inf_nan=False, description="seconds before one attempt of a request times out")
    local_images: bool | None = Field(
        None, description="screenshots by file:// URL, for the server shares this disk (engine vllm: unless false)"
    )
    image_uuids: bool | None = Field(
        None, description="name screenshots that the server holds, by vLLM's uuid (engine vllm: unless false)"
    )
    reuse_server: bool = Field(False, description="use a vLLM server left running, and leave it running (engine: vllm)")
    stream: bool = Field(
        False, description="request answers as streams, for servers that give no others (chat completions only)"
    )
    max_attempts: int = Field(5, ge=1, le=100, description="attempts at each request before it counts as a failure")
    patience: float = Field(
        300.0, ge=0, allow_inf_nan=False, description="seconds to wait for servers that are away, before the run stops"
    )
    budget: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="start no further step once the estimated cost reaches this, in the price's currency",
    )
    prices: _File | None = Field(None, description="YAML file of prices per million tokens; those shipped when not given")
    track: Annotated[tuple[_Text, ...], BeforeValidator(_one_or_more)] = Field(
        (), description="trackers that the run reports to: wandb, mlflow, trackio"
    )
    tracking: _Values = Field(default_factory=dict, description="options of these trackers: project, name, uri")
    cluster: Literal["none", "ray"] = Field("none", description="where to run: none (this machine) or ray (a Ray cluster)")
    cluster_address: _Text = Field("auto", description="that cluster: auto, local (this machine alone) or HOST:PORT")
    workers: int | None = Field(None, ge=1, le=10_000, description="workers on the cluster (one per machine; by GPUs for vLLM)")

    @property
    def choice(self) -> Choice:
        """Which steps the settings choose."""
        episodes = None if self.episodes is None else Path(self.episodes)
        return Choice(self.split, self.subset, self.sample_set, episodes, self.limit, self.seed)

    def identity(self) -> dict[str, Any]:
        """The fields that decide what the numbers are, as JSON-able values."""
        values = {name: value for name, value in self.model_dump(mode="json").items() if name not in RUNTIME_FIELDS}
        if self.engine == "vllm":  # a server started elsewhere may finish what one of ours began
            values["engine"] = "openai"
        del values["options"], values["scaffold"]  # what they come to is compared with the checkpoint
        patching = {name: values.pop(name) for name in ("patch", "patch_budget", "patch_model")}
        if self.patch != "none" and self.patch_budget != 0:  # a run without patches is what it was before there were any
            values |= {**patching, "patch_budget": 1 if self.patch_budget is None else self.patch_budget}
        if not self.mix:  # likewise
            del values["mix"]
        values |= {name: request_parameters(values[name]) for name in ("sampling", "resampling")}
        named = {name.replace("_", "-"): value for name, value in self.vllm.items()}
        return {**values, "vllm": {name: value for name, value in named.items() if name not in _SERVING_ONLY}}


def settings_file(given: Path, kind: str, of_what: str) -> Path:
    """The file itself, or the shipped one of that name in the folder ``kind``.

    Raises :class:`guieval.errors.UsageError` with the nearest name, and what ``of_what`` is shipped.
    """
    if given.is_file() or given.suffix or len(given.parts) > 1:
        return given
    folder = config_folder() / kind
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if given.name not in known:
        raise UsageError(
            f"there is no file {str(given)!r}, and no shipped {of_what} of that name{nearest(given.name, known)}; "
            f"shipped: {', '.join(known)}"
        )
    return folder / f"{given.name}.yaml"


def run_file(given: Path | None) -> Path | None:
    """The settings of a run: the file itself, or the shipped one of that name; ``None`` for ``None``."""
    return None if given is None else settings_file(given, "runs", "run settings")


def merge(
    file: Path | None, overrides: Sequence[str], flags: Mapping[str, Any], *, base: Mapping[str, Any] | None = None
) -> RunConfig:
    """Build a configuration: ``base`` (or the defaults), the YAML ``file``, ``key.sub=value`` overrides, ``flags`` not None.

    An override of ``model.NAME`` is one of ``options.NAME``, an option of the model's adapter, as in ``guieval score``.
    ``base`` may be the configuration of an earlier run, whose sampling settings are accepted as they are.
    Raises :class:`UsageError` naming the field, its value and what was expected.
    """
    values: dict[str, Any] = dict(base or {})
    if file is not None:
        values.update(read_settings(file, "configuration"))
    override(values, [re.sub(r"\Amodel\.", "options.", given) for given in overrides])
    values.update({name: value for name, value in flags.items() if value is not None})
    return parse(values, kept=base)


def read_settings(file: Path, kind: str) -> dict[str, Any]:
    """The settings in a YAML file; :class:`UsageError` that calls it a ``kind`` file where it holds none."""
    try:
        values = read_yaml(read_text(file))
    except OSError as error:
        raise UsageError(f"the {kind} file {str(file)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"the {kind} file {str(file)!r} is not YAML: {error}") from None
    if not isinstance(values, dict):
        raise UsageError(f"the {kind} file {str(file)!r} must hold `name: value` lines")
    return values


def override(values: dict[str, Any], overrides: Sequence[str]) -> None:
    """Put ``key.sub=value`` settings into nested ``values``; :class:`UsageError` for what is none."""
    for given in overrides:
        key, separator, text = given.partition("=")
        path = key.split(".")
        if not separator or not all(path):
            raise UsageError(f"--set needs key=value, got {given!r}")
        _assign(values, path, read_value(given, text), given)


def read_value(given: str, text: str) -> Any:
    """The YAML value of ``--set given``, or its text where that is not YAML."""
    try:
        return read_yaml(text)
    except AliasError as error:
        raise UsageError(f"--set {given!r:.80}: {error}") from None
    except ValueError:
        return text


def _assign(values: dict[str, Any], path: list[str], value: Any, given: str) -> None:
    group: Any = values
    for number, part in enumerate(path):
        place: Any = part
        if isinstance(group, list):
            if not part.isdecimal() or int(part) >= len(group):
                raise UsageError(f"--set {given!r}: {part!r} is not a place in a list of {len(group)}, counted from 0")
            place = int(part)
        if number == len(path) - 1:
            group[place] = value
            return
        inner = group[place] if isinstance(group, list) else group.setdefault(place, {})
        if not isinstance(inner, dict | list):
            raise UsageError(f"--set {given!r}: {part!r} is not a group of settings")
        group[place] = group = inner.copy()


def parse(values: Mapping[str, Any], *, kept: Mapping[str, Any] | None = None) -> RunConfig:
    """Validate merged values; :class:`UsageError` with the nearest field name for an unknown one.

    ``kept`` is an earlier run's configuration: sampling settings equal to its own are accepted as they are.
    """
    for name in values:
        if name not in RunConfig.model_fields:
            raise UsageError(f"unknown setting {name!r}{nearest(str(name), RunConfig.model_fields)}")
    try:
        config = RunConfig.model_validate(dict(values), context=kept)
    except ValidationError as error:
        problem = first_problem(error)
        field = problem.field
        if problem.kind == "missing":
            raise UsageError(f"the setting {field!r} is required (--{field.replace('_', '-')})") from None
        if field in (
            "api_key_env",
            "patch_api_key_env",
        ):  # the value may be the key itself, which must not be printed
            raise UsageError(f"setting {field!r} must be the name of an environment variable, not a key") from None
        if problem.path[0] in ("base_urls", "patch_base_urls"):  # it may hold a password
            raise UsageError(f"setting {problem.path[0]!r} must be a list of URLs like http://localhost:8000/v1") from None
        if problem.kind == UNKNOWN_SAMPLING:
            raise UsageError(f"the setting {field!r} {problem.message}") from None
        if problem.kind == "secret":
            raise UsageError(
                f"{field}.{problem.message} cannot be given as a setting, for it is a secret and a run's files hold its "
                "settings; a key belongs in the environment, in the variable that --api-key-env names"
            ) from None
        raise UsageError(f"setting {field!r} is {problem.value!r}: {problem.message}") from None
    refuse_the_key(config)
    if config.compact and config.cluster != "none":
        raise UsageError("a compact journal is written on one machine: leave out compact, or --cluster")
    return config


def refuse_the_key(config: RunConfig) -> None:
    """Raise :class:`UsageError` if a setting holds the key itself, since a run's files hold its settings."""
    for variable in dict.fromkeys((config.api_key_env, config.patch_api_key_env)):
        key = os.environ.get(variable, "").strip()
        if not looks_secret(key):
            continue
        for name, value in config.model_dump(mode="json").items():
            if json.dumps(key)[1:-1] in json.dumps(value):
                raise UsageError(
                    f"setting {name!r} holds the key that the environment variable {variable} holds; leave it out, for a "
                    "run's files hold its settings"
                )
