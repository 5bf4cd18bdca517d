"""The settings of a run in groups. A field carries its type, its default, its meaning and its marks, and nothing repeats them.

A field's own name is unique over all groups, so a setting may be given bare or within its group; :func:`placed` is the one
place that knows this, for files, options, Python and the manifests of earlier versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from guieval.errors import UsageError, nearest
from guieval.settings.fields import (
    FLAG,
    OUTWARD,
    PUBLIC,
    RUNTIME,
    Budget,
    Concurrency,
    File,
    LoaderOptions,
    Parameters,
    PlainValues,
    Text,
    Texts,
    Urls,
    Values,
    Variable,
    marks_of,
)
from guieval.settings.sampling import SamplingSettings, request_parameters

_SERVING_ONLY = frozenset(
    {"python", "command", "start-timeout", "stop-timeout", "tensor-parallel-size", "pipeline-parallel-size"}
    | {"data-parallel-size", "api-server-count", "gpu-memory-utilization", "max-num-seqs", "max-num-batched-tokens"}
    | {"enforce-eager", "swap-space", "cpu-offload-gb", "download-dir", "distributed-executor-backend", "uvicorn-log-level"}
)
"""Settings of a launched server that say how it is run; the others decide what it answers."""


Engine: TypeAlias = Literal[
    "auto", "openai", "openai-responses", "anthropic", "gemini", "local", "replay", "vllm", "vllm-inprocess", "transformers"
]


class Group(BaseModel):
    """Settings that belong together.

    ``main`` is the field that is meant where the group has a plain value (``model: ui-tars-7b``), ``open`` the one that holds
    names which are no fields (``sampling: {temperature: 0}``).
    """

    # the schema is built at the first validation: the help of a command needs none
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)
    main: ClassVar[str] = ""
    open: ClassVar[str] = ""


class Model(Group):
    """The model, and its adapter."""

    main, open = "name", "options"

    name: Annotated[Text, FLAG | PUBLIC] = Field(description="checkpoint name (`guieval models`)")
    adapter: Annotated[Text | None, FLAG | OUTWARD] = Field(
        None, description="model family, or Python file of an adapter, for an unlisted checkpoint"
    )
    thinking: Annotated[bool | None, FLAG | PUBLIC] = Field(
        None, description="thinking on or off; the checkpoint's default when not given"
    )
    options: Values = Field(default_factory=dict, description="options of the model's adapter over the checkpoint's own")
    model_path: Annotated[Text | None, RUNTIME | OUTWARD] = Field(
        None, description="folder or Hugging Face id of the weights (engines that load them)"
    )


class Data(Group):
    """The benchmark, and which of its steps count by which rules."""

    main = "folder"

    bench: Annotated[Text, FLAG | PUBLIC] = Field(description="benchmark name (`guieval benchmarks`)")
    bench_options: Annotated[LoaderOptions, OUTWARD] = Field(
        default_factory=dict, description="options of that benchmark's loader"
    )
    folder: Annotated[File | None, RUNTIME | FLAG] = Field(None, description="the benchmark's data folder")
    split: Annotated[Text | None, FLAG | PUBLIC] = Field(
        None, description="split to run, or all; when not given, test where the data has one, else all"
    )
    subset: Annotated[Texts, FLAG | PUBLIC] = Field((), description="run these subsets only")
    sample_set: Annotated[Text | None, FLAG | PUBLIC] = Field(
        None, description="run only the steps of this named set (`guieval sample-sets`)"
    )
    episodes: Annotated[File | None, RUNTIME | FLAG] = Field(
        None, description="file that lists the episodes, or the steps, to run"
    )
    limit: Annotated[int | None, FLAG | PUBLIC] = Field(
        None, ge=1, description="run a seeded sample of this many whole episodes"
    )
    seed: Annotated[int, FLAG | PUBLIC] = Field(0, ge=0, description="seed of that sample")
    skip_damaged: Annotated[bool, FLAG | PUBLIC] = Field(
        False, description="leave out episodes that cannot be read, or whose screenshots cannot, and report them"
    )
    decode_check: Annotated[bool, RUNTIME | FLAG | PUBLIC] = Field(
        True, description="check that each screenshot can be unpacked before it is sent"
    )
    overlay: Annotated[File | None, RUNTIME | FLAG] = Field(None, description="JSONL file of further accepted actions")
    protocol: Annotated[Text | None, FLAG | PUBLIC] = Field(
        None, description="scoring protocol; the benchmark's own when not given"
    )


class History(Group):
    """What a step sees of the past: the mode, patches of mismatches, mixed histories and given thoughts.

    What the run named by ``fixed_thoughts`` and the artifacts named by ``mix_artifacts`` hold is compared by its fingerprint.
    """

    mode: Annotated[Text, FLAG | PUBLIC] = Field("offline", description="mode of evaluation: offline, soeval, sop or online")
    patch: Annotated[Text, FLAG | PUBLIC] = Field(
        "none", description="patches of mismatches in mode sop: none, thought-free, off-policy or on-policy"
    )
    patch_budget: Annotated[Budget, FLAG | PUBLIC] = Field(
        None, description="mismatches of an episode that are patched, or unlimited; 1 when not given (UI-S1 paper, Table 9)"
    )
    patch_model: Annotated[Text | None, FLAG] = Field(
        None, description="auxiliary model that writes the thoughts of off-policy patches, by the name its server uses"
    )
    patch_base_urls: Annotated[Urls, RUNTIME | FLAG | OUTWARD] = Field(
        (), description="OpenAI-compatible endpoints of that auxiliary model"
    )
    patch_api_key_env: Annotated[Variable, RUNTIME | OUTWARD] = Field(
        "PATCH_API_KEY", description="environment variable that holds their key; never stored"
    )
    fixed_thoughts: Annotated[File | None, RUNTIME | FLAG] = Field(
        None, description="earlier run whose recorded thoughts the model is given"
    )
    mix: Values = Field(
        default_factory=dict,
        description="a mixed history (mode offline): start, end, shape, mean, kappa, over, seed, repeat, pick (docs/mixing.md)",
    )
    mix_artifacts: Annotated[File | None, RUNTIME] = Field(
        None, description="run or rollout whose exact answers a mixed history holds"
    )


class Sampling(Group):
    """Parameters of requests, and how many answers each step gets."""

    main = open = "request"

    request: Annotated[Parameters, PUBLIC] = Field(
        default_factory=dict, description="request parameters over the checkpoint's own"
    )
    samples: Annotated[int, FLAG | PUBLIC] = Field(
        1, ge=1, le=1024, description="answers to each step, for pass@n and votes; other metrics are of the first"
    )
    resampling: Annotated[Parameters, PUBLIC] = Field(
        default_factory=dict, description="request parameters of further samples over the first's"
    )


class Server(Group):
    """Who answers, how to reach it, and how patiently."""

    engine: Annotated[
        Literal[
            "auto",
            "openai",
            "openai-responses",
            "anthropic",
            "gemini",
            "local",
            "replay",
            "vllm",
            "vllm-inprocess",
            "transformers",
        ],
        FLAG | OUTWARD | PUBLIC,
    ] = Field("auto", description="engine that answers; vllm starts a server for the run, with the arguments in vllm")
    base_urls: Annotated[Urls, RUNTIME | FLAG | OUTWARD] = Field(
        (), description="OpenAI-compatible endpoints, e.g. http://127.0.0.1:8000/v1"
    )
    served_model: Annotated[Text | None, RUNTIME | FLAG] = Field(
        None, description="model name to ask the server for; found out when not given"
    )
    api_key_env: Annotated[Variable, RUNTIME | FLAG | OUTWARD] = Field(
        "OPENAI_API_KEY",
        description="environment variable that holds the key; never stored (engines of other makers: their own variable)",
    )
    vllm: Annotated[PlainValues, OUTWARD] = Field(
        default_factory=dict, description="arguments of vLLM's server over the checkpoint's (engine: vllm)"
    )
    reuse_server: Annotated[bool, RUNTIME | FLAG] = Field(
        False, description="use a vLLM server left running, and leave it running (engine: vllm)"
    )
    replay: Annotated[File | None, FLAG] = Field(None, description="earlier run whose journal answers (engine: replay)")
    concurrency: Annotated[Concurrency, RUNTIME | FLAG] = Field(
        None, description="requests in flight, or auto to find out (default 64; engine vllm: auto; local agents: CPU cores)"
    )
    timeout: Annotated[float, RUNTIME | FLAG] = Field(
        120.0, gt=0, allow_inf_nan=False, description="seconds before one attempt of a request times out"
    )
    max_attempts: Annotated[int, RUNTIME | FLAG] = Field(
        5, ge=1, le=100, description="attempts at each request before it counts as a failure"
    )
    patience: Annotated[float, RUNTIME | FLAG] = Field(
        300.0, ge=0, allow_inf_nan=False, description="seconds to wait for servers that are away, before the run stops"
    )
    stream: Annotated[bool, RUNTIME] = Field(
        False, description="request answers as streams, for servers that give no others (chat completions only)"
    )
    local_images: Annotated[bool | None, RUNTIME] = Field(
        None, description="screenshots by file:// URL, for the server shares this disk (engine vllm: unless false)"
    )
    image_uuids: Annotated[bool | None, RUNTIME] = Field(
        None, description="name screenshots that the server holds, by vLLM's uuid (engine vllm: unless false)"
    )
    insecure_tls: Annotated[Literal["I accept unverified certificates"] | None, RUNTIME | OUTWARD] = Field(
        None, description="these exact words accept an https server whose certificate cannot be verified"
    )
    proxy: Annotated[Text | None, RUNTIME | OUTWARD] = Field(
        None, description="proxy for requests to servers, e.g. http://proxy:3128; one with a password: trust_env"
    )
    trust_env: Annotated[bool, RUNTIME] = Field(
        False, description="whether requests go through HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
    )


class Online(Group):
    """Environments to act in, in mode online."""

    environments: Annotated[int, RUNTIME] = Field(4, ge=1, le=1024, description="environments to act in at once (mode online)")
    environment_timeout: Annotated[float, RUNTIME | PUBLIC] = Field(
        120.0, gt=0, allow_inf_nan=False, description="seconds that one call of an environment may take (mode online)"
    )
    max_steps: Annotated[int | None, PUBLIC] = Field(
        None, ge=1, le=1000, description="most steps of a task, below the task's own (mode online)"
    )
    allow_network: Annotated[bool, FLAG | OUTWARD] = Field(
        False, description="let pages of the environment reach other hosts (mode online)"
    )


class Cluster(Group):
    """The machines that a run is done on."""

    main = "kind"

    kind: Annotated[Literal["none", "ray"], RUNTIME | FLAG | OUTWARD] = Field(
        "none", description="where to run: none (this machine) or ray (a Ray cluster)"
    )
    cluster_address: Annotated[Text, RUNTIME | FLAG | OUTWARD] = Field(
        "auto", description="that cluster: auto, local (this machine alone) or HOST:PORT"
    )
    workers: Annotated[int | None, RUNTIME | FLAG] = Field(
        None, ge=1, le=10_000, description="workers on the cluster (one per machine; by GPUs for vLLM)"
    )


class Tracking(Group):
    """What a run reports and keeps, and what it may cost."""

    main = open = "tracker"

    track: Annotated[Texts, RUNTIME | FLAG | OUTWARD] = Field(
        (), description="trackers that the run reports to: wandb, mlflow, trackio"
    )
    tracker: Annotated[Values, RUNTIME | OUTWARD] = Field(
        default_factory=dict, description="options of these trackers: project, name, uri"
    )
    budget: Annotated[float | None, RUNTIME | FLAG] = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="start no further step once the estimated cost reaches this, in the price's currency",
    )
    prices: Annotated[File | None, RUNTIME | FLAG] = Field(
        None, description="YAML file of prices per million tokens; those shipped when not given"
    )
    compact: Annotated[bool, RUNTIME | PUBLIC] = Field(
        False, description="keep the journal small: packed, equal answers to a step once"
    )


class RunConfig(BaseModel):
    """Everything one run depends on. Settings are given in groups, or by their own names (:func:`placed`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)

    model: Model
    data: Data
    history: History = Field(default_factory=History)
    sampling: Sampling = Field(default_factory=Sampling)
    server: Server = Field(default_factory=Server)
    online: Online = Field(default_factory=Online)
    cluster: Cluster = Field(default_factory=Cluster)
    tracking: Tracking = Field(default_factory=Tracking)

    def __init__(self, /, **settings: Any) -> None:
        super().__init__(**settings)

    @model_validator(mode="before")
    @classmethod
    def _placed(cls, values: Any) -> Any:
        return {"model": {}, "data": {}, **placed(values)} if isinstance(values, Mapping) else values

    def having(self, **settings: Any) -> RunConfig:
        """A copy with other settings, by their own names; they are not checked again."""
        changed: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            group, field = PLACES[name]
            changed.setdefault(group, {})[field] = value
        return self.model_copy(
            update={group: getattr(self, group).model_copy(update=values) for group, values in changed.items()}
        )

    def flat(self) -> dict[str, Any]:
        """The settings as JSON-able values by their own names."""
        values = self.model_dump(mode="json")
        return {name: values[group][field] for name, (group, field) in PLACES.items()}

    def identity(self) -> dict[str, Any]:
        """The settings that decide what the numbers are, as JSON-able values by their own names."""
        values = {name: value for name, value in self.flat().items() if RUNTIME not in marks_of(SETTINGS[name])}
        if self.server.engine == "vllm":  # a server started elsewhere may finish what one of ours began
            values["engine"] = "openai"
        values.pop("options")  # what they come to is part of the checkpoint
        patching = {name: values.pop(name) for name in ("patch", "patch_budget", "patch_model")}
        budget = self.history.patch_budget
        if self.history.patch != "none" and budget != 0:  # a run without patches is what it was before there were any
            values |= {**patching, "patch_budget": 1 if budget is None else budget}
        if not self.history.mix:  # likewise
            del values["mix"]
        values |= {name: request_parameters(values[name]) for name in ("sampling", "resampling")}
        named = {name.replace("_", "-"): value for name, value in self.server.vllm.items()}
        return {**values, "vllm": {name: value for name, value in named.items() if name not in _SERVING_ONLY}}


