"""How every picture looks and is written: a paper's column wide, 8 pt, readable in grey and to the colour-blind, reproducible.

Colours are those of M. Okabe and K. Ito, "Color universal design" (2008); no two series differ by colour alone. Equal input
gives equal bytes under one version of matplotlib: files hold no date, and SVG names its parts from a fixed salt.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from warnings import catch_warnings, filterwarnings

from guieval.errors import UsageError, nearest
from guieval.metrics import Measured

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Width: TypeAlias = Literal["column", "two-column"]
WIDTHS: dict[Width, float] = {"column": 3.3, "two-column": 6.8}
"""In inches, of one column and of a page with two."""
FORMATS = ("pdf", "svg", "png")
"""The suffixes a file may have; PNG has 300 dots per inch, the others are drawn in lines."""
_DPI = 300
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so pictures are the same everywhere
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,  # fonts as outlines that can be searched and edited; journals refuse Type 3
    "svg.fonttype": "none",  # text as text
    "svg.hashsalt": "guieval",
    "savefig.dpi": _DPI,
}
_NO_DATES: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}


_CHINESE = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_CHINESE_FONTS = ("Noto Sans CJK SC", "Noto Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei", "SimHei")
_LOG = logging.getLogger(__name__)


class Look(NamedTuple):
    """How one series differs from the others."""

    colour: str
    marker: str
    line: Any
    hatch: str


LOOKS = (
    Look("#0072B2", "o", "-", ""),
    Look("#E69F00", "s", "--", "/////"),
    Look("#009E73", "^", "-.", "....."),
    Look("#CC79A7", "D", ":", "xxxxx"),
    Look("#56B4E9", "v", (0, (5, 1)), "-----"),
    Look("#D55E00", "P", (0, (3, 1, 1, 1)), "\\\\\\\\\\"),
    Look("#F0E442", "X", (0, (1, 1)), "+++++"),
    Look("#000000", "*", (0, (8, 2)), "ooo"),
)
MOST_SERIES = len(LOOKS)
"""The most series that one picture can distinguish."""


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each series; :class:`UsageError` for none, or for more than there are looks."""
    if not names:
        raise UsageError("there is nothing to draw")
    if len(names) > MOST_SERIES:
        raise UsageError(f"{len(names)} series cannot be distinguished in one picture; draw at most {MOST_SERIES}")
    return dict(zip(names, LOOKS, strict=False))


def check_file(file: Path) -> str:
    """The format that the file's suffix names.

    Raises :class:`UsageError` for another one, and without matplotlib.
    """
    _need_matplotlib()
    suffix = file.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        known = ", ".join(f".{each}" for each in FORMATS)
        raise UsageError(
            f"a picture cannot be written to {str(file)!r}{nearest(suffix, FORMATS)}; its name must end in {known}"
        )
    return suffix


def write(figure: Figure, file: Path) -> None:
    """Save a picture in the format of the file's suffix, as large as it was drawn; folders are made as needed.

    Raises :class:`UsageError` for a suffix outside :data:`FORMATS`.
    """
    import io

    suffix = check_file(file)
    with _style():
        content = io.BytesIO()  # a picture that fails to be drawn leaves the old file alone
        figure.savefig(content, format=suffix, metadata=_NO_DATES[suffix])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.getvalue())


@contextmanager
def drawing(width: Width, height: float) -> Iterator[Figure]:
    """An empty figure, ``height`` inches high, to be filled within the block, at whose end it is laid out."""
    _need_matplotlib()
    from matplotlib.figure import Figure

    with _style():
        figure = Figure(figsize=(WIDTHS[width], height), dpi=_DPI, layout="constrained")
        yield figure
        # Ticks are created at the first drawing, with the style of that moment.
        figure.draw_without_rendering()
        _give_characters(figure)


def _give_characters(figure: Figure) -> None:
    """Give texts in Chinese an installed font that has its characters, or say that there is none."""
    from matplotlib.font_manager import fontManager
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and _CHINESE.search(text.get_text())]
    installed = [name for name in _CHINESE_FONTS if texts and name in fontManager.get_font_names()]
    if texts and not installed:
        _LOG.warning("note: no font with Chinese characters is installed (e.g. %s); they are drawn as boxes", _CHINESE_FONTS[0])
    for text in texts if installed else ():
        text.set_fontfamily([*_STYLE["font.sans-serif"], installed[0]])


def legend(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Add a legend above the axes, in as many columns as the figure is wide for; it grows by the legend's height.

    Long names are wrapped.
    """
    from textwrap import fill

    inches, height = figure.get_size_inches()
    names = [fill(label, int(inches * 18), break_on_hyphens=False) for label in labels]
    for columns in range(len(labels), 0, -1):
        made = figure.legend(
            handles, names, loc="outside upper center", ncols=columns, handlelength=2.6, columnspacing=1.2, borderaxespad=0.2
        )
        extent = made.get_window_extent()
        if columns == 1 or extent.width <= 0.97 * inches * figure.dpi:
            figure.set_size_inches(inches, height + extent.height / figure.dpi)
            return
        made.remove()


def label_axes(axes: Axes, x: str, y: str, lines: Literal["y", "both"] = "y") -> None:
    """Name both axes, and add faint lines to read values by."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(axis=lines, color="0.85", linewidth=0.5)
    axes.set_axisbelow(True)


def interval_ends(numbers: Iterable[Measured | None], scale: float = 100.0) -> tuple[list[float], list[float]]:
    """The low and the high ends of the numbers' intervals, by default of shares in percent; NaN without an interval."""
    found = [None if each is None else each.interval for each in numbers]
    ends = [(math.nan, math.nan) if each is None else (scale * each.low, scale * each.high) for each in found]
    return [low for low, _ in ends], [high for _, high in ends]


def whisker(axes: Axes, low: float, high: float, at: float) -> None:
    """An interval on a horizontal bar at ``at``: white below black, or it is lost in a hatch."""
    axes.plot([low, high], [at] * 2, color="white", linewidth=2.0, solid_capstyle="butt", zorder=3)
    axes.plot([low, high], [at] * 2, color="black", linewidth=0.8, marker="|", markersize=2.5, zorder=4, clip_on=False)


def percent_axis(axes: Axes, which: Literal["x", "y"], words: str) -> None:
    """The whole range of shares, 0 to 100 %, with faint lines to read values by."""
    axis, limits = (axes.xaxis, axes.set_xlim) if which == "x" else (axes.yaxis, axes.set_ylim)
    limits(0, 100)
    axis.set_ticks([0, 20, 40, 60, 80, 100])
    axis.set_label_text(words)
    axes.grid(axis=which, color="0.85", linewidth=0.5)
    axes.set_axisbelow(True)


@contextmanager
def _style() -> Iterator[None]:
    """matplotlib's defaults with this style, so that a user's settings do not change a picture."""
    from matplotlib import rc_context, rcParamsDefault

    keep = ("backend", "backend_fallback", "interactive")
    style: Any = {name: value for name, value in rcParamsDefault.items() if name not in keep} | _STYLE
    with rc_context(style), catch_warnings():
        filterwarnings("ignore", "Glyph ")  # of a character that the font has not: one note says it
        yield


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("plots need matplotlib, which is not installed: pip install 'guieval[report]'") from None
