"""The configuration of a training: a YAML file and ``--set`` overrides, validated once and saved with the weights.

The group ``trainer`` has TRL's own arguments, which are checked against the installed TRL when the training begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from guieval.errors import UsageError, nearest
from guieval.rewards.advantages import AdvantageSettings
from guieval.running.config import override, read_settings
from guieval.settings import Attention
from guieval.training.settings import (
    AdapterSettings,
    BatchSettings,
    Curriculum,
    DataSettings,
    DynamicSampling,
    Evaluation,
    JudgeReward,
    Lora,
    RewardSettings,
    RewardWatchSettings,
    RolloutSettings,
    Source,
    Stated,
    one_or_more,
    pattern,
    setting_error,
)

Kind: TypeAlias = Literal["sft", "grpo", "semi-online", "online"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class TrainingConfig(AdapterSettings, DataSettings):
    """Settings of every kind of training."""

    needs: ClassVar[Kind]
    evaluated_in: ClassVar[str] = "sop"
    """The mode of evaluations that name none."""

    kind: Kind
    model_path: str | None = Field(None, description="folder or Hugging Face id of the weights to begin with")
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="of the weights in memory; all-weight training at small rates needs float32"
    )
    attention: Attention = Field("auto", description="implementation of the attention; auto: the best that is installed")
    bench: str | None = Field(None, min_length=1, description="benchmark name (`guieval benchmarks`)")
    sources: tuple[Source, ...] = Field((), description="several benchmarks in place of bench and its settings")
    seed: int = Field(0, ge=0, description="seed of samples of episodes and of the training")
    batch: BatchSettings | None = None
    curriculum: Curriculum | None = Field(None, description="weights of steps by measured pass rates")
    stated: Stated | None = Field(None, description="sizes of the data, for a plan without it")
    lora: Lora | None = None
    freeze: Annotated[str | None, AfterValidator(pattern)] = Field(
        None, description=r"regular expression of weights that stay as they are, e.g. .*\.visual\..*"
    )
    evaluation: Evaluation | None = None
    report_to: Annotated[tuple[str, ...], BeforeValidator(one_or_more)] = Field(
        (), description="trackers that transformers knows and that are installed, e.g. tensorboard, wandb, trackio, mlflow"
    )
    trainer: dict[str, Any] = Field(default_factory=dict, description="arguments of TRL's trainer, by TRL's names")
    out: str = Field("training", min_length=1, description="folder of checkpoints, evaluations and this configuration")
    notes: str = Field("", description="for the reader")

    @property
    def all_sources(self) -> tuple[Source, ...]:
        """The benchmarks that are trained on: ``sources``, or the one that ``bench`` names."""
        if self.sources or self.bench is None:
            return self.sources
        return (Source(bench=self.bench, **{name: getattr(self, name) for name in DataSettings.model_fields}),)

    @model_validator(mode="after")
    def _is_of_its_kind(self) -> TrainingConfig:
        if self.kind != self.needs:
            raise ValueError(f"expected {self.needs!r}")
        if self.dtype == "float16" and self.lora is None:
            raise ValueError(
                "dtype is 'float16', with which only adapters (lora) can be trained: set float32, and trainer.fp16 for speed"
            )
        if self.lora is not None and self.freeze is not None:
            raise ValueError("freeze is given together with lora, which trains only its adapters: remove one of them")
        if taken := sorted(_SET_ELSEWHERE.keys() & self.trainer.keys()):
            raise ValueError(f"trainer.{taken[0]} is {_SET_ELSEWHERE[taken[0]]}")
        if self.batch is not None and (taken := sorted(_FROM_BATCH & self.trainer.keys())):
            raise ValueError(f"trainer.{taken[0]} is given together with batch, which decides it: remove one of them")
        return self

    @model_validator(mode="after")
    def _evaluates_at_times(self) -> TrainingConfig:
        if self.evaluation is not None and not self.evaluation.sidecar and "every" not in self.evaluation.model_fields_set:
            raise ValueError("evaluation.every is not given: set the optimiser steps between two evaluations")
        return self

    @model_validator(mode="after")
    def _has_one_source_or_several(self) -> TrainingConfig:
        own = {"bench", *DataSettings.model_fields} & self.model_fields_set
        given = sorted(
            name for name in own if getattr(self, name) != type(self).model_fields[name].get_default(call_default_factory=True)
        )
        if self.sources and given:
            raise ValueError(f"{given[0]} is given together with sources: give it in each source")
        if not self.sources and self.bench is None:
            raise ValueError("bench is not given: name a benchmark, or several in sources")
        if self.sources and self.evaluation is not None and self.evaluation.bench is None:
            raise ValueError("evaluation.bench is not given: a training on several sources has no benchmark of its own")
        folders: dict[str, str | None] = {}
        for source in self.sources:
            if folders.setdefault(source.bench, source.data) != source.data:
                raise ValueError(
                    f"sources has {source.bench!r} with two data folders, {folders[source.bench]!r} and {source.data!r}: "
                    "expected one, because the steps of a benchmark are identified by their names alone"
                )
        return self


_FROM_BATCH = frozenset({"steps_per_generation", "generation_batch_size", "gradient_accumulation_steps"})
"""TRL's counts that ``batch`` decides."""

