"""Campaigns: models x benchmarks x modes from one file, each with its repeats, as runs side by side in one folder.

A file lists models and benchmarks, each as a name or as settings of a run, and the settings that all runs share:

    models: [ui-s1-7b, {model: qwen2.5-vl-7b, base_urls: ["http://127.0.0.1:8001/v1"]}]
    benchmarks: [{bench: androidcontrol, sample_set: ac-test-8444, protocol: ui-s1-sop}]
    modes: [sop]
    seeds: [0, 1]
    settings: {concurrency: 32}
    references: [ui-s1-table-1]

A benchmark may have ``modes`` of its own, e.g. ``{bench: androidworld, modes: [online]}``.

With ``train`` (:mod:`guieval.training.trainings`) the final weights of each of its trainings are a model too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from guieval.actions import Frozen
from guieval.data.names import name_part
from guieval.errors import UsageError, first_problem, nearest
from guieval.journal import is_run
from guieval.running.config import override, override_settings, read_settings, settings_file, update, update_by_options
from guieval.running.defaults import Defaults, refuse_idle_seed
from guieval.running.repeats import announce_greedy, repeats_of
from guieval.settings import RunConfig, placed
from guieval.wings import offered

Settings = dict[str, Any]
Training: TypeAlias = Any
"""A training of a campaign, which ``guieval.training.trainings`` plans: ``name``, ``state``, ``final``, ``model`` and more."""


def _named(field: str) -> BeforeValidator:
    return BeforeValidator(lambda value: {field: value} if isinstance(value, str) else value)


class Campaign(Frozen):
    """A file of a campaign. ``seeds`` are the sampling seeds of repeats; the setting ``repeats`` derives such seeds."""

    models: tuple[Annotated[Settings, _named("model")], ...] = ()
    train: Any = Field(None, description="trainings whose final weights are models too")
    benchmarks: tuple[Annotated[Settings, _named("bench")], ...] = Field(min_length=1)
    modes: tuple[str, ...] = Field(("offline",), min_length=1, description="of the benchmarks that give none of their own")
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = ()
    settings: Settings = Field(default_factory=dict)
    protocols: tuple[str, ...] = Field((), description="protocols of the leaderboard (default: each run's own)")
    references: tuple[str, ...] = Field((), description="published tables shown next to it")
    metrics: str | None = Field(None, description="metrics of the leaderboard, with commas between")
    disagreement: float = Field(0.2, gt=0, le=1, description="share of steps on which one of two models alone is right")
    icc: float = Field(0.1, ge=0, le=1, description="correlation of two models' difference within episodes")

    @model_validator(mode="after")
    def _has_models(self) -> Self:
        if not self.models and self.train is None:
            raise ValueError("it has no models: give models, or trainings (train)")
        return self


class PlannedRun(BaseModel):
    """A run of a campaign; ``rest`` is what it and its repeats share with the runs of other models: benchmark and mode.

    ``training`` is the one whose weights it runs, and ``model`` then that one's name.
    """

    model_config = ConfigDict(frozen=True)

    config: RunConfig
    directory: Path
    model: str
    rest: str
    training: Training = None


def read_campaign(file: Path, overrides: Sequence[str] = ()) -> Campaign:
    """A campaign from its file, or the shipped one of that name; :class:`UsageError` that names a wrong field.

    ``overrides`` are ``train.NAME=VALUE`` settings of its trainings.
    """
    path = settings_file(file, "campaigns", "campaign")
    values = read_settings(path, "campaign")
    override(values, overrides)
    for name in values:
        if name not in Campaign.model_fields:
            raise UsageError(f"{str(path)!r}: unknown field {name!r}{nearest(str(name), Campaign.model_fields)}")
    kind: type[BaseModel] = Campaign
    try:
        if values.get("train") is not None:
            kind = offered("campaigns", "train")
            values["train"] = kind.model_validate(values["train"])
            kind = Campaign
        return Campaign.model_validate(values)
    except ValidationError as error:
        problem = first_problem(error, kind)
        place = problem.field if kind is Campaign else ".".join(filter(None, ("train", problem.field)))
        raise UsageError(f"{str(path)!r}, field {place or '(whole file)'}: {problem.sentence}") from None


def planned(
    campaign: Campaign,
    out: Path,
    overrides: Sequence[str] = (),
    only: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> list[PlannedRun]:
    """Every run of a campaign with its directory below ``out``, the runs of a model one after the other.

    ``overrides`` and ``settings`` are for all runs; ``only`` names models that the runs are restricted to. Raises
    :class:`UsageError` for a wrong setting, and for two runs of the same model, benchmark and mode.
    """
    defaults = Defaults()
    runs = list(_runs(campaign, out, overrides, settings or {}, defaults))
    defaults.announce()
    announce_greedy(run.config for run in runs)
    for run in runs if "seed" in (settings or {}) else ():
        refuse_idle_seed(run.config)
    names = list(dict.fromkeys(run.model for run in runs))
    for name in only:
        if name not in names:
            raise UsageError(f"the campaign has no model {name!r}{nearest(name, names)}; it has {', '.join(names)}")
    directories = [run.directory for run in runs]
    for directory in directories:
        if directories.count(directory) > 1:
            raise UsageError(f"two runs of the campaign are {str(directory.relative_to(out))!r}: give one another 'name'")
    return [run for run in runs if not only or run.model in only]


def staged(runs: Sequence[PlannedRun], note: Callable[[str], None]) -> Iterator[list[tuple[RunConfig, Path]]]:
    """The runs of a campaign in groups, in order: those of models, and then those of each training once it is finished.

    ``note`` is given a line when a training begins and ends. Raises as :func:`guieval.training.trainings.trained` does.
    """
    for _, own in groupby(runs, key=lambda run: None if run.training is None else run.training.name):
        group = list(own)
        if (training := group[0].training) is not None:
            offered("campaigns", "trained")(training, note)
        yield [(run.config, run.directory) for run in group]


def trainings_of(runs: Sequence[PlannedRun]) -> list[Training]:
    """The trainings that runs need, in the order in which they are done."""
    found: dict[str, Training] = {}

    def add(training: Training) -> None:
        if training is not None:
            add(training.starts_from)
            found.setdefault(training.name, training)

    for run in runs:
        add(run.training)
    return list(found.values())


def _runs(
    campaign: Campaign, out: Path, overrides: Sequence[str], settings: Mapping[str, Any], defaults: Defaults
) -> Iterator[PlannedRun]:
    trainings = [] if campaign.train is None else offered("campaigns", "planned")(campaign.train, out)
    evaluated = [each for each in trainings if each.evaluate]
    models: list[tuple[Settings, Training]] = [(model, None) for model in campaign.models]
    models += [({"name": each.name, "model_path": str(each.final)}, each) for each in evaluated]
    for model, training in models:
        shared = campaign.settings if training is None else {**training.model, **campaign.settings}
        for bench in campaign.benchmarks:
            modes = bench.get("modes", campaign.modes)
            for mode in [modes] if isinstance(modes, str) else modes:
                named, values = _merged(shared, model, bench, mode)
                override_settings(values, overrides)
                update_by_options(values, settings)
                rest = "-".join(filter(None, (named[1], mode)))
                name = name_part(f"{named[0]}-{rest}")
                config = defaults.parsed(defaults.below(values))
                for repeat, directory in repeats_of(config, out / name, campaign.seeds):
                    earlier = out / f"{name}-seed{repeat.sampling.request.get('seed')}"
                    if is_run(earlier):  # of a version that had a folder for each seed
                        repeat, directory = repeat.having(repeats=1, repeat=None), earlier
                    yield PlannedRun(config=repeat, directory=directory, model=named[0], rest=rest, training=training)


def _merged(shared: Settings, model: Settings, bench: Settings, mode: str) -> tuple[tuple[str, str], Settings]:
    """The name of a run, and its settings; ``name`` in a model's or a benchmark's settings is its name in the campaign."""
    own = ("name", "modes")
    parts = [placed({name: value for name, value in part.items() if name not in own}) for part in (shared, bench, model)]
    values: Settings = {}
    sampling: dict[str, Any] = {}
    for part in parts:
        request = part.get("sampling", {}).get("request")
        sampling |= request if isinstance(request, Mapping) else {}
        update(values, part)
    update(values, {"mode": mode, **({"sampling": sampling} if sampling else {})})
    _, of_bench, of_model = parts
    named = str(model.get("name") or of_model.get("model", {}).get("name", ""))
    return (named, str(bench.get("name") or of_bench.get("data", {}).get("bench", ""))), values
