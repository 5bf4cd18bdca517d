"""The tables of ``guieval study decisions``; each title names the corresponding table or figure of the paper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from guieval.metrics import Measured
from guieval.metrics.rounding import percentage
from guieval.reports.tables.table import Cell, Number, Row, Table, bare, columns
from guieval.steps import StepKey
from guieval.studies.decisions.measures import (
    LEVELS,
    PUBLISHED,
    DecisionColumns,
    Thresholds,
    level_share,
    mean,
    pass_at,
    pass_sizes,
    solved_episodes,
    solved_steps,
)
from guieval.studies.decisions.points import Ints
from guieval.studies.decisions.sensitivity import (
    ALIGNED,
    METRIC_RADII,
    MOVED,
    SUPPORT_RADII,
    TREND_RADII,
    Neighbourhood,
    Sensitivity,
    as_printed,
    l2,
    trends,
    turned_about,
)
from guieval.studies.decisions.shifts import TRENDS, ShiftCell, Shifts
from guieval.studies.training_curves import mean_over_seeds

STEP_COLUMNS = (
    *("run", "model", "benchmark", "subset", "episode_id", "step_index"),
    *("n", "right", "unparseable", "unsupported", "failed", "decisions", "diversity", "support_size", "stability"),
)
_SOLVED = "solved: a step with an exact match among its executions, an episode with all its steps solved (Table 18)"


def estimated(of: Measured, digits: int = 3, *, signed: bool = False) -> Number:
    """A cell of a number in its own unit, with its interval."""
    return Number(replace(of, unit=""), f".{digits}f", signed=signed)


def _part(count: int, of: int) -> Number:
    return Number(Measured(count, of, unit=""), ",", mark=f"({percentage(count / of, '.1f')}%)" if of else "")


def _table(name: str, title: str, header: Sequence[str], rows: Sequence[Row], *notes: str, keys: int = 1) -> Table:
    return Table(title, columns(*header, keys=keys), tuple(rows), notes, name, keys)


def run_tables(runs: Sequence[DecisionColumns]) -> list[Table]:
    """Each run's decisions: metrics, stability levels, PASS@n."""
    titles = [run.title for run in runs]

    def row(name: str, cell: Callable[[DecisionColumns], Cell]) -> Row:
        return (name, *map(cell, runs))

    metrics = (
        row("steps measured", lambda run: int(run.measured.sum())),
        row("executions measured", lambda run: int(run.n.sum())),
        row("of them unparseable", lambda run: _part(int(run.unparseable.sum()), int(run.n.sum()))),
        row("of them unsupported", lambda run: _part(int(run.unsupported.sum()), int(run.n.sum()))),
        row("never answered", lambda run: int(run.failed.sum())),
        row("stability (mean)", lambda run: estimated(mean(run, "stability"))),
        row("diversity, nats (mean)", lambda run: estimated(mean(run, "diversity"))),
        row("support size exp(H) (mean)", lambda run: estimated(mean(run, "support_size"))),
        row("decisions |D| (mean)", lambda run: estimated(mean(run, "decisions"), 2)),
        row("steps solved", lambda run: estimated(solved_steps(run))),
        row("episodes solved", lambda run: estimated(solved_episodes(run))),
    )
    levels: list[Row] = []
    for place, level in enumerate(LEVELS):
        pairs = [(int((run.level == place).sum()), estimated(level_share(run, level))) for run in runs]
        levels.append((level, *(cell for pair in pairs for cell in pair)))
    sizes = sorted({k for run in runs for k in pass_sizes(run)})
    passes: list[Row] = [
        (str(k), *(estimated(pass_at(run, k).measured) if k in pass_sizes(run) else None for run in runs)) for k in sizes
    ]
    twice = [name for title in titles for name in (f"{title}: steps", "share")]
    unanswered = "requests never answered are not right"
    low, high = runs[0].thresholds.low, runs[0].thresholds.high
    return [
        _table("decisions", "Decisions", ("", *titles), metrics, runs[0].settings.describe(), _SOLVED),
        _table("levels", f"Stability levels (low up to {low:g}, high above {high:g})", ("level", *twice), levels),
        _table("pass", "PASS@n (Figure 6)", ("n", *titles), passes, unanswered),
    ]