_SET_ELSEWHERE = {
    "output_dir": "given as out (--out)",
    "report_to": "given as report_to",
    "seed": "given as seed",
    "remove_unused_columns": "not to be set: images are read when a row is used",
    "max_length": "not to be set: it would cut image tokens",
    "reward_weights": "given as reward.weights",
    "eval_strategy": "not to be set: set evaluation.every",
    "eval_on_start": "given as evaluation.at_start",
}
"""TRL's arguments that are not given in ``trainer``, and where they are set."""


class SFTTraining(TrainingConfig):
    """Supervised: the reference's action of every step, or, from a run's journal, the model's own exact responses."""

    needs = "sft"

    history: Literal["reference", "none"] = Field("reference", description="history in the prompt")
    thoughts: str | None = Field(
        None, description='JSONL file of {"step", "thought"} lines (`guieval study thoughts`): the thoughts of the references'
    )
    journal: str | None = Field(
        None, description="run directory: its exact responses are the completions, thoughts kept, and its prompts the prompts"
    )

    @model_validator(mode="after")
    def _journal_has_its_own_thoughts(self) -> SFTTraining:
        if self.journal is not None and self.thoughts is not None:
            raise ValueError("thoughts is given together with journal, whose responses have their own: remove one of them")
        if self.journal is not None and self.curriculum is not None:
            raise ValueError("curriculum is given together with journal, whose exact responses are all used: remove one")
        return self


class GRPOTraining(TrainingConfig):
    """Offline RL on single steps with reference history (UI-R1; HyperTrack's RL)."""

    needs = "grpo"

    history: Literal["reference", "none"] = Field("reference", description="history in the prompt")
    reward: RewardSettings = RewardSettings()
    reward_watch: RewardWatchSettings | None = RewardWatchSettings()
    dynamic_sampling: DynamicSampling | None = None
    max_prompt_length: int | None = Field(None, ge=1, description="tokens; rows of longer prompts are not trained on")


class SemiOnlineTraining(TrainingConfig):
    """UI-S1's semi-online RL: whole rollouts along reference trajectories, own outputs as history."""

    needs = "semi-online"

    reward: RewardSettings = RewardSettings()
    reward_watch: RewardWatchSettings | None = RewardWatchSettings()
    rollout: RolloutSettings = RolloutSettings()
    advantages: AdvantageSettings = AdvantageSettings()
    dynamic_sampling: DynamicSampling | None = DynamicSampling(eta=0.3)
    max_prompt_length: int | None = Field(None, ge=1, description="tokens; rows of longer prompts are not trained on")


