"""The decisions of one step on its screen, by several models side by side, and the reachability of its clicks.

Source: GUIEvalKit paper, appendix C.1.1 (executions of several models) and C.1.3 (Figures 13 to 16). Colours and numbers are
those of the step viewer: decisions by frequency, points that lie alone hollow and without a number.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from guieval.actions import Action, Click, LongPress
from guieval.data.screenshots import read_picture
from guieval.errors import GuievalError, UsageError, harmless, nearest
from guieval.journal.run_folders import runs_over, several_runs
from guieval.metrics.rounding import percentage
from guieval.reports.opened import OpenedRun, open_run
from guieval.reports.opened.run import as_text
from guieval.reports.plots.drawn import Drawn, PlotOptions, check_labels
from guieval.reports.plots.paper import MOST_SERIES, WIDTHS, Width, drawing, label_axes
from guieval.steps import StepKey
from guieval.studies.decisions.clustering import DEFAULTS, Decisions, decide
from guieval.studies.decisions.executions import StepExecutions, read_executions
from guieval.studies.decisions.reachability import Reachability, reachability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image

_LOG = logging.getLogger(__name__)
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a3457f", "#e69f00", "#56b4e9", "#7b4f2c", "#f0e442")
"""Of the most frequent decisions, as in the viewer's style.css."""
GREY = "#6b7480"
_LISTED = 5
_ACROSS: dict[Width, int] = {"column": 2, "two-column": 4}
_PIXELS = 900
"""The longer side of a screen in the file."""


class ModelDecisions(NamedTuple):
    """What a model decided at a step."""

    name: str
    executions: StepExecutions
    decisions: Decisions

    @property
    def ranks(self) -> list[int]:
        """The number of each decision as the viewer counts them, from 0; -1 for a point that lies alone."""
        numbered = [place for place, cluster in enumerate(self.decisions.clusters) if not cluster.isolated]
        return [numbered.index(place) if place in numbered else -1 for place in range(len(self.decisions.clusters))]

    def title(self, inches: float) -> str:
        """The name, wrapped, and below it how many executions and decisions there are."""
        decisions = len(self.decisions.clusters)
        return f"{fill(self.name, int(16 * inches))}\nn = {self.decisions.n:,}, {decisions} decision{'s' * (decisions != 1)}"


