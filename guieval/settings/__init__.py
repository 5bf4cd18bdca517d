"""The settings of a run in groups. A field carries its type, its default, its meaning and its marks, and nothing repeats them.

A field's own name is unique over all groups, so a setting may be given bare or within its group; :func:`placed` is the one
place that knows this, for files, options, Python and the manifests of earlier versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

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
    Tags,
    Text,
    Texts,
    Urls,
    Values,
    Variable,
    marks_of,
    setting,
)
from guieval.settings.sampling import OPTIONS, SamplingSettings, request_parameters

_SERVING_ONLY = frozenset(
    {"python", "command", "start-timeout", "stop-timeout", "tensor-parallel-size", "pipeline-parallel-size"}
    | {"data-parallel-size", "api-server-count", "gpu-memory-utilization", "max-num-seqs", "max-num-batched-tokens"}
    | {"enforce-eager", "swap-space", "cpu-offload-gb", "download-dir", "distributed-executor-backend", "uvicorn-log-level"}
)
"""Settings of a launched server that say how it is run; the others decide what it answers."""


Engine: TypeAlias = Literal[
    "auto", "openai", "openai-responses", "anthropic", "gemini", "local", "replay", "vllm", "vllm-inprocess", "transformers"
]
Attention: TypeAlias = Literal["auto", "sdpa", "flash_attention_2", "flash_attention_3", "eager"]
Cache: TypeAlias = Literal["dynamic", "static"]
Placement: TypeAlias = Literal["auto", "near", "far"]


class Group(BaseModel):
    """Settings that belong together.

    ``main`` is the field that is meant if the group has a plain value (``model: ui-tars-7b``), ``open`` the one with
    names which are no fields (``sampling: {top_k: 1}``).
    """

    # the schema is built at the first validation: the help of a command needs none
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)
    main: ClassVar[str] = ""
    open: ClassVar[str] = ""


class Model(Group):
    """The model, and its adapter."""

    main, open = "name", "options"

    name: Text = setting(..., "checkpoint name (`guieval models`)", FLAG, PUBLIC)
    adapter: Text | None = setting(
        None, "model family, or Python file of an adapter, for an unlisted checkpoint", FLAG, OUTWARD
    )
    scaffold: Text | None = setting(
        None,
        "prompt, history, sampling ...: a name (`guieval dev scaffolds`) or a YAML file; default: the model's own",
        FLAG,
        PUBLIC,
    )
    thinking: bool | None = setting(None, "thinking on or off; the checkpoint's default when not given", FLAG, PUBLIC)
    zoom: float | None = setting(
        None, "query each click again on the screen around it, enlarged by this factor", FLAG, PUBLIC, gt=1, le=10
    )
    options: Values = setting({}, "options of the model's adapter over the checkpoint's own")
    model_path: Text | None = setting(
        None, "folder or Hugging Face id of the weights (engines that load them)", RUNTIME, OUTWARD
    )

    @property
    def own_options(self) -> dict[str, Any]:
        """The options of the adapter that are set, the factor of a zoom among them."""
        return {**self.options, **({} if self.zoom is None else {"zoom": self.zoom})}


class Data(Group):
    """The benchmark, and which of its steps count by which rules."""

    main = "folder"

    bench: Text = setting(..., "benchmark name (`guieval benchmarks`)", FLAG, PUBLIC)
    bench_options: LoaderOptions = setting({}, "options of that benchmark's loader", OUTWARD)
    folder: File | None = setting(None, "the benchmark's data folder", RUNTIME, FLAG)
    split: Text | None = setting(None, "split to run, or all; when not given, test if the data has one, else all", FLAG, PUBLIC)
    subset: Texts = setting((), "run these subsets only", FLAG, PUBLIC)
    sample_set: Text | None = setting(None, "run only the steps of this named set (`guieval data sample-sets`)", FLAG, PUBLIC)
    episodes: File | None = setting(None, "file that lists the episodes, or the steps, to run", RUNTIME, FLAG)
    limit: int | None = setting(None, "run a seeded sample of this many whole episodes", FLAG, PUBLIC, ge=1)
    seed: int = setting(0, "seed of that sample", FLAG, PUBLIC, ge=0)
    skip_damaged: bool = setting(
        False, "leave out episodes that cannot be read, or whose screenshots cannot, and report them", FLAG, PUBLIC
    )
    decode_check: bool = setting(True, "check that each screenshot can be unpacked before it is sent", RUNTIME, FLAG, PUBLIC)
    overlay: File | None = setting(None, "JSONL file of further accepted actions", RUNTIME, FLAG)
    protocol: Text | None = setting(None, "scoring protocol; the benchmark's own when not given", FLAG, PUBLIC)
    perturb: Text | None = setting(
        None, "draw something into the screenshots: popup-free,twin,... (docs/perturbed/perturbations.md)", FLAG, PUBLIC
    )
    perturb_strength: float = setting(1.0, "size of what perturb draws, as a factor", PUBLIC, ge=0.25, le=2)
    perturb_placement: Placement = setting("auto", "where perturb draws: auto, near or far from the target", PUBLIC)
    perturb_seed: int = setting(0, "seed of what perturb draws", PUBLIC, ge=0)


class History(Group):
    """What a step sees of the past: the mode, patches of mismatches, mixed histories and given thoughts.

    What the run named by ``fixed_thoughts`` and the files named by ``mix_artifacts`` and ``mix_decisions`` hold is compared by
    its fingerprint.
    """

    mode: Text = setting("offline", "mode of evaluation: offline, soeval, sop, sop-retry or online", FLAG, PUBLIC)
    tries: int | None = setting(
        None, "wrong responses to a screen that end an episode of mode sop-retry; 3 when not given", FLAG, PUBLIC, ge=1, le=100
    )
    patch: Text = setting(
        "none", "patches of mismatches in mode sop: none, thought-free, off-policy or on-policy", FLAG, PUBLIC
    )
    patch_budget: Budget = setting(
        None, "mismatches of an episode that are patched, or unlimited; 1 when not given (UI-S1 paper, Table 9)", FLAG, PUBLIC
    )
    patch_model: Text | None = setting(
        None, "auxiliary model that writes the thoughts of off-policy patches, by the name its server uses", FLAG
    )
    patch_base_urls: Urls = setting((), "OpenAI-compatible endpoints of that auxiliary model", RUNTIME, FLAG, OUTWARD)
    patch_api_key_env: Variable = setting(
        "PATCH_API_KEY", "environment variable with their key; never stored", RUNTIME, OUTWARD
    )
    fixed_thoughts: File | None = setting(None, "earlier run whose recorded thoughts the model is given", RUNTIME, FLAG)
    mix: Values = setting({}, "a mixed history (mode offline): start, end, mean, near and others (docs/studies/mixing.md)")
    mix_artifacts: File | None = setting(None, "run or rollout whose exact responses are in a mixed history", RUNTIME)
    mix_decisions: File | None = setting(
        None, "decisions of an adaptive mix (.jsonl, `guieval study decisions --steps`)", RUNTIME
    )


class Sampling(Group):
    """Parameters of requests, how many answers each step gets, and how often the whole is repeated."""

    main = open = "request"

    request: Parameters = setting({}, "request parameters over the checkpoint's own", PUBLIC)
    samples: int = setting(
        1, "answers to each step, for pass@n and votes; other metrics are of the first", FLAG, PUBLIC, ge=1, le=1024
    )
    resampling: Parameters = setting({}, "request parameters of further samples over the first's", PUBLIC)
    repeats: int = setting(
        1, "runs of the same with other seeds, shown as their mean (docs/campaigns.md)", RUNTIME, FLAG, PUBLIC, ge=1, le=100
    )
    repeat: int | None = setting(None, "which of the repeats a run is, from 0; not to be given", RUNTIME, PUBLIC, ge=0)


class Server(Group):
    """Who answers, how to reach it, and how patiently."""

    engine: Engine = setting(
        "auto", "engine that answers; vllm starts a server for the run, with the arguments in vllm", FLAG, OUTWARD, PUBLIC
    )
    base_urls: Urls = setting((), "OpenAI-compatible endpoints, e.g. http://127.0.0.1:8000/v1", RUNTIME, FLAG, OUTWARD)
    served_model: Text | None = setting(None, "model name to ask the server for; found out when not given", RUNTIME, FLAG)
    grounder_base_urls: Urls = setting(
        (), "OpenAI-compatible endpoints of the grounder of planner=,grounder=; base_urls if not given", RUNTIME, FLAG, OUTWARD
    )
    grounder_served_model: Text | None = setting(None, "name to ask these for; found out when not given", RUNTIME, FLAG)
    grounder_api_key_env: Variable = setting(
        "GROUNDER_API_KEY", "environment variable with the key of grounder_base_urls; never stored", RUNTIME, OUTWARD
    )
    api_key_env: Variable = setting(
        "OPENAI_API_KEY",
        "environment variable with the key; never stored (engines of other makers: their own variable)",
        RUNTIME,
        FLAG,
        OUTWARD,
    )
    vllm: PlainValues = setting({}, "arguments of vLLM's server over the checkpoint's (engine: vllm)", OUTWARD)
    attention: Attention = setting(
        "auto", "attention of engine transformers; auto: the best that is installed", RUNTIME, PUBLIC
    )
    batch_size: int | None = setting(
        None,
        "most requests of similar length that engine transformers computes at once; null: 8 on a GPU, 1 on a CPU",
        RUNTIME,
        PUBLIC,
        ge=1,
        le=1024,
    )
    cache: Cache = setting(
        "dynamic",
        "keys and values of engine transformers; static: memory of fixed size, whose steps are compiled on a GPU",
        RUNTIME,
        PUBLIC,
    )
    reuse_server: bool = setting(False, "use a vLLM server left running, and leave it running (engine: vllm)", RUNTIME, FLAG)
    replay: File | None = setting(None, "earlier run whose journal answers (engine: replay)", FLAG)
    concurrency: Concurrency = setting(
        None,
        "requests in flight, or auto to find out (default 64; engine vllm: auto, transformers: 4 batches, local: CPU cores)",
        RUNTIME,
        FLAG,
    )
    timeout: float = setting(
        120.0, "seconds before one attempt of a request times out", RUNTIME, FLAG, gt=0, allow_inf_nan=False
    )
    max_attempts: int = setting(5, "attempts at each request before it counts as a failure", RUNTIME, FLAG, ge=1, le=100)
    patience: float = setting(
        300.0, "seconds to wait for servers that are away, before the run stops", RUNTIME, FLAG, ge=0, allow_inf_nan=False
    )
    stream: bool = setting(
        False, "request answers as streams, for servers that give no others (chat completions only)", RUNTIME
    )
    local_images: bool | None = setting(
        None, "screenshots by file:// URL, for the server shares this disk (engine vllm: unless false)", RUNTIME
    )
    image_uuids: bool | None = setting(
        None, "name screenshots that the server has, by vLLM's uuid (engine vllm: unless false)", RUNTIME
    )
    insecure_tls: Literal["I accept unverified certificates"] | None = setting(
        None, "these exact words accept an https server whose certificate cannot be verified", RUNTIME, OUTWARD
    )
    proxy: Text | None = setting(
        None, "proxy for requests to servers, e.g. http://proxy:3128; one with a password: trust_env", RUNTIME, OUTWARD
    )
    backoff: float = setting(
        0.5, "longest seconds before the second attempt; doubled each time", RUNTIME, ge=0, allow_inf_nan=False
    )
    max_backoff: float = setting(30.0, "no wait before an attempt is longer", RUNTIME, ge=0, allow_inf_nan=False)
    max_retry_after: float = setting(60.0, "a server's Retry-After is honoured up to this", RUNTIME, ge=0, allow_inf_nan=False)
    trust_env: bool = setting(False, "whether requests go through HTTP_PROXY, HTTPS_PROXY and NO_PROXY", RUNTIME)


class Online(Group):
    """Environments to act in, in mode online."""

    environments: int = setting(4, "environments to act in at once (mode online)", RUNTIME, ge=1, le=1024)
    environment_timeout: float = setting(
        120.0, "seconds that one call of an environment may take (mode online)", RUNTIME, PUBLIC, gt=0, allow_inf_nan=False
    )
    max_steps: int | None = setting(None, "most steps of a task, below the task's own (mode online)", PUBLIC, ge=1, le=1000)
    allow_network: bool = setting(False, "let pages of the environment reach other hosts (mode online)", FLAG, OUTWARD)


class Cluster(Group):
    """The machines that a run is done on."""

    main = "kind"

    kind: Literal["none", "ray"] = setting(
        "none", "where to run: none (this machine) or ray (a Ray cluster)", RUNTIME, FLAG, OUTWARD
    )
    cluster_address: Text = setting(
        "auto", "that cluster: auto, local (this machine alone) or HOST:PORT", RUNTIME, FLAG, OUTWARD
    )
    workers: int | None = setting(
        None, "workers on the cluster (one per machine; by GPUs for vLLM)", RUNTIME, FLAG, ge=1, le=10_000
    )


class Tracking(Group):
    """What a run reports and keeps, and what it may cost."""

    track: Texts = setting((), "trackers that the run reports to: wandb, mlflow, trackio", RUNTIME, FLAG, OUTWARD)
    project: Text | None = setting(None, "project, or experiment, there (guieval when not given)", RUNTIME, OUTWARD)
    name: Text | None = setting(
        None, "name of the run in lists, reports and trackers; there model, benchmark and mode when not given", RUNTIME, FLAG
    )
    uri: Text | None = setting(None, "server of the tracker", RUNTIME, OUTWARD)
    tags: Tags = setting((), "label of the run, by which `guieval runs --tag` finds it", RUNTIME, FLAG)
    note: Text | None = setting(None, "note on the run, shown with it", RUNTIME, FLAG)
    budget: float | None = setting(
        None,
        "start no further step once the estimated cost reaches this, in the price's currency",
        RUNTIME,
        FLAG,
        gt=0,
        allow_inf_nan=False,
    )
    prices: File | None = setting(None, "YAML file of prices per million tokens; those shipped when not given", RUNTIME, FLAG)
    compact: bool = setting(False, "keep the journal small: packed, equal answers to a step once", RUNTIME, PUBLIC)


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

    if TYPE_CHECKING:  # settings by their own names, too; with an __init__ at run time a validation's context would be lost

        def __init__(self, /, **settings: Any) -> None: ...

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
        del values["options"], values["scaffold"], values["zoom"]  # what they come to is compared with the checkpoint
        patching = {name: values.pop(name) for name in ("patch", "patch_budget", "patch_model")}
        budget = self.history.patch_budget
        if self.history.patch != "none" and budget != 0:  # a run without patches is what it was before there were any
            values |= {**patching, "patch_budget": 1 if budget is None else budget}
        for name in ("mix", "tries"):
            if not values[name]:  # likewise; the number of tries is the mode's, too
                del values[name]
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

KEY_VARIABLES = ("api_key_env", "patch_api_key_env", "grounder_api_key_env")
"""The settings that name an environment variable with a key."""


def key_variables(config: RunConfig) -> tuple[str, str, str]:
    """The environment variables whose content no file and no message may have."""
    return config.server.api_key_env, config.history.patch_api_key_env, config.server.grounder_api_key_env


BY_OPTION = {
    **{name.removesuffix("s") if isinstance(field.default, tuple) else name: name for name, field in SETTINGS.items()},
    "artifacts": "mix_artifacts",
    "decisions": "mix_decisions",
}
"""The own names of the settings by their options: a list is given by its singular, which may be repeated."""


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
    name = BY_OPTION.get(name, name)
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

    What is unknown stays if ``lenient``. Else it raises :class:`UsageError`, as does a setting given twice.
    """
    found: dict[str, Any] = {}
    for given_as, value in values.items():
        name = BY_OPTION.get(given_as, given_as)
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
    if not values and kind.open == kind.main != "":  # `sampling: {}` takes back what was there before
        return {kind.open: {}}
    if not others or (kind.open and not isinstance(fields.get(kind.open, {}), Mapping)):
        return fields
    if kind.open:
        return {**fields, kind.open: {**fields.get(kind.open, {}), **others}}
    if not lenient:
        raise _unknown(next(iter(others)), group)
    return {**fields, **others}


def _unknown(name: Any, group: str | None = None) -> UsageError:
    known = [*PLACES, *SamplingSettings.model_fields]
    if group is not None:
        name, known = f"{group}.{name}", [f"{group}.{field}" for field in GROUPS[group].model_fields]
    elif name in GROUPS:
        return UsageError(f"{name!r} is a group of settings, not one: {', '.join(own_names(name))}")
    elif name in SamplingSettings.model_fields:
        flag = next((f" or --{option.replace('_', '-')}" for option, field in OPTIONS.items() if field == name), "")
        return UsageError(f"unknown setting {name!r}: it is a parameter of requests, given as sampling.{name}{flag}")
    return UsageError(f"unknown setting {name!r}{nearest(str(name), known)}")
