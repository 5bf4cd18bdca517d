"""Runs, benchmarks and episodes as HTML for a notebook. Every name and text of a run or a data set is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guieval.data.benchmark import ABCBenchmark, LocatedEpisode
from guieval.data.doctor.counts import counted
from guieval.data.screenshots import jpeg_url, read_picture
from guieval.errors import GuievalError, ScreenshotError
from guieval.history import in_words
from guieval.metrics import TaskSummary
from guieval.metrics.kinds import of_tasks
from guieval.metrics.rounding import percentage
from guieval.reports.console import Run, online_tables, report_tables, run_table
from guieval.reports.marks import step_overlay
from guieval.reports.opened import Metrics, OpenedOnlineRun, OpenedRun, OpenedStep, OpenedTrajectory, OpenedTrajectoryStep
from guieval.reports.past_runs import described
from guieval.reports.tables.table import Table, columns
from guieval.reports.tables.writers import escaped, html_table
from guieval.running.api import RunResult
from guieval.steps import Episode, StepTaskModel

if TYPE_CHECKING:
    from PIL.Image import Image

THUMBNAIL, TRAJECTORY_STEP, STEP = (180, 240), (180, 320), (480, 480)
"""The largest (width, height) of a picture in pixels: of a step of an episode and of a trajectory, and of a single step."""
MOST_THUMBNAILS, MOST_EPISODES = 24, 3
"""Steps of an episode, and episodes of a benchmark, that are shown."""
_FIGURE = "margin:0;width:180px;font-size:12px;overflow-wrap:anywhere"
_ROW = "display:flex;flex-wrap:wrap;gap:10px;margin:6px 0 14px"
_OF_RESULT = ("exact match", "type match", "success rate", "progress", "coverage")


def picture(image: Image) -> str:
    """An image within the page."""
    return f'<img alt="" style="max-width:100%;border:1px solid #d5d9df" src="{jpeg_url(image, 88)}">'


def definitions(rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values, without empty values."""
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escaped(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap;overflow-wrap:anywhere">{escaped(value)}</td></tr>'
        for name, value in rows
        if value not in (None, "")
    )
    return f"<table>{cells}</table>"


def benchmark_html(benchmark: ABCBenchmark) -> str:
    """The attributes and counts of a benchmark, and its first episodes."""
    rows: list[tuple[str, object]] = [
        ("name", benchmark.name),
        ("paper", benchmark.paper),
        ("licence", benchmark.licence),
        ("setting", benchmark.setting),
        ("protocol", benchmark.protocol),
        ("data", benchmark.root),
    ]
    title = f"<h3>{escaped(benchmark.title)}</h3>"
    try:
        refs = benchmark.index()
        rows += [("episodes", f"{len(refs):,}"), ("steps", f"{sum(ref.length for ref in refs):,}")]
        shown = [benchmark.located(benchmark.load(ref)) for ref in islice(refs, MOST_EPISODES)]
    except GuievalError as error:
        return f"<div>{title}{definitions([*rows, ('not readable', error)])}</div>"
    return f"<div>{title}{definitions(rows)}{''.join(map(episode_html, shown))}</div>"


def episode_html(episode: Episode) -> str:
    """The goal of an episode, and its steps as thumbnails on which the references are drawn."""
    steps, root = episode.steps, episode.root if isinstance(episode, LocatedEpisode) else None
    figures = "".join(_figure(step, root) for step in steps[:MOST_THUMBNAILS])
    more = f"<p>... and {counted(len(steps) - MOST_THUMBNAILS, 'more step')}</p>" if len(steps) > MOST_THUMBNAILS else ""
    hint = "" if root else "<p>Screenshots are shown for episodes that come from benchmark.episode(...).</p>"
    head = f"<p><b>{escaped(episode.key)}</b>, {counted(len(steps), 'step')}<br>{escaped(steps[0].instruction)}</p>"
    return f'<div>{head}<div style="{_ROW}">{figures}</div>{more}{hint}</div>'


def _figure(step: StepTaskModel, root: Path | None) -> str:
    shown, why = "", ""
    if root is not None:
        try:
            shown = picture(_thumbnail(step, root))
        except ScreenshotError as error:
            why = f"<br>{escaped(error)}"
    caption = f"<b>{step.step_index}</b> {escaped(reference_text(step))}{why}"
    if step.low_level_instruction:
        caption += f"<br>{escaped(step.low_level_instruction)}"
    return f'<figure style="{_FIGURE}">{shown}<figcaption>{caption}</figcaption></figure>'


def reference_text(step: StepTaskModel) -> str:
    """The reference in one line."""
    values = {name: value for name, value in step.action if name not in ("type", "point", "duration")}
    return " ".join(map(str, (step.action.type, *values.values())))


