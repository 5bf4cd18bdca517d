"""The metrics of trainings by optimiser step, with intervals over seeds, from the folders that ``guieval train`` writes.

Trainings whose settings differ only in the seed are one series. Long logs are averaged over equal numbers of optimiser steps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from guieval.data.files import read_text
from guieval.data.yaml_text import read_yaml
from guieval.errors import UsageError
from guieval.metrics import Measured
from guieval.metrics.intervals import Interval
from guieval.reports.plots.drawn import check_labels

SETTINGS, LOG, EVALUATIONS, MOST_POINTS = "training.yaml", "log.jsonl", "evaluations.jsonl", 40
_OF_A_SEED = ("seed", "out", "data", "report_to", "notes")


class LoggedMetric(NamedTuple):
    """A metric of a training: its title, the names it may have in the log (the first that is there), and whether it is a share.

    A name that begins with ``*`` is an ending.
    """

    title: str
    names: tuple[str, ...]
    share: bool = False


FIGURES: tuple[LoggedMetric, ...] = (
    LoggedMetric("reward", ("reward",)),
    LoggedMetric("reward for the format", ("*/format", "*/parsed")),
    LoggedMetric("reward for the type", ("*/type",)),
    LoggedMetric("reward for the parameters", ("*/params", "*/coordinate", "*/iou", "*/soft", "*/exact")),
    LoggedMetric("spread of the rewards of a group", ("reward_std",)),
    LoggedMetric("exact match of the responses (%)", ("watch/exact_match", "*/exact_match"), share=True),
    LoggedMetric("successful rollouts (%)", ("online/success", "semi_online/success"), share=True),
    LoggedMetric("entropy", ("entropy",)),
    LoggedMetric("KL", ("kl",)),
    LoggedMetric("clipped tokens (%)", ("clip_ratio/region_mean",), share=True),
    LoggedMetric("groups kept (%)", ("dynamic_sampling/kept_share",), share=True),
    LoggedMetric("tokens per response", ("completions/mean_length",)),
    LoggedMetric("loss", ("loss",)),
    LoggedMetric("learning rate", ("learning_rate",)),
    LoggedMetric("norm of the gradient", ("grad_norm",)),
    LoggedMetric("SOP score in evaluations (%)", ("eval/sop_score",), share=True),
    LoggedMetric("exact match in evaluations (%)", ("eval/exact_match",), share=True),
    LoggedMetric("success in evaluations (%)", ("eval/success",), share=True),
)
"""The curves, in this order; the loss only of supervised trainings, for which it is informative."""


class CurvePoint(NamedTuple):
    """The mean over seeds at an optimiser step, with Student's interval if there are two or more."""

    step: float
    mean: Measured


@dataclass(frozen=True)
class TrainingCurves:
    """One series: its label, how many seeds it has, and the points of each metric by title."""

    label: str
    seeds: int
    curves: Mapping[str, Sequence[CurvePoint]]


class _Training(NamedTuple):
    folder: Path
    settings: dict[str, Any]
    series: dict[str, dict[int, float]]


def training_curves(folders: Sequence[Path], labels: Sequence[str] | None = None, level: float = 0.95) -> list[TrainingCurves]:
    """The series of trainings. ``labels``, one for each folder, replace the grouping by settings.

    Raises :class:`UsageError` for a folder without a training, one whose log has no metric, and a wrong number of labels.
    """
    trainings = [_read(folder) for folder in folders]
    check_labels(labels, len(trainings), "trainings")
    groups: dict[str, list[_Training]] = {}
    for place, training in enumerate(trainings):
        key = json.dumps(_alike(training.settings), sort_keys=True, default=str) if labels is None else labels[place]
        groups.setdefault(key, []).append(training)
    named = [*groups] if labels is not None else _names(list(groups.values()))
    return [_curves(label, members, level) for label, members in zip(named, groups.values(), strict=True)]


def evaluations(folder: Path) -> list[dict[str, Any]]:
    """The lines of a training's evaluations, in it or next to it; one that a kill has torn is left out."""
    try:
        lines = read_text(folder / EVALUATIONS, errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("step"), int):
                found.append(row)
    return found


def _read(folder: Path) -> _Training:
    try:
        settings = read_yaml(read_text(folder / SETTINGS))
        lines = read_text(folder / LOG).splitlines()
    except (OSError, ValueError):
        raise UsageError(f"{str(folder)!r} has no training: expected {SETTINGS} and {LOG}, as `guieval train` writes") from None
    found: dict[str, dict[int, float]] = {}
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last line of a training that was killed
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                found.setdefault(name, {})[row["step"]] = value  # of a resumed training, the later line
    for row in evaluations(folder):
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                found.setdefault(f"eval/{name}", {})[row["step"]] = value
    supervised = isinstance(settings, dict) and settings.get("kind") == "sft"
    series = {
        shown.title: values
        for shown in FIGURES
        if (shown.title != "loss" or supervised) and (values := _named(found, shown.names))
    }
    if not series:
        raise UsageError(f"the log of the training {str(folder)!r} has no metric yet")
    return _Training(folder, settings if isinstance(settings, dict) else {}, series)


def _named(found: Mapping[str, dict[int, float]], names: Sequence[str]) -> dict[int, float] | None:
    for name in names:
        for given in sorted(found):
            if given == name or (name.startswith("*") and given.endswith(name[1:]) and not given.startswith("eval/")):
                return found[given]
    return None


def _alike(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _OF_A_SEED}


def _names(groups: Sequence[Sequence[_Training]]) -> list[str]:
    """The folder's name, or what the names of several seeds begin with; several of the same name get their folder's folder."""
    short = [_beginning([each.folder.resolve().name for each in group]) for group in groups]
    short = [name.rstrip("-_. ") if len(group) > 1 else name for name, group in zip(short, groups, strict=True)]
    return [
        name if name and short.count(name) == 1 else str(group[0].folder) for name, group in zip(short, groups, strict=True)
    ]


def _beginning(names: Sequence[str]) -> str:
    return "".join(letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))


def _curves(label: str, members: Sequence[_Training], level: float) -> TrainingCurves:
    curves: dict[str, list[CurvePoint]] = {}
    for shown in FIGURES:
        scale = 100.0 if shown.share else 1.0
        series = [
            {step: scale * value for step, value in each.series[shown.title].items()}
            for each in members
            if shown.title in each.series
        ]
        if series:
            curves[shown.title] = _points(series, level)
    return TrainingCurves(label, len(members), curves)


def _points(series: Sequence[Mapping[int, float]], level: float) -> list[CurvePoint]:
    steps = sorted(set().union(*series))
    size = math.ceil(len(steps) / MOST_POINTS)
    points = []
    for start in range(0, len(steps), size):
        part = steps[start : start + size]
        values = [fmean(held) for each in series if (held := [each[step] for step in part if step in each])]
        points.append(CurvePoint(fmean(part), mean_over_seeds(values, level)))
    return points


def mean_over_seeds(values: Sequence[float], level: float = 0.95) -> Measured:
    """The mean of one value a seed, with Student's interval of two or more; of no values it has none."""
    mean = fmean(values) if values else None
    if mean is None or len(values) < 2:
        return Measured(mean, len(values), "seeds", unit="")
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, 0.5 + level / 2) * stdev(values) / math.sqrt(len(values)))
    return Measured(mean, len(values), "seeds", interval=Interval(mean - half, mean + half, level, "student"), unit="")
