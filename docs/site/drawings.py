"""The drawings of the pages on concepts: ``python docs/site/drawings.py`` writes them into ``docs/concepts``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from guieval.frames import PER_1000, PIXELS, Normalised

OUT = Path(__file__).parents[1] / "concepts"
BLUE, ORANGE, GREY, GREEN = "#0072B2", "#D55E00", "#767676", "#009E73"
"""Colours that are distinct for colour-blind readers (Okabe and Ito)."""
LEGEND = "green: right; orange: mismatch"
STYLE = {"font.size": 10, "svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "guieval"}


def canvas(width: float, height: float, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """An empty picture of ``width`` x ``height`` units on a white ground."""
    figure, axes = plt.subplots(figsize=size)
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    return figure, axes


def box(
    axes: Axes, x: float, y: float, width: float, text: str, colour: str, *, height: float = 0.7, fill: bool = False
) -> None:
    """A rounded box with a text in its middle."""
    face = colour if fill else "white"
    shape = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.12", ec=colour, fc=face, lw=1.4)
    axes.add_patch(shape)
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", color="white" if fill else "black")


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = GREY) -> None:
    """An arrow between two places."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.2, "shrinkA": 0, "shrinkB": 0})


def modes() -> Figure:
    """One episode of five steps under each mode; the model errs at the third."""
    figure, axes = canvas(13.4, 5.6, (8.4, 3.5))
    matches = (True, True, False, True, True)
    rows = {
        "offline": ("RRRRR", "every step sees the reference"),
        "soeval": ("MMRMM", "own where right, else the reference"),
        "sop": ("MMM", "own; ends at the first mismatch"),
        "online": ("MMMMM", "own, on the screens it leads to"),
    }
    for row, (mode, (past, words)) in enumerate(rows.items()):
        y = 0.3 + 1.15 * row
        axes.text(0.1, y + 0.35, mode, va="center", family="monospace", weight="bold")
        for step, source in enumerate(past):
            x = 2.0 + 1.45 * step
            axes.text(x + 0.5, y - 0.08, "ref." if source == "R" else "own", ha="center", fontsize=7.5, color=GREY)
            colour = BLUE if mode == "online" else GREEN if matches[step] else ORANGE
            box(axes, x, y + 0.08, 1.0, str(step + 1), colour, height=0.55)
            if step + 1 < len(past):
                arrow(axes, (x + 1.03, y + 0.35), (x + 1.42, y + 0.35))
        axes.text(9.5, y + 0.35, words, va="center", fontsize=9)
    axes.text(
        2.0,
        5.2,
        LEGEND + "; blue: no reference. Above each step: what enters the history after it",
        fontsize=8,
        color=GREY,
    )
    return figure


def verdicts() -> Figure:
    """From a request to its verdict."""
    figure, axes = canvas(13, 4.4, (8.2, 2.8))
    stages = (
        ("request", "answered?"),
        ("reply", "holds an action?"),
        ("action", "in the unified space?"),
        ("prediction", "matches?"),
    )
    ends = ("infrastructure\nfailure", "unparseable", "unsupported", "wrong")
    for index, ((name, question), end) in enumerate(zip(stages, ends, strict=True)):
        x = 0.2 + 2.75 * index
        box(axes, x, 0.7, 1.9, name, BLUE)
        axes.text(x + 0.95, 0.4, question, ha="center", fontsize=8.5, color=GREY)
        arrow(axes, (x + 0.95, 1.45), (x + 0.95, 2.75))
        axes.text(x + 1.05, 2.1, "no", fontsize=8.5, color=GREY)
        box(axes, x, 2.8, 1.9, end, ORANGE, height=0.95)
        arrow(axes, (x + 1.95, 1.05), (x + 2.7, 1.05))
        axes.text(x + 2.3, 0.88, "yes", fontsize=8.5, color=GREY, ha="center")
    box(axes, 11.2, 0.7, 1.5, "right", GREEN, fill=True)
    return figure


def denominators() -> Figure:
    """Two episodes; progress by episode, progress by step, and exact match."""
    figure, axes = canvas(13, 3.6, (8.2, 2.3))
    episodes = ((True, True, False, True, True, True), (True, True))
    for row, steps in enumerate(episodes):
        axes.text(0.1, 0.75 + 1.2 * row, f"episode {row + 1}", va="center")
        for index, right in enumerate(steps):
            box(axes, 1.9 + 0.85 * index, 0.45 + 1.2 * row, 0.7, "", GREEN if right else ORANGE, height=0.6, fill=True)
    prefixes = [next((index for index, right in enumerate(steps) if not right), len(steps)) for steps in episodes]
    shares = [prefix / len(steps) for prefix, steps in zip(prefixes, episodes, strict=True)]
    counted = sum(map(len, episodes))
    lines = (
        f"exact match = {sum(map(sum, episodes))}/{counted} = {100 * sum(map(sum, episodes)) / counted:.1f} %",
        f"progress, mean of episodes = (2/6 + 2/2)/2 = {100 * sum(shares) / 2:.1f} %",
        f"progress, by steps = (2 + 2)/{counted} = {100 * sum(prefixes) / counted:.1f} %",
        "success rate = 1/2 = 50.0 %",
    )
    for index, line in enumerate(lines):
        axes.text(7.4, 0.5 + 0.62 * index, line, va="center", fontsize=9)
    axes.text(1.9, 2.95, LEGEND, fontsize=8, color=GREY)
    return figure


def frames() -> Figure:
    """One point on a phone, as five frames write it."""
    figure, axes = canvas(13, 5.2, (8.2, 3.3))
    size = (1080, 2400)
    point = PIXELS.decode(810, 600, size)
    axes.add_patch(Rectangle((1.2, 0.3), 2.1, 4.6, fill=False, ec=GREY, lw=1.5))
    x, y = 1.2 + 2.1 * point.x / 1000, 0.3 + 4.6 * point.y / 1000
    axes.plot([x], [y], "o", color=ORANGE, ms=8)
    axes.text(2.25, 5.1, "1080 x 2400", ha="center", fontsize=8, color=GREY)
    px, py = PIXELS.quantise(point, size)
    names = (
        ("thousandths (guieval)", f"{point.x:g}, {point.y:g}"),
        ("pixels", f"{px:g}, {py:g}"),
        ("0-1000, whole", "{:g}, {:g}".format(*PER_1000.quantise(point, size))),
        ("0-999", "{:g}, {:g}".format(*Normalised(999.0).quantise(point, size))),
        ("0-1", "{:g}, {:g}".format(*Normalised(1.0, 3).quantise(point, size))),
        ("pixels, y before x", f"{py:g}, {px:g}"),
    )
    for index, (name, written) in enumerate(names):
        axes.text(5.5, 0.75 + 0.72 * index, name, va="center")
        axes.text(9.6, 0.75 + 0.72 * index, written, va="center", family="monospace", color=BLUE)
    return figure


DRAWINGS: tuple[Callable[[], Figure], ...] = (modes, verdicts, denominators, frames)


def write(folder: Path) -> None:
    """Write every drawing as SVG; the same drawing gives the same file."""
    with plt.rc_context(STYLE):
        for draw in DRAWINGS:
            figure = draw()
            figure.savefig(folder / f"{draw.__name__}.svg", metadata={"Date": None}, facecolor="white")
            plt.close(figure)


if __name__ == "__main__":
    write(OUT)