def _thumbnail(step: StepTaskModel, root: Path) -> Image:
    image = read_picture(root, step.screenshot, step.screenshot_size, at_most=THUMBNAIL)
    return step_overlay(image.size, step, boxes=False, unit=0.8).over(image)


def result_html(result: RunResult) -> str:
    """The runs of a command: steps, the leading metrics in %, and the directory of each."""
    rows = []
    for run in result:
        found, verdicts = run.metrics(), run.summary.verdicts
        values = (None if (each := found.get(name)) is None else each.value for name in _OF_RESULT)
        shares = ("-" if value is None else f"{percentage(value)} %" for value in values)
        steps = f"{verdicts.measured:,} of {verdicts.planned - verdicts.not_reached:,}"
        rows.append((run.mode, steps, *shares, str(run.directory)))
    return html_table(Table("", columns("mode", "steps", *_OF_RESULT, "directory"), tuple(rows)))


def metrics_html(metrics: Metrics) -> str:
    """The tables of a run under one protocol, and its notes."""
    tables = (online_tables if isinstance(metrics.summary, TaskSummary) else report_tables)([_column(metrics)])
    lines = (*metrics.notes, *(f"overlay: {each}" for each in metrics.overlays), f"Steps: {metrics.steps}")
    notes = "".join(f"<p>{escaped(note)}</p>" for note in lines)
    return f"<div>{''.join(map(html_table, filter(None, tables)))}{notes}</div>"


def _column(metrics: Metrics) -> Run[Any]:
    return Run(metrics.label, metrics.summary)


def run_html(run: OpenedRun) -> str:
    """The settings of a run, and its metrics under its own protocol."""
    try:
        metrics = html_table(run_table([_column(run.metrics())]))
    except GuievalError as error:
        metrics = f"<p>{escaped(error)}</p>"
    return _run(run, "steps", metrics)


def online_run_html(run: OpenedOnlineRun) -> str:
    """The settings of an online run, and its metrics."""
    tables = online_tables([Run("value", of_tasks(run.metrics().summary))])
    return _run(run, "tasks", "".join(map(html_table, tables)))


def _run(run: OpenedRun | OpenedOnlineRun, unit: str, metrics: str) -> str:
    told = described(run.manifest, run.directory)
    rows: list[tuple[str, object]] = [(name, told[name]) for name in ("benchmark", "mode", "protocol", "scaffold", "created")]
    rows += [(unit, told["steps"] or f"{len(run):,}"), ("folder", run.directory), *(("note", note) for note in run.notes)]
    return f"<div><h3>{escaped(told['model'])}</h3>{definitions(rows)}{metrics}</div>"


def step_html(step: OpenedStep) -> str:
    """The verdict of a step, its screenshot with marks, and its texts."""
    head = f"<h4>{escaped(f'{step.key}, step {step.index}')}: {escaped(step.verdict)} under {escaped(step.protocol)}</h4>"
    if step.record is None:
        return f"<div>{head}</div>"
    return (
        f'<div>{head}<div style="display:flex;gap:16px;align-items:flex-start"><div style="flex:none;max-width:{STEP[0]}px">'
        f"{_picture_of(step, STEP)}</div><div>{definitions(step.texts().items())}</div></div></div>"
    )


def trajectory_html(trajectory: OpenedTrajectory) -> str:
    """The goal and the outcome of a repetition of a task, and its steps side by side."""
    each, outcome = trajectory.trajectory, trajectory.trajectory.outcome
    rows: list[tuple[str, object]] = [("goal", each.goal), ("ended", each.ended)]
    if outcome is not None:
        rows += [("progress", f"{percentage(outcome.score.progress, '.0f')}%"), ("reason", outcome.score.reason)]
        rows += [("side effect", effect) for effect in outcome.score.side_effects]
    head = f"<h4>{escaped(f'{each.key}, repetition {each.repetition}')}</h4>{definitions(rows)}"
    steps = "".join(map(trajectory_step_html, trajectory))
    return f'<div>{head}<div style="display:flex;gap:12px;overflow-x:auto">{steps}</div></div>'


def trajectory_step_html(step: OpenedTrajectoryStep) -> str:
    """The screen of a step of a trajectory with its action."""
    record, width = step.record, TRAJECTORY_STEP[0]
    missed = "" if record.executed else "<br>not carried out"
    words = f"<b>{record.index + 1}</b> {escaped(in_words(record.action))}{missed}<br>{escaped(record.thought or '')}"
    shown = _picture_of(step, TRAJECTORY_STEP)
    return f'<figure style="margin:0;flex:none;width:{width}px;overflow-wrap:anywhere">{shown}<br>{words}</figure>'


def _picture_of(step: OpenedStep | OpenedTrajectoryStep, size: tuple[int, int]) -> str:
    try:
        image = step.image()
    except GuievalError as error:
        return escaped(error)
    image.thumbnail(size)
    return picture(image)
