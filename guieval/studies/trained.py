"""Trained models as points of a curve: the settings in which trainings differ, the metrics of their weights, their GPU hours.

They are read from a campaign's ``trainings.jsonl``, or from the folders of trainings with their last evaluations
(``evaluations.jsonl``), so that nothing is copied by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guieval.data.files import read_text
from guieval.data.yaml_text import read_yaml
from guieval.errors import DataError, UsageError, nearest
from guieval.studies.scaling import ScalingSeries, read_scaling_table
from guieval.studies.training_curves import SETTINGS, evaluations
from guieval.training.trainings import FOLDER, spent

RESULTS = "trainings.jsonl"
GPU_HOURS = "gpu_hours"
_SHARES = ("type_match", "exact_match", "pg", "tsr", "sop_score", "success", "progress")
"""Metrics of ``evaluations.jsonl`` that are fractions; points have per cent."""
_NOT_VARIED = ("out", "data", "report_to", "notes", "evaluation")


class TrainedModel(NamedTuple):
    """A training: the settings in which it differs from those next to it, and its metrics, shares in per cent."""

    training: str
    settings: Mapping[str, Any]
    metrics: Mapping[str, float]
    gpu_hours: float | None

    def value(self, name: str) -> Any:
        """A setting, a metric or the GPU hours; ``None`` if it has none."""
        if name == GPU_HOURS:
            return self.gpu_hours
        return self.settings.get(name, self.metrics.get(name))


def training_folders(given: Path) -> list[Path]:
    """The trainings that a folder is, or has in it, as a campaign's has."""
    if (given / SETTINGS).is_file():
        return [given]
    inside = given / FOLDER if (given / FOLDER).is_dir() else given
    return sorted(file.parent for file in inside.glob(f"*/{SETTINGS}"))


def trained_models(folder: Path) -> list[TrainedModel]:
    """The trainings of a campaign's folder, or those in a folder of trainings that have been evaluated.

    Raises :class:`UsageError` if there are none, :class:`DataError` for a line that no campaign wrote.
    """
    file = folder / RESULTS
    if file.is_file():
        return list(_lines(file))
    found = training_folders(folder)
    last = {each: rows[-1] for each in found if (rows := evaluations(each))}
    if not last:
        what = "no evaluation of its trainings yet" if found else "no trainings"
        raise UsageError(f"{str(folder)!r} has {what}: expected {RESULTS}, or trainings with evaluations.jsonl")
    settings = {each: dict(_flat(read_yaml(read_text(each / SETTINGS)))) for each in last}
    names = dict.fromkeys(name for each in settings.values() for name in each if name.split(".")[0] not in _NOT_VARIED)
    varied = [name for name in names if len({json.dumps(each.get(name)) for each in settings.values()}) > 1]
    models = []
    for each, row in last.items():
        metrics = {
            name: value * (100 if name in _SHARES else 1)
            for name, value in row.items()
            if name != "step" and isinstance(value, int | float)
        }
        took = spent(each)
        own = {name: settings[each].get(name) for name in varied}
        models.append(TrainedModel(each.name, own, metrics, None if took is None else took.hours))
    return models


def _lines(file: Path) -> Iterator[TrainedModel]:
    for number, line in enumerate(read_text(file).splitlines(), 1):
        try:
            yield TrainedModel(**json.loads(line))
        except (ValueError, TypeError):
            raise DataError(f"{file}, line {number}: expected a training as `guieval campaign` writes it") from None


def _flat(settings: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(settings, dict) and settings:
        for name, value in settings.items():
            yield from _flat(value, f"{prefix}.{name}" if prefix else str(name))
    else:
        yield prefix, settings


class Points(NamedTuple):
    """Series of (x, y) by name; ``x`` and ``y`` are the names of what they are."""

    x: str
    y: str
    series: dict[str, list[tuple[Any, float]]]


def points(models: Sequence[TrainedModel], x: str | None = None, y: str | None = None, by: str | None = None) -> Points:
    """A metric (or ``gpu_hours``) against a setting, a metric or the GPU hours.

    ``x`` is by default the first setting of numbers, ``y`` the first metric; a series for each value of ``by``, by default of
    all other settings that vary. Raises :class:`UsageError` for an unknown name, and if there is nothing to choose.
    """
    settings = list(dict.fromkeys(name for each in models for name in each.settings))
    metrics = [*dict.fromkeys(name for each in models for name in each.metrics), GPU_HOURS]
    for name in filter(None, (x, y, by)):
        if name not in (known := [*settings, *metrics]):
            raise UsageError(f"these trainings have no {name!r}{nearest(name, known)}; they have: {', '.join(known)}")
    across = x or next((name for name in settings if name != by and _numbers([each.value(name) for each in models])), None)
    if across is None:
        raise UsageError(f"no setting of these trainings varies in numbers; they have: {', '.join(settings) or 'none'} (--x)")
    up = y or metrics[0]
    rest = [by] if by else [name for name in settings if name != across]
    series: dict[str, list[tuple[Any, float]]] = {}
    for each in models:
        if isinstance(value := each.value(up), int | float):
            name = ", ".join(_said(one, each.value(one)) for one in rest) or up
            series.setdefault(name, []).append((each.value(across), float(value)))
    if not series:
        raise UsageError(f"none of these trainings has a value of {up!r}")
    return Points(across, up, series)


def _numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return len(set(map(str, known))) > 1 and all(isinstance(value, int | float) and value > 0 for value in known)


def _said(setting: str, value: Any) -> str:
    """A value by itself if it is a word, else with the setting's last name."""
    return value if isinstance(value, str) else f"{setting.rpartition('.')[2]} {'null' if value is None else value}"


def read_scaling_series(given: Path, x: str | None = None, y: str | None = None, by: str | None = None) -> list[ScalingSeries]:
    """The series of a CSV file, of a campaign with trainings, or of a folder of trainings; points without a size are left out.

    Raises as :func:`guieval.studies.scaling.read_scaling_table` and :func:`points` do.
    """
    if not given.is_dir():
        return read_scaling_table(given, x, y, by)
    found = points(trained_models(given), x, y, by)
    series = []
    for name, own in found.series.items():
        sized = [(float(size), value) for size, value in own if isinstance(size, int | float)]
        if sized:
            series.append(ScalingSeries(name, found.x, found.y, *zip(*sized, strict=True)))
    if not series:
        raise UsageError(f"{found.x!r} of these trainings is no number, so no law of sizes can be fitted (--x)")
    return series