GROUPS: dict[str, type[Group]] = {
    kind.__name__.lower(): kind for kind in (Model, Data, History, Sampling, Server, Online, Cluster, Tracking)
}
"""The groups by name."""
PLACES = {
    group if field == kind.main else field: (group, field) for group, kind in GROUPS.items() for field in kind.model_fields
}
"""Group and field of each setting by its own name: the field's, or of a group's main field the group's."""
SETTINGS = {name: GROUPS[group].model_fields[field] for name, (group, field) in PLACES.items()}
"""The fields by the settings' own names."""


def own_names(group: str) -> list[str]:
    """The own names of a group's settings."""
    return [name for name, (of, _) in PLACES.items() if of == group]


def own_path(path: Sequence[str]) -> tuple[str, ...]:
    """A path into the groups as a user gives it: the setting's own name, and what follows."""
    group, *rest = path
    if group not in GROUPS or not rest:
        return tuple(path)
    return (group if rest[0] == GROUPS[group].main else rest[0], *rest[1:])


def place(path: Sequence[str]) -> tuple[str, ...]:
    """The path into the groups of a setting given as ``name``, ``group.name`` or deeper; :class:`UsageError` for an unknown."""
    name, *rest = path
    if name not in GROUPS or not rest:
        if name not in PLACES:
            raise _unknown(name)
        return (*PLACES[name], *rest)
    kind = GROUPS[name]
    if rest[0] in kind.model_fields:
        return (name, *rest)
    if not kind.open:
        raise _unknown(rest[0], name)
    return (name, kind.open, *rest)