def step_rows(run: DecisionColumns, model: str) -> Iterator[dict[str, object]]:
    """A line of a file for each step, with :data:`STEP_COLUMNS`; ``None`` for a metric of no execution, or of no decision."""
    for row, key in enumerate(run.keys):
        numbers: dict[str, float | None] = {name: getattr(run, name)[row].item() for name in STEP_COLUMNS[6:]}
        numbers = {name: None if value != value else value for name, value in numbers.items()}  # NaN is no JSON
        yield {"run": run.title, "model": model, **key._asdict(), **numbers}


def progress_table(progress: Mapping[str, Mapping[int, Measured]]) -> Table:
    """Episode progress by seed, and the mean with Student's interval (Table 19); ``progress``: by title and seed."""
    places = range(max(map(len, progress.values())))
    rows: list[Row] = []
    for place in places:
        cells: list[Cell] = []
        for of in progress.values():
            seed, value = list(of.items())[place] if place < len(of) else (None, None)
            cells += [None if seed is None else str(seed), None if value is None else bare(value.value, ".4f")]
        rows.append((f"S{place + 1}", *cells))
    means = [mean_over_seeds([each.value for each in of.values() if each.value is not None]) for of in progress.values()]
    rows.append(("mean", *(cell for each in means for cell in (None, estimated(each, 4)))))
    header = [name for title in progress for name in (f"{title}: seed", "progress")]
    note = "progress of the first sample of each step; 95 % intervals over seeds (Student's)"
    return _table("progress-by-seed", "Episode progress by seed (Table 19)", ("", *header), rows, note)


def cell_table(shifts: Shifts, cell: ShiftCell, parts: Sequence[tuple[Path, Collection[StepKey]]]) -> Table:
    """The steps behind a cell of Figure 4 or 8; ``parts``: the compared run's folders, each with its steps."""
    before, after = shifts.before, shifts.after
    rows: list[Row] = []
    for row in shifts.in_cell(cell).tolist():
        key = before.keys[row]
        numbers = [bare(run.stability[row], ".3f") for run in (before, after)]
        numbers += [bare(None if np.isnan(size := run.support_size[row]) else size, ".2f") for run in (before, after)]
        folder = next(place for place, keys in parts if key in keys)
        rows.append((str(folder), f"{key.subset}/{key.episode_id}" if key.subset else key.episode_id, key.step_index, *numbers))
    header = ("run", "episode", "step", "stability\nbefore", "stability\nafter", "support\nbefore", "support\nafter")
    title = f"Steps with {cell}: {before.title} to {after.title}"
    note = "a step: guieval step RUN EPISODE STEP; on its screenshot: guieval report RUN, then index.html#EPISODE/STEP"
    return _table("steps-of-cell", title, header, rows, f"{len(rows):,} of {len(shifts):,} steps", note, keys=3)


def shift_tables(shifts: Shifts) -> list[Table]:
    """The changes from the baseline to another run."""
    named = f"{shifts.before.title} to {shifts.after.title}"
    steps = len(shifts)
    means: list[Row] = [
        (trend, int((shifts.stability_trend == place).sum()), estimated(shifts.mean_by_trend(trend), 4, signed=True))
        for place, trend in enumerate(TRENDS)
    ]
    means.append(("all", steps, estimated(shifts.mean_stability(), 4, signed=True)))
    note = f"{steps:,} steps measured in both runs"
    if shifts.only_before or shifts.only_after:
        note += f"; left out: {shifts.only_before:,} of the baseline alone, {shifts.only_after:,} of the other alone"
    support = shifts.mean_support()
    wider = f"mean shift of the support size {estimated(support, 3, signed=True)} over {support.n:,} steps"
    trends_of = ("stability dec", "stability negl", "stability inc")
    levels = _crossed(LEVELS, shifts.levels_by_trend().tolist())
    sizes = _crossed(TRENDS, shifts.support_by_stability().tolist())
    first, second, third = (
        f"{title}: {named}"
        for title in (
            "Stability shift by trend (Table 4)",
            "Baseline stability and its shift (Figure 4)",
            "Diversity and stability (Figure 8)",
        )
    )
    return [
        _table("mean-shift", first, ("trend", "steps", "mean shift"), means, note),
        _table("level-by-shift", second, ("baseline stability", *trends_of), levels),
        _table(
            "diversity-by-shift",
            third,
            ("support size exp(H)", *trends_of),
            sizes,
            f"support size: negl within {shifts.before.thresholds.negligible:g}; {wider}",
        ),
    ]


