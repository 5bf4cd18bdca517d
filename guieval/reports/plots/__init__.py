"""Pictures for a paper: each function takes plain values and returns a matplotlib figure, :func:`write` saves it.

matplotlib comes with the extra ``report`` and is imported where a picture is drawn. Figures and intervals are defined in
:mod:`guieval.metrics`; shares are drawn in percent.
"""

from guieval.reports.plots.bars import bars
from guieval.reports.plots.heat import Grid, heat
from guieval.reports.plots.horizon import horizon
from guieval.reports.plots.mixing import mixing
from guieval.reports.plots.paper import FORMATS, MOST_SERIES, WIDTHS, Width, check_file, write
from guieval.reports.plots.reliability import Panel, reliability
from guieval.reports.plots.samples import samples
from guieval.reports.plots.scaling import Trend, scaling

__all__ = [
    "FORMATS",
    "MOST_SERIES",
    "WIDTHS",
    "Grid",
    "Panel",
    "Trend",
    "Width",
    "bars",
    "check_file",
    "heat",
    "horizon",
    "mixing",
    "reliability",
    "samples",
    "scaling",
    "write",
]
