"""Metrics for pages on the Hugging Face hub: ``.eval_results/*.yaml``, the older ``model-index``, a section of a model's card.

And ``eval.yaml`` of a data set, which makes it a benchmark there (hub-docs, ``docs/hub/eval-results.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from guieval.errors import UsageError, nearest
from guieval.exchange.exported import Exported, ExportedMetric
from guieval.journal.run_files import setup_line
from guieval.registry import benchmark_class, list_benchmarks
from guieval.reports.opened import OpenedRun
from guieval.reports.tables.table import Number, Table, columns
from guieval.reports.tables.writers import markdown


def write_eval_results(run: Exported, folder: Path, *, metric: str | None = None, task: str = "default") -> list[Path]:
    """Write ``.eval_results/NAME.yaml``, which goes into the model's repository; one metric, in percent.

    ``metric`` names it (default: exact match, or success online), ``task`` is the task in the benchmark's ``eval.yaml``.
    Raises :class:`UsageError` if the benchmark has no data set on the hub, since the format demands one.
    """
    _needs_hub()
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    if run.dataset is None:
        name = run.manifest.benchmark.name
        raise UsageError(f"an evaluation result names a data set on the hub, and {name!r} has none: add --dataset ORG/NAME")
    chosen = run.headline if metric is None else _named(run.metrics, metric)
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
    """Write ``NAME.model-index.yaml``: what goes between the lines ``---`` of the model's README; all metrics, in percent."""
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
            dataset_args={**run.details, **{f"setup_{name}": value for name, value in run.setup.items()}},
            metric_type=metric.kind,
            metric_value=_percent(metric.value),
            metric_name=metric.name,
            metric_args=_interval(metric),
        )
        for metric in run.metrics
    ]
    folder.mkdir(parents=True, exist_ok=True)
    index = eval_results_to_model_index(manifest.model_name, results)
    return [_written(folder / f"{run.name}.model-index.yaml", {"model-index": index})]


def write_eval_yaml(run: Exported, folder: Path, *, task: str = "default") -> list[Path]:
    """Write ``eval.yaml`` for the root of the benchmark's data set: what is run, by which rules, with Inspect.

    ``task`` is its name in results of models (:func:`write_eval_results`).
    """
    benchmark, selection = run.manifest.benchmark, run.manifest.selection
    title = benchmark_class(benchmark.name).title if benchmark.name in list_benchmarks() else benchmark.name
    steps = f" over {selection.text or selection.title}" if selection is not None else ""
    edition = f" of the {benchmark.edition_line}" if benchmark.edition_line else ""
    values = {
        "name": title,
        "description": f"{title}, mode {run.manifest.mode.label}{steps}{edition}, scored under {run.protocol.name}: "
        f"{run.headline.description}. guieval's task: inspect eval guieval/steps -T bench={benchmark.name} "
        f"-T protocol={run.protocol.name} -T checkpoint=NAME",
        "evaluation_framework": "inspect-ai",
        "tasks": [{"id": task, "config": "default", "split": _split(run)}],
    }
    folder.mkdir(parents=True, exist_ok=True)
    return [_written(folder / "eval.yaml", values)]


def _split(run: Exported) -> str:
    """The split of the run's steps, which the Hub shows."""
    steps = run.run.walk() if isinstance(run.run, OpenedRun) else ()
    return next((step.task.split for step in steps if step.record is not None), "test")


def card_table(run: Exported) -> Table:
    """The metrics with their intervals, and below them all that they depend on."""
    rows = tuple(
        (each.name, f"{shown.shown} {shown.marks}".strip(), shown.ends, each.measured.n, each.measured.of)
        for each in run.metrics
        for shown in (Number(each.measured),)
    )
    manifest = run.manifest
    title = f"{manifest.model_name} on {manifest.benchmark.name}, {manifest.mode.label}, {run.protocol.name}"
    notes = tuple(f"{name}: {value}" for name, value in run.details.items())
    return Table(title, columns("metric", "value", "95% interval", "n", "of"), rows, notes)


def write_card_section(run: Exported, folder: Path) -> list[Path]:
    """Write ``NAME.card.md``, a section of the model's card: its table, and who answered."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run.name}.card.md"
    answered = f"\nset-up: {setup_line([run.manifest])}; guieval {run.manifest.guieval}\n"
    path.write_text(markdown([card_table(run)]) + answered, encoding="utf-8")
    return [path]


def _needs_hub() -> None:
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise UsageError("this format needs the package huggingface_hub: pip install 'guieval[hub]'") from None


def _named(metrics: Sequence[ExportedMetric], name: str) -> ExportedMetric:
    for metric in metrics:
        if metric.name == name:
            return metric
    names = [metric.name for metric in metrics]
    raise UsageError(f"the run has no metric {name!r}{nearest(name, names)}; it has {', '.join(names)}")


def _interval(metric: ExportedMetric) -> dict[str, Any]:
    values: dict[str, Any] = {"n": metric.measured.n, "of": metric.measured.of}
    if metric.measured.missing:
        values["missing"] = metric.measured.missing
    if metric.measured.interval is not None:
        values |= {"low": round(100 * metric.measured.interval.low, 2), "high": round(100 * metric.measured.interval.high, 2)}
    return values


def _percent(share: float) -> float:
    """A share in per cent with two decimals, or with all if these would make it 0 or 100."""
    rounded = round(100 * share, 2)
    return 100 * share if rounded in (0, 100) else rounded


def _words(run: Exported, metric: ExportedMetric) -> str:
    interval = metric.measured.interval
    between = (
        "" if interval is None else f", {interval.level:.0%} interval {100 * interval.low:.2f} to {100 * interval.high:.2f}"
    )
    selection = run.manifest.selection
    steps = f", {selection.title}" if selection is not None and selection.title else ""
    if run.manifest.benchmark.edition_line:
        steps += f", {run.manifest.benchmark.edition_line}"
    steps += f", scaffold {run.manifest.scaffold_line}"
    rules = "" if run.protocol.judges_outcomes else f" under {run.protocol.name}"
    missing = f", {metric.measured.missing:,} not measured" if metric.measured.missing else ""
    where = f"{rules}, {run.manifest.mode.name}{steps}"
    over = f"n = {metric.measured.n:,} {metric.measured.of}"
    answered = f"set-up: {setup_line([run.manifest])}"
    return f"{metric.name} in %{where}: {over}{between}{missing}; {answered}; guieval {run.manifest.guieval}"


def _written(path: Path, values: object) -> Path:
    path.write_text(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    return path