def _crossed(names: Sequence[str], counts: list[list[int]]) -> list[Row]:
    total = sum(map(sum, counts))
    return [(name, *(_part(count, total) for count in row)) for name, row in zip(names, counts, strict=True)]


def sensitivity_tables(run: Sensitivity) -> list[Table]:
    """The decisions of one run under other radii, cluster sizes and thresholds (GUIEvalKit paper, Tables 10 to 13)."""
    where = f": {run.title}" if run.title else ""

    def moved(pair: tuple[Neighbourhood, Neighbourhood], digits: int) -> Number:
        return estimated(run.mean_moved(pair), digits)

    support: list[Row] = [
        ("decisions |D|", *(estimated(run.mean_decisions(l2(radius)), 2) for radius in SUPPORT_RADII)),
        ("support size exp(H)", *(estimated(run.mean_support(l2(radius)), 2) for radius in SUPPORT_RADII)),
    ]
    aligned: list[Row] = [("R² of |D|", *(bare(run.r2(l2(one), l2(other)), ".2f") for one, other in ALIGNED))]
    distances: list[Row] = [("W1 normalised", *(moved((l2(one), l2(other)), 5) for one, other in MOVED))]
    metrics: list[Row] = [
        ("L1 at ε, L2 at 1.207 ε (as printed)", *(moved(as_printed(radius), 6) for radius in METRIC_RADII)),
        ("L1 at 1.207 ε, L2 at ε", *(moved(turned_about(radius), 6) for radius in METRIC_RADII)),
    ]
    over = f"{len(run.keys):,} steps; {run.settings.describe()}"
    typed = f"over {len(run.moved_row):,} pairs of a step and a type of points"
    by_radius, by_metric = ("ε", *_radii(SUPPORT_RADII)), ("ε", *_radii(METRIC_RADII))
    pairs, shifts = ("ε pair", *_pairs(ALIGNED, "-")), ("ε pair", *_pairs(MOVED, "→"))
    return [
        _table("support-by-radius", f"Decision support by radius (Table 10){where}", by_radius, support, over),
        _table("support-alignment", f"Alignment of support sizes (Table 11){where}", pairs, aligned),
        _table("radius-distance", f"Distance between radii (Table 12){where}", shifts, distances, typed),
        _table("metric-distance", f"Distance between L1 and L2 (Table 13){where}", by_metric, metrics, typed),
    ]


def trend_tables(before: Sensitivity, after: Sensitivity, thresholds: Thresholds = PUBLISHED) -> list[Table]:
    """Tables 14 and 15 of two runs: steps whose diversity and stability both moved."""
    named = f"{before.title} to {after.title}"
    base = before.baseline
    held = trends(before, after, base, thresholds)
    baseline = list(_trend_rows(base, held, None))
    header = ("setting", "diversity", "stability up", "stability down")

    def rows(neighbourhoods: Sequence[Neighbourhood]) -> list[Row]:
        return baseline + [row for at in neighbourhoods for row in _trend_rows(at, trends(before, after, at, thresholds), held)]

    radii = rows([l2(radius) for radius in TREND_RADII if l2(radius) != base])
    metrics = rows([*as_printed(base.radius), turned_about(base.radius)[0]])
    note = "in parentheses: the difference to the baseline; the factor of L1 and L2 is (√2 + 1) / 2"
    first, second = (f"Diversity and stability by {what}: {named}" for what in ("radius (Table 14)", "metric (Table 15)"))
    return [
        _table("trend-by-radius", first, header, radii, keys=2),
        _table("trend-by-metric", second, header, metrics, note, keys=2),
    ]


def _trend_rows(at: Neighbourhood, found: Ints, base: Ints | None) -> Iterator[Row]:
    for place, name in enumerate(("up", "down")):
        cells: list[Cell] = found[place].tolist()
        if base is not None:
            pairs = zip(found[place].tolist(), (found - base)[place].tolist(), strict=True)
            cells = [bare(count, ",", f"({by:+d})") for count, by in pairs]
        yield (str(at) if base is not None else f"{at} (baseline)", name, *cells)


def _radii(radii: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{radius:g}" for radius in radii)


def _pairs(pairs: Sequence[tuple[float, float]], between: str) -> tuple[str, ...]:
    return tuple(f"{one:g}{between}{other:g}" for one, other in pairs)
