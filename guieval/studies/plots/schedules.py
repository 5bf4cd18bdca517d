"""The schedule of mixed histories: nlogi under several kappas, and under several gaps.

Source: GUIEvalKit paper, Figure 17. It prints no values of its curves; the defaults here are ours.
"""

from __future__ import annotations

import numpy as np

from guieval.history.mixing import KAPPA, Schedule
from guieval.reports.plots.drawn import Drawn, PlotOptions
from guieval.reports.plots.paper import drawing, label_axes, looks

KAPPAS = (1.0, 4.0, 16.0, 64.0)
GAPS = (0.4, 0.6, 0.8, 1.0)
LEFT_MEAN, RIGHT_MEAN = 0.5, 0.3
_PLACES = np.linspace(0, 1, 201)


def nlogi(options: PlotOptions) -> Drawn:
    """p_t against the step ratio: left for each kappa at gap 1 and E(p) 0.5, right for each gap at kappa 16 and E(p) 0.3.

    p_lb is 0. Raises :class:`guieval.errors.UsageError` for a kappa out of range, and a gap that cannot have the mean.
    """
    left = [Schedule(0, 1, "logistic", kappa, LEFT_MEAN) for kappa in options.kappa or KAPPAS]
    right = [Schedule(0, gap, "logistic", KAPPA, RIGHT_MEAN) for gap in options.gap or GAPS]
    panels = {
        f"gap 1, E(p) {LEFT_MEAN:g}": {f"κ = {each.kappa:g}": each for each in left},
        f"κ {KAPPA:g}, E(p) {RIGHT_MEAN:g}": {f"gap = {each.gap:g}": each for each in right},
    }
    across = 2 if options.width == "two-column" else 1
    with drawing(options.width, 2.1 * (2 // across)) as figure:
        grid = figure.subplots(2 // across, across, squeeze=False)
        for axes, (title, curves) in zip(grid.flat, panels.items(), strict=True):
            for (name, schedule), look in zip(curves.items(), looks(list(curves)).values(), strict=True):
                axes.plot(_PLACES, schedule.at(_PLACES), color=look.colour, linestyle=look.line, label=name)
            axes.set_xlim(0, 1)
            axes.set_ylim(0, 1)
            axes.set_title(title)
            axes.legend(loc="upper left", handlelength=2.6)
            label_axes(axes, "step ratio (t + 1) / T", "p, the share of own steps", "both")
    shows = f"the schedule of mixed histories from p_lb 0: by kappa at E(p) {LEFT_MEAN:g}, by gap at E(p) {RIGHT_MEAN:g}"
    numbers = [
        {"kappa": each.kappa, "gap": each.gap, "mean": each.mean, "mu": each.mu, "p": each.at(_PLACES[::10]).tolist()}
        for each in (*left, *right)
    ]
    return Drawn(figure, shows, {"step_ratio": _PLACES[::10].tolist(), "schedules": numbers})