def placed(values: Mapping[str, Any], *, lenient: bool = False) -> dict[str, Any]:
    """Settings by group and field, each given within its group or by its own name.

    What is unknown stays where it is if ``lenient``. Else it raises :class:`UsageError`, as does a setting given twice.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in GROUPS and isinstance(value, Mapping):
            given = _fields_of(name, value, lenient=lenient)
        elif name in PLACES:
            name, field = PLACES[name]
            given = {field: value}
        elif lenient:
            found[name] = value
            continue
        else:
            raise _unknown(name)
        if twice := found.setdefault(name, {}).keys() & given.keys():
            raise UsageError(f"the setting {min(twice)!r} is given twice, by its name and within the group {name!r}")
        found[name].update(given)
    return found


def _fields_of(group: str, values: Mapping[str, Any], *, lenient: bool) -> dict[str, Any]:
    kind = GROUPS[group]
    fields = {name: value for name, value in values.items() if name in kind.model_fields}
    others = {name: value for name, value in values.items() if name not in kind.model_fields}
    if not others or (kind.open and not isinstance(fields.get(kind.open, {}), Mapping)):
        return fields
    if kind.open:
        return {**fields, kind.open: {**fields.get(kind.open, {}), **others}}
    if not lenient:
        raise _unknown(next(iter(others)), group)
    return {**fields, **others}


def _unknown(name: Any, group: str | None = None) -> UsageError:
    known = list(PLACES)
    if group is not None:
        name, known = f"{group}.{name}", [f"{group}.{field}" for field in GROUPS[group].model_fields]
    elif name in GROUPS:
        return UsageError(f"{name!r} is a group of settings, not one: {', '.join(own_names(name))}")
    elif name in SamplingSettings.model_fields:
        return UsageError(f"{name!r} is a parameter of requests, which have a group: give it as sampling.{name}")
    return UsageError(f"unknown setting {name!r}{nearest(str(name), known)}")