class OnlineTraining(TrainingConfig):
    """Online RL: whole rollouts in an environment, own outputs as history, rewarded by the environment's judge."""

    needs = "online"
    evaluated_in = "online"

    reward: JudgeReward = JudgeReward()
    max_steps: int | None = Field(None, ge=1, le=1000, description="most steps of a task; the environment's own when not given")
    environments: int = Field(8, ge=1, le=1024, description="environments open at once in each process")
    environment_timeout: float = Field(
        120.0, gt=0, allow_inf_nan=False, description="seconds for one call of an environment before it counts as failed"
    )
    allow_network: bool = Field(False, description="let the environments' pages reach other hosts")
    advantages: AdvantageSettings = AdvantageSettings()
    dynamic_sampling: DynamicSampling | None = DynamicSampling()
    max_prompt_length: int | None = Field(None, ge=1, description="tokens; rows of longer prompts are not trained on")

    @model_validator(mode="after")
    def _has_no_recorded_data(self) -> OnlineTraining:
        for source in self.all_sources:
            for name in ("data", "sample_set", "skip_damaged"):
                if getattr(source, name):
                    raise ValueError(f"{name} is for recorded episodes, and kind online acts in an environment: remove it")
        return self


_KINDS: dict[str, type[TrainingConfig]] = {
    kind.needs: kind for kind in (SFTTraining, GRPOTraining, SemiOnlineTraining, OnlineTraining)
}


def read_config(
    file: Path,
    overrides: Sequence[str] = (),
    *,
    kind: Kind | None = None,
    data: str | Sequence[str] = (),
    out: str | None = None,
) -> TrainingConfig:
    """The training in a YAML file, updated with ``key.sub=value`` overrides, ``data`` and ``out``.

    ``data`` is the data folder, or ``BENCH=FOLDER`` for each benchmark of a training with several sources.

    Raises :class:`UsageError` for a file that cannot be read, an unknown setting (with the nearest name), an invalid value, and
    a file of another ``kind``.
    """
    values = read_settings(file, "training")
    override(values, overrides)
    _place_data(values, [data] if isinstance(data, str) else data)
    if out is not None:
        values["out"] = out
    given = values.get("kind")
    if kind is not None and given != kind:
        hint = f"`guieval train {given}`" if given in KINDS else f"`kind: {kind}` in it"
        raise UsageError(f"the training file {str(file)!r} is of kind {given!r}, not {kind!r}: use {hint}")
    return parse_config(values)


def _place_data(values: dict[str, Any], given: Sequence[str]) -> None:
    """Put data folders into the settings of one benchmark, or of each of several sources."""
    if any(not each.strip() for each in given):
        raise UsageError("--data is empty: expected a folder")
    sources = values.get("sources")
    if not sources or not isinstance(sources, list) or not all(isinstance(source, dict) for source in sources):
        if len(given) > 1:
            raise UsageError(f"--data is given {len(given)} times: this training has one benchmark")
        if given:
            values["data"] = given[0]
        return
    benches = list(dict.fromkeys(str(source.get("bench")) for source in sources))
    for each in given:
        bench, separator, folder = each.partition("=")
        if not separator or bench not in benches:
            raise UsageError(
                f"--data is {each!r}{nearest(bench, benches)}: this training has several sources, so expected "
                + " ".join(f"--data {name}=DIR" for name in benches)
            )
        for source in sources:
            if source.get("bench") == bench:
                source["data"] = folder


def parse_config(values: Mapping[str, Any]) -> TrainingConfig:
    """Validate merged values; :class:`UsageError` names the setting, its value and what was expected."""
    kind = values.get("kind")
    if kind not in KINDS:
        raise UsageError(f"setting 'kind' is {kind!r}{nearest(str(kind), KINDS)}; expected one of {', '.join(KINDS)}")
    try:
        return _KINDS[kind].model_validate(dict(values))
    except ValidationError as error:
        raise setting_error(error, _KINDS[kind], place=f"a training of kind {kind}") from None