def clusters(options: PlotOptions) -> Drawn:
    """A screen for each run, with its executions of one step in the colours of their decisions, and the decisions in words."""
    models, screen = _models(options)
    task = models[0].executions.task
    across = min(len(models), _ACROSS[options.width])
    rows = -(-len(models) // across)
    high = WIDTHS[options.width] / across * task.screenshot_size[1] / task.screenshot_size[0]
    wide = WIDTHS[options.width] / across
    texts = [_listed(model, int(20 * wide)) for model in models]
    lines = max(text.count("\n") + 1 for text in texts)
    with drawing(options.width, rows * (min(high, 4.0) + 0.1 * lines + 0.35)) as figure:
        grid = figure.subplots(rows, across, squeeze=False)
        for axes in grid.flat[len(models) :]:
            axes.set_visible(False)
        for axes, model, text in zip(grid.flat, models, texts, strict=False):
            _on_screen(axes, model, screen)
            axes.set_title(model.title(wide), fontsize=7, pad=3, loc="left")
            axes.set_xlabel(text, fontsize=6, loc="left", linespacing=1.2)
    shows = f"the decisions at step {task.key}, {task.instruction!r}; {DEFAULTS.describe()}"
    return Drawn(figure, shows, [{"run": model.name, **_values(model)} for model in models])


def reachabilities(options: PlotOptions) -> Drawn:
    """For each run the clicks of one step on their screen, and the reachability plot of OPTICS with DBSCAN's radius."""
    models, screen = _models(options)
    found = [reachability(model.executions, model.decisions) for model in models]
    task = models[0].executions.task
    most = 1.15 * max(DEFAULTS.radius, *(float(each.distances[np.isfinite(each.distances)].max()) for each in found))
    with drawing(options.width, 2.0 * len(models)) as figure:
        grid = figure.subplots(len(models), 2, squeeze=False, width_ratios=(1, 2 if options.width == "column" else 4))
        for (left, right), model, each in zip(grid, models, found, strict=True):
            _on_screen(left, model, screen)
            _peaks(right, model, each, most)
            right.set_title(model.title(WIDTHS[options.width] - 1.6), fontsize=7, pad=3, loc="left")
        grid[-1][1].set_xlabel("clicks in the order of OPTICS")
    shows = f"OPTICS reachability of the clicks at step {task.key}, with DBSCAN's radius of {DEFAULTS.radius:g} as a line"
    return Drawn(figure, shows, [{"run": model.name, **_rows(model, each)} for model, each in zip(models, found, strict=True)])


def _models(options: PlotOptions) -> tuple[list[ModelDecisions], Image | None]:
    """The decisions of each run at the step that ``task`` names, or where the first clicks are most divided, and its screen."""
    instead = "decisions are of recorded steps"
    places = runs_over("steps", several_runs(options.runs, rollouts=True), instead)
    if len(places) > MOST_SERIES:
        raise UsageError(f"{options.kind} is drawn of at most {MOST_SERIES} runs, got {len(places)}")
    check_labels(options.label, len(places))
    read = [_steps(place, options.task) for place in places]
    common = [key for key in read[0] if all(key in each for each in read[1:])]
    if not common:
        raise UsageError(_no_step(places, options.task))
    if options.task is not None and len(common) > 1:
        raise UsageError(f"several steps are called {options.task!r}; name one of {', '.join(map(repr, map(str, common)))}")
    decided = {key: [decide(each[key]) for each in read] for key in common}
    key = max(common, key=lambda one: sum(_divided(each) for each in decided[one]))
    names = options.label or [f"{place.parent.name}/{place.name}" if _twice(place, places) else place.name for place in places]
    models = [ModelDecisions(name, each[key], of) for name, each, of in zip(names, read, decided[key], strict=True)]
    return models, _screen(places[0], models[0])


def _steps(place: Path, task: str | None) -> dict[StepKey, StepExecutions]:
    """The steps of a run with several executions, or the one called ``task``: EPISODE#STEP, or its whole key."""
    read = read_executions(place)
    return {each.task.key: each for each in read if each.n > 1 and task in (None, str(each.task.key), _name(each.task.key))}


def _name(key: StepKey) -> str:
    return f"{key.episode_id}#{key.step_index}"


def _no_step(places: Sequence[Path], task: str | None) -> str:
    known = [_name(key) for key in _steps(places[0], None)]
    if not known:
        return f"no step of {str(places[0])!r} has several executions; draw samples with `guieval study rollout`"
    if task in (None, *known):
        return "the runs have no such step in common that each has several executions of"
    return f"the run {str(places[0])!r} has no step {task!r}{nearest(str(task), known)}; the first is {known[0]!r}"


def _divided(decisions: Decisions) -> int:
    return sum(cluster.type == "CLICK" and not cluster.isolated for cluster in decisions.clusters)


def _twice(place: Path, places: Sequence[Path]) -> bool:
    return [each.name for each in places].count(place.name) > 1


def _screen(place: Path, model: ModelDecisions) -> Image | None:
    task, opened = model.executions.task, open_run(place)
    try:
        assert isinstance(opened, OpenedRun)  # the runs are over steps
        return read_picture(opened.screenshots, task.screenshot, task.screenshot_size, at_most=(_PIXELS, _PIXELS))
    except GuievalError as error:
        _LOG.warning("%s", harmless(f"note: the screen of step {task.key} is left white: {error}"))
        return None


def _colour(rank: int) -> str:
    return COLOURS[rank] if 0 <= rank < len(COLOURS) else GREY


def _on_screen(axes: Axes, model: ModelDecisions, screen: Image | None) -> None:
    """Every different point, larger if it was drawn more often, and each cluster's number at its middle."""
    width, height = model.executions.task.screenshot_size
    if screen is not None:
        axes.imshow(np.asarray(screen), extent=(0, 1000, 1000, 0), alpha=0.75)
    axes.set_xlim(0, 1000)
    axes.set_ylim(1000, 0)
    axes.set_aspect(height / width)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    for rank, cluster in reversed([*zip(model.ranks, model.decisions.clusters, strict=True)]):
        for place in cluster.members.tolist():
            action = model.executions.actions[place]
            if isinstance(action, Click | LongPress):
                size = 6 + 4 * np.log2(int(model.executions.counts[place]))
                inside = "white" if cluster.isolated else _colour(rank)
                edge = _colour(rank) if cluster.isolated else "white"
                axes.scatter([action.point.x], [action.point.y], s=size, c=inside, edgecolors=edge, linewidths=0.4, zorder=3)
        if isinstance(cluster.prototype, Click | LongPress) and rank >= 0:
            _number(axes, rank, (cluster.prototype.point.x, cluster.prototype.point.y))


def _number(axes: Axes, rank: int, place: tuple[float, float]) -> None:
    below = (8, -8) if place[1] < 900 else (8, 8)
    axes.annotate(
        str(rank + 1),
        place,
        xytext=below,
        textcoords="offset points",
        fontsize=6,
        fontweight="bold",
        ha="center",
        va="center",
        zorder=4,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": _colour(rank), "linewidth": 0.8},
    )


def _listed(model: ModelDecisions, wide: int) -> str:
    """The most frequent decisions in words, a line each."""
    decided = sum(cluster.count for cluster in model.decisions.clusters)
    rows = [(rank, cluster) for rank, cluster in zip(model.ranks, model.decisions.clusters, strict=True) if rank >= 0]
    lines = [
        f"{rank + 1}: {_short(cluster.prototype, wide - 9)}, {percentage(cluster.count / decided, '.0f')} %"
        for rank, cluster in rows[:_LISTED]
    ]
    rest = decided - sum(cluster.count for _, cluster in rows[:_LISTED])
    return "\n".join([*lines, *([f"others: {percentage(rest / decided, '.0f')} %"] if rest else [])])


def _short(action: Action, most: int) -> str:
    """The action's type, and its text, button or direction."""
    values = [str(value) for name, value in action if name != "type" and isinstance(value, str)]
    words = " ".join([action.type, *values])
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _peaks(axes: Axes, model: ModelDecisions, found: Reachability, most: float) -> None:
    """Bars of the distances in the colours of the decisions, the infinite first one hatched, and the radius as a line."""
    ranks = np.array(model.ranks)[found.labels]
    heights = np.where(np.isfinite(found.distances), found.distances, most)
    filled = [_colour(rank) if rank >= 0 else "white" for rank in ranks.tolist()]
    edges = [_colour(rank) for rank in ranks.tolist()]
    hatches = ["" if finite else "//////" for finite in np.isfinite(found.distances).tolist()]
    filled = ["white" if hatch else colour for hatch, colour in zip(hatches, filled, strict=True)]
    axes.bar(range(len(ranks)), heights, 1.0, color=filled, edgecolor=edges, linewidth=0.3, hatch=hatches)
    axes.axhline(DEFAULTS.radius, color="black", linestyle="--", linewidth=0.8)
    axes.set_xlim(-0.5, len(ranks) - 0.5)
    axes.set_ylim(0, most)
    label_axes(axes, "", f"reachability\n(dashed: {DEFAULTS.radius:g})")
    for rank in sorted({*ranks.tolist()} - {-1}):
        middle = float(np.flatnonzero(ranks == rank).mean())
        axes.annotate(
            str(rank + 1), (middle, DEFAULTS.radius), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=6
        )


def _values(model: ModelDecisions) -> dict[str, Any]:
    found = model.decisions
    rows = [
        {"number": rank + 1 if rank >= 0 else None, "count": cluster.count, "decision": as_text(cluster.prototype)}
        for rank, cluster in zip(model.ranks, found.clusters, strict=True)
    ]
    return {"step": str(model.executions.task.key), "n": found.n, "diversity": found.diversity, "decisions": rows}


def _rows(model: ModelDecisions, found: Reachability) -> dict[str, Any]:
    clicks = [
        {
            "x": x,
            "y": y,
            "reachability": distance if np.isfinite(distance) else None,
            "decision": model.ranks[label] + 1 or None,
        }
        for (x, y), distance, label in zip(found.points.tolist(), found.distances.tolist(), found.labels.tolist(), strict=True)
    ]
    return {"step": str(model.executions.task.key), "radius": DEFAULTS.radius, "clicks": clicks}
