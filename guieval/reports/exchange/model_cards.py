"""Figures for a model's page on the Hugging Face hub: ``.eval_results/*.yaml``, and the older ``model-index``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from guieval.errors import UsageError, nearest
from guieval.reports.exchange.exported import Exported, ExportedFigure


def write_eval_results(run: Exported, folder: Path, *, figure: str | None = None, task: str = "default") -> list[Path]:
    """Write ``.eval_results/NAME.yaml``, which goes into the model's repository; one figure, in percent.

    ``figure`` names it (default: exact match, or success online), ``task`` is the task in the benchmark's ``eval.yaml``.
    Raises :class:`UsageError` where the benchmark has no data set on the hub, since the format demands one.
    """
    _needs_hub()
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    if run.dataset is None:
        name = run.manifest.benchmark.name
        raise UsageError(f"an evaluation result names a data set on the hub, and {name!r} has none: add --dataset ORG/NAME")
    chosen = run.headline if figure is None else _named(run.figures, figure)
    entry = EvalResultEntry(
        dataset_id=run.dataset,
        task_id=task,
        value=_percent(chosen.value),
        date=run.manifest.created or None,
        notes=_words(run, chosen),
    )
    path = folder / ".eval_results" / f"{run.name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return [_written(path, eval_result_entries_to_yaml([entry]))]


def write_model_index(run: Exported, folder: Path) -> list[Path]:
    """Write ``NAME.model-index.yaml``: what goes between the lines ``---`` of the model's README; all figures, in percent."""
    _needs_hub()
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    manifest = run.manifest
    results = [
        EvalResult(
            task_type="image-text-to-text",
            task_name=f"GUI agent, {manifest.mode.name}",
            dataset_type=run.dataset or manifest.benchmark.name,
            dataset_name=manifest.benchmark.name,
            dataset_config=f"{manifest.mode.name}, {run.protocol.name}",
            dataset_args=run.details,
            metric_type=figure.kind,
            metric_value=_percent(figure.value),
            metric_name=figure.name,
            metric_args=_interval(figure),
        )
        for figure in run.figures
    ]
    folder.mkdir(parents=True, exist_ok=True)
    index = eval_results_to_model_index(manifest.model_name, results)
    return [_written(folder / f"{run.name}.model-index.yaml", {"model-index": index})]


def _needs_hub() -> None:
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise UsageError("this format needs the package huggingface_hub: pip install 'guieval[hub]'") from None


def _named(figures: Sequence[ExportedFigure], name: str) -> ExportedFigure:
    for figure in figures:
        if figure.name == name:
            return figure
    names = [figure.name for figure in figures]
    raise UsageError(f"the run has no figure {name!r}{nearest(name, names)}; it has {', '.join(names)}")


def _interval(figure: ExportedFigure) -> dict[str, Any]:
    values: dict[str, Any] = {"n": figure.n, "of": figure.of}
    if figure.interval is not None:
        values |= {"low": round(100 * figure.interval.low, 2), "high": round(100 * figure.interval.high, 2)}
    return values


def _percent(share: float) -> float:
    """A share in per cent with two decimals, or with all where these would make it 0 or 100."""
    rounded = round(100 * share, 2)
    return 100 * share if rounded in (0, 100) else rounded


def _words(run: Exported, figure: ExportedFigure) -> str:
    interval = figure.interval
    between = (
        "" if interval is None else f", {interval.level:.0%} interval {100 * interval.low:.2f} to {100 * interval.high:.2f}"
    )
    selection = run.manifest.selection
    steps = f", {selection.title}" if selection is not None and selection.title else ""
    if run.manifest.benchmark.edition_line:
        steps += f", {run.manifest.benchmark.edition_line}"
    rules = "" if run.online else f" under {run.protocol.name}"
    missing = f", {figure.missing:,} not measured" if figure.missing else ""
    where = f"{rules}, {run.manifest.mode.name}{steps}"
    return f"{figure.name} in %{where}: n = {figure.n:,} {figure.of}{between}{missing}; guieval {run.manifest.guieval}"


def _written(path: Path, values: object) -> Path:
    path.write_text(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    return path
